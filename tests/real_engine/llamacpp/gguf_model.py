"""Makes a tiny Llama with random weights as GGUF; run by the server's own Python, which has gguf and numpy.

``python gguf_model.py FILE``. The shape of ``../model.py``: 2 layers, 2 KV heads of size 32. Byte-level BPE over
made-up words of two letters: prompts are given as token ids, so it has to be valid and no more.
"""

import string
import sys
from itertools import product

import gguf
import numpy as np

VOCABULARY, CONTEXT = 2048, 8192
HIDDEN, INNER, LAYERS, HEADS, KV_HEADS, HEAD = 128, 256, 2, 4, 2, 32
SPECIAL = ("<unk>", "<s>", "</s>")


def byte_letters() -> list[str]:
    """What byte-level BPE writes the 256 bytes as: visible ones as they are, the others from U+0100 on."""
    visible = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    hidden = [byte for byte in range(256) if byte not in visible]
    return [chr(byte if byte in visible else 0x100 + hidden.index(byte)) for byte in range(256)]


def main(file: str) -> None:
    """Write the model."""
    letters = byte_letters()
    pairs = list(product(string.ascii_letters, repeat=2))[: VOCABULARY - len(SPECIAL) - len(letters)]
    words = [*SPECIAL, *letters, *("".join(pair) for pair in pairs)]
    kinds = [gguf.TokenType.CONTROL] * len(SPECIAL) + [gguf.TokenType.NORMAL] * (len(words) - len(SPECIAL))
    writer = gguf.GGUFWriter(file, "llama")
    writer.add_name("tiny")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(HIDDEN)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_rope_dimension_count(HEAD)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_rope_freq_base(10_000.0)
    writer.add_vocab_size(len(words))
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(words)
    writer.add_token_types(kinds)
    writer.add_token_merges([" ".join(pair) for pair in pairs])
    writer.add_unk_token_id(0)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_add_bos_token(False)
    _add_weights(writer, len(words))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _add_weights(writer: gguf.GGUFWriter, vocabulary: int) -> None:
    random = np.random.default_rng(0)

    def add(name: str, *shape: int) -> None:
        kept = np.ones(shape, np.float32)
        drawn = random.normal(0.0, 0.02, shape).astype(np.float32)
        writer.add_tensor(f"{name}.weight", kept if len(shape) == 1 else drawn)

    add("token_embd", vocabulary, HIDDEN)
    add("output_norm", HIDDEN)
    add("output", vocabulary, HIDDEN)
    for layer in range(LAYERS):
        at = f"blk.{layer}"
        add(f"{at}.attn_norm", HIDDEN)
        add(f"{at}.attn_q", HEADS * HEAD, HIDDEN)
        add(f"{at}.attn_k", KV_HEADS * HEAD, HIDDEN)
        add(f"{at}.attn_v", KV_HEADS * HEAD, HIDDEN)
        add(f"{at}.attn_output", HIDDEN, HEADS * HEAD)
        add(f"{at}.ffn_norm", HIDDEN)
        add(f"{at}.ffn_gate", INNER, HIDDEN)
        add(f"{at}.ffn_up", INNER, HIDDEN)
        add(f"{at}.ffn_down", HIDDEN, INNER)


if __name__ == "__main__":
    main(sys.argv[1])
