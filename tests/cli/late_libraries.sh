#!/bin/bash
# Libraries that are opened when a command needs them: without one the others go on working, and the
# command that needs it says what to install.
source "$(dirname "$0")/common/lib.sh"
mkdir broken
for file in libpq.so.5 libmicrohttpd.so.12 libfreetype.so.6 libharfbuzz.so.0 librsvg-2.so.2; do
    : >"broken/$file" # found first, and no library
done
run --version --verbose
for part in "libpq-dev" "libmicrohttpd-dev"; do
    if grep -q "missing; install.*$part" out; then
        echo "SKIPPED: built without $part"
        exit 77
    fi
done
make_small

export LD_LIBRARY_PATH=$PWD/broken
want 0 --version
want 0 data shapes --out others --n 20 -q
want 0 embed -m model --images shapes/test -o i.safetensors -q
want 1 collection create probe --store postgresql://127.0.0.1:1/none --schema s
says "no collection in Postgres: $PWD/broken/libpq.so.5: file too short; apt-get install libpq5"
want 1 serve -m model --port 0
says "HTTP is not spoken: $PWD/broken/libmicrohttpd.so.12: file too short; apt-get install libmicrohttpd12"
want 0 --version --verbose
check "a server that cannot be is not promised" grep -q "libmicrohttpd cannot be opened: apt-get install libmicrohttpd12" out
: >font.ttf
want 1 data emoji --out emoji --font font.ttf
says "no emoji is drawn: $PWD/broken/libfreetype.so.6: file too short; apt-get install libfreetype6"
rm broken/libfreetype.so.6
want 1 data emoji --out emoji --font font.ttf
says "no emoji is drawn: $PWD/broken/libharfbuzz.so.0: file too short; apt-get install libharfbuzz0b"
finish
