//! Model files: GGUF, tokenizer, chat template, architectures.
