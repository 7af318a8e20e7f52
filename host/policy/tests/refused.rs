//! Uploads that are refused, each with what was wanted and what was found.

mod kit;

use jackfield_guests::{CONTRACT, Guest, World};
use jackfield_policy::{Case, Fault, Kind, NoServices, Policy, Refusal, Runtime, RuntimeConfig};
use kit::{prepare, runtime, upload};
use serde_json::{Value, json};

fn refused_bytes(bytes: &[u8]) -> Refusal {
    let mut upload = upload(&Guest::new(World::Router));
    upload.component = bytes.into();
    Policy::prepare(&runtime(), upload).expect_err("refused")
}

#[test]
fn what_is_no_component() {
    let core = Guest::new(World::Router).core();
    let good = Guest::new(World::Router).build();
    assert!(refused_bytes(b"").to_string().contains("0 bytes"));
    assert!(refused_bytes(b"GIF89a..").to_string().contains("not WebAssembly"));
    assert!(refused_bytes(&core).to_string().contains("core module"));
    for length in [9, 100, good.len() / 2, good.len() - 1] {
        let refused = refused_bytes(&good[..length]);
        let expected = matches!(refused, Refusal::Compile { .. } | Refusal::WrongWorld { .. });
        assert!(expected, "{length}: {refused}");
    }
    let mut damaged = good.clone();
    for byte in damaged.iter_mut().skip(40).step_by(7) {
        *byte ^= 0x55;
    }
    assert!(matches!(refused_bytes(&damaged), Refusal::Compile { .. }));
}

#[test]
fn what_is_too_large() {
    let config = RuntimeConfig { max_component_bytes: 1000, ..RuntimeConfig::default() };
    let runtime = Runtime::new(config, std::sync::Arc::new(NoServices)).expect("an engine");
    let refused = prepare(&runtime, &Guest::new(World::Router)).expect_err("refused");
    assert!(matches!(refused, Refusal::TooLarge { max: 1000, .. }));
}

fn against(contract: &str) -> Refusal {
    let mut guest = Guest::new(World::Router);
    guest.contract = contract.into();
    prepare(&runtime(), &guest).expect_err("refused")
}

#[test]
fn what_was_built_against_another_version() {
    let package = |version: &str| {
        CONTRACT.replace("package jackfield:policy@0.2.0", &format!("package jackfield:policy@{version}"))
    };
    let newer = against(&package("0.3.0"));
    let text = newer.to_string();
    assert!(matches!(newer, Refusal::Version { newer: true, .. }), "{text}");
    assert!(text.contains("@0.3.0") && text.contains("@0.2.0") && text.contains("too new"), "{text}");
    let older = against(&package("0.0.9"));
    assert!(matches!(older, Refusal::Version { newer: false, .. }), "{older}");
    assert!(older.to_string().contains("@0.0.9"));
    assert!(matches!(against(&package("1.0.0")), Refusal::Version { newer: true, .. }));
}

#[test]
fn what_imports_more_than_there_is() {
    let contract = CONTRACT.replace("world router {", "world router {\n import wasi:sockets/tcp@0.2.3;");
    let mut guest = Guest::new(World::Router);
    guest.contract = contract;
    guest.imports = r#"(import "wasi:sockets/tcp@0.2.3" "connect" (func))"#.into();
    let refused = prepare(&runtime(), &guest).expect_err("refused");
    let import = "wasi:sockets/tcp@0.2.3".to_owned();
    assert_eq!(refused, Refusal::Import { import });
}

#[test]
fn what_is_of_another_kind_or_of_none() {
    let mut upload = upload(&Guest::new(World::Compressor));
    upload.manifest.kind = Kind::Router;
    let refused = Policy::prepare(&runtime(), upload).expect_err("refused");
    assert_eq!(
        refused,
        Refusal::WrongWorld {
            kind: Kind::Router,
            wanted: "jackfield:policy/routing@0.2.0".into(),
            found: Some(Kind::Compressor),
        }
    );
    let empty = wat::parse_str("(component)").expect("parses");
    let refused = refused_bytes(&empty);
    assert!(matches!(refused, Refusal::WrongWorld { found: None, .. }), "{refused}");
}

#[test]
fn what_has_other_types_than_the_contract() {
    let contract = CONTRACT.replace("status: u16", "status: u32");
    let refused = against(&contract);
    assert!(matches!(refused, Refusal::Types { .. }), "{refused}");
    let contract =
        CONTRACT.replace("configure: func(config: string)", "configure: func(config: string, more: string)");
    let mut guest = Guest::new(World::Router);
    guest.contract = contract;
    let text = "(param $config i32) (param $length i32)";
    let with_more = guest.core_with(text, "(param $config i32) (param $length i32) (param i32 i32)");
    let mut upload = upload(&Guest::new(World::Router));
    upload.component = guest.encode(with_more).into();
    let refused = Policy::prepare(&runtime(), upload).expect_err("refused");
    assert!(matches!(refused, Refusal::Types { .. }), "{refused}");
}

#[test]
fn what_does_not_take_its_configuration() {
    let mut guest = Guest::new(World::Router);
    guest.schema(r#"{"type":"object","required":["rules"]}"#);
    let with = |guest: &Guest, config: Value| {
        let mut upload = upload(guest);
        upload.config = config;
        Policy::prepare(&runtime(), upload)
    };
    let refused = with(&guest, json!({})).expect_err("refused");
    assert!(matches!(&refused, Refusal::Config { message, .. } if message.contains("rules")), "{refused}");
    assert!(with(&guest, json!({ "rules": [] })).is_ok());
    guest.configure = guest.error("rule 3 has no pattern");
    let message = "rule 3 has no pattern".to_owned();
    assert_eq!(with(&guest, json!({ "rules": [] })).expect_err("refused"), Refusal::Configure { message });
    let mut guest = Guest::new(World::Router);
    guest.schema("nonsense");
    assert!(matches!(prepare(&runtime(), &guest), Err(Refusal::Description { .. })));
}

#[test]
fn what_traps_before_its_first_call() {
    let mut guest = Guest::new(World::Router);
    guest.describe = "(unreachable)".into();
    assert!(matches!(
        prepare(&runtime(), &guest),
        Err(Refusal::Setup { call: "describe", fault: Fault::Trap { .. } })
    ));
    let mut guest = Guest::new(World::Router);
    guest.module = "(func $start (unreachable)) (start $start)".into();
    assert!(matches!(
        prepare(&runtime(), &guest),
        Err(Refusal::Setup { call: "instantiate", fault: Fault::Trap { .. } })
    ));
}

#[test]
fn what_wants_to_watch_what_cannot_be_watched() {
    let mut guest = Guest::new(World::OutputFilter);
    guest.watch(&["fine", "a("]);
    assert!(matches!(prepare(&runtime(), &guest), Err(Refusal::Watch(_))));
}

#[test]
fn what_fails_its_own_cases() {
    let mut guest = Guest::new(World::OutputFilter);
    guest.watch(&["secret"]);
    guest.work = guest.verdicts(&[(0, Some((0, 6)), 0)]);
    let with = |case: &str| {
        let mut upload = upload(&guest);
        upload.cases = Case::parse_file(case).expect("parses");
        Policy::prepare(&runtime(), upload)
    };
    // The guest replaces the first six bytes of a window, whatever they are: right only when the hit stands there.
    let right = r#"{"name": "r", "input": {"stream": ["sec", "ret", " and so on"]}, "expect": {"sent": "* and so on", "stop": null}}"#;
    assert!(with(right).is_ok());
    let wrong = r#"{"name": "w", "input": {"stream": ["a secret"]}, "expect": {"sent": "a *"}}"#;
    let refused = with(wrong).expect_err("refused");
    assert!(
        matches!(&refused, Refusal::Case { name, why } if name == "w" && why.contains("/sent: expected \"a *\", found \"*et\"")),
        "{refused}"
    );
    // Cut in other places it comes out differently, which `text` finds.
    let everywhere = r#"{"name": "e", "input": {"text": "a secret"}, "expect": {"sent": "*et"}}"#;
    let refused = with(everywhere).expect_err("refused");
    assert!(matches!(&refused, Refusal::Case { why, .. } if why.contains("cut as")), "{refused}");
    let unknown = r#"{"name": "u", "input": {"texts": "a"}, "expect": {}}"#;
    assert!(matches!(&with(unknown), Err(Refusal::Case { why, .. }) if why.contains("texts")));
}
