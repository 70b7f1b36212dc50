"""Inputs of end_to_end.py: a model folder as ProLIP's are released, pictures of many kinds, captions.

  embed_inputs.py DIR [--small]     writes DIR/model, DIR/pictures, DIR/captions.jsonl

The weights are random, but larger than a fresh model's, so that different inputs get different
embeddings and a fault of the pipeline shows. --small is the case that tests/app keeps.
"""
import argparse
import io
import json
import os

import numpy as np
import sentencepiece
import torch
from PIL import Image

import safetensors_io
import torch_prolip

CLEAN = {"clean": "canonicalize"}
LARGE = {"embed_dim": 256, "init_logit_bias": -10,
         "text_cfg": {"context_length": 64, "embed_cls": True, "embed_unc": True, "heads": 4,
                      "init_unc_bias": -10, "layers": 6, "no_causal_mask": True,
                      "norm_kwargs": {"eps": 1e-06}, "pool_type": "last", "proj_bias": True,
                      "tokenizer_kwargs": CLEAN, "vocab_size": 400, "width": 256},
         "vision_cfg": {"embed_unc": True, "image_size": 224, "init_unc_bias": -10, "layers": 6,
                        "patch_size": 16, "width": 256}}
SMALL = {**LARGE, "embed_dim": 32,
         "text_cfg": {**LARGE["text_cfg"], "context_length": 16, "heads": 2, "layers": 1,
                      "vocab_size": 150, "width": 32},
         "vision_cfg": {**LARGE["vision_cfg"], "head_width": 16, "image_size": 48, "layers": 2,
                        "patch_size": 8, "width": 32}}


def make_weights(config, path):
    random = np.random.RandomState(7)
    weights = {}
    for name, value in torch_prolip.ProLIP(config).state_dict().items():
        shape, x = tuple(value.shape), random.standard_normal(tuple(value.shape))
        if not shape:
            x = value.numpy()
        elif "ln_" in name:
            x = 0.1 * x + name.endswith("weight")
        elif "uncertainty" in name and name.endswith("bias"):
            x = -10 + 0.5 * x
        elif name.endswith("bias"):
            x = 0.1 * x
        elif "uncertainty" in name:
            x = 0.5 * x / np.sqrt(shape[-1])
        elif name.endswith("weight") and len(shape) > 1 and "embedding" not in name:
            x = 1.5 * x / np.sqrt(np.prod(shape[1:]))
        elif name == "visual.proj":
            x = x / np.sqrt(shape[0])
        else:
            x = 0.5 * x
        weights[name] = np.asarray(x, np.float32)
    safetensors_io.save(path, weights)


# ---- captions ----

NOUNS = "cat dog bridge harbour lantern violin mountain teapot tram umbrella".split()
WORDS = "red small wooden old striped quiet two three beside under above near".split()
SPECIAL = ["", " ", "a", "A_snake_case caption", "Punctuation!? (all) of it; gone...",
           "caf\u00e9 na\u00efve \u00fcber stra\u00dfe", "cafe\u0301 composed", "\u732b\u3068\u72ac",
           "\u043a\u043e\u0448\u043a\u0430 \u0438 \u0441\u043e\u0431\u0430\u043a\u0430",
           "\u201cquoted\u201d and \u2018single\u2019", "salt &amp; pepper &lt;b&gt;",
           "tabs\tand  many   blanks", "\U0001f408 emoji \U0001f308", "UPPER lower MiXeD 123 4.5",
           "word " * 200, "x" * 300]


def captions(n):
    random = np.random.RandomState(3)
    out = list(SPECIAL)
    while len(out) < n:
        words = random.choice(WORDS, random.randint(1, 9)).tolist()
        out.append("a %s %s" % (" ".join(words), random.choice(NOUNS)))
    return out[:n]


def make_tokenizer(path, vocabulary, rule):
    lines = [c.strip() or "a" for c in captions(400)] + NOUNS + WORDS
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=model, vocab_size=vocabulary,
        model_type="unigram", normalization_rule_name=rule, pad_id=0, eos_id=1, unk_id=2, bos_id=-1,
        pad_piece="<pad>", num_threads=1, hard_vocab_limit=False, minloglevel=2)
    with open(path, "wb") as f:
        f.write(model.getvalue())


# ---- pictures ----

def photo(width, height, seed):
    """Noise of all sizes, as a photograph has detail of all sizes."""
    random = np.random.RandomState(seed)
    picture = np.zeros((height, width, 3))
    for k in range(1, 7):
        rough = random.rand(height // 2 ** k + 2, width // 2 ** k + 2, 3) * 255
        layer = Image.fromarray(rough.astype(np.uint8)).resize((width, height), Image.BICUBIC)
        picture += (np.asarray(layer) - 127.5) * 2.0 ** (k - 7)
    tint = random.rand(3) * 80 - 40
    return Image.fromarray(np.clip(127.5 + tint + picture * 2, 0, 255).astype(np.uint8))


def with_alpha(picture, mode):
    ramp = np.linspace(0, 255, picture.width * picture.height).astype(np.uint8)
    alpha = Image.fromarray(ramp.reshape(picture.height, picture.width))
    picture = picture.convert("L" if mode == "LA" else "RGB")
    picture.putalpha(alpha)
    return picture


def sixteen_bits(picture):
    values = np.asarray(picture.convert("L"), np.uint16)
    return Image.fromarray(values * 2)


def turned():
    exif = Image.Exif()
    exif[0x0112] = 6
    return {"exif": exif}


def pictures(small):
    """(name, picture, options of save) of every kind; six of them for the small case."""
    w, h = (96, 64) if small else (640, 480)
    kinds = [
        ("420.jpg", photo(w, h, 1), {"quality": 90, "subsampling": 2}),
        ("palette.png", photo(w - 19, h + 8, 2).quantize(32), {}),
        ("rgba.png", with_alpha(photo(w // 2, h, 3), "RGBA"), {}),
        ("16bit.png", sixteen_bits(photo(w // 2 + 3, h // 2, 4)), {}),
        ("lossy.webp", photo(w, h, 5), {"quality": 80}),
        ("tiny.png", photo(5, 3, 6), {}),
    ]
    if small:
        return kinds
    return kinds + [
        ("444.jpg", photo(500, 333, 11), {"quality": 95, "subsampling": 0}),
        ("422.jpg", photo(333, 500, 12), {"quality": 85, "subsampling": 1}),
        ("progressive.jpg", photo(801, 601, 13), {"progressive": True, "quality": 75}),
        ("grey.jpg", photo(400, 300, 14).convert("L"), {"quality": 90}),
        ("cmyk.jpg", photo(320, 240, 15).convert("CMYK"), {"quality": 90}),
        ("turned.jpg", photo(300, 200, 16), {"quality": 90, **turned()}),
        ("poor.jpg", photo(640, 427, 17), {"quality": 10}),
        ("odd.jpg", photo(227, 225, 18), {"quality": 90, "subsampling": 2}),
        ("small.jpg", photo(31, 17, 19), {"quality": 90, "subsampling": 2}),
        ("exact.png", photo(224, 224, 20), {}),
        ("almost.png", photo(225, 224, 21), {}),
        ("crop3.png", photo(227, 224, 22), {}),
        ("bilevel.png", photo(300, 260, 23).convert("1"), {}),
        ("grey.png", photo(260, 300, 24).convert("L"), {}),
        ("la.png", with_alpha(photo(280, 240, 25), "LA"), {}),
        ("transparent.png", photo(250, 250, 26).quantize(8), {"transparency": 3}),
        ("palette2.png", photo(1000, 700, 27).quantize(256), {}),
        ("tall.png", photo(40, 1200, 28), {}),
        ("wide.jpg", photo(1500, 60, 29), {"quality": 90}),
        ("one.png", photo(1, 1, 30), {}),
        ("large.jpg", photo(2000, 1500, 31), {"quality": 85}),
        ("lossless.webp", photo(300, 211, 32), {"lossless": True}),
        ("alpha.webp", with_alpha(photo(210, 300, 33), "RGBA"), {"lossless": True, "exact": True}),
        ("flat.png", Image.new("RGB", (300, 200), (200, 30, 90)), {}),
    ]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("dir")
    parser.add_argument("--small", action="store_true")
    args = parser.parse_args()
    model = os.path.join(args.dir, "model")
    folder = os.path.join(args.dir, "pictures")
    config = SMALL if args.small else LARGE
    for made in (model, folder):
        os.makedirs(made)
    with open(os.path.join(model, "config.json"), "w", encoding="utf-8") as f:
        json.dump(config, f, indent=2, sort_keys=True)
    make_weights(config, os.path.join(model, "model.safetensors"))
    # The normaliser's table alone has 240 kB; tests/golden/tokenizers has one.
    make_tokenizer(os.path.join(model, "spiece.model"), config["text_cfg"]["vocab_size"],
                   "identity" if args.small else "nmt_nfkc")
    for name, picture, options in pictures(args.small):
        picture.save(os.path.join(folder, name), **options)
    chosen = captions(50) if not args.small else [SPECIAL[i] for i in (0, 4, 5, 10, 14)] + [
        "two old cats beside a teapot"]
    with open(os.path.join(args.dir, "captions.jsonl"), "w", encoding="utf-8") as f:
        for i, text in enumerate(chosen):
            f.write(json.dumps({"id": str(i), "text": text}) + "\n")


if __name__ == "__main__":
    torch.manual_seed(0)
    main()
