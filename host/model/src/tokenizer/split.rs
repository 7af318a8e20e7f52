//! Pre-tokenisers: how a text is cut into words before bytes are merged.
//!
//! Published patterns end in `\s+(?!\S)|\s+`. No look-ahead is needed for it: a run of white space that is
//! followed by something gives back its last character. So all matching is by automata, linear in the text.

use regex_automata::meta::Regex;
use regex_automata::{Anchored, Input};

const GPT2: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+";
const LLAMA3: &str =
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+";
const QWEN2: &str =
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+";
const QWEN35: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+";
const TEKKEN: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+";
const GPT4O: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+";
const DEEPSEEK3: &str =
    r"[!-/:-@\[-`{-~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+";
const SEED: &str =
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+";
const BAILING: &str =
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]";
const BLOOM: &str = r" ?[^(\s|.,!?…。，、।۔،)]+";
const HAN_KANA: &str = r"[一-龥぀-ゟ゠-ヿ]+";
const DEEPSEEK_CJK: &str = r"[一-龥ࠀ-一가-퟿]+";
/// Letters with case, as one publisher lists them; escaped, for some have a canonical form that editors put in their place.
const DEEPSEEK_LETTERS: &str = concat!(
    r"\s?[",
    r"A-Za-z\x{b5}\x{c0}-\x{d6}\x{d8}-\x{f6}\x{f8}-\x{1ba}\x{1bc}-\x{1bf}\x{1c4}-\x{293}",
    r"\x{295}-\x{2af}\x{370}-\x{373}\x{376}\x{377}\x{37b}-\x{37d}\x{37f}\x{386}\x{388}-\x{38a}\x{38c}",
    r"\x{38e}-\x{3a1}\x{3a3}-\x{3f5}\x{3f7}-\x{481}\x{48a}-\x{52f}\x{531}-\x{556}\x{10a0}-\x{10c5}",
    r"\x{13a0}-\x{13f5}\x{13f8}-\x{13fd}\x{1c90}-\x{1cba}\x{1cbd}-\x{1cbf}\x{1d00}-\x{1d2b}",
    r"\x{1d6b}-\x{1d77}\x{1d79}-\x{1d9a}\x{1e00}-\x{1f15}\x{1f18}-\x{1f1d}\x{1f20}-\x{1f45}",
    r"\x{1f48}-\x{1f4d}\x{1f50}-\x{1f57}\x{1f59}\x{1f5b}\x{1f5d}\x{1f5f}-\x{1f7d}\x{1f80}-\x{1fb4}",
    r"\x{1fb6}-\x{1fbc}\x{1fbe}\x{1fc2}-\x{1fc4}\x{1fc6}-\x{1fcc}\x{1fd0}-\x{1fd3}\x{1fd6}-\x{1fdb}",
    r"\x{1fe0}-\x{1fec}\x{1ff2}-\x{1ff4}\x{1ff6}-\x{1ffc}\x{2102}\x{2107}\x{210a}-\x{2113}\x{2115}",
    r"\x{2119}-\x{211d}\x{2124}\x{2126}\x{2128}\x{212a}-\x{212d}\x{212f}-\x{2134}\x{2139}",
    r"\x{213c}-\x{213f}\x{2145}-\x{2149}\x{214e}\x{2183}\x{2184}\x{2c00}-\x{2c7b}\x{2c7e}-\x{2ce4}",
    r"\x{2ceb}-\x{2cee}\x{2cf2}\x{2cf3}\x{a640}-\x{a66d}\x{a680}-\x{a69b}\x{a722}-\x{a76f}",
    r"\x{a771}-\x{a787}\x{a78b}-\x{a78e}\x{ab70}-\x{abbf}\x{fb00}-\x{fb06}\x{fb13}-\x{fb17}",
    r"\x{ff21}-\x{ff3a}\x{ff41}-\x{ff5a}\x{10400}-\x{1044f}\x{104b0}-\x{104d3}\x{104d8}-\x{104fb}",
    r"\x{10c80}-\x{10cb2}\x{10cc0}-\x{10cf2}\x{118a0}-\x{118df}\x{1e900}-\x{1e943}",
    r"]+",
);
const DIGIT: &str = r"\p{N}";
const THREE_DIGITS: &str = r"[0-9][0-9][0-9]";

/// One row of the table: the names a file may use, and what they mean.
struct Row {
    names: &'static [&'static str],
    stages: &'static [Pattern],
    /// A word that is a token is taken whole, whatever the merges say.
    whole_words: bool,
    /// What `tokenizer.ggml.add_bos_token` defaults to.
    add_bos: bool,
}

/// One pass over the pieces of the pass before.
enum Pattern {
    /// Matches become pieces, and so does what lies between them.
    Plain(&'static str),
    /// The same, then `\s+(?!\S)|\s+` as the last alternatives.
    Spaced(&'static str),
}

use Pattern::{Plain, Spaced};

const fn row(names: &'static [&'static str], stages: &'static [Pattern]) -> Row {
    Row { names, stages, whole_words: false, add_bos: false }
}

const fn whole(names: &'static [&'static str], stages: &'static [Pattern], add_bos: bool) -> Row {
    Row { names, stages, whole_words: true, add_bos }
}

static TABLE: &[Row] = &[
    row(&["default"], &[Plain(r"[\p{P}$+<=>^~|]+"), Spaced(GPT2), Plain(r"\p{N}+"), Plain(THREE_DIGITS)]),
    row(
        &[
            "gpt-2",
            "phi-2",
            "jina-es",
            "jina-de",
            "jina-v2-es",
            "jina-v2-de",
            "gigachat",
            "a.x-4.0",
            "mellum",
            "exaone4",
            "mpt",
            "olmo",
            "jais",
            "trillion",
            "granite-docling",
            "modern-bert",
            "jina-v1-en",
            "jina-v2-code",
            "roberta-bpe",
        ],
        &[Spaced(GPT2)],
    ),
    row(
        &["smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b", "mellum2"],
        &[Plain(DIGIT), Spaced(GPT2)],
    ),
    whole(
        &["llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2"],
        &[Spaced(LLAMA3)],
        true,
    ),
    row(&["dbrx", "smaug-bpe", "chatglm-bpe"], &[Spaced(LLAMA3)]),
    whole(&["glm4"], &[Spaced(LLAMA3)], false),
    row(
        &[
            "qwen2",
            "deepseek-r1-qwen",
            "kormo",
            "stablelm2",
            "hunyuan",
            "solar-open",
            "megrez",
            "grok-2",
            "f2llmv2",
        ],
        &[Spaced(QWEN2)],
    ),
    row(&["qwen35"], &[Spaced(QWEN35)]),
    whole(&["tekken"], &[Spaced(TEKKEN)], true),
    row(&["gpt-4o", "llama4", "kanana2", "minimax-m2"], &[Spaced(GPT4O)]),
    row(
        &["deepseek-v3", "hunyuan-dense", "joyai-llm", "hy_v4"],
        &[Plain(r"\p{N}{1,3}"), Plain(HAN_KANA), Spaced(DEEPSEEK3)],
    ),
    row(
        &["deepseek-llm"],
        &[
            Plain(r"[\r\n]"),
            Plain(DEEPSEEK_LETTERS),
            Plain(r"\s?[!-/:-~！-／：-～‘-‟　-。]+"),
            Plain(r"\s+$"),
            Plain(DEEPSEEK_CJK),
            Plain(r"\p{N}+"),
        ],
    ),
    row(
        &["deepseek-coder"],
        &[Plain(r"[\r\n]"), Plain(r"\s?\p{L}+"), Plain(r"\s?\p{P}+"), Plain(DEEPSEEK_CJK), Plain(DIGIT)],
    ),
    row(&["falcon"], &[Plain(r"[\p{P}$+<=>^~|`]+"), Spaced(GPT2), Plain(THREE_DIGITS)]),
    row(&["seed-coder"], &[Spaced(SEED)]),
    row(&["bailingmoe", "bailingmoe2", "llada-moe"], &[Spaced(BAILING)]),
    row(&["bloom", "poro-chat", "gpt3-finnish"], &[Plain(BLOOM)]),
    row(&["viking"], &[Plain(BLOOM), Plain(DIGIT)]),
];

/// All names in the table, for the error that lists them.
pub(super) fn known() -> String {
    TABLE.iter().flat_map(|row| row.names).copied().collect::<Vec<_>>().join(", ")
}

/// Cuts text into words.
pub(super) struct Splitter {
    stages: Vec<Stage>,
    pub(super) whole_words: bool,
    pub(super) add_bos: bool,
}

struct Stage {
    /// Pattern 0 is the published one; pattern 1, where there is one, is a run of white space.
    regex: Regex,
}

impl Splitter {
    /// The splitter that a file names; none when the name is unknown.
    pub(super) fn named(name: &str) -> Option<Self> {
        let row = TABLE.iter().find(|row| row.names.contains(&name))?;
        let stages = row.stages.iter().map(Stage::new).collect::<Option<Vec<_>>>()?;
        Some(Self { stages, whole_words: row.whole_words, add_bos: row.add_bos })
    }

    /// The words of `text`, in order and without gaps.
    pub(super) fn split(&self, text: &str, word: &mut dyn FnMut(&str)) {
        split(&self.stages, text, word);
    }
}

fn split(stages: &[Stage], text: &str, word: &mut dyn FnMut(&str)) {
    match stages.split_first() {
        None if text.is_empty() => {}
        None => word(text),
        Some((stage, rest)) => stage.pieces(text, &mut |piece| split(rest, piece, word)),
    }
}

impl Stage {
    fn new(pattern: &Pattern) -> Option<Self> {
        // The patterns are constants and a test compiles each: this is never none.
        let regex = match pattern {
            Plain(p) => Regex::new(p),
            Spaced(p) => Regex::new_many(&[*p, r"\s+"]),
        };
        Some(Self { regex: regex.ok()? })
    }

    fn pieces(&self, text: &str, piece: &mut dyn FnMut(&str)) {
        let mut at = 0;
        while at < text.len() {
            let Some((start, end)) = self.next(text, at) else { return piece(&text[at..]) };
            if start > at {
                piece(&text[at..start]);
            }
            piece(&text[start..end]);
            at = end;
        }
    }

    /// The first match from `at` on: nearly always right there, which the anchored search finds in one scan.
    fn next(&self, text: &str, at: usize) -> Option<(usize, usize)> {
        let here = Input::new(text).range(at..);
        let found =
            self.regex.find(here.clone().anchored(Anchored::Yes)).or_else(|| self.regex.find(here))?;
        if found.is_empty() {
            return None; // no pattern of the table matches nothing
        }
        let mut end = found.end();
        if found.pattern().as_usize() == 1 && end < text.len() {
            let last = text[found.start()..end].char_indices().next_back().map_or(0, |(i, _)| i);
            if last > 0 {
                end = found.start() + last;
            }
        }
        Some((found.start(), end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(name: &str, text: &str) -> Vec<String> {
        let mut out = Vec::new();
        let splitter = Splitter::named(name).unwrap();
        splitter.split(text, &mut |word| out.push(word.to_owned()));
        out
    }

    #[test]
    fn every_row_compiles_and_covers_any_text() {
        let text = "Hello  world\n\n 12345 don't DON'T 价格：３个😀  \t x\r\n  ";
        for name in TABLE.iter().flat_map(|row| row.names) {
            assert_eq!(words(name, text).concat(), text, "{name}");
        }
    }

    #[test]
    fn a_run_of_spaces_gives_its_last_to_the_word() {
        assert_eq!(words("gpt-2", "a   b"), ["a", "  ", " b"]);
        assert_eq!(words("gpt-2", "a b  "), ["a", " b", "  "]);
        assert_eq!(words("gpt-2", "a \n b"), ["a", " \n", " b"]);
        assert_eq!(words("gpt-2", "a\u{3000}b"), ["a", "\u{3000}", "b"]);
    }

    #[test]
    fn digits_by_model() {
        assert_eq!(words("smollm", "in 2024"), ["in", " ", "2", "0", "2", "4"]);
        assert_eq!(words("llama-bpe", "in 12345"), ["in", " ", "123", "45"]);
        assert_eq!(words("qwen2", "in 12"), ["in", " ", "1", "2"]);
        assert_eq!(words("gpt-2", "in 12345"), ["in", " 12345"]);
        assert_eq!(words("falcon", "12345"), ["123", "45"]);
    }

    #[test]
    fn contractions_and_case_by_model() {
        assert_eq!(words("gpt-2", "I'm I'M"), ["I", "'m", " I", "'", "M"]);
        assert_eq!(words("qwen2", "I'm I'M"), ["I", "'m", " I", "'M"]);
        assert_eq!(words("tekken", "camelCase"), ["camel", "Case"]);
    }

    #[test]
    fn newlines_stay_together_where_the_pattern_says_so() {
        assert_eq!(words("llama-bpe", "a \n\n  b"), ["a", " \n\n", " ", " b"]);
        assert_eq!(words("deepseek-coder", "a\n\nb"), ["a", "\n", "\n", "b"]);
    }

    #[test]
    fn long_runs_are_one_scan() {
        let spaces = " ".repeat(1 << 20) + "x";
        assert_eq!(words("llama-bpe", &spaces).len(), 2);
        let letters = "a".repeat(1 << 20);
        assert_eq!(words("tekken", &letters).len(), 1);
    }
}
