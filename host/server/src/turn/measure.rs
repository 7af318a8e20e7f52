//! For this crate's examples, which measure: the stretches of a turn that policies lengthen, each by itself.
//!
//! They run the code that serves, on a host put together as for serving.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::http::HeaderMap;
use jackfield_policy::Turn;

use super::Trace;
use super::ask::{Ask, Caller};
use super::filter::{Chain, FilterFault};
use super::prepare::Prepared;

use crate::app::{App, Host, unix_ms};
use crate::error::ApiError;
use crate::openai::request;
use crate::serve::ServeError;

/// The tenant of everything that is measured.
const TENANT: &str = "measured";

/// A host whose turns are measured.
pub struct Measured(Arc<App>);

/// The start of a turn.
#[derive(Debug)]
pub struct Start {
    /// From the decoded request to the prompt that the engine would get, the hop to a blocking thread included.
    pub took: Duration,
    /// Tokens of that prompt; none when a policy answered by itself.
    pub prompt_tokens: Option<usize>,
    /// What policies did, as clients see it.
    pub trace: String,
}

impl Measured {
    /// Of these parts.
    ///
    /// # Errors
    /// When the system gives no random numbers.
    pub fn new(host: Host) -> Result<Measured, ServeError> {
        App::new(host).map(Measured).map_err(ServeError::Random)
    }

    /// Takes a chat completion, as JSON, up to the engine and drops it there.
    ///
    /// # Errors
    /// What a client would be told: a request that is none, a refusal, a fault.
    pub async fn start(&self, body: &[u8]) -> Result<Start, ApiError> {
        let Measured(app) = self;
        let mut ask = Ask::from(request::chat(body, app.bounds())?);
        let caller = Caller {
            tenant: TENANT.into(),
            id: app.new_id(""),
            headers: HeaderMap::new(),
            unix_ms: unix_ms(),
        };
        let mut trace = Trace::default();
        let began = Instant::now();
        let opened = super::open(app, &caller, &mut ask).await?;
        trace.generation = opened.lineup.generation();
        let filters = super::filters(app, &opened.lineup, &opened.turn, &caller.tenant);
        let (_opened, _ask, prepared) = super::prepare(app, ask, opened, &mut trace).await?;
        let took = began.elapsed();
        drop(filters);
        let prompt_tokens = match prepared {
            Prepared::Run { prompt, .. } => Some(prompt.len()),
            Prepared::Answer(_) => None,
        };
        let trace = trace.header().and_then(|header| header.to_str().ok().map(str::to_owned));
        Ok(Start { took, prompt_tokens, trace: trace.unwrap_or_default() })
    }

    /// An answer that has not begun, on its way through the filters in force.
    pub fn answer(&self) -> Answering {
        let Measured(app) = self;
        let turn = Arc::new(Turn { tenant: TENANT.into(), ..Turn::default() });
        let lineup = app.registry.current().lineup(&turn, &app.model_id);
        let filters = super::filters(app, &lineup, &turn, &TENANT.into());
        Answering(Chain::new(&filters, 1))
    }
}

/// The way of one answer through all filters.
pub struct Answering(Chain);

impl Answering {
    /// Takes the text of one token, and returns what may be sent; none when a filter failed that lets nothing pass then.
    pub async fn push(&mut self, text: &str, is_final: bool) -> Option<String> {
        let passed: Result<_, FilterFault> = self.0.push(text.to_owned(), [], is_final).await;
        passed.ok().map(|passed| passed.text)
    }
}
