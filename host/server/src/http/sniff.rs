//! Sees request heads that name both `Content-Length` and `Transfer-Encoding`.
//!
//! The HTTP library follows the standard's lenient reading of such a head: it takes the transfer coding, drops the
//! length, and closes the connection after its answer. Nothing of the length is left for a handler to see. Two servers
//! in a row that disagree on such a head can be made to disagree on where the next request begins, so here it is
//! refused; this reads along on the wire to know.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Longest part of a line that is kept: header names of interest and the end of a request line fit.
const KEPT_BYTES: usize = 32;

/// Set once a head on this connection had both headers. Such a connection has no later request.
#[derive(Debug, Clone, Default)]
pub(crate) struct BothLengths(Arc<AtomicBool>);

impl BothLengths {
    pub(crate) fn seen(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// A connection whose incoming bytes are looked at on their way.
pub(crate) struct Sniffed<IO> {
    io: IO,
    lines: Lines,
    both: BothLengths,
}

impl<IO> Sniffed<IO> {
    pub(crate) fn new(io: IO) -> (Self, BothLengths) {
        let both = BothLengths::default();
        (Sniffed { io, lines: Lines::default(), both: both.clone() }, both)
    }
}

impl<IO: AsyncRead + Unpin> AsyncRead for Sniffed<IO> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let polled = Pin::new(&mut self.io).poll_read(cx, buf);
        let new = buf.filled().get(before..).unwrap_or_default();
        if !self.both.seen() && self.lines.feed(new) {
            self.both.0.store(true, Ordering::Release);
        }
        polled
    }
}

impl<IO: AsyncWrite + Unpin> AsyncWrite for Sniffed<IO> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }
}

/// Follows heads line by line. A head begins at a line that ends in `HTTP/1.1` and ends at an empty one; no line of a
/// JSON body looks like its first.
#[derive(Debug, Default)]
struct Lines {
    first: Vec<u8>,
    last: Vec<u8>,
    in_head: bool,
    has_length: bool,
    has_coding: bool,
}

impl Lines {
    /// True when a head has just shown both.
    fn feed(&mut self, mut bytes: &[u8]) -> bool {
        let mut both = false;
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            self.keep(&bytes[..end]);
            both |= self.end_line();
            bytes = &bytes[end + 1..];
        }
        self.keep(bytes);
        both
    }

    fn keep(&mut self, part: &[u8]) {
        let room = KEPT_BYTES - self.first.len();
        self.first.extend_from_slice(&part[..room.min(part.len())]);
        self.last.extend_from_slice(&part[part.len().saturating_sub(KEPT_BYTES)..]);
        let surplus = self.last.len().saturating_sub(KEPT_BYTES);
        self.last.drain(..surplus);
    }

    fn end_line(&mut self) -> bool {
        let name_is =
            |name: &[u8]| self.first.get(..name.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(name));
        if !self.in_head {
            self.in_head = self.last.trim_ascii_end().ends_with(b" HTTP/1.1");
            (self.has_length, self.has_coding) = (false, false);
        } else if self.first.trim_ascii_end().is_empty() {
            self.in_head = false;
        } else if name_is(b"content-length:") {
            self.has_length = true;
        } else if name_is(b"transfer-encoding:") {
            self.has_coding = true;
        }
        self.first.clear();
        self.last.clear();
        self.in_head && self.has_length && self.has_coding
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: &str = "POST /v1/chat/completions?with=a&long=query HTTP/1.1\r\nHost: a\r\n";

    /// Whether both are seen, which must not depend on where the reads are cut.
    fn both(text: &str) -> bool {
        let whole = Lines::default().feed(text.as_bytes());
        for cut in 0..text.len() {
            let mut lines = Lines::default();
            let seen = lines.feed(&text.as_bytes()[..cut]) | lines.feed(&text.as_bytes()[cut..]);
            assert_eq!(seen, whole, "cut at {cut}");
        }
        whole
    }

    #[test]
    fn both_orders_and_cases_are_seen() {
        assert!(both(&format!("{LONG}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n")));
        assert!(both(&format!("{LONG}TRANSFER-ENCODING: chunked\r\nx: y\r\ncontent-length: 5\r\n\r\n")));
    }

    #[test]
    fn one_of_them_or_one_each_in_two_requests_is_fine() {
        assert!(!both(&format!("{LONG}Content-Length: 2\r\n\r\n{{}}")));
        assert!(!both(&format!("{LONG}Content-Length: 0\r\n\r\n{LONG}Transfer-Encoding: chunked\r\n\r\n")));
    }

    #[test]
    fn a_body_that_speaks_of_headers_is_no_head() {
        let body = "{\"prompt\":\n\"x\",\ncontent-length: 1\ntransfer-encoding: x\n}";
        assert!(!both(&format!("{LONG}Transfer-Encoding: chunked\r\n\r\n{body}")));
    }
}
