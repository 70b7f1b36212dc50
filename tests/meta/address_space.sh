#!/bin/bash
# A limit of the address space under which OpenBLAS would spin at its start: the Release program says
# so and exits with 1; with room enough it runs.
. "$(dirname "$0")/lib.sh"
program=$PNB_RELEASE_DIR/penumbra
[ -x "$program" ] || exit 77
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# run KIB THREADS: sets `status` to that of --version under the limit; 124: it did not end.
run() {
    status=0
    (ulimit -v "$1" && OMP_NUM_THREADS=$2 timeout 20 "$program" --version) >"$log" 2>&1 || status=$?
}
# What is mapped before the first constructor runs, in KiB: the smallest limit that loads at all.
low=20000 high=400000
while [ $((high - low)) -gt 2000 ]; do
    middle=$(((low + high) / 2))
    run $middle 1
    if [ $status = 127 ]; then low=$middle; else high=$middle; fi
done
for more in 1000 20000 60000 100000 130000; do
    run $((high + more)) 1
    [ $status = 1 ] || bad "$more KiB beyond the libraries: status $status: $(head -c 300 "$log")"
    grep -q "out of memory.*ulimit -v.*OMP_NUM_THREADS=1" "$log" || bad "it says: $(cat "$log")"
done
run $((high + 170000)) 1
[ $status = 0 ] || bad "room for one thread is refused: status $status: $(cat "$log")"
if [ "$(getconf _NPROCESSORS_CONF)" -gt 1 ]; then
    run $((high + 170000)) 2
    [ $status = 1 ] || bad "room for one thread of two: status $status"
    run $((high + 320000)) 2
    [ $status = 0 ] || bad "room for two threads is refused: status $status"
fi
finish
