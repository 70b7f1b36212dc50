#!/bin/bash
# serve: /v1/embeddings in every form, the same numbers as `embed`, batches of many clients, a queue
# that is full, clients that leave.
source "$(dirname "$0")/common/lib.sh"
source "$(dirname "$0")/common/serve.sh"
make_small
mkdir photos
tar -xf shapes/test/00000.tar -C photos --wildcards '*.png'
want 0 embed -m model --images photos -o i.jsonl --format jsonl -q
printf 'a red star\na ring\n' >captions.txt
want 0 embed -m model --texts captions.txt -o t.jsonl --format jsonl -q

start_server -m model --batch-invariant --max-batch 8 --max-image-pixels 10000 --max-body 1
asks "captions and pictures, the same as embed makes" <<'END'
import glob, os
rows = [json.loads(line) for line in open("t.jsonl")]
texts = [r["text"] for r in rows]
reply = post("/v1/embeddings", {"input": texts, "model": "model", "user": "me", "return_uncertainty": True,
                                "dimensions": 16})
assert set(reply) == {"object", "data", "model", "usage"} and reply["object"] == "list"
assert reply["usage"]["prompt_tokens"] == reply["usage"]["total_tokens"] > 2
for i, (row, item) in enumerate(zip(rows, reply["data"], strict=True)):
    assert item["index"] == i and item["object"] == "embedding"
    single = lambda x: struct.pack("<16f", *x)
    assert single(item["embedding"]) == single(row["mean"])
    assert single(item["log_var"]) == single(row["log_var"]) and item["uncertainty"] > 0
one = post("/v1/embeddings", {"input": texts[0]})["data"]
assert set(one[0]) == {"object", "index", "embedding"} and one[0]["embedding"] == reply["data"][0]["embedding"]
coded = post("/v1/embeddings", {"input": texts, "encoding_format": "base64", "return_uncertainty": True})["data"]
for a, b in zip(coded, reply["data"], strict=True):
    for name in ("embedding", "log_var"):
        assert base64.b64decode(a[name]) == struct.pack("<16f", *b[name])
pictures = [json.loads(line) for line in open("i.jsonl")]
bare = [base64.b64encode(open(r["path"], "rb").read()).decode() for r in pictures]
urls = ["data:image/png;base64," + b for b in bare]
for forms in (urls, [{"image": b} for b in bare], [{"image": u} for u in urls],
              [{"type": "image_url", "image_url": {"url": u}} for u in urls]):
    reply = post("/v1/embeddings", {"input": forms})
    assert reply["usage"]["prompt_tokens"] == 0
    for row, item in zip(pictures, reply["data"], strict=True):
        assert single(item["embedding"]) == single(row["mean"])
chat = [{"role": "user", "content": [{"type": "text", "text": texts[0]},
                                     {"type": "image_url", "image_url": {"url": urls[0]}}]}]
mixed = post("/v1/embeddings", {"messages": chat})["data"]
assert [single(m["embedding"]) for m in mixed] == [single(rows[0]["mean"]), single(pictures[0]["mean"])]
many = post("/v1/embeddings", {"input": texts * 50 + urls * 10})["data"]
assert len(many) == 100 + 10 * len(urls) and many[98]["embedding"] == one[0]["embedding"]
END
asks "what is refused, and why" <<'END'
def no(status, says, **body):
    post("/v1/embeddings", body, status, says=says)
no(400, "one of 'input' and 'messages'")
no(400, "one of 'input' and 'messages'", input="a", messages=[])
no(400, "are no embedding", input="a", dimensions=8)
no(404, "the model 'ada' is not served here; 'model' is", input="a", model="ada")
no(400, "one of float|base64", input="a", encoding_format="hex")
no(400, "ids of tokens", input=[1, 2, 3])
no(400, "more than 2048", input=["a"] * 2049)
no(400, "nothing is fetched from a URL", input={"image": "http://127.0.0.1/x.png"})
no(400, "nothing is fetched from a URL", input={"image": "file:///etc/passwd"})
no(400, "byte 0 of a picture is no base64", input={"image": ".././model/config.json"})
no(400, "input 1: not a picture", input=["a", "data:image/png;base64,AAAA"])
no(400, "did you mean", inptu="a")
big = b"BM" + struct.pack("<IIIIiiHHIIiiII", 54, 0, 54, 40, 200, 100, 1, 24, 0, 60000, 0, 0, 0, 0) + bytes(60000)
no(413, "10000", input={"image": base64.b64encode(big).decode()})
post("/v1/embeddings", "{" * 100000, 400)
post("/v1/embeddings", "[" * 100000, 413)
post("/v1/embeddings", b"\xff\xfe{}", 400)
post("/v1/embeddings", "", 400, says="no body")
assert b"the limit is 1048576" in raw("POST /v1/embeddings HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1048577\r\n\r\n")
want(405, "GET", "/v1/embeddings", says="wants POST")
chunks = (b"%x\r\n%s\r\n" % (50000, b"x" * 50000)) * 30 + b"0\r\n\r\n"
head = b"POST /v1/embeddings HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
assert b" 413 " in raw(head + chunks)[:30]
END
asks "many clients at once: everyone gets what is theirs, in common batches, to the bit" <<'END'
words = ["a", "red", "star", "ring", "two", "blue", "circle", "small"]
texts = [" ".join((words[i % 8], words[i // 8 % 8], words[i // 64])) for i in range(128)]
alone = [post("/v1/embeddings", {"input": t})["data"][0]["embedding"] for t in texts]
batches = metric("penumbra_batch_size_count")
found = {}
def client(n):
    for i in range(n, 128, 16):
        found[i] = post("/v1/embeddings", {"input": texts[i]})["data"][0]["embedding"]
threads = [threading.Thread(target=client, args=(n,)) for n in range(16)]
[t.start() for t in threads], [t.join() for t in threads]
assert [found[i] for i in range(128)] == alone
assert metric("penumbra_batch_size_count") - batches < 120, "not one batch had two"
assert metric('penumbra_requests_total{route="/v1/embeddings",code="200"}') >= 256
assert metric("penumbra_requests_waiting") == 0 and metric("penumbra_requests_processing") == 0
END
stop_server

# A queue of one: whoever comes while all are busy is refused, and clients that leave make room.
start_server -m model --max-queue 1 --max-batch 1 --batch-wait 0 --timeout 20
asks "a full queue" <<'END'
work = json.dumps({"input": ["a caption of some length, nothing else"] * 2048})
request = "POST /v1/embeddings HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s" % (len(work), work)
busy = [socket.create_connection((where.hostname, where.port)) for i in range(40)]
for s in busy:
    s.sendall(request.encode())
time.sleep(0.2)
code, headers, text = ask("POST", "/v1/embeddings", {"input": "a"})
if code == 429: # else this machine was quicker than it
    assert headers["Retry-After"] == "1" and "are waiting already" in text, text
get("/health")
refused = metric('penumbra_refused_total{reason="queue_full"}')
assert refused >= 1, refused
for s in busy:
    s.close()
for i in range(100):
    if ask("POST", "/v1/embeddings", {"input": "a"})[0] == 200:
        break
    time.sleep(0.05)
else:
    assert False, "those who left did not make room"
END
stop_server

# A queue with room for all that is asked when the server is told to end.
start_server -m model --max-queue 64 --max-batch 1 --batch-wait 0 --timeout 20
asks "what was asked is answered at the end" "$server" <<'END'
import os, signal, sys
work = json.dumps({"input": ["a"] * 500})
request = "POST /v1/embeddings HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s" % (len(work), work)
asked = [socket.create_connection((where.hostname, where.port)) for i in range(4)]
for s in asked:
    s.sendall(request.encode())
done = 'penumbra_requests_total{route="/v1/embeddings",code="200"}'
before = metric(done) or 0
while metric("penumbra_requests_processing") + (metric(done) or 0) - before < 4:
    time.sleep(0.002)
os.kill(int(sys.argv[1]), signal.SIGTERM)
for s in asked:
    answer = b""
    while part := s.recv(65536):
        answer += part
    assert answer.startswith(b"HTTP/1.1 200") and answer.endswith(b"}}\n"), answer[:200]
END
await_end
finish
