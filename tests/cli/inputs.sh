#!/bin/bash
# embed and the inputs and outputs of other tools: tables with columns of their own, CLIP_benchmark's
# folders, HierarCaps, img2dataset's records, clip-retrieval's folder.
source "$(dirname "$0")/common/lib.sh"
make_small
make_pictures test
pics=(pictures/*.png)

# ---- tables ----
printf 'words;file\na ring;%s\na star;%s\n' "${pics[0]}" "${pics[1]}" >semi.csv
want 0 embed -m model --images semi.csv --csv-separator ';' --csv-img-key file \
    --csv-caption-key words -o semi.safetensors -q
check "two pictures" test "$(wc -l <semi.ids.jsonl)" -eq 2
check "by their column" grep -qF "${pics[1]}" semi.ids.jsonl
want 0 embed -m model --texts semi.csv --csv-separator ';' --csv-caption-key words -o t.safetensors -q
check "two captions" test "$(grep -c '"text": "a ' t.ids.jsonl)" -eq 2
printf 'filepath\ttitle\n%s\ta, ring\n' "${pics[0]}" >tab.csv
want 0 embed -m model --texts tab.csv -o t.safetensors -q
check "a tab in the header is the separator" grep -qF '"text": "a, ring"' t.ids.jsonl
want 1 embed -m model --images semi.csv --csv-separator ';' -o n.safetensors
says "filepath"
want 2 embed -m model --images semi.csv --csv-separator ab -o n.safetensors
says "one character"
printf 'filepath,title\n%s,a\n,b\n' "${pics[0]}" >gap.csv
want 3 embed -m model --images gap.csv -o gap.safetensors
says "1 rows with an empty path"

# ---- CLIP_benchmark: root/{train,test}/0.tar ..., nshards.txt ----
mkdir -p root/test root/train one
for i in $(seq 0 10); do
    cp "${pics[0]}" "one/s$i.png"
    printf 'first %s\nsecond %s\n' "$i" "$i" >"one/s$i.txt"
    tar -cf "root/test/$i.tar" -C one "s$i.png" "s$i.txt"
done
echo 11 >root/test/nshards.txt
cp root/test/3.tar root/train/0.tar && echo 1 >root/train/nshards.txt
want 0 embed -m model --images root -o bench.safetensors
says "root/test: 11 shards"
check "shards in the order of their numbers" test "$(sed -n 's/.*"id": "\([^"]*\)".*/\1/p' \
    bench.ids.jsonl | tr '\n' ' ')" = "s0 s1 s2 s3 s4 s5 s6 s7 s8 s9 s10 "
want 0 embed -m model --texts root -o bench_texts.safetensors -q
check "captions by lines" test "$(wc -l <bench_texts.ids.jsonl)" -eq 22
want 0 embed -m model --images root --split train -o train.safetensors -q
check "the split asked for" test "$(wc -l <train.ids.jsonl)" -eq 1
want 0 embed -m model --images root/test -o below.safetensors -q
check "a split's own folder" cmp -s below.safetensors bench.safetensors
rm root/test/7.tar
want 1 embed -m model --images root -o n.safetensors
says "7.tar"
echo many >root/test/nshards.txt
want 1 embed -m model --images root -o n.safetensors
says "is not a number of shards"
rm -r root/test
want 1 embed -m model --images root -o n.safetensors
says 'has no split "test"; it has train'

# ---- HierarCaps ----
printf 'id,captions,image_url\n7,"a => a ring => a red, large ring",http://x/7.jpg\n9,b => c => d,http://x/9.jpg\n' \
    >hierarchy.csv
want 0 embed -m model --texts hierarchy.csv -o h.safetensors -q
check "every level is a row" test "$(wc -l <h.ids.jsonl)" -eq 6
check "with its level, picture and url" test "$(sed -n 3p h.ids.jsonl)" = \
    '{"id": "7#2", "text": "a red, large ring", "level": 2, "image": "7", "url": "http://x/7.jpg"}'

# ---- img2dataset ----
mkdir i2d
for i in 0 1; do
    cp "${pics[$i]}" "i2d/00000000$i.png"
    printf '{"url":"http://host/%s.png","caption":"a ring","key":"00000000%s","uid":"u%s","status":"success"}' \
        $i $i $i >"i2d/00000000$i.json"
done
tar -cf i2d.tar -C i2d $(ls i2d)
want 0 embed -m model --images i2d.tar -o i.safetensors -q
for field in '"url": "http://host/1.png"' '"caption": "a ring"' '"uid": "u1"' '"key": "000000001"'; do
    check "$field is carried along" test "$(sed -n 2p i.ids.jsonl | grep -cF "$field")" -eq 1
done
want 0 embed -m model --texts i2d.tar -o it.safetensors -q
check "captions know the url" grep -qF '"url": "http://host/0.png"' it.ids.jsonl
want 0 search --index i.safetensors -m model --query-text 'a ring' --json
prints '"url": "http://host/0.png"'
prints '"uid": "u1"'
prints '"caption": "a ring"'
prints '"key": "000000000"'
want 0 search --index i.safetensors -m model --query-text 'a ring'
check "the table stays narrow" test "$(grep -c 'http' out)" -eq 0
want 0 search --index bench.safetensors -m model --query-text 'a ring' --json
check "no such fields where no row has them" test "$(grep -c '"url"' out)" -eq 0

# a shard that ends early: its samples are used, the damage is told
head -c 3000 i2d.tar >torn.tar
run embed -m model --images torn.tar -o torn.safetensors
check "a torn shard is no success, found $status" test "$status" -eq 3 -o "$status" -eq 1
says "torn.tar"

# ---- clip-retrieval ----
want 0 embed -m model --images i2d.tar --out clip --export-format clip-retrieval -q
check "arrays and metadata" test -s clip/img_emb/img_emb_0.npy -a -s clip/metadata/metadata_0.parquet
want 0 embed -m model --images i2d.tar --out i.npy -q
check "the rows of a set" cmp -s i.npy clip/img_emb/img_emb_0.npy
want 0 embed -m model --texts i2d.tar --out clip --export-format clip-retrieval -q
check "text rows beside" test -s clip/text_emb/text_emb_0.npy
check "nothing else" test "$(find clip -type f | wc -l)" -eq 3
want 0 embed -m model --images i2d.tar --out parts --export-format clip-retrieval -b 1 --save-every 1 -q
check "the same in parts" cmp -s parts/metadata/metadata_0.parquet clip/metadata/metadata_0.parquet
want 1 embed -m model --text a b c --out clip --export-format clip-retrieval
says "takes row i of both as one sample"
want 1 embed -m model --text a --out i.npy --export-format clip-retrieval
says "wants a folder"
want 2 embed -m model --text a --out x --export-format clip-retrieval --format npy
says "not both"
want 0 embed -m model --text 'a star' 'a ring' --out words --export-format clip-retrieval -q
if command -v python3 >/dev/null; then
    reader="$PNB_SOURCE_DIR/tests/cli/common/parquet.py"
    python3 "$reader" clip/metadata/metadata_0.parquet >rows 2>&1
    check "the table reads back" test "$(sed -n 2p rows)" = '{"id": "000000001", "image_path": null, "url": "http://host/1.png", "caption": "a ring", "uid": "u1", "key": "000000001"}'
    check "one row a sample" test "$(wc -l <rows)" -eq 2
    python3 "$reader" words/metadata/metadata_0.parquet >rows 2>&1
    check "captions are there" grep -qF '"caption": "a star"' rows
fi

# ---- a made set's folder: its captions answer to the ids of its truth ----
want 0 embed -m model --images shapes/test -o made.safetensors -q
want 0 embed -m model --texts shapes/test -o made_texts.safetensors -q
check "a row a caption of a sample" test "$(wc -l <made_texts.ids.jsonl)" -eq \
    "$(tar -xOf shapes/test/00000.tar --wildcards '*.json' | grep -o '"levels": \[[^]]*\]' | grep -o '[0-9]' | wc -l)"
pairs=$(awk -F '\t' 'NR == FNR { if (match($0, /"caption_id": "[^"]*"/)) n[substr($0, RSTART + 15, RLENGTH - 16)]++; next }
    { total += n[$2] } END { print total }' made_texts.ids.jsonl shapes/truth/test.pairs)
want 0 eval retrieval --images made.safetensors --texts made_texts.safetensors \
    --truth shapes/truth/test.pairs --bootstrap 0 --json
prints "\"n_pairs\": $pairs,"
want 0 filter --images made.safetensors --texts made_texts.safetensors --pairs shapes/truth/test.pairs --json
prints "\"n_pairs\": $pairs,"
want 1 eval retrieval --images made.safetensors --texts made_texts.safetensors --truth shapes/truth/val.pairs
says "looks like the truth of another split"

# ---- files that stand in the place of others, and URLs ----
printf 'version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n' >pointer
printf '<!DOCTYPE html>\n<html></html>\n' >page
for of in pointer page; do
    for name in s.tar s.parquet s.csv s.jsonl s.txt; do
        cp $of $name
        want 1 embed -m model --texts $name -o n.safetensors
        says "$([ $of = pointer ] && echo 'Git LFS pointer' || echo 'web page')"
    done
    cp $of s.npy
    want 1 search --index s.npy -m model --query-text a
    says "not the file itself"
    cp $of s.pairs
    want 1 eval retrieval --images made.safetensors --texts made_texts.safetensors --truth s.pairs
    says "not the file itself"
done
want 1 train --train-data 'https://host/{00..02}.tar' --name none
says "nothing is downloaded here"
printf 'filepath\ttitle\nhttps://host/a.png\ta\n%s\tb\n' "${pics[0]}" >urls.tsv
want 3 embed -m model --images urls.tsv -o urls.safetensors
says "https://host/a.png: this is a URL"
check "no folder before it" test "$(grep -c '\./https' err)" -eq 0
printf '{"image": "https://host/a.png"}\n{"image": "%s"}\n' "${pics[0]}" >urls.jsonl
want 3 embed -m model --images urls.jsonl -o urls.safetensors
says "this is a URL"
want 1 embed -m model --images shapes/test/captions.jsonl -o n.safetensors
says "captions go to the option for texts"
check "told once" test "$(grep -c 'no picture' err)" -eq 1

# ---- a line that is left out keeps its number ----
{ seq 150; printf 'caf\xe9\n'; echo after; } >lines.txt
want 3 embed -m model --texts lines.txt -o lines.safetensors -q
check "rows are called by their lines" grep -qF '{"id": "151", "text": "after"}' lines.ids.jsonl

# a name or a level that is none of the two is not dropped without a word
printf '{"question_id": 1.5, "candidates": ["a"]}\n' >half.jsonl
want 1 embed -m model --texts half.jsonl -o half.safetensors
says '"question_id" is neither a text nor a whole number'
printf '{"id": "a", "text": "a", "level": 1.5}\n' >half.jsonl
want 1 embed -m model --texts half.jsonl -o half.safetensors
says 'a level is a whole number from 0'
finish
