#!/usr/bin/python3 -B
"""What frozen rows hold of a number of their ids: ridge_bits.py LEARN.safetensors TEST.safetensors FIELD

A ridge regression of the field itself, learned on the first set's unit rows, and its rank correlation
with the field on the second: linear, and with 2,000 random rectified features. The penalty is that of
the least error on a fifth of the first set, held out. Nobody who has to find the number out by himself
is told it so plainly; the rows hold about as much as this. Prints JSON.
"""
import json
import re
import sys

import numpy as np

import safetensors_io

PENALTIES = [1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0]


def read(path, field):
    rows = safetensors_io.Reader(path).get("mean").astype(np.float64)
    with open(re.sub(r"\.safetensors$", ".ids.jsonl", path), encoding="utf-8") as f:
        known = np.array([json.loads(line)[field] for line in f])
    return rows / np.linalg.norm(rows, axis=1, keepdims=True), known


def ranks(x):
    """Of equal values the mean."""
    _, where, counts = np.unique(x, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[where]


def fit(x, y, penalty):
    return np.linalg.solve(x.T @ x + penalty * np.eye(x.shape[1]), x.T @ y)


def spearman(learn, known, test, truth):
    is_held = np.arange(len(learn)) % 5 == 0
    errors = [np.mean((learn[is_held] @ fit(learn[~is_held], known[~is_held], p) - known[is_held]) ** 2)
              for p in PENALTIES]
    said = test @ fit(learn, known, PENALTIES[int(np.argmin(errors))])
    return float(np.corrcoef(ranks(said), ranks(truth))[0, 1])


def features(rows, weights):
    columns = [np.ones((len(rows), 1)), rows]
    return np.hstack(columns + ([np.maximum(rows @ weights, 0)] if weights is not None else []))


learn, known = read(sys.argv[1], sys.argv[3])
test, truth = read(sys.argv[2], sys.argv[3])
random = np.random.default_rng(0).normal(size=(learn.shape[1], 2000))
print(json.dumps({name: spearman(features(learn, w), known, features(test, w), truth)
                  for name, w in (("linear", None), ("rectified", random))}))
