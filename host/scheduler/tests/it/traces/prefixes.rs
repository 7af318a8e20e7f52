//! Finding what was computed before.

use expect_test::expect;

use crate::trace::check;

#[test]
fn a_known_beginning_is_not_computed_again() {
    check(
        "config
         add a prompt=sys:10+a:3 max=2
         run
         add b prompt=sys:10+b:4 max=1
         cached b
         step
         stats",
        expect![[r#"
            a is s0
            step 2: s0 finished length after 2
            step 2: r0 done prompt=13 completion=2 cached=0
            b is s1
            b: 8 of 14 tokens held
            step 3: 6 tokens
              s1 8+6 [b0 b1 b4 b5] > s1
              = s1 token 794, s1 finished length after 1, r1 done prompt=14 completion=1 cached=8
            used=0 free=32 cached=6 looked_up=27 hit=8 computed=20
        "#]],
    );
}

#[test]
fn a_known_prompt_leaves_its_last_block_to_compute() {
    check(
        "config
         add a prompt=8 max=1
         run
         add b prompt=a:8 max=1
         step",
        expect![[r#"
            a is s0
            step 1: s0 finished length after 1
            step 1: r0 done prompt=8 completion=1 cached=0
            b is s1
            step 2: 4 tokens
              s1 4+4 [b0 b2] > s1
              = s1 token 274, s1 finished length after 1, r1 done prompt=8 completion=1 cached=4
        "#]],
    );
}

#[test]
fn what_was_generated_is_found_in_the_next_turn() {
    check(
        "config
         add a prompt=3 max=7
         run
         add b prompt=@a.0+b:3 max=1
         step
         stats",
        expect![[r#"
            a is s0
            step 7: s0 finished length after 7
            step 7: r0 done prompt=3 completion=7 cached=0
            b is s1
            step 8: 4 tokens
              s1 9+4 [b0 b1 b2 b3] > s1
              = s1 token 465, s1 finished length after 1, r1 done prompt=13 completion=1 cached=9
            used=0 free=32 cached=4 looked_up=16 hit=9 computed=13
        "#]],
    );
}

#[test]
fn salts_do_not_share() {
    check(
        "config
         add a prompt=9 salt=1 max=1
         run
         add b prompt=a:9 salt=2 max=1
         cached b
         step
         add c prompt=a:9 salt=1 max=1
         cached c
         step",
        expect![[r#"
            a is s0
            step 1: s0 finished length after 1
            step 1: r0 done prompt=9 completion=1 cached=0
            b is s1
            b: 0 of 9 tokens held
            step 2: 9 tokens
              s1 0+9 [b3 b4 b5] > s1
              = s1 token 489, s1 finished length after 1, r1 done prompt=9 completion=1 cached=0
            c is s2
            c: 8 of 9 tokens held
            step 3: 1 tokens
              s2 8+1 [b0 b1 b6] > s2
              = s2 token 351, s2 finished length after 1, r2 done prompt=9 completion=1 cached=8
        "#]],
    );
}

#[test]
fn requests_that_come_together_compute_their_common_beginning_once() {
    check(
        "config step=8
         add a prompt=sys:12+a:2 max=1
         add b prompt=sys:12+b:2 max=1
         add c prompt=sys:12+c:2 max=1
         step x4
         stats",
        expect![[r#"
            a is s0
            b is s1
            c is s2
            step 1: 8 tokens
              s0 0+8 [b0 b1]
            step 2: 6 tokens
              s0 8+6 [b0 b1 b2 b3] > s0
              = s0 token 291, s0 finished length after 1, r0 done prompt=14 completion=1 cached=0
            step 3: 4 tokens
              s1 12+2 [b0 b1 b2 b7] > s1
              s2 12+2 [b0 b1 b2 b11] > s2
              = s1 token 454, s1 finished length after 1, r1 done prompt=14 completion=1 cached=12, s2 token 840, s2 finished length after 1, r2 done prompt=14 completion=1 cached=12
            step 4: 0 tokens
            used=0 free=32 cached=6 looked_up=42 hit=24 computed=18
        "#]],
    );
}

#[test]
fn nothing_is_found_with_the_cache_off() {
    check(
        "config cache=off
         add a prompt=9 max=1
         run
         add b prompt=a:9 max=1
         step
         cached b
         stats",
        expect![[r#"
            a is s0
            step 1: s0 finished length after 1
            step 1: r0 done prompt=9 completion=1 cached=0
            b is s1
            step 2: 9 tokens
              s1 0+9 [b0 b1 b2] > s1
              = s1 token 543, s1 finished length after 1, r1 done prompt=9 completion=1 cached=0
            b: 0 of 9 tokens held
            used=0 free=32 looked_up=18 computed=18
        "#]],
    );
}

#[test]
fn who_goes_on_takes_over_the_block_that_was_not_full() {
    check(
        "config
         add a prompt=6 max=2
         run
         add b prompt=@a.0+b:3 max=1
         add c prompt=@a.0+c:3 max=1
         cached b
         step
         add d prompt=@a.0+d:3 salt=1 max=1
         step
         cached b
         stats",
        expect![[r#"
            a is s0
            step 2: s0 finished length after 2
            step 2: r0 done prompt=6 completion=2 cached=0
            b is s1
            c is s2
            b: 7 of 11 tokens held
            step 3: 4 tokens
              s1 7+4 [b0 b1 b2] > s1
              = s1 token 116, s1 finished length after 1, r1 done prompt=11 completion=1 cached=7
            d is s3
            step 4: 14 tokens
              s2 8+3 [b0 b1 b4] > s2
              s3 0+11 [b5 b6 b7] > s3
              = s2 token 944, s2 finished length after 1, r2 done prompt=11 completion=1 cached=8, s3 token 497, s3 finished length after 1, r3 done prompt=11 completion=1 cached=0
            b: 8 of 11 tokens held
            used=0 free=32 cached=7 looked_up=39 hit=15 computed=25
        "#]],
    );
}

#[test]
fn what_two_choices_share_is_left_by_the_last_of_them() {
    check(
        "config
         add a prompt=6 n=2 max=1
         run
         add b prompt=@a.0+b:3 max=1
         cached b
         step
         stats",
        expect![[r#"
            a is s0 s1
            step 1: s0 finished length after 1
            step 1: s1 finished length after 1
            step 1: r0 done prompt=6 completion=2 cached=0
            b is s2
            b: 6 of 10 tokens held
            step 2: 4 tokens
              s2 6+4 [b0 b1 b2] > s2
              = s2 token 144, s2 finished length after 1, r1 done prompt=10 completion=1 cached=6
            used=0 free=32 cached=3 looked_up=16 hit=6 computed=10
        "#]],
    );
}
