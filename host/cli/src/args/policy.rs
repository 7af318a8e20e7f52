//! `jackfield policy`, as it is written.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

const DEPLOYING: &str = "Deploying";

#[derive(Debug, Subcommand)]
pub(crate) enum PolicyCommand {
    /// Make a folder with a policy that builds and passes its first case.
    New {
        /// What it decides: slot-extractor, router, compressor or output-filter.
        #[arg(long, value_name = "KIND")]
        kind: String,
        /// The language that it is written in: rust, python, javascript or c.
        #[arg(long, value_name = "LANGUAGE", default_value = "rust")]
        lang: String,
        /// The policy's name, and its folder's.
        name: String,
        /// Where to put the folder.
        #[arg(long, value_name = "DIR", default_value = "plugins")]
        dir: PathBuf,
    },
    /// Build policy folders into what `serve --policies` reads.
    Build {
        /// Policy folders, or a folder of them.
        #[arg(required = true, value_name = "FOLDER")]
        folders: Vec<PathBuf>,
        /// Where the built policies go, one folder each.
        #[arg(long, value_name = "DIR", default_value = "policies")]
        out: PathBuf,
    },
    /// Find everything for which a server would refuse a policy, and say what to do about it.
    ///
    /// Checked are: the manifest, the component's imports and exports against the contract and the grants, the configuration
    /// against the policy's own schema, and whether it starts within its limits. Recorded cases are run by `policy test`.
    Check {
        /// Policy folders, a folder of them, or built components. Beside a FILE.wasm its policy.toml is read, if it is there.
        #[arg(required = true, value_name = "FOLDER|FILE.wasm")]
        paths: Vec<PathBuf>,
    },
    /// Build policy folders and run their recorded cases as a server would.
    Test(TestArgs),
    /// Measure what a call costs over the recorded cases, against the limits of the manifest.
    Bench(BenchPolicyArgs),
    /// Print what a component is: its kind, imports and exports, size, digest and its own description.
    Inspect {
        /// A built component, or a policy folder.
        #[arg(value_name = "FILE.wasm|FOLDER")]
        path: PathBuf,
        /// The configuration to start it with, TOML or JSON. By default the rules.toml beside it, or none.
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Put a version of a policy into a running server.
    ///
    /// The server checks it and runs its cases before anything changes. Without --shadow and --canary it is in force when
    /// this returns. With them it is a candidate first; `policy status` shows how it does, `policy promote` puts it in force
    /// and `policy rollback` drops it.
    Push(PushArgs),
    /// Put a candidate in force: from shadow or canary to every turn.
    Promote {
        /// The policy.
        name: String,
        #[command(flatten)]
        admin: AdminArgs,
    },
    /// Drop a policy's candidate; where there is none, go back to the version before.
    Rollback {
        /// The policy.
        name: String,
        #[command(flatten)]
        admin: AdminArgs,
    },
    /// Show the policies of a running server: versions, candidates, calls and faults.
    Status(StatusArgs),
    /// Make recorded calls again by another version, and show which of them come out differently.
    ///
    /// A server writes calls down where its configuration has [record]. Calls are made offline and exactly: their arguments
    /// and what their imports answered are recorded with them. Exits with 1 when more changed than may.
    Replay(ReplayArgs),
    /// Show in what two versions differ: manifest, configuration, schema, description, size and imports.
    ///
    /// A side is a file, a folder, or NAME@VERSION of the server, where VERSION is a version, the beginning of a digest, or
    /// one of active, shadow, canary, candidate. NAME alone is the active one.
    Diff {
        /// The one side.
        #[arg(value_name = "NAME@VERSION|FILE")]
        before: String,
        /// The other side.
        #[arg(value_name = "NAME@VERSION|FILE")]
        after: String,
        #[command(flatten)]
        admin: AdminArgs,
    },
}

/// Where the admin API is.
#[derive(Debug, Args)]
#[command(next_help_heading = "The server")]
pub(crate) struct AdminArgs {
    /// The admin API's address.
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:8081")]
    pub(crate) admin: String,
    /// The admin API's key.
    #[arg(long, value_name = "KEY", env = "JACKFIELD_ADMIN_KEY", hide_env_values = true)]
    pub(crate) admin_key: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct TestArgs {
    /// Policy folders, or a folder of them. A folder without source needs a built policy.wasm.
    #[arg(required = true, value_name = "FOLDER")]
    pub(crate) folders: Vec<PathBuf>,
    /// Run only cases whose name holds this text.
    #[arg(long, value_name = "TEXT")]
    pub(crate) filter: Option<String>,
    /// Write what happened as JUnit XML too, for a build server.
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,
    /// Keep running: test a folder again whenever something in it is saved.
    #[arg(long, conflicts_with = "junit")]
    pub(crate) watch: bool,
}

#[derive(Debug, Args)]
pub(crate) struct BenchPolicyArgs {
    /// Policy folders, a folder of them, or built components with their policy.toml and cases beside them.
    #[arg(required = true, value_name = "FOLDER|FILE.wasm")]
    pub(crate) paths: Vec<PathBuf>,
    /// Calls to measure, over all cases; fewer where they would take longer than ten seconds.
    #[arg(long, value_name = "N", default_value_t = 2000, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) calls: u32,
    /// Write the figures as JSON too.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct PushArgs {
    /// The policy's name on the server.
    pub(crate) name: String,
    /// A built component, or a policy folder, which is built if it has source. With a policy.toml beside it, that, rules.toml
    /// and cases/ are sent too; a component alone takes the place of the code that is in force, and the rest stays.
    #[arg(value_name = "FILE.wasm|FOLDER")]
    pub(crate) path: PathBuf,
    /// A folder of recorded cases that must pass, instead of the policy's own.
    #[arg(long, value_name = "DIR")]
    pub(crate) cases: Option<PathBuf>,
    /// The configuration, TOML or JSON, instead of the policy's own.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// The manifest, instead of the policy's own.
    #[arg(long, value_name = "FILE")]
    pub(crate) manifest: Option<PathBuf>,
    /// The component's signature, as minisign writes it, instead of FILE.wasm.minisig beside it.
    #[arg(long, value_name = "FILE")]
    pub(crate) signature: Option<PathBuf>,
    /// First run it beside the active version for this long, its answers compared and not used: 90s, 10m, 1h.
    #[arg(long, value_name = "TIME", value_parser = shadow_time, help_heading = DEPLOYING)]
    pub(crate) shadow: Option<Duration>,
    /// Then, or at once, let it serve this share of the sessions until it is promoted: 5% or 0.05.
    #[arg(long, value_name = "SHARE", value_parser = share, help_heading = DEPLOYING)]
    pub(crate) canary: Option<f64>,
    #[command(flatten)]
    pub(crate) gate: ReplayGate,
    #[command(flatten)]
    pub(crate) admin: AdminArgs,
}

/// What recorded calls must come to before a version is sent.
#[derive(Debug, Args)]
pub(crate) struct ReplayGate {
    /// First make the calls of this log again, and send nothing when more changed than may.
    #[arg(long, value_name = "LOG", help_heading = DEPLOYING)]
    pub(crate) replay: Option<PathBuf>,
    /// The share of them that may change: 2% or 0.02; none when it is not given.
    #[arg(long, value_name = "SHARE", value_parser = tolerance, requires = "replay", help_heading = DEPLOYING)]
    pub(crate) max_changed: Option<f64>,
}

#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    /// A policy folder, or a built component with its policy.toml beside it.
    #[arg(value_name = "FILE.wasm|FOLDER")]
    pub(crate) path: PathBuf,
    /// Recorded calls: a file, or a server's replay/ folder under its state.
    #[arg(long, value_name = "LOG")]
    pub(crate) against: PathBuf,
    /// The share of calls that may change: 2% or 0.02; none when it is not given.
    #[arg(long, value_name = "SHARE", value_parser = tolerance)]
    pub(crate) max_changed: Option<f64>,
    /// Write what changed as JSON too.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    /// Only this policy, with more about it.
    pub(crate) name: Option<String>,
    /// Keep showing it, once a second, until Ctrl-C.
    #[arg(long)]
    pub(crate) watch: bool,
    /// Print the server's own JSON.
    #[arg(long, conflicts_with = "watch")]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) admin: AdminArgs,
}

fn shadow_time(text: &str) -> Result<Duration, String> {
    let time =
        humantime::parse_duration(text).map_err(|error| format!("{error}; write it as 90s, 10m or 1h"))?;
    if time.as_secs() == 0 {
        return Err("a shadow runs for a second at least".into());
    }
    Ok(time)
}

/// A share as a fraction of 1, more than nothing and at most all.
fn share(text: &str) -> Result<f64, String> {
    match fraction(text)? {
        share if share > 0.0 && share <= 1.0 => Ok(share),
        _ => Err("it is not more than 0% and at most 100%; write it as 5% or 0.05".into()),
    }
}

/// The same, and nothing too.
fn tolerance(text: &str) -> Result<f64, String> {
    match fraction(text)? {
        share if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err("it is not between 0% and 100%; write it as 5% or 0.05".into()),
    }
}

fn fraction(text: &str) -> Result<f64, String> {
    let (number, unit) = match text.strip_suffix('%') {
        Some(number) => (number, 100.0),
        None => (text, 1.0),
    };
    let number = number.trim().parse::<f64>().map_err(|error| format!("{error}; write it as 5% or 0.05"))?;
    Ok(number / unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_a_percentage_or_a_fraction() {
        assert_eq!(share("5%"), Ok(0.05));
        assert_eq!(share("0.05"), Ok(0.05));
        assert_eq!(share("100 %"), Ok(1.0));
        for wrong in ["5", "0", "0%", "101%", "-1%", "nan", "few"] {
            assert!(share(wrong).is_err_and(|error| error.contains("5%")), "{wrong}");
        }
    }

    #[test]
    fn a_tolerance_may_be_nothing() {
        assert_eq!((tolerance("0"), tolerance("2%")), (Ok(0.0), Ok(0.02)));
        assert!(tolerance("101%").is_err() && tolerance("-1%").is_err() && tolerance("nan").is_err());
    }

    #[test]
    fn a_time_has_a_unit() {
        assert_eq!(shadow_time("10m"), Ok(Duration::from_secs(600)));
        assert_eq!(shadow_time("1h 30m"), Ok(Duration::from_secs(5400)));
        for wrong in ["10", "soon", "0s", "1ms"] {
            assert!(shadow_time(wrong).is_err(), "{wrong}");
        }
    }
}
