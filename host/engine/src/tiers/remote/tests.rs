//! Against a server of the test's own: what is found, what is not fit for use, and a server in every bad state.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;

use jackfield_kernels::KvType;
use jackfield_redis::RedisServer;

use super::super::samples::{identity, payload, prefix};
use super::*;

const MINUTE: Duration = Duration::from_secs(60);

fn tier(url: &str) -> RemoteTier {
    RemoteTier { server: url.parse().expect("a server"), ttl: MINUTE, timeout: Duration::from_secs(5) }
}

fn open_as(tier: &RemoteTier, identity: Identity) -> Remote {
    Remote::open(tier, identity).expect("a thread")
}

fn open(server: &RedisServer) -> Remote {
    open_as(&tier(&server.url()), identity(1, KvType::F16))
}

/// A server without persistence, with blocks 1 to 3.
fn filled() -> Option<(RedisServer, Remote)> {
    let server = RedisServer::start_with(&[])?;
    let remote = open(&server);
    (1..=3).for_each(|number| remote.put(&prefix(number), &payload(number), now()));
    assert_eq!((remote.stats().tier.stored, remote.stats().failed_writes), (3, 0));
    Some((server, remote))
}

fn get(remote: &Remote, number: u8) -> Option<Bytes> {
    remote.get(&[prefix(number)], now()).remove(0)
}

fn count(remote: &Remote, reason: Rejection) -> u64 {
    remote.stats().rejected.iter().find(|(its, _)| *its == reason).expect("each is listed").1
}

/// What the server says to a command.
fn raw<T: redis::FromRedisValue>(server: &RedisServer, words: &[&str]) -> T {
    let client = redis::Client::open(server.url()).expect("an address");
    let mut connection = client.get_connection().expect("connects");
    let mut command = cmd(words[0]);
    words[1..].iter().for_each(|word| {
        command.arg(*word);
    });
    command.query(&mut connection).expect("answers")
}

fn ttl_ms(server: &RedisServer, remote: &Remote, number: u8) -> i64 {
    raw(server, &["PTTL", &remote.key(&prefix(number))])
}

fn eventually(what: &str, holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < MINUTE, "{what}");
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn what_one_host_puts_another_finds() {
    let Some((server, one)) = filled() else { return };
    let other = open(&server);
    assert_eq!(
        other.get(&[prefix(3), prefix(9), prefix(1)], now()),
        [Some(payload(3)), None, Some(payload(1))]
    );
    assert!(other.wants(&prefix(9)) && !other.wants(&prefix(3)) && other.wants(&prefix(2)));
    // It is there: this host learns that, and does not send it.
    other.put(&prefix(2), &payload(2), now());
    assert!(!other.wants(&prefix(2)));
    let stats = other.stats();
    assert_eq!((stats.tier.hits, stats.tier.stored, stats.failures, stats.is_up), (2, 0, 0, true));
    drop(one);
    assert_eq!(get(&other, 2), Some(payload(2)));
}

#[test]
fn hosts_with_another_model_or_layout_do_not_meet() {
    let Some((server, remote)) = filled() else { return };
    for other in [identity(2, KvType::F16), identity(1, KvType::Int8)] {
        let other = open_as(&tier(&server.url()), other);
        assert_eq!(other.get(&[prefix(1)], now()), [None]);
        other.put(&prefix(1), &payload(7), now());
        assert_eq!(other.get(&[prefix(1)], now()), [Some(payload(7))]);
        assert!(other.stats().rejected.iter().all(|(_, count)| *count == 0));
    }
    assert_eq!(get(&remote, 1), Some(payload(1)));
    let elsewhere = open_as(&tier(&server.url().replace("/0", "/1")), identity(1, KvType::F16));
    assert_eq!(get(&elsewhere, 1), None, "another database");
}

/// Does something to block 2 on the server: it is a miss, counted by its kind, and gone; the others are as they were.
#[track_caller]
fn spoiled(reason: Rejection, spoil: impl FnOnce(&RedisServer, &str, Vec<u8>)) {
    let Some((server, remote)) = filled() else { return };
    let key = remote.key(&prefix(2));
    let image = raw(&server, &["GET", &key]);
    spoil(&server, &key, image);
    assert_eq!(remote.get(&[1, 2, 3].map(prefix), now()), [Some(payload(1)), None, Some(payload(3))]);
    assert_eq!(count(&remote, reason), 1, "{:?}", remote.stats());
    assert!(!raw::<bool>(&server, &["EXISTS", &key]), "it is removed");
    assert_eq!((get(&remote, 2), count(&remote, reason)), (None, 1), "once");
    assert!(remote.wants(&prefix(2)));
    remote.put(&prefix(2), &payload(2), now());
    assert_eq!(get(&remote, 2), Some(payload(2)), "it can be stored again");
    assert_eq!((remote.stats().failures, remote.stats().is_up), (0, true));
}

fn set(server: &RedisServer, key: &str, bytes: &[u8]) {
    let client = redis::Client::open(server.url()).expect("an address");
    let mut connection = client.get_connection().expect("connects");
    cmd("SET").arg(key).arg(bytes).query::<()>(&mut connection).expect("set");
}

#[test]
fn a_bad_block_is_a_miss() {
    let flip = |at: usize| {
        move |server: &RedisServer, key: &str, mut image: Vec<u8>| {
            image[at] ^= 4;
            set(server, key, &image);
        }
    };
    spoiled(Rejection::Format, flip(0));
    spoiled(Rejection::Model, flip(20));
    spoiled(Rejection::Layout, flip(81));
    spoiled(Rejection::Checksum, flip(160));
    spoiled(Rejection::Length, |server, key, image| set(server, key, &image[..image.len() - 1]));
    spoiled(Rejection::Length, |server, key, image| set(server, key, &[&image[..], b"x"].concat()));
    spoiled(Rejection::Length, |server, key, _| set(server, key, b"x"));
    spoiled(Rejection::Format, |server, key, _| set(server, key, &vec![0; 8 << 20]));
    spoiled(Rejection::Name, |server, key, _| {
        let other: Vec<u8> = raw(server, &["GET", &key.replace(&"02".repeat(32), &"03".repeat(32))]);
        set(server, key, &other);
    });
    // A key of another type.
    spoiled(Rejection::Format, |server, key, _| {
        raw::<()>(server, &["DEL", key]);
        raw::<()>(server, &["RPUSH", key, "x"]);
    });
}

#[test]
fn what_is_cut_short_is_written_anew_by_who_has_it() {
    let Some((server, remote)) = filled() else { return };
    set(&server, &remote.key(&prefix(1)), b"");
    set(&server, &remote.key(&prefix(2)), b"x");
    for number in [1, 2] {
        remote.put(&prefix(number), &payload(number), now());
        assert_eq!(get(&remote, number), Some(payload(number)));
    }
}

#[test]
fn use_lets_a_block_live_longer_and_never_shorter() {
    let Some((server, remote)) = filled() else { return };
    let (minute, hour) = (60_000, 3_600_000);
    assert!((1..=minute).contains(&ttl_ms(&server, &remote, 1)));
    let in_an_hour = Rank(now().0 + 3_600_000_000);
    remote.put(&prefix(4), &payload(4), in_an_hour);
    remote.touch(&[prefix(1), prefix(9)], in_an_hour);
    for number in [1, 4] {
        assert!((minute + 1..=hour).contains(&ttl_ms(&server, &remote, number)), "block {number}");
        remote.touch(&[prefix(number)], now());
        remote.put(&prefix(number), &payload(number), now());
        get(&remote, number);
        assert!(ttl_ms(&server, &remote, number) > minute, "block {number}");
    }
    // Who reads a block keeps it.
    let brief = 5_000;
    raw::<()>(&server, &["PEXPIRE", &remote.key(&prefix(2)), &brief.to_string()]);
    get(&remote, 2);
    assert!(ttl_ms(&server, &remote, 2) > brief);
    // And nothing lives for ever.
    raw::<()>(&server, &["PERSIST", &remote.key(&prefix(3))]);
    get(&remote, 3);
    remote.put(&prefix(5), &payload(5), Rank(u64::MAX));
    assert!((1..=5).all(|number| ttl_ms(&server, &remote, number) > 0));
}

#[test]
fn a_block_that_has_expired_is_a_miss_and_wanted_again() {
    let Some(server) = RedisServer::start_with(&[]) else { return };
    let brief = RemoteTier { ttl: Duration::from_millis(20), ..tier(&server.url()) };
    let remote = open_as(&brief, identity(1, KvType::F16));
    remote.put(&prefix(1), &payload(1), now());
    eventually("it expires", || raw::<i64>(&server, &["DBSIZE"]) == 0);
    eventually("it is known to have", || remote.wants(&prefix(1)));
    assert_eq!(get(&remote, 1), None);
    assert!(remote.stats().rejected.iter().all(|(_, count)| *count == 0));
}

#[test]
fn what_the_server_gave_up_is_found_out_by_touching_it() {
    let Some((server, remote)) = filled() else { return };
    raw::<()>(&server, &["DEL", &remote.key(&prefix(1))]);
    assert!(!remote.wants(&prefix(1)), "so it thinks");
    remote.touch(&[prefix(1), prefix(2)], now());
    assert!(remote.wants(&prefix(1)) && !remote.wants(&prefix(2)));
}

#[test]
fn a_server_that_was_killed_is_missed_and_comes_back() {
    let Some((mut server, remote)) = filled() else { return };
    server.kill();
    assert_eq!(get(&remote, 1), None);
    assert!(!remote.stats().is_up && remote.stats().failures >= 1);
    assert!(!remote.may_have(&prefix(1)) && !remote.wants(&prefix(9)));
    remote.put(&prefix(9), &payload(9), now());
    assert_eq!((get(&remote, 1), remote.stats().failed_writes), (None, 1));
    server.run();
    eventually("it is found again", || remote.may_have(&prefix(1)));
    assert_eq!(get(&remote, 1), None, "it kept nothing");
    assert!(remote.wants(&prefix(1)), "what it had is not taken for granted");
    remote.put(&prefix(1), &payload(1), now());
    assert_eq!(get(&remote, 1), Some(payload(1)));
}

#[test]
fn a_server_that_is_not_there_at_the_start_is_found_later() {
    let Some(mut server) = RedisServer::start_with(&[]) else { return };
    server.kill();
    let remote = open(&server);
    assert_eq!((remote.may_have(&prefix(1)), get(&remote, 1)), (false, None));
    server.run();
    eventually("it is found", || remote.wants(&prefix(1)));
    remote.put(&prefix(1), &payload(1), now());
    assert_eq!(get(&remote, 1), Some(payload(1)));
}

#[test]
fn nobody_waits_for_a_server_that_is_stopped() {
    let Some((server, _)) = filled() else { return };
    let tier = RemoteTier { timeout: Duration::from_secs(1), ..tier(&server.url()) };
    let remote = open_as(&tier, identity(1, KvType::F16));
    assert_eq!(get(&remote, 1), Some(payload(1)));
    server.signal("STOP");
    // All of this ends although the server does not move.
    thread::scope(|scope| {
        for number in 0..8 {
            let remote = &remote;
            scope.spawn(move || {
                assert_eq!(remote.get(&[1, 2, 3].map(prefix), now()), [None, None, None]);
                remote.put(&prefix(50 + number), &payload(1), now());
            });
        }
    });
    let stats = remote.stats();
    assert!(!stats.is_up && stats.failures >= 1 && stats.failed_writes == 8, "{stats:?}");
    server.signal("CONT");
    eventually("it is found again", || remote.may_have(&prefix(1)));
    assert_eq!(get(&remote, 1), Some(payload(1)));
}

#[test]
fn a_connection_that_the_server_closed_is_no_failure() {
    let Some((server, remote)) = filled() else { return };
    raw::<()>(&server, &["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
    assert_eq!(get(&remote, 1), Some(payload(1)));
    assert_eq!(remote.stats().failures, 0);
}

/// In a state in which the server refuses writes: reading goes on, the refusal is counted, and it ends with the state.
fn refusing(begin: &[&str], end: &[&str]) {
    let Some((server, remote)) = filled() else { return };
    raw::<()>(&server, begin);
    remote.put(&prefix(4), &payload(4), now());
    assert_eq!(remote.stats().failed_writes, 1);
    assert_eq!(remote.get(&[1, 4].map(prefix), now()), [Some(payload(1)), None]);
    assert_eq!((remote.stats().failures, remote.stats().is_up), (0, true));
    raw::<()>(&server, end);
    eventually("it is tried again", || remote.wants(&prefix(4)));
    remote.put(&prefix(4), &payload(4), now());
    assert_eq!(get(&remote, 4), Some(payload(4)));
}

#[test]
fn a_full_server_is_read_from() {
    refusing(&["CONFIG", "SET", "maxmemory", "1"], &["CONFIG", "SET", "maxmemory", "0"]);
}

#[test]
fn a_server_that_is_read_only_is_read_from() {
    refusing(&["REPLICAOF", "127.0.0.1", "1"], &["REPLICAOF", "NO", "ONE"]);
}

#[test]
fn a_small_server_has_what_was_used_last() {
    let Some((server, remote)) = filled() else { return };
    raw::<()>(&server, &["CONFIG", "SET", "maxmemory-policy", "volatile-lru"]);
    let used: String = raw(&server, &["INFO", "memory"]);
    let used = used.lines().find_map(|line| line.strip_prefix("used_memory:")).expect("it says");
    let most = used.parse::<usize>().expect("a number") + (1 << 20);
    raw::<()>(&server, &["CONFIG", "SET", "maxmemory", &most.to_string()]);
    let number = |number: u32| {
        let mut bytes = [0; 32];
        bytes[..4].copy_from_slice(&number.to_le_bytes());
        BlockHash::from_bytes(bytes)
    };
    (0..4000).for_each(|at| remote.put(&number(at), &payload(7), now()));
    assert_eq!(remote.stats().failed_writes, 0);
    assert!(raw::<i64>(&server, &["DBSIZE"]) < 4000);
    assert_eq!(remote.get(&[number(3999)], now()), [Some(payload(7))]);
}

#[test]
fn a_password_is_needed_and_enough() {
    let Some(server) = RedisServer::start_with(&["--requirepass", "open sesame"]) else { return };
    let at = |user: &str| tier(&format!("redis://{user}{}/0", server.address()));
    for user in ["", ":wrong@", "nobody:open%20sesame@"] {
        let remote = open_as(&at(user), identity(1, KvType::F16));
        assert!(!remote.stats().is_up && remote.stats().failures >= 1, "{user}");
        assert_eq!((get(&remote, 1), remote.wants(&prefix(1))), (None, false));
    }
    for user in [":open%20sesame@", "default:open%20sesame@"] {
        let remote = open_as(&at(user), identity(1, KvType::F16));
        remote.put(&prefix(1), &payload(1), now());
        assert_eq!(get(&remote, 1), Some(payload(1)));
    }
}

/// Something on a port that says this to every connection, and then a little now and then, for ever.
fn impostor(greeting: &'static [u8], drip: &'static [u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("redis://{}", listener.local_addr().expect("an address"));
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            thread::spawn(move || {
                let _ = stream.read(&mut [0; 1 << 16]);
                let _ = stream.write_all(greeting);
                let _ = stream.read(&mut [0; 1 << 16]);
                while stream.write_all(drip).is_ok() {
                    thread::sleep(Duration::from_millis(2));
                }
            });
        }
    });
    url
}

#[test]
fn a_server_that_answers_slowly_or_nonsense_is_a_miss() {
    let cases: [(&[u8], &[u8]); 6] = [
        (b":0\r\n", b"$1000000\r\n"),
        (b":0\r\n", b"x"),
        (b":0\r\n", b"+"),
        (b":0\r\n", &[b'$'; 4096]),
        (b":0\r\n", b"*-7\r\n"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", b" "),
    ];
    for (greeting, drip) in cases {
        let url = impostor(greeting, drip);
        let tier = RemoteTier { timeout: Duration::from_millis(100), ..tier(&url) };
        let remote = open_as(&tier, identity(1, KvType::F16));
        assert_eq!(remote.get(&[1, 2].map(prefix), now()), [None, None]);
        remote.put(&prefix(1), &payload(1), now());
        assert_eq!(remote.stats().failed_writes, 1, "{}", String::from_utf8_lossy(drip));
    }
}
