#!/usr/bin/env -S python3 -B
"""Products of ViT-B/16's layers in f32, bf16 and int8 beside oneDNN 2.6 (Debian's libdnnl-dev).

One and eight pictures. Both sides have packed weights and add a bias; ours rounds the activations
as well, oneDNN is given rounded ones. Figures without a claim: each side's best of rounds in turn.
"""
import os
import subprocess
import sys

import benchlib

SHAPES = [(197 * batch, depth, columns) for batch in (1, 8)
          for depth, columns in ((768, 2304), (768, 768), (768, 3072), (3072, 768))]
KINDS = ["f32", "bf16", "int8"]
ROUNDS = benchlib.rounds(3)
SECONDS = "0.3"
HEADER = "/usr/include/oneapi/dnnl/dnnl.h"


def peer_program():
    if not os.path.exists(HEADER):
        raise benchlib.CannotMeasure("oneDNN is missing: apt-get install libdnnl-dev")
    path = os.path.join(os.path.dirname(benchlib.PENUMBRA), "bench", "dnnl_products")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    command = ["gcc", "-O2", os.path.join(benchlib.PEERS, "dnnl_products.c"), "-o", path, "-ldnnl",
               "-lm"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise benchlib.CannotMeasure("%s\n%s" % (" ".join(command), done.stderr[-2000:]))
    return path


def our_program():
    path = os.path.join(os.path.dirname(benchlib.PENUMBRA), "bench", "time_products")
    if not os.access(path, os.X_OK):
        raise benchlib.CannotMeasure("%s is missing: make bench builds it" % path)
    return path


def measure(command, wait):
    env = benchlib.clean_environment(OMP_NUM_THREADS=str(benchlib.THREADS), **benchlib.WAITS[wait])
    return benchlib.Finished([*command, *("%dx%dx%d" % s for s in SHAPES)], env).json()


def best(runs, i, kind):
    times = [r["cases"][i][kind] for r in runs if r["cases"][i][kind] is not None]
    return min(times) if times else None


def run():
    report = benchlib.Report("products", "products of ViT-B/16's layers, 1 and 8 pictures")
    ours_at, peer_at = [our_program(), str(benchlib.THREADS), SECONDS], [peer_program(), SECONDS]
    ours, theirs = [], []
    for _ in range(ROUNDS):  # in turn, and the peer in both ways of waiting
        ours.append(measure(ours_at, "spinning"))
        theirs += [measure(peer_at, wait) for wait in benchlib.WAITS]
    report.say("peer: oneDNN %s; best of %d rounds in turn, the peer in both ways of waiting" %
               (theirs[0]["version"], ROUNDS))
    rows = []
    for i, shape in enumerate(SHAPES):
        work = 2e-9 * shape[0] * shape[1] * shape[2]
        for kind in KINDS:
            our_s, peer_s = best(ours, i, kind), best(theirs, i, kind)
            rows.append(["%d x %d x %d %s" % (*shape, kind), "%.3f" % (1e3 * our_s),
                         "-" if peer_s is None else "%.3f" % (1e3 * peer_s), "%.0f" % (work / our_s),
                         "-" if peer_s is None else "%.0f" % (work / peer_s),
                         "-" if peer_s is None else "%.3f" % (our_s / peer_s),
                         theirs[0]["cases"][i][kind + "_by"]])
    report.table(["milliseconds", "ours", "oneDNN", "GOP/s", "GOP/s", "ratio", "its code"], rows)
    return report.finish()


if __name__ == "__main__":
    sys.exit(benchlib.main(run))
