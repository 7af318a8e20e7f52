//! The Wasm runtime for policies: limits, freezing, registry, patch, swap.
