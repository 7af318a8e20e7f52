//! One stream under one output filter: what is pending, what the guest must see, what may be sent.
//!
//! The host feeds text as it comes. After each step it asks [`FilterStream::window`]: when there is one, it goes to the
//! guest (with those of other streams) and the verdict to [`FilterStream::apply`]; when there is none, what is decided goes
//! out by [`FilterStream::pass`]. Several filters are a chain of streams: what one sends is fed to the next.

use std::sync::Arc;

use crate::{
    Policy,
    types::{Hit, Replacement, Span, TokenProbability, Verdict, Window},
    watch::{Watcher, Watches},
};

/// What left a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// The text, replacements made.
    pub text: String,
    /// Bytes of the original text that it stands for. Those of a stopped stream that were dropped are not among them.
    pub original_bytes: usize,
    /// Which of these bytes were replaced; spans count from the first of them.
    pub replaced: Vec<Span>,
    /// The stream ends here, for this reason.
    pub stop: Option<String>,
}

/// One stream under one output filter.
#[derive(Debug)]
pub struct FilterStream {
    id: u32,
    watcher: Watcher,
    watch_all: bool,
    sent_tail: String,
    sent_tail_bytes: usize,
    want_tokens: bool,
    /// Probabilities of tokens of the pending text, by where they end in it.
    tokens: Vec<TokenProbability>,
    /// Bytes fed or held since the guest last saw them.
    guest_holds: bool,
    fresh: bool,
    finished: bool,
    stopped: bool,
}

impl FilterStream {
    /// A stream that has not begun. `id` is what the guest sees of it.
    pub fn new(policy: &Policy, id: u32) -> FilterStream {
        let interest = policy.interest();
        let watching = Watching {
            watches: policy.watches().clone(),
            sent_tail_bytes: interest.sent_tail_bytes.into(),
            token_probabilities: interest.token_probabilities,
        };
        FilterStream::watching(watching, id)
    }

    fn watching(watching: Watching, id: u32) -> FilterStream {
        FilterStream {
            id,
            watch_all: watching.watches.is_empty(),
            watcher: Watcher::new(watching.watches),
            sent_tail: String::new(),
            sent_tail_bytes: watching.sent_tail_bytes,
            want_tokens: watching.token_probabilities,
            tokens: Vec::new(),
            guest_holds: false,
            fresh: false,
            finished: false,
            stopped: false,
        }
    }

    /// More text. Ignored after the end, and after a stop.
    pub fn feed(&mut self, text: &str) {
        if self.finished || self.stopped || text.is_empty() {
            return;
        }
        self.watcher.feed(text);
        self.fresh = true;
    }

    /// The probability of the token whose text was fed last. Kept only for a filter that asked for it.
    pub fn feed_probability(&mut self, probability: f32) {
        if self.want_tokens && !self.stopped {
            let end = self.watcher.pending().len() as u32;
            self.tokens.push(TokenProbability { end, probability });
        }
    }

    /// No more text will follow.
    pub fn finish(&mut self) {
        if !self.finished && !self.stopped {
            self.finished = true;
            self.watcher.finish();
            self.fresh = true;
        }
    }

    /// Whether the filter ended the stream.
    pub fn is_stopped(&self) -> bool {
        self.stopped
    }

    /// Whether everything was sent, or dropped by a stop.
    pub fn is_done(&self) -> bool {
        self.stopped || (self.finished && self.watcher.pending().is_empty())
    }

    /// Text fed and not yet sent, in bytes.
    pub fn held_bytes(&self) -> usize {
        self.watcher.pending().len()
    }

    /// What the guest must decide now, if anything: there is something new to see, and it watches everything, or there is a
    /// hit, or it held bytes the time before.
    pub fn window(&self) -> Option<Window> {
        let decided = self.watcher.decided_bytes();
        let wanted = self.watch_all || self.guest_holds || self.watcher.has_found();
        if self.stopped || !self.fresh || !wanted || decided == 0 {
            return None;
        }
        let hit = |found: crate::watch::Found| Hit {
            watch: found.watch as u32,
            at: Span::new(found.start as u32, found.end as u32),
            cut: found.cut,
        };
        let seen = |token: &&TokenProbability| token.end as usize <= decided;
        Some(Window {
            stream_id: self.id,
            sent_tail: self.sent_tail.clone(),
            pending: self.watcher.pending()[..decided].to_owned(),
            hits: self.watcher.found().into_iter().map(hit).collect(),
            tokens: self.tokens.iter().filter(seen).copied().collect(),
            is_final: self.finished,
        })
    }

    /// Send what is decided, without the guest. Where [`FilterStream::window`] asks for it, this is a fault passed over.
    pub fn pass(&mut self) -> Sent {
        if self.guest_holds && !self.fresh {
            return Sent::default();
        }
        self.apply(&Verdict::default())
    }

    /// Do what a checked verdict on this stream's window says. Feed nothing between the two.
    pub fn apply(&mut self, verdict: &Verdict) -> Sent {
        if self.stopped {
            return Sent::default();
        }
        let decided = self.watcher.decided_bytes();
        let end = decided.saturating_sub(verdict.hold_bytes as usize);
        let pending = &self.watcher.pending()[..end];
        let replaced = |replacement: &Replacement| (replacement.at, replacement.text.clone());
        let replaced: Vec<(Span, String)> = verdict.replace.iter().map(replaced).collect();
        let edits = replaced.iter().map(|(at, text)| (*at, text.as_str()));
        let sent = Sent {
            text: crate::types::edit_text(pending, edits),
            original_bytes: end,
            replaced: replaced.into_iter().map(|(at, _)| at).collect(),
            stop: verdict.stop.clone(),
        };
        self.release(end);
        self.remember(&sent.text);
        self.guest_holds = verdict.hold_bytes > 0;
        self.fresh = false;
        self.stopped = verdict.stop.is_some();
        sent
    }

    fn release(&mut self, bytes: usize) {
        self.watcher.release(bytes);
        self.tokens.retain_mut(|token| {
            let kept = token.end as usize > bytes;
            token.end = token.end.saturating_sub(bytes as u32);
            kept
        });
    }

    /// Keep the end of what was sent, for the next window.
    fn remember(&mut self, text: &str) {
        if self.sent_tail_bytes == 0 {
            return;
        }
        self.sent_tail.push_str(text);
        let excess = self.sent_tail.len().saturating_sub(self.sent_tail_bytes);
        let start = self.sent_tail.ceil_char_boundary(excess);
        self.sent_tail.drain(..start);
    }
}

/// What of a policy a stream needs.
struct Watching {
    watches: Arc<Watches>,
    sent_tail_bytes: usize,
    token_probabilities: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Watch;

    fn stream(patterns: &[&str], sent_tail_bytes: usize) -> FilterStream {
        let watch = |pattern: &&str| Watch { name: "w".into(), regex: (*pattern).into() };
        let patterns: Vec<Watch> = patterns.iter().map(watch).collect();
        let watching = Watching {
            watches: Watches::compile(&patterns, 64).expect("compiles"),
            sent_tail_bytes,
            token_probabilities: true,
        };
        FilterStream::watching(watching, 7)
    }

    fn mask(window: &Window) -> Verdict {
        let replace = |hit: &Hit| Replacement { at: hit.at, text: "***".into() };
        Verdict { replace: window.hits.iter().map(replace).collect(), ..Verdict::default() }
    }

    #[test]
    fn text_without_hits_passes_without_the_guest_and_hits_do_not() {
        let mut stream = stream(&[r"K\d\d"], 8);
        stream.feed("hello K");
        assert_eq!(stream.window(), None);
        assert_eq!(stream.pass().text, "hello ");
        stream.feed("1");
        assert_eq!(stream.window(), None);
        assert_eq!(stream.pass().text, "");
        stream.feed("2 and");
        let window = stream.window().expect("a hit");
        assert_eq!(
            (window.pending.as_str(), window.sent_tail.as_str(), window.stream_id),
            ("K12 and", "hello ", 7)
        );
        let sent = stream.apply(&mask(&window));
        assert_eq!((sent.text.as_str(), sent.original_bytes), ("*** and", 7));
        assert_eq!(sent.replaced, [Span::new(0, 3)]);
        stream.finish();
        assert!(stream.window().is_none() && stream.is_done());
    }

    #[test]
    fn what_the_guest_holds_comes_again_with_more_text() {
        let mut stream = stream(&[r"K\d"], 0);
        stream.feed("a K1 b");
        let hold = Verdict { hold_bytes: 2, ..Verdict::default() };
        assert_eq!(stream.apply(&hold).text, "a K1");
        assert_eq!(stream.window(), None, "nothing new to see");
        assert_eq!(stream.pass(), Sent::default(), "and nothing to send");
        stream.feed("c");
        assert_eq!(stream.window().expect("held before").pending, " bc");
        assert_eq!(stream.apply(&Verdict::default()).text, " bc");
        stream.feed("d");
        assert_eq!(stream.window(), None, "nothing is held any more");
    }

    #[test]
    fn without_watches_every_window_comes_and_the_last_is_final() {
        let mut stream = stream(&[], 0);
        stream.feed("a");
        stream.feed_probability(0.5);
        stream.feed("b");
        stream.feed_probability(0.25);
        let window = stream.window().expect("every window");
        let ends: Vec<_> = window.tokens.iter().map(|t| (t.end, t.probability)).collect();
        assert_eq!((window.is_final, ends), (false, vec![(1, 0.5), (2, 0.25)]));
        let hold = Verdict { hold_bytes: 1, ..Verdict::default() };
        assert_eq!(stream.apply(&hold).text, "a");
        stream.finish();
        let window = stream.window().expect("the rest");
        assert_eq!((window.pending.as_str(), window.is_final), ("b", true));
        assert_eq!(window.tokens.len(), 1);
        assert_eq!(window.tokens[0].end, 1);
        assert_eq!(stream.pass().text, "b");
        assert!(stream.is_done());
    }

    #[test]
    fn a_stop_sends_up_to_what_is_held_and_drops_the_rest() {
        let mut stream = stream(&[r"K\d"], 0);
        stream.feed("safe K1 more");
        let stop = Verdict { hold_bytes: 7, stop: Some("secret".into()), ..Verdict::default() };
        let sent = stream.apply(&stop);
        assert_eq!((sent.text.as_str(), sent.stop.as_deref()), ("safe ", Some("secret")));
        stream.feed("x");
        stream.finish();
        assert_eq!(stream.window(), None);
        assert_eq!(stream.pass(), Sent::default());
        assert!(stream.is_stopped() && stream.is_done());
    }

    #[test]
    fn the_sent_tail_keeps_whole_scalars() {
        let mut stream = stream(&[], 4);
        stream.feed("a汉字");
        stream.pass();
        stream.feed("!");
        assert_eq!(stream.window().expect("every window").sent_tail, "字");
    }
}
