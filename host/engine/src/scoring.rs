//! Texts of which only the tokens' probabilities are wanted: on the way in, while they are read, on the way back.

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, sync_channel};
use std::time::Duration;

use jackfield_model::Pass;
use jackfield_scheduler::{Plan, Request, RequestId, SequenceId};

use crate::job::{EngineFault, InvalidJob};
use crate::runner::ModelRunner;
use crate::sampler::logprob;
use crate::shared::Admission;
use crate::worker::Command;

/// Rows whose logits are held at once. The whole step's would be many times what the step itself works in.
const ROWS_AT_ONCE: usize = 16;

/// A text on its way to the engine thread.
pub(crate) struct Text {
    pub(crate) id: RequestId,
    tokens: Vec<u32>,
    responder: SyncSender<Result<Vec<f32>, EngineFault>>,
    /// Held for its `Drop`: the text's place among those that are scored.
    _admission: Admission,
}

/// The receiving end of one text. Dropping it gives the text up, wherever it is.
#[derive(Debug)]
pub struct Scores {
    id: RequestId,
    inbox: Sender<Command>,
    answer: Receiver<Result<Vec<f32>, EngineFault>>,
    done: bool,
}

/// A text was not scored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScoreError {
    /// It took longer than the caller would wait.
    #[error("the engine is busy")]
    Busy,
    /// The engine could not go on.
    #[error(transparent)]
    Failed(#[from] EngineFault),
}

impl Scores {
    /// Natural logarithms of the probability of each token but the first after those before it, `[tokens - 1]`. Blocks the
    /// calling thread for at most `patience`; the text is given up then.
    pub fn wait(mut self, patience: Duration) -> Result<Vec<f32>, ScoreError> {
        let answer = self.answer.recv_timeout(patience);
        self.done = !matches!(answer, Err(RecvTimeoutError::Timeout));
        match answer {
            Ok(scores) => Ok(scores?),
            Err(RecvTimeoutError::Timeout) => Err(ScoreError::Busy),
            Err(RecvTimeoutError::Disconnected) => {
                Err(EngineFault { message: "it has stopped".into() }.into())
            }
        }
    }
}

impl Drop for Scores {
    fn drop(&mut self) {
        if !self.done {
            // An engine that is gone has nothing left to give up.
            let _ = self.inbox.send(Command::Cancel(self.id));
        }
    }
}

pub(crate) fn check(tokens: &[u32], vocab: usize) -> Result<(), InvalidJob> {
    let invalid = |problem: String| InvalidJob { field: "tokens", problem };
    if tokens.len() < 2 {
        return Err(invalid(format!(
            "has {} tokens; the first is scored by none, so give two",
            tokens.len()
        )));
    }
    match tokens.iter().find(|&&token| token as usize >= vocab) {
        Some(token) => Err(invalid(format!("has token {token}, outside 0..{vocab}"))),
        None => Ok(()),
    }
}

pub(crate) fn channel(
    id: RequestId,
    tokens: Vec<u32>,
    admission: Admission,
    inbox: Sender<Command>,
) -> (Text, Scores) {
    let (responder, answer) = sync_channel(1);
    let text = Text { id, tokens, responder, _admission: admission };
    (text, Scores { id, inbox, answer, done: false })
}

impl Text {
    /// What the scheduler is asked for. The last token's row would tell what comes after it.
    pub(crate) fn request(&self) -> Request {
        let prompt = self.tokens[..self.tokens.len() - 1].to_vec();
        Request { prompt, score: true, ..Request::new(self.id) }
    }

    pub(crate) fn fail(self, fault: EngineFault) {
        self.answer(Err(fault));
    }

    /// A receiver that is gone has given up; the inbox says so, nothing is to be done here.
    fn answer(self, answer: Result<Vec<f32>, EngineFault>) {
        let _ = self.responder.send(answer);
    }
}

/// The texts that are being scored.
#[derive(Default)]
pub(crate) struct Scoring {
    texts: HashMap<SequenceId, Reading>,
    rows: Vec<Row>,
    wanted: Vec<usize>,
}

struct Reading {
    text: Text,
    /// Of the token after each position; those that were not read yet are 0.
    logprobs: Vec<f32>,
}

/// A row of a step, and where its text stands there.
struct Row {
    row: usize,
    sequence: SequenceId,
    position: usize,
}

impl Scoring {
    pub(crate) fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    pub(crate) fn begin(&mut self, sequence: SequenceId, text: Text) {
        let logprobs = vec![0.0; text.tokens.len() - 1];
        self.texts.insert(sequence, Reading { text, logprobs });
    }

    pub(crate) fn forget(&mut self, id: RequestId) {
        self.texts.retain(|_, reading| reading.text.id != id);
    }

    /// Takes what a step that has run says of its rows.
    pub(crate) fn read(&mut self, plan: &Plan, pass: &mut Pass<'_>, runner: &mut ModelRunner) {
        self.list_rows(plan);
        for rows in self.rows.chunks(ROWS_AT_ONCE) {
            self.wanted.clear();
            self.wanted.extend(rows.iter().map(|row| row.row));
            for (row, logits) in rows.iter().zip(runner.rows(pass, &self.wanted)) {
                let Some(reading) = self.texts.get_mut(&row.sequence) else { continue };
                let following = reading.text.tokens[row.position + 1];
                reading.logprobs[row.position] = logprob(logits, following);
            }
        }
    }

    /// Those of texts that are still wanted.
    fn list_rows(&mut self, plan: &Plan) {
        self.rows.clear();
        let mut before = 0;
        for work in &plan.work {
            if work.score && self.texts.contains_key(&work.sequence) {
                let row = |at| Row { row: before + at, sequence: work.sequence, position: work.start + at };
                self.rows.extend((0..work.tokens.len()).map(row));
            }
            before += work.tokens.len();
        }
    }

    /// Tells what was found, when the whole text has been read.
    pub(crate) fn finish(&mut self, sequence: SequenceId) {
        if let Some(Reading { text, logprobs }) = self.texts.remove(&sequence) {
            text.answer(Ok(logprobs));
        }
    }

    pub(crate) fn fail_all(&mut self, fault: &EngineFault) {
        self.texts.drain().for_each(|(_, reading)| reading.text.fail(fault.clone()));
    }
}
