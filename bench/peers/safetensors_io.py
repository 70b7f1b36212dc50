"""Reads and writes safetensors files with numpy alone (the format's package is not in Debian).

A file is an 8-byte little-endian header length, a JSON header (name -> dtype, shape, data_offsets)
and the data. bfloat16 is widened to float32, which numpy can hold.
"""
import json
import struct

import numpy as np

DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2",
          "I8": "<i1", "U8": "<u1", "U16": "<u2", "U32": "<u4", "U64": "<u8", "BOOL": "?"}
NAMES = {np.dtype(v): k for k, v in DTYPES.items()}


class Reader:
    """An open file that reads one array at a time, so that a large model is not held twice."""

    def __init__(self, path):
        self.file = open(path, "rb")
        (n_header,) = struct.unpack("<Q", self.file.read(8))
        self.entries = json.loads(self.file.read(n_header))
        self.metadata = self.entries.pop("__metadata__", {})
        self.start = 8 + n_header

    def names(self):
        return list(self.entries)

    def get(self, name):
        entry = self.entries[name]
        begin, end = entry["data_offsets"]
        self.file.seek(self.start + begin)
        raw = self.file.read(end - begin)
        if entry["dtype"] == "BF16":
            flat = (np.frombuffer(raw, "<u2").astype(np.uint32) << 16).view(np.float32)
        else:
            flat = np.frombuffer(bytearray(raw), DTYPES[entry["dtype"]])
        return flat.reshape(entry["shape"])


def load(path):
    """All arrays of a file as {name: array}; they may be written to."""
    reader = Reader(path)
    return {name: reader.get(name) for name in reader.names()}


def save(path, arrays, metadata=None):
    """Writes {name: array}, widest elements first as the format asks for alignment."""
    order = sorted(arrays, key=lambda k: (-arrays[k].dtype.itemsize, k))
    header, at = {"__metadata__": metadata} if metadata else {}, 0
    for name in order:
        a = arrays[name]
        header[name] = {"dtype": NAMES[a.dtype], "shape": list(a.shape),
                        "data_offsets": [at, at + a.nbytes]}
        at += a.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)))
        f.write(text)
        for name in order:
            f.write(np.ascontiguousarray(arrays[name]).tobytes())
