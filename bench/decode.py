#!/usr/bin/env -S python3 -B
"""Claim: a 640x480 JPEG becomes an encoder's input in 0.45 of Pillow + torchvision's time.

Decode, bicubic resize, centre crop and normalise to 224x224 from bytes in memory, one thread, both
sides on the same core. Rounds alternate; the ratio is the median of the rounds' ratios. Both
results must be equal to the last unit of f32.
"""
import array
import os
import subprocess
import sys

import benchlib
from benchlib import median

LIMIT, SIZE, N = 0.45, 224, 200
PEER = os.path.join(benchlib.PEERS, "pillow_decode.py")


def program():
    build = os.path.dirname(benchlib.PENUMBRA)
    path = os.path.join(build, "bench", "time_decode")
    if not os.access(path, os.X_OK):
        subprocess.run(["cmake", "--build", build, "--target", "bench_time_decode"], check=True,
                       stdout=subprocess.DEVNULL)
    return path


def seconds(command):
    core = ["taskset", "-c", str(max(os.sched_getaffinity(0)))]
    found = benchlib.Finished([*core, *command], benchlib.clean_environment()).json()
    return found["seconds"] / found["n"]


def floats(path):
    with open(path, "rb") as f:
        return array.array("f", f.read())


def largest_difference(a, b):
    """In units of the last place of the larger value."""
    return max(abs(x - y) / (max(abs(x), abs(y), 1e-30) * 2.0 ** -24) for x, y in zip(a, b))


def run():
    report = benchlib.Report("decode", "decode + resize + normalise of a 640x480 JPEG, one thread")
    benchlib.check_peer()
    picture = benchlib.once(os.path.join(benchlib.WORK, "photo.jpg"), lambda path: subprocess.run(
        [benchlib.PYTHON, PEER, "make", path], check=True))
    ours, theirs = [os.path.join(benchlib.WORK, n) for n in ("decode-ours.f32", "decode-peer.f32")]
    times = []
    for _ in range(benchlib.rounds(9)):
        times.append((seconds([program(), picture, str(N), str(SIZE), ours]),
                      seconds([benchlib.PYTHON, PEER, "time", picture, str(N), str(SIZE), theirs])))
    ratios = [a / b for a, b in times]
    difference = largest_difference(floats(ours), floats(theirs))
    report.say("picture: %d bytes; rounds of %d pictures: %d" % (os.path.getsize(picture), N,
                                                                 len(times)))
    report.say()
    report.table(["figure", "ours", "Pillow + torch", "ratio", "target", ""], [
        ["ms a picture, median", "%.2f" % (1e3 * median([a for a, _ in times])),
         "%.2f" % (1e3 * median([b for _, b in times])),
         "%.3f [%.3f..%.3f]" % (median(ratios), min(ratios), max(ratios)), "<= %.2f" % LIMIT,
         report.verdict(median(ratios) <= LIMIT)],
        ["largest difference, units in the last place", "", "", "%.1f" % difference, "<= 2",
         report.verdict(difference <= 2)]])
    return report.finish()


if __name__ == "__main__":
    sys.exit(benchlib.main(run))
