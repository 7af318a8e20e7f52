//! A whole model file in milliseconds: two layers of random but always the same weights, a small vocabulary with
//! ChatML's control tokens, a chat template. It writes nonsense, and always the same nonsense.

use std::path::{Path, PathBuf};

use crate::gguf_writer::{GgufWriter, Quant};

/// Which kind of tokenizer the file has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TinyTokenizer {
    /// Byte-level BPE, pre-tokeniser `smollm`.
    Bpe,
    /// SentencePiece style with byte fallback.
    SentencePiece,
}

/// The chat template of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TinyTemplate {
    /// ChatML, with a default system message.
    ChatMl,
    /// None in the file.
    None,
    /// This text.
    Text(String),
}

/// What varies.
#[derive(Debug, Clone, PartialEq)]
pub struct TinyModel {
    /// `llama`, `qwen2`, `qwen3`; other names give a file that loaders should refuse.
    pub architecture: String,
    /// Of all matrices; norms are F32.
    pub quant: Quant,
    /// The chat template.
    pub template: TinyTemplate,
    /// The tokenizer.
    pub tokenizer: TinyTokenizer,
    /// Positions.
    pub context: u32,
    /// `tokenizer.ggml.add_bos_token`.
    pub add_bos: bool,
    /// An output matrix of its own instead of the embedding.
    pub untied: bool,
    /// Other seeds give other weights.
    pub seed: u64,
}

impl Default for TinyModel {
    fn default() -> Self {
        Self {
            architecture: "llama".into(),
            quant: Quant::Q4_1,
            template: TinyTemplate::ChatMl,
            tokenizer: TinyTokenizer::Bpe,
            context: 512,
            add_bos: false,
            untied: false,
            seed: 1,
        }
    }
}

/// Width of the model.
pub const WIDTH: usize = 64;
/// Query heads, of 16 dimensions.
pub const HEADS: usize = 4;
/// Heads of keys and values.
pub const KV_HEADS: usize = 2;
/// Width inside the feed-forward.
pub const FFN: usize = 128;
/// Layers.
pub const LAYERS: usize = 2;

/// Control tokens, ids 0 to 4 in both vocabularies.
pub const CONTROLS: [&str; 5] = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<unk>", "<s>"];
/// A user-defined token, id 5: always one token, and text.
pub const USER_DEFINED: &str = "<think>";

/// The ChatML template, with a default system message.
pub const CHATML: &str = "{% for message in messages %}\
{% if loop.first and messages[0]['role'] != 'system' %}\
{{ '<|im_start|>system\nYou are a helpful assistant<|im_end|>\n' }}{% endif %}\
{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}\
{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";

/// Words whose pieces become merges, each from left to right.
const WORDS: &[&str] = &[
    " the",
    " and",
    " of",
    " to",
    " in",
    " is",
    " you",
    " that",
    " it",
    " for",
    "ing",
    "er",
    "on",
    "re",
    "an",
    "es",
    "or",
    "user",
    "system",
    "assistant",
    "hello",
    " world",
    "中",
    "文",
    "你好",
];

impl TinyModel {
    /// A tiny model of this quantisation.
    pub fn with_quant(quant: Quant) -> Self {
        Self { quant, ..Self::default() }
    }

    /// A tiny model of this architecture.
    pub fn of(architecture: &str) -> Self {
        Self { architecture: architecture.into(), ..Self::default() }
    }

    /// The file's bytes.
    pub fn bytes(&self) -> Vec<u8> {
        self.writer().build()
    }

    /// Writes the file into a folder and gives its path.
    pub fn write(&self, folder: &Path) -> PathBuf {
        let path = folder.join(format!("tiny-{}-{:?}-{}.gguf", self.architecture, self.quant, self.seed));
        std::fs::write(&path, self.bytes()).expect("the folder can be written to");
        path
    }

    /// The file before it is built, to be changed.
    pub fn writer(&self) -> GgufWriter {
        let mut w = GgufWriter::default();
        self.write_config(&mut w);
        let vocab = match self.tokenizer {
            TinyTokenizer::Bpe => write_bpe(&mut w),
            TinyTokenizer::SentencePiece => write_sentence_piece(&mut w),
        };
        w.u32("tokenizer.ggml.bos_token_id", 4);
        w.u32("tokenizer.ggml.eos_token_id", 2);
        w.u32("tokenizer.ggml.unknown_token_id", 3);
        w.boolean("tokenizer.ggml.add_bos_token", self.add_bos);
        match &self.template {
            TinyTemplate::ChatMl => _ = w.text("tokenizer.chat_template", CHATML),
            TinyTemplate::Text(text) => _ = w.text("tokenizer.chat_template", text),
            TinyTemplate::None => {}
        }
        self.write_weights(&mut w, vocab);
        w
    }

    fn write_config(&self, w: &mut GgufWriter) {
        let arch = &self.architecture;
        let key = |name: &str| format!("{arch}.{name}");
        w.text("general.architecture", arch);
        w.text("general.name", "tiny");
        w.u32(&key("block_count"), LAYERS as u32);
        w.u32(&key("context_length"), self.context);
        w.u32(&key("embedding_length"), WIDTH as u32);
        w.u32(&key("feed_forward_length"), FFN as u32);
        w.u32(&key("attention.head_count"), HEADS as u32);
        w.u32(&key("attention.head_count_kv"), KV_HEADS as u32);
        w.f32(&key("attention.layer_norm_rms_epsilon"), 1e-5);
        w.f32(&key("rope.freq_base"), 10_000.0);
        if self.head_dim() != WIDTH / HEADS {
            w.u32(&key("attention.key_length"), self.head_dim() as u32);
            w.u32(&key("attention.value_length"), self.head_dim() as u32);
        }
    }

    /// Width of a head: Qwen 3's are wider than the model's width divided by their number.
    pub fn head_dim(&self) -> usize {
        if self.architecture == "qwen3" { 32 } else { WIDTH / HEADS }
    }

    fn write_weights(&self, w: &mut GgufWriter, vocab: usize) {
        let mut weights =
            Weights { writer: w, quant: self.quant, state: self.seed.wrapping_mul(0x9e37_79b9) | 1 };
        let (q_dim, kv_dim) = (HEADS * self.head_dim(), KV_HEADS * self.head_dim());
        weights.matrix("token_embd.weight", vocab, WIDTH, 1.0);
        for i in 0..LAYERS {
            let name = |part: &str| format!("blk.{i}.{part}");
            weights.norm(&name("attn_norm.weight"), WIDTH);
            weights.matrix(&name("attn_q.weight"), q_dim, WIDTH, 0.3);
            weights.matrix(&name("attn_k.weight"), kv_dim, WIDTH, 0.3);
            weights.matrix(&name("attn_v.weight"), kv_dim, WIDTH, 0.3);
            if self.architecture == "qwen2" {
                for (part, len) in [("attn_q.bias", q_dim), ("attn_k.bias", kv_dim), ("attn_v.bias", kv_dim)]
                {
                    weights.bias(&name(part), len);
                }
            }
            if self.architecture == "qwen3" {
                weights.norm(&name("attn_q_norm.weight"), self.head_dim());
                weights.norm(&name("attn_k_norm.weight"), self.head_dim());
            }
            weights.matrix(&name("attn_output.weight"), WIDTH, q_dim, 0.3);
            weights.norm(&name("ffn_norm.weight"), WIDTH);
            weights.matrix(&name("ffn_gate.weight"), FFN, WIDTH, 0.3);
            weights.matrix(&name("ffn_up.weight"), FFN, WIDTH, 0.3);
            weights.matrix(&name("ffn_down.weight"), WIDTH, FFN, 0.3);
        }
        weights.norm("output_norm.weight", WIDTH);
        if self.untied {
            weights.matrix("output.weight", vocab, WIDTH, 0.3);
        }
    }
}

struct Weights<'a> {
    writer: &'a mut GgufWriter,
    quant: Quant,
    state: u64,
}

impl Weights<'_> {
    /// Uniform in -1..1, by xorshift.
    fn next(&mut self) -> f32 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    }

    fn values(&mut self, len: usize, middle: f32, size: f32) -> Vec<f32> {
        (0..len).map(|_| middle + size * self.next()).collect()
    }

    fn matrix(&mut self, name: &str, rows: usize, cols: usize, size: f32) {
        let values = self.values(rows * cols, 0.0, size);
        self.writer.tensor(name, &[cols as u64, rows as u64], self.quant, &values);
    }

    fn norm(&mut self, name: &str, len: usize) {
        let values = self.values(len, 1.0, 0.2);
        self.writer.tensor(name, &[len as u64], Quant::F32, &values);
    }

    fn bias(&mut self, name: &str, len: usize) {
        let values = self.values(len, 0.0, 0.5);
        self.writer.tensor(name, &[len as u64], Quant::F32, &values);
    }
}

/// GPT-2's printable character for a byte.
pub fn printable(byte: u8) -> char {
    let prints =
        |b: u32| (0x21..=0x7e).contains(&b) || (0xa1..=0xac).contains(&b) || (0xae..=0xff).contains(&b);
    let byte = u32::from(byte);
    let code = if prints(byte) { byte } else { 0x100 + (0..byte).filter(|&b| !prints(b)).count() as u32 };
    char::from_u32(code).expect("below U+0144")
}

fn write_bpe(w: &mut GgufWriter) -> usize {
    let mut tokens: Vec<String> =
        CONTROLS.iter().chain([&USER_DEFINED]).map(|&text| text.to_owned()).collect();
    tokens.extend((0..=255).map(|byte| printable(byte).to_string()));
    let mut merges = Vec::new();
    for word in WORDS {
        let chars: Vec<char> = word.bytes().map(printable).collect();
        for end in 2..=chars.len() {
            let left: String = chars[..end - 1].iter().collect();
            let token = format!("{left}{}", chars[end - 1]);
            if !tokens.contains(&token) {
                merges.push(format!("{left} {}", chars[end - 1]));
                tokens.push(token);
            }
        }
    }
    w.text("tokenizer.ggml.model", "gpt2");
    w.text("tokenizer.ggml.pre", "smollm");
    write_tokens(w, &tokens, |_| 1);
    w.texts("tokenizer.ggml.merges", &merges);
    tokens.len()
}

fn write_sentence_piece(w: &mut GgufWriter) -> usize {
    let mut tokens: Vec<String> =
        CONTROLS.iter().chain([&USER_DEFINED]).map(|&text| text.to_owned()).collect();
    tokens.extend((0..=255u8).map(|byte| format!("<0x{byte:02X}>")));
    let first_text = tokens.len();
    tokens.extend((0x20..0x7fu8).map(|byte| char::from(byte).to_string().replace(' ', "\u{2581}")));
    for word in WORDS {
        let chars: Vec<char> = word.replace(' ', "\u{2581}").chars().collect();
        for end in 1..=chars.len() {
            let token: String = chars[..end].iter().collect();
            if !tokens.contains(&token) {
                tokens.push(token);
            }
        }
    }
    let scores: Vec<f32> = (0..tokens.len()).map(|id| first_text as f32 - id as f32).collect();
    w.text("tokenizer.ggml.model", "llama");
    write_tokens(w, &tokens, |text| if text.starts_with("<0x") { 6 } else { 1 });
    w.floats("tokenizer.ggml.scores", &scores);
    tokens.len()
}

fn write_tokens(w: &mut GgufWriter, tokens: &[String], kind: impl Fn(&str) -> i32) {
    let kind = |(id, text): (usize, &String)| match id {
        3 => 2,
        0..5 => 3,
        5 => 4,
        _ => kind(text),
    };
    let kinds: Vec<i32> = tokens.iter().enumerate().map(kind).collect();
    w.texts("tokenizer.ggml.tokens", tokens);
    w.integers("tokenizer.ggml.token_type", &kinds);
}
