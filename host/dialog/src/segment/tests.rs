use super::*;
use crate::{Message, PastTurn, Role, StoreError, encoding, store};

const MODEL: u64 = 7;

fn of(vector: &[f32], model: u64) -> Embedding {
    Embedding { vector: vector.to_vec(), model }
}

fn recalled(session: &Session, vector: &[f32], may_stay: bool) -> Option<Recalled> {
    session.recall(&Sought { embedding: Some(&of(vector, MODEL)), may_stay, ..Sought::default() })
}

/// A vector that points at one of eight topics, and a little elsewhere.
fn about(topic: usize, elsewhere: f32) -> Vec<f32> {
    let mut vector = vec![0.0; 8];
    vector[topic] = 1.0;
    vector[7] = elsewhere;
    vector
}

fn say(session: &mut Session, resumes: Option<u32>, vector: Option<&[f32]>) {
    session.push(PastTurn { resumes, ..PastTurn::default() });
    session.place_last(vector.map(|vector| of(vector, MODEL)).as_ref());
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
    let found = recalled(&session, &about(0, 0.0), true).expect("the trip");
    assert!(found.turn == 2 && found.likeness > 0.9, "{found:?}");
    // Whatever it says, it was said to belong there.
    say(&mut session, Some(2), Some(&about(5, 0.0)));
    assert_eq!(turns(&session), [&[1, 2, 6][..], &[3, 4], &[5]]);
    assert_eq!(recalled(&session, &about(1, 0.0), true).map(|found| found.turn), Some(4));
    assert_eq!(recalled(&session, &about(0, 0.0), true), None, "it runs");
    assert_eq!(recalled(&session, &about(4, 0.0), true), None, "it was never spoken of");
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
    assert_eq!(recalled(&session, &both, true), None);
    assert_eq!(recalled(&session, &both, false).map(|found| found.turn), Some(2));
    say(&mut session, None, Some(&about(2, 0.3)));
    assert_eq!(recalled(&Session::default(), &both, false), None);
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
    assert_eq!(recalled(&at(5), &about(0, 0.0), true).map(|found| found.turn), Some(2));
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
    assert!(recalled(&session, &about(0), false).is_some(), "it was resumed");
    assert!((1..4).all(|topic| recalled(&session, &about(topic), false).is_none()));
    assert!(recalled(&session, &about(4), false).is_some());
}

#[test]
fn a_vector_of_another_model_is_like_nothing() {
    let mut session = three_topics();
    assert_eq!(recalled(&session, &[1.0; 384], false), None);
    say(&mut session, Some(2), Some(&[1.0; 384]));
    assert_eq!(turns(&session)[0], [1, 2, 6]);
    assert!(recalled(&session, &about(1, 0.0), false).is_some());
    say(&mut session, None, Some(&[1.0; 384]));
    assert_eq!(turns(&session).len(), 3, "nothing tells that it is about something else");
}

#[test]
fn what_a_late_turn_adds_is_not_lost() {
    let wave = |phase: f32| (0..384).map(|at| (at as f32 * 0.37 + phase).sin()).collect::<Vec<f32>>();
    let mut sum = Vector::of(&unit(&of(&wave(0.0), MODEL)).expect("a length").vector);
    let mut exact = unit(&of(&wave(0.0), MODEL)).expect("a length").vector;
    for step in 1..200 {
        let next = unit(&of(&wave(step as f32 * 0.01), MODEL)).expect("a length").vector;
        sum.add(&next);
        exact.iter_mut().zip(&next).for_each(|(sum, next)| *sum += next);
    }
    let exact = unit(&of(&exact, MODEL)).expect("a length").vector;
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
    let odd =
        Segment { turns: vec![9, 2], sum: Vector { scale: f32::NAN, steps: vec![128; 17] }, model: MODEL };
    let mut session = Session { segments: vec![nothing, odd], ..Session::default() };
    say(&mut session, Some(7), Some(&about(0, 0.0)));
    say(&mut session, None, None);
    let _ = recalled(&session, &about(0, 0.0), false);
    assert_eq!(session.branch("s", 1, 1).map(|branch| branch.segments.len()), Some(1));
}

/// What was said, question and answer, without vectors.
fn talk(turns: &[(&str, &str)]) -> Session {
    let mut session = Session::default();
    turns.iter().for_each(|(question, answer)| tell(&mut session, None, question, answer));
    session
}

fn tell(session: &mut Session, resumes: Option<u32>, question: &str, answer: &str) {
    let messages = vec![Message::plain(Role::User, question), Message::plain(Role::Assistant, answer)];
    session.push(PastTurn { messages, resumes, ..PastTurn::default() });
    session.place_last(None);
}

fn named(session: &Session, named: &str, beside: &str) -> Option<u32> {
    let found = session.recall(&Sought { named, beside, may_stay: true, ..Sought::default() });
    assert!(found.is_none_or(|found| found.by_words && found.likeness <= 1.0), "{found:?}");
    found.map(|found| found.turn)
}

fn three_chinese_topics() -> Session {
    talk(&[
        ("我打算四月去京都旅游，有什么值得看的寺庙？", "京都的樱花四月盛开，可以去岚山和哲学之道。"),
        ("住几天合适？", "三天就能看完京都主要的寺庙。"),
        ("我用酸面团烤面包，可是面包总是发不起来，哪里出了错？", "酵母可能不够活跃，或者面团温度太低。"),
        ("烤箱要多少度？", "面包先加盖烤到二百四十度。"),
        ("在家办公的房租能不能抵扣个人所得税？", "只用于工作的房间，一部分房租可以抵扣。"),
    ])
}

#[test]
fn chinese_topics_are_told_apart_and_found_by_their_words() {
    let session = three_chinese_topics();
    assert_eq!(turns(&session), [&[1, 2][..], &[3, 4], &[5]]);
    assert_eq!(named(&session, "的京都旅游", "先去哪座寺庙"), Some(2));
    assert_eq!(named(&session, "面包", ""), Some(4));
    assert_eq!(named(&session, "的房租", ""), None, "it runs");
    assert_eq!(named(&session, "的股票", "现在能买吗"), None, "it was never spoken of");
    assert_eq!(named(&session, "的股票", "京都旅游和寺庙"), None, "what is named is something else");
    assert_eq!(named(&session, "京都还有面包", ""), None, "two are meant alike");
    assert_eq!(named(&session, "", ""), None);
    let mut bytes = Vec::new();
    encoding::encode(&session, &mut bytes).expect("plain data");
    let read = encoding::decode(&bytes).expect("its own");
    assert_eq!(named(&read, "面包", ""), Some(4), "from what was said, after a restart");
}

#[test]
fn scripts_mix_and_widths_do_not_matter() {
    let session = talk(&[
        (
            "我的Docker容器一启动就报OOM错误，日志写着exit code 137，什么原因？",
            "内存超过了限制，调大memory参数。",
        ),
        ("护照下个月到期，申请日本签证之前要先换护照吗？", "签证要求护照有效期六个月以上。"),
        ("想买一台NAS放在客厅存照片，四盘位的型号选哪个好？", "群晖DS923比较好用。"),
    ]);
    assert_eq!(turns(&session).len(), 3);
    assert_eq!(named(&session, "的ＤＯＣＫＥＲ", ""), Some(1));
    assert_eq!(named(&session, "错误１３７", ""), Some(1));
    assert_eq!(named(&session, " the docker container", ""), Some(1));
    assert_eq!(named(&session, "签证", "照片有什么要求"), Some(2));
}

#[test]
fn a_segment_that_was_resumed_is_found_where_it_ended() {
    let mut session = three_chinese_topics();
    tell(&mut session, Some(2), "回到京都，先去哪座寺庙？", "清水寺。");
    assert_eq!(turns(&session)[0], [1, 2, 6]);
    tell(&mut session, Some(4), "回到面包，要醒多久？", "一个小时。");
    assert_eq!(named(&session, "京都", ""), Some(6));
}

#[test]
fn vectors_of_two_models_are_not_compared() {
    let mut session = three_topics();
    let other = of(&about(0, 0.0), MODEL + 1);
    let sought = Sought { embedding: Some(&other), ..Sought::default() };
    assert_eq!(session.recall(&sought), None);
    session.push(PastTurn { resumes: Some(2), ..PastTurn::default() });
    session.place_last(Some(&other));
    say(&mut session, Some(4), Some(&about(1, 0.0)));
    assert_eq!(session.segments[0].model, MODEL + 1, "what is asked later is asked of the new one");
    assert_eq!(session.recall(&sought).map(|found| found.turn), Some(6));
    assert_eq!(recalled(&session, &about(0, 0.3), true), None);
}

#[test]
fn of_what_has_no_vector_its_words_speak() {
    let mut session = three_topics();
    tell(&mut session, None, "我打算四月去京都旅游，有什么值得看的寺庙？", "可以去岚山和哲学之道。");
    say(&mut session, Some(5), Some(&about(2, 0.3)));
    let (vector, named) = (of(&about(1, 0.1), MODEL), "京都的寺庙");
    let sought = Sought { embedding: Some(&vector), named, ..Sought::default() };
    assert_eq!(session.recall(&sought).map(|found| (found.turn, found.by_words)), Some((6, true)));
    let sought = Sought { named: "bread", ..sought };
    assert_eq!(session.recall(&sought).map(|found| (found.turn, found.by_words)), Some((4, false)));
}
