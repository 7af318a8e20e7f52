//! What the scheduler does, one trace for each thing it promises.

use expect_test::expect;

use crate::trace::check;

mod adopting;
mod batching;
mod cancelling;
mod forks;
mod memory;
mod passing;
mod prefixes;
mod scoring;

#[test]
fn a_request_from_prompt_to_end() {
    check(
        "config
         add a prompt=10 max=3
         step x4
         stats",
        expect![[r#"
            a is s0
            step 1: 10 tokens
              s0 0+10 [b0 b1 b2] > s0
              = s0 token 850
            step 2: 1 tokens
              s0 10+1 [b0 b1 b2] > s0
              = s0 token 989
            step 3: 1 tokens
              s0 11+1 [b0 b1 b2] > s0
              = s0 token 793, s0 finished length after 3, r0 done prompt=10 completion=3 cached=0
            step 4: 0 tokens
            used=0 free=32 cached=3 looked_up=10 computed=12
        "#]],
    );
}

#[test]
fn the_sampler_stops_a_sequence() {
    check(
        "config
         add a prompt=3 max=9 stop=2
         run
         stats",
        expect![[r#"
            a is s0
            step 2: s0 finished stop after 2
            step 2: r0 done prompt=3 completion=2 cached=0
            used=0 free=32 cached=1 looked_up=3 computed=4
        "#]],
    );
}

#[test]
fn the_context_ends_a_sequence() {
    check(
        "config context=12
         add a prompt=10 max=50
         add b prompt=11 max=50
         run",
        expect![[r#"
            a is s0
            b is s1
            step 2: s0 finished length after 2
            step 2: r0 done prompt=10 completion=2 cached=0
            step 2: s1 finished length after 1
            step 2: r1 done prompt=11 completion=1 cached=0
        "#]],
    );
}

#[test]
fn the_pool_ends_a_sequence_that_outgrows_it() {
    check(
        "config block=4 blocks=3
         add a prompt=10 max=50
         run
         stats",
        expect![[r#"
            a is s0
            step 3: s0 finished length after 3
            step 3: r0 done prompt=10 completion=3 cached=0
            used=0 free=3 cached=3 looked_up=10 computed=12
        "#]],
    );
}

#[test]
fn a_lost_plan_is_made_again() {
    check(
        "config
         add a prompt=6 n=2 max=3
         lose
         step
         lose
         step x2",
        expect![[r#"
            a is s0 s1
            lost: step 1: 6 tokens
              s0 0+6 [b0 b1] > s0 s1
            step 2: 6 tokens
              s0 0+6 [b0 b1] > s0 s1
              = s0 token 652, s1 token 306
            lost: step 3: 2 tokens, copy b1>b2
              s0 6+1 [b0 b2] > s0
              s1 6+1 [b0 b1] > s1
            step 4: 4 tokens
              s1 6+1 [b0 b1] > s1
              s0 4+3 [b0 b2] > s0
              = s1 token 525, s0 token 418
            step 5: 2 tokens
              s0 7+1 [b0 b2] > s0
              s1 7+1 [b0 b1] > s1
              = s0 token 136, s0 finished length after 3, s1 token 304, s1 finished length after 3, r0 done prompt=6 completion=6 cached=0
        "#]],
    );
}

#[test]
fn a_sequence_without_a_sample_tries_again() {
    check(
        "config
         add a prompt=4 n=2 max=2
         mute a.1
         step x2",
        expect![[r#"
            a is s0 s1
            step 1: 4 tokens
              s0 0+4 [b0] > s0 s1
              = s0 token 225
            step 2: 2 tokens, copy b0>b2
              s0 4+1 [b0 b1] > s0
              s1 3+1 [b2] > s1
              = s0 token 131, s0 finished length after 2, s1 token 853
            step 3: 1 tokens
              s1 4+1 [b2 b3] > s1
              = s1 token 873, s1 finished length after 2, r0 done prompt=4 completion=4 cached=0
        "#]],
    );
}
