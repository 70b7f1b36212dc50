#!/bin/bash
# serve --approx: the same hits as an exact search of so few rows, under filters and limits too; replies
# say what was asked; conformal lists; indexes are built at the start, opened later, built for what comes;
# what is refused.
source "$(dirname "$0")/common/lib.sh"
source "$(dirname "$0")/common/serve.sh"
needs_sqlite
make_small
want 0 embed -m model --images shapes/train shapes/test -o i.safetensors -q
want 0 collection create photos --model model
want 0 collection add photos --set i.safetensors --tags lot -q
make_pictures val 2
want 2 serve -m model --collection photos --approx flat --port 0
says "int8"

cat >same.py <<'END'
from http_client import *
import sys
kind, has_faiss = sys.argv[1], sys.argv[1] in ("hnsw", "ivf")
def both(**body):
    near, exact = [post("/v1/search", {**body, "exact": e}) for e in (False, True)]
    assert near["approx"]["index"] == kind and isinstance(near["approx"]["may_differ"], bool), near
    assert "approx" not in exact and near["measure"] == exact["measure"] == "csd"
    assert near["answer"] == exact["answer"]
    assert [h["id"] for h in near["hits"]] == [h["id"] for h in exact["hits"]], (near, exact)
    for a, b in zip(near["hits"], exact["hits"]):
        assert abs(a["score"] - b["score"]) < 1e-9
        assert abs((a["p_match"] or 0) - (b["p_match"] or 0)) < 1e-9
    return near
for where in ("photos", "images"):
    found = both(text="a red star", k=5, collection=where)
    assert len(found["hits"]) == 5
    both(id=found["hits"][0]["id"], k=7, collection=where)
    limit = found["hits"][2]["p_match"]
    assert len(both(text="a red star", min_probability=limit, collection=where)["hits"]) == 3
    assert both(text="a red star", min_probability=0.999, collection=where)["answer"] == "none"
    assert len(post("/knn-service", {"text": "a", "indice_name": where, "num_images": 3})) == 3
u = sorted(h["uncertainty"] for h in both(text="a", k=32, collection="photos")["hits"])
assert len(both(text="a", k=32, max_uncertainty=(u[4] + u[5]) / 2, collection="photos")["hits"]) == 5
assert both(text="a", tags=["lot"], k=4, collection="photos")["answer"] == "found"
assert post("/v1/search", {"text": "a", "tags": ["none"], "collection": "photos"})["answer"] == "none"
post("/v1/search", {"text": "a", "exact": "yes"}, 400, says="'exact'")
END
for kind in int8 bf16; do
    start_server -m model --collection photos --images i.safetensors --approx $kind
    check "$kind: as an exact search" python3 same.py $kind
    stop_server
done

# lists by conformal prediction: as exact ones, of set and collection
want 0 embed -m model --texts shapes/train/captions.jsonl -o t.safetensors -q
want 0 search --index i.safetensors --queries t.safetensors -k 5 --json
check "a truth" python3 - <<'END'
import json
hits, ids = json.load(open("out"))["hits"], [json.loads(line)["id"] for line in open("t.ids.jsonl")]
open("own.pairs", "w").writelines("%s\t%s\n" % (hits[5 * n + n % 5]["id"], i) for n, i in enumerate(ids)) # not always the first
END
want 0 calibrate --images i.safetensors --texts t.safetensors --gallery images --truth own.pairs --out fit.json -q
calibrated() { # KIND: a server that has read it for both, for this once
    cp fit.json i.calibration.json
    cp fit.json photos/collection.calibration.json
    start_server -m model --collection photos --images i.safetensors --approx "$1"
    check "$1: conformal lists" python3 lists.py
    stop_server
    rm i.calibration.json photos/collection.calibration.json
}
cat >lists.py <<'END'
from http_client import *
lengths = set()
for where in ("photos", "images"):
    for k, share in [(k, share) for k in (1, 4, 32) for share in (0.05, 0.3, 0.6, 0.9)]:
        near, exact = [post("/v1/search", {"text": "a red star", "k": k, "conformal": share, "collection": where,
                                           "exact": e}) for e in (False, True)]
        assert "approx" in near and "approx" not in exact
        assert near["conformal"] == exact["conformal"] and near["answer"] == exact["answer"], (near, exact)
        assert [h["id"] for h in near["hits"]] == [h["id"] for h in exact["hits"]], (near, exact)
        lengths.add(len(near["hits"]))
assert len(lengths) > 1, lengths
END
calibrated int8

if ! "$PENUMBRA" --version --verbose | grep -q 'FAISS [0-9]'; then
    want 1 serve -m model --collection photos --approx hnsw --port 0
    says "libfaiss-dev"
    finish
    exit
fi
for kind in hnsw ivf; do
    start_server -m model --collection photos --images i.safetensors --approx $kind --recall 0.95
    check "$kind: it says that it builds" grep -q "building the $kind index of" server.log
    check "$kind: as an exact search" python3 same.py $kind
    check "$kind: files beside shard and set" test -s i.safetensors.$kind -a -s "$(ls photos/shards/*.$kind)"
    want 0 collection add photos --images pictures --tags later $kind -m model -q
    asks "what came is found at once" $kind <<'END'
import sys
late = post("/v1/search", {"text": "a red star", "k": 9, "tags": ["later", sys.argv[1]], "collection": "photos"})
assert len(late["hits"]) == 2 and not late["approx"]["may_differ"], late
END
    kill -HUP "$server"
    for ((i = 0; i < 200; i++)); do grep -q '^reloaded' server.log && break; sleep 0.05; done
    check "$kind: as an exact search after SIGHUP" python3 same.py $kind
    check "$kind: and what came has its index" test "$(ls photos/shards/*.safetensors | wc -l)" -eq "$(ls photos/shards/*.$kind | wc -l)"
    stop_server
    want 0 collection remove photos --tags later
    start_server -m model --collection photos --images i.safetensors --approx $kind
    check "$kind: opened, not built" test "$(grep -c 'building' server.log)" -eq 0
    stop_server
    calibrated $kind
done

# a damaged file is refused with what to do, and the server that runs goes on
start_server -m model --images i.safetensors --approx hnsw
truncate -s -9 i.safetensors.hnsw
kill -HUP "$server"
for ((i = 0; i < 200; i++)); do grep -q 'not reloaded' server.log && break; sleep 0.05; done
check "the reload failed" grep -q 'i.safetensors.hnsw.*remove' server.log
asks "what was served goes on" <<'END'
assert post("/v1/search", {"text": "a"})["approx"]["index"] == "hnsw"
END
stop_server
want 1 serve -m model --images i.safetensors --approx hnsw --port 0
says "remove"

finish
