//! Masks what must not leave the host: cards, phones, e-mail addresses, resident ids, and an author's own patterns.
//!
//! The host watches every stream for what [`MaskSecrets::interests`] declares and holds back what could become a match;
//! only text with a match comes to [`MaskSecrets::review`]. There the numbers are verified (check digits, dates, prefixes)
//! and replaced. Patterns are trusted as the host found them.

mod config;
mod mask;
mod numbers;
mod review;
mod runs;
mod widen;

pub use config::{Card, Config, Email, Pattern, Phone, ResidentId};

use jackfield_sdk::output_filtering::{Interest, OutputFilter, Verdict, Watch, Window};
use jackfield_sdk::{Description, Policy};

use mask::Mask;
use numbers::Wanted;
use runs::Runs;

/// The policy.
#[derive(Debug)]
pub struct MaskSecrets {
    wanted: Wanted,
    card: Mask,
    phone: Mask,
    resident_id: Mask,
    watches: Vec<Watched>,
}

/// A watch, and what to do with its hits.
#[derive(Debug)]
struct Watched {
    name: String,
    regex: String,
    meaning: Meaning,
}

#[derive(Debug)]
enum Meaning {
    /// Digits that may hold cards, phones and identity numbers; found again and judged here.
    Numbers,
    /// The whole match is a secret.
    Secret(Mask),
}

const EMAIL: &str = r"[A-Za-z0-9._%+\-]{1,64}@(?:[A-Za-z0-9\-]+\.)+[A-Za-z]{2,}";

impl Policy for MaskSecrets {
    type Config = Config;

    fn describe() -> Description {
        Description::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"))
            .with_config_schema(include_str!("../config.schema.json"))
    }

    fn configure(config: Config) -> Result<Self, String> {
        let wanted = Wanted {
            cards: config.card.enabled,
            known_issuers_only: config.card.known_issuers_only,
            chinese_mobile: config.phone.enabled && config.phone.chinese_mobile,
            international: config.phone.enabled && config.phone.international,
            resident_id: config.resident_id.enabled,
        };
        let mut watches = Vec::new();
        if wanted.cards || wanted.chinese_mobile || wanted.international || wanted.resident_id {
            watches.push(Watched { name: "numbers".into(), regex: runs::watch(), meaning: Meaning::Numbers });
        }
        if config.email.enabled {
            let meaning = Meaning::Secret(Mask::parse(&config.email.mask)?);
            watches.push(Watched { name: "email".into(), regex: widen::widen(EMAIL)?, meaning });
        }
        for pattern in config.pattern {
            watches.push(Watched::pattern(pattern)?);
        }
        if watches.is_empty() {
            // An output filter without watches would be called with every piece of text.
            return Err("nothing is enabled and there is no pattern: take the policy out instead".into());
        }
        Ok(MaskSecrets {
            wanted,
            card: Mask::parse(&config.card.mask)?,
            phone: Mask::parse(&config.phone.mask)?,
            resident_id: Mask::parse(&config.resident_id.mask)?,
            watches,
        })
    }
}

impl Watched {
    fn pattern(pattern: Pattern) -> Result<Watched, String> {
        let Pattern { name, regex, mask, widths } = pattern;
        let wrong = |error: String| format!("pattern `{name}`: {error}");
        let regex = if widths { widen::widen(&regex).map_err(wrong)? } else { regex };
        let mask = match mask {
            Some(mask) => Mask::parse(&mask).map_err(wrong)?,
            None => Mask::parse(&format!("[{name}]")).map_err(wrong)?,
        };
        Ok(Watched { name, regex, meaning: Meaning::Secret(mask) })
    }
}

impl OutputFilter for MaskSecrets {
    fn interests(&self) -> Interest {
        let watch = |watched: &Watched| Watch { name: watched.name.clone(), regex: watched.regex.clone() };
        Interest::in_watches(self.watches.iter().map(watch).collect())
    }

    fn review(&self, windows: &[Window]) -> Result<Vec<Verdict>, String> {
        let mut verdicts = Vec::with_capacity(windows.len());
        let mut runs = Runs::default();
        for (n, window) in windows.iter().enumerate() {
            let index = u32::try_from(n).map_err(|_| "too many windows")?;
            verdicts.extend(self.review_window(index, window, &mut runs)?);
        }
        Ok(verdicts)
    }
}

jackfield_sdk::export_output_filter!(MaskSecrets);
