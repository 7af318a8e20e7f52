use super::*;
use crate::{PastTurn, StoreError, encoding, store};

/// A vector that points at one of eight topics, and a little elsewhere.
fn about(topic: usize, elsewhere: f32) -> Vec<f32> {
    let mut vector = vec![0.0; 8];
    vector[topic] = 1.0;
    vector[7] = elsewhere;
    vector
}

fn say(session: &mut Session, resumes: Option<u32>, vector: Option<&[f32]>) {
    session.push(PastTurn { resumes, ..PastTurn::default() });
    session.place_last(vector);
}

/// Of each segment, its turns.
fn turns(session: &Session) -> Vec<&[u32]> {
    session.segments.iter().map(|segment| segment.turns.as_slice()).collect()
}

/// A trip, bread, taxes.
fn three_topics() -> Session {
    let mut session = Session::default();
    for topic in [0, 0, 1, 1, 2] {
        say(&mut session, None, Some(&about(topic, 0.3)));
    }
    session
}

#[test]
fn a_segment_begins_where_something_else_is_spoken_of() {
    assert_eq!(turns(&three_topics()), [&[1, 2][..], &[3, 4], &[5]]);
}

#[test]
fn a_turn_without_a_vector_stays_where_it_is() {
    let mut session = Session::default();
    say(&mut session, None, None);
    assert!(session.segments.is_empty(), "nothing is known yet");
    say(&mut session, None, Some(&about(0, 0.3)));
    say(&mut session, None, None);
    say(&mut session, None, Some(&[f32::NAN; 8]));
    assert_eq!(turns(&session), [[2, 3, 4]]);
}

#[test]
fn a_topic_is_found_and_goes_on_where_it_is_resumed() {
    let mut session = three_topics();
    let found = session.recall(&about(0, 0.0), true).expect("the trip");
    assert!(found.turn == 2 && found.likeness > 0.9, "{found:?}");
    // Whatever it says, it was said to belong there.
    say(&mut session, Some(2), Some(&about(5, 0.0)));
    assert_eq!(turns(&session), [&[1, 2, 6][..], &[3, 4], &[5]]);
    assert_eq!(session.recall(&about(1, 0.0), true).map(|found| found.turn), Some(4));
    assert_eq!(session.recall(&about(0, 0.0), true), None, "it runs");
    assert_eq!(session.recall(&about(4, 0.0), true), None, "it was never spoken of");
}

#[test]
fn one_that_returns_without_a_word_goes_on_with_its_segment() {
    let mut session = three_topics();
    say(&mut session, None, Some(&about(0, 0.2)));
    assert_eq!(turns(&session), [&[1, 2, 6][..], &[3, 4], &[5]]);
}

#[test]
fn who_says_that_it_is_another_one_does_not_stay() {
    let mut session = three_topics();
    let both = [0.4, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0];
    assert_eq!(session.recall(&both, true), None);
    assert_eq!(session.recall(&both, false).map(|found| found.turn), Some(2));
    say(&mut session, None, Some(&about(2, 0.3)));
    assert_eq!(Session::default().recall(&both, false), None);
}

#[test]
fn a_branch_keeps_the_segments_of_the_turns_it_shares() {
    let mut session = three_topics();
    say(&mut session, Some(2), None);
    let at = |turn| session.branch("s", turn, 1).expect("has so many turns");
    assert_eq!(turns(&at(6)), turns(&session));
    assert_eq!(turns(&at(3)), [&[1, 2][..], &[3]]);
    assert_eq!(turns(&at(1)), [[1]]);
    assert!(at(0).segments.is_empty());
    assert_eq!(at(5).recall(&about(0, 0.0), true).map(|found| found.turn), Some(2));
}

#[test]
fn the_one_longest_not_spoken_of_is_forgotten() {
    let mut session = Session::default();
    let width = MOST_SEGMENTS + 3;
    let about = |topic: usize| {
        let mut vector = vec![0.0; width];
        vector[topic] = 1.0;
        vector
    };
    for topic in 0..MOST_SEGMENTS {
        say(&mut session, None, Some(&about(topic)));
    }
    say(&mut session, Some(1), None);
    for topic in MOST_SEGMENTS..width {
        say(&mut session, None, Some(&about(topic)));
    }
    assert_eq!(session.segments.len(), MOST_SEGMENTS);
    assert!(session.recall(&about(0), false).is_some(), "it was resumed");
    assert!((1..4).all(|topic| session.recall(&about(topic), false).is_none()));
    assert!(session.recall(&about(4), false).is_some());
}

#[test]
fn a_vector_of_another_model_is_like_nothing() {
    let mut session = three_topics();
    assert_eq!(session.recall(&[1.0; 384], false), None);
    say(&mut session, Some(2), Some(&[1.0; 384]));
    assert_eq!(turns(&session)[0], [1, 2, 6]);
    assert!(session.recall(&about(1, 0.0), false).is_some());
    say(&mut session, None, Some(&[1.0; 384]));
    assert_eq!(turns(&session).len(), 4);
}

#[test]
fn what_a_late_turn_adds_is_not_lost() {
    let wave = |phase: f32| (0..384).map(|at| (at as f32 * 0.37 + phase).sin()).collect::<Vec<f32>>();
    let mut sum = Vector::of(&unit(&wave(0.0)).expect("a length"));
    let mut exact = unit(&wave(0.0)).expect("a length");
    for step in 1..200 {
        let next = unit(&wave(step as f32 * 0.01)).expect("a length");
        sum.add(&next);
        exact.iter_mut().zip(&next).for_each(|(sum, next)| *sum += next);
    }
    let exact = unit(&exact).expect("a length");
    assert!(sum.likeness(&exact) > 0.9999, "{}", sum.likeness(&exact));
}

#[test]
fn segments_are_kept_and_count_for_the_size() {
    let session = three_topics();
    let mut bytes = Vec::new();
    encoding::encode(&session, &mut bytes).expect("plain data");
    assert_eq!(encoding::decode(&bytes), Ok(session.clone()));
    let json = serde_json::to_string(&session).expect("plain data");
    assert_eq!(serde_json::from_str::<Session>(&json).expect("its own"), session);
    let without = Session { segments: vec![], ..session.clone() };
    let more = session.size_bytes() - without.size_bytes();
    assert!((3 * (16 + size_of::<Segment>())..1000).contains(&more), "{more}");
    let refused = store::check_size(&session, without.size_bytes());
    assert!(matches!(refused, Err(StoreError::TooLarge { .. })), "{refused:?}");
}

#[test]
fn what_was_stored_before_there_were_segments_is_read() {
    // As a session without segments and a turn without `resumes` are still written.
    let mut session = Session::default();
    say(&mut session, None, None);
    let mut bytes = Vec::new();
    encoding::encode(&session, &mut bytes).expect("plain data");
    let has = |name: &[u8]| bytes.windows(name.len()).any(|part| part == name);
    assert!(!has(b"segments") && !has(b"resumes") && has(b"unix-ms"));
    assert_eq!(encoding::decode(&bytes), Ok(session));
}

#[test]
fn what_a_store_gives_back_may_be_anything() {
    let nothing = Segment::default();
    let odd = Segment { turns: vec![9, 2], sum: Vector { scale: f32::NAN, steps: vec![128; 17] } };
    let mut session = Session { segments: vec![nothing, odd], ..Session::default() };
    say(&mut session, Some(7), Some(&about(0, 0.0)));
    say(&mut session, None, None);
    let _ = session.recall(&about(0, 0.0), false);
    assert_eq!(session.branch("s", 1, 1).map(|branch| branch.segments.len()), Some(1));
}
