//! Several choices of one prompt.

use expect_test::expect;

use crate::trace::check;

#[test]
fn choices_share_the_prompt_and_all_but_one_copy_the_block_they_write() {
    check(
        "config
         add a prompt=6 n=3 max=3
         step x3
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
            step 3: 3 tokens
              s0 7+1 [b0 b2] > s0
              s1 7+1 [b0 b3] > s1
              s2 7+1 [b0 b1] > s2
              = s0 token 136, s0 finished length after 3, s1 token 304, s1 finished length after 3, s2 token 425, s2 finished length after 3, r0 done prompt=6 completion=9 cached=0
            used=0 free=32 cached=4 looked_up=6 computed=12
        "#]],
    );
}

#[test]
fn a_prompt_of_whole_blocks_needs_no_copy() {
    check(
        "config
         add a prompt=8 n=2 max=3
         step x3",
        expect![[r#"
            a is s0 s1
            step 1: 8 tokens
              s0 0+8 [b0 b1] > s0 s1
              = s0 token 274, s1 token 444
            step 2: 2 tokens
              s0 8+1 [b0 b1 b2] > s0
              s1 8+1 [b0 b1 b3] > s1
              = s0 token 247, s1 token 928
            step 3: 2 tokens
              s0 9+1 [b0 b1 b2] > s0
              s1 9+1 [b0 b1 b3] > s1
              = s0 token 730, s0 finished length after 3, s1 token 941, s1 finished length after 3, r0 done prompt=8 completion=6 cached=0
        "#]],
    );
}

#[test]
fn a_preempted_choice_comes_back_by_itself() {
    check(
        "config block=2 blocks=6
         add a prompt=3 n=2 max=7
         run
         stats",
        expect![[r#"
            a is s0 s1
            step 5: s1 preempted
            step 7: s0 finished length after 7
            step 10: s1 finished length after 7
            step 10: r0 done prompt=3 completion=14 cached=0
            used=0 free=6 cached=6 looked_up=10 hit=4 computed=17 recomputed=2 preemptions=1 evicted=4
        "#]],
    );
}

#[test]
fn a_whole_group_is_preempted_while_its_prompt_is_computed() {
    check(
        "config block=2 blocks=14 step=4 running=3 cache=off
         add a prompt=2 max=13
         step
         add b prompt=20 n=2 max=1
         step
         run
         stats",
        expect![[r#"
            a is s0
            step 1: 2 tokens
              s0 0+2 [b0] > s0
              = s0 token 402
            b is s1 s2
            step 2: 4 tokens
              s0 2+1 [b0 b1] > s0
              s1 0+3 [b2 b3]
              = s0 token 653
            step 8: s1 preempted
            step 8: s2 preempted
            step 13: s0 finished length after 13
            step 13: r0 done prompt=2 completion=13 cached=0
            step 18: s1 finished length after 1
            step 18: s2 finished length after 1
            step 18: r1 done prompt=20 completion=2 cached=0
            used=0 free=14 looked_up=42 computed=52 recomputed=18 preemptions=1
        "#]],
    );
}

#[test]
fn choices_wait_until_all_of_them_may_run() {
    check(
        "config running=3
         add a prompt=4 n=2 max=3
         add b prompt=4 n=2 max=1
         step
         step
         run",
        expect![[r#"
            a is s0 s1
            b is s2 s3
            step 1: 4 tokens
              s0 0+4 [b0] > s0 s1
              = s0 token 225, s1 token 853
            step 2: 2 tokens
              s0 4+1 [b0 b1] > s0
              s1 4+1 [b0 b2] > s1
              = s0 token 131, s1 token 873
            step 3: s0 finished length after 3
            step 3: s1 finished length after 3
            step 3: r0 done prompt=4 completion=6 cached=0
            step 4: s2 finished length after 1
            step 4: s3 finished length after 1
            step 4: r1 done prompt=4 completion=2 cached=0
        "#]],
    );
}
