#!/bin/bash
# embed --ttda: Gaussians of augmented passes, the same whatever the batch, wider where passes differ.
source "$(dirname "$0")/common/lib.sh"
make_small
printf 'a red star above a large blue ring beside a small green cross\nstar\n' >texts.txt
want 0 embed -m model --texts texts.txt -o plain.safetensors -q
for batch in 1 2; do
    want 0 embed -m model --texts texts.txt --ttda 6 -b $batch -o t$batch.safetensors -q
    want 0 embed -m model --images shapes/val --ttda 3 -b $batch -o i$batch.safetensors -q
done
want 0 embed -m model --images shapes/val -o pictures.safetensors -q
check "mean and variance over the passes" python3 - <<'PY'
import json, math, struct
def load(path):
    data = open(path, "rb").read()
    n = struct.unpack("<Q", data[:8])[0]
    head = json.loads(data[8:8 + n])
    def array(name):
        rows, width = head[name]["shape"]
        at = 8 + n + head[name]["data_offsets"][0]
        flat = struct.unpack("<%df" % (rows * width), data[at:at + 4 * rows * width])
        return [flat[i * width:(i + 1) * width] for i in range(rows)]
    return head["__metadata__"], array
meta, one = load("t1.safetensors")
assert meta["family"] == "gaussian_diag" and "6 augmented passes" in meta["preprocess"]
near = lambda a, b: all(abs(x - y) < 1e-3 for r, s in zip(a, b) for x, y in zip(r, s))
for kind in "ti":
    a, b = load(kind + "1.safetensors")[1], load(kind + "2.safetensors")[1]
    assert near(a("mean"), b("mean"))
    std = lambda f: [[math.exp(v / 2) for v in r] for r in f("log_var")]
    assert near(std(a), std(b))
    for row in a("mean"):
        assert abs(sum(x * x for x in row) - 1) < 1e-4
trace = [sum(math.exp(v) for v in row) for row in one("log_var")]
plain = load("plain.safetensors")[1]("mean")
assert trace[0] > 1e-6 and trace[1] < 1e-6 and trace[0] > 100 * trace[1]  # one word always stays
assert max(abs(x - y) for x, y in zip(one("mean")[1], plain[1])) < 1e-4
assert all(sum(math.exp(v) for v in row) > 1e-6 for row in load("i1.safetensors")[1]("log_var"))
PY
want 0 embed -m model --texts texts.txt --ttda 6 -b 2 -o same.safetensors -q
check "the same bytes" cmp t2.safetensors same.safetensors
want 2 embed -m model --texts texts.txt --ttda 1 -o no.safetensors
want 2 embed -m model --texts texts.txt --ttda 3 --raw -o no.safetensors
says "--raw is about embeddings of one pass"
want 2 embed -m model --texts texts.txt --activations --raw -o no.safetensors
want 2 embed -m model --texts texts.txt --ttda 3 --masked -o no.safetensors
want 2 embed -m model --texts texts.txt --ttda 3 --activations -o no.safetensors
finish
