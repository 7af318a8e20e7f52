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
        expect![[r#""#]],
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
        expect![[r#""#]],
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
        expect![[r#""#]],
    );
}
