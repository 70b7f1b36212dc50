#!/usr/bin/env python3
"""A long training by two ranks that are killed at random, against the undisturbed one.

    bench/train_kills.py --penumbra build/penumbra [--steps 10000] [--kills 20] [--seed 1]

A rank drawn at random gets SIGKILL after a random time; the run is resumed; and so on, until it is
done. The weights and the optimiser must have the bits of the run that nobody killed, results.jsonl
each step once, no file may be left half-written, and the memory of a rank must not grow. Exit
status 0: all of it held.
"""
import argparse
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

CONFIG = ('{"embed_dim":16,"vision_cfg":{"layers":1,"width":32,"head_width":16},'
          '"text_cfg":{"layers":1,"width":32,"heads":2}}')


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def start(args, folder, name, resume):
    command = [args.penumbra, "train", "--train-data", os.path.join(folder, "shapes/train"),
               "--model", "tiny", "--override", CONFIG, "--batch-size", "4", "--global-batch", "8",
               "--max-steps", str(args.steps), "--save-every-n-steps", "50", "--logs", folder,
               "--name", name, "--threads", "1", "--workers", "1", "--seed", "5",
               "--log-every-n-steps", "1", "--tokenizer", os.path.join(folder, "tok.json"), "-q"]
    if resume:
        command += ["--resume", "latest"]
    port = free_port()
    ranks = []
    for rank in range(2):
        environment = dict(os.environ, RANK=str(rank), WORLD_SIZE="2", LOCAL_WORLD_SIZE="2",
                           MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
        ranks.append(subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL,
                                      stderr=subprocess.DEVNULL))
    return ranks


def resident(pid):
    try:
        with open("/proc/%d/status" % pid) as f:
            for line in f:
                if line.startswith("VmRSS"):
                    return int(line.split()[1])
    except OSError:
        pass
    return 0


def whole(args, folder):
    """The undisturbed run; resident KiB of rank 1 at its beginning and its end."""
    ranks = start(args, folder, "whole", False)
    seen = []
    begin = time.time()
    while ranks[1].poll() is None:
        seen.append(resident(ranks[1].pid))
        time.sleep(0.05)
    codes = [r.wait() for r in ranks]
    if codes != [0, 0]:
        sys.exit("the undisturbed run ended with %s" % codes)
    seen = [x for x in seen if x > 0]
    middle = seen[len(seen) // 4]
    return time.time() - begin, middle, max(seen[len(seen) // 4:])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--penumbra", default="build/penumbra")
    parser.add_argument("--steps", type=int, default=10000)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    args.penumbra = os.path.abspath(args.penumbra)
    draw = random.Random(args.seed)
    folder = tempfile.mkdtemp(prefix="penumbra-kills-")
    bad = []
    try:
        subprocess.run([args.penumbra, "data", "shapes", "--out", os.path.join(folder, "shapes"),
                        "--n", "200", "--shard-size", "50", "-q"], check=True,
                       stdout=subprocess.DEVNULL)
        subprocess.run([args.penumbra, "tokenizer", "train", "--captions",
                        os.path.join(folder, "shapes/train/captions.jsonl"), "--vocab-size", "300",
                        "--out", os.path.join(folder, "tok.json"), "-q"], check=True,
                       stdout=subprocess.DEVNULL)
        seconds, before, after = whole(args, folder)
        print("undisturbed: %d steps in %.1f s, resident %d KiB after a quarter, %d at most behind "
              "it" % (args.steps, seconds, before, after), flush=True)
        if after > before * 1.02 + 512:
            bad.append("memory grew")
        n_kills = 0
        resume = False
        while True:
            ranks = start(args, folder, "killed", resume)
            resume = os.path.islink(os.path.join(folder, "killed/checkpoints/latest"))
            if n_kills < args.kills:
                end = time.time() + draw.uniform(0.1, 1.6 * seconds / args.kills)
                while time.time() < end and any(r.poll() is None for r in ranks):
                    time.sleep(0.005)
                victim = ranks[draw.randrange(2)]
                if victim.poll() is None:
                    victim.send_signal(signal.SIGKILL)
                    n_kills += 1
            codes = [r.wait() for r in ranks]
            resume = os.path.islink(os.path.join(folder, "killed/checkpoints/latest"))
            if codes == [0, 0]:
                break
        print("killed %d times" % n_kills)
        for name in ("model.safetensors", "optimizer.safetensors"):
            a, b = (open(os.path.join(folder, run, "checkpoints/latest", name), "rb").read()
                    for run in ("whole", "killed"))
            print("%s: %s" % (name, "the same bits" if a == b else "DIFFERENT"))
            if a != b:
                bad.append(name)
        steps = [json.loads(line)["step"] for line in
                 open(os.path.join(folder, "killed/results.jsonl")) if '"train"' in line]
        if steps != list(range(1, args.steps + 1)):
            bad.append("results.jsonl has not each step once")
        left = [n for _, _, names in os.walk(os.path.join(folder, "killed")) for n in names
                if "tmp" in n]
        if left:
            bad.append("left over: %s" % left)
    finally:
        shutil.rmtree(folder)
    print("all held" if not bad else "NOT held: " + "; ".join(bad))
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
