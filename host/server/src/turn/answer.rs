//! A turn's answer, as it comes: the same events for streams and for whole bodies.

use std::collections::VecDeque;
use std::sync::Arc;

use futures::future::join_all;
use futures::{Stream, stream};
use jackfield_engine::{Finish, Output, TokenInfo};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

use super::filter::{Chain, Filter, FilterFault, Passed, Shown, Token};
use super::source::Source;
use crate::app::{App, unix_ms};
use crate::error::ApiError;
use crate::openai::response::{Reason, ShownToken, Usage};
use crate::session::{OpenSession, Outcome};

/// What happens to an answer.
#[derive(Debug)]
pub(crate) enum Event {
    /// More of one choice.
    Text { choice: u32, text: String, tokens: Vec<ShownToken> },
    /// One choice is complete.
    Finished { choice: u32, reason: Reason },
    /// All are. Nothing follows.
    Done(Usage),
    /// The turn failed. Nothing follows.
    Failed(ApiError),
}

/// What an answer is made of.
pub(crate) struct Parts {
    pub(crate) app: Arc<App>,
    pub(crate) source: Source,
    pub(crate) filters: Vec<Arc<Filter>>,
    pub(crate) choices: u32,
    /// Tokens of the prompt, for what its first text cost.
    pub(crate) prompt_tokens: usize,
    pub(crate) deadline: Option<Instant>,
    pub(crate) session: Option<OpenSession>,
    /// The generation of policies that the turn runs under.
    pub(crate) generation: u64,
    pub(crate) permit: OwnedSemaphorePermit,
    /// When the request came.
    pub(crate) started: Instant,
    /// Names the first choice in logs of filters; the others follow.
    pub(crate) stream_id: u32,
}

/// An answer in progress. Dropping it gives up the turn: the job is cancelled, the session stays as it was.
pub(crate) struct Answer {
    app: Arc<App>,
    source: Option<Source>,
    choices: Vec<Choice>,
    events: VecDeque<Event>,
    /// The last choice's end, kept back until the session is committed.
    last: Option<Event>,
    prompt_tokens: usize,
    deadline: Option<Instant>,
    session: Option<OpenSession>,
    generation: u64,
    /// What was sent, where a session is to remember it.
    said: Option<String>,
    _permit: OwnedSemaphorePermit,
    started: Instant,
    delivered: Option<Instant>,
}

struct Choice {
    index: u32,
    chain: Chain,
    /// Its end was not told yet.
    open: bool,
}

/// What one step brought for one choice.
#[derive(Default)]
struct News {
    text: String,
    tokens: Vec<Token>,
    finish: Option<Finish>,
}

impl Answer {
    pub(crate) fn new(parts: Parts) -> Answer {
        let choice = |index| Choice {
            index,
            chain: Chain::new(&parts.filters, parts.stream_id.wrapping_add(index)),
            open: true,
        };
        Answer {
            choices: (0..parts.choices).map(choice).collect(),
            app: parts.app,
            source: Some(parts.source),
            events: VecDeque::new(),
            last: None,
            prompt_tokens: parts.prompt_tokens,
            deadline: parts.deadline,
            said: parts.session.is_some().then(String::new),
            session: parts.session,
            generation: parts.generation,
            _permit: parts.permit,
            started: parts.started,
            delivered: None,
        }
    }

    /// The next event; none after `Done` or `Failed`.
    pub(crate) async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Some(event);
            }
            // An answer that is complete is not late, even when the engine has yet to say what it cost.
            let deadline = self.deadline.filter(|_| self.is_open());
            let source = self.source.as_mut()?;
            match source.next_before(deadline).await {
                Ok(outputs) if outputs.is_empty() => self.fail(engine_failed("the engine stopped")),
                Ok(outputs) => self.take(outputs).await,
                Err(error) => self.fail(error),
            }
        }
    }

    /// The same, as a stream that can be waited for in pieces.
    pub(crate) fn into_events(self) -> impl Stream<Item = Event> + Send {
        stream::unfold(self, |mut answer| async move {
            let event = answer.next().await?;
            Some((event, answer))
        })
    }

    async fn take(&mut self, outputs: Vec<Output>) {
        let mut news: Vec<News> = self.choices.iter().map(|_| News::default()).collect();
        let mut end = None;
        for output in outputs {
            match output {
                Output::Delta(delta) => {
                    if let Some(news) = news.get_mut(delta.choice as usize) {
                        news.text.push_str(&delta.text);
                        news.tokens.extend(delta.tokens.into_iter().map(token));
                    }
                }
                Output::Finished { choice, reason } => {
                    if let Some(news) = news.get_mut(choice as usize) {
                        news.finish = Some(reason);
                    }
                }
                Output::Done(usage) => end = Some(Ok(usage)),
                Output::Failed(fault) => end = Some(Err(engine_failed(&fault.message))),
            }
        }
        if let Err(fault) = self.filter(news).await {
            let message =
                format!("The output filter `{}` failed, and nothing may pass without it", fault.policy);
            return self.fail(super::policy_error(message));
        }
        match end {
            Some(Ok(usage)) => self.finish(usage_of(usage)).await,
            Some(Err(error)) => self.fail(error),
            None => {}
        }
    }

    /// Sends what came through the filters, all choices at once so that their windows meet in one call.
    async fn filter(&mut self, news: Vec<News>) -> Result<(), FilterFault> {
        let moved = self.choices.iter_mut().zip(news).filter(|(choice, news)| choice.open && news.is_any());
        let passed = join_all(moved.map(|(choice, news)| choice.push(news))).await;
        for (index, passed, finish) in passed.into_iter().collect::<Result<Vec<_>, _>>()? {
            self.deliver(index, passed, finish);
        }
        Ok(())
    }

    fn deliver(&mut self, choice: u32, passed: Passed, finish: Option<Finish>) {
        if !passed.text.is_empty() || !passed.tokens.is_empty() {
            self.time_delivery();
            if let Some(said) = &mut self.said {
                said.push_str(&passed.text);
                if let Some(session) = &mut self.session {
                    session.hear(said);
                }
            }
            let tokens = passed.tokens.into_iter().map(|shown| self.show(shown)).collect();
            self.events.push_back(Event::Text { choice, text: passed.text, tokens });
        }
        let reason = match (passed.stop, finish) {
            (Some(why), _) => {
                tracing::info!(choice, why, "an output filter ended an answer");
                if let Some(source) = &self.source {
                    source.cancel_choice(choice);
                }
                Reason::ContentFilter
            }
            (None, Some(Finish::Stop)) => Reason::Stop,
            (None, Some(Finish::Length)) => Reason::Length,
            (None, None) => return,
        };
        if let Some(choice) = self.choices.get_mut(choice as usize) {
            choice.open = false;
        }
        self.app.metrics.finished(reason.as_str());
        let event = Event::Finished { choice, reason };
        // A turn whose session cannot be committed must not look complete.
        if self.is_open() {
            self.events.push_back(event);
        } else {
            self.last = Some(event);
        }
    }

    fn time_delivery(&mut self) {
        let now = Instant::now();
        match self.delivered.replace(now) {
            None => self.app.saw_first_text(now - self.started, self.prompt_tokens),
            Some(before) => self.app.metrics.next_text(now - before),
        }
    }

    fn show(&self, shown: Shown) -> ShownToken {
        let tokenizer = self.app.engine.tokenizer();
        let top =
            shown.token.top.iter().map(|(id, logprob)| (tokenizer.decode_bytes(*id).to_vec(), *logprob));
        ShownToken {
            top: top.collect(),
            bytes: shown.token.bytes,
            offset_chars: shown.offset_chars,
            logprob: shown.token.logprob,
        }
    }

    /// Some choice goes on.
    fn is_open(&self) -> bool {
        self.choices.iter().any(|choice| choice.open)
    }

    async fn finish(&mut self, usage: Usage) {
        self.source = None;
        if let Some(session) = self.session.take() {
            let outcome =
                Outcome { answer: self.said.take(), generation: self.generation, unix_ms: unix_ms() };
            if let Err(error) = session.commit(outcome).await {
                return self.fail(error);
            }
        }
        self.app.metrics.used(usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens);
        self.events.extend(self.last.take());
        self.events.push_back(Event::Done(usage));
    }

    fn fail(&mut self, error: ApiError) {
        tracing::warn!(code = error.code, message = error.message, "a turn failed");
        self.source = None;
        self.session = None;
        self.last = None;
        self.events.push_back(Event::Failed(error));
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        if self.source.is_some() {
            self.app.metrics.cancelled();
        }
    }
}

impl News {
    fn is_any(&self) -> bool {
        !self.text.is_empty() || !self.tokens.is_empty() || self.finish.is_some()
    }
}

impl Choice {
    async fn push(&mut self, news: News) -> Result<(u32, Passed, Option<Finish>), FilterFault> {
        let passed = self.chain.push(news.text, news.tokens, news.finish.is_some()).await?;
        Ok((self.index, passed, news.finish))
    }
}

fn token(info: TokenInfo) -> Token {
    Token { bytes: info.bytes, logprob: info.logprob, top: info.top }
}

fn usage_of(usage: jackfield_engine::Usage) -> Usage {
    Usage {
        prompt_tokens: usage.prompt_tokens,
        completion_tokens: usage.completion_tokens,
        cached_tokens: usage.cached_tokens,
    }
}

fn engine_failed(message: &str) -> ApiError {
    tracing::error!(message, "the engine failed");
    ApiError::internal("engine_failed", "The engine failed while it wrote this answer")
}
