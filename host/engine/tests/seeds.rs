//! Chance: a draw depends on the seed, the choice and the place, and on nothing else.

mod support;

use std::collections::HashSet;

use jackfield_engine::{Job, Sampling};
use support::{engine, job, read, run, seeded};

#[tokio::test]
async fn a_seed_repeats_in_any_company() {
    let engine = engine(|_| ());
    let ask = |seed| Job { max_new_tokens: 60, sampling: seeded(seed), ..job(&engine, "hello") };
    let alone = run(&engine, ask(7)).await;
    let seeds = [1, 2, 3, 7, 4, 5, 6, 8, 7];
    let tickets = seeds.map(|seed| engine.submit(ask(seed)).unwrap());
    let mut texts = Vec::new();
    for (ticket, seed) in tickets.into_iter().zip(seeds) {
        let reply = read(ticket).await;
        assert_eq!(reply.choices == alone.choices, seed == 7, "seed {seed}");
        texts.push(reply.text().to_owned());
    }
    assert_eq!(texts.iter().collect::<HashSet<_>>().len(), 8, "every seed has its own");
}

#[tokio::test]
async fn without_a_seed_every_answer_is_another() {
    let engine = engine(|_| ());
    let mut texts = HashSet::new();
    for _ in 0..5 {
        let sampling = Sampling { seed: None, ..seeded(0) };
        texts.insert(
            run(&engine, Job { max_new_tokens: 60, sampling, ..job(&engine, "hello") })
                .await
                .text()
                .to_owned(),
        );
    }
    assert_eq!(texts.len(), 5);
}

#[tokio::test]
async fn the_first_of_n_choices_is_the_single_answer_and_the_others_are_others() {
    let engine = engine(|_| ());
    let ask = |n| Job { n, max_new_tokens: 60, sampling: seeded(7), ..job(&engine, "hello") };
    let (one, four, again) =
        (run(&engine, ask(1)).await, run(&engine, ask(4)).await, run(&engine, ask(4)).await);
    assert_eq!(four.choices, again.choices);
    assert_eq!(four.choices[0], one.choices[0]);
    assert_eq!(
        run(&engine, ask(2)).await.choices,
        four.choices[..2],
        "a choice does not depend on how many there are"
    );
    let texts: HashSet<&str> = four.choices.iter().map(|choice| choice.text.as_str()).collect();
    assert_eq!(texts.len(), 4);
    assert_eq!((four.usage.completion_tokens, four.usage.prompt_tokens), (240, one.usage.prompt_tokens));
}

#[tokio::test]
async fn a_choice_may_end_before_the_others() {
    let engine = engine(|_| ());
    let open = Job {
        n: 4,
        max_new_tokens: 60,
        sampling: Sampling { logprobs: Some(0), ..seeded(7) },
        ..job(&engine, "hello")
    };
    let full = run(&engine, open.clone()).await;
    let ids: Vec<Vec<u32>> =
        full.choices.iter().map(|choice| choice.tokens.iter().map(|token| token.id).collect()).collect();
    let of_others = |id: &u32| ids[0].contains(id) || ids[2].contains(id) || ids[3].contains(id);
    let at = ids[1].iter().position(|id| !of_others(id)).expect("a token that only choice 1 has");
    let ended = run(&engine, Job { stop_tokens: vec![ids[1][at]], ..open }).await;
    for i in [0, 2, 3] {
        assert_eq!(ended.choices[i], full.choices[i], "choice {i} goes on");
    }
    assert!(full.choices[1].text.starts_with(&ended.choices[1].text));
    assert_eq!(ended.usage.completion_tokens, 3 * 60 + at + 1);
}
