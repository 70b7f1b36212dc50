#!/bin/bash
# duplicates, outliers and select on a small set, and eval vqa: lists, files, bad input.
source "$(dirname "$0")/common/lib.sh"
make_small
tar -xf shapes/train/00000.tar --wildcards '*.png'
first=$(ls ./*.png | head -1)
mkdir pictures
mv ./*.png pictures/
cp pictures/"$first" pictures/zz_copy.png
cp pictures/"$first" pictures/zz_copy2.png
want 0 embed -m model --images pictures -o i.safetensors -q
want 0 embed -m model --texts shapes/train -o t.safetensors -q
n=$(wc -l <i.ids.jsonl)

# near-duplicates
want 0 curate duplicates --set i.safetensors --min-score 0.9999999 --out g.jsonl --drop drop.txt --keep keep.txt
prints "zz_copy.png"
check "one of three copies stays" test "$(grep -c zz_copy drop.txt)" -eq 2
check "what stays and what goes is all" test $(($(wc -l <keep.txt) + $(wc -l <drop.txt))) -eq "$n"
check "the group is written" grep -q 'zz_copy2.png' g.jsonl
want 0 curate duplicates --set i.safetensors --min-score 0.9999999 --out g.tsv --json
prints '"n_dropped": 2'
check "pairs are written" test "$(grep -c zz_copy g.tsv)" -eq 3
want 0 curate duplicates --set i.safetensors --min-score 1.5
prints "groups"
want 0 curate duplicates --set t.safetensors --min-score 0.99 --measure csd --threads 1 --out a.tsv
want 0 curate duplicates --set t.safetensors --min-score 0.99 --measure csd --threads 2 --out b.tsv
check "threads do not matter" cmp -s a.tsv b.tsv
want 0 curate duplicates --set t.safetensors --min-score -2 --max-pairs 100 --max-neighbours 3
says "--max-neighbours"
want 1 curate duplicates --set missing.safetensors
want 2 curate duplicates --set i.safetensors --measure kl
# rows without names are called by their numbers; a name of two rows cannot be kept and dropped
want 0 embed -m model --images pictures -o bare.npy -q
rm bare.ids.jsonl
want 0 curate duplicates --set bare.npy --min-score 0.9999999 --drop bare.txt
check "numbers" test "$(grep -cx '[0-9]*' bare.txt)" -eq 2
want 0 curate select --set bare.npy -n 3 --labelled bare.txt --out bare2.txt
check "numbers are read again" test "$(cat bare.txt bare2.txt | sort -u | wc -l)" -eq 5
rm bare.json
for _ in $(seq "$n"); do echo '{"id": "same"}'; done >bare.ids.jsonl
want 1 curate duplicates --set bare.npy --drop none.txt
says "names rows 0 and 1"

# outliers
want 0 curate outliers --set i.safetensors -k 3 -n 5 --out far.jsonl
check "five rows" test "$(wc -l <far.jsonl)" -eq 5
check "with their nearest row" test "$(grep -c '"nearest":' far.jsonl)" -eq 5
want 0 curate outliers --set i.safetensors --by nearest --json
check "all rows are there" test "$(grep -c '"rank"' out)" -eq "$n"
want 0 curate outliers --set i.safetensors --by uncertainty -n 1000 --out u.txt
check "ids of all rows" test "$(wc -l <u.txt)" -eq "$n"
want 1 curate outliers --set i.safetensors -k "$n"
says "neighbours among"
want 2 curate outliers --set i.safetensors --by nearest -k 3
says "--by kth"
want 2 curate outliers --set i.safetensors --by uncertainty --measure csd
want 2 curate duplicates --set i.safetensors --keep same.txt --drop same.txt
says "written twice"

# selection
want 0 curate select --set i.safetensors -n 4 --out round1.txt
check "the most uncertain" cmp -s round1.txt <(head -4 u.txt)
want 0 curate select --set i.safetensors -n 5 --by k_centre --labelled round1.txt --out round2.txt --seed 3
check "none twice" test "$(sort round1.txt round2.txt | uniq -d | wc -l)" -eq 0
want 0 curate select --set i.safetensors -n 5 --by k_centre --with-spread --out spread.jsonl
check "distances" test "$(grep -c '"distance":' spread.jsonl)" -eq 5
want 0 curate select --set i.safetensors -n 5 --by random --seed 1 --out r1.txt
want 0 curate select --set i.safetensors -n 5 --by random --seed 1 --out r2.txt --threads 1
want 0 curate select --set i.safetensors -n 5 --by random --seed 2 --out r3.txt
check "the same for the same seed" cmp -s r1.txt r2.txt
check "another for another seed" test "$(cmp -s r1.txt r3.txt; echo $?)" -eq 1
want 1 curate select --set i.safetensors -n $((n + 1))
says "rows to choose"
want 1 curate select --set i.safetensors -n "$n" --labelled round1.txt
says "not labelled yet"
echo nobody >bad.txt
want 1 curate select --set i.safetensors -n 1 --labelled bad.txt
says "'nobody' is no row"
want 2 curate select --set i.safetensors
want 2 curate select --set i.safetensors -n 1 --with-spread

# answers to visual questions: figures by hand
cat >q.jsonl <<'END'
{"question_id": 1, "candidates": ["Two", "red"], "scores": [2, 1], "answers": ["2", "two.", "2", "3"], "answer_type": "number"}

{"question_id": "b", "candidates": ["yes", "no"], "scores": [0, 1], "uncertainties": [0, 0], "answers": [{"answer": "yes"}, {"answer": "no"}], "answer_type": "yes/no"}
END
want 0 eval vqa --questions q.jsonl --out a.jsonl --resamples 100
# 3 of 4: (3/4)(2/3) + (1/4) = 0.75; 1 of 2: (1/2)(0) + (1/2)(1/3) = 0.1667
prints "0.4583"
check "answers" grep -q '"question_id":"1","choice":0,"answer":"Two","confidence":0.731' a.jsonl
check "equal u is half" grep -q '"answer":"no","confidence":0.5,' a.jsonl
want 0 eval vqa --questions q.jsonl --votes simple --exact --bins 2 --bins-by count --json --resamples 0
prints '"accuracy": 0.166'
prints '"answer_type": "yes/no"'
# by type: 0.75 at 0.7311 and 0.1667 at 0.5, one bin each
want 0 eval vqa --questions q.jsonl --bins 1 --resamples 0 --json
prints '"ece": 0.018941'
prints '"ece": 0.333333'
# ten pictures of eight questions each, right or wrong together: the picture is what is resampled
for i in $(seq 0 79); do
    printf '{"question_id": %d, "image": "p%d", "no": %d, "candidates": ["a", "b"], "scores": [%d, 0], "answers": ["a"]}\n' \
        "$i" $((i / 8)) "$i" $((i / 8 % 2 ? 1 : -1))
done >many.jsonl
width() { # of an interval in out
    python3 -c 'import json,sys; r=json.load(open("out")); r=r.get("result", r); v=r[sys.argv[1]]; print(round(1000*(v["high"]-v["low"])))' "$1"
}
want 0 eval vqa --questions many.jsonl --json
prints '"unit": "picture with its questions"'
prints '"n_clusters": 10'
wide=$(width accuracy_interval)
check "the debiased error lies in its interval" python3 -c 'import json
r=json.load(open("out")); r=r.get("result", r); v=r["ece_debiased_interval"]
assert v["low"] <= r["ece_debiased"] <= v["high"] and "ece_interval" not in r'
want 0 eval vqa --questions many.jsonl --json --cluster no
prints '"n_clusters": 80'
check "questions of one picture are drawn together" test "$wide" -gt $((2 * $(width accuracy_interval)))
want 1 eval vqa --questions many.jsonl --cluster nothing
says "line 1"
says "--cluster nothing"
sed 's/"image": "[^"]*"/"image": "one"/' many.jsonl >one.jsonl
want 0 eval vqa --questions one.jsonl
says "no intervals"
line() { # what a line of its own is refused with
    printf '%s\n' "$1" >bad.jsonl
    rm -f bad.out
    want 1 eval vqa --questions bad.jsonl --out bad.out
    says "$2"
    says "bad.jsonl line 1"
    check "no half list" test ! -e bad.out
}
line '{' "question"
line '[]' "not a JSON object"
line '{"answers": ["a"]}' '"candidates" is not a list'
line '{"candidates": ["a"], "answers": []}' '"answers" is not a list'
line '{"candidates": ["a"], "answers": [1]}' '"answers"[0] is not a text'
line '{"candidates": ["a", "b"], "answers": ["a"], "scores": [1]}' "2 numbers"
line '{"candidates": ["a"], "answers": ["a"], "scores": ["1"]}' "not a number"
line '{"candidates": ["a"], "answers": ["a"]}' "neither scores"
line '{"question_id": 1.5, "candidates": ["a"], "answers": ["a"], "scores": [1]}' '"question_id" is neither a text nor a whole number'
line '{"question_id": -1, "candidates": ["a"], "answers": ["a"], "scores": [1]}' '"question_id" is neither'
line '{"image_id": 2.5, "candidates": ["a"], "answers": ["a"], "scores": [1]}' '"image_id" is neither'
line '{"answer_type": 3, "candidates": ["a"], "answers": ["a"], "scores": [1]}' '"answer_type" is no text'
: >bad.jsonl
want 1 eval vqa --questions bad.jsonl
says "no question"
cat q.jsonl q.jsonl >bad.jsonl
want 1 eval vqa --questions bad.jsonl
says "question id '1' names rows 0 and 2"
want 1 eval vqa --questions missing.jsonl

# the same from embeddings: candidates are captions of a data set, pictures its pictures
want 0 embed -m model --images shapes/train -o si.safetensors -q
picture=$(sed -n 's/.*"image": "\([^"]*\)".*/\1/p' t.ids.jsonl | head -1)
printf '{"question_id": "%s", "image": "%s", "candidates": ["a", "b", "c"], "answers": ["b"]}\n' \
    "$picture" "$picture" >e.jsonl
want 0 eval vqa --questions e.jsonl --images si.safetensors --texts t.safetensors --measure w2
want 0 eval vqa --questions e.jsonl --images si.safetensors --texts t.safetensors --confidence-of pair
sed 's/"image": "[^"]*"/"image": 77/' e.jsonl >bad.jsonl
want 1 eval vqa --questions bad.jsonl --images si.safetensors --texts t.safetensors
says "picture '77' has no row"
want 2 eval vqa --questions e.jsonl --images si.safetensors
want 2 eval vqa --questions q.jsonl --measure w2
says "need --images"

# the file of questions itself gives the candidates' rows
printf '{"question_id": 7, "image": "%s", "candidates": ["two", "a star"], "answers": ["2", "star"]}\n' \
    "$picture" >own.jsonl
want 0 embed -m model --texts own.jsonl -o own.safetensors -q
check "named by question and place" grep -qF '{"id": "7#1", "text": "a star"' own.ids.jsonl
want 0 eval vqa --questions own.jsonl --images si.safetensors --texts own.safetensors

# outputs that cannot be written
for command in "curate duplicates --out" "curate outliers --out" "curate select -n 3 --out"; do
    # shellcheck disable=SC2086  # several words
    want 1 ${command% --out} --set i.safetensors --out /dev/null/x
done

# the words of release 0.1 go on working, with a line that says the new one
for word in duplicates outliers select; do
    want 0 "$word" --help
    says "warning: \`penumbra $word\` is now \`penumbra curate $word\`"
done
finish
