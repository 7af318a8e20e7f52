//! Sessions, slots and their versions, behind a store.
//!
//! A [`Dialog`] is what is remembered of a session between two turns. A turn loads it, works on its own copy, and
//! commits the copy with the [`Version`] it loaded: when another turn committed in between, the store refuses with
//! [`StoreError::Conflict`] and nothing is lost or mixed.
//!
//! This crate reads no clock but through [`Clock`], and knows nothing of policies, engines or HTTP.
#![forbid(unsafe_code)]

mod dialog;
mod key;
mod memory;
mod store;

pub use dialog::{Dialog, Slot, Value};
pub use key::{KeyError, SessionKey};
pub use memory::{Clock, MemoryLimits, MemoryStore};
pub use store::{BoxFuture, SessionStore, StoreError, Version};
