#!/usr/bin/env -S python3 -B
"""Claim: AsymVLM tells vague captions of a frozen model from exact ones, and retrieval does not suffer.

    adapt_learning.py [--sets shapes emoji] [--seeds 5] [--methods all] [--reuse] [--save]

For each set: a model trained with the plain pairwise sigmoid loss (the control of learning.py: no
inclusion, no VIB), its embeddings of train, val and test with captions of all levels mixed, those
of captions with their lengths, then `adapt compare`: every method with its defaults and every seed,
beside an untrained head and the length of captions. R@1 is of captions that look for a picture; an
interval is of the difference to the frozen rows, over pictures with their captions.

Targets are of AsymVLM on shapes: S <= -0.90 on average, R@1 not below the frozen model's (mean of
the difference at least 0), a training within a minute. --save writes
bench/results/adapt_learning.txt.
"""
import argparse
import csv
import os
import subprocess
import sys

import benchlib
import learning
from benchlib import WORK, penumbra

MODEL_SEED = 1
ASYMVLM = ("asymvlm-vmf", "asymvlm-ps")
FIXED = {"steps": 600}


class Frozen:
    """A plain model's embeddings of the three splits."""

    def __init__(self, name, args):
        model = learning.Run(name, "control", MODEL_SEED,
                             argparse.Namespace(reuse=args.reuse, **FIXED))
        self.data, self.model = model.data, model.model
        self.dir = os.path.join(WORK, "frozen-" + name)
        if not args.reuse:
            subprocess.run(["rm", "-rf", self.dir], check=True)
        self.options = [w for split in ("train", "val", "test") for w in self.embed(split)]

    def embed(self, split):
        """Options of adapt compare for a split."""
        prefix = "--" if split == "train" else "--%s-" % split
        inputs = {"images": ["--images", os.path.join(self.data, split)],
                  "texts": ["--texts", os.path.join(self.data, split, "captions.jsonl"), "--raw"]}
        options = []
        for kind, what in inputs.items():
            path = os.path.join(self.dir, "%s.%s.safetensors" % (split, kind))
            if not os.path.exists(path):
                os.makedirs(self.dir, exist_ok=True)
                penumbra("embed", "--model", self.model, *what, "--batch-size", 64, "--out", path,
                         "--quiet", wait="sleeping")
            options += [prefix + kind, path]
        return [*options, prefix + "truth", os.path.join(self.data, "truth", split + ".pairs")]


def compare(name, frozen, args):
    out = os.path.join(WORK, "compared-" + name)
    subprocess.run(["rm", "-rf", out], check=True)
    result = penumbra("adapt", "compare", "--methods", *args.methods, *frozen.options, "--seeds",
                      args.seeds, "--out", out, "--json", "--quiet", wait="sleeping").json()
    return result, differences(os.path.join(out, "figures.csv"))


def differences(path):
    """Interval of the difference to the frozen rows by method."""
    with open(path, encoding="utf-8", newline="") as f:
        return {row["model"]: (float(row["difference_low"]), float(row["difference_high"]))
                for row in csv.DictReader(f)
                if row["direction"] == "text_to_image" and row["figure"] == "recall@1"
                and row["difference_low"]}


def number(x, form="%.3f"):
    return form % x if x is not None else "-"


def row_of(m, apart):
    low, high = apart.get(m["method"], (None, None))
    return [m["method"], m["seeds"], number(100 * m["t2i_r1"], "%.1f"),
            number(m["t2i_difference"] and 100 * m["t2i_difference"], "%+.1f"),
            "%+.1f .. %+.1f" % (100 * low, 100 * high) if low is not None else "-",
            number(m["spearman_s"]), number(m["r2"]), number(m["minus_s_r2"]),
            number(100 * m["i2t_r1"], "%.1f"), number(m["learn_s"], "%.1f")]


def verdicts(report, by_name, apart):
    for name in ASYMVLM:
        m = by_name.get(name)
        if m is None:
            continue
        s, r1, took = m["spearman_s"], m["t2i_difference"], m["learn_s"]
        low, high = apart[name]
        report.say("%s: S %.3f, target <= -0.90  %s; R@1 %+.1f to frozen (95%% from %+.1f to %+.1f), "
                   "target >= 0  %s; %.0f s a training, target <= 60  %s" % (
                       name, s, report.verdict(s <= -0.90, name + ": S", s, "<= -0.90"),
                       100 * r1, 100 * low, 100 * high,
                       report.verdict(r1 >= 0, name + ": R@1 to frozen", r1, ">= 0"), took,
                       report.verdict(took <= 60, name + ": seconds", took, "<= 60")))


def what_holds(report, by_name):
    """Which methods order captions better than the length of captions does."""
    bar = by_name["length"]["minus_s_r2"]
    above = [n for n, m in by_name.items() if m["kind"] == "method" and (m["minus_s_r2"] or 0) > bar]
    report.say("-S R2 above that of caption length (%.3f): %s" % (bar, ", ".join(above) or "none"))


def run_set(report, name, args):
    frozen = Frozen(name, args)
    result, apart = compare(name, frozen, args)
    by_name = {m["method"]: m for m in result["methods"]}
    report.say()
    report.say("-- %s: %d pictures, %d captions of all levels, %d seeds --" % (
        name, result["n_images"], result["n_texts"], args.seeds))
    report.table(["captions look for pictures", "seeds", "R@1 %", "to frozen", "95%", "S", "R2",
                  "-S R2", "i2t R@1 %", "s"], [row_of(m, apart) for m in result["methods"]])
    for absent in result["absent"]:
        report.say("%s: %s" % (absent["method"], absent["reason"]))
    what_holds(report, by_name)
    if name == "shapes":
        verdicts(report, by_name, apart)


def parse_args():
    p = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    p.add_argument("--sets", nargs="+", default=["shapes", "emoji"], choices=["shapes", "emoji"])
    p.add_argument("--seeds", type=int, default=5)
    p.add_argument("--methods", nargs="+", default=["all"])
    p.add_argument("--reuse", action="store_true", help="models and embeddings that lie there are not made again")
    p.add_argument("--save", action="store_true", help="write it into bench/results")
    return p.parse_args()


def run():
    args = parse_args()
    report = benchlib.Report("adapt_learning", "adapters of a frozen model: what its captions say of "
                             "their own vagueness", is_timed=False)
    for name in args.sets:
        run_set(report, name, args)
    return report.finish()


if __name__ == "__main__":
    sys.exit(benchlib.main(run, own_options=True))
