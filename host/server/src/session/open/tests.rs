use jackfield_dialog::{MemoryLimits, MemoryStore, Slot, Value, Version};
use serde_json::json;

use super::*;
use crate::openai::Message as Said;
use crate::session::view;

fn sessions_with(limits: MemoryLimits, config: SessionConfig) -> Sessions {
    let clock = Arc::new(|| tokio::time::Instant::now().into_std());
    let store: Arc<dyn SessionStore> = Arc::new(MemoryStore::with_clock(limits, clock));
    Sessions { store, lines: Arc::default(), config, recall: None }
}

fn sessions() -> Sessions {
    sessions_with(MemoryLimits::default(), SessionConfig { waiting_turns: 0, ..SessionConfig::default() })
}

async fn open(sessions: &Sessions, tenant: &str) -> Result<OpenSession, u16> {
    sessions.open(tenant, "s", 0).await.map_err(|error| error.status.as_u16())
}

fn user(text: &str) -> Said {
    Said::plain(openai::Role::User, text)
}

fn said(answer: &str) -> Outcome {
    Outcome { answer: Some(answer.into()), generation: 1, unix_ms: 5 }
}

fn city(name: &str) -> Slot {
    let value = Value::Text(name.into());
    Slot { name: "city".into(), value, source: None, confidence: 1.0, turn: 2, policy: "p@1".into() }
}

fn texts(messages: &[Said]) -> Vec<&str> {
    messages.iter().map(Said::text).collect()
}

#[tokio::test]
async fn one_turn_at_a_time_and_none_half() {
    let sessions = sessions();
    let mut first = open(&sessions, "a").await.unwrap();
    assert_eq!(open(&sessions, "a").await.err(), Some(409));
    assert!(open(&sessions, "b").await.is_ok(), "the same id of another tenant is another session");
    first.dialog.state = "asked".into();
    first.take(&[user("one")]);
    drop(first);
    let mut second = open(&sessions, "a").await.unwrap();
    assert_eq!(second.dialog.state, "", "a turn that was given up leaves nothing");
    second.dialog.state = "asked".into();
    assert_eq!(texts(&second.take(&[user("one")])), ["one"]);
    assert_eq!(second.note(), "s;turn=1");
    second.commit(said("1")).await.unwrap();
    let mut third = open(&sessions, "a").await.unwrap();
    assert_eq!((third.dialog.state.as_str(), third.dialog.turns), ("asked", 1));
    assert_eq!(texts(&third.take(&[user("two")])), ["one", "1", "two"]);
}

#[tokio::test]
async fn instructions_stay_until_others_are_sent() {
    let sessions = sessions();
    let system = |text: &str| Said::plain(openai::Role::System, text);
    let mut first = open(&sessions, "a").await.unwrap();
    first.take(&[system("be brief"), user("one")]);
    first.commit(said("1")).await.unwrap();
    let mut second = open(&sessions, "a").await.unwrap();
    assert_eq!(texts(&second.take(&[user("two")])), ["be brief", "one", "1", "two"]);
    assert_eq!(texts(&second.take(&[system("be long"), user("two")])), ["be long", "one", "1", "two"]);
    second.commit(said("2")).await.unwrap();
    let mut third = open(&sessions, "a").await.unwrap();
    let whole = [system("be long"), user("one"), Said::plain(openai::Role::Assistant, "1"), user("two")];
    let mut sent = whole.to_vec();
    sent.extend([Said::plain(openai::Role::Assistant, "2"), user("three")]);
    let taken = third.take(&sent);
    assert_eq!(texts(&taken), ["be long", "one", "1", "two", "2", "three"], "sent whole, it is not doubled");
    third.commit(said("3")).await.unwrap();
    assert_eq!(open(&sessions, "a").await.unwrap().session.messages().count(), 7);
}

#[tokio::test(start_paused = true)]
async fn a_turn_longer_than_a_session_lives_keeps_it_alive() {
    let ttl = Duration::from_secs(60);
    let sessions = sessions_with(MemoryLimits { ttl, ..MemoryLimits::default() }, SessionConfig::default());
    let mut first = open(&sessions, "a").await.unwrap();
    first.dialog.state = "asked".into();
    first.commit(said("1")).await.unwrap();
    let long = open(&sessions, "a").await.unwrap();
    tokio::time::sleep(ttl * 10).await;
    long.commit(said("2")).await.unwrap();
    tokio::time::sleep(ttl + ttl / 2).await;
    assert_eq!(open(&sessions, "a").await.err(), Some(410), "without a turn it is forgotten, and said to be");
    let renewal = Renewal::start(Arc::clone(&sessions.store), sessions.key("a", "s").unwrap());
    let task = renewal.0.clone();
    drop(renewal);
    tokio::time::sleep(ttl).await;
    assert!(task.is_finished(), "nothing is left of a turn that has ended");
}

#[tokio::test(start_paused = true)]
async fn a_session_that_expired_begins_again_where_that_is_wanted() {
    let limits = MemoryLimits { ttl: Duration::from_secs(60), ..MemoryLimits::default() };
    let config = SessionConfig { on_expired: OnExpired::Restart, ..SessionConfig::default() };
    let sessions = sessions_with(limits, config);
    open(&sessions, "a").await.unwrap().commit(said("1")).await.unwrap();
    tokio::time::sleep(Duration::from_secs(90)).await;
    let again = open(&sessions, "a").await.unwrap();
    assert_eq!(again.note(), "s;turn=1;restarted");
    again.commit(said("1")).await.unwrap();
    assert_eq!(open(&sessions, "a").await.unwrap().note(), "s;turn=2");
}

#[tokio::test]
async fn a_session_deleted_in_between_is_a_conflict() {
    for on_conflict in [OnConflict::Refuse, OnConflict::Merge] {
        let config = SessionConfig { on_conflict, ..SessionConfig::default() };
        let sessions = sessions_with(MemoryLimits::default(), config);
        open(&sessions, "a").await.unwrap().commit(said("1")).await.unwrap();
        let second = open(&sessions, "a").await.unwrap();
        sessions.store.delete(&sessions.key("a", "s").unwrap()).await.unwrap();
        assert_eq!(second.commit(said("2")).await.unwrap_err().status, 409);
    }
}

#[tokio::test]
async fn a_turn_of_another_host_in_between_is_refused_or_united_as_configured() {
    for (on_conflict, united) in [(OnConflict::Refuse, false), (OnConflict::Merge, true)] {
        let config = SessionConfig { on_conflict, ..SessionConfig::default() };
        let here = sessions_with(MemoryLimits::default(), config.clone());
        let there = Sessions { store: Arc::clone(&here.store), lines: Arc::default(), config, recall: None };
        open(&here, "a").await.unwrap().commit(said("1")).await.unwrap();
        let (mut mine, mut theirs) = (open(&here, "a").await.unwrap(), open(&there, "a").await.unwrap());
        theirs.take(&[user("theirs")]);
        theirs.dialog.state = "theirs".into();
        theirs.dialog.set(city("北京"));
        theirs.commit(said("yes")).await.unwrap();
        mine.take(&[user("mine")]);
        mine.dialog.set(city("广州"));
        assert_eq!(mine.commit(said("no")).await.is_ok(), united);
        let after = open(&here, "a").await.unwrap().session;
        let said: Vec<_> = after.messages().filter_map(|message| message.content.as_deref()).collect();
        let all = ["1", "theirs", "yes", "mine", "no"];
        assert_eq!(said, if united { &all[..] } else { &all[..3] });
        assert_eq!(after.dialog.state, "theirs");
        assert_eq!(after.dialog.slot("city"), Some(&city(if united { "广州" } else { "北京" })));
        let shown = view::session(&here.key("a", "s").unwrap(), &after, Version(1), 1);
        let conflicts = shown["conflicts"].as_array().unwrap();
        let values: Vec<_> = conflicts
            .iter()
            .map(|lost| (&lost["turn"], &lost["earlier"]["value"], &lost["later"]["value"]))
            .collect();
        let told = (&json!(3), &json!("北京"), &json!("广州"));
        assert_eq!(values, if united { vec![told] } else { vec![] });
    }
}
