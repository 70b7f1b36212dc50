#!/bin/bash
# train: zero-shot classification and retrieval between the epochs, by the same code as the commands,
# the best checkpoint by any figure, and what is refused before the first step.
source "$(dirname "$0")/common/lib.sh"
want 0 data shapes --out s --n 120 --shard-size 20 --val-share 0.2 --test-share 0.2 -q
mkdir -p classes
check "classes of pictures" python3 - <<'PY'
import glob, json, os, tarfile
for path in sorted(glob.glob("s/test/*.tar")):
    tar = tarfile.open(path)
    for member in tar.getmembers():
        if not member.name.endswith(".png"):
            continue
        record = json.load(tar.extractfile(member.name[:-4] + ".json"))
        text = json.dumps(record)
        name = next(c for c in ("red", "blue", "green", "yellow", "purple", "orange", "black", "picture", "") if c in text) or "other"
        os.makedirs("classes/" + name, exist_ok=True)
        open(f"classes/{name}/" + os.path.basename(member.name), "wb").write(tar.extractfile(member).read())
assert len(os.listdir("classes")) >= 3, os.listdir("classes")
PY
train=(train --train-data s/train --logs l --workers 0 --batch-size 16 --lr 0.003 --warmup 0 --override "$small_config")
want 0 "${train[@]}" --name all --val-data s/val --epochs 3 --imagenet-val classes --zeroshot-frequency 2 --zeroshot-templates simple \
    --retrieval-frequency 1 --best-by zeroshot_class_mean --save-frequency 1 --report-to tensorboard --json
has_keys figures.zeroshot_top1 figures.retrieval_t2i_r10 best_checkpoint_dir
check "one is not asked for more often than it is" python3 - <<'PY'
import json
lines = [json.loads(x) for x in open("l/all/results.jsonl")]
evals = {x["epoch"]: x for x in lines if x["kind"] == "eval"}
assert sorted(evals) == [1, 2, 3], evals
assert ["zeroshot_top1" in evals[e] for e in (1, 2, 3)] == [False, True, True]
assert all("retrieval_i2t_r5" in evals[e] and "val_loss" in evals[e] for e in evals)
best = max((2, 3), key=lambda e: (evals[e]["zeroshot_class_mean"], -e))
import os
assert os.readlink("l/all/checkpoints/best") == f"epoch_{best}", (best, evals)
json.dump(evals, open("evals.json", "w"))
PY
check "open_clip's word in the log" grep -q "imagenet-zeroshot-val-top1: " l/all/out.log
check "recall in the log" grep -q "retrieval_text_to_image_R@10: " l/all/out.log
check "figures in TensorBoard" grep -aq "val/zeroshot_top1" l/all/tensorboard/events.out.tfevents.*

# what the commands find for the checkpoint
want 0 classify -m l/all/checkpoints/epoch_2 --images classes --templates simple --json
check "zero-shot as classify has it" python3 -c '
import json
got, was = json.load(open("out"))["metrics"], json.load(open("evals.json"))["2"]
for ours, theirs in (("zeroshot_top1", "acc1"), ("zeroshot_top5", "acc5"), ("zeroshot_class_mean", "mean_per_class_recall")):
    assert abs(got[theirs] - was[ours]) < 1e-9, (ours, got, was)'
want 0 embed -m l/all/checkpoints/epoch_1 --images s/val -o i.safetensors -q
want 0 embed -m l/all/checkpoints/epoch_1 --texts s/val -o t.safetensors -q
check "pairs of pictures and their captions" python3 - <<'PY'
import json
with open("val.pairs", "w") as out:
    for row in map(json.loads, open("t.ids.jsonl")):
        if row["level"] == 3:
            out.write(row["image"] + "\t" + row["id"] + "\n")
PY
want 0 eval retrieval --images i.safetensors --texts t.safetensors --truth val.pairs --level 3 --bootstrap 0 --json
check "retrieval as eval has it" python3 -c '
import json
got, was = json.load(open("out"))["metrics"], json.load(open("evals.json"))["1"]
for ours, theirs in ((f"retrieval_{way}_r{k}", f"{of}_retrieval_recall@{k}") for way, of in (("i2t", "text"), ("t2i", "image")) for k in (1, 5, 10)):
    assert abs(got[theirs] - was[ours]) < 1e-9, (ours, got, was)'

# without a validation set, and the weights are those of a run that measured nothing
want 0 "${train[@]}" --name plain --epochs 3 -q
want 0 "${train[@]}" --name shots --epochs 3 --imagenet-val classes --zeroshot-templates none --best-by zeroshot_top1 --zeroshot-frequency 1 -q
check "measuring changes no weight" cmp l/plain/checkpoints/latest/model.safetensors l/shots/checkpoints/latest/model.safetensors
check "no loss of a set that is not there" python3 -c '
import json
evals = [json.loads(x) for x in open("l/shots/results.jsonl") if "\"eval\"" in x]
assert len(evals) == 3 and not any("val_loss" in x for x in evals)'
check "the best is kept" test -d l/shots/checkpoints/best
want 0 "${train[@]}" --name never --max-steps 1 --imagenet-val classes --zeroshot-frequency 0 -q
check "0 is never" python3 -c 'assert "zeroshot" not in open("l/never/results.jsonl").read()'

# a resumed run goes on with the best so far, by the same figure
want 0 "${train[@]}" --name shots --epochs 3 --imagenet-val classes --zeroshot-templates none --best-by zeroshot_top1 --resume latest -q
want 1 "${train[@]}" --name shots --epochs 3 --imagenet-val classes --resume latest
says "best_by = zeroshot_top1"

# several processes measure alike, and end in the bits of the plain run
source "$(dirname "$0")/common/ranks.sh"
joint=("${train[@]}" --val-data s/val --epochs 1 --batch-size 4 --global-batch 16 --threads 1)
measured=(--imagenet-val classes --zeroshot-templates none --zeroshot-frequency 1 --retrieval-frequency 1 --best-by zeroshot_top1)
want_ranks 0 2 "${joint[@]}" --name ranks -q
want_ranks 0 2 "${joint[@]}" "${measured[@]}" --name ranks_measured -q
check "measured by two, the same weights" cmp l/ranks/checkpoints/latest/model.safetensors l/ranks_measured/checkpoints/latest/model.safetensors
check "one line of results" test "$(grep -c zeroshot_top1 l/ranks_measured/results.jsonl)" -eq 1

# refused before there is a folder
want 2 "${train[@]}" --name z --zeroshot-frequency 2
says "give the pictures with --imagenet-val"
want 2 "${train[@]}" --name z --zeroshot-templates simple
says "speak of the pictures of --imagenet-val"
want 2 "${train[@]}" --name z --retrieval-frequency 1
says "give --val-data"
want 2 "${train[@]}" --name z --coco-test dir
says "--retrieval-frequency N"
want 2 "${train[@]}" --name z --imagenet-val classes --best-by zeroshot_top3
says "zeroshot_class_mean"
want 2 "${train[@]}" --name z --imagenet-val classes --best-by val_loss
says "--best-by changes nothing here: it goes with what measures its figure: --val-data"
want 2 "${train[@]}" --name z --val-data s/val --best-by retrieval_i2t_r1
says "with --retrieval-frequency"
want 1 "${train[@]}" --name z --imagenet-val i.safetensors
says "a data set of pictures with classes is wanted"
want 1 "${train[@]}" --name z --imagenet-val s/val
says "--imagenet-val"
want 1 "${train[@]}" --name z --imagenet-val nowhere
says "--imagenet-val"
want 1 "${train[@]}" --name z --imagenet-val classes --zeroshot-templates no-such-file
want 1 "${train[@]}" --name z --imagenet-val classes --zeroshot-classnames red,blue
says "which is none of the class names"
mkdir -p few && cp -r classes/red classes/blue few
want 1 "${train[@]}" --name z --imagenet-val few --best-by zeroshot_top5
says "2 classes have no figure of the best 5"
check "nothing was begun" test ! -e l/z
finish
