//! The engine thread: drain inbox → schedule → run the step → sample → commit → deliver. Between the layers of a step that
//! reads a long prompt, the same for short ones that come meanwhile.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvError, SyncSender, TryRecvError};
use std::time::{Duration, Instant};

use jackfield_model::Model;
use jackfield_scheduler::{
    BlockHash, Event, FinishReason, Millis, Plan, Request, RequestId, Sampled, SequenceId,
};

use crate::job::{EngineFault, Finish, Job, Output, Usage};
use crate::mover::Mover;
use crate::outbox::{Answer, Responder};
use crate::runner::{ModelRunner, emptied};
use crate::sampler::{Chosen, Desk, Sampler};
use crate::scoring::{Scoring, Text};
use crate::shared::{Admission, Shared};
use crate::text::StopMatcher;
use crate::tiers::ToKeep;

/// Of the time of a step that reads the middle of a long prompt, so many times as much may be lent to short prompts …
const LENT: u32 = 7;
/// … and so many times where others get a token from that step.
const LENT_BESIDE_WRITERS: u32 = 1;

/// Everything the outside may ask of the engine thread.
pub(crate) enum Command {
    Submit(Box<Submission>),
    Score(Box<Text>),
    Cancel(RequestId),
    /// One choice of a request, by its number.
    CancelChoice(RequestId, u32),
    /// Blocks to be copied down.
    Keep(Vec<ToKeep>),
    /// Everything that is to be kept is to be copied now; who is told then.
    KeepAll(SyncSender<()>),
}

/// A checked job with the place that it holds and the way back.
pub(crate) struct Submission {
    pub(crate) id: RequestId,
    pub(crate) job: Job,
    /// The blocks of its prompt that may come from below; none where there is nothing below.
    pub(crate) chain: Vec<BlockHash>,
    pub(crate) seed: u64,
    pub(crate) responder: Responder,
    pub(crate) admission: Admission,
}

/// The thread's own state; what others may look at is in [`Shared`].
pub(crate) struct Worker {
    model: Arc<Model>,
    shared: Arc<Shared>,
    inbox: Receiver<Command>,
    runner: ModelRunner,
    mover: Mover,
    sequences: HashMap<SequenceId, Writer>,
    requests: HashMap<RequestId, Running>,
    scoring: Scoring,
    desk: Desk,
    lists: Lists,
    started: Instant,
}

/// What a step fills and empties again.
#[derive(Default)]
struct Lists {
    sampled: Vec<Sampled>,
    events: Vec<Event>,
}

/// One sequence: how it chooses, where its text goes, when it ends.
struct Writer {
    sampler: Sampler,
    answer: Answer,
    stop_tokens: Vec<u32>,
    ignore_end: bool,
    /// Where the dialog goes on.
    kept: Option<Kept>,
}

/// All tokens of a sequence, whose blocks are to be kept.
struct Kept {
    tokens: Vec<u32>,
    salt: [u8; 32],
    keep_for: Duration,
}

/// One request on its way.
struct Running {
    responder: Responder,
    sequences: Vec<SequenceId>,
    /// Held for its `Drop`: the request's place among those in flight.
    _admission: Admission,
}

/// The inbox is closed: every handle is gone.
struct Closed;

impl Worker {
    pub(crate) fn new(
        model: Arc<Model>,
        shared: Arc<Shared>,
        inbox: Receiver<Command>,
        runner: ModelRunner,
    ) -> Self {
        Worker {
            model,
            mover: Mover::new(Arc::clone(&shared)),
            shared,
            inbox,
            runner,
            sequences: HashMap::new(),
            requests: HashMap::new(),
            scoring: Scoring::default(),
            desk: Desk::default(),
            lists: Lists::default(),
            started: Instant::now(),
        }
    }

    /// Runs until every handle is gone. A panic or a failing model fails all streams and closes the engine.
    pub(crate) fn run(mut self) {
        let outcome = catch_unwind(AssertUnwindSafe(|| self.serve()));
        self.shared.close();
        let message = match outcome {
            Ok(Ok(())) => return,
            Ok(Err(fault)) => fault.message,
            Err(panic) => panic_message(panic.as_ref()),
        };
        tracing::error!(message, "the engine stopped; its streams fail");
        self.fail_all(&EngineFault { message });
    }

    fn serve(&mut self) -> Result<(), EngineFault> {
        self.model.cpu().tie_caller();
        loop {
            let begun = Instant::now();
            let Ok(waited) = self.drain_inbox() else { return Ok(()) };
            self.mover.keep_some(&self.runner);
            let plan = self.shared.scheduler().schedule(self.now());
            self.step(&plan)?;
            self.shared.scheduler().recycle(plan);
            self.shared.note_busy(begun.elapsed().saturating_sub(waited));
        }
    }

    /// Takes what has come; waits for more when there is nothing else to do, and says how long.
    fn drain_inbox(&mut self) -> Result<Duration, Closed> {
        let mut waited = Duration::ZERO;
        if self.is_idle() {
            let begun = Instant::now();
            let command = self.inbox.recv().map_err(|RecvError| Closed)?;
            waited = begun.elapsed();
            self.obey(command);
        }
        loop {
            match self.inbox.try_recv() {
                Ok(command) => self.obey(command),
                Err(TryRecvError::Empty) => return Ok(waited),
                Err(TryRecvError::Disconnected) if self.is_idle() => return Err(Closed),
                Err(TryRecvError::Disconnected) => return Ok(waited),
            }
        }
    }

    fn is_idle(&self) -> bool {
        self.requests.is_empty() && self.scoring.is_empty() && self.mover.is_idle()
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::Submit(submission) => self.admit(*submission),
            Command::Score(text) => self.begin_scoring(*text),
            Command::Cancel(id) => self.cancel(id),
            Command::CancelChoice(id, choice) => self.cancel_choice(id, choice),
            Command::Keep(blocks) => self.mover.keep(blocks),
            Command::KeepAll(done) => {
                self.mover.keep_all(&self.runner);
                let _ = done.send(()); // who is out of patience does not hear it
            }
        }
    }

    fn admit(&mut self, submission: Submission) {
        let Submission { id, job, chain, seed, responder, admission } = submission;
        self.mover.adopt(&mut self.runner, &chain, &job.prompt, &job.salt);
        let request = Request {
            id,
            prompt: job.prompt.clone(),
            n: job.n,
            max_new_tokens: job.max_new_tokens,
            priority: job.priority,
            salt: job.salt,
            score: false,
        };
        let now = self.now();
        let added = self.shared.scheduler().add(request, now);
        let sequences = match added {
            Ok(sequences) => sequences,
            Err(error) => {
                let _ = responder.send(Output::Failed(EngineFault { message: error.to_string() }));
                return;
            }
        };
        let stops = StopMatcher::new(job.stop);
        for (choice, &sequence) in (0..).zip(&sequences) {
            let tokenizer = Arc::clone(&self.model.tokenizer);
            let writer = Writer {
                sampler: Sampler::new(job.sampling.clone(), seed, choice, &job.prompt),
                answer: Answer::new(choice, tokenizer, responder.clone(), stops.clone()),
                stop_tokens: job.stop_tokens.clone(),
                ignore_end: job.sampling.ignore_end,
                kept: job
                    .keep_for
                    .map(|keep_for| Kept::new(&job.prompt, job.max_new_tokens, job.salt, keep_for)),
            };
            self.sequences.insert(sequence, writer);
        }
        self.requests.insert(id, Running { responder, sequences, _admission: admission });
    }

    fn begin_scoring(&mut self, text: Text) {
        let now = self.now();
        let added = self.shared.scheduler().add(text.request(), now);
        match added.as_deref() {
            Ok(&[sequence]) => self.scoring.begin(sequence, text),
            Ok(_) => text.fail(EngineFault { message: "a text is one sequence".into() }),
            Err(error) => text.fail(EngineFault { message: error.to_string() }),
        }
    }

    fn cancel(&mut self, id: RequestId) {
        self.shared.scheduler().cancel(id);
        self.scoring.forget(id);
        self.forget(id);
    }

    fn cancel_choice(&mut self, id: RequestId, choice: u32) {
        let sequences = self.requests.get(&id).map_or(&[][..], |running| &running.sequences);
        let Some(&sequence) = sequences.get(choice as usize) else { return };
        self.shared.scheduler().cancel_sequence(sequence);
        self.sequences.remove(&sequence);
    }

    /// Runs a plan and tells what came of it. An empty plan is committed as well: when the last choice of a request was
    /// cancelled there is nothing to run, and its end still to tell.
    fn step(&mut self, plan: &Plan) -> Result<(), EngineFault> {
        self.mover.save(&self.runner, &plan.demoted);
        if !plan.is_empty() {
            self.run_layers(plan)?;
        }
        let Lists { mut sampled, mut events } = std::mem::take(&mut self.lists);
        self.sample(plan, &mut sampled);
        let now = self.now();
        self.shared.scheduler().commit(plan, &sampled, now, &mut events);
        events.drain(..).for_each(|event| self.deliver(event));
        sampled.clear();
        self.lists = Lists { sampled, events };
        Ok(())
    }

    /// Runs the model. While it reads the middle of a long prompt, short ones that come are read between two layers.
    fn run_layers(&mut self, plan: &Plan) -> Result<(), EngineFault> {
        let mut memory = self.runner.prepare(plan);
        let spans = memory.inputs.spans(&plan.work, memory.spans);
        let pass = self.runner.begin(memory.inputs.batch(&spans), &mut memory.scratch);
        let mut pass = pass.map_err(|error| EngineFault { message: error.to_string() })?;
        let scores = plan.work.iter().any(|work| work.score);
        if scores {
            pass = pass.whole();
        }
        let (begun, mut lent) = (Instant::now(), Duration::ZERO);
        // Who writes beside the prompt waits for the short ones too.
        let share = if plan.sampling().next().is_some() { LENT_BESIDE_WRITERS } else { LENT };
        while !self.runner.advance(&mut pass) {
            if plan.reads_on() && lent <= (begun.elapsed() - lent) * share {
                lent += self.let_pass()?;
            }
        }
        if scores {
            self.scoring.read(plan, &mut pass, &mut self.runner);
        }
        memory.spans = emptied(spans);
        self.runner.put_back(memory);
        Ok(())
    }

    /// Runs a step for those that may pass the one on its way; says how long it took.
    fn let_pass(&mut self) -> Result<Duration, EngineFault> {
        let begun = Instant::now();
        while let Ok(command) = self.inbox.try_recv() {
            self.obey(command);
        }
        let plan = self.shared.scheduler().interpose(self.now());
        if plan.is_empty() {
            return Ok(begun.elapsed());
        }
        self.step(&plan)?;
        self.shared.scheduler().recycle(plan);
        Ok(begun.elapsed())
    }

    /// Chooses a token for every sequence that has one due, and takes it into its text.
    fn sample(&mut self, plan: &Plan, sampled: &mut Vec<Sampled>) {
        let due = plan.work.iter().filter(|work| !work.sample.is_empty());
        for (row, work) in due.enumerate() {
            for &sequence in &work.sample {
                let Some(writer) = self.sequences.get_mut(&sequence) else { continue };
                let chosen = writer.sampler.choose(self.model.cpu(), self.runner.logits(row), &mut self.desk);
                let stop = writer.take(&chosen, &self.model);
                sampled.push(Sampled { sequence, token: chosen.token, stop });
            }
        }
    }

    fn deliver(&mut self, event: Event) {
        match event {
            Event::Token { sequence, .. } => {
                if let Some(writer) = self.sequences.get_mut(&sequence) {
                    writer.answer.deliver();
                }
            }
            Event::Finished { sequence, reason, .. } => {
                let finish = match reason {
                    FinishReason::Stop => Finish::Stop,
                    FinishReason::Length => Finish::Length,
                    FinishReason::Scored => return self.scoring.finish(sequence),
                };
                if let Some(mut writer) = self.sequences.remove(&sequence) {
                    writer.answer.finish(finish);
                    if let Some(Kept { tokens, salt, keep_for }) = writer.kept {
                        self.mover.keep(self.shared.not_kept(&tokens, &salt, keep_for));
                    }
                }
            }
            Event::RequestDone { request, usage } => {
                if let Some(running) = self.forget(request) {
                    let _ = running.responder.send(Output::Done(Usage {
                        prompt_tokens: usage.prompt_tokens,
                        completion_tokens: usage.completion_tokens,
                        cached_tokens: usage.cached_tokens,
                    }));
                }
            }
        }
    }

    fn forget(&mut self, id: RequestId) -> Option<Running> {
        let running = self.requests.remove(&id)?;
        for sequence in &running.sequences {
            self.sequences.remove(sequence);
        }
        Some(running)
    }

    fn fail_all(&mut self, fault: &EngineFault) {
        for (_, running) in self.requests.drain() {
            let _ = running.responder.send(Output::Failed(fault.clone()));
        }
        self.scoring.fail_all(fault);
        while let Ok(command) = self.inbox.try_recv() {
            match command {
                Command::Submit(submission) => {
                    let _ = submission.responder.send(Output::Failed(fault.clone()));
                }
                Command::Score(text) => text.fail(fault.clone()),
                Command::Cancel(_) | Command::CancelChoice(..) | Command::Keep(..) | Command::KeepAll(_) => {}
            }
        }
    }

    fn now(&self) -> Millis {
        Millis(self.started.elapsed().as_millis() as u64)
    }
}

impl Writer {
    /// Takes a token; true when the answer ends with it. A token that ends the answer adds no text.
    fn take(&mut self, chosen: &Chosen, model: &Model) -> bool {
        if let Some(kept) = &mut self.kept {
            kept.tokens.push(chosen.token);
        }
        let ends = self.stop_tokens.contains(&chosen.token)
            || (!self.ignore_end && model.tokenizer.is_end(chosen.token));
        ends || self.answer.take(chosen)
    }
}

impl Kept {
    /// With room for the whole answer, so that no step has to make some.
    fn new(prompt: &[u32], answer: usize, salt: [u8; 32], keep_for: Duration) -> Kept {
        let mut tokens = Vec::with_capacity(prompt.len().saturating_add(answer));
        tokens.extend_from_slice(prompt);
        Kept { tokens, salt, keep_for }
    }
}

fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic
        .downcast_ref::<&str>()
        .map(|s| (*s).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "a panic without a message".to_owned())
}
