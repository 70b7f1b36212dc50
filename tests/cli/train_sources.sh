#!/bin/bash
# train: several sources with factors, and hard negatives of a record or a column.
source "$(dirname "$0")/common/lib.sh"
want 0 data shapes --out s --n 120 --val-share 0.2 --test-share 0.2 -q
check "a folder, a jsonl and a table" python3 - <<'PY'
import csv, glob, json, os, tarfile
os.makedirs("p", exist_ok=True)
rows = []
for path in sorted(glob.glob("s/train/*.tar")):
    tar = tarfile.open(path)
    for m in tar.getmembers():
        if m.name.endswith(".png"):
            record = json.load(tar.extractfile(m.name[:-4] + ".json"))
            open("p/" + os.path.basename(m.name), "wb").write(tar.extractfile(m).read())
            rows.append(("p/" + os.path.basename(m.name), record["captions"][-1]))
wrong = lambda text: text.replace("red", "blue") if "red" in text else "not " + text
with open("all.jsonl", "w") as f, open("some.jsonl", "w") as g, open("t.csv", "w", newline="") as h:
    table = csv.writer(h)
    table.writerow(["filepath", "title", "wrong"])
    for i, (path, text) in enumerate(rows):
        record = {"image": path, "caption": text, "wrong": [wrong(text), "no " + text]}
        f.write(json.dumps(record) + "\n")
        if i % 10 == 3:
            del record["wrong"]
        g.write(json.dumps(record) + "\n")
        table.writerow([path, text, wrong(text)])
PY
train=(train --logs l --workers 0 --batch-size 16 --lr 0.003 --warmup 0 --override "$small_config" --captions first)

# several words, a repeated option and "::" are the same set
several=("${train[@]}" --max-steps 2 -q)
want 0 "${several[@]}" --train-data s/train::all.jsonl --name colons
want 0 "${several[@]}" --train-data s/train all.jsonl --name words
want 0 "${several[@]}" --train-data s/train --train-data all.jsonl --name twice
want 0 "${several[@]}" --train-data s/train --name first
check "words are joined" cmp l/colons/checkpoints/latest/model.safetensors l/words/checkpoints/latest/model.safetensors
check "and what is said twice" cmp l/colons/checkpoints/latest/model.safetensors l/twice/checkpoints/latest/model.safetensors
check "the second counts" bash -c '! cmp -s l/colons/checkpoints/latest/model.safetensors l/first/checkpoints/latest/model.safetensors'

# workers on processors of their own change no weight, and want them to be there
n=$(nproc)
want 1 "${several[@]}" --train-data s/train --name crowded --workers 1 --threads "$n" --pin-workers
says "--pin-workers: $n threads and 1 workers want $((n + 1)) processors, this process may use $n: lower --threads"
want 1 "${several[@]}" --train-data s/train --name nobody --pin-workers --threads 1
says "0 workers cannot have processors of their own among the $n"
if [ "$n" -gt 1 ]; then
    want 0 "${several[@]}" --train-data s/train --name pinned --workers 1 --threads 1 --pin-workers
    want 0 "${several[@]}" --train-data s/train --name loose --workers 1 --threads 1
    check "the same weights" cmp l/pinned/checkpoints/latest/model.safetensors l/loose/checkpoints/latest/model.safetensors
fi

# sources with factors
mix=("${train[@]}" --train-data s/train::all.jsonl::t.csv --dataset-resampled)
want 0 "${mix[@]}" --train-data-upsampling-factors 2::1::0 --name mixed --epochs 2 --save-frequency 1 -q
check "shares and the epoch are told" grep -qE "Mix: source 1 has 72 samples, factor 2: 66.67% of the draws" l/mixed/out.log
check "of each" grep -qE "Mix: source 3 has 72 samples, factor 0: 0.00% of the draws" l/mixed/out.log
check "the epoch" grep -qE "Mix: an epoch is 216 draws, 14 steps" l/mixed/out.log
want 0 "${mix[@]}" --train-data-upsampling-factors 2::1::0 --name again --epochs 2 --resume l/mixed/checkpoints/epoch_1 -q
check "resumed: the same bits" cmp l/mixed/checkpoints/epoch_2/model.safetensors l/again/checkpoints/epoch_2/model.safetensors
want 0 "${mix[@]}" --train-data-upsampling-factors 1::2::0 --name other --epochs 2 -q
check "factors count" bash -c '! cmp -s l/mixed/checkpoints/epoch_2/model.safetensors l/other/checkpoints/epoch_2/model.safetensors'
want 0 "${mix[@]}" --train-data-upsampling-factors 2::1::0 --train-num-samples 32 --name short --epochs 1 -q
check "--train-num-samples is the epoch" grep -qE "Mix: an epoch is 32 draws, 2 steps" l/short/out.log
want 2 "${train[@]}" --train-data s/train::t.csv --train-data-upsampling-factors 2::1 --name no --max-steps 1
says "goes with --dataset-resampled"
want 1 "${mix[@]}" --train-data-upsampling-factors 2::1 --name no --max-steps 1
says "2 factors for 3 parts of the data"
want 1 "${mix[@]}" --train-data-upsampling-factors 0::0::0 --name no --max-steps 1
says "has factor 0"
for wrong in 2:1 a::b ::1 1::; do
    want 2 "${mix[@]}" --train-data-upsampling-factors $wrong --name no --max-steps 1
    says 'numbers of 0 and more'
done

# hard negatives
hard=(--hard-negatives-key wrong --hard-negatives)
same=(--max-steps 1 --drop-ratio 0 --inclusion-alpha-occ 0)
for loss in ppcl siglip clip; do
    of=(--objective clip --clip-lambda 0)
    [ $loss = ppcl ] && of=()
    weight=("--$loss-lambda" 1)
    for data in all.jsonl t.csv; do
        want 0 "${train[@]}" --train-data $data "${of[@]}" "${weight[@]}" "${same[@]}" --name $loss-0-$data -q
        want 0 "${train[@]}" --train-data $data "${of[@]}" "${weight[@]}" "${same[@]}" --name $loss-1-$data "${hard[@]}" 1 -q
    done
    want 0 "${train[@]}" --train-data all.jsonl "${of[@]}" "${weight[@]}" "${same[@]}" --name $loss-2 "${hard[@]}" 2 -q
    want 0 "${train[@]}" --train-data all.jsonl "${of[@]}" "${weight[@]}" "${same[@]}" --name $loss-3 "${hard[@]}" 2 --batch-size 4 --accum-freq 4 -q
done
check "negatives cost, two more than one, and cuts do not change it" python3 - <<'PY'
import json
def loss(run, key):
    return json.loads(open(f"l/{run}/results.jsonl").readline())[key]
for of in ("ppcl", "siglip", "clip"):
    for data in ("all.jsonl", "t.csv"):
        assert loss(f"{of}-1-{data}", of) > loss(f"{of}-0-{data}", of) + 1e-3, (of, data)
    one, two, cut = loss(f"{of}-1-all.jsonl", of), loss(f"{of}-2", of), loss(f"{of}-3", of)
    assert two > one + 1e-3 and abs(cut - two) < 1e-5 * two, (of, one, two, cut)
    assert abs(loss(f"{of}-3", "grad_norm") - loss(f"{of}-2", "grad_norm")) < 1e-4 * loss(f"{of}-2", "grad_norm"), of
PY
source "$(dirname "$0")/common/ranks.sh"
joint=("${train[@]}" --train-data all.jsonl --clip-lambda 1 --max-steps 3 --batch-size 4 --global-batch 16 --threads 1 "${hard[@]}" 2 -q)
want 0 "${joint[@]}" --name alone
want_ranks 0 2 "${joint[@]}" --name joint
check "negatives of two processes" near_runs l/alone l/joint 1e-6 1e-4
want 3 "${train[@]}" --train-data some.jsonl --epochs 1 --name some "${hard[@]}" 1
check "samples without any are named" grep -q "has no hard negative" l/some/out.log
want 0 "${train[@]}" --train-data all.jsonl --val-data all.jsonl --epochs 1 --name val "${hard[@]}" 1 -q
check "validation is as ever" grep -q '"val_loss"' l/val/results.jsonl
check "a table without negatives" python3 -c '
import csv
csv.writer(open("bare.csv", "w", newline="")).writerows(r[:2] for r in csv.reader(open("t.csv", newline="")))'
want 0 "${train[@]}" --train-data t.csv --val-data bare.csv --max-steps 1 --name bare --retrieval-frequency 0 "${hard[@]}" 1 -q
want 1 "${train[@]}" --train-data all.jsonl --name no --max-steps 1 "${hard[@]}" 1 --ppcl-lambda 0
says "none of these has a weight"
want 2 "${train[@]}" --train-data all.jsonl --name no --max-steps 1 --hard-negatives 1
says "goes with --hard-negatives-key"
want 2 "${train[@]}" --train-data all.jsonl --name no --max-steps 1 --hard-negatives-key wrong
says "it goes with --hard-negatives;"
want 1 "${train[@]}" --train-data t.csv --name no --max-steps 1 --hard-negatives-key none --hard-negatives 1
says "none"
want 1 "${train[@]}" --train-data all.jsonl --name no --max-steps 1 "${hard[@]}" 1 --pcmepp-lambda 1
says "loss pcmepp does not go with hard negatives"
want 1 "${train[@]}" --train-data all.jsonl --name no --max-steps 1 "${hard[@]}" 1 --mix-share 0.5 --inclusion-alpha 0
says "does not go with hard negatives"

# a pair of validation that cannot be read is named and counted: another one is in its place
check "a picture that is none" bash -c 'echo none >p/none.png; { head -20 bare.csv; echo p/none.png,none; } >lacks.csv'
want 3 "${train[@]}" --train-data t.csv --val-data lacks.csv --max-steps 1 --name lacks --json
check "unreadable validation is counted" grep -q '"n_skipped": *1' out
check "and named" grep -q "validation sample 19: " l/lacks/out.log

# distributions kept in bfloat16
cache=("${train[@]}" --train-data all.jsonl "${same[@]}" --batch-size 4 --accum-freq 4)
want 0 "${cache[@]}" --name floats -q
want 0 "${cache[@]}" --name rounded --grad-cache-precision bf16 -q
want 0 "${cache[@]}" --name rounded2 --grad-cache-precision bf16 -q
check "the loss sees them rounded, and not far off" python3 - <<'PY'
import json
a, b, c = (json.loads(open(f"l/{n}/results.jsonl").readline()) for n in ("floats", "rounded", "rounded2"))
for k in ("loss", "grad_norm"):
    assert 0 < abs(a[k] - b[k]) < 0.01 * abs(a[k]) and b[k] == c[k], (k, a, b)
PY
want 1 "${train[@]}" --train-data all.jsonl --name no --max-steps 1 --grad-cache-precision bf16
says "it goes with --accum-freq"
check "nothing was begun" test ! -e l/no
finish
