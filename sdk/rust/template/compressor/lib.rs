//! Drops a greeting at the beginning of the user's messages.

use jackfield_sdk::compression::{Budget, Compressor, Part};
use jackfield_sdk::{Description, Edit, Policy, Role, Span, Turn};

/// The shape of `rules.toml`.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Beginnings that are dropped, as written.
    greetings: Vec<String>,
}

/// The policy.
pub struct NoGreetings(Vec<String>);

impl Policy for NoGreetings {
    type Config = Config;

    fn describe() -> Description {
        Description::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"))
            .with_config_schema(include_str!("../config.schema.json"))
    }

    fn configure(config: Config) -> Result<Self, String> {
        Ok(NoGreetings(config.greetings))
    }
}

impl Compressor for NoGreetings {
    fn compress(&self, _turn: &Turn, parts: &[Part], _budget: &Budget) -> Result<Vec<Edit>, String> {
        let edits = (0..).zip(parts).filter_map(|(message, part)| {
            let greeting = self.greeting(part)?;
            Some(Edit { message, at: Span::new(0..greeting.len()), replacement: String::new() })
        });
        Ok(edits.collect())
    }
}

impl NoGreetings {
    /// The greeting that may be dropped from this message.
    fn greeting(&self, part: &Part) -> Option<&str> {
        let text = part.message.text.as_str();
        let greeting = self.0.iter().find(|greeting| text.starts_with(greeting.as_str()))?;
        let is_all = text[greeting.len()..].trim().is_empty();
        let is_protected = part.protected.iter().any(|span| (span.start as usize) < greeting.len());
        // What the target holds already costs nothing, and an edit there would make it compute everything again.
        let is_free = part.cached_bytes == 0;
        (part.message.role == Role::User && is_free && !is_all && !is_protected).then_some(greeting)
    }
}

jackfield_sdk::export_compressor!(NoGreetings);
