#!/bin/bash
# eval, search, report, info on small sets; sets that do not belong together.
source "$(dirname "$0")/common/lib.sh"
make_small
want 0 embed -m model --images shapes/test -o i.safetensors -q
want 0 embed -m model --texts shapes/test/captions.jsonl -o t.safetensors -q
want 0 embed -m model --images shapes/test --masked -o im.safetensors -q
want 0 embed -m model --texts shapes/test/captions.jsonl --masked -o tm.safetensors -q

want 0 eval retrieval --images i.safetensors --texts t.safetensors \
    --truth shapes/truth/test.pairs --bins 4
prints "by chance"
prints "RSUM"
want 0 eval retrieval --images i.safetensors --texts t.safetensors \
    --truth shapes/truth/test.pairs --level 3 --measure w2 --bins 2 --recall-k 1 3 --json
prints '"image_retrieval_recall@3"'
prints '"task": "zeroshot_retrieval"'
want 1 eval retrieval --images i.safetensors --texts t.safetensors
says "give a pairs file"
printf 'unknown\tids\n' >bad.pairs
want 1 eval retrieval --images i.safetensors --texts t.safetensors --truth bad.pairs
want 0 eval uncertainty --images i.safetensors --texts t.safetensors --truth \
    shapes/truth/test.pairs --masked-images im.safetensors --masked-texts tm.safetensors
prints "masked picture more uncertain"
want 1 eval uncertainty --texts t.safetensors --masked-texts im.safetensors
says "masked set"

want 0 search --index i.safetensors -m model --query-text 'a red star' 'a ring' -k 3 --json
check "three hits for each of two queries" test "$(grep -c '"rank"' out)" -eq 6
want 0 search --index t.safetensors --queries i.safetensors -k 1
want 1 search --index shapes/test/00000.tar --queries i.safetensors

# samples of a Monte-Carlo measure are drawn from --seed
for draw in 1 1 2; do
    want 0 search --index i.safetensors --queries t.safetensors -k 2 --measure match_prob \
        --seed $draw --json
    grep '"score"' out | sha256sum >>scores
    want 0 eval retrieval --images i.safetensors --texts t.safetensors --measure match_prob \
        --truth shapes/truth/test.pairs --bootstrap 0 --seed $draw --json
    grep '"mean_rank"\|"aurc"' out | sha256sum >>figures
done
for file in scores figures; do
    check "$file of the same seed" test "$(head -2 $file | sort -u | wc -l)" -eq 1
    check "$file of another" test "$(sort -u $file | wc -l)" -eq 2
done

# the same rows as .npy serve every command that reads a set
want 0 embed -m model --images shapes/test -o ni.npy -q
want 0 embed -m model --texts shapes/test/captions.jsonl -o nt.npy -q
want 0 info ni.npy
prints "gaussian_diag"
prints "trace"
want 0 eval retrieval --images i.safetensors --texts t.safetensors \
    --truth shapes/truth/test.pairs --json
grep recall@ out >a.json
want 0 eval retrieval --images ni.npy --texts nt.npy --truth shapes/truth/test.pairs --json
grep recall@ out >b.json
check "the same recall" diff a.json b.json
check "recall was printed" test -s a.json
want 0 search --index i.safetensors --queries t.safetensors -k 2 --json
grep '"score"\|"row"' out >a.json
want 0 search --index ni.npy --queries nt.npy -k 2 --json
check "the same hits" diff a.json <(grep '"score"\|"row"' out)
# with the provenance that stands beside them; without it every result says so
prints_not() { check "no '$1'" test "$(grep -cF -- "$1" out)" -eq 0; }
want 0 info ni.npy --json
prints '"modality": "image"'
prints_not unknown_provenance
want 0 search --index ni.npy --queries nt.npy -k 1 --json
prints_not unknown_provenance
prints_not '"p_match": null'
for set in ni nt; do cp $set.npy u$set.npy; cp ${set}_logvar.npy u${set}_logvar.npy
    cp $set.ids.jsonl u$set.ids.jsonl; done
want 0 search --index uni.npy --queries nt.npy -k 1 --json
prints '"unknown_provenance": ['
prints '"uni.npy"'
prints '"p_match": null'
check "named once" test "$(grep -c uni.npy out)" -eq 2
want 0 search --index uni.npy --queries nt.npy -k 1
prints "unknown model or modality"
check "said once" test "$(grep -c 'unknown model' out)" -eq 1
for what in "search --index ni.npy --queries unt.npy" "info unt.npy" "curate duplicates --set unt.npy" \
    "curate outliers --set unt.npy" "curate select --set unt.npy -n 3" "search --inclusion contains --index ni.npy --queries unt.npy" \
    "calibrate --images unt.npy --texts unt.npy -o u.json" \
    "eval retrieval --images ni.npy --texts unt.npy --truth shapes/truth/test.pairs --output e.json" \
    "eval uncertainty --texts unt.npy" \
    "filter --images ni.npy --texts unt.npy --pairs shapes/truth/test.pairs --list k.txt" \
    "report --images ni.npy --texts unt.npy --truth shapes/truth/test.pairs -o u.html -q"; do
    want 0 $what --json
    prints '"unknown_provenance": ['
    prints '"unt.npy"'
    want 0 $what
    prints "unknown model or modality"
done
check "and its file" grep -q unknown_provenance e.json
want 0 calibrate --images nt.npy --texts nt.npy -q
check "the calibration lies beside the set" test -s nt.calibration.json
want 0 search --index nt.npy --queries nt.npy -k 1 --json
prints '"calibration": "nt.calibration.json"'
prints '"p_match_by": "calibration"'
want 0 report --images ni.npy --texts nt.npy --truth shapes/truth/test.pairs -o n.html -q

want 0 init --config tiny --override "$small_config" --tokenizer tok.json --seed 1 --out other -q
want 1 init --config tiny --override "$small_config" --out other
says "holds a model already"
want 1 search --index i.safetensors -m other --query-text a
says "weights"
want 0 embed -m other --texts shapes/test/captions.jsonl -o o.npy -q
want 1 search --index ni.npy --queries o.npy
says "different weights"
want 0 embed -m other --texts shapes/test/captions.jsonl -o o.safetensors -q
want 1 eval retrieval --images i.safetensors --texts o.safetensors
says "weights"

want 0 report --images i.safetensors --texts t.safetensors --truth shapes/truth/test.pairs \
    --masked-images im.safetensors --out r.html --title 'a <b> & "c"'
check "the title is escaped" grep -qF 'a &lt;b&gt; &amp; &quot;c&quot;' r.html
check "no outside resource" test "$(grep -cE '(src|href)="?(https?:)?//' r.html)" -eq 0
check "no broken number" test "$(grep -cE '="-?(nan|inf)' r.html)" -eq 0
check "pictures are inside" grep -qF 'data:image/png;base64,' r.html

for heading in "Answering only when certain" "Do probabilities hold?" \
    "Does a longer caption say more?"; do
    check "the section $heading" grep -qF ">$heading<" r.html
done
check "no classes where a picture has many captions of a level" \
    test "$(grep -c 'Zero-shot classes' r.html)" -eq 0

# Four classes of pictures, taken in turn, and texts that say nothing.
for i in 0 1 2 3; do printf '{"id":"c%d","level":0,"text":"kind %d"}\n' $i $i; done >classes.jsonl
sed -n 's/.*"id": *"\([^"]*\)".*/\1/p' i.ids.jsonl |
    awk '{printf "%s\tc%d\n", $1, NR % 4}' >classes.pairs
want 0 embed -m model --texts classes.jsonl -o c.safetensors -q
want 0 embed -m model --text "" "a picture" "something" -o null.safetensors -q
want 0 report --images i.safetensors --texts c.safetensors --truth classes.pairs \
    --null-texts null.safetensors --out classes.html
n_pictures=$(grep -c . i.ids.jsonl)
check "classes stand in a table" grep -qE \
    'level 0</td><td class="n">4</td><td class="n">[0-9.]+</td><td class="n">' classes.html
check "two of four are taken away" grep -qF '2 classes known, 2 taken away' classes.html
for rule in dummy margin threshold score uncertainty; do
    check "rejection by $rule" grep -qF "<tr><td>$rule</td>" classes.html
done
check "a way to the root for eight pictures or all" \
    test "$(grep -c '</td><td>kind [0-3] ' classes.html)" -eq $((n_pictures < 8 ? n_pictures : 8))
want 1 report --images i.safetensors --texts t.safetensors --truth shapes/truth/test.pairs \
    --null-texts o.safetensors --out other.html
says "weights"
check "no report of sets that do not belong together" test ! -e other.html

want 0 info model --json
prints '"kind": "model"'
want 0 info t.safetensors
prints "embedding set"
want 0 info model/model.safetensors
prints "visual.conv1.weight"
want 0 info shapes/test
prints "tar shards"
head -c 100 t.safetensors >cut.safetensors
want 1 info cut.safetensors
says "cut.safetensors"
finish
