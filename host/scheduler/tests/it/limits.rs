//! What is refused, and with which words.

use jackfield_scheduler::{AddError, Config, ConfigError, Millis, Request, RequestId, Scheduler};

fn config() -> Config {
    Config {
        block_size: 4,
        blocks: 4,
        max_running: 2,
        max_waiting: 2,
        max_step_tokens: 8,
        max_context: 20,
        ..Config::default()
    }
}

fn request(id: u64, prompt: usize) -> Request {
    Request { prompt: vec![1; prompt], ..Request::new(RequestId(id)) }
}

#[track_caller]
fn check(request: Request, refused: AddError, words: &str) {
    let mut scheduler = Scheduler::new(config()).unwrap();
    let found = scheduler.add(request, Millis(0)).unwrap_err();
    assert_eq!((&found, found.to_string().as_str()), (&refused, words));
    assert!(scheduler.is_idle(), "something was kept");
}

#[test]
fn requests_that_ask_for_nothing() {
    check(request(0, 0), AddError::PromptEmpty, "the prompt has no tokens");
    check(Request { n: 0, ..request(0, 1) }, AddError::ZeroChoices, "n must be at least 1");
    let none = Request { max_new_tokens: 0, ..request(0, 1) };
    check(none, AddError::ZeroNewTokens, "max_new_tokens must be at least 1");
}

#[test]
fn requests_that_ask_for_too_much() {
    let too_long = AddError::TooLong { prompt: 20, max: 19 };
    check(request(0, 20), too_long, "the prompt has 20 tokens, the longest possible is 19");
    let never = AddError::NeverFits { needed_blocks: 5, blocks: 4 };
    check(request(0, 17), never, "the prompt needs 5 blocks of KV memory, there are 4 in all");
    let many = AddError::TooManyChoices { n: 3, max: 2 };
    check(Request { n: 3, ..request(0, 1) }, many, "n is 3, at most 2 sequences run at once");
}

#[test]
fn an_id_is_free_again_when_its_request_is_gone() {
    let mut scheduler = Scheduler::new(config()).unwrap();
    let first = scheduler.add(request(7, 3), Millis(0)).unwrap();
    assert_eq!(scheduler.add(request(7, 3), Millis(0)), Err(AddError::DuplicateId(RequestId(7))));
    scheduler.cancel(RequestId(7));
    assert_ne!(scheduler.add(request(7, 3), Millis(0)).unwrap(), first);
}

#[test]
fn the_queue_counts_what_has_not_started() {
    let mut scheduler = Scheduler::new(config()).unwrap();
    scheduler.add(request(0, 1), Millis(0)).unwrap();
    scheduler.add(request(1, 1), Millis(0)).unwrap();
    assert_eq!(scheduler.add(request(2, 1), Millis(0)), Err(AddError::QueueFull { waiting: 2 }));
    scheduler.schedule(Millis(0));
    scheduler.add(request(2, 1), Millis(0)).unwrap();
}

#[test]
fn a_configuration_that_cannot_work() {
    let refused = Scheduler::new(Config { max_step_tokens: 2, ..config() }).unwrap_err();
    assert_eq!(refused, ConfigError::StepTooSmall { max_step_tokens: 2, max_running: 2 });
}
