//! Which turns a policy is for.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{ManifestError, types::Turn};

/// Entries in each list.
const MOST_NAMES: usize = 256;

/// Which turns a policy is for: the `[match]` of its manifest. A list that is empty takes everything; what is not empty must
/// hold, and all of them together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct Scope {
    /// Turns of these tenants.
    pub tenants: Vec<String>,
    /// Turns that ask for one of these models, as the client wrote it.
    pub models: Vec<String>,
    /// Turns of these tasks.
    pub tasks: Vec<String>,
    /// Turns with each of these request headers, names in lower case, at one of the values given.
    pub headers: BTreeMap<String, Vec<String>>,
}

impl Scope {
    /// Whether it takes every turn.
    pub fn is_everything(&self) -> bool {
        *self == Scope::default()
    }

    /// Whether it takes a turn that asks for `model`.
    pub fn takes(&self, turn: &Turn, model: &str) -> bool {
        let task = turn.task.as_deref().unwrap_or_default();
        let header = |(name, values): (&String, &Vec<String>)| {
            turn.headers.iter().any(|header| header.name == *name && values.contains(&header.value))
        };
        is_among(&self.tenants, &turn.tenant)
            && is_among(&self.models, model)
            && is_among(&self.tasks, task)
            && self.headers.iter().all(header)
    }

    pub(crate) fn validate(&self) -> Result<(), ManifestError> {
        let lists = [("tenants", &self.tenants), ("models", &self.models), ("tasks", &self.tasks)];
        for (name, list) in lists.into_iter().chain(self.headers.iter().map(|(n, l)| (n.as_str(), l))) {
            if list.len() > MOST_NAMES || list.iter().any(String::is_empty) {
                let what = format!("match.{name}: give at most {MOST_NAMES} names, none of them empty");
                return Err(ManifestError(what));
            }
        }
        match self.headers.iter().find(|(name, values)| values.is_empty() || **name != name.to_lowercase()) {
            Some((name, _)) => Err(ManifestError(format!(
                "match.headers.{name}: give the header's name in lower case and the values that it may have"
            ))),
            None => Ok(()),
        }
    }
}

fn is_among(list: &[String], name: &str) -> bool {
    list.is_empty() || list.iter().any(|listed| listed == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Field;

    fn scope(toml: &str) -> Scope {
        toml::from_str(toml).expect("reads")
    }

    #[test]
    fn what_is_given_must_hold_and_all_of_it() {
        let header = Field { name: "x-team".into(), value: "orders".into() };
        let turn = Turn {
            tenant: "acme".into(),
            task: Some("triage".into()),
            headers: vec![header],
            ..Turn::default()
        };
        for (toml, takes) in [
            ("", true),
            ("tenants = ['acme', 'other']", true),
            ("tenants = ['other']", false),
            ("models = ['m']\ntasks = ['triage']", true),
            ("models = ['m']\ntasks = ['write']", false),
            ("models = ['n']", false),
            ("headers.x-team = ['billing', 'orders']", true),
            ("headers.x-team = ['billing']", false),
            ("tenants = ['acme']\nheaders.x-other = ['orders']", false),
        ] {
            assert_eq!(scope(toml).takes(&turn, "m"), takes, "{toml}");
        }
        assert!(!scope("tasks = ['triage']").takes(&Turn::default(), "m"), "a turn without a task");
    }

    #[test]
    fn what_could_never_match_is_refused() {
        for toml in ["headers.X-Team = ['a']", "headers.x-team = []", "tenants = ['']"] {
            assert!(scope(toml).validate().is_err(), "{toml}");
        }
        assert_eq!(scope("headers.x-team = ['a']").validate(), Ok(()));
    }
}
