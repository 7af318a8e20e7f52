use super::*;
use crate::{Role, Value};

fn slot(name: &str, value: &str, turn: u32) -> Slot {
    Slot {
        name: name.into(),
        value: Value::Text(value.into()),
        source: None,
        confidence: 1.0,
        turn,
        policy: "p@1".into(),
    }
}

fn turn(said: &str, set: Vec<Slot>, cleared: &[&str]) -> PastTurn {
    PastTurn {
        messages: vec![
            Message::plain(Role::User, said),
            Message::plain(Role::Assistant, format!("re: {said}")),
        ],
        change: Change {
            set,
            cleared: cleared.iter().map(|name| (*name).to_owned()).collect(),
            ..Change::default()
        },
        generation: 3,
        unix_ms: 7,
        ..PastTurn::default()
    }
}

fn resuming(said: &str, resumes: u32) -> PastTurn {
    PastTurn { resumes: Some(resumes), ..turn(said, vec![], &[]) }
}

/// What the users of some turns said.
fn users(path: &[&PastTurn]) -> Vec<String> {
    path.iter().filter_map(|turn| turn.messages[0].content.clone()).collect()
}

fn three_turns() -> Session {
    let mut session = Session::new(vec![Message::plain(Role::System, "be brief")], 1);
    session.push(turn("one", vec![slot("city", "上海", 1)], &[]));
    session.push(turn("two", vec![slot("city", "北京", 2), slot("count", "2", 2)], &[]));
    session.push(turn("three", vec![], &["count"]));
    session
}

fn known(session: &Session) -> Vec<(&str, &Value)> {
    session.dialog.slots.iter().map(|slot| (slot.name.as_str(), &slot.value)).collect()
}

#[test]
fn a_branch_knows_what_was_known_then_and_no_more() {
    let session = three_turns();
    let cities = ["", "上海", "北京", "北京"];
    for (at, city) in cities.iter().enumerate() {
        let branch = session.branch("s", at as u32, 9).expect("has so many turns");
        let found = branch.dialog.slot("city").map(|slot| &slot.value);
        assert_eq!(found, (at > 0).then(|| Value::Text((*city).into())).as_ref(), "turn {at}");
        assert_eq!(branch.dialog.slot("count").is_some(), at == 2);
        assert_eq!(branch.messages().count(), 1 + 2 * at);
        assert_eq!((branch.dialog.turns, branch.turns.len()), (at as u32, at));
        assert_eq!(branch.parent, Some(Parent { id: "s".into(), turn: at as u32 }));
    }
    assert_eq!(session.branch("s", 4, 9), None);
}

#[test]
fn changes_add_up_to_the_dialog() {
    let before = three_turns().dialog;
    let mut after = before.clone();
    after.state = "done".into();
    after.schema = 2;
    after.clear("city");
    after.set(slot("when", "2026-03", 4));
    let change = Change::between(&before, &after);
    let mut again = before.clone();
    change.apply(&mut again);
    assert_eq!(again, after);
    assert_eq!(Change::between(&after, &after), Change::default());
}

#[test]
fn a_late_turn_is_united_with_what_came_between() {
    let mut session = three_turns();
    // Worked out after the first turn; turns two and three came first.
    let late =
        turn("late", vec![slot("city", "广州", 2), slot("name", "王芳", 2), slot("count", "3", 2)], &[]);
    let conflicts = session.push_late(1, late).to_vec();
    assert_eq!(session.turns[3].conflicts, conflicts);
    assert_eq!(
        known(&session),
        [
            ("city", &Value::Text("广州".into())),
            ("name", &Value::Text("王芳".into())),
            ("count", &Value::Text("3".into()))
        ]
    );
    let told: Vec<_> = conflicts.iter().map(|c| (c.name.as_str(), c.earlier.is_some())).collect();
    assert_eq!(told, [("city", true), ("count", false)]);
    assert_eq!(session.dialog.turns, 4);
}

#[test]
fn turns_that_found_the_same_are_not_in_conflict() {
    let mut session = three_turns();
    assert_eq!(session.push_late(1, turn("late", vec![slot("city", "北京", 2)], &["count"])), []);
    assert_eq!(session.push_late(4, turn("on time", vec![slot("city", "广州", 5)], &[])), []);
}

#[test]
fn a_whole_dialog_sent_again_adds_only_its_end() {
    let session = three_turns();
    let mut sent: Vec<Message> = session.messages().skip(1).cloned().collect();
    assert_eq!(session.beyond_history(&sent), None, "nothing new");
    sent.push(Message::plain(Role::User, "four"));
    assert_eq!(session.beyond_history(&sent), Some(&sent[6..]));
    assert_eq!(session.beyond_history(&sent[6..]), None, "only the new message");
    sent[3] = Message::plain(Role::Assistant, "something else");
    assert_eq!(session.beyond_history(&sent), None);
    assert_eq!(Session::default().beyond_history(&sent), None, "without a history all is new");
}

#[test]
fn a_turn_goes_on_where_it_resumes() {
    let mut session = three_turns();
    assert_eq!(users(&session.path(None)), ["one", "two", "three"]);
    session.push(resuming("back to one", 1));
    session.push(turn("more of one", vec![], &[]));
    assert_eq!(users(&session.path(None)), ["one", "back to one", "more of one"]);
    assert_eq!(users(&session.path(Some(3))), ["one", "two", "three"]);
    session.push(resuming("back to three", 3));
    assert_eq!(users(&session.path(None)), ["one", "two", "three", "back to three"]);
    session.push(resuming("anew", 0));
    assert_eq!(users(&session.path(None)), ["anew"]);
    assert_eq!(session.messages().count(), 1 + 2 * 7, "all of it was said");
    assert_eq!(known(&session), [("city", &Value::Text("北京".into()))], "slots know no paths");
    let branch = session.branch("s", 5, 9).expect("has so many turns");
    assert_eq!(users(&branch.path(None)), ["one", "back to one", "more of one"]);
}

#[test]
fn a_late_turn_follows_the_last_or_what_it_resumes() {
    let mut session = three_turns();
    session.push(resuming("back to one", 1));
    session.push_late(3, turn("late", vec![], &[]));
    assert_eq!(users(&session.path(None)), ["one", "back to one", "late"]);
    session.push_late(3, resuming("late too", 2));
    assert_eq!(users(&session.path(None)), ["one", "two", "late too"]);
}

#[test]
fn clients_that_keep_the_dialog_may_send_all_or_what_is_in_force() {
    let mut session = three_turns();
    session.push(resuming("back to one", 1));
    let new = Message::plain(Role::User, "next");
    let all: Vec<Message> = session.messages().skip(1).chain([&new]).cloned().collect();
    assert_eq!(session.beyond_history(&all), Some(&all[8..]));
    let path = session.path(None);
    let path: Vec<Message> = path.iter().flat_map(|turn| &turn.messages).chain([&new]).cloned().collect();
    assert_eq!(session.beyond_history(&path), Some(&path[4..]));
    assert_eq!(session.beyond_history(&all[2..]), None);
}

proptest::proptest! {
    /// Against a tree that is written down as lists of what is in force.
    #[test]
    fn any_turns_resumed_in_any_order_give_the_path_that_was_meant(
        resumes in proptest::collection::vec(proptest::option::of(0_u32..12), 1..12),
        at in 0_u32..12,
    ) {
        let mut session = Session::new(vec![], 1);
        let mut paths: Vec<Vec<String>> = vec![vec![]];
        for (number, resumes) in (1_u32..).zip(&resumes) {
            let said = number.to_string();
            session.push(PastTurn { resumes: *resumes, ..turn(&said, vec![], &[]) });
            // What cannot be is as if it were not there.
            let from = resumes.filter(|resumes| *resumes < number).unwrap_or(number - 1);
            let path = paths[from as usize].iter().cloned().chain([said]).collect();
            paths.push(path);
        }
        proptest::prop_assert_eq!(&users(&session.path(None)), paths.last().expect("one"));
        if let Some(branch) = session.branch("s", at, 9) {
            proptest::prop_assert_eq!(&users(&branch.path(None)), &paths[at as usize]);
        }
    }
}

#[test]
fn survives_json() {
    let session = three_turns().branch("s", 2, 5).expect("has two turns");
    let json = serde_json::to_string(&session).expect("plain data");
    assert_eq!(serde_json::from_str::<Session>(&json).expect("its own"), session);
}
