#!/bin/bash
# eval suite: which figure of a result counts, averages by part with their intervals, and results that
# make no suite.
source "$(dirname "$0")/common/lib.sh"
python3 - <<'END'
import json
def put(name, dataset, model="m", task="zeroshot_classification", **metrics):
    json.dump({"dataset": dataset, "model": model, "task": task, "metrics": metrics}, open(name, "w"))
base = {"acc1": 0.6, "acc1_low": 0.5, "acc1_high": 0.7, "acc5": 0.9, "mean_per_class_recall": 0.5,
        "mean_per_class_recall_low": 0.45, "mean_per_class_recall_high": 0.6, "macro_f1": 0.4,
        "macro_f1_low": 0.3, "macro_f1_high": 0.5}
groups = {"worst_group_acc1": 0.2, "worst_group_acc1_low": 0.1, "worst_group_acc1_high": 0.3,
          "worst_group_acc5": 0.7, "worst_group_acc5_low": 0.6, "worst_group_acc5_high": 0.9}
put("imagenet.json", "wds/imagenet1k", **base)
put("sketch.json", "imagenet_sketch", **{**base, "acc1": 0.4, "acc1_low": 0.36, "acc1_high": 0.44})
put("v2.json", "ImageNet-v2", **{**base, "acc1": 0.5, "acc1_low": 0.47, "acc1_high": 0.55})
put("pets.json", "vtab/pets", **base)
put("cam.json", "wilds/iWildCam", **base)
put("fmow.json", "fmow", **base, **groups)
put("street.json", "dollar_street", **base, **groups)
json.dump({"dataset": "coco", "model": "m", "task": "zeroshot_retrieval",
           "metrics": {"image_retrieval_recall@1": 0.3, "text_retrieval_recall@1": 0.5},
           "figures": [{"figure": "rsum"}, {"figure": "recall@1", "i2t": 0.5, "i2t_low": 0.4, "i2t_high": 0.58,
                        "t2i": 0.3, "t2i_low": 0.26, "t2i_high": 0.34}]}, open("coco.json", "w"))
put("bare.json", "cifar10", acc1=0.8, acc5=0.9)  # as CLIP_benchmark writes it
put("other.json", "wds/imagenet1k", model="n", **base)
put("five.json", "flickr", task="zeroshot_retrieval", **{"image_retrieval_recall@5": 0.5})
put("unlabelled.json", "x")
json.dump({"dataset": "y", "model": "m"}, open("nothing.json", "w"))
END
all=(imagenet.json sketch.json v2.json pets.json cam.json fmow.json street.json coco.json)
want 0 eval suite --results "${all[@]}" --csv s.csv --json
check "the figure of each, and the averages" python3 -c '
import csv, json, math
r = json.load(open("out")); rows = {x["dataset"]: x for x in r["datasets"]}
want = {"wds/imagenet1k": ("imagenet", "acc1", 0.6), "imagenet_sketch": ("imagenet_shifts", "acc1", 0.4),
        "ImageNet-v2": ("imagenet_shifts", "acc1", 0.5), "vtab/pets": ("vtab", "mean_per_class_recall", 0.5),
        "wilds/iWildCam": ("others", "macro_f1", 0.4), "fmow": ("others", "worst_group_acc1", 0.2),
        "dollar_street": ("others", "worst_group_acc5", 0.7), "coco": ("retrieval", "mean_recall@1", 0.4)}
for name, (part, metric, value) in want.items():
    x = rows.pop(name)
    assert (x["part"], x["metric"]) == (part, metric) and abs(x["value"] - value) < 1e-12, x
    assert x["low"] < value < x["high"], x
assert not rows
mean = {x["part"]: x for x in r["averages"]}
assert [x["part"] for x in r["averages"]] == ["imagenet", "imagenet_shifts", "vtab", "retrieval", "others", "average"]
assert mean["imagenet_shifts"]["n"] == 2 and abs(mean["imagenet_shifts"]["mean"] - 0.45) < 1e-12
assert abs(mean["imagenet_shifts"]["low"] - (0.45 - math.hypot(0.04, 0.03) / 2)) < 1e-12, mean
assert abs(mean["retrieval"]["low"] - 0.33) < 1e-12 and abs(mean["retrieval"]["high"] - 0.46) < 1e-12
assert mean["average"]["n"] == 8 and abs(mean["average"]["mean"] - sum(v for _, _, v in want.values()) / 8) < 1e-12
lines = list(csv.DictReader(open("s.csv")))
assert len(lines) == 8 and lines[5]["figure"] == "worst_group_acc1" and float(lines[5]["low"]) == 0.1, lines'
want 0 eval suite --results "${all[@]}" --main fmow=acc1 wilds/iWildCam=acc5 --json
check "another figure" python3 -c '
import json
rows = {x["dataset"]: x for x in json.load(open("out"))["datasets"]}
assert rows["fmow"]["value"] == 0.6 and rows["wilds/iWildCam"]["metric"] == "acc5" and rows["wilds/iWildCam"]["low"] is None'
want 0 eval suite --results imagenet.json bare.json --json
check "one without an interval: an average without" python3 -c '
import json
last = json.load(open("out"))["averages"][-1]; assert last["mean"] == 0.7 and last["low"] is None, last'
want 0 eval suite --results imagenet.json sketch.json other.json
prints "imagenet_shifts"
says 'model "n" has no result of imagenet_sketch'
want 2 eval suite --results imagenet.json --main nowhere=acc1
says "--main nowhere=acc1: no result is of such a data set"
want 1 eval suite --results imagenet.json imagenet.json
says "a data set counts once"
want 1 eval suite --results five.json
says "five.json: its metrics have no mean_recall@1, by which flickr counts; --main flickr=KEY"
want 0 eval suite --results five.json --main 'flickr=image_retrieval_recall@5'
want 1 eval suite --results unlabelled.json
says "have no acc1"
want 1 eval suite --results nothing.json
says '"dataset" and "metrics" are wanted'
want 1 eval suite --results nowhere.json
says "nowhere.json"
echo '[' >broken.json
want 1 eval suite --results broken.json
says "broken.json"

# percent beside shares would average to neither; a figure that is named may be any number
printf '{"dataset": "x", "metrics": {"acc1": 37.5, "nll": 2.5}}' >percent.json
want 1 eval suite --results percent.json
says "its acc1 is 37.5, and shares from 0 to 1 are averaged"
want 0 eval suite --results percent.json --main x=nll

# what classify and eval write is a suite
make_small
mkdir raw
for shard in shapes/*/*.tar; do tar -xf "$shard" -C raw; done
i=0
for picture in raw/*.png; do
    mkdir -p "p/test/c$((i % 2))"
    [ "$i" -lt 10 ] && cp "$picture" "p/test/c$((i % 2))/"
    i=$((i + 1))
done
want 0 classify -m model --images p --templates none --dataset folder -o c.json -q
want 0 embed -m model --images shapes/test -o i.safetensors -q
want 0 embed -m model --texts shapes/test/captions.jsonl -o t.safetensors -q
want 0 eval retrieval --images i.safetensors --texts t.safetensors --truth shapes/truth/test.pairs --bootstrap 50 \
    --dataset shapes --output r.json
want 0 eval suite --results c.json r.json --json
check "both with their intervals" python3 -c '
import json
last = json.load(open("out"))["averages"][-1]
assert last["n"] == 2 and last["low"] <= last["mean"] <= last["high"], last'
every_option eval suite
finish
