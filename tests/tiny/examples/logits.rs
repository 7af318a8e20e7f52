//! Writes the logits of every token of a text: `logits MODEL.gguf IDS.txt OUT.f32`. `IDS.txt` has token ids with spaces
//! between them; `OUT.f32` gets `[tokens, vocab]`, four bytes each, little end first.

use std::error::Error;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;

use jackfield_model::{Batch, Cpu, KvArena, KvSpan, Model, Scratch};

/// Rows of a step, as the engine has them by default.
const STEP: usize = 128;
const BLOCK: usize = 16;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [model, ids, out] = args.as_slice() else { return Err("logits MODEL.gguf IDS.txt OUT.f32".into()) };
    let model = Model::load(Path::new(model), Cpu::new(2))?;
    let ids: Vec<u32> =
        fs::read_to_string(ids)?.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
    let mut out = BufWriter::new(File::create(out)?);
    let table: Vec<u32> = (0..ids.len().div_ceil(BLOCK) as u32).collect();
    let mut kv = KvArena::new(model.kv_shape(table.len(), BLOCK))?;
    let mut scratch = Scratch::new(&model, STEP);
    let mut logits = Vec::new();
    for (i, tokens) in ids.chunks(STEP).enumerate() {
        let start = i * STEP;
        let positions: Vec<u32> = (start..start + tokens.len()).map(|at| at as u32).collect();
        let rows: Vec<usize> = (0..tokens.len()).collect();
        let spans = [KvSpan { table: &table, start, len: tokens.len(), row: 0 }];
        let batch = Batch { tokens, positions: &positions, spans: &spans, logits_for: &rows };
        model.forward(&batch, &mut kv, &mut scratch, &mut logits)?;
        for logit in &logits {
            out.write_all(&logit.to_le_bytes())?;
        }
    }
    out.flush()?;
    Ok(())
}
