//! Black-box tests of the whole host.
