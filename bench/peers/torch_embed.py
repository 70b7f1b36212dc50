"""The peer of end_to_end.py: picture files and captions to embeddings, in Python from end to end.

  torch_embed.py embed MODEL OUT --pictures FILE... | --captions FILE.jsonl   [--order hf|open_clip]
  torch_embed.py compare A B      worst cosine distance of rows, worst relative error of a variance

Pillow decodes, resizes and crops; numpy normalises; the sentencepiece package makes token ids;
torch_prolip.py is the model, in float64. MODEL holds config.json, model.safetensors and
spiece.model. `hf` is transformers' CLIPProcessor (RGB, shortest side, crop rounded down), `open_clip`
its evaluation transform (shortest side, crop rounded half to even, then RGB).
"""
import argparse
import html
import json
import os
import re
import string
import unicodedata

import numpy as np
import sentencepiece
import torch
from PIL import Image

import safetensors_io
import torch_prolip

MEAN = (0.48145466, 0.4578275, 0.40821073)
STD = (0.26862954, 0.26130258, 0.27577711)


# ---- pictures ----

def shortest_side(picture, size, resample):
    w, h = picture.size
    short, long = min(w, h), max(w, h)
    other = int(size * long / short)
    return picture.resize((size, other) if w <= h else (other, size), resample)


def prepare(path, size, order, resample=Image.BICUBIC):
    picture = Image.open(path)
    if order == "hf":
        picture = picture.convert("RGB")
    picture = shortest_side(picture, size, resample)
    w, h = picture.size
    if order == "hf":
        left, top = (w - size) // 2, (h - size) // 2
    else:
        left, top = int(round((w - size) / 2.0)), int(round((h - size) / 2.0))
    picture = picture.crop((left, top, left + size, top + size)).convert("RGB")
    values = np.asarray(picture, np.float32) / np.float32(255)
    values = (values - np.array(MEAN, np.float32)) / np.array(STD, np.float32)
    return values.transpose(2, 0, 1)


# ---- captions ----

QUOTES = str.maketrans({"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"'})


def canonicalize(text):
    """open_clip's cleaning of that name; of ftfy only quotes and composed characters are here."""
    text = unicodedata.normalize("NFC", text.translate(QUOTES))
    text = html.unescape(html.unescape(text)).strip().replace("_", " ")
    text = text.translate(str.maketrans("", "", string.punctuation)).lower()
    return re.sub(r"\s+", " ", text).strip()


def tokens_of(captions, model_dir, context):
    """SigLIP's ids: pieces, the end token, and the end token again as padding."""
    pieces = sentencepiece.SentencePieceProcessor(
        model_file=os.path.join(model_dir, "spiece.model"))
    end = pieces.eos_id()
    rows = []
    for caption in captions:
        ids = pieces.encode(canonicalize(caption))[:context - 1]
        rows.append(ids + [end] * (context - len(ids)))
    return np.array(rows, np.int64)


# ---- embedding and comparing ----

def embed(args):
    torch.set_num_threads(args.threads)
    config = torch_prolip.read_config(args.model)
    model = torch_prolip.load(args.model).double().eval()
    with torch.no_grad():
        if args.pictures:
            size = config["vision_cfg"]["image_size"]
            resample = Image.BILINEAR if args.wrong_filter else Image.BICUBIC
            rows = [prepare(p, size, args.order, resample) for p in args.pictures]
            pixels = torch.from_numpy(np.stack(rows)).double()
            parts = [model.encode_image(pixels[i:i + 1]) for i in range(len(pixels))]
        else:
            with open(args.captions, encoding="utf-8") as f:
                captions = [json.loads(line)["text"] for line in f]
            ids = tokens_of(captions, args.model, config["text_cfg"]["context_length"])
            parts = [model.encode_text(torch.from_numpy(ids[i:i + 1])) for i in range(len(ids))]
    safetensors_io.save(args.out, {"mean": torch.cat([m for m, _ in parts]).numpy(),
                                   "log_var": torch.cat([v for _, v in parts]).numpy()})


def compare(path_a, path_b):
    a, b = safetensors_io.load(path_a), safetensors_io.load(path_b)
    mean = [x["mean"].astype(np.float64) for x in (a, b)]
    log_var = [x["log_var"].astype(np.float64) for x in (a, b)]
    if mean[0].shape != mean[1].shape:
        raise SystemExit("%s has %s rows, %s has %s" % (path_a, mean[0].shape, path_b,
                                                        mean[1].shape))
    unit = [m / np.linalg.norm(m, axis=1, keepdims=True) for m in mean]
    distance = 0.5 * ((unit[0] - unit[1]) ** 2).sum(1)  # 1 - cosine without its cancellation
    variance = np.abs(np.expm1(log_var[0] - log_var[1])).max(1)
    among = unit[1] @ unit[1].T
    others = among[~np.eye(len(among), dtype=bool)]
    print(json.dumps({"n": len(distance), "cosine": float(distance.max()),
                      "cosine_row": int(distance.argmax()), "variance": float(variance.max()),
                      "variance_row": int(variance.argmax()),
                      "median_distance": float(1 - np.median(others))}))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=("embed", "compare"))
    parser.add_argument("model")
    parser.add_argument("out")
    parser.add_argument("--pictures", nargs="+")
    parser.add_argument("--captions")
    parser.add_argument("--order", choices=("hf", "open_clip"), default="hf")
    parser.add_argument("--wrong-filter", action="store_true", help="bilinear: what a fault gives")
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    if args.what == "embed":
        embed(args)
    else:
        compare(args.model, args.out)


if __name__ == "__main__":
    main()
