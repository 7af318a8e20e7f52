//! Where things are kept, from the environment: the one place that reads it.

use std::env;
use std::path::PathBuf;

/// Folders of this user and what else the environment says.
#[derive(Debug, Clone)]
pub(crate) struct Dirs {
    cache: PathBuf,
    state: PathBuf,
    hugging_face_endpoint: String,
    hugging_face_token: Option<String>,
}

impl Dirs {
    pub(crate) fn from_environment() -> Dirs {
        let home = env::home_dir().unwrap_or_else(|| PathBuf::from("."));
        let under = |variable: &str, default: &str| {
            let set = env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from);
            set.filter(|path| path.is_absolute()).unwrap_or_else(|| home.join(default)).join("jackfield")
        };
        let text = |variable: &str| env::var(variable).ok().filter(|value| !value.is_empty());
        Dirs {
            cache: under("XDG_CACHE_HOME", ".cache"),
            state: under("XDG_STATE_HOME", ".local/state"),
            hugging_face_endpoint: text("HF_ENDPOINT").unwrap_or_else(|| "https://huggingface.co".into()),
            hugging_face_token: text("HF_TOKEN"),
        }
    }

    /// All in one folder.
    #[cfg(test)]
    pub(crate) fn under(folder: &std::path::Path) -> Dirs {
        Dirs { cache: folder.join("cache"), state: folder.join("state"), ..Dirs::from_environment() }
    }

    /// Fetched models.
    pub(crate) fn models(&self) -> PathBuf {
        self.cache.join("models")
    }

    /// What the component builder keeps.
    pub(crate) fn toolchain(&self) -> PathBuf {
        self.cache.join("toolchain")
    }

    /// The default of `--state`.
    pub(crate) fn state(&self) -> PathBuf {
        self.state.clone()
    }

    pub(crate) fn hugging_face_endpoint(&self) -> &str {
        self.hugging_face_endpoint.trim_end_matches('/')
    }

    pub(crate) fn hugging_face_token(&self) -> Option<&str> {
        self.hugging_face_token.as_deref()
    }
}
