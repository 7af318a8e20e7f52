use jackfield_dialog::{MemoryLimits, MemoryStore, SessionStore};

use super::*;
use crate::openai::{Message, Role};
use crate::session::{Outcome, Sessions};

/// Vectors by the words of a text: one number for each of some words, and one for all others.
fn by_words(text: &str, _: Duration) -> Result<Embedding, NoVector> {
    const WORDS: [&str; 3] = ["kyoto", "bread", "taxes"];
    if text.contains("unknowable") {
        return Err(NoVector::Failed("busy".into()));
    }
    if !text.is_ascii() {
        return Err(NoVector::Foreign);
    }
    let mut vector: Vec<f32> = WORDS.iter().map(|word| text.matches(word).count() as f32).collect();
    vector.push(0.1);
    Ok(Embedding { vector, model: 1 })
}

fn sessions(recall: RecallBy) -> Sessions {
    let config = SessionConfig { recall, ..SessionConfig::default() };
    let store: Arc<dyn SessionStore> = Arc::new(MemoryStore::new(MemoryLimits::default()));
    let recall = Recall::new(&config, Some(Arc::new(by_words)), NoVectors::default());
    Sessions { store, lines: Arc::default(), config, recall }
}

/// A turn that has begun, with its message taken.
async fn begun(sessions: &Sessions, text: &str) -> OpenSession {
    let mut session = sessions.open("t", "s", 0).await.unwrap();
    session.take(&[Message::plain(Role::User, text)]);
    session
}

async fn done(session: OpenSession, answer: &str) {
    session.commit(Outcome { answer: Some(answer.into()), generation: 1, unix_ms: 5 }).await.unwrap();
}

async fn three_topics(sessions: &Sessions) {
    for said in ["see kyoto", "and when?", "bake bread", "pay taxes"] {
        let answer = if said == "and when?" { "kyoto in spring" } else { "so it is" };
        done(begun(sessions, said).await, answer).await;
    }
}

fn texts(session: &OpenSession) -> Vec<String> {
    session.messages().iter().map(|message| message.text().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_phrase_takes_the_turn_back_and_the_next_ones_go_on_there() {
    let sessions = sessions(RecallBy::Phrases);
    three_topics(&sessions).await;
    let mut back = begun(&sessions, "Back to what we said of kyoto").await;
    let wanted = back.wanted(None).expect("a phrase");
    assert_eq!(back.go_back(&wanted).outcome(), "found");
    assert_eq!(back.note(), "s;turn=5;resumes=2");
    let path = ["see kyoto", "so it is", "and when?", "kyoto in spring", "Back to what we said of kyoto"];
    assert_eq!(texts(&back), path);
    done(back, "kyoto it is").await;
    let next = begun(&sessions, "where do I sleep?").await;
    assert_eq!((next.wanted(None), next.note().as_str()), (None, "s;turn=6"));
    assert_eq!(texts(&next).len(), path.len() + 2);
    done(next, "in kyoto").await;
    let session = begun(&sessions, "x").await.session;
    let turns: Vec<_> = session.segments.iter().map(|segment| segment.turns.as_slice()).collect();
    assert_eq!(turns, [&[1, 2, 5, 6][..], &[3], &[4]]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_runs_already_is_stayed_with_unless_the_request_says_otherwise() {
    let sessions = sessions(RecallBy::Phrases);
    three_topics(&sessions).await;
    let said = "as we said, taxes and taxes, not bread";
    let mut turn = begun(&sessions, said).await;
    let wanted = turn.wanted(None).expect("a phrase");
    assert_eq!(turn.go_back(&wanted), Went::Nowhere);
    assert_eq!(turn.note(), "s;turn=5;resumes=none");
    assert_eq!(texts(&turn).len(), 9, "as usual");
    assert_eq!(turn.wanted(Some(&openai::Recall::Never)), None, "the request decides");
    let wanted = turn.wanted(Some(&openai::Recall::Said)).expect("it says so");
    assert_eq!(turn.go_back(&wanted).outcome(), "found");
    assert_eq!(turn.note(), "s;turn=5;resumes=3");
    let wanted = turn.wanted(Some(&openai::Recall::About("kyoto".into()))).expect("it says so");
    turn.go_back(&wanted);
    assert_eq!(turn.note(), "s;turn=5;resumes=2");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_vector_the_turn_goes_on() {
    let sessions = sessions(RecallBy::Phrases);
    three_topics(&sessions).await;
    let mut turn = begun(&sessions, "back to the unknowable").await;
    let wanted = turn.wanted(None).expect("a phrase");
    assert_eq!(turn.go_back(&wanted), Went::Failed("busy".into()));
    assert_eq!(turn.note(), "s;turn=5;resumes=none");
    done(turn, "yes").await;
    let session = begun(&sessions, "x").await.session;
    assert_eq!(session.segments.last().map(|segment| segment.turns.as_slice()), Some(&[4, 5][..]));
    let config = SessionConfig { recall: RecallBy::Request, ..SessionConfig::default() };
    let recall = Recall::new(&config, None, NoVectors::default()).expect("it is on");
    assert!((recall.embed)("text", Duration::ZERO).is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_not_asked_keeps_no_vectors() {
    let off = sessions(RecallBy::Nobody);
    three_topics(&off).await;
    let mut turn = begun(&off, "back to the bread").await;
    assert!(turn.session.segments.is_empty() && turn.wanted(None).is_none());
    let wanted = turn.wanted(Some(&openai::Recall::Said)).expect("it says so");
    assert_eq!(turn.go_back(&wanted), Went::Off);
    let asked = sessions(RecallBy::Request);
    three_topics(&asked).await;
    let turn = begun(&asked, "back to the bread").await;
    assert!(turn.wanted(None).is_none() && turn.session.segments.len() == 3);
    let mut tool = asked.open("t", "other", 0).await.unwrap();
    tool.take(&[Message { tool_call_id: Some("1".into()), ..Message::plain(Role::Tool, "bread") }]);
    assert_eq!(tool.utterance(), None, "nobody said it");
    assert_eq!(tool.summary("").await, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_answer_is_heard_before_its_end() {
    let sessions = sessions(RecallBy::Request);
    let mut turn = begun(&sessions, "hello").await;
    turn.hear("kyoto");
    assert!(turn.summary.is_none(), "more may come");
    turn.hear(&format!("kyoto {}", "and ".repeat(ANSWER_BYTES)));
    assert!(turn.summary.is_some());
    let heard = turn.summary("bread").await.map(|embedding| embedding.vector);
    assert_eq!(heard, Some(vec![1.0, 0.0, 0.0, 0.2]), "what was heard counts");
}

#[test]
fn phrases_are_found_in_any_case_and_not_in_the_middle_of_words() {
    let phrases = Phrases::new(&SessionConfig::default().recall_phrases).expect("they can be looked for");
    for said in [
        "Let's go BACK TO THE trip.",
        "as we discussed, it is late",
        "回到刚才说的京都旅游",
        "我们之前聊的跑步训练",
        "那前面提到的方法呢",
        "還是說說那個訂單",
    ] {
        assert!(phrases.around(said).is_some(), "{said}");
    }
    for said in ["Texas we said no to", "I sent the parcel back", "现在几点了", "back to them", ""] {
        assert!(phrases.around(said).is_none(), "{said}");
    }
    let own = Phrases::new(&["ZURÜCK zu".into(), "zu".into()]).expect("they can be looked for");
    assert!(own.around("Zurück zu gestern").is_some() && own.around("zuerst").is_none());
}

#[test]
fn what_is_named_stands_behind_the_phrase() {
    let phrases = Phrases::new(&SessionConfig::default().recall_phrases).expect("they can be looked for");
    let around = |said: &str| phrases.around(said).expect("a phrase");
    assert_eq!(around("嗯，回到刚才说的京都，先去哪？"), ("的京都".into(), "嗯， ，先去哪？".into()));
    assert_eq!(around("Back to the trip: when?"), (" trip".into(), " : when?".into()));
    assert_eq!(around("之前说"), (String::new(), " ".into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_model_does_not_know_is_found_by_its_words() {
    let sessions = sessions(RecallBy::Phrases);
    for said in [
        "我打算四月去京都旅游，有什么值得看的寺庙？",
        "我用酸面团烤面包，可是面包总是发不起来，哪里出了错？",
        "在家办公的房租能不能抵扣个人所得税？",
    ] {
        done(begun(&sessions, said).await, "好的。").await;
    }
    let mut text = String::new();
    let mut registry = prometheus_client::registry::Registry::default();
    sessions.recall.as_ref().expect("it is on").no_vectors.register(&mut registry);
    prometheus_client::encoding::text::encode(&mut text, &registry).expect("text");
    assert!(text.contains("session_turns_without_vector_total{why=\"foreign\"} 3"), "{text}");
    let went = |said: &'static str| {
        let sessions = &sessions;
        async move {
            let mut turn = begun(sessions, said).await;
            let wanted = turn.wanted(None).expect("a phrase");
            turn.go_back(&wanted).did()
        }
    };
    assert_eq!(went("回到刚才说的京都旅游，先去哪座寺庙？").await, "back to turn 1, by words: 1.00");
    assert!(went("还是说说面包吧").await.starts_with("back to turn 2"));
    assert!(went("回到刚才说的股票").await.starts_with("nothing"));
    assert!(went("之前说的京都和面包").await.starts_with("nothing"));
}

#[test]
fn a_text_is_cut_between_characters() {
    assert_eq!((head("好的", 4), head("ab", 4), head("", 0)), ("好", "ab", ""));
}
