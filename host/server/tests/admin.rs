//! The admin API is what its description says.

mod support;

use jackfield_guests::Guest;
use jackfield_server::ServerConfig;
use serde_json::{Value, json};
use support::{Answer, Server, raw, request};

const MANIFEST: &str = "name = \"r\"\nkind = \"router\"\n";

async fn ask(server: &Server, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
    raw(server.admin, &request(method, path, headers, body)).await
}

/// Pushes a router that answers with this text.
async fn push(server: &Server, query: &str, text: &str) -> Answer {
    let component = Guest::answering(text).build();
    let part =
        |name: &str| format!("--x\r\ncontent-disposition: form-data; name=\"{name}\"\r\n\r\n").into_bytes();
    let body = [
        part("manifest"),
        MANIFEST.into(),
        b"\r\n".to_vec(),
        part("component"),
        component,
        b"\r\n--x--\r\n".into(),
    ];
    let kind = [("content-type", "multipart/form-data; boundary=x")];
    ask(server, "PUT", &format!("/admin/policies/r{query}"), &kind, &body.concat()).await
}

/// Holds an answer to what is described for it.
struct Described(Value);

impl Described {
    async fn of(server: &Server) -> Described {
        Described(ask(server, "GET", "/admin/openapi.json", &[], b"").await.json())
    }

    fn paths(&self) -> impl Iterator<Item = (&String, &Value)> {
        self.0["paths"].as_object().unwrap().iter()
    }

    #[track_caller]
    fn holds(&self, method: &str, path: &str, answer: &Answer) {
        let responses = &self.0["paths"][path][method]["responses"];
        let status = answer.status.to_string();
        let response = responses.get(&status).unwrap_or(&responses["default"]);
        // The schemas refer to each other from the document's root.
        let mut schema = response["content"]["application/json"]["schema"].clone();
        schema["components"] = self.0["components"].clone();
        let validator = jsonschema::validator_for(&schema).unwrap();
        let wrong: Vec<String> =
            validator.iter_errors(&answer.json()).map(|e| format!("{e} at {}", e.instance_path())).collect();
        assert!(wrong.is_empty(), "{method} {path} {status}: {wrong:?}\n{}", answer.body);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn methods_are_those_described() {
    let server = Server::start(ServerConfig::default()).await;
    let described = Described::of(&server).await;
    for (path, methods) in described.paths() {
        for method in ["get", "put", "post", "patch", "delete"] {
            let answer =
                ask(&server, &method.to_uppercase(), &path.replace("{name}", "nobody"), &[], b"{}").await;
            let is_described = methods.get(method).is_some();
            assert_eq!(answer.status != 405, is_described, "{method} {path}: {}", answer.status);
            if is_described {
                described.holds(method, path, &answer);
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_goes_its_way_and_every_answer_is_as_described() {
    let server = Server::start(ServerConfig::default()).await;
    let described = Described::of(&server).await;
    let one = "/admin/policies/{name}";
    let stage = |answer: &Answer| answer.json()["stage"].clone();

    let refused = push(&server, "?canary=0.5", "one").await;
    assert_eq!(
        (refused.status, refused.json()["error"]["code"].as_str()),
        (409, Some("nothing_to_compare_with"))
    );
    described.holds("put", one, &refused);
    let put = push(&server, "", "one").await;
    assert_eq!((put.status, stage(&put)), (200, json!("active")));
    described.holds("put", one, &put);
    let shadow = push(&server, "?shadow_s=600&canary=0.25", "two").await;
    assert_eq!(stage(&shadow), "shadow");
    described.holds("put", one, &shadow);

    let shown = ask(&server, "GET", "/admin/policies/r", &[], b"").await;
    described.holds("get", one, &shown);
    let body = shown.json();
    assert_eq!((&body["state"], &body["breaker"]["state"]), (&json!("active"), &json!("closed")));
    assert_eq!((&body["candidate"]["stage"], &body["candidate"]["share"]), (&json!("shadow"), &json!(0.25)));
    described.holds("get", "/admin/policies", &ask(&server, "GET", "/admin/policies", &[], b"").await);

    let promoted = ask(&server, "POST", "/admin/policies/r/promote", &[], b"").await;
    assert_eq!((promoted.status, stage(&promoted)), (200, json!("active")));
    described.holds("post", "/admin/policies/{name}/promote", &promoted);
    let again = ask(&server, "POST", "/admin/policies/r/promote", &[], b"").await;
    assert_eq!((again.status, again.json()["error"]["code"].as_str()), (409, Some("no_candidate")));
    described.holds("post", "/admin/policies/{name}/promote", &again);

    let configured = ask(&server, "PATCH", "/admin/policies/r/config?canary=1", &[], b"{\"a\": 1}").await;
    assert_eq!(stage(&configured), "canary", "{}", configured.body);
    described.holds("patch", "/admin/policies/{name}/config", &configured);
    let withdrawn = ask(&server, "POST", "/admin/policies/r/rollback", &[], b"").await;
    described.holds("post", "/admin/policies/{name}/rollback", &withdrawn);

    let versions = ask(&server, "GET", "/admin/policies/r/versions", &[], b"").await;
    described.holds("get", "/admin/policies/{name}/versions", &versions);
    let states: Vec<Value> =
        versions.json()["versions"].as_array().unwrap().iter().map(|v| v["state"].clone()).collect();
    assert_eq!(states, ["active", "earlier"]);
    let deleted = ask(&server, "DELETE", "/admin/policies/r", &[], b"").await;
    described.holds("delete", one, &deleted);
    let generations = ask(&server, "GET", "/admin/generations", &[], b"").await;
    described.holds("get", "/admin/generations", &generations);
    let changes = generations.json()["generations"].as_array().unwrap().clone();
    let changes: Vec<&str> = changes.iter().map(|g| g["change"].as_str().unwrap()).collect();
    assert_eq!(changes, ["start", "put", "shadow", "promote", "canary", "withdraw", "delete"]);
}
