//! Shared test support: tiny models, HTTP clients.
