#!/usr/bin/env -S python3 -B
"""Claim: picture files and captions give the embeddings of an independent pipeline: within 1e-4 in
cosine distance and 1e-3 of every variance.

A ProLIP folder as they are released (no preprocessing there), 30 pictures of many kinds and 50
captions; the peer is Pillow, numpy, the sentencepiece package and float64 PyTorch, and shares no
code with ours. The last row shows that the bound would find a fault: the peer against itself with a
bilinear resize. --freeze DIR writes the small case of tests/commands/data/end_to_end instead.
"""
import json
import os
import shutil
import subprocess
import sys

import benchlib

MAX_COSINE, MAX_VARIANCE = 1e-4, 1e-3
OPEN_CLIP = {"preprocess_cfg": {"size": 224, "mode": "RGB", "interpolation": "bicubic",
                                "resize_mode": "shortest",
                                "mean": [0.48145466, 0.4578275, 0.40821073],
                                "std": [0.26862954, 0.26130258, 0.27577711]}}


def check_peer():
    try:
        subprocess.run([benchlib.PYTHON, "-c", "import torch, numpy, PIL, sentencepiece"],
                       check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as e:
        raise benchlib.CannotMeasure("the peer needs Debian's python3-torch, python3-pil and "
                                     "python3-sentencepiece (or set BENCH_PYTHON)") from e


def make_inputs(path, *options):
    subprocess.run([benchlib.PYTHON, "-B", os.path.join(benchlib.PEERS, "embed_inputs.py"), path,
                    *options], check=True, stderr=subprocess.DEVNULL)


def pictures_of(folder):
    folder = os.path.join(folder, "pictures")
    return [os.path.join(folder, name) for name in sorted(os.listdir(folder))]


def peer_embed(folder, out, *inputs):
    benchlib.peer("torch_embed.py", "embed", os.path.join(folder, "model"), out, *inputs)


def compare(ours, theirs):
    script = os.path.join(benchlib.PEERS, "torch_embed.py")
    return benchlib.Finished([benchlib.PYTHON, script, "compare", ours, theirs],
                             benchlib.clean_environment()).json()


def freeze(folder):
    shutil.rmtree(folder, ignore_errors=True)
    make_inputs(folder, "--small")
    peer_embed(folder, os.path.join(folder, "pictures.safetensors"), "--pictures",
               *pictures_of(folder))
    peer_embed(folder, os.path.join(folder, "captions.safetensors"), "--captions",
               os.path.join(folder, "captions.jsonl"))
    print("%s written" % folder)
    return 0


def row(report, name, n, found, what):
    is_met = found["cosine"] <= MAX_COSINE and found["variance"] <= MAX_VARIANCE
    return [name, n, "%.1e" % found["cosine"], "%.1e" % found["variance"], what,
            report.verdict(is_met)]


def measure(report, folder):
    work = [os.path.join(folder, n) for n in ("ours.safetensors", "peer.safetensors")]
    model, pictures = os.path.join(folder, "model"), pictures_of(folder)
    config = os.path.join(folder, "open_clip_config.json")
    with open(config, "w", encoding="utf-8") as f:
        json.dump(OPEN_CLIP, f)
    rows = []
    for name, order, options in (("pictures, as released (CLIPProcessor)", "hf", []),
                                 ("pictures, open_clip's transform", "open_clip",
                                  ["--preprocess", config])):
        benchlib.penumbra("embed", "-q", "-m", model, "--images", *pictures, "-o", work[0],
                          *options)
        peer_embed(folder, work[1], "--order", order, "--pictures", *pictures)
        rows.append(row(report, name, len(pictures), compare(*work), "1e-4, 1e-3"))
    peer_embed(folder, work[0], "--order", "open_clip", "--wrong-filter", "--pictures", *pictures)
    control = compare(*work)
    texts = os.path.join(folder, "captions.jsonl")
    benchlib.penumbra("embed", "-q", "-m", model, "--texts", texts, "-o", work[0])
    peer_embed(folder, work[1], "--captions", texts)
    found = compare(*work)
    rows.append(row(report, "captions", found["n"], found, "1e-4, 1e-3"))
    rows.append(["control: a bilinear resize", len(pictures), "%.1e" % control["cosine"],
                 "%.1e" % control["variance"], "above both",
                 report.verdict(control["cosine"] > MAX_COSINE and
                                control["variance"] > MAX_VARIANCE)])
    return rows


def run():
    check_peer()
    if "--freeze" in sys.argv:
        return freeze(sys.argv[sys.argv.index("--freeze") + 1])
    report = benchlib.Report("end_to_end", "picture files and captions beside an independent "
                             "pipeline", is_timed=False)
    folder = benchlib.once(os.path.join(benchlib.WORK, "end-to-end"), make_inputs)
    report.say("width 256, 6 + 6 layers, random weights; JPEG, PNG and WebP from 1x1 to 2000x1500")
    report.say()
    report.table(["inputs", "n", "worst cosine distance", "worst variance, relative", "target",
                  ""], measure(report, folder))
    return report.finish()


if __name__ == "__main__":
    sys.exit(benchlib.main(run))
