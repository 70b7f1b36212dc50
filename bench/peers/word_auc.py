#!/usr/bin/python3 -B
"""How well words are learned on `shapes`: word_auc.py IMAGES.safetensors TEXTS.safetensors TRUTH

For each level-0 caption that names one colour ("a red shape") or one form ("a star"): the area
under the ROC curve of the csd similarity, true pictures against all others. Prints the means as
JSON.
"""
import json
import re
import sys

import numpy as np

import safetensors_io


def read_ids(path):
    with open(re.sub(r"\.safetensors$", ".ids.jsonl", path), encoding="utf-8") as f:
        return [json.loads(line) for line in f]


def auc(scores, is_true):
    """Share of (true, other) pairs in the right order; equal scores count half."""
    order = np.argsort(scores, kind="stable")
    ranks = np.empty(len(scores))
    ranks[order] = np.arange(1, len(scores) + 1)
    for value in np.unique(scores):
        ranks[scores == value] = ranks[scores == value].mean()
    n, n_true = len(scores), int(is_true.sum())
    return (ranks[is_true].sum() - n_true * (n_true + 1) / 2) / (n_true * (n - n_true))


def main():
    images, texts = (safetensors_io.load(p) for p in sys.argv[1:3])
    image_rows, text_rows = read_ids(sys.argv[1]), read_ids(sys.argv[2])
    truth = {}
    with open(sys.argv[3], encoding="utf-8") as f:
        for line in f:
            image, text = line.split()
            truth.setdefault(text, set()).add(image)
    half_trace = 0.5 * np.exp(images["log_var"].astype(np.float64)).sum(1)
    found = {"auc_colour": [], "auc_form": []}
    for row, mean in zip(text_rows, texts["mean"].astype(np.float64)):
        words = row["text"].split()
        if row.get("level") != 0 or words[0] != "a":
            continue
        key = "auc_colour" if words[-1] == "shape" else "auc_form"
        is_true = np.array([i["id"] in truth.get(row["id"], ()) for i in image_rows])
        if 0 < is_true.sum() < len(is_true):
            found[key].append(auc(images["mean"] @ mean - half_trace, is_true))
    print(json.dumps({k: float(np.mean(v)) for k, v in found.items()}))


if __name__ == "__main__":
    main()
