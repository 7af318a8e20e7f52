//! From a pattern to its automaton.
//!
//! The determinised automaton of `regex-automata` is walked once and copied into a table of our own, because three facts
//! about a state that the stream needs are not kept there: whether a match can still come, whether one is certain, and
//! whether it can still grow.

use std::collections::HashMap;

use regex_automata::{
    Anchored,
    dfa::{Automaton as _, StartKind, dense},
    nfa::thompson::{self, NFA, WhichCaptures},
    util::{primitives::StateID, start},
};
use regex_syntax::hir::{Hir, HirKind, Look};

use super::{
    WatchError,
    automaton::{Automaton, START_CONTEXTS, Step},
};
use crate::types::Watch;

/// A pattern longer than this is refused before it is parsed.
const MAX_PATTERN_BYTES: usize = 16 << 10;
/// What the states of the pattern may take before it is determinised. Together with the next two this bounds the time a
/// hostile pattern can take.
const MAX_NFA_BYTES: usize = 1 << 20;
/// What determinising may take while it runs.
const MAX_WORK_BYTES: usize = 8 << 20;
/// What the automaton of one pattern may take.
const MAX_AUTOMATON_BYTES: usize = 8 << 20;

pub(super) fn build(watch: &Watch, left_bytes: usize) -> Result<Automaton, WatchError> {
    let max_bytes = left_bytes.min(MAX_AUTOMATON_BYTES);
    let hir = parse(watch)?;
    let too_large = || WatchError::TooLarge { name: watch.name.clone(), max_bytes };
    // Each step that could grow without bound has its own limit; which of them was hit is of no use to the author.
    let nfa = compile(&hir).ok_or_else(too_large)?;
    let dfa = determinise(&nfa, max_bytes).ok_or_else(too_large)?;
    let automaton = Walk::new(&dfa, &nfa).ok_or_else(too_large)?.finish();
    if automaton.size_bytes() > max_bytes {
        return Err(too_large());
    }
    if !automaton.begins.contains(&true) {
        return Err(pointless(watch, "can never match"));
    }
    Ok(automaton)
}

fn pointless(watch: &Watch, what: &'static str) -> WatchError {
    WatchError::Pointless { name: watch.name.clone(), what }
}

fn parse(watch: &Watch) -> Result<Hir, WatchError> {
    let syntax = |message: String| WatchError::Syntax { name: watch.name.clone(), message };
    if watch.regex.len() > MAX_PATTERN_BYTES {
        return Err(syntax(format!(
            "the pattern has {} bytes; at most {MAX_PATTERN_BYTES}",
            watch.regex.len()
        )));
    }
    let hir = regex_syntax::ParserBuilder::new()
        .nest_limit(64)
        .build()
        .parse(&watch.regex)
        .map_err(|error| syntax(error.to_string()))?;
    match hir.properties().minimum_len() {
        None => Err(pointless(watch, "can never match")),
        Some(0) => Err(pointless(watch, "matches the empty text")),
        Some(_) => Ok(ascii_words(hir)),
    }
}

/// The pattern with ASCII word boundaries in the place of Unicode ones.
///
/// A table over bytes cannot look at the scalars around a place. ASCII boundaries are also what the authors of patterns
/// such as `\b\d{16}\b` want between a digit and a Chinese character, which is a letter to Unicode.
pub(super) fn ascii_words(hir: Hir) -> Hir {
    match hir.into_kind() {
        HirKind::Look(look) => Hir::look(ascii_word(look)),
        HirKind::Repetition(mut repetition) => {
            repetition.sub = Box::new(ascii_words(*repetition.sub));
            Hir::repetition(repetition)
        }
        HirKind::Capture(mut capture) => {
            capture.sub = Box::new(ascii_words(*capture.sub));
            Hir::capture(capture)
        }
        HirKind::Concat(parts) => Hir::concat(parts.into_iter().map(ascii_words).collect()),
        HirKind::Alternation(parts) => Hir::alternation(parts.into_iter().map(ascii_words).collect()),
        HirKind::Empty => Hir::empty(),
        HirKind::Literal(literal) => Hir::literal(literal.0),
        HirKind::Class(class) => Hir::class(class),
    }
}

fn ascii_word(look: Look) -> Look {
    match look {
        Look::WordUnicode => Look::WordAscii,
        Look::WordUnicodeNegate => Look::WordAsciiNegate,
        Look::WordStartUnicode => Look::WordStartAscii,
        Look::WordEndUnicode => Look::WordEndAscii,
        Look::WordStartHalfUnicode => Look::WordStartHalfAscii,
        Look::WordEndHalfUnicode => Look::WordEndHalfAscii,
        other => other,
    }
}

fn compile(hir: &Hir) -> Option<NFA> {
    let config =
        thompson::Config::new().which_captures(WhichCaptures::None).nfa_size_limit(Some(MAX_NFA_BYTES));
    thompson::Compiler::new().configure(config).build_from_hir(hir).ok()
}

fn determinise(nfa: &NFA, max_bytes: usize) -> Option<dense::DFA<Vec<u32>>> {
    let config = dense::Config::new()
        .start_kind(StartKind::Anchored)
        .accelerate(false)
        .dfa_size_limit(Some(max_bytes))
        .determinize_size_limit(Some(MAX_WORK_BYTES));
    dense::Builder::new().configure(config).build_from_nfa(nfa).ok()
}

/// A walk over the states that can be reached, numbered in the order in which they were met.
struct Walk {
    classes: [u8; 256],
    /// Columns of a row: one for each class of bytes, and the end of the text.
    columns: usize,
    /// `next[state * columns + column]` is a state.
    next: Vec<u32>,
    matched: Vec<bool>,
    starts: Box<[u32; START_CONTEXTS]>,
    /// Columns of bytes that can be the first of a scalar, and the end of the text.
    leads: Vec<usize>,
}

impl Walk {
    /// None when the numbers do not fit the table.
    fn new(dfa: &dense::DFA<Vec<u32>>, nfa: &NFA) -> Option<Walk> {
        let byte_classes = nfa.byte_classes();
        let bytes: Vec<u8> = byte_classes.representatives(0..=255).filter_map(|unit| unit.as_u8()).collect();
        let columns = bytes.len() + 1;
        let mut numbers = Numbers::default();
        let mut starts = Box::new([0; START_CONTEXTS]);
        for (context, start) in starts.iter_mut().enumerate() {
            let before = u8::try_from(context).ok();
            let config = start::Config::new().anchored(Anchored::Yes).look_behind(before);
            *start = numbers.of(dfa.start_state(&config).ok()?);
        }
        let mut next = Vec::new();
        let mut matched = Vec::new();
        let mut at = 0;
        while let Some(&state) = numbers.order.get(at) {
            matched.push(dfa.is_match_state(state));
            next.extend(bytes.iter().map(|&b| numbers.of(dfa.next_state(state, b))));
            next.push(numbers.of(dfa.next_eoi_state(state)));
            at += 1;
        }
        let largest = next.len().checked_add(columns)?;
        if largest > Step::MAX_ROW as usize {
            return None;
        }
        let lead = |byte: u8| byte < 0x80 || (0xC2..=0xF4).contains(&byte);
        let mut classes = [0; 256];
        for byte in 0..=255u8 {
            classes[byte as usize] = byte_classes.get(byte);
        }
        let mut leads: Vec<usize> =
            (0..=255u8).filter(|&byte| lead(byte)).map(|byte| usize::from(classes[byte as usize])).collect();
        leads.push(columns - 1);
        leads.sort_unstable();
        leads.dedup();
        Some(Walk { classes, columns, next, matched, starts, leads })
    }

    fn finish(self) -> Automaton {
        let live = self.live();
        let closed = self.closed(&live);
        let columns = self.columns as u32;
        let step = |&state: &u32| {
            let index = state as usize;
            Step::new(state * columns, self.matched[index], live[index], closed[index])
        };
        let steps: Vec<Step> = self.next.iter().map(step).collect();
        let mut starts = self.starts.clone();
        starts.iter_mut().for_each(|start| *start *= columns);
        let mut begins = Box::new([false; 256]);
        for &start in starts.iter() {
            for (byte, begins) in begins.iter_mut().enumerate() {
                let class = usize::from(self.classes[byte]);
                *begins |= steps[start as usize + class].live();
            }
        }
        Automaton { steps, classes: self.classes, end_class: columns - 1, starts, begins }
    }

    /// For each state, whether a match state can be reached from it by at least one step.
    fn live(&self) -> Vec<bool> {
        let states = self.matched.len();
        let mut before = vec![Vec::new(); states];
        for (at, &to) in self.next.iter().enumerate() {
            let from = (at / self.columns) as u32;
            if before[to as usize].last() != Some(&from) {
                before[to as usize].push(from);
            }
        }
        let mut live = vec![false; states];
        let mut open: Vec<usize> = (0..states).filter(|&state| self.matched[state]).collect();
        while let Some(state) = open.pop() {
            for &from in &before[state] {
                if !std::mem::replace(&mut live[from as usize], true) {
                    open.push(from as usize);
                }
            }
        }
        live
    }

    /// For each state, whether everything that can follow it is a match that cannot grow. (The walk sees a match one byte
    /// late: the state after a match's last byte is not yet a match state, all that follow are.)
    fn closed(&self, live: &[bool]) -> Vec<bool> {
        let ends_here = |state: usize| {
            self.leads.iter().all(|&column| {
                let to = self.next[state * self.columns + column] as usize;
                self.matched[to] && !live[to]
            })
        };
        (0..self.matched.len()).map(ends_here).collect()
    }
}

/// Numbers for states, in the order in which they are first asked for.
#[derive(Default)]
struct Numbers {
    known: HashMap<StateID, u32>,
    order: Vec<StateID>,
}

impl Numbers {
    fn of(&mut self, state: StateID) -> u32 {
        let next = self.order.len() as u32;
        *self.known.entry(state).or_insert_with(|| {
            self.order.push(state);
            next
        })
    }
}
