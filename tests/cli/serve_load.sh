#!/bin/bash
# serve under load: searches, embeddings, classes, rows added and removed and SIGHUP at the same time, then SIGTERM
# in the middle of it. Every answer is what it is alone, none is lost; with ThreadSanitizer (make tsan)
# no race.
source "$(dirname "$0")/common/lib.sh"
source "$(dirname "$0")/common/serve.sh"
needs_sqlite
make_small
make_pictures train
want 0 embed -m model --texts shapes/test/captions.jsonl -o t.safetensors -q
want 0 collection create root/photos --model model
want 0 collection add root/photos --images pictures --tags first -q
start_server -m model --collection-root root --texts t.safetensors --approx int8 --threads 2
cat >load.py <<'END'
from http_client import *
import glob, os, sys, signal, threading, time
server, seconds = int(sys.argv[1]), float(sys.argv[2])
pictures = [base64.b64encode(open(p, "rb").read()).decode() for p in sorted(glob.glob("pictures/*.png"))]
first = post("/v1/embeddings", {"input": "a red star"})["data"][0]["embedding"]
truth = [h["id"] for h in post("/v1/search", {"text": "a red star", "tags": ["first"], "k": 5, "exact": True})["hits"]]
labels = ["red star", "blue circle", "green square"]
alone = post("/v1/classify", {"input": [{"image": p} for p in pictures], "labels": labels, "templates": ["a {}", "one {}"]})
classes = {p: {c["label"]: c["probability"] for c in row["classes"]} for p, row in zip(pictures, alone["data"])}
stars = sorted(c["red star"] for c in classes.values()) # another picture's classes would be seen
assert all(b - a > 1e-3 for a, b in ((stars[0], stars[len(stars) // 2]), (stars[len(stars) // 2], stars[-1]))), stars
wrong, n_done, ends = [], {}, time.time() + seconds

def embed(k):
    reply = post("/v1/embeddings", {"input": ["a red star", {"image": pictures[k % len(pictures)]}]})
    assert max(abs(a - b) for a, b in zip(reply["data"][0]["embedding"], first)) < 1e-5

def search(k):
    exact = k % 2 == 0
    reply = post("/v1/search", {"text": "a red star", "tags": ["first"], "k": 5, "exact": exact})
    assert [h["id"] for h in reply["hits"]] == truth, (reply, truth)
    post("/v1/search", {"image": pictures[k % len(pictures)], "collection": "texts", "related": True})

def classify(k):
    # prompts and pictures of several requests may be encoded together: last bits differ
    pair = [pictures[k % len(pictures)], pictures[(k + 1) % len(pictures)]]
    reply = post("/v1/classify", {"input": [{"image": p} for p in pair], "labels": labels, "templates": ["a {}", "one {}"]})
    for picture, row in zip(pair, reply["data"]):
        by_label = {c["label"]: c["probability"] for c in row["classes"]}
        want = classes[picture]
        assert by_label.keys() == want.keys() and all(abs(by_label[l] - want[l]) < 1e-4 for l in want), (by_label, want)

def change(k):
    # one adds at a time: another process is told to wait by 429
    name = "later%d" % k
    status = ask("POST", "/v1/collections/photos/add",
                 json.dumps({"input": "data:image/png;base64," + pictures[k % len(pictures)], "ids": [name]}))[0]
    assert status in (200, 429), status
    status = ask("POST", "/v1/collections/photos/remove", json.dumps({"ids": [name]}))[0]
    assert status in (200, 404, 429), status

def look(k):
    get("/metrics"), get("/v1/collections"), get("/health")
    post("/v1/browse", {"collection": "photos", "by": ["newest", "uncertain", "outliers"][k % 3], "k": 3})
    time.sleep(0.02)

def hang_up(k):
    os.kill(server, signal.SIGHUP)
    time.sleep(0.3)

def go_on(work, k):
    try:
        while time.time() < ends:
            work(k)
            n_done[work.__name__] = n_done.get(work.__name__, 0) + 1
            k += 7
    except BaseException as e: # a check that failed in a thread fails the test
        wrong.append((work.__name__, repr(e)[:500]))
threads = [threading.Thread(target=go_on, args=(work, k)) for k, work in
           enumerate([embed, embed, search, search, search, classify, classify, change, change, look, hang_up])]
for t in threads:
    t.start()
for t in threads:
    t.join()
assert not wrong, wrong
assert all(n_done.get(w.__name__, 0) > 0 for w in (embed, search, classify, change, look, hang_up)), n_done
print(n_done)
END
check "answers under load" python3 load.py "$server" "${PNB_LOAD_SECONDS:-3}"
check "it was reloaded meanwhile" grep -q '^reloaded' server.log

# SIGTERM while requests are under way: each is answered, or its connection was not taken
cat >end.py <<'END'
from http_client import *
import http.client, os, sys, signal, threading, time
answers, wrong = [], []
def go_on():
    for i in range(1000):
        try:
            answers.append(ask("POST", "/v1/embeddings", '{"input":"a star"}')[0])
        except (ConnectionError, http.client.HTTPException, OSError):
            return
threads = [threading.Thread(target=go_on) for i in range(6)]
for t in threads:
    t.start()
while len(answers) < 20:
    time.sleep(0.01)
os.kill(int(sys.argv[1]), signal.SIGTERM)
for t in threads:
    t.join()
assert set(answers) <= {200, 503}, set(answers)
END
check "what was asked before the end is answered" python3 end.py "$server"
await_end
check "no race, no leak" test "$(grep -c 'Sanitizer' server.log)" -eq 0
finish
