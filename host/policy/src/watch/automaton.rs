//! A table-driven automaton for one pattern, anchored at its start.

/// A transition, and what is known of where it leads. The low bits are flags, the others the row of the next state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step(u32);

impl Step {
    const MATCHED: u32 = 1;
    const LIVE: u32 = 2;
    const CLOSED: u32 = 4;
    const FLAG_BITS: u32 = 3;

    pub(super) fn new(row: u32, matched: bool, live: bool, closed: bool) -> Step {
        let flag = |on: bool, bit: u32| if on { bit } else { 0 };
        Step(
            row << Step::FLAG_BITS
                | flag(matched, Step::MATCHED)
                | flag(live, Step::LIVE)
                | flag(closed, Step::CLOSED),
        )
    }

    /// The largest row that fits beside the flags.
    pub(super) const MAX_ROW: u32 = u32::MAX >> Step::FLAG_BITS;

    /// A match ended before the byte that led here.
    pub(super) fn matched(self) -> bool {
        self.0 & Step::MATCHED != 0
    }

    /// A match can still end at or after the byte that led here.
    pub(super) fn live(self) -> bool {
        self.0 & Step::LIVE != 0
    }

    /// A match ends after the byte that led here, whatever follows, and none can end later.
    pub(super) fn closed(self) -> bool {
        self.0 & Step::CLOSED != 0
    }

    /// The next state.
    pub(super) fn row(self) -> u32 {
        self.0 >> Step::FLAG_BITS
    }
}

/// What stands before the first byte of a candidate, as far as look-behind can tell: a byte, or nothing.
pub(super) const START_CONTEXTS: usize = 257;

/// A table-driven automaton. Rows are premultiplied: a transition is `steps[row + class]`.
#[derive(Debug)]
pub(super) struct Automaton {
    pub(super) steps: Vec<Step>,
    /// The class of each byte. The class of the end of the text is the row's last.
    pub(super) classes: [u8; 256],
    pub(super) end_class: u32,
    /// The start row for each byte that may stand before, and for none.
    pub(super) starts: Box<[u32; START_CONTEXTS]>,
    /// Bytes with which a match can begin, in some context.
    pub(super) begins: Box<[bool; 256]>,
}

impl Automaton {
    pub(super) fn step(&self, row: u32, byte: u8) -> Step {
        let class = u32::from(self.classes[byte as usize]);
        self.steps[(row + class) as usize]
    }

    pub(super) fn step_end(&self, row: u32) -> Step {
        self.steps[(row + self.end_class) as usize]
    }

    pub(super) fn start(&self, before: Option<u8>) -> u32 {
        self.starts[before.map_or(256, usize::from)]
    }

    /// The first place at or after `from` where a match could begin.
    pub(super) fn next_begin(&self, text: &[u8], from: usize) -> Option<usize> {
        let rest = text.get(from..)?;
        rest.iter().position(|&byte| self.begins[byte as usize]).map(|at| from + at)
    }

    pub(super) fn size_bytes(&self) -> usize {
        self.steps.len() * size_of::<Step>() + size_of::<Automaton>() + 4 * START_CONTEXTS + 256
    }
}
