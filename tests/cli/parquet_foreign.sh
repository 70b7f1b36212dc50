#!/bin/bash
# Tables that arrow-rs, DuckDB and hyparquet-writer wrote, as img2dataset and DataComp have them: the same samples, names
# and uids come of each, whatever its pages are; what is not read is named. parquet_foreign.mjs made the tables.
source "$(dirname "$0")/common/lib.sh"
make_small
corpus="$PNB_SOURCE_DIR/tests/fuzz/corpus/parquet"
put() { cp "$corpus/$1" "$1.parquet"; }
for t in arrow-rs-1-snappy arrow-rs-2-zstd arrow-rs-codecs duckdb-1-types duckdb-2-zstd duckdb-encrypted hyparquet-delta; do
    put $t
done
if "$PENUMBRA" info duckdb-2-zstd.parquet 2>&1 | grep -q libzstd ||
    "$PENUMBRA" info hyparquet-delta.parquet 2>&1 | grep -q libsnappy; then
    echo "built without snappy or zstd: skipped"
    exit 77
fi

# Of 24 rows, 3 were not fetched and 4 of the others have no caption.
pictures="0 1 2 3 4 5 7 8 9 10 11 12 14 15 16 17 18 19 21 22 23"
pairs="0 1 2 3 5 7 8 10 11 12 15 16 17 18 21 22 23"
first=duckdb-2-zstd
for t in $first arrow-rs-2-zstd hyparquet-delta; do
    want 3 embed -m model --images $t.parquet -o $t.p.safetensors -q
    says '3 rows whose status is not "success" left out'
    want 3 embed -m model --texts $t.parquet -o $t.t.safetensors -q
    says "4 rows without a caption left out"
    check "$t: rows in order" diff <(printf '"id": "%09d"\n' $pictures) <(grep -o '"id": "[0-9]*"' $t.p.ids.jsonl)
    check "$t: captions in order" diff <(printf '"id": "%09d#0"\n' $pairs) <(grep -o '"id": "[0-9]*#0"' $t.t.ids.jsonl)
    check "$t: names of pictures" cmp -s $first.p.ids.jsonl <(sed "s/$t/$first/g" $t.p.ids.jsonl)
    check "$t: captions" cmp -s $first.t.ids.jsonl <(sed "s/$t/$first/g" $t.t.ids.jsonl)
    check "$t: pictures" cmp -s <(tail -c 1000 $first.p.safetensors) <(tail -c 1000 $t.p.safetensors)
    check "$t: what they say" cmp -s <(tail -c 1000 $first.t.safetensors) <(tail -c 1000 $t.t.safetensors)
    want 3 filter --images $t.p.safetensors --texts $t.t.safetensors --data $t.parquet --uids $t.npy --top 1
    prints "named by     uid"
    # uids are 128 bits, the row's number in the last: two numbers of eight bytes, the lowest first
    check "$t: uids" diff <(printf '0 %d\n' $pairs) <(tail -c +129 $t.npy | od -An -v -t u8 -w16 | awk '{ print $1, $2 }')
    want 3 filter --images $t.p.safetensors --texts $t.t.safetensors --data $t.parquet --top 1 --out $t.kept
    mkdir $t.again && tar -xf $t.kept/00000.tar -C $t.again
    check "$t: pictures as they were" cmp -s $first.again/000000000.png $t.again/000000000.png
done
check "url and score" grep -q '"id": "000000002".*"url": "https://x.example/2/2.jpg".*"clip_b32_similarity_score": 0.0' $first.p.ids.jsonl
check "the last caption" grep -qF '"id": "000000023#0", "text": "a blue\n\"square\"", "image": "000000023"' $first.t.ids.jsonl

# Metadata without pictures, in dictionaries.
want 3 embed -m model --texts arrow-rs-1-snappy.parquet -o m.safetensors -q
check "a list that nothing asks for is not skipped" grep -qx "skipped       2" out
check "captions of metadata" cmp -s <(tail -c 1000 $first.t.safetensors) <(tail -c 1000 m.safetensors)
want 3 filter --images $first.p.safetensors --texts $first.t.safetensors --data arrow-rs-1-snappy.parquet --uids m.npy --top 1
check "uids of metadata" cmp -s $first.npy m.npy
want 0 eval retrieval --images $first.p.safetensors --texts $first.t.safetensors --truth arrow-rs-1-snappy.parquet \
    --bootstrap 0 --json
check "every row has a match" test "$(grep -c 'left out of the measures' err)" -eq 0

# Another column of captions; columns that nothing asks for are no reason to say that something was skipped.
want 3 embed -m model --texts hyparquet-delta.parquet --csv-caption-key key -o k.safetensors -q
check "keys as captions" grep -qF '"id": "000000004#0", "text": "000000004", "image": "000000004"' k.ids.jsonl
cp "$corpus/odd" odd.parquet
want 0 embed -m model --texts odd.parquet -o o.safetensors -q
prints "skipped       0"

# Types and codecs that are not read are told, each by its name.
want 0 info duckdb-1-types.parquet
says "column wide: is a decimal of bytes, which is left out"
says "column span: is neither text, number nor flag, which is left out"
want 0 info arrow-rs-codecs.parquet
says "column url: is packed by BROTLI, which is not read; the column is left out"
says "column sha256: is packed by LZ4_RAW, which is not read; the column is left out"
want 1 info duckdb-encrypted.parquet
says "duckdb-encrypted.parquet: an encrypted Parquet table"
finish
