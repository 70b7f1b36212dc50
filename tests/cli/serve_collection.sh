#!/bin/bash
# serve --collection: what the command finds, filters inside the search, rows that other programs add
# and remove while it runs; what cannot be served.
source "$(dirname "$0")/common/lib.sh"
source "$(dirname "$0")/common/serve.sh"
needs_sqlite
make_small
want 0 collection create photos --model model
start_server -m model --collection photos
asks "one without rows is served, and has none" <<'END'
assert get("/v1/collections")["data"] == [{"name": "photos", "modality": "image", "n_rows": 0, "can_change": True}]
assert post("/v1/search", {"text": "a red star"})["answer"] == "none"
END
stop_server
make_pictures train 8
touch pictures/*
mapfile -t all < <(ls -d pictures/*)
touch -d @1000000000 "${all[@]:0:3}"
want 0 collection add photos --images "${all[@]:0:3}" --tags old lot -q
want 0 collection add photos --images "${all[@]:3:4}" --tags lot -q
mkdir elsewhere && cp -r photos elsewhere/
want 1 serve -m model --collection photos elsewhere/photos --port 0
says "two of what is served are called 'photos'"
want 1 serve -m model --collection nowhere --port 0
says "nowhere"
want 0 search --collection photos -m model --query-text 'a red star' -k 5 --json
cp out all.json
want 0 search --collection photos -m model --query-text 'a red star' -k 5 --tags old --json
cp out old.json

start_server -m model --collection photos
check "a warning names its collection" grep -q "warning: photos: no probability is given" server.log
asks "search finds what the command finds, under filters too" <<'END'
def same(reply, path):
    hits = json.load(open(path))["hits"]
    assert [h["id"] for h in reply["hits"]] == [h["id"] for h in hits], (reply, hits)
    for a, b in zip(reply["hits"], hits, strict=True):
        for name in ("score", "p_match", "uncertainty"):
            assert abs(a[name] - b[name]) < 1e-4, (name, a, b)
found = post("/v1/search", {"text": "a red star", "k": 5})
same(found, "all.json")
assert found["collection"] == "photos" and len(found["hits"]) == 5, found
old = post("/v1/search", {"text": "a red star", "k": 5, "tags": ["old"]})
same(old, "old.json")
assert len(old["hits"]) == 3 and all(h["tags"] == ["lot", "old"] and h["time"] == 10**9 for h in old["hits"])
early = post("/v1/search", {"text": "a red star", "until": 10**9})["hits"]
assert len(early) == 3, early
assert len(post("/v1/search", {"text": "a red star", "since": 10**9 + 1})["hits"]) == 4
u = sorted(h["uncertainty"] for h in post("/v1/search", {"text": "a red star", "k": 99})["hits"])
assert len(u) == 7
assert len(post("/v1/search", {"text": "a red star", "max_uncertainty": (u[1] + u[2]) / 2})["hits"]) == 2
assert len(post("/v1/search", {"text": "a red star", "min_uncertainty": (u[1] + u[2]) / 2})["hits"]) == 5
assert post("/v1/search", {"text": "a red star", "tags": ["none"]})["answer"] == "none"
post("/v1/search", {"text": "a", "tags": [3]}, 400, says="'tags' has at 0 a number")
like = post("/v1/search", {"id": found["hits"][0]["id"], "k": 99})["hits"]
assert len(like) == 6 and found["hits"][0]["id"] not in [h["id"] for h in like]
rows = [h["row"] for h in found["hits"]]
told = post("/metadata", {"indice_name": "photos", "ids": rows})
assert [t["metadata"]["id"] for t in told] == [h["id"] for h in found["hits"]]
post("/metadata", {"indice_name": "photos", "ids": [10**6]}, 400, says="no row of photos")
open("best", "w").write(found["hits"][0]["id"])
END
want 0 collection remove photos "$(cat best)"
want 0 collection add photos --images "${all[7]}" -q
asks "what was removed is in no search any more, what was added is" <<'END'
hits = post("/v1/search", {"text": "a red star", "k": 99})["hits"]
assert len(hits) == 7 and open("best").read() not in [h["id"] for h in hits]
post("/v1/search", {"id": open("best").read()}, 404, says="there is no row")
END
stop_server
want 0 embed -m model --images pictures -o i.safetensors -q
start_server -m model --images i.safetensors
asks "a set has no tags" <<'END'
post("/v1/search", {"text": "a", "tags": ["old"]}, 400, says="are of collections")
END
stop_server

finish
