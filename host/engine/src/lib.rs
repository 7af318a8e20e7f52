//! The engine thread: KV, model runner, sampler, outbox.
