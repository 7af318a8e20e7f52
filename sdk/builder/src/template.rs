use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::error::FolderError;

/// The four kinds of policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PolicyKind {
    /// Reads the user's words.
    SlotExtractor,
    /// Decides where and how a turn runs.
    Router,
    /// Decides which bytes of a prompt are not worth their tokens.
    Compressor,
    /// Decides what of an answer may leave the host.
    OutputFilter,
}

impl PolicyKind {
    /// All four.
    pub const ALL: [PolicyKind; 4] =
        [PolicyKind::SlotExtractor, PolicyKind::Router, PolicyKind::Compressor, PolicyKind::OutputFilter];

    /// Its name in manifests: `output-filter`.
    pub fn name(self) -> &'static str {
        match self {
            PolicyKind::SlotExtractor => "slot-extractor",
            PolicyKind::Router => "router",
            PolicyKind::Compressor => "compressor",
            PolicyKind::OutputFilter => "output-filter",
        }
    }

    fn on_fault(self) -> &'static str {
        match self {
            PolicyKind::OutputFilter => "closed",
            _ => "open",
        }
    }

    fn files(self) -> [(&'static str, &'static str); 3] {
        macro_rules! files {
            ($folder:literal) => {
                [
                    ("rules.toml", include_str!(concat!("../../rust/template/", $folder, "/rules.toml"))),
                    ("src/lib.rs", include_str!(concat!("../../rust/template/", $folder, "/lib.rs"))),
                    (
                        "cases/first.json",
                        include_str!(concat!("../../rust/template/", $folder, "/case.json")),
                    ),
                ]
            };
        }
        match self {
            PolicyKind::SlotExtractor => files!("slot-extractor"),
            PolicyKind::Router => files!("router"),
            PolicyKind::Compressor => files!("compressor"),
            PolicyKind::OutputFilter => files!("output-filter"),
        }
    }
}

impl FromStr for PolicyKind {
    type Err = FolderError;

    fn from_str(name: &str) -> Result<PolicyKind, FolderError> {
        let kind = PolicyKind::ALL.into_iter().find(|kind| kind.name() == name);
        kind.ok_or_else(|| FolderError::Kind { kind: name.to_owned() })
    }
}

/// Files with places to be filled in.
const COMMON: [(&str, &str); 4] = [
    ("Cargo.toml", include_str!("../../rust/template/Cargo.toml.template")),
    ("policy.toml", include_str!("../../rust/template/policy.toml.template")),
    ("README.md", include_str!("../../rust/template/README.md.template")),
    (".gitignore", include_str!("../../rust/template/gitignore.template")),
];

/// The SDK as it was when this program was built, for folders outside a checkout of the repository.
const SDK: [(&str, &str); 10] = [
    ("sdk/rust/Cargo.toml", include_str!("../../rust/Cargo.toml")),
    ("sdk/rust/src/lib.rs", include_str!("../../rust/src/lib.rs")),
    ("sdk/rust/src/bindings.rs", include_str!("../../rust/src/bindings.rs")),
    ("sdk/rust/src/describe.rs", include_str!("../../rust/src/describe.rs")),
    ("sdk/rust/src/export.rs", include_str!("../../rust/src/export.rs")),
    ("sdk/rust/src/kinds.rs", include_str!("../../rust/src/kinds.rs")),
    ("sdk/rust/src/state.rs", include_str!("../../rust/src/state.rs")),
    ("sdk/rust/src/text.rs", include_str!("../../rust/src/text.rs")),
    ("sdk/README.md", include_str!("../../rust/template/vendored.md")),
    ("wit/policy.wit", include_str!("../../../wit/policy.wit")),
];

/// Where the SDK lies in a folder outside a checkout.
const VENDORED: &str = "vendor/jackfield";

/// A package outside the guest workspace is a workspace of its own, and has its profile.
const OWN_WORKSPACE: &str = "
# Stands alone: no workspace further up takes it in.
[workspace]

[profile.release]
opt-level = 3
lto = true
codegen-units = 1
panic = \"abort\"
strip = true
";

/// Writes a folder with a policy that builds and passes its first cases.
///
/// Within a checkout of the repository it depends on `sdk/rust` there, and joins the guest workspace if it lies in
/// `plugins/`. Anywhere else the SDK and the contract, as they were when this program was built, are written to
/// `vendor/jackfield` in the folder, so that it builds wherever it is taken.
///
/// # Errors
/// A name that is no package name, a folder that is not empty, or one that cannot be written.
pub fn new_policy(kind: PolicyKind, name: &str, dir: &Path) -> Result<(), FolderError> {
    check_name(name)?;
    let io = |source| FolderError::Io { path: dir.to_owned(), source };
    std::fs::create_dir_all(dir).map_err(io)?;
    if std::fs::read_dir(dir).map_err(io)?.next().is_some() {
        return Err(FolderError::Occupied { path: dir.to_owned() });
    }
    let place = Place::of(&dir.canonicalize().map_err(io)?);
    for (file, text) in COMMON {
        let text = text
            .replace("{{name}}", name)
            .replace("{{kind}}", kind.name())
            .replace("{{on-fault}}", kind.on_fault())
            .replace("{{sdk}}", &place.sdk)
            .replace("{{workspace}}\n", if place.in_guest_workspace { "" } else { OWN_WORKSPACE });
        write(dir.join(file), &text)?;
    }
    for (file, text) in kind.files() {
        write(dir.join(file), text)?;
    }
    if place.vendored {
        for (file, text) in SDK {
            write(dir.join(VENDORED).join(file), text)?;
        }
    }
    Ok(())
}

/// How a folder reaches the SDK.
#[derive(Debug, PartialEq, Eq)]
struct Place {
    /// Path of the crate, from the folder.
    sdk: String,
    vendored: bool,
    in_guest_workspace: bool,
}

impl Place {
    fn of(dir: &Path) -> Place {
        let is_checkout =
            |root: &Path| root.join("sdk/rust/Cargo.toml").is_file() && root.join("wit/policy.wit").is_file();
        let checkout = dir.ancestors().skip(1).enumerate().find(|(_, root)| is_checkout(root));
        match checkout {
            Some((above, root)) => Place {
                sdk: format!("{}sdk/rust", "../".repeat(above + 1)),
                vendored: false,
                in_guest_workspace: dir.parent() == Some(&root.join("plugins")),
            },
            None => Place { sdk: format!("{VENDORED}/sdk/rust"), vendored: true, in_guest_workspace: false },
        }
    }
}

fn check_name(name: &str) -> Result<(), FolderError> {
    let starts_well = name.starts_with(|c: char| c.is_ascii_lowercase());
    let all_well = name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
    if starts_well && all_well && !name.ends_with('-') && name.len() <= 64 {
        return Ok(());
    }
    Err(FolderError::Name { name: name.to_owned() })
}

fn write(path: PathBuf, text: &str) -> Result<(), FolderError> {
    let made = path.parent().map_or(Ok(()), std::fs::create_dir_all);
    made.and_then(|()| std::fs::write(&path, text)).map_err(|source| FolderError::Io { path, source })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read_policy_dir;

    #[test]
    fn each_kind_is_a_folder_in_order_with_cases() {
        for kind in PolicyKind::ALL {
            let dir = tempfile::tempdir().expect("a folder");
            new_policy(kind, "my-policy", dir.path()).expect("written");
            let read = read_policy_dir(dir.path()).expect("in order");
            assert!(read.manifest_toml.contains(&format!("kind = \"{}\"", kind.name())));
            assert!(read.has_source && read.config != serde_json::json!({}));
            assert!(read.cases.iter().all(|case| case.json.as_array().is_some_and(|cases| cases.len() >= 2)));
            let cargo = std::fs::read_to_string(dir.path().join("Cargo.toml")).expect("written");
            let cargo: toml::Table = toml::from_str(&cargo).expect("TOML");
            let sdk = cargo["dependencies"]["jackfield-sdk"]["path"].as_str().expect("a path");
            assert!(cargo.contains_key("workspace") && dir.path().join(sdk).join("Cargo.toml").is_file());
        }
    }

    #[test]
    fn the_vendored_sdk_has_every_file_of_the_sdk() {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../rust/src");
        let mut files: Vec<String> = std::fs::read_dir(sources)
            .expect("sources")
            .map(|file| format!("sdk/rust/src/{}", file.expect("a file").file_name().to_string_lossy()))
            .collect();
        files.sort();
        let mut vendored: Vec<String> =
            SDK.iter().map(|(file, _)| (*file).to_owned()).filter(|file| file.contains("/src/")).collect();
        vendored.sort();
        assert_eq!(files, vendored);
    }

    #[test]
    fn a_folder_in_a_checkout_uses_its_sdk_and_one_in_plugins_its_workspace() {
        let root = tempfile::tempdir().expect("a folder");
        let root = root.path().canonicalize().expect("a path");
        for file in ["sdk/rust/Cargo.toml", "wit/policy.wit"] {
            write(root.join(file), "").expect("written");
        }
        let plugin = root.join("plugins/mine");
        new_policy(PolicyKind::Router, "mine", &plugin).expect("written");
        let cargo = std::fs::read_to_string(plugin.join("Cargo.toml")).expect("written");
        assert!(cargo.contains("path = \"../../sdk/rust\"") && !cargo.contains("[workspace]"), "{cargo}");
        assert!(!plugin.join("vendor").exists());
        let deep = Place::of(&root.join("a/b/c"));
        let expected = Place { sdk: "../../../sdk/rust".into(), vendored: false, in_guest_workspace: false };
        assert_eq!(deep, expected);
    }

    #[test]
    fn names_that_are_no_packages_and_folders_in_use_are_refused() {
        let dir = tempfile::tempdir().expect("a folder");
        for name in ["", "1st", "Mine", "a_b", "a/b", "überfilter", "a-", &"a".repeat(65)] {
            let refused = new_policy(PolicyKind::Router, name, &dir.path().join("new"));
            assert!(matches!(refused, Err(FolderError::Name { .. })), "{name}");
        }
        std::fs::write(dir.path().join("file"), "").expect("written");
        let refused = new_policy(PolicyKind::Router, "mine", dir.path());
        assert!(matches!(refused, Err(FolderError::Occupied { .. })));
        assert!(matches!("filter".parse::<PolicyKind>(), Err(FolderError::Kind { .. })));
    }
}
