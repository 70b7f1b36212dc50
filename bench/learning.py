#!/usr/bin/env -S python3 -B
"""Claim: a small training learns what the reference learned, in less time than PyTorch.

    learning.py [--sets shapes emoji] [--seeds 1 2 3] [--peer-seeds 1 2 3] [--steps 600] [--reuse]
                [--variants unc_token scale_10] [--save]

For each set and seed, in one run and from the same initial weights: our training, PyTorch's
(bench/peers/torch_train.py, same data, settings and number of steps), and a control whose
log-variance head is untrained (pairwise sigmoid loss of the means alone; its head starts with the
reference's spread, the other two with the almost flat one of small training). All three are
embedded and evaluated by our program on pictures and captions of the test split.

--variants adds trainings that differ from ours in one thing each, in columns of their own and
without a verdict: unc_token takes a caption's log-variance from the output of [UNC] instead of the
projected mean, scale_10 has the inclusion scale 10 instead of 1000. They answer why a default is
what it is; with them --save writes bench/results/learning_variants.txt. `--peer-seeds` without a
number leaves PyTorch out.

The reference's figures are two runs of the official model and loss code under PyTorch 1.13 with the
same settings on sets built by the same rules, except that its shapes were drawn smaller and without
outlines. A figure is met when the mean over our seeds is at least the lower of the reference's two
runs; a claim about text, when it holds in every seed.
"""
import argparse
import json
import os
import subprocess
import sys
import tarfile

import benchlib
from benchlib import THREADS, WORK, median, penumbra

# The reference's two runs; shares in percent.
REFERENCE = {
    "shapes": {
        "i2t_r1": (11.2, 11.0), "i2t_r5": (43.6, 48.6), "i2t_r10": (72.0, 75.4),
        "t2i_r1": (11.0, 12.4), "t2i_r5": (42.8, 44.2), "t2i_r10": (70.0, 72.0),
        "rp_level0": (67.5, 64.2), "rp_level1": (20.4, 21.7),
        "u_level0": (.145, .145), "u_level1": (.097, .099), "u_level2": (.085, .076),
        "u_level3": (.062, .048), "u_image": (.027, .022),
        "above": (98.0, 99.6), "in_order": (51.0, 60.0),
        "masked_image": (100.0, 100.0), "included": (100.0, 100.0),
        "s_level3": (-.86, -.15), "r2_level3": (.66, .03), "s_mixed": (-.51, -.90)},
    "emoji": {
        "i2t_r1": (4.9, 3.2), "i2t_r5": (18.3, 17.6), "i2t_r10": (28.5, 26.4),
        "t2i_r1": (3.2, 4.6), "t2i_r5": (18.0, 17.6), "t2i_r10": (29.6, 29.6),
        "rp_level0": (50.4, 45.9), "rp_level1": (16.5, 10.1),
        "group": (56.3, 53.2), "subgroup": (28.5, 23.2),
        "u_level0": (.169, .204), "u_level1": (.168, .181), "u_level2": (.189, .205),
        "u_level3": (.128, .146), "u_image": (.043, .035),
        "above": (81.0, 81.0), "in_order": (5.0, 4.0),
        "masked_image": (100.0, 100.0), "included": (100.0, 100.0),
        "s_level3": (-.59, .21), "r2_level3": (.33, .02), "s_mixed": (-.81, -.32)}}

LABELS = [
    ("i2t_r1", "picture to caption, level 3, R@1 %"), ("i2t_r5", "  R@5 %"),
    ("i2t_r10", "  R@10 %"), ("t2i_r1", "caption to picture, level 3, R@1 %"),
    ("t2i_r5", "  R@5 %"), ("t2i_r10", "  R@10 %"),
    ("rp_level0", "caption to picture, R-Precision, level 0 %"), ("rp_level1", "  level 1 %"),
    ("group", "zero-shot group (of 9) %"), ("subgroup", "zero-shot subgroup (of 99) %"),
    ("u_level0", "mean trace, captions of level 0"), ("u_level1", "  level 1"),
    ("u_level2", "  level 2"), ("u_level3", "  level 3"), ("u_image", "  pictures"),
    ("above", "a picture's level 0 above its level 3 %"), ("in_order", "  all four in order %"),
    ("masked_image", "masked picture more uncertain %"), ("included", "H(picture in masked) > 0 %"),
    ("masked_text", "masked caption more uncertain %"),
    ("s_level3", "S of t2i R@1 over 10 bins, level 3"), ("r2_level3", "  R2"),
    ("s_mixed", "  S, all levels mixed"),
    ("auc_colour", "AUC of colour words (\"a red shape\")"),
    ("auc_form", "AUC of form words (\"a star\")")]

# Higher is better and the reference tells how high.
COMPARED = ["i2t_r1", "i2t_r5", "i2t_r10", "t2i_r1", "t2i_r5", "t2i_r10", "rp_level0", "rp_level1",
            "group", "subgroup", "above", "in_order", "masked_image", "included"]
AT_LEAST = {"auc_colour": .98, "auc_form": .80}
# The reference's code takes a caption's log-variance from its projected mean.
REFERENCE_CONFIG = {"text_uncertainty_source": "projected_mean"}
# The control's head stays as it starts: with the reference's spread, not the almost flat one of
# training, which would say nothing by construction. All other weights start the same.
CONTROL_HEAD = {"init_unc_std": 128**-0.5}
CONTROL_CONFIG = {**REFERENCE_CONFIG, "vision_cfg": CONTROL_HEAD, "text_cfg": CONTROL_HEAD}
CONTROL = ["--ppcl-lambda", 0, "--siglip-lambda", 1, "--vib-beta", 0, "--inclusion-alpha", 0,
           "--inclusion-alpha-occ", 0]
# Ours with one thing changed: what is added to the configuration, and options of training.
VARIANTS = {
    "unc_token": ({"text_uncertainty_source": "unc_token"}, []),
    "scale_10": ({}, ["--inclusion-scale", 10, "--inclusion-eps", -10])}
# Every training by its name: configuration to start from, options, and what the start is kept as.
TRAININGS = {
    "ours": (REFERENCE_CONFIG, [], "flat"),
    "PyTorch": (REFERENCE_CONFIG, [], "flat"),
    "control": (CONTROL_CONFIG, CONTROL, "control"),
    **{who: ({**REFERENCE_CONFIG, **config}, options, "flat-" + who if config else "flat")
       for who, (config, options) in VARIANTS.items()}}


# ---- data ----

def build_set(name):
    if name == "shapes":
        return benchlib.shapes()
    return benchlib.once(os.path.join(WORK, name), lambda p: penumbra("data", name, "--out", p))


def level3_captions(data):
    """One caption of level 3 a picture, in the pictures' order: row i belongs to picture i."""
    def make(path):
        with open(path, "w", encoding="utf-8") as out:
            for shard in sorted(os.listdir(os.path.join(data, "test"))):
                if not shard.endswith(".tar"):
                    continue
                with tarfile.open(os.path.join(data, "test", shard)) as tar:
                    for m in tar:
                        if m.name.endswith(".json"):
                            r = json.load(tar.extractfile(m))
                            text = r["captions"][r["levels"].index(3)]
                            row = {"id": m.name[:-len(".json")], "level": 3, "text": text}
                            out.write(json.dumps(row, ensure_ascii=False) + "\n")
    return benchlib.once(os.path.join(WORK, os.path.basename(data) + ".level3.jsonl"), make)


def start_weights(name, data, seed, config, head):
    kind, vocabulary = ("word", 2000) if name == "shapes" else ("bpe", 1500)
    tokenizer = benchlib.word_tokenizer(os.path.join(data, "train"), name + ".tokenizer.json", kind,
                                        vocabulary)
    return benchlib.once(
        os.path.join(WORK, "%s-start-%s-%d" % (name, head, seed)),
        lambda path: penumbra("init", "--config", "tiny", "--override", json.dumps(config),
                              "--tokenizer", tokenizer, "--seed", seed, "--out", path))


# ---- training and embedding ----

class Run:
    """One training: where it lies, how it is done, what it shows."""

    def __init__(self, name, who, seed, args):
        self.set, self.who, self.seed, self.steps = name, who, seed, args.steps
        self.data = build_set(name)
        config, self.options, head = TRAININGS[who]
        self.start = start_weights(name, self.data, seed, config, head)
        self.dir = os.path.join(WORK, "learning", "%s-%s-%d" % (name, who, seed))
        self.result = os.path.join(self.dir, "training.json")
        if not (args.reuse and os.path.exists(self.result)):
            subprocess.run(["rm", "-rf", self.dir], check=True)
            os.makedirs(self.dir)
            self.train()
        with open(self.result, encoding="utf-8") as f:
            self.training = json.load(f)
        self.model = self.training["model"]

    def train(self):
        train_data = os.path.join(self.data, "train")
        if self.who == "PyTorch":
            out = os.path.join(self.dir, "model")
            done = benchlib.peer("torch_train.py", "--model", self.start, "--train-data",
                                 train_data, "--steps", self.steps, "--seed", self.seed, "--out",
                                 out).json()
            done["model"] = out
        else:
            done = penumbra("train", "--model", self.start, "--train-data", train_data,
                            "--max-steps", self.steps, "--seed", self.seed, "--logs", self.dir,
                            "--name", "run", "--save-frequency", 0, "--quiet", "--json",
                            *self.options, wait="sleeping").json()
            done["model"] = done["checkpoint_dir"]
        with open(self.result, "w", encoding="utf-8") as f:
            json.dump(done, f)

    def embed(self, name, *inputs):
        out = os.path.join(self.dir, name + ".safetensors")
        if not os.path.exists(out):
            penumbra("embed", "--model", self.model, *inputs, "--batch-size", 64, "--out", out,
                     "--quiet", wait="sleeping")
        return out

    def evaluate(self):
        test, captions = os.path.join(self.data, "test"), os.path.join(self.data, "test",
                                                                       "captions.jsonl")
        images = self.embed("images", "--images", test)
        masked = self.embed("masked", "--images", test, "--masked")
        texts = self.embed("texts", "--texts", captions)
        masked_texts = self.embed("masked-texts", "--texts", captions, "--masked")
        paired = self.embed("paired", "--texts", level3_captions(self.data))
        truth = os.path.join(self.data, "truth", "test.pairs")

        def retrieval(*args):
            return penumbra("eval", "retrieval", "--images", images, *args, "--json",
                            wait="sleeping").json()
        claims = penumbra("eval", "uncertainty", "--images", images, "--texts", texts, "--truth",
                          truth, "--masked-images", masked, "--masked-texts", masked_texts,
                          "--json", wait="sleeping").json()["claims"]
        levels = [retrieval("--texts", texts, "--truth", truth, "--level", i) for i in (0, 1)]
        figures = {**figures_of_pairs(retrieval("--texts", paired)), **figures_of_claims(claims)}
        figures["s_mixed"] = spearman(retrieval("--texts", texts, "--truth", truth))
        for i, r in enumerate(levels):
            figures["rp_level%d" % i] = 100 * r["metrics"]["image_retrieval_r_precision"]
        if self.set == "emoji":
            for key, r in zip(("group", "subgroup"), levels):
                figures[key] = 100 * r["metrics"]["text_retrieval_recall@1"]
        else:
            figures.update(word_auc(images, texts, truth))
        return figures


# ---- figures ----

def figures_of_pairs(r):
    m, bins = r["metrics"], r["uncertainty"]["text_to_image"]
    out = {"%s_r%d" % (ours, k): 100 * m["%s_retrieval_recall@%d" % (theirs, k)]
           for ours, theirs in (("i2t", "text"), ("t2i", "image")) for k in (1, 5, 10)}
    return {**out, "s_level3": bins["spearman_s"], "r2_level3": bins["r2"]}


def figures_of_claims(c):
    out = {"u_level%d" % i: c["level_%d_mean" % i] for i in range(4)}
    out["u_image"] = c["image_mean"]
    for ours, theirs in (("above", "image_above"), ("in_order", "image_in_order"),
                         ("masked_image", "masked_image_above"), ("included", "image_included"),
                         ("masked_text", "masked_text_above")):
        out[ours] = 100 * c[theirs] if c.get(theirs) is not None else float("nan")
    return out


def spearman(r):
    return r["uncertainty"]["text_to_image"]["spearman_s"]


def word_auc(images, texts, truth):
    """AUC of similarity at level-0 captions, true pictures against the others, mean over words."""
    code = subprocess.run([benchlib.PYTHON, os.path.join(benchlib.PEERS, "word_auc.py"), images,
                           texts, truth], check=True, capture_output=True, text=True,
                          env=benchlib.clean_environment())
    return json.loads(code.stdout)


# ---- report ----

def cell(values, key):
    if not values:
        return "-"
    digits = 1 if "%" in dict(LABELS)[key] else 3
    return " ".join("%.*f" % (digits, v[key]) for v in values)


def mean(values, key):
    return sum(v[key] for v in values) / len(values)


def figure_rows(report, name, figures):
    rows = []
    for key, label in LABELS:
        if key not in figures["ours"][0]:
            continue
        reference, verdict = REFERENCE[name].get(key), ""
        if key in COMPARED:
            verdict = report.verdict(mean(figures["ours"], key) >= min(reference))
        elif key in AT_LEAST:
            verdict = report.verdict(min(v[key] for v in figures["ours"]) >= AT_LEAST[key])
        told = "%g, %g" % reference if reference else (
            ">= %g" % AT_LEAST[key] if key in AT_LEAST else "-")
        rows.append([label, *(cell(figures[w], key) for w in figures), told, verdict])
    return rows


def text_claims(report, figures):
    """What shapes must show in every seed."""
    def in_every(test):
        return report.verdict(all(test(f) for f in figures["ours"]))
    rows = [("mean traces fall from level 0 to level 3",
             lambda f: f["u_level0"] > f["u_level1"] > f["u_level2"] > f["u_level3"]),
            ("level 0 above level 3 in at least 95% of pictures", lambda f: f["above"] >= 95),
            ("masked pictures and captions more uncertain, at least 95%",
             lambda f: min(f["masked_image"], f["masked_text"]) >= 95)]
    report.say("In every seed (what the control shows too was not taught by the losses; the order "
               "of levels is taught by the inclusion loss on masked captions):")
    for text, test in rows:
        held = sum(1 for f in figures["control"] if test(f))
        report.say("  %s: %s; control in %d of %d" % (text, in_every(test), held,
                                                      len(figures["control"])))


def time_line(report, runs):
    ours = [r.training["seconds"] for r in runs["ours"]]
    peers = [r.training["seconds"] for r in runs["PyTorch"]]
    if not peers:
        return
    ratio = median(ours) / median(peers)
    report.say("seconds of %d steps, one after the other in this run: ours %s, PyTorch %s, ratio "
               "of medians %.3f, target < 1: %s" % (
                   runs["ours"][0].steps, " ".join("%.1f" % s for s in ours),
                   " ".join("%.1f" % s for s in peers), ratio, report.verdict(ratio < 1, "%s: time to PyTorch" % name, ratio, "< 1")))


def run_set(report, name, args):
    runs = {w: [] for w in TRAININGS if w not in VARIANTS or w in args.variants}
    for seed in args.seeds:
        for who, done in runs.items():
            if who != "PyTorch" or seed in args.peer_seeds:
                done.append(Run(name, who, seed, args))
    figures = {w: [r.evaluate() for r in runs[w]] for w in runs}
    report.say()
    report.say("-- %s, seeds %s, %d steps, %d threads --" % (
        name, " ".join(map(str, args.seeds)), args.steps, THREADS))
    report.table(["figure, one value a seed", *runs, "reference", ""],
                 figure_rows(report, name, figures))
    if name == "shapes":
        text_claims(report, figures)
    time_line(report, runs)


def parse_args():
    p = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    p.add_argument("--sets", nargs="+", default=["shapes", "emoji"], choices=list(REFERENCE))
    p.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    p.add_argument("--peer-seeds", nargs="*", type=int, default=[1, 2, 3])
    p.add_argument("--variants", nargs="*", default=[], choices=list(VARIANTS))
    p.add_argument("--steps", type=int, default=600)
    p.add_argument("--reuse", action="store_true", help="trainings that lie there are not repeated")
    p.add_argument("--save", action="store_true", help="write it into bench/results")
    return p.parse_args()


def run():
    args = parse_args()
    if args.peer_seeds:
        benchlib.check_peer()
    report = benchlib.Report("learning_variants" if args.variants else "learning", "what a small training learns, and how fast")
    for name in args.sets:
        run_set(report, name, args)
    return report.finish()


if __name__ == "__main__":
    sys.exit(benchlib.main(run, own_options=True))
