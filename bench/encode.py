#!/usr/bin/env -S python3 -B
"""Claim: ViT-B/16 in f32 encodes pictures and captions in at most 0.70-0.80 of PyTorch's time."""
import os
import sys

import benchlib
import compare


def run():
    model = benchlib.vit_b_16()
    cases = [compare.Case("image, batch 1", "encode", model, 1, "image", time=0.75),
             compare.Case("image, batch 8", "encode", model, 8, "image", time=0.80),
             compare.Case("image, batch 32", "encode", model, 32, "image", time=0.70, rounds=3),
             compare.Case("text, batch 1", "encode", model, 1, "text", time=0.75),
             compare.Case("text, batch 64", "encode", model, 64, "text", time=0.75, rounds=3)]
    only = os.environ.get("BENCH_ONLY")  # "text": the cases whose title begins so
    cases = [c for c in cases if only is None or c.title.startswith(only)]
    return compare.run_cases("encode", "encoding with ViT-B/16, 224 px, 64 tokens, f32", cases)


if __name__ == "__main__":
    sys.exit(benchlib.main(run))
