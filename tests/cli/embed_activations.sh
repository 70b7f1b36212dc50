#!/bin/bash
# embed --activations: what stands before the last projection, and BayesVLM on it.
source "$(dirname "$0")/common/lib.sh"
make_small
for side in images texts; do
    inputs=shapes/test
    test $side = images || inputs=shapes/test/captions.jsonl
    want 0 embed -m model --$side $inputs -o $side.safetensors -q
    want 0 embed -m model --$side $inputs --activations -o $side.before.safetensors -q
    want 0 embed -m model --$side $inputs --activations -b 3 -o $side.again.safetensors -q
done
check "the projection of activations is the embedding" python3 - <<'PY'
import glob, json, math, struct
def load(path):
    data = open(path, "rb").read()
    n = struct.unpack("<Q", data[:8])[0]
    head = json.loads(data[8:8 + n])
    def array(name):
        a = head[name]
        count = 1
        for size in a["shape"]:
            count *= size
        at = 8 + n + a["data_offsets"][0]
        assert a["dtype"] == "F32"
        return a["shape"], struct.unpack("<%df" % count, data[at:at + 4 * count])
    return head, array
weights, w = load(glob.glob("model/*.safetensors")[0])
for side in ("images", "texts"):
    head, after = load(side + ".safetensors")
    meta, before = load(side + ".before.safetensors")
    assert [l["name"] for l in json.loads(meta["__metadata__"]["adapters"])] == ["activations"]
    assert meta["__metadata__"]["family"] == "point" and "log_var" not in meta
    (n, dim), mean = after("mean")
    (n_before, width), phi = before("mean")
    assert n == n_before
    (_, again) = load(side + ".again.safetensors")[1]("mean")
    assert all(abs(x - y) <= 1e-4 * max(1, abs(x)) for x, y in zip(phi, again))
    if side == "images":
        shape, p = w("visual.proj")
        assert shape == [width, dim]
        weight, bias = (lambda d, c: p[c * dim + d]), [0.0] * dim
    else:
        shape, p = w("text.text_projection.weight")
        assert shape == [dim, width]
        weight, bias = (lambda d, c: p[d * width + c]), w("text.text_projection.bias")[1]
    for i in range(n):
        g = [bias[d] + sum(weight(d, c) * phi[i * width + c] for c in range(width)) for d in range(dim)]
        length = math.sqrt(sum(x * x for x in g))
        for d in range(dim):
            assert abs(g[d] / length - mean[i * dim + d]) < 1e-4, (side, i, d)
PY
want 1 eval retrieval --images images.before.safetensors --texts texts.safetensors --truth shapes/truth/test.pairs
says "cannot be compared"

# Laplace on the projections: unit means that are the model's, and a spread
before=(--images images.before.safetensors --texts texts.before.safetensors)
want 0 adapt train --method bayesvlm "${before[@]}" --model model --out bayes
prints "image_projection"
for side in images texts; do
    want 0 adapt apply --adapter bayes --$side $side.before.safetensors -o $side.bayes.safetensors
done
want 0 eval retrieval --images images.bayes.safetensors --texts texts.bayes.safetensors --truth shapes/truth/test.pairs
check "means are the model's embeddings" python3 - <<'PY'
import json, struct
def mean(path):
    data = open(path, "rb").read()
    n = struct.unpack("<Q", data[:8])[0]
    a = json.loads(data[8:8 + n])["mean"]
    at = 8 + n + a["data_offsets"][0]
    return struct.unpack("<%df" % (a["shape"][0] * a["shape"][1]), data[at:8 + n + a["data_offsets"][1]])
for side in ("images", "texts"):
    x, y = mean(side + ".safetensors"), mean(side + ".bayes.safetensors")
    assert len(x) == len(y) and max(abs(a - b) for a, b in zip(x, y)) < 1e-4
PY

# SigLIP's image tower adds what its head read to its last product: both stand in a row
cat >siglip.json <<'JSON'
{"embed_dim":24,"init_logit_bias":-10,"custom_text":true,
 "vision_cfg":{"image_size":16,"timm_model_name":"vit_base_patch16_siglip_224","timm_model_pretrained":false,
  "timm_pool":"map","timm_proj":"none",
  "timm_model_kwargs":{"img_size":16,"patch_size":8,"embed_dim":24,"depth":2,"num_heads":2,"mlp_ratio":2.5}},
 "text_cfg":{"context_length":6,"vocab_size":300,"width":32,"heads":4,"layers":2,"mlp_ratio":3,"no_causal_mask":true,
  "proj_bias":true,"pool_type":"last","norm_kwargs":{"eps":1e-06}}}
JSON
want 0 init --config siglip.json --tokenizer tok.json --out siglip -q
for side in images texts; do
    inputs=shapes/test
    test $side = images || inputs=shapes/test/captions.jsonl
    want 0 embed -m siglip --$side $inputs --raw -o $side.siglip.safetensors -q
    want 0 embed -m siglip --$side $inputs --activations -o $side.head.safetensors -q
done
want 0 adapt train --method bayesvlm --images images.head.safetensors --texts texts.head.safetensors \
    --model siglip --loss siglip --logit-scale 10 --logit-bias -10 --out head
for side in images texts; do
    want 0 adapt apply --adapter head --$side $side.head.safetensors -o $side.laplace.safetensors
done
check "W phi + h is SigLIP's embedding, in the set and behind the adapter" python3 - <<'PY'
import glob, json, math, struct
def load(path):
    data = open(path, "rb").read()
    n = struct.unpack("<Q", data[:8])[0]
    head = json.loads(data[8:8 + n])
    def array(name):
        a = head[name]
        begin, end = a["data_offsets"]
        return a["shape"], struct.unpack("<%df" % ((end - begin) // 4), data[8 + n + begin:8 + n + end])
    return array
w = load(glob.glob("siglip/*.safetensors")[0])
(dim, inner), p = w("visual.attn_pool.mlp.c_proj.weight")
_, bias = w("visual.attn_pool.mlp.c_proj.bias")
(n, width), rows = load("images.head.safetensors")("mean")
_, mean = load("images.siglip.safetensors")("mean")
_, unit = load("images.laplace.safetensors")("mean")
shape, log_var = load("images.laplace.safetensors")("log_var")
assert (width, dim, inner) == (84, 24, 60) and shape == [n, 24]
for i in range(n):
    phi, h = rows[i * width:i * width + inner], rows[i * width + inner:(i + 1) * width]
    g = [h[d] + bias[d] + sum(p[d * inner + c] * phi[c] for c in range(inner)) for d in range(dim)]
    length = math.sqrt(sum(x * x for x in g))
    for d in range(dim):
        assert abs(g[d] - mean[i * dim + d]) < 1e-4 * (1 + abs(g[d])), (i, d)
        assert abs(g[d] / length - unit[i * dim + d]) < 1e-5, (i, d)
# what is uncertain is W: the spread of a row follows phi, and twice h only makes directions surer
assert len({round(log_var[i * dim] - log_var[i * dim + 1], 3) for i in range(n)}) == 1
PY

# towers of two widths, as CLIP's are
want 0 init --config tiny --override "${small_config/\"width\":32,\"heads\"/\"width\":16,\"heads\"}" \
    --tokenizer tok.json --out narrow -q
for side in images texts; do
    inputs=shapes/test
    test $side = images || inputs=shapes/test/captions.jsonl
    want 0 embed -m narrow --$side $inputs --activations -o $side.narrow.safetensors -q
done
narrow=(--images images.narrow.safetensors --texts texts.narrow.safetensors)
want 0 info texts.narrow.safetensors --json
prints '"dim": 16'
want 1 adapt train --method bayesvlm "${narrow[@]}" --out wrong
says "images of width 32 and texts of width 16: its contrast takes cosines of both sides"
want 0 adapt train --method bayesvlm "${narrow[@]}" --model narrow --out meet
for side in images texts; do
    want 0 adapt apply --adapter meet --$side $side.narrow.safetensors -o $side.meet.safetensors
done
want 0 eval retrieval --images images.meet.safetensors --texts texts.meet.safetensors --truth shapes/truth/test.pairs
want 1 adapt train --method bayesvlm --images images.safetensors --texts texts.safetensors --model none --out wrong
want 1 adapt train --method whitened "${before[@]}" --model model --out wrong
says "whitened has no use for a model's projections"
finish
