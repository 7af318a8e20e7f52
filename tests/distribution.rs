//! Policies by reference: fetched within bounds from allowed hosts, pinned, kept, and held to their signatures.

use std::fs;
use std::path::{Path, PathBuf};

use jackfield_testkit::admin::{accepted, generation, manifest, names, put_parts};
use jackfield_testkit::answer::{CHAT, whole};
use jackfield_testkit::ask::words;
use jackfield_testkit::command::{fails, prints};
use jackfield_testkit::guest::{Guest, World};
use jackfield_testkit::host::{HostOptions, RunningHost, tiny_model_file};
use jackfield_testkit::sign::Signer;
use jackfield_testkit::store::{Route, Store, digest};
use serde_json::json;

/// A filter that replaces the one word of the model's answers by its own version.
fn filter(version: u32) -> Vec<u8> {
    let mut guest = Guest::masking("the", &format!("<{version}>"));
    guest.version(&format!("1.0.{version}"));
    guest.build()
}

fn table(name: &str, kind: &str) -> String {
    format!("{{ name = '{name}', kind = '{kind}', limits = {{ deadline-ms = 10000 }} }}")
}

/// `[[policy]]` of a filter named `mask` that comes from elsewhere.
fn mask_from(source: &str, rest: &str) -> String {
    format!("[[policy]]\nsource = '{source}'\nmanifest = {}\n{rest}\n", table("mask", "output-filter"))
}

fn plain(store: &Store) -> String {
    format!("[distribution]\nplain_http = ['{}']\ntimeout_s = 3\nmax_mib = 1\n", store.address)
}

fn start(config: &str, state: &Path) -> RunningHost {
    let state = Some(state.to_owned());
    RunningHost::start(&HostOptions {
        model: tiny_model_file(),
        config: config.into(),
        state,
        ..HostOptions::default()
    })
}

fn answer(host: &RunningHost) -> String {
    whole(&host.api, CHAT, &words(&host.api, 2)).text().to_owned()
}

/// A built policy folder.
fn folder(inside: &Path, name: &str, world: World, component: &[u8]) -> PathBuf {
    let folder = inside.join(name);
    fs::create_dir_all(&folder).expect("a folder");
    fs::write(folder.join("policy.toml"), manifest(name, world)).expect("written");
    fs::write(folder.join("policy.wasm"), component).expect("written");
    folder
}

/// `serve` with this configuration, which is refused before anything listens.
#[track_caller]
fn refused(config: &str, words: &[&str]) {
    let home = tempfile::tempdir().expect("a folder");
    fs::write(home.path().join("jackfield.toml"), config).expect("written");
    let model = tiny_model_file();
    let model = model.to_str().expect("UTF-8");
    let listen = ["--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--state", "state"];
    let mut line = vec!["serve", "--config", "jackfield.toml", "--model", model];
    line.extend(listen);
    fails(home.path(), &line, 2, words);
    let kept = fs::read_dir(home.path().join("state/sources")).into_iter().flatten().count();
    assert_eq!(kept, 0, "nothing that was refused is kept");
}

#[test]
fn references_of_every_kind_come_into_force_as_one_generation() {
    let (home, store) = (tempfile::tempdir().expect("a folder"), Store::start());
    let component = |world| Guest::new(world).build();
    folder(home.path(), "shorten", World::Compressor, &component(World::Compressor));
    // It answers by itself, in the words of the model's own answer.
    fs::write(home.path().join("route.wasm"), Guest::answering(" the the").build()).expect("written");
    store.put("/slots.wasm", Route::File(component(World::SlotExtractor)));
    store.want_token();
    store.push("acme/mask", "1", &filter(1), None);
    let config = format!(
        "{}[[policy]]\nsource = '{home}/shorten'\n\
         [[policy]]\nsource = '{home}/route.wasm'\nname = 'other'\nmanifest = {}\n\
         [[policy]]\nsource = '{}'\nmanifest = {}\n{}",
        plain(&store),
        table("route", "router"),
        store.url("/slots.wasm"),
        table("slots", "slot-extractor"),
        mask_from(&format!("oci://{}/acme/mask:1", store.address), ""),
        home = home.path().display(),
    );
    let state = tempfile::tempdir().expect("a folder");
    let host = start(&config, state.path());
    assert_eq!(names(&host.admin), ["mask", "other", "shorten", "slots"]);
    assert_eq!((generation(&host.admin), answer(&host).as_str()), (1, " <1> <1>"));
    assert!(store.asked().iter().any(|path| path.starts_with("/token?")), "{:?}", store.asked());
}

#[test]
fn a_reference_stands_for_what_it_stood_for_first_until_it_is_asked_anew() {
    let (state, store) = (tempfile::tempdir().expect("a folder"), Store::start());
    let source = format!("oci://{}/acme/mask:latest", store.address);
    let config = |rest: &str| plain(&store) + &mask_from(&source, rest);
    store.push("acme/mask", "latest", &filter(1), None);
    let says = |config: &str| answer(&start(config, state.path()));
    assert_eq!(says(&config("")), " <1> <1>");
    let lock = fs::read_to_string(state.path().join("policies.lock.json")).expect("a lock file");
    assert_eq!(lock.parse::<serde_json::Value>().expect("JSON"), json!({&source: digest(&filter(1))}));

    store.push("acme/mask", "latest", &filter(2), None);
    let asked = store.asked().len();
    assert_eq!(says(&config("")), " <1> <1>");
    assert_eq!(store.asked().len(), asked, "nobody is asked for what is pinned and kept");
    assert_eq!(says(&config("update = true")), " <2> <2>");

    store.set_down(true);
    let host = start(&config("update = true"), state.path());
    assert_eq!(answer(&host), " <2> <2>");
    assert!(host.log().contains("what was kept is served"), "{}", host.log());
    drop(host);

    store.set_down(false);
    let kept = state.path().join("sources");
    fs::remove_dir_all(&kept).expect("removed");
    store.push("acme/mask", "latest", &filter(3), None);
    let error = starts_not(&config(""), state.path());
    assert!(error.contains("was pinned") && error.contains("update = true"), "{error}");
    let fixed = format!("digest = '{}'", digest(&filter(3)));
    assert_eq!(says(&config(&fixed)), " <3> <3>");
}

/// The error with which a host with this state does not start.
fn starts_not(config: &str, state: &Path) -> String {
    let home = tempfile::tempdir().expect("a folder");
    fs::write(home.path().join("jackfield.toml"), config).expect("written");
    let model = tiny_model_file();
    let line =
        ["serve", "--config", "jackfield.toml", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"];
    let mut line = line.to_vec();
    line.extend(["--model", model.to_str().expect("UTF-8"), "--state", state.to_str().expect("UTF-8")]);
    fails(home.path(), &line, 2, &["jackfield.toml: line"]).error
}

#[test]
fn what_was_kept_and_is_damaged_is_fetched_again() {
    let (state, store) = (tempfile::tempdir().expect("a folder"), Store::start());
    store.put("/mask.wasm", Route::File(filter(1)));
    let config = plain(&store) + &mask_from(&store.url("/mask.wasm"), "");
    drop(start(&config, state.path()));
    let kept =
        fs::read_dir(state.path().join("sources")).expect("a folder").flatten().next().expect("a file");
    fs::write(kept.path(), filter(2)).expect("written");
    assert_eq!(answer(&start(&config, state.path())), " <1> <1>");
    assert_eq!(fs::read(kept.path()).expect("a file"), filter(1));
}

#[test]
fn nobody_is_asked_but_allowed_hosts() {
    let (store, other) = (Store::start(), Store::start());
    let elsewhere = other.address.to_string();
    refused(
        &mask_from("https://policies.example/x.wasm", ""),
        &["line 2, column 1", "hosts = [\"policies.example\"]"],
    );
    refused(&mask_from("oci://registry.example/a/b:1", ""), &["line 2", "hosts = [\"registry.example\"]"]);
    let hosts = format!("[distribution]\nhosts = ['{elsewhere}']\n");
    refused(&(hosts + &mask_from(&other.url("/x.wasm"), "")), &["plain_http = ", &elsewhere]);

    other.put("/x.wasm", Route::File(filter(1)));
    store.put("/x.wasm", Route::Redirect(other.url("/x.wasm")));
    let from = |path: &str| plain(&store) + &mask_from(&store.url(path), "");
    refused(&from("/x.wasm"), &["leads to", &elsewhere, "not allowed"]);
    let manifest = store.push("a/b", "1", &filter(1), None);
    store.put(&format!("/v2/a/b/blobs/{}", digest(&filter(1))), Route::Redirect(other.url("/x.wasm")));
    let image = format!("oci://{}/a/b@{manifest}", store.address);
    refused(&(plain(&store) + &mask_from(&image, "")), &["leads to", &elsewhere]);
    assert_eq!(other.asked(), Vec::<String>::new());

    store.put("/round.wasm", Route::Redirect("/round.wasm".into()));
    refused(&from("/round.wasm"), &["on and on"]);
}

#[test]
fn a_redirect_to_an_allowed_host_is_followed() {
    let (store, other) = (Store::start(), Store::start());
    other.put("/x.wasm", Route::File(filter(4)));
    store.put("/x.wasm", Route::Redirect(other.url("/x.wasm")));
    let config = format!(
        "[distribution]\nplain_http = ['{}', '{}']\n{}",
        store.address,
        other.address,
        mask_from(&store.url("/x.wasm"), "")
    );
    let state = tempfile::tempdir().expect("a folder");
    assert_eq!(answer(&start(&config, state.path())), " <4> <4>");
}

#[test]
fn what_misbehaves_is_given_up_and_named() {
    let store = Store::start();
    store.put("/hang.wasm", Route::Hang);
    store.put("/endless.wasm", Route::Endless);
    store.put("/broken.wasm", Route::Status(500));
    store.put("/v2/a/hang/manifests/1", Route::Hang);
    store.put("/v2/a/none/manifests/1", Route::File(b"{\"layers\": []}".to_vec()));
    store.put("/v2/a/what/manifests/1", Route::File(b"<html>".to_vec()));
    let url = |path: &str| store.url(path);
    let image = |name: &str| format!("oci://{}/a/{name}:1", store.address);
    let cases = [
        (url("/hang.wasm"), "cannot be reached"),
        (url("/endless.wasm"), "max_mib"),
        (url("/broken.wasm"), "status 500"),
        (url("/gone.wasm"), "status 404"),
        (image("hang"), "cannot be reached"),
        (image("none"), "no layer of application/wasm"),
        (image("what"), "no image manifest"),
    ];
    for (source, word) in cases {
        refused(&(plain(&store) + &mask_from(&source, "")), &["line 6, column 1", &source, word]);
    }
}

#[test]
fn other_bytes_than_the_digest_says_are_refused() {
    let (home, store) = (tempfile::tempdir().expect("a folder"), Store::start());
    let wanted = format!("digest = '{}'", digest(&filter(2)));
    store.put("/x.wasm", Route::File(filter(1)));
    let found = digest(&filter(1));
    refused(&(plain(&store) + &mask_from(&store.url("/x.wasm"), &wanted)), &[&found, "was wanted"]);
    let folder = folder(home.path(), "mask", World::OutputFilter, &filter(1));
    refused(&mask_from(folder.to_str().expect("UTF-8"), &wanted), &[&found, "`digest` says"]);
    store.push("a/b", "1", &filter(1), None);
    store.put(&format!("/v2/a/b/blobs/{found}"), Route::File(filter(2)));
    let image = format!("oci://{}/a/b:1", store.address);
    refused(&(plain(&store) + &mask_from(&image, "")), &["other bytes than it says"]);
    let other = format!("oci://{}/a/b@{}", store.address, digest(b"other"));
    store.put(&format!("/v2/a/b/manifests/{}", digest(b"other")), Route::File(b"{}".to_vec()));
    refused(&(plain(&store) + &mask_from(&other, "")), &["other bytes than it says"]);
}

#[test]
fn the_unsigned_and_the_wrongly_signed_are_refused_wherever_they_come_from() {
    let (home, store, signer) = (tempfile::tempdir().expect("a folder"), Store::start(), Signer::new());
    let keys = |required: bool| {
        format!("{}public_keys = ['{}']\nrequire_signature = {required}\n", plain(&store), signer.public())
    };
    let from = |source: &str, required| keys(required) + &mask_from(source, "");
    let folder = folder(home.path(), "mask", World::OutputFilter, &filter(1));
    let path = folder.to_str().expect("UTF-8");
    store.put("/x.wasm", Route::File(filter(1)));
    store.push("a/b", "1", &filter(1), None);
    let (url, image) = (store.url("/x.wasm"), format!("oci://{}/a/b:1", store.address));
    let dir = home.path().to_str().expect("UTF-8");
    let all = [path, &url, &image];
    for source in all {
        refused(&from(source, true), &[source, "no signature", "minisign"]);
    }
    refused(&format!("policies = '{dir}'\n{}", keys(true)), &["mask", "no signature"]);

    let wrong = [signer.sign(&filter(2)), Signer::new().sign(&filter(1))];
    for signature in &wrong {
        fs::write(folder.join("policy.wasm.minisig"), signature).expect("written");
        store.put("/x.wasm.minisig", Route::File(signature.clone().into_bytes()));
        store.push("a/b", "1", &filter(1), Some(signature));
        for source in all {
            refused(&from(source, false), &[source, "not one of this component by a trusted key"]);
        }
        refused(&format!("policies = '{dir}'\n{}", keys(false)), &["mask", "trusted key"]);
    }

    let right = signer.sign(&filter(1));
    fs::write(folder.join("policy.wasm.minisig"), &right).expect("written");
    store.put("/x.wasm.minisig", Route::File(right.clone().into_bytes()));
    store.push("a/b", "1", &filter(1), Some(&right));
    let state = tempfile::tempdir().expect("a folder");
    for source in all {
        assert_eq!(answer(&start(&from(source, true), state.path())), " <1> <1>", "{source}");
    }
    let rotated = keys(true).replace(&signer.public(), &Signer::new().public());
    store.set_down(true);
    let error = starts_not(&(rotated + &mask_from(&url, "")), state.path());
    assert!(error.contains("cannot be reached"), "what is kept was signed by a key that is gone: {error}");
}

#[test]
fn a_push_is_held_to_its_signature_too() {
    let (home, signer) = (tempfile::tempdir().expect("a folder"), Signer::new());
    let config = format!("[distribution]\npublic_keys = ['{}']\nrequire_signature = true\n", signer.public());
    let host = start(&config, &home.path().join("state"));
    let (component, manifest) = (filter(1), manifest("mask", World::OutputFilter));
    let push = |signature: Option<&str>| {
        let mut parts = vec![("manifest", manifest.as_bytes()), ("component", &component[..])];
        parts.extend(signature.map(|text| ("signature", text.as_bytes())));
        put_parts(&host.admin, "mask", &parts)
    };
    for (signature, code) in [(None, "unsigned"), (Some(signer.sign(b"other")), "bad_signature")] {
        let reply = push(signature.as_deref());
        let error = &reply.json()["error"];
        assert_eq!((reply.status, &error["code"], &error["param"]), (422, &json!(code), &json!("signature")));
    }
    let bytes = host.admin.send("PUT", "/admin/policies/mask", "application/wasm", component.clone());
    assert_eq!(bytes.json()["error"]["code"], "unsigned");
    assert_eq!(generation(&host.admin), 0);
    assert_eq!(accepted(push(Some(&signer.sign(&component))))["generation"], 1);

    let file = home.path().join("mask.wasm");
    fs::write(&file, filter(2)).expect("written");
    let admin = format!("http://{}", host.admin.address);
    let line = ["policy", "push", "mask", "mask.wasm", "--admin", &admin];
    fails(home.path(), &line, 1, &["no signature", "unsigned"]);
    fs::write(home.path().join("mask.wasm.minisig"), signer.sign(&filter(2))).expect("written");
    assert!(prints(home.path(), &line).contains("in force as generation 2"));
    assert_eq!(answer(&host), " <2> <2>");
}
