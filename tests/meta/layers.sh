#!/bin/bash
# The tree obeys the layer rules, and cmake/check_layers rejects each kind of planted violation.
. "$(dirname "$0")/lib.sh"
check=$PNB_SOURCE_DIR/cmake/check_layers
"$check" "$PNB_SOURCE_DIR" || bad "the tree breaks the layer rules"

tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT

# plant FILE LINE: a small tree of one file; must be rejected, naming the file.
plant() {
    rm -rf "${tree:?}"/*
    mkdir -p "$tree/$(dirname "$1")"
    printf '/* planted */\n%s\n' "$2" >"$tree/$1"
    local said
    if said=$("$check" "$tree"); then
        bad "accepted: $1 with $2"
    elif [[ $said != "$1:"* ]]; then
        bad "rejected $1 without naming it: $said"
    fi
}

# accept FILE LINE: must pass, or the checker forbids what the rules allow.
accept() {
    rm -rf "${tree:?}"/*
    mkdir -p "$tree/$(dirname "$1")"
    printf '/* fine */\n%s\n' "$2" >"$tree/$1"
    "$check" "$tree" || bad "rejected: $1 with $2"
}

plant src/base/x.c '#include "tensor/tensor.h"'
plant src/kernels/x.c '#include "penumbra/model.h"'
plant src/io/x.c '#include "prob/prob.h"'
plant src/prob/x.h '  #  include "io/json/json.h"'
plant src/models/x.c '#include <cblas.h>'
plant src/train/x.c '#pragma omp parallel for'
plant src/nn/x.c '#include "layer.h"'
plant src/unknown/x.c '#include "base/base.h"'
plant src/eval/x.c '#include "unknown/x.h"'
plant src/eval/x.c '#include "penumbra/unknown.h"'
plant src/eval/x.c '#include "cli/main.h"'
plant src/sets/x.c '#include "tokenizer/text.h"'
plant src/report/x.c '#include "commands/commands.h"'
plant cli/x.c '#include "tensor/tensor.h"'
plant include/penumbra/tensor.h '#include "tensor/tensor.h"'
plant include/penumbra/ctx.h '#include "penumbra/model.h"'
plant include/penumbra/unknown.h '#include "penumbra/error.h"'

accept src/kernels/cpu/x.c '#include <cblas.h>'
accept src/eval/x.c '#pragma omp simd reduction(+ : sum)'
accept src/io/image/x.c '#include "io/json/json.h"'
accept src/eval/x.c '#include "penumbra/search.h"'
accept cli/x.c '#include "program/options.h"'
accept cli/x.c '#include "penumbra/penumbra.h"'
accept include/penumbra/retrieval.h '#include "penumbra/search.h"'

rm -rf "${tree:?}"/*
"$check" "$tree" 2>/dev/null && bad "accepted a tree without sources"
finish
