#!/usr/bin/env -S python3 -B
"""ViT-B/16 and L/16 on an NVIDIA GPU in bf16, and a ProLIP step, beside PyTorch on the same device.

    bench/cuda.py [--only TITLE...] [--no-peer] [--no-compile] [--save] ...

Cases are called "limits", "image ViT-B-16, batch 256", "train ViT-B-16, batch 256" and so on; --only
takes beginnings of their titles. Figures without a claim. What fails or has no time left says so in a
line, and the next case runs. Needs a build with CUDA and, but for --no-peer, a Python with PyTorch 2
(this script runs in it; BENCH_PYTHON has no part here).

Ours is `penumbra bench encode`, with --resident for the tower alone and without for inputs and outputs
in the host's memory, and `penumbra train` on pictures of random pixels, whose steps tell what they
waited for data. PyTorch's towers are measured in the same two ways, alone by events, else by a clock.
PyTorch is bench/peers/torch_prolip.py with F.scaled_dot_product_attention and patches by one product;
a step is that of bench/train_step.py with autocast, losses in f32 and the fused AdamW. Its towers are
compiled whole (max-autotune), a step block by block.
"""
import argparse
import concurrent.futures
import contextlib
import gc
import json
import os
import signal
import sys
import tempfile
import time

import benchlib
from benchlib import median

# This folder's tokenize.py and this file would stand before Python's own and NVIDIA's `cuda`.
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:] = [p for p in sys.path if os.path.abspath(p or ".") != HERE]


def prolip(width, layers, image_size=224, patch=16, head=64, context=64, vocabulary=32100):
    """What `penumbra init --config NAME` writes, as far as it changes what is computed."""
    return {"embed_dim": width, "init_logit_bias": -10, "init_logit_scale": 2.302585092994046,
            "text_uncertainty_source": "projected_mean",
            "vision_cfg": {"image_size": image_size, "layers": layers, "width": width,
                           "patch_size": patch, "embed_unc": True, "head_width": head,
                           "init_unc_bias": -10},
            "text_cfg": {"context_length": context, "vocab_size": vocabulary, "width": width,
                         "heads": width // head, "layers": layers, "no_causal_mask": True,
                         "proj_bias": True, "pool_type": "last", "embed_cls": True,
                         "embed_unc": True, "norm_kwargs": {"eps": 1e-6}, "init_unc_bias": -10}}


CONFIGS = {"ViT-B-16": prolip(768, 12), "ViT-L-16": prolip(1024, 24, image_size=256),
           "tiny": prolip(128, 3, image_size=48, patch=8, context=16, vocabulary=1500)}
MASKED_SHARE, KEPT_PATCHES, MASKED_TOKENS = 0.125, 0.25, 0.75  # of `penumbra train`
N_STEPS, N_WARM_STEPS = 24, 6
MATMUL = 8192


def options():
    p = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    p.add_argument("--only", nargs="+", metavar="TITLE", help="cases whose title begins so")
    p.add_argument("--penumbra", default=benchlib.PENUMBRA, help="the program [$PENUMBRA or build/penumbra]")
    p.add_argument("--device", default="cuda", help="cuda, cuda:1; cpu tries the script out [cuda]")
    p.add_argument("--threads", type=int, default=os.cpu_count())
    p.add_argument("--models", nargs="+", choices=CONFIGS, default=["ViT-B-16", "ViT-L-16"])
    p.add_argument("--train-model", choices=CONFIGS, default="ViT-B-16")
    p.add_argument("--encode-batch", type=int, default=256)
    p.add_argument("--batch", type=int, default=256, help="pairs of a training step [256]")
    p.add_argument("--seconds", type=float, default=1, help="of one measurement, at least [1]")
    p.add_argument("--no-ours", action="store_true")
    p.add_argument("--no-peer", action="store_true")
    p.add_argument("--no-compile", action="store_true")
    p.add_argument("--mode", default="max-autotune", help="torch.compile's, for towers")
    p.add_argument("--train-mode", default="default", help="the same for blocks of a training step")
    p.add_argument("--limit", type=float, default=175,
                   help="seconds from the start after which nothing is compiled any more [175]")
    p.add_argument("--save", action="store_true")
    return p.parse_args()


class Case:
    """One tower or step: `found` has seconds by name."""

    def __init__(self, what, name, batch):
        self.what, self.name, self.batch, self.found = what, name, batch, {}
        self.config = CONFIGS[name]
        self.title = "%s %s, batch %d" % (what, name, batch)

    def seconds(self, name):
        return self.found.get(name)


# ---- arithmetic ----

def blocks_flops(tower, tokens, n):
    """Of all layers and tokens: ours leaves out what nobody reads of the last layer."""
    width, hidden = tower["width"], 4 * tower["width"]
    return 2 * n * tower["layers"] * tokens * width * (4 * width + 2 * hidden + 2 * tokens)


def n_patches(config):
    vision = config["vision_cfg"]
    return (vision["image_size"] // vision["patch_size"]) ** 2


def image_flops(config, n, kept=None):
    vision, patches = config["vision_cfg"], kept or n_patches(config)
    embed = 2 * n * patches * vision["width"] * 3 * vision["patch_size"] ** 2
    heads = 4 * n * vision["width"] * config["embed_dim"]
    return blocks_flops(vision, patches + 2, n) + embed + heads


def text_flops(config, n):
    text = config["text_cfg"]
    return (blocks_flops(text, text["context_length"] + 2, n) +
            4 * n * text["width"] * config["embed_dim"])


def masked_sizes(config, n):
    return max(1, int(n * MASKED_SHARE)), max(1, int(n_patches(config) * KEPT_PATCHES))


def flops(case):
    if case.what == "image":
        return image_flops(case.config, case.batch)
    if case.what == "text":
        return text_flops(case.config, case.batch)
    masked, kept = masked_sizes(case.config, case.batch)
    return 3 * (image_flops(case.config, case.batch) + image_flops(case.config, masked, kept) +
                text_flops(case.config, case.batch + masked))


# ---- ours ----

def our_environment():
    """Libraries of CUDA may be found by LD_LIBRARY_PATH."""
    kept = {k: os.environ[k] for k in ("LD_LIBRARY_PATH",) if k in os.environ}
    return benchlib.clean_environment(**kept)


def penumbra(args, *words):
    if not os.access(benchlib.PENUMBRA, os.X_OK):
        raise benchlib.CannotMeasure("%s is missing: make build, or set --penumbra" %
                                     benchlib.PENUMBRA)
    command = [benchlib.PENUMBRA, *map(str, words), "--device", args.device, "--threads",
               str(args.threads), "--json", "--quiet"]
    return benchlib.Finished(command, our_environment(), limit_s=120).json()


def one_tower(case):
    """The configuration, the other tower almost nothing: random weights take their time."""
    config = json.loads(json.dumps(case.config))
    if case.what == "image":
        config["text_cfg"].update(layers=1, vocab_size=64, context_length=8)
    else:
        config["vision_cfg"].update(layers=1, image_size=2 * config["vision_cfg"]["patch_size"])
    return json.dumps(config)


def our_model(case):
    """Its folder, made once."""
    def make(path):
        words = ["init", "--config", one_tower(case), "--seed", "1", "--out", path, "--quiet"]
        benchlib.Finished([benchlib.PENUMBRA, *words], our_environment(), limit_s=120)
    return benchlib.once(os.path.join(benchlib.WORK, "cuda-%s-%s" % (case.what, case.name)), make)


def make_models(wanted):
    """All at a time, a thread each. Whoever needs one that could not be made says why."""
    each = {(c.what, c.name): c for c in wanted if c.what != "train"}
    with concurrent.futures.ThreadPoolExecutor() as pool:
        made = [pool.submit(our_model, c) for c in each.values()]
    for m in made:
        m.exception()


def our_encode(args, case):
    words = ["bench", "encode", "--model", our_model(case), "--tower", case.what, "--batch", case.batch,
             "--precision", "bf16", "--seconds", args.seconds,
             "--repeats", 10 if args.device != "cpu" else 2]
    case.found["ours host"] = penumbra(args, *words)["median_s"]
    case.found["ours"] = penumbra(args, *words, "--resident")["median_s"]


def our_train(args, case):
    """Median over steps, each less what it waited for data. The peer takes the model that it made:
    its vocabulary is that of the only caption."""
    with tempfile.TemporaryDirectory(prefix="penumbra-cuda-") as folder:
        done = penumbra(args, "train", "--dataset-type", "synthetic", "--train-num-samples",
                        case.batch * N_STEPS, "--model", case.name, "--batch-size", case.batch,
                        "--max-steps", N_STEPS, "--precision", "amp_bf16", "--augment", "none",
                        "--workers", max(args.threads - 2, 1), "--logs", folder, "--name", "run",
                        "--log-every-n-steps", 1)
        run = os.path.join(folder, "run")
        with open(os.path.join(run, "results.jsonl"), encoding="utf-8") as f:
            steps = [s for s in map(json.loads, f) if s["kind"] == "train"][N_WARM_STEPS:]
        with open(os.path.join(done["checkpoint_dir"], "config.json"), encoding="utf-8") as f:
            case.config = json.load(f)
    case.found["ours with data"] = median([s["batch_s"] for s in steps])
    case.found["ours"] = median([s["batch_s"] - s["data_s"] for s in steps])
    case.found["ours bytes"] = done["graph_bytes"]


# ---- PyTorch ----

class Peer:
    def __init__(self, args):
        os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", str(args.threads))
        os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", os.path.join(benchlib.WORK, "inductor"))
        try:
            import torch
        except ImportError as e:
            raise benchlib.CannotMeasure("the peer needs PyTorch 2; or give --no-peer") from e
        sys.path.append(benchlib.PEERS)
        import torch_prolip
        self.torch, self.prolip, self.args = torch, torch_prolip, args
        self.device = torch.device(args.device)
        self.on_gpu = self.device.type == "cuda"
        if self.on_gpu and not torch.cuda.is_available():
            raise benchlib.CannotMeasure("PyTorch %s sees no GPU" % torch.__version__)
        torch.manual_seed(0)
        functional = torch.nn.functional

        def attend(block, x):
            n, tokens, width = x.shape
            attn = block.attn
            qkv = functional.linear(x, attn.in_proj_weight, attn.in_proj_bias)
            qkv = qkv.view(n, tokens, 3, block.n_heads, width // block.n_heads)
            q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
            out = functional.scaled_dot_product_attention(q, k, v)
            return attn.out_proj(out.transpose(1, 2).reshape(n, tokens, width))

        class Patches(torch.nn.Module):
            """The convolution as one product; (B, width, patches) as the tower takes them."""

            def __init__(self, conv):
                super().__init__()
                self.weight, self.size = conv.weight, conv.kernel_size[0]

            def forward(self, pixels):
                n, c, height, wide = pixels.shape
                p = self.size
                x = pixels.reshape(n, c, height // p, p, wide // p, p).permute(0, 2, 4, 1, 3, 5)
                x = x.reshape(n, -1, c * p * p)
                return functional.linear(x, self.weight.flatten(1)).transpose(1, 2)

        torch_prolip.Block.attend = attend
        self.patches = Patches

    def describe(self):
        torch = self.torch
        if not self.on_gpu:
            return "PyTorch %s on the processor" % torch.__version__
        p = torch.cuda.get_device_properties(self.device)
        return "PyTorch %s, %s, %d multiprocessors, %.0f GB" % (
            torch.__version__, p.name, p.multi_processor_count, p.total_memory / 1e9)

    # ---- clocks ----

    def sync(self):
        if self.on_gpu:
            self.torch.cuda.synchronize()

    def forget(self):
        """Memory and compiled code of a case."""
        if self.on_gpu:
            self.torch.compiler.reset()
            gc.collect()
            self.torch.cuda.empty_cache()

    def by_clock(self, work, at_least=5):
        """Median seconds; work() is over when it returns, or is waited for."""
        for _ in range(3 if self.on_gpu else 1):
            work()
        self.sync()
        times, start = [], time.perf_counter()
        while len(times) < at_least or time.perf_counter() - start < self.args.seconds:
            before = time.perf_counter()
            work()
            self.sync()
            times.append(time.perf_counter() - before)
        return median(times)

    def by_events(self, work, at_least=10):
        """Median seconds on the device; the queue is let run empty now and then, not each time."""
        if not self.on_gpu:
            return self.by_clock(work, 2)
        event = self.torch.cuda.Event
        for _ in range(3):
            work()
        self.sync()
        pairs, start = [], time.perf_counter()
        while len(pairs) < at_least or time.perf_counter() - start < self.args.seconds:
            pair = event(enable_timing=True), event(enable_timing=True)
            pair[0].record()
            work()
            pair[1].record()
            pairs.append(pair)
            if len(pairs) % 8 == 0:
                pair[1].synchronize()
        self.sync()
        return median([a.elapsed_time(b) for a, b in pairs]) / 1e3

    # ---- the machine ----

    def limits(self):
        """TFLOP/s of a product on random numbers, GB/s of a copy (read and written) and of pageable
        memory to the device."""
        torch, on = self.torch, {"device": self.device, "dtype": self.torch.bfloat16}
        side = MATMUL if self.on_gpu else 256
        a, b = torch.randn(side, side, **on), torch.randn(side, side, **on)
        rate = 2e-12 * side**3 / self.by_events(lambda: a @ b)
        n = 2**31 if self.on_gpu else 2**20  # bfloat16 numbers
        x, y = torch.randn(n, **on), torch.empty(n, **on)
        copied = 4e-9 * n / self.by_events(lambda: y.copy_(x))
        pixels = torch.randn(n // 64, dtype=torch.float32)
        brought = 4e-9 * pixels.numel() / self.by_clock(lambda: pixels.to(self.device))
        return rate, copied, brought

    # ---- models ----

    def model(self, config):
        torch = self.torch
        with torch.device(self.device) if self.on_gpu else contextlib.nullcontext():
            model = self.prolip.ProLIP(config)
        model.visual.conv1 = self.patches(model.visual.conv1)
        for head in (model.visual.uncertainty_proj, model.text.text_uncertainty_projection):
            torch.nn.init.constant_(head.bias, -10.0)
        return model

    def inputs(self, case):
        """In the host's memory."""
        torch, vision, text = self.torch, case.config["vision_cfg"], case.config["text_cfg"]
        size = vision["image_size"]
        pixels = torch.randn(case.batch, 3, size, size) if case.what != "text" else None
        ids = torch.randint(3, text["vocab_size"], (case.batch, text["context_length"]))
        return pixels, ids

    def encode(self, case, label, compiled):
        """Seconds from the host's memory to it, and of the tower alone."""
        torch, bf16 = self.torch, self.torch.bfloat16
        model = self.model(json.loads(one_tower(case))).to(self.device).to(bf16).eval()
        pixels, ids = self.inputs(case)
        tower, host = (model.encode_text, ids) if case.what == "text" else (model.encode_image, pixels)
        if compiled:
            tower = torch.compile(tower, mode=self.args.mode, dynamic=False)

        def bring():
            x = host.to(self.device)
            return x if case.what == "text" else x.to(bf16)

        def from_host():
            mean, log_var = tower(bring())
            mean.float().cpu()
            log_var.float().cpu()

        with torch.inference_mode():
            there = bring()
            case.found[label] = self.by_events(lambda: tower(there))
            case.found[label + " host"] = self.by_clock(from_host)

    # ---- a step ----

    def losses(self, image, text, masked_image, masked_text, scale, bias):
        """torch_prolip's terms and limits, without waiting for the device to compare."""
        torch, p, w = self.torch, self.prolip, self.prolip.SMALL_RUN

        def limited(loss, most):
            return torch.where(loss <= most, loss, torch.zeros_like(loss))

        def inclusion(one, two):
            test = p.inclusion(*one, *two, w["eps"])
            return limited(torch.nn.functional.softplus(-w["c"] * test).mean(), 1e5)

        def vib(mean, log_var):
            return limited(-0.5 * (1 + log_var - mean**2 - log_var.exp()).mean(), 1e4)

        n = len(masked_image[0])
        first_image, first_text = [x[:n] for x in image], [x[:n] for x in text]
        return (w["ppcl"] * p.ppcl_loss(image, text, scale, bias) +
                w["inclusion"] * inclusion(image, text) +
                w["masked"] * (inclusion(first_image, masked_image) +
                               inclusion(first_text, masked_text)) +
                w["vib"] * (vib(*image) + vib(*text)))

    def train(self, case, label, compiled):
        torch, device = self.torch, self.device
        model = self.model(case.config).to(device).train()
        named = list(model.named_parameters())
        matrices = [p for n, p in named if self.prolip.is_decayed(n, p)]
        others = [p for n, p in named if not self.prolip.is_decayed(n, p)]
        optimizer = torch.optim.AdamW([{"params": matrices, "weight_decay": 0.1},
                                       {"params": others, "weight_decay": 0.0}], lr=1e-4,
                                      betas=(0.9, 0.95), eps=1e-6,
                                      **({"fused": True} if self.on_gpu else {}))
        pixels, ids = [x.to(device) for x in self.inputs(case)]
        n, n_kept = masked_sizes(case.config, case.batch)
        losses = self.losses
        if compiled:
            for tower in (model.visual, model.text):
                for block in tower.transformer.resblocks:  # alike, so one is compiled for all
                    block.compile(mode=self.args.train_mode, dynamic=False)
            losses = torch.compile(losses, dynamic=False)

        def step():
            kept = torch.randperm(n_patches(case.config), device=device)[:n_kept].sort().values
            masked = ids[:n].clone()
            masked = torch.where(torch.rand(masked.shape, device=device) < MASKED_TOKENS,
                                 torch.zeros_like(masked), masked)
            with torch.autocast(device.type, dtype=torch.bfloat16):
                out = [model.encode_image(pixels), model.encode_text(ids),
                       model.encode_image(pixels[:n], kept), model.encode_text(masked)]
            out = [(mean.float(), log_var.float()) for mean, log_var in out]
            optimizer.zero_grad(set_to_none=True)
            loss = losses(*out, model.logit_scale.exp(), model.logit_bias)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            return loss

        if self.on_gpu:
            torch.cuda.reset_peak_memory_stats()
        case.found[label] = self.by_events(step)
        if not torch.isfinite(step().detach()).item():
            raise benchlib.CannotMeasure("the peer's loss is not finite")
        if self.on_gpu:
            case.found[label + " bytes"] = torch.cuda.max_memory_allocated()


# ---- a run ----

@contextlib.contextmanager
def at_most(seconds):
    """Compilers take as long as they like; this ends one by an exception."""
    def late(*_):
        raise benchlib.TooSlow("given up after %.0f s" % seconds)
    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, max(seconds, 1))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


class Run:
    def __init__(self, args, report):
        self.args, self.report, self.start = args, report, time.perf_counter()

    def attempt(self, title, work, *more):
        """What went wrong is a line of the report; the next goes on. Returns what work does."""
        before, out = time.perf_counter(), None
        try:
            out = work(*more)
            said = "done"
        except Exception as e:  # of any kind: a device's, a compiler's, a program's
            said = "FAILED"
            lines = [s for s in str(e).strip().splitlines() if s.strip()] or [""]
            self.report.say("%s: %s: %s" % (title, type(e).__name__, " / ".join(lines[-3:])[:600]))
        print("%6.1f s  %s: %s in %.1f s" % (time.perf_counter() - self.start, title, said,
                                             time.perf_counter() - before),
              file=sys.stderr, flush=True)
        return out

    def show(self, case):
        text = ", ".join("%s %.3f ms" % (k, 1e3 * v) for k, v in case.found.items()
                         if not k.endswith("bytes"))
        print("          %s: %s" % (case.title, text), file=sys.stderr, flush=True)

    def compile(self, peer, case):
        left = self.args.limit - (time.perf_counter() - self.start)
        if left < 15:
            self.report.say("%s, compiled: left out, the time (--limit) is over" % case.title)
            return
        work = peer.train if case.what == "train" else peer.encode

        def limited():
            with at_most(left):
                work(case, "compiled", True)
        self.attempt(case.title + ", compiled", limited)
        self.attempt("memory", peer.forget)
        self.show(case)


def cases(args):
    found = []
    for batch in dict.fromkeys((args.encode_batch, 1)):
        found += [Case("image", name, batch) for name in args.models]
    found += [Case("text", name, args.encode_batch) for name in args.models]
    found.insert(1, Case("train", args.train_model, args.batch))  # compiled early: time may end
    return found


def milliseconds(s):
    return "-" if s is None else "%.3f" % (1e3 * s)


def ratio(ours, theirs):
    return "-" if ours is None or theirs is None else "%.3f" % (ours / theirs)


def rate_cells(case, names, peak):
    cells = []
    for name in names:
        s = case.seconds(name)
        rate = flops(case) / s * 1e-12 if s else None
        cells.append("-" if rate is None else "%.1f" % rate)
        cells.append("-" if rate is None or not peak else "%.1f%%" % (100 * rate / peak))
    return cells


def tables(report, chosen, peak):
    encodes = [c for c in chosen if c.what != "train"]
    steps = [c for c in chosen if c.what == "train"]
    if encodes:
        report.say()
        report.table(["ms, from the host's memory to it", "ours", "eager", "compiled", "to eager",
                      "to compiled"],
                     [[c.title, *(milliseconds(c.seconds(n)) for n in
                                  ("ours host", "eager host", "compiled host")),
                       ratio(c.seconds("ours host"), c.seconds("eager host")),
                       ratio(c.seconds("ours host"), c.seconds("compiled host"))] for c in encodes])
        report.say()
        report.table(["ms, the tower alone", "ours", "eager", "compiled", "to eager", "to compiled"],
                     [[c.title, *(milliseconds(c.seconds(n)) for n in ("ours", "eager", "compiled")),
                       ratio(c.seconds("ours"), c.seconds("eager")),
                       ratio(c.seconds("ours"), c.seconds("compiled"))] for c in encodes])
    if steps:
        report.say()
        report.table(["ms of a step", "ours", "with data", "eager", "compiled", "to eager",
                      "to compiled", "graph GB", "eager GB", "compiled GB"],
                     [[c.title, *(milliseconds(c.seconds(n)) for n in
                                  ("ours", "ours with data", "eager", "compiled")),
                       ratio(c.seconds("ours"), c.seconds("eager")),
                       ratio(c.seconds("ours"), c.seconds("compiled")),
                       *("-" if n not in c.found else "%.2f" % (1e-9 * c.found[n]) for n in
                         ("ours bytes", "eager bytes", "compiled bytes"))] for c in steps])
        report.say("ours: less what the step waited for data; vocabulary of %d for both" %
                   steps[0].config["text_cfg"]["vocab_size"])
    if chosen:
        report.say()
        report.table(["TFLOP/s, share of the product", "ours", "", "eager", "", "compiled", ""],
                     [[c.title, *rate_cells(c, ("ours", "eager", "compiled"), peak)]
                      for c in chosen])
        report.say("arithmetic as if every layer computed every token, of a step three forward passes")


def run():
    args = options()
    benchlib.PENUMBRA, benchlib.THREADS = os.path.abspath(args.penumbra), args.threads
    report = benchlib.Report("cuda", "towers and a training step on a GPU, bf16")
    todo, peer, peak = Run(args, report), None, None

    def wanted(title):
        return args.only is None or any(title.startswith(o) for o in args.only)

    if not args.no_peer:
        peer = todo.attempt("PyTorch", Peer, args)
    if peer is not None:
        report.say("peer: %s" % peer.describe())
        limits = todo.attempt("limits", peer.limits)  # always: shares need it, and it is quick
        if limits is not None:
            peak = limits[0]
            report.say("machine: %.1f TFLOP/s in a bf16 product of %d^3, %.0f GB/s copied on the "
                       "device (read and written), %.2f GB/s to it from pageable memory" % (
                           limits[0], MATMUL if peer.on_gpu else 256, *limits[1:]))
        todo.attempt("memory", peer.forget)
    chosen = [c for c in cases(args) if wanted(c.title)]
    if not args.no_ours:
        todo.attempt("our models", make_models, chosen)
    for case in chosen:
        is_step = case.what == "train"
        if not args.no_ours:
            todo.attempt(case.title + ", ours", our_train if is_step else our_encode, args, case)
        if peer is not None:
            todo.attempt(case.title + ", eager", peer.train if is_step else peer.encode, case,
                         "eager", False)
            todo.attempt("memory", peer.forget)
        todo.show(case)
    if peer is not None and not args.no_compile:
        for case in chosen:
            todo.compile(peer, case)
    tables(report, chosen, peak)
    return report.finish()


if __name__ == "__main__":
    sys.exit(benchlib.main(run, own_options=True))
