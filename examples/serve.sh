#!/bin/bash
# A server on a free port, asked with curl, ended by SIGTERM: examples/serve.sh MODEL
set -euo pipefail
model=${1:?usage: examples/serve.sh MODEL}
penumbra=${PENUMBRA:-penumbra}
address=$(mktemp)
server=
trap 'rm -f "$address"; [ -z "$server" ] || kill "$server" 2>/dev/null || true' EXIT

# The first line of standard output is the address; /health says 503 until the model is there.
"$penumbra" serve --model "$model" --port 0 --quiet >"$address" &
server=$!
until url=$(grep -o 'http://.*' "$address") && curl -fs "$url/health" >/dev/null; do
    kill -0 "$server"
    sleep 0.1
done

curl -fs "$url/v1/embeddings" -d '{"input": "a red star", "return_uncertainty": true}'
curl -fs "$url/v1/similarity" -d '{"a": ["a star", "a ring"], "b": "a red star"}'
curl -fs "$url/v1/classify" -d '{"input": "a red star", "labels": ["star", "ring"], "templates": ["a {}"]}'

kill -TERM "$server"
wait "$server"
server=
