//! Server-sent events: bytes in, the data of whole events out.

/// Takes a stream apart, however it is cut into pieces.
#[derive(Debug, Default)]
pub(crate) struct Events {
    /// What came after the last line break.
    line: Vec<u8>,
    /// The data lines of the event that is being read.
    data: Option<String>,
    after_return: bool,
}

impl Events {
    /// Takes the next bytes and gives the data of every event that they complete.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Vec<String> {
        let mut done = Vec::new();
        for &byte in bytes {
            // A line ends with \n, \r\n or \r; the \n of a pair ends nothing more.
            let second_of_pair = byte == b'\n' && std::mem::take(&mut self.after_return);
            self.after_return = byte == b'\r';
            match byte {
                b'\n' | b'\r' if !second_of_pair => done.extend(self.end_line()),
                b'\n' | b'\r' => {}
                _ => self.line.push(byte),
            }
        }
        done
    }

    fn end_line(&mut self) -> Option<String> {
        let line = std::mem::take(&mut self.line);
        if line.is_empty() {
            return self.data.take();
        }
        if let Some(value) = line.strip_prefix(b"data:") {
            let value = String::from_utf8_lossy(value.strip_prefix(b" ").unwrap_or(value)).into_owned();
            match &mut self.data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(&value);
                }
                None => self.data = Some(value),
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(pieces: &[&[u8]]) -> Vec<String> {
        let mut parser = Events::default();
        pieces.iter().flat_map(|piece| parser.push(piece)).collect()
    }

    #[test]
    fn data_lines_make_events_and_the_rest_does_not_count() {
        let stream = b": hello\n\nevent: x\nid: 1\ndata: a\ndata:b\n\ndata: [DONE]\n\ndata: unfinished\n";
        assert_eq!(events(&[stream]), ["a\nb", "[DONE]"]);
    }

    #[test]
    fn it_does_not_matter_where_the_stream_is_cut_or_how_lines_end() {
        let stream = "data: {\"a\":\"ü✓\"}\r\n\r\ndata: 2\r\rdata:  3\n\n: c\n\ndata:\n\n".as_bytes();
        let whole = events(&[stream]);
        assert_eq!(whole, ["{\"a\":\"ü✓\"}", "2", " 3", ""]);
        for cut in 0..=stream.len() {
            assert_eq!(events(&[&stream[..cut], &stream[cut..]]), whole, "cut at {cut}");
        }
    }
}
