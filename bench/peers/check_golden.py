#!/usr/bin/python3 -B
"""Checks torch_prolip.py against golden cases: a peer that computes something else proves nothing.

    check_golden.py [CASE_DIR...]     default: the ProLIP cases of tests/golden

Runs in float64 and compares values and gradients under each case's tolerances. The exit status is
the verdict. Cases of other model families than ProLIP are named and left out.
"""
import fnmatch
import glob
import json
import os
import sys

import numpy as np
import torch

import safetensors_io
import torch_prolip


class Case:
    def __init__(self, folder):
        self.folder = folder
        with open(os.path.join(folder, "case.json"), encoding="utf-8") as f:
            self.info = json.load(f)
        self.arrays = safetensors_io.load(os.path.join(folder, "tensors.safetensors"))
        self.n_compared = self.n_wrong = 0

    def get(self, name):
        return torch.from_numpy(self.arrays[name]) if name in self.arrays else None

    def tolerance(self, name):
        chosen = self.info["tolerance"]["default"]
        for pattern, value in self.info["tolerance"].items():
            if pattern != "default" and fnmatch.fnmatch(name, pattern):
                chosen = value
        return chosen

    def compare(self, name, got):
        if name not in self.arrays or got is None:
            return
        got = got.detach().double().numpy()
        want = self.arrays[name].astype(np.float64)
        t = self.tolerance(name)
        size = np.abs(want).max() if t.get("scale") == "max" else np.abs(want)
        error = np.abs(got - want)
        self.n_compared += 1
        if got.shape != want.shape or not np.all(error <= t["abs"] + t["rel"] * size):
            self.n_wrong += 1
            print(f"  {name}: worst error {error.max():.3g}")

    def compare_pair(self, name, pair):
        self.compare(name + ".mean", pair[0])
        self.compare(name + ".std", pair[1])  # the reference calls log sigma^2 "std"


def check_towers(case, model):
    pixels, ids = case.get("pixels").double(), case.get("ids")
    with torch.no_grad():
        case.compare_pair("image", model.encode_image(pixels, normalize=False))
        case.compare_pair("image_norm", model.encode_image(pixels))
        case.compare_pair("text", model.encode_text(ids, normalize=False))
        case.compare_pair("text_norm", model.encode_text(ids))
        if case.get("ids_short") is not None:
            case.compare_pair("text_short", model.encode_text(case.get("ids_short")))
        if case.get("mask.kept") is not None:
            case.compare_pair("image_masked", model.encode_image(pixels, case.get("mask.kept")))
    case.compare("logit_scale", model.logit_scale.exp())
    case.compare("logit_bias", model.logit_bias)


def loss_weights(h):
    """Arguments of the reference's loss by our names; its own defaults where they are not given."""
    return {"ppcl": h.get("ppcl_lambda", 1), "inclusion": h.get("inclusion_alpha", 0),
            "masked": h.get("inclusion_alpha_occ", 0) if h.get("n_masked_samples") else 0,
            "vib": h.get("vib_beta", 1e-5), "c": h.get("inclusion_loss_scale", 1000),
            "eps": h.get("inclusion_loss_eps", -10)}


def check_train_step(case, model):
    pixels, ids, masked = case.get("pixels").double(), case.get("ids"), case.get("masked_ids")
    sides = (model.encode_image(pixels), model.encode_text(ids),
             model.encode_image(pixels[:len(masked)], case.get("mask.kept")),
             model.encode_text(masked))
    h = case.info["hyperparameters"]
    weights = loss_weights({**h["loss_kwargs"], "n_masked_samples": len(masked)})
    terms = torch_prolip.losses(*sides, model.logit_scale.exp(), model.logit_bias, weights, True)
    for name, pair in zip(("image", "text", "masked_image", "masked_text"), sides):
        case.compare_pair(name, pair)
    check_terms(case, terms)
    for name, p in model.named_parameters():
        case.compare("grad." + name, p.grad)


def check_terms(case, terms):
    total = sum(terms.values())
    if total.requires_grad:  # a term over its limit is a constant 0
        total.backward()
    for name, value in terms.items():
        case.compare("loss." + name, value)
    case.compare("loss.total", total)


def check_loss(case):
    h = case.info["hyperparameters"]
    if h.get("negative_only") or "siglip_lambda" in h or "B" not in h:
        return
    inputs = {k: case.get(k).requires_grad_(True) for k, v in case.info["tensors"].items()
              if v["role"] == "input"}
    sides = [(inputs[s + ".mean"], inputs[s + ".std"]) if s + ".mean" in inputs else None
             for s in ("image", "text", "masked_image", "masked_text")]
    check_terms(case, torch_prolip.losses(*sides, inputs["logit_scale"], inputs["logit_bias"],
                                          loss_weights(h), True))
    for name, x in inputs.items():
        case.compare("grad." + name, x.grad)


def is_prolip(case):
    kwargs = case.info["hyperparameters"].get("constructor_kwargs", {})
    return kwargs.get("text_cfg", {}).get("embed_cls", False)


def check(folder):
    case = Case(folder)
    if case.info["family"] == "prolip_loss":
        check_loss(case)
    elif is_prolip(case):
        for attention in ("products", "module"):
            model = torch_prolip.load(folder, attention).double()
            (check_train_step if "loss.total" in case.arrays else check_towers)(case, model)
    verdict = ("left out" if case.n_compared == 0 else
               "wrong" if case.n_wrong else "agrees")
    print(f"{os.path.basename(folder)}: {verdict}, {case.n_compared} tensors compared")
    return case


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    golden = os.path.join(here, "..", "..", "tests", "golden")
    folders = sys.argv[1:] or sorted(glob.glob(golden + "/prolip_model/*") +
                                     glob.glob(golden + "/prolip_loss/*"))
    cases = [check(f) for f in folders if os.path.exists(os.path.join(f, "case.json"))]
    n, wrong = sum(c.n_compared for c in cases), sum(c.n_wrong for c in cases)
    print(f"{n} tensors compared, {wrong} wrong")
    return 0 if n > 0 and wrong == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
