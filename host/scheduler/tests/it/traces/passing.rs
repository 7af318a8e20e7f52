//! Steps in the middle of others.

use expect_test::expect;

use crate::trace::check;

#[test]
fn short_prompts_pass_between_the_layers_of_a_long_one() {
    check(
        "config step=8 blocks=32
         add long prompt=40 max=1
         step
         during add short prompt=6 max=2; pass; pass; add other prompt=8 max=1; add third prompt=3 max=1; pass; pass
         step
         run",
        expect![[r#"
            long is s0
            step 1: 8 tokens
              s0 0+8 [b0 b1]
            short is s1
            step 3: 6 tokens
              s1 0+6 [b10 b11] > s1
              = s1 token 879
            nobody passes
            other is s2
            third is s3
            step 4: 3 tokens
              s3 0+3 [b14] > s3
              = s3 token 227, s3 finished length after 1, r3 done prompt=3 completion=1 cached=0
            step 5: 8 tokens
              s2 0+8 [b12 b13] > s2
              = s2 token 587, s2 finished length after 1, r2 done prompt=8 completion=1 cached=0
            step 2: 8 tokens
              s0 8+8 [b0 b1 b2 b3]
            step 6: 8 tokens
              s1 6+1 [b10 b11] > s1
              s0 16+7 [b0 b1 b2 b3 b4 b5]
              = s1 token 736, s1 finished length after 2, r1 done prompt=6 completion=2 cached=0
            step 9: s0 finished length after 1
            step 9: r0 done prompt=40 completion=1 cached=0
        "#]],
    );
}

#[test]
fn nobody_passes_who_needs_more_than_a_step_or_is_less_urgent() {
    check(
        "config step=8 blocks=32
         add long prompt=40 max=1 prio=1
         step
         during add middle prompt=9 max=1; add later prompt=3 prio=2 max=1; pass; add same prompt=3 prio=1 max=1; pass
         run",
        expect![[r#"
            long is s0
            step 1: 8 tokens
              s0 0+8 [b0 b1]
            middle is s1
            later is s2
            nobody passes
            same is s3
            step 3: 3 tokens
              s3 0+3 [b14] > s3
              = s3 token 319, s3 finished length after 1, r3 done prompt=3 completion=1 cached=0
            step 2: 8 tokens
              s0 8+8 [b0 b1 b2 b3]
            step 5: s1 finished length after 1
            step 5: r1 done prompt=9 completion=1 cached=0
            step 8: s0 finished length after 1
            step 8: r0 done prompt=40 completion=1 cached=0
            step 8: s2 finished length after 1
            step 8: r2 done prompt=3 completion=1 cached=0
        "#]],
    );
}

#[test]
fn a_step_that_ends_all_its_prompts_is_not_interrupted() {
    check(
        "config step=8 blocks=32
         add a prompt=8 max=3
         during add b prompt=2 max=1; pass
         during add c prompt=2 max=1; pass
         run",
        expect![[r#"
            a is s0
            b is s1
            nobody passes
            step 1: 8 tokens
              s0 0+8 [b0 b1] > s0
              = s0 token 274
            c is s2
            nobody passes
            step 2: 3 tokens
              s0 8+1 [b0 b1 b2] > s0
              s1 0+2 [b3] > s1
              = s0 token 247, s1 token 402, s1 finished length after 1, r1 done prompt=2 completion=1 cached=0
            step 3: s0 finished length after 3
            step 3: r0 done prompt=8 completion=3 cached=0
            step 3: s2 finished length after 1
            step 3: r2 done prompt=2 completion=1 cached=0
        "#]],
    );
}

#[test]
fn nobody_gives_up_blocks_for_one_that_passes() {
    check(
        "config step=8 block=4 blocks=11
         add long prompt=40 max=1 prio=3
         step
         during add urgent prompt=6 max=1 prio=0; pass
         step
         run",
        expect![[r#"
            long is s0
            step 1: 8 tokens
              s0 0+8 [b0 b1]
            urgent is s1
            nobody passes
            step 2: 8 tokens
              s0 8+8 [b0 b1 b2 b3]
            step 3: 6 tokens, preempt s0
              s1 0+6 [b4 b5] > s1
              = s1 token 439, s1 finished length after 1, r1 done prompt=6 completion=1 cached=0
            step 6: s0 finished length after 1
            step 6: r0 done prompt=40 completion=1 cached=0
        "#]],
    );
}

#[test]
fn after_one_of_its_sequences_is_gone_nobody_passes() {
    check(
        "config step=8 blocks=12
         add long prompt=40 max=1
         step
         during cancel long; add short prompt=4 max=1; pass
         run",
        expect![[r#"
            long is s0
            step 1: 8 tokens
              s0 0+8 [b0 b1]
            long cancelled, used=0 free=12
            short is s1
            nobody passes
            step 2: 8 tokens
              s0 8+8 [b0 b1 b2 b3]
            step 3: s1 finished length after 1
            step 3: r1 done prompt=4 completion=1 cached=0
        "#]],
    );
}

#[test]
fn a_beginning_in_the_cache_counts_as_read() {
    check(
        "config step=8 blocks=64
         add first prompt=sys:16+a:3 max=1
         run
         add long prompt=40 max=1
         step
         during add second prompt=sys:16+b:5 max=1; pass
         run",
        expect![[r#"
            first is s0
            step 3: s0 finished length after 1
            step 3: r0 done prompt=19 completion=1 cached=0
            long is s1
            step 4: 8 tokens
              s1 0+8 [b5 b6]
            second is s2
            step 6: 5 tokens
              s2 16+5 [b0 b1 b2 b3 b15 b16] > s2
              = s2 token 422, s2 finished length after 1, r2 done prompt=21 completion=1 cached=16
            step 5: 8 tokens
              s1 8+8 [b5 b6 b7 b8]
            step 9: s1 finished length after 1
            step 9: r1 done prompt=40 completion=1 cached=0
        "#]],
    );
}
