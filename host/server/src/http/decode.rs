//! Undoing content codings within a bound of memory.

use std::io::{self, Read};

use axum::http::{HeaderMap, header};
use bytes::Bytes;

/// Codings one body may be wrapped in.
const MOST_CODINGS: usize = 3;
/// 2 to this power is the largest window a zstd frame may ask for: 8 MiB, what the format's specification recommends.
const ZSTD_WINDOW_LOG: u32 = 23;

/// The codings of a body, in the order in which they were applied.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Codings(Vec<Coding>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Coding {
    Gzip,
    Deflate,
    Brotli,
    Zstd,
}

/// Why a body could not be decoded.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum DecodeError {
    #[error("The content encoding `{0}` is not supported; use gzip, deflate, br, zstd or none")]
    Unknown(String),
    #[error("The body is wrapped in more than {MOST_CODINGS} content encodings")]
    TooMany,
    #[error("The body is too large once decoded")]
    TooLarge,
    #[error("The body is not valid {0}")]
    Corrupt(&'static str),
}

impl Codings {
    pub(crate) fn of(headers: &HeaderMap) -> Result<Codings, DecodeError> {
        let mut codings = Vec::new();
        for value in headers.get_all(header::CONTENT_ENCODING) {
            let value = value.to_str().map_err(|_| DecodeError::Unknown("?".into()))?;
            for name in value.split(',').map(str::trim).filter(|name| !name.is_empty()) {
                codings.extend(Coding::named(name)?);
            }
        }
        if codings.len() > MOST_CODINGS { Err(DecodeError::TooMany) } else { Ok(Codings(codings)) }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Undoes them, last first. No step's output may have more than `most` bytes.
    pub(crate) fn decode(&self, body: Bytes, most: usize) -> Result<Bytes, DecodeError> {
        self.0.iter().rev().try_fold(body, |body, coding| coding.decode(&body, most))
    }
}

impl Coding {
    fn named(name: &str) -> Result<Option<Coding>, DecodeError> {
        match name.to_ascii_lowercase().as_str() {
            "identity" => Ok(None),
            "gzip" | "x-gzip" => Ok(Some(Coding::Gzip)),
            "deflate" => Ok(Some(Coding::Deflate)),
            "br" => Ok(Some(Coding::Brotli)),
            "zstd" => Ok(Some(Coding::Zstd)),
            _ => Err(DecodeError::Unknown(crate::error::shorten(name))),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Coding::Gzip => "gzip",
            Coding::Deflate => "deflate",
            Coding::Brotli => "br",
            Coding::Zstd => "zstd",
        }
    }

    fn decode(self, body: &[u8], most: usize) -> Result<Bytes, DecodeError> {
        match self {
            Coding::Gzip => self.drain(flate2::read::MultiGzDecoder::new(body), most),
            Coding::Deflate => self.drain(flate2::read::ZlibDecoder::new(body), most),
            Coding::Brotli => self.drain(brotli::Decompressor::new(body, 4096), most),
            Coding::Zstd => {
                let mut decoder =
                    zstd::stream::read::Decoder::with_buffer(body).map_err(|_| self.corrupt())?;
                decoder.window_log_max(ZSTD_WINDOW_LOG).map_err(|_| self.corrupt())?;
                self.drain(decoder, most)
            }
        }
    }

    fn drain(self, decoder: impl Read, most: usize) -> Result<Bytes, DecodeError> {
        let mut decoded = Vec::new();
        let bound = u64::try_from(most).unwrap_or(u64::MAX).saturating_add(1);
        let read: io::Result<usize> = decoder.take(bound).read_to_end(&mut decoded);
        read.map_err(|_| self.corrupt())?;
        if decoded.len() > most { Err(DecodeError::TooLarge) } else { Ok(decoded.into()) }
    }

    fn corrupt(self) -> DecodeError {
        DecodeError::Corrupt(self.name())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    const TEXT: &[u8] = b"{\"model\":\"m\",\"prompt\":\"\xe4\xbd\xa0\xe5\xa5\xbd\"}";

    fn codings(value: &str) -> Result<Codings, DecodeError> {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_ENCODING, value.parse().unwrap());
        Codings::of(&headers)
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn zstd(bytes: &[u8]) -> Vec<u8> {
        zstd::encode_all(bytes, 3).unwrap()
    }

    fn decode(value: &str, body: Vec<u8>) -> Result<Bytes, DecodeError> {
        codings(value).unwrap().decode(body.into(), 4096)
    }

    fn brotli() -> Vec<u8> {
        let mut out = Vec::new();
        let mut encoder = brotli::CompressorWriter::new(&mut out, 4096, 5, 20);
        encoder.write_all(TEXT).unwrap();
        drop(encoder);
        out
    }

    #[test]
    fn each_coding_and_a_stack_of_two_come_back() {
        assert_eq!(decode("gzip", gzip(TEXT)).unwrap(), TEXT);
        assert_eq!(decode("zstd", zstd(TEXT)).unwrap(), TEXT);
        assert_eq!(decode("br", brotli()).unwrap(), TEXT);
        assert_eq!(decode("zstd, gzip", gzip(&zstd(TEXT))).unwrap(), TEXT);
        assert_eq!(decode("identity", TEXT.to_vec()).unwrap(), TEXT);
    }

    #[test]
    fn every_cut_and_every_wrong_label_is_corrupt() {
        for (name, whole) in [("gzip", gzip(TEXT)), ("zstd", zstd(TEXT)), ("br", brotli())] {
            for cut in 0..whole.len() {
                let decoded = decode(name, whole[..cut].to_vec());
                assert!(matches!(decoded, Err(DecodeError::Corrupt(_))), "{name} cut at {cut}: {decoded:?}");
            }
            assert!(matches!(decode(name, TEXT.to_vec()), Err(DecodeError::Corrupt(_))), "{name}");
        }
    }

    #[test]
    fn a_bomb_stops_at_the_cap() {
        let zeros = vec![0; 10 << 20];
        assert_eq!(decode("gzip", gzip(&zeros)), Err(DecodeError::TooLarge));
        assert_eq!(decode("zstd", zstd(&zeros)), Err(DecodeError::TooLarge));
        assert_eq!(decode("gzip, zstd", zstd(&gzip(&zeros))), Err(DecodeError::TooLarge));
    }

    #[test]
    fn unknown_and_endless_codings_are_refused() {
        assert_eq!(codings("lzma"), Err(DecodeError::Unknown("lzma".into())));
        assert_eq!(codings("gzip, gzip, gzip, gzip"), Err(DecodeError::TooMany));
    }
}
