#!/usr/bin/env -S python3 -B
"""Claim: the first 20 training steps agree with PyTorch's to 1e-3, same weights, same batches.

bench/dump_steps.c runs the trainer's own steps and records their inputs and losses; the peer
repeats them with its own forward pass, gradients and optimiser.
"""
import os
import subprocess
import sys

import benchlib


def start_model(seed):
    train = os.path.join(benchlib.shapes(), "train")
    tokenizer = benchlib.word_tokenizer(train, "shapes.tokenizer.json")
    return benchlib.once(
        os.path.join(benchlib.WORK, "start-%d" % seed),
        lambda path: benchlib.penumbra("init", "--config", "tiny", "--tokenizer", tokenizer,
                                       "--seed", seed, "--out", path))


def run():
    benchlib.check_peer()
    report = benchlib.Report("replay", "the first 20 training steps beside PyTorch's")
    program = os.path.join(os.path.dirname(benchlib.PENUMBRA), "bench", "dump_steps")
    if not os.access(program, os.X_OK):
        raise benchlib.CannotMeasure("%s is missing: make bench builds it" % program)
    model, train = start_model(1), os.path.join(benchlib.shapes(), "train")
    dump = os.path.join(benchlib.WORK, "steps.safetensors")
    benchlib.Finished([program, model, train, dump, "20", "128", "1", str(benchlib.THREADS)],
                      benchlib.clean_environment(**benchlib.WAITS["sleeping"]))
    script = os.path.join(benchlib.PEERS, "torch_train.py")
    env = benchlib.clean_environment(OMP_NUM_THREADS=str(benchlib.THREADS),
                                     LD_LIBRARY_PATH=benchlib.OPENMP_BLAS,
                                     **benchlib.WAITS["sleeping"])
    done = subprocess.run([benchlib.PYTHON, script, "--model", model, "--replay", dump], env=env,
                          stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode not in (0, 1) or not done.stdout:
        raise benchlib.CannotMeasure("%s ended with status %d" % (script, done.returncode))
    report.say(done.stdout.rstrip())
    report.verdict(done.returncode == 0, "20 steps: agreement", None, "1e-3")
    return report.finish()


if __name__ == "__main__":
    sys.exit(benchlib.main(run))
