//! HTTP itself: bodies, keys, framing, connections.

pub(crate) mod auth;
pub(crate) mod body;
pub(crate) mod decode;
pub(crate) mod guard;
pub(crate) mod listen;
pub(crate) mod sniff;
pub(crate) mod stall;
