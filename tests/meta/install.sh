#!/bin/bash
# Installs the Release build to a temporary prefix and builds examples/ outside the tree against it:
# with pkg-config (shared and static) and with find_package(penumbra); then runs the results.
. "$(dirname "$0")/lib.sh"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
prefix=$dir/prefix
cmake --install "$PNB_RELEASE_DIR" --prefix "$prefix" >"$dir/install.log" || {
    cat "$dir/install.log"
    bad "cmake --install failed"
    finish
}
cp -r "$PNB_SOURCE_DIR/examples" "$dir/examples"
libdir=$(dirname "$(find "$prefix" -name penumbra.pc)")/..
export PKG_CONFIG_PATH=$libdir/pkgconfig
version=$(pkg-config --modversion penumbra)

# run PROGRAM: must succeed and name the version that pkg-config names.
run() {
    local said
    said=$(LD_LIBRARY_PATH=$libdir "$@") || bad "$* failed"
    grep -qF "$version" <<<"$said" || bad "$* does not name version $version: $said"
}

for example in "$dir"/examples/*.c; do
    name=$(basename "$example" .c)
    [ "$(wc -l <"$example")" -lt 80 ] || bad "examples/$name.c has 80 lines or more"
done
hello=$dir/examples/hello.c
# shellcheck disable=SC2046  # flags are words
gcc -std=c11 -Wall -Werror "$hello" -o "$dir/hello_shared" $(pkg-config --cflags --libs penumbra) ||
    bad "pkg-config, shared"
run "$dir/hello_shared"
# shellcheck disable=SC2046
gcc -std=c11 -Wall -Werror "$hello" -o "$dir/hello_static" $(pkg-config --cflags penumbra) \
    "$libdir/libpenumbra.a" $(pkg-config --libs --static penumbra | sed 's/-lpenumbra//') ||
    bad "pkg-config, static"
ldd "$dir/hello_static" | grep -q libpenumbra && bad "the static example loads libpenumbra.so"
run "$dir/hello_static"

cmake -S "$dir/examples" -B "$dir/build" -DCMAKE_PREFIX_PATH="$prefix" >"$dir/cmake.log" 2>&1 &&
    cmake --build "$dir/build" >>"$dir/cmake.log" 2>&1 || {
    cat "$dir/cmake.log"
    bad "find_package(penumbra)"
}
run "$dir/build/hello"
run "$dir/build/hello_static"

if [ -e "$PNB_RELEASE_DIR/penumbra" ]; then
    "$prefix/bin/penumbra" --help >/dev/null || bad "the installed program does not run"
    "$prefix/bin/penumbra" info shipped:tiny --json | grep -q "$prefix/share/penumbra/models/tiny" ||
        bad "the installed program does not find the model that comes with it"
    man=$prefix/share/man/man1
    [ -s "$man/penumbra.1" ] || bad "no manual page penumbra(1) was installed"
    for page in "$PNB_SOURCE_DIR"/docs/commands/*.md; do
        name=penumbra-$(basename "$page" .md).1
        [ -s "$man/$name" ] || bad "no manual page $name was installed"
    done
    for recipe in prolip-pretrain prolip-from-siglip longprolip finetune-coco finetune-lora distill-clip pcme-coco pcme-cub small; do
        [ -s "$prefix/share/penumbra/recipes/$recipe.conf" ] || bad "recipe $recipe is not installed"
    done
    for script in bash-completion/completions/penumbra zsh/site-functions/_penumbra \
        fish/vendor_completions.d/penumbra.fish; do
        [ -s "$prefix/share/$script" ] || bad "no completion $script was installed"
    done
fi
finish
