//! The scheduler from outside: text traces with snapshots, and properties under random load.
//!
//! Both drive a [`world::World`]: a scheduler, a fake model whose next token depends on all tokens before, and a fake KV
//! arena that knows which prefix each slot was written for. Each step is checked against them.

mod limits;
mod properties;
mod starvation;
mod stream;
mod trace;
mod traces;
mod world;
