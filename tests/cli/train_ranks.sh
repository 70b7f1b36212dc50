#!/bin/bash
# train by several processes over sockets: the training of one, its bits for a number of processes,
# resuming with another number, and how all end when one cannot go on.
source "$(dirname "$0")/common/lib.sh"
source "$(dirname "$0")/common/ranks.sh"
make_small
common=(train --train-data shapes/train --model tiny --override "$small_config" --batch-size 2
    --global-batch 14 --logs logs --workers 1 --seed 3 --threads 1 --tokenizer tok.json
    --log-every-n-steps 1 -q)
few=(--max-steps 4)
fifty=(--max-steps 50 --save-every-n-steps 50)

# one training, whoever makes it; ranks with one batch more than others too
want 0 "${common[@]}" "${few[@]}" --name one
for n in 2 3 7; do
    want_ranks 0 $n "${common[@]}" "${few[@]}" --name r$n
    check "$n ranks train as one" near_runs logs/one logs/r$n 1e-6 1e-5
    check "$n ranks end in its bits" cmp -s logs/{one,r$n}/checkpoints/latest/model.safetensors
done
want 0 "${common[@]}" "${fifty[@]}" --name long
want_ranks 0 4 "${common[@]}" "${fifty[@]}" --name long4
check "50 steps of 4 ranks are those of one" cmp -s logs/long{,4}/checkpoints/latest/model.safetensors
check "one result is printed" test "$(grep -c 'steps done' out)" -eq 1
check "nothing else is said" test ! -s err
want_ranks 0 3 "${common[@]}" "${few[@]}" --name again --shard-optimizer
for file in model optimizer; do
    check "the same bits, and whole with shares" cmp -s \
        logs/{r3,again}/checkpoints/latest/$file.safetensors
done
# the losses of a rank's own rows against all columns: the gradient of the whole, but for rounding
for n in 2 3 7; do
    want_ranks 0 $n "${common[@]}" "${few[@]}" --name local$n --local-loss --rank-timeout 100
    check "--local-loss by $n ranks" near_runs logs/one logs/local$n 1e-6 1e-5
done
want_ranks 0 3 "${common[@]}" "${few[@]}" --name local --local-loss --shard-optimizer
check "the same bits each time" cmp -s logs/local{,3}/checkpoints/latest/model.safetensors
rank_args=("" --local-loss)
want_ranks 1 2 "${common[@]}" "${few[@]}" --name odd
one_error "rank 1: its"
rank_args=()

# distributions in bfloat16 are exchanged as they are kept
want 0 "${common[@]}" "${few[@]}" --name half1 --grad-cache-precision bf16
for n in 2 3; do
    want_ranks 0 $n "${common[@]}" "${few[@]}" --name half$n --grad-cache-precision bf16
    check "bf16 by $n ranks" cmp -s logs/half{1,$n}/checkpoints/latest/model.safetensors
done
check "and are rounded" bash -c '! cmp -s logs/{one,half1}/checkpoints/latest/model.safetensors'

# validation is shared out, and its figures are those of one
val() { grep '"eval"' "logs/$1/results.jsonl" | sed 's/"[a-z_]*seconds[a-z_]*": [^,}]*//g'; }
want 0 "${common[@]}" --max-steps 2 --val-data shapes/val --name val1
for n in 2 7; do
    want_ranks 0 $n "${common[@]}" --max-steps 2 --val-data shapes/val --name val$n
    check "$n ranks validate as one" diff <(val val1) <(val val$n)
done
check "there are figures of it" test "$(val val1 | wc -l)" -ge 1

# LoRA: gradients of factors, too
lora=("${common[@]/tiny/logs/one/checkpoints/latest}" --lora-rank 2 "${few[@]}")
lora=("${lora[@]/--override/--seed}") && lora=("${lora[@]/#\{*/3}") # its sizes are the model's
want 0 "${lora[@]}" --name lora1
want_ranks 0 3 "${lora[@]}" --name lora3
check "LoRA by three ranks" diff -rq logs/lora{1,3}/checkpoints/latest/

# what works in one process says so, once, and what it would have read alone it reads
export RANK=1 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29555
alone=(init --config tiny --override "$small_config" --tokenizer tok.json --out ranked)
want 1 "${alone[@]}"
check "only rank 0 says it" test ! -s err
RANK=0 want 1 "${alone[@]}"
says "works in one process, and a launcher says that it is one of 2: all would write --out ranked"
check "nothing was written" test ! -e ranked
want 0 info logs/one/checkpoints/latest
unset RANK WORLD_SIZE MASTER_ADDR MASTER_PORT

# interrupted on one rank: all save; another number of ranks goes on
ranks 3 "${common[@]}" --max-steps 100000 --name cut &
for _ in $(seq 1000); do
    [ -s logs/cut/results.jsonl ] && break
    sleep 0.02
done
kill -INT "$(cut -d' ' -f3 pids)"
wait
check "interrupted is said once" test "$(grep -c 'interrupted' err)" -eq 1
says "continue with --resume latest"
step=$(readlink logs/cut/checkpoints/latest)
check "there is a checkpoint" test -d "logs/cut/checkpoints/$step"
want 1 "${common[@]}" --max-steps 100000 --name cut --resume latest --global-batch 12
says "accum_freq"

# killed: the others end with its number, and what was saved goes on to where one process comes
ranks 3 "${common[@]}" --max-steps 12 --save-every-n-steps 1 --name killed &
for _ in $(seq 1000); do
    [ -e logs/killed/checkpoints/latest ] && break
    sleep 0.02
done
kill -KILL "$(cut -d' ' -f2 pids)"
wait
if [ "$(readlink logs/killed/checkpoints/latest)" != step_12 ]; then
    one_error "rank 1: its process is gone"
fi
want_ranks 0 2 "${common[@]}" --max-steps 12 --save-every-n-steps 1 --name killed --resume latest
want 0 "${common[@]}" --max-steps 12 --name whole
check "the same curve" near_runs logs/whole logs/killed 1e-6 1e-6

# stopped: given up by name
ranks 2 "${common[@]}" --max-steps 100000 --name hangs --rank-timeout 1 &
for _ in $(seq 1000); do
    [ -s logs/hangs/results.jsonl ] && break
    sleep 0.02
done
kill -STOP "$(cut -d' ' -f2 pids)"
sleep 1.5
for _ in $(seq 200); do
    grep -q error err && break
    sleep 0.05
done
kill -KILL "$(cut -d' ' -f2 pids)"
wait
one_error "rank 1: nothing came from it for 1 s"

# what differs between ranks is named
rank_args=("" "--lr 0.5")
want_ranks 1 2 "${common[@]}" "${few[@]}" --name x
one_error 'rank 1: its option is not that of rank 0: "lr: 0.001" there, "lr: 0.5" here'
rank_args=("" "" "--train-data shapes/val")
want_ranks 1 3 "${common[@]}" "${few[@]}" --name x
one_error 'rank 2: its option is not that of rank 0: "train_data: shapes/train"'
rank_args=("" "--nonsense")
want_ranks 1 2 "${common[@]}" "${few[@]}" --name x
one_error "rank 1: unknown option --nonsense"
rank_args=()
mkdir -p here/data there/data
cp -r shapes/train/* here/data && cp -r shapes/val/* there/data
port=$((20000 + RANDOM % 12000))
: >err
for r in 0 1; do
    folder=here && [ $r = 0 ] || folder=there
    (cd $folder && RANK=$r WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$port \
        "$PENUMBRA" "${common[@]/#shapes\/train/data}" --tokenizer ../tok.json "${few[@]}" --name x \
        >>../out 2>>../err </dev/null) &
done
wait
one_error 'rank 1: its data or model is not that of rank 0: "samples: '

# one caption of all, the same in number and length, in one of the copies
spoilt() { # FOLDER: the first letter of one caption
    python3 - "$1" <<'PY'
import glob, re, sys
path = sorted(f for f in glob.glob(sys.argv[1] + "/**/*", recursive=True) if f.endswith(".tar"))[-1]
data = bytearray(open(path, "rb").read())
at = [m.end() for m in re.finditer(rb'"captions": ?\["', data)][-1]
data[at] = data[at] + 1 if data[at] < ord("y") else ord("a")
open(path, "wb").write(data)
PY
}
rm -r there/data
cp -r here/data there/data
: >err
for r in 0 1; do # where the same data lie is no difference
    folder=here && [ $r = 0 ] || folder=there
    (cd $folder && RANK=$r WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 \
        MASTER_PORT=$((port + 4)) "$PENUMBRA" "${common[@]/#shapes\/train/data}" \
        --tokenizer ../tok.json "${few[@]}" --name same -q >>../out 2>>../err </dev/null) &
done
wait
check "the same data in two places" test ! -s err
check "and trained on" test -e here/logs/same/checkpoints/latest
spoilt there/data
: >err
for r in 0 1; do
    folder=here && [ $r = 0 ] || folder=there
    (cd $folder && RANK=$r WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 \
        MASTER_PORT=$((port + 2)) "$PENUMBRA" "${common[@]/#shapes\/train/data}" \
        --tokenizer ../tok.json "${few[@]}" --name x >>../out 2>>../err </dev/null) &
done
wait
one_error 'rank 1: its data or model is not that of rank 0: "captions: '

# a processor and what imitates one are two kinds of device
want_ranks 2 2 "${common[@]}" "${few[@]}" --name x --pin-workers
one_error "--pin-workers: 2 processes share the processors of this machine"
rank_args=("" "--device ref")
want_ranks 1 2 "${common[@]}" "${few[@]}" --name x
one_error 'rank 1: its option is not that of rank 0: "kind of device (--device): cpu" there'
rank_args=()
rm -r there/data
: >err
for r in 0 1; do
    folder=here && [ $r = 0 ] || folder=there
    (cd $folder && RANK=$r WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 \
        MASTER_PORT=$((port + 1)) "$PENUMBRA" "${common[@]/#shapes\/train/data}" \
        --tokenizer ../tok.json "${few[@]}" --name x >>../out 2>>../err </dev/null) &
done
wait
one_error "rank 1: data: no such file"

# another program, if only by a byte: of the linker's hash of it, or where there is none of the file
two_programs() { # FIRST SECOND: how many of the two end well
    local r program pids=()
    : >err
    for r in 0 1; do
        program=$1 && [ $r = 0 ] || program=$2
        RANK=$r WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$((port + 5)) \
            "$program" "${common[@]}" "${few[@]}" --name x >>out 2>>err </dev/null &
        pids+=($!)
    done
    n_well=0
    for r in 0 1; do wait "${pids[r]}" && n_well=$((n_well + 1)); done
}
python3 - "$PENUMBRA" <<'PY'
import os, struct, sys
data = bytearray(open(sys.argv[1], "rb").read())
at = data.index(struct.pack("<III", 4, 20, 3) + b"GNU\0")  # name, hash and kind of a build id
def write(name, at, byte, end=b""):
    other = bytearray(data)
    other[at] = byte
    open(name, "wb").write(other + end)
    os.chmod(name, 0o755)
write("relinked", at + 16, data[at + 16] ^ 1)
write("nameless", at + 8, 99)
write("longer", at + 8, 99, b"\n")
PY
for pair in "$PENUMBRA $PWD/relinked" "$PWD/nameless $PWD/longer" "$PENUMBRA $PWD/nameless"; do
    # shellcheck disable=SC2086  # two words are wanted
    two_programs $pair
    one_error "rank 1: its program is not that of rank 0"
    check "neither goes on" test $n_well -eq 0
done
strip -o stripped "$PENUMBRA"
for pair in "$PWD/nameless $PWD/nameless" "$PENUMBRA $PWD/stripped"; do
    # shellcheck disable=SC2086  # two words are wanted
    two_programs $pair
    check "they are one program: $pair" test $n_well -eq 2
    check "and train as one" cmp -s logs/{one,x}/checkpoints/latest/model.safetensors
    rm -r logs/x
done
rm relinked nameless longer stripped

# a picture that cannot be read is one, whoever meets it in which epoch
mkdir pictures
for shard in shapes/train/*.tar; do tar xf "$shard" -C pictures; done
broken=$(find pictures -name '*.png' | sort | head -1)
head -c 60 "$broken" >cut && mv cut "$broken"
pictures=("${common[@]/#shapes\/train/pictures}" --epochs 4)
want 3 "${pictures[@]}" --name torn1
want_ranks 3 3 "${pictures[@]}" --name torn3
skipped() { grep -c -E "$2" "logs/$1/out.log"; }
for run in torn1 torn3; do
    check "one picture is broken" test "$(skipped $run '1 samples could not be read')" -eq 1
    check "and is named once" test "$(skipped $run '^.* sample [0-9]+: ')" -eq 1
done

# halves of files that a killed process left go when its run goes on
touch logs/one/{results.jsonl,params.txt}.tmp-1-0
want 0 "${common[@]}" "${few[@]}" --name one --resume latest
check "no halves are left" test "$(find logs/one -name '*.tmp-*' | wc -l)" -eq 0

# more ranks than shards are fine, more than batches are not
want_ranks 1 8 "${common[@]}" "${few[@]}" --name x
one_error "one would have nothing to do"
want 1 "${common[@]}" "${few[@]}" --name x --global-batch 15
says "no multiple of --batch-size"
want 1 "${common[@]}" "${few[@]}" --name x --accum-freq 2
says "give one of them"
RANK=0 WORLD_SIZE=2 want 2 "${common[@]}" "${few[@]}" --name x
says "MASTER_ADDR is not"

# who waits for ranks that do not come waits as long as it was told, and hears Ctrl-C
export WORLD_SIZE=3 MASTER_ADDR=127.0.0.1 MASTER_PORT=$((port + 3))
SECONDS=0
RANK=0 want 1 "${common[@]}" "${few[@]}" --name x --rank-timeout 1
one_error "rank 1 of 3 did not come within 1 s"
RANK=1 want 1 "${common[@]}" "${few[@]}" --name x --rank_timeout=1
one_error "does not answer for 1 s"
RANK=1 PENUMBRA_RANK_TIMEOUT=1 want 1 "${common[@]}" "${few[@]}" --name x
one_error "does not answer for 1 s"
check "the option is obeyed" test $SECONDS -lt 60
for r in 0 1; do
    RANK=$r "$PENUMBRA" "${common[@]}" "${few[@]}" --name x >out 2>err </dev/null &
    pid=$!
    sleep 1
    kill -TERM $pid
    wait $pid
    check "rank $r is interrupted" test $? -eq 130
    [ $r = 1 ] || says "interrupted: rank 0 of 3 still waited for the others"
done
unset WORLD_SIZE MASTER_ADDR MASTER_PORT

# what cannot be written ends all, by rank 0's word
mkdir -p logs/full/checkpoints && chmod 500 logs/full/checkpoints
if [ "$(id -u)" -ne 0 ]; then
    want_ranks 1 2 "${common[@]}" "${few[@]}" --name full
    one_error "rank 0: "
fi
chmod 700 logs/full/checkpoints
want_ranks 1 2 "${common[@]}" "${few[@]}" --name nan --lr 1e30 --grad-clip-norm 0 --warmup 0
one_error "step "

# alone nothing of MPI is loaded
"$PENUMBRA" "${common[@]}" --max-steps 100000 --name alone >out 2>err </dev/null &
pid=$!
for _ in $(seq 1000); do
    [ -s logs/alone/results.jsonl ] && break
    sleep 0.02
done
check "no libmpi in a process without a launcher" test "$(grep -c libmpi /proc/$pid/maps)" -eq 0
kill -KILL $pid
wait $pid 2>/dev/null
finish
