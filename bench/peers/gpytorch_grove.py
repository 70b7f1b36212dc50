"""A step of GroVE by GPyTorch itself, as its released code sets it up: for each side D variational
processes with M inducing points and a scaled RBF kernel of their own, mixed by LMC; (ELBO + ELBO)/100
and 200 (KL + KL); Adam. BENCH_GPYTORCH names the folders of gpytorch and linear_operator, joined by
colons; Debian has neither.

usage: gpytorch_grove.py [--infer] [--dim 512] [--inducing 250] [--latent 5] [--batch 64] [--steps 3]
                         [--threads 2]
Options and JSON are those of torch_grove.py, with the version of GPyTorch beside."""
import argparse
import json
import os
import resource
import statistics
import sys

sys.path[:0] = [p for p in os.environ.get("BENCH_GPYTORCH", "").split(":") if p]
import gpytorch  # noqa: E402
import torch  # noqa: E402
from torch_bench import loaded_libraries  # noqa: E402
from torch_grove import INFERENCE_STEPS, repeat  # noqa: E402

N_DATA = 5000


def version():
    """Sources that were not installed do not know theirs."""
    known = gpytorch.__version__
    return "from source" if known == "Unknown" else known


class Side(gpytorch.models.ApproximateGP):
    def __init__(self, dim, m, q):
        batch = torch.Size([dim])
        posterior = gpytorch.variational.CholeskyVariationalDistribution(m, batch_shape=batch)
        single = gpytorch.variational.VariationalStrategy(self, torch.randn(dim, m, q), posterior,
                                                          learn_inducing_locations=True)
        super().__init__(gpytorch.variational.LMCVariationalStrategy(single, num_tasks=dim,
                                                                     num_latents=dim, latent_dim=-1))
        self.mean_module = gpytorch.means.ConstantMean(batch_shape=batch)
        self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel(batch_shape=batch),
                                                         batch_shape=batch)

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


def elbo(likelihood, model, n_data):
    return gpytorch.mlls.VariationalELBO(likelihood, model, num_data=n_data)


def step_of(sides, likelihoods, o):
    x = torch.nn.Parameter(torch.randn(o.batch, o.latent))
    ys = [torch.nn.functional.normalize(torch.randn(o.batch, o.dim)) for _ in sides]
    fits = [elbo(like, side, N_DATA) for like, side in zip(likelihoods, sides)]
    optimizer = torch.optim.Adam([x] + [p for m in sides + likelihoods for p in m.parameters()], lr=1e-5)

    def step():
        optimizer.zero_grad()
        found = [side(x) for side in sides]
        loss = -sum(fit(f, y) for fit, f, y in zip(fits, found, ys)) / 100
        a, b = [torch.distributions.Normal(f.mean, f.variance.sqrt()) for f in found]
        kl = torch.distributions.kl_divergence
        loss = loss + 200 * (kl(a, b).mean() + kl(b, a).mean())
        loss.backward()
        optimizer.step()

    return step


def infer_of(side, likelihood, o):
    """Each step through the whole process, as the released inference; none is kept between steps."""
    y = torch.nn.functional.normalize(torch.randn(o.batch, o.dim))
    fit = elbo(likelihood, side, o.batch)

    def infer():
        x = torch.nn.Parameter(torch.randn(o.batch, o.latent))
        optimizer = torch.optim.Adam([x], lr=0.1)
        for _ in range(INFERENCE_STEPS):
            optimizer.zero_grad()
            (-fit(side(x), y)).backward()
            optimizer.step()
        found = likelihood(side(x))
        return found.mean, found.variance

    return infer


def main():
    ask = argparse.ArgumentParser()
    ask.add_argument("--infer", action="store_true")
    for name, value in (("dim", 512), ("inducing", 250), ("latent", 5), ("batch", 64), ("steps", 3),
                        ("threads", 2)):
        ask.add_argument("--" + name, type=int, default=value)
    o = ask.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(o.threads)
    sides = [Side(o.dim, o.inducing, o.latent) for _ in range(2)]
    likelihoods = [gpytorch.likelihoods.MultitaskGaussianLikelihood(num_tasks=o.dim) for _ in sides]
    work = infer_of(sides[0], likelihoods[0], o) if o.infer else step_of(sides, likelihoods, o)
    wall, cpu = repeat(work, o.steps)
    print(json.dumps({"median_s": statistics.median(wall), "cpu_s": statistics.median(cpu),
                      "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6,
                      "torch": torch.__version__, "gpytorch": version(),
                      "blas": loaded_libraries(r"blas|mkl"),
                      "openmp": loaded_libraries(r"^lib(gomp|omp|iomp)")}))


if __name__ == "__main__":
    main()
