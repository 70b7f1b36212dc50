#!/bin/bash
# data shapes, emoji and chains: what is written, sets that are there already, what is refused.
source "$(dirname "$0")/common/lib.sh"
make_small

# shapes
want 0 data shapes --out s --n 30 --size 32 --val-share 0.2 --test-share 0.3 --shard-size 4 --json
has_keys dir reused n_train n_val n_test n_words n_ambiguous levels.level levels.texts \
    levels.texts_per_image levels.images_per_text
check "all scenes, none ambiguous" python3 -c 'import json; r = json.load(open("out"))
assert r["n_train"] + r["n_val"] + r["n_test"] == 30 and r["n_ambiguous"] == 0 and not r["reused"]
assert [l["level"] for l in r["levels"]] == [0, 1, 2, 3]'
n_val=$(sed -n 's/.*"n_val": \([0-9]*\).*/\1/p' out)
check "shards of four" test "$(ls s/val/*.tar | wc -l)" -eq $(((n_val + 3) / 4))
for file in train/captions.jsonl train/images.jsonl truth/train.pairs truth/val.pairs truth/test.pairs; do
    check "$file is there" test -s "s/$file"
done
mkdir one && tar -xf s/val/00000.tar -C one
check "pictures of 32 x 32" test "$(file one/*.png | grep -c '32 x 32')" -eq "$(ls one/*.png | wc -l)"
want 0 data shapes --out s --n 30 --size 32 --val-share 0.2 --test-share 0.3 --shard-size 4
prints "was there already"
want 1 data shapes --out s --n 31 --size 32
says "exists and does not hold this data set"
for seed in 1 1 2; do
    rm -rf drawn
    want 0 data shapes --out drawn --n 8 --seed $seed -q
    cat drawn/*/captions.jsonl | sha256sum >>sums
done
check "the same seed, the same set; another, another" \
    test "$(uniq sums | wc -l)" -eq 2 -a "$(sort -u sums | wc -l)" -eq 2
want 0 data shapes --out foggy --n 30 --size 32 --blur 0.5 --max-blur 0.2 --occlude 0.5 --grey 0.5 --json
check "most are ambiguous" python3 -c 'import json; assert json.load(open("out"))["n_ambiguous"] > 15'
want 0 data shapes --out wordy --n 30 --size 32 --wordy 1 -q
check "every caption stands in more words" test "$(cat wordy/*/captions.jsonl | grep -cvE '"text": "(this shows|a picture of|somebody has|one can see|look closely|as far as) ')" -eq 0
want 2 data shapes --out wordy2 --n 30 --wordy 1.5
want 0 data shapes --out faint --n 30 --size 32 --blur 0.5 --max-blur 0.01 --occlude 0.5 --grey 0.5
check "--max-blur changes pictures" test "$(cmp -s foggy/train/00000.tar faint/train/00000.tar; echo $?)" -eq 1
want 2 data shapes --out none --val-share 0.6 --test-share 0.6
says "leave nothing to train on"
want 2 data shapes --n 5
says "--out DIR is missing"
want 2 data shapes --out none --blur 2
says "--blur 2: must be between"
want 2 data shapes --out none --size 8
says "--size 8: must be between"
touch taken
want 1 data shapes --out taken --n 5
says "is a file; a folder is wanted"
want 2 data
says "a command is missing"
want 2 data faces --out none
says "unknown command 'faces'"
check "nothing was made" test ! -e none

# chains of pictures from a small file in COCO's format
make_coco
want 3 data chains --instances instances.json --pictures pictures --out chains --segments 2 \
    --min-pixels 100
says "p3.png"
prints "chains"
want 0 data chains --instances instances.json --pictures pictures --out chains --segments 2 \
    --min-pixels 100 --json
prints '"reused": true'
want 1 data chains --instances instances.json --pictures pictures --out chains --segments 1
says "chains"
want 2 data chains --instances instances.json --pictures pictures --out other --show crop --fill 0
says "--fill does nothing"
want 1 data chains --instances instances.json --pictures nowhere --out other
says "no such folder of pictures"
want 1 data chains --instances tok.json --pictures pictures --out other
says "a COCO annotation file is wanted"
want 1 data chains --instances instances.json --pictures pictures --out other
says "not one of 3 pictures makes a chain of 3 segments"
want 2 data chains --instances instances.json --pictures pictures --out other --segments 0
says "--segments 0: must be between"
want 2 data chains --pictures pictures --out other
says "--instances JSON is missing"
check "nothing was made" test ! -e other
made() { # OUT OPTIONS...: chains of the two whole pictures
    local out=$1
    shift
    want 0 data chains --instances instances.json --pictures pictures --out "$out" --min-pixels 100 \
        --max-pictures 2 --json "$@"
}
made grey --segments 2 --fill 128
has_keys dir reused n_chains n_levels n_images n_listed n_few n_small n_skipped
check "two chains of three levels" python3 -c 'import json; r = json.load(open("out"))
assert (r["n_chains"], r["n_levels"], r["n_images"], r["n_skipped"]) == (2, 3, 6, 0), r'
made white --segments 2
made cropped --segments 2 --show crop
for other in grey cropped; do
    check "$other pictures are others" \
        test "$(cmp -s white/test/00000.tar $other/test/00000.tar; echo $?)" -eq 1
done
made shards --segments 2 --shard-size 1
check "six shards of one" test "$(ls shards/test/*.tar | wc -l)" -eq 6
sed 's/"iscrowd":0,"segmentation":{/"iscrowd":1,"segmentation":{/g' instances.json >crowds.json
want 1 data chains --instances crowds.json --pictures pictures --out other --segments 2 --min-pixels 100
says "3 have fewer"
want 0 data chains --instances crowds.json --pictures pictures --out crowds --segments 2 \
    --min-pixels 100 --max-pictures 2 --crowds
# a triangle is small beside 1,024 pixels: the picture goes, or the segment alone
sed 's/8,8,40,8,40,40,8,40/8,8,40,8,40,40/g' instances.json >triangles.json
want 1 data chains --instances triangles.json --pictures pictures --out other --segments 2 --min-pixels 800
says "0 have fewer, 3 a segment of 800 pixels or less"
want 1 data chains --instances triangles.json --pictures pictures --out other --segments 2 \
    --min-pixels 800 --drop-small
says "3 have fewer"
want 0 data chains --instances triangles.json --pictures pictures --out dropped --segments 1 \
    --min-pixels 800 --max-pictures 2 --drop-small
printf '{"images":[{"id":1},{"id":2},{"id":3}],"annotations":[%s]}' \
    '{"id":1,"image_id":1,"caption":"all of the first"},{"id":2,"image_id":2,"caption":"all of the second"}' \
    >words.json
made told --segments 2 --captions words.json
check "captions of whole pictures" grep -q "all of the first" told/test/captions.jsonl
want 1 data chains --instances instances.json --pictures pictures --out other --captions none.json
says "none.json"

# ambiguous: sets of a tree of concepts, which eval reads with their truth
ambiguous() { # STATUS OUT OPTIONS...
    local wanted=$1 out=$2
    shift 2
    want "$wanted" data ambiguous --out "$out" --n 90 --dim 8 --roots 2 --branches 2 --levels 3 \
        --texts 12 --val-share 0.2 --test-share 0.2 --json "$@"
}
ambiguous 0 amb --seed 4
has_keys dir reused n_train n_val n_test levels.level levels.texts levels.images_per_text
check "counts" python3 -c 'import json; r = json.load(open("out"))
assert (r["n_train"], r["n_val"], r["n_test"]) == (54, 18, 18), r
assert [l["texts"] for l in r["levels"]] == [36, 36, 36], r'
ambiguous 0 amb2 --seed 4 --threads 1
check "the same seed, the same bytes" diff -r amb amb2
ambiguous 0 amb3 --seed 5
check "another seed, other rows" test "$(cmp -s amb/test/images.safetensors amb3/test/images.safetensors; echo $?)" -eq 1
ambiguous 0 amb --seed 4
prints '"reused": true'
ambiguous 0 other --family gaussian_diag --text-dim 5 --cosine-general 0.2 --cosine-specific 0.8 --spread 0 \
    --wording 0.9 --hint 0 --length 10 --length-spread 0
check "captions of length 10" python3 -c 'import json, struct
b = open("other/test/texts.safetensors", "rb").read(); n = struct.unpack("<Q", b[:8])[0]
h = json.loads(b[8:8 + n]); begin, end = h["mean"]["data_offsets"]; assert h["mean"]["shape"][1] == 5
x = struct.unpack("<%df" % ((end - begin) // 4), b[8 + n + begin:8 + n + end])
assert all(abs(sum(v * v for v in x[i:i + 5]) - 100) < 1e-3 for i in range(0, len(x), 5))'
for truth in test test.written; do
    want 0 eval retrieval --images amb/test/images.safetensors --texts amb/test/texts.safetensors \
        --truth amb/truth/$truth.pairs --measure mean
done
want 0 eval retrieval --images amb/test/images.safetensors --texts amb/test/known.safetensors \
    --truth amb/truth/test.pairs
prints "vmf"
want 1 data ambiguous --out none --dim 6 --branches 4
says "4 children a concept, with this spread up to 6; they stand around it in its 6 dimensions: 2 to 5"
want 2 data ambiguous --out none --cosine-general 0.9
says "--cosine-general must be below --cosine-specific"
want 2 data ambiguous --out none --val-share 0.6 --test-share 0.6
says "leave nothing to train on"
want 2 data ambiguous --out none --family point
says "must be one of"

# emoji: a list of six, the font where it is installed
mkdir -p cldr/annotations cldr/annotationsDerived
echo '<ldml></ldml>' >cldr/annotationsDerived/en.xml
printf '<annotation cp="\xf0\x9f\x8d\x8e">fruit | red</annotation>\n' >cldr/annotations/en.xml
{
    echo '# group: Food & Drink'
    echo '# subgroup: food-fruit'
    for line in '1F34E red apple' '1F34F green apple' '1F350 pear' '1F351 peach' '1F352 cherries' \
        '1F353 strawberry' '1F347 grapes' '1F348 melon' '1F349 watermelon' '1F34A tangerine'; do
        echo "${line%% *} ; fully-qualified # x E0.6 ${line#* }"
    done
    echo '# group: People & Body'
    echo '# subgroup: hand'
    echo '1F44B ; fully-qualified # x E0.6 waving hand'
    echo '1F44B 1F3FB ; fully-qualified # x E1.0 waving hand: light skin tone'
    echo '1F595 ; fully-qualified # x E1.0 middle finger'
} >emoji.txt
emoji() { # STATUS OUT OPTIONS...
    local wanted=$1 out=$2
    shift 2
    want "$wanted" data emoji --out "$out" --emoji-test emoji.txt --cldr cldr --json "$@"
}
want 2 data emoji --out none --size 100
says "--size 100: must be one of 64|128"
want 1 data emoji --out none --emoji-test nowhere.txt
says "nowhere.txt does not exist: apt-get install unicode-data"
want 1 data emoji --out none --emoji-test emoji.txt --cldr nowhere
says "apt-get install unicode-cldr-core"
emoji 1 none --font nowhere.ttf
says "nowhere.ttf"
check "nothing was made" test ! -e none
font=/usr/share/fonts/truetype/noto/NotoColorEmoji.ttf
run data emoji --out probe_font --emoji-test emoji.txt --cldr cldr
total() { python3 -c 'import json; r = json.load(open("out")); print(r["n_train"] + r["n_val"] + r["n_test"])'; }
if [ -f $font ] && ! grep -q "cannot be drawn" err; then
    emoji 0 fruit --font $font --shard-size 3
    has_keys dir reused n_train n_val n_test n_words levels.texts
    check "without tones and insults" test "$(total)" -eq 11
    check "a keyword of CLDR" grep -q fruit fruit/train/captions.jsonl
    emoji 0 tones --skin-tones
    check "a tone more" test "$(total)" -eq 12
    emoji 0 rude --sensitive --size 128
    check "an insult more" test "$(total)" -eq 12
    mkdir large small
    tar -xf rude/train/00000.tar -C large && tar -xf fruit/train/00000.tar -C small
    check "of another size" test "$(file large/*.png | grep -c '128 x 128')" -gt "$(file small/*.png | grep -c '128 x 128')" -o \
        "$(ls large/*64.png 2>/dev/null | wc -l)" -gt 0
    emoji 0 fruit --font $font --shard-size 3
    prints '"reused": true'
else
    emoji 1 none --skin-tones --sensitive --size 128 --shard-size 3
fi

every_option data shapes
every_option data chains
every_option data ambiguous
every_option data emoji
finish
