//! Sessions, slots and their versions, behind a store.
//!
//! A [`Session`] is what is kept of a dialog between two turns: what was said, and the [`Dialog`] of slots and state that the
//! turns' changes add up to. A turn loads it, works on its own copy, and commits the copy with the [`Version`] it loaded:
//! when another turn committed in between, the store refuses with [`StoreError::Conflict`] and nothing is lost or mixed.
//! Then the turn may be added to what is there now ([`Session::push_late`]).
//!
//! Where sessions are kept is a [`SessionStore`]: in memory, on disk ([`DiskStore`]), or in Redis (`RedisStore`).
//!
//! This crate reads no clock but through [`Clock`] and [`DiskClocks`], and knows nothing of policies, engines or HTTP.
#![forbid(unsafe_code)]

mod aging;
mod dialog;
mod disk;
mod encoding;
mod index;
mod key;
mod memory;
mod message;
#[cfg(feature = "redis-store")]
mod redis;
mod segment;
mod session;
mod store;
mod terms;

pub use aging::Clock;
pub use dialog::{Dialog, Slot, Value};
pub use disk::{DiskClocks, DiskLimits, DiskStore, OpenError};
pub use key::{KeyError, SessionKey};
pub use memory::{MemoryLimits, MemoryStore};
pub use message::{Message, Role};
#[cfg(feature = "redis-store")]
pub use redis::{ConnectError, RedisConfig, RedisStore};
pub use segment::{
    Embedding, LEAST_TO_GO_ON, LEAST_TO_RECALL, LEAST_TO_RETURN, MOST_SEGMENTS, Recalled, Segment, Sought,
    Vector,
};
pub use session::{ANSWER_BYTES, Change, Parent, PastTurn, SAID_BYTES, Session, SlotConflict};
pub use store::{BoxFuture, Found, Listed, SessionStore, StoreError, Version};
