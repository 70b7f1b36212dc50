#!/bin/bash
# A Postgres server of a test's own: in a folder, on a free port of 127.0.0.1 and a socket there.
#
#   postgres.sh start DIR    prints two lines: the address by the socket (no password asked) and by
#                            the port (user penumbra, password "a s@cret/word"); exit 77 where
#                            Debian's postgresql-15 is not there
#   postgres.sh stop DIR     at once, as if the machine went down; fine where nothing runs
#   postgres.sh again DIR    after a stop
#
# Postgres does not run as root: then everything is the system user's that its package made.
set -eu
cd /
action=$1 dir=$2 # an absolute path
bin=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -1)
if [ -z "$bin" ] || [ ! -x "$bin/initdb" ]; then
    echo "skipped: no Postgres server (the package is postgresql-15)"
    exit 77
fi
as=()
if [ "$(id -u)" -eq 0 ]; then
    id postgres >/dev/null 2>&1 || { echo "skipped: root, and there is no user postgres"; exit 77; }
    as=(setpriv --reuid=postgres --regid=postgres --clear-groups)
fi

free_port() {
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

start() {
    "${as[@]}" "$bin/pg_ctl" -D "$dir/data" -l "$dir/log" -w -t 60 -o \
        "-p $(cat "$dir/port") -k $dir -c listen_addresses=127.0.0.1 -c shared_buffers=64MB -c fsync=${PNB_TEST_FSYNC:-off} -c max_wal_size=2GB" \
        start >/dev/null
}

case $action in
start)
    mkdir -p "$dir"
    [ ${#as[@]} -eq 0 ] || chown postgres: "$dir"
    free_port >"$dir/port"
    "${as[@]}" "$bin/initdb" -D "$dir/data" -U admin --auth-local=trust --auth-host=scram-sha-256 -E UTF8 \
        --locale=C --no-sync >/dev/null
    start
    "${as[@]}" "$bin/psql" -q -h "$dir" -p "$(cat "$dir/port")" -U admin postgres \
        -c "CREATE ROLE penumbra LOGIN PASSWORD 'a s@cret/word'" -c "CREATE DATABASE pictures OWNER penumbra" >/dev/null
    echo "postgresql:///pictures?host=$dir&port=$(cat "$dir/port")&user=penumbra"
    echo "postgresql://penumbra:a%20s%40cret%2Fword@127.0.0.1:$(cat "$dir/port")/pictures"
    ;;
stop) "${as[@]}" "$bin/pg_ctl" -D "$dir/data" -m immediate -w stop >/dev/null 2>&1 || true ;;
again) start ;;
esac
