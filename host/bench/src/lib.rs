//! A load generator for any address that speaks the OpenAI API. A workload is data; what comes out is a report that can
//! be shown as a table, as JSON and as a page.
//!
//! The client runs on one thread, so that it takes little from a server on the same machine, and takes the time of a
//! delivery before it looks into it.

mod arrivals;
mod catalogue;
mod client;
mod error;
mod html;
mod load;
mod memory;
mod numbers;
mod plot;
mod prompt;
mod report;
mod sse;
mod suite;
mod summary;
mod table;
mod turn;
mod waste;
mod workload;

pub use catalogue::{DEFAULT, find, shipped};
pub use error::BenchError;
pub use html::html;
pub use report::{LaneReport, PhaseReport, Quantiles, Report, Window, WorkloadReport};
pub use suite::{Row, Server, Setup, Suite};
pub use table::table;
pub use workload::Workload;

/// Where the load goes, and how much of it.
#[derive(Debug, Clone)]
pub struct Options {
    /// The address, without `/v1`: `http://127.0.0.1:8080`.
    pub url: String,
    /// The model's name; none takes the first that the server lists.
    pub model: Option<String>,
    /// Sent as a bearer token.
    pub key: Option<String>,
    /// Fewer requests and shorter phases: to see that it works, not to compare.
    pub quick: bool,
    /// The server's process on this machine, whose resident memory is watched.
    pub pid: Option<u32>,
    /// Decides prompts and arrivals. Another seed gives other prompts, which no cache has seen.
    pub seed: u64,
}

/// Runs workloads one after the other and reports. `progress` gets a line whenever a phase begins.
///
/// # Errors
/// When the address cannot be used at all. Requests that fail during the load are counted in the report.
pub fn run(workloads: &[Workload], options: &Options, progress: &dyn Fn(&str)) -> Result<Report, BenchError> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(BenchError::Runtime)?;
    runtime.block_on(load::run(workloads, options, progress))
}
