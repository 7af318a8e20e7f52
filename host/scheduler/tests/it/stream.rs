//! The fake model: what a sequence says when nothing else is in the way.

use jackfield_scheduler::{Config, FinishReason, Request};

/// When the sampler stops a sequence, beside its length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StopAt {
    Never,
    /// At its token of this number, from 1.
    Token(usize),
    /// At a token that this divides.
    Multiple(u32),
}

/// One choice of a request: its tokens, and for each position a mark of everything up to and including it.
#[derive(Debug, Clone)]
pub(crate) struct Stream {
    pub(crate) choice: u64,
    pub(crate) prompt: usize,
    pub(crate) stop: StopAt,
    pub(crate) tokens: Vec<u32>,
    marks: Vec<u64>,
    salt: u64,
}

impl Stream {
    pub(crate) fn new(request: &Request, choice: u64, stop: StopAt) -> Self {
        let salt = request.salt.iter().fold(1, |mark, byte| mix(mark, u64::from(*byte)));
        let (tokens, marks) = (Vec::new(), Vec::new());
        let mut stream = Stream { choice, prompt: request.prompt.len(), stop, tokens, marks, salt };
        request.prompt.iter().for_each(|token| stream.push(*token));
        stream
    }

    pub(crate) fn push(&mut self, token: u32) {
        let before = self.marks.last().copied().unwrap_or(self.salt);
        self.tokens.push(token);
        self.marks.push(mix(before, u64::from(token)));
    }

    /// What the arena must hold at a position.
    pub(crate) fn mark(&self, position: usize) -> u64 {
        self.marks[position]
    }

    pub(crate) fn generated(&self) -> usize {
        self.tokens.len() - self.prompt
    }

    /// The next token after everything so far, and whether it ends the sequence.
    pub(crate) fn next(&self) -> (u32, bool) {
        let token = (mix(self.marks[self.marks.len() - 1], self.choice) % 900) as u32 + 100;
        let stop = match self.stop {
            StopAt::Never => false,
            StopAt::Token(number) => self.generated() + 1 == number,
            StopAt::Multiple(divisor) => token.is_multiple_of(divisor),
        };
        (token, stop)
    }
}

/// Everything a choice generates, and how it ends.
pub(crate) fn alone(
    request: &Request,
    choice: u64,
    stop: StopAt,
    config: &Config,
) -> (Vec<u32>, FinishReason) {
    if request.score {
        return (Vec::new(), FinishReason::Scored);
    }
    let mut stream = Stream::new(request, choice, stop);
    let pool = config.blocks * config.block_size + 1;
    let limit = (request.prompt.len() + request.max_new_tokens).min(config.max_context).min(pool);
    loop {
        let (token, stops) = stream.next();
        stream.push(token);
        let reason = match stops {
            true => FinishReason::Stop,
            false if stream.tokens.len() == limit => FinishReason::Length,
            false => continue,
        };
        return (stream.tokens.split_off(request.prompt.len()), reason);
    }
}

/// Token ids that depend on a name and a position only.
pub(crate) fn text(name: &str, tokens: usize) -> impl Iterator<Item = u32> {
    let seed = name.bytes().fold(7, |mark, byte| mix(mark, u64::from(byte)));
    (0..tokens as u64).map(move |position| (mix(seed, position) % 900) as u32 + 100)
}

fn mix(mark: u64, value: u64) -> u64 {
    let mixed = (mark ^ value.wrapping_mul(0x9e37_79b9_7f4a_7c15)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    (mixed ^ (mixed >> 29)).wrapping_mul(0xc4ce_b9fe_1a85_ec53) ^ (mixed >> 32)
}
