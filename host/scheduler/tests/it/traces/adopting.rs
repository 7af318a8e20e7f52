//! Blocks that were given to something else and come back.

use expect_test::expect;

use crate::trace::check;

#[test]
fn an_evicted_prompt_is_found_again() {
    check(
        "config blocks=4
         add a prompt=9 max=1
         run
         add b prompt=13 max=1
         run
         cached a
         adopt a
         cached a
         add c prompt=@a.0+c:1 max=1
         step
         stats",
        expect![[r#"
            a is s0
            step 1: s0 finished length after 1
            step 1: r0 done prompt=9 completion=1 cached=0
            b is s1
            step 2: s1 finished length after 1
            step 2: r1 done prompt=13 completion=1 cached=0
            a: 0 of 9 tokens held
            adopted b0 b1 b2, demote b0, demote b1, demote b2
            a: 8 of 9 tokens held
            c is s2
            step 3: 2 tokens
              s2 9+2 [b0 b1 b2] > s2
              = s2 token 108, s2 finished length after 1, r2 done prompt=11 completion=1 cached=9
            used=0 free=4 cached=4 looked_up=33 hit=9 computed=24 evicted=6
        "#]],
    );
}

#[test]
fn another_salt_finds_nothing() {
    check(
        "config blocks=4
         add a prompt=9 max=1
         run
         add b prompt=13 max=1
         run
         add c prompt=a:9 max=1 salt=1
         adopt c
         step",
        expect![[r#"
            a is s0
            step 1: s0 finished length after 1
            step 1: r0 done prompt=9 completion=1 cached=0
            b is s1
            step 2: s1 finished length after 1
            step 2: r1 done prompt=13 completion=1 cached=0
            c is s2
            adopted
            step 3: 9 tokens, demote b0, demote b1, demote b2
              s2 0+9 [b0 b1 b2] > s2
              = s2 token 351, s2 finished length after 1, r2 done prompt=9 completion=1 cached=0
        "#]],
    );
}

#[test]
fn nothing_is_adopted_while_a_step_writes_to_what_is_free() {
    check(
        "config blocks=4
         add a prompt=9 max=1
         run
         add b prompt=13 max=1
         run
         add c prompt=8 max=4
         during cancel c; adopt a
         adopt a",
        expect![[r#"
            a is s0
            step 1: s0 finished length after 1
            step 1: r0 done prompt=9 completion=1 cached=0
            b is s1
            step 2: s1 finished length after 1
            step 2: r1 done prompt=13 completion=1 cached=0
            c is s2
            c cancelled, used=0 free=4
            adopted
            step 3: 8 tokens, demote b0, demote b1
              s2 0+8 [b0 b1] > s2
            adopted b0 b1 b2, demote b2
        "#]],
    );
}
