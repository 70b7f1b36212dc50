#!/bin/bash
# Parquet tables where other tables go: embed, filter, training, info; what reaches a set's names.
source "$(dirname "$0")/common/lib.sh"
make_small
tables="$PNB_SOURCE_DIR/tests/cli/common/parquet_tables.py"
mkdir all
for tar in shapes/train/*.tar; do tar -xf "$tar" -C all; done
ls all/*.png >pictures
for p in all/*.png; do basename "$p" .png; done >keys
sed 's|^|a picture called |' keys >captions
md5sum all/*.png | cut -c1-32 >uids
sed 's|^|https://x.example/|' keys >urls
python3 "$tables" table all.parquet key=keys uid=uids url=urls caption=captions jpg=@pictures
python3 "$tables" table urls.parquet key=keys uid=uids url=urls text=captions
n=$(wc -l <keys)
if ! "$PENUMBRA" info all.parquet >/dev/null 2>&1 && "$PENUMBRA" info all.parquet 2>&1 | grep -q libsnappy; then
    echo "built without snappy: skipped"
    exit 77
fi

want 0 embed -m model --images all.parquet -o p.safetensors -q
want 0 embed -m model --images all -o d.safetensors -q
check "rows of the pictures' own files" cmp -s <(tail -c 1000 p.safetensors) <(tail -c 1000 d.safetensors)
check "what a row carries" grep -q '"id": "0000000".*"url": "https://x.example/0000000".*"uid": "[0-9a-f]\{32\}", "key": "0000000"' p.ids.jsonl
want 0 embed -m model --texts all.parquet -o t.safetensors -q
check "captions know their pictures" grep -q '"id": "0000000#0", "text": "a picture called 0000000", "image": "0000000"' t.ids.jsonl
want 0 embed -m model --texts urls.parquet -o u.safetensors -q
check "metadata alone have captions" cmp -s t.ids.jsonl u.ids.jsonl
for truth in all.parquet urls.parquet; do
    want 0 eval retrieval --images p.safetensors --texts t.safetensors --truth $truth --bootstrap 0 --json
    check "$truth: every row has a match" test "$(grep -c 'left out' err)" -eq 0
done
want 1 embed -m model --images urls.parquet -o x.safetensors -q
says "no picture in this row"
want 0 filter --images p.safetensors --texts t.safetensors --data urls.parquet --uids u.npy --top 0.5
prints "named by     uid"
want 0 filter --images p.safetensors --texts t.safetensors --data all.parquet --uids v.npy --top 0.5 --out kept
check "uids of metadata and of pictures" cmp -s u.npy v.npy
check "half is copied" test "$(tar -tf kept/00000.tar | grep -c png)" -eq $(((n + 1) / 2))
mkdir again && tar -xf kept/00000.tar -C again
check "byte for byte" grep -qF "$(md5sum <again/000000000.png | cut -c1-32)" uids
train=(--model tiny --override "$small_config" --batch-size 4 --max-steps 2 --logs logs
    --tokenizer tok.json -q --workers 1)
want 0 train --train-data all.parquet "${train[@]}" --name p
cp all.parquet all.pq # a name that does not tell
want 1 train --train-data all.pq "${train[@]}" --name q
says "cannot tell what this is"
want 0 train --train-data all.pq --dataset-type parquet "${train[@]}" --name q
check "the same training" cmp -s logs/{p,q}/checkpoints/latest/model.safetensors
want 2 train --train-data all.pq --dataset-type binary "${train[@]}" --name r # classes, no captions
says "must be one of auto|webdataset|csv|dir|jsonl|karpathy|synthetic|parquet"
want 0 info all.parquet
prints "Parquet"
prints "pictures            $n"
head -c 500 all.parquet >cut.parquet
want 1 embed -m model --images cut.parquet -o x.safetensors
says "cut.parquet: is no Parquet table, which begins and ends with PAR1"
finish
