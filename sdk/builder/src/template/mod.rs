mod c;
mod javascript;
mod python;
mod rust;

use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::error::FolderError;
use crate::language::Language;
use crate::sdk::{SdkFile, VENDORED};

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

    /// What is the same in every language: rules, what they may be, and the first cases.
    fn data(self) -> [(&'static str, &'static str); 3] {
        macro_rules! data {
            ($folder:literal) => {
                [
                    ("rules.toml", include_str!(concat!("../../../template/", $folder, "/rules.toml"))),
                    (
                        "config.schema.json",
                        include_str!(concat!("../../../template/", $folder, "/config.schema.json")),
                    ),
                    ("cases/first.json", include_str!(concat!("../../../template/", $folder, "/case.json"))),
                ]
            };
        }
        match self {
            PolicyKind::SlotExtractor => data!("slot-extractor"),
            PolicyKind::Router => data!("router"),
            PolicyKind::Compressor => data!("compressor"),
            PolicyKind::OutputFilter => data!("output-filter"),
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

/// Files that every folder has, with places to be filled in.
const COMMON: [(&str, &str); 3] = [
    ("policy.toml", include_str!("../../../template/policy.toml.template")),
    ("README.md", include_str!("../../../template/README.md.template")),
    (".gitignore", include_str!("../../../template/gitignore.template")),
];

/// A file of a new folder: where, and what it holds.
type NewFile = (String, String);

/// Writes a folder with a policy that builds and passes its first cases.
///
/// Within a checkout of the repository the folder uses the SDK there, and one in Rust joins the guest workspace if it lies
/// in `plugins/`. Anywhere else the SDK and the contract, as they were when this program was built, are written to
/// `vendor/jackfield` in the folder, so that it builds wherever it is taken.
///
/// # Errors
/// A name that is no package name, a folder that is not empty, or one that cannot be written.
pub fn new_policy(kind: PolicyKind, language: Language, name: &str, dir: &Path) -> Result<(), FolderError> {
    check_name(name)?;
    let io = |source| FolderError::Io { path: dir.to_owned(), source };
    std::fs::create_dir_all(dir).map_err(io)?;
    if std::fs::read_dir(dir).map_err(io)?.next().is_some() {
        return Err(FolderError::Occupied { path: dir.to_owned() });
    }
    let place = Place::of(&dir.canonicalize().map_err(io)?);
    let source = match language {
        Language::Rust => rust::files(kind, name, &place),
        Language::Python => python::files(kind, name, &place),
        Language::JavaScript => javascript::files(kind, name, &place),
        Language::C => c::files(kind, name, &place),
    };
    let code = match language {
        Language::Rust => rust::CODE,
        Language::Python => python::CODE,
        Language::JavaScript => javascript::CODE,
        Language::C => c::CODE,
    };
    for (file, text) in COMMON {
        let text = text
            .replace("{{name}}", name)
            .replace("{{kind}}", kind.name())
            .replace("{{on-fault}}", kind.on_fault())
            .replace("{{code}}", code);
        write(dir.join(file), &text)?;
    }
    for (file, text) in kind.data() {
        write(dir.join(file), text)?;
    }
    for (file, text) in source {
        write(dir.join(file), &text)?;
    }
    Ok(())
}

/// How a folder reaches the SDK.
#[derive(Debug, PartialEq, Eq)]
struct Place {
    /// The checkout of the repository around the folder, as a path from there: `../../`.
    checkout: Option<String>,
    /// Whether it lies in the checkout's `plugins/`.
    in_plugins: bool,
}

impl Place {
    fn of(dir: &Path) -> Place {
        let is_checkout =
            |root: &Path| root.join("sdk/rust/Cargo.toml").is_file() && root.join("wit/policy.wit").is_file();
        match dir.ancestors().skip(1).enumerate().find(|(_, root)| is_checkout(root)) {
            Some((above, root)) => Place {
                checkout: Some("../".repeat(above + 1)),
                in_plugins: dir.parent() == Some(&root.join("plugins")),
            },
            None => Place { checkout: None, in_plugins: false },
        }
    }

    /// The SDK's files, under [`VENDORED`], for a folder outside of a checkout.
    fn vendor(&self, sdk: &[SdkFile]) -> Vec<NewFile> {
        let vendored = |(file, text): &SdkFile| (format!("{VENDORED}/{file}"), (*text).to_owned());
        if self.checkout.is_some() { Vec::new() } else { sdk.iter().map(vendored).collect() }
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
    fn each_kind_in_each_language_is_a_folder_in_order_with_cases() {
        for (kind, language) in
            PolicyKind::ALL.into_iter().flat_map(|kind| Language::ALL.map(|language| (kind, language)))
        {
            let dir = tempfile::tempdir().expect("a folder");
            new_policy(kind, language, "my-policy", dir.path()).expect("written");
            let read = read_policy_dir(dir.path()).expect("in order");
            assert!(read.manifest_toml.contains(&format!("kind = \"{}\"", kind.name())));
            assert!(read.has_source && read.config != serde_json::json!({}));
            assert!(read.cases.iter().all(|case| case.json.as_array().is_some_and(|cases| cases.len() >= 2)));
            assert_eq!(Language::of(dir.path()).ok(), Some(language));
            let readme = std::fs::read_to_string(dir.path().join("README.md")).expect("written");
            assert!(!readme.contains("{{"), "{readme}");
        }
    }

    #[test]
    fn names_that_are_no_packages_and_folders_in_use_are_refused() {
        let dir = tempfile::tempdir().expect("a folder");
        for name in ["", "1st", "Mine", "a_b", "a/b", "überfilter", "a-", &"a".repeat(65)] {
            let refused = new_policy(PolicyKind::Router, Language::Rust, name, &dir.path().join("new"));
            assert!(matches!(refused, Err(FolderError::Name { .. })), "{name}");
        }
        std::fs::write(dir.path().join("file"), "").expect("written");
        let refused = new_policy(PolicyKind::Router, Language::Rust, "mine", dir.path());
        assert!(matches!(refused, Err(FolderError::Occupied { .. })));
        assert!(matches!("filter".parse::<PolicyKind>(), Err(FolderError::Kind { .. })));
    }
}
