#!/bin/bash
# Several processes of the program, for the tests of work by ranks; behind lib.sh.

# ranks N ARGS...: N processes as torchrun starts them; leaves out, err and status, the first that
# is not 0. Rank r runs with what stands in rank_args[r] behind ARGS; rank 0 reads ranks_in.
rank_args=()
ranks_in=/dev/null
ranks() {
    local n=$1 port=$((20000 + RANDOM % 12000)) r pids=() one in=$ranks_in
    shift
    printf '%s\t' "$@" >>"$work/.calls"
    echo >>"$work/.calls"
    : >out
    : >err
    for ((r = 0; r < n; r++)); do
        # shellcheck disable=SC2086  # several words are wanted
        RANK=$r WORLD_SIZE=$n LOCAL_WORLD_SIZE=$n MASTER_ADDR=127.0.0.1 MASTER_PORT=$port \
            "$PENUMBRA" "$@" ${rank_args[r]:-} >>out 2>>err <"$in" &
        pids[r]=$!
        in=/dev/null
    done
    echo "${pids[*]}" >pids
    status=0
    for ((r = 0; r < n; r++)); do
        wait "${pids[r]}"
        one=$?
        if [ "$one" -ne 0 ] && [ "$status" -eq 0 ]; then status=$one; fi
    done
}

# want_ranks STATUS N ARGS...
want_ranks() {
    local wanted=$1
    shift
    n_checks=$((n_checks + 1))
    ranks "$@"
    [ "$status" -eq "$wanted" ] || fail "exit status $status instead of $wanted: $*"
}

# one_error TEXT: the last run wrote exactly one error, and it has the text.
one_error() {
    says "$1"
    check "one error is printed" test "$(grep -c 'error: ' err)" -eq 1
}

# The largest relative distance of losses, and the distance of all weights by their norm.
near_runs() { # A B LOSS WEIGHTS
    python3 - "$@" <<'PY'
import json, math, struct, sys
a, b, loss_bound, weight_bound = sys.argv[1], sys.argv[2], float(sys.argv[3]), float(sys.argv[4])
def losses(run):
    return [json.loads(l)["loss"] for l in open(run + "/results.jsonl") if '"train"' in l]
def weights(run):
    data = open(run + "/checkpoints/latest/model.safetensors", "rb").read()
    n = struct.unpack("<Q", data[:8])[0]
    return struct.unpack("<%df" % ((len(data) - 8 - n) // 4), data[8 + n:])
x, y = losses(a), losses(b)
apart = max(abs(p - q) / abs(p) for p, q in zip(x, y))
u, v = weights(a), weights(b)
far = math.sqrt(sum((p - q) ** 2 for p, q in zip(u, v)) / sum(p * p for p in u))
print("losses %.2e, weights %.2e apart" % (apart, far))
sys.exit(not (len(x) == len(y) and len(u) == len(v) and apart <= loss_bound and far <= weight_bound))
PY
}
