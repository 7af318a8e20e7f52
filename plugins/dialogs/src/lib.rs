//! Reads `tests/dialogs` and measures the shipped rules on it; its README states the format and what the rules claim.

pub mod courtesy;
pub mod figures;
pub mod salient;
pub mod slots;

use jackfield_sdk::Value;
use serde::Deserialize;
use slots_orders::civil::Day;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Which half a dialog belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Split {
    /// The rules are written by it.
    Rules,
    /// The figures are reported on it.
    Report,
}

/// The language of a dialog.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Lang {
    /// Chinese.
    Zh,
    /// English.
    En,
    /// Both in one dialog.
    Mixed,
}

/// A dialog with what is right.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dialog {
    /// Unique.
    pub id: String,
    /// Its language.
    pub lang: Lang,
    /// Its half.
    pub split: Split,
    /// The clock of the whole dialog: `2026-03-31T10:00:00+08:00` or with `Z`.
    pub now: String,
    /// What it is about.
    pub task: String,
    /// What must be known or done at the end.
    pub goal: BTreeMap<String, GoldValue>,
    /// What the user says.
    pub turns: Vec<Turn>,
}

/// One turn of the user.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Turn {
    /// What is said.
    pub text: String,
    /// What it says of slots.
    #[serde(default)]
    pub slots: Vec<GoldSlot>,
    /// Words that must stay, in the order of the text, besides the spans of the slots.
    #[serde(default)]
    pub keep: Vec<String>,
    /// Rules can answer it.
    pub alone: bool,
    /// The assistant's next words.
    #[serde(default)]
    pub reply: String,
}

/// A slot as a person reads it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GoldSlot {
    /// The slot.
    pub name: String,
    /// Its value.
    pub value: GoldValue,
    /// The words it is in.
    pub span: String,
    /// Which occurrence of `span`, from 1.
    #[serde(default = "first")]
    pub nth: usize,
    /// The rules claim to read it.
    #[serde(default = "yes")]
    pub claimed: bool,
}

fn first() -> usize {
    1
}

fn yes() -> bool {
    true
}

/// A typed value.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GoldValue {
    /// Text.
    Text(String),
    /// A number.
    Number(f64),
    /// A day, or two joined by `/`.
    Date(String),
    /// One of several.
    Choice(String),
}

impl GoldValue {
    /// Whether a policy's value is the same, type and all.
    pub fn is(&self, found: &Value) -> bool {
        match (self, found) {
            (GoldValue::Text(a), Value::Text(b))
            | (GoldValue::Date(a), Value::Date(b))
            | (GoldValue::Choice(a), Value::Choice(b)) => a == b,
            (GoldValue::Number(a), Value::Number(b)) => a == b,
            _ => false,
        }
    }
}

impl GoldSlot {
    /// The bytes of the span; none when the text has fewer occurrences.
    pub fn bytes(&self, text: &str) -> Option<Range<usize>> {
        let before = self.nth.checked_sub(1)?;
        let at = text.match_indices(&self.span).nth(before)?.0;
        Some(at..at + self.span.len())
    }
}

impl Turn {
    /// Bytes that no compressor may touch: the words of `keep`, each behind the one before, and the spans of the slots.
    pub fn must_stay(&self) -> Result<Vec<Range<usize>>, String> {
        let mut all = Vec::new();
        let mut from = 0;
        for word in &self.keep {
            let at = self.text[from..].find(word).ok_or_else(|| format!("keep: `{word}` is not there"))?;
            from += at + word.len();
            all.push(from - word.len()..from);
        }
        for slot in &self.slots {
            all.push(slot.bytes(&self.text).ok_or_else(|| format!("span: `{}` is not there", slot.span))?);
        }
        Ok(all)
    }
}

impl Dialog {
    /// The clock: milliseconds since 1970 in UTC, and the zone's minutes.
    pub fn instant(&self) -> Option<jackfield_sdk::Instant> {
        let number = |at: Range<usize>| self.now.get(at)?.parse::<i64>().ok();
        let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
        let day = Day::of_civil(year, u32::try_from(month).ok()?, u32::try_from(day).ok()?)?.0;
        let offset = match self.now.get(19..)? {
            "Z" => 0,
            zone => {
                let minutes = number(20..22)? * 60 + number(23..25)?;
                if zone.starts_with('-') { -minutes } else { minutes }
            }
        };
        let minutes = day * 1440 + number(11..13)? * 60 + number(14..16)? - offset;
        let seconds = minutes * 60 + number(17..19)?;
        let utc_offset_minutes = i16::try_from(offset).ok()?;
        Some(jackfield_sdk::Instant { unix_ms: seconds as f64 * 1000.0, utc_offset_minutes })
    }

    fn check(&self) -> Result<(), String> {
        self.instant().ok_or("now: not a time with a zone")?;
        if !(3..=8).contains(&self.turns.len()) {
            return Err(format!("{} turns", self.turns.len()));
        }
        for turn in &self.turns {
            turn.must_stay()?;
            let claimed: Vec<_> = turn.slots.iter().filter(|s| s.claimed).map(|s| &s.name).collect();
            if claimed.iter().collect::<BTreeSet<_>>().len() != claimed.len() {
                return Err(format!("a slot is claimed twice in `{}`", turn.text));
            }
        }
        Ok(())
    }
}

/// All dialogs, in the order of their files' names; an error names the file and the dialog.
pub fn load() -> Result<Vec<Dialog>, String> {
    let mut all: Vec<Dialog> = Vec::new();
    for (folder, split) in [("rules", Split::Rules), ("report", Split::Report)] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/dialogs").join(folder);
        for path in files(&folder)? {
            let wrong = |why: String| format!("{}: {why}", path.display());
            let text = std::fs::read_to_string(&path).map_err(|e| wrong(e.to_string()))?;
            let dialogs: Vec<Dialog> = serde_json::from_str(&text).map_err(|e| wrong(e.to_string()))?;
            for dialog in &dialogs {
                dialog.check().map_err(|why| wrong(format!("{}: {why}", dialog.id)))?;
                if dialog.split != split || all.iter().any(|other| other.id == dialog.id) {
                    return Err(wrong(format!("{}: in the wrong half, or there twice", dialog.id)));
                }
            }
            all.extend(dialogs);
        }
    }
    Ok(all)
}

fn files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let wrong = |e: std::io::Error| format!("{}: {e}", folder.display());
    let entries = std::fs::read_dir(folder).map_err(wrong)?;
    let mut paths: Vec<PathBuf> =
        entries.map(|entry| entry.map(|e| e.path())).collect::<Result<_, _>>().map_err(wrong)?;
    paths.sort();
    Ok(paths)
}

/// The shipped rules of a policy.
pub fn shipped<T: for<'a> Deserialize<'a>>(policy: &str) -> Result<T, String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(policy).join("rules.toml");
    let wrong = |why: String| format!("{}: {why}", path.display());
    let rules = std::fs::read_to_string(&path).map_err(|e| wrong(e.to_string()))?;
    toml::from_str(&rules).map_err(|e| wrong(e.to_string()))
}
