#!/bin/bash
# serve: collections that requests make, fill and thin out; thumbnails, browsing, related captions;
# conformal lists; SIGHUP.
source "$(dirname "$0")/common/lib.sh"
source "$(dirname "$0")/common/serve.sh"
needs_sqlite
make_small
make_pictures train
start_server -m model --collection-root root
asks "made, filled, searched, thinned out" <<'END'
import glob, hashlib
def url(path):
    return "data:image/png;base64," + base64.b64encode(open(path, "rb").read()).decode()
paths = sorted(glob.glob("pictures/*.png"))[:9]
assert get("/v1/collections") == {"object": "list", "can_create": True, "data": []}
post("/v1/search", {"text": "a"}, 404, says="nothing to search in")
made = post("/v1/collections", {"name": "photos"})
assert made == {"name": "photos", "modality": "image", "n_rows": 0, "can_change": True}
post("/v1/collections", {"name": "photos"}, 409, says="is served already")
for name in ("../up", "a/b", ".hidden", "", "x" * 65, "-rf", "a b"):
    post("/v1/collections", {"name": name}, 400, says="is no name of a collection")
assert post("/v1/search", {"text": "a"})["answer"] == "none"
assert post("/v1/browse", {})["hits"] == [] and post("/v1/browse", {"by": "outliers"})["hits"] == []
add = "/v1/collections/photos/add"
done = post(add, {"input": [url(p) for p in paths], "ids": paths, "captions": ["caption of " + p for p in paths], "tags": ["lot"]})
assert done == {"collection": "photos", "n_added": 9, "n_known": 0, "n_replaced": 0, "n_rows": 9}, done
assert post(add, {"input": url(paths[0])})["n_known"] == 1
found = post("/v1/search", {"text": "a red star", "k": 9, "thumbnails": True, "plane": True, "tags": ["lot"]})
assert len(found["hits"]) == 9 and all(h["thumbnail"] and h["caption"] == "caption of " + h["id"] for h in found["hits"])
assert len(found["plane"]["hits"]) == 9 and len(found["plane"]["query"]) == 5
same = post("/v1/search", {"image": url(paths[3]), "k": 1})["hits"][0]
assert same["id"] == paths[3]
# a thumbnail, and no other file of this machine
one = found["hits"][0]["row"]
c = http.client.HTTPConnection(where.hostname, where.port)
c.request("GET", "/v1/collections/photos/thumbnails/%d" % one)
r = c.getresponse()
jpeg = r.read()
assert r.status == 200 and jpeg[:3] == b"\xff\xd8\xff" and r.getheader("Content-Type") == "image/jpeg", r.status
for bad in ("photos/thumbnails/999", "photos/thumbnails/-1", "photos/thumbnails/x", "other/thumbnails/1",
            "photos/thumbnails/..%2f..%2fcollection.db", "photos/thumbnails/99999999999999999999"):
    get("/v1/collections/" + bad, 404)
# refused whole
post(add, {"input": [url(paths[0]), "a caption"]}, 400, says="captions and pictures in one list")
post(add, {"input": ["one", "two"]}, 400, says="is a collection of images, not of texts")
post(add, {"input": [url(paths[0]), "data:image/png;base64,AAAA"]}, 400, says="input 1")
post(add, {"input": url(paths[0]), "ids": ["a", "b"]}, 400, says="'ids' has 2 texts, 'input' has 1")
post(add, {"input": url(paths[0]), "tags": [3]}, 400, says="'tags' has at 0 a number")
post(add, {"input": "file:///etc/passwd"}, 400)
post("/v1/collections/other/add", {"input": "a"}, 404, says="there is no collection 'other'")
assert get("/v1/collections")["data"][0]["n_rows"] == 9
gone = post("/v1/collections/photos/remove", {"ids": [paths[0], "nobody"]})
assert gone == {"collection": "photos", "n_removed": 1, "n_rows": 8}
assert paths[0] not in [h["id"] for h in post("/v1/search", {"text": "a", "k": 99})["hits"]]
# captions
assert post("/v1/collections", {"name": "captions", "modality": "text"})["modality"] == "text"
words = ["a red star", "a star", "a shape", "a blue ring", "a ring"]
assert post("/v1/collections/captions/add", {"input": words})["n_added"] == 5
assert post("/v1/collections/captions/add", {"input": words[0]})["n_known"] == 1
hits = post("/v1/search", {"text": "a red star", "collection": "captions", "k": 2})["hits"]
assert hits[0]["caption"] == "a red star" and hits[0]["id"] == hashlib.sha256(b"a red star").hexdigest()[:16]
related = post("/v1/search", {"text": "a star", "related": True})
assert all(h["caption"] in words for h in related["narrower"] + related["broader"]) and related["narrower"] + related["broader"]
for word in words: # a caption is not narrower or broader than itself
    of_itself = post("/v1/search", {"text": word, "related": True})
    assert word not in [h["caption"] for h in of_itself["narrower"] + of_itself["broader"]], (word, of_itself)
# browsing
u = [h["uncertainty"] for h in post("/v1/browse", {"by": "certain"})["hits"]]
assert u == sorted(u) and len(u) == 8
v = [h["uncertainty"] for h in post("/v1/browse", {"by": "uncertain", "k": 3})["hits"]]
assert v == sorted(u, reverse=True)[:3]
rows = [h["row"] for h in post("/v1/browse", {"collection": "photos"})["hits"]]
assert rows == sorted(rows, reverse=True)
far = post("/v1/browse", {"by": "outliers", "k": 4})
assert far["n_looked"] == 8 and len(far["hits"]) == 4 and far["hits"][0]["score"] <= far["hits"][1]["score"]
all_same = post("/v1/browse", {"by": "duplicates", "min_score": -1})["hits"]
assert len(all_same) == 8 and {h["group"] for h in all_same} == {0}
post("/v1/browse", {"by": "colour"}, 400, says="newest|certain|uncertain|outliers|duplicates")
post("/v1/search", {"text": "a", "conformal": 0.1}, 400, says="penumbra calibrate")
END
check "the command sees what requests added" grep -q . <("$PENUMBRA" collection list root/photos -q)

asks "SIGHUP: nobody notices, what other programs made is there" "$server" <<'END'
import signal, subprocess, sys
subprocess.run([os.environ["PENUMBRA"], "collection", "create", "root/late"], check=True, stdout=subprocess.DEVNULL)
failed, stop = [], threading.Event()
def go_on():
    while not stop.is_set():
        code, _, text = ask("POST", "/v1/search", {"text": "a ring", "collection": "photos", "k": 3})
        if code != 200 or len(json.loads(text)["hits"]) != 3:
            failed.append((code, text))
threads = [threading.Thread(target=go_on) for i in range(3)]
for t in threads:
    t.start()
for n in range(1, 4):
    os.kill(int(sys.argv[1]), signal.SIGHUP)
    for i in range(200):
        if metric('penumbra_reloads_total{result="done"}') == n:
            break
        time.sleep(0.05)
    assert metric('penumbra_reloads_total{result="done"}') == n
stop.set()
for t in threads:
    t.join()
assert not failed, failed[:2]
assert sorted(c["name"] for c in get("/v1/collections")["data"]) == ["captions", "late", "photos"]
END
mv model elsewhere
asks "a reload that fails: the old one goes on" "$server" <<'END'
import signal, sys
os.kill(int(sys.argv[1]), signal.SIGHUP)
for i in range(200):
    if metric('penumbra_reloads_total{result="failed"}') == 1:
        break
    time.sleep(0.05)
assert metric('penumbra_reloads_total{result="failed"}') == 1
assert len(post("/v1/search", {"text": "a ring", "collection": "photos", "k": 3})["hits"]) == 3
END
stop_server
says "not reloaded, what was served goes on:"
mv elsewhere model

# lists by conformal prediction, and the same bits alone and in company
want 0 embed -m model --images shapes/train -o i.safetensors -q
want 0 embed -m model --texts shapes/train/captions.jsonl -o t.safetensors -q
# a truth that an untrained model agrees with: its own first hits
want 0 search --index i.safetensors --queries t.safetensors -k 1 --json
check "a truth" python3 - <<'END'
import json
hits, ids = json.load(open("out"))["hits"], [json.loads(line)["id"] for line in open("t.ids.jsonl")]
open("own.pairs", "w").writelines("%s\t%s\n" % (h["id"], i) for h, i in zip(hits, ids, strict=True))
END
want 0 calibrate --images i.safetensors --texts t.safetensors --gallery images --truth own.pairs \
    --out i.calibration.json -q
start_server -m model --images i.safetensors --texts t.safetensors --batch-invariant
asks "conformal, batch-invariant" <<'END'
wide = post("/v1/search", {"text": "a red star", "collection": "images", "k": 100, "conformal": 0.05})
narrow = post("/v1/search", {"text": "a red star", "collection": "images", "k": 100, "conformal": 0.6})
assert wide["conformal"]["by"] in ("score", "margin", "rank")
assert len(narrow["hits"]) <= len(wide["hits"]), (len(narrow["hits"]), len(wide["hits"]))
cut = post("/v1/search", {"text": "a red star", "collection": "images", "k": 1, "conformal": 0.05})
assert not cut["conformal"]["is_whole"] or len(wide["hits"]) <= 1
alone = post("/v1/embeddings", {"input": "a red star", "encoding_format": "base64"})["data"][0]["embedding"]
many = post("/v1/embeddings", {"input": ["a ring", "a red star"] + ["a star"] * 30, "encoding_format": "base64"})["data"]
assert many[1]["embedding"] == alone
END
stop_server
finish
