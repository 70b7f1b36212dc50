#!/bin/bash
# The tree that Clang reads for its warnings alone (cmake/check_only.cmake) fails where a whole build of
# Clang would: at a warning of its own that GCC has not, and at what is found only when code is made.
. "$(dirname "$0")/lib.sh"
need clang
top=$(mktemp -d)
trap 'rm -rf "$top"' EXIT
dir="$top/a folder"
mkdir "$dir" "$dir/examples" "$dir/src"
cat >"$dir/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.18)
project(planted LANGUAGES C)
option(PNB_WERROR "" ON)
set(PROJECT_SOURCE_DIR "$dir")
include($PNB_SOURCE_DIR/cmake/flags.cmake)
add_library(room STATIC src/room.c)
add_executable(program program.c)
target_link_libraries(program PRIVATE room)
add_custom_target(bench_programs)
include($PNB_SOURCE_DIR/cmake/check_only.cmake)
END
echo 'int room(void);' >"$dir/src/room.h"
printf '#include "room.h"\nint room(void) { return 0; }\n' >"$dir/src/room.c"
echo 'int main(void) { return 0; }' | tee "$dir/program.c" >"$dir/examples/example.c"
log=$dir/log

build() { cmake --build "$dir/build" >"$log" 2>&1; }
configure() {
    CC=$1 cmake -S "$dir" -B "$dir/build" -DPNB_CHECK_ONLY=ON >"$log" 2>&1 ||
        bad "it is not configured: $(cat "$log")"
}
configure clang
build || bad "sources without a warning are refused: $(cat "$log")"
build || bad "what was read already is refused: $(cat "$log")"
flags=$(grep -hr '^C_FLAGS\|FLAGS =' "$dir/build" --include=flags.make --include=build.ninja)
[[ $flags == *-O0* && $flags != *-O[1-3s]* ]] || bad "something is optimised: $flags"
[ -z "$(find "$dir/build" -path '*.dir/*.o' -size +0)" ] || bad "objects are written"

# planted FILE TEXT WANTED: the text in place of the file is refused, and the file afterwards is not.
planted() {
    cp "$dir/$1" "$dir/kept"
    echo "$2" >"$dir/$1"
    build && bad "$1 passes with: $2"
    grep -qF -- "$3" "$log" || bad "'$3' is not said of: $2"
    build && bad "$1 passes the second time with: $2"
    mv "$dir/kept" "$dir/$1" && touch "$dir/$1"
    build || bad "$1 is refused when it is right again: $(cat "$log")"
}
self='int room(int x); int room(int x) { x = x; return x; }'
for file in src/room.c program.c examples/example.c; do
    planted $file "$self"$'\nint main(void) { return 0; }' -Wself-assign
done
planted src/room.h 'int room(void); static inline int same(int x) { x = x; return x; }' -Wself-assign
echo "$self" >"$dir/self.c"
gcc -Wall -Wextra -Wpedantic -Werror -fsyntax-only "$dir/self.c" || bad "the planted warning is GCC's too"
if [ "$(uname -m)" = x86_64 ]; then
    planted src/room.c 'typedef float eight __attribute__((vector_size(32)));
__attribute__((target("sse2"))) void most(eight *x); __attribute__((target("sse2"))) void most(eight *x)
{ *x = __builtin_ia32_maxps256(*x, *x); }' "needs target feature avx"
    planted src/room.c '#include <immintrin.h>
__m256 twice(__m256 x); __m256 twice(__m256 x) { return _mm256_add_ps(x, x); }' "requires target feature 'avx'"
fi

# Without clang-check beside it, Clang is started for each file.
printf '#!/bin/sh\necho started >>"%s/starts"\nexec clang "$@"\n' "$top" >"$top/clang"
chmod +x "$top/clang"
rm -r "$dir/build"
configure "$top/clang"
: >"$top/starts"
build || bad "without clang-check, sources without a warning are refused: $(cat "$log")"
[ "$(wc -l <"$top/starts")" -eq 3 ] || bad "Clang was started $(wc -l <"$top/starts") times for 3 files"
build && [ "$(wc -l <"$top/starts")" -eq 3 ] || bad "what did not change is read again"
planted program.c "$self"$'\nint main(void) { return 0; }' -Wself-assign
finish
