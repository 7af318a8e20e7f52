//! A wall-clock instant with its zone.

use serde::{Deserialize, Serialize};
use time::{OffsetDateTime, format_description::well_known::Rfc3339};

/// A wall-clock instant, and the zone in which the user's words are to be read.
///
/// In JSON either `{"unix-ms": …, "utc-offset-minutes": …}` or an RFC 3339 text such as `2026-03-31T23:59:59+08:00`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", try_from = "Written")]
pub struct Instant {
    /// Milliseconds since 1970-01-01T00:00:00Z.
    pub unix_ms: i64,
    /// Local time minus UTC, in minutes.
    pub utc_offset_minutes: i16,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    Text(String),
    #[serde(rename_all = "kebab-case")]
    Parts {
        unix_ms: i64,
        #[serde(default)]
        utc_offset_minutes: i16,
    },
}

impl TryFrom<Written> for Instant {
    type Error = String;

    fn try_from(written: Written) -> Result<Instant, String> {
        match written {
            Written::Text(text) => Instant::from_rfc3339(&text),
            Written::Parts { unix_ms, utc_offset_minutes } => Ok(Instant { unix_ms, utc_offset_minutes }),
        }
    }
}

impl Instant {
    /// From a text such as `2026-03-31T23:59:59+08:00`.
    ///
    /// # Errors
    /// A sentence that names the text.
    pub fn from_rfc3339(text: &str) -> Result<Instant, String> {
        let read = OffsetDateTime::parse(text, &Rfc3339)
            .map_err(|error| format!("`{text}` is not an instant (RFC 3339): {error}"))?;
        let unix_ms = read.unix_timestamp() * 1000 + i64::from(read.millisecond());
        Ok(Instant { unix_ms, utc_offset_minutes: read.offset().whole_minutes() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_both_forms() {
        let text: Instant = serde_json::from_str(r#""2026-03-31T23:59:59.250+08:00""#).expect("text");
        let parts: Instant =
            serde_json::from_str(r#"{"unix-ms": 1774972799250, "utc-offset-minutes": 480}"#).expect("parts");
        assert_eq!(text, parts);
    }

    #[test]
    fn says_what_it_could_not_read() {
        let error = serde_json::from_str::<Instant>(r#""tomorrow""#).expect_err("not an instant");
        assert!(error.to_string().contains("`tomorrow`"), "{error}");
    }
}
