#!/bin/bash
# filter: pairs kept by every kind of rule, all outputs, sets that do not belong together, bad
# input and disks.
source "$(dirname "$0")/common/lib.sh"
make_small
want 0 embed -m model --images shapes/train -o i.safetensors -q
want 0 embed -m model --texts shapes/train -o t.safetensors -q
n_pairs=$(wc -l <t.ids.jsonl)
n_images=$(wc -l <i.ids.jsonl)
both=(filter --images i.safetensors --texts t.safetensors)
value() { sed -n "s/^ *\"$1\": \([^,]*\),\{0,1\}$/\1/p" out | head -1; }

# counts: nothing is written; the default is the best 20%
want 0 "${both[@]}" --json
says "the best 20%"
says "paired by ids"
check "all pairs are there" test "$(value n_pairs)" -eq "$n_pairs"
check "a fifth is kept" test "$(value n_kept)" -eq $(((n_pairs * 2 + 5) / 10))

# every output at once
want 0 "${both[@]}" --data shapes/train --top 0.3 --min-words 3 --certain-texts 0.9 --out kept \
    --shard-size 7 --list kept.jsonl --dropped dropped.jsonl --preview p.html --uids u.npy
prints "min_words"
check "lists hold all pairs" test $(($(wc -l <kept.jsonl) + $(wc -l <dropped.jsonl))) -eq "$n_pairs"
check "kept ones fail nothing" test "$(grep -c failed kept.jsonl)" -eq 0
check "dropped ones say why" test "$(grep -c '"failed":\["' dropped.jsonl)" -eq "$(wc -l <dropped.jsonl)"
check "short captions are dropped" grep -q '"text":"a star",.*min_words\|"text":"a [a-z]*","failed":\["min_words' dropped.jsonl
samples=$(sed 's/^{"id":"\([^"]*\)".*/\1/' kept.jsonl | sort -u | wc -l)
shards=$(cat kept/*.tar | tar -tif - | sed 's/\..*//' | sort -u | wc -l)
check "as many samples in the shards" test "$samples" -eq "$shards"
check "a uid each" test "$(stat -c %s u.npy)" -eq $((128 + 16 * samples))
check "sizes of the shards" test "$(grep -c tar kept/sizes.json)" -eq $(((samples + 6) / 7))
# every member is byte for byte what it was
mkdir whole part
for tar in shapes/train/*.tar; do tar -xf "$tar" -C whole; done
for tar in kept/*.tar; do tar -xf "$tar" -C part; done
for file in part/*; do cmp -s "$file" "whole/${file#part/}" || fail "$file differs"; done
check "members were compared" test "$(ls part | wc -l)" -eq $((2 * samples))
check "no outside resource" test "$(grep -cE '(src|href)="?(https?:)?//' p.html)" -eq 0
check "no broken number" test "$(grep -cE '="-?(nan|inf)' p.html)" -eq 0
check "pictures are inside" grep -qF 'data:image/png;base64,' p.html
check "both sides are there" grep -qF '<h3>Dropped' p.html
want 0 info kept
prints "tar shards"

# ids of pictures as plain lines; the same choice from the rows' own order and a file of pairs
want 0 "${both[@]}" --min-words 5 --list ids.txt --quiet
check "ids are pictures" test "$(grep -vcxF -f <(sed 's/^{"id": "\([^"]*\)".*/\1/' i.ids.jsonl) ids.txt)" -eq 0
sed 's/^{"id": "\([^"#]*\)#\([0-9]*\)".*/\1\t\1#\2/' t.ids.jsonl >pairs.tsv
want 0 "${both[@]}" --pairs pairs.tsv --min-words 5 --list ids2.txt --quiet
check "a file of pairs does the same" cmp -s ids.txt ids2.txt
# each picture stands in one list, once, however its captions are strewn
sort -R --random-source=i.safetensors pairs.tsv >strewn.tsv
want 0 "${both[@]}" --pairs strewn.tsv --min-words 5 --list ids3.txt --dropped gone.txt --quiet
check "each once, in one list" test "$(cat ids3.txt gone.txt | sort | uniq | wc -l)" -eq "$n_images"
check "none twice" test "$(cat ids3.txt gone.txt | wc -l)" -eq "$n_images"
check "the same ones" cmp -s <(sort ids.txt) <(sort ids3.txt)
want 0 filter --images i.safetensors --texts i.safetensors --min-score 0.9 --json
says "paired by rows"
want 1 "${both[@]}" --pair-by rows
says "as many"

# captions
want 0 "${both[@]}" --no-match '^a (star|ring)$' --json
prints '"rule": "no_match"'
want 0 "${both[@]}" --blocked-words star 'blue ring' --list b.jsonl
check "no blocked word is left" test "$(grep -ciE '"text":"[^"]*\bstar\b' b.jsonl)" -eq 0
printf '# a list\nstar\r\nblue ring\n' >blocked.txt
want 0 "${both[@]}" --blocked blocked.txt --list b2.jsonl
check "a file of words does the same" cmp -s b.jsonl b2.jsonl
want 0 "${both[@]}" --script latin --min-ascii 0.9 --max-repeated 0.5 --needs-letter --max-words 9
want 1 "${both[@]}" --script cyrillic
says "nothing is kept"
says "min_script"

# figures: medians of all pairs and of the kept ones, as the lists have them
want 0 "${both[@]}" --min-words 5 --top 0.5 --list good.jsonl --dropped bad.jsonl --json
check "medians are those of the lists" python3 -c '
import json, statistics
good, bad = ([json.loads(line) for line in open(name)] for name in ("good.jsonl", "bad.jsonl"))
assert good and bad
for f in json.load(open("out"))["figures"]:
    of = lambda pairs: statistics.median(p[f["figure"]] for p in pairs)
    assert abs(f["median_kept"] - of(good)) < 1e-7 * abs(of(good)), f
    assert abs(f["median_all"] - of(good + bad)) < 1e-7 * abs(of(good + bad)), f'
# samples of a Monte-Carlo measure are drawn from --seed
for seed in 1 2; do
    want 0 "${both[@]}" --measure match_prob --seed $seed --top 0.5 --json
    grep median out >median$seed
done
check "another seed, other scores" test "$(cmp -s median1 median2; echo $?)" -eq 1

# a model's probability, and one of the user's
want 0 "${both[@]}" --min-p-match 0.01 --json
own=("${both[@]}" --measure match_prob --match-a 4 --match-b 3 --seed 1 --json)
want 0 "${own[@]}" --top 0.5
median=$(python3 -c 'import json
print({f["figure"]: f["median_all"] for f in json.load(open("out"))["figures"]}["p_match"])')
want 0 "${own[@]}" --min-score "$median"
grep -E '"(n_kept|n_dropped)"' out >by_score
want 0 "${own[@]}" --min-p-match "$median"
check "match_prob is the probability" cmp -s by_score <(grep -E '"(n_kept|n_dropped)"' out)
check "some pairs on a side" test -s by_score
want 1 "${both[@]}" --measure match_prob --min-p-match 0.5
says "no set carries a and b of match_prob"
want 2 "${both[@]}" --measure match_prob --match-scale 1 --match-bias 10
says "those of match_prob are --match-a and --match-b"
want 0 "${both[@]}" --min-p-match 0.5 --match-scale 1 --match-bias 10
check "everything is probable" test "$(sed -n 's/^share kept *//p' out)" = 1.0000
want 1 "${both[@]}" --min-p-match 0.5 --measure w2
says "csd and mean"

# a calibration gives the probability: pictures are their own matches, captions hardly ever are
want 0 calibrate --images i.safetensors --texts i.safetensors --out c.json
want 0 filter --images i.safetensors --texts i.safetensors --calibration c.json --min-p-match 0.5 \
    --dropped none.jsonl --list own.jsonl
check "all are matches" test "$(wc -l <own.jsonl)" -eq "$n_images"
want 1 "${both[@]}" --calibration c.json --top 1 --list all.jsonl
says "on image queries, these are text"
# one of version 1 does not say what it was fitted on
python3 -c '
import json
c = json.load(open("c.json"))
c["weights_sha256"] = c["gallery_origin"]["weights_sha256"]
for key in ("query_origin", "gallery_origin", "measure_options"): del c[key]
json.dump({**c, "version": 1}, open("c.json", "w"))'
want 0 "${both[@]}" --calibration c.json --top 1 --list all.jsonl
says "--trust-calibration takes it"
check "no probability" test "$(grep -c p_match all.jsonl)" -eq 0
want 1 "${both[@]}" --calibration c.json --min-p-match 0.5 --list all.jsonl
says "--trust-calibration"
want 0 "${both[@]}" --calibration c.json --trust-calibration --top 1 --list all.jsonl
says "on your word"
check "captions are not" test "$(grep -c '"p_match":0\.[0-4]\|"p_match":[0-9.]*e-' all.jsonl)" -eq "$n_pairs"
want 1 "${both[@]}" --calibration c.json --measure mean
says "fitted for the measure csd"
want 2 "${both[@]}" --calibration c.json --match-scale 3
want 1 "${both[@]}" --calibration i.ids.jsonl

# data sets: another one, samples that were not embedded, uids of records
want 1 "${both[@]}" --data shapes/test --out nowhere
says "no sample of shapes/test"
check "no half output" test ! -e nowhere
tar -xf shapes/train/00000.tar --wildcards '*.json' '*.png'
first=$(ls ./*.png | head -1); first=${first#./}; first=${first%.png}
mkdir some
cp "$first".png "$first".json some/
echo '{"caption":"extra","uid":"00000000000000000000000000000001"}' >some/zz.json
cp "$first".png some/zz.png
want 0 embed -m model --images some -o both.safetensors -q
want 1 filter --images both.safetensors --texts both.safetensors --top 1 --data some --uids w.npy --uid uid
says "no uid"
want 0 filter --images both.safetensors --texts both.safetensors --top 1 --data some --uids w.npy
check "hashes of the same bytes are one" test "$(stat -c %s w.npy)" -eq 144
want 0 "${both[@]}" --data shapes/train --within u.npy --uids again.npy
check "a subset of itself is itself" cmp -s u.npy again.npy
want 0 "${both[@]}" --data shapes/train --within u.npy --top 0.05 --uids fewer.npy
check "a smaller one" test "$(stat -c %s fewer.npy)" -lt "$(stat -c %s u.npy)"
want 1 "${both[@]}" --data shapes/train --within i.ids.jsonl
says "subset file"
want 1 filter --images i.safetensors --texts i.safetensors --top 1 --uids w.npy --uid sha256
says "has no sha256"

# what has no row is left out, counted, and told by the exit status
want 0 embed -m model --images shapes/train/00000.tar -o half.safetensors -q
want 3 filter --images half.safetensors --texts t.safetensors --data shapes/train --out part2 -q
says "no picture for them"
says "no row for them"

# sets of other programs: .npy, rows by their order, ids that are not unique
want 0 embed -m model --images shapes/train -o n.npy -q
want 0 embed -m model --images shapes/train -o n2.npy -q
rm n2.ids.jsonl
want 0 filter --images n.npy --texts n2.npy --data shapes/train --max-words 30 --top 0.5 \
    --out part3 --list byrows.jsonl
says "paired by rows"
check "captions come from the data set" grep -q '"text":"a' byrows.jsonl
rm n.json
sed -i '2s/.*/'"$(sed -n 1p i.ids.jsonl | sed 's/[\/&]/\\&/g')"'/' n.ids.jsonl
want 1 filter --images n.npy --texts t.safetensors
says "names rows 0 and 1"
want 1 filter --images n.npy --texts n2.npy --data shapes/train --top 0.5 --out part4
says "are both sample"

# what is refused
want 2 "${both[@]}" --out x
says "--data"
want 2 "${both[@]}" --min-script 0.5
want 2 "${both[@]}" --pairs pairs.tsv --pair-by rows
want 2 "${both[@]}" --shard-size 5
want 2 "${both[@]}" --uid md5
want 2 "${both[@]}" --title x
want 2 "${both[@]}" --ignore-case
says "--match"
want 2 "${both[@]}" --list x.txt --dropped x.txt
says "written twice"
want 2 "${both[@]}" --min-p-match 2
want 1 "${both[@]}" --top 0
says "top is 0"
want 1 "${both[@]}" --match '('
says "POSIX"
want 1 "${both[@]}" --blocked no-such-file
want 1 "${both[@]}" --data shapes/train --top 0.5 --out kept --list early.txt
says "not empty"
check "nothing is written before that is known" test ! -e early.txt
want 0 init --config tiny --override "$small_config" --tokenizer tok.json --seed 1 --out other -q
want 0 embed -m other --texts shapes/train -o o.safetensors -q
want 1 filter --images i.safetensors --texts o.safetensors
says "weights"
want 1 filter --images o.safetensors --texts o.safetensors --pair-by rows --calibration c.json
says "weights"

# a folder that cannot be written to, a full disk: nothing appears
want 1 "${both[@]}" --top 0.5 --list /dev/null/x/list.jsonl
if [ -z "${PNB_NO_FILE_LIMIT:-}" ]; then
    for output in "--out full" "--list full.jsonl" "--preview full.html"; do
        (
            trap '' XFSZ
            ulimit -f 1
            # shellcheck disable=SC2086  # two words
            "$PENUMBRA" "${both[@]}" --data shapes/train --top 0.9 $output
        ) >out 2>err </dev/null
        status=$?
        n_checks=$((n_checks + 1))
        [ "$status" -eq 1 ] || fail "a full disk gives status $status instead of 1 for $output"
    done
    check "no half output" test -z "$(ls -d full* 2>/dev/null)"
fi
finish
