#!/bin/bash
# serve: search, classes, similarity, inclusion and clip-retrieval's routes give what the commands give,
# and answers are what /openapi.json says.
source "$(dirname "$0")/common/lib.sh"
source "$(dirname "$0")/common/serve.sh"
make_small
want 0 embed -m model --images shapes/test -o i.safetensors -q
want 0 embed -m model --texts shapes/test/captions.jsonl -o t.safetensors -q
mkdir photos
tar -xf shapes/test/00000.tar -C photos --wildcards '*.png'
want 0 search --index i.safetensors -m model --query-text 'a red star' -k 5 --json
cp out text.json
want 0 search --index t.safetensors -m model --query-image photos/0000032.png -k 5 --json
cp out image.json
printf 'star\nring\n' >names
printf 'a {}\nthe {c} here\n' >templates
want 0 classify -m model --images photos --classnames names --templates templates --predictions p.jsonl -q

start_server -m model --images i.safetensors --texts t.safetensors --vague-above 0.0043
asks "search finds what the command finds" <<'END'
def same(reply, path):
    hits = json.load(open(path))["hits"]
    assert [h["id"] for h in reply["hits"]] == [h["id"] for h in hits]
    for a, b in zip(reply["hits"], hits, strict=True):
        assert a["rank"] == b["rank"] and a["row"] == b["row"]
        for name in ("score", "p_match", "uncertainty"):
            assert abs(a[name] - b[name]) < 1e-4, (name, a, b)
picture = base64.b64encode(open("photos/0000032.png", "rb").read()).decode()
found = post("/v1/search", {"text": "a red star", "k": 5})
same(found, "text.json")
assert found["collection"] == "images" and found["measure"] == "csd" and found["answer"] == "found"
for image in (picture, "data:image/png;base64," + picture, {"url": "data:image/png;base64," + picture}):
    same(post("/v1/search", {"image": image, "k": 5, "collection": "texts"}), "image.json")
item = post("/v1/embeddings", {"input": "a red star", "return_uncertainty": True})["data"][0]
same(post("/v1/search", {"vector": item["embedding"], "log_var": item["log_var"], "k": 5}), "text.json")
assert [h["row"] for h in post("/v1/search", {"vector": item["embedding"], "k": 5})["hits"]]
like = post("/v1/search", {"id": found["hits"][0]["id"], "k": 1000})["hits"]
assert len(like) == 7 and found["hits"][0]["id"] not in [h["id"] for h in like]
text = json.dumps(found)
assert "shapes" not in text and ".tar" not in text and "path" not in text, text
END
asks "no good result, queries that are too vague" <<'END'
low = post("/v1/search", {"text": "a red star", "min_probability": 1e-9})
assert low["answer"] == "found" and len(low["hits"]) == 8
cut = low["hits"][2]["p_match"]
assert len(post("/v1/search", {"text": "a red star", "min_probability": cut})["hits"]) == 3
none = post("/v1/search", {"text": "a red star", "min_probability": 0.99})
assert none["answer"] == "none" and none["hits"] == []
assert none["hint"] == "too_vague" and isinstance(none["suggestions"], list)
post("/v1/search", {"id": low["hits"][0]["id"], "min_probability": 0.5}, 400, says="nothing says what a score")
END
asks "what is refused" <<'END'
def no(path, status, says, **body):
    post(path, body, status, says=says)
no("/v1/search", 400, "one of 'text', 'image', 'id', 'vector'")
no("/v1/search", 400, "one of 'text', 'image', 'id', 'vector'", text="a", id="b")
no("/v1/search", 404, "there is no row 'nobody'", id="nobody")
no("/v1/search", 404, "there are: images, texts", text="a", collection="photos")
no("/v1/search", 400, "from 1 to 1000", text="a", k=10**9)
no("/v1/search", 400, "from 1 to 1000", text="a", k=-1)
no("/v1/search", 400, "has 2 numbers", vector=[1, 2])
no("/v1/search", 400, "at 3 no number", vector=[1, 0, 0, "x"] + [0] * 12)
no("/v1/search", 400, "at 0 no number", vector=[1e300] + [0] * 15)
no("/v1/search", 400, "of length 1", vector=[2] + [0] * 15)
no("/v1/search", 400, "'log_var' is that of a 'vector'", text="a", log_var=[0] * 16)
no("/v1/search", 400, "not a picture", image="AAAA")
no("/v1/similarity", 400, "'b' is missing", a="x")
no("/v1/similarity", 400, "csd", a="x", b="y", measure="nearness")
no("/v1/similarity", 400, "captions and pictures in one list", a="x", b=["y", "data:image/png;base64,AAAA"])
no("/v1/classify", 400, "has no {}", input="a", labels=["b"], templates=["c"])
no("/v1/classify", 400, "arrays of strings", input="a", labels=[1])
no("/v1/classify", 400, "0 labels", input="a", labels=[])
no("/knn-service", 400, "nothing is fetched", image_url="http://127.0.0.1/a.png")
no("/knn-service", 400, "one of 'text'")
no("/metadata", 400, "no row of images", ids=[0, 8])
no("/metadata", 400, "no row of images", ids=[-1])
no("/metadata", 404, "there is no collection", ids=[0], indice_name="x")
END
asks "classes as the command finds them, pairs as embeddings say them" <<'END'
for line in open("p.jsonl"):
    wanted = json.loads(line)
    picture = base64.b64encode(open(wanted["path"], "rb").read()).decode()
    item, = post("/v1/classify", {"input": {"image": picture}, "labels": ["star", "ring"],
                                  "templates": ["a {}", "the {c} here"]})["data"]
    assert item["label"] == wanted["best"][0]["class"] and item["answer"] == "found"
    for a, b in zip(item["classes"], wanted["best"], strict=True):
        assert a["label"] == b["class"] and a["index"] == b["index"]
        assert abs(a["probability"] - b["probability"]) < 1e-6 and abs(a["score"] - b["score"]) < 1e-6
    assert abs(sum(c["probability"] for c in item["classes"]) - 1) < 1e-9
one, = post("/v1/classify", {"input": "a star", "labels": ["star", "ring"], "min_probability": 1, "k": 1})["data"]
assert one["answer"] == "none" and one["label"] is None and len(one["classes"]) == 1
texts, pictures = ["a star", "a ring", "a red star"], [{"image": picture}, {"image": picture}]
both = post("/v1/similarity", {"a": texts, "b": pictures})
assert [len(row) for row in both["scores"]] == [2, 2, 2] and both["measure"] == "csd"
assert all(row[0] == row[1] for row in both["scores"]) and 0 < both["p_match"][0][0] < 1
rows = post("/v1/embeddings", {"input": texts + pictures, "return_uncertainty": True})["data"]
dot = lambda a, b: sum(x * y for x, y in zip(a["embedding"], b["embedding"]))
for i in range(3):
    score = dot(rows[i], rows[3]) - (rows[i]["uncertainty"] + rows[3]["uncertainty"]) / 2
    assert abs(score - both["scores"][i][0]) < 1e-5
same = post("/v1/similarity", {"a": texts, "b": texts, "measure": "mean"})
assert "p_match" not in same and all(abs(same["scores"][i][i] - 1) < 1e-6 for i in range(3))
h = post("/v1/inclusion", {"a": texts, "b": texts})["h"]
assert all(abs(h[i][i]) < 1e-9 and abs(h[i][k] + h[k][i]) > 0 for i in range(3) for k in range(3) if i != k)
END
asks "clip-retrieval's client" <<'END'
assert get("/indices-list") == ["images", "texts"]
ask_as_client = {"text": "a red star", "image": None, "image_url": None, "embedding_input": None,
                 "deduplicate": True, "use_safety_model": True, "use_violence_detector": True,
                 "indice_name": "images", "use_mclip": False, "num_images": 2, "num_result_ids": 4,
                 "modality": "image", "aesthetic_score": "9", "aesthetic_weight": "0.5"}
found = json.loads(ask("POST", "/knn-service", json.dumps(ask_as_client))[2])
assert [f["id"] for f in found] == [h["row"] for h in json.load(open("text.json"))["hits"][:4]]
assert all(("caption" in f) == (i < 2) for i, f in enumerate(found))
post("/knn-service", {"text": "a", "indice_name": "images", "modality": "text"}, 400, says="'images' is of images")
assert post("/knn-service", {"text": "a", "indice_name": "texts", "num_images": 1, "modality": "text"})
assert post("/knn-service", {"text": "a", "indice_name": "texts", "num_images": 1})
slots = get("/slots")
assert len(slots) == get("/props")["total_slots"] and not any(s["is_processing"] for s in slots), slots
assert get("/slots?fail_on_no_slot=1") == slots
props = get("/props")
assert props["model_alias"] == "model" and props["modalities"] == {"text": True, "vision": True}, props
rows = post("/metadata", {"indice_name": "images", "ids": [f["id"] for f in found]})
assert [r["id"] for r in rows] == [f["id"] for f in found] and rows[0]["metadata"]["id"] == found[0]["key"]
vector = post("/v1/embeddings", {"input": "a red star"})["data"][0]["embedding"]
assert post("/knn-service", {"embedding_input": vector, "modality": "text", "num_images": 1})[0]["id"] >= 0
END
asks "answers are what /openapi.json says" <<'END'
api = get("/openapi.json")
def check(value, schema, at):
    kinds = {"object": dict, "array": list, "string": str, "integer": int, "number": (int, float)}
    if isinstance(schema.get("type"), str):
        assert isinstance(value, kinds[schema["type"]]), (at, schema, value)
    for name in schema.get("required", []):
        assert name in value, (at, name)
    for name, part in schema.get("properties", {}).items():
        if name in value:
            check(value[name], part, at + "." + name)
    for item in value if "items" in schema else []:
        check(item, schema["items"], at + "[]")
bodies = {"/v1/embeddings": {"input": "a"}, "/v1/search": {"text": "a"}, "/v1/similarity": {"a": "a", "b": "b"},
          "/v1/inclusion": {"a": "a", "b": "b"}, "/v1/classify": {"input": "a", "labels": ["b"]},
          "/knn-service": {"text": "a"}, "/metadata": {"ids": [0]}, "/v1/browse": {}}
refused = {"/v1/collections/{name}/add": {"input": "a"}, "/v1/collections/{name}/remove": {"ids": ["a"]},
           "/v1/collections/{name}/thumbnails/{row}": None} # of collections: serve_collection.sh
routes = [(path, *route) for path, methods in api["paths"].items() for route in methods.items()]
assert len(routes) == 24
for path, method, about in routes:
    if path in refused or (path, method) == ("/v1/collections", "post"):
        continue
    answers = about["responses"]["200"]["content"]
    reply = want(200, method.upper(), path, body=bodies.get(path))
    assert (path in bodies) == ("requestBody" in about), path
    if "application/json" in answers:
        check(reply, answers["application/json"]["schema"], path)
    else:
        assert isinstance(reply, str)
    check(post(path, {"zzz": 1}, 400) if method == "post" else want(405, "DELETE", path),
          api["components"]["schemas"]["error"], path)
END
stop_server

want 0 init --config tiny --override "$small_config" --tokenizer tok.json --out other --seed 7 -q
want 1 serve -m other --images i.safetensors --port 0
says "i.safetensors and the model that is served"
want 1 serve -m model --images t.safetensors --port 0
says "t.safetensors holds text embeddings; --images wants those of images"
start_server -m model --texts t.safetensors --calibration none
asks "without a limit of its own, of what is served" <<'END'
assert get("/indices-list") == ["texts"]
assert "hint" not in post("/v1/search", {"text": "a star"})
post("/knn-service", {"text": "a"}, 404, says="there is no collection 'image'")
END
stop_server
finish
