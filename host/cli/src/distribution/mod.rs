//! Policies by reference: what a reference stands for, fetched from allowed hosts within bounds, pinned by digest, kept,
//! and held to its signature.
//!
//! A reference to a file or a folder is read as it is. What a URL or an OCI reference stands for is pinned when the set that
//! it came with was taken; from then on it stands for the same bytes, unless `update = true`.

mod cache;
mod digest;
mod error;
mod fetch;
mod oci;
mod resolve;
mod source;

pub(crate) use cache::write;
pub(crate) use digest::Digest;
pub(crate) use error::FetchError;
pub(crate) use fetch::Fetching;
pub(crate) use resolve::{Resolved, Resolver};
pub(crate) use source::Source;
