#!/bin/bash
# serve: who may ask, what is refused before it costs anything, limits, the end. What routes answer is
# in serve_*.sh.
source "$(dirname "$0")/common/lib.sh"
source "$(dirname "$0")/common/serve.sh"
make_small

want 0 embed -m model --images shapes/test -o i.safetensors -q
want 0 embed -m model --texts shapes/test/captions.jsonl -o t.safetensors -q
start_server -m model --images i.safetensors --texts t.safetensors --calibration none --vague-above 1 \
    --tokenizer tok.json --preprocess model/preprocessor_config.json \
    --alias small --max-batch 4 --batch-wait 1 --max-body 1 --max-connections 50 --timeout 0.6 --allow-origin https://good.example
asks "health, models, metrics" <<'END'
for path in ("/health", "/healthz", "/livez", "/readyz"):
    assert get(path) == {"status": "ok"}
model, = get("/v1/models")["data"]
assert model["id"] == "small" and model["object"] == "model" and model["meta"]["dim"] == 16
assert len(model["meta"]["weights_sha256"]) == 64
code, headers, text = ask("HEAD", "/health")
assert code == 200 and text == "" and int(headers["Content-Length"]) == 16
assert metric('penumbra_requests_total{route="/v1/models",code="200"}') == 1
assert metric("penumbra_connections") >= 1
assert metric("penumbra_requests_processing") == 0 and metric("penumbra_requests_waiting") == 0
END
asks "paths, methods, pages of other sites" <<'END'
get("/../../etc/passwd", 404)
assert get("/%ff%c3", 404)["error"]["message"].startswith("there is nothing at /??;")
get("/v1/models?x=1")
want(405, "DELETE", "/health", says="wants GET")
assert ask("POST", "/health", "x")[1]["Allow"] == "GET"
get("/health", 403, headers={"Host": "evil.example"})
get("/health", 403, headers={"Origin": "http://evil.example"})
code, headers, _ = ask("OPTIONS", "/health", headers={"Origin": "https://good.example"})
assert code == 204 and headers["Access-Control-Allow-Origin"] == "https://good.example"
assert "Access-Control-Allow-Origin" not in ask("GET", "/health")[1]
END
asks "heads that are none, too large, too slow" <<'END'
for head in ("\r\n\r\n\r\n", "GET\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", "\0\0\0\0\r\n\r\n",
             "GET /health HTTP/1.1\r\n\r\n", "POST /health HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n",
             "POST /health HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"):
    assert b" 200 " not in raw(head, 0.1)[:30], head
time.sleep(0.2)
slow = metric('penumbra_refused_total{reason="client_slow"}')
two = raw("GET /health HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}")
assert b" 400 " in two[:30] and b"two Content-Length" in two and two.count(b"HTTP/1.1") == 1, two
assert b" 200 " in raw("GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 0\r\nContent-Length: 0\r\n\r\n")[:30]
want(415, "POST", "/v1/embeddings", body={"input": "a"}, headers={"Content-Encoding": "gzip"}, says="Content-Encoding 'gzip'")
want(200, "POST", "/v1/embeddings", body={"input": "a"}, headers={"Content-Encoding": "identity"})
assert b" 431 " in raw("GET /health HTTP/1.1\r\nHost: localhost\r\nX: " + "y" * 40000 + "\r\n\r\n")[:30]
begin = time.monotonic()
assert raw("GET /health HTT", 9) == b"" and 0.5 < time.monotonic() - begin < 8
with socket.create_connection((where.hostname, where.port)) as s: # a byte now and then
    begin = time.monotonic()
    try:
        for i in range(100):
            s.sendall(b"X")
            time.sleep(0.1)
    except OSError:
        pass
    assert time.monotonic() - begin < 8
assert metric('penumbra_refused_total{reason="client_slow"}') == slow + 2
END
asks "more connections than there may be" <<'END'
open_ones = [socket.create_connection((where.hostname, where.port)) for i in range(60)]
time.sleep(0.2)
for s in open_ones:
    s.close()
time.sleep(0.2)
assert get("/health") == {"status": "ok"}
END
stop_server
says "answering what was asked"

# keys
echo 0123456789abcdef0123 >keys
start_server -m model --collection-root made --host localhost --api-key-file keys --rate 5 --max-queue 7 --json
check "the address as JSON" python3 -c 'import json; a = json.load(open("served")); assert a["url"] == "http://localhost:%d" % a["port"]'
asks "the page needs no key, and nothing else runs in it" <<'END'
code, headers, text = ask("GET", "/")
assert code == 200 and headers["Content-Type"] == "text/html; charset=utf-8" and "</html>" in text
assert headers["Content-Security-Policy"].startswith("default-src 'none'; script-src 'sha256-")
assert headers["Referrer-Policy"] == "no-referrer" and headers["X-Frame-Options"] == "DENY"
END
asks "keys" <<'END'
key = {"Authorization": "Bearer 0123456789abcdef0123"}
get("/health")
get("/v1/models", 401, says="Invalid API Key")
get("/v1/models", 401, headers={"Authorization": "Bearer 0123456789abcdef0124"})
assert ask("GET", "/v1/models")[1]["WWW-Authenticate"] == "Bearer"
assert "429" not in str([ask("GET", "/v1/models", headers=key)[0] for i in range(5)])
code, headers, text = ask("GET", "/v1/models", headers=key)
assert code == 429 and int(headers["Retry-After"]) == 1 and "5 requests a second" in text
get("/health")
END
stop_server

want 2 serve -m model --host 0.0.0.0
says "--host 0.0.0.0 lets other machines ask: name a file of keys by --api-key-file, or say --without-key"
start_server -m model --host 0.0.0.0 --without-key
url=http://127.0.0.1:${url##*:}
asks "told to go without" <<<'get("/v1/models")'
want 1 serve -m model --port "${url##*:}"
says "cannot listen at 127.0.0.1 port ${url##*:}: Address already in use"
want 1 serve -m model --host 192.0.2.1 --port 8080 --without-key
says "cannot listen at 192.0.2.1 port 8080: Cannot assign requested address"
stop_server
want 1 serve -m nowhere --port 0 --approx int8 --recall 0.9
says "nowhere"
want 1 serve -m model --collection no-collection --port 0
want 1 serve -m model --host no.such.host.invalid
says "there is no host 'no.such.host.invalid' to listen at"
want 1 serve -m model --api-key-file nowhere
echo short >keys
want 1 serve -m model --api-key-file keys
says "the key on line 1 has 5 bytes, at least 16 are wanted"
want 2 serve -m model --port 65536
want 2 serve
if command -v curl >/dev/null; then
    bash "$PNB_SOURCE_DIR/examples/serve.sh" model >out 2>err
    check "examples/serve.sh" test $? -eq 0
    prints '"embedding":['
    prints '"scores":[['
fi
every_option serve
finish
