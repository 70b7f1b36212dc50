#!/bin/bash
# --device: words that are known, and devices that are not there are refused by name, on a machine
# without a GPU and on one with it.
source "$(dirname "$0")/common/lib.sh"

want 2 info --cpu --device cuda:x
says "device cuda:x is not known; there are cpu, ref, cuda, cuda:1"
want 2 info --cpu --device gpu
says "device gpu is not known"
want 2 info --cpu --device ""
want 2 info --gpu
says "with --device cuda"
want 2 info --gpu --cpu --device ref
says "one of them, no PATH with it"

# A device of a number that no machine has: never the processor in its place.
want 1 data shapes --out s --n 10 -q --device cuda:9999
says "cuda:9999"
check "nothing was made" test ! -e s
want 1 info --cpu --device cuda --batch-invariant
check "why batches of every size are not alike, or that there is no CUDA" \
    grep -qE "same bits in batches of every size|built without CUDA" err
finish
