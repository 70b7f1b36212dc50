#!/bin/bash
# report: how it opens. Sets are made by hand here, so that it is known which answers are right.
source "$(dirname "$0")/common/lib.sh"

# 240 pictures of 4 kinds, one more strange than the other; a caption of level 3 each, and the kinds.
python3 - <<'PY'
import json, math, random, struct
random.seed(3)
D, N = 12, 240
def unit(v):
    n = math.sqrt(sum(x * x for x in v))
    return [x / n for x in v]
def save(name, rows):
    head = "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d), }" % (len(rows), D)
    head += " " * (-(10 + len(head) + 1) % 64) + "\n"
    with open(name + ".npy", "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode())
        for row in rows:
            f.write(struct.pack("<%df" % D, *row))
kind = [unit([1.0 if i == k else 0.0 for i in range(D)]) for k in range(4)]
images, own, wild = [], [], []
for i in range(N):
    noise = 0.1 + 0.9 * random.random()
    images.append(unit([a + noise * random.gauss(0, 0.8) for a in kind[i % 4]]))
    own.append(unit([a + noise * random.gauss(0, 0.35) for a in images[-1]]))
    wild.append(unit([random.gauss(0, 1) for _ in range(D)]))
names = ["bird", "boat", "a <b>", "tree"]
kinds = [{"id": "k%d" % k, "text": names[k], "level": 0, "entropy_bits": 6.0} for k in range(4)]
owns = [{"id": "c%d" % i, "text": "a %s number %d" % (names[i % 4], i), "level": 3,
         "entropy_bits": 0.0} for i in range(N)]
def ids(name, rows):
    with open(name + ".ids.jsonl", "w") as f:
        f.writelines(json.dumps(r) + "\n" for r in rows)
save("i", images); ids("i", [{"id": "p%d" % i} for i in range(N)])
save("t", kind + own); ids("t", kinds + owns)
save("own", own); ids("own", [{"id": r["id"], "text": r["text"]} for r in owns])
save("wild", wild); ids("wild", [{"id": r["id"], "text": r["text"]} for r in owns])
with open("all.pairs", "w") as f:
    f.writelines("p%d\tk%d\np%d\tc%d\n" % (i, i % 4, i, i) for i in range(N))
with open("own.pairs", "w") as f:
    f.writelines("p%d\tc%d\n" % (i, i) for i in range(N))
dot = lambda a, b: sum(x * y for x, y in zip(a, b))
json.dump({"kinds": sum(max(range(4), key=lambda k: dot(v, kind[k])) == i % 4
                        for i, v in enumerate(images)) / N,
           "search": sum(max(range(N), key=lambda j: dot(v, images[j])) == i
                         for i, v in enumerate(own)) / N}, open("truth.json", "w"))
PY

# opens PAGE ASKED: parts add up to what is known of the sets; examples keep the rule.
opens() {
    python3 - "$1" "$2" <<'PY'
import json, re, sys
page, asked = sys.argv[1:]
o = json.load(open("out"))["opening"]
share = json.load(open("truth.json"))[asked]
parts, shown, refused = o["parts"], o["shown"], o["refused"]
assert o["asked"] == asked
assert [p["part"] for p in parts] == ["surest third", "middle third", "least sure third"]
assert [p["n"] for p in parts] == [80, 80, 80], parts
assert abs(sum(p["n"] * p["right"] for p in parts) / 240 - share) < 1e-6, (parts, share)
assert abs(sum(p["n"] * p["promised"] for p in parts) / 240 - share) < 0.08, (parts, share)
for p in parts:
    assert p["p_low"] <= p["promised"] <= p["p_high"] and p["right_low"] <= p["right"] <= p["right_high"]
assert parts[0]["p_low"] >= parts[1]["p_high"] >= parts[1]["p_low"] >= parts[2]["p_high"]
assert parts[0]["right"] > parts[2]["right"] + 0.1, parts
assert shown["is_right"] and parts[0]["p_low"] <= shown["p"] <= parts[0]["p_high"]
assert not refused["is_right"] and refused["p"] < 0.5
given, left = o["given"], o["not_given"]
assert given["n"] + left["n"] == 240
assert abs((given["n"] * given["right"] + left["n"] * left["right"]) / 240 - share) < 1e-3
assert given["right"] > left["right"]
html = open(page).read()
said = o["sentence"]
for part in ("%.0f%% sure" % (100 * shown["p"]), "its 80 surest answers among 240",
             "%.0f%% were" % (100 * parts[0]["right"])):
    assert part in said, (part, said)
assert said in html and html.index(said) < html.index("No good result") < html.index("<nav")
assert html.index("<nav") < html.index("How sure, and how often right") < html.index("Do captions find")
PY
}

want 0 report --images i.npy --texts t.npy --truth all.pairs --bootstrap 50 --out kinds.html --json
check "pictures are asked which of four kinds they are" opens kinds.html kinds
check "the question stands above" grep -qF 'Asked: which of 4 kinds is this picture?' kinds.html
check "names are escaped" test "$(grep -c '<b>”' kinds.html)" -eq 0
want 0 report --images i.npy --texts t.npy --truth all.pairs --bootstrap 50 --out kinds.html
prints "surest answers among 240"
want 0 report --images i.npy --texts own.npy --truth own.pairs --bootstrap 50 --out search.html --json
check "captions search where no level divides the pictures" opens search.html search
check "the caption is quoted" grep -qF 'Asked: which of 240 pictures is “a ' search.html
cp out first
want 0 report --images i.npy --texts own.npy --truth own.pairs --bootstrap 50 --out search.html --json
check "the same again" cmp first out

# what cannot be fitted opens with retrieval
want 0 report --images i.npy --texts wild.npy --truth own.pairs --bootstrap 50 --out wild.html --json
check "no opening of answers by chance" test "$(grep -c '"opening"' out)" -eq 0
check "but the headline of retrieval" grep -qF 'Asked: do 240 captions find their pictures' wild.html

# methods against what is known of captions
want 0 adapt compare --images i.npy --texts t.npy --truth all.pairs --test-images i.npy \
    --test-texts t.npy --test-truth all.pairs --methods whitened conformity --seeds 1 --bootstrap 20 --out m
want 0 report --images i.npy --texts t.npy --truth all.pairs --bootstrap 50 --methods m --out methods.html
check "methods and controls stand in one table" python3 - <<'PY'
import re
html = open("methods.html").read()
at = html.index("Whose uncertainty is true?", html.index("</nav>"))
table = html[at:html.index("</table>", at)]
rows = re.findall(r"<tr><td>([^<]*)</td><td>([^<]*)</td><td class=\"n whole\">(-?[0-9.]+)", table)
kinds = {name: kind for name, kind, _ in rows}
assert kinds["whitened"] == kinds["conformity"] == "learned", rows
assert kinds["fewer words"] == kinds["common words"] == kinds["untrained"] == "control", rows
rho = [float(x) for _, _, x in rows]
assert rho == sorted(rho, reverse=True) and len(rho) > 4, rows
words = {name: float(x) for name, _, x in rows}
assert words["fewer words"] > 0.2, rows  # four kinds of one word, 240 captions of four
assert html.index("Whose uncertainty is true?") < html.index("How sure, and how often right")
PY
# AsymVLM's captions, say, are others: what stands in two folders is the last one's
mkdir other && python3 - <<'PY'
import json
other = json.load(open("m/table.json"))
other["methods"] = [dict(r, t2i_r1=0.125) for r in other["methods"] if r["method"] == "whitened"]
json.dump(other, open("other/table.json", "w"))
PY
mkdir other/sets && cp m/sets/conformity-0.texts.safetensors other/sets/whitened-0.texts.safetensors
cp m/sets/conformity-0.texts.ids.jsonl other/sets/whitened-0.texts.ids.jsonl
for order in "m other" "other m"; do
    # shellcheck disable=SC2086  # two words are wanted
    want 0 report --images i.npy --texts t.npy --truth all.pairs --bootstrap 50 --methods $order --out two.html
    order=$order check "what stands in two folders is the last one's: $order" python3 - <<'PY'
import os, re
def rows(page):
    html = open(page).read()
    at = html.index("Whose uncertainty is true?", html.index("</nav>"))
    found = re.findall(r'<tr><td>([^<]*)</td><td>([^<]*)</td><td class="n whole">(-?[0-9.]+).*?</tr>',
                       html[at:html.index("</table>", at)])
    return {name: float(rho) for name, _, rho in found}, len(found)
one, n_one = rows("methods.html")
two, n_two = rows("two.html")
assert n_one == n_two and one["whitened"] != one["conformity"], (one, two)
wanted = one["conformity"] if os.environ["order"] == "m other" else one["whitened"]
assert two["whitened"] == wanted and two["conformity"] == one["conformity"], (one, two)
PY
done
rm m/sets/whitened-*
want 0 report --images i.npy --texts t.npy --truth all.pairs --bootstrap 50 --methods m --out methods.html
says "has no captions of whitened: it is left out"
want 1 report --images i.npy --texts t.npy --truth all.pairs --methods m --text-entropy bits --out none.html
says "bits"
want 1 report --images i.npy --texts t.npy --truth all.pairs --methods . --out none.html
says "table.json"
echo '{}' >table.json
want 1 report --images i.npy --texts t.npy --truth all.pairs --methods . --out none.html
says "it is not of \`adapt compare\`"
for row in '{"kind": "learned"}' '{"method": 7, "kind": "learned"}' '{"method": "pfe"}' 3; do
    echo "{\"methods\": [$row]}" >table.json
    want 1 report --images i.npy --texts t.npy --truth all.pairs --methods m . --out none.html
    says 'a method without "method" or "kind"'
done
for name in "" ../m/sets/conformity conformity/.. "$(printf %064d 0)"; do
    echo "{\"methods\": [{\"method\": \"$name\", \"kind\": \"learned\"}]}" >table.json
    want 1 report --images i.npy --texts t.npy --truth all.pairs --methods m . --out none.html
    says "\"$name\" is no method's name"
done
# a name is text on the page
mkdir -p tagged/sets
sed 's/conformity/<i>best/g' m/table.json >tagged/table.json
for file in m/sets/conformity-*; do cp "$file" "tagged/sets/<i>best-${file#*/conformity-}"; done
want 0 report --images i.npy --texts t.npy --truth all.pairs --bootstrap 50 --methods tagged --out tagged.html
check "names are escaped" grep -q '&lt;i&gt;best' tagged.html
check "none is a tag" bash -c '! grep -q "<i>best" tagged.html'
echo '{"methods": [{"method": "pfe"}]}' >table.json
# which is told before anything is measured, so before what is wrong there
want 1 report --run nowhere --images i.npy --texts t.npy --truth all.pairs --methods . --out none.html
says 'a method without "method" or "kind"'
want 2 report --images i.npy --texts t.npy --methods m --out none.html
says "--methods needs --images, --texts and --truth"
finish
