"""Captions of 0 to 30 tokens through models whose folder has tokenizer.json alone, padding unsaid.

  padding_case.py DIR     writes DIR/prolip and DIR/siglip: config.json, model.safetensors,
                          tokenizer.json, captions.jsonl and what float64 PyTorch makes of them

The released SigLIP and ProLIP models pad with the end token and attend to padding, so that another
id gives another embedding (cosine 0.3 for short captions). ProLIP is torch_prolip.py; SigLIP's text
tower is here, in the names of transformers. Pieces come from the sentencepiece package; the
tokenizer.json is written in the layout of timm/ViT-B-16-SigLIP: T5, "padding" null, <pad> 0, </s> 1.
"""
import io
import json
import os
import sys

import numpy as np
import sentencepiece
import torch
import torch.nn.functional as F

import safetensors_io
import torch_prolip
from embed_inputs import NOUNS, SPECIAL, WORDS, captions, make_weights
from torch_embed import canonicalize

CONTEXT, MAX_TOKENS, WIDTH = 24, 30, 32
PROLIP = {"embed_dim": WIDTH, "init_logit_bias": -10,
          "text_cfg": {"context_length": CONTEXT, "embed_cls": True, "embed_unc": True, "heads": 2,
                       "hf_tokenizer_name": "timm/ViT-B-16-SigLIP", "init_unc_bias": -10,
                       "layers": 1, "no_causal_mask": True, "norm_kwargs": {"eps": 1e-06},
                       "pool_type": "last", "proj_bias": True,
                       "tokenizer_kwargs": {"clean": "canonicalize"}, "width": WIDTH},
          "vision_cfg": {"embed_unc": True, "head_width": 8, "image_size": 16, "init_unc_bias": -10,
                         "layers": 1, "patch_size": 8, "width": 16}}
TOWER = {"hidden_act": "gelu_pytorch_tanh", "hidden_size": WIDTH, "intermediate_size": 64,
         "layer_norm_eps": 1e-06, "num_attention_heads": 2, "num_hidden_layers": 1}
SIGLIP = {"model_type": "siglip", "architectures": ["SiglipModel"],
          "text_config": {**TOWER, "max_position_embeddings": CONTEXT},
          "vision_config": {**TOWER, "image_size": 16, "patch_size": 8}}


# ---- tokenizer ----

def train_pieces():
    lines = [c.strip() or "a" for c in captions(400)] + NOUNS + WORDS
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=model, vocab_size=150, model_type="unigram",
        normalization_rule_name="identity", pad_id=0, eos_id=1, unk_id=2, bos_id=-1,
        pad_piece="<pad>", num_threads=1, hard_vocab_limit=False, minloglevel=2)
    return sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())


def write_tokenizer(pieces, path):
    special = [{"id": i, "content": pieces.id_to_piece(i), "single_word": False, "lstrip": False,
                "rstrip": False, "normalized": False, "special": True} for i in range(3)]
    space = {"type": "Metaspace", "replacement": "\u2581", "add_prefix_space": True,
             "prepend_scheme": "always"}
    end = {"id": "</s>", "ids": [1], "tokens": ["</s>"]}
    root = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": special,
            "normalizer": {"type": "Sequence", "normalizers": [
                {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}]},
            "pre_tokenizer": space,
            "post_processor": {"type": "TemplateProcessing", "pair": [],
                               "single": [{"Sequence": {"id": "A", "type_id": 0}},
                                          {"SpecialToken": {"id": "</s>", "type_id": 0}}],
                               "special_tokens": {"</s>": end}},
            "decoder": space,
            "model": {"type": "Unigram", "unk_id": 2, "byte_fallback": False,
                      "vocab": [[pieces.id_to_piece(i), pieces.get_score(i)]
                                for i in range(len(pieces))]}}
    with open(path, "w", encoding="utf-8") as f:
        json.dump(root, f, ensure_ascii=False)


def chosen_captions(pieces):
    """One caption of every number of tokens, then strange ones."""
    random, found = np.random.RandomState(5), {0: ""}
    while len(found) <= MAX_TOKENS:
        text = "a " + " ".join(random.choice(WORDS + NOUNS, random.randint(0, 16)).tolist())
        found.setdefault(len(pieces.encode(canonicalize(text))), text)
        found = {n: t for n, t in found.items() if n <= MAX_TOKENS}
    return [found[n] for n in range(MAX_TOKENS + 1)] + SPECIAL[3:5] + SPECIAL[9:14]


def rows_of(pieces, texts):
    ids = [pieces.encode(canonicalize(t))[:CONTEXT - 1] for t in texts]
    return torch.from_numpy(np.array([r + [1] * (CONTEXT - len(r)) for r in ids], np.int64))


# ---- SigLIP ----

def siglip_shapes(vocab):
    shapes = {"logit_scale": (1,), "logit_bias": (1,)}
    inner = TOWER["intermediate_size"]

    def linear(name, n_out, n_in):
        shapes[name + ".weight"], shapes[name + ".bias"] = (n_out, n_in), (n_out,)

    def norm(name):
        shapes[name + ".weight"] = shapes[name + ".bias"] = (WIDTH,)

    def block(tower):
        at = tower + ".encoder.layers.0."
        for part in "q_proj", "k_proj", "v_proj", "out_proj":
            linear(at + "self_attn." + part, WIDTH, WIDTH)
        norm(at + "layer_norm1")
        norm(at + "layer_norm2")
        linear(at + "mlp.fc1", inner, WIDTH)
        linear(at + "mlp.fc2", WIDTH, inner)

    block("text_model")
    block("vision_model")
    shapes["text_model.embeddings.token_embedding.weight"] = (vocab, WIDTH)
    shapes["text_model.embeddings.position_embedding.weight"] = (CONTEXT, WIDTH)
    norm("text_model.final_layer_norm")
    linear("text_model.head", WIDTH, WIDTH)
    shapes["vision_model.embeddings.patch_embedding.weight"] = (WIDTH, 3, 8, 8)
    shapes["vision_model.embeddings.patch_embedding.bias"] = (WIDTH,)
    shapes["vision_model.embeddings.position_embedding.weight"] = (4, WIDTH)
    norm("vision_model.post_layernorm")
    head = "vision_model.head."
    shapes[head + "probe"] = (1, 1, WIDTH)
    shapes[head + "attention.in_proj_weight"] = (3 * WIDTH, WIDTH)
    shapes[head + "attention.in_proj_bias"] = (3 * WIDTH,)
    linear(head + "attention.out_proj", WIDTH, WIDTH)
    norm(head + "layernorm")
    linear(head + "mlp.fc1", inner, WIDTH)
    linear(head + "mlp.fc2", WIDTH, inner)
    return shapes


def siglip_weights(vocab):
    random = np.random.RandomState(8)
    weights = {}
    for name, shape in siglip_shapes(vocab).items():
        x = random.standard_normal(shape)
        if "norm" in name:
            x = 0.1 * x + name.endswith("weight")
        elif name.endswith("bias"):
            x = 0.1 * x
        elif len(shape) > 1 and "embedding.weight" not in name:
            x = 1.5 * x / np.sqrt(np.prod(shape[1:]))
        weights[name] = np.asarray(0.5 * x if "embedding.weight" in name else x, np.float32)
    return weights


def siglip_text(weights, ids):
    """SiglipTextTransformer: no mask of any kind, read at the last position, then the head."""
    w = {k[len("text_model."):]: torch.from_numpy(v).double() for k, v in weights.items()
         if k.startswith("text_model.")}
    heads, at = TOWER["num_attention_heads"], "encoder.layers.0."

    def linear(x, name):
        return F.linear(x, w[name + ".weight"], w[name + ".bias"])

    def norm(x, name):
        return F.layer_norm(x, (WIDTH,), w[name + ".weight"], w[name + ".bias"], 1e-6)

    def split(x):
        return x.view(len(ids), CONTEXT, heads, WIDTH // heads).transpose(1, 2)

    x = w["embeddings.token_embedding.weight"][ids] + w["embeddings.position_embedding.weight"]
    y = norm(x, at + "layer_norm1")
    q, k, v = (split(linear(y, at + "self_attn." + p + "_proj")) for p in "qkv")
    y = torch.softmax(q @ k.transpose(-2, -1) / (WIDTH // heads) ** 0.5, -1) @ v
    x = x + linear(y.transpose(1, 2).reshape(len(ids), CONTEXT, WIDTH), at + "self_attn.out_proj")
    y = linear(norm(x, at + "layer_norm2"), at + "mlp.fc1")
    y = 0.5 * y * (1 + torch.tanh((2 / np.pi) ** 0.5 * (y + 0.044715 * y ** 3)))
    x = x + linear(y, at + "mlp.fc2")
    return F.normalize(linear(norm(x, "final_layer_norm")[:, -1], "head"), dim=-1)


# ---- the whole ----

def write_folder(folder, config, pieces, texts):
    os.makedirs(folder)
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as f:
        json.dump(config, f, indent=2, sort_keys=True)
    write_tokenizer(pieces, os.path.join(folder, "tokenizer.json"))
    with open(os.path.join(folder, "captions.jsonl"), "w", encoding="utf-8") as f:
        for i, text in enumerate(texts):
            f.write(json.dumps({"id": str(i), "text": text}) + "\n")


def main():
    torch.manual_seed(0)
    pieces = train_pieces()
    texts = chosen_captions(pieces)
    ids = rows_of(pieces, texts)
    for name, config in (("prolip", PROLIP), ("siglip", SIGLIP)):
        folder = os.path.join(sys.argv[1], name)
        config["text_config" if name == "siglip" else "text_cfg"]["vocab_size"] = len(pieces)
        write_folder(folder, config, pieces, texts)
        path = os.path.join(folder, "model.safetensors")
        if name == "siglip":
            weights = siglip_weights(len(pieces))
            safetensors_io.save(path, weights)
            expected = {"mean": siglip_text(weights, ids).numpy()}
        else:
            make_weights(config, path)
            with torch.no_grad():
                mean, log_var = torch_prolip.load(folder).double().eval().encode_text(ids)
            expected = {"mean": mean.numpy(), "log_var": log_var.numpy()}
        safetensors_io.save(os.path.join(folder, "expected.safetensors"), expected)


main()
