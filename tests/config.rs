//! `jackfield config`: the schema of the configuration, the documented files held to it, and errors with their place.

use std::fs;
use std::path::Path;

use jackfield_testkit::command::{fails, prints};
use serde_json::Value;

/// The TOML blocks of a document that are whole configurations: they begin with a comment that names the file.
fn documented(path: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path);
    let text = fs::read_to_string(path).expect("a document");
    let blocks = text.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next());
    blocks.filter(|block| block.starts_with("# jackfield.toml")).map(str::to_owned).collect()
}

fn schema(home: &Path) -> jsonschema::Validator {
    let schema: Value = serde_json::from_str(&prints(home, &["config", "schema"])).expect("JSON");
    jsonschema::validator_for(&schema).expect("a schema")
}

fn value(toml: &str) -> Value {
    serde_json::to_value(toml.parse::<toml::Table>().expect("TOML")).expect("JSON")
}

#[test]
fn the_documented_configurations_are_as_the_schema_says() {
    let home = tempfile::tempdir().expect("a folder");
    let schema = schema(home.path());
    let blocks = [documented("README.md"), documented("docs/policies-distribution.md")].concat();
    assert!(blocks.len() >= 2, "{blocks:?}");
    for block in blocks {
        let problems: Vec<String> = schema
            .iter_errors(&value(&block))
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        assert!(problems.is_empty(), "{block}\n{problems:?}");
    }
}

#[test]
fn the_schema_refuses_what_the_host_refuses() {
    let home = tempfile::tempdir().expect("a folder");
    let schema = schema(home.path());
    let wrong = [
        ("listen_on = 'x'\n", "line 1, column 1"),
        ("threads = 'two'\n", "line 1, column 11"),
        ("[engine]\nkv_type = 'int4'\n", "line 2, column 11"),
        ("[[policy]]\nsource = 5\n", "line 2, column 10"),
        ("[[policy]]\ndigest = 'sha256:0'\nsource = 'x'\n", "line 2, column 10"),
        ("[[policy]]\nname = 'x'\n", "line 1, column 1"),
        ("[[policy]]\nsource = 'x'\nconfig = 5\n", "line 3, column 10"),
        ("[distribution]\nhosts = 'x'\n", "line 2, column 9"),
        ("[[keys]]\nkey = 'sk-12345678'\n", "line 1, column 1"),
    ];
    for (config, place) in wrong {
        assert!(!schema.is_valid(&value(config)), "{config}");
        fs::write(home.path().join("jackfield.toml"), config).expect("written");
        fails(home.path(), &["config", "check"], 2, &["jackfield.toml", place]);
    }
}

#[test]
fn what_only_the_host_can_tell_has_its_place_too() {
    let home = tempfile::tempdir().expect("a folder");
    let cases = [
        ("threads = 2\n[engine]\nkv_mib = 0\n", ["line 3, column 1", "engine.kv_mib is 0"]),
        ("admin_listen = '127.0.0.1:8080'\n", ["line 1, column 1", "never shares"]),
        ("model = 'smolm'\n", ["line 1, column 1", "smolm"]),
        ("[server]\n  compress_to = 1.5\n", ["line 2, column 3", "server.compress_to"]),
        (
            "[[keys]]\nkey = 'a'\ntenant = 'a'\n[[keys]]\nkey = 'a'\ntenant = 'b'\n",
            ["line 4, column 1", "key number 2"],
        ),
        ("[[policy]]\nsource = 'ftp://x/y'\n", ["line 2, column 10", "ftp://"]),
        ("[[policy]]\nsource = 'oci://x.example/y'\n", ["line 2, column 10", "REPOSITORY:TAG"]),
        ("[[policy]]\nsource = 'https://x.example/y'\n", ["line 2, column 1", "hosts = [\"x.example\"]"]),
        ("[[policy]]\nname = 'é'\nsource = 'gone'\n", ["line 3, column 1", "gone"]),
        (
            "[distribution]\nhosts = ['x.example']\n[[policy]]\nsource = 'https://x.example/y'\n",
            ["line 4, column 1", "without a manifest"],
        ),
        ("[distribution]\nrequire_signature = true\n", ["line 1, column 2", "no public keys"]),
        ("[distribution]\npublic_keys = ['RWQ']\n", ["line 2, column 1", "public key number 1"]),
        ("[distribution]\ntimeout_s = 0\n", ["line 2, column 1", "distribution.timeout_s is 0"]),
        ("[engine]\nmax_runing = 4\n", ["line 2, column 1", "did you mean `max_running`?"]),
        ("admin-listen = '127.0.0.1:1'\n", ["line 1, column 1", "did you mean `admin_listen`?"]),
    ];
    for (config, words) in cases {
        fs::write(home.path().join("jackfield.toml"), config).expect("written");
        fails(home.path(), &["config", "check", "jackfield.toml"], 2, &words);
    }
    fails(home.path(), &["config", "check", "gone.toml"], 2, &["gone.toml"]);
    fs::write(home.path().join("jackfield.toml"), "threads = 2\n").expect("written");
    assert!(prints(home.path(), &["config", "check"]).contains("is good"));
}
