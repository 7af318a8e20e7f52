//! Whole models: loading, refusing, and what a step must not depend on.

use jackfield_kernels::{GgmlType, dequantize};
use jackfield_model::{Batch, Cpu, ForwardError, Gguf, KvArena, KvSpan, Model, Scratch, TemplateSource};
use jackfield_tiny::generate::{Runner, greedy};
use jackfield_tiny::gguf_writer::{GgufWriter, Quant};
use jackfield_tiny::tiny_model::{TinyModel, TinyTemplate, TinyTokenizer, WIDTH};

fn load(w: &GgufWriter) -> Result<Model, jackfield_model::LoadError> {
    Model::from_gguf(Gguf::from_bytes(w.build()).unwrap(), Cpu::new(2))
}

fn model(tiny: &TinyModel) -> Model {
    load(&tiny.writer()).unwrap()
}

const PROMPT: &str = "hello world, you and the system 12";

#[test]
fn every_architecture_and_quantisation_runs() {
    for architecture in ["llama", "qwen2", "qwen3"] {
        for quant in [Quant::F32, Quant::F16, Quant::Q8_0, Quant::Q4_0, Quant::Q4_1] {
            let model = model(&TinyModel { quant, ..TinyModel::of(architecture) });
            let prompt = model.tokenizer.encode(PROMPT).unwrap();
            let logits = Runner::new(&model, 64).feed(&prompt);
            assert_eq!(logits.len(), model.config.vocab);
            assert!(logits.iter().all(|x| x.is_finite()), "{architecture} {quant:?}");
            assert_eq!(model.config.architecture, architecture);
        }
    }
}

/// The same model with every tensor written out as floats of the same values.
fn widened(w: &GgufWriter) -> GgufWriter {
    let mut w = w.clone();
    for tensor in &mut w.tensors {
        let ty = GgmlType::from_id(tensor.quantisation).unwrap();
        let mut values = vec![0.0; tensor.shape.iter().product::<u64>() as usize];
        dequantize(ty, &tensor.data, &mut values).unwrap();
        (tensor.quantisation, tensor.data) = (Quant::F32.id(), Quant::F32.encode(&values));
    }
    w
}

#[test]
fn quantised_weights_are_what_their_definition_says() {
    // Rounding activations to 8 bits alone moves the logits by about a twentieth; a value out of its place moves them
    // by as much as they are.
    for (quant, tolerance) in
        [(Quant::F16, 0.005), (Quant::Q8_0, 0.1), (Quant::Q4_0, 0.1), (Quant::Q4_1, 0.1)]
    {
        let w = TinyModel::with_quant(quant).writer();
        let logits = |w: &GgufWriter| {
            let model = load(w).unwrap();
            let prompt = model.tokenizer.encode(PROMPT).unwrap();
            Runner::new(&model, 64).feed(&prompt)
        };
        let (ours, exact) = (logits(&w), logits(&widened(&w)));
        let size = exact.iter().map(|x| x * x).sum::<f32>().sqrt();
        let distance = ours.iter().zip(&exact).map(|(a, b)| (a - b).powi(2)).sum::<f32>().sqrt();
        assert!(distance < tolerance * size, "{quant:?}: {distance} of {size}");
    }
}

#[test]
fn how_a_prompt_is_cut_changes_nothing() {
    for architecture in ["llama", "qwen3"] {
        let model = model(&TinyModel::of(architecture));
        let prompt = model.tokenizer.encode(&PROMPT.repeat(3)).unwrap();
        let whole = Runner::new(&model, 256).greedy(&prompt, 1000, 24);
        for chunk in [1, 7, 16, 33] {
            assert_eq!(Runner::new(&model, 256).greedy(&prompt, chunk, 24), whole, "{architecture}, {chunk}");
        }
    }
}

#[test]
fn a_batch_gives_each_sequence_what_it_gets_alone() {
    let model = model(&TinyModel::default());
    let prompts: Vec<Vec<u32>> =
        ["hello", PROMPT, "中文 you"].iter().map(|text| model.tokenizer.encode(text).unwrap()).collect();
    let mut kv = KvArena::new(model.kv_shape(6, 16)).unwrap();
    let tables = [vec![5, 0], vec![2, 4], vec![1, 3]];
    let (mut tokens, mut positions, mut spans, mut last) = (vec![], vec![], vec![], vec![]);
    for (prompt, table) in prompts.iter().zip(&tables) {
        spans.push(KvSpan { table, start: 0, len: prompt.len(), row: tokens.len() });
        positions.extend(0..prompt.len() as u32);
        tokens.extend_from_slice(prompt);
        last.push(tokens.len() - 1);
    }
    let batch = Batch { tokens: &tokens, positions: &positions, spans: &spans, logits_for: &last };
    let mut together = Vec::new();
    model.forward(&batch, &mut kv, &mut Scratch::new(&model, 1), &mut together).unwrap();
    for (i, prompt) in prompts.iter().enumerate() {
        let alone = Runner::new(&model, 64).feed(prompt);
        assert_eq!(&together[i * model.config.vocab..][..model.config.vocab], alone, "sequence {i}");
    }
}

#[test]
fn logits_come_in_the_order_asked_for_and_may_repeat() {
    let model = model(&TinyModel::default());
    let mut kv = KvArena::new(model.kv_shape(1, 16)).unwrap();
    let spans = [KvSpan { table: &[0], start: 0, len: 3, row: 0 }];
    let mut rows = |logits_for: &[usize]| {
        let batch = Batch { tokens: &[10, 11, 12], positions: &[0, 1, 2], spans: &spans, logits_for };
        let mut out = Vec::new();
        model.forward(&batch, &mut kv, &mut Scratch::new(&model, 4), &mut out).unwrap();
        out.chunks(model.config.vocab).map(<[f32]>::to_vec).collect::<Vec<_>>()
    };
    let all = rows(&[0, 1, 2]);
    assert_eq!(rows(&[2, 0, 2, 1]), [2, 0, 2, 1].map(|i: usize| all[i].clone()));
    assert!(rows(&[]).is_empty() && all[0] != all[1]);
}

#[test]
fn positions_matter() {
    let model = model(&TinyModel::with_quant(Quant::F32));
    let logits = |positions: &[u32]| {
        let mut kv = KvArena::new(model.kv_shape(1, 16)).unwrap();
        let spans = [KvSpan { table: &[0], start: 0, len: 2, row: 0 }];
        let batch = Batch { tokens: &[10, 11], positions, spans: &spans, logits_for: &[1] };
        let mut out = Vec::new();
        model.forward(&batch, &mut kv, &mut Scratch::new(&model, 2), &mut out).unwrap();
        out
    };
    let apart = |a: &[f32], b: &[f32]| a.iter().zip(b).fold(0.0f32, |most, (a, b)| most.max((a - b).abs()));
    let (moved, stretched) =
        (apart(&logits(&[0, 1]), &logits(&[7, 8])), apart(&logits(&[0, 1]), &logits(&[0, 5])));
    assert!(moved < 0.05, "only distances matter to rotary positions: {moved}");
    assert!(stretched > 4.0 * moved, "distances do: {stretched} against {moved}");
}

#[test]
fn unsound_batches_are_refused_before_anything_is_written() {
    let model = model(&TinyModel::default());
    let mut kv = KvArena::new(model.kv_shape(2, 16)).unwrap();
    let mut step = |tokens: &[u32], positions: &[u32], spans: &[KvSpan<'_>], logits_for: &[usize]| {
        let batch = Batch { tokens, positions, spans, logits_for };
        model.forward(&batch, &mut kv, &mut Scratch::new(&model, 1), &mut Vec::new()).unwrap_err()
    };
    let span = |table, start, len, row| [KvSpan { table, start, len, row }];
    let vocab = model.config.vocab;
    assert_eq!(
        step(&[1, 2], &[0], &span(&[0], 0, 2, 0), &[]),
        ForwardError::Lengths { tokens: 2, positions: 1, rows: 2 }
    );
    assert_eq!(step(&[1], &[0], &[], &[]), ForwardError::Lengths { tokens: 1, positions: 1, rows: 0 });
    let outside = ForwardError::Token { row: 0, token: vocab as u32, vocab };
    assert_eq!(step(&[vocab as u32], &[0], &span(&[0], 0, 1, 0), &[]), outside);
    for bad in [span(&[2], 0, 1, 0), span(&[], 0, 1, 0), span(&[0], 16, 1, 0), span(&[0], 0, 1, 1)] {
        assert_eq!(step(&[1], &[0], &bad, &[]), ForwardError::Span { span: 0 });
    }
    assert_eq!(step(&[1], &[0], &span(&[0], usize::MAX, 1, 0), &[]), ForwardError::Span { span: 0 });
    let row = ForwardError::LogitsRow { row: 1, rows: 1 };
    assert_eq!(step(&[1], &[0], &span(&[0], 0, 1, 0), &[1]), row);
    let mut other = KvArena::new(jackfield_model::KvShape { layers: 1, ..*kv.shape() }).unwrap();
    let batch = Batch { tokens: &[], positions: &[], spans: &[], logits_for: &[] };
    let refused = model.forward(&batch, &mut other, &mut Scratch::new(&model, 1), &mut Vec::new());
    assert_eq!(refused, Err(ForwardError::Cache));
}

#[test]
fn the_file_may_go_once_the_model_is_loaded() {
    let folder = tempfile::tempdir().unwrap();
    for quant in [Quant::F32, Quant::F16, Quant::Q4_1] {
        let path = TinyModel::with_quant(quant).write(folder.path());
        let model = Model::load(&path, Cpu::new(1)).unwrap();
        let prompt = model.tokenizer.encode(PROMPT).unwrap();
        let before = greedy(&model, &prompt, 8);
        std::fs::File::options().write(true).open(&path).unwrap().set_len(24).unwrap();
        assert_eq!(greedy(&model, &prompt, 8), before);
        assert!(Model::load(&path, Cpu::new(1)).is_err());
    }
}

#[test]
fn the_fingerprint_is_the_content() {
    let of = |tiny: &TinyModel| model(tiny).fingerprint;
    let base = TinyModel::default();
    assert_eq!(of(&base), of(&base));
    let template = TinyTemplate::Text("{{ messages }}".into());
    for other in [
        TinyModel { seed: 2, ..base.clone() },
        TinyModel { template, ..base.clone() },
        TinyModel { add_bos: true, ..base.clone() },
    ] {
        assert_ne!(of(&base), of(&other));
    }
}

#[test]
fn an_output_matrix_of_its_own_is_used() {
    let logits = |untied| {
        let model = model(&TinyModel { untied, ..TinyModel::default() });
        Runner::new(&model, 16).feed(&[20, 21])
    };
    assert_ne!(logits(false), logits(true));
}

#[test]
fn rope_factors_and_scaling_are_used() {
    let logits = |change: &dyn Fn(&mut GgufWriter)| {
        let mut w = TinyModel::default().writer();
        change(&mut w);
        Runner::new(&load(&w).unwrap(), 16).feed(&[20, 21, 22, 23])
    };
    let plain = logits(&|_| {});
    let ones = logits(&|w| _ = w.tensor("rope_freqs.weight", &[8], Quant::F32, &[1.0; 8]));
    let factors = logits(&|w| _ = w.tensor("rope_freqs.weight", &[8], Quant::F32, &[4.0; 8]));
    let linear =
        logits(&|w| _ = w.text("llama.rope.scaling.type", "linear").f32("llama.rope.scaling.factor", 4.0));
    let base = logits(&|w| _ = w.f32("llama.rope.freq_base", 500_000.0));
    assert_eq!(plain, ones);
    assert!(plain != factors && plain != base);
    assert_eq!(factors, linear, "dividing every frequency is scaling every position");
}

#[test]
fn a_window_caps_the_context() {
    let mut w = TinyModel::default().writer();
    let model = load(w.u32("llama.attention.sliding_window", 64)).unwrap();
    assert_eq!((model.config.context, model.config.sliding_window), (64, Some(64)));
    let model = load(w.u32("llama.attention.sliding_window", 4096)).unwrap();
    assert_eq!(model.config.context, 512);
}

#[test]
fn template_defaults() {
    let source = |w: &GgufWriter| load(w).unwrap().template.source().clone();
    assert_eq!(source(&TinyModel::default().writer()), TemplateSource::File);
    let none = TinyModel { template: TinyTemplate::None, ..TinyModel::default() };
    assert_eq!(source(&none.writer()), TemplateSource::DefaultChatMl);
    let mut w = none.writer();
    w.integers("tokenizer.ggml.token_type", &vec![1; model(&none).config.vocab]);
    assert_eq!(source(&w), TemplateSource::DefaultPlain);
    let broken = TinyModel { template: TinyTemplate::Text("{% if %}".into()), ..TinyModel::default() };
    let model = model(&broken);
    assert!(matches!(model.template.source(), TemplateSource::Unusable(_)));
    assert!(!model.tokenizer.encode_completion("raw completions work").unwrap().is_empty());
}

#[test]
fn sentence_piece_models_load() {
    let model = model(&TinyModel { tokenizer: TinyTokenizer::SentencePiece, ..TinyModel::default() });
    let prompt = model.tokenizer.encode(PROMPT).unwrap();
    assert_eq!(model.tokenizer.decode(&prompt), PROMPT);
    assert_eq!(greedy(&model, &prompt, 4).len(), 4);
}

/// The refusal of a changed tiny file.
fn refusal(change: impl FnOnce(&mut GgufWriter)) -> String {
    let mut w = TinyModel::default().writer();
    change(&mut w);
    load(&w).err().expect("must be refused").to_string()
}

#[test]
fn refusals_name_the_field_and_the_value() {
    let has = |text: String, wanted: &[&str]| {
        for part in wanted {
            assert!(text.contains(part), "`{part}` not in: {text}");
        }
    };
    let arch = refusal(|w| _ = w.text("general.architecture", "mamba"));
    has(arch, &["general.architecture", "mamba", "llama, qwen2, qwen3"]);
    has(refusal(|w| _ = w.without("general.architecture")), &["general.architecture", "missing"]);
    has(refusal(|w| _ = w.without("llama.block_count")), &["llama.block_count", "missing"]);
    has(refusal(|w| _ = w.u32("llama.block_count", 0)), &["llama.block_count", "0 is not between 1"]);
    has(refusal(|w| _ = w.u32("llama.block_count", 3)), &["blk.2.attn_norm.weight", "missing"]);
    has(refusal(|w| _ = w.u32("llama.block_count", 1)), &["blk.1.", "not part of architecture `llama`"]);
    has(
        refusal(|w| _ = w.u32("llama.attention.head_count_kv", 3)),
        &["head_count_kv", "3 does not divide 4"],
    );
    has(refusal(|w| _ = w.u32("llama.attention.head_count", 5)), &["head_count", "5"]);
    has(refusal(|w| _ = w.u32("llama.expert_count", 8)), &["llama.expert_count", "8"]);
    has(refusal(|w| _ = w.text("llama.rope.scaling.type", "yarn")), &["rope.scaling.type", "yarn", "linear"]);
    has(refusal(|w| _ = w.f32("llama.rope.freq_base", f32::NAN)), &["llama.rope.freq_base", "NaN"]);
    has(
        refusal(|w| _ = w.u32("llama.vocab_size", 7)),
        &["llama.vocab_size", "is 7", "tokenizer.ggml.tokens"],
    );
    has(refusal(|w| _ = w.text("llama.context_length", "x")), &["llama.context_length", "an integer"]);
    let narrow = refusal(|w| w.tensor_mut("blk.1.ffn_up.weight").shape = vec![WIDTH as u64, 96]);
    has(narrow, &["blk.1.ffn_up.weight", "[64, 96]", "[64, 128]"]);
    let fewer = refusal(|w| w.tensor_mut("token_embd.weight").shape[1] -= 1);
    has(fewer, &["token_embd.weight", "number of tokens in the tokenizer"]);
    has(
        refusal(|w| w.tensors.retain(|t| t.name != "output_norm.weight")),
        &["output_norm.weight", "missing"],
    );
    let nan = refusal(|w| w.tensor_mut("blk.0.attn_q.weight").data[..2].fill(0xff));
    has(nan, &["blk.0.attn_q.weight", "scale"]);
}

#[test]
fn an_architecture_gets_all_of_its_parts_and_no_others() {
    let mut w = TinyModel::of("qwen2").writer();
    w.tensors.retain(|t| t.name != "blk.1.attn_k.bias");
    let text = load(&w).err().unwrap().to_string();
    assert!(text.contains("blk.1.attn_k.bias") && text.contains("missing"), "{text}");
    let mut w = TinyModel::default().writer();
    w.tensor("blk.0.attn_q_norm.weight", &[16], Quant::F32, &[1.0; 16]);
    assert!(load(&w).err().unwrap().to_string().contains("blk.0.attn_q_norm.weight"));
    let biased = |value: f32| {
        let mut w = TinyModel::default().writer();
        w.tensor("blk.0.attn_output.bias", &[64], Quant::F32, &[value; 64]);
        Runner::new(&load(&w).unwrap(), 16).feed(&[20, 21])
    };
    assert_ne!(biased(0.0), biased(0.5));
}
