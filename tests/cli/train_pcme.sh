#!/bin/bash
# train --objective pcme and its baselines: learning, two phases, resuming, and what comes of the sets.
source "$(dirname "$0")/common/lib.sh"
want 0 data shapes --out s --n 160 --val-share 0.2 --test-share 0.2 -q
narrow='{"embed_dim": 16, "vision_cfg": {"base": 4}, "text_cfg": {"word_dim": 8}}'
train=(train --train-data s/train --val-data s/val --override "$narrow" --batch-size 16 --logs l --workers 0)
want 0 "${train[@]}" --objective pcme --name a --max-steps 8 --json
want 0 info l/a/checkpoints/step_8
prints "ResNet 1-1-1-1 of 4"
prints "a of match_prob"
check "no logits of cosines" test "$(grep -c '^logit scale' out)" -eq 0

# in one piece or resumed: the same bits, draws of samples and moments of batch norms included
want 0 "${train[@]}" --objective pcme --name b --max-steps 8 --save-frequency 1
want 0 "${train[@]}" --objective pcme --name c --max-steps 8 --resume l/b/checkpoints/epoch_1
check "resumed is the same" cmp -s l/b/checkpoints/step_8/model.safetensors l/c/checkpoints/step_8/model.safetensors
want 1 "${train[@]}" --objective pcme --name d --max-steps 8 --samples 3 --resume l/b/checkpoints/epoch_1
says "n_samples"

# phases: in the first the trunk and the words stand still, running moments move
want 0 init --config pcme-tiny --override "$narrow" --tokenizer l/a/checkpoints/step_8 --out start
want 0 "${train[@]:0:5}" --model start --batch-size 16 --logs l --workers 0 --objective pcme --name e --head-epochs 1 \
    --epochs 2 --save-frequency 1 --wd 0 -q
check "the trunk stands still, heads do not" python3 - <<'PY'
import json, struct
def load(path):
    data = open(path, "rb").read()
    n = struct.unpack("<Q", data[:8])[0]
    head = json.loads(data[8:8 + n])
    return {k: data[8 + n + v["data_offsets"][0]:8 + n + v["data_offsets"][1]]
            for k, v in head.items() if k != "__metadata__"}
start, one, two = (load(p) for p in ("start/model.safetensors", "l/e/checkpoints/epoch_1/model.safetensors",
                                      "l/e/checkpoints/epoch_2/model.safetensors"))
for name in start:
    trunk = name.startswith("img_enc.cnn.") or name == "txt_enc.embed.weight"
    buffer = name.endswith(("running_mean", "running_var", "num_batches_tracked"))
    reverse = name.endswith("weight_hh_l0_reverse")  # its gradient is 0
    assert (start[name] == one[name]) == ((trunk and not buffer) or reverse), name
    assert (one[name] == two[name]) == reverse, name
PY
want 1 train --train-data s/train --val-data s/val --batch-size 16 --logs l --name f --head-epochs 1
says "has no pretrained trunk"
want 1 "${train[@]}" --objective pcme --name g --head-epochs 9 --max-steps 8
says "leaves none of the 8 steps"

want 1 "${train[@]}" --objective pcme --name g --accum-freq 2 --max-steps 2
says "need the whole batch in one pass"
want 0 "${train[@]:0:5}" --model pcme-tiny --batch-size 8 --accum-freq 2 --logs l --workers 0 --objective pcme --name g \
    --override '{"embed_dim": 16, "vision_cfg": {"base": 4, "frozen_norm": true}}' --max-steps 2 -q

# keys of PCME's own code, a and b themselves; there and back the same bits; a trunk from torchvision's names
want 0 convert l/a/checkpoints/step_8 --to pcme --out released --json
prints '"n_carried"'
want 0 convert released --to pcme --out again -q
check "there and back" cmp -s released/model.safetensors again/model.safetensors
want 1 convert released --to hf --out hf
check "the keys that torch asks for" python3 - <<'PY'
import json, math, struct
def arrays(path):
    data = open(path, "rb").read()
    n = struct.unpack("<Q", data[:8])[0]
    head = json.loads(data[8:8 + n])
    return {k: (v["dtype"], v["shape"], data[8 + n + v["data_offsets"][0]:8 + n + v["data_offsets"][1]])
            for k, v in head.items() if k != "__metadata__"}
ours, theirs = arrays("l/a/checkpoints/step_8/model.safetensors"), arrays("released/model.safetensors")
counts = [k for k in theirs if k.endswith(".num_batches_tracked")]
assert len(counts) == sum(k.endswith(".running_var") for k in theirs) > 8
assert all(theirs[k] == ("I64", [], struct.pack("<q", 8)) for k in counts), theirs[counts[0]]
assert {k: v for k, v in ours.items() if not k.startswith("logit_")} == {k: v for k, v in theirs.items() if not k.startswith("criterion.")}
a, log_a = struct.unpack("<f", theirs["criterion.negative_scale"][2])[0], struct.unpack("<f", ours["logit_scale"][2])[0]
assert abs(a - math.exp(log_a)) < 1e-6 * a and theirs["criterion.negative_scale"][1] == [1]
assert theirs["criterion.shift"][2] == ours["logit_bias"][2]
trunk = {k[len("img_enc.cnn."):]: v for k, v in ours.items() if k.startswith("img_enc.cnn.")}
trunk["fc.bias"] = ("F32", [2], struct.pack("<2f", 1, 2))
for path, arrays in (("trunk.safetensors", trunk), ("more.safetensors", dict(trunk, **{"layer5.0.conv1.weight": trunk["fc.bias"]}))):
    head, body = {}, b""
    for k, (dtype, shape, bits) in arrays.items():
        head[k] = {"dtype": dtype, "shape": shape, "data_offsets": [len(body), len(body) + len(bits)]}
        body += bits
    text = json.dumps(head).encode()
    open(path, "wb").write(struct.pack("<Q", len(text)) + text + body)
PY
want 0 check released
prints "keys are there and fit"
want 0 "${train[@]}" --objective pcme --name tr --max-steps 1 --image-trunk trunk.safetensors
says "Image trunk: "
want 1 "${train[@]}" --objective pcme --name ts --max-steps 1 --image-trunk more.safetensors
says "layer5.0.conv1.weight has no place in a trunk of ResNet"
want 1 "${train[@]}" --objective pcme --name ts --max-steps 1 --image-trunk s/test/captions.jsonl
says "--image-trunk"
want 1 train --train-data s/train --logs l --name ts --max-steps 1 --image-trunk trunk.safetensors
says "model has no ResNet"

# sets carry a, b and the measure
want 0 embed --model l/a/checkpoints/step_8 --images s/test -o i.safetensors
want 0 embed --model l/a/checkpoints/step_8 --texts s/test/captions.jsonl -o t.safetensors
want 0 info i.safetensors
prints "match_prob"
want 0 eval retrieval --images i.safetensors --texts t.safetensors --truth s/truth/test.pairs --bootstrap 0
prints "match_prob"
want 0 eval measures --images i.safetensors --texts t.safetensors --truth s/truth/test.pairs --json
check "a and b are the model's" python3 -c '
import json; r = json.load(open("out")); assert abs(r["match_a"] - 5) < 0.5 and r["match_a"] != 5, r["match_a"]'

# and J: that of PCME, or what embed is told; two sets that differ are not mixed in silence
prints '"samples": 7'
want 0 info i.safetensors --json
prints '"match_samples": 7'
want 0 embed --model l/a/checkpoints/step_8 --images s/test --samples 3 -o i3.safetensors -q
want 0 embed --model l/a/checkpoints/step_8 --texts s/test/captions.jsonl --samples 3 -o t3.safetensors -q
want 0 embed --model l/a/checkpoints/step_8 --texts s/test/captions.jsonl --samples 3 -o t3.npy -q
want 0 info t3.npy --json
prints '"match_samples": 3'
want 0 info i3.safetensors --json
prints '"match_samples": 3'
want 0 eval measures --images i3.safetensors --texts t3.safetensors --truth s/truth/test.pairs --json
prints '"samples": 3'
want 2 eval measures --images i3.safetensors --texts t.safetensors --truth s/truth/test.pairs
says "one set is compared by 3 samples of a row, the other by 7: say how many by --samples"
want 0 eval measures --images i3.safetensors --texts t.safetensors --truth s/truth/test.pairs --samples 5 --json
prints '"samples": 5'
want 0 search --index i3.safetensors --queries t3.safetensors -k 1 --json
prints '"samples": 3'

# ProLIP objectives refuse what they cannot train
want 1 "${train[@]}" --model pcme-tiny --name h --max-steps 2
says "masks patches"

# margins: points; several embeddings a row have one measure
want 0 "${train[@]}" --objective vse --name v --max-steps 3 -q
want 0 "${train[@]}" --objective vsepp --name w --max-steps 3 --triplet-warmup 1 -q
want 0 "${train[@]}" --objective pvse --name p --max-steps 3 -q
want 0 "${train[@]}" --objective pvse --name pd --max-steps 3 --diversity-lambda 0.1 --mmd-lambda 0.01 \
    --mmd-form published --triplet-form mean --log-every-n-steps 1 -q
check "PVSE's terms are there, diversity in training alone" python3 - <<'PY'
import json
for line in map(json.loads, open("l/pd/results.jsonl")):
    assert line["mmd"] > 0 and line["triplet"] < 3, line
    assert ("diversity" in line) == (line["kind"] == "train"), line
PY
want 1 "${train[@]}" --objective vse --name vd --max-steps 3 --diversity-lambda 0.1
says "loss diversity compares what local attention gives"
want 0 "${train[@]}" --objective pcme --name u --max-steps 3 --uniformity-lambda 10 --uniformity-form published \
    --mix-share 0.25 --mix-cutmix 1 -q
want 1 "${train[@]}" --objective vse --name vm --max-steps 3 --mix-share 0.25
says "loss triplet knows no match by halves"
want 1 "${train[@]}" --objective vse --name vm --max-steps 3 --label-smoothing 0.1
says "loss triplet knows no match by halves"
want 2 "${train[@]}" --objective pcme --name vm --max-steps 3 --mix-cutmix 1
says "goes with --mix-share"
want 2 "${train[@]}" --objective pcme --name vm --label-smoothing 0.5
says "--label-smoothing 0.5"
want 2 "${train[@]}" --objective pcme --name vm --mix-share 2
says "--mix-share 2"
want 0 embed --model l/p/checkpoints/step_3 --images s/test -o pi.safetensors
want 0 embed --model l/p/checkpoints/step_3 --texts s/test/captions.jsonl -o pt.safetensors
want 0 info pi.safetensors
prints "embeddings a row"
want 0 eval retrieval --images pi.safetensors --texts pt.safetensors --truth s/truth/test.pairs --bootstrap 0
prints "max_cosine"
want 1 eval retrieval --images pi.safetensors --texts pt.safetensors --truth s/truth/test.pairs --measure mean
says "rows of 32 hold 2 embeddings each"
want 0 search --index pi.safetensors --queries pt.safetensors -k 1
want 1 "${train[@]}" --objective pcme --model l/p/checkpoints/step_3 --name q --max-steps 2
says "compares single embeddings"

# what people do with such models: there is no transformer block to make small, and classes are single vectors
want 0 check l/p/checkpoints/step_3
prints "built-in picture: finite, norm 1"
want 1 classify -m l/p/checkpoints/step_3 --images s/test --classnames circle,star --templates simple
says "gives 2 embeddings each, and a class is one"
m=l/a/checkpoints/step_8
want 1 quantize --model $m --images s/val --out small
says "nothing of this model can be made small"
want 0 check $m
want 0 classify -m $m --images s/test --classnames circle,star,bar --templates simple -q
want 0 probe -m $m --images s/test --texts s/test --limit 4 -q
want 0 explain -m $m --text "a red star" --images s/test --cell 3 --json -q
prints '"removal": "grey"'
finish
