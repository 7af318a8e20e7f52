//! New policies in Rust.

use super::{NewFile, Place, PolicyKind};
use crate::sdk::{SdkFile, VENDORED};

/// What a README says of the code.
pub(super) const CODE: &str = "`src/lib.rs`: the code. `cargo test --release` runs it natively.";

/// The SDK as it was when this program was built, for folders outside a checkout of the repository.
const SDK: [SdkFile; 10] = [
    ("sdk/rust/Cargo.toml", include_str!("../../../rust/Cargo.toml")),
    ("sdk/rust/src/lib.rs", include_str!("../../../rust/src/lib.rs")),
    ("sdk/rust/src/bindings.rs", include_str!("../../../rust/src/bindings.rs")),
    ("sdk/rust/src/describe.rs", include_str!("../../../rust/src/describe.rs")),
    ("sdk/rust/src/export.rs", include_str!("../../../rust/src/export.rs")),
    ("sdk/rust/src/kinds.rs", include_str!("../../../rust/src/kinds.rs")),
    ("sdk/rust/src/state.rs", include_str!("../../../rust/src/state.rs")),
    ("sdk/rust/src/text.rs", include_str!("../../../rust/src/text.rs")),
    ("README.md", include_str!("../../../template/vendored.md")),
    ("wit/policy.wit", include_str!("../../../../wit/policy.wit")),
];

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

/// The crate.
pub(super) fn files(kind: PolicyKind, name: &str, place: &Place) -> Vec<NewFile> {
    let cargo = include_str!("../../../rust/template/Cargo.toml.template")
        .replace("{{name}}", name)
        .replace("{{sdk}}", &sdk(place))
        .replace("{{workspace}}\n", if place.in_plugins { "" } else { OWN_WORKSPACE });
    let source = match kind {
        PolicyKind::SlotExtractor => include_str!("../../../rust/template/slot-extractor/lib.rs"),
        PolicyKind::Router => include_str!("../../../rust/template/router/lib.rs"),
        PolicyKind::Compressor => include_str!("../../../rust/template/compressor/lib.rs"),
        PolicyKind::OutputFilter => include_str!("../../../rust/template/output-filter/lib.rs"),
    };
    let mut files = vec![("Cargo.toml".into(), cargo), ("src/lib.rs".into(), source.into())];
    files.extend(place.vendor(&SDK));
    files
}

/// Path of the SDK's crate, from the folder.
fn sdk(place: &Place) -> String {
    format!("{}sdk/rust", place.checkout.clone().unwrap_or_else(|| format!("{VENDORED}/")))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::language::Language;
    use crate::template::{new_policy, write};

    #[test]
    fn a_folder_outside_a_checkout_stands_alone() {
        let dir = tempfile::tempdir().expect("a folder");
        new_policy(PolicyKind::Router, Language::Rust, "mine", dir.path()).expect("written");
        let cargo = std::fs::read_to_string(dir.path().join("Cargo.toml")).expect("written");
        let cargo: toml::Table = toml::from_str(&cargo).expect("TOML");
        let sdk = cargo["dependencies"]["jackfield-sdk"]["path"].as_str().expect("a path");
        assert!(cargo.contains_key("workspace") && dir.path().join(sdk).join("Cargo.toml").is_file());
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
        new_policy(PolicyKind::Router, Language::Rust, "mine", &plugin).expect("written");
        let cargo = std::fs::read_to_string(plugin.join("Cargo.toml")).expect("written");
        assert!(cargo.contains("path = \"../../sdk/rust\"") && !cargo.contains("[workspace]"), "{cargo}");
        assert!(!plugin.join("vendor").exists());
        let deep = Place::of(&root.join("a/b/c"));
        assert_eq!((sdk(&deep).as_str(), deep.in_plugins), ("../../../sdk/rust", false));
    }
}
