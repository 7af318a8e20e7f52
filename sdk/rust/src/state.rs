use std::cell::RefCell;

use crate::Policy;

/// Holds the configured policy of a component. Used by the export macros.
#[derive(Debug)]
pub struct Configured<P>(RefCell<Option<P>>);

impl<P: Policy> Configured<P> {
    /// Not configured yet.
    pub const fn new() -> Self {
        Configured(RefCell::new(None))
    }

    /// Parses the configuration and makes the policy of it, in place of an earlier one.
    ///
    /// # Errors
    /// Names the key that does not fit, or gives the policy's own error.
    pub fn configure(&self, config: &str) -> Result<(), String> {
        let mut json = serde_json::Deserializer::from_str(config);
        let config = serde_path_to_error::deserialize(&mut json).map_err(|error| {
            let key = error.path().to_string();
            let message = error.into_inner().to_string();
            // Where in the JSON means nothing to an author who wrote TOML.
            let message = message.split(" at line ").next().unwrap_or_default();
            format!("configuration, at `{key}`: {message}")
        })?;
        *self.0.borrow_mut() = Some(P::configure(config)?);
        Ok(())
    }

    /// Calls the configured policy.
    ///
    /// # Errors
    /// Where there is none, or the policy's own error.
    pub fn call<T>(&self, call: impl FnOnce(&P) -> Result<T, String>) -> Result<T, String> {
        match &*self.0.borrow() {
            Some(policy) => call(policy),
            None => Err("called before it was configured".to_owned()),
        }
    }
}

impl<P: Policy> Default for Configured<P> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Description;

    #[derive(serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Rule {
        words: Vec<String>,
    }

    #[derive(serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Config {
        rules: Vec<Rule>,
    }

    #[derive(Debug)]
    struct Words(usize);

    impl Policy for Words {
        type Config = Config;

        fn describe() -> Description {
            Description::new("words", "1.0.0")
        }

        fn configure(config: Config) -> Result<Self, String> {
            match config.rules.iter().map(|rule| rule.words.len()).sum() {
                0 => Err("no words".into()),
                words => Ok(Words(words)),
            }
        }
    }

    #[test]
    fn a_policy_is_called_with_its_last_configuration() {
        let state = Configured::<Words>::new();
        let count = |state: &Configured<Words>| state.call(|policy| Ok(policy.0));
        assert_eq!(count(&state), Err("called before it was configured".into()));
        state.configure(r#"{"rules": [{"words": ["a"]}]}"#).expect("valid");
        state.configure(r#"{"rules": [{"words": ["a", "b"]}]}"#).expect("valid");
        assert_eq!(count(&state), Ok(2));
    }

    #[test]
    fn a_configuration_that_does_not_fit_names_its_key_and_changes_nothing() {
        let state = Configured::<Words>::new();
        state.configure(r#"{"rules": [{"words": ["a"]}]}"#).expect("valid");
        let error =
            state.configure(r#"{"rules": [{"words": ["a"]}, {"words": 3}]}"#).expect_err("3 is no list");
        assert!(
            error.starts_with("configuration, at `rules[1].words`: invalid type: integer `3`"),
            "{error}"
        );
        let error = state.configure(r#"{"rules": [{"word": []}]}"#).expect_err("no such key");
        assert!(error.contains("unknown field `word`"), "{error}");
        assert_eq!(state.configure(r#"{"rules": []}"#), Err("no words".into()));
        assert_eq!(state.call(|policy| Ok(policy.0)), Ok(1));
    }
}
