#!/bin/bash
# reproduce: an experiment's table beside the paper's, resumed, refused where it is another's.
source "$(dirname "$0")/common/lib.sh"
small=(--n 60 --max-steps 2 --batch-size 8 -t 1)

# the framework, with PCME's Table 1
want 0 reproduce pcme-table1 "${small[@]}" --seeds 2 --out t1 --json
says "4 stages with their seeds to go: about "
has_keys experiment paper data n_seeds first_seed max_steps program out table.row table.where claims.claim \
    claims.paper claims.difference claims.low claims.high claims.verdict figures.row figures.source figures.where \
    figures.figure figures.value figures.std figures.low figures.high figures.n_seeds differs
cp out first
check "the paper's figures as it prints them, ours under them in its units" python3 - <<'PY'
import json
r = json.load(open("first"))
paper = {(f["row"], f["figure"]): f["value"] for f in r["figures"] if f["source"] == "paper"}
assert paper["mu_only", "i2t_r_precision"] == 24.70 and paper["match_prob", "t2i_r_precision"] == 26.77, paper
assert paper["w2", "widths"] == 2, paper
ours = {(f["row"], f["figure"]): f for f in r["figures"] if f["source"] == "here"}
assert {row for row, _ in ours} >= {"mu_only", "mean", "elk", "js", "w2", "avg_l2", "match_prob", "csd"}, ours
assert all(f["n_seeds"] == 2 and f["low"] <= f["value"] <= f["high"] for f in ours.values()), ours
assert ours["avg_l2", "widths"]["value"] == 7 and ours["mean", "widths"]["value"] == 1, ours
wheres = [t["where"] for t in r["table"] if t["row"] == "PCME, mean only"]
assert wheres == ["Table 1, CUB Captions", "here"], wheres
PY
check "mean, deviation and difference are those of the results" python3 - <<'PY'
import json, math, statistics
r = json.load(open("first"))
found = [json.load(open("t1/results/pcme-%d.json" % s))["values"] for s in (0, 1)]
own = [json.load(open("t1/results/mu_only-%d.json" % s))["values"]["mu_only"] for s in (0, 1)]
values = [f["elk"]["t2i_r_precision"] for f in found]
row = next(f for f in r["figures"] if (f["row"], f["figure"], f["source"]) == ("elk", "t2i_r_precision", "here"))
assert abs(row["value"] - statistics.mean(values)) < 1e-5, (row, values)
assert abs(row["std"] - statistics.stdev(values)) < 1e-5, (row, values)
half = 12.7062047 * statistics.stdev(values) / math.sqrt(2)  # Student, one degree of freedom
assert abs(row["high"] - row["value"] - half) < 1e-4 * max(1, half), (row, half)
claim = next(c for c in r["claims"] if "training PCME" in c["claim"] and c["figure"] == "i2t R-P")
gains = [f["mean"]["i2t_r_precision"] - o["i2t_r_precision"] for f, o in zip(found, own)]
assert abs(claim["paper"] - 1.44) < 1e-6, claim
assert abs(claim["difference"] - statistics.mean(gains)) < 0.01, (claim, gains)
PY
for file in table.txt table.json table.csv table.md index.html experiment.json data/labels.csv \
    sets/pcme-1.texts.safetensors results/mu_only-0.json; do
    check "$file is there" test -s "t1/$file"
done
check "a line of the paper in csv" grep -qF 'match_prob,paper,"Table 1, CUB Captions",t2i_r_precision,26.77' t1/table.csv
check "and in Markdown" grep -qF '| PCME, ELK | Table 1, CUB Captions | 25.33 | 25.87 |' t1/table.md
check "the page has the table and what differs" \
    test "$(grep -cE 'Table 1, CUB Captions|What may differ from the paper' t1/index.html)" -ge 2

# the same again makes nothing; another seed is added; figures stay
want 0 reproduce pcme-table1 "${small[@]}" --seeds 2 --out t1 --json
says "4 of 4 results are there already and passed over"
check "the same result" cmp -s first out
want 0 reproduce pcme-table1 "${small[@]}" --seeds 3 --out t1 -q
rm t1/results/pcme-1.json
want 0 reproduce pcme-table1 "${small[@]}" --seeds 2 --out t1 --json
says "3 of 4 results are there already"
check "what is made again is the same" cmp -s first out
sed -i 's/"program": "[^"]*"/"program": "penumbra of yesterday"/' t1/results/pcme-0.json
want 0 reproduce pcme-table1 "${small[@]}" --seeds 2 --out t1 --json
says "1 results were made by another program and are made again"

# one of its models: the other's rows wait for it
want 0 reproduce pcme-table1 "${small[@]}" --seeds 1 --only mu_only --out one --json
says "1 stages with their seeds to go"
check "one model is made and stands alone" python3 - <<'PY'
import json, os
assert os.listdir("one/results") == ["mu_only-0.json"], os.listdir("one/results")
assert {f["row"] for f in json.load(open("out"))["figures"] if f["source"] == "here"} == {"mu_only"}
PY
want 1 reproduce pcme-table1 "${small[@]}" --only vse --out e0
says "pcme-table1: --only names what is not among mu_only, pcme"
check "and a wrong name leaves no folder behind" test ! -e e0

# folders of others
want 1 reproduce pcme-table1 --n 61 --max-steps 2 --batch-size 8 --out t1
says "its --n is 60, not 61"
want 1 reproduce pcme-table1 --n 60 --max-steps 3 --batch-size 8 --out t1
says "its --max-steps is 2, not 3"
mkdir other && echo 1 >other/file
want 1 reproduce pcme-table1 "${small[@]}" --out other
says "holds no experiment.json"
check "nothing was written there" test "$(ls other)" = file

# data that somebody has
want 0 data shapes --out shapes --n 60 --test-share 0.2 -q
want 0 reproduce pcme-table1 --data shapes --max-steps 2 --batch-size 8 --seeds 1 --out own -t 1
says "how long they take will be said behind the first"
prints "data                 shapes"
want 1 reproduce pcme-table1 --data other --out e1
says "is none of the layouts that pcme-table1 reads: Karpathy's dataset_coco.json"
want 1 reproduce pcme-table1 --data nowhere --out e2
says "--data nowhere: no such folder"
mkdir -p no-test no-train karpathy && cp -r shapes/train shapes/test no-test && rm no-test/test/*
cp -r shapes/test no-train && mkdir no-train/train
echo '{"images":[{"filename":"x.png","split":"train","sentences":[{"raw":"a","sentid":0}]}]}' \
    >karpathy/dataset_coco.json
want 1 reproduce pcme-table1 --data no-test --out e3
says "no-test/test: holds no sample"
want 1 reproduce pcme-table1 --data no-train --out e4
says "no-train/train: holds no sample"
want 1 reproduce pcme-table1 --data karpathy --out e5
says "none of its 1 pictures is in the split 'test'"
check "a wrong folder leaves none behind" test ! -e e1 -a ! -e e2 -a ! -e e3 -a ! -e e4 -a ! -e e5
want 1 reproduce pcme-table1 --data shapes --max-steps 2 --batch-size 8 --seeds 1 --out t1
says "its --data is null"

# Ctrl-C, and on from there
"$PENUMBRA" reproduce pcme-table1 --n 60 --max-steps 100 --batch-size 4 --seeds 1 -t 1 --out stopped >out 2>err &
pid=$!
until grep -q "Starting at step" err || ! kill -0 $pid; do sleep 0.05; done
kill -INT $pid
wait $pid
check "exit status 130" test $? -eq 130
want 0 reproduce pcme-table1 --n 60 --max-steps 100 --batch-size 4 --seeds 1 -t 1 --out stopped --json
cp out continued
want 0 reproduce pcme-table1 --n 60 --max-steps 100 --batch-size 4 --seeds 1 -t 1 --out whole --json
check "the figures of a run without an interruption" python3 - <<'PY'
import json
a, b = json.load(open("continued")), json.load(open("out"))
assert a["figures"] == b["figures"] and a["claims"] == b["claims"]
PY

every_option reproduce pcme-table1
finish
