//! Sharing steps, and who goes first.

use expect_test::expect;

use crate::trace::check;

#[test]
fn prefill_chunks_and_decodes_share_a_step() {
    check(
        "config step=8
         add a prompt=4 max=6
         step
         add b prompt=20 max=2
         step x4",
        expect![[r#"
            a is s0
            step 1: 4 tokens
              s0 0+4 [b0] > s0
              = s0 token 225
            b is s1
            step 2: 8 tokens
              s0 4+1 [b0 b1] > s0
              s1 0+7 [b2 b3]
              = s0 token 131
            step 3: 8 tokens
              s0 5+1 [b0 b1] > s0
              s1 7+7 [b2 b3 b4 b5]
              = s0 token 191
            step 4: 7 tokens
              s0 6+1 [b0 b1] > s0
              s1 14+6 [b2 b3 b4 b5 b6] > s1
              = s0 token 852, s1 token 973
            step 5: 2 tokens
              s0 7+1 [b0 b1] > s0
              s1 20+1 [b2 b3 b4 b5 b6 b7] > s1
              = s0 token 369, s1 token 213, s1 finished length after 2, r1 done prompt=20 completion=2 cached=0
        "#]],
    );
}

#[test]
fn a_short_prompt_passes_a_long_one_and_the_long_one_moves() {
    check(
        "config step=8 blocks=32
         add long prompt=40 max=1
         step
         add short prompt=4 max=1
         add middle prompt=7 max=1
         step x3
         run",
        expect![[r#"
            long is s0
            step 1: 8 tokens
              s0 0+8 [b0 b1]
            short is s1
            middle is s2
            step 2: 8 tokens
              s0 8+1 [b0 b1 b2]
              s1 0+4 [b10] > s1
              s2 0+3 [b11]
              = s1 token 806, s1 finished length after 1, r1 done prompt=4 completion=1 cached=0
            step 3: 8 tokens
              s0 9+4 [b0 b1 b2 b3]
              s2 3+4 [b11 b12] > s2
              = s2 token 314, s2 finished length after 1, r2 done prompt=7 completion=1 cached=0
            step 4: 8 tokens
              s0 13+8 [b0 b1 b2 b3 b4 b5]
            step 7: s0 finished length after 1
            step 7: r0 done prompt=40 completion=1 cached=0
        "#]],
    );
}

#[test]
fn steps_are_short_while_there_is_company_and_for_a_while_after() {
    check(
        "config step=16 busy=4 blocks=32
         add long prompt=60 max=1
         step
         at 10
         add short prompt=3 max=1
         step x2
         at 5009
         step
         at 5010
         step",
        expect![[r#"
            long is s0
            step 1: 16 tokens
              s0 0+16 [b0 b1 b2 b3]
            short is s1
            step 2: 4 tokens
              s0 16+1 [b0 b1 b2 b3 b4]
              s1 0+3 [b15] > s1
              = s1 token 534, s1 finished length after 1, r1 done prompt=3 completion=1 cached=0
            step 3: 4 tokens
              s0 17+4 [b0 b1 b2 b3 b4 b5]
            step 4: 4 tokens
              s0 21+4 [b0 b1 b2 b3 b4 b5 b6]
            step 5: 16 tokens
              s0 25+16 [b0 b1 b2 b3 b4 b5 b6 b7 b8 b9 b10]
        "#]],
    );
}

#[test]
fn a_prompt_that_ends_in_a_step_is_not_cut_unless_somebody_writes_beside_it() {
    check(
        "config step=16 busy=4 blocks=64
         add long prompt=60 max=1
         step
         add short prompt=6 max=3
         step
         add same prompt=4 max=1
         step
         add more prompt=5 max=1
         step",
        expect![[r#"
            long is s0
            step 1: 16 tokens
              s0 0+16 [b0 b1 b2 b3]
            short is s1
            step 2: 7 tokens
              s0 16+1 [b0 b1 b2 b3 b4]
              s1 0+6 [b15 b16] > s1
              = s1 token 879
            same is s2
            step 3: 6 tokens
              s1 6+1 [b15 b16] > s1
              s0 17+1 [b0 b1 b2 b3 b4]
              s2 0+4 [b17] > s2
              = s1 token 736, s2 token 693, s2 finished length after 1, r2 done prompt=4 completion=1 cached=0
            more is s3
            step 4: 5 tokens
              s1 7+1 [b15 b16] > s1
              s0 18+1 [b0 b1 b2 b3 b4]
              s3 0+3 [b18]
              = s1 token 303, s1 finished length after 3, r1 done prompt=6 completion=3 cached=0
        "#]],
    );
}

#[test]
fn deep_in_a_prompt_a_step_has_fewer_tokens() {
    check(
        "config step=8 depth=8 blocks=32
         add a prompt=40 max=1
         step x6",
        expect![[r#"
            a is s0
            step 1: 6 tokens
              s0 0+6 [b0 b1]
            step 2: 4 tokens
              s0 6+4 [b0 b1 b2]
            step 3: 3 tokens
              s0 10+3 [b0 b1 b2 b3]
            step 4: 2 tokens
              s0 13+2 [b0 b1 b2 b3]
            step 5: 2 tokens
              s0 15+2 [b0 b1 b2 b3 b4]
            step 6: 2 tokens
              s0 17+2 [b0 b1 b2 b3 b4]
        "#]],
    );
}

#[test]
fn the_more_urgent_of_two_starts_first() {
    check(
        "config running=1 step=16
         add later prompt=4 prio=2 max=2
         add urgent prompt=4 prio=0 max=2
         run",
        expect![[r#"
            later is s0
            urgent is s1
            step 2: s1 finished length after 2
            step 2: r1 done prompt=4 completion=2 cached=0
            step 4: s0 finished length after 2
            step 4: r0 done prompt=4 completion=2 cached=0
        "#]],
    );
}

#[test]
fn waiting_outweighs_priority() {
    check(
        "config running=1 ageing=1000
         add old prompt=4 prio=1 max=2
         at 1001
         add urgent prompt=4 prio=0 max=2
         stats
         run",
        expect![[r#"
            old is s0
            urgent is s1
            used=0 free=32 waiting=2 oldest_wait_ms=1001
            step 2: s0 finished length after 2
            step 2: r0 done prompt=4 completion=2 cached=0
            step 4: s1 finished length after 2
            step 4: r1 done prompt=4 completion=2 cached=0
        "#]],
    );
}

#[test]
fn an_urgent_request_takes_the_place_of_a_less_urgent_one() {
    check(
        "config running=2 cache=off
         add slow prompt=4 prio=5 max=6
         add same prompt=4 prio=0 max=6
         step x2
         add urgent prompt=4 prio=0 max=2
         step
         run
         stats",
        expect![[r#"
            slow is s0
            same is s1
            step 1: 8 tokens
              s1 0+4 [b0] > s1
              s0 0+4 [b1] > s0
              = s1 token 693, s0 token 400
            step 2: 2 tokens
              s1 4+1 [b0 b2] > s1
              s0 4+1 [b1 b3] > s0
              = s1 token 274, s0 token 667
            urgent is s2
            step 3: 5 tokens, preempt s0
              s1 5+1 [b0 b2] > s1
              s2 0+4 [b1] > s2
              = s1 token 840, s2 token 839
            step 4: s2 finished length after 2
            step 4: r2 done prompt=4 completion=2 cached=0
            step 6: s1 finished length after 6
            step 6: r1 done prompt=4 completion=6 cached=0
            step 8: s0 finished length after 6
            step 8: r0 done prompt=4 completion=6 cached=0
            used=0 free=32 looked_up=18 computed=28 recomputed=5 preemptions=1
        "#]],
    );
}

#[test]
fn equals_do_not_take_each_others_place() {
    check(
        "config running=1
         add first prompt=4 max=3
         step
         add second prompt=4 max=1
         step
         run",
        expect![[r#"
            first is s0
            step 1: 4 tokens
              s0 0+4 [b0] > s0
              = s0 token 189
            second is s1
            step 2: 1 tokens
              s0 4+1 [b0 b1] > s0
              = s0 token 353
            step 3: s0 finished length after 3
            step 3: r0 done prompt=4 completion=3 cached=0
            step 4: s1 finished length after 1
            step 4: r1 done prompt=4 completion=1 cached=0
        "#]],
    );
}

#[test]
fn the_young_pass_one_that_does_not_fit_until_it_has_waited() {
    check(
        "config block=4 blocks=8 running=4 ageing=1000
         add a prompt=16 max=9
         step
         add large prompt=20 max=1
         add small prompt=4 max=1
         step
         at 1000
         add late prompt=4 max=1
         step x2
         run",
        expect![[r#"
            a is s0
            step 1: 16 tokens
              s0 0+16 [b0 b1 b2 b3] > s0
              = s0 token 245
            large is s1
            small is s2
            step 2: 5 tokens
              s0 16+1 [b0 b1 b2 b3 b4] > s0
              s2 0+4 [b5] > s2
              = s0 token 820, s2 token 199, s2 finished length after 1, r2 done prompt=4 completion=1 cached=0
            late is s3
            step 3: 1 tokens
              s0 17+1 [b0 b1 b2 b3 b4] > s0
              = s0 token 957
            step 4: 1 tokens
              s0 18+1 [b0 b1 b2 b3 b4] > s0
              = s0 token 439
            step 9: s0 finished length after 9
            step 9: r0 done prompt=16 completion=9 cached=0
            step 10: s3 finished length after 1
            step 10: r3 done prompt=4 completion=1 cached=0
            step 11: s1 finished length after 1
            step 11: r1 done prompt=20 completion=1 cached=0
        "#]],
    );
}
