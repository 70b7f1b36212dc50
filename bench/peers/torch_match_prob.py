#!/usr/bin/env python3
"""PCME's match probability of all pairs in PyTorch: the reference's loop and the best forms of cdist.

The samples of both sides are given, as PCME's evaluation has them; a form ends with the k best of
each query. `loop` is the reference's own form (one query and one item at a time), measured on
--loop-pairs of them and scaled to all; the others are measured whole. JSON to stdout.
"""
import argparse
import json
import time

import torch


def scores(d, a, b):
    """Mean over pairs of samples of s(2 (b - a d)), PCME's factor; d (Q, J, G, J), overwritten."""
    return d.mul_(-2 * a).add_(2 * b).sigmoid_().mean(dim=(1, 3))


def blocked(x, y, a, b, k, queries, items):
    """torch.cdist by blocks, its own product form."""
    best = []
    for q in range(0, x.shape[0], queries):
        xs = x[q:q + queries]
        parts = []
        for g in range(0, y.shape[0], items):
            ys = y[g:g + items]
            d = torch.cdist(xs.flatten(0, 1), ys.flatten(0, 1),
                            compute_mode="use_mm_for_euclid_dist")
            parts.append(scores(d.view(xs.shape[0], xs.shape[1], ys.shape[0], ys.shape[1]), a, b))
        best.append(torch.cat(parts, 1).topk(k, dim=1).indices)
    return torch.cat(best)


def loop(x, y, a, b, n):
    """MatchingProbModule of the reference: a pair at a time, differences of all samples."""
    for i in range(n):
        xi, yi = x[i % x.shape[0]], y[i % y.shape[0]]
        d = ((xi.unsqueeze(0) - yi.unsqueeze(1)) ** 2).sum(-1)
        z = -a * torch.sqrt(d + 1e-6) + b
        (torch.exp(z) / (torch.exp(z) + torch.exp(-z))).mean()


def timed(f, rounds):
    seconds = []
    for _ in range(rounds):
        start = time.perf_counter()
        f()
        seconds.append(time.perf_counter() - start)
    return sorted(seconds)[len(seconds) // 2]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--n", type=int, default=5000)
    p.add_argument("--queries", type=int, default=1000)
    p.add_argument("--dim", type=int, default=1024)
    p.add_argument("--samples", type=int, default=7)
    p.add_argument("--k", type=int, default=10)
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--loop-pairs", type=int, default=2000)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--forms", default="", help="names of the forms to measure; all without")
    o = p.parse_args()
    torch.set_num_threads(o.threads)
    torch.manual_seed(0)
    torch.set_grad_enabled(False)
    x, y = [torch.nn.functional.normalize(torch.randn(n, 1, o.dim), dim=-1) +
            0.018 * torch.randn(n, o.samples, o.dim) for n in (o.queries, o.n)]
    forms = {"whole": (o.queries, o.n), "blocks of 100 queries": (100, o.n),
             "blocks of 100 x 500": (100, 500), "blocks of 32 x 256": (32, 256)}
    wanted = [f for f in o.forms.split(",") if f] or list(forms)
    found = {name: timed(lambda size=forms[name]: blocked(x, y, 5.0, 5.0, o.k, *size), o.rounds)
             for name in wanted}
    pair_s = timed(lambda: loop(x, y, 5.0, 5.0, o.loop_pairs), o.rounds) / o.loop_pairs
    best = min(found, key=found.get)
    print(json.dumps({"torch": torch.__version__, "forms_s": found, "best": best,
                      "best_s": found[best], "loop_pairs": o.loop_pairs, "loop_pair_s": pair_s,
                      "loop_s": pair_s * o.queries * o.n}))


if __name__ == "__main__":
    main()
