//! Before the model: extract, route, compress. Synchronous, CPU bound; one hop off the async threads for all of it.

use std::time::Instant;

use jackfield_engine::{Engine, Fetch};
use jackfield_model::Now;
use jackfield_policy::{
    Called, Decision, Dialog, Fault, Kind, Lineup, Member, Mode, Next, OnFault, Plan, Policy, RouteRequest,
    Stamp, Target, Turn,
};

use super::ask::{Ask, Input, for_policy, from_policy};
use super::prompt;
use super::trace::Trace;
use crate::app::App;
use crate::error::{ApiError, shorten};
use crate::openai::{Message, Role};
use crate::session::{OpenSession, Wanted, Went};

/// Messages that an extractor is shown.
const RECENT_MESSAGES: usize = 32;
/// The attribute of a transition by which a slot extractor has the turn go back to an earlier topic; its value says to which,
/// and that it is the one that the user speaks of when it is empty.
const RECALL_ATTRIBUTE: &str = "recall";

/// How a turn goes on.
#[derive(Debug)]
pub(crate) enum Prepared {
    /// To the model.
    Run { prompt: Vec<u32>, plan: Option<Plan> },
    /// A policy has answered.
    Answer(String),
}

/// The blocking part of one turn.
pub(crate) struct Preparing<'a> {
    pub(crate) app: &'a App,
    pub(crate) lineup: &'a Lineup,
    pub(crate) turn: &'a Turn,
    pub(crate) ask: &'a Ask,
    pub(crate) salt: [u8; 32],
    pub(crate) trace: &'a mut Trace,
}

impl Preparing<'_> {
    /// Runs the policies of the pinned generation in their order. The session's dialog becomes the state to commit, and the
    /// session goes back where it is to.
    ///
    /// # Errors
    /// A refusal by a router, a fault of a policy that lets nothing pass then, or a prompt that cannot be made.
    pub(crate) fn run(mut self, mut session: Option<&mut OpenSession>) -> Result<Prepared, ApiError> {
        let mut messages = match &self.ask.input {
            Input::Chat(messages) => messages.clone(),
            Input::Raw(_) => Vec::new(),
        };
        if let Some(session) = session.as_deref_mut()
            && let Some(wanted) = session.wanted(self.ask.common.recall.as_ref())
        {
            self.go_back(&mut messages, session, &wanted);
        }
        let mut stateless = Dialog::default();
        if let Some(answer) = self.extract(&mut messages, session.as_deref_mut(), &mut stateless)? {
            return Ok(Prepared::Answer(answer));
        }
        let prompt = self.prompt(&messages)?;
        // What lies below the device comes up while the router thinks.
        let coming = self.engine().fetch(&prompt, &self.salt);
        let dialog = session.as_deref().map_or(&stateless, |session| &session.dialog);
        let plan = match self.route(&messages, &prompt, dialog)? {
            Some(Decision::Answer(answer)) => return Ok(Prepared::Answer(answer)),
            Some(Decision::Refuse(refusal)) => return Err(super::refused(refusal.status, &refusal.reason)),
            Some(Decision::Run(plan)) => Some(plan),
            None => None,
        };
        let keep = plan.as_ref().map_or(self.app.config.compress_to, |plan| plan.compress_to);
        let held = coming.wait().ready_tokens;
        let prompt = match keep {
            Some(keep) if keep < 1.0 && !messages.is_empty() => {
                self.compress(messages, (prompt, held), keep)?
            }
            _ => prompt,
        };
        Ok(Prepared::Run { prompt, plan })
    }

    pub(super) fn engine(&self) -> &Engine {
        &self.app.engine
    }

    /// Waits for what lies below the device; gives how many leading tokens of the prompt need not be computed.
    pub(super) fn held(&self, prompt: &[u32], coming: Fetch) -> usize {
        coming.wait().ready_tokens.max(self.engine().cached_prefix(prompt, &self.salt))
    }

    pub(super) fn prompt(&self, messages: &[Message]) -> Result<Vec<u32>, ApiError> {
        let now = Now {
            unix_s: self.turn.now.unix_ms.div_euclid(1000),
            utc_offset_s: i32::from(self.turn.now.utc_offset_minutes) * 60,
        };
        match &self.ask.input {
            Input::Chat(_) => prompt::of_chat(self.engine(), messages, now),
            Input::Raw(raw) => prompt::of_raw(self.engine(), raw),
        }
    }

    /// Goes on after an earlier segment, where one is meant: what was said since then is no part of the conversation.
    fn go_back(&mut self, messages: &mut Vec<Message>, session: &mut OpenSession, wanted: &Wanted) {
        let begun = Instant::now();
        let went = session.go_back(wanted);
        if let Went::Back(_) = went {
            *messages = session.messages();
        }
        let micros = u32::try_from(begun.elapsed().as_micros()).unwrap_or(u32::MAX);
        self.app.metrics.recalled(went.outcome());
        self.trace.note("host", "recall", went.did(), micros);
    }

    /// Only a person's words are read for slots: a turn that ends in something else is left alone.
    fn extract(
        &mut self,
        messages: &mut Vec<Message>,
        mut session: Option<&mut OpenSession>,
        stateless: &mut Dialog,
    ) -> Result<Option<String>, ApiError> {
        let lineup = self.lineup;
        let mut is_conversation = true;
        for member in lineup.of_kind(Kind::SlotExtractor) {
            if messages.last().is_none_or(|last| last.role != Role::User) {
                return Ok(None);
            }
            let dialog = session.as_deref_mut().map_or(&mut *stateless, |session| &mut session.dialog);
            let fitted = member.fit(dialog);
            if let Some(did) = fitted.did {
                self.trace.note(&name(member.policy()), Kind::SlotExtractor.world(), did, 0);
            }
            let member = fitted.instead.as_ref().unwrap_or(member);
            let from = messages.len().saturating_sub(RECENT_MESSAGES);
            let recent: Vec<_> = messages[from..].iter().map(for_policy).collect();
            let called = member.extract(self.turn, &recent, dialog);
            let Some(transition) = self.settle(member, called, did::transition)? else {
                continue;
            };
            let stamp = Stamp {
                turn: dialog.turns.saturating_add(1),
                policy: &name(member.policy()),
                schema: member.policy().description().dialog_schema,
            };
            *dialog = transition.apply(dialog, stamp);
            let back = transition.attributes.iter().find(|attribute| attribute.name == RECALL_ATTRIBUTE);
            match transition.next {
                Next::Model => {
                    // A prompt that a policy has written is not undone.
                    if let (Some(back), Some(session), true) = (back, session.as_deref_mut(), is_conversation)
                    {
                        let wanted = session.wanted_as(&back.value);
                        self.go_back(messages, session, &wanted);
                    }
                }
                Next::Prompt(prompt) => {
                    *messages = prompt.iter().map(from_policy).collect();
                    is_conversation = false;
                }
                Next::Answer(answer) => return Ok(Some(answer)),
            }
        }
        Ok(None)
    }

    /// The first router that does not fail decides; the next ones are there for when it does.
    fn route(
        &mut self,
        messages: &[Message],
        prompt: &[u32],
        dialog: &Dialog,
    ) -> Result<Option<Decision>, ApiError> {
        let lineup = self.lineup;
        let routers = lineup.of_kind(Kind::Router);
        if routers.is_empty() {
            return Ok(None);
        }
        let request = self.route_request(messages, prompt, dialog);
        let fleet = [self.target(prompt)];
        for member in routers {
            let called = member.route(self.turn, &request, &fleet).and_then(without_grammar);
            if let Some(decision) = self.settle(member, called, did::decision)? {
                return Ok(Some(decision));
            }
        }
        Ok(None)
    }

    fn route_request(&self, messages: &[Message], prompt: &[u32], dialog: &Dialog) -> RouteRequest {
        let last_user = messages.iter().rev().find(|message| message.role == Role::User);
        let raw = match &self.ask.input {
            Input::Raw(crate::openai::request::Prompt::Text(text)) => text.as_str(),
            _ => "",
        };
        RouteRequest {
            prompt_tokens: prompt.len() as u32,
            messages: messages.len() as u32,
            last_user_text: last_user.map_or(raw, |message| message.text()).to_owned(),
            slots: dialog.slots.iter().map(Into::into).collect(),
            wanted_model: self.ask.common.model.clone(),
            max_tokens: self.ask.max_tokens.map(|most| u32::try_from(most).unwrap_or(u32::MAX)),
            attributes: Vec::new(),
        }
    }

    /// The one place where a turn can run.
    fn target(&self, prompt: &[u32]) -> Target {
        let stats = self.engine().stats();
        Target {
            model: self.app.model_id.clone(),
            modes: vec![Mode::Generate],
            queue_depth: stats.scheduler.waiting as u32,
            free_blocks: stats.scheduler.free_blocks as u32,
            cached_tokens: self.engine().cached_prefix(prompt, &self.salt) as u32,
            ttft_p50_ms: self.app.ttft_p50_ms(),
            attributes: Vec::new(),
        }
    }

    /// Books a call: its time, what it did, its fault. A fault of a policy that is open is as if it had not been there.
    pub(super) fn settle<T>(
        &mut self,
        member: &Member,
        called: Result<Called<T>, Fault>,
        did: impl FnOnce(&T) -> String,
    ) -> Result<Option<T>, ApiError> {
        let policy = member.policy();
        let (name, kind) = (name(policy), policy.manifest().kind.world());
        match called {
            Ok(called) => {
                self.app.metrics.policy_called(&policy.manifest().name, called.micros);
                self.trace.note(&name, kind, did(&called.answer), called.micros);
                Ok(Some(called.answer))
            }
            Err(fault) => {
                self.app.metrics.policy_faulted(&policy.manifest().name, super::fault_kind(&fault));
                tracing::warn!(policy = name, %fault, "a policy failed");
                self.trace.note(&name, kind, format!("fault: {}", super::fault_kind(&fault)), 0);
                match policy.manifest().on_fault {
                    OnFault::Open => Ok(None),
                    OnFault::Closed => Err(super::policy_error(format!(
                        "The {kind} `{name}` failed ({}), and the turn may not go on without it",
                        super::fault_kind(&fault)
                    ))),
                }
            }
        }
    }
}

/// `name@version`, for traces and logs.
pub(crate) fn name(policy: &Policy) -> String {
    let version = policy.version();
    format!("{}@{}", version.name, version.version)
}

/// A plan that asks for a grammar cannot be kept here yet, and an answer that breaks it would look as if it had been.
fn without_grammar(called: Called<Decision>) -> Result<Called<Decision>, Fault> {
    match &called.answer {
        Decision::Run(plan) if plan.guidance.as_ref().is_some_and(|guidance| guidance.grammar.is_some()) => {
            Err(super::invalid_fault("`guidance.grammar` is not supported by this host"))
        }
        _ => Ok(called),
    }
}

/// What policies did, in a few words, for traces.
pub(super) mod did {
    use jackfield_policy::{Decision, Edit, Next, Plan, Transition};

    use super::shorten;

    pub(super) fn transition(transition: &Transition) -> String {
        let next = match &transition.next {
            Next::Model => "model",
            Next::Prompt(_) => "prompt",
            Next::Answer(_) => "answer",
        };
        let set: Vec<&str> = transition.set.iter().map(|slot| slot.name.as_str()).collect();
        let mut text = format!("state {}; next {next}", shorten(&transition.state));
        if !set.is_empty() {
            text += &format!("; set {}", shorten(&set.join(", ")));
        }
        if !transition.clear.is_empty() {
            text += &format!("; cleared {}", shorten(&transition.clear.join(", ")));
        }
        text
    }

    pub(super) fn decision(decision: &Decision) -> String {
        match decision {
            Decision::Run(plan) => self::plan(plan),
            Decision::Answer(_) => "answer".into(),
            Decision::Refuse(refusal) => format!("refuse {}", refusal.status),
        }
    }

    /// Names what this host does not do yet, so that nobody takes silence for consent.
    fn plan(plan: &Plan) -> String {
        let mut text = format!("run on {}; priority {}", shorten(&plan.target), plan.priority);
        if let Some(most) = plan.max_tokens {
            text += &format!("; at most {most} tokens");
        }
        if let Some(keep) = plan.compress_to {
            text += &format!("; compress to {keep}");
        }
        if let Some(deadline) = plan.deadline_ms {
            text += &format!("; deadline {deadline} ms");
        }
        if let Some(seconds) = plan.keep_cache_s {
            text += &format!("; cache kept {seconds} s");
        }
        let later = [
            ("task", plan.task.is_some()),
            ("draft-tokens", plan.draft_tokens.is_some()),
            ("exit-threshold", plan.exit_threshold.is_some()),
            ("minimal-output", plan.minimal_output),
        ];
        for (name, _) in later.iter().filter(|(_, asked)| *asked) {
            text += &format!("; {name} ignored");
        }
        text
    }

    pub(in crate::turn) fn edits(edits: &[Edit]) -> String {
        let dropped: u64 = edits.iter().map(|edit| u64::from(edit.at.len())).sum();
        format!("{} edits over {dropped} bytes", edits.len())
    }
}
