//! What a disk store finds when it is opened.

use super::{
    engine::Engine,
    record::{Head, parse_key},
};
use crate::{SessionKey, StoreError, Version, aging::Moment};

/// The heads on disk.
pub(super) struct Start {
    /// From the longest unused on, each with its last use, which was before now (0).
    pub(super) heads: Vec<(Moment, SessionKey, Head)>,
    /// How many could not be read. They are in a table of their own now.
    pub(super) moved_aside: usize,
}

impl Start {
    pub(super) fn read(engine: &Engine, unix_ms: i64) -> Result<Start, StoreError> {
        let (mut heads, mut unreadable) = (Vec::new(), Vec::new());
        engine.read(|tables| {
            for record in tables.all_heads() {
                let (key, bytes) = record?;
                match parse_key(&key).zip(Head::parse(&bytes)) {
                    Some((key, head)) => {
                        let unused_ms = unix_ms.saturating_sub(head.used_unix_ms).max(0);
                        heads.push((unused_ms.saturating_mul(-1000), key, head));
                    }
                    None => unreadable.push((key, bytes)),
                }
            }
            Ok(())
        })?;
        for (key, bytes) in &unreadable {
            engine.write(|batch, tables| {
                batch.insert(&tables.aside, key.clone(), bytes.clone());
                batch.remove(&tables.heads, key.clone());
            })?;
        }
        heads.sort_by_key(|(used, ..)| *used);
        Ok(Start { heads, moved_aside: unreadable.len() })
    }

    /// The highest version there is.
    pub(super) fn last_version(&self) -> Version {
        self.heads.iter().map(|(.., head)| head.version).max().unwrap_or_default()
    }
}
