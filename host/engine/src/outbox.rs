//! The answers being written: text that waits to be whole, and whom it goes to.

use std::sync::Arc;

use jackfield_model::Tokenizer;
use tokio::sync::mpsc::UnboundedSender;

use crate::job::{Delta, Finish, Output, TokenInfo};
use crate::sampler::Chosen;
use crate::text::{Released, StopMatcher, Utf8Stream};

/// Where a job's outputs go. Unbounded because a job is: it never yields more than its tokens.
pub(crate) type Responder = UnboundedSender<Output>;

/// The text of one sequence on its way out.
pub(crate) struct Answer {
    choice: u32,
    tokenizer: Arc<Tokenizer>,
    responder: Responder,
    stops: StopMatcher,
    decoder: Utf8Stream,
    /// Whole characters not yet delivered.
    held: String,
    /// Bytes of text delivered so far.
    delivered: usize,
    /// Tokens whose text is not wholly delivered.
    waiting: Vec<WaitingToken>,
    stopped: bool,
}

/// A token and where its text ends, once that is known.
struct WaitingToken {
    info: TokenInfo,
    /// In bytes of the answer; none while its last character is incomplete.
    end: Option<usize>,
}

impl Answer {
    pub(crate) fn new(
        choice: u32,
        tokenizer: Arc<Tokenizer>,
        responder: Responder,
        stops: StopMatcher,
    ) -> Self {
        Answer {
            choice,
            tokenizer,
            responder,
            stops,
            decoder: Utf8Stream::default(),
            held: String::new(),
            delivered: 0,
            waiting: Vec::new(),
            stopped: false,
        }
    }

    /// Takes a token into the text. True when a stop string is now complete: the answer ends before it.
    pub(crate) fn take(&mut self, chosen: &Chosen) -> bool {
        let bytes = self.tokenizer.decode_bytes(chosen.token);
        self.decoder.push(bytes, &mut self.held);
        if let Some(logprobs) = &chosen.logprobs {
            self.waiting.push(WaitingToken {
                info: TokenInfo {
                    id: chosen.token,
                    bytes: bytes.to_vec(),
                    logprob: logprobs.chosen,
                    top: logprobs.top.clone(),
                },
                end: None,
            });
        }
        if !self.decoder.is_inside_character() {
            let end = self.delivered + self.held.len();
            self.waiting.iter_mut().for_each(|token| token.end = token.end.or(Some(end)));
        }
        if let Released::StopAt(at) = self.stops.review(&self.held) {
            self.held.truncate(at);
            self.stopped = true;
        }
        self.stopped
    }

    /// Delivers what can no longer become part of a stop string.
    pub(crate) fn deliver(&mut self) {
        let ready = match self.stops.review(&self.held) {
            Released::Upto(ready) | Released::StopAt(ready) => ready,
        };
        self.send_text(self.whole_tokens(ready));
    }

    /// Where tokens are told, text leaves with the tokens that made it and not before: who hides a part of the text must
    /// be able to hide its tokens.
    fn whole_tokens(&self, ready: usize) -> usize {
        if self.waiting.is_empty() {
            return ready;
        }
        let ends = self.waiting.iter().map_while(|token| token.end);
        let whole = ends.take_while(|end| *end <= self.delivered + ready).last();
        whole.map_or(0, |end| end - self.delivered)
    }

    /// Delivers the rest and the reason. A character that was begun and not completed is dropped.
    pub(crate) fn finish(&mut self, reason: Finish) {
        self.send_text(self.held.len());
        self.send(Output::Finished { choice: self.choice, reason });
    }

    fn send_text(&mut self, bytes: usize) {
        let text: String = self.held.drain(..bytes).collect();
        self.delivered += bytes;
        let done = self
            .waiting
            .iter()
            .take_while(|token| token.end.is_some_and(|end| end <= self.delivered))
            .count();
        let tokens: Vec<TokenInfo> = self.waiting.drain(..done).map(|token| token.info).collect();
        if !text.is_empty() || !tokens.is_empty() {
            self.send(Output::Delta(Delta { choice: self.choice, text, tokens }));
        }
    }

    /// A receiver that is gone has cancelled; the inbox says so, nothing is to be done here.
    fn send(&self, output: Output) {
        let _ = self.responder.send(output);
    }
}

#[cfg(test)]
mod tests {
    use jackfield_model::{Cpu, Gguf, Model};
    use jackfield_tiny::tiny_model::TinyModel;
    use tokio::sync::mpsc;

    use super::*;
    use crate::sampler::Logprobs;

    #[test]
    fn text_leaves_with_the_tokens_that_made_it() {
        let gguf = Gguf::from_bytes(TinyModel::default().bytes()).expect("a model file");
        let tokenizer = Model::from_gguf(gguf, Cpu::new(1)).expect("it loads").tokenizer;
        let (responder, mut outputs) = mpsc::unbounded_channel();
        // The end of `hello` may be the beginning of a stop string, twice.
        let stops = StopMatcher::new(vec!["lo!".into(), "o w!".into()]);
        let mut answer = Answer::new(0, Arc::clone(&tokenizer), responder, stops);
        for token in tokenizer.encode("hello world 龘中").expect("tokens") {
            let logprobs = Some(Logprobs { chosen: 0.0, top: Vec::new() });
            answer.take(&Chosen { token, logprobs });
            answer.deliver();
        }
        answer.finish(Finish::Length);
        let mut all = String::new();
        while let Ok(output) = outputs.try_recv() {
            let Output::Delta(delta) = output else { continue };
            let made: Vec<u8> = delta.tokens.iter().flat_map(|token| token.bytes.clone()).collect();
            assert_eq!(String::from_utf8_lossy(&made), delta.text);
            all.push_str(&delta.text);
        }
        assert_eq!(all, "hello world 龘中");
    }
}
