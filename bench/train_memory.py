#!/usr/bin/env python3
"""What train --memory foresees of a run, beside what the run takes.

    bench/train_memory.py --penumbra build/penumbra [--only NAME...] [--large]

Every row is a training of six steps (where they are long, of one or two) on random pixels, with room for one forward pass and then with
less, so that it is cut. Prints bytes foreseen and taken (VmHWM), the quotient, and what was chosen.
--large has ViT-B/16 too, which takes 4 GB.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

ROWS = [
    ("tiny 128", ["--model", "tiny", "--batch-size", "128"]),
    ("tiny 128, less", ["--model", "tiny", "--batch-size", "128", "--memory", "130M"]),
    ("tiny 1024", ["--model", "tiny", "--batch-size", "1024", "--max-steps", "2"]),
    ("tiny 1024, less", ["--model", "tiny", "--batch-size", "1024", "--memory", "300M",
                         "--max-steps", "2"]),
    ("tiny 256, 4 threads, EMA", ["--model", "tiny", "--batch-size", "256", "--threads", "4",
                                  "--workers", "3", "--ema-decay", "0.99"]),
    ("384 wide, 32", ["--model", "tiny", "--override", json.dumps({
        "embed_dim": 256, "vision_cfg": {"layers": 6, "width": 384, "head_width": 64},
        "text_cfg": {"layers": 6, "width": 384, "heads": 6}}), "--batch-size", "32"]),
    ("pcme-tiny 64", ["--objective", "pcme", "--batch-size", "64"]),
    ("pvse-tiny 64", ["--objective", "pvse", "--batch-size", "64"]),
    ("pcmepp-tiny 128, mixed", ["--objective", "pcmepp", "--batch-size", "128", "--mix-share",
                                "0.25"]),
    ("pcmepp-tiny 128, less", ["--objective", "pcmepp", "--batch-size", "128", "--memory", "120M"]),
]
LARGE = [
    ("ViT-B-16 8", ["--model", "ViT-B-16", "--batch-size", "8", "--max-steps", "1"]),
    ("ViT-B-16 8, amp_bf16", ["--model", "ViT-B-16", "--batch-size", "8", "--max-steps", "1",
                              "--precision", "amp_bf16"]),
    ("ViT-B-16 16, less", ["--model", "ViT-B-16", "--batch-size", "16", "--memory", "3600M",
                           "--max-steps", "1"]),
]


def row(args, folder, number, name, words):
    """One training: what it said and took."""
    run = "r%d" % number
    command = [args.penumbra, "train", "--dataset-type", "synthetic", "--train-num-samples", "2048",
               "--tokenizer", os.path.join(folder, "tok.json"), "--logs", folder, "--name", run,
               "--max-steps", "6", "--json", "-q", "--memory", "16G", "--threads", "2"] + words
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        print("%-26s %s" % (name, done.stderr.strip()))
        return None
    result = json.loads(done.stdout)
    with open(os.path.join(folder, run, "out.log")) as f:
        way = re.search(r"Memory: (.*?), about .*for ([\d.]+) times", f.read())
    share = result["estimated_bytes"] / result["peak_bytes"]
    print("%-26s %9.1f %9.1f %8.3f   %s, %s times" % (
        name, result["estimated_bytes"] / 1e6, result["peak_bytes"] / 1e6, share, way.group(1),
        way.group(2)), flush=True)
    return share


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--penumbra", default="build/penumbra")
    parser.add_argument("--only", nargs="+", default=[])
    parser.add_argument("--large", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="penumbra-memory-") as folder:
        words = os.path.join(folder, "captions.txt")
        with open(words, "w") as f:
            f.write("a picture of random pixels\n" * 50)
        subprocess.run([args.penumbra, "tokenizer", "train", "--captions", words, "--vocab-size",
                        "280", "--out", os.path.join(folder, "tok.json"), "-q"], check=True,
                       stdout=subprocess.DEVNULL)
        print("%-26s %9s %9s %8s   %s" % ("run", "foreseen", "taken MB", "quotient", "chosen"))
        shares = [row(args, folder, i, name, words)
                  for i, (name, words) in enumerate(ROWS + (LARGE if args.large else []))
                  if not args.only or any(o in name for o in args.only)]
    shares = [s for s in shares if s is not None]
    print("quotients from %.3f to %.3f" % (min(shares), max(shares)))
    sys.exit(0 if all(0.9 <= s <= 1.1 for s in shares) else 1)


if __name__ == "__main__":
    main()
