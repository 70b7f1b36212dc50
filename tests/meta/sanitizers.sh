#!/bin/bash
# The tree that runs the tests asks for what flags.cmake and rooms.cmake say: addresses and undefined
# behaviour everywhere, ending the program, and pointers before their use in rooms that read bytes from
# outside.
. "$(dirname "$0")/lib.sh"
commands=compile_commands.json # of the tree that this test belongs to
if ! grep -q -- '-fsanitize=address' $commands; then
    echo "SKIPPED: no sanitized tree"
    exit 77
fi
of() { grep -E "\"command\": .* -c [^\"]*/src/$1/[^\"]*\.c\"" $commands; }
for room in base io tokenizer truth kernels; do
    [ "$(of $room | wc -l)" -gt 3 ] || bad "no sources of src/$room are compiled"
    of $room | grep -vE -- '-fsanitize=address,undefined .*-fno-sanitize-recover=all' | sed 's/.* -c /not sanitized: /' | grep . && bad "src/$room"
done
for room in io tokenizer truth; do
    of $room | grep -vE -- '-fsanitize=null,pointer-overflow,object-size ' | sed 's/.* -c /pointers are not asked for: /' | grep . && bad "src/$room"
done

# What they find ends the program and is shown with its line, in a program with the flags and options of
# the tree: an address, undefined behaviour, a leak.
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cat >"$dir/planted.c" <<'END'
#include <limits.h>
#include <stdlib.h>
static int *volatile kept;
int main(int n, char **args)
{
    int *numbers = malloc(4 * sizeof *numbers);
    numbers[0] = INT_MAX;
    kept = args[1][0] == 'l' ? NULL : numbers;
    if (args[1][0] == 'a')
        kept[n + 2] = 1;
    if (args[1][0] == 'u')
        n = kept[0] + n;
    if (args[1][0] == 's')
        n = 1 << (n + 30);
    return args[1][0] == 'x' ? 0 : 3 & n;
}
END
build=$(sed -n '/src\/base\/alloc\.c"/{s/.*"command": "\(.*\) -o [^ ]* -c .*/\1/; s/\\\(.\)/\1/g; p; q;}' $commands)
sh -c "$build -Wno-all -o $dir/planted $dir/planted.c $PNB_SOURCE_DIR/cmake/asan_options.c" ||
    bad "the planted program is not built: $build"
while read -r fault line words; do
    "$dir/planted" "$fault" 2>"$dir/told" && bad "fault $fault ends with 0"
    grep -q "$words" "$dir/told" || bad "fault $fault: $(cat "$dir/told")"
    grep -q "planted.c:$line" "$dir/told" || bad "fault $fault is not shown on line $line: $(cat "$dir/told")"
done <<END
a 10 AddressSanitizer: heap-buffer-overflow
u 12 AddressSanitizer: ILL\\|runtime error: signed integer overflow
s 14 AddressSanitizer: ILL\\|runtime error: left shift of 1
l 6 LeakSanitizer: detected memory leaks
END
"$dir/planted" x || bad "a program without a fault ends so too"

# With PNB_UBSAN_SENTENCES it is said what was found.
cat >"$dir/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.18)
project(planted LANGUAGES C)
set(PNB_SANITIZE ON)
include($PNB_SOURCE_DIR/cmake/flags.cmake)
add_executable(telling planted.c)
END
if CC=gcc cmake -S "$dir" -B "$dir/build" -DPNB_UBSAN_SENTENCES=ON >"$dir/log" 2>&1 && cmake --build "$dir/build" >>"$dir/log" 2>&1; then
    "$dir/build/telling" u 2>"$dir/told" && bad "undefined behaviour ends with 0"
    grep -q "planted.c:12.*signed integer overflow" "$dir/told" || bad "nothing is said: $(cat "$dir/told")"
else
    bad "it is not built: $(cat "$dir/log")"
fi
finish
