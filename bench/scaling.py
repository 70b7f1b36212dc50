#!/usr/bin/env -S python3 -B
"""One picture through image towers of growing size, in each precision, with one thread and two.

Beside the seconds stands the share of what the unit itself gives (penumbra info --cpu, measured
before and after with the same threads): what is left of the machine's rate in a whole tower.
Figures without a claim.
"""
import os
import sys

import benchlib

MODELS = ["ViT-B-16", "ViT-L-16", "SO400M-14", "ViT-H-14"]
RATES = {"fp32": "f32_gflops", "bf16": "bf16_gflops", "int8": "int8_gops"}


def at(threads, *args):
    command = [benchlib.PENUMBRA, *args, "--json", "--quiet", "--threads", str(threads)]
    return benchlib.Finished(command, benchlib.clean_environment()).json()


def encode(model, precision, threads):
    return at(threads, "bench", "encode", "--model", model, "--precision", precision, "--seconds",
              "1", "--repeats", "3")


def run():
    report = benchlib.Report("scaling", "one picture, image towers of growing size")
    threads = sorted({1, min(2, os.cpu_count())})
    names = ["%d thr" % t for t in threads]
    head = ["seconds, best of a picture", *names, "gain", *("GOP/s " + n for n in names),
            *("share " + n for n in names), "MB"]
    for model in MODELS:  # a table each: what was measured stands there if the next takes too long
        rates = [{t: at(t, "info", "--cpu") for t in threads}]
        found = {p: [encode(model, p, t) for t in threads] for p in RATES}
        rates.append({t: at(t, "info", "--cpu") for t in threads})
        rows = []
        for precision, key in RATES.items():
            runs = found[precision]
            shares = [r["gflops"] / max(x[t][key] for x in rates) for r, t in zip(runs, threads)]
            rows.append(["%s %s" % (model, precision)] + ["%.4f" % r["min_s"] for r in runs] +
                        ["%.2f" % (runs[0]["min_s"] / runs[-1]["min_s"])] +
                        ["%.0f" % r["gflops"] for r in runs] + ["%.2f" % s for s in shares] +
                        ["%.0f" % runs[-1]["peak_rss_mb"]])
        report.table(head, rows)
        report.say()
    return report.finish()


if __name__ == "__main__":
    sys.exit(benchlib.main(run))
