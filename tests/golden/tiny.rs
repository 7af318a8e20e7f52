//! Tiny random models, by the rule that golden/make/tiny.py tells.

use serde::Deserialize;

use crate::support::{GgufFile, Meta};

const LAYERS: usize = 2;
const WIDTH: usize = 256;
const FFN: usize = 512;
const VOCAB: usize = 260;
const PROMPT: usize = 48;

#[derive(Deserialize)]
pub(crate) struct Reference {
    pub(crate) meta: ReferenceMeta,
    pub(crate) cases: Vec<Case>,
}

#[derive(Deserialize)]
pub(crate) struct ReferenceMeta {
    pub(crate) prompt: Vec<u32>,
    pub(crate) kept: Vec<usize>,
}

#[derive(Deserialize)]
pub(crate) struct Case {
    shape: String,
    r#type: String,
    pub(crate) noise: f32,
    logits: Vec<Vec<f32>>,
}

pub(crate) fn prompt() -> Vec<u32> {
    stream("prompt", PROMPT).into_iter().map(u32::from).collect()
}

impl Case {
    pub(crate) fn label(&self) -> String {
        format!("{} {}", self.shape, self.r#type)
    }

    /// Root mean square distance from the reference at the stored positions, relative to the spread of its logits.
    pub(crate) fn error(&self, logits: &[f32], kept: &[usize]) -> f32 {
        let wanted: Vec<f32> = self.logits.concat();
        let ours: Vec<f32> =
            kept.iter().flat_map(|&row| logits[row * VOCAB..][..VOCAB].iter().copied()).collect();
        assert_eq!(wanted.len(), ours.len());
        let distance = wanted.iter().zip(&ours).map(|(a, b)| (a - b) * (a - b)).sum::<f32>();
        let mean = wanted.iter().sum::<f32>() / wanted.len() as f32;
        let spread = wanted.iter().map(|it| (it - mean) * (it - mean)).sum::<f32>();
        (distance / spread).sqrt()
    }

    /// The reference is exact. llama.cpp, which rounds activations to 8 bits too where weights are quantised, is
    /// `noise` away from it; a wrong layout, sign, rotation or bias is many times that.
    pub(crate) fn tolerance(&self) -> f32 {
        let floor = if matches!(self.r#type.as_str(), "F32" | "F16" | "BF16") { 0.003 } else { 0.025 };
        2.0 * self.noise.max(floor)
    }

    pub(crate) fn file(&self) -> Vec<u8> {
        let shape = Shape::named(&self.shape);
        let mut file = shape.metadata();
        shape.tensors(&mut file, &Kind::named(&self.r#type));
        file.bytes()
    }
}

/// What differs between the models.
struct Shape {
    architecture: &'static str,
    heads: usize,
    kv_heads: usize,
    head: usize,
    tied: bool,
    bias: bool,
    norms: bool,
    freqs: bool,
    more: Vec<(&'static str, Meta)>,
}

impl Shape {
    fn named(name: &str) -> Self {
        let llama = |kv_heads, head, tied, more| Self {
            architecture: "llama",
            heads: 4,
            kv_heads,
            head,
            tied,
            bias: false,
            norms: false,
            freqs: name == "llama-freqs",
            more,
        };
        let rotary = |dim| ("rope.dimension_count", Meta::Integer(dim));
        let wide = |dim| {
            [("attention.key_length", Meta::Integer(dim)), ("attention.value_length", Meta::Integer(dim))]
        };
        match name {
            "llama" => llama(2, 64, true, vec![rotary(64)]),
            "llama-freqs" => {
                llama(4, 64, false, vec![rotary(64), ("rope.freq_base", Meta::Float(500_000.0))])
            }
            "llama-linear" => {
                let factor = ("rope.scaling.factor", Meta::Float(4.0));
                llama(
                    1,
                    64,
                    true,
                    vec![rotary(64), ("rope.scaling.type", Meta::Text("linear".into())), factor],
                )
            }
            "llama-narrow" => {
                let [key, value] = wide(32);
                llama(2, 32, false, vec![rotary(32), key, value])
            }
            "qwen2" => {
                let more = vec![("rope.freq_base", Meta::Float(1_000_000.0))];
                Self { architecture: "qwen2", bias: true, ..llama(2, 64, false, more) }
            }
            "qwen3" => {
                let [key, value] = wide(128);
                let more = vec![("rope.freq_base", Meta::Float(1_000_000.0)), key, value];
                Self { architecture: "qwen3", norms: true, ..llama(2, 128, true, more) }
            }
            other => panic!("no shape is called {other}"),
        }
    }

    fn metadata(&self) -> GgufFile {
        let key = |name: &str| format!("{}.{name}", self.architecture);
        let integers = [
            ("context_length", 512),
            ("embedding_length", WIDTH),
            ("feed_forward_length", FFN),
            ("block_count", LAYERS),
            ("attention.head_count", self.heads),
            ("attention.head_count_kv", self.kv_heads),
        ];
        let mut file = GgufFile::new(self.architecture);
        for (name, value) in integers {
            file = file.meta(&key(name), Meta::Integer(value as u32));
        }
        file = file.meta(&key("attention.layer_norm_rms_epsilon"), Meta::Float(1e-5));
        for (name, value) in &self.more {
            file = file.meta(&key(name), value.clone());
        }
        let types = (0..VOCAB).map(|id| if id < 257 { 1 } else { 3 }).collect();
        file.meta("tokenizer.ggml.model", Meta::Text("gpt2".into()))
            .meta("tokenizer.ggml.pre", Meta::Text("gpt-2".into()))
            .meta("tokenizer.ggml.tokens", Meta::Texts(byte_tokens()))
            .meta("tokenizer.ggml.token_type", Meta::Integers(types))
            .meta("tokenizer.ggml.merges", Meta::Texts(vec!["a b".into()]))
            .meta("tokenizer.ggml.bos_token_id", Meta::Integer(257))
            .meta("tokenizer.ggml.eos_token_id", Meta::Integer(258))
    }

    fn tensors(&self, file: &mut GgufFile, kind: &Kind) {
        let (q, kv) = (self.heads * self.head, self.kv_heads * self.head);
        let mut matrix = |name: &str, cols: usize, rows: usize| {
            file.tensor(name, &[cols, rows], kind.id, kind.weight(name, cols * rows));
        };
        matrix("token_embd.weight", WIDTH, VOCAB);
        if !self.tied {
            matrix("output.weight", WIDTH, VOCAB);
        }
        for layer in 0..LAYERS {
            let name = |part: &str| format!("blk.{layer}.{part}.weight");
            matrix(&name("attn_q"), WIDTH, q);
            matrix(&name("attn_k"), WIDTH, kv);
            matrix(&name("attn_v"), WIDTH, kv);
            matrix(&name("attn_output"), q, WIDTH);
            matrix(&name("ffn_gate"), WIDTH, FFN);
            matrix(&name("ffn_up"), WIDTH, FFN);
            matrix(&name("ffn_down"), FFN, WIDTH);
        }
        let mut vector = |name: &str, count: usize, offset: f32, scale: f32| {
            file.tensor(name, &[count], 0, floats(name, count, offset, scale));
        };
        for layer in 0..LAYERS {
            let name = |part: &str| format!("blk.{layer}.{part}");
            vector(&name("attn_norm.weight"), WIDTH, 128.0, 1.0 / 256.0);
            vector(&name("ffn_norm.weight"), WIDTH, 128.0, 1.0 / 256.0);
            if self.bias {
                vector(&name("attn_q.bias"), q, -128.0, 1.0 / 256.0);
                vector(&name("attn_k.bias"), kv, -128.0, 1.0 / 256.0);
                vector(&name("attn_v.bias"), kv, -128.0, 1.0 / 256.0);
            }
            if self.norms {
                vector(&name("attn_q_norm.weight"), self.head, 128.0, 1.0 / 256.0);
                vector(&name("attn_k_norm.weight"), self.head, 128.0, 1.0 / 256.0);
            }
        }
        vector("output_norm.weight", WIDTH, 128.0, 1.0 / 256.0);
        if self.freqs {
            vector("rope_freqs.weight", self.head / 2, 32.0, 1.0 / 32.0);
        }
    }
}

/// A quantisation: GGML's number, the elements and bytes of a block, and its f16 fields with their base values.
struct Kind {
    id: u32,
    elements: usize,
    bytes: usize,
    scales: Vec<(usize, f32)>,
}

/// Two to the power of minus `power`.
fn exp2(power: u8) -> f32 {
    f32::from(power).exp2().recip()
}

impl Kind {
    fn named(name: &str) -> Self {
        let kind = |id, elements, bytes, scales: &[(usize, f32)]| Self {
            id,
            elements,
            bytes,
            scales: scales.to_vec(),
        };
        match name {
            "F32" => kind(0, 1, 4, &[]),
            "F16" => kind(1, 1, 2, &[]),
            "BF16" => kind(30, 1, 2, &[]),
            "Q4_0" => kind(2, 32, 18, &[(0, exp2(6))]),
            "Q4_1" => kind(3, 32, 20, &[(0, exp2(6)), (2, -7.5 * exp2(6))]),
            "Q5_0" => kind(6, 32, 22, &[(0, exp2(7))]),
            "Q5_1" => kind(7, 32, 24, &[(0, exp2(7)), (2, -15.5 * exp2(7))]),
            "Q8_0" => kind(8, 32, 34, &[(0, exp2(10))]),
            "Q2_K" => kind(10, 256, 84, &[(80, exp2(8)), (82, 1.5 * exp2(8))]),
            "Q3_K" => kind(11, 256, 110, &[(108, exp2(9))]),
            "Q4_K" => kind(12, 256, 144, &[(0, exp2(12)), (2, 7.5 * exp2(12))]),
            "Q5_K" => kind(13, 256, 176, &[(0, exp2(13)), (2, 15.5 * exp2(13))]),
            "Q6_K" => kind(14, 256, 210, &[(208, exp2(14))]),
            other => panic!("no quantisation is called {other}"),
        }
    }

    /// The bytes of a matrix of `count` elements.
    fn weight(&self, name: &str, count: usize) -> Vec<u8> {
        let values = || stream(name, count).into_iter().map(|byte| (f32::from(byte) - 128.0) / 1024.0);
        match self.id {
            0 => values().flat_map(f32::to_le_bytes).collect(),
            1 => values().flat_map(|it| half::f16::from_f32(it).to_le_bytes()).collect(),
            30 => values().flat_map(|it| half::bf16::from_f32(it).to_le_bytes()).collect(),
            _ => self.blocks(name, count / self.elements),
        }
    }

    fn blocks(&self, name: &str, count: usize) -> Vec<u8> {
        let mut out = stream(name, count * self.bytes);
        for block in out.chunks_exact_mut(self.bytes) {
            for &(offset, base) in &self.scales {
                let factor = 1.0 + f32::from(block[offset] & 3) / 4.0;
                block[offset..offset + 2].copy_from_slice(&half::f16::from_f32(factor * base).to_le_bytes());
            }
        }
        out
    }
}

fn floats(name: &str, count: usize, offset: f32, scale: f32) -> Vec<u8> {
    stream(name, count)
        .into_iter()
        .flat_map(|byte| ((f32::from(byte) + offset) * scale).to_le_bytes())
        .collect()
}

/// SplitMix64 from the FNV-1a hash of the name.
fn stream(name: &str, count: usize) -> Vec<u8> {
    let fnv = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let mut state = name.bytes().fold(0xcbf2_9ce4_8422_2325, fnv);
    let mut out = Vec::with_capacity(count + 8);
    while out.len() < count {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        out.extend((z ^ (z >> 31)).to_le_bytes());
    }
    out.truncate(count);
    out
}

/// GPT-2's alphabet for the 256 bytes, in byte order, one merged token and three control tokens.
fn byte_tokens() -> Vec<String> {
    let shown = |byte: u8| matches!(byte, 33..=126 | 161..=172 | 174..=255);
    let mut hidden = 0;
    let mut letter = |byte: u8| {
        if shown(byte) {
            return char::from(byte);
        }
        hidden += 1;
        char::from_u32(255 + hidden).unwrap_or('\u{fffd}')
    };
    let mut tokens: Vec<String> = (0..=255).map(|byte| letter(byte).to_string()).collect();
    tokens.extend(["ab", "<|a|>", "<|b|>", "<|c|>"].map(String::from));
    tokens
}
