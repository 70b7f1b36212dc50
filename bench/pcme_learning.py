#!/usr/bin/env -S python3 -B
"""Claims: a whole PCME (narrow ResNet and bi-GRU) learns shapes within six minutes, far above chance;
ranking by its match probability is no worse than by its means; what its uncertainty follows.

    pcme_learning.py [--save]

5,000 scenes, half of them blurred, three in ten with something in front, three in ten without
colours, so that what is known of a picture is known (entropy_bits); captions of all levels. For
seeds 0, 1, 2: `train --objective pcme`, and its deterministic twin, which has the same towers with
attention and without the uncertainty heads, by margins to all negatives (`--objective vse`). Test
pictures and captions are embedded and ranked by means, by the closed-form distance and by the match
probability of 7 samples, PCME's number, and of 21, which have less noise of draws. Time is the
processor's, of all threads: what one free core takes, whatever else the machine does. R-Precision is
of captions that look for pictures; its interval and those of R@1, of the rank correlations and of
AUROC resample pictures with their captions. Controls of what a caption's trace says: an untrained
model's trace, and the number of words, fewer words counting as uncertain.
"""
import json
import math
import os
import random
import resource
import subprocess
import sys
import tarfile

import benchlib
from benchlib import WORK, penumbra

SEEDS, STEPS, LIMIT_S, RESAMPLES, MANY = (0, 1, 2), 800, 360, 500, 21
TRAINED = os.environ.get("BENCH_TRAINED")
TWIN = '{"attention": true}'


def make_data(path):
    penumbra("data", "shapes", "--n", 5000, "--blur", 0.5, "--occlude", 0.3, "--grey", 0.3, "--seed", 1,
             "--out", path)


def record_of(name):
    return os.path.join(WORK, "pcme-learning", name + ".trained.json")


def trained(name):
    """What an earlier run wrote of a training of as many steps; None: nothing, or it is not asked for."""
    if not TRAINED or not os.path.exists(record_of(name)):
        return None
    with open(record_of(name), encoding="utf-8") as f:
        found = json.load(f)
    return found if found["steps"] == STEPS else None


def train(data, name, seed, options):
    """Folder of the model, and processor seconds of its training; with BENCH_TRAINED nothing is trained: None."""
    found = trained(name)
    if found is None and TRAINED:
        return None, None
    if found is None:
        logs = os.path.join(WORK, "pcme-learning")
        subprocess.run(["rm", "-rf", os.path.join(logs, name)], check=True)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = penumbra("train", *options, "--train-data", os.path.join(data, "train"), "--val-data",
                        os.path.join(data, "val"), "--max-steps", STEPS, "--seed", seed, "--logs", logs,
                        "--name", name, "--json", wait="sleeping")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        found = {"checkpoint_dir": done.json()["checkpoint_dir"], "cpu_s": cpu_s, "steps": STEPS}
        with open(record_of(name), "w", encoding="utf-8") as f:
            json.dump(found, f)
    return found["checkpoint_dir"], found["cpu_s"]


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


def measure(paths, data, measures, n_samples=7):
    truth = os.path.join(data, "truth", "test.pairs")
    samples = ["--samples", n_samples] if "match_prob" in measures else []
    rows = penumbra("eval", "measures", "--images", paths["images"], "--texts", paths["texts"], "--truth",
                    truth, "--measure", *measures, *samples, "--json").json()["measures"]
    return {r["measure"]: r for r in rows}


def intervals(paths, data, how):
    """Figures of captions as queries, with their intervals; chance of them; bins of uncertainty."""
    r = penumbra("eval", "retrieval", "--images", paths["images"], "--texts", paths["texts"], "--truth",
                 os.path.join(data, "truth", "test.pairs"), "--measure", how, "--bootstrap", 300,
                 "--json").json()
    found = {f["figure"]: f for f in r["figures"] if f["sorted_by"] in ("", "query")}
    return found, r["table"][3], r["uncertainty"]["text_to_image"]["by_query"]


def shown(figure, form="%.3f"):
    return (form + " [" + form + ".." + form + "]") % (figure["t2i"], figure["t2i_low"], figure["t2i_high"])


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
    rows, told, slowest, above = [], [], 0, True
    found = {name: [] for name in ("mean", "csd", "match_prob", "many")}
    first = vocabulary = None
    for seed in SEEDS:
        model, seconds = train(data, "pcme-%d" % seed, seed, ["--objective", "pcme"])
        if model is None:
            raise benchlib.CannotMeasure("no PCME of seed %d and %d steps is there: run without BENCH_TRAINED"
                                         % (seed, STEPS))
        slowest = max(slowest, seconds)
        paths = embed(model, data, "pcme-%d" % seed)
        first, vocabulary = (first, vocabulary) if first else (paths, model)
        here = measure(paths, data, ("mean", "csd", "match_prob"))
        here["many"] = measure(paths, data, ("match_prob",), MANY)["match_prob"]
        for name in found:
            found[name].append(here[name])
        figures, by_chance, says = intervals(paths, data, "match_prob")
        interval, chance = figures["r_precision"], by_chance["r_precision"]
        above = above and interval["t2i_low"] > 2 * chance
        twin, _ = train(data, "twin-%d" % seed, seed, ["--objective", "vse", "--override", TWIN])
        of_twin = measure(embed(twin, data, "twin-%d" % seed), data, ("mean",))["mean"] if twin else None
        rows.append([str(seed), "%.0f s" % seconds,
                     *("%.4f" % here[m][way + "_r_precision"] for way in ("i2t", "t2i") for m in found)])
        told.append([str(seed), "%.3f..%.3f" % (interval["t2i_low"], interval["t2i_high"]), "%.3f" % chance,
                     "%.3f" % of_twin["t2i_r_precision"] if of_twin else "-", shown(figures["recall@1"]),
                     "%.3f" % of_twin["t2i_recall_at_1"] if of_twin else "-", "%+.2f" % says["spearman_s"],
                     shown(figures["query_spearman"], "%+.2f"), shown(figures["auroc"])])
    many = "%d samples" % MANY
    report.say()
    report.say("R-Precision by means, csd, match probability of 7 samples and of %s" % many)
    report.table(["seed", "trained in", "i2t mean", "csd", "match", many, "t2i mean", "csd", "match", many], rows)
    report.say()
    report.say("captions as queries: R-Precision and R@1 of the match probability, the twin beside; what the trace "
               "says of R@1")
    report.table(["seed", "R-P from..to", "chance", "twin", "R@1", "twin", "S, ten bins", "caption by caption",
                  "AUROC of failure"], told)
    report.say()
    start = os.path.join(WORK, "pcme-learning", "untrained")
    subprocess.run(["rm", "-rf", start], check=True)
    penumbra("init", "--config", "pcme-tiny", "--tokenizer", vocabulary, "--out", start, "--override",
             '{"text_cfg": {"context_length": 15}}')
    uncertainty(report, data, first, embed(start, data, "untrained"))
    report.say()
    report.say("R-Precision above twice its chance in every seed, with its interval: %s"
               % report.verdict(above, "above_chance", above, True))
    for name, n in (("match_prob", 7), ("many", MANY)):
        gain = {way: sum(m["%s_r_precision" % way] - o["%s_r_precision" % way]
                         for m, o in zip(found[name], found["mean"])) / len(SEEDS) for way in ("i2t", "t2i")}
        gain["both"] = (gain["i2t"] + gain["t2i"]) / 2
        for way in ("i2t", "t2i", "both"):
            report.say("match probability of %d samples less means, %s, mean of the seeds: %+.4f (>= 0): %s"
                       % (n, way, gain[way],
                          report.verdict(gain[way] >= 0, "%s_less_mean_%s" % (name, way), gain[way], 0)))
    report.say("slowest training: %.0f s of the processor (<= %d): %s"
               % (slowest, LIMIT_S, report.verdict(slowest <= LIMIT_S, "seconds", slowest, LIMIT_S)))
    return report.finish()


if __name__ == "__main__":
    sys.exit(benchlib.main(run))
