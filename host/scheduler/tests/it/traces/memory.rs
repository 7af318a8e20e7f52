//! Running out of blocks.

use expect_test::expect;

use crate::trace::check;

#[test]
fn the_youngest_gives_up_its_blocks_and_keeps_its_tokens() {
    check(
        "config block=2 blocks=6 cache=off
         add a prompt=3 max=8
         add b prompt=3 max=6
         step x5
         stats
         run
         stats",
        expect![[r#"
            a is s0
            b is s1
            step 1: 6 tokens
              s0 0+3 [b0 b1] > s0
              s1 0+3 [b2 b3] > s1
              = s0 token 906, s1 token 319
            step 2: 2 tokens
              s0 3+1 [b0 b1] > s0
              s1 3+1 [b2 b3] > s1
              = s0 token 181, s1 token 128
            step 3: 2 tokens
              s0 4+1 [b0 b1 b4] > s0
              s1 4+1 [b2 b3 b5] > s1
              = s0 token 908, s1 token 421
            step 4: 2 tokens
              s0 5+1 [b0 b1 b4] > s0
              s1 5+1 [b2 b3 b5] > s1
              = s0 token 565, s1 token 538
            step 5: 1 tokens, preempt s1
              s0 6+1 [b0 b1 b4 b2] > s0
              = s0 token 117
            used=4 free=2 running=1 preempted=1 looked_up=6 computed=13 preemptions=1
            step 8: s0 finished length after 8
            step 8: r0 done prompt=3 completion=8 cached=0
            step 10: s1 finished length after 6
            step 10: r1 done prompt=3 completion=6 cached=0
            used=0 free=6 looked_up=13 computed=24 recomputed=6 preemptions=1
        "#]],
    );
}

#[test]
fn the_cache_spares_most_of_the_recomputing() {
    check(
        "config block=2 blocks=7 cache=on
         add a prompt=3 max=8
         add b prompt=5 max=5
         run
         stats",
        expect![[r#"
            a is s0
            b is s1
            step 5: s1 preempted
            step 8: s0 finished length after 8
            step 8: r0 done prompt=3 completion=8 cached=0
            step 9: s1 finished length after 5
            step 9: r1 done prompt=5 completion=5 cached=0
            used=0 free=7 cached=7 looked_up=17 hit=4 computed=23 recomputed=4 preemptions=1 evicted=5
        "#]],
    );
}

#[test]
fn the_least_urgent_goes_before_the_youngest() {
    check(
        "config block=2 blocks=6 cache=off ageing=1000
         add slow prompt=3 prio=3 max=6
         add b prompt=3 max=6
         run",
        expect![[r#"
            slow is s0
            b is s1
            step 5: s0 preempted
            step 6: s1 finished length after 6
            step 6: r1 done prompt=3 completion=6 cached=0
            step 8: s0 finished length after 6
            step 8: r0 done prompt=3 completion=6 cached=0
        "#]],
    );
}

#[test]
fn choices_that_do_not_fit_together_take_turns() {
    check(
        "config block=2 blocks=5 cache=off
         add a prompt=4 n=3 max=7
         step x3
         run
         stats",
        expect![[r#"
            a is s0 s1 s2
            step 1: 4 tokens
              s0 0+4 [b0 b1] > s0 s1 s2
              = s0 token 225, s1 token 853, s2 token 190
            step 2: 3 tokens
              s0 4+1 [b0 b1 b2] > s0
              s1 4+1 [b0 b1 b3] > s1
              s2 4+1 [b0 b1 b4] > s2
              = s0 token 131, s1 token 873, s2 token 260
            step 3: 3 tokens
              s0 5+1 [b0 b1 b2] > s0
              s1 5+1 [b0 b1 b3] > s1
              s2 5+1 [b0 b1 b4] > s2
              = s0 token 191, s1 token 552, s2 token 963
            step 4: s2 preempted
            step 4: s1 preempted
            step 7: s0 finished length after 7
            step 11: s1 finished length after 7
            step 15: s2 finished length after 7
            step 15: r0 done prompt=4 completion=21 cached=0
            used=0 free=5 looked_up=18 computed=34 recomputed=12 preemptions=2
        "#]],
    );
}

#[test]
fn one_that_needs_the_whole_pool_gets_it() {
    check(
        "config block=4 blocks=4 ageing=10
         add a prompt=4 max=4
         add large prompt=16 max=1
         add b prompt=4 max=4
         at 10
         run
         stats",
        expect![[r#"
            a is s0
            large is s1
            b is s2
            step 4: s0 finished length after 4
            step 4: r0 done prompt=4 completion=4 cached=0
            step 5: s1 finished length after 1
            step 5: r1 done prompt=16 completion=1 cached=0
            step 9: s2 finished length after 4
            step 9: r2 done prompt=4 completion=4 cached=0
            used=0 free=4 cached=4 looked_up=24 computed=30 evicted=4
        "#]],
    );
}

#[test]
fn the_longest_unused_is_evicted_first() {
    check(
        "config block=4 blocks=7
         add a prompt=8 max=1
         run
         add b prompt=8 max=1
         run
         add again prompt=a:9 max=1
         run
         add c prompt=12 max=1
         run
         cached again
         cached b
         stats",
        expect![[r#"
            a is s0
            step 1: s0 finished length after 1
            step 1: r0 done prompt=8 completion=1 cached=0
            b is s1
            step 2: s1 finished length after 1
            step 2: r1 done prompt=8 completion=1 cached=0
            again is s2
            step 3: s2 finished length after 1
            step 3: r2 done prompt=9 completion=1 cached=8
            c is s3
            step 4: s3 finished length after 1
            step 4: r3 done prompt=12 completion=1 cached=0
            again: 8 of 9 tokens held
            b: 4 of 8 tokens held
            used=0 free=7 cached=7 looked_up=37 hit=8 computed=29 evicted=1
        "#]],
    );
}
