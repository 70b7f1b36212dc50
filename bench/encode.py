#!/usr/bin/env -S python3 -B
"""Claims: ViT-B/16 in f32 encodes pictures and captions in at most 0.70-0.80 of PyTorch's time.

With BENCH_ORT also: in at most 0.82-0.92 of ONNX Runtime's f32 time; pictures in int8 in at most
0.85 of its fastest int8 time, with a mean cosine of 0.9995 to f32.
"""
import os
import sys

import benchlib
import compare
import ort

MIN_INT8_COSINE = 0.9995
ORT_TARGETS = {("image", 1): 0.92, ("image", 8): 0.92, ("image", 32): 0.82,
               ("text", 1): 0.90, ("text", 64): 0.90}
ORT_INT8_TARGET = 0.85


def torch_cases(model):
    return [compare.Case("image, batch 1", "encode", model, 1, "image", time=0.75),
            compare.Case("image, batch 8", "encode", model, 8, "image", time=0.80),
            compare.Case("image, batch 32", "encode", model, 32, "image", time=0.70, rounds=3),
            compare.Case("text, batch 1", "encode", model, 1, "text", time=0.75),
            compare.Case("text, batch 64", "encode", model, 64, "text", time=0.75, rounds=3)]


def add_ort(case):
    case.ort_target = ORT_TARGETS[case.tower, case.batch]
    case.ort_peer = ort.OrtPeer(case, case.model)


def int8_cases(model, wanted):
    batches = [(b, rounds) for b, rounds in ((1, 5), (8, 5), (32, 3))
               if wanted("image int8, batch %d" % b)]
    cases = []
    for batch, rounds in batches:
        case = compare.Case("image int8, batch %d" % batch, "encode", ort.int8_model(model), batch,
                            "image", rounds=rounds)
        case.ort_target = ORT_INT8_TARGET
        case.ort_peer = ort.OrtPeer(case, model, ort.INT8_KINDS)
        cases.append(case)
    return cases


def int8_cosines(report, model):
    found, among = ort.cosines(model, ort.int8_model(model), "image")
    rows = []
    report.say()
    for name, f in found:
        row = [name, "%.6f" % f["mean_cosine"], "%.6f" % f["min_cosine"]]
        if name == "ours":
            is_met = f["mean_cosine"] >= MIN_INT8_COSINE
            row += [">= %.4f" % MIN_INT8_COSINE, report.verdict(is_met)]
        rows.append(row + [""] * (5 - len(row)))
    report.table(["cosine of int8 to our f32 image means", "mean", "least", "target", ""], rows)
    report.say("%d pictures; two of them have a cosine of %.3f to each other (random weights)" % (
        found[0][1]["rows"], among))


def run():
    only = os.environ.get("BENCH_ONLY")  # "text": the cases whose title begins so

    def wanted(title):
        return only is None or title.startswith(only)

    model, small, after, types = benchlib.vit_b_16(), [], None, "f32"
    cases = [c for c in torch_cases(model) if wanted(c.title)]
    if ort.is_asked_for():
        ort.check()
        for case in cases:
            add_ort(case)
        small = int8_cases(model, wanted)
    if small:
        types = "f32 and int8"

        def after(report):
            int8_cosines(report, model)
    if not cases + small:
        benchlib.refuse("BENCH_ONLY=%s: no case's title begins so" % only)
    return compare.run_cases("encode", "encoding with ViT-B/16, 224 px, 64 tokens, " + types,
                             cases + small, after)


if __name__ == "__main__":
    sys.exit(benchlib.main(run))
