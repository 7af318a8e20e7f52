//! The way of a turn: permit, session, policies, engine, filters.

mod answer;
pub(crate) mod ask;
mod compress;
pub(crate) mod filter;
mod job;
pub mod measure;
mod parts;
mod prepare;
pub(crate) mod prompt;
mod source;
pub(crate) mod trace;
mod verify;

use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use jackfield_policy::{Fault, Kind, Lineup, Member, OnFault, Plan, Turn, Window};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

pub(crate) use answer::Event;
pub(crate) use trace::{SESSION_HEADER, TRACE_HEADER, Trace};

use crate::app::App;
use crate::error::ApiError;
use crate::session::OpenSession;
use answer::{Answer, Parts};
use ask::{Ask, Caller, Input};
use filter::batch::Review;
use filter::{Filter, Seat, Witness};
use job::Needs;
use prepare::{Prepared, Preparing};
use source::Source;

/// What a turn holds from its first step to its last.
struct Opened {
    permit: OwnedSemaphorePermit,
    turn: Arc<Turn>,
    lineup: Lineup,
    session: Option<OpenSession>,
    salt: [u8; 32],
}

/// Takes a turn up to the point where its answer begins. What policies did is noted in `trace`, also when it fails.
///
/// # Errors
/// Everything that a client is told by a status: no such model, no place, a refusal, a fault, a prompt too long.
pub(crate) async fn begin(
    app: &Arc<App>,
    caller: Caller,
    mut ask: Ask,
    trace: &mut Trace,
) -> Result<Answer, ApiError> {
    let started = Instant::now();
    app.check_model(&ask.common.model)?;
    let opened = open(app, &caller, &mut ask).await?;
    trace.generation = opened.lineup.generation();
    trace.session = opened.session.as_ref().map(OpenSession::note);
    let filters = filters(app, &opened.lineup, &opened.turn, &caller.tenant);
    let stream_id = stream_id(&caller.id);
    let choices = ask.common.n;
    let (opened, ask, prepared) = prepare(app, ask, opened, trace).await?;
    for filter in &filters {
        trace.watch(&filter.policy, filter.desk.tally());
    }
    let (source, prompt_tokens, deadline) = match prepared {
        Prepared::Answer(text) => {
            app.metrics.policy_answered();
            (Source::answer(&text, choices), 0, None)
        }
        Prepared::Run { prompt, plan } => {
            let tokens = prompt.len();
            let deadline = plan.as_ref().and_then(|plan| plan.deadline_ms);
            let probabilities = filters.iter().any(|filter| filter.probabilities);
            let needs = Needs {
                engine: &app.engine,
                ask: &ask,
                plan: plan.as_ref(),
                salt: opened.salt,
                probabilities,
                keep_for: keep_for(app, &opened, plan.as_ref()),
            };
            let source = submit(&needs, prompt)?;
            (source, tokens, deadline.map(|ms| started + Duration::from_millis(ms.into())))
        }
    };
    Ok(Answer::new(Parts {
        app: Arc::clone(app),
        source,
        filters,
        choices,
        prompt_tokens,
        deadline,
        session: opened.session,
        generation: opened.lineup.generation(),
        permit: opened.permit,
        started,
        stream_id,
    }))
}

async fn open(app: &Arc<App>, caller: &Caller, ask: &mut Ask) -> Result<Opened, ApiError> {
    let permit = app.permit()?;
    let turn = Arc::new(ask.turn(caller, &app.config.locale, app.config.utc_offset_minutes));
    let lineup = app.registry.current().lineup(&turn, &ask.common.model);
    let session = match &ask.common.session {
        Some(id) => {
            let mut session = app.sessions.open(&caller.tenant, id, caller.unix_ms).await?;
            if let Input::Chat(messages) = &mut ask.input {
                *messages = session.take(messages);
            }
            Some(session)
        }
        None => None,
    };
    let salt = job::salt(&caller.tenant, &app.engine.model().fingerprint);
    Ok(Opened { permit, turn, lineup, session, salt })
}

/// The one hop off the async threads: policies, rendering and tokenising.
async fn prepare(
    app: &Arc<App>,
    ask: Ask,
    mut opened: Opened,
    trace: &mut Trace,
) -> Result<(Opened, Ask, Prepared), ApiError> {
    let app = Arc::clone(app);
    let mut noted = std::mem::take(trace);
    let work = move || {
        let preparing = Preparing {
            app: &app,
            lineup: &opened.lineup,
            turn: &opened.turn,
            ask: &ask,
            salt: opened.salt,
            trace: &mut noted,
        };
        let prepared = preparing.run(opened.session.as_mut());
        noted.session = opened.session.as_ref().map(OpenSession::note);
        (noted, prepared.map(|prepared| (opened, ask, prepared)))
    };
    let done = tokio::task::spawn_blocking(work).await;
    let (noted, prepared) =
        done.map_err(|_| ApiError::internal("internal_error", "The turn could not be prepared"))?;
    *trace = noted;
    prepared
}

fn submit(needs: &Needs<'_>, prompt: Vec<u32>) -> Result<Source, ApiError> {
    let job = job::job(needs, prompt)?;
    needs.engine.submit(job).map(Source::Engine).map_err(|error| job::submit_error(error, needs.ask))
}

/// For how long the blocks of a turn are kept once it is over: as a router says, else as long as sessions of this tenant have
/// theirs. What belongs to no session is not likely to go on.
fn keep_for(app: &App, opened: &Opened, plan: Option<&Plan>) -> Option<Duration> {
    let planned = plan.and_then(|plan| plan.keep_cache_s).map(|seconds| Duration::from_secs(seconds.into()));
    let usual = || opened.session.as_ref().map(|_| app.sessions.config.keep_for(&opened.turn.tenant));
    planned.or_else(usual).filter(|keep_for| !keep_for.is_zero())
}

/// The output filters of a turn, with the desks of its tenant.
fn filters(app: &Arc<App>, lineup: &Lineup, turn: &Arc<Turn>, tenant: &Arc<str>) -> Vec<Arc<Filter>> {
    let members = lineup.of_kind(Kind::OutputFilter);
    members.iter().map(|member| Arc::new(filter(app, member, turn, tenant))).collect()
}

fn filter(app: &Arc<App>, member: &Arc<Member>, turn: &Arc<Turn>, tenant: &Arc<str>) -> Filter {
    let policy = member.policy();
    let interest = policy.interest();
    let desk = app.desks.of(Arc::as_ptr(policy).addr(), tenant, || review(app, member, tenant));
    Filter {
        policy: prepare::name(policy),
        closed: policy.manifest().on_fault == OnFault::Closed,
        sent_tail_bytes: interest.sent_tail_bytes.into(),
        probabilities: interest.token_probabilities,
        watches: Arc::clone(policy.watches()),
        desk: Seat::at(desk),
        witness: member.wants_answers(tenant).then(|| witness(member, turn)),
    }
}

/// A policy's review, counted.
fn review(app: &Arc<App>, member: &Arc<Member>, tenant: &Arc<str>) -> Review {
    let (app, member, tenant) = (Arc::downgrade(app), Arc::clone(member), Arc::clone(tenant));
    Arc::new(move |windows: &[Window]| {
        let called = member.review(&tenant, windows);
        if let Some(app) = app.upgrade() {
            let name = &member.version().name;
            match &called {
                Ok(called) => app.metrics.policy_called(name, called.micros),
                Err(fault) => app.metrics.policy_faulted(name, fault_kind(fault)),
            }
        }
        called
    })
}

/// Tells of whole answers where someone looks on.
fn witness(member: &Arc<Member>, turn: &Arc<Turn>) -> Witness {
    let (member, turn) = (Arc::clone(member), Arc::clone(turn));
    Box::new(move |text, sent, stop| member.saw_answer(&turn, text, sent, stop))
}

fn stream_id(turn: &str) -> u32 {
    let hash = blake3::hash(turn.as_bytes());
    let bytes = hash.as_bytes();
    u32::from_le_bytes([bytes[4], bytes[5], bytes[6], bytes[7]])
}

/// A policy failed and its manifest says that the turn must not go on.
fn policy_error(message: String) -> ApiError {
    ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "policy_error", "policy_fault", message)
}

/// A router refused the turn.
fn refused(status: u16, reason: &str) -> ApiError {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::FORBIDDEN);
    ApiError::new(status, "policy_error", "policy_refused", reason)
}

/// A fault's kind, as a label: one of a few words.
fn fault_kind(fault: &Fault) -> &'static str {
    fault.label()
}

/// A fault found here, in an answer that the runtime had let pass.
fn invalid_fault(what: &str) -> Fault {
    Fault::Invalid { what: what.to_owned() }
}
