//! Logs go to standard error: for people on a terminal, as JSON otherwise. `RUST_LOG` filters them. A span that it lets
//! through, such as that of each call of a policy at `jackfield_policy=debug`, is told of with its times when it ends.

use std::io::{self, IsTerminal};

use tracing_subscriber::{EnvFilter, fmt::format::FmtSpan};

/// Without `RUST_LOG`. The libraries named here tell of their daily work as if it were news.
const DEFAULT: &str = "info,notify=warn,fjall=warn,lsm_tree=warn";

pub(crate) fn start() {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(DEFAULT));
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_span_events(FmtSpan::CLOSE)
        .with_writer(io::stderr);
    if io::stderr().is_terminal() {
        builder.with_target(false).init();
    } else {
        builder.json().init();
    }
}
