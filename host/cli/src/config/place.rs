//! The configuration's file: its text, and where in it something stands.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use jackfield_server::ConfigError as ServerError;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::file::File;
use super::{ConfigError, ServeArgs};

/// `jackfield.toml` as it was when it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ConfigFile {
    pub(crate) path: PathBuf,
    pub(crate) text: String,
}

impl ConfigFile {
    pub(super) fn read(path: &Path) -> Result<ConfigFile, ConfigError> {
        let text = std::fs::read_to_string(path)
            .map_err(|cause| ConfigError::Read { path: path.to_owned(), cause })?;
        Ok(ConfigFile { path: path.to_owned(), text })
    }

    /// Paths in the file are relative to the file.
    pub(super) fn parse(&self) -> Result<File, ConfigError> {
        let mut file: File = toml::from_str(&self.text)
            .map_err(|cause| ConfigError::Parse { path: self.path.clone(), cause })?;
        let base = self.path.parent().unwrap_or(Path::new(""));
        file.policies = file.policies.map(|dir| base.join(dir));
        file.state = file.state.map(|dir| base.join(dir));
        if let Some(folder) = file.embeddings.as_mut() {
            let beside = base.join(&*folder);
            if beside.is_dir() {
                *folder = beside.to_string_lossy().into_owned();
            }
        }
        file.policy.iter_mut().for_each(|policy| policy.beside(base));
        if let Some(model) = file.model.as_mut() {
            let beside = base.join(&*model);
            if beside.is_file() {
                *model = beside.to_string_lossy().into_owned();
            }
        }
        Ok(file)
    }

    /// The error with the line and column of what it is about, where that stands in the file.
    pub(super) fn locate(&self, error: ConfigError, args: &ServeArgs) -> ConfigError {
        match key_of(&error, args).and_then(|key| self.place(&key)) {
            Some(place) => ConfigError::At { place, cause: Box::new(error) },
            None => error,
        }
    }

    /// Fields that are not as in `before`, but for those that are read again while the host serves.
    pub(crate) fn differences(&self, before: &ConfigFile) -> Vec<String> {
        let table = |file: &ConfigFile| file.text.parse::<toml::Table>().unwrap_or_default();
        let (now, before) = (table(self), table(before));
        let names: BTreeSet<&String> = now.keys().chain(before.keys()).collect();
        let read_again = ["policies", "policy", "distribution"];
        let mut fields = Vec::new();
        for name in names.into_iter().filter(|name| !read_again.contains(&name.as_str())) {
            match (now.get(name), before.get(name)) {
                (now, before) if now == before => {}
                (Some(toml::Value::Table(now)), Some(toml::Value::Table(before))) => {
                    let inner: BTreeSet<&String> = now.keys().chain(before.keys()).collect();
                    let changed = inner.into_iter().filter(|field| now.get(*field) != before.get(*field));
                    fields.extend(changed.map(|field| format!("{name}.{field}")));
                }
                _ => fields.push(name.clone()),
            }
        }
        fields
    }

    /// `FILE: line L, column C` of a field, written as `engine.kv_mib` or `policy.0.source`; where it is not written, of the
    /// table that it would be in. None where that is the file itself.
    pub(crate) fn place(&self, key: &str) -> Option<String> {
        let document = DeTable::parse(&self.text).ok()?;
        let mut at = None;
        let mut within = Within::Table(document.get_ref());
        for part in key.split('.') {
            let Some((place, value)) = within.find(part) else { break };
            at = Some(place);
            match value {
                DeValue::Table(table) => within = Within::Table(table),
                DeValue::Array(array) => within = Within::Array(array),
                _ => break,
            }
        }
        let before = self.text.get(..at?)?;
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        Some(format!("{}: line {line}, column {column}", self.path.display()))
    }
}

enum Within<'a, 'i> {
    Table(&'a DeTable<'i>),
    Array(&'a [Spanned<DeValue<'i>>]),
}

impl<'a, 'i> Within<'a, 'i> {
    /// Where a part of it begins, in bytes, and what it is.
    fn find(&self, part: &str) -> Option<(usize, &'a DeValue<'i>)> {
        match self {
            Within::Table(table) => {
                let (key, value) = table.iter().find(|(key, _)| key.get_ref() == part)?;
                Some((key.span().start, value.get_ref()))
            }
            Within::Array(array) => {
                let value = array.get(part.parse::<usize>().ok()?)?;
                Some((value.span().start, value.get_ref()))
            }
        }
    }
}

/// The field that an error is about; none where a flag may have set it.
fn key_of(error: &ConfigError, args: &ServeArgs) -> Option<String> {
    let key = match error {
        ConfigError::SharedPort(_) if args.admin_listen.is_none() => "admin_listen".into(),
        ConfigError::Cores { .. } if args.threads.is_none() => "threads".into(),
        ConfigError::NoThreads if args.threads.is_none() => "threads".into(),
        ConfigError::NoCores => "cores".into(),
        ConfigError::NoEngine(name) | ConfigError::NoKvRemote(name) => format!("engine.{name}"),
        ConfigError::KvRemote(_) => "engine.kv_remote".into(),
        ConfigError::NoRedis | ConfigError::OtherStore => "sessions.store".into(),
        ConfigError::OtherRecall => "sessions.recall_phrases".into(),
        ConfigError::NoSessions(name) => format!("sessions.{name}"),
        ConfigError::StepTooSmall { .. } => "engine.max_step_tokens".into(),
        ConfigError::ContextTooSmall(_) => "engine.max_context".into(),
        ConfigError::NoRecord => "record.max_mib".into(),
        ConfigError::NoRecordTenants => "record.tenants".into(),
        ConfigError::Source { index, .. } => format!("policy.{index}.source"),
        ConfigError::SameName(_, index) => format!("policy.{index}.name"),
        ConfigError::NoDistribution(name) => format!("distribution.{name}"),
        ConfigError::Host { list, .. } => format!("distribution.{list}"),
        ConfigError::Keys(_) => "distribution.public_keys".into(),
        ConfigError::Model(_) if args.model.is_none() => "model".into(),
        ConfigError::Server(error) => match error {
            ServerError::OpenToAll(_) if args.listen.is_none() => "listen".into(),
            ServerError::AdminOpenToAll(_) if args.admin_listen.is_none() => "admin_listen".into(),
            ServerError::Zero(name) => format!("server.{name}"),
            ServerError::Share(_) => "server.compress_to".into(),
            ServerError::VerifyShare(_) => "server.verify_share".into(),
            ServerError::VerifyDivergence(_) => "server.verify_divergence".into(),
            ServerError::Phrase(_) | ServerError::Phrases(_) => "sessions.recall_phrases".into(),
            ServerError::Offset(_) => "server.utc_offset_minutes".into(),
            ServerError::Key(number) => format!("keys.{}", number.saturating_sub(1)),
            _ => return None,
        },
        _ => return None,
    };
    Some(key)
}

/// The known field that an unknown one is nearest to, as the end of a sentence.
pub(super) fn suggestion(error: &toml::de::Error) -> String {
    let Some((unknown, known)) = error.message().split_once(", expected") else { return String::new() };
    let names = |text: &str| text.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>();
    let (unknown, known) = (names(unknown), names(known));
    let Some(unknown) = unknown.first().filter(|_| error.message().starts_with("unknown ")) else {
        return String::new();
    };
    let near = known.iter().map(|known| (strsim::normalized_damerau_levenshtein(unknown, known), known));
    match near.max_by(|a, b| a.0.total_cmp(&b.0)) {
        Some((likeness, known)) if likeness > 0.6 => format!("did you mean `{known}`?"),
        _ => String::new(),
    }
}
