#!/usr/bin/env -S python3 -B
"""Claims, on a processor with a tile unit (AMX): ViT-B/16 in bf16 takes at most 0.22 of ONNX Runtime's
f32 time, in fp32-tiles 0.45, in int8 0.40 of its fastest int8 time.

Needs BENCH_ORT, as `encode.py` does; without a tile unit there is nothing to measure.
"""
import os
import sys

import benchlib
import compare
import encode
import ort

ROWS = [("image", "bf16", 1, 0.22, 5), ("image", "bf16", 8, 0.22, 5), ("image", "bf16", 32, 0.22, 3),
        ("text", "bf16", 64, 0.22, 3), ("image", "fp32-tiles", 8, 0.45, 3)]
INT8_TARGET = 0.40


def of_precision(model, tower, precision, batch, target, rounds):
    title = "%s %s, batch %d" % (tower, precision, batch)
    case = compare.Case(title, "encode", model, batch, tower, rounds=rounds)
    case.options += ["--precision", precision]
    case.ort_target, case.ort_peer = target, ort.OrtPeer(case, model)
    return case


def run():
    only = os.environ.get("BENCH_ONLY")  # "text": the cases whose title begins so

    def wanted(title):
        return only is None or title.startswith(only)

    if "amx" not in benchlib.penumbra("info", "--cpu", "--json").json()["used"]:
        raise benchlib.CannotMeasure("this processor has no tile unit")
    if not ort.is_asked_for():
        raise benchlib.CannotMeasure("BENCH_ORT names no folder with onnxruntime-node")
    ort.check()
    model = benchlib.vit_b_16()
    cases = [c for c in (of_precision(model, *row) for row in ROWS) if wanted(c.title)]
    small = encode.int8_cases(model, wanted)
    for case in small:
        case.ort_target = INT8_TARGET
    if not cases + small:
        benchlib.refuse("BENCH_ONLY=%s: no case's title begins so" % only)
    return compare.run_cases("tiles", "encoding with ViT-B/16 on a tile unit", cases + small)


if __name__ == "__main__":
    sys.exit(benchlib.main(run))
