"""A step of GroVE as GPyTorch computes it, written plainly in PyTorch: for each side D processes with
M inducing points and an RBF kernel of their own (batched Cholesky, whitened q(v)), mixed by a dense
D x D matrix; (ELBO + ELBO)/100 and 200 (KL + KL); Adam. GPyTorch itself is not in Debian.

usage: torch_grove.py [--infer] [--dim 512] [--inducing 250] [--latent 5] [--batch 64] [--steps 3]
                      [--threads 2]
--infer: a batch of new embeddings of one side: 20 steps of Adam (rate 0.1) on their latents from a
random point, each through the whole process, then mean and variance. The parameters ask for no
gradient, which the released code computes and throws away.
Prints JSON: median_s, cpu_s (of all threads, median) a step or a batch, peak_rss_mb, and the
libraries that were loaded."""
import argparse
import json
import resource
import statistics
import time

import torch

from torch_bench import loaded_libraries

INFERENCE_STEPS = 20


def side(dim, m, q):
    eye = torch.eye(m).repeat(dim, 1, 1)
    start = {"z": torch.randn(dim, m, q), "scale": torch.zeros(dim, 1, 1), "length": torch.zeros(dim, 1, 1),
             "mean": torch.zeros(dim, m), "chol": eye, "const": torch.zeros(dim, 1),
             "mix": torch.randn(dim, dim), "task": torch.zeros(dim, 1), "noise": torch.zeros(1, 1)}
    return {name: value.requires_grad_() for name, value in start.items()}


def kernel(p, a, b):
    soft = torch.nn.functional.softplus
    apart = torch.cdist(a / soft(p["length"]), b / soft(p["length"])).square()
    return soft(p["scale"]) * torch.exp(-0.5 * apart)


def process(p, x):
    """mean (D,N) and var (D,N) after mixing, and the divergence of all q(v)."""
    dim, m = p["mean"].shape
    chol = torch.linalg.cholesky(kernel(p, p["z"], p["z"]) + 1e-3 * torch.eye(m))
    b = torch.linalg.solve_triangular(chol, kernel(p, p["z"], x.expand(dim, -1, -1)), upper=False)
    factor = p["chol"].tril()
    mean = (p["mean"][:, None] @ b)[:, 0] + p["const"]
    spread = (factor.transpose(1, 2) @ b).square().sum(1) - b.square().sum(1)
    var = torch.nn.functional.softplus(p["scale"])[:, :, 0] + spread
    logs = factor.diagonal(dim1=1, dim2=2).abs().log().sum()
    kl = 0.5 * (p["mean"].square().sum() + factor.square().sum() - dim * m) - logs
    return p["mix"].T @ mean, p["mix"].square().T @ var + 1e-4, kl


def apart(p, q):
    return 0.5 * (q[1].log() - p[1].log() + (p[1] + (p[0] - q[0]).square()) / q[1] - 1).sum(0).mean()


def loss(sides, x, ys, n_data):
    total, out = 0, []
    for p, y in zip(sides, ys):
        mean, var, kl = process(p, x)
        noise = torch.nn.functional.softplus(p["task"]) + torch.nn.functional.softplus(p["noise"]) + 2e-4
        fit = -0.5 * (noise.log() + ((y - mean).square() + var) / noise).sum() / x.shape[0]
        total = total - (fit - kl / n_data) / 100
        out.append((mean, var))
    return total + 200 * (apart(out[0], out[1]) + apart(out[1], out[0]))


def log_likelihood(p, mean, var, y):
    noise = torch.nn.functional.softplus(p["task"]) + torch.nn.functional.softplus(p["noise"]) + 2e-4
    return -0.5 * (noise.log() + ((y - mean).square() + var) / noise).sum() / y.shape[1]


def infer(p, y, q):
    """mean and var (D,N) of y (D,N)."""
    x = torch.randn(y.shape[1], q, requires_grad=True)
    optimizer = torch.optim.Adam([x], lr=0.1)
    for _ in range(INFERENCE_STEPS):
        optimizer.zero_grad()
        mean, var, _ = process(p, x)
        (-log_likelihood(p, mean, var, y)).backward()
        optimizer.step()
    with torch.no_grad():
        return process(p, x)[:2]


def repeat(work, n):
    """Seconds and seconds of all threads of n runs, behind one that is not counted where n > 1."""
    wall, cpu = [], []
    for _ in range(n + (n > 1)):
        began, used = time.perf_counter(), time.process_time()
        work()
        wall.append(time.perf_counter() - began)
        cpu.append(time.process_time() - used)
    return wall[-n:], cpu[-n:]


def main():
    ask = argparse.ArgumentParser()
    ask.add_argument("--infer", action="store_true")
    for name, value in (("dim", 512), ("inducing", 250), ("latent", 5), ("batch", 64), ("steps", 3), ("threads", 2)):
        ask.add_argument("--" + name, type=int, default=value)
    o = ask.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(o.threads)
    sides = [side(o.dim, o.inducing, o.latent) for _ in range(2)]
    ys = [torch.randn(o.dim, o.batch) for _ in range(2)]
    x = torch.randn(o.batch, o.latent, requires_grad=True)
    optimizer = torch.optim.Adam([x] + [t for p in sides for t in p.values()], lr=1e-5)

    def step():
        optimizer.zero_grad()
        loss(sides, x, ys, 5000).backward()
        optimizer.step()

    if o.infer:
        frozen = {name: value.detach() for name, value in sides[1].items()}
        wall, cpu = repeat(lambda: infer(frozen, ys[1], o.latent), o.steps)
    else:
        wall, cpu = repeat(step, o.steps)
    print(json.dumps({"median_s": statistics.median(wall), "cpu_s": statistics.median(cpu),
                      "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6,
                      "torch": torch.__version__, "blas": loaded_libraries(r"blas|mkl"),
                      "openmp": loaded_libraries(r"^lib(gomp|omp|iomp)")}))


if __name__ == "__main__":
    main()
