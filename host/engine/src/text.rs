//! From token bytes to text that may be sent: whole characters, and nothing of a stop string.

/// Turns a stream of bytes into a stream of whole characters.
///
/// Bytes that can no longer become a character are replaced by U+FFFD at once; bytes that still can are kept.
#[derive(Debug, Default)]
pub(crate) struct Utf8Stream {
    pending: Vec<u8>,
}

impl Utf8Stream {
    /// Appends what `bytes` completes to `text`.
    pub(crate) fn push(&mut self, bytes: &[u8], text: &mut String) {
        self.pending.extend_from_slice(bytes);
        let mut rest = self.pending.as_slice();
        loop {
            match std::str::from_utf8(rest) {
                Ok(valid) => {
                    text.push_str(valid);
                    rest = &[];
                    break;
                }
                Err(error) => {
                    let (valid, after) = rest.split_at(error.valid_up_to());
                    text.push_str(std::str::from_utf8(valid).unwrap_or_default());
                    match error.error_len() {
                        Some(bad) => {
                            text.push(char::REPLACEMENT_CHARACTER);
                            rest = &after[bad..];
                        }
                        None => {
                            rest = after;
                            break;
                        }
                    }
                }
            }
        }
        let kept = rest.len();
        self.pending.drain(..self.pending.len() - kept);
    }

    /// Whether a character is begun and not complete.
    pub(crate) fn is_inside_character(&self) -> bool {
        !self.pending.is_empty()
    }
}

/// What a [`StopMatcher`] makes of new text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Released {
    /// Bytes at the front of the held text that may go.
    Upto(usize),
    /// A stop string begins here: what is before it may go, the rest never.
    StopAt(usize),
}

/// Finds stop strings in text that arrives in pieces.
#[derive(Debug, Clone, Default)]
pub(crate) struct StopMatcher {
    stops: Vec<String>,
}

impl StopMatcher {
    pub(crate) fn new(stops: Vec<String>) -> Self {
        StopMatcher { stops }
    }

    /// `held` is all text not yet delivered; any stop string that is not wholly delivered text begins in it.
    pub(crate) fn review(&self, held: &str) -> Released {
        if let Some(at) = self.stops.iter().filter_map(|stop| held.find(stop.as_str())).min() {
            return Released::StopAt(at);
        }
        let longest = self.stops.iter().map(|stop| overlap(held, stop)).max().unwrap_or(0);
        Released::Upto(held.len() - longest)
    }
}

/// Length of the longest proper prefix of `stop` that `text` ends with.
fn overlap(text: &str, stop: &str) -> usize {
    stop.char_indices().map(|(at, _)| at).skip(1).filter(|&at| text.ends_with(&stop[..at])).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decode(pieces: &[&[u8]]) -> String {
        let mut stream = Utf8Stream::default();
        let mut text = String::new();
        for piece in pieces {
            stream.push(piece, &mut text);
        }
        text
    }

    #[test]
    fn a_character_split_over_pieces_is_whole() {
        let bytes = "龘é👩‍👩‍👧".as_bytes();
        let pieces: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(decode(&pieces), "龘é👩‍👩‍👧");
    }

    #[test]
    fn invalid_bytes_do_not_stall() {
        assert_eq!(decode(&[b"a\xff", b"b"]), "a\u{fffd}b");
        assert_eq!(decode(&[b"\xe9\xbe", b"x"]), "\u{fffd}x");
    }

    #[test]
    fn an_unfinished_character_is_kept_and_not_shown() {
        let mut stream = Utf8Stream::default();
        let mut text = String::new();
        stream.push(b"ok \xe9\xbe", &mut text);
        assert_eq!(text, "ok ");
        assert!(stream.is_inside_character());
    }

    #[test]
    fn the_beginning_of_a_stop_string_is_held() {
        let matcher = StopMatcher::new(vec!["<end>".into(), "END".into()]);
        assert_eq!(matcher.review("text <en"), Released::Upto(5));
        assert_eq!(matcher.review("text EN"), Released::Upto(5));
        assert_eq!(matcher.review("text <enough"), Released::Upto(12));
        assert_eq!(matcher.review("text <end> more END"), Released::StopAt(5));
    }

    #[test]
    fn a_stop_string_that_overlaps_itself_is_held_far_enough() {
        let matcher = StopMatcher::new(vec!["aab".into()]);
        assert_eq!(matcher.review("aaa"), Released::Upto(1));
    }

    proptest! {
        #[test]
        fn pieces_decode_as_the_whole(bytes in proptest::collection::vec(any::<u8>(), 0..64), cut in 0usize..64) {
            let cut = cut.min(bytes.len());
            let whole = String::from_utf8_lossy(&bytes);
            let mut stream = Utf8Stream::default();
            let mut text = String::new();
            stream.push(&bytes[..cut], &mut text);
            stream.push(&bytes[cut..], &mut text);
            prop_assert!(whole.starts_with(&text), "{whole:?} does not start with {text:?}");
            prop_assert!(whole.len() - text.len() <= 3);
        }

        #[test]
        fn held_text_never_gives_away_a_stop(text in "[ab龘]{0,24}", stop in "[ab龘]{1,4}") {
            let matcher = StopMatcher::new(vec![stop.clone()]);
            let (mut held, mut sent, mut stopped) = (String::new(), String::new(), false);
            for c in text.chars() {
                held.push(c);
                match matcher.review(&held) {
                    Released::Upto(n) => sent.extend(held.drain(..n)),
                    Released::StopAt(n) => { sent.push_str(&held[..n]); held.clear(); stopped = true; break; }
                }
            }
            sent.push_str(&held);
            let expected = text.find(&stop).map_or(text.as_str(), |at| &text[..at]);
            prop_assert_eq!(sent, expected);
            prop_assert_eq!(stopped, text.contains(&stop));
        }
    }
}
