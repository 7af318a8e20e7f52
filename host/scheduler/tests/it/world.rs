//! A scheduler with everything around it faked and watched.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZero;

use jackfield_scheduler::{
    AddError, Adoption, BlockHash, BlockId, Config, Demoted, Event, FinishReason, Millis, Plan, Request,
    RequestId, Sampled, Scheduler, SequenceId, Usage, Work, block_hashes, tail_hashes,
};

use crate::stream::{StopAt, Stream, alone};

pub(crate) struct World {
    pub(crate) scheduler: Scheduler,
    pub(crate) now: Millis,
    config: Config,
    /// For each slot of each block the mark it was written with.
    arena: Vec<Option<u64>>,
    /// What was in the blocks that were given to something else.
    tier: BTreeMap<BlockHash, Vec<u64>>,
    /// How many positions count of blocks that were left begun.
    begun: BTreeMap<BlockHash, usize>,
    /// Every sequence there ever was; the cancelled and finished ones too.
    streams: BTreeMap<SequenceId, Stream>,
    pub(crate) requests: BTreeMap<RequestId, Watched>,
    /// Those that must get a token in every step unless they are preempted.
    decoding: BTreeSet<SequenceId>,
}

pub(crate) struct Watched {
    request: Request,
    /// When it arrived, its priority added as a delay.
    due: u64,
    stop: StopAt,
    pub(crate) sequences: Vec<SequenceId>,
    pub(crate) cancelled: BTreeSet<SequenceId>,
    pub(crate) finished: BTreeMap<SequenceId, FinishReason>,
    pub(crate) done: Option<Usage>,
    /// Cancelled as a whole: nothing more is told of it.
    given_up: bool,
    /// Positions whose logits were told.
    scored: BTreeSet<usize>,
}

impl World {
    pub(crate) fn new(config: Config) -> Self {
        World {
            scheduler: Scheduler::new(config.clone()).unwrap(),
            now: Millis(0),
            arena: vec![None; config.blocks * config.block_size],
            tier: BTreeMap::new(),
            begun: BTreeMap::new(),
            config,
            streams: BTreeMap::new(),
            requests: BTreeMap::new(),
            decoding: BTreeSet::new(),
        }
    }

    pub(crate) fn add(&mut self, request: Request, stop: StopAt) -> Result<Vec<SequenceId>, AddError> {
        let sequences = self.scheduler.add(request.clone(), self.now)?;
        assert_eq!(sequences.len(), request.n as usize);
        for (choice, id) in sequences.iter().enumerate() {
            let earlier = self.streams.insert(*id, Stream::new(&request, choice as u64, stop));
            assert!(earlier.is_none(), "{id} was given out twice");
        }
        let priority = if request.score { 256 } else { u64::from(request.priority) };
        let due = self.now.0 + priority * self.config.ageing_ms;
        let cancelled = BTreeSet::new();
        let (sequences_kept, finished) = (sequences.clone(), BTreeMap::new());
        let watched = Watched {
            request,
            due,
            stop,
            sequences: sequences_kept,
            cancelled,
            finished,
            done: None,
            given_up: false,
            scored: BTreeSet::new(),
        };
        self.requests.insert(watched.request.id, watched);
        self.audit();
        Ok(sequences)
    }

    pub(crate) fn cancel(&mut self, id: RequestId) -> bool {
        let known = self.scheduler.cancel(id);
        let watched = self.requests.get_mut(&id);
        assert_eq!(
            known,
            watched.as_ref().is_some_and(|watched| watched.open().next().is_some()),
            "cancel {id}"
        );
        if let Some(watched) = watched {
            let open: Vec<_> = watched.open().collect();
            self.decoding.retain(|sequence| !open.contains(sequence));
            watched.cancelled.extend(open);
            watched.given_up |= known;
        }
        self.audit();
        known
    }

    pub(crate) fn cancel_sequence(&mut self, id: SequenceId) -> bool {
        let free = self.scheduler.stats().free_blocks;
        let known = self.scheduler.cancel_sequence(id);
        assert!(self.scheduler.stats().free_blocks >= free, "its blocks are freed at once");
        let watched = self.requests.values_mut().find(|watched| watched.sequences.contains(&id)).unwrap();
        assert_eq!(known, watched.open().any(|open| open == id), "cancel {id}");
        if known {
            watched.cancelled.insert(id);
            self.decoding.remove(&id);
        }
        self.audit();
        known
    }

    pub(crate) fn step(&mut self) -> (Plan, Vec<Event>) {
        let plan = self.plan();
        let sampled = self.run(&plan);
        let events = self.commit(&plan, &sampled);
        (plan, events)
    }

    /// A step in the middle of `outer`, which may have written some of its rows already; nothing when nobody may pass.
    pub(crate) fn interpose(&mut self, outer: &Plan) -> Option<(Plan, Vec<Event>)> {
        let plan = self.scheduler.interpose(self.now);
        self.save(&plan.demoted);
        self.audit();
        if plan.is_empty() {
            return None;
        }
        assert!(outer.reads_on(), "nobody reads on in {outer}, and yet somebody passed: {plan}");
        assert!(plan.tokens() <= self.config.max_step_tokens, "over the budget: {plan}");
        assert!(plan.copies.is_empty() && plan.preempted.is_empty() && !plan.reads_on(), "{plan}");
        let writes = |plan: &Plan| -> BTreeSet<_> {
            let slots =
                |work: &Work| (work.start..work.end()).map(|at| self.slot_of(work, at)).collect::<Vec<_>>();
            plan.work.iter().flat_map(slots).collect()
        };
        assert!(writes(outer).is_disjoint(&writes(&plan)), "{plan} writes where {outer} does");
        self.check_work(&plan);
        let sampled = self.run(&plan);
        let events = self.commit(&plan, &sampled);
        Some((plan, events))
    }

    /// Schedules, and checks what can be said of a plan before it runs.
    pub(crate) fn plan(&mut self) -> Plan {
        let idle = self.requests.values().all(|watched| watched.open().next().is_none());
        let plan = self.scheduler.schedule(self.now);
        self.save(&plan.demoted);
        assert_eq!(plan.is_empty(), idle, "an empty plan and unfinished requests, or the reverse: {plan}");
        assert!(plan.tokens() <= self.config.max_step_tokens, "over the budget: {plan}");
        self.check_work(&plan);
        let sampling: BTreeSet<_> = plan.sampling().collect();
        assert_eq!(sampling.len(), plan.sampling().count(), "somebody samples twice: {plan}");
        let mut decoding = self.decoding.iter();
        let starved = decoding.find(|id| !sampling.contains(id) && !plan.preempted.contains(id));
        assert_eq!(starved, None, "decodes and is left out: {plan}");
        let ranked = self.requests.values().flat_map(|watched| watched.open().map(|id| (watched.due, id)));
        if let Some((_, first)) = ranked.min() {
            assert!(!plan.preempted.contains(&first), "the first in rank gave way: {plan}");
        }
        self.decoding.retain(|id| !plan.preempted.contains(id));
        self.audit();
        plan
    }

    /// Chunks of prefill keep to the work of the step, attention counted. (A single token may be one that has to move.)
    fn check_work(&self, plan: &Plan) {
        let Some(depth) = self.config.positions_per_token.map(NonZero::get) else { return };
        let cost = |work: &Work| (work.start..work.end()).map(|position| depth + position).sum::<usize>();
        let work: usize = plan.work.iter().filter(|work| work.tokens.len() > 1).map(cost).sum();
        assert!(work <= depth * self.config.max_step_tokens, "over the work of a step: {plan}");
    }

    /// Runs a plan on the arena: copies, then all writes, then all reads. Returns what each row samples.
    pub(crate) fn run(&mut self, plan: &Plan) -> Vec<Sampled> {
        for copy in &plan.copies {
            for offset in 0..self.config.block_size {
                let (from, to) = (self.slot(copy.from, offset), self.slot(copy.to, offset));
                self.arena[to] = self.arena[from];
            }
        }
        self.run_rows(plan)
    }

    /// What is left of a plan after its copies; to be done any number of times.
    pub(crate) fn run_rows(&mut self, plan: &Plan) -> Vec<Sampled> {
        let mut written = BTreeSet::new();
        for work in &plan.work {
            self.write(work, &mut written);
        }
        plan.work.iter().flat_map(|work| self.read(work)).collect()
    }

    pub(crate) fn commit(&mut self, plan: &Plan, sampled: &[Sampled]) -> Vec<Event> {
        let mut events = Vec::new();
        self.scheduler.commit(plan, sampled, self.now, &mut events);
        self.scheduler.recycle(plan.clone());
        for work in plan.work.iter().filter(|work| work.score) {
            assert!(work.sample.is_empty(), "scored and sampled: {work}");
            let watched = self.requests.values_mut().find(|watched| watched.sequences == [work.sequence]);
            watched.expect("it was asked for").scored.extend(work.start..work.end());
        }
        let open: Vec<_> = plan.sampling().filter(|id| self.is_open(*id)).collect();
        self.decoding.extend(open);
        for event in &events {
            self.note(event);
        }
        let untold = self.requests.values().find(|watched| !watched.given_up && watched.is_untold());
        assert!(untold.is_none(), "its last choice has ended, and no usage was told");
        self.audit();
        events
    }

    /// Prompt and continuation of a sequence.
    pub(crate) fn tokens(&self, id: SequenceId) -> &[u32] {
        &self.streams[&id].tokens
    }

    /// Brings back what the tier has of these tokens, but for every so-manieth block of them, which it loses.
    pub(crate) fn adopt(&mut self, tokens: &[u32], salt: &[u8; 32], lost: Option<usize>) -> Adoption {
        let mut chain = block_hashes(tokens, salt, self.config.block_size);
        for prefix in chain.iter().step_by(lost.unwrap_or(usize::MAX)).filter(|_| lost.is_some()) {
            self.tier.remove(prefix);
        }
        // Where nobody has the next block whole, somebody may have its beginning.
        let held = |name: &BlockHash| self.tier.contains_key(name) || self.scheduler.find(name).is_some();
        let whole = chain.iter().take_while(|prefix| held(prefix)).count();
        let tails = tail_hashes(tokens, salt, self.config.block_size, &chain, whole);
        let mut begun = None;
        if let Some(tail) = tails.into_iter().find(held) {
            chain.truncate(whole);
            begun = Some(tail);
        }
        let free = self.scheduler.stats().free_blocks;
        let names: Vec<_> = chain.iter().copied().chain(begun).collect();
        let before: Vec<_> = names.iter().map(|prefix| self.scheduler.find(prefix)).collect();
        let adoption = self.scheduler.adopt(&chain, begun, |link| self.tier.contains_key(&names[link]));
        self.save(&adoption.demoted);
        for adopted in &adoption.adopted {
            assert_eq!(before[adopted.link], None, "adopted what was there");
            let marks = self.tier[&names[adopted.link]].clone();
            for (offset, mark) in marks.into_iter().enumerate() {
                let slot = self.slot(adopted.block, offset);
                self.arena[slot] = Some(mark);
            }
        }
        if let Some(last) = adoption.adopted.last() {
            let kept = before[..last.link].iter().zip(&names);
            kept.filter_map(|(block, prefix)| Some((*block)?).zip(self.scheduler.find(prefix)))
                .for_each(|(before, after)| assert_eq!(before, after, "a block of the chain was moved"));
            assert!(
                names[..=last.link].iter().all(|prefix| self.scheduler.find(prefix).is_some()),
                "a chain with a gap"
            );
        }
        assert_eq!(self.scheduler.stats().free_blocks, free, "what is adopted is free");
        self.audit();
        adoption
    }

    /// Copies out what was given to something else; it must be there still, and whole.
    fn save(&mut self, demoted: &[Demoted]) {
        for Demoted { block, prefix, whole } in demoted {
            let filled = if *whole { self.config.block_size } else { self.begun[prefix] };
            let slots = (0..filled).map(|offset| self.arena[self.slot(*block, offset)]);
            let marks: Vec<u64> = slots.map(|mark| mark.expect("a slot was never written")).collect();
            if let Some(earlier) = self.tier.insert(*prefix, marks.clone()) {
                assert_eq!(earlier, marks, "{block} was demoted as something else");
            }
        }
    }

    /// A plan that is never committed. It may have run or not.
    pub(crate) fn lose(&mut self, runs: bool) -> Plan {
        let plan = self.plan();
        if runs {
            self.run(&plan);
        }
        if !plan.copies.is_empty() {
            // Who got a copy computes its block again, which need not fit one step.
            self.decoding.clear();
        }
        plan
    }

    /// Steps until nothing is left, then checks that nothing is.
    pub(crate) fn finish(&mut self, mut each: impl FnMut(&Plan, &[Event])) {
        let mut steps = 0;
        while !self.scheduler.is_idle() {
            let (plan, events) = self.step();
            each(&plan, &events);
            steps += 1;
            assert!(steps < 20_000, "no end: {:?}", self.scheduler.stats());
        }
        let stats = self.scheduler.stats();
        assert_eq!(
            (stats.used_blocks, stats.running, stats.waiting, stats.preempted),
            (0, 0, 0, 0),
            "leaked"
        );
        self.requests.values().for_each(|watched| self.check_finished(watched));
    }

    fn write(&mut self, work: &Work, written: &mut BTreeSet<usize>) {
        let stream = &self.streams[&work.sequence];
        assert_eq!(work.tokens, stream.tokens[work.start..work.end()], "wrong tokens: {work}");
        assert_eq!(work.table.len(), work.end().div_ceil(self.config.block_size), "wrong table: {work}");
        for position in work.start..work.end() {
            let slot = self.slot_of(work, position);
            assert!(written.insert(slot), "two sequences write one slot: {work}");
            self.arena[slot] = Some(stream.mark(position));
        }
    }

    fn read(&self, work: &Work) -> Vec<Sampled> {
        let stream = &self.streams[&work.sequence];
        for position in 0..work.end() {
            let held = self.arena[self.slot_of(work, position)];
            assert_eq!(held, Some(stream.mark(position)), "position {position} holds something else: {work}");
        }
        let sample = |id: &SequenceId| {
            let stream = &self.streams[id];
            assert_eq!(stream.tokens.len(), work.end(), "{id} samples from the middle: {work}");
            let (token, stop) = stream.next();
            Sampled { sequence: *id, token, stop }
        };
        work.sample.iter().map(sample).collect()
    }

    fn note(&mut self, event: &Event) {
        match *event {
            Event::Token { sequence, token } => {
                assert!(self.is_open(sequence), "{event}, which is not open");
                self.streams.get_mut(&sequence).unwrap().push(token);
            }
            Event::Finished { sequence, reason, tokens } => {
                assert_eq!(tokens, self.streams[&sequence].generated(), "{event}");
                self.decoding.remove(&sequence);
                self.note_tail(sequence);
                let open =
                    self.requests.values_mut().find(|watched| watched.open().any(|open| open == sequence));
                open.expect("finished twice, or after it was cancelled").finished.insert(sequence, reason);
            }
            Event::RequestDone { request, usage } => {
                let watched = self.requests.get_mut(&request).unwrap();
                assert!(
                    watched.open().next().is_none() && watched.done.is_none(),
                    "{event}, too early or twice"
                );
                watched.done = Some(usage);
            }
        }
    }

    /// All of a sequence that has ended is in the arena but its last token.
    fn note_tail(&mut self, id: SequenceId) {
        let watched = self.requests.values().find(|watched| watched.sequences.contains(&id));
        let salt = watched.expect("it was asked for").request.salt;
        let (tokens, block_size) = (&self.streams[&id].tokens, self.config.block_size);
        let computed = &tokens[..tokens.len() - 1];
        let chain = block_hashes(computed, &salt, block_size);
        let tails = tail_hashes(computed, &salt, block_size, &chain, chain.len());
        if let Some(longest) = tails.first() {
            self.begun.insert(*longest, computed.len() % block_size);
        }
    }

    /// Each stream is what it would have been alone, or the beginning of that when it was cancelled.
    fn check_finished(&self, watched: &Watched) {
        let mut completion_tokens = 0;
        if watched.finished.values().any(|reason| *reason == FinishReason::Scored) {
            assert!(
                watched.scored.iter().copied().eq(0..watched.request.prompt.len()),
                "a row was not scored"
            );
            assert_eq!(watched.done.map(|usage| usage.cached_tokens), Some(0));
        }
        for (choice, id) in watched.sequences.iter().enumerate() {
            let (tokens, reason) = alone(&watched.request, choice as u64, watched.stop, &self.config);
            let generated = &self.streams[id].tokens[watched.request.prompt.len()..];
            completion_tokens += generated.len();
            match watched.finished.get(id) {
                Some(found) => assert_eq!((generated, *found), (&tokens[..], reason), "{id}"),
                None => assert!(watched.cancelled.contains(id) && tokens.starts_with(generated), "{id}"),
            }
        }
        if let Some(usage) = watched.done {
            assert_eq!(usage.prompt_tokens, watched.request.prompt.len());
            assert_eq!(usage.completion_tokens, completion_tokens);
            assert!(usage.cached_tokens < usage.prompt_tokens, "{usage}");
        }
        assert_ne!(watched.done.is_some(), watched.given_up, "told done unless it was given up");
    }

    fn audit(&self) {
        self.scheduler.audit().unwrap();
        let stats = self.scheduler.stats();
        assert_eq!(stats.used_blocks + stats.free_blocks, self.config.blocks);
        assert!(stats.running <= self.config.max_running && stats.waiting <= self.config.max_waiting);
    }

    fn is_open(&self, id: SequenceId) -> bool {
        self.requests.values().any(|watched| watched.open().any(|open| open == id))
    }

    fn slot_of(&self, work: &Work, position: usize) -> usize {
        self.slot(work.table[position / self.config.block_size], position % self.config.block_size)
    }

    fn slot(&self, block: BlockId, offset: usize) -> usize {
        block.0 as usize * self.config.block_size + offset
    }
}

impl Watched {
    fn is_untold(&self) -> bool {
        self.done.is_none() && self.open().next().is_none()
    }

    /// All choices there ever were, and their salt.
    pub(crate) fn everybody(&self) -> impl Iterator<Item = (SequenceId, [u8; 32])> + '_ {
        self.sequences.iter().map(|id| (*id, self.request.salt))
    }

    /// Choices neither finished nor cancelled.
    pub(crate) fn open(&self) -> impl Iterator<Item = SequenceId> + '_ {
        let closed = |id: &SequenceId| self.finished.contains_key(id) || self.cancelled.contains(id);
        self.sequences.iter().copied().filter(move |id| !closed(id))
    }
}
