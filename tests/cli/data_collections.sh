#!/bin/bash
# data clipart, stamps and mixed on small packages of our own: what is written, what is left out and
# listed, what is missing and refused.
source "$(dirname "$0")/common/lib.sh"

svg() { # FILE TITLE AUTHOR KEYWORDS SHAPES
    mkdir -p "$(dirname "$1")"
    local keywords
    keywords=$(printf '%s' "$4" | sed 's,[^|][^|]*,<r:li>&</r:li>,g; s,|,,g')
    cat >"$1" <<END
<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" width="90" height="60">
<metadata><r:RDF xmlns:r="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:cc="http://web.resource.org/cc/"
xmlns:dc="http://purl.org/dc/elements/1.1/"><cc:Work><dc:title>$2</dc:title><dc:creator>$3</dc:creator>
<dc:subject><r:Bag>$keywords</r:Bag></dc:subject></cc:Work></r:RDF></metadata>$5</svg>
END
}
bars() { # NUMBER: four bars that only this number has
    local k
    for k in 0 1 2 3; do
        printf '<rect x="%d" y="%d" width="%d" height="%d" fill="#%02x%02x%02x"/>' \
            $((($1 * 37 + k * 61) % 70)) $((($1 * 53 + k * 29) % 40)) $((8 + ($1 * 7 + k) % 20)) \
            $((8 + ($1 * 11 + k * 3) % 20)) $((($1 * 41 + k * 90) % 200)) $((($1 * 67 + k * 17) % 200)) \
            $((($1 * 23 + k * 130) % 200))
    done
}
pixel() { # FILE: a small PNG
    mkdir -p "$(dirname "$1")"
    cp one.png "$1"
}
want 0 data shapes --out shapes --n 4 --size 32 --val-share 0 --test-share 0 -q
mkdir one && tar -xf shapes/train/00000.tar -C one
shapes_png=(one/*.png)
cp "${shapes_png[0]}" one.png

what=(cat dog frog apple cake pear)
for i in $(seq 0 19); do
    folder=animals
    [ $((i % 6)) -ge 3 ] && folder=food/sweet
    name=$folder/${what[i % 6]}_$i
    svg "clip/svg/$name.svg" "A ${what[i % 6]} $i" "Ann Miller" "animal|thing" "$(bars "$i")"
    pixel "clip/png/$name.png"
done
svg clip/svg/shapes/stars/star_1.svg gramastar Bob star "$(bars 50)"
svg clip/svg/computer/icons/flat-theme/save.svg "Flat theme" Bob icon "$(bars 51)"
svg clip/svg/people/nude_1.svg "Nude" Bob people "$(bars 52)"
run data clipart --clipart clip --out probe --size 32
if grep -q 'librsvg' err; then
    echo "SKIPPED: built without librsvg"
    exit 77
fi
check "nothing is skipped" test "$status" -eq 0
check "17 drawings are found" test -s probe/truth/train.pairs

# what cannot be read is listed, and the status says so
printf '<svg><not closed' >clip/svg/food/broken.svg
uses=$(for i in 1 2 3 4 5 6; do
    printf '<g id="g%d">' "$i"
    for _ in 1 2 3 4 5 6 7 8 9 10; do printf '<use xlink:href="#g%d"/>' $((i - 1)); done
    printf '</g>'
done)
svg clip/svg/food/bomb.svg "bomb" Bob food "<g id=\"g0\"><rect width=\"9\" height=\"9\"/></g>$uses"
head -c 9000000 /dev/zero | tr '\0' ' ' >clip/svg/food/huge.svg
svg clip/svg/food/linked.svg "linked" Bob food '<image xlink:href="other.png" width="9" height="9"/>'
want 3 data clipart --clipart clip --out clipart --size 32 --json
for file in broken bomb huge linked; do says "food/$file.svg"; done
says "damaged XML"
says "at most 8388608 are read"
says "its references multiply beyond the limit"
says "links to a picture in another file"
says "4 inputs skipped"
has_keys dir reused n_train n_val n_test n_found n_links n_broken_links n_optional n_sensitive \
    n_wordless n_blank n_skipped n_equal n_near n_from_file titles.kind titles.n levels.level
check "counts" python3 -c 'import json; r = json.load(open("out"))
assert (r["n_skipped"], r["n_optional"], r["n_sensitive"]) == (4, 2, 1), r
assert r["n_train"] + r["n_val"] + r["n_test"] == 20, r'
want 0 data clipart --clipart clip --out clipart --size 32
prints "was there already"
want 1 data clipart --clipart clip --out clipart --size 48
says "exists and does not hold this data set"
want 3 data clipart --clipart clip --out all --size 32 --icon-themes --stars --sensitive --noisy \
    --near 1 --shard-size 5 --val-share 0.3 --test-share 0.3 --seed 3 --json
check "three more" python3 -c 'import json; r = json.load(open("out"))
assert r["n_train"] + r["n_val"] + r["n_test"] == 23 and r["n_optional"] == 0, r'
check "pairs without noise" test -e all/truth/train.clean.pairs
check "noise is marked" grep -q '"text": "Flat theme", "noise": true' all/*/captions.jsonl
want 0 tokenizer train --captions all/train/captions.jsonl --vocab-size 300 --out tok.json
want 0 init --config tiny --override "$small_config" --tokenizer tok.json --out model -q
theme=$(grep -l '"Flat theme"' all/*/captions.jsonl | head -1)
theme=$(dirname "$theme")
want 0 embed -m model --images "$theme" -o pictures.safetensors -q
want 0 embed -m model --texts "$theme" -o captions.safetensors -q
check "a row of a caption says whether it is noise" python3 - <<'PY'
import json
rows = [json.loads(line) for line in open("captions.ids.jsonl")]
assert {r["noise"] for r in rows} == {0, 1} and all("caption_id" in r for r in rows), rows[:3]
assert all(r["noise"] == 1 for r in rows if r["text"] == "Flat theme")
PY
want 0 eval noise --images pictures.safetensors --texts captions.safetensors --field noise --bootstrap 0 --json
check "what finds it" python3 -c 'import json; r = json.load(open("out"))["noise"]
n = sum(json.loads(line)["noise"] for line in open("captions.ids.jsonl"))
assert r["n_swapped"] == n > 0 and r["n_pairs"] == sum(1 for _ in open("captions.ids.jsonl")), r'
want 0 data corrupt --data "$theme" --swap 1 --seed 5 --out spoiled -q
check "a swapped caption keeps its mark" python3 - "$theme" <<'PY'
import glob, json, sys, tarfile
def records(folder):
    out = {}
    for name in glob.glob(folder + "/*.tar"):
        with tarfile.open(name) as tar:
            out.update((m.name, json.load(tar.extractfile(m))) for m in tar if m.name.endswith(".json"))
    return out
clean, spoiled = records(sys.argv[1]), records("spoiled/train")
assert any(sum(r["noise"]) for r in clean.values()) and len(spoiled) == len(clean) > 1
for r in spoiled.values():
    assert r["swapped"] == 1 and r["noise"] == clean[r["captions_of"] + ".json"]["noise"], r
    assert len(r["noise"]) == len(r["captions"])
PY
want 0 embed -m model --texts "$theme/captions.jsonl" -o lines.safetensors -q
check "and of a line" grep -q '"noise": true' lines.ids.jsonl
for threads in 1 2; do
    want 3 data clipart --clipart clip --out "t$threads" --size 32 --threads $threads -q
done
check "the same bytes on any number of threads" diff -r t1 t2

# packages that are not there, or half
mv clip/png clip/away
want 1 data clipart --clipart clip --out none
says "apt-get install openclipart-png"
mv clip/away clip/png
mv clip/svg clip/away
want 1 data clipart --clipart clip --out none
says "apt-get install openclipart-svg"
mkdir clip/svg
want 1 data clipart --clipart clip --out none
says "among 0 files: the package is not installed whole; run \`tools/install-deps --data clipart\`"
rmdir clip/svg
mv clip/away clip/svg
want 1 data clipart --clipart nowhere --out none
says "tools/install-deps --data clipart"
want 1 data stamps --stamps nowhere --out none
says "tools/install-deps --data stamps"
mkdir empty
want 1 data stamps --stamps empty --out none
says "among 0 files: the package is not installed whole; run \`tools/install-deps --data stamps\`"
want 1 data mixed --clipart clip --stamps nowhere --out none
says "tools/install-deps --data stamps"
want 2 data clipart --out none --size 8
says "--size 8: must be between"
want 2 data clipart --out none --val-share 0.6 --test-share 0.6
says "leave nothing to train on"
want 2 data mixed --out none --hold-out oil
says "oil"
want 2 data mixed --out none --hold-out photo,photo
says "held out twice"
want 2 data stamps
says "--out DIR is missing"
check "nothing was made" test ! -e none

# stamps
for i in 0 1 2 3 4 5 6 7 8 9; do
    pixel "stamps/animals/birds/bird$i.png"
    cp "${shapes_png[i % ${#shapes_png[@]}]}" "stamps/animals/birds/bird$i.png"
    printf 'A bird number %d.\nde.utf8=Vogel %d.\n' "$i" "$i" >"stamps/animals/birds/bird$i.txt"
done
svg stamps/town/cartoon/house.svg "" "" "" "$(bars 80)"
echo "A house." >stamps/town/cartoon/house.txt
want 0 data stamps --stamps stamps --out stamps_set --size 32 --val-share 0.2 --test-share 0.2 \
    --near 1 --shard-size 3 --sensitive --json
check "eleven stamps" python3 -c 'import json; r = json.load(open("out"))
assert r["n_train"] + r["n_val"] + r["n_test"] == 11, r'
check "sentences" grep -q '"text": "A house."' stamps_set/*/captions.jsonl
want 0 data stamps --stamps stamps --out german --size 32 --language de
check "German sentences alone" test "$(cat german/*/captions.jsonl | grep -vc Vogel)" -eq 0
echo "no sentence.utf8=" >stamps/town/sign.txt
want 3 data stamps --stamps stamps --out other --size 32
says "town/sign.txt"

# mixed, with three emoji
mkdir -p emoji/annotations emoji/annotationsDerived
printf '# group: Food\n# subgroup: fruit\n1F34E ; fully-qualified # x E0.6 red apple\n1F350 ; fully-qualified # x E1.0 pear\n' >emoji/list.txt
printf '<annotation cp="\xF0\x9F\x8D\x8E">fruit</annotation>\n' >emoji/annotations/en.xml
touch emoji/annotationsDerived/en.xml
font=/usr/share/fonts/truetype/noto/NotoColorEmoji.ttf
if [ -e $font ] && ! { run data emoji --out probe2 --font $font; grep -q FreeType err; }; then
    want 3 data mixed --clipart clip --stamps stamps --font $font --emoji-test emoji/list.txt --cldr emoji \
        --out mixed --size 32 --icon-themes --stars --sensitive --near 0.99 --shard-size 50 \
        --val-share 0.1 --test-share 0.2 --hold-out drawing
    check "the drawing is in test alone" grep -q '"style": "drawing".*"new_style": true' mixed/test/images.jsonl
    check "and nowhere else" test "$(cat mixed/train/images.jsonl mixed/val/images.jsonl | grep -c drawing)" -eq 0
    check "emoji are there" grep -q '"style": "emoji"' mixed/*/images.jsonl
    want 3 data mixed --clipart clip --stamps stamps --font $font --emoji-test emoji/list.txt --cldr emoji \
        --out two --size 32 --hold-out drawing,photo
    check "two styles are in test alone" test "$(cat two/train/images.jsonl two/val/images.jsonl | grep -c -e drawing -e photo)" -eq 0
    mkdir birds && cp -r stamps/animals birds/
    want 1 data mixed --clipart clip --stamps birds --font $font --emoji-test emoji/list.txt --cldr emoji \
        --out none --size 32 --hold-out drawing
    says "no pictures of the style 'drawing' beside others here"
    want 3 data mixed --clipart clip --stamps stamps --font $font --emoji-test emoji/list.txt --cldr emoji \
        --out free --size 32 --hold-out none
    check "no style is held out" test "$(cat free/*/images.jsonl | grep -c '"new_style": true')" -eq 0
    for set in clipart stamps mixed; do every_option data $set; done
else
    for set in clipart stamps; do every_option data $set; done
fi
finish
