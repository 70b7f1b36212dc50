#!/bin/bash
# embed, eval retrieval and filter by several processes: the bytes of one, with what cannot be read,
# whatever their number; killed, stopped and gone on with another number; one that fails ends all.
source "$(dirname "$0")/common/lib.sh"
source "$(dirname "$0")/common/ranks.sh"
make_small
make_pictures train
names=(pictures/*)
for i in 0 5 6 11; do head -c 90 "${names[i]}" >broken && mv broken "${names[i]}"; done
same_set() { # A B ENDING
    cmp -s "$1.$3" "$2.$3" && cmp -s "$1.ids.jsonl" "$2.ids.jsonl"
}
skips() { grep '^skipped: ' err; }

# the bytes of one process, and its list of what is left out; more processes than batches too
common=(embed -m model --threads 1)
want 3 "${common[@]}" --images pictures -b 2 -o one.safetensors
skips >one.skips
check "four are left out" test "$(wc -l <one.skips)" -eq 4
for n in 2 3 7; do
    want_ranks 3 $n "${common[@]}" --images pictures -b 2 -o r$n.safetensors --save-every 2
    check "$n: the same bytes" same_set one r$n safetensors
    check "$n: the same list, once" cmp -s one.skips <(skips)
    says "4 inputs skipped"
    check "$n: no journal is left" test ! -e r$n.safetensors.journal
    check "$n: one result" test "$(grep -c '^rows' out)" -eq 1
done
want_ranks 3 15 "${common[@]}" --images pictures -b 8 -o wide.safetensors
check "processes without work" same_set one wide safetensors
for how in "--masked" "--ttda 2" "--exif --precision bf16 --batch-invariant"; do
    # shellcheck disable=SC2086  # several words are wanted
    want 3 "${common[@]}" --images pictures -b 4 -o one.npy $how
    # shellcheck disable=SC2086
    want_ranks 3 3 "${common[@]}" --images pictures -b 4 -o three.npy $how
    check "$how: the same bytes" same_set one three npy
    check "$how: as many files" test "$(ls one*.npy | wc -l)" -eq "$(ls three*.npy | wc -l)"
done
printf 'a\nb \377\nc\n\nd\ne\n' >captions.txt
for format in jsonl npy; do
    want 3 "${common[@]}" --texts captions.txt -b 1 -o one.$format
    want_ranks 3 4 "${common[@]}" --texts captions.txt -b 1 -o four.$format
    check "captions as $format" cmp -s one.$format four.$format
done

# standard output, and standard input, which is rank 0's
"$PENUMBRA" "${common[@]}" --images pictures -b 2 -o - --format jsonl >one.out 2>err
want_ranks 3 3 "${common[@]}" --images pictures -b 2 -o - --format jsonl
check "standard output has the set once" cmp -s out one.out
check "and its list is whole" diff one.skips <(skips)
check "what else is said is said once" test "$(grep -c '^rows' err)" -eq 1
ls pictures/* >list
"$PENUMBRA" "${common[@]}" --images - -b 2 -o alone.safetensors <list >out 2>err
ranks_in=list want_ranks 3 3 "${common[@]}" --images - -b 2 -o listed.safetensors
check "a list on standard input" same_set alone listed safetensors
want_ranks 1 3 "${common[@]}" --images - -b 2 -o empty.safetensors
one_error "no pictures were given"
mkdir unreadable && echo x >unreadable/a.png && echo y >unreadable/b.png
for out in none.safetensors -; do
    want_ranks 1 2 "${common[@]}" --images unreadable -b 1 -o $out
    one_error "none of the 2 inputs could be read"
done
check "nothing is written" test ! -e none.safetensors

# killed: the others say so and keep what they have; any number goes on
long=("${common[@]}" --images 'shapes/train' -b 1 --save-every 1)
want 0 "${long[@]}" -o whole.safetensors
killed() { # N WHICH OUT: once every process has a part
    ranks "$1" "${long[@]}" -o "$3" &
    for _ in $(seq 1000); do
        [ -s "$3.journal/parts.jsonl" ] && [ -s "$3.journal/parts-$(($1 - 1)).jsonl" ] && break
        sleep 0.01
    done
    kill "-$2" "$(cut -d' ' -f2 pids)" 2>/dev/null
    wait
}
for then in 1 2 4; do
    rm -rf cut.*
    killed 3 KILL cut.safetensors
    [ -e cut.safetensors ] || one_error "rank 1: its process is gone"
    [ -e cut.safetensors ] && n_lines=0 || n_lines=$(cat cut.safetensors.journal/parts*.jsonl | wc -l)
    if [ $then = 1 ]; then
        want 0 "${long[@]}" -o cut.safetensors
    else
        want_ranks 0 $then "${long[@]}" -o cut.safetensors
    fi
    [ "$n_lines" -lt 2 ] || says "continuing after"
    check "$then: the rows of one go" same_set whole cut safetensors
    check "$then: no journal is left" test ! -e cut.safetensors.journal
done
rm -rf cut.*
killed 3 INT cut.safetensors
if [ ! -e cut.safetensors ]; then
    check "interrupted is said once" test "$(grep -c 'interrupted: ' err)" -eq 1
    says "inputs are kept in cut.safetensors.journal"
fi
want_ranks 0 2 "${long[@]}" -o cut.safetensors
check "after an interruption" same_set whole cut safetensors

# one that differs or fails ends all, by name
rank_args=("" "" "--seed 4")
want_ranks 1 3 "${common[@]}" --images pictures -b 2 -o x.safetensors
one_error 'rank 2: its work is not that of rank 0: "job: '
rank_args=("" "-o y.safetensors")
want_ranks 1 2 "${common[@]}" --images pictures -b 2 -o x.safetensors
one_error 'rank 1: its work is not that of rank 0: "output: x.safetensors" there, "output: y.safetensors" here'
rank_args=("" "--text x")
want_ranks 1 2 "${common[@]}" --images pictures -b 2 -o x.safetensors
one_error "rank 1: only one of --images"
rank_args=("" "--device ref")
want_ranks 1 2 "${common[@]}" --images pictures -b 2 -o x.safetensors
device='rank 1: its option is not that of rank 0: "kind of device (--device): cpu" there, "kind of device (--device): ref" here'
one_error "$device"
rank_args=()
want_ranks 1 2 "${common[@]}" --images nowhere -b 2 -o x.safetensors
one_error "rank 0: nowhere: no such file"
check "nothing is written" test ! -e x.safetensors -a ! -e y.safetensors

# an adapter that draws by the number of a row: what is left out before it counts
want 0 "${common[@]}" --images shapes/train -o i.safetensors -q
want 0 "${common[@]}" --texts shapes/train/captions.jsonl --raw -o raw.safetensors -q
want 0 adapt train --method probvlm --images i.safetensors --texts raw.safetensors \
    --truth shapes/truth/train.pairs --hidden 16 --batch-size 8 --steps 4 --threads 1 --out probvlm -q
want 0 adapt attach model probvlm --out adapted
adapted=(embed -m adapted --threads 1 --images pictures -b 2)
want 3 "${adapted[@]}" -o drawn.safetensors
want_ranks 3 3 "${adapted[@]}" -o drawn3.safetensors
check "draws are those of one process" same_set drawn drawn3 safetensors

# figures of retrieval, both where one pass serves both ways and where it does not
want 0 "${common[@]}" --images shapes/train -o i.safetensors -q
want 0 "${common[@]}" --texts shapes/train/captions.jsonl -o t.safetensors -q
for measure in csd inclusion; do
    eval=(eval retrieval --images i.safetensors --texts t.safetensors --truth shapes/truth/train.pairs
        --bootstrap 20 --threads 1 --measure $measure)
    want 0 "${eval[@]}" --csv one.csv --json
    mv out one.json
    for n in 2 3 50; do
        want_ranks 0 $n "${eval[@]}" --csv ranks.csv --json
        check "$measure, $n: every figure" cmp -s one.csv ranks.csv
        check "$measure, $n: the result" cmp -s <(grep -v csv one.json) <(grep -v csv out)
    done
done
rank_args=("" "--recall-k 0")
want_ranks 1 2 "${eval[@]}"
one_error "rank 1: --recall-k 0"
rank_args=("" "--device ref")
want_ranks 1 2 "${eval[@]}"
one_error "$device"
want_ranks 1 2 filter --images i.safetensors --texts t.safetensors --data shapes/train --top 0.4 --list x
one_error "$device"
rank_args=()

# what filters leave
want 0 "${common[@]}" --texts shapes/train -o t.safetensors -q
filter=(filter --images i.safetensors --texts t.safetensors --data shapes/train --top 0.4 --threads 1)
outs=(--uids u.npy --uid picture --list kept.jsonl --dropped gone.txt --preview p.html --out kept --shard-size 7)
want 0 "${filter[@]}" "${outs[@]}" --json
mkdir one && mv out u.npy kept.jsonl gone.txt p.html kept one
for n in 2 5; do
    want_ranks 0 $n "${filter[@]}" "${outs[@]}" --json
    mkdir r$n && mv out u.npy kept.jsonl gone.txt p.html kept r$n
    check "$n: all outputs" diff -r one r$n
done

# over MPI
if command -v mpirun >/dev/null && "$PENUMBRA" --version --verbose | grep OpenMPI | grep -qv missing; then
    export ASAN_OPTIONS=detect_leaks=0 # OpenMPI's own
    rm -f mpi.*
    mpirun --allow-run-as-root --oversubscribe -n 3 "$PENUMBRA" "${common[@]}" --images - -b 2 \
        -o mpi.safetensors >out 2>err <list
    check "mpirun ends as one process" test $? -eq 3
    check "over MPI" cmp -s listed.safetensors mpi.safetensors
fi
finish
