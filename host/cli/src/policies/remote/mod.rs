//! The client of a running server's admin API.

mod diff;
mod form;
mod push;
mod status;

use std::time::Duration;

use jackfield_policy::{Kind, Manifest};
use serde_json::Value;
use ureq::http::{Request, Response};

pub(super) use diff::run as diff;
pub(super) use push::run as push;
pub(super) use status::run as status;

use crate::Failure;
use crate::args::AdminArgs;

/// Compiling a large component on a busy machine takes a while.
const LONGEST: Duration = Duration::from_secs(300);

/// Puts a candidate in force.
pub(super) fn promote(name: &str, admin: &AdminArgs) -> Result<(), Failure> {
    let answer = Admin::new(admin)?.send("POST", &policy_path(name, "/promote")?, None)?;
    println!("{}", push::outcome(name, &answer));
    Ok(())
}

/// Drops a candidate, or goes back a version.
pub(super) fn rollback(name: &str, admin: &AdminArgs) -> Result<(), Failure> {
    let answer = Admin::new(admin)?.send("POST", &policy_path(name, "/rollback")?, None)?;
    println!("{}", push::outcome(name, &answer));
    Ok(())
}

/// The path of a policy, or of something of it.
fn policy_path(name: &str, rest: &str) -> Result<String, Failure> {
    // The kind is of no weight here: what is checked is the name, which becomes a part of the path.
    Manifest::new(name, Kind::Router).validate().map_err(Failure::usage)?;
    Ok(format!("/admin/policies/{name}{rest}"))
}

/// A server's admin API.
struct Admin {
    agent: ureq::Agent,
    base: String,
    key: Option<String>,
}

/// A body and its content type.
struct Body {
    kind: String,
    bytes: Vec<u8>,
}

impl Admin {
    fn new(args: &AdminArgs) -> Result<Admin, Failure> {
        if !args.admin.starts_with("http://") && !args.admin.starts_with("https://") {
            let admin = &args.admin;
            return Err(Failure::usage(format!("--admin {admin}: write it as http://HOST:PORT")));
        }
        let mut config =
            ureq::Agent::config_builder().http_status_as_error(false).timeout_global(Some(LONGEST));
        if is_loopback(&args.admin) {
            // A proxy of the environment does not reach this machine's own addresses.
            config = config.proxy(None);
        }
        let key = args.admin_key.clone().filter(|key| !key.is_empty());
        Ok(Admin { agent: config.build().into(), base: args.admin.trim_end_matches('/').to_owned(), key })
    }

    fn get(&self, path: &str) -> Result<Value, Failure> {
        self.send("GET", path, None)
    }

    /// The JSON of an answer that is none of an error.
    fn send(&self, method: &str, path: &str, body: Option<Body>) -> Result<Value, Failure> {
        let mut request = Request::builder().method(method).uri(format!("{}{path}", self.base));
        if let Some(key) = &self.key {
            request = request.header("authorization", format!("Bearer {key}"));
        }
        if let Some(body) = &body {
            request = request.header("content-type", &body.kind);
        }
        let request = request.body(body.map_or_else(Vec::new, |body| body.bytes));
        let request = request.map_err(|error| Failure::usage(format!("--admin {}: {error}", self.base)))?;
        let response = self.agent.run(request).map_err(|error| self.unreachable(&error))?;
        let status = response.status().as_u16();
        let text = read(response).map_err(|error| self.unreachable(&error))?;
        let json = serde_json::from_str::<Value>(&text);
        match (status, json) {
            (200..=299, Ok(json)) => Ok(json),
            (_, json) => Err(refused(status, json.ok().as_ref(), &text)),
        }
    }

    fn unreachable(&self, error: &ureq::Error) -> Failure {
        Failure::failed(format!(
            "no answer from the admin API at {}: {error}; is the server running, and is that its --admin-listen address?",
            self.base
        ))
    }
}

fn is_loopback(url: &str) -> bool {
    let host = url.split_once("//").map_or(url, |(_, rest)| rest);
    host.starts_with("127.") || host.starts_with("localhost") || host.starts_with("[::1]")
}

fn read(response: Response<ureq::Body>) -> Result<String, ureq::Error> {
    response.into_body().into_with_config().limit(64 << 20).read_to_string()
}

/// The server's own words, with its code.
fn refused(status: u16, json: Option<&Value>, text: &str) -> Failure {
    let error = json.map_or(&Value::Null, |json| &json["error"]);
    let Some(message) = error["message"].as_str() else {
        let start: String = text.chars().take(200).collect();
        return Failure::failed(format!("the server answered with status {status}: {start}"));
    };
    let code = error["code"].as_str().unwrap_or("-");
    let param = error["param"].as_str().map(|param| format!(", {param}")).unwrap_or_default();
    let hint = match status {
        401 | 403 => "; give the admin API's key with --admin-key or in JACKFIELD_ADMIN_KEY",
        _ => "",
    };
    Failure::failed(format!("{message} ({code}{param}, status {status}){hint}"))
}

/// Text of a field; `-` where the server does not say.
fn said(value: &Value) -> String {
    match value {
        Value::Null => "-".into(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
