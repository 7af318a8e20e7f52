//! The configuration read again while the host serves: what it lists comes into force as one generation, or nothing changes.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use jackfield_testkit::admin::{accepted, generation, manifest, names, put_guest};
use jackfield_testkit::answer::{CHAT, open, read, whole};
use jackfield_testkit::ask::words;
use jackfield_testkit::guest::{Guest, World};
use jackfield_testkit::host::{HostOptions, RunningHost, tiny_model_file};
use jackfield_testkit::tiny_model::TinyModel;
use serde_json::json;

const LIMIT: Duration = Duration::from_secs(60);

fn filter(version: u32) -> Vec<u8> {
    let mut guest = Guest::masking("the", &format!("<{version}>"));
    guest.version(&format!("1.0.{version}"));
    guest.build()
}

/// A built policy folder, written anew.
fn folder(inside: &Path, name: &str, world: World, component: &[u8]) {
    let folder = inside.join(name);
    fs::create_dir_all(&folder).expect("a folder");
    fs::write(folder.join("policy.toml"), manifest(name, world)).expect("written");
    let part = folder.join(".part");
    fs::write(&part, component).expect("written");
    fs::rename(&part, folder.join("policy.wasm")).expect("a rename");
}

fn listed(home: &Path, names: &[&str]) -> String {
    names.iter().map(|name| format!("[[policy]]\nsource = '{}'\n", home.join(name).display())).collect()
}

fn start(config: &str) -> RunningHost {
    RunningHost::start(&HostOptions {
        model: tiny_model_file(),
        config: config.into(),
        ..HostOptions::default()
    })
}

fn answer(host: &RunningHost) -> String {
    whole(&host.api, CHAT, &words(&host.api, 2)).text().to_owned()
}

fn reloads(host: &RunningHost, outcome: &str) -> f64 {
    let text = host.api.get("/metrics").text();
    let labels = format!("change=\"reload\",outcome=\"{outcome}\"");
    let line = text.lines().find(|line| line.contains(&labels));
    line.and_then(|line| line.rsplit(' ').next()?.parse().ok()).unwrap_or(0.0)
}

/// Does something, and waits for the reload that comes of it, with this outcome.
#[track_caller]
fn after(host: &RunningHost, outcome: &str, act: impl FnOnce()) {
    let before = reloads(host, outcome);
    act();
    host.eventually(outcome, LIMIT, |host| reloads(host, outcome) > before);
}

#[test]
fn a_set_that_changed_is_one_generation_and_what_was_pushed_stays() {
    let home = tempfile::tempdir().expect("a folder");
    // It answers by itself, in the words of the model's own answer.
    let router = Guest::answering(" the the").build();
    folder(home.path(), "mask", World::OutputFilter, &filter(1));
    folder(home.path(), "route", World::Router, &router);
    folder(home.path(), "shorten", World::Compressor, &Guest::new(World::Compressor).build());
    let host = start(&listed(home.path(), &["mask", "route"]));
    assert_eq!((generation(&host.admin), answer(&host).as_str()), (1, " <1> <1>"));
    put_guest(&host.admin, "pushed", &Guest::new(World::SlotExtractor));

    let other = listed(home.path(), &["shorten", "mask"]) + "[engine]\nmax_waiting = 7\n";
    after(&host, "applied", || host.configure(&other));
    assert_eq!(
        (generation(&host.admin), names(&host.admin)),
        (3, vec!["mask".into(), "pushed".into(), "shorten".into()])
    );
    let generations = host.admin.get("/admin/generations").json()["generations"].clone();
    assert_eq!(generations.as_array().expect("a list").last().expect("one")["change"], "set");
    assert!(host.log().contains(r#""fields":"engine""#), "what waits for a restart is named: {}", host.log());

    // A listed folder that is built again is read again, by itself.
    after(&host, "applied", || folder(home.path(), "mask", World::OutputFilter, &filter(2)));
    assert_eq!((generation(&host.admin), answer(&host).as_str()), (4, " <2> <2>"));

    after(&host, "unchanged", || host.hang_up());
    assert_eq!(generation(&host.admin), 4);
}

#[test]
fn what_an_operator_did_stays_until_the_listed_one_changes() {
    let home = tempfile::tempdir().expect("a folder");
    folder(home.path(), "mask", World::OutputFilter, &filter(1));
    let host = start(&listed(home.path(), &["mask"]));
    accepted(host.admin.delete("/admin/policies/mask"));
    after(&host, "unchanged", || host.hang_up());
    assert_eq!(names(&host.admin), Vec::<String>::new());
    after(&host, "applied", || folder(home.path(), "mask", World::OutputFilter, &filter(2)));
    assert_eq!(answer(&host), " <2> <2>");
}

#[test]
fn what_is_refused_changes_nothing_and_says_where() {
    let home = tempfile::tempdir().expect("a folder");
    folder(home.path(), "mask", World::OutputFilter, &filter(1));
    folder(home.path(), "broken", World::Router, &filter(1)[..100]);
    let good = listed(home.path(), &["mask"]);
    let host = start(&good);
    folder(home.path(), "mask2", World::OutputFilter, &filter(2));
    let both = listed(home.path(), &["mask2", "broken"]);
    let cases = [
        ("[[policy]]\nsorce = 'x'\n".to_owned(), "line 2, column 1"),
        (good.clone() + "[engine]\nmax_running = 0\n", "line 4, column 1"),
        (good.clone() + "[[policy]]\nsource = 'gone'\n", "line 4, column 1"),
        (good.clone() + "[[policy]]\nsource = 'https://a.example/x'\n", "line 4, column 1"),
        (both, "line 4, column 1"),
        (good.clone() + &good, "line 4, column 1"),
    ];
    for (config, place) in &cases {
        let said = host.log().len();
        after(&host, "refused", || host.configure(config));
        // The log is read by a thread of its own.
        let tells = |log: &str| log.contains(place) && log.contains("nothing has changed");
        host.eventually(&format!("{place} is told of: {config}"), LIMIT, |host| tells(&host.log()[said..]));
        assert_eq!((generation(&host.admin), answer(&host).as_str()), (1, " <1> <1>"));
    }
    after(&host, "applied", || host.configure(&listed(home.path(), &["mask2"])));
    assert_eq!((generation(&host.admin), names(&host.admin)), (2, vec!["mask2".to_owned()]));
}

#[test]
fn a_change_is_seen_though_something_writes_beside_it_without_end() {
    let home = tempfile::tempdir().expect("a folder");
    folder(home.path(), "mask", World::OutputFilter, &filter(1));
    let host = start(&listed(home.path(), &["mask"]));
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let beside = host.config_file().with_file_name("scratch");
            while !over.load(Ordering::Relaxed) {
                fs::write(&beside, "more").expect("written");
                thread::sleep(Duration::from_millis(20));
            }
        });
        let seen = thread::scope(|scope| {
            let change =
                || after(&host, "applied", || folder(home.path(), "mask", World::OutputFilter, &filter(2)));
            scope.spawn(change).join()
        });
        over.store(true, Ordering::Relaxed);
        seen.expect("seen");
    });
    assert_eq!(answer(&host), " <2> <2>");
}

#[test]
fn what_cannot_be_noted_is_in_force_all_the_same() {
    let home = tempfile::tempdir().expect("a folder");
    folder(home.path(), "mask", World::OutputFilter, &filter(1));
    let state = home.path().join("state");
    // Nothing can be written over a folder that has something in it.
    fs::create_dir_all(state.join("seeds.json/in-the-way")).expect("a folder");
    let options = HostOptions {
        model: tiny_model_file(),
        config: listed(home.path(), &["mask"]),
        state: Some(state),
        ..HostOptions::default()
    };
    let host = RunningHost::start(&options);
    assert_eq!(answer(&host), " <1> <1>");
    after(&host, "applied", || folder(home.path(), "mask", World::OutputFilter, &filter(2)));
    assert_eq!(answer(&host), " <2> <2>");
    assert!(host.log().contains("cannot be noted"), "{}", host.log());
}

#[test]
fn a_start_without_a_list_leaves_what_was_listed() {
    let home = tempfile::tempdir().expect("a folder");
    folder(home.path(), "mask", World::OutputFilter, &filter(1));
    let config = listed(home.path(), &["mask"]);
    let state = Some(home.path().join("state"));
    let options = HostOptions { model: tiny_model_file(), config, state, ..HostOptions::default() };
    drop(RunningHost::start(&options));
    let without = HostOptions { config: String::new(), ..options.clone() };
    assert_eq!(answer(&RunningHost::start(&without)), " <1> <1>");
    // A file that lists nothing says that there is to be nothing.
    let empty = HostOptions { config: "# nothing\n".into(), ..options };
    assert_eq!(names(&RunningHost::start(&empty).admin), Vec::<String>::new());
}

#[test]
fn reloads_cut_no_stream_and_mix_no_versions() {
    const WORDS: usize = 300;
    const RELOADS: u32 = 12;
    let home = tempfile::tempdir().expect("a folder");
    let model = TinyModel { context: 16_384, ..TinyModel::default() };
    let path = home.path().join("model.gguf");
    fs::write(&path, model.bytes()).expect("a model file");
    folder(home.path(), "mask", World::OutputFilter, &filter(1));
    let config = listed(home.path(), &["mask"]) + "[engine]\nkv_mib = 64\n";
    let host = RunningHost::start(&HostOptions { model: path, config, ..HostOptions::default() });
    let (long, over) = (words(&host.api, WORDS), AtomicBool::new(false));
    let stream = || {
        let mut streams = 0;
        while !over.load(Ordering::Relaxed) {
            let answer = read(CHAT, open(&host.api, CHAT, &long)).answer;
            let mut words: Vec<&str> = answer.text().split_whitespace().collect();
            assert_eq!((words.len(), answer.finish()), (WORDS, "length"));
            words.dedup();
            assert_eq!(words.len(), 1, "all words under one version: {words:?}");
            streams += 1;
        }
        streams
    };
    thread::scope(|scope| {
        let streams: Vec<_> = (0..8).map(|_| scope.spawn(stream)).collect();
        let reload = scope.spawn(|| {
            for version in 2..=RELOADS {
                let folder = home.path().join("mask");
                fs::write(folder.join(".part"), filter(version)).expect("written");
                fs::rename(folder.join(".part"), folder.join("policy.wasm")).expect("a rename");
                host.hang_up();
                let now = format!("1.0.{version}");
                host.eventually("the next version", LIMIT, |host| {
                    host.admin.get("/admin/policies/mask").json()["version"] == json!(now)
                });
                assert_eq!(answer(&host), format!(" <{version}>").repeat(2));
            }
        });
        let reload = reload.join();
        over.store(true, Ordering::Relaxed);
        reload.expect("every reload was taken");
        let streams: Vec<u32> =
            streams.into_iter().map(|one| one.join().expect("no stream was cut")).collect();
        assert!(streams.iter().all(|count| *count > 0), "{streams:?}");
    });
    assert_eq!(generation(&host.admin), u64::from(RELOADS));
    assert_eq!(host.metric("jackfield_cancelled_turns_total", ""), 0.0);
    host.settle();
}
