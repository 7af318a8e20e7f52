//! Two hosts and a Redis in network namespaces, of which the network cuts one off.

#![cfg(target_os = "linux")]

mod common;

use std::env;
use std::io::{BufRead, BufReader, Lines, Write};
use std::net::Ipv4Addr;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use common::net::{Link, Net};
use common::{begin, held, key, state};
use jackfield_dialog::{Found, RedisConfig, RedisStore, SessionStore, StoreError, Version};
use jackfield_redis::RedisServer;

/// Where the far host finds the server.
const WHERE: &str = "JACKFIELD_TEST_FAR_HOST_AT";

async fn connect(url: String) -> RedisStore {
    let config = RedisConfig { url, timeout: Duration::from_millis(500), ..RedisConfig::default() };
    let mut last = None;
    for _ in 0..100 {
        match RedisStore::connect(config.clone()).await {
            Ok(store) => return store,
            Err(error) => last = Some(error),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{last:?}");
}

/// What became of something that a host asked of its store.
#[derive(Debug, PartialEq)]
enum Outcome {
    Held(String, Version),
    Committed(Version),
    Conflict,
    Unavailable,
}

async fn load(store: &dyn SessionStore) -> Outcome {
    match store.load(&key("a")).await {
        Ok(Found::Held(session, version)) => Outcome::Held(session.dialog.state, version),
        Err(StoreError::Unavailable(_)) => Outcome::Unavailable,
        other => panic!("{other:?}"),
    }
}

async fn commit(store: &dyn SessionStore, version: Version, text: &str) -> Outcome {
    match store.commit(&key("a"), version, state(text)).await {
        Ok(version) => Outcome::Committed(version),
        Err(StoreError::Conflict { .. }) => Outcome::Conflict,
        Err(StoreError::Unavailable(_)) => Outcome::Unavailable,
        Err(other) => panic!("{other}"),
    }
}

/// A process in the other namespace, which does what it is told line by line.
struct FarHost {
    process: Child,
    orders: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
}

impl FarHost {
    fn start(net: &Net) -> FarHost {
        let [first, rest @ ..] = net.far_away();
        let mut command = Command::new(first);
        command.args(rest).arg(env::current_exe().expect("this file"));
        command.args(["--exact", "the_far_host", "--ignored", "--nocapture"]).env(WHERE, Link::Far.url());
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("starts");
        let orders = process.stdin.take().expect("piped");
        let answers = BufReader::new(process.stdout.take().expect("piped")).lines();
        FarHost { process, orders, answers }
    }

    fn load(&mut self) -> Outcome {
        self.order("load")
    }

    fn commit(&mut self, version: Version, text: &str) -> Outcome {
        self.order(&format!("commit {} {text}", version.0))
    }

    fn order(&mut self, order: &str) -> Outcome {
        writeln!(self.orders, "{order}").expect("it reads");
        let mut answers = self.answers.by_ref().map(|line| line.expect("it answers"));
        let answer = answers.find_map(|line| line.strip_prefix("answer ").map(str::to_owned));
        let answer = answer.expect("it answers");
        let words: Vec<&str> = answer.split(' ').collect();
        let version = |text: &str| Version(text.parse().expect("a version"));
        match words[..] {
            ["held", text, at] => Outcome::Held(text.to_owned(), version(at)),
            ["committed", at] => Outcome::Committed(version(at)),
            ["conflict"] => Outcome::Conflict,
            ["unavailable"] => Outcome::Unavailable,
            _ => panic!("{answer}"),
        }
    }
}

impl Drop for FarHost {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[tokio::test]
#[ignore = "what the test below runs in another namespace"]
async fn the_far_host() {
    let Ok(url) = env::var(WHERE) else { return };
    let store = connect(url).await;
    for order in std::io::stdin().lines() {
        let order = order.expect("an order");
        let outcome = match order.split(' ').collect::<Vec<_>>()[..] {
            ["load"] => load(&store).await,
            ["commit", version, text] => {
                commit(&store, Version(version.parse().expect("a version")), text).await
            }
            _ => panic!("{order}"),
        };
        let answer = match outcome {
            Outcome::Held(text, version) => format!("held {text} {}", version.0),
            Outcome::Committed(version) => format!("committed {}", version.0),
            Outcome::Conflict => "conflict".to_owned(),
            Outcome::Unavailable => "unavailable".to_owned(),
        };
        println!("\nanswer {answer}");
    }
}

/// Asks until the network lets it through.
async fn until_available(mut ask: impl AsyncFnMut() -> Outcome) -> Outcome {
    for _ in 0..300 {
        match ask().await {
            Outcome::Unavailable => tokio::time::sleep(Duration::from_millis(50)).await,
            outcome => return outcome,
        }
    }
    panic!("it does not come back");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_is_cut_off_fails_and_its_late_commit_is_refused() {
    let Some(net) = Net::make() else { return };
    let args = ["--protected-mode", "no"];
    let anywhere = (Ipv4Addr::UNSPECIFIED, 6379);
    let Some(_server) = RedisServer::start_at(anywhere, &net.at_the_server(), &args) else { return };
    let near = connect(Link::Near.url()).await;
    let mut far = FarHost::start(&net);
    let first = begin(&near, &key("a"), "one").await;
    assert_eq!(far.load(), Outcome::Held("one".into(), first));

    // One is cut off, in the middle of a turn; the other goes on. Each of these answers comes while the link is still cut.
    net.cut(Link::Far);
    assert_eq!(far.commit(first, "lost"), Outcome::Unavailable);
    assert_eq!(far.load(), Outcome::Unavailable);
    assert_eq!(load(&near).await, Outcome::Held("one".into(), first), "nothing of it has come through");
    let Outcome::Committed(second) = commit(&near, first, "two").await else { panic!("near is not cut off") };

    // What it sent comes through late, if at all, and so does what it tries again: both are refused.
    net.mend(Link::Far);
    assert_eq!(until_available(async || far.commit(first, "late")).await, Outcome::Conflict);
    assert_eq!(until_available(async || far.load()).await, Outcome::Held("two".into(), second));
    assert_eq!(held(&near, &key("a")).await, (state("two"), second));

    // Cut off with nobody else committing: what was sent is done wholly or not at all, and all go on by themselves.
    net.cut(Link::Near);
    assert_eq!(commit(&near, second, "three").await, Outcome::Unavailable);
    assert_eq!(far.load(), Outcome::Held("two".into(), second));
    net.mend(Link::Near);
    let found = until_available(async || load(&near).await).await;
    let Outcome::Held(text, version) = found else { panic!("{found:?}") };
    assert!(
        (&*text, version) == ("two", second) || &*text == "three" && version > second,
        "{text} {version:?}"
    );
    let committed = until_available(async || {
        let Outcome::Held(_, version) = load(&near).await else { return Outcome::Unavailable };
        match commit(&near, version, "four").await {
            Outcome::Conflict => Outcome::Unavailable, // with one of its own, which came late
            outcome => outcome,
        }
    });
    let Outcome::Committed(fourth) = committed.await else { panic!("nobody else commits") };
    assert_eq!(far.load(), Outcome::Held("four".into(), fourth));
}
