#!/bin/bash
# train by several processes over MPI: the bits that sockets give, and a failure of one.
source "$(dirname "$0")/common/lib.sh"
source "$(dirname "$0")/common/ranks.sh"
if ! command -v mpirun >/dev/null || ! "$PENUMBRA" --version --verbose | grep -q OpenMPI; then
    echo "mpirun or OpenMPI is missing (libopenmpi-dev, openmpi-bin): skipped"
    exit 77
fi
if "$PENUMBRA" --version --verbose | grep -q "missing; install libopenmpi-dev"; then
    echo "built without OpenMPI (libopenmpi-dev): skipped"
    exit 77
fi
export ASAN_OPTIONS=detect_leaks=0 # OpenMPI's own
make_small
common=(train --train-data shapes/train --model tiny --override "$small_config" --batch-size 2
    --global-batch 14 --logs logs --workers 1 --seed 3 --threads 1 --tokenizer tok.json
    --log-every-n-steps 1 -q)
mpi() {
    n=$1
    shift
    mpirun --allow-run-as-root --oversubscribe -n "$n" "$PENUMBRA" "$@" >out 2>err </dev/null
    status=$?
}

mpi 3 "${common[@]}" --max-steps 4 --name mpi --shard-optimizer
check "three ranks of mpirun end well" test $status -eq 0
check "one result is printed" test "$(grep -c 'steps done' out)" -eq 1
want_ranks 0 3 "${common[@]}" --max-steps 4 --name tcp
check "the bits of sockets" cmp -s logs/{mpi,tcp}/checkpoints/latest/model.safetensors
mpi 2 "${common[@]}" --max-steps 4 --train-data nowhere --name x
check "a failure is one" test $status -ne 0
one_error "rank 0: nowhere: no such file"
mpi 1 "${common[@]}" --max-steps 1 --name single
check "mpirun -n 1 is one process" test $status -eq 0
finish
