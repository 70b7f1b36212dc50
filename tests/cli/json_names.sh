#!/bin/bash
# The JSON of every command: names are identifiers, shares are fractions, and RSUM is one number in
# all outputs. Sets name the model that made them by run, epoch and step.
source "$(dirname "$0")/common/lib.sh"
make_small
tar -xf shapes/test/00000.tar --wildcards '*.png' -C . 2>/dev/null
mkdir -p photos && mv ./*.png photos
train=(train --train-data shapes/train --val-data shapes/val --model model --batch-size 8
    --epochs 2 --warmup 1 --logs logs --name r1)
# One key that is no identifier fails; the exceptions are CLIP_benchmark's (docs/formats.md).
cat >names.py <<'PY'
import json, re, sys

def walk(value, where):
    if isinstance(value, dict):
        for key, inner in value.items():
            if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", key) and not re.fullmatch(
                    r"(image|text)_retrieval_recall@[0-9]+", key):
                sys.exit("%s.%s is no identifier" % (where, key))
            walk(inner, where + "." + key)
    elif isinstance(value, list):
        for inner in value:
            walk(inner, where + "[]")

walk(json.load(open(sys.argv[1])), "")
PY
echo '{"a": [{"b c": 1}]}' >bad.json
check "the checker finds a blank" test "$(python3 names.py bad.json 2>&1)" = ".a[].b c is no identifier"
echo '{"R@1": 1}' >bad.json
check "and an @" test "$(python3 names.py bad.json 2>&1)" = ".R@1 is no identifier"

walked=" "
walk() {
    want 0 "$@" --json
    check "names of: $*" python3 names.py out
    walked="$walked$1 "
}
walk embed -m model --images shapes/train -o i.safetensors
walk embed -m model --texts shapes/train/captions.jsonl -o t.safetensors
want 0 embed -m model --images shapes/train --masked -o im.safetensors
want 0 embed -m model --texts shapes/train/captions.jsonl --masked -o tm.safetensors
pair=(--images i.safetensors --texts t.safetensors --truth shapes/truth/train.pairs)
walk search --index i.safetensors --queries t.safetensors -k 2 --min-probability 0
walk search --inclusion contains --index t.safetensors --queries i.safetensors
walk calibrate --images i.safetensors --texts i.safetensors -o c.json
walk classify -m model --images photos --classnames 'a b,c-d' --templates none --none dummy
want 0 info i.safetensors --json
walk info model
walk info model/tokenizer.json
walk check model
walk curate duplicates --set i.safetensors
walk adapt train --method conformity --images i.safetensors --out conform
walk adapt methods
walk adapt apply --adapter conform --images i.safetensors --out ci.safetensors
walk curate outliers --set i.safetensors
walk curate select --set i.safetensors -n 3
walk filter --images i.safetensors --texts i.safetensors --top 0.5 --list l.jsonl
walk report "${pair[@]}" -o r.html
walk tokenizer encode --tokenizer model --text 'a red star'
walk tokenizer train --captions shapes/train/captions.jsonl --vocab-size 290 --out tok2.json
walk traverse --images i.safetensors --texts t.safetensors -m model
walk quantize -m model --out small --images shapes/val --texts shapes/val/captions.jsonl \
    --min-cosine 0 --min-rank -1 --min-top1 0
walk convert model --to prolip --out converted
walk average model converted --out mean
walk probe -m model --images shapes/val --texts shapes/val/captions.jsonl
walk explain -m model --text 'a red star' --images photos
walk init --config tiny --override "$small_config" --tokenizer tok.json --out m2
walk data shapes --out s2 --n 10
walk train "${train[@]:1}"
walk bench tokenize --tokenizer model --texts shapes/train/captions.jsonl --seconds 0.01
walk eval uncertainty --images i.safetensors --texts t.safetensors --masked-texts tm.safetensors \
    --truth shapes/truth/train.pairs
walk eval compare --images i.safetensors im.safetensors --texts t.safetensors tm.safetensors \
    --truth shapes/truth/train.pairs --csv cmp.csv --markdown cmp.md
cp out cmp.json
without=serve # runs until it is told to end; its replies are what /openapi.json says
run collection create photos.collection --model model --json
if grep -q "needs\? SQLite" err; then
    without="$without collection"
else
    check "names of: collection create" python3 names.py out
    walk collection add photos.collection --images photos
    walk collection info photos.collection
    walk collection list photos.collection
    walk collection verify photos.collection
    walk collection export photos.collection --to npy --out exported
    walk search --collection photos.collection -m model --query-text a
    walk collection remove photos.collection --tags none
fi
walk reproduce pcme-table1 --n 60 --max-steps 1 --batch-size 8 --seeds 1 --out rt -t 1
want 0 --help
for command in $(sed -n '/^Commands:/,/^$/p' out | awk '/^  /{print $1}'); do
    case $command in completion | manual | help | version) continue ;; esac
    [[ " $without " != *" $command "* ]] || continue
    check "$command is walked" grep -q " $command " <<<"$walked"
done

# One RSUM, and fractions: text, JSON, csv, Markdown, and the comparison of the same set.
want 0 eval retrieval "${pair[@]}"
cp out text
walk eval retrieval "${pair[@]}" --csv r.csv --markdown r.md --output r.json
check "one RSUM and fractions" python3 -c '
import csv, json
r = json.load(open("out"))
assert "rsum_percent" not in r and json.load(open("r.json")) == r
m, line = r["metrics"], [l for l in open("text") if l.startswith("RSUM")][0]
rsum = m["rsum"]
recalls = [v for k, v in m.items() if "_recall@" in k]
assert abs(sum(recalls) - rsum) < 1e-6 and all(0 <= v <= 1 for v in recalls) and 0 < rsum < 6
assert float(line.split()[1]) == round(rsum, 4), line
table = r["table"]
assert abs(sum(row["recall_at_%d" % k] for row in (table[0], table[2]) for k in (1, 5, 10)) - rsum) < 1e-5
same = lambda x, digits: abs(float(x) - rsum) < 10 ** -digits
assert any("rsum" in row and any(f and f[0].isdigit() and same(f, 4) for f in row) for row in csv.reader(open("r.csv")))
assert "%.4f" % rsum in open("r.md").read()
c = [x for x in json.load(open("cmp.json"))["comparison"] if x["figure"] == "rsum"][0]
assert same(c["value"], 4), c'
walk eval suite --results r.json
walk eval measures "${pair[@]}"

# Sets name the model by run, epoch and step.
want 0 embed -m logs/r1/checkpoints/latest --images photos -o l.safetensors -q
want 0 info l.safetensors --json
steps=$(python3 -c 'import json; print(json.load(open("logs/r1/checkpoints/latest/state.json"))["step"])')
prints "\"model\": \"r1-epoch_2-step_$steps\""
(cd logs/r1/checkpoints/latest && "$PENUMBRA" embed -m . --images ../../../../photos -o ../../../../d.npy -q) >out 2>err
check "from inside" grep -q "r1-epoch_2-step_$steps" d.json
want 0 embed -m logs/../model/ --images photos -o l.safetensors -q
want 0 info l.safetensors --json
prints '"model": "model"'
finish
