//! A model file of a stranger: opened, asked for everything, and loaded as a model when it is one.

#![no_main]

use std::sync::{Arc, OnceLock};

use jackfield_model::{Cpu, Gguf, Model};
use libfuzzer_sys::fuzz_target;

fn cpu() -> Arc<Cpu> {
    static CPU: OnceLock<Arc<Cpu>> = OnceLock::new();
    CPU.get_or_init(|| Cpu::new(1)).clone()
}

fuzz_target!(|bytes: &[u8]| {
    let Ok(gguf) = Gguf::from_bytes(bytes.to_vec()) else { return };
    for key in gguf.keys().to_vec() {
        let _ = gguf.get(&key);
        let _ = (gguf.texts(&key), gguf.floats(&key), gguf.integers(&key));
        let _ = (gguf.text(&key), gguf.unsigned(&key), gguf.float(&key), gguf.boolean(&key));
    }
    for info in gguf.tensors() {
        assert_eq!(gguf.data(info).len() as u64, info.bytes, "{}", info.name);
    }
    if let Ok(model) = Model::from_gguf(gguf, cpu()) {
        let _ = model.tokenizer.encode("a 中<|im_end|>");
    }
});
