#!/usr/bin/env -S python3 -B
"""Claims about working beside others, ViT-B/16 and a small model in f32, as many threads as cores.

Alone, a picture takes at most 0.85 of ONNX Runtime's time; with one other process that computes all
the time and is bound to no core, at most 0.95 of ONNX Runtime's in the better of its settings (the
settings are tried beside that process too), and a training step is slowed by at most 1.7 times. The
two halves of each are measured in turn. ONNX Runtime takes part with BENCH_ORT.
"""
import contextlib
import subprocess
import sys

import benchlib
import compare
import ort

ALONE, BESIDE, SLOWED = 0.85, 0.95, 1.7
ROUNDS = benchlib.rounds(5)


@contextlib.contextmanager
def neighbour():
    """One process that never waits."""
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        process.kill()
        process.wait()


def picture_case(model):
    case = compare.Case("image, batch 1", "encode", model, 1, "image", rounds=ROUNDS)
    case.ort_peer = ort.OrtPeer(case, model)
    return case


def picture_rows(report, model):
    rows = []
    for words, target, beside in (("alone", ALONE, contextlib.nullcontext), ("beside another", BESIDE, neighbour)):
        with beside():
            o = compare.Outcome(picture_case(model))
        ratio = o.time_ratio(o.ort)
        rows.append(["a picture, %s: s" % words, compare.seconds(compare.medians(o.ours)),
                     "ONNX Runtime %s" % compare.seconds(compare.medians(o.ort.runs)), "%.3f" % ratio, "<= %.2f" % target,
                     report.verdict(ratio <= target, "picture %s: time to ONNX Runtime" % words, ratio,
                                    "<= %.2f" % target)])
        report.say("%s: ours %s, ONNX Runtime %s" % (words, o.our_wait, o.ort.peer.describe(o.ort.setting)))
    return rows


def step_row(report, title, case):
    alone, slowed = [], []
    for _ in range(case.rounds):
        alone.append(case.ours("spinning")["median_s"])
        with neighbour():
            slowed.append(case.ours("spinning")["median_s"])
    ratio = benchlib.median(slowed) / benchlib.median(alone)
    return ["a step, %s, beside another: s" % title, compare.seconds(slowed), "alone %s" % compare.seconds(alone),
            "%.3f" % ratio, "<= %.1f" % SLOWED,
            report.verdict(ratio <= SLOWED, "%s: step beside another to alone" % title, ratio, "<= 1.7")]


def run():
    report = benchlib.Report("neighbour", "f32 beside a process that computes all the time")
    rows = []
    if ort.is_asked_for():
        ort.check()
        rows += picture_rows(report, benchlib.vit_b_16())
    else:
        report.say("pictures beside ONNX Runtime: not measured, BENCH_ORT is not set")
    for title, case in (
            ("small model, batch 128", compare.Case("", "train", benchlib.small_model(), 128, rounds=ROUNDS)),
            ("ViT-B/16, batch 8", compare.Case("", "train", benchlib.vit_b_16(), 8, rounds=min(ROUNDS, 3), seconds=4,
                                               repeats=1))):
        rows.append(step_row(report, title, case))
    report.say()
    report.table(["seconds: median [least..most]", "ours", "beside it", "ratio", "target", ""], rows)
    return report.finish()


if __name__ == "__main__":
    sys.exit(benchlib.main(run))
