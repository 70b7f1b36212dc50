"""Our program against PyTorch eager on the same work, interleaved: ours, peer, ours, peer, ...

For each case both sides first run once in every setting that might be their best (how OpenMP
threads wait; for the peer also which attention); the fastest is kept and named. Then the rounds
alternate, each round a fresh process on each side that warms up, measures for a while and reports
its median; a case's figure is the median of its rounds' medians.
"""
import math
import os
import sys
import time

import benchlib
from benchlib import median


class Case:
    """`what` is encode or train; targets are ratios ours / PyTorch, None where there is none."""

    def __init__(self, title, what, model, batch, tower=None, time=None, memory=None, rounds=5,
                 seconds=2.0, repeats=3):
        self.title, self.what, self.model, self.batch, self.tower = title, what, model, batch, tower
        self.time_target, self.memory_target = time, memory
        self.rounds = int(os.environ.get("BENCH_ROUNDS", rounds))
        self.options = ["--batch", batch, "--seconds", seconds, "--repeats", repeats,
                        *(["--tower", tower] if tower else [])]

    def ours(self, wait, limit_s=None):
        args = ["bench", self.what, "--model", self.model, *self.options, "--json"]
        return benchlib.penumbra(*args, wait=wait, limit_s=limit_s).json()

    def peer(self, setting, limit_s=None, blas=benchlib.OPENMP_BLAS):
        wait, attention = setting
        args = [self.what, "--model", self.model, *self.options, "--attention", attention]
        return benchlib.peer("torch_bench.py", *args, wait=wait, blas=blas, limit_s=limit_s).json()


def best_setting(run, settings):
    """The setting with the least median, and all medians; infinite where a trial was given up.

    On a busy machine threads that spin can be twenty times slower, so a trial may take three times
    as long as the quickest before it.
    """
    medians, limit_s = {}, math.inf
    for setting in settings:
        start = time.perf_counter()
        try:
            medians[setting] = run(setting, limit_s if limit_s < math.inf else None)["median_s"]
        except benchlib.TooSlow:
            medians[setting] = math.inf
        limit_s = min(limit_s, 3 * (time.perf_counter() - start) + 2)
    return min(medians, key=medians.get), medians


class Outcome:
    def __init__(self, case):
        self.case = case
        self.our_wait, self.our_trials = best_setting(case.ours, list(benchlib.WAITS))
        attentions = ["products", "module"] if case.what == "encode" else ["products"]
        self.peer_setting, self.peer_trials = best_setting(
            case.peer, [(w, a) for w in benchlib.WAITS for a in attentions])
        self.ours, self.peers = [], []
        for _ in range(case.rounds):
            self.ours.append(case.ours(self.our_wait))
            self.peers.append(case.peer(self.peer_setting))

    def medians(self, runs):
        return [r["median_s"] for r in runs]

    def time_ratio(self):
        return median(self.medians(self.ours)) / median(self.medians(self.peers))

    def memory_ratio(self):
        return (max(r["peak_rss_mb"] for r in self.ours) /
                max(r["peak_rss_mb"] for r in self.peers))

    def pthread_seconds(self):
        """The peer on the pthread build of OpenBLAS, None where that is not installed."""
        folder = benchlib.PTHREAD_BLAS
        if not os.path.exists(os.path.join(folder, "libblas.so.3")):
            return None
        run = self.case.peer(("spinning", self.peer_setting[1]), blas=folder)
        if not any("pthread" in b for b in run["blas"]):
            return None
        return run["median_s"]


def seconds(values):
    return "%.4f [%.4f..%.4f]" % (median(values), min(values), max(values))


def time_row(report, o):
    ratio, target = o.time_ratio(), o.case.time_target
    return [o.case.title, seconds(o.medians(o.ours)), seconds(o.medians(o.peers)), "%.3f" % ratio,
            "<= %.2f" % target, report.verdict(ratio <= target),
            "%.0f" % median([r["sgemm_gflops"] for r in o.ours]),
            "%.2f" % median([r["share"] for r in o.ours])]


def memory_row(report, o):
    ratio, target = o.memory_ratio(), o.case.memory_target
    return [o.case.title, "%.0f" % max(r["peak_rss_mb"] for r in o.ours),
            "%.0f" % max(r["peak_rss_mb"] for r in o.peers), "%.3f" % ratio, "<= %.2f" % target,
            report.verdict(ratio <= target)]


def trial(median_s):
    return "%.4f" % median_s if math.isfinite(median_s) else "given up"


def settings_lines(report, outcomes):
    report.say()
    report.say("Settings kept (median seconds of one trial each; default of both sides: spinning)")
    for o in outcomes:
        ours = ", ".join("%s %s" % (s, trial(t)) for s, t in o.our_trials.items())
        peers = ", ".join("%s+%s %s" % (*s, trial(t)) for s, t in o.peer_trials.items())
        report.say("  %s: ours %s (%s); PyTorch %s + attention by %s (%s)" % (
            o.case.title, o.our_wait, ours, *o.peer_setting, peers))


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


def run_cases(name, title, cases):
    benchlib.check_peer()
    report = benchlib.Report(name, title)
    outcomes = []
    for case in cases:  # the tables come at the end; a run that is cut off has shown this much
        outcomes.append(Outcome(case))
        print("%s: ratio %.3f" % (case.title, outcomes[-1].time_ratio()), file=sys.stderr)
    peer = outcomes[0].peers[0]
    report.say("peer: PyTorch %s eager on %s and %s" % (
        peer["torch"], ", ".join(peer["blas"]), ", ".join(peer["openmp"])))
    report.say("rounds: " + ", ".join("%d of %s" % (c.rounds, c.title) for c in cases))
    report.say()
    report.table(["seconds: median [least..most]", "ours", "PyTorch", "ratio", "target", "",
                  "sgemm", "share"], [time_row(report, o) for o in outcomes])
    report.say("sgemm: this machine's GFLOP/s in the same run; share: ours of it, by the model's "
               "arithmetic alone")
    if any(c.memory_target for c in cases):
        report.say()
        report.table(["peak memory, MB", "ours", "PyTorch", "ratio", "target", ""],
                     [memory_row(report, o) for o in outcomes if o.case.memory_target])
    settings_lines(report, outcomes)
    pthread_lines(report, outcomes)
    return report.finish()
