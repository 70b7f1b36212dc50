#!/usr/bin/env -S python3 -B
"""Claim: an AsymVLM step takes 0.82 of PyTorch's time; a GroVE step a hundredth or less of GPyTorch's.

    adapt.py [--save]

AsymVLM: batch 2,048 through 512-1024-1024-1024-512, the released loss, SGD with momentum.
GroVE: D 512, M 250, Q 5, batches of 64. The targets are shares of GPyTorch's time, which is measured
where BENCH_GPYTORCH names its sources; Debian has no package of it, so its algorithm written plainly
in PyTorch stands there too and is judged alike: 512 independent sparse processes a side, batched
Cholesky, mixed, without what GPyTorch does besides. Ours with processes of their own (--per-output,
where the program has it), one kernel a side (the default), and one covariance too. Inference: 64
new embeddings. Ours gather their batches from their sets meanwhile, the peers' lie ready.
"""
import os
import sys

import benchlib
import compare
from benchlib import median

ROUNDS = benchlib.rounds(3)
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


def grove_peers():
    peers = {"plain PyTorch": "torch_grove.py"}
    if os.environ.get("BENCH_GPYTORCH"):
        peers["GPyTorch"] = "gpytorch_grove.py"
    return peers


def has_per_output():
    return "--per-output" in benchlib.penumbra("bench", "adapt", "--help").out


def measure_asymvlm():
    sides = Side(ours(ASYMVLM)), Side(theirs("torch_asymvlm.py"))
    for _ in range(ROUNDS):
        for side in sides:
            side.once()
    return sides


def measure_grove():
    """Ours by name, and each peer's steps and inference; the last needs minutes and is done once."""
    kinds = {SHARED: [], "one covariance (--shared-covariance)": ["--shared-covariance"]}
    if has_per_output():
        kinds = {"a process an output (--per-output)": ["--per-output"], **kinds}
    mine = {name: Side(ours(GROVE + more)) for name, more in kinds.items()}
    peers = {}
    for name, script in grove_peers().items():
        step = Side(theirs(script, "--steps", 1))
        peers[name] = step, Side(theirs(script, "--infer", "--steps", 1), wait=step.wait)
    for _ in range(ROUNDS):
        for side in [*mine.values(), *(step for step, _ in peers.values())]:
            side.once()
    for _, infer in peers.values():
        infer.once()
    return mine, peers


def time_row(report, title, mine, peer, target, name="plain PyTorch", key="median_s"):
    ratio = mine.seconds(key) / peer.seconds()
    return [title, mine.cell(key), name, peer.cell(), "%.4f" % ratio, "<= %g" % target,
            report.verdict(ratio <= target, "%s beside %s: time" % (title, name), ratio,
                           "<= %g" % target)]


def grove_rows(report, mine, peers):
    targets = {"--per-output": 0.08, "(default)": 0.01, "--shared-covariance": 0.002}
    rows = []
    for name, (step, infer) in peers.items():
        rows += [time_row(report, "GroVE step, " + kind, side, step, target, name)
                 for kind, side in mine.items() for word, target in targets.items() if word in kind]
        rows.append(time_row(report, "GroVE, 64 new embeddings", mine[SHARED], infer, 0.01, name, "infer_s"))
    return rows


def memory_table(report, asymvlm, mine, peers):
    rows = [["AsymVLM step", "%.0f" % asymvlm[0].memory(), "PyTorch", "%.0f" % asymvlm[1].memory(),
             "%.3f" % (asymvlm[0].memory() / asymvlm[1].memory()), "", ""]]
    for peer, (step, _) in peers.items():
        for name, side in mine.items():
            ratio = side.memory() / step.memory()
            judged = "--per-output" in name
            title = "GroVE, a process an output, beside %s: memory" % peer
            rows.append(["GroVE step, " + name, "%.0f" % side.memory(), peer, "%.0f" % step.memory(),
                         "%.3f" % ratio, "<= 0.3" if judged else "",
                         report.verdict(ratio <= 0.3, title, ratio, "<= 0.3") if judged else ""])
    report.say()
    report.table(["peak memory, MB", "ours", "peer", "", "ratio", "target", ""], rows)


def inference_lines(report, mine):
    each_ms = 1e3 * mine[SHARED].seconds("infer_s") / 64
    report.say()
    report.say("one new embedding of 64, %s: %.2f ms, target < 2 ms  %s" % (
        SHARED, each_ms, report.verdict(each_ms < 2, "GroVE: ms a new embedding", each_ms, "< 2")))


def run():
    benchlib.check_peer()
    report = benchlib.Report("adapt", "adapters: a training step, and new embeddings")
    asymvlm = measure_asymvlm()
    mine, peers = measure_grove()
    peer = asymvlm[1].runs[0]
    report.say("peer: PyTorch %s eager on %s and %s" % (
        peer["torch"], ", ".join(peer["blas"]), ", ".join(peer["openmp"])))
    if "GPyTorch" in peers:
        report.say("and GPyTorch %s, the project itself" % peers["GPyTorch"][0].runs[0]["gpytorch"])
    report.say("rounds: %d of each, inference of GroVE's peers once; they do one step, or one batch, a "
               "process" % ROUNDS)
    report.say()
    rows = [time_row(report, "AsymVLM step", *asymvlm, 0.82), *grove_rows(report, mine, peers)]
    report.table(["seconds: median [least..most]", "ours", "peer", "", "ratio", "target", ""], rows)
    if not has_per_output():
        report.say("a process an output: not measured, this program has no --per-output")
    inference_lines(report, mine)
    memory_table(report, asymvlm, mine, peers)
    report.say()
    report.say("threads wait: ours %s, PyTorch %s (AsymVLM); %s (GroVE), %s" % (
        asymvlm[0].wait, asymvlm[1].wait, ", ".join(s.wait for s in mine.values()),
        ", ".join("%s %s" % (name, step.wait) for name, (step, _) in peers.items())))
    return report.finish()


if __name__ == "__main__":
    sys.exit(benchlib.main(run))
