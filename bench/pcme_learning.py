#!/usr/bin/env -S python3 -B
"""Claims: a whole PCME (narrow ResNet and bi-GRU) learns shapes within six minutes, far above chance;
ranking by its match probability is no worse than by its means; what its uncertainty follows.

    pcme_learning.py [--save]

5,000 scenes, half of them blurred, three in ten with something in front, three in ten without
colours, so that what is known of a picture is known (entropy_bits); captions of all levels. For
seeds 0, 1, 2: `train --objective pcme`, and its deterministic twin, which has the same towers with
attention and without the uncertainty heads, by margins to all negatives (`--objective vse`). Test
pictures and captions are embedded and ranked by means, by the closed-form distance and by the match
probability of 7 samples. R-Precision is of captions that look for pictures; its interval and
that of the rank correlations resample pictures with their captions. Controls of what a caption's
trace says: an untrained model's trace, and the number of words, fewer words counting as uncertain.
"""
import json
import math
import os
import random
import subprocess
import sys
import tarfile

import benchlib
from benchlib import WORK, penumbra

SEEDS, STEPS, LIMIT_S, RESAMPLES = (0, 1, 2), 1500, 360, 500
TWIN = '{"attention": true}'


def make_data(path):
    penumbra("data", "shapes", "--n", 5000, "--blur", 0.5, "--occlude", 0.3, "--grey", 0.3, "--seed", 1,
             "--out", path)


def train(data, name, seed, options):
    logs = os.path.join(WORK, "pcme-learning")
    subprocess.run(["rm", "-rf", os.path.join(logs, name)], check=True)
    done = penumbra("train", *options, "--train-data", os.path.join(data, "train"), "--val-data",
                    os.path.join(data, "val"), "--max-steps", STEPS, "--seed", seed, "--logs", logs,
                    "--name", name, "--json")
    return done.json()["checkpoint_dir"], done.seconds


def embed(model, data, name):
    """Sets of the test pictures and captions."""
    paths = {}
    for kind, what in (("images", ["--images", os.path.join(data, "test")]),
                       ("texts", ["--texts", os.path.join(data, "test", "captions.jsonl")])):
        paths[kind] = os.path.join(WORK, "pcme-learning", "%s.%s.safetensors" % (name, kind))
        penumbra("embed", "--model", model, *what, "--out", paths[kind], "--quiet")
    return paths


def traces(path):
    """Uncertainty and text or id of each row."""
    from array import array
    with open(path, "rb") as f:
        data = f.read()
    n = int.from_bytes(data[:8], "little")
    head = json.loads(data[8:8 + n])
    begin, end = head["log_var"]["data_offsets"]
    rows, dim = head["log_var"]["shape"]
    values = array("f", data[8 + n + begin:8 + n + end])
    with open(path.replace(".safetensors", ".ids.jsonl"), encoding="utf-8") as f:
        ids = [json.loads(line) for line in f]
    return [sum(math.exp(x) for x in values[i * dim:(i + 1) * dim]) for i in range(rows)], ids


def ranks(x):
    order = sorted(range(len(x)), key=x.__getitem__)
    out, i = [0.0] * len(x), 0
    while i < len(order):
        j = i
        while j < len(order) and x[order[j]] == x[order[i]]:
            j += 1
        for k in range(i, j):
            out[order[k]] = (i + j - 1) / 2
        i = j
    return out


def pearson(a, b):
    n = len(a)
    ma, mb = sum(a) / n, sum(b) / n
    cov = sum((x - ma) * (y - mb) for x, y in zip(a, b))
    return cov / math.sqrt(sum((x - ma) ** 2 for x in a) * sum((y - mb) ** 2 for y in b))


def spearman(a, b, clusters):
    """Rank correlation and its interval over resampled clusters (rows of each)."""
    rng, found = random.Random(1), []
    for _ in range(RESAMPLES):
        rows = [r for _ in clusters for r in clusters[rng.randrange(len(clusters))]]
        found.append(pearson(ranks([a[r] for r in rows]), ranks([b[r] for r in rows])))
    found.sort()
    low, high = found[int(0.025 * RESAMPLES)], found[int(0.975 * RESAMPLES) - 1]
    return pearson(ranks(a), ranks(b)), low, high


def entropies(data):
    found = {}
    with tarfile.open(os.path.join(data, "test", "00000.tar")) as tar:
        for m in tar:
            if m.name.endswith(".json"):
                record = json.load(tar.extractfile(m))
                found[m.name[:-5]] = record["ambiguity"]["entropy_bits"]
    return found


def matches(data):
    """Pictures that each caption fits, and captions of each picture's first appearance."""
    count = {}
    with open(os.path.join(data, "truth", "test.pairs"), encoding="utf-8") as f:
        for line in f:
            count.setdefault(line.rstrip("\n").split("\t")[1], []).append(line.split("\t")[0])
    return count


def measure(paths, data, measures):
    truth = os.path.join(data, "truth", "test.pairs")
    samples = ["--samples", 7] if "match_prob" in measures else []
    rows = penumbra("eval", "measures", "--images", paths["images"], "--texts", paths["texts"], "--truth",
                    truth, "--measure", *measures, *samples, "--json").json()["measures"]
    return {r["measure"]: r for r in rows}


def intervals(paths, data, how):
    """R-Precision of captions with its interval, and what uncertainty says of R@1."""
    r = penumbra("eval", "retrieval", "--images", paths["images"], "--texts", paths["texts"], "--truth",
                 os.path.join(data, "truth", "test.pairs"), "--measure", how, "--bootstrap", 300,
                 "--json").json()
    row = next(f for f in r["figures"] if f["figure"] == "r_precision")
    return row, r["table"], r["uncertainty"]["text_to_image"]["by_query"]


def uncertainty(report, data, paths, control):
    u, ids = traces(paths["texts"])
    fits = matches(data)
    n_fit = [len(fits.get(i["id"], ())) for i in ids]
    kept = [k for k, n in enumerate(n_fit) if n > 0]
    clusters = {}
    for at, k in enumerate(kept):  # a caption counts with the first picture that it fits
        clusters.setdefault(fits[ids[k]["id"]][0], []).append(at)
    clusters = list(clusters.values())
    bits = [math.log2(n_fit[k]) for k in kept]
    untrained, _ = traces(control["texts"])
    words = [-len(ids[k]["text"].split()) for k in kept]
    rows = [["caption: trace and log2 of the pictures it fits",
             *spearman([u[k] for k in kept], bits, clusters)],
            ["  control: trace of an untrained model",
             *spearman([untrained[k] for k in kept], bits, clusters)],
            ["  control: fewer words", *spearman(words, bits, clusters)]]
    u, ids = traces(paths["images"])
    known = entropies(data)
    h = [known[i["id"]] for i in ids]
    untrained, _ = traces(control["images"])
    alone = [[k] for k in range(len(h))]
    rows += [["picture: trace and known entropy", *spearman(u, h, alone)],
             ["  control: trace of an untrained model", *spearman(untrained, h, alone)]]
    report.table(["rank correlation, seed %d" % SEEDS[0], "", "from", "to"],
                 [[r[0], *("%+.2f" % x for x in r[1:])] for r in rows])


def run():
    report = benchlib.Report("pcme_learning", "what a PCME learns of shapes in %d steps" % STEPS)
    data = benchlib.once(os.path.join(WORK, "shapes-ambiguous-v1"), make_data)
    rows, slowest, means, matched, above = [], 0, [], [], True
    first = None
    for seed in SEEDS:
        model, seconds = train(data, "pcme-%d" % seed, seed, ["--objective", "pcme"])
        slowest = max(slowest, seconds)
        paths = embed(model, data, "pcme-%d" % seed)
        first = first or paths
        found = measure(paths, data, ("mean", "csd", "match_prob"))
        interval, table, says = intervals(paths, data, "match_prob")
        chance = table[3]["r_precision"]
        above = above and interval["t2i_low"] > 2 * chance
        twin, _ = train(data, "twin-%d" % seed, seed, ["--objective", "vse", "--override", TWIN])
        of_twin = measure(embed(twin, data, "twin-%d" % seed), data, ("mean",))
        means.append(found["mean"]["t2i_r_precision"])
        matched.append(found["match_prob"]["t2i_r_precision"])
        rows.append([str(seed), "%.0f s" % seconds,
                     *("%.3f" % found[m]["t2i_r_precision"] for m in ("mean", "csd", "match_prob")),
                     "%.3f..%.3f" % (interval["t2i_low"], interval["t2i_high"]), "%.3f" % chance,
                     "%.3f" % of_twin["mean"]["t2i_r_precision"], "%+.2f" % says["spearman_s"],
                     "%+.2f" % says["query_spearman"]])
    report.say()
    report.table(["seed", "trained in", "R-P mean", "csd", "match_prob", "its interval", "chance",
                  "twin", "S", "on queries"], rows)
    report.say()
    start = os.path.join(WORK, "pcme-learning", "untrained")
    subprocess.run(["rm", "-rf", start], check=True)
    vocabulary = os.path.join(WORK, "pcme-learning", "pcme-0", "checkpoints", "step_%d" % STEPS)
    penumbra("init", "--config", "pcme-tiny", "--tokenizer", vocabulary, "--out", start, "--override",
             '{"text_cfg": {"context_length": 15}}')
    uncertainty(report, data, first, embed(start, data, "untrained"))
    report.say()
    report.say("R-Precision above twice its chance in every seed, with its interval: %s"
               % report.verdict(above, "above_chance", above, True))
    gain = sum(matched) / len(matched) - sum(means) / len(means)
    report.say("match probability less means, mean of the seeds: %+.4f (>= 0): %s"
               % (gain, report.verdict(gain >= 0, "match_less_mean", gain, 0)))
    report.say("slowest training: %.0f s (<= %d): %s"
               % (slowest, LIMIT_S, report.verdict(slowest <= LIMIT_S, "seconds", slowest, LIMIT_S)))
    return report.finish()


if __name__ == "__main__":
    sys.exit(benchlib.main(run))
