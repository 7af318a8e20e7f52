//! Sessions and slots behind a store.
