//! The workloads that ship.

use std::path::Path;

use crate::error::BenchError;
use crate::workload::Workload;

/// Name and text of a file of `workloads/`.
macro_rules! shipped {
    ($($name:literal),* $(,)?) => {
        [$(($name, include_str!(concat!("../workloads/", $name, ".toml")))),*]
    };
}

const SHIPPED: [(&str, &str); 15] = shipped![
    "prefill_512",
    "prefill_2048",
    "decode_1",
    "decode_1_depth_4096",
    "decode_4",
    "decode_8",
    "decode_16",
    "decode_32",
    "concurrent",
    "shared_prefix_16",
    "dialogs",
    "short_ttft_beside_long",
    "poisson",
    "three_phases",
    "resident_8x2048",
];

/// What runs when no workload is named.
pub const DEFAULT: [&str; 3] = ["prefill_512", "decode_1", "decode_8"];

/// Every workload that ships, in the order in which they are listed.
///
/// # Errors
/// None that a release can have: the files are part of the binary, and a test reads them all.
pub fn shipped() -> Result<Vec<Workload>, BenchError> {
    SHIPPED.iter().map(|(name, text)| Workload::parse(name, text)).collect()
}

/// A workload by its name, or by the path of a file that ends in `.toml`.
///
/// # Errors
/// When there is none, or it cannot be used.
pub fn find(name: &str) -> Result<Workload, BenchError> {
    if name.ends_with(".toml") {
        return Workload::read(Path::new(name));
    }
    match SHIPPED.iter().find(|(known, _)| *known == name) {
        Some((name, text)) => Workload::parse(name, text),
        None => Err(BenchError::UnknownWorkload {
            name: name.to_owned(),
            known: SHIPPED.iter().map(|(known, _)| *known).collect(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;

    use super::*;

    #[test]
    fn every_file_of_the_folder_ships_and_is_good() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("workloads");
        let files = fs::read_dir(folder).expect("a folder").flatten().map(|entry| entry.path());
        let files: BTreeSet<String> = files
            .filter(|path| path.extension().is_some_and(|ending| ending == "toml"))
            .map(|path| path.file_stem().expect("a name").to_string_lossy().into_owned())
            .collect();
        let shipped: BTreeSet<String> = shipped().expect("good").into_iter().map(|w| w.name).collect();
        assert_eq!(shipped, files);
        assert!(DEFAULT.iter().all(|name| shipped.contains(*name)));
    }

    #[test]
    fn an_unknown_name_lists_the_known_ones() {
        let error = find("decode_2").expect_err("unknown").to_string();
        assert!(error.contains("\"decode_2\"") && error.contains("decode_16, decode_32"), "{error}");
        let error = find("nowhere/x.toml").expect_err("missing").to_string();
        assert!(error.contains("nowhere/x.toml"), "{error}");
    }
}
