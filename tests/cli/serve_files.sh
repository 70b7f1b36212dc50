#!/bin/bash
# serve, and its files: collections that were emptied, damaged or half made, and weights that somebody
# writes to while they are in use.
source "$(dirname "$0")/common/lib.sh"
source "$(dirname "$0")/common/serve.sh"
needs_sqlite
make_small
mkdir root
make_pictures train 4
reload() { # WORD: SIGHUP, and its line of the log
    local tries
    : >server.log
    kill -HUP "$server"
    for ((tries = 0; tries < 400; tries++)); do
        grep -q reloaded server.log && break
        sleep 0.05
    done
    check "the log says: $1" grep -q "$1" server.log
}

# emptied over HTTP: served after a reload and a restart, and what they were of is remembered
printf 'a red star\na ring\n' >lines.txt
for c in photos captions root/words; do want 0 collection create $c --model model; done
want 0 collection add photos --images pictures -q
want 0 collection add captions --texts lines.txt -q
want 0 collection add root/words --texts lines.txt -q
cat >empty.py <<'END'
kinds = {c["name"]: (c["modality"], c["n_rows"]) for c in get("/v1/collections")["data"]}
assert kinds == {"photos": ("image", 0), "captions": ("text", 0), "words": ("text", 0)}, kinds
for name in kinds:
    assert post("/v1/search", {"text": "a", "collection": name})["answer"] == "none"
END
start_server -m model --collection photos captions --collection-root root
asks "all of them go" <<'END'
for name in ("photos", "captions", "words"):
    ids = [h["id"] for h in post("/v1/search", {"text": "a", "k": 99, "collection": name})["hits"]]
    assert post(f"/v1/collections/{name}/remove", {"ids": ids})["n_rows"] == 0
END
asks "emptied" <empty.py
reload "^reloaded"
asks "emptied, and opened anew" <empty.py
stop_server
start_server -m model --collection photos captions --collection-root root
asks "emptied, and served from the start" <empty.py
asks "and filled again" <<'END'
post("/v1/collections/captions/add", {"input": "a red star"})
post("/v1/collections/photos/add", {"input": "a red star"}, 400, says="is a collection of images")
END
stop_server
want 0 init --config tiny --override "$small_config" --tokenizer tok.json --seed 9 --out other -q
want 1 serve -m other --collection photos --port 0
says "different weights"

# one that is damaged, or half made, stops none of the others
mkdir -p root/damaged/shards root/half/shards
head -c 5000 /dev/urandom >root/damaged/collection.db
echo half >root/half/collection.db.new
start_server -m model --collection-root root
check "the damaged one is named" grep -q "root/damaged is not served: .*damaged" server.log
asks "the others are served, what is half made can be made" <<'END'
assert [c["name"] for c in get("/v1/collections")["data"]] == ["words"]
post("/v1/search", {"text": "a", "collection": "damaged"}, 404)
post("/v1/collections", {"name": "damaged"}, 409, says="is there already")
post("/v1/collections", {"name": "half", "modality": "text"})
assert [c["name"] for c in get("/v1/collections")["data"]] == ["words", "half"]
END
reload "^reloaded"
asks "a collection that requests made of captions is of captions, before its first row too" <<'END'
assert ("half", "text") in [(c["name"], c["modality"]) for c in get("/v1/collections")["data"]]
post("/v1/collections/half/add", {"input": "a red star"})
END
stop_server
want 1 serve -m model --collection root/damaged --port 0
says "is damaged or no collection"

# a shard that is cut short under the server: an error, not the end of it
want 0 collection create more --model model
want 0 collection add more --images pictures -q
shard=$(ls more/shards/*.safetensors)
cp "$shard" kept
start_server -m model --collection more
asks "four rows" <<<'assert len(post("/v1/search", {"text": "a red star"})["hits"]) == 4'
truncate -s 0 "$shard"
cat >cut.py <<'END'
for i in range(3):
    post("/v1/search", {"text": "a red star"}, 503, says="was cut short while it was in use")
assert get("/health") == {"status": "ok"}
END
asks "what is missing is not searched" <cut.py
check "the log names the file, once" test "$(grep -c "$shard was cut short while it was in use" server.log)" -eq 1
kill -HUP "$server"
for ((i = 0; i < 200; i++)); do grep -q "not reloaded" server.log && break; sleep 0.05; done
check "it cannot be opened anew so" grep -q "not reloaded, what was served goes on" server.log
asks "and is not searched still" <cut.py
cp kept "$shard"
reload "^reloaded"
asks "until it is there again" <<<'assert len(post("/v1/search", {"text": "a red star"})["hits"]) == 4'
stop_server

# weights that are written to, cut short, replaced
cp -r model used
weights=$(ls used/*.safetensors)
start_server -m used --collection photos
asks "in use" <<'END'
open("before", "w").write(json.dumps(post("/v1/embeddings", {"input": "a red star"})["data"]))
END
cp other/*.safetensors moved && mv moved "$weights"
asks "another file of that name leaves them as they were" <<'END'
assert post("/v1/embeddings", {"input": "a red star"})["data"] == json.loads(open("before").read())
END
cp model/*.safetensors moved && mv moved "$weights"
reload "^reloaded"
cat >refused.py <<'END'
import glob
url = "data:image/png;base64," + base64.b64encode(open(glob.glob("pictures/*")[0], "rb").read()).decode()
says = glob.glob("used/*.safetensors")[0] + " was written to since it was opened"
post("/v1/embeddings", {"input": "a red star"}, 503, says=says)
post("/v1/collections/photos/add", {"input": url}, 503, says=says)
post("/v1/search", {"text": "a red star"}, 503, says=says)
assert get("/v1/collections")["data"][0]["n_rows"] == 0
END
cat other/*.safetensors >"$weights" # as many bytes
asks "other weights under the old name are not used" <refused.py
truncate -s 2000 "$weights"
asks "nor what was cut short read" <refused.py
cat model/*.safetensors >"$weights"
reload "^reloaded"
asks "until it is opened anew" <<'END'
assert post("/v1/embeddings", {"input": "a red star"})["data"] == json.loads(open("before").read())
END
stop_server
finish
