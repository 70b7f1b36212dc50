#!/bin/bash
# What every command makes of small sets: .npy beside .safetensors, sets of unknown origin, sets that do
# not belong together.
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

# samples of a Monte-Carlo measure are drawn from --seed
for draw in 1 1 2; do
    want 0 eval retrieval --images i.safetensors --texts t.safetensors --measure match_prob \
        --truth shapes/truth/test.pairs --bootstrap 0 --seed $draw --json
    grep '"mean_rank"\|"aurc"' out | sha256sum >>figures
done
check "figures of the same seed" test "$(head -2 figures | sort -u | wc -l)" -eq 1
check "figures of another" test "$(sort -u figures | wc -l)" -eq 2

# the same rows as .npy serve every command that reads a set
want 0 embed -m model --images shapes/test -o ni.npy -q
want 0 embed -m model --texts shapes/test/captions.jsonl -o nt.npy -q
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
want 0 embed -m other --texts shapes/test/captions.jsonl -o o.npy -q
want 1 search --index ni.npy --queries o.npy
says "different weights"
want 0 embed -m other --texts shapes/test/captions.jsonl -o o.safetensors -q
want 1 eval retrieval --images i.safetensors --texts o.safetensors
says "weights"

# a number that is none is told with its file
{ head -c -4 ni.npy && printf '\x00\x00\xc0\x7f'; } >bad.npy
want 1 eval retrieval --images bad.npy --texts nt.npy
says "error: bad.npy: mean of row"

finish
