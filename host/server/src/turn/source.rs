//! Where an answer's text comes from: the engine, or a policy that answered by itself.

use std::collections::VecDeque;

use futures::FutureExt;
use jackfield_engine::{Delta, Finish, Output, Ticket, Usage};
use tokio::time::{Instant, timeout_at};

use crate::error::ApiError;

/// Outputs to come.
pub(crate) enum Source {
    /// From the engine. Dropping it cancels the job.
    Engine(Ticket),
    /// Known already.
    Known(VecDeque<Output>),
}

impl Source {
    /// A text that a policy gave as the answer, for each of `n` choices. The model processed nothing, and the usage
    /// says so.
    pub(crate) fn answer(text: &str, n: u32) -> Source {
        let one = |choice| {
            let delta = Delta { choice, text: text.to_owned(), tokens: Vec::new() };
            [Output::Delta(delta), Output::Finished { choice, reason: Finish::Stop }]
        };
        Source::Known((0..n).flat_map(one).chain([Output::Done(Usage::default())]).collect())
    }

    /// The next outputs: all that are there, at least one. Empty at the end.
    pub(crate) async fn next(&mut self) -> Vec<Output> {
        match self {
            Source::Known(outputs) => outputs.drain(..).collect(),
            Source::Engine(ticket) => {
                let mut outputs: Vec<Output> = ticket.next().await.into_iter().collect();
                // What one step of the engine gave for several choices goes through the filters together.
                while let Some(Some(more)) = ticket.next().now_or_never() {
                    outputs.push(more);
                }
                outputs
            }
        }
    }

    /// Nobody waits for this choice any more. What is known already costs nothing more.
    pub(crate) fn cancel_choice(&self, choice: u32) {
        if let Source::Engine(ticket) = self {
            ticket.cancel_choice(choice);
        }
    }

    /// The same, given up at `deadline`.
    pub(crate) async fn next_before(&mut self, deadline: Option<Instant>) -> Result<Vec<Output>, ApiError> {
        let Some(deadline) = deadline else { return Ok(self.next().await) };
        let late = |_| {
            let status = axum::http::StatusCode::GATEWAY_TIMEOUT;
            ApiError::new(
                status,
                "server_error",
                "deadline_exceeded",
                "The turn took longer than its deadline allows",
            )
        };
        timeout_at(deadline, self.next()).await.map_err(late)
    }
}
