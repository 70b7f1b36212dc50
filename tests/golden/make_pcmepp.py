"""Makes tests/golden/prolip_model/pcmepp_two_paths: a small folder as PCME++ is released, what its
towers give, and the gradients of all their weights.

Written from the paper and the names of the released files with torch's own modules in float64, on
the blocks of make_variants.py, and sharing nothing with the C code. Needs torch (python3-torch of
Debian); run once, the case is kept in the repository:

    python3 tests/golden/make_pcmepp.py tests/golden/prolip_model
"""
import json
import math
import os
import sys

import torch
from torch import nn

from make_variants import DTYPES, Block, Text, Vision, open_clip_block, open_clip_text, open_clip_vision, save

NAME = "pcmepp_two_paths"
A, B = 3.5, 4.25  # negative_scale and shift


def two_paths(tower, x, mask):
    """(mean's tokens, log-variance's tokens): the last blocks of the tower, and as many others."""
    n_shared = len(tower.blocks) - len(tower.unc)
    for b in tower.blocks[:n_shared]:
        x = b(x, mask)
    v = x
    for b in tower.blocks[n_shared:]:
        x = b(x, mask)
    for b in tower.unc:
        v = b(v, mask)
    return x, v


def image(v, pixels):
    x = v.conv(pixels).flatten(2).transpose(1, 2)
    x = v.ln_pre(torch.cat([v.cls.expand(len(x), 1, -1), x], 1) + v.pos)
    m, s = two_paths(v, x, None)
    return v.ln_post(m[:, 0]) @ v.proj, s[:, 0] @ v.unc_proj


def text(t, ids):
    n = ids.shape[1]
    mask = torch.full((n, n), float("-inf"), dtype=torch.float64).triu(1)
    m, s = two_paths(t, t.tok[ids] + t.pos[:n], mask)
    at = [row.index(max(row)) for row in ids.tolist()]
    return t.ln(m)[range(len(ids)), at] @ t.proj, s[range(len(ids)), at] @ t.unc_proj


def released_names(v, t):
    d = {}
    open_clip_vision(d, v)
    open_clip_text(d, t, "")
    for at, tower in (("visual.", v), ("", t)):
        for i, b in enumerate(tower.unc):
            open_clip_block(d, f"{at}uncertainty_transformer.resblocks.{i}.", b)
    d["visual.uncertainty_proj"], d["uncertainty_text_projection"] = v.unc_proj.data, t.unc_proj.data
    return d


def gradients(v, t):
    """The same names over the gradients: each weight is made its gradient for the call."""
    with torch.no_grad():
        for p in list(v.parameters()) + list(t.parameters()):
            p.copy_(p.grad)
    return {k: x.clone() for k, x in released_names(v, t).items()}


def main(root):
    torch.manual_seed(1305)
    base = {"eps": 1e-5, "act": "gelu"}
    vo = {**base, "width": 24, "heads": 3, "mlp": 60, "image": (16, 24), "patch": 8, "pool": "cls", "ln_pre": True, "layers": 4}
    to = {**base, "width": 16, "heads": 2, "mlp": 64, "vocab": 31, "context": 9, "pool": "argmax", "bias": False, "layers": 3}
    v, t = Vision(vo, 20), Text(to, 20)
    v.unc, t.unc = nn.ModuleList(Block(vo) for _ in range(2)), nn.ModuleList(Block(to) for _ in range(1))
    v.unc_proj, t.unc_proj = (nn.Parameter(torch.randn(o["width"], 20) * 0.2) for o in (vo, to))
    with torch.no_grad():
        for p in list(v.parameters()) + list(t.parameters()):
            if p.dim() == 1:
                p.add_(torch.randn_like(p) * 0.2)
    stored = {k: x.clone() for k, x in released_names(v, t).items()}
    stored["logit_scale"] = torch.tensor(2.6592)
    stored["negative_scale"], stored["shift"] = torch.tensor([A]), torch.tensor([B])
    v, t = v.double(), t.double()
    pixels = torch.randn(3, 3, *vo["image"])
    # the end token 30 last, early with text behind it, twice
    ids = torch.tensor([[29, 4, 5, 6, 7, 8, 9, 2, 30], [29, 11, 30, 3, 12, 0, 0, 0, 0], [29, 30, 1, 17, 30, 5, 5, 0, 0]])
    out = {}
    (out["image.mean"], out["image.std"]), (out["text.mean"], out["text.std"]) = image(v, pixels.double()), text(t, ids)
    (sum((x * x).sum() for x in out.values()) / 2).backward()
    out = {k: x.detach() for k, x in out.items()}
    for side in ("image", "text"):
        out[side + "_norm.mean"] = nn.functional.normalize(out[side + ".mean"])
        out[side + "_norm.std"] = out[side + ".std"]
    # -a csd + b = 2a S + b - 2a for means of length 1
    out["logit_scale"], out["logit_bias"] = (torch.tensor(x, dtype=torch.float64) for x in (2 * A, B - 2 * A))
    folder = os.path.join(root, NAME)
    os.makedirs(folder, exist_ok=True)
    save(os.path.join(folder, "model.safetensors"), stored)
    save(os.path.join(folder, "tensors.safetensors"), {"pixels": pixels, "ids": ids, **out})
    save(os.path.join(folder, "gradients.safetensors"), gradients(v, t))
    config = {"embed_dim": 20,
              "vision_cfg": {"image_size": list(vo["image"]), "layers": 4, "width": 24, "head_width": 8, "mlp_ratio": 2.5,
                             "patch_size": 8, "unc_layers": 2},
              "text_cfg": {"context_length": 9, "vocab_size": 31, "width": 16, "heads": 2, "layers": 3, "unc_layers": 1}}
    with open(os.path.join(folder, "config.json"), "w") as f:
        json.dump(config, f, indent=2, sort_keys=True)
    roles = {"pixels": pixels, "ids": ids}
    tensors = {k: {"dtype": DTYPES[x.dtype], "shape": list(x.shape), "role": "input" if k in roles else "output",
                   "meaning": k} for k, x in {**roles, **out}.items()}
    with open(os.path.join(folder, "case.json"), "w") as f:
        json.dump({"family": "prolip_model", "name": NAME, "what": "PCME++ under its released names: two paths from a shared trunk",
                   "reference": {"file": "tests/golden/make_pcmepp.py", "function": "float64 run"},
                   "tolerance": {"default": {"abs": 2e-5, "rel": 2e-5}}, "tensors": tensors}, f, indent=1)
    assert all(math.isfinite(x.abs().max()) for x in out.values())


if __name__ == "__main__":
    main(sys.argv[1])
