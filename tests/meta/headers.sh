#!/bin/bash
# Every public header compiles alone, as C11 and as C++17, with warnings as errors.
. "$(dirname "$0")/lib.sh"
need g++
warnings=(-Wall -Wextra -Wpedantic -Werror -fsyntax-only -I "$PNB_SOURCE_DIR/include")
for header in "$PNB_SOURCE_DIR"/include/penumbra/*.h; do
    name=penumbra/$(basename "$header")
    printf '#include "%s"\n#include "%s"\nextern int penumbra_header_is_read;\n' "$name" "$name" |
        "${CC:-gcc}" -std=c11 -Wstrict-prototypes "${warnings[@]}" -x c - || bad "$name as C11"
    printf '#include "%s"\n' "$name" |
        g++ -std=c++17 "${warnings[@]}" -x c++ - || bad "$name as C++17"
    [ "$name" = penumbra/penumbra.h ] || grep -q 'extern "C"' "$header" ||
        bad "$name has no extern \"C\" guard"
done

# The header of all headers names every one of them.
all=$PNB_SOURCE_DIR/include/penumbra/penumbra.h
if [ -e "$all" ]; then
    for header in "$PNB_SOURCE_DIR"/include/penumbra/*.h; do
        name=penumbra/$(basename "$header")
        [ "$header" = "$all" ] || grep -qF "#include \"$name\"" "$all" ||
            bad "penumbra.h does not include $name"
    done
fi
finish
