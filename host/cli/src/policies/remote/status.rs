//! `jackfield policy status`: what a running server has in force, and how its candidates do.

use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use console::{Term, style};
use serde_json::Value;

use super::{Admin, said};
use crate::Failure;
use crate::args::StatusArgs;
use crate::policies::changes::changes;
use crate::policies::show::{indent, number, short, table, text, two};

const EVERY: Duration = Duration::from_secs(1);

pub(in crate::policies) fn run(args: &StatusArgs) -> Result<(), Failure> {
    let admin = Admin::new(&args.admin)?;
    let name = args.name.as_deref();
    if args.json {
        println!("{:#}", wanted(admin.get("/admin/policies")?, name)?);
        return Ok(());
    }
    let term = Term::stdout();
    let mut shown = show(&admin, name)?;
    loop {
        let write = |text: &str| term.write_str(text).map_err(Failure::failed);
        if args.watch && term.is_term() {
            term.clear_screen().map_err(Failure::failed)?;
        }
        write(&shown)?;
        if !args.watch {
            return Ok(());
        }
        if !term.is_term() {
            write("\n")?;
        }
        thread::sleep(EVERY);
        // A server that restarts comes back.
        shown = show(&admin, name).unwrap_or_else(|failure| failure.into_message() + "\n");
    }
}

fn show(admin: &Admin, name: Option<&str>) -> Result<String, Failure> {
    let status = wanted(admin.get("/admin/policies")?, name)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64);
    let policies = status["policies"].as_array().map(Vec::as_slice).unwrap_or_default();
    Ok(match name {
        Some(_) => policies.iter().map(|policy| details(policy, now)).collect(),
        None => overview(&said(&status["generation"]), policies, now),
    })
}

/// The same with only the policy that is asked for.
fn wanted(mut status: Value, name: Option<&str>) -> Result<Value, Failure> {
    let (Some(name), Some(policies)) = (name, status["policies"].as_array_mut()) else { return Ok(status) };
    policies.retain(|policy| policy["name"] == name);
    if policies.is_empty() {
        return Err(Failure::failed(format!(
            "the server has no policy `{name}`; `jackfield policy status` lists them"
        )));
    }
    Ok(status)
}

fn overview(generation: &str, policies: &[Value], now: u64) -> String {
    let mut shown = format!("generation {generation}\n");
    if policies.is_empty() {
        return shown + "no policies\n";
    }
    let columns = [
        text("POLICY"),
        text("VERSION"),
        text("DIGEST"),
        text("KIND"),
        text("STATE"),
        number("CALLS"),
        number("MEAN µs"),
        number("FAULTS"),
        text("BREAKER"),
        text("CANDIDATE"),
    ];
    let row = |policy: &Value| {
        [
            said(&policy["name"]),
            said(&policy["version"]),
            short(policy["digest"].as_str().unwrap_or("-")).to_owned(),
            said(&policy["kind"]),
            state(&policy["state"]),
            said(&policy["stats"]["calls"]),
            mean(&policy["stats"]),
            faults(&policy["stats"]["faults"]),
            breaker(&policy["breaker"]),
            candidate(&policy["candidate"], now),
        ]
    };
    shown += &table(&columns, &policies.iter().map(row).collect::<Vec<_>>());
    shown
}

fn details(policy: &Value, now: u64) -> String {
    let last = &policy["breaker"]["last"];
    let tripped = match last["reason"].as_str() {
        Some(reason) => {
            let version = &last["version"];
            let version = if version.is_object() { &version["version"] } else { version };
            format!("{} for {reason} (version {})", ago(&last["unix_ms"], now), said(version))
        }
        None => "-".into(),
    };
    let earlier = policy["earlier"].as_array().map(Vec::as_slice).unwrap_or_default();
    let earlier = earlier.iter().map(version).collect::<Vec<_>>().join(", ");
    let lines = [
        ("version", version(policy)),
        ("configuration", short(policy["config_digest"].as_str().unwrap_or("-")).to_owned()),
        ("kind", said(&policy["kind"])),
        ("state", state(&policy["state"])),
        ("order", said(&policy["order"])),
        ("on fault", said(&policy["on_fault"])),
        ("grants", list(&policy["grants"])),
        ("limits", pairs(&policy["limits"])),
        (
            "component",
            policy["component_bytes"]
                .as_u64()
                .map_or("-".into(), |bytes| indicatif::BinaryBytes(bytes).to_string()),
        ),
        ("calls", calls(&policy["stats"])),
        ("faults", pairs(&policy["stats"]["faults"])),
        ("earlier", if earlier.is_empty() { "none".into() } else { earlier }),
        ("breaker", breaker(&policy["breaker"])),
        ("last trip", tripped),
        ("candidate", candidate(&policy["candidate"], now)),
    ];
    let mut shown = format!("{}\n", style(said(&policy["name"])).bold());
    for (name, value) in lines {
        shown += &format!("  {name:<15}{value}\n");
    }
    shown + &examples(&policy["candidate"]["examples"])
}

/// Turns in which the candidate decided otherwise.
fn examples(examples: &Value) -> String {
    let each = examples.as_array().map(Vec::as_slice).unwrap_or_default().iter();
    let one = |example: &Value| {
        let places = changes(&example["active"], &example["candidate"]);
        let places = places.iter().map(|place| {
            two(&place.path, [("active", place.before.as_ref()), ("candidate", place.after.as_ref())])
        });
        format!("  differed in turn {}\n{}", said(&example["turn"]), indent(&places.collect::<String>(), 4))
    };
    each.map(one).collect()
}

/// Where a policy is not in force for now, that is to be seen.
fn state(state: &Value) -> String {
    match state.as_str() {
        Some("open") => style("open").red().to_string(),
        _ => said(state),
    }
}

fn breaker(breaker: &Value) -> String {
    let trips = breaker["trips"].as_u64().filter(|trips| *trips > 0);
    let trips = trips.map(|trips| format!(", tripped {trips}×")).unwrap_or_default();
    let state = said(&breaker["state"]);
    let state = if state == "open" { style(state).red().to_string() } else { state };
    format!("{state}{trips}")
}

/// `shadow 1.3.0, 4m 12s left, 3 of 120 differ (2.5%), 0 faults`.
fn candidate(candidate: &Value, now: u64) -> String {
    if !candidate.is_object() {
        return "-".into();
    }
    let share = candidate["share"].as_f64().filter(|_| candidate["stage"] == "canary");
    let share = share.map(|share| format!(" of {}", percent(share))).unwrap_or_default();
    let until = candidate["until_unix_ms"].as_u64().map(|until| until.saturating_sub(now) / 1000);
    let left = until.map(|left| format!(", {} left", humantime::format_duration(Duration::from_secs(left))));
    let counted = |name: &str| candidate[name].as_u64();
    let rate = match (counted("differed"), counted("compared")) {
        (Some(differed), Some(compared)) if compared > 0 => {
            format!(", {differed} of {compared} differ ({})", percent(differed as f64 / compared as f64))
        }
        (Some(_), Some(_)) => ", nothing compared yet".into(),
        _ => String::new(),
    };
    let faults = counted("faults").map(|faults| format!(", {faults} faults")).unwrap_or_default();
    let dropped = counted("dropped").filter(|dropped| *dropped > 0);
    let dropped = dropped.map(|dropped| format!(", {dropped} not run")).unwrap_or_default();
    let left = left.unwrap_or_default();
    format!(
        "{}{share} {}{left}{rate}{faults}{dropped}",
        said(&candidate["stage"]),
        said(&candidate["version"])
    )
}

fn percent(share: f64) -> String {
    format!("{}%", (share * 1000.0).round() / 10.0)
}

fn version(version: &Value) -> String {
    let digest = short(version["digest"].as_str().unwrap_or("-"));
    format!("{} ({digest})", said(&version["version"]))
}

fn calls(stats: &Value) -> String {
    match mean(stats).as_str() {
        "-" => said(&stats["calls"]),
        mean => format!("{}, {mean} µs in the mean", said(&stats["calls"])),
    }
}

fn mean(stats: &Value) -> String {
    match (stats["micros"].as_f64(), stats["calls"].as_f64()) {
        (Some(micros), Some(calls)) if calls > 0.0 => format!("{:.0}", micros / calls),
        _ => "-".into(),
    }
}

fn faults(faults: &Value) -> String {
    match faults.as_object() {
        Some(faults) => faults.values().filter_map(Value::as_u64).sum::<u64>().to_string(),
        None => "-".into(),
    }
}

fn pairs(object: &Value) -> String {
    let Some(object) = object.as_object() else { return said(object) };
    if object.is_empty() {
        return "none".into();
    }
    object.iter().map(|(name, value)| format!("{name} {value}")).collect::<Vec<_>>().join(", ")
}

fn list(list: &Value) -> String {
    match list.as_array() {
        Some(items) if items.is_empty() => "none".into(),
        Some(items) => items.iter().map(said).collect::<Vec<_>>().join(", "),
        None => said(list),
    }
}

fn ago(unix_ms: &Value, now: u64) -> String {
    let seconds = unix_ms.as_u64().map(|then| now.saturating_sub(then) / 1000);
    seconds.map_or("-".into(), |seconds| {
        format!("{} ago", humantime::format_duration(Duration::from_secs(seconds)))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_candidate_is_told_in_a_line() {
        let shadow = json!({
            "stage": "shadow", "version": "1.3.0", "share": 0.05, "until_unix_ms": 300_000,
            "compared": 120, "differed": 3, "faults": 0, "dropped": 2,
        });
        assert_eq!(
            candidate(&shadow, 48_000),
            "shadow 1.3.0, 4m 12s left, 3 of 120 differ (2.5%), 0 faults, 2 not run"
        );
        let canary = json!({ "stage": "canary", "version": "2.0.0", "share": 0.05, "until_unix_ms": null });
        assert_eq!(candidate(&canary, 0), "canary of 5% 2.0.0");
        assert_eq!(candidate(&Value::Null, 0), "-");
    }

    #[test]
    fn what_the_server_does_not_say_is_a_dash() {
        let policy = json!({ "name": "mask", "version": "1.0.0", "stats": { "calls": 0 } });
        let shown = overview("7", std::slice::from_ref(&policy), 0);
        let row: Vec<&str> = shown.lines().last().expect("a row").split_whitespace().collect();
        assert_eq!(row, ["mask", "1.0.0", "-", "-", "-", "0", "-", "-", "-", "-"]);
        assert!(details(&policy, 0).contains("breaker        -\n"));
    }
}
