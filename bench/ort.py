"""ONNX Runtime as a peer, where BENCH_ORT names a folder with npm's onnxruntime-node.

Its files are written once from our model directory (peers/onnx_export.py). Each side gets the same
inputs, and no time is reported before what it computes was compared with ours.
"""
import json
import os
import re
import subprocess

import benchlib
import compare

FOLDER = os.environ.get("BENCH_ORT")
NODE = os.environ.get("BENCH_NODE", "node")
ROWS = {"image": 32, "text": 64}
INT8_KINDS = ["s8-channel", "s8-tensor", "u8-tensor", "u8-channel"]
MIN_COSINE, MAX_LOG_VAR_DIFFERENCE = 0.99999, 1e-4  # of its f32 to ours


def is_asked_for():
    return bool(FOLDER)


def check():
    if not os.path.isdir(os.path.join(FOLDER, "node_modules", "onnxruntime-node")):
        raise benchlib.CannotMeasure(
            "BENCH_ORT=%s holds no node_modules/onnxruntime-node: npm install onnxruntime-node "
            "there (bench/README.md), or unset BENCH_ORT" % FOLDER)
    try:
        subprocess.run([NODE, "--version"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as e:
        raise benchlib.CannotMeasure("BENCH_ORT needs Node.js: apt-get install nodejs (or set "
                                     "BENCH_NODE)") from e


# ---- what is compared ----

def work(name):
    return os.path.join(benchlib.WORK, "ort", name)


def python(script, *args):
    return benchlib.Finished([benchlib.PYTHON, os.path.join(benchlib.PEERS, script),
                              *map(str, args)], benchlib.clean_environment())


def exported(model, tower, weights):
    name = "%s-%s-%s" % (os.path.basename(model), tower, weights)
    return benchlib.once(work(name), lambda path: python(
        "onnx_export.py", model, path, "--tower", tower, "--weights", weights))


def inputs(model, tower):
    name = "%s-%s.safetensors" % (os.path.basename(model), tower)
    return benchlib.once(work(name), lambda path: python(
        "tower_inputs.py", "make", model, tower, ROWS[tower], path))


def int8_model(model):
    """`penumbra quantize` of it, with limits that a model of random weights can meet."""
    def make(path):
        captions = path + ".captions.txt"
        with open(os.path.join(benchlib.shapes(), "test", "captions.jsonl"), encoding="utf-8") as f:
            texts = [json.loads(line)["text"] for line in f][:64]
        with open(captions, "w", encoding="utf-8") as f:
            f.write("\n".join(texts) + "\n")
        benchlib.penumbra("quantize", "-m", model, "--to", "int8", "--images", benchlib.pictures(),
                          "--texts", captions, "--out", path, "--min-cosine", 0.99,
                          "--min-rank", -1, "--min-top1", 0)
        os.remove(captions)
    return benchlib.once(os.path.join(benchlib.WORK, os.path.basename(model) + "-int8"), make)


class Embeddings:
    """Our embeddings of the inputs, made anew by the program under test."""

    def __init__(self):
        self.paths = {}

    def get(self, model, source, tower):
        """By `model` on the inputs of `source`, which is `model` or what it was made from."""
        out = work("%s-%s-ours.safetensors" % (os.path.basename(model), tower))
        if out not in self.paths:
            for name in (out, re.sub("safetensors$", "ids.jsonl", out)):
                if os.path.exists(name):
                    os.remove(name)
            option = "--pixels" if tower == "image" else "--tokens"
            benchlib.penumbra("embed", "--model", model, option, inputs(source, tower),
                              "--out", out)
            self.paths[out] = True
        return out


EMBEDDINGS = Embeddings()


# ---- the peer ----

def run(model, tower, weights, attention, options):
    """One process of ort_bench.js; `options` as its command line takes them."""
    wait, limit_s, arguments = options
    command = [NODE, os.path.join(benchlib.PEERS, "ort_bench.js"),
               os.path.join(exported(model, tower, weights), attention + ".onnx"),
               "--inputs", inputs(model, tower), "--expected", EMBEDDINGS.get(model, model, tower),
               "--threads", benchlib.THREADS, "--wait", wait, *arguments]
    env = benchlib.clean_environment(BENCH_ORT=os.path.abspath(FOLDER))
    result = benchlib.Finished(list(map(str, command)), env, limit_s).json()
    if weights == "f32" and (result["min_cosine"] < MIN_COSINE or
                             result["max_log_var_difference"] > MAX_LOG_VAR_DIFFERENCE):
        raise benchlib.CannotMeasure(
            "%s: ONNX Runtime computes something else than we do: cosine %.6f, log-variances "
            "differ by up to %.2g" % (command[2], result["min_cosine"],
                                      result["max_log_var_difference"]))
    return result


class OrtPeer:
    """Settings are (how its threads wait, which attention, type of the weights)."""

    name = "ONNX Runtime"

    def __init__(self, case, model, weights=("f32",)):
        self.case, self.model, self.weights = case, model, weights

    def run(self, setting, limit_s=None, timing=None):
        wait, attention, weights = setting
        timing = timing or ["--seconds", self.case.seconds, "--repeats", self.case.repeats]
        return run(self.model, self.case.tower, weights, attention,
                   (wait, limit_s, ["--batch", self.case.batch, *timing]))

    def trial(self, setting, limit_s=None):
        return self.run(setting, limit_s, ["--seconds", 1, "--repeats", 1])

    def choose(self):
        """First the type of the weights, then the rest for the best of them."""
        first, trials = compare.best_setting(self.trial,
                                             [("spinning", "fused", w) for w in self.weights])
        rest = [(w, a, first[2]) for w in ("spinning", "sleeping") for a in ("fused", "products")]
        _, more = compare.best_setting(self.trial, [s for s in rest if s not in trials])
        trials.update(more)
        return min(trials, key=trials.get), trials

    def describe(self, setting):
        return "%s + attention %s, weights %s" % setting


def cosines(model, small, tower):
    """Rows of a table: whose int8, its mean and least cosine to our f32 embeddings."""
    ours = python("tower_inputs.py", "compare", EMBEDDINGS.get(model, model, tower),
                  EMBEDDINGS.get(small, model, tower)).json()
    found = [("ours", ours)]
    for kind in INT8_KINDS:
        arguments = ["--batch", 8, "--rows", ROWS[tower], "--seconds", 0, "--repeats", 1]
        found.append(("ONNX Runtime " + kind, run(model, tower, kind, "fused",
                                                  ("spinning", None, arguments))))
    return found, ours["mean_cosine_of_two_rows"]
