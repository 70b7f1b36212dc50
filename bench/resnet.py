#!/usr/bin/env -S python3 -B
"""Claim: a ResNet-50 forward pass and training step take at most 0.9 of PyTorch's time (oneDNN, its
better layout), and a step at most 0.8 of its memory.

The trunk alone at 224 pixels, batch 8: forward by the running buffers, and a step of forward, backward
and SGD with momentum, batch norm in training. BENCH_ROUNDS sets the rounds.
"""
import os
import sys

import benchlib
import compare
from benchlib import median

TIME_RESNET = os.path.join(os.path.dirname(benchlib.PENUMBRA), "bench", "time_resnet")


class Case:
    def __init__(self, title, what, time, memory=None):
        self.title, self.what, self.time_target, self.memory_target = title, what, time, memory
        self.rounds = benchlib.rounds(5)
        self.args = [what, "resnet50", "--batch", 8, "--size", 224, "--seconds", 3, "--repeats", 3]

    def ours(self, wait, limit_s=None):
        command = [TIME_RESNET, *map(str, self.args), "--threads", str(benchlib.THREADS)]
        return benchlib.Finished(command, benchlib.clean_environment(**benchlib.WAITS[wait]),
                                 limit_s).json()

    def peer(self, setting, limit_s=None):
        wait, layout = setting
        return benchlib.peer("torch_resnet.py", *self.args, "--layout", layout, wait=wait,
                             limit_s=limit_s).json()


class Outcome:
    """Both sides in their best settings, in turn."""

    def __init__(self, case):
        self.case = case
        layouts = ["default", "channels_last"]
        self.wait, _ = compare.best_setting(case.ours, list(benchlib.WAITS))
        self.setting, _ = compare.best_setting(
            case.peer, [(w, l) for w in benchlib.WAITS for l in layouts])
        self.ours, self.peers = [], []
        for _ in range(case.rounds):
            self.ours.append(case.ours(self.wait))
            self.peers.append(case.peer(self.setting))

    def row(self, report):
        ours = [r["median_s"] for r in self.ours]
        peers = [r["median_s"] for r in self.peers]
        ratio, target = median(ours) / median(peers), self.case.time_target
        return [self.case.title, compare.seconds(ours), compare.seconds(peers), "%.3f" % ratio,
                "<= %.2f" % target,
                report.verdict(ratio <= target, "%s: time to PyTorch" % self.case.title, ratio,
                               "<= %.2f" % target),
                "%.0f" % median([r["sgemm_gflops"] for r in self.ours]),
                "%.2f" % median([r["share"] for r in self.ours])]

    def memory_row(self, report):
        ours = max(r["peak_rss_mb"] for r in self.ours)
        peers = max(r["peak_rss_mb"] for r in self.peers)
        ratio, target = ours / peers, self.case.memory_target
        return [self.case.title, "%.0f" % ours, "%.0f" % peers, "%.3f" % ratio, "<= %.2f" % target,
                report.verdict(ratio <= target, "%s: memory to PyTorch" % self.case.title, ratio,
                               "<= %.2f" % target)]


def run():
    if not os.access(TIME_RESNET, os.X_OK):
        raise benchlib.CannotMeasure("%s is missing: make bench" % TIME_RESNET)
    benchlib.check_peer()
    outcomes = [Outcome(Case("ResNet-50 forward, batch 8", "encode", 0.9)),
                Outcome(Case("ResNet-50 step, batch 8", "train", 0.9, memory=0.8))]
    report = benchlib.Report("resnet", "ResNet-50 trunk at 224 px, f32")
    report.say("peer: PyTorch %s, oneDNN %s" % (outcomes[0].peers[0]["torch"],
                                                outcomes[0].peers[0]["mkldnn"]))
    report.table(["seconds: median [least..most]", "ours", "PyTorch", "ratio", "target", "",
                  "sgemm", "share"], [o.row(report) for o in outcomes])
    report.say("sgemm: this machine's GFLOP/s in the same run; share: ours of it, by the trunk's "
               "arithmetic")
    report.table(["peak memory, MB", "ours", "PyTorch", "ratio", "target", ""],
                 [o.memory_row(report) for o in outcomes if o.case.memory_target])
    for o in outcomes:
        report.say("%s: ours %s, PyTorch %s + %s" % (o.case.title, o.wait, *o.setting))
    return report.finish()


if __name__ == "__main__":
    sys.exit(benchlib.main(run))
