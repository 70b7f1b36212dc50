#!/usr/bin/python3 -B
"""Inputs for both sides of a comparison, and how far two sets of embeddings agree.

    tower_inputs.py make MODEL_DIR image|text N OUT    "pixels" (N,3,H,W) F32, "tokens" (N,T) I32
    tower_inputs.py compare EMBEDDINGS EMBEDDINGS      prints the cosines of the means as JSON

Pictures are noise of all sizes, each of its own colours and contrast, scaled as normalised pixels
are; tokens are drawn from the whole vocabulary. The same call makes the same inputs.
"""
import json
import os
import sys

import numpy as np

import safetensors_io


def picture(random, height, width):
    """(3,H,W): grids of random colours laid over each other, coarse ones strongest."""
    out = np.zeros((3, height, width))
    for k in range(1, 9):
        cell = 2 ** k
        grid = random.standard_normal((3, -(-height // cell), -(-width // cell)))
        out += 2.0 ** ((k - 8) / 2) * np.kron(grid, np.ones((1, cell, cell)))[:, :height, :width]
    colour = random.standard_normal((3, 1, 1))
    return colour + random.uniform(0.2, 1.2) * out / out.std()


def make(model_dir, tower, n, out):
    with open(os.path.join(model_dir, "config.json"), encoding="utf-8") as f:
        config = json.load(f)
    random = np.random.RandomState(1)
    if tower == "image":
        size = config["vision_cfg"]["image_size"]
        size = size if isinstance(size, list) else [size, size]
        arrays = {"pixels": np.stack([picture(random, *size) for _ in range(n)])}
        arrays["pixels"] = arrays["pixels"].astype(np.float32)
    else:
        text = config["text_cfg"]
        ids = random.randint(3, text["vocab_size"], (n, text["context_length"]))
        arrays = {"tokens": ids.astype(np.int32)}
    safetensors_io.save(out, arrays)


def compare(one, other):
    a, b = (safetensors_io.load(p)["mean"].astype(np.float64) for p in (one, other))
    cosines = (a * b).sum(1) / np.sqrt((a * a).sum(1) * (b * b).sum(1))
    among = a / np.linalg.norm(a, axis=1, keepdims=True)
    products = among @ among.T
    print(json.dumps({"rows": len(cosines), "mean_cosine": cosines.mean(),
                      "min_cosine": cosines.min(),
                      "mean_cosine_of_two_rows": products[np.triu_indices(len(a), 1)].mean()}))


if sys.argv[1] == "make":
    make(sys.argv[2], sys.argv[3], int(sys.argv[4]), sys.argv[5])
else:
    compare(sys.argv[2], sys.argv[3])
