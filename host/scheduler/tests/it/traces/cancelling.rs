//! Leaving at every moment.

use expect_test::expect;

use crate::trace::check;

#[test]
fn in_the_queue() {
    check(
        "config running=1
         add a prompt=4 max=2
         add b prompt=4 max=2
         step
         cancel b
         cancel b
         run
         stats",
        expect![[r#"
            a is s0
            b is s1
            step 1: 4 tokens
              s0 0+4 [b0] > s0
              = s0 token 225
            b cancelled, used=1 free=31
            b unknown, used=1 free=31
            step 2: s0 finished length after 2
            step 2: r0 done prompt=4 completion=2 cached=0
            used=0 free=32 cached=2 looked_up=4 computed=5
        "#]],
    );
}

#[test]
fn in_prefill() {
    check(
        "config step=8
         add a prompt=20 max=2
         step
         cancel a
         stats",
        expect![[r#"
            a is s0
            step 1: 8 tokens
              s0 0+8 [b0 b1]
            a cancelled, used=0 free=32
            used=0 free=32 cached=2 looked_up=20 computed=8
        "#]],
    );
}

#[test]
fn in_decode() {
    check(
        "config
         add a prompt=9 max=9
         step x2
         cancel a
         stats",
        expect![[r#"
            a is s0
            step 1: 9 tokens
              s0 0+9 [b0 b1 b2] > s0
              = s0 token 543
            step 2: 1 tokens
              s0 9+1 [b0 b1 b2] > s0
              = s0 token 310
            a cancelled, used=0 free=32
            used=0 free=32 cached=2 looked_up=9 computed=10
        "#]],
    );
}

#[test]
fn while_its_step_runs() {
    check(
        "config
         add a prompt=5 max=3
         add b prompt=5 max=3
         during cancel a
         during cancel b.0
         step
         stats",
        expect![[r#"
            a is s0
            b is s1
            a cancelled, used=2 free=30
            step 1: 10 tokens
              s0 0+5 [b0 b1] > s0
              s1 0+5 [b2 b3] > s1
              = s1 token 847
            b.0 cancelled, used=0 free=32
            step 2: 1 tokens
              s1 5+1 [b2 b3] > s1
              = r1 done prompt=5 completion=1 cached=0
            step 3: 0 tokens
            used=0 free=32 cached=1 looked_up=10 computed=5
        "#]],
    );
}

#[test]
fn the_first_choice_while_it_computes_the_prompt_of_all() {
    check(
        "config step=8
         add a prompt=12 n=2 max=2
         step
         cancel a.0
         step x2",
        expect![[r#"
            a is s0 s1
            step 1: 8 tokens
              s0 0+8 [b0 b1]
            a.0 cancelled, used=3 free=29
            step 2: 4 tokens
              s1 8+4 [b0 b1 b2] > s1
              = s1 token 114
            step 3: 1 tokens
              s1 12+1 [b0 b1 b2 b3] > s1
              = s1 token 196, s1 finished length after 2, r0 done prompt=12 completion=2 cached=0
        "#]],
    );
}

#[test]
fn the_first_choice_while_the_step_runs_that_all_sample_from() {
    check(
        "config
         add a prompt=6 n=3 max=2
         during cancel a.0
         step",
        expect![[r#"
            a is s0 s1 s2
            a.0 cancelled, used=2 free=30
            step 1: 6 tokens
              s0 0+6 [b0 b1] > s0 s1 s2
              = s1 token 306, s2 token 951
            step 2: 2 tokens, copy b1>b2
              s1 6+1 [b0 b2] > s1
              s2 6+1 [b0 b1] > s2
              = s1 token 525, s1 finished length after 2, s2 token 604, s2 finished length after 2, r0 done prompt=6 completion=4 cached=0
        "#]],
    );
}

#[test]
fn a_choice_that_shares_its_last_block_leaves_the_other_to_write_it() {
    check(
        "config
         add a prompt=6 n=2 max=3
         step
         cancel a.0
         step x2",
        expect![[r#"
            a is s0 s1
            step 1: 6 tokens
              s0 0+6 [b0 b1] > s0 s1
              = s0 token 652, s1 token 306
            a.0 cancelled, used=2 free=30
            step 2: 1 tokens
              s1 6+1 [b0 b1] > s1
              = s1 token 525
            step 3: 1 tokens
              s1 7+1 [b0 b1] > s1
              = s1 token 304, s1 finished length after 3, r0 done prompt=6 completion=4 cached=0
        "#]],
    );
}

#[test]
fn one_choice_after_another_gives_every_block_back_and_counts_what_was_sampled() {
    check(
        "config
         add a prompt=6 n=3 max=9
         step x2
         cancel a.2
         step
         cancel a.0
         cancel a.1
         step
         stats",
        expect![[r#"
            a is s0 s1 s2
            step 1: 6 tokens
              s0 0+6 [b0 b1] > s0 s1 s2
              = s0 token 652, s1 token 306, s2 token 951
            step 2: 3 tokens, copy b1>b2, copy b1>b3
              s0 6+1 [b0 b2] > s0
              s1 6+1 [b0 b3] > s1
              s2 6+1 [b0 b1] > s2
              = s0 token 418, s1 token 525, s2 token 604
            a.2 cancelled, used=3 free=29
            step 3: 2 tokens
              s0 7+1 [b0 b2] > s0
              s1 7+1 [b0 b3] > s1
              = s0 token 136, s1 token 304
            a.0 cancelled, used=2 free=30
            a.1 cancelled, used=0 free=32
            step 4: 0 tokens
              = r0 done prompt=6 completion=8 cached=0
            used=0 free=32 cached=3 looked_up=6 computed=11
        "#]],
    );
}

#[test]
fn a_choice_that_was_preempted() {
    check(
        "config block=2 blocks=6
         add a prompt=3 n=2 max=7
         step x5
         cancel a.1
         run
         stats",
        expect![[r#"
            a is s0 s1
            step 1: 3 tokens
              s0 0+3 [b0 b1] > s0 s1
              = s0 token 906, s1 token 137
            step 2: 2 tokens, copy b1>b2
              s0 3+1 [b0 b2] > s0
              s1 3+1 [b0 b1] > s1
              = s0 token 181, s1 token 354
            step 3: 2 tokens
              s0 4+1 [b0 b2 b3] > s0
              s1 4+1 [b0 b1 b4] > s1
              = s0 token 908, s1 token 543
            step 4: 2 tokens
              s0 5+1 [b0 b2 b3] > s0
              s1 5+1 [b0 b1 b4] > s1
              = s0 token 565, s1 token 897
            step 5: 1 tokens, preempt s1
              s0 6+1 [b0 b2 b3 b5] > s0
              = s0 token 117
            a.1 cancelled, used=4 free=2
            step 7: s0 finished length after 7
            step 7: r0 done prompt=3 completion=11 cached=0
            used=0 free=6 cached=6 looked_up=3 computed=12 preemptions=1 evicted=1
        "#]],
    );
}

#[test]
fn the_last_choice_of_a_request_still_tells_what_was_used() {
    check(
        "config
         add a prompt=6 n=2 max=2
         step
         during cancel a.0
         step
         add b prompt=4 max=2
         cancel b.0
         step
         cancel b",
        expect![[r#"
            a is s0 s1
            step 1: 6 tokens
              s0 0+6 [b0 b1] > s0 s1
              = s0 token 652, s1 token 306
            a.0 cancelled, used=2 free=30
            step 2: 2 tokens, copy b1>b2
              s0 6+1 [b0 b2] > s0
              s1 6+1 [b0 b1] > s1
              = s1 token 525, s1 finished length after 2, r0 done prompt=6 completion=3 cached=0
            step 3: 0 tokens
            b is s2
            b.0 cancelled, used=0 free=32
            step 4: 0 tokens
              = r1 done prompt=4 completion=0 cached=0
            b unknown, used=0 free=32
        "#]],
    );
}
