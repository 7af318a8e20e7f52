//! What a folder has when a host starts.

use std::fs::{self, DirEntry};
use std::io;
use std::path::Path;

use jackfield_scheduler::BlockHash;

use super::{Rank, TEMPORARY};

/// A file by the name of a block.
pub(super) struct Found {
    pub(super) prefix: BlockHash,
    pub(super) bytes: u64,
    pub(super) rank: Rank,
}

/// Lists the blocks of a folder, the least in rank first, and removes what a host was writing when it ended. Looks at names,
/// lengths and times alone; what is neither block nor such a rest is left where it is.
///
/// # Errors
/// The folder cannot be listed. Folders in it that cannot are passed over.
pub(super) fn scan(folder: &Path) -> io::Result<Vec<Found>> {
    let mut found = Vec::new();
    for shard in fs::read_dir(folder)?.flatten() {
        let name = shard.file_name();
        let Some(digits) = name.to_str().filter(|name| name.len() == 2) else { continue };
        let Ok(entries) = fs::read_dir(shard.path()) else { continue };
        found.extend(entries.flatten().filter_map(|entry| look_at(digits, &entry)));
    }
    found.sort_by_key(|found| found.rank);
    Ok(found)
}

fn look_at(shard: &str, entry: &DirEntry) -> Option<Found> {
    let name = entry.file_name();
    let (stem, rest) = name.to_str()?.split_at_checked(64)?;
    let prefix = parse(stem).filter(|_| stem.starts_with(shard))?;
    // Of a link this is the link's own.
    let metadata = entry.metadata().ok().filter(fs::Metadata::is_file)?;
    if rest.starts_with('.') && rest.ends_with(TEMPORARY) {
        let _ = fs::remove_file(entry.path()); // the next start tries again
    }
    let rank = metadata.modified().map_or(Rank(0), Rank::at);
    rest.is_empty().then_some(Found { prefix, bytes: metadata.len(), rank })
}

/// Small digits only: one block, one name.
fn parse(name: &str) -> Option<BlockHash> {
    let mut bytes = [0; 32];
    for (byte, pair) in bytes.iter_mut().zip(name.as_bytes().chunks_exact(2)) {
        let digit = |digit: u8| match digit {
            b'0'..=b'9' => Some(digit - b'0'),
            b'a'..=b'f' => Some(digit - b'a' + 10),
            _ => None,
        };
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(BlockHash::from_bytes(bytes))
}
