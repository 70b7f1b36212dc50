#!/usr/bin/python3 -B
"""The learning peer: trains ProLIP with PyTorch on the data and settings of `penumbra train`.

    torch_train.py --model DIR --train-data DIR [--steps 600] [--seed N] [--out DIR]
        trains from the weights in DIR (made by `penumbra init`) and writes a model directory that
        penumbra embeds with
    torch_train.py --model DIR --replay FILE
        repeats the steps that bench/dump_steps.c recorded, from the same weights and batches, and
        compares losses; the exit status is 1 when one differs by more than --tolerance (1e-3)

The recipe is the small one (docs/commands/train.md): batch 128, AdamW 1e-3, betas 0.9 / 0.95, decay
0.1 on matrices, clip 1, warm-up 40, cosine to 2%; caption level uniform, 30% in a template; zoom
0.85-1.25, shift 12.5%, rotation 0.2, flip except in groups without one, gain 15%; an eighth of the
batch masked (a quarter of the patches kept, tokens deleted with 0.75). Random numbers are numpy's,
so a run differs from ours by its draws. Pictures are decoded once before the clock starts; one
bilinear tap a pixel where ours averages up to four.
"""
import argparse
import glob
import io
import json
import math
import os
import resource
import shutil
import sys
import tarfile
import time

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image

import safetensors_io
import torch_prolip
from caption_tokens import Tokenizer

TEMPLATES = ["a picture of {}", "an image of {}", "an icon of {}", "this shows {}",
             "{} in a picture", "a small picture of {}"]
NO_FLIP_GROUPS = ("Symbols", "Flags", "shapes")


# ---- data ----

class Pictures:
    """Every sample of a folder of tar shards, decoded: pixels (N,3,H,W) uint8 and its record."""

    def __init__(self, folder):
        pictures, self.records = [], []
        for shard in sorted(glob.glob(os.path.join(folder, "*.tar"))):
            members = {}
            with tarfile.open(shard) as tar:
                for m in tar:
                    members[m.name] = tar.extractfile(m).read()
            for name in sorted(members):
                if name.endswith(".json"):
                    key = name[:-len(".json")]
                    image = Image.open(io.BytesIO(members[key + ".png"])).convert("RGB")
                    pictures.append(np.asarray(image).transpose(2, 0, 1))
                    self.records.append(json.loads(members[name]))
        self.pixels = torch.from_numpy(np.stack(pictures))

    def __len__(self):
        return len(self.records)


def draw_caption(record, rng):
    levels = sorted(set(record["levels"]))
    level = levels[rng.integers(len(levels))]
    choices = [c for c, at in zip(record["captions"], record["levels"]) if at == level]
    text = choices[rng.integers(len(choices))]
    if rng.random() < 0.3:
        text = TEMPLATES[rng.integers(len(TEMPLATES))].replace("{}", text)
    return text


def augment(pixels, records, size, rng, mean, std):
    """source = centre + (box/size) F R(-angle) (o - size/2 - shift) / zoom, read bilinearly."""
    n = len(pixels)
    zoom = np.exp(rng.uniform(math.log(0.85), math.log(1.25), n))
    angle = rng.uniform(-0.2, 0.2, n)
    shift = rng.uniform(-0.125, 0.125, (n, 2)) * 2  # grid coordinates span 2
    flip = np.array([-1.0 if r.get("group") not in NO_FLIP_GROUPS and rng.random() < 0.5 else 1.0
                     for r in records])
    c, s = np.cos(angle), np.sin(angle)
    m = np.empty((n, 2, 3), np.float32)
    m[:, 0, 0], m[:, 0, 1] = flip * c / zoom, flip * s / zoom
    m[:, 1, 0], m[:, 1, 1] = -s / zoom, c / zoom
    m[:, :, 2] = -(m[:, :, 0] * shift[:, :1] + m[:, :, 1] * shift[:, 1:])
    grid = F.affine_grid(torch.from_numpy(m), (n, 3, size, size), align_corners=False)
    x = F.grid_sample(pixels.float(), grid, padding_mode="border", align_corners=False)
    gain = torch.from_numpy(rng.uniform(0.85, 1.15, (n, 3, 1, 1)).astype(np.float32))
    return ((x * gain).clamp_(0, 255) / 255 - mean) / std


def delete_tokens(ids, tokenizer, rng):
    out = np.full_like(ids, tokenizer.pad)
    for row, result in zip(ids, out):
        left = [i for i in row if i in tokenizer.special or rng.random() >= 0.75]
        result[:len(left)] = left
    return out


class Batches:
    """Endless batches in the order and with the draws of one seed."""

    def __init__(self, pictures, config, preprocess, tokenizer, batch, seed):
        self.pictures, self.tokenizer, self.batch = pictures, tokenizer, batch
        self.rng = np.random.default_rng(seed)
        self.size = config["vision_cfg"]["image_size"]
        self.length = config["text_cfg"]["context_length"]
        self.n_patches = (self.size // config["vision_cfg"]["patch_size"])**2
        self.mean = torch.tensor(preprocess["image_mean"]).view(1, 3, 1, 1)
        self.std = torch.tensor(preprocess["image_std"]).view(1, 3, 1, 1)
        self.order = np.empty(0, np.int64)

    def next(self):
        if len(self.order) < self.batch:
            self.order = self.rng.permutation(len(self.pictures))
        rows, self.order = self.order[:self.batch], self.order[self.batch:]
        records = [self.pictures.records[i] for i in rows]
        pixels = augment(self.pictures.pixels[torch.from_numpy(rows)], records, self.size, self.rng,
                         self.mean, self.std)
        ids = np.array([self.tokenizer.encode(draw_caption(r, self.rng), self.length)
                        for r in records])
        masked = delete_tokens(ids[:max(1, self.batch // 8)], self.tokenizer, self.rng)
        kept = np.sort(self.rng.permutation(self.n_patches)[:max(1, self.n_patches // 4)])
        return pixels, torch.from_numpy(ids), torch.from_numpy(masked), torch.from_numpy(kept)


# ---- the run ----

def learning_rate(step, steps, base=1e-3, warmup=40, least=0.02):
    if step < warmup:
        return base * (step + 1) / warmup
    share = min(1, (step - warmup) / max(1, steps - warmup))
    return base * (least + (1 - least) * 0.5 * (1 + math.cos(math.pi * share)))


def set_rate(optimizer, rate):
    for group in optimizer.param_groups:
        group["lr"] = rate


def write_model(model, source, out):
    os.makedirs(out, exist_ok=True)
    for name in ("config.json", "tokenizer.json", "preprocessor_config.json"):
        shutil.copy(os.path.join(source, name), os.path.join(out, name))
    arrays = {k: v.detach().numpy() for k, v in model.state_dict().items()}
    safetensors_io.save(os.path.join(out, "model.safetensors"), arrays, {"format": "pt"})


def train(args):
    model = torch_prolip.load(args.model, args.attention).train()
    with open(os.path.join(args.model, "preprocessor_config.json"), encoding="utf-8") as f:
        preprocess = json.load(f)
    tokenizer = Tokenizer(os.path.join(args.model, "tokenizer.json"))
    batches = Batches(Pictures(args.train_data), torch_prolip.read_config(args.model), preprocess,
                      tokenizer, args.batch, args.seed)
    optimizer = torch_prolip.make_adamw(model)
    weights = {"inclusion": 0, "masked": 0, "vib": 0} if args.ppcl_only else None
    start, values = time.perf_counter(), {}
    for step in range(args.steps):
        set_rate(optimizer, learning_rate(step, args.schedule or args.steps))
        values = torch_prolip.train_step(model, optimizer, batches.next(), weights=weights)
        if step == 0 or (step + 1) % 50 == 0:
            print(f"step {step + 1}  loss {values['loss']:.4f}  "
                  f"{time.perf_counter() - start:.1f} s", file=sys.stderr)
    seconds = time.perf_counter() - start
    if args.out:
        write_model(model, args.model, args.out)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
    print(json.dumps({"steps": args.steps, "seconds": seconds, "peak_rss_mb": peak,
                      "losses": values, "out": args.out}))
    return 0


def replay(args):
    model = torch_prolip.load(args.model, args.attention).train()
    optimizer = torch_prolip.make_adamw(model)
    file = safetensors_io.load(args.replay)
    n_steps = 1 + max(int(name.split(".")[1]) for name in file)
    worst = 0.0
    print("step  loss here     loss there    difference   largest of its terms' differences")
    for k in range(n_steps):
        def get(name):
            return torch.from_numpy(file[f"step.{k}.{name}"])
        set_rate(optimizer, float(get("lr")))
        batch = (get("pixels"), get("ids").long(), get("masked_ids").long(), get("kept").long())
        here = torch_prolip.train_step(model, optimizer, batch)
        there = {n: float(file[f"step.{k}.{n}"]) for n in here if f"step.{k}.{n}" in file}
        difference = abs(here["loss"] - there["loss"])
        terms = max(abs(here[n] - there[n]) for n in there if n not in ("loss", "grad_norm"))
        worst = max(worst, difference)
        print(f"{k:4d}  {here['loss']:.6f}  {there['loss']:12.6f}  {difference:12.2e} "
              f"{terms:12.2e}")
    is_met = worst <= args.tolerance
    print(f"largest difference {worst:.2e} over {n_steps} steps, {args.tolerance:g} allowed: "
          f"{'met' if is_met else 'not met'}")
    return 0 if is_met else 1


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--model", required=True)
    p.add_argument("--train-data")
    p.add_argument("--replay")
    p.add_argument("--tolerance", type=float, default=1e-3)
    p.add_argument("--steps", type=int, default=600)
    p.add_argument("--schedule", type=int, default=0, help="steps of the schedule, if not all run")
    p.add_argument("--batch", type=int, default=128)
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--out")
    p.add_argument("--ppcl-only", action="store_true", help="no inclusion, no VIB")
    p.add_argument("--attention", choices=["products", "module"], default="products")
    args = p.parse_args()
    torch.manual_seed(args.seed)
    torch.set_num_threads(args.threads)
    if args.replay:
        return replay(args)
    if not args.train_data:
        p.error("--train-data or --replay is wanted")
    return train(args)


if __name__ == "__main__":
    sys.exit(main())
