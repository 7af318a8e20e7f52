//! Remembers the city that the user named.

use jackfield_sdk::slot_extraction::{Dialog, Next, SlotExtractor, Transition};
use jackfield_sdk::text::Folded;
use jackfield_sdk::{Description, Message, Policy, Slot, Turn, Value};

/// The shape of `rules.toml`.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Names of cities.
    #[serde(default)]
    cities: Vec<String>,
}

/// The policy: each name as written, and folded.
pub struct Cities(Vec<(String, Folded)>);

impl Policy for Cities {
    type Config = Config;

    fn describe() -> Description {
        Description::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION")).with_dialog_schema(1, &[])
    }

    fn configure(config: Config) -> Result<Self, String> {
        let cities = config.cities.into_iter().map(|city| {
            let folded = Folded::new(&city);
            (city, folded)
        });
        Ok(Cities(cities.collect()))
    }
}

impl SlotExtractor for Cities {
    fn extract(&self, _turn: &Turn, recent: &[Message], dialog: &Dialog) -> Result<Transition, String> {
        let utterance = recent.last().ok_or("no message")?;
        let text = Folded::new(&utterance.text);
        let found = self.0.iter().find_map(|(city, folded)| {
            let at = text.find(folded)?;
            Some(Slot::found("city", Value::Choice(city.clone()), text.span(at)))
        });
        Ok(Transition {
            state: if found.is_some() { "city-known".into() } else { dialog.state.clone() },
            set: found.into_iter().collect(),
            clear: Vec::new(),
            next: Next::Model,
            attributes: Vec::new(),
        })
    }
}

jackfield_sdk::export_slot_extractor!(Cities);
