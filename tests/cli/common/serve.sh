#!/bin/bash
# A server for a test: start_server ARGS... leaves its address in $url and its process in $server.
"$PENUMBRA" --version --verbose | grep -q 'libmicrohttpd [0-9]' || {
    echo "skipped: built without libmicrohttpd"
    exit 77
}
export PYTHONPATH=$PNB_SOURCE_DIR/tests/cli/common PYTHONDONTWRITEBYTECODE=1
server=
trap '[ -z "$server" ] || kill -9 "$server" 2>/dev/null; rm -rf "$work"' EXIT

start_server() {
    local tries
    printf '%s\t' serve "$@" >>"$work/.calls"
    echo >>"$work/.calls"
    : >served
    : >server.log # those of an earlier server
    "$PENUMBRA" serve "$@" --port 0 >served 2>server.log </dev/null &
    server=$!
    for ((tries = 0; tries < 600; tries++)); do
        grep -q '^serving' server.log && break
        kill -0 "$server" 2>/dev/null || break
        sleep 0.05
    done
    url=$(grep -o 'http:[^", ]*' served)
    export url
    n_checks=$((n_checks + 1))
    [ -n "$url" ] || { cp server.log err; cp served out; fail "serve $* did not start"; }
}

# stop_server: SIGTERM ends it, with status 0.
stop_server() {
    kill -TERM "$server"
    await_end
}

# await_end: the same for one that was told to end already.
await_end() {
    wait "$server"
    status=$?
    server=
    n_checks=$((n_checks + 1))
    cp server.log err
    cp served out
    [ "$status" -eq 0 ] || fail "the server ended with $status"
}

# asks DESCRIPTION: runs the Python on standard input, which has ask() and the like (http_client.py).
asks() {
    local what=$1
    shift
    n_checks=$((n_checks + 1))
    { echo 'from http_client import *'; cat; } >asks.py
    python3 asks.py "$@" >asked 2>&1 && return
    cat asked
    cp server.log err
    fail "$what"
}
