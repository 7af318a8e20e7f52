//! Prompts of which only the logits are wanted.

use expect_test::expect;

use crate::trace::check;

#[test]
fn every_row_is_scored_and_no_block_is_shared() {
    check(
        "config step=6
         add a prompt=sys:8 max=1
         run
         add b prompt=sys:8+b:2 score=true
         step x2
         cached b
         stats",
        expect![[r#"
            a is s0
            step 2: s0 finished length after 1
            step 2: r0 done prompt=8 completion=1 cached=0
            b is s1
            step 3: 6 tokens
              s1 0+6 [b2 b3] scored
            step 4: 4 tokens
              s1 6+4 [b2 b3 b4] scored
              = s1 finished scored after 0, r1 done prompt=10 completion=0 cached=0
            b: 8 of 10 tokens held
            used=0 free=32 cached=2 looked_up=18 computed=18 scored=10
        "#]],
    );
}

#[test]
fn live_turns_go_first_and_take_its_blocks() {
    check(
        "config block=4 blocks=4 step=6
         add a prompt=10 score=true
         step
         add b prompt=9 max=2 prio=255
         run
         stats",
        expect![[r#"
            a is s0
            step 1: 6 tokens
              s0 0+6 [b0 b1] scored
            b is s1
            step 2: s0 preempted
            step 4: s1 finished length after 2
            step 4: r1 done prompt=9 completion=2 cached=0
            step 6: s0 finished scored after 0
            step 6: r0 done prompt=10 completion=0 cached=0
            used=0 free=4 cached=1 looked_up=29 computed=26 scored=16 recomputed=6 preemptions=1 evicted=2
        "#]],
    );
}

#[test]
fn several_share_what_is_left_of_a_step() {
    check(
        "config step=8 cache=off
         add a prompt=3 max=9
         step
         add b prompt=2 score=true
         add c prompt=4 score=true
         add d prompt=5 score=true
         add e prompt=3 max=1
         step x3",
        expect![[r#"
            a is s0
            step 1: 3 tokens
              s0 0+3 [b0] > s0
              = s0 token 906
            b is s1
            c is s2
            d is s3
            e is s4
            step 2: 8 tokens
              s0 3+1 [b0] > s0
              s4 0+3 [b1] > s4
              s1 0+2 [b2] scored
              s2 0+2 [b3] scored
              = s0 token 181, s4 token 227, s4 finished length after 1, r4 done prompt=3 completion=1 cached=0, s1 finished scored after 0, r1 done prompt=2 completion=0 cached=0
            step 3: 8 tokens
              s0 4+1 [b0 b2] > s0
              s2 2+2 [b3] scored
              s3 0+5 [b1 b4] scored
              = s0 token 908, s2 finished scored after 0, r2 done prompt=4 completion=0 cached=0, s3 finished scored after 0, r3 done prompt=5 completion=0 cached=0
            step 4: 1 tokens
              s0 5+1 [b0 b2] > s0
              = s0 token 565
        "#]],
    );
}

#[test]
fn a_short_prompt_passes_a_score_and_a_score_passes_nobody() {
    check(
        "config step=8
         add a prompt=12 score=true
         during add b prompt=3 max=1; add c prompt=2 score=true; pass; pass
         run",
        expect![[r#"
            a is s0
            b is s1
            c is s2
            step 2: 3 tokens
              s1 0+3 [b3] > s1
              = s1 token 319, s1 finished length after 1, r1 done prompt=3 completion=1 cached=0
            nobody passes
            step 1: 8 tokens
              s0 0+8 [b0 b1] scored
            step 3: s0 finished scored after 0
            step 3: r0 done prompt=12 completion=0 cached=0
            step 3: s2 finished scored after 0
            step 3: r2 done prompt=2 completion=0 cached=0
        "#]],
    );
}

#[test]
fn a_score_has_one_choice() {
    check(
        "config
         add a prompt=3 n=2 score=true",
        expect![[r#"
            a refused: n is 2, at most 1 sequences run at once
        "#]],
    );
}
