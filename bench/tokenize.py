#!/usr/bin/env -S python3 -B
"""Claim: text becomes token ids at 1 MB/s or more on one core, with every kind of vocabulary.

The text is this repository's own documentation and sources, one line a caption; the vocabularies
are those of tests/golden, a byte-level one trained on the text, and whatever BENCH_TOKENIZERS names
(a list of paths with ':' between, for released ones). Cleaning is the dearest that the kind is used
with.
"""
import glob
import os
import sys

import benchlib

LIMIT_MB_S = 1.0
GOLDEN = os.path.join(benchlib.ROOT, "tests", "golden", "tokenizers")


def texts():
    """About 2 MB of lines that are not empty."""
    def make(path):
        names = [n for p in ("*.md", "docs/**/*.md", "src/**/*.c", "include/**/*.h", "tests/**/*.c")
                 for n in glob.glob(os.path.join(benchlib.ROOT, p), recursive=True)]
        with open(path, "w", encoding="utf-8") as out:
            for name in sorted(names):
                with open(name, encoding="utf-8", errors="replace") as f:
                    out.writelines(line.strip() + "\n" for line in f if line.strip())
    return benchlib.once(os.path.join(benchlib.WORK, "tokenize.txt"), make)


def trained(path):
    def make(out):
        benchlib.penumbra("tokenizer", "train", "--captions", path, "--vocab-size", 4000,
                          "--clean", "none", "--out", out)
    return benchlib.once(os.path.join(benchlib.WORK, "tokenize.json"), make)


def golden(case, name):
    return os.path.join(GOLDEN, case, name)


def cases(path):
    yield "CLIP's BPE, 1500 merges", golden("clip_bpe", "tiny_merges.txt"), "lower"
    model = "tokenizer.model"
    yield "SentencePiece unigram, nmt_nfkc", golden("sp_unigram400", model), "canonicalize"
    model_json = golden("sp_unigram_identity", "tokenizer.json")
    yield "unigram from tokenizer.json", model_json, "canonicalize"
    yield "SentencePiece BPE with bytes", golden("sp_bpe_bytefallback", model), "canonicalize"
    yield "byte-level BPE, 4000 entries", trained(path), "none"
    for extra in filter(None, os.environ.get("BENCH_TOKENIZERS", "").split(":")):
        yield os.path.basename(extra), extra, "lower"


def run():
    report = benchlib.Report("tokenize", "text to token ids, one thread, MB/s")
    path = texts()
    rows = []
    for title, tokenizer, clean in cases(path):
        r = benchlib.penumbra("bench", "tokenize", "--tokenizer", tokenizer, "--texts", path,
                              "--clean", clean, "--seconds", 2, "--json").json()
        rows.append([title, clean, "%d" % r["n_tokens"], "%.2f" % r["mb_per_s"],
                     ">= %g" % LIMIT_MB_S, report.verdict(r["mb_per_s"] >= LIMIT_MB_S)])
    report.say()
    report.table(["vocabulary", "cleaning", "tokens", "MB/s", "target", ""], rows)
    return report.finish()


if __name__ == "__main__":
    sys.exit(benchlib.main(run))
