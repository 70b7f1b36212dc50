#!/bin/bash
# Usage: check_warnings.sh TREE
# Clang's warnings about every source of TREE (compile_commands.json, as CMake writes it: a line a key).
# Most of what a start of Clang takes is the start, so clang-check, which reads many files in one, reads
# those that are read for their syntax alone; the others are compiled as the tree says. What is as old as
# the last time, when nothing was wrong, is not read again. Ends with 1 and the warnings, or without a word.
set -euo pipefail
cd "$1"
jobs=${JOBS:-$(nproc)}
compiler=$(sed -n 's/^CMAKE_C_COMPILER:[A-Z]*=//p' CMakeCache.txt)
source_dir=$(sed -n 's/^CMAKE_HOME_DIRECTORY:[A-Z]*=//p' CMakeCache.txt)
clang_check=$(dirname "$(readlink -f "$compiler")")/clang-check
stamp=checked.txt # the database of that time
included='.*\.\(h\|inc\|def\|hpp\)'

# FILE<TAB>COMMAND of each source, the command as a shell reads it.
commands() {
    sed -n -e '/^  "command": "/{s///; s/",$//; s/\\\(.\)/\1/g; h;}' \
        -e '/^  "file": "/{s///; s/",\{0,1\}$//; G; s/\n/\t/; p;}' compile_commands.json
}

# Those that changed; all of them behind a header that did, or other commands.
outdated() {
    if ! cmp -s $stamp compile_commands.json ||
        [ -n "$(find "$source_dir"/*/ -path "$source_dir/build*" -prune -o \
            -newer $stamp -regex "$included" -print -quit)" ]; then
        cat
        return
    fi
    while IFS=$'\t' read -r file command; do
        [ "$file" -ot $stamp ] || printf '%s\t%s\n' "$file" "$command"
    done
}

# A line for each start: the compiler's commands, the longest work, and then fifty files each.
starts() {
    local alone='[.](c[+][+]|cc|cpp|cu)\t|-emit-llvm-only'
    [ -x "$clang_check" ] || alone=.
    awk -v alone="$alone" '$0 ~ alone' "$all" | cut -f2-
    awk -v alone="$alone" '$0 !~ alone' "$all" | cut -f1 | sort -u |
        xargs -r -d '\n' -n 50 bash -c 'printf "%q " "$@" && echo' _ "$clang_check" -p .
}

all=$(mktemp)
began=$(mktemp)
trap 'rm -f "$all" "$began"' EXIT
commands >"$all"
[ -s "$all" ] || { echo "check_warnings: no commands in $1/compile_commands.json" >&2; exit 1; }
outdated <"$all" >"$all.new"
mv "$all.new" "$all"
starts | xargs -r -d '\n' -n 1 -P "$jobs" bash -c || exit 1
cp compile_commands.json $stamp
touch -r "$began" $stamp # a file that changed meanwhile is newer
