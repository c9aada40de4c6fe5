"""Makes a tiny Llama with random weights and a made-up tokenizer; run by the engine's own Python.

``python model.py FOLDER``. Offline and the same bytes everywhere: the vocabulary is put together
rather than trained, the weights come from a seeded generator. KV cache: 512 bytes a token.
"""

import json
import string
import sys
from itertools import product
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer, decoders, models, pre_tokenizers  # the engine brings both

VOCABULARY = 2048
HIDDEN, INNER, LAYERS, HEADS, KV_HEADS, HEAD = 128, 256, 2, 4, 2, 32
CONTEXT = 8192
SPECIAL = ("<unk>", "<s>", "</s>")

CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "vocab_size": VOCABULARY,
    "hidden_size": HIDDEN,
    "intermediate_size": INNER,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "num_key_value_heads": KV_HEADS,
    "head_dim": HEAD,
    "hidden_act": "silu",
    "max_position_embeddings": CONTEXT,
    "rms_norm_eps": 1e-6,
    "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0},
    "tie_word_embeddings": True,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "dtype": "bfloat16",
}


def main(folder: Path) -> None:
    """Write the model into ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    _tokenizer(folder)
    _write_weights(folder / "model.safetensors", _weights())
    (folder / "config.json").write_text(json.dumps(CONFIG, indent=1) + "\n")


def _tokenizer(folder: Path) -> None:
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    room = VOCABULARY - len(SPECIAL) - len(letters)
    pairs = list(product(string.ascii_letters, repeat=2))[:room]
    words = [*SPECIAL, *letters, *("".join(pair) for pair in pairs)]
    tokenizer = Tokenizer(models.BPE(vocab={word: i for i, word in enumerate(words)}, merges=pairs))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(list(SPECIAL))
    tokenizer.save(str(folder / "tokenizer.json"))
    names = dict(zip(("unk_token", "bos_token", "eos_token"), SPECIAL, strict=True))
    about = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": CONTEXT, **names}
    (folder / "tokenizer_config.json").write_text(json.dumps(about, indent=1) + "\n")


def _weights() -> dict[str, np.ndarray]:
    random = np.random.default_rng(0)

    def drawn(*shape: int) -> np.ndarray:
        return random.normal(0.0, 0.02, shape).astype(np.float32)

    kept = np.ones(HIDDEN, dtype=np.float32)
    weights = {"model.embed_tokens.weight": drawn(VOCABULARY, HIDDEN), "model.norm.weight": kept}
    for layer in range(LAYERS):
        at = f"model.layers.{layer}."
        weights[at + "input_layernorm.weight"] = kept
        weights[at + "post_attention_layernorm.weight"] = kept
        weights[at + "self_attn.q_proj.weight"] = drawn(HEADS * HEAD, HIDDEN)
        weights[at + "self_attn.k_proj.weight"] = drawn(KV_HEADS * HEAD, HIDDEN)
        weights[at + "self_attn.v_proj.weight"] = drawn(KV_HEADS * HEAD, HIDDEN)
        weights[at + "self_attn.o_proj.weight"] = drawn(HIDDEN, HEADS * HEAD)
        weights[at + "mlp.gate_proj.weight"] = drawn(INNER, HIDDEN)
        weights[at + "mlp.up_proj.weight"] = drawn(INNER, HIDDEN)
        weights[at + "mlp.down_proj.weight"] = drawn(HIDDEN, INNER)
    return weights


def _write_weights(file: Path, weights: dict[str, np.ndarray]) -> None:
    """The safetensors layout by hand, because numpy has no bfloat16: the upper half of a float32."""
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    body = bytearray()
    for name, values in weights.items():
        raw = (values.view(np.uint32) >> 16).astype("<u2").tobytes()
        header[name] = {
            "dtype": "BF16",
            "shape": list(values.shape),
            "data_offsets": [len(body), len(body) + len(raw)],
        }
        body += raw
    head = json.dumps(header).encode()
    head += b" " * (-len(head) % 8)
    file.write_bytes(len(head).to_bytes(8, "little") + head + body)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
