#!/usr/bin/env -S python3 -B
"""Exact search on an NVIDIA GPU beside PyTorch's products and topk on the same device.

    bench/cuda_search.py [--rows 10000000] [--dim 512] [--queries 1 10000] [--no-peer] [--save]

Ours is `penumbra bench search --device cuda`, from queries in the host's memory to hits there, scored
again in doubles: --index bf16 says of how many queries it is unsure, --index flat asks those once more
and is exact. PyTorch multiplies queries and rows in bfloat16, some rows at a time (the fastest of three
sizes), takes topk of each piece and of all pieces' best; everything lies on the device, it knows no
term of a row but the mean, and nothing is scored again. Arithmetic is 2 queries rows dim. Needs a build
with CUDA and, but for --no-peer, a Python with PyTorch 2. Marks are set for one H200.
"""
import argparse
import os
import sys

import benchlib
from benchlib import median

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:] = [p for p in sys.path if os.path.abspath(p or ".") != HERE]

K = 10
PIECES = (1 << 14, 1 << 16, 1 << 18)  # rows at a time
MOST_SCORES = 1 << 32                 # of a piece
FEW, MANY = 16, 1000                  # queries: bound by memory, by arithmetic


def options():
    p = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    p.add_argument("--penumbra", default=benchlib.PENUMBRA, help="the program [$PENUMBRA or build/penumbra]")
    p.add_argument("--device", default="cuda", help="cuda, cuda:1; cpu tries the script out [cuda]")
    p.add_argument("--rows", type=int, default=10000000)
    p.add_argument("--dim", type=int, default=512)
    p.add_argument("--queries", type=int, nargs="+", default=[1, 10000])
    p.add_argument("--kinds", nargs="+", choices=("bf16", "flat", "int8"), default=["bf16"])
    p.add_argument("--repeats", type=int, default=5)
    p.add_argument("--threads", type=int, default=os.cpu_count())
    p.add_argument("--no-peer", action="store_true")
    p.add_argument("--save", action="store_true")
    return p.parse_args()


def ours(args, kind, queries):
    kept = {k: os.environ[k] for k in ("LD_LIBRARY_PATH",) if k in os.environ}
    words = [benchlib.PENUMBRA, "bench", "search", "--index", kind, "--n", args.rows, "--dim",
             args.dim, "--queries", queries, "--k", K, "--seconds", 0.5, "--repeats", args.repeats,
             "--device", args.device, "--threads", args.threads, "--json", "--quiet"]
    return benchlib.Finished(list(map(str, words)), benchlib.clean_environment(**kept),
                             limit_s=300).json()


class Peer:
    def __init__(self, args):
        try:
            import torch
        except ImportError as e:
            raise benchlib.CannotMeasure("the peer needs PyTorch 2; or give --no-peer") from e
        self.torch, self.args = torch, args
        self.on_gpu = args.device != "cpu"
        torch.manual_seed(0)
        on = {"device": args.device, "dtype": torch.bfloat16 if self.on_gpu else torch.float32}
        self.rows = torch.empty(args.rows, args.dim, **on)
        for at in range(0, args.rows, 1 << 20):
            part = torch.randn_like(self.rows[at:at + (1 << 20)])
            self.rows[at:at + (1 << 20)] = torch.nn.functional.normalize(part, dim=1)
        self.queries = torch.nn.functional.normalize(torch.randn(max(args.queries), args.dim, **on),
                                                     dim=1)

    def describe(self):
        torch = self.torch
        name = torch.cuda.get_device_name(self.args.device) if self.on_gpu else "the processor"
        return "PyTorch %s on %s" % (torch.__version__, name)

    def search(self, queries, piece):
        torch, best, which = self.torch, [], []
        for at in range(0, len(self.rows), piece):
            score, index = torch.topk(queries @ self.rows[at:at + piece].T, K, dim=1)
            best.append(score)
            which.append(index + at)
        score, place = torch.topk(torch.cat(best, 1), K, dim=1)
        return score, torch.cat(which, 1).gather(1, place)

    def seconds(self, work):
        times, event = [], self.torch.cuda.Event if self.on_gpu else None
        for i in range(2 + self.args.repeats):
            if self.on_gpu:
                pair = event(enable_timing=True), event(enable_timing=True)
                pair[0].record()
                work()
                pair[1].record()
                pair[1].synchronize()
                taken = pair[0].elapsed_time(pair[1]) / 1e3
            else:
                before = benchlib.time.perf_counter()
                work()
                taken = benchlib.time.perf_counter() - before
            if i >= 2:
                times.append(taken)
        return median(times)

    def fastest(self, n):
        """Seconds and rows at a time; few queries take all rows at once."""
        sizes = [p for p in PIECES if p * n <= MOST_SCORES] or [PIECES[0]]
        if n < FEW:
            sizes = [len(self.rows)]
        with self.torch.inference_mode():
            found = [(self.seconds(lambda s=s: self.search(self.queries[:n], s)), s) for s in sizes]
        return min(found)

    def limits(self):
        """TFLOP/s of a product of random numbers, GB/s of reading (a sum)."""
        torch = self.torch
        side = 8192 if self.on_gpu else 512
        a = torch.randn(side, side, device=self.args.device, dtype=self.rows.dtype)
        rate = 2e-12 * side**3 / self.seconds(lambda: a @ a)
        bytes_ = self.rows.numel() * self.rows.element_size()
        copy = torch.empty_like(self.rows[:len(self.rows) // 2])
        return rate, 1e-9 * bytes_ / self.seconds(lambda: copy.copy_(self.rows[:len(copy)]))


def run():
    args = options()
    benchlib.PENUMBRA, benchlib.THREADS = os.path.abspath(args.penumbra), args.threads
    report = benchlib.Report("cuda_search", "exact search on a GPU, csd, best %d of %d x %d" % (
        K, args.rows, args.dim))
    rate = width = None
    peers = {}
    if not args.no_peer:
        peer = Peer(args)
        rate, width = peer.limits()
        report.say("peer: %s; a bf16 product of 8192^3 at %.0f TFLOP/s, a copy at %.0f GB/s (read and "
                   "written)" % (peer.describe(), rate, width))
        for n in args.queries:
            peers[n] = peer.fastest(n)
        del peer  # its memory is wanted
    lines = []
    for n in args.queries:
        for kind in args.kinds:
            found = ours(args, kind, n)
            s, theirs = found["median_s"], peers.get(n, (None, None))
            tera, giga = 2e-12 * n * args.rows * args.dim / s, 2e-9 * args.rows * args.dim / s
            lines.append([kind, n, "%.3f" % (1e3 * s), "%.0f" % tera,
                          "%.0f%%" % (100 * tera / rate) if rate else "-", "%.0f" % giga,
                          "%.0f%%" % (100 * giga / width) if width else "-",
                          "%.3f" % (1e3 * theirs[0]) if theirs[0] else "-",
                          "%.3f" % (s / theirs[0]) if theirs[0] else "-",
                          found.get("n_unsure", 0), "%.4f" % found["recall"]])
    report.say()
    report.table(["index", "queries", "ms", "TFLOP/s", "share", "GB/s of rows", "share", "PyTorch ms",
                  "quotient", "unsure", "recall"], lines)
    report.say("GB/s: two bytes a number, each row once; the share is of the copy's rate")
    return report.finish()


if __name__ == "__main__":
    sys.exit(benchlib.main(run, own_options=True))
