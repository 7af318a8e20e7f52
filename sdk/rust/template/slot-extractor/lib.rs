//! Remembers the city that the user named.

use jackfield_sdk::slot_extraction::{Dialog, Next, SlotExtractor, Transition};
use jackfield_sdk::text::Folded;
use jackfield_sdk::{Description, Message, Policy, Slot, Turn, Value};

/// The shape of `rules.toml`.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Names of cities.
    cities: Vec<String>,
    /// Words with which the user takes the city back.
    #[serde(default)]
    forget: Vec<String>,
}

/// The policy: each city as written, and folded; words folded.
pub struct Cities {
    cities: Vec<(String, Folded)>,
    forget: Vec<Folded>,
}

impl Policy for Cities {
    type Config = Config;

    fn describe() -> Description {
        Description::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"))
            .with_config_schema(include_str!("../config.schema.json"))
            .with_dialog_schema(1, &[])
    }

    fn configure(config: Config) -> Result<Self, String> {
        let cities = config.cities.into_iter().map(|city| {
            let folded = Folded::new(&city);
            (city, folded)
        });
        let forget = config.forget.iter().map(|word| Folded::new(word)).collect();
        Ok(Cities { cities: cities.collect(), forget })
    }
}

impl SlotExtractor for Cities {
    fn extract(&self, _turn: &Turn, recent: &[Message], dialog: &Dialog) -> Result<Transition, String> {
        let utterance = recent.last().ok_or("there is no message")?;
        let text = Folded::new(&utterance.text);
        let (state, set, clear) = if self.forget.iter().any(|word| text.find(word).is_some()) {
            (String::new(), None, vec!["city".into()])
        } else {
            match self.city(&text) {
                Some(city) => ("city-known".into(), Some(city), Vec::new()),
                None => (dialog.state.clone(), None, Vec::new()),
            }
        };
        let set = set.into_iter().collect();
        Ok(Transition { state, set, clear, next: Next::Model, attributes: Vec::new() })
    }
}

impl Cities {
    /// The first city of the rules that is in the text.
    fn city(&self, text: &Folded) -> Option<Slot> {
        self.cities.iter().find_map(|(city, folded)| {
            let at = text.find(folded)?;
            Some(Slot::found("city", Value::Choice(city.clone()), text.span(at)))
        })
    }
}

jackfield_sdk::export_slot_extractor!(Cities);
