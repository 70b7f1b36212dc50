#!/usr/bin/python3 -B
"""A training step of AsymVLM's text adapter in PyTorch eager: four layers with ReLU between them,
eta = g(t), kappa = |eta|, mu = eta / kappa, the von Mises-Fisher likelihood with the released
approximation of its normaliser, symmetric cross entropy of tau L, SGD with momentum 0.9 and decay 5e-4.

    torch_asymvlm.py [--batch 2048] [--dim 512] [--hidden 1024] [--seconds 3] [--repeats 5] [--threads 2]

Prints JSON: median_s, min_s, max_s of a step, infer_s (a batch through the trained adapter),
peak_rss_mb, and the libraries that were loaded. Inputs lie ready.
"""
import argparse
import json
import math
import statistics
import time

import torch
import torch.nn.functional as F

from torch_bench import loaded_libraries, peak_rss_mb


def log_norm(kappa, dim):
    """F_d of AsymVLM section 4.2, as released: without the constant in d."""
    a, b = (dim - 1) / 2, (dim + 1) / 2
    root_a, root_b = (a * a + kappa.square()).sqrt(), (b * b + kappa.square()).sqrt()
    return (dim - 1) / 4 * ((a + root_a).log() + (b + root_b).log()) - 0.5 * (root_a + root_b)


class Adapter(torch.nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        widths = [dim, hidden, hidden, hidden, dim]
        self.layers = torch.nn.ModuleList(torch.nn.Linear(a, b) for a, b in zip(widths, widths[1:]))
        self.tau = torch.nn.Parameter(torch.ones(()))

    def forward(self, x):
        for layer in self.layers[:-1]:
            x = F.relu(layer(x))
        eta = self.layers[-1](x)
        kappa = eta.norm(dim=1)
        return eta / kappa[:, None], kappa


def loss_of(adapter, images, texts):
    mu, kappa = adapter(texts)
    scores = adapter.tau * (images @ mu.T * kappa + log_norm(kappa, images.shape[1]))
    own = torch.arange(len(images))
    return 0.5 * (F.cross_entropy(scores, own) + F.cross_entropy(scores.T, own))


def measure(work, seconds, repeats):
    work()
    times, start = [], time.perf_counter()
    while len(times) < repeats or time.perf_counter() - start < seconds:
        before = time.perf_counter()
        work()
        times.append(time.perf_counter() - before)
    return times


def main():
    ask = argparse.ArgumentParser()
    for name, kind, value in (("batch", int, 2048), ("dim", int, 512), ("hidden", int, 1024),
                              ("seconds", float, 3.0), ("repeats", int, 5), ("threads", int, 2)):
        ask.add_argument("--" + name, type=kind, default=value)
    o = ask.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(o.threads)
    adapter = Adapter(o.dim, o.hidden)
    optimizer = torch.optim.SGD(adapter.parameters(), lr=1e-2, momentum=0.9, weight_decay=5e-4)
    images = F.normalize(torch.randn(o.batch, o.dim))
    texts = F.normalize(images + 0.5 * F.normalize(torch.randn(o.batch, o.dim)))

    def step():
        optimizer.zero_grad()
        loss = loss_of(adapter, images, texts)
        loss.backward()
        optimizer.step()
        if not math.isfinite(loss.item()):
            raise SystemExit("torch_asymvlm.py: the loss is not finite")

    def infer():
        with torch.no_grad():
            adapter(texts)

    steps = measure(step, o.seconds, o.repeats)
    applied = measure(infer, o.seconds / 4, o.repeats)
    print(json.dumps({"median_s": statistics.median(steps), "min_s": min(steps), "max_s": max(steps),
                      "infer_s": statistics.median(applied), "peak_rss_mb": peak_rss_mb(),
                      "torch": torch.__version__, "blas": loaded_libraries(r"blas|mkl"),
                      "openmp": loaded_libraries(r"^lib(gomp|omp|iomp)")}))


if __name__ == "__main__":
    main()
