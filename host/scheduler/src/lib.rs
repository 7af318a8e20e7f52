//! Continuous batching, block pool and prefix cache; pure, without IO, clock, randomness or tensors.
