"""Makes the model variants in tests/golden/prolip_model that the reference cases do not cover.

Written from the papers and the field names of the checkpoint formats, with torch's own modules
(nn.MultiheadAttention, nn.LayerNorm, nn.GELU) in float64, and sharing nothing with the C code.
Needs torch and numpy; run once, the cases are kept in the repository:

    python3 tests/golden/make_variants.py tests/golden/prolip_model
"""
import json
import os
import struct
import sys

import torch
from torch import nn

DTYPES = {torch.float32: "F32", torch.float64: "F64", torch.float16: "F16", torch.int64: "I64"}


def save(path, tensors):
    order = sorted(tensors, key=lambda k: (-tensors[k].element_size(), k))
    header, blobs, at = {}, [], 0
    for k in order:
        t = tensors[k].contiguous()
        raw = t.numpy().tobytes()
        header[k] = {"dtype": DTYPES[t.dtype], "shape": list(t.shape), "data_offsets": [at, at + len(raw)]}
        blobs.append(raw)
        at += len(raw)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + b"".join(blobs))


def activation(name):
    if name == "quick_gelu":
        return lambda x: x * torch.sigmoid(1.702 * x)
    if name == "tanh":
        return lambda x: nn.functional.gelu(x, approximate="tanh")
    return nn.functional.gelu


class Block(nn.Module):
    def __init__(self, o):
        super().__init__()
        w, h = o["width"], o["mlp"]
        self.ln_1, self.ln_2 = nn.LayerNorm(w, eps=o["eps"]), nn.LayerNorm(w, eps=o["eps"])
        self.attn = nn.MultiheadAttention(w, o["heads"], batch_first=True)
        self.c_fc, self.c_proj = nn.Linear(w, h), nn.Linear(h, w)
        self.act = activation(o["act"])

    def forward(self, x, mask):
        y = self.ln_1(x)
        x = x + self.attn(y, y, y, attn_mask=mask, need_weights=False)[0]
        return x + self.c_proj(self.act(self.c_fc(self.ln_2(x))))


class Vision(nn.Module):
    def __init__(self, o, embed):
        super().__init__()
        w, (h, v), p = o["width"], o["image"], o["patch"]
        self.o = o
        self.conv = nn.Conv2d(3, w, p, stride=p, bias=o["pool"] == "map")
        self.cls = None if o["pool"] == "map" else nn.Parameter(torch.randn(w) * 0.3)
        n = (h // p) * (v // p) + (self.cls is not None)
        self.pos = nn.Parameter(torch.randn(n, w) * 0.3)
        self.ln_pre = nn.LayerNorm(w, eps=o["eps"]) if o["ln_pre"] else None
        self.blocks = nn.ModuleList(Block(o) for _ in range(o["layers"]))
        self.ln_post = nn.LayerNorm(w, eps=o["eps"])
        if o["pool"] == "map":
            self.head, self.probe = Block(o), nn.Parameter(torch.randn(w))
        else:
            self.proj = nn.Parameter(torch.randn(w, embed) * 0.3)

    def forward(self, pixels):
        x = self.conv(pixels).flatten(2).transpose(1, 2)
        if self.cls is not None:
            x = torch.cat([self.cls.expand(len(x), 1, -1), x], 1)
        x = x + self.pos
        if self.ln_pre is not None:
            x = self.ln_pre(x)
        for b in self.blocks:
            x = b(x, None)
        if self.o["pool"] == "map":
            x, b = self.ln_post(x), self.head
            q = b.attn(self.probe.expand(len(x), 1, -1), x, x, need_weights=False)[0]
            return (q + b.c_proj(b.act(b.c_fc(b.ln_2(q)))))[:, 0]
        if self.o["pool"] == "avg":  # normalised after pooling
            return self.ln_post(x[:, 1:].mean(1)) @ self.proj
        return self.ln_post(x[:, 0]) @ self.proj


class Text(nn.Module):
    def __init__(self, o, embed):
        super().__init__()
        w = o["width"]
        self.o = o
        self.tok = nn.Parameter(torch.randn(o["vocab"], w) * 0.5)
        self.pos = nn.Parameter(torch.randn(o["context"], w) * 0.3)
        self.blocks = nn.ModuleList(Block(o) for _ in range(o["layers"]))
        self.ln = nn.LayerNorm(w, eps=o["eps"])
        self.bias = nn.Parameter(torch.randn(embed) * 0.3) if o["bias"] else None
        self.proj = nn.Parameter(torch.randn(w, embed) * 0.3)

    def forward(self, ids):
        n = ids.shape[1]
        mask = torch.full((n, n), float("-inf"), dtype=torch.float64).triu(1) if self.o["causal"] else None
        x = self.tok[ids] + self.pos[:n]
        for b in self.blocks:
            x = b(x, mask)
        x = self.ln(x)
        pool = self.o["pool"]
        if pool == "last":
            x = x[:, -1]
        elif pool == "argmax":
            x = x[range(len(ids)), ids.argmax(1)]
        else:
            x = x[range(len(ids)), [row.tolist().index(pool) for row in ids]]
        x = x @ self.proj
        return x if self.bias is None else x + self.bias


def linear(d, key, m):
    d[key + ".weight"], d[key + ".bias"] = m.weight.data, m.bias.data


def open_clip_block(d, key, b):
    linear(d, key + "ln_1", b.ln_1)
    linear(d, key + "ln_2", b.ln_2)
    d[key + "attn.in_proj_weight"], d[key + "attn.in_proj_bias"] = b.attn.in_proj_weight.data, b.attn.in_proj_bias.data
    linear(d, key + "attn.out_proj", b.attn.out_proj)
    linear(d, key + "mlp.c_fc", b.c_fc)
    linear(d, key + "mlp.c_proj", b.c_proj)


def open_clip_vision(d, v):
    d["visual.class_embedding"], d["visual.positional_embedding"] = v.cls.data, v.pos.data
    d["visual.conv1.weight"], d["visual.proj"] = v.conv.weight.data, v.proj.data
    if v.ln_pre is not None:
        linear(d, "visual.ln_pre", v.ln_pre)
    linear(d, "visual.ln_post", v.ln_post)
    for i, b in enumerate(v.blocks):
        open_clip_block(d, f"visual.transformer.resblocks.{i}.", b)


def open_clip_text(d, t, at):
    d[at + "token_embedding.weight"], d[at + "positional_embedding"] = t.tok.data, t.pos.data
    linear(d, at + "ln_final", t.ln)
    for i, b in enumerate(t.blocks):
        open_clip_block(d, f"{at}transformer.resblocks.{i}.", b)
    if t.bias is None:
        d[at + "text_projection"] = t.proj.data
    else:
        d[at + "text_projection.weight"], d[at + "text_projection.bias"] = t.proj.data.T, t.bias.data


def timm_vision(d, v):
    at = "visual.trunk."
    linear(d, at + "patch_embed.proj", v.conv)
    d[at + "pos_embed"] = v.pos.data[None]
    for i, b in enumerate(v.blocks):
        k = f"{at}blocks.{i}."
        linear(d, k + "norm1", b.ln_1)
        linear(d, k + "norm2", b.ln_2)
        d[k + "attn.qkv.weight"], d[k + "attn.qkv.bias"] = b.attn.in_proj_weight.data, b.attn.in_proj_bias.data
        linear(d, k + "attn.proj", b.attn.out_proj)
        linear(d, k + "mlp.fc1", b.c_fc)
        linear(d, k + "mlp.fc2", b.c_proj)
    linear(d, at + "norm", v.ln_post)
    k, b, w = at + "attn_pool.", v.head, v.o["width"]
    d[k + "latent"] = v.probe.data[None, None]
    d[k + "q.weight"], d[k + "q.bias"] = b.attn.in_proj_weight.data[:w], b.attn.in_proj_bias.data[:w]
    d[k + "kv.weight"], d[k + "kv.bias"] = b.attn.in_proj_weight.data[w:], b.attn.in_proj_bias.data[w:]
    linear(d, k + "proj", b.attn.out_proj)
    linear(d, k + "norm", b.ln_2)
    linear(d, k + "mlp.fc1", b.c_fc)
    linear(d, k + "mlp.fc2", b.c_proj)


def hf_blocks(d, at, blocks, w):
    for i, b in enumerate(blocks):
        k = f"{at}encoder.layers.{i}."
        linear(d, k + "layer_norm1", b.ln_1)
        linear(d, k + "layer_norm2", b.ln_2)
        for j, n in enumerate("qkv"):
            d[f"{k}self_attn.{n}_proj.weight"] = b.attn.in_proj_weight.data[j * w:(j + 1) * w]
            d[f"{k}self_attn.{n}_proj.bias"] = b.attn.in_proj_bias.data[j * w:(j + 1) * w]
        linear(d, k + "self_attn.out_proj", b.attn.out_proj)
        linear(d, k + "mlp.fc1", b.c_fc)
        linear(d, k + "mlp.fc2", b.c_proj)


def hf_clip(d, v, t):
    at = "vision_model.embeddings."
    d[at + "class_embedding"], d[at + "position_embedding.weight"] = v.cls.data, v.pos.data
    d[at + "patch_embedding.weight"] = v.conv.weight.data
    d[at + "position_ids"] = torch.arange(len(v.pos))[None]
    linear(d, "vision_model.pre_layrnorm", v.ln_pre)
    linear(d, "vision_model.post_layernorm", v.ln_post)
    hf_blocks(d, "vision_model.", v.blocks, v.o["width"])
    d["visual_projection.weight"] = v.proj.data.T
    at = "text_model.embeddings."
    d[at + "token_embedding.weight"], d[at + "position_embedding.weight"] = t.tok.data, t.pos.data
    d[at + "position_ids"] = torch.arange(len(t.pos))[None]
    linear(d, "text_model.final_layer_norm", t.ln)
    hf_blocks(d, "text_model.", t.blocks, t.o["width"])
    d["text_projection.weight"] = t.proj.data.T


def case(root, name, what, vision, text, embed, write, configs, ids, siglip=False, half=False, torch_file=None):
    """Rounds all weights to what the file stores, runs in float64, writes folder and case."""
    torch.manual_seed(sum(map(ord, name)))
    v, t = Vision(vision, embed), Text(text, embed)
    with torch.no_grad():
        for p in list(v.parameters()) + list(t.parameters()):
            if p.dim() == 1:
                p.add_(torch.randn_like(p) * 0.2)
            p.copy_(p.half().float() if half else p)
    stored = {}
    write(stored, v, t)
    stored = {k: x.half() if half and x.dtype == torch.float32 and x.dim() > 1 else x.clone() for k, x in stored.items()}
    stored["logit_scale"], bias = torch.tensor(2.25), -3.5 if siglip else 0.0
    if siglip:
        stored["logit_bias"] = torch.tensor(bias)
    v, t = v.double(), t.double()
    v.blocks, t.blocks = v.blocks.double(), t.blocks.double()
    pixels = torch.randn(3, 3, *vision["image"])
    ids = torch.tensor(ids)
    with torch.no_grad():
        image, texts = v(pixels.double()), t(ids)
        norm = nn.functional.normalize
        logits = torch.tensor(2.25, dtype=torch.float64).exp() * norm(image) @ norm(texts).T + bias
    out = {"image": image, "text": texts, "image_norm": norm(image), "text_norm": norm(texts), "logits_per_image": logits}
    folder = os.path.join(root, name)
    os.makedirs(folder, exist_ok=True)
    weights = "open_clip_model.safetensors" if "open_clip_config.json" in configs else "model.safetensors"
    save(os.path.join(folder, weights), stored)
    save(os.path.join(folder, "tensors.safetensors"), {"pixels": pixels, "ids": ids, **out})
    if torch_file:  # as a distributed training run leaves it
        torch.save({"epoch": 3, "state_dict": {"module." + k: x for k, x in stored.items()}},
                   os.path.join(folder, torch_file))
    for file, value in configs.items():
        with open(os.path.join(folder, file), "w") as f:
            json.dump(value, f, indent=1)
    roles = {"pixels": pixels, "ids": ids}
    tensors = {k: {"dtype": DTYPES[x.dtype], "shape": list(x.shape), "role": "input" if k in roles else "output",
                   "meaning": k} for k, x in {**roles, **out}.items()}
    with open(os.path.join(folder, "case.json"), "w") as f:
        json.dump({"family": "prolip_model", "name": name, "what": what,
                   "reference": {"file": "tests/golden/make_variants.py", "function": "float64 run"},
                   "tolerance": {"default": {"abs": 2e-5, "rel": 2e-5}}, "tensors": tensors}, f, indent=1)


def main(root):
    base = {"eps": 1e-5, "ln_pre": True, "act": "gelu", "layers": 2}
    case(root, "hf_first_eos", "Hugging Face CLIP read at the first end token, which is not the largest id",
         {**base, "width": 24, "heads": 3, "mlp": 40, "image": (16, 16), "patch": 8, "pool": "cls"},
         {**base, "width": 16, "heads": 2, "mlp": 56, "vocab": 37, "context": 9, "pool": 5, "bias": False, "causal": True}, 20,
         lambda d, v, t: hf_clip(d, v, t),
         {"config.json": {"model_type": "clip", "architectures": ["CLIPModel"], "projection_dim": 20, "torch_dtype": "float32",
                          "text_config": {"model_type": "clip_text_model", "hidden_size": 16, "num_attention_heads": 2, "num_hidden_layers": 2,
                                          "intermediate_size": 56, "vocab_size": 37, "max_position_embeddings": 9, "hidden_act": "gelu",
                                          "eos_token_id": 5, "bos_token_id": 4, "pad_token_id": 5},
                          "vision_config": {"model_type": "clip_vision_model", "hidden_size": 24, "num_attention_heads": 3, "num_hidden_layers": 2,
                                            "intermediate_size": 40, "image_size": 16, "patch_size": 8, "hidden_act": "gelu"}}},
         [[4, 30, 36, 5, 5, 5, 5, 5, 5], [4, 9, 5, 36, 5, 12, 1, 2, 3], [4, 1, 2, 3, 6, 7, 8, 9, 5]],
         torch_file="pytorch_model.bin")
    case(root, "open_clip_average", "open_clip CLIPA: average pooling before the norm, no ln_pre, non-square, texts read last, unmasked",
         {**base, "ln_pre": False, "width": 32, "heads": 2, "mlp": 96, "image": (16, 24), "patch": 8, "pool": "avg"},
         {**base, "width": 24, "heads": 2, "mlp": 96, "vocab": 31, "context": 7, "pool": "last", "bias": False, "causal": False}, 28,
         lambda d, v, t: (open_clip_vision(d, v), open_clip_text(d, t, "")),
         {"open_clip_config.json": {"model_cfg": {
             "embed_dim": 28,
             "vision_cfg": {"image_size": [16, 24], "layers": 2, "width": 32, "head_width": 16, "mlp_ratio": 3, "patch_size": 8,
                            "no_ln_pre": True, "pool_type": "avg", "final_ln_after_pool": True},
             "text_cfg": {"context_length": 7, "vocab_size": 31, "width": 24, "heads": 2, "layers": 2, "pool_type": "last",
                          "no_causal_mask": True}},
             "preprocess_cfg": {"mean": [0.5, 0.5, 0.5], "std": [0.5, 0.5, 0.5], "interpolation": "bicubic", "resize_mode": "squash"}}},
         [[1, 2, 3, 4, 5, 6, 7], [30, 2, 9, 4, 8, 6, 0], [11, 12, 13, 0, 0, 0, 0]])
    siglip = {"eps": 1e-6, "ln_pre": False, "layers": 2}
    case(root, "open_clip_siglip", "open_clip SigLIP: timm image tower with erf GELU, text tower with tanh GELU and another width",
         {**siglip, "act": "gelu", "width": 24, "heads": 2, "mlp": 60, "image": (16, 16), "patch": 8, "pool": "map"},
         {**siglip, "act": "tanh", "width": 32, "heads": 4, "mlp": 96, "vocab": 29, "context": 6, "pool": "last", "bias": True, "causal": False}, 24,
         lambda d, v, t: (timm_vision(d, v), open_clip_text(d, t, "text.")),
         {"open_clip_config.json": {"model_cfg": {
             "embed_dim": 24, "init_logit_bias": -10, "custom_text": True,
             "vision_cfg": {"image_size": 16, "timm_model_name": "vit_base_patch16_siglip_224", "timm_model_pretrained": False,
                            "timm_pool": "map", "timm_proj": "none",
                            "timm_model_kwargs": {"img_size": 16, "patch_size": 8, "embed_dim": 24, "depth": 2, "num_heads": 2, "mlp_ratio": 2.5}},
             "text_cfg": {"context_length": 6, "vocab_size": 29, "hf_tokenizer_name": "timm/ViT-B-16-SigLIP",
                          "tokenizer_kwargs": {"clean": "canonicalize"}, "width": 32, "heads": 4, "layers": 2, "mlp_ratio": 3,
                          "no_causal_mask": True, "proj_bias": True, "pool_type": "last", "norm_kwargs": {"eps": 1e-6},
                          "act_kwargs": {"approximate": "tanh"}}},
             "preprocess_cfg": {"mean": [0.5, 0.5, 0.5], "std": [0.5, 0.5, 0.5], "interpolation": "bicubic", "resize_mode": "squash"}}},
         [[1, 2, 3, 4, 5, 6], [28, 2, 9, 1, 1, 1], [11, 12, 13, 0, 7, 20]], siglip=True)

    def openai(d, v, t):
        open_clip_vision(d, v)
        open_clip_text(d, t, "")
        d["input_resolution"], d["context_length"], d["vocab_size"] = torch.tensor(24), torch.tensor(8), torch.tensor(23)
    case(root, "openai_state_dict", "OpenAI's bare state dict, half precision, architecture from its shapes",
         {**base, "layers": 1, "act": "quick_gelu", "width": 64, "heads": 1, "mlp": 256, "image": (24, 24), "patch": 8, "pool": "cls"},
         {**base, "layers": 2, "act": "quick_gelu", "width": 64, "heads": 1, "mlp": 256, "vocab": 23, "context": 8, "pool": "argmax", "bias": False, "causal": True}, 32,
         openai, {}, [[21, 4, 5, 22, 0, 0, 0, 0], [21, 22, 0, 0, 0, 0, 0, 0], [21, 1, 2, 3, 4, 5, 6, 22]], half=True)


if __name__ == "__main__":
    main(sys.argv[1])
