//! A process that commits counters until it is killed, and what must be true after that.

use std::{
    collections::HashMap,
    env,
    io::{BufRead, BufReader, Write},
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use jackfield_dialog::{Message, Role, Session, SessionKey, SessionStore, Version};

use super::{held, key};

const IDS: [&str; 3] = ["a", "b", "c"];
/// Its own store's address, in the environment of the process that counts.
pub(crate) const WHERE: &str = "JACKFIELD_TEST_COUNT_IN";

/// About 10 KB, all of which say the same number.
fn counted(number: u32) -> Session {
    let mut session = Session::new(vec![Message::plain(Role::System, format!("{number} ").repeat(1500))], 1);
    session.dialog.turns = number;
    session.dialog.state = number.to_string();
    session
}

/// Counts on, and says each acknowledged commit on a line, for ever.
pub(crate) async fn count_on(store: &dyn SessionStore) {
    loop {
        for id in IDS {
            let (session, version) = held(store, &key(id)).await;
            let number = session.dialog.turns + 1;
            let version = store.commit(&key(id), version, counted(number)).await.expect("commits");
            let mut out = std::io::stdout().lock();
            writeln!(out, "\nacknowledged {id} {number} {}", version.0).expect("the test reads");
            out.flush().expect("the test reads");
        }
    }
}

/// Starts `test`, an ignored one of the running file that calls [`count_on`].
pub(crate) fn start(test: &str, place: &str) -> Child {
    let mut command = Command::new(env::current_exe().expect("this file"));
    command.args(["--exact", test, "--ignored", "--nocapture"]).env(WHERE, place);
    command.stdout(Stdio::piped()).spawn().expect("starts")
}

/// What was acknowledged before the process was killed.
#[derive(Default)]
pub(crate) struct Acknowledged {
    last: HashMap<String, (u32, Version)>,
    highest: Version,
}

impl Acknowledged {
    /// Kills it after a while, or as soon as it has said something when `after_first`, and takes in what it had said.
    pub(crate) fn kill(&mut self, mut counting: Child, wait: Duration, after_first: bool) {
        let mut lines = BufReader::new(counting.stdout.take().expect("piped")).split(b'\n');
        if after_first {
            let first = lines.find_map(|line| parse(&line.expect("reads")));
            self.add(first.expect("it counts"));
        }
        let killer = thread::spawn(move || {
            thread::sleep(wait);
            counting.kill().expect("still there");
            counting.wait().expect("ended");
        });
        for line in lines {
            if let Some(line) = parse(&line.expect("reads")) {
                self.add(line);
            }
        }
        killer.join().expect("killed");
    }

    fn add(&mut self, (id, number, version): (String, u32, Version)) {
        assert!(version > self.highest, "version {version:?} came after {:?}", self.highest);
        self.highest = version;
        self.last.insert(id, (number, version));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.last.is_empty()
    }

    /// Each session is as it was acknowledged, or as the next commit made it; and whole.
    pub(crate) async fn check(&mut self, store: &dyn SessionStore) {
        for id in IDS {
            let (session, version) = held(store, &key(id)).await;
            let number = session.dialog.turns;
            let (least, known) = self.last.get(id).copied().unwrap_or_default();
            assert!(number == least || number == least + 1, "{id} is at {number}, {least} was acknowledged");
            assert!(number != least || version == known, "{id}: {version:?} is not {known:?}");
            if number > 0 {
                assert_eq!(session, counted(number), "torn");
            }
            self.highest = self.highest.max(version);
            self.last.insert(id.to_owned(), (number, version));
        }
    }
}

/// A whole line; the last one may be cut off.
fn parse(line: &[u8]) -> Option<(String, u32, Version)> {
    let text = std::str::from_utf8(line).ok()?;
    let mut words = text.strip_prefix("acknowledged ")?.split(' ');
    let (id, number, version) = (words.next()?, words.next()?, words.next()?);
    Some((id.to_owned(), number.parse().ok()?, Version(version.parse().ok()?)))
}

/// How often to kill: `few`, or `many` with `JACKFIELD_LONG=1`.
pub(crate) fn rounds(few: u64, many: u64) -> u64 {
    if env::var("JACKFIELD_LONG").is_ok_and(|value| value == "1") { many } else { few }
}

/// Times that look like chance: microseconds below `most`, another for each round.
pub(crate) fn some_micros(round: u64, most: u64) -> Duration {
    let mixed = (round + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    Duration::from_micros((mixed ^ (mixed >> 29)) % most)
}

/// The session keys that are counted.
pub(crate) fn keys() -> impl Iterator<Item = SessionKey> {
    IDS.into_iter().map(key)
}
