//! The `jackfield` binary: the one place where the parts are put together.
fn main() {}
