"""Small GGUF files out of plain values, through the gguf package."""

import gguf


def write(path, architecture, values, tensors=()):
    """`values` maps metadata keys to str, bool, int (u32), float (f32) or a list; a list of ints is i32.

    `tensors` is [(name, shape innermost first, gguf type, bytes)].
    """
    writer = gguf.GGUFWriter(str(path), architecture)
    for key, value in values.items():
        if isinstance(value, bool):
            writer.add_bool(key, value)
        elif isinstance(value, str):
            writer.add_string(key, value)
        elif isinstance(value, int):
            writer.add_uint32(key, value)
        elif isinstance(value, float):
            writer.add_float32(key, value)
        else:
            writer.add_array(key, value)
    for name, shape, kind, data in tensors:
        rows = list(reversed(shape))
        block, size = gguf.GGML_QUANT_SIZES[kind]
        rows[-1] = rows[-1] // block * size
        writer.add_tensor(name, data.reshape(rows), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    if tensors:
        writer.write_tensors_to_file()
    writer.close()


def shape_values(architecture, context, width, ffn, layers, heads, kv_heads, **more):
    """The metadata that every architecture of the llama family asks for."""
    values = {
        "context_length": context,
        "embedding_length": width,
        "feed_forward_length": ffn,
        "block_count": layers,
        "attention.head_count": heads,
        "attention.head_count_kv": kv_heads,
        "attention.layer_norm_rms_epsilon": 1e-5,
        **more,
    }
    return {f"{architecture}.{key}": value for key, value in values.items()}
