//! Guests written in the text format, so that each can do exactly one thing wrong.

// Seen by the tests that name this module, each of which uses a part of it.
#![allow(dead_code, unreachable_pub)]

use std::sync::Arc;

use jackfield_policy::{
    Kind, Manifest, NoServices, Policy, Refusal, RouteRequest, Runtime, RuntimeConfig, Target, Turn, Upload,
};
use serde_json::json;
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

/// Long enough that a machine that is busy with other things does not make a good call late.
pub const DEADLINE_MS: u32 = 1000;
pub const SETUP_DEADLINE_MS: u32 = 2000;

pub const CONTRACT: &str = include_str!("../../../../wit/policy.wit");

/// A guest in parts: bodies of its functions, each leaving one i32, in the text format.
#[derive(Clone)]
pub struct Guest {
    pub kind: Kind,
    /// The contract it is built against.
    pub contract: String,
    pub world: String,
    /// Before its functions: imports.
    pub imports: String,
    /// Anything else at module level: globals, functions, a start function.
    pub module: String,
    pub describe: String,
    pub configure: String,
    pub interests: String,
    /// `$args` points to the arguments where there are many.
    pub work: String,
    pub realloc: String,
    pub min_pages: u32,
    data: Vec<u8>,
}

/// Window, a span to replace, bytes to hold.
pub type VerdictParts = (u32, Option<(u32, u32)>, u32);

/// Where the guest's static data begins.
const DATA: u32 = 1024;
/// Where what is allocated begins.
const HEAP: u32 = 128 << 10;

impl Guest {
    pub fn new(kind: Kind) -> Guest {
        let mut guest = Guest {
            kind,
            contract: CONTRACT.into(),
            world: kind.world().into(),
            imports: String::new(),
            module: String::new(),
            describe: String::new(),
            configure: String::new(),
            interests: String::new(),
            work: String::new(),
            realloc: String::new(),
            min_pages: 4,
            data: Vec::new(),
        };
        guest.describe = guest.description("{}");
        let ok = guest.words(&[0, 0, 0]);
        guest.configure = address(ok);
        guest.interests = guest.interest(&[]);
        guest.work = guest.fine();
        guest
    }

    /// A description with this schema.
    pub fn description(&mut self, schema: &str) -> String {
        let name = self.text("guest");
        let version = self.text("1.0.0");
        let schema = self.text(schema);
        let at = self.words(&[name.0, name.1, version.0, version.1, schema.0, schema.1, 1, 0, 0, 0, 0]);
        address(at)
    }

    pub fn interest(&mut self, regexes: &[&str]) -> String {
        let name = self.text("watch");
        let mut watches = Vec::new();
        for regex in regexes {
            let regex = self.text(regex);
            watches.extend([name.0, name.1, regex.0, regex.1]);
        }
        let watches = self.words(&watches);
        let at = self.words(&[watches, regexes.len() as u32, 0, 0, 0]);
        address(at)
    }

    /// An answer that is in order, for each kind.
    fn fine(&mut self) -> String {
        match self.kind {
            Kind::SlotExtractor => self.transition(&[]),
            Kind::Router => self.answer("fine"),
            Kind::Compressor | Kind::OutputFilter => {
                let at = self.words(&[0, 0, 0]);
                address(at)
            }
        }
    }

    /// A router's answer.
    pub fn answer(&mut self, text: &str) -> String {
        let text = self.text(text);
        self.answer_at(text.0, text.1)
    }

    /// A router's answer, wherever it points.
    pub fn answer_at(&mut self, pointer: u32, length: u32) -> String {
        let at = self.words(&[0, 1, pointer, length]);
        address(at)
    }

    /// A guest's own error.
    pub fn error(&mut self, text: &str) -> String {
        let text = self.text(text);
        let at = self.words(&[1, text.0, text.1]);
        address(at)
    }

    /// A slot extractor's answer that sets a boolean slot for each span.
    pub fn transition(&mut self, spans: &[(u32, u32)]) -> String {
        let mut slots = Vec::new();
        for (index, &(start, end)) in spans.iter().enumerate() {
            let name = self.text(&format!("slot{index}"));
            // name, value (tag, payload of 8), source (tag, span), confidence
            slots.extend([name.0, name.1, 2, 0, 1, 0, 1, start, end, 1f32.to_bits()]);
        }
        let slots = self.aligned_words(&slots);
        let state = self.text("done");
        let count = spans.len() as u32;
        let at = self.words(&[0, state.0, state.1, slots, count, 0, 0, 0, 0, 0, 0, 0]);
        address(at)
    }

    /// A compressor's answer: message, start, end, each replaced by nothing.
    pub fn edits(&mut self, edits: &[(u32, u32, u32)]) -> String {
        let words: Vec<u32> =
            edits.iter().flat_map(|&(message, start, end)| [message, start, end, 0, 0]).collect();
        let list = self.words(&words);
        self.list(list, edits.len() as u32)
    }

    /// An output filter's answer: verdicts of window, one span to replace by `*`, bytes to hold.
    pub fn verdicts(&mut self, verdicts: &[VerdictParts]) -> String {
        let star = self.text("*");
        let mut words = Vec::new();
        for &(window, span, hold) in verdicts {
            let (list, count) = match span {
                Some((start, end)) => (self.words(&[start, end, star.0, star.1]), 1),
                None => (0, 0),
            };
            words.extend([window, list, count, hold, 0, 0, 0]);
        }
        let list = self.words(&words);
        self.list(list, verdicts.len() as u32)
    }

    /// A list as the answer, wherever it points.
    pub fn list(&mut self, pointer: u32, length: u32) -> String {
        let at = self.words(&[0, pointer, length]);
        address(at)
    }

    pub fn text(&mut self, text: &str) -> (u32, u32) {
        (self.bytes(text.as_bytes()), text.len() as u32)
    }

    pub fn words(&mut self, words: &[u32]) -> u32 {
        while !self.data.len().is_multiple_of(4) {
            self.data.push(0);
        }
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.bytes(&bytes)
    }

    fn aligned_words(&mut self, words: &[u32]) -> u32 {
        while !self.data.len().is_multiple_of(8) {
            self.data.push(0);
        }
        self.words(words)
    }

    pub fn bytes(&mut self, bytes: &[u8]) -> u32 {
        let at = DATA + self.data.len() as u32;
        self.data.extend(bytes);
        at
    }

    /// Misbehave when the turn's seed is 666 only. For the kinds that are given a turn.
    pub fn only_on_marker(mut self) -> Guest {
        let fine = self.fine();
        let bad = std::mem::take(&mut self.work);
        // The seed's place in the arguments' record.
        self.work = format!(
            "(if (result i32) (i32.eq (i32.load offset=64 (local.get $args)) (i32.const 666))
               (then {bad}) (else {fine}))"
        );
        self
    }

    fn core_text(&self) -> String {
        let data: String = self.data.iter().map(|byte| format!("\\{byte:02x}")).collect();
        let version = version_of(&self.contract);
        let (interface, work) = match self.kind {
            Kind::SlotExtractor => ("slot-extraction", "extract"),
            Kind::Router => ("routing", "route"),
            Kind::Compressor => ("compression", "compress"),
            Kind::OutputFilter => ("output-filtering", "review"),
        };
        let is_filter = self.kind == Kind::OutputFilter;
        let params = if is_filter { "(param $args i32) (param $count i32)" } else { "(param $args i32)" };
        let interests = if is_filter {
            format!(
                r#"(func (export "jackfield:policy/output-filtering@{version}#interests") (result i32) {})"#,
                self.interests
            )
        } else {
            String::new()
        };
        format!(
            r#"(module
              {imports}
              (memory (export "memory") {pages})
              (data (i32.const {DATA}) "{data}")
              (global $next (mut i32) (i32.const {HEAP}))
              (func $realloc (export "cabi_realloc") (param i32 i32) (param $align i32) (param $size i32) (result i32)
                (local $at i32)
                {realloc}
                (local.set $at (i32.and
                  (i32.add (global.get $next) (i32.sub (local.get $align) (i32.const 1)))
                  (i32.sub (i32.const 0) (local.get $align))))
                (global.set $next (i32.add (local.get $at) (local.get $size)))
                (if (i32.gt_u (global.get $next) (i32.shl (memory.size) (i32.const 16)))
                  (then (drop (memory.grow (i32.add (i32.shr_u (local.get $size) (i32.const 16)) (i32.const 1))))))
                (local.get $at))
              (func (export "jackfield:policy/lifecycle@{version}#describe") (result i32) {describe})
              (func (export "jackfield:policy/lifecycle@{version}#configure") (param $config i32) (param $length i32) (result i32) {configure})
              {interests}
              (func (export "jackfield:policy/{interface}@{version}#{work}") {params} (result i32) {body})
              {module})"#,
            imports = self.imports,
            pages = self.min_pages,
            realloc = self.realloc,
            describe = self.describe,
            configure = self.configure,
            body = self.work,
            module = self.module,
        )
    }

    pub fn core(&self) -> Vec<u8> {
        let text = self.core_text();
        wat::parse_str(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
    }

    /// The core module with a part of its text replaced.
    pub fn core_with(&self, part: &str, by: &str) -> Vec<u8> {
        let text = self.core_text();
        assert!(text.contains(part), "{part}");
        wat::parse_str(text.replace(part, by)).expect("parses")
    }

    pub fn build(&self) -> Vec<u8> {
        self.encode(self.core())
    }

    /// Make a component of a core module that was built for this guest's contract.
    pub fn encode(&self, mut module: Vec<u8>) -> Vec<u8> {
        let mut resolve = Resolve::default();
        resolve
            .push_str("wasi.wit", "package wasi:sockets@0.2.3;\n interface tcp { connect: func(); }")
            .expect("parses");
        let package = resolve.push_str("policy.wit", &self.contract).expect("the contract parses");
        let world = resolve.select_world(&[package], Some(&self.world)).expect("a world of the contract");
        embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8).expect("embeds");
        ComponentEncoder::default()
            .validate(true)
            .module(&module)
            .and_then(|encoder| encoder.encode())
            .unwrap_or_else(|error| panic!("{error:#}"))
    }

    pub fn upload(&self) -> Upload {
        let mut manifest = Manifest::new("guest", self.kind);
        manifest.limits.deadline_ms = DEADLINE_MS;
        Upload { manifest, component: self.build().into(), config: json!({}), cases: Vec::new() }
    }
}

fn version_of(contract: &str) -> &str {
    let at = contract.find("package jackfield:policy@").expect("a package");
    let rest = &contract[at + "package jackfield:policy@".len()..];
    &rest[..rest.find(';').expect("an end")]
}

fn address(at: u32) -> String {
    format!("(i32.const {at})")
}

pub const LOOP: &str = "(loop $forever (br $forever)) (unreachable)";

pub fn runtime() -> Arc<Runtime> {
    let config = RuntimeConfig { setup_deadline_ms: SETUP_DEADLINE_MS, ..RuntimeConfig::default() };
    Runtime::new(config, Arc::new(NoServices)).expect("an engine")
}

pub fn prepare(runtime: &Arc<Runtime>, guest: &Guest) -> Result<Policy, Refusal> {
    Policy::prepare(runtime, guest.upload())
}

pub fn turn(seed: u32) -> Turn {
    Turn { seed, ..Turn::default() }
}

pub fn fleet() -> Vec<Target> {
    vec![Target { model: "small".into(), ..Target::default() }]
}

/// Route with this seed.
pub fn route(policy: &Policy, seed: u32) -> Result<jackfield_policy::Decision, jackfield_policy::Fault> {
    let called = policy.route(&turn(seed), &RouteRequest::default(), &fleet());
    called.map(|called| called.answer)
}
