#!/bin/bash
# bench search and eval: every hit is right, and the figures of the machine stand beside ours.
# bench adapt: steps and fits of every method.
source "$(dirname "$0")/common/lib.sh"

field() { # FILE KEY: the value of a number in a JSON object of one level
    sed -n "s/.*\"$2\": *\([-0-9.e+]*\).*/\1/p" "$1" | head -1
}

for what in "csd 1" "inclusion 7" "mean 40" "vmf 1" "vmf_exact 20" "power_spherical 40"; do
    read -r measure queries <<<"$what"
    want 0 bench search --n 900 --dim 33 --queries "$queries" --measure "$measure" --k 5 \
        --seconds 0 --repeats 2 --threads 2 --json
    check "recall of $measure" test "$(field out recall)" = 1.0
    for key in median_s min_s sgemm_gflops share bandwidth_gb_s bandwidth_share prepare_s; do
        check "$key of $measure" test -n "$(field out $key)"
    done
done
for index in int8 bf16; do
    want 0 bench search --n 900 --dim 33 --queries 8 --k 5 --index $index --centres 30 --factors 4 --recall 0.9 --seconds 0 --repeats 1 --json
    has_keys index queries_per_s prepare_s bytes_a_row n_unsure recall
    check "$index finds what an exact search finds" grep -q '"recall": 1' out
done
run bench search --n 2500 --dim 12 --queries 20 --index ivf --centres 40 --factors 4 --seconds 0 --repeats 1 --json
if [ "$status" -eq 0 ]; then has_keys effort recall_of_rows recall; else says "libfaiss-dev"; fi
want 0 bench search --n 3 --dim 4 --queries 2 --k 10 --seconds 0 --repeats 1
prints "hits of a query"
# a whole step of every objective, on its small model
for what in "prolip tiny" "pcme pcme-tiny" "pcmepp pcmepp-tiny" "pvse pvse-tiny" "vsepp vse-tiny"; do
    read -r objective model <<<"$what"
    want 0 bench train --objective $objective --model $model --batch 4 --seconds 0 --repeats 1 --threads 2 --json
    check "a step of $objective" test "$(field out batch)" = 4
    for key in median_s p99_s items_per_s gflops peak_rss_mb; do
        check "$key of $objective" test -n "$(field out $key)"
    done
    check "samples of $objective" test "$(field out samples)" = "$([ $objective = pcme ] && echo 7)"
done
want 0 bench train --objective pcme --model pcme-tiny --batch 4 --samples 3 --seconds 0 --repeats 1 --json
check "as many samples as asked for" test "$(field out samples)" = 3
want 2 bench train --objective pcme --samples 65
says "--samples 65"
want 2 bench train --objective asymvlm
says "--objective asymvlm: must be one of prolip|"
want 1 bench train --objective prolip --model pcme-tiny --batch 4 --seconds 0 --repeats 1
says "sees none"
want 0 bench eval --captions 90 --images 20 --dim 16 --seconds 0 --repeats 1 --measure vmf
want 0 bench eval --captions 100 --images 20 --dim 16 --seconds 0 --repeats 1 --json
check "R@1" test -n "$(field out recall_at_1_i2t)"
for method in asymvlm-vmf asymvlm-ps pfe pcme pcmepp prolip probvlm deterministic grove; do
    want 0 bench adapt --method $method --batch 8 --dim 12 --pairs 40 --seconds 0 --repeats 3 \
        --threads 2 --json
    check "steps of $method" test "$(field out repeats)" = 3
    check "batch of $method" test "$(field out batch)" = 8
    for key in median_s items_per_s infer_s peak_rss_mb; do
        check "$key of $method" test -n "$(field out $key)"
    done
    check "$method has steps" test -z "$(field out fit_s)"
done
check "inducing points" test "$(field out inducing)" = 40
check "axes" test "$(field out latent)" = 5
for method in conformity whitened bayesvlm; do
    want 0 bench adapt --method $method --batch 8 --dim 12 --pairs 40 --seconds 0 --repeats 1 --json
    check "a fit of $method" test -n "$(field out fit_s)" -a -n "$(field out infer_s)"
    check "$method has no step" test -z "$(field out median_s)"
done
want 0 bench adapt --method pfe --batch 8 --dim 12 --seconds 0 --repeats 1 --json
check "the paper's network" test "$(field out hidden)" = 1024 -a "$(field out pairs)" = 1024
want 0 bench adapt --method pfe --recipe small --batch 8 --dim 12 --seconds 0 --repeats 1 --json
check "the small one" test "$(field out hidden)" = 512
want 0 bench adapt --method grove --batch 8 --dim 12 --inducing 9 --latent 2 --shared-covariance \
    --seconds 0 --repeats 1 --json
check "as given" test "$(field out inducing)" = 9 -a "$(field out latent)" = 2
want 0 bench adapt --method grove --batch 8 --dim 6 --inducing 9 --latent 2 --per-output \
    --seconds 0 --repeats 2 --json
check "steps of a process an output" test "$(field out repeats)" = 2 -a -n "$(field out infer_s)"
want 1 bench adapt --method grove --batch 8 --dim 6 --per-output --shared-covariance
says "per-output has a covariance and inducing points for each output"
want 2 bench adapt
says "--method NAME is missing"
want 2 bench adapt --method cosine
says "--method cosine: must be one of conformity|whitened"
want 2 bench adapt --method pfe --batch 9 --pairs 8
says "--batch 9 is more than --pairs 8"
want 2 bench adapt --method pfe --dim 0
says "--dim 0: must be between"
want 2 bench adapt --method pfe --batch 0
says "--batch 0: must be between"
want 1 bench adapt --method pfe --inducing 5
says "pfe does not read the option inducing; grove does"
want 1 bench adapt --method pfe --shared-covariance
says "pfe does not read the option shared_covariance; grove does"
want 1 bench adapt --method grove --batch 8 --dim 12 --pairs 20 --inducing 21
says "21 inducing points for 20 pairs"
want 1 bench adapt --method grove --batch 8 --dim 4 --latent 4
says "latent-dim must be below it"
want 2 bench eval --captions 3 --images 20
says "each picture needs at least one"
want 2 bench search --n 0
says "--n 0: must be between"
want 2 bench search --measure cosine
says "must be one of"
# a tower alone, and its steps: each layer's products are counted, and the shares are of a whole
want 0 bench encode --model tiny --batch 3 --seconds 0 --repeats 1 --resident --steps --json
check "inputs stay, steps add up to one run" python3 -c 'import json; r = json.load(open("out"))
assert r["resident"] is True
assert abs(sum(s["share"] for s in r["steps"]) - 1) < 0.02, r["steps"]
assert all(s["ms"] > 0 and s["n"] >= 1 for s in r["steps"])
assert any(s["step"].startswith("attention (3, ") for s in r["steps"])'
want 0 bench encode --model tiny --batch 3 --seconds 0 --repeats 1 --json
prints '"resident": false'
check "no steps unasked" bash -c '! grep -q "\"steps\"" out'

finish
