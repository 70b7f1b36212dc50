#!/usr/bin/env -S python3 -B
"""Claim: an AsymVLM step takes 0.82 of PyTorch's time; a GroVE step a hundredth or less of GPyTorch's.

AsymVLM: batch 2,048 through 512-1024-1024-1024-512, the released loss, SGD with momentum.
GroVE: D 512, M 250, Q 5, batches of 64; its peer is GPyTorch's algorithm written plainly in PyTorch
(GPyTorch is not in Debian): 512 independent sparse processes a side, batched Cholesky, mixed. Ours
with processes of their own (--per-output, where the program has it), one kernel a side (the
default), and one covariance too. Inference: 64 new embeddings. Ours gather their batches from their
sets meanwhile, the peers' lie ready.
"""
import os
import sys

import benchlib
import compare
from benchlib import median

ROUNDS = int(os.environ.get("BENCH_ROUNDS", 3))
ASYMVLM = ["--method", "asymvlm-vmf", "--batch", 2048, "--dim", 512]
GROVE = ["--method", "grove", "--batch", 64, "--dim", 512, "--inducing", 250, "--latent", 5,
         "--seconds", 2, "--repeats", 2]
SHARED = "one kernel a side (default)"


def ours(options):
    def run(wait, limit_s=None):
        return benchlib.penumbra("bench", "adapt", *options, "--json", wait=wait,
                                 limit_s=limit_s).json()
    return run


def theirs(script, *options):
    def run(wait, limit_s=None):
        return benchlib.peer(script, *options, wait=wait, limit_s=limit_s).json()
    return run


class Side:
    """Runs in the better way of waiting, or in one that is known."""

    def __init__(self, run, wait=None):
        self.run, self.runs = run, []
        self.wait = wait or compare.best_setting(run, list(benchlib.WAITS))[0]

    def once(self):
        self.runs.append(self.run(self.wait))

    def seconds(self, key="median_s"):
        return median([r[key] for r in self.runs])

    def cell(self, key="median_s"):
        return compare.seconds([r[key] for r in self.runs])

    def memory(self):
        return max(r["peak_rss_mb"] for r in self.runs)


def has_per_output():
    return "--per-output" in benchlib.penumbra("bench", "adapt", "--help").out


def measure_asymvlm():
    sides = Side(ours(ASYMVLM)), Side(theirs("torch_asymvlm.py"))
    for _ in range(ROUNDS):
        for side in sides:
            side.once()
    return sides


def measure_grove():
    """Ours by name, the peer's steps and its inference; the last needs minutes and is done once."""
    kinds = {SHARED: [], "one covariance (--shared-covariance)": ["--shared-covariance"]}
    if has_per_output():
        kinds = {"a process an output (--per-output)": ["--per-output"], **kinds}
    mine = {name: Side(ours(GROVE + more)) for name, more in kinds.items()}
    step = Side(theirs("torch_grove.py", "--steps", 1))
    infer = Side(theirs("torch_grove.py", "--infer", "--steps", 1), wait=step.wait)
    for _ in range(ROUNDS):
        for side in [*mine.values(), step]:
            side.once()
    infer.once()
    return mine, step, infer


def time_row(report, title, mine, peer, target, key="median_s"):
    ratio = mine.seconds(key) / peer.seconds()
    return [title, mine.cell(key), peer.cell(), "%.4f" % ratio, "<= %g" % target,
            report.verdict(ratio <= target, title + ": time", ratio, "<= %g" % target)]


def grove_rows(report, mine, step):
    targets = {"--per-output": 0.08, "(default)": 0.01, "--shared-covariance": 0.002}
    return [time_row(report, "GroVE step, " + name, side, step, target) for name, side in mine.items()
            for word, target in targets.items() if word in name]


def memory_table(report, asymvlm, mine, step):
    rows = [["AsymVLM step", "%.0f" % asymvlm[0].memory(), "%.0f" % asymvlm[1].memory(),
             "%.3f" % (asymvlm[0].memory() / asymvlm[1].memory()), "", ""]]
    for name, side in mine.items():
        ratio = side.memory() / step.memory()
        judged = "--per-output" in name
        rows.append(["GroVE step, " + name, "%.0f" % side.memory(), "%.0f" % step.memory(),
                     "%.3f" % ratio, "<= 0.3" if judged else "",
                     report.verdict(ratio <= 0.3, "GroVE, a process an output: memory", ratio,
                                    "<= 0.3") if judged else ""])
    report.say()
    report.table(["peak memory, MB", "ours", "peer", "ratio", "target", ""], rows)


def inference_lines(report, mine):
    each_ms = 1e3 * mine[SHARED].seconds("infer_s") / 64
    report.say()
    report.say("one new embedding of 64, %s: %.2f ms, target < 2 ms  %s" % (
        SHARED, each_ms, report.verdict(each_ms < 2, "GroVE: ms a new embedding", each_ms, "< 2")))


def run():
    benchlib.check_peer()
    report = benchlib.Report("adapt", "adapters: a training step, and new embeddings")
    asymvlm = measure_asymvlm()
    mine, step, infer = measure_grove()
    peer = asymvlm[1].runs[0]
    report.say("peer: PyTorch %s eager on %s and %s" % (
        peer["torch"], ", ".join(peer["blas"]), ", ".join(peer["openmp"])))
    report.say("rounds: %d of each, the GroVE peer's inference once; it does one step, or one batch, a "
               "process" % ROUNDS)
    report.say()
    rows = [time_row(report, "AsymVLM step", *asymvlm, 0.82), *grove_rows(report, mine, step),
            time_row(report, "GroVE, 64 new embeddings", mine[SHARED], infer, 0.01, "infer_s")]
    report.table(["seconds: median [least..most]", "ours", "peer", "ratio", "target", ""], rows)
    if not has_per_output():
        report.say("a process an output: not measured, this program has no --per-output")
    inference_lines(report, mine)
    memory_table(report, asymvlm, mine, step)
    report.say()
    report.say("threads wait: ours %s, PyTorch %s (AsymVLM); %s, %s and %s (GroVE's steps, its "
               "peer's, inference)" % (asymvlm[0].wait, asymvlm[1].wait,
                                       ", ".join(s.wait for s in mine.values()), step.wait,
                                       infer.wait))
    return report.finish()


if __name__ == "__main__":
    sys.exit(benchlib.main(run))
