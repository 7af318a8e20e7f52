//! A text trace in, what the scheduler did out.
//!
//! One command a line, `#` begins a comment:
//! ```text
//! config block=4 blocks=8 step=16 running=4 waiting=8 context=64 ageing=1000 cache=on   (first, all optional)
//! add a prompt=sys:8+a:3 n=2 max=5 prio=1 salt=2 stop=3    (score=true: nothing is generated) prompt: pieces of named text; `prompt=11` is `a:11`,
//!                                                          `prompt=@a.0+b:3` begins with all of a.0 and its answer
//! step / step x3 / run             one step, three, until idle (then only what ends or is preempted is shown)
//! cancel a / cancel a.1            a request, one choice of it
//! during cancel a                  schedule, then this, then run and commit
//! during pass                      the same with an interposed step; several commands are parted by `;`
//! lose                             schedule, and drop the plan
//! mute a.0                         a step in which the sampler says nothing for a.0
//! at 500                           the time
//! adopt a                          what was evicted of a's prompt comes back
//! stats / cached a                 counters; how much of a's prompt is held
//! ```

use std::collections::BTreeMap;
use std::fmt::Write;
use std::num::NonZero;
use std::str::FromStr;

use expect_test::Expect;
use jackfield_scheduler::{Config, Event, Millis, Plan, Request, RequestId, SequenceId};

use crate::stream::{StopAt, text};
use crate::world::World;

/// Runs a trace to its end, and then the world until it is idle, where its last checks are.
#[track_caller]
pub(crate) fn check(trace: &str, expected: Expect) {
    let mut lines =
        trace.lines().map(|line| line.split('#').next().unwrap().trim()).filter(|line| !line.is_empty());
    let mut tracer = Tracer::new(lines.next().expect("a config line"));
    for line in lines {
        tracer.command(line);
    }
    tracer.world.finish(|_, _| ());
    expected.assert_eq(&tracer.out);
}

struct Tracer {
    world: World,
    names: BTreeMap<String, (RequestId, Vec<SequenceId>)>,
    prompts: BTreeMap<String, Request>,
    out: String,
}

struct Options<'a>(BTreeMap<&'a str, &'a str>);

impl Tracer {
    fn new(line: &str) -> Self {
        let (command, rest) = line.split_once(' ').unwrap_or((line, ""));
        assert_eq!(command, "config");
        let options = Options::parse(rest);
        let world = World::new(Config {
            block_size: options.get("block", 4),
            blocks: options.get("blocks", 32),
            max_step_tokens: options.get("step", 16),
            busy_prefill_tokens: options.get("busy", usize::MAX),
            positions_per_token: NonZero::new(options.get("depth", 0)),
            max_running: options.get("running", 4),
            max_waiting: options.get("waiting", 8),
            max_context: options.get("context", 64),
            ageing_ms: options.get("ageing", 1000),
            prefix_cache: options.get("cache", "on".to_owned()) == "on",
        });
        Tracer { world, names: BTreeMap::new(), prompts: BTreeMap::new(), out: String::new() }
    }

    fn command(&mut self, line: &str) {
        let (command, rest) = line.split_once(' ').unwrap_or((line, ""));
        match command {
            "add" => self.add(rest),
            "step" => (0..rest.trim_start_matches('x').parse().unwrap_or(1)).for_each(|_| self.step()),
            "run" => self.run(),
            "cancel" => self.cancel(rest),
            "during" => self.during(rest),
            "lose" => self.lose(),
            "mute" => self.mute(rest),
            "at" => self.world.now = Millis(rest.parse().unwrap()),
            "stats" => self.say(&self.world.scheduler.stats().to_string()),
            "cached" => self.cached(rest),
            "adopt" => self.adopt(rest),
            _ => panic!("no such command: {line}"),
        }
    }

    fn add(&mut self, rest: &str) {
        let (name, options) = rest.split_once(' ').unwrap_or((rest, ""));
        let options = Options::parse(options);
        let request = Request {
            prompt: self.prompt(name, &options.get("prompt", "8".to_owned())),
            n: options.get("n", 1),
            max_new_tokens: options.get("max", 2),
            priority: options.get("prio", 0),
            salt: [options.get("salt", 0); 32],
            score: options.get("score", false),
            ..Request::new(RequestId(options.get("id", self.prompts.len() as u64)))
        };
        let stop =
            options.0.get("stop").map_or(StopAt::Never, |number| StopAt::Token(number.parse().unwrap()));
        self.prompts.insert(name.to_owned(), request.clone());
        let id = request.id;
        match self.world.add(request, stop) {
            Ok(sequences) => {
                let listed: Vec<_> = sequences.iter().map(ToString::to_string).collect();
                self.say(&format!("{name} is {}", listed.join(" ")));
                self.names.insert(name.to_owned(), (id, sequences));
            }
            Err(refused) => self.say(&format!("{name} refused: {refused}")),
        }
    }

    fn step(&mut self) {
        let (plan, events) = self.world.step();
        self.show(&plan, &events);
    }

    fn run(&mut self) {
        let out = &mut self.out;
        self.world.finish(|plan, events| {
            for preempted in &plan.preempted {
                writeln!(out, "step {}: {preempted} preempted", plan.step).unwrap();
            }
            for event in events.iter().filter(|event| !matches!(event, Event::Token { .. })) {
                writeln!(out, "step {}: {event}", plan.step).unwrap();
            }
        });
    }

    fn during(&mut self, rest: &str) {
        let plan = self.world.plan();
        for command in rest.split(';').map(str::trim) {
            match command {
                "pass" => self.pass(&plan),
                _ => self.command(command),
            }
        }
        let sampled = self.world.run(&plan);
        let events = self.world.commit(&plan, &sampled);
        self.show(&plan, &events);
    }

    fn pass(&mut self, outer: &Plan) {
        match self.world.interpose(outer) {
            Some((plan, events)) => self.show(&plan, &events),
            None => self.say("nobody passes"),
        }
    }

    fn lose(&mut self) {
        let plan = self.world.lose(false);
        self.say(&format!("lost: {plan}"));
    }

    fn mute(&mut self, rest: &str) {
        let silent = self.sequence(rest);
        let plan = self.world.plan();
        let mut sampled = self.world.run(&plan);
        sampled.retain(|sample| sample.sequence != silent);
        let events = self.world.commit(&plan, &sampled);
        self.show(&plan, &events);
    }

    fn cancel(&mut self, rest: &str) {
        let known = match rest.contains('.') {
            true => self.world.cancel_sequence(self.sequence(rest)),
            false => self.world.cancel(self.names[rest].0),
        };
        let stats = self.world.scheduler.stats();
        let known = if known { "cancelled" } else { "unknown" };
        self.say(&format!("{rest} {known}, used={} free={}", stats.used_blocks, stats.free_blocks));
    }

    fn cached(&mut self, name: &str) {
        let request = &self.prompts[name];
        let held = self.world.scheduler.cached_prefix(&request.prompt, &request.salt);
        self.say(&format!("{name}: {held} of {} tokens held", request.prompt.len()));
    }

    fn adopt(&mut self, name: &str) {
        let Request { prompt, salt, .. } = self.prompts[name].clone();
        let adoption = self.world.adopt(&prompt, &salt, None);
        let adopted = adoption.adopted.iter().map(|adopted| format!(" {}", adopted.block));
        let mut line = format!("adopted{}", adopted.collect::<String>());
        adoption.demoted.iter().for_each(|demoted| line += &format!(", demote {}", demoted.block));
        self.say(&line);
    }

    fn prompt(&self, name: &str, pieces: &str) -> Vec<u32> {
        let piece = |piece: &str| match (piece.strip_prefix('@'), piece.split_once(':')) {
            (Some(sequence), _) => self.world.tokens(self.sequence(sequence)).to_vec(),
            (_, Some((name, tokens))) => text(name, tokens.parse().unwrap()).collect(),
            _ => text(name, piece.parse().unwrap()).collect(),
        };
        pieces.split('+').flat_map(piece).collect()
    }

    fn sequence(&self, name: &str) -> SequenceId {
        let (request, choice) = name.split_once('.').unwrap();
        self.names[request].1[choice.parse::<usize>().unwrap()]
    }

    fn show(&mut self, plan: &Plan, events: &[Event]) {
        self.say(&plan.to_string());
        let events: Vec<_> = events.iter().map(ToString::to_string).collect();
        if !events.is_empty() {
            self.say(&format!("  = {}", events.join(", ")));
        }
    }

    fn say(&mut self, line: &str) {
        writeln!(self.out, "{line}").unwrap();
    }
}

impl<'a> Options<'a> {
    fn parse(text: &'a str) -> Self {
        Options(text.split_whitespace().map(|option| option.split_once('=').expect(option)).collect())
    }

    fn get<T: FromStr>(&self, name: &str, default: T) -> T {
        let Some(value) = self.0.get(name) else { return default };
        value.parse().unwrap_or_else(|_| panic!("{name}={value}"))
    }
}
