"""Vectors of `collection export`, asked with [mean of the query, 1] by inner product, as their line says:
the order is that of `penumbra search --json` but where scores are equal in single precision.

  exported.py RANKED.json QUERIES.safetensors NPY_DIR QDRANT_DIR
"""
import array
import json
import os
import struct
import sys


def means(path):
    with open(path, "rb") as f:
        n_header, = struct.unpack("<Q", f.read(8))
        header = json.loads(f.read(n_header))
        begin, end = header["mean"]["data_offsets"]
        f.seek(8 + n_header + begin)
        values = array.array("f", f.read(end - begin))
    width = header["mean"]["shape"][1]
    return [values[i:i + width] for i in range(0, len(values), width)]


def name(payload):
    """As hits call the row."""
    return payload.get("path", payload["id"])


def npy(folder):
    with open(os.path.join(folder, "vectors.npy"), "rb") as f:
        assert f.read(8) == b"\x93NUMPY\x01\x00"
        n_head, = struct.unpack("<H", f.read(2))
        n, width = eval(f.read(n_head))["shape"]  # a literal, as numpy reads it
        values = array.array("f", f.read())
    assert len(values) == n * width
    with open(os.path.join(folder, "payload.jsonl"), encoding="utf-8") as f:
        names = [name(json.loads(line)) for line in f]
    return {names[i]: values[i * width:(i + 1) * width] for i in range(n)}


def qdrant(folder):
    with open(os.path.join(folder, "collection.json"), encoding="utf-8") as f:
        about = json.load(f)["vectors"]
    assert about["distance"] == "Dot"
    with open(os.path.join(folder, "points.jsonl"), encoding="utf-8") as f:
        points = [p for line in f for p in json.loads(line)["points"]]
    assert all(len(p["vector"]) == about["size"] for p in points)
    return {name(p["payload"]): p["vector"] for p in points}


def check(rows, queries, ranked):
    assert len(ranked) == len(rows) * len(queries) > 0
    for q, mean in enumerate(queries):
        asked = [*mean, 1]
        product = {row: sum(a * b for a, b in zip(asked, x, strict=True)) for row, x in rows.items()}
        hits = [h["item"] for h in ranked[q * len(rows):(q + 1) * len(rows)]]
        assert sorted(hits) == sorted(rows)
        for better, worse in zip(hits, hits[1:]):
            assert product[better] >= product[worse] - 1e-6, (q, better, worse)


ranked_path, queries_path, npy_folder, qdrant_folder = sys.argv[1:]
with open(ranked_path, encoding="utf-8") as ranked_file:
    found = json.load(ranked_file)["hits"]
for rows_of in (npy(npy_folder), qdrant(qdrant_folder)):
    check(rows_of, means(queries_path), found)
