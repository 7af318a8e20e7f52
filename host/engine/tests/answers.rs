//! What an answer says and how it ends: characters, stop strings and tokens, lengths, log-probabilities.

mod support;

use jackfield_engine::{Finish, Job, Sampling};
use jackfield_tiny::reciter::Reciter;
use support::{engine, engine_of, greedy, job, run, seeded};

const TEXT: &str = "The ferry leaves at nine; 龘é👩‍👩‍👧 the gate closes at ten.";

fn asked(engine: &jackfield_engine::Engine) -> Job {
    let sampling = Sampling { temperature: 0.0, logprobs: Some(1), ..Sampling::default() };
    Job { max_new_tokens: 100, sampling, ..job(engine, "go on\n") }
}

#[tokio::test]
async fn every_character_comes_once_and_whole() {
    let reciter = Reciter::of(TEXT);
    let engine = engine_of(reciter.bytes(), |_| ());
    let reply = run(&engine, asked(&engine)).await;
    assert_eq!((reply.text(), reply.finish()), (TEXT, Finish::Stop));
    assert_eq!(reply.usage.completion_tokens, reciter.pieces.len() + 1);
    assert_eq!(reply.deltas.concat(), TEXT);
    assert!(reply.deltas.iter().all(|delta| !delta.contains('\u{fffd}')), "{:?}", reply.deltas);
    let bytes: Vec<Vec<u8>> = reply.choices[0].tokens.iter().map(|token| token.bytes.clone()).collect();
    assert_eq!(bytes, reciter.pieces);
}

#[tokio::test]
async fn bytes_that_are_no_text_are_shown_as_soon_as_that_is_known() {
    let pieces: [&[u8]; 8] = [b"ok ", b"\xff", b"\xe9\xbe", b"x", b"\xc3", b"(", b"\xf0\x9f", b" end"];
    let engine = engine_of(Reciter::of_pieces(pieces.map(<[u8]>::to_vec).to_vec()).bytes(), |_| ());
    let mut job = asked(&engine);
    job.sampling.logprobs = None;
    let deltas = run(&engine, job).await.deltas;
    assert_eq!(deltas, ["ok ", "\u{fffd}", "\u{fffd}x", "\u{fffd}(", "\u{fffd} end"]);
}

#[tokio::test]
async fn nothing_of_a_stop_string_comes_out() {
    let engine = engine_of(Reciter::of(TEXT).bytes(), |_| ());
    let chars: Vec<char> = TEXT.chars().collect();
    for (start, len) in (0..chars.len()).flat_map(|start| (1..9).map(move |len| (start, len))) {
        let stop: String = chars[start..].iter().take(len).collect();
        let at = TEXT.find(&stop).expect("a part");
        let reply =
            run(&engine, Job { stop: vec![stop.clone(), "never said".into()], ..asked(&engine) }).await;
        assert_eq!((reply.text(), reply.finish()), (&TEXT[..at], Finish::Stop), "{stop:?}");
        let shown: Vec<u8> = reply.choices[0].tokens.iter().flat_map(|token| token.bytes.clone()).collect();
        assert!(TEXT.as_bytes()[..at].starts_with(&shown), "{stop:?} is not in the log-probabilities either");
    }
}

#[tokio::test]
async fn a_stop_token_ends_without_a_word() {
    let engine = engine(|_| ());
    let mut plain = Job { max_new_tokens: 60, ..job(&engine, "hello") };
    plain.sampling = Sampling { logprobs: Some(0), ..seeded(3) };
    let ids = run(&engine, plain.clone()).await.ids();
    let new = |i: &usize| !ids[..*i].contains(&ids[*i]);
    for at in (0..ids.len()).filter(new).take(12) {
        let reply = run(&engine, Job { stop_tokens: vec![ids[at]], ..plain.clone() }).await;
        assert_eq!((reply.finish(), reply.usage.completion_tokens), (Finish::Stop, at + 1));
        assert!(ids[..at].starts_with(&reply.ids()), "{at}: all before it, but for an unfinished character");
        assert!(reply.ids().len() + 4 > at, "{at}");
    }
}

#[tokio::test]
async fn the_models_own_end_counts_unless_it_is_to_be_ignored() {
    let reciter = Reciter::of(TEXT);
    let engine = engine_of(reciter.bytes(), |_| ());
    let mut job = Job { max_new_tokens: reciter.pieces.len() + 5, ..asked(&engine) };
    assert_eq!(run(&engine, job.clone()).await.finish(), Finish::Stop);
    job.sampling.ignore_end = true;
    let on = run(&engine, job).await;
    assert_eq!((on.finish(), on.usage.completion_tokens), (Finish::Length, reciter.pieces.len() + 5));
    assert!(on.text().starts_with(TEXT));
}

#[tokio::test]
async fn reported_log_probabilities_are_a_distribution_of_the_model() {
    let engine = engine(|_| ());
    let ask = |sampling: Sampling| Job {
        sampling: Sampling { logprobs: Some(255), ..sampling },
        ..job(&engine, "hello")
    };
    let greedy_reply = run(&engine, ask(greedy())).await;
    for reply in [&greedy_reply, &run(&engine, ask(seeded(5))).await] {
        assert!(!reply.ids().is_empty());
        for token in &reply.choices[0].tokens {
            assert_eq!(token.top.len(), 255);
            assert!(token.top.windows(2).all(|pair| pair[0].1 >= pair[1].1), "best first");
            let mass: f32 = token.top.iter().map(|(_, logprob)| logprob.exp()).sum();
            assert!((0.5..1.0001).contains(&mass), "{mass}");
            assert!(token.logprob <= 0.0);
            let listed = token.top.iter().find(|(id, _)| *id == token.id);
            assert!(listed.is_none_or(|(_, logprob)| *logprob == token.logprob));
        }
    }
    assert!(
        greedy_reply.choices[0].tokens.iter().all(|token| token.top[0].0 == token.id),
        "greedy takes the best"
    );

    let first = &greedy_reply.choices[0].tokens[0];
    let second_best = first.top[1];
    let bias = vec![(second_best.0, 1000.0)];
    let pushed = run(&engine, ask(Sampling { logit_bias: bias, ..greedy() })).await;
    let token = &pushed.choices[0].tokens[0];
    assert_eq!(
        (token.id, token.logprob),
        second_best,
        "a bias moves the choice and not what the model thought"
    );
    assert_eq!(token.top, first.top);
}
