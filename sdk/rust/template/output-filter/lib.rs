//! Masks names. The host looks for them; this is called only where it found one.

use jackfield_sdk::output_filtering::{Interest, OutputFilter, Replacement, Verdict, Watch, Window};
use jackfield_sdk::{Description, Policy};

/// The shape of `rules.toml`.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// What stands in the place of a name.
    mask: String,
    /// The names; letters and digits only, in any case.
    names: Vec<String>,
}

/// The policy.
pub struct Names(Config);

impl Policy for Names {
    type Config = Config;

    fn describe() -> Description {
        Description::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"))
    }

    fn configure(config: Config) -> Result<Self, String> {
        match config.names.iter().find(|name| name.is_empty() || !name.chars().all(char::is_alphanumeric)) {
            Some(name) => Err(format!("`{name}` is not only letters and digits")),
            None => Ok(Names(config)),
        }
    }
}

impl OutputFilter for Names {
    fn interests(&self) -> Interest {
        // One pattern for all names, so that no two hits overlap.
        let regex = format!("(?i:{})", self.0.names.join("|"));
        Interest::in_watches(vec![Watch { name: "names".into(), regex }])
    }

    fn review(&self, windows: &[Window]) -> Result<Vec<Verdict>, String> {
        let verdicts = (0..).zip(windows).map(|(window, seen)| Verdict {
            window,
            replace: seen.hits.iter().map(|hit| Replacement { at: hit.at, text: self.0.mask.clone() }).collect(),
            hold_bytes: 0,
            stop: None,
        });
        Ok(verdicts.collect())
    }
}

jackfield_sdk::export_output_filter!(Names);
