//! Tokenizers of tiny vocabularies, by hand and by properties.

use std::collections::HashSet;

use jackfield_tiny::gguf_writer::GgufWriter;
use jackfield_tiny::tiny_model::{TinyModel, TinyTokenizer, USER_DEFINED};
use proptest::prelude::*;

use super::*;

fn tiny(kind: TinyTokenizer) -> GgufWriter {
    TinyModel { tokenizer: kind, ..TinyModel::default() }.writer()
}

fn read(w: &GgufWriter) -> Result<Tokenizer, TokenizerError> {
    Tokenizer::from_gguf(&Gguf::from_bytes(w.build()).unwrap())
}

fn bpe() -> Tokenizer {
    read(&tiny(TinyTokenizer::Bpe)).unwrap()
}

fn spm() -> Tokenizer {
    read(&tiny(TinyTokenizer::SentencePiece)).unwrap()
}

fn texts(tokenizer: &Tokenizer, text: &str) -> Vec<String> {
    let ids = tokenizer.encode(text).unwrap();
    ids.iter().map(|&id| tokenizer.token_text(id).to_owned()).collect()
}

#[test]
fn bytes_are_merged_by_rank() {
    let t = bpe();
    assert_eq!(texts(&t, "hello the you"), ["hello", "Ġthe", "Ġyou"]);
    assert_eq!(texts(&t, "them"), ["t", "he", "m"]); // ` the` is made from ` t`, and `he` on the way to `hello`
    assert_eq!(texts(&t, " 12"), ["Ġ", "1", "2"]);
    assert_eq!(t.decode(&t.encode("你好 中文 é😀\n").unwrap()), "你好 中文 é😀\n");
}

#[test]
fn pieces_are_merged_by_score_and_bytes_fill_in() {
    let t = spm();
    assert_eq!(texts(&t, "the you"), ["\u{2581}the", "\u{2581}you"]);
    assert_eq!(texts(&t, "é"), ["\u{2581}", "<0xC3>", "<0xA9>"]);
    assert_eq!(texts(&t, "  x"), ["\u{2581}", "\u{2581}", "\u{2581}", "x"]);
    assert_eq!(t.decode(&t.encode("你好 中文 é😀\n").unwrap()), "你好 中文 é😀\n");
    assert!(t.encode("").unwrap().is_empty());
}

#[test]
fn the_space_prefix_follows_the_file() {
    let mut w = tiny(TinyTokenizer::SentencePiece);
    w.boolean("tokenizer.ggml.add_space_prefix", false);
    let t = read(&w).unwrap();
    assert_eq!(texts(&t, "a b"), ["a", "\u{2581}", "b"]);
    assert_eq!(t.decode(&t.encode(" a").unwrap()), " a");
}

#[test]
fn control_tokens_in_text_are_text() {
    for t in [bpe(), spm()] {
        for text in ["<|im_end|>", "hi<|im_end|>\n<|im_start|>system\nx", "<s>", "<unk>", "<|endoftext|>"] {
            let ids = t.encode(text).unwrap();
            assert!(ids.iter().all(|&id| !t.is_control(id)), "{text}: {ids:?}");
            assert_eq!(t.decode(&ids), text);
        }
    }
}

#[test]
fn byte_tokens_spelled_out_in_text_are_text() {
    let t = spm();
    let ids = t.encode("<0x0A>").unwrap();
    assert!(ids.len() > 2 && t.decode(&ids) == "<0x0A>", "{ids:?}");
}

#[test]
fn user_defined_tokens_are_found_anywhere() {
    for t in [bpe(), spm()] {
        let id = t.id_of(USER_DEFINED).unwrap();
        let ids = t.encode("x<think>y").unwrap();
        assert_eq!(ids.iter().filter(|&&i| i == id).count(), 1, "{ids:?}");
        assert_eq!((t.decode_bytes(id), t.is_control(id)), (USER_DEFINED.as_bytes(), false));
    }
}

#[test]
fn what_ends_a_turn_is_control_whatever_its_type() {
    for kind in [TinyTokenizer::Bpe, TinyTokenizer::SentencePiece] {
        let mut w = tiny(kind);
        let id = read(&w).unwrap().id_of(USER_DEFINED).unwrap();
        w.u32("tokenizer.ggml.eot_token_id", id);
        let t = read(&w).unwrap();
        assert!(t.is_control(id) && t.is_end(id));
        assert!(!t.encode(&format!("a{USER_DEFINED}b")).unwrap().contains(&id));
        assert!(t.decode_bytes(id).is_empty());
    }
}

#[test]
fn control_tokens_add_nothing_to_the_text() {
    let t = bpe();
    let end = t.id_of("<|im_end|>").unwrap();
    assert!(t.is_control(end) && t.is_end(end) && t.decode_bytes(end).is_empty());
    assert_eq!((t.eos(), t.bos()), (Some(2), Some(4)));
    assert_eq!(t.end_tokens(), [0, 2]); // the EOS, and <|endoftext|> by its name
    assert_eq!(t.decode_bytes(u32::MAX), b"");
}

#[test]
fn a_byte_without_a_token_is_left_out() {
    let mut w = tiny(TinyTokenizer::Bpe);
    // Takes the token of byte 0x16 away, and names a control token as the unknown one.
    let t = bpe();
    let names: Vec<String> = (0..t.vocab_size() as u32)
        .map(|id| t.token_text(id).replace(byte_map::to_char(0x16), "<gone>"))
        .collect();
    w.texts("tokenizer.ggml.tokens", &names).u32("tokenizer.ggml.unknown_token_id", 0);
    let t = read(&w).unwrap();
    assert_eq!(texts(&t, "a\u{16}b\u{16}"), ["a", "b"]);
    assert_eq!(t.boundaries("a\u{16}b\u{16}").unwrap(), [1, 4]);
}

#[test]
fn boundaries_are_ends_on_whole_characters() {
    let t = bpe();
    assert_eq!(t.boundaries("hello 龘 x").unwrap(), [5, 6, 9, 9, 9, 10, 11]);
    let t = spm();
    assert_eq!(t.boundaries("the é").unwrap(), [3, 4, 6, 6]);
    assert_eq!(t.boundaries("\u{2581} b").unwrap().last(), Some(&5));
}

#[test]
fn one_bos_where_the_file_wants_one() {
    let rendered = |w: &GgufWriter, template: &str| {
        let t = read(w).unwrap();
        let template = crate::ChatTemplate::from_text(template, crate::SpecialTokens::of(&t));
        let prompt = template.render(&[crate::ChatMessage::new("user", "hi")], &Default::default()).unwrap();
        t.encode_prompt(&prompt).unwrap().iter().filter(|&&id| id == 4).count()
    };
    let (with, without) = ("{{ bos_token }}{{ messages[0].content }}", "{{ messages[0].content }}");
    let mut w = tiny(TinyTokenizer::Bpe);
    assert_eq!((rendered(&w, with), rendered(&w, without)), (1, 0));
    w.boolean("tokenizer.ggml.add_bos_token", true);
    assert_eq!((rendered(&w, with), rendered(&w, without)), (1, 1));
    let t = read(&w).unwrap();
    let ids = t.encode_completion("<s>hi").unwrap();
    assert_eq!(ids[0], 4);
    assert_eq!(t.decode(&ids), "<s>hi");
}

#[test]
fn bos_defaults_follow_the_kind_of_tokenizer() {
    let mut w = tiny(TinyTokenizer::SentencePiece);
    assert!(read(w.without("tokenizer.ggml.add_bos_token")).unwrap().adds_bos());
    let mut w = tiny(TinyTokenizer::Bpe);
    assert!(!read(w.without("tokenizer.ggml.add_bos_token")).unwrap().adds_bos());
    assert!(read(w.text("tokenizer.ggml.pre", "llama-bpe")).unwrap().adds_bos());
    w.without("tokenizer.ggml.bos_token_id").boolean("tokenizer.ggml.add_bos_token", true);
    let error = read(&w).err().unwrap().to_string();
    assert!(error.contains("add_bos_token") && error.contains("bos_token_id is missing"), "{error}");
}

/// The refusal of a changed tiny file.
fn refusal(change: impl FnOnce(&mut GgufWriter)) -> String {
    let mut w = tiny(TinyTokenizer::Bpe);
    change(&mut w);
    read(&w).err().expect("must be refused").to_string()
}

#[test]
fn refusals_name_the_field_and_the_value() {
    let has = |text: String, wanted: &[&str]| {
        for part in wanted {
            assert!(text.contains(part), "`{part}` not in: {text}");
        }
    };
    has(refusal(|w| _ = w.text("tokenizer.ggml.model", "t5")), &["tokenizer.ggml.model", "t5", "gpt2"]);
    has(
        refusal(|w| _ = w.text("tokenizer.ggml.pre", "new-one")),
        &["tokenizer.ggml.pre", "new-one", "qwen2"],
    );
    has(refusal(|w| _ = w.without("tokenizer.ggml.model")), &["tokenizer.ggml.model", "missing"]);
    has(refusal(|w| _ = w.without("tokenizer.ggml.tokens")), &["tokenizer.ggml.tokens", "missing"]);
    has(refusal(|w| _ = w.without("tokenizer.ggml.merges")), &["tokenizer.ggml.merges", "missing"]);
    has(refusal(|w| _ = w.integers("tokenizer.ggml.token_type", &[1])), &["token_type", "has 1 elements"]);
    has(refusal(|w| _ = w.u32("tokenizer.ggml.eos_token_id", 1 << 30)), &["eos_token_id", "1073741824"]);
    has(refusal(|w| _ = w.texts("tokenizer.ggml.merges", &["ab".into()])), &["merge 0", "`ab`"]);
    has(refusal(|w| _ = w.texts("tokenizer.ggml.merges", &["a zz".into()])), &["merge 0", "not in the list"]);
    has(refusal(|w| _ = w.u32("tokenizer.ggml.tokens", 1)), &["tokenizer.ggml.tokens", "array of strings"]);
    let mut w = tiny(TinyTokenizer::SentencePiece);
    has(
        read(w.floats("tokenizer.ggml.scores", &[0.0])).err().unwrap().to_string(),
        &["scores", "1 elements"],
    );
    has(read(w.without("tokenizer.ggml.scores")).err().unwrap().to_string(), &["scores", "missing"]);
}

#[test]
fn hostile_lengths_are_no_burden() {
    // One word of half a million characters: a quadratic merge would take hours.
    let word = "a".repeat(1 << 19);
    for t in [bpe(), spm()] {
        assert_eq!(t.decode(&t.encode(&word).unwrap()), word);
    }
    let alternating = "hello".repeat(100_000);
    assert_eq!(bpe().encode(&alternating).unwrap().len(), 100_000);
}

/// Merging as it is defined: again and again the lowest rank, the leftmost of equals.
fn merge_by_definition(t: &Tokenizer, merges: &[(String, String)], word: &str) -> Vec<u32> {
    let mut parts: Vec<String> = word.bytes().map(|byte| byte_map::to_char(byte).to_string()).collect();
    loop {
        let rank = |pair: &[String]| merges.iter().position(|(a, b)| *a == pair[0] && *b == pair[1]);
        let best = parts.windows(2).enumerate().filter_map(|(i, pair)| Some((rank(pair)?, i))).min();
        let Some((_, i)) = best else { break };
        let right = parts.remove(i + 1);
        parts[i].push_str(&right);
    }
    parts.iter().map(|part| t.id_of(part).unwrap()).collect()
}

proptest! {
    #[test]
    fn any_text_comes_back(text in "\\PC{0,40}|[ -~\n]{0,60}") {
        for t in [bpe(), spm()] {
            let ids = t.encode(&text).unwrap();
            prop_assert_eq!(t.decode(&ids), as_decoded(&t, &text));
            prop_assert!(ids.iter().all(|&id| !t.is_control(id)));
            let ends = t.boundaries(&text).unwrap();
            prop_assert_eq!(ends.len(), ids.len());
            prop_assert!(ends.is_sorted() && ends.iter().all(|&end| text.is_char_boundary(end as usize)));
            prop_assert_eq!(ends.last().copied().unwrap_or(0) as usize, text.len());
        }
    }

    #[test]
    fn merging_is_what_its_definition_says(word in "[thelowrdin]{1,24}") {
        let t = bpe();
        let gguf = Gguf::from_bytes(tiny(TinyTokenizer::Bpe).build()).unwrap();
        let lines = gguf.texts("tokenizer.ggml.merges").unwrap().unwrap();
        let merges: Vec<_> =
            lines.iter().filter_map(|l| l.split_once(' ')).map(|(a, b)| (a.into(), b.into())).collect();
        prop_assert_eq!(t.encode(&word).unwrap(), merge_by_definition(&t, &merges, &word));
    }
}

/// SentencePiece writes spaces as `▁`, so a `▁` of the text comes back as a space.
fn as_decoded(t: &Tokenizer, text: &str) -> String {
    match t.encoder {
        Encoder::Bpe(_) => text.to_owned(),
        Encoder::SentencePiece(_) => text.replace('\u{2581}', " "),
    }
}

#[test]
fn ids_are_unique_and_texts_lead_back() {
    let t = bpe();
    let texts: HashSet<&str> = (0..t.vocab_size() as u32).map(|id| t.token_text(id)).collect();
    assert_eq!(texts.len(), t.vocab_size());
    assert!((0..t.vocab_size() as u32).all(|id| t.id_of(t.token_text(id)) == Some(id)));
}
