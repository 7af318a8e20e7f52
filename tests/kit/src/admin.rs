//! Changes of policies over the admin API, and texts that show which policy was at work.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::guest::{Guest, World};
use crate::host::shipped_policies;
use crate::http::{Client, Reply};

/// Calls on a busy machine may take far longer than on a quiet one; tests that are not about deadlines allow for it.
const PATIENT: &str = "[limits]\ndeadline-ms = 10000\n";

/// A manifest of a guest of this kind with a patient deadline.
pub fn manifest(name: &str, world: World) -> String {
    format!("name = \"{name}\"\nkind = \"{}\"\n{PATIENT}", world.name())
}

/// Uploads a policy with its manifest.
pub fn put(admin: &Client, name: &str, manifest: &str, component: &[u8]) -> Reply {
    put_parts(admin, name, &[("manifest", manifest.as_bytes()), ("component", component)])
}

/// Uploads a guest under a name, with a patient deadline; panics when it is refused. Returns the answer.
pub fn put_guest(admin: &Client, name: &str, guest: &Guest) -> Value {
    accepted(put(admin, name, &manifest(name, guest.world), &guest.build()))
}

/// Uploads these parts of a policy.
pub fn put_parts(admin: &Client, name: &str, parts: &[(&str, &[u8])]) -> Reply {
    let (kind, body) = form(parts);
    admin.send("PUT", &format!("/admin/policies/{name}"), &kind, body)
}

/// The parts of an upload as a content type and a body.
pub fn form(parts: &[(&str, &[u8])]) -> (String, Vec<u8>) {
    const BOUNDARY: &str = "----a-boundary-that-is-in-no-component";
    let mut body = Vec::new();
    for (part, content) in parts {
        let head = format!("--{BOUNDARY}\r\ncontent-disposition: form-data; name=\"{part}\"\r\n\r\n");
        body.extend(head.as_bytes());
        body.extend(*content);
        body.extend(b"\r\n");
    }
    body.extend(format!("--{BOUNDARY}--\r\n").as_bytes());
    (format!("multipart/form-data; boundary={BOUNDARY}"), body)
}

/// Gives a policy another configuration; panics when it is refused.
pub fn configure(admin: &Client, name: &str, config: &Value) -> Value {
    let body = config.to_string().into_bytes();
    accepted(admin.send("PATCH", &format!("/admin/policies/{name}/config"), "application/json", body))
}

/// The answer to a change that was taken.
pub fn accepted(reply: Reply) -> Value {
    assert_eq!(reply.status, 200, "{}", reply.text());
    reply.json()
}

/// The generation in force.
pub fn generation(admin: &Client) -> u64 {
    admin.get("/admin/generations").json()["current"].as_u64().expect("a generation")
}

/// Names of the policies in force, sorted.
pub fn names(admin: &Client) -> Vec<String> {
    let policies = admin.get("/admin/policies").json()["policies"].clone();
    let name = |policy: &Value| policy["name"].as_str().expect("a name").to_owned();
    let mut names: Vec<String> = policies.as_array().expect("a list").iter().map(name).collect();
    names.sort();
    names
}

/// Copies shipped policies into a folder, with patient deadlines.
pub fn patient_policies(names: &[&str], into: &Path) {
    for name in names {
        let (from, to) = (shipped_policies().join(name), into.join(name));
        fs::create_dir_all(&to).expect("a folder");
        for file in ["policy.wasm", "rules.toml"] {
            fs::copy(from.join(file), to.join(file)).expect("a built policy has both");
        }
        let manifest = fs::read_to_string(from.join("policy.toml")).expect("a manifest");
        let own = manifest.split("[limits]").next().unwrap_or_default();
        fs::write(to.join("policy.toml"), format!("{own}{PATIENT}")).expect("a manifest");
    }
}

/// A configuration of `mask-secrets` that replaces what `text` says, and nothing else.
pub fn mask_text(text: &str, mask: &str) -> Value {
    let regex: String = text.chars().map(|c| format!("\\x{{{:x}}}", u32::from(c))).collect();
    let off = json!({"enabled": false});
    json!({
        "card": off, "phone": off, "email": off, "resident_id": off,
        "pattern": [{"name": "text", "regex": regex, "mask": mask, "widths": false}],
    })
}
