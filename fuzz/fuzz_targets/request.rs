//! The decoder of API requests: any bytes give a request within its documented bounds, or a 400 with a message.
//!
//! The decoder is pure, so its sources are taken in as they are: linking the whole server would build the Wasm runtime
//! under instrumentation for nothing.
#![no_main]
#![allow(dead_code, unreachable_pub)]

use libfuzzer_sys::fuzz_target;

#[path = "../../host/server/src/error.rs"]
mod error;
#[path = "../../host/server/src/openai/mod.rs"]
mod openai;

use error::ApiError;
use openai::{Bounds, Common, MOST_CHOICES, MOST_STOPS, request};

const BOUNDS: Bounds = Bounds { vocab: 49_152 };

fuzz_target!(|data: &[u8]| {
    let Some((which, body)) = data.split_first() else { return };
    match which % 4 {
        0 => {
            let first = request::chat(body, BOUNDS);
            assert_eq!(first, request::chat(body, BOUNDS), "the same bytes give the same answer");
            if let Some(request) = checked(first) {
                assert!(!request.messages.is_empty());
                assert!(request.max_tokens != Some(0));
                check_common(&request.common);
            }
        }
        1 => {
            if let Some(request) = checked(request::completion(body, BOUNDS)) {
                assert!(request.max_tokens != Some(0));
                check_common(&request.common);
            }
        }
        2 => drop(checked(request::tokenize(body))),
        _ => {
            let tokens = checked(request::detokenize(body, BOUNDS)).unwrap_or_default();
            assert!(tokens.iter().all(|id| (*id as usize) < BOUNDS.vocab));
        }
    }
});

fn checked<T>(result: Result<T, ApiError>) -> Option<T> {
    result
        .inspect_err(|error| {
            assert_eq!(error.status, 400);
            assert!(!error.message.is_empty());
        })
        .ok()
}

fn check_common(common: &Common) {
    assert!((1..=MOST_CHOICES).contains(&common.n));
    assert!(common.stop.len() <= MOST_STOPS && common.stop.iter().all(|stop| !stop.is_empty()));
    assert!(!common.include_usage || common.stream);
    let sampling = &common.sampling;
    assert!((0.0..=2.0).contains(&sampling.temperature));
    assert!(sampling.top_p > 0.0 && sampling.top_p <= 1.0);
    assert!((0.0..=1.0).contains(&sampling.min_p));
    assert!((0.1..=10.0).contains(&sampling.repetition_penalty));
    for (id, bias) in &sampling.logit_bias {
        assert!((*id as usize) < BOUNDS.vocab && (-100.0..=100.0).contains(bias));
    }
}
