//! One stream under one output filter: what is pending, what the guest must see, what may be sent.
//!
//! The host feeds text as it comes. After each step it asks [`FilterStream::window`]: when there is one, it goes to the
//! guest (with those of other streams) and the verdict to [`FilterStream::apply`]; when there is none, what is decided goes
//! out by [`FilterStream::pass`]. Several filters are a chain of streams: what one sends is fed to the next.
//!
//! Calling the guest, and knowing which bytes are still the model's own, is the caller's: here is neither IO nor provenance.

use std::sync::Arc;

use crate::{
    Policy,
    types::{Hit, Replacement, Span, Verdict, Window},
    watch::{Found, Watcher, Watches},
};

/// What left a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// The text, replacements made.
    pub text: String,
    /// Bytes of the original text that it stands for. Those of a stopped stream that were dropped are not among them.
    pub original_bytes: usize,
    /// What of these bytes was replaced; spans count from the first of them.
    pub replaced: Vec<Replacement>,
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
    /// Bytes at the front of the pending text that the guest held when it saw them last.
    held_by_guest: usize,
    finished: bool,
    stopped: bool,
}

impl FilterStream {
    /// A stream of this policy that has not begun. `id` is what the guest sees of it.
    pub fn new(policy: &Policy, id: u32) -> FilterStream {
        let sent_tail_bytes = policy.interest().sent_tail_bytes;
        FilterStream::watching(policy.watches().clone(), sent_tail_bytes.into(), id)
    }

    /// A stream that has not begun, for a filter that wants to see text with a hit of `watches`, or all text when there are
    /// none, and the last `sent_tail_bytes` bytes before it.
    pub fn watching(watches: Arc<Watches>, sent_tail_bytes: usize, id: u32) -> FilterStream {
        FilterStream {
            id,
            watch_all: watches.is_empty(),
            watcher: Watcher::new(watches),
            sent_tail: String::new(),
            sent_tail_bytes,
            held_by_guest: 0,
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
    }

    /// No more text will follow.
    pub fn finish(&mut self) {
        if !self.finished && !self.stopped {
            self.finished = true;
            self.watcher.finish();
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
    /// hit, or it held bytes the time before. Probabilities of its tokens are the caller's to add.
    pub fn window(&self) -> Option<Window> {
        let decided = self.watcher.decided_bytes();
        if self.stopped || !self.has_news(decided) || !self.is_wanted() {
            return None;
        }
        let hit = |found: Found| Hit {
            watch: found.watch as u32,
            at: Span::new(found.start as u32, found.end as u32),
            cut: found.cut,
        };
        Some(Window {
            stream_id: self.id,
            sent_tail: self.sent_tail.clone(),
            pending: self.watcher.pending()[..decided].to_owned(),
            hits: self.watcher.found().into_iter().map(hit).collect(),
            tokens: Vec::new(),
            is_final: self.finished,
        })
    }

    /// Whether the decided text is more than the guest has seen and held, or the end of all.
    fn has_news(&self, decided: usize) -> bool {
        decided > self.held_by_guest || (self.finished && decided > 0)
    }

    fn is_wanted(&self) -> bool {
        self.watch_all || self.held_by_guest > 0 || self.watcher.has_found()
    }

    /// Send what is decided, without the guest. Where [`FilterStream::window`] asks for it, this is a fault passed over.
    pub fn pass(&mut self) -> Sent {
        // Nothing new to show to the guest: what it holds stays held.
        if self.held_by_guest > 0 && !self.has_news(self.watcher.decided_bytes()) {
            return Sent::default();
        }
        self.apply(Verdict::default())
    }

    /// Do what a checked verdict on this stream's window says. Feed nothing between the two.
    pub fn apply(&mut self, verdict: Verdict) -> Sent {
        if self.stopped {
            return Sent::default();
        }
        let Verdict { replace, hold_bytes, stop, .. } = verdict;
        let (pending, decided) = (self.watcher.pending(), self.watcher.decided_bytes());
        let end = pending.floor_char_boundary(decided.saturating_sub(hold_bytes as usize));
        let edits = replace.iter().map(|replacement| (replacement.at, replacement.text.as_str()));
        let text = crate::types::edit_text(&pending[..end], edits);
        self.watcher.release(end);
        self.remember(&text);
        self.held_by_guest = decided - end;
        self.stopped = stop.is_some();
        Sent { text, original_bytes: end, replaced: replace, stop }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Watch;

    fn stream(patterns: &[&str], sent_tail_bytes: usize) -> FilterStream {
        let watch = |pattern: &&str| Watch { name: "w".into(), regex: (*pattern).into() };
        let patterns: Vec<Watch> = patterns.iter().map(watch).collect();
        FilterStream::watching(Watches::compile(&patterns, 64).expect("compiles"), sent_tail_bytes, 7)
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
        let sent = stream.apply(mask(&window));
        assert_eq!((sent.text.as_str(), sent.original_bytes), ("*** and", 7));
        assert_eq!(sent.replaced, [Replacement { at: Span::new(0, 3), text: "***".into() }]);
        stream.finish();
        assert!(stream.window().is_none() && stream.is_done());
    }

    #[test]
    fn what_the_guest_holds_comes_again_with_more_text() {
        let mut stream = stream(&[r"K\d"], 0);
        stream.feed("a K1 b");
        let hold = Verdict { hold_bytes: 2, ..Verdict::default() };
        assert_eq!(stream.apply(hold).text, "a K1");
        assert_eq!(stream.window(), None, "nothing new to see");
        assert_eq!(stream.pass(), Sent::default(), "and nothing to send");
        stream.feed("c");
        assert_eq!(stream.window().expect("held before").pending, " bc");
        assert_eq!(stream.apply(Verdict::default()).text, " bc");
        stream.feed("d");
        assert_eq!(stream.window(), None, "nothing is held any more");
    }

    #[test]
    fn what_the_guest_holds_waits_while_all_that_is_new_is_undecided() {
        let mut stream = stream(&["id", r"zz\d"], 0);
        stream.feed("id");
        assert_eq!(stream.apply(Verdict { hold_bytes: 2, ..Verdict::default() }).text, "");
        stream.feed("z");
        assert_eq!(stream.window(), None, "`z` may become `zz0`, and is not to be seen yet");
        assert_eq!(stream.pass(), Sent::default());
        stream.feed("q");
        assert_eq!(stream.window().expect("held before").pending, "idzq");
    }

    #[test]
    fn without_watches_every_window_comes_and_the_last_is_final() {
        let mut stream = stream(&[], 0);
        stream.feed("a");
        stream.feed("b");
        let window = stream.window().expect("every window");
        assert_eq!((window.is_final, window.pending.as_str()), (false, "ab"));
        let hold = Verdict { hold_bytes: 1, ..Verdict::default() };
        assert_eq!(stream.apply(hold).text, "a");
        stream.finish();
        let window = stream.window().expect("the rest");
        assert_eq!((window.pending.as_str(), window.is_final), ("b", true));
        assert_eq!(stream.pass().text, "b");
        assert!(stream.is_done());
    }

    #[test]
    fn a_stop_sends_up_to_what_is_held_and_drops_the_rest() {
        let mut stream = stream(&[r"K\d"], 0);
        stream.feed("safe K1 more");
        let stop = Verdict { hold_bytes: 7, stop: Some("secret".into()), ..Verdict::default() };
        let sent = stream.apply(stop);
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
