#!/usr/bin/python3 -B
"""Times PyTorch eager on a model directory: one tower, or one whole training step. Prints JSON.

    torch_bench.py encode --model DIR --tower image|text --batch N [--seconds S] [--repeats N]
    torch_bench.py train  --model DIR --batch N [...]

Keys as in `penumbra bench --json` (median_s, min_s, max_s, items_per_s, peak_rss_mb), and what was
really loaded: `blas` and `openmp` are the libraries in /proc/self/maps. The environment is the
caller's business (bench/compare.py): OMP_NUM_THREADS, OMP_WAIT_POLICY, GOMP_SPINCOUNT and
LD_LIBRARY_PATH act before this program starts.
"""
import argparse
import json
import os
import re
import statistics
import time

import torch

import torch_prolip


def loaded_libraries(pattern):
    with open("/proc/self/maps", encoding="utf-8") as f:
        paths = {line.split()[-1] for line in f if "/" in line}
    return sorted(p for p in paths if re.search(pattern, os.path.basename(p)))


def peak_rss_mb():
    with open("/proc/self/status", encoding="utf-8") as f:
        for line in f:
            if line.startswith("VmHWM"):
                return int(line.split()[1]) * 1024 / 1e6
    return float("nan")


def image_size(config):
    size = config["vision_cfg"]["image_size"]
    return tuple(size) if isinstance(size, list) else (size, size)


def random_pixels(config, n):
    return torch.randn(n, 3, *image_size(config))


def random_ids(config, n):
    text = config["text_cfg"]
    return torch.randint(3, text["vocab_size"], (n, text["context_length"]))


def make_encode(args):
    model = torch_prolip.load(args.model, args.attention).eval()
    config = torch_prolip.read_config(args.model)
    if args.tower == "image":
        inputs, encode = random_pixels(config, args.batch), model.encode_image
    else:
        inputs, encode = random_ids(config, args.batch), model.encode_text

    def work():
        with torch.inference_mode():
            encode(inputs)

    return work


def make_train(args):
    """Masked pass as in `penumbra train`: an eighth of the batch, a quarter of the patches."""
    model = torch_prolip.load(args.model, args.attention).train()
    config = torch_prolip.read_config(args.model)
    optimizer = torch_prolip.make_adamw(model)
    pixels, ids = random_pixels(config, args.batch), random_ids(config, args.batch)
    n_masked = max(1, int(args.batch * 0.125))
    height, width = image_size(config)
    patch = config["vision_cfg"]["patch_size"]
    n_patches = (height // patch) * (width // patch)

    def work():
        kept = torch.randperm(n_patches)[:max(1, int(n_patches * 0.25))].sort().values
        masked = ids[:n_masked].clone()
        masked[torch.rand(masked.shape) < 0.75] = 0
        torch_prolip.train_step(model, optimizer, (pixels, ids, masked, kept))

    return work


def measure(work, seconds, repeats):
    work()  # not counted: touches pages, makes the optimiser's state
    times, start = [], time.perf_counter()
    while len(times) < repeats or time.perf_counter() - start < seconds:
        before = time.perf_counter()
        work()
        times.append(time.perf_counter() - before)
    return times


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("what", choices=["encode", "train"])
    p.add_argument("--model", required=True)
    p.add_argument("--tower", choices=["image", "text"], default="image")
    p.add_argument("--batch", type=int, default=1)
    p.add_argument("--seconds", type=float, default=3)
    p.add_argument("--repeats", type=int, default=5)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--attention", choices=["products", "module"], default="products")
    args = p.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(args.threads)
    work = make_encode(args) if args.what == "encode" else make_train(args)
    times = measure(work, args.seconds, args.repeats)
    median = statistics.median(times)
    print(json.dumps({
        "what": args.what, "model": args.model, "batch": args.batch, "threads": args.threads,
        "repeats": len(times), "median_s": median, "min_s": min(times), "max_s": max(times),
        "items_per_s": args.batch / median, "peak_rss_mb": peak_rss_mb(),
        "torch": torch.__version__, "attention": args.attention,
        "blas": loaded_libraries(r"blas|mkl"), "openmp": loaded_libraries(r"^lib(gomp|omp|iomp)"),
        "environment": {k: os.environ[k] for k in
                        ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "LD_LIBRARY_PATH", "LD_PRELOAD")
                        if k in os.environ}}))


if __name__ == "__main__":
    main()
