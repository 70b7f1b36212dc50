#!/usr/bin/python3 -B
"""Writes one tower of a ProLIP model directory as an ONNX file, with numpy alone.

    onnx_export.py MODEL_DIR OUT_DIR --tower image|text [--batch N]
                   [--weights f32|s8-tensor|s8-channel|u8-tensor|u8-channel]

Two graphs over the same weights (OUT_DIR/weights.bin): OUT_DIR/products.onnx with attention by
products, OUT_DIR/fused.onnx with ONNX Runtime's own operator MultiHeadAttention. Inputs are
`pixels` (N,3,H,W) f32 or `tokens` (N,T) i64, outputs `mean` (unit length) and `log_var`. Without
--batch, N is the free dimension "batch".

A graph is what torch_prolip.py computes, every token in every layer, in the forms that ONNX Runtime
recognises and fuses (LayerNormalization, GELU by Erf, bias after product). The 8-bit types are the
scheme of its `quantize_dynamic`: every product with a weight matrix becomes DynamicQuantizeLinear,
MatMulInteger, one scale, bias; s8 symmetric, u8 with a zero point, one scale a matrix or a column.

The package `onnx` is not in Debian, so messages are written here: Protocol Buffers' wire format
with the field numbers of onnx.proto (IR version 8, operator set 17).
"""
import argparse
import hashlib
import json
import math
import os
import struct
import sys

import numpy as np

import safetensors_io

IR_VERSION, OPSET = 8, 17
TYPES = {np.dtype("<f4"): 1, np.dtype("u1"): 2, np.dtype("i1"): 3, np.dtype("<i4"): 6,
         np.dtype("<i8"): 7}
INLINE_BYTES = 1024  # smaller constants lie in the graph, where shapes can be inferred from them
ALIGNMENT = 4096  # of larger ones in weights.bin, so that it can be mapped


# ---- wire format ----

def varint(n):
    n &= (1 << 64) - 1
    out = bytearray()
    while n >= 128:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


def field(number, value):
    """One field: an integer, a float, or bytes (also text and messages)."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack("<f", value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def attribute(name, value):
    """AttributeProto: float, int, or list of ints."""
    if isinstance(value, float):
        return field(1, name) + field(2, value) + field(20, 1)
    if isinstance(value, int):
        return field(1, name) + field(3, value) + field(20, 2)
    return field(1, name) + b"".join(field(8, v) for v in value) + field(20, 7)


def value_info(name, element, dims):
    """ValueInfoProto; a dim that is text is free and bears that name."""
    shape = b"".join(field(1, field(2 if isinstance(d, str) else 1, d)) for d in dims)
    return field(1, name) + field(2, field(1, field(1, element) + field(2, shape)))


# ---- graph ----

class DataFile:
    """Large constants, each once however many graphs use it."""

    def __init__(self, path):
        self.file, self.name, self.offsets = open(path, "wb"), os.path.basename(path), {}

    def place(self, raw):
        """Where `raw` lies, as external_data says it."""
        key = hashlib.sha256(raw).digest()
        if key not in self.offsets:
            self.file.write(b"\0" * (-self.file.tell() % ALIGNMENT))
            self.offsets[key] = self.file.tell()
            self.file.write(raw)
        return {"location": self.name, "offset": str(self.offsets[key]), "length": str(len(raw))}


class Graph:
    """Nodes and constants in the order they are added; large constants go to the data file."""

    def __init__(self, data, weights, attention):
        self.data, self.weights, self.attention = data, weights, attention
        self.nodes, self.constants, self.n_values = [], [], 0

    def value(self):
        self.n_values += 1
        return f"v{self.n_values}"

    def constant(self, array, name=None):
        array = np.asarray(array)
        name = name or self.value()
        info = b"".join(field(1, int(d)) for d in array.shape)
        info += field(2, TYPES[array.dtype]) + field(8, name)
        raw = np.ascontiguousarray(array).tobytes()
        if len(raw) <= INLINE_BYTES:
            info += field(9, raw)
        else:
            place = self.data.place(raw)
            info += b"".join(field(13, field(1, k) + field(2, v)) for k, v in place.items())
            info += field(14, 1)
        self.constants.append(info)
        return name

    def f32(self, *values):
        return self.constant(np.array(values[0] if len(values) == 1 else values, np.float32))

    def i64(self, *values):
        return self.constant(np.array(values, np.int64))

    def add_node(self, op, inputs, outputs, domain="", **attributes):
        node = b"".join(field(1, i) for i in inputs) + b"".join(field(2, o) for o in outputs)
        node += field(3, f"{op}_{len(self.nodes)}") + field(4, op)
        node += b"".join(field(5, attribute(k, v)) for k, v in attributes.items())
        self.nodes.append(node + (field(7, domain) if domain else b""))

    def op(self, op, *inputs, outputs=1, name=None, **attributes):
        out = [name or self.value()] if outputs == 1 else [self.value() for _ in range(outputs)]
        self.add_node(op, inputs, out, **attributes)
        return out[0] if outputs == 1 else out

    def model(self, inputs, outputs):
        graph = b"".join(field(1, n) for n in self.nodes) + field(2, "penumbra")
        graph += b"".join(field(5, c) for c in self.constants)
        graph += b"".join(field(11, i) for i in inputs) + b"".join(field(12, o) for o in outputs)
        opsets = field(8, field(1, "") + field(2, OPSET))
        if self.attention == "fused":
            opsets += field(8, field(1, "com.microsoft") + field(2, 1))
        return field(1, IR_VERSION) + field(2, "penumbra") + field(7, graph) + opsets


# ---- layers ----

def quantized(w, kind, by_column):
    """8-bit (K,N), its scale and zero point as quantize_dynamic chooses them (0 is exact)."""
    axis = 0 if by_column else None
    if kind == "s8":
        scale = np.maximum(np.abs(w).max(axis), 1e-30) / 127
        q = np.clip(np.rint(w / scale), -127, 127).astype(np.int8)
        return q, scale.astype(np.float32), np.zeros(np.shape(scale), np.int8)
    low, high = np.minimum(w.min(axis), 0), np.maximum(w.max(axis), 0)
    scale = np.maximum(high - low, 1e-30) / 255
    zero = np.rint(-low / scale)
    q = np.clip(np.rint(w / scale) + zero, 0, 255).astype(np.uint8)
    return q, scale.astype(np.float32), zero.astype(np.uint8)


def product(g, x, w):
    """x @ w for a weight matrix (K,N) in f32, in the type that was asked for."""
    if g.weights == "f32":
        return g.op("MatMul", x, g.constant(np.ascontiguousarray(w)))
    kind, grain = g.weights.split("-")
    q, scale, zero = quantized(w, kind, grain == "channel")
    x_q, x_scale, x_zero = g.op("DynamicQuantizeLinear", x, outputs=3)
    sums = g.op("MatMulInteger", x_q, g.constant(q), x_zero, g.constant(zero))
    both = g.op("Mul", x_scale, g.constant(scale))
    return g.op("Mul", g.op("Cast", sums, to=1), both)


def linear(g, x, w, bias):
    """F.linear: w is (N,K) as PyTorch stores it."""
    return g.op("Add", product(g, x, w.T), g.constant(bias))


class Tower:
    """Layers of one tower; `get` reads a parameter by its name in the weights' file."""

    def __init__(self, g, get, config, n_heads, quick_gelu):
        self.g, self.get, self.n_heads, self.quick_gelu = g, get, n_heads, quick_gelu
        self.width, self.n_layers = config["width"], config["layers"]
        self.eps = (config.get("norm_kwargs") or {}).get("eps", 1e-5)

    def norm(self, x, name):
        scale, bias = (self.g.constant(self.get(f"{name}.{part}")) for part in ("weight", "bias"))
        return self.g.op("LayerNormalization", x, scale, bias, axis=-1, epsilon=float(self.eps))

    def gelu(self, x):
        g = self.g
        if self.quick_gelu:
            return g.op("Mul", x, g.op("Sigmoid", g.op("Mul", x, g.f32(1.702))))
        erf = g.op("Erf", g.op("Div", x, g.f32(math.sqrt(2))))
        return g.op("Mul", g.op("Mul", x, g.op("Add", erf, g.f32(1.0))), g.f32(0.5))

    def heads(self, x, order):
        shape = self.g.i64(0, 0, self.n_heads, self.width // self.n_heads)
        return self.g.op("Transpose", self.g.op("Reshape", x, shape), perm=order)

    def attend(self, x, name):
        g = self.g
        qkv = linear(g, x, self.get(f"{name}.in_proj_weight"), self.get(f"{name}.in_proj_bias"))
        q, k, v = g.op("Split", qkv, g.i64(*[self.width] * 3), outputs=3, axis=2)
        if g.attention == "fused":
            x = g.op("MultiHeadAttention", q, k, v, domain="com.microsoft", num_heads=self.n_heads)
        else:
            q = g.op("Mul", self.heads(q, [0, 2, 1, 3]), g.f32((self.width / self.n_heads)**-0.5))
            scores = g.op("MatMul", q, self.heads(k, [0, 2, 3, 1]))
            x = g.op("MatMul", g.op("Softmax", scores, axis=-1), self.heads(v, [0, 2, 1, 3]))
            x = g.op("Reshape", g.op("Transpose", x, perm=[0, 2, 1, 3]), g.i64(0, 0, self.width))
        return self.named_linear(x, f"{name}.out_proj")

    def named_linear(self, x, name):
        return linear(self.g, x, self.get(f"{name}.weight"), self.get(f"{name}.bias"))

    def block(self, x, name):
        g = self.g
        x = g.op("Add", x, self.attend(self.norm(x, f"{name}.ln_1"), f"{name}.attn"))
        hidden = self.gelu(self.named_linear(self.norm(x, f"{name}.ln_2"), f"{name}.mlp.c_fc"))
        return g.op("Add", x, self.named_linear(hidden, f"{name}.mlp.c_proj"))

    def blocks(self, x, name):
        for i in range(self.n_layers):
            x = self.block(x, f"{name}.resblocks.{i}")
        return x

    def token(self, x, i):
        """Token i of (B,T,C) as (B,C); negative ones count from the end."""
        return self.g.op("Gather", x, self.g.constant(np.array(i, np.int64)), axis=1)

    def repeated(self, names, like):
        """Learnt tokens as (B,n,C), B from the first dimension of `like`."""
        g, rows = self.g, np.stack([self.get(n).reshape(self.width) for n in names])
        n_batch = g.op("Shape", like, start=0, end=1)
        shape = g.op("Concat", n_batch, g.i64(*rows.shape), axis=0)
        return g.op("Expand", g.constant(rows[None]), shape)

    def unit(self, x, name):
        """F.normalize."""
        length = self.g.op("ReduceL2", x, axes=[-1], keepdims=1)
        return self.g.op("Div", x, self.g.op("Max", length, self.g.f32(1e-12)), name=name)


def image_tower(g, get, config):
    """Returns the shape of an input; the outputs bear their names."""
    vision = config["vision_cfg"]
    n_heads = vision["width"] // vision.get("head_width", 64)
    t = Tower(g, get, vision, n_heads, config.get("quick_gelu"))
    size, patch = vision["image_size"], vision["patch_size"]
    size = size if isinstance(size, list) else [size, size]
    x = g.op("Conv", "pixels", g.constant(get("visual.conv1.weight")),
             kernel_shape=[patch, patch], strides=[patch, patch])
    n_patches = (size[0] // patch) * (size[1] // patch)
    x = g.op("Transpose", g.op("Reshape", x, g.i64(0, t.width, n_patches)), perm=[0, 2, 1])
    extra = t.repeated(["visual.class_embedding", "visual.unc_embedding"], "pixels")
    x = g.op("Add", g.op("Concat", extra, x, axis=1),
             g.constant(get("visual.positional_embedding")))
    if not vision.get("no_ln_pre"):
        x = t.norm(x, "visual.ln_pre")
    x = t.norm(t.blocks(x, "visual.transformer"), "visual.ln_post")
    t.unit(product(g, t.norm(t.token(x, 0), "visual.ln_post"), get("visual.proj")), "mean")
    log_var = t.named_linear(t.token(x, 1), "visual.uncertainty_proj")
    g.op("Identity", log_var, name="log_var")
    return [3, *size]


def unc_source(config):
    """Where a text's log-variance comes from; the released files say nothing and mean the mean."""
    text, keys = config["text_cfg"], ("text_uncertainty_source", "text_unc_source")
    said = [c[k] for c in (config, text) for k in keys if c.get(k)]
    return said[0] if said else "projected_mean"


def text_tower(g, get, config):
    text = config["text_cfg"]
    t = Tower(g, get, text, text["heads"], config.get("quick_gelu"))
    n_tokens = text["context_length"]
    x = g.op("Gather", g.constant(get("text.token_embedding.weight")), "tokens")
    x = g.op("Concat", x, t.repeated(["text.unc_emb", "text.cls_emb"], "tokens"), axis=1)
    x = g.op("Add", x, g.constant(get("text.positional_embedding")[:n_tokens + 2]))
    x = t.norm(t.blocks(x, "text.transformer"), "text.ln_final")
    if text.get("proj_bias", True):
        mean = t.named_linear(t.token(x, -1), "text.text_projection")
    else:
        mean = product(g, t.token(x, -1), get("text.text_projection"))
    t.unit(mean, "mean")
    source = t.token(x, -2) if unc_source(config) == "unc_token" else mean
    g.op("Identity", t.named_linear(source, "text.text_uncertainty_projection"), name="log_var")
    return [n_tokens]


# ---- model ----

def check(config):
    """Refuses what the graph would compute differently without a word."""
    vision, text = config.get("vision_cfg", {}), config.get("text_cfg", {})
    wrong = [] if vision.get("embed_unc") else ["a picture tower without [UNC]"]
    wrong += [] if text.get("embed_unc", True) and text.get("embed_cls") else [
        "a text tower without [UNC] and [CLS]"]
    wrong += [] if text.get("no_causal_mask") else ["a causal mask"]
    wrong += ["LayerScale" for c in (vision, text) if c.get("ls_init_value") is not None]
    if vision.get("pool_type", "tok") != "tok":
        wrong.append("pooling " + vision["pool_type"])
    if wrong:
        raise ValueError("only the released ProLIP shape is exported, not " + ", ".join(wrong))


def make_model(args, config, get, data, attention):
    g = Graph(data, args.weights, attention)
    shape = (image_tower if args.tower == "image" else text_tower)(g, get, config)
    n_batch = args.batch or "batch"
    name, element = ("pixels", 1) if args.tower == "image" else ("tokens", 7)
    return g.model([value_info(name, element, [n_batch, *shape])],
                   [value_info(o, 1, [n_batch, config["embed_dim"]]) for o in ("mean", "log_var")])


def export(args):
    with open(os.path.join(args.model, "config.json"), encoding="utf-8") as f:
        config = json.load(f)
    check(config)
    reader = safetensors_io.Reader(os.path.join(args.model, "model.safetensors"))

    def get(name):
        return reader.get(name).astype(np.float32, copy=False)

    os.makedirs(args.out, exist_ok=True)
    data = DataFile(os.path.join(args.out, "weights.bin"))
    for attention in ("products", "fused"):
        with open(os.path.join(args.out, attention + ".onnx"), "wb") as f:
            f.write(make_model(args, config, get, data, attention))
    data.file.close()


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    p.add_argument("model")
    p.add_argument("out")
    p.add_argument("--tower", choices=["image", "text"], required=True)
    p.add_argument("--batch", type=int, default=0, help="0: any")
    p.add_argument("--weights", default="f32",
                   choices=["f32", "s8-tensor", "s8-channel", "u8-tensor", "u8-channel"])
    try:
        export(p.parse_args())
    except (OSError, ValueError, KeyError) as e:
        print(f"onnx_export.py: {e}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
