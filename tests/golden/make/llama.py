"""A thin, explicit layer over llama.cpp's C interface: nothing is sampled, cached or chosen behind our back."""

import contextlib
import ctypes
import hashlib
import json
import pathlib

import llama_cpp as api
import numpy

FLASH = {False: 0, True: 1}  # LLAMA_FLASH_ATTN_TYPE_DISABLED, _ENABLED
F32, F16 = 0, 1  # ggml types of the KV cache


@api.llama_log_callback
def _silent(level, text, user_data):
    if level == 4:  # error
        print(text.decode("utf-8", "replace"), end="")


api.llama_log_set(_silent, ctypes.c_void_p(0))
api.llama_backend_init()


class Model:
    def __init__(self, path, vocab_only=False):
        params = api.llama_model_default_params()
        params.vocab_only = vocab_only
        params.n_gpu_layers = 0
        self.handle = api.llama_model_load_from_file(str(path).encode(), params)
        if not self.handle:
            raise SystemExit(f"llama.cpp cannot load {path}")
        self.vocab = api.llama_model_get_vocab(self.handle)
        self.vocab_size = api.llama_vocab_n_tokens(self.vocab)

    def close(self):
        api.llama_model_free(self.handle)

    def tokenize(self, text, add_special=False, parse_special=False):
        data = text.encode("utf-8")
        room = 2 * len(data) + 16
        out = (api.llama_token * room)()
        count = api.llama_tokenize(self.vocab, data, len(data), out, room, add_special, parse_special)
        if count < 0:
            raise SystemExit(f"llama.cpp cannot tokenise {text!r}")
        return list(out[:count])


class Context:
    """One sequence. `feed` appends tokens and gives the logits after the last one, [vocab] float32."""

    def __init__(self, model, size, threads=1, batch=512, flash=False, kv=F16):
        params = api.llama_context_default_params()
        params.n_ctx = size
        params.n_batch = params.n_ubatch = batch
        params.n_threads = params.n_threads_batch = threads
        params.flash_attn_type = FLASH[flash]
        params.type_k = params.type_v = kv
        params.offload_kqv = params.op_offload = False
        self.model, self.limit, self.past = model, batch, 0
        self.handle = api.llama_init_from_model(model.handle, params)
        if not self.handle:
            raise SystemExit("llama.cpp cannot make a context")

    def close(self):
        api.llama_free(self.handle)

    def clear(self):
        api.llama_memory_clear(api.llama_get_memory(self.handle), True)
        self.past = 0

    def feed(self, tokens, every=False):
        """Logits of the last token; with `every`, of all of them: [tokens, vocab]."""
        rows = []
        for start in range(0, len(tokens), self.limit):
            part = tokens[start : start + self.limit]
            batch = api.llama_batch_init(len(part), 0, 1)
            batch.n_tokens = len(part)
            for i, token in enumerate(part):
                batch.token[i], batch.pos[i], batch.n_seq_id[i] = token, self.past + i, 1
                batch.seq_id[i][0] = 0
                batch.logits[i] = every or start + i == len(tokens) - 1
            code = api.llama_decode(self.handle, batch)
            if code:
                raise SystemExit(f"llama_decode: {code}")
            wanted = range(len(part)) if every else ([len(part) - 1] if start + len(part) == len(tokens) else [])
            for i in wanted:
                row = api.llama_get_logits_ith(self.handle, i)
                rows.append(numpy.ctypeslib.as_array(row, (self.model.vocab_size,)).copy())
            api.llama_batch_free(batch)
            self.past += len(part)
        return numpy.array(rows) if every else rows[-1]


@contextlib.contextmanager
def loaded(path, vocab_only=False):
    model = Model(path, vocab_only)
    try:
        yield model
    finally:
        model.close()


@contextlib.contextmanager
def context(model, size, **options):
    it = Context(model, size, **options)
    try:
        yield it
    finally:
        it.close()


def quantize(source, target, ftype):
    """Requantises a whole file; `ftype` is a LLAMA_FTYPE number."""
    params = api.llama_model_quantize_default_params()
    params.ftype, params.allow_requantize, params.nthread = ftype, True, 2
    code = api.llama_model_quantize(str(source).encode(), str(target).encode(), ctypes.byref(params))
    if code:
        raise SystemExit(f"llama_model_quantize: {code}")


def sha256(path):
    return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()


def version():
    return {"llama-cpp-python": api.__version__, "llama.cpp": "0c1e57098", "system": api.llama_print_system_info().decode().strip()}


def dump(value):
    """Compact JSON whose bytes depend on the value alone."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
