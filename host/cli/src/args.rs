//! The command line, as it is written.

mod policy;

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

pub(crate) use policy::{
    AdminArgs, BenchPolicyArgs, PolicyCommand, PushArgs, ReplayArgs, ReplayGate, StatusArgs, TestArgs,
};

/// An inference host whose routing, slots, compression and output filters are swapped while it serves.
#[derive(Debug, Parser)]
#[command(name = "jackfield", version, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve prebuilt policies; on SIGHUP and when the configuration changes, those that it lists are read again.
    Serve(ServeArgs),
    /// Serve, build policies from source, and swap each when it is saved.
    Dev(DevArgs),
    /// Make, build, test and deploy policies.
    #[command(subcommand)]
    Policy(PolicyCommand),
    /// The schema of `jackfield.toml`, and whether a file is good.
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Fetch and look into models.
    #[command(subcommand)]
    Model(ModelCommand),
    /// Load a server that speaks the OpenAI API, this one or another, and report how it does.
    Bench(BenchArgs),
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Print the JSON Schema of `jackfield.toml`.
    Schema,
    /// Say whether `serve` would take a file, and where in it what is wrong; nothing is fetched.
    Check {
        #[arg(value_name = "FILE", default_value = "jackfield.toml")]
        file: PathBuf,
    },
}

/// What `serve` and `dev` share. A flag wins over the configuration file.
#[derive(Debug, Clone, Args)]
pub(crate) struct ServeArgs {
    /// A .gguf file, a name from the catalogue, or OWNER/REPOSITORY/FILE.gguf of Hugging Face.
    #[arg(long, value_name = "REF")]
    pub(crate) model: Option<String>,
    /// The configuration file.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Where the API listens.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<SocketAddr>,
    /// Where the admin API listens.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) admin_listen: Option<SocketAddr>,
    /// The key of the admin API.
    #[arg(long, value_name = "KEY", env = "JACKFIELD_ADMIN_KEY", hide_env_values = true)]
    pub(crate) admin_key: Option<String>,
    /// A folder of built policies, as `jackfield policy build` writes it.
    #[arg(long, value_name = "DIR")]
    pub(crate) policies: Option<PathBuf>,
    /// Where acknowledged policies and compiled code are kept.
    #[arg(long, value_name = "DIR")]
    pub(crate) state: Option<PathBuf>,
    /// Threads of the engine.
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<usize>,
}

#[derive(Debug, Args)]
pub(crate) struct DevArgs {
    /// The project: its `plugins/` folder is built and watched, or, where there is none, the policies in it.
    #[arg(default_value = ".", value_name = "DIR")]
    pub(crate) dir: PathBuf,
    #[command(flatten)]
    pub(crate) serve: ServeArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ModelCommand {
    /// Fetch a model into the cache and print where it is.
    Pull {
        /// A name from the catalogue or OWNER/REPOSITORY/FILE.gguf of Hugging Face.
        #[arg(default_value = crate::model::DEFAULT_MODEL, value_name = "REF")]
        reference: String,
    },
    /// Print what a model file says of itself.
    Inspect {
        /// As for `pull`, or a .gguf file.
        #[arg(default_value = crate::model::DEFAULT_MODEL, value_name = "REF")]
        reference: String,
    },
}

/// Comparisons that start their own servers.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum SuiteName {
    /// Dialogs in sessions.
    Dialogs,
}

#[derive(Debug, Args)]
pub(crate) struct BenchArgs {
    /// Names of workloads (see --list) or .toml files of your own.
    #[arg(value_name = "WORKLOAD|FILE.toml")]
    pub(crate) workloads: Vec<String>,
    /// Start servers of its own and compare them: `dialogs` sets dialogs in sessions against dialogs that are computed whole
    /// each time. Prints rows; --json writes them.
    #[arg(long, value_name = "NAME", value_enum, conflicts_with_all = ["workloads", "url", "html", "pid", "list"])]
    pub(crate) suite: Option<SuiteName>,
    /// The server's address.
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:8080")]
    pub(crate) url: String,
    /// The model to ask for; the first that the server lists when it is not given. For a suite, the model to serve.
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// The API key.
    #[arg(long, value_name = "KEY", env = "OPENAI_API_KEY", hide_env_values = true)]
    pub(crate) key: Option<String>,
    /// A short run, to see that it works; its figures are not for comparison.
    #[arg(long)]
    pub(crate) quick: bool,
    /// List the workloads that ship, and do nothing.
    #[arg(long)]
    pub(crate) list: bool,
    /// Write the report as JSON.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Write the report as a page with plots.
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// The server's process on this machine: its resident memory is watched.
    #[arg(long, value_name = "PID")]
    pub(crate) pid: Option<u32>,
    /// Gives the same prompts and arrivals again. By default every run has new ones, which no cache has seen.
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
}
