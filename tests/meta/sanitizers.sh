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
finish
