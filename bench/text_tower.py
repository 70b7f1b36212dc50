#!/usr/bin/env -S python3 -B
"""Claim: PCME's captions and image head, forward and backward, take 0.8 of PyTorch's time and memory.

Batch 128, captions of up to 20 words of 300 numbers, D 1024, as on COCO: two bi-directional GRUs
read at the last word, two heads; and the heads over a (2048,7,7) feature map. Both sides compute the
same loss from the same weights, which is compared, as are the squares of all gradients. Rounds
alternate; the ratio is the median of the rounds' ratios, by the clock of the wall.
"""
import os
import subprocess
import sys

import benchlib
from benchlib import median

BATCH, WORDS, TIME, MEMORY = 128, 20, 0.8, 0.8
ROUNDS = benchlib.rounds(5)
CASES = [("captions of 20 words", "captions", 1), ("captions of 8 to 20 words", "captions", 13),
         ("image head", "head", 1)]


def program():
    build = os.path.dirname(benchlib.PENUMBRA)
    path = os.path.join(build, "bench", "time_text_tower")
    if not os.access(path, os.X_OK):
        subprocess.run(["cmake", "--build", build, "--target", "bench_time_text_tower"], check=True,
                       stdout=subprocess.DEVNULL)
    return path


def ours(what, spread):
    command = [program(), what, BATCH, WORDS, spread, 2, 3, benchlib.THREADS]
    env = benchlib.clean_environment(**benchlib.WAITS["sleeping"])
    return benchlib.Finished([str(c) for c in command], env).json()


def theirs(what, spread):
    return benchlib.peer("torch_gru.py", what, "--batch", BATCH, "--words", WORDS, "--spread",
                         spread, "--seconds", 2, "--repeats", 3).json()


def difference(a, b):
    """The larger relative difference of loss and gradients."""
    return max(abs(a[k] - b[k]) / max(abs(b[k]), 1e-30) for k in ("loss", "squares"))


def rows(report, title, what, spread):
    rounds = [(ours(what, spread), theirs(what, spread)) for _ in range(ROUNDS)]
    ratios = [a["median_s"] / b["median_s"] for a, b in rounds]
    memory = max(a["peak_rss_mb"] for a, _ in rounds) / max(b["peak_rss_mb"] for _, b in rounds)
    worst = max(difference(a, b) for a, b in rounds)
    key = title.capitalize()
    yield [title + ": seconds", "%.3f" % median([a["median_s"] for a, _ in rounds]),
           "%.3f" % median([b["median_s"] for _, b in rounds]),
           "%.3f [%.3f..%.3f]" % (median(ratios), min(ratios), max(ratios)), "<= %g" % TIME,
           report.verdict(median(ratios) <= TIME, key + ": time", median(ratios), "<= %g" % TIME)]
    yield [title + ": peak MB", "%.0f" % max(a["peak_rss_mb"] for a, _ in rounds),
           "%.0f" % max(b["peak_rss_mb"] for _, b in rounds), "%.3f" % memory, "<= %g" % MEMORY,
           report.verdict(memory <= MEMORY, key + ": memory", memory, "<= %g" % MEMORY)]
    yield [title + ": loss and gradients", "", "", "%.1e" % worst, "<= 1e-4",
           report.verdict(worst <= 1e-4)]


def run():
    report = benchlib.Report("text_tower", "PCME's captions and image head, forward and backward")
    benchlib.check_peer()
    report.say("rounds: %d of 2 s a side, threads sleep while they wait" % ROUNDS)
    report.say()
    report.table(["figure", "ours", "PyTorch", "ratio", "target", ""],
                 [r for case in CASES for r in rows(report, *case)])
    return report.finish()


if __name__ == "__main__":
    sys.exit(benchlib.main(run))
