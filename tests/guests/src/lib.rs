//! Policies written in WebAssembly's text format, so that each does exactly one thing, right or wrong, and is made into
//! a component within milliseconds and without a toolchain.

use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

/// The contract that guests are built against unless they say otherwise.
pub const CONTRACT: &str = include_str!("../../../wit/policy.wit");

/// A body that never ends.
pub const LOOP: &str = "(loop $forever (br $forever)) (unreachable)";

/// A first message that begins with this makes a guest of [`Guest::only_on_marker`] misbehave.
pub const MARKER: &str = "BOOM";

/// The four worlds of the contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum World {
    /// Reads the user's words.
    SlotExtractor,
    /// Decides where a turn runs.
    Router,
    /// Shortens prompts.
    Compressor,
    /// Looks at answers.
    OutputFilter,
}

impl World {
    /// Its name, which is also the kind in a manifest.
    pub fn name(self) -> &'static str {
        match self {
            World::SlotExtractor => "slot-extractor",
            World::Router => "router",
            World::Compressor => "compressor",
            World::OutputFilter => "output-filter",
        }
    }

    /// The interface that it exports beside `lifecycle`, and the function that does the work.
    fn work(self) -> (&'static str, &'static str) {
        match self {
            World::SlotExtractor => ("slot-extraction", "extract"),
            World::Router => ("routing", "route"),
            World::Compressor => ("compression", "compress"),
            World::OutputFilter => ("output-filtering", "review"),
        }
    }
}

/// A guest in parts: bodies of its functions, each leaving one i32, in the text format.
#[derive(Debug, Clone)]
pub struct Guest {
    /// Which functions it exports.
    pub world: World,
    /// The contract it is built against.
    pub contract: String,
    /// Before its functions: imports.
    pub imports: String,
    /// Anything else at module level: globals, functions, a start function.
    pub module: String,
    /// The body of `describe`.
    pub describe: String,
    /// The body of `configure`; `$config` points to the configuration, `$length` bytes of JSON.
    pub configure: String,
    /// The body of `interests`, of output filters only.
    pub interests: String,
    /// The body of the work; `$args` points to the arguments, and `$count` is the number of windows of a filter.
    pub work: String,
    /// What its allocator does before it allocates; leaves nothing.
    pub realloc: String,
    /// Pages of memory at the start.
    pub min_pages: u32,
    data: Vec<u8>,
}

/// A window, a span of it to replace, bytes to hold.
pub type VerdictParts = (u32, Option<(u32, u32)>, u32);

/// Where the guest's static data begins.
const DATA: u32 = 1024;
/// Where what is allocated begins.
const HEAP: u32 = 128 << 10;

impl Guest {
    /// A guest of version 1.0.0 whose every answer is in order and changes nothing; a router's answer is `fine`.
    pub fn new(world: World) -> Guest {
        let empty = String::new;
        let mut guest = Guest {
            world,
            contract: CONTRACT.into(),
            imports: empty(),
            module: empty(),
            describe: empty(),
            configure: empty(),
            interests: empty(),
            work: empty(),
            realloc: empty(),
            min_pages: 4,
            data: Vec::new(),
        };
        guest.version("1.0.0");
        let ok = guest.words(&[0, 0, 0]);
        guest.configure = address(ok);
        guest.watch(&[]);
        guest.work = guest.fine();
        guest
    }

    /// A router that answers with this text.
    pub fn answering(text: &str) -> Guest {
        let mut guest = Guest::new(World::Router);
        guest.work = guest.answer(text);
        guest
    }

    /// An output filter that replaces every match of `regex` by `mask`.
    pub fn masking(regex: &str, mask: &str) -> Guest {
        let mut guest = Guest::new(World::OutputFilter);
        guest.watch(&[regex]);
        let (text, length) = guest.text(mask);
        let result = guest.words(&[0, 0, 0]);
        guest.module = include_str!("mask.wat")
            .replace("TEXT", &text.to_string())
            .replace("LENGTH", &length.to_string())
            .replace("RESULT", &result.to_string());
        guest.work = "(call $mask (local.get $args) (local.get $count))".into();
        guest
    }

    /// Imports a function of the contract under its own name, with the types that it has in a core module.
    pub fn import(&mut self, interface: &str, function: &str, types: &str) {
        let version = self.contract_version().to_owned();
        self.imports += &format!(
            r#"(import "jackfield:policy/{interface}@{version}" "{function}" (func ${function} {types}))"#
        );
    }

    /// What it says its version is.
    pub fn version(&mut self, version: &str) {
        self.description(version, "{}", 1);
    }

    /// The schema that its dialogs are written in.
    pub fn dialog_schema(&mut self, schema: u32) {
        self.description("1.0.0", "{}", schema);
    }

    /// The schema that it wants of its configuration.
    pub fn schema(&mut self, schema: &str) {
        self.description("1.0.0", schema, 1);
    }

    fn description(&mut self, version: &str, schema: &str, dialog_schema: u32) {
        let name = self.text("guest");
        let version = self.text(version);
        let schema = self.text(schema);
        let of_dialogs = [dialog_schema, 0, 0, 0, 0];
        let named = [name.0, name.1, version.0, version.1, schema.0, schema.1];
        let at = self.words(&[&named[..], &of_dialogs].concat());
        self.describe = address(at);
    }

    /// What an output filter watches for; nothing shows it everything.
    pub fn watch(&mut self, regexes: &[&str]) {
        let name = self.text("watch");
        let mut watches = Vec::new();
        for regex in regexes {
            let regex = self.text(regex);
            watches.extend([name.0, name.1, regex.0, regex.1]);
        }
        let list = self.words(&watches);
        let at = self.words(&[list, regexes.len() as u32, 0, 0, 0]);
        self.interests = address(at);
    }

    fn fine(&mut self) -> String {
        match self.world {
            World::SlotExtractor => self.transition(&[]),
            World::Router => self.answer("fine"),
            World::Compressor | World::OutputFilter => self.list(0, 0),
        }
    }

    /// A router's answer.
    pub fn answer(&mut self, text: &str) -> String {
        let (at, length) = self.text(text);
        self.answer_at(at, length)
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

    /// A slot extractor's answer: on to the model, with a boolean slot for each of these spans of the utterance.
    pub fn transition(&mut self, spans: &[(u32, u32)]) -> String {
        let mut slots = Vec::new();
        for (index, &(start, end)) in spans.iter().enumerate() {
            let name = self.text(&format!("slot{index}"));
            // name, value (tag, payload of 8), source (tag, span), confidence
            slots.extend([name.0, name.1, 2, 0, 1, 0, 1, start, end, 1f32.to_bits()]);
        }
        self.align(8);
        let list = self.words(&slots);
        let state = self.text("done");
        let at = self.words(&[0, state.0, state.1, list, spans.len() as u32, 0, 0, 0, 0, 0, 0, 0]);
        address(at)
    }

    /// A compressor's answer: of each message given, a span from start to end, replaced by nothing.
    pub fn edits(&mut self, edits: &[(u32, u32, u32)]) -> String {
        let edit = |&(message, start, end): &(u32, u32, u32)| [message, start, end, 0, 0];
        let words: Vec<u32> = edits.iter().flat_map(edit).collect();
        let list = self.words(&words);
        self.list(list, edits.len() as u32)
    }

    /// An output filter's answer: for each window given, a span to replace by `*`, and bytes to hold.
    pub fn verdicts(&mut self, verdicts: &[VerdictParts]) -> String {
        let star = self.text("*");
        let mut words = Vec::new();
        for &(window, span, hold_bytes) in verdicts {
            let (list, count) = match span {
                Some((start, end)) => (self.words(&[start, end, star.0, star.1]), 1),
                None => (0, 0),
            };
            words.extend([window, list, count, hold_bytes, 0, 0, 0]);
        }
        let list = self.words(&words);
        self.list(list, verdicts.len() as u32)
    }

    /// A slot extractor's answer: say this, without the model.
    pub fn say(&mut self, text: &str) -> String {
        let (state, text) = (self.text("done"), self.text(text));
        let at = self.words(&[0, state.0, state.1, 0, 0, 0, 0, 2, text.0, text.1, 0, 0]);
        address(at)
    }

    /// A list as the answer, wherever it points.
    pub fn list(&mut self, pointer: u32, length: u32) -> String {
        let at = self.words(&[0, pointer, length]);
        address(at)
    }

    /// Static text: its address and its length in bytes.
    pub fn text(&mut self, text: &str) -> (u32, u32) {
        (self.bytes(text.as_bytes()), text.len() as u32)
    }

    /// The address of static words.
    pub fn words(&mut self, words: &[u32]) -> u32 {
        self.align(4);
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.bytes(&bytes)
    }

    /// The address of static bytes.
    pub fn bytes(&mut self, bytes: &[u8]) -> u32 {
        let at = DATA + self.data.len() as u32;
        self.data.extend(bytes);
        at
    }

    fn align(&mut self, to: usize) {
        self.data.resize(self.data.len().next_multiple_of(to), 0);
    }

    /// Does its work only when the first message of the turn begins with [`MARKER`], and otherwise answers in order. Not
    /// for output filters, which are given no turn: these watch for the marker.
    pub fn only_on_marker(self) -> Guest {
        // Places in the arguments' record: of a router, the user's last text; of the others, the list of messages, each
        // a role and a text.
        let text = match self.world {
            World::Router => "(i32.load offset=96 (local.get $args))",
            _ => "(i32.load offset=4 (i32.load offset=88 (local.get $args)))",
        };
        let marker = MARKER.as_bytes().iter().rev().fold(0u32, |word, byte| word << 8 | u32::from(*byte));
        self.only_when(&format!("(i32.eq (i32.load {text}) (i32.const {marker}))"))
    }

    /// Does its work only when the turn's seed is this one, and otherwise answers in order. Not for output filters.
    pub fn only_on_seed(self, seed: u32) -> Guest {
        // The seed's place in the arguments' record.
        self.only_when(&format!("(i32.eq (i32.load offset=64 (local.get $args)) (i32.const {seed}))"))
    }

    fn only_when(mut self, condition: &str) -> Guest {
        let fine = self.fine();
        let bad = std::mem::take(&mut self.work);
        self.work = format!("(if (result i32) {condition} (then {bad}) (else {fine}))");
        self
    }

    /// The core module.
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

    /// The component.
    pub fn build(&self) -> Vec<u8> {
        self.encode(self.core())
    }

    /// A component of a core module that was made for this guest's contract.
    pub fn encode(&self, mut module: Vec<u8>) -> Vec<u8> {
        let mut resolve = Resolve::default();
        // For guests that want more than there is.
        resolve
            .push_str("wasi.wit", "package wasi:sockets@0.2.3;\n interface tcp { connect: func(); }")
            .expect("parses");
        let package = resolve.push_str("policy.wit", &self.contract).expect("the contract parses");
        let world =
            resolve.select_world(&[package], Some(self.world.name())).expect("a world of the contract");
        embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8).expect("embeds");
        ComponentEncoder::default()
            .validate(true)
            .module(&module)
            .and_then(|encoder| encoder.encode())
            .unwrap_or_else(|error| panic!("{error:#}"))
    }

    fn contract_version(&self) -> &str {
        let (_, rest) = self.contract.split_once("package jackfield:policy@").expect("a package");
        rest.split_once(';').expect("an end").0
    }

    fn core_text(&self) -> String {
        let data: String = self.data.iter().map(|byte| format!("\\{byte:02x}")).collect();
        let version = self.contract_version();
        let (interface, work) = self.world.work();
        let (params, interests) = match self.world {
            World::OutputFilter => (
                "(param $args i32) (param $count i32)",
                format!(
                    r#"(func (export "jackfield:policy/output-filtering@{version}#interests") (result i32) {})"#,
                    self.interests
                ),
            ),
            _ => ("(param $args i32)", String::new()),
        };
        let Guest { imports, module, describe, configure, work: body, realloc, min_pages, .. } = self;
        format!(
            r#"(module
              {imports}
              (memory (export "memory") {min_pages})
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
              {module})"#
        )
    }
}

fn address(at: u32) -> String {
    format!("(i32.const {at})")
}
