//! What of a configuration is taken, and how the rest is refused.

use std::time::Duration;

use clap::Parser;
use jackfield_engine::{KvStore, KvType};
use jackfield_kernels::Isa;
use jackfield_server::{OnConflict, OnExpired, RecallBy, SessionConfig};

use super::*;

fn settings(toml: &str, flags: &[&str]) -> Result<Settings, ConfigError> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("jackfield.toml");
    std::fs::write(&path, toml).expect("written");
    let path = path.to_string_lossy().into_owned();
    let line = ["jackfield", "serve", "--config", path.as_str()];
    let cli = crate::args::Cli::parse_from(line.iter().chain(flags));
    let crate::args::Command::Serve(args) = cli.command else { unreachable!("it says serve") };
    Settings::read(&args, &Dirs::from_environment())
}

fn refusal(toml: &str, flags: &[&str]) -> String {
    settings(toml, flags).expect_err("refused").to_string()
}

#[test]
fn a_flag_wins_over_the_file_and_the_file_over_the_default() {
    let found = settings("listen = '127.0.0.1:1'\nthreads = 3\n[engine]\nkv_mib = 2", &["--threads", "5"]);
    let found = found.expect("good");
    assert_eq!(found.listen.port(), 1);
    assert_eq!(found.admin_listen.port(), 8081);
    assert_eq!(found.threads, 5);
    assert_eq!(found.engine.kv_bytes, 2 << 20);
}

#[test]
fn the_cache_is_of_floats_unless_the_file_says_otherwise() {
    let kv_type = |toml: &str| settings(toml, &[]).expect("good").engine.kv_type;
    assert_eq!(kv_type(""), KvType::F16);
    assert_eq!(kv_type("[engine]\nkv_type = 'f16'"), KvType::F16);
    assert_eq!(kv_type("[engine]\nkv_type = 'int8'"), KvType::Int8);
    let error = refusal("[engine]\nkv_type = 'int4'", &[]);
    assert!(error.contains("int4") && error.contains("`int8`") && error.contains("line 2"), "{error}");
}

#[test]
fn blocks_live_on_under_the_state_folder_unless_the_file_says_otherwise() {
    let engine = |toml: &str| settings(toml, &["--state", "/somewhere"]).expect("good").engine;
    let disk = |toml: &str| engine(toml).kv_disk.map(|disk| (disk.folder, disk.bytes >> 20));
    assert_eq!(disk(""), Some((PathBuf::from("/somewhere/kv"), 2048)));
    assert_eq!(disk("[engine]\nkv_disk_mib = 7").map(|disk| disk.1), Some(7));
    assert_eq!(disk("[engine]\nkv_disk_mib = 0"), None);
    assert_eq!(disk("[engine]\nkv_memory_mib = 0"), None);
    assert_eq!(engine("[engine]\nkv_memory_mib = 3").kv_memory_bytes, 3 << 20);
    assert_eq!(engine("").kv_store, KvStore::Int8);
    assert_eq!(engine("[engine]\nkv_store = 'same'").kv_store, KvStore::Same);
    assert!(refusal("[engine]\nkv_store = 'f16'", &[]).contains("`same`"));
}

#[test]
fn blocks_are_shared_over_a_server_that_is_named_and_its_password_is_not_shown() {
    let remote = |toml: &str| settings(&format!("[engine]\n{toml}"), &[]).expect("good").engine.kv_remote;
    assert_eq!(remote(""), None);
    let usual = remote("kv_remote = 'redis://me:hidden@10.0.0.1/2'").expect("a server");
    assert_eq!((usual.ttl.as_secs(), usual.timeout.as_millis()), (3600, 200));
    assert!(format!("{usual:?}").contains("10.0.0.1:6379/2") && !format!("{usual:?}").contains("hidden"));
    let set = remote("kv_remote = 'valkey://cache'\nkv_remote_ttl_s = 7\nkv_remote_timeout_ms = 8");
    let set = set.expect("a server");
    assert_eq!((set.ttl.as_secs(), set.timeout.as_millis()), (7, 8));
    assert!(remote("kv_remote = 'redis://cache'\nkv_disk_mib = 0").is_some());

    for url in ["http://:hidden@x", "redis://:hidden@", "rediss://:hidden@x", "10.0.0.1:6379", ""] {
        let error = refusal(&format!("[engine]\nkv_remote = '{url}'"), &[]);
        assert!(error.contains("engine.kv_remote: ") && error.contains("line 2"), "{error}");
        assert!(!error.contains("hidden"), "{error}");
    }
    for name in ["kv_remote_ttl_s", "kv_remote_timeout_ms", "kv_memory_mib"] {
        let error = refusal(&format!("[engine]\nkv_remote = 'redis://x'\n{name} = 0"), &[]);
        assert!(error.contains(&format!("engine.{name} is 0")) && error.contains("line 3"), "{error}");
    }
    for name in ["kv_remote_ttl_s", "kv_remote_timeout_ms"] {
        let error = refusal(&format!("[engine]\n{name} = 5"), &[]);
        assert!(error.contains(&format!("engine.{name} goes with engine.kv_remote")), "{error}");
    }
}

#[test]
fn there_is_a_thread_for_each_core_that_is_named() {
    let found = settings("cores = [1, 0, 3]", &[]).expect("good");
    assert_eq!((found.threads, found.cores), (3, Some(vec![1, 0, 3])));
    assert_eq!(settings("", &[]).expect("good").cores, None);
    let error = refusal("threads = 2\ncores = [0]", &[]);
    assert!(error.contains("threads is 2 and there are 1 cores"), "{error}");
    assert!(refusal("cores = []", &[]).contains("cores is empty"));
}

#[test]
fn every_instruction_set_can_be_named() {
    for isa in Isa::ALL {
        let found = settings(&format!("isa = '{}'", isa.name()), &[]).expect("good");
        assert_eq!(found.isa, Some(isa));
    }
    assert_eq!(settings("", &[]).expect("good").isa, None);
    assert!(refusal("isa = 'sse9'", &[]).contains("`avx2`"));
}

#[test]
fn an_unknown_field_is_named_with_its_line() {
    let error = refusal("threads = 1\nlisten_on = 'x'", &[]);
    assert!(error.contains("listen_on") && error.contains("line 2, column 1"), "{error}");
}

#[test]
fn an_open_api_stays_on_loopback() {
    assert!(refusal("listen = '0.0.0.0:80'", &[]).contains("has no keys"));
    assert!(refusal("admin_listen = '0.0.0.0:81'", &[]).contains("admin API has no key"));
    let keyed = "listen = '0.0.0.0:80'\n[[keys]]\nkey = 'sk-12345678'\ntenant = 'a'";
    assert!(settings(keyed, &[]).is_ok());
}

#[test]
fn a_size_of_the_engine_is_refused_under_the_name_it_was_given() {
    for name in ["kv_mib", "block_size", "busy_prefill_tokens", "max_running"] {
        let error = refusal(&format!("[engine]\n{name} = 0"), &[]);
        assert!(error.contains(&format!("engine.{name} is 0")), "{error}");
    }
    let error = refusal("[engine]\nmax_running = 300\nmax_step_tokens = 128", &[]);
    assert!(error.contains("engine.max_step_tokens (128)"), "{error}");
    let more = settings("[engine]\nmax_running = 300", &[]).expect("a step has room for all who run");
    assert!(more.engine.max_step_tokens > 300);
    assert!(refusal("[engine]\nmax_context = 1", &[]).contains("engine.max_context is 1"));
    assert!(settings("[engine]\nmax_waiting = 0", &[]).is_ok(), "nobody waits; who runs, runs");
}

#[test]
fn what_only_the_model_tells_is_refused_under_the_name_it_was_given() {
    let few = EngineConfigError::TooFewBlocks { kv_bytes: MIB, blocks: 1, block_size: 16, block_bytes: MIB };
    let many = EngineConfigError::TooManyBlocks { kv_bytes: 9 * MIB, blocks: 5_000_000_000, most: u32::MAX };
    for (error, words) in
        [(few, ["engine.kv_mib is 1,", "at least 2"]), (many, ["engine.kv_mib is 9,", "less"])]
    {
        let text = engine_refusal(StartError::Config(error));
        assert!(words.iter().all(|word| text.contains(word)) && !text.contains("kv_bytes"), "{text}");
    }
}

#[test]
fn every_limit_of_the_server_can_be_set() {
    let table = "[server]\nmodel_id = 'm'\nmodel_aliases = ['a']\nmax_body_bytes = 1\nmax_upload_bytes = 2\n\
                 request_permits = 3\nmax_connections = 4\nkeep_alive_s = 5\nheader_timeout_s = 6\n\
                 body_timeout_s = 7\ndrain_s = 8\nutc_offset_minutes = 9\nlocale = 'zh'\ncompress_to = 0.25";
    let set = settings(table, &[]).expect("good").server;
    let ServerConfig { keys, admin_key, model_id, model_aliases, locale, compress_to, .. } = set.clone();
    assert!(keys.is_empty() && admin_key.is_none());
    assert_eq!((model_id.as_deref(), locale.as_str(), compress_to), (Some("m"), "zh", Some(0.25)));
    assert_eq!(model_aliases, ["a"]);
    let sizes = [set.max_body_bytes, set.max_upload_bytes, set.request_permits, set.max_connections];
    assert_eq!(sizes, [1, 2, 3, 4]);
    let times = [set.keep_alive_s, set.header_timeout_s, set.body_timeout_s, set.drain_s];
    assert_eq!((times, set.utc_offset_minutes), ([5, 6, 7, 8], 9));
    assert_eq!(settings("", &[]).expect("good").server.compress_to, ServerConfig::default().compress_to);
}

#[test]
fn what_the_server_cannot_serve_is_named() {
    for (line, name) in [
        ("max_body_bytes = 0", "server.max_body_bytes"),
        ("request_permits = 0", "server.request_permits"),
        ("compress_to = 0.0", "server.compress_to"),
        ("compress_to = 1.5", "server.compress_to"),
        ("compress_to = nan", "server.compress_to"),
        ("verify_share = 1.5", "server.verify_share"),
        ("verify_divergence = -1.0", "server.verify_divergence"),
        ("utc_offset_minutes = 1081", "server.utc_offset_minutes"),
    ] {
        let error = refusal(&format!("[server]\n{line}"), &[]);
        assert!(error.contains(name), "{line}: {error}");
    }
    assert!(settings("[server]\ncompress_to = 1", &[]).is_ok(), "prompts are left alone");
}

#[test]
fn sessions_are_kept_and_treated_as_set() {
    let table = "[sessions]\nttl_s = 60\nmax_sessions = 5\nmax_kib = 7\nwaiting_turns = 0\n\
                 on_conflict = 'merge'\non_expired = 'restart'\nkeep_kv_s = 9\nkeep_kv_s_of = { gold = 90 }\n\
                 recall = 'phrases'\nrecall_phrases = ['zurück zu']";
    let set = settings(table, &[]).expect("good");
    let SessionSettings::Disk(limits) = &set.sessions else { panic!("{:?}", set.sessions) };
    assert_eq!((limits.ttl.as_secs(), limits.max_sessions, limits.max_session_bytes), (60, 5, 7 << 10));
    let treated = SessionConfig {
        waiting_turns: 0,
        on_conflict: OnConflict::Merge,
        on_expired: OnExpired::Restart,
        keep_kv: Duration::from_secs(9),
        keep_kv_of: [("gold".to_owned(), Duration::from_secs(90))].into(),
        recall: RecallBy::Phrases,
        recall_phrases: vec!["zurück zu".into()],
    };
    assert_eq!(set.server.sessions, treated);
    assert_eq!(settings("", &[]).expect("good").server.sessions, SessionConfig::default());
    for name in ["ttl_s", "max_sessions", "max_kib"] {
        let error = refusal(&format!("[sessions]\n{name} = 0"), &[]);
        assert!(error.contains(&format!("sessions.{name}")), "{error}");
    }
    assert!(refusal("[sessions]\non_conflict = 'fight'", &[]).contains("merge"));
    let memory = settings("[sessions]\nstore = 'memory'", &[]).expect("good").sessions;
    assert!(matches!(memory, SessionSettings::Memory(_)), "{memory:?}");
    let url = "redis_url = 'redis://127.0.0.1:1/0'\nredis_prefix = 'mine'";
    let redis = settings(&format!("[sessions]\nstore = 'redis'\n{url}"), &[]).expect("good").sessions;
    assert!(matches!(redis, SessionSettings::Redis(config) if config.prefix == "mine"));
    assert!(refusal("[sessions]\nstore = 'redis'", &[]).contains("redis_url"));
    assert!(refusal(&format!("[sessions]\n{url}"), &[]).contains("store"));
}

#[test]
fn nothing_is_recalled_unless_the_file_says_by_whom() {
    let by = |toml: &str| settings(toml, &[]).expect("good").server.sessions.recall;
    assert_eq!(by(""), RecallBy::Nobody);
    for (name, recall) in
        [("off", RecallBy::Nobody), ("request", RecallBy::Request), ("phrases", RecallBy::Phrases)]
    {
        assert_eq!(by(&format!("[sessions]\nrecall = '{name}'")), recall);
    }
    for (lines, words) in [
        ("recall = 'always'", "`phrases`"),
        ("recall_phrases = ['as we said']", "recall = \"phrases\""),
        ("recall = 'phrases'\nrecall_phrases = []", "0 phrases"),
        ("recall = 'phrases'\nrecall_phrases = ['as we said', ' ']", "number 2"),
    ] {
        let error = refusal(&format!("[sessions]\n{lines}"), &[]);
        assert!(error.contains(words) && error.contains("line "), "{error}");
    }
}

#[test]
fn ports_and_keys_are_not_shared() {
    assert!(refusal("admin_listen = '127.0.0.1:8080'", &[]).contains("never shares"));
    let twice = "[[keys]]\nkey = 'sk-12345678'\ntenant = 'a'\n[[keys]]\nkey = 'sk-12345678'\ntenant = 'b'";
    assert!(refusal(twice, &[]).contains("key number 2"));
}

#[test]
fn embeddings_are_a_name_or_a_folder() {
    let embeddings = |toml: &str| settings(toml, &[]).map(|found| found.embeddings);
    assert!(matches!(embeddings(""), Ok(EmbeddingsRef::IfPulled)));
    assert!(matches!(embeddings("embeddings = 'minilm'"), Ok(EmbeddingsRef::Catalogue(_))));
    assert!(matches!(embeddings("embeddings = '.'"), Ok(EmbeddingsRef::Folder(_))), "beside the file");
    let error = refusal("embeddings = 'smollm2-135m'", &[]);
    assert!(error.contains("another kind") && error.contains("minilm"), "{error}");
    let error = refusal("embeddings = 'no/such/folder'", &[]);
    assert!(error.contains("no/such/folder") && error.contains("minilm"), "{error}");
    assert!(refusal("model = 'minilm'", &[]).contains("another kind"));
}

#[test]
fn hosts_are_names_with_or_without_a_port() {
    let taken = settings(
        "[distribution]\nhosts = ['GHCR.io:443', 'a.example:8443']\nplain_http = ['[::1]:5000']",
        &[],
    );
    let fetching = taken.expect("good").fetching;
    assert_eq!(fetching.hosts, ["a.example:8443", "ghcr.io"].map(str::to_owned).into());
    assert_eq!(fetching.plain_http, ["[::1]:5000".to_owned()].into());
    let error = refusal("[distribution]\nhosts = ['https://ghcr.io']", &[]);
    assert!(
        error.contains("HOST:PORT") && error.contains("`https://ghcr.io`") && error.contains("line 2"),
        "{error}"
    );
}
