#!/usr/bin/env python3
"""Throughput of training by 1, 2, ... processes on this machine, and what the exchange costs.

    bench/train_scaling.py --penumbra build/penumbra [--ranks 1 2] [--steps 40] [--width 128]

Every run has the same global batch and as many threads in all, so that the machine does the same
work: what is lost is the exchange and what does not run in parallel. Pictures are synthetic. Prints
a table, and behind it the model of docs/scaling.md for 8 to 512 ranks at 25 and 200 Gbit/s, after
it was held against the measured points.
"""
import argparse
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def train(args, folder, ranks, name):
    """Runs one training; returns samples a second and the line on the exchange."""
    config = {"embed_dim": args.width, "vision_cfg": {"layers": args.layers, "width": args.width,
                                                      "head_width": 64},
              "text_cfg": {"layers": args.layers, "width": args.width, "heads": args.width // 64}}
    command = [args.penumbra, "train", "--dataset-type", "synthetic", "--train-num-samples",
               str(args.batch * args.steps), "--model", "tiny", "--override", json.dumps(config),
               "--batch-size", str(args.batch // max(args.ranks)), "--global-batch",
               str(args.batch), "--max-steps", str(args.steps), "--logs", folder, "--name", name,
               "--threads", str(max(args.threads // ranks, 1)), "--workers", "1", "--augment",
               "none", "--tokenizer", os.path.join(folder, "tok.json"), "--json", "-q"]
    port = free_port()
    running = []
    for rank in range(ranks):
        environment = dict(os.environ)
        if ranks > 1:
            environment.update(RANK=str(rank), WORLD_SIZE=str(ranks), LOCAL_WORLD_SIZE=str(ranks),
                               MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
        running.append(subprocess.Popen(command, env=environment, stdout=subprocess.PIPE,
                                        text=True))
    outputs = [p.communicate()[0] for p in running]
    if any(p.returncode != 0 for p in running):
        sys.exit("a training failed")
    result = json.loads(outputs[0])
    log = open(os.path.join(folder, name, "out.log")).read()
    line = re.search(r"a step: ([\d.]+) MB sent in ([\d.]+) trades that took ([\d.]+) s; ([\d.]+) s "
                     r"waited for gradients, of ([\d.]+) s", log)
    exchange = [float(x) for x in line.groups()] if line else [0, 0, 0, 0, 0]
    weights = int(re.search(r"an epoch, (\d+) parameters", log).group(1))
    return result["samples_per_s"], exchange, weights


def model_step(compute_s, n_weights, dim, ranks, rate, latency_s, local_batch, hides):
    """Seconds of a step of `ranks` processes that send `rate` bytes a second; see docs/scaling.md.

    hides: whether a third of the computing, the backward pass, goes on while gradients are sent; a
    machine without a core to spare for the exchange hides nothing.
    """
    share = (ranks - 1) / ranks
    gradients = 2 * share * 8 * n_weights / rate
    rows = 2 * 2 * 4 * dim * local_batch * (ranks - 1) / rate
    trades = 6 * latency_s * (ranks - 1) + 2 * max(n_weights * 8 / (32 << 20), 1) * latency_s * (
        ranks - 1)
    hidden = compute_s / 3 if hides else 0
    return compute_s + rows + trades + max(gradients - hidden, 0)


def hold_against(args, rows):
    """The model's step beside the measured one, at the rate at which the trades went."""
    alone = rows[0]["step_s"]
    for r in rows:
        if r["ranks"] == 1:
            continue
        wanted = 2 * (r["ranks"] - 1) / r["ranks"] * 8 * r["weights"] / 1e6
        print("model: gradients alone are %.2f MB a rank of %d; measured %.2f MB with rows" % (
            wanted, r["ranks"], r["mb"]))
        rate = r["mb"] * 1e6 / r["trade_s"]
        modelled = [1e3 * model_step(alone, r["weights"], args.width, r["ranks"], rate, 0,
                                     args.batch // r["ranks"], hides) for hides in (True, False)]
        print("model: a step of %d at %.2f GB/s between %.1f ms, all hidden that can be, and %.1f ms, "
              "nothing hidden; measured %.1f ms" % (r["ranks"], rate / 1e9, modelled[0], modelled[1],
                                                    1e3 * r["step_s"]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--penumbra", default="build/penumbra")
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--json", metavar="FILE", help="write what was measured there too")
    args = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="penumbra-scaling-")
    rows = []
    try:
        with open(os.path.join(folder, "captions.txt"), "w") as f:
            f.write("a picture of random pixels\n" * 50)
        subprocess.run([args.penumbra, "tokenizer", "train", "--captions",
                        os.path.join(folder, "captions.txt"), "--vocab-size", "280", "--out",
                        os.path.join(folder, "tok.json"), "-q"], check=True,
                       stdout=subprocess.DEVNULL)
        for ranks in args.ranks:
            rate, exchange, weights = train(args, folder, ranks, "r%d" % ranks)
            rows.append({"ranks": ranks, "threads": max(args.threads // ranks, 1) * ranks,
                         "samples_per_s": rate, "step_s": args.batch / rate, "mb": exchange[0],
                         "trades": exchange[1], "trade_s": exchange[2], "waited_s": exchange[3],
                         "weights": weights})
    finally:
        shutil.rmtree(folder)
    print("%d weights, %d pairs a step, %d threads in all, %s" % (
        rows[0]["weights"], args.batch, args.threads, time.strftime("%Y-%m-%d")))
    print("ranks  pairs/s  step ms  speed-up  MB sent a rank  trades ms  of step  waited ms")
    for r in rows:
        print("%5d %8.1f %8.1f %9.2f %15.2f %10.2f %7.1f%% %10.2f" % (
            r["ranks"], r["samples_per_s"], r["step_s"] * 1e3, rows[0]["step_s"] / r["step_s"],
            r["mb"], r["trade_s"] * 1e3, 100 * r["trade_s"] / r["step_s"], r["waited_s"] * 1e3))
    hold_against(args, rows)
    print("\nViT-B/16 (150 M weights, D 512), 128 pairs a rank in 2.0 s: share of the ideal rate, with all "
          "hidden that can be and with nothing hidden")
    print("ranks        25 Gbit/s       200 Gbit/s")
    for ranks in (8, 16, 32, 64, 128, 256, 512):
        shares = [100 * 2.0 / model_step(2.0, 150e6, 512, ranks, gbit * 1e9 / 8, 20e-6, 128, hides)
                  for gbit in (25, 200) for hides in (True, False)]
        print("%5d   %5.1f%% %5.1f%%   %5.1f%% %5.1f%%" % (ranks, *shares))
    if args.json:
        with open(args.json, "w") as f:
            json.dump(rows, f, indent=1)


if __name__ == "__main__":
    main()
