//! The prefix cache: it hits within a trust group only, and it changes no text.

mod support;

use jackfield_engine::Job;
use support::{BLOCK, engine, job, kv_bytes, run, seeded, settle};

const LONG: &str =
    "you and the system are in the world; the user is hello and it is that for you; one two three";
const SALTS: [[u8; 32]; 2] = [[1; 32], [2; 32]];

#[tokio::test]
async fn a_prefix_is_found_in_its_own_group_and_in_no_other() {
    let engine = engine(|_| ());
    let ask = |salt| Job { salt, ..job(&engine, LONG) };
    let prompt = ask(SALTS[0]).prompt;
    let whole_blocks = (prompt.len() - 1) / BLOCK * BLOCK;
    assert!(whole_blocks >= 2 * BLOCK);
    let cold = run(&engine, ask(SALTS[0])).await;
    assert_eq!(cold.usage.cached_tokens, 0);
    assert_eq!(engine.cached_prefix(&prompt, &SALTS[0]), whole_blocks);
    assert_eq!(engine.cached_prefix(&prompt, &SALTS[1]), 0);

    let other = run(&engine, ask(SALTS[1])).await;
    assert_eq!(other.usage.cached_tokens, 0, "another group finds nothing");
    let warm = run(&engine, ask(SALTS[0])).await;
    assert_eq!(warm.usage.cached_tokens, whole_blocks, "the same group does");
    assert_eq!((&other.choices, &warm.choices), (&cold.choices, &cold.choices));
    assert_eq!(warm.usage.prompt_tokens, prompt.len());
}

#[tokio::test]
async fn a_prompt_that_parts_early_shares_only_its_beginning() {
    let engine = engine(|_| ());
    let prompt = job(&engine, LONG).prompt;
    run(&engine, job(&engine, LONG)).await;
    for part in [0, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK] {
        let mut other = prompt.clone();
        other[part] = if other[part] == 70 { 71 } else { 70 };
        let found = run(&engine, Job { prompt: other, ..job(&engine, LONG) }).await.usage.cached_tokens;
        assert_eq!(found, part / BLOCK * BLOCK, "changed at {part}");
    }
}

#[tokio::test]
async fn a_dialog_finds_the_last_turn_again() {
    let engine = engine(|_| ());
    // So many that the last one ends a character: a token of one that is begun and not ended is not told.
    let mut first = Job { max_new_tokens: 23, ..job(&engine, LONG) };
    first.sampling.logprobs = Some(0);
    let prompt = first.prompt.clone();
    let reply = run(&engine, first).await;
    let said = reply.ids();
    assert_eq!(said.len(), reply.usage.completion_tokens, "every token is reported");
    // The last token's keys and values were never computed.
    let known = prompt.len() + said.len() - 1;
    let next = [prompt, said, engine.tokenizer().encode(" and then").unwrap()].concat();
    let reply = run(&engine, Job { prompt: next, ..job(&engine, LONG) }).await;
    assert_eq!(reply.usage.cached_tokens, known);
}

#[tokio::test]
async fn the_cache_changes_no_text() {
    let with = engine(|_| ());
    let without = engine(|config| config.prefix_cache = false);
    // Eight blocks: what is cached is thrown out again and again.
    let scarce = engine(|config| config.kv_bytes = kv_bytes(9));
    for round in 0..3 {
        for (i, tail) in ["", " and you", " in the world, that is", " 中文 你好"].iter().enumerate() {
            let ask = || Job {
                prompt: with.tokenizer().encode(&format!("{LONG}{tail}")).unwrap(),
                max_new_tokens: 40,
                sampling: if i % 2 == 0 { support::greedy() } else { seeded(i as u64) },
                ..job(&with, LONG)
            };
            let plain = run(&without, ask()).await;
            let hit = run(&with, ask()).await;
            let scarce = run(&scarce, ask()).await;
            assert_eq!(plain.usage.cached_tokens, 0);
            assert!(hit.usage.cached_tokens > 0 || (round, i) == (0, 0), "{:?}", hit.usage);
            assert_eq!(
                (&hit.choices, &scarce.choices),
                (&plain.choices, &plain.choices),
                "round {round}, {tail:?}"
            );
        }
    }
    assert!(scarce.stats().scheduler.evicted_blocks > 0);
    settle(&with);
    let stats = with.stats().scheduler;
    assert!(stats.cached_blocks > 0 && stats.used_blocks == 0, "what is cached is free to be taken: {stats}");
}
