#!/usr/bin/env -S python3 -B
"""Claim: a ProLIP training step takes 0.75-0.80 of PyTorch's time and 0.5-0.8 of its memory.

A step is forward, all losses with the masked pass, backward, clipping and AdamW. Ours includes what
its loader does meanwhile (reading and augmenting rendered scenes); the peer's inputs lie ready.
"""
import sys

import benchlib
import compare


def run():
    cases = [compare.Case("ViT-B/16, batch 8", "train", benchlib.vit_b_16(), 8, time=0.80,
                          memory=0.8, rounds=3, seconds=4, repeats=2),
             compare.Case("small, batch 128", "train", benchlib.small_model(), 128, time=0.75,
                          memory=0.5)]
    return compare.run_cases("train_step", "one ProLIP training step, f32", cases)


if __name__ == "__main__":
    sys.exit(benchlib.main(run))
