#!/bin/bash
# serve, and what keeps the rows of a collection goes away: Postgres that is stopped and started
# again, a collection.db that is removed, put back or another one. None of that is an empty collection.
source "$(dirname "$0")/common/lib.sh"
source "$(dirname "$0")/common/serve.sh"
needs_sqlite
make_small
make_pictures train 6
mapfile -t all < <(ls -d pictures/*)
want 0 collection create photos --model model
want 0 collection add photos --images "${all[@]:0:5}" -q

start_server -m model --collection photos
cat >all_gone.py <<'END'
import sys
name, picture, says = sys.argv[1], sys.argv[2], sys.argv[3]
url = "data:image/png;base64," + base64.b64encode(open(picture, "rb").read()).decode()
post("/v1/search", {"text": "a red star"}, 503, says=says)
post("/v1/search", {"id": "pictures/0"}, 503, says=says)
post("/knn-service", {"text": "a red star"}, 503, says=says)
post("/metadata", {"ids": [1]}, 503, says=says)
get("/v1/collections", 503, says=says)
get(f"/v1/collections/{name}/thumbnails/1", 503, says=says)
post("/v1/browse", {"by": "newest"}, 503, says=says)
post(f"/v1/collections/{name}/add", {"input": url}, 503)
post(f"/v1/collections/{name}/remove", {"ids": ["x"]}, 503)
code, headers, _ = ask("POST", "/v1/search", {"text": "a"})
assert code == 503 and headers["Retry-After"] == "1"
get("/health")
assert post("/v1/embeddings", {"input": "a red star"})["data"]
END
cat >all_there.py <<'END'
import sys
name, n = sys.argv[1], int(sys.argv[2])
hits = post("/v1/search", {"text": "a red star", "thumbnails": True})["hits"]
assert len(hits) == n and all(h["thumbnail"] for h in hits), hits
assert len(post("/knn-service", {"text": "a red star"})) == n
assert get("/v1/collections")["data"][0]["n_rows"] == n
END
asks "all is there" photos 5 <all_there.py
mkdir away
mv photos/collection.db* away
asks "a database that was removed is no empty collection" photos "${all[5]}" "photos/collection.db is gone" <all_gone.py
mv away/* photos
asks "and is served when it is back" photos 5 <all_there.py
mv photos/collection.db* away
head -c 40000 /dev/zero >photos/collection.db
asks "another file in its place" photos "${all[5]}" "photos/collection.db is another file" <all_gone.py
rm photos/collection.db*
mv away/* photos
asks "the right one again" photos 5 <all_there.py
cp photos/collection.db kept.db
dd if=/dev/urandom of=photos/collection.db conv=notrunc bs=4096 count=$(($(stat -c %s kept.db) / 4096)) 2>dd.log
asks "what is damaged where it lies is never an empty collection, nor the request's fault" <<'END'
for method, path, body in [("POST", "/v1/search", {"text": "a red star"}), ("POST", "/knn-service", {"text": "a"}),
                           ("POST", "/metadata", {"ids": [1]}), ("GET", "/v1/collections", None),
                           ("GET", "/v1/collections/photos/thumbnails/1", None), ("POST", "/v1/browse", {})]:
    c = http.client.HTTPConnection(where.hostname, where.port)
    c.request(method, path, json.dumps(body) if body is not None else None)
    answer = c.getresponse()
    text = answer.read()
    assert answer.status == 503 or (answer.status == 200 and b'"n_rows":0' not in text and b'"answer":"none"' not in text), (path, text)
post("/v1/collections/photos/remove", {"ids": ["x"]}, 503)
END
stop_server

postgres="bash $PNB_SOURCE_DIR/tests/cli/common/postgres.sh"
base=$(mktemp -d) && chmod 711 "$base"
server=
trap '[ -z "$server" ] || kill -9 "$server" 2>/dev/null; $postgres stop "$base/pg"; rm -rf "$work" "$base"' EXIT
run collection create probe2 --store postgresql://127.0.0.1:1/none --schema s
if grep -q "needs Postgres" err || ! $postgres start "$base/pg" >addresses; then
    finish # SQLite alone
fi
want 0 collection create kept --model model --store "$(sed -n 1p addresses)" --schema kept
want 0 collection add kept --images "${all[@]:0:4}" -q
start_server -m model --collection kept
asks "all is in Postgres" kept 4 <all_there.py
$postgres stop "$base/pg"
asks "a Postgres that has gone away is no empty collection" kept "${all[5]}" "does not answer" <all_gone.py
$postgres again "$base/pg"
asks "and is served when it is back" kept 4 <all_there.py
stop_server

finish
