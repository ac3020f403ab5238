"""Texts of a data set as mean token vectors of wordllama: ``encode_wordllama.py IN.txt OUT.npy``.

Reads the two files of the package by itself: its own loader wants the network.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file
from tokenizers import Tokenizer

_BLOCK = 1000


def main() -> None:
    source, output = Path(sys.argv[1]), Path(sys.argv[2])
    package = Path(find_spec("wordllama").submodule_search_locations[0])
    tokens = Tokenizer.from_file(str(next(package.glob("tokenizers/*tokenizer_config.json"))))
    table = next(iter(load_file(next(package.glob("weights/*_256.safetensors"))).values()))
    table = table.astype(np.float32)
    texts = source.read_text(encoding="utf-8").split("\n")[:-1]
    vectors = np.zeros((len(texts), table.shape[1]), dtype=np.float32)
    for start in range(0, len(texts), _BLOCK):
        found = tokens.encode_batch(texts[start : start + _BLOCK], add_special_tokens=False)
        for i, item in enumerate(found):
            if item.ids:
                vectors[start + i] = table[item.ids].mean(axis=0)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    np.save(output, vectors / np.maximum(lengths, 1e-9))


if __name__ == "__main__":
    main()
