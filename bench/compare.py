"""Our program against its peers on the same work, interleaved: ours, peer, ours, peer, ...

The peers are PyTorch eager and, when it is asked for, ONNX Runtime (ort.py). For each case all
sides first run once in every setting that might be their best (how threads wait; for a peer also
which attention); the fastest is kept and named. Then the rounds alternate, each round a fresh
process on each side that warms up, measures for a while and reports its median; a case's figure is
the median of its rounds' medians.
"""
import math
import os
import sys
import time

import benchlib
from benchlib import median


class Case:
    """`what` is encode or train; targets are ratios ours / peer, None where there is none.

    `time` and `memory` are PyTorch's, which has no part in a case without a `time`. ONNX Runtime
    takes part where `ort_peer` and `ort_target` were set.
    """

    def __init__(self, title, what, model, batch, tower=None, time=None, memory=None, rounds=5,
                 seconds=2.0, repeats=3):
        self.title, self.what, self.model, self.batch, self.tower = title, what, model, batch, tower
        self.time_target, self.memory_target = time, memory
        self.ort_target, self.ort_peer = None, None
        self.rounds = benchlib.rounds(rounds)
        self.seconds, self.repeats = seconds, repeats
        self.options = ["--batch", batch, "--seconds", seconds, "--repeats", repeats,
                        *(["--tower", tower] if tower else [])]

    def ours(self, wait, limit_s=None):
        args = ["bench", self.what, "--model", self.model, *self.options, "--json"]
        return benchlib.penumbra(*args, wait=wait, limit_s=limit_s).json()


class TorchPeer:
    """Settings are (how OpenMP threads wait, which attention)."""

    name = "PyTorch"

    def __init__(self, case):
        self.case = case

    def run(self, setting, limit_s=None, blas=benchlib.OPENMP_BLAS):
        wait, attention = setting
        case = self.case
        args = [case.what, "--model", case.model, *case.options, "--attention", attention]
        return benchlib.peer("torch_bench.py", *args, wait=wait, blas=blas, limit_s=limit_s).json()

    def choose(self):
        attentions = ["products", "module"] if self.case.what == "encode" else ["products"]
        return best_setting(self.run, [(w, a) for w in benchlib.WAITS for a in attentions])

    def describe(self, setting):
        return "%s + attention by %s" % setting


NEAR = 1.15  # the second best setting is tried again, with the best, if it is within this of it
RUN_OFF_TRIALS = 2


def best_setting(run, settings):
    """The setting with the least time, and each one's seconds; infinite where a trial was given up.

    One trial on a shared machine is off by a tenth now and then, so the best two are tried again,
    in turn, and the median of all their trials decides; every side is chosen for alike. On a busy
    machine threads that spin can be twenty times slower, so a trial may take three times as long as
    the quickest before it.
    """
    tried, limit_s = {s: [] for s in settings}, math.inf
    for setting in settings:
        start = time.perf_counter()
        try:
            tried[setting].append(run(setting, limit_s if limit_s < math.inf else None)["median_s"])
        except benchlib.TooSlow:
            tried[setting].append(math.inf)
        limit_s = min(limit_s, 3 * (time.perf_counter() - start) + 2)
    best = sorted(settings, key=lambda s: tried[s][0])[:2]
    near = [s for s in best if tried[s][0] <= NEAR * tried[best[0]][0]]
    for _ in range(RUN_OFF_TRIALS if len(near) > 1 else 0):
        for setting in near:
            tried[setting].append(run(setting)["median_s"])
    seconds_of = {s: median(t) for s, t in tried.items()}
    return min(near, key=seconds_of.get), seconds_of


def medians(runs):
    return [r["median_s"] for r in runs]


class PeerRuns:
    """A peer in its best setting, and what its rounds gave."""

    def __init__(self, peer):
        self.peer, self.runs = peer, []
        self.setting, self.trials = peer.choose()

    def once(self):
        self.runs.append(self.peer.run(self.setting))


class Outcome:
    """torch and ort are None where that peer has no part in the case."""

    def __init__(self, case):
        self.case, self.ours = case, []
        self.our_wait, self.our_trials = best_setting(case.ours, list(benchlib.WAITS))
        self.torch = PeerRuns(TorchPeer(case)) if case.time_target else None
        self.ort = PeerRuns(case.ort_peer) if case.ort_peer else None
        self.peers = [p for p in (self.torch, self.ort) if p]
        for _ in range(case.rounds):
            self.ours.append(case.ours(self.our_wait))
            for p in self.peers:
                p.once()

    def time_ratio(self, peer):
        return median(medians(self.ours)) / median(medians(peer.runs))

    def memory_ratio(self):
        return (max(r["peak_rss_mb"] for r in self.ours) /
                max(r["peak_rss_mb"] for r in self.torch.runs))

    def pthread_seconds(self):
        """PyTorch on the pthread build of OpenBLAS, None where that is not installed."""
        folder = benchlib.PTHREAD_BLAS
        if not os.path.exists(os.path.join(folder, "libblas.so.3")):
            return None
        run = self.torch.peer.run(("spinning", self.torch.setting[1]), blas=folder)
        if not any("pthread" in b for b in run["blas"]):
            return None
        return run["median_s"]


def seconds(values):
    return "%.4f [%.4f..%.4f]" % (median(values), min(values), max(values))


def time_row(report, o, peer, target):
    ratio = o.time_ratio(peer)
    return [o.case.title, seconds(medians(o.ours)), seconds(medians(peer.runs)), "%.3f" % ratio,
            "<= %.2f" % target,
            report.verdict(ratio <= target, "%s: time to %s" % (o.case.title, peer.peer.name), ratio,
                           "<= %.2f" % target)]


def sgemm_cells(o):
    return ["%.0f" % median([r["sgemm_gflops"] for r in o.ours]),
            "%.2f" % median([r["share"] for r in o.ours])]


def memory_row(report, o):
    ratio, target = o.memory_ratio(), o.case.memory_target
    return [o.case.title, "%.0f" % max(r["peak_rss_mb"] for r in o.ours),
            "%.0f" % max(r["peak_rss_mb"] for r in o.torch.runs), "%.3f" % ratio,
            "<= %.2f" % target,
            report.verdict(ratio <= target, "%s: memory to PyTorch" % o.case.title, ratio,
                           "<= %.2f" % target)]


def trial(median_s):
    return "%.4f" % median_s if math.isfinite(median_s) else "given up"


def settings_lines(report, outcomes):
    report.say()
    report.say("Settings kept (median seconds of one trial each, of three where near the best; default: spinning)")
    for o in outcomes:
        parts = ["ours %s (%s)" % (o.our_wait, ", ".join("%s %s" % (s, trial(t))
                                                         for s, t in o.our_trials.items()))]
        for p in o.peers:
            tried = ", ".join("%s %s" % ("+".join(s), trial(t)) for s, t in p.trials.items())
            parts.append("%s %s (%s)" % (p.peer.name, p.peer.describe(p.setting), tried))
        report.say("  %s: %s" % (o.case.title, "; ".join(parts)))


def pthread_lines(report, outcomes):
    report.say()
    extra = [(o.case.title, o.pthread_seconds()) for o in outcomes]
    if all(s is None for _, s in extra):
        report.say("PyTorch on Debian's default pthread OpenBLAS: not measured, "
                   "libopenblas0-pthread is not in %s (BENCH_PTHREAD_BLAS)" % benchlib.PTHREAD_BLAS)
        return
    report.say("Beside the comparison, PyTorch on Debian's default pthread OpenBLAS: seconds")
    for title, s in extra:
        report.say("  %s: %s" % (title, "%.4f" % s if s is not None else "not measured"))


def peer_lines(report, outcomes):
    torch = [o.torch.runs[0] for o in outcomes if o.torch]
    if torch:
        report.say("peer: PyTorch %s eager on %s and %s" % (
            torch[0]["torch"], ", ".join(torch[0]["blas"]), ", ".join(torch[0]["openmp"])))
    ort = [o.ort.runs[0] for o in outcomes if o.ort]
    if ort:
        report.say("peer: %s, %d threads, all graph optimisations" % (ort[0]["runtime"],
                                                                      ort[0]["threads"]))


def torch_tables(report, outcomes):
    report.say()
    report.table(["seconds: median [least..most]", "ours", "PyTorch", "ratio", "target", "",
                  "sgemm", "share"],
                 [time_row(report, o, o.torch, o.case.time_target) + sgemm_cells(o)
                  for o in outcomes])
    report.say("sgemm: this machine's GFLOP/s in the same run; share: ours of it, by the model's "
               "arithmetic alone")
    if any(o.case.memory_target for o in outcomes):
        report.say()
        report.table(["peak memory, MB", "ours", "PyTorch", "ratio", "target", ""],
                     [memory_row(report, o) for o in outcomes if o.case.memory_target])


def ort_table(report, outcomes):
    """Where a case is in the table above too, ours are the same runs."""
    report.say()
    report.table(["seconds: median [least..most]", "ours", "ONNX Runtime", "ratio", "target", ""],
                 [time_row(report, o, o.ort, o.case.ort_target) for o in outcomes])


def run_cases(name, title, cases, after=None):
    """`after(report)` may add its own lines at the end."""
    if any(c.time_target for c in cases):
        benchlib.check_peer()
    report = benchlib.Report(name, title)
    outcomes = []
    for case in cases:  # the tables come at the end; a run that is cut off has shown this much
        outcomes.append(Outcome(case))
        for p in outcomes[-1].peers:
            print("%s: ratio %.3f to %s" % (case.title, outcomes[-1].time_ratio(p), p.peer.name),
                  file=sys.stderr)
    torch, ort = [o for o in outcomes if o.torch], [o for o in outcomes if o.ort]
    peer_lines(report, outcomes)
    report.say("rounds: " + ", ".join("%d of %s" % (c.rounds, c.title) for c in cases))
    if torch:
        torch_tables(report, torch)
    if ort:
        ort_table(report, ort)
    if after:
        after(report)
    settings_lines(report, outcomes)
    if torch:
        pthread_lines(report, torch)
    return report.finish()
