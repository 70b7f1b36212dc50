#!/usr/bin/env -S python3 -B
"""Claims: one caption is embedded within 0.5 s of the start; `embed` needs little but weights.

ViT-B/16, f32, weights in the page cache. The time is of the whole process with its output
file. Peak memory is of `embed` on 64 pictures at batch 8, against the weights' file plus 600 MB.
"""
import os
import re
import subprocess
import sys

import benchlib
from benchlib import median

LIMIT_S, LIMIT_MB = 0.5, 600


def peak_mb(args):
    """Peak resident memory of our program alone, as wait4 reports it."""
    env = benchlib.clean_environment()
    command = [benchlib.PENUMBRA, *args, "--threads", str(benchlib.THREADS)]
    child = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        raise benchlib.CannotMeasure("%s: exit status %d" % (" ".join(command), child.returncode))
    return usage.ru_maxrss * 1024 / 1e6


def run():
    report = benchlib.Report("startup", "start-up and memory of `penumbra embed`, ViT-B/16 in f32")
    model = benchlib.vit_b_16()
    weights = os.path.join(model, "model.safetensors")
    with open(weights, "rb") as f:  # into the page cache
        while f.read(1 << 24):
            pass
    out = os.path.join(benchlib.WORK, "startup.safetensors")
    times = []
    for _ in range(benchlib.rounds(7)):
        for name in (out, re.sub("safetensors$", "ids.jsonl", out)):
            if os.path.exists(name):
                os.remove(name)
        times.append(benchlib.penumbra("embed", "--model", model, "--text", "a red star left of a "
                                       "blue ring", "--out", out).seconds)
    weights_mb = os.path.getsize(weights) / 1e6
    peak = peak_mb(["embed", "--model", model, "--images", benchlib.pictures(), "--batch-size", "8",
                    "--out", os.path.join(benchlib.WORK, "memory.safetensors")])
    report.say()
    report.table(["figure", "measured", "target", ""], [
        ["start to end of embedding one caption, s (median of %d)" % len(times),
         "%.3f [%.3f..%.3f]" % (median(times), min(times), max(times)), "< %.1f" % LIMIT_S,
         report.verdict(median(times) < LIMIT_S)],
        ["peak memory of embed, batch 8, MB (weights %.0f)" % weights_mb, "%.0f" % peak,
         "< %.0f" % (weights_mb + LIMIT_MB), report.verdict(peak < weights_mb + LIMIT_MB)]])
    return report.finish()


if __name__ == "__main__":
    sys.exit(benchlib.main(run))
