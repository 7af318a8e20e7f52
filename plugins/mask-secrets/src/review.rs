use std::ops::Range;

use jackfield_sdk::Span;
use jackfield_sdk::output_filtering::{Hit, Replacement, Verdict, Window};

use crate::numbers::{Secret, secrets};
use crate::runs::Runs;
use crate::{MaskSecrets, Meaning};

/// How many digits of a number that the host had to cut may belong to a secret that goes on behind the cut.
const OPEN_DIGITS: usize = 19;

/// A piece of text to be replaced.
struct Cover {
    at: Range<usize>,
    text: String,
}

impl MaskSecrets {
    /// What to do with one window; none when it may pass as it is. `runs` is memory to work in.
    pub(crate) fn review_window(
        &self,
        index: u32,
        window: &Window,
        runs: &mut Runs,
    ) -> Result<Option<Verdict>, String> {
        let text = window.pending.as_str();
        let mut covers = Vec::new();
        for hit in &window.hits {
            let watched = self.watches.get(hit.watch as usize).ok_or("a hit of an unknown watch")?;
            if let Meaning::Secret(mask) = &watched.meaning {
                let at = hit.at.range();
                let secret = text.get(at.clone()).ok_or("a hit outside the text")?;
                covers.push(Cover { at, text: mask.apply(secret.chars().filter(|c| c.is_alphanumeric())) });
            }
        }
        // Judged in the text and not in the hits, so that a number which the host cut, and whose end was held, is seen whole:
        // that end is what the next window begins with.
        let cut = self.number_hits(window).any(|hit| hit.cut);
        if cut {
            runs.find(text);
        } else {
            runs.find_at(text, self.number_hits(window).map(|hit| hit.at.start as usize));
        }
        let mut hold_from = if cut && !window.final_ { open_end(runs) } else { None };
        for found in runs.iter().flat_map(|run| secrets(run, self.wanted)) {
            let at = found.at();
            // What the held end would tear is held from its beginning, and found again with it.
            if let Some(from) = hold_from.filter(|from| tears(&at, *from)) {
                hold_from = Some(from.min(at.start));
            }
            let mask = match found.secret {
                Secret::Card => &self.card,
                Secret::Phone => &self.phone,
                Secret::ResidentId => &self.resident_id,
            };
            covers.push(Cover { at, text: mask.apply(found.counting()) });
        }
        merge(&mut covers);
        // A pattern's match is as long as it will ever be: one that would be torn goes now.
        if let Some(torn) = covers.iter().find(|cover| hold_from.is_some_and(|from| tears(&cover.at, from))) {
            hold_from = Some(torn.at.end);
        }
        let replace: Vec<Replacement> = covers
            .into_iter()
            .filter(|cover| hold_from.is_none_or(|from| cover.at.end <= from))
            .map(|cover| Replacement { at: Span::new(cover.at), text: cover.text })
            .collect();
        let held = hold_from.map_or(0, |from| text.len() - from);
        if replace.is_empty() && held == 0 {
            return Ok(None);
        }
        let hold_bytes = u32::try_from(held).map_err(|_| "a window of more than 4 GiB")?;
        Ok(Some(Verdict { window: index, replace, hold_bytes, stop: None }))
    }

    fn number_hits<'a>(&'a self, window: &'a Window) -> impl Iterator<Item = &'a Hit> {
        let meaning = |hit: &Hit| self.watches.get(hit.watch as usize).map(|watched| &watched.meaning);
        window.hits.iter().filter(move |hit| matches!(meaning(hit), Some(Meaning::Numbers)))
    }
}

/// Where the end of a number begins that the host could not hold any longer, if the window ends in one.
fn open_end(runs: &Runs) -> Option<usize> {
    let run = runs.iter().next_back()?;
    let mut digits = 0;
    let groups = run.groups.iter().rev().take_while(|group| {
        digits += group.digits.len();
        digits <= OPEN_DIGITS
    });
    groups.last().map(|group| group.at.start)
}

/// Whether a place is inside, not at an end.
fn tears(at: &Range<usize>, place: usize) -> bool {
    at.start < place && place < at.end
}

/// In order of their start, with those that overlap made one: the text of the longer stands for both.
fn merge(covers: &mut Vec<Cover>) {
    covers.sort_by_key(|cover| (cover.at.start, std::cmp::Reverse(cover.at.end)));
    covers.dedup_by(|next, last| {
        let overlap = next.at.start < last.at.end;
        if overlap {
            if next.at.len() > last.at.len() {
                std::mem::swap(&mut last.text, &mut next.text);
            }
            last.at.end = last.at.end.max(next.at.end);
        }
        overlap
    });
}

#[cfg(test)]
mod tests {
    use jackfield_sdk::Policy;
    use jackfield_sdk::output_filtering::OutputFilter;

    use super::*;
    use crate::Config;

    fn policy(config: &str) -> MaskSecrets {
        let config: Config = serde_json::from_str(config).expect("a configuration");
        MaskSecrets::configure(config).expect("a policy")
    }

    fn window(pending: &str, hits: &[(u32, &str, bool)]) -> Window {
        let hits = hits.iter().map(|(watch, text, cut)| {
            let start = pending.find(text).expect("the hit's text");
            Hit { watch: *watch, at: Span::new(start..start + text.len()), cut: *cut }
        });
        Window {
            stream_id: 1,
            sent_tail: String::new(),
            pending: pending.into(),
            hits: hits.collect(),
            tokens: Vec::new(),
            final_: false,
        }
    }

    /// What is sent of one window, and what is held.
    fn sent(policy: &MaskSecrets, window: &Window) -> (String, String) {
        let verdicts = policy.review(std::slice::from_ref(window)).expect("verdicts");
        let mut text = window.pending.clone();
        let Some(verdict) = verdicts.first() else { return (text, String::new()) };
        let held = text.split_off(text.len() - verdict.hold_bytes as usize);
        for replacement in verdict.replace.iter().rev() {
            text.replace_range(replacement.at.range(), &replacement.text);
        }
        (text, held)
    }

    const PATTERN: &str = r#"{"pattern": [{"name": "code", "regex": "AB-\\d{4}", "mask": "<{last2}>"}]}"#;

    #[test]
    fn hits_of_patterns_are_covered_and_numbers_are_verified() {
        let policy = policy(PATTERN);
        let good = window(
            "卡4111111111111111，编号ＡＢ－１２３４。",
            &[(0, "4111111111111111", false), (2, "ＡＢ－１２３４", false)],
        );
        assert_eq!(sent(&policy, &good).0, "卡[card]，编号<３４>。");
        let bad = window("卡4111111111111112", &[(0, "4111111111111112", false)]);
        assert_eq!(policy.review(&[bad]), Ok(vec![]));
    }

    #[test]
    fn each_window_has_its_own_verdict_under_its_own_index() {
        let clean = window("12345678901 is no phone", &[(0, "12345678901", false)]);
        let phone = window("13800138000", &[(0, "13800138000", false)]);
        let verdicts = policy("{}").review(&[clean.clone(), phone.clone(), clean, phone]).expect("verdicts");
        assert_eq!(verdicts.iter().map(|verdict| verdict.window).collect::<Vec<_>>(), [1, 3]);
    }

    #[test]
    fn overlapping_secrets_become_one() {
        let policy = policy(r#"{"pattern": [{"name": "tail", "regex": "1111, ok", "widths": false}]}"#);
        let window =
            window("4111111111111111, ok.", &[(0, "4111111111111111", false), (2, "1111, ok", false)]);
        // `find` gives the first 1111; the pattern's hit is the last.
        let mut window = window;
        window.hits[1].at = Span::new(12..20);
        assert_eq!(sent(&policy, &window).0, "[card].");
    }

    #[test]
    fn a_number_that_the_host_cut_is_held_at_its_end_and_seen_whole_the_next_time() {
        let policy = policy("{}");
        let long = format!("{} 4111 11", "1".repeat(500));
        let first = window(&long, &[(0, &long, true)]);
        let (text, held) = sent(&policy, &first);
        assert_eq!((text.len(), held.as_str()), (501, "4111 11"));
        let second = window(&format!("{held}11 1111 1111."), &[]);
        assert_eq!(sent(&policy, &second).0, "[card].");
        let last = Window { final_: true, ..first };
        assert_eq!(sent(&policy, &last), (long, String::new()));
    }

    #[test]
    fn wrong_configurations_say_what_is_wrong() {
        let error = |config: &str| {
            let config: Config = serde_json::from_str(config).expect("a configuration");
            MaskSecrets::configure(config).expect_err("wrong")
        };
        assert!(error(r#"{"card": {"mask": "{all}"}}"#).contains("mask `{all}`"));
        assert!(
            error(r#"{"pattern": [{"name": "x", "regex": "[a"}]}"#)
                .starts_with("pattern `x`: ends inside a class")
        );
        let off = r#"{"card": {"enabled": false}, "phone": {"enabled": false}, "email": {"enabled": false},
            "resident_id": {"enabled": false}}"#;
        assert!(error(off).contains("nothing is enabled"));
    }
}
