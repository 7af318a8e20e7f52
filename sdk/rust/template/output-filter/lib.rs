//! Masks names, and ends an answer before a forbidden one. The host looks for them; this is called only where it found one.

use jackfield_sdk::output_filtering::{Hit, Interest, OutputFilter, Replacement, Verdict, Watch, Window};
use jackfield_sdk::{Description, Policy};

/// Index of the watch for forbidden names.
const FORBIDDEN: u32 = 1;

/// The shape of `rules.toml`.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// What stands in the place of a name.
    mask: String,
    /// The names.
    names: Vec<String>,
    /// Names that end the answer.
    #[serde(default)]
    forbidden: Vec<String>,
}

/// The policy.
pub struct Names(Config);

impl Policy for Names {
    type Config = Config;

    fn describe() -> Description {
        Description::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"))
            .with_config_schema(include_str!("../config.schema.json"))
    }

    fn configure(config: Config) -> Result<Self, String> {
        let not_plain = |c: char| c.is_ascii() && !c.is_ascii_alphanumeric();
        // A name goes into a pattern as it is, and everything that means something there is ASCII.
        match config.names.iter().chain(&config.forbidden).find(|name| name.contains(not_plain)) {
            Some(name) => Err(format!("`{name}` has more in it than letters and digits")),
            None => Ok(Names(config)),
        }
    }
}

impl OutputFilter for Names {
    fn interests(&self) -> Interest {
        // One pattern for all names of a list, so that no two of its hits overlap.
        let watch = |name: &str, names: &[String]| Watch {
            name: name.into(),
            regex: format!("(?i:{})", names.join("|")),
        };
        let mut watches = vec![watch("names", &self.0.names)];
        if !self.0.forbidden.is_empty() {
            watches.push(watch("forbidden", &self.0.forbidden));
        }
        Interest::in_watches(watches)
    }

    fn review(&self, windows: &[Window]) -> Result<Vec<Verdict>, String> {
        Ok((0..).zip(windows).map(|(window, seen)| self.verdict(window, seen)).collect())
    }
}

impl Names {
    fn verdict(&self, window: u32, seen: &Window) -> Verdict {
        let length = seen.pending.len() as u32;
        let forbidden = seen.hits.iter().find(|hit| hit.watch == FORBIDDEN);
        let end = forbidden.map_or(length, |hit| hit.at.start);
        let is_masked = |hit: &&Hit| hit.watch != FORBIDDEN && hit.at.end <= end;
        let mask = |hit: &Hit| Replacement { at: hit.at, text: self.0.mask.clone() };
        Verdict {
            window,
            replace: seen.hits.iter().filter(is_masked).map(mask).collect(),
            hold_bytes: length - end,
            stop: forbidden.map(|_| "a forbidden name".into()),
        }
    }
}

jackfield_sdk::export_output_filter!(Names);
