#!/bin/bash
# A tree without any optional library can be configured, says what it is built without, and leaves out
# each source that needs one: a source that moved from where cmake/rooms.cmake looks for it fails there.
. "$(dirname "$0")/lib.sh"
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
libraries='libzstd snappy libgif libtiff-4 libheif librsvg-2.0 libxml-2.0 freetype2 harfbuzz sqlite3 libpq
           libmicrohttpd ompi-c'
cat >"$tree/pkg-config" <<EOF
#!/bin/sh
for arg; do
    for library in $(tr '\n' ' ' <<<"$libraries"); do
        case \$arg in \$library | \$library[\<\>=\ ]*) exit 1 ;; esac
    done
done
exec pkg-config "\$@"
EOF
chmod +x "$tree/pkg-config"
if ! cmake -S "$PNB_SOURCE_DIR" -B "$tree/build" -DPKG_CONFIG_EXECUTABLE="$tree/pkg-config" \
    -DFAISS_LIBRARY= -DCMAKE_BUILD_TYPE=Release -DPNB_TESTS=OFF -DCMAKE_EXPORT_COMPILE_COMMANDS=ON \
    >"$tree/log" 2>&1; then
    cat "$tree/log"
    bad "a tree without optional libraries can not be configured"
fi
for name in libzstd snappy giflib libtiff libheif librsvg freetype2 SQLite libpq libmicrohttpd OpenMPI FAISS; do
    grep -q "^-- $name.* missing" "$tree/log" ||
        bad "no word that $name is missing"
done
compiled=$(grep '"file":' "$tree/build/compile_commands.json" || true)
[ -n "$compiled" ] || bad "no list of what would be compiled"
for source in formats/gif.c formats/tiff.c formats/heif.c svg/svg_library.c store/sqlite/ store/postgres/ \
    peers/mpi.c sockets/listen.c faiss_bridge.cpp; do
    [ -n "$(find "$PNB_SOURCE_DIR/src" -path "*/$source*" -print -quit)" ] || bad "there is no $source"
    if grep -qF "/$source" <<<"$compiled"; then
        bad "$source is compiled without its library"
    fi
done
finish
