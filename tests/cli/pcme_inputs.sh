#!/bin/bash
# What PCME and its kin are given and cannot use: captions without a known word or without any, pictures of
# one pixel, classes of one, vocabularies and word vectors of other models, batch norm with a batch of one.
source "$(dirname "$0")/common/lib.sh"
want 0 data shapes --out s --n 80 --val-share 0 -q
config() { # FRAGMENT: more keys of vision_cfg
    printf '{"embed_dim": 8, "vision_cfg": {"base": 2, "image_size": %s}, "text_cfg": {"word_dim": 6}}' "$1"
}
train=(train --objective pcme --batch-size 8 --logs l --workers 0 --threads 2 --override "$(config 64)")
want 0 "${train[@]}" --train-data s/train --name a --max-steps 2 -q
model=l/a/checkpoints/step_2

# captions: no word is known, or there is none
printf 'zzqq xxyy\n\n   \na red circle\n' >captions.txt
want 0 embed --model $model --texts captions.txt -o t.safetensors --json
says "3 captions have no word that the vocabulary knows"
prints '"n_rows": 4'
want 0 embed --model $model --text "" -o e.safetensors -q
says "1 caption has no word"

# pictures of one pixel, and of one row
python3 - <<'PY'
import os, struct, zlib
def png(path, w, h, value):
    raw = b"".join(b"\0" + bytes([value, 10, 10]) * w for _ in range(h))
    chunk = lambda t, d: struct.pack(">I", len(d)) + t + d + struct.pack(">I", zlib.crc32(t + d))
    open(path, "wb").write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", w, h, 8, 2, 0, 0, 0)) +
                           chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b""))
os.makedirs("dots")
png("dots/dot.png", 1, 1, 200)
png("dots/row.png", 900, 1, 90)
for c, n in (("one", 1), ("two", 6), ("three", 6)):
    os.makedirs("classes/" + c)
    for i in range(n):
        png(f"classes/{c}/{c}{i}.png", 40, 30, 20 * i)
        open(f"classes/{c}/{c}{i}.txt", "w").write(f"a {c} bird\n")
os.makedirs("alone/one")
png("alone/one/a.png", 40, 30, 9)
open("alone/one/a.txt", "w").write("a bird\n")
PY
want 0 embed --model $model --images dots -o d.safetensors --json
prints '"n_rows": 2'
for i in 1 2 3 4 5 6 7 8; do
    printf '{"image":"dots/dot.png","caption":"zzqq %d"}\n{"image":"dots/row.png","caption":""}\n' $i
done >hard.jsonl
want 0 "${train[@]}" --train-data hard.jsonl --name hard --max-steps 2 --json
check "the loss is a number" python3 -c 'import json, math; assert math.isfinite(json.load(open("out"))["loss"])'
want 0 train --objective pcme --train-data hard.jsonl --model $model --batch-size 8 --logs l --workers 0 --name on --max-steps 2 -q

# one pair has no negatives: a loss that compares with them would be 0 and train nothing
for objective in vse vsepp pvse; do
    want 1 train --objective $objective --batch-size 1 --train-data hard.jsonl --logs l --workers 0 --name no --max-steps 1
    says "loss triplet compares a match with the other pairs of its batch, and a batch of 1 has none"
done
want 1 train --objective clip --model tiny --batch-size 1 --train-data hard.jsonl --logs l --workers 0 --name no --max-steps 1
says "loss clip compares a match with the other pairs"
want 0 train --objective clip --model tiny --batch-size 1 --accum-freq 2 --train-data s/train --logs l --workers 0 --name two --max-steps 1 -q
want 0 "${train[@]}" --batch-size 1 --train-data hard.jsonl --name one --max-steps 1 -q

# classes of one: each time the same one; a class alone has nothing to be told from
want 0 "${train[@]}" --train-data classes --batch-by-class --batch-size 3 --name by --max-steps 3 -q
want 1 "${train[@]}" --train-data classes --batch-by-class --name no --max-steps 1
says "at most the number of classes, which is 3"
want 1 "${train[@]}" --train-data alone --batch-by-class --batch-size 2 --name no --max-steps 1
says "all samples are of one class"
want 1 "${train[@]}" --train-data alone --batch-size 2 --name no --max-steps 1
says "less than one batch of 2"
want 0 embed --model $model --images classes -o ci.safetensors -q
want 0 embed --model $model --texts classes -o ct.safetensors -q
want 0 eval retrieval --images ci.safetensors --texts ct.safetensors --truth classes --by-class --bootstrap 0
prints "r_precision"

# a vocabulary of other words: fewer would give words the rows of others
mkdir other
cp $model/config.json $model/model.safetensors other/
words=$(python3 -c "import json; print(len(json.load(open('$model/tokenizer.json'))['model']['vocab']))")
list() { printf '<pad>\n<start>\n<end>\n<unk>\n'; seq -f 'w%g' "$1"; }
for n in 1 400; do
    list $n >other/vocab.txt
    want 1 embed --model other --texts captions.txt -o v.safetensors
    says "it belongs to another model"
    want 1 check other
    prints "it belongs to another model"
    want 1 train --objective pcme --train-data s/train --model other --logs l --name v --max-steps 1
    says "it belongs to another model"
done
: >other/vocab.txt
want 1 embed --model other --texts captions.txt -o v.safetensors
says "other/vocab.txt is empty, it holds no tokenizer"
rm other/vocab.txt
want 1 train --objective pcme --train-data s/train --model other --logs l --name v --max-steps 1
says "other has no tokenizer: copy the model's own there"
list $((words - 4)) >other/vocab.txt
want 0 train --objective pcme --train-data s/train --model other --batch-size 8 --logs l --workers 0 --name v --max-steps 1 -q
want 0 info other
check "a list of words is a tokenizer" grep -q 'has a tokenizer  *yes' out

# a released file alone: words, a and b are inside; its model without the criterion has none
mkdir coco
cp "$PNB_SOURCE_DIR/tests/models/pcme/data/released.pth" coco/pcme_coco.pth
echo "a red bird with long wings on a branch ." >bird.txt
want 0 embed --model coco --texts bird.txt -o inside.safetensors -q
want 0 convert coco --to pcme --out as-folder -q
want 0 embed --model as-folder --texts bird.txt -o beside.safetensors -q
check "the words inside are those beside" python3 - <<'PY'
import json, struct
def arrays(path):
    data = open(path, "rb").read()
    n = struct.unpack("<Q", data[:8])[0]
    return {k: data[8 + n + v["data_offsets"][0]:8 + n + v["data_offsets"][1]]
            for k, v in json.loads(data[8:8 + n]).items() if k in ("mean", "log_var")}
inside, beside = arrays("inside.safetensors"), arrays("beside.safetensors")
assert len(inside) == 2 and inside == beside
PY
want 0 check as-folder
prints "all 128 keys are there and fit"
want 0 train --objective pcme --train-data s/train --model coco --batch-size 2 --logs l --workers 0 --name coco --max-steps 1 -q

# word vectors: a line of another width, a word that is no number, nothing
vectors() { # TEXT MESSAGE
    printf "$1" >vectors.txt
    want 1 "${train[@]}" --train-data s/train --name w --max-steps 1 --word-vectors vectors.txt
    says "$2"
}
vectors 'red 1 2 3\n' 'line 1 ("red") has 3 numbers, the words have vectors of 6'
vectors 'red 1 2 3 4 5 6\nblue 1 2 3 4 5\n' 'line 2 ("blue") has 5 numbers'
vectors 'red 1 2 3 4 5 6 7\n' 'has 7 numbers'
vectors 'red 1 2 3 4 5 nan\n' '"nan" is no finite number'
vectors 'red 1 2 3 4 5 x\n' '"x" is no finite number'
vectors 'zebra 1 2 3 4 5 6\n' 'holds none of the'
vectors '' 'no words'
corpus=$PNB_SOURCE_DIR/tests/fuzz/corpus/word_vectors
three=("${train[@]/\"word_dim\": 6/\"word_dim\": 3}")
want 0 "${three[@]}" --train-data s/train --name ft --max-steps 1 --word-vectors "$corpus/fasttext_model.bin"
says "words found in $corpus/fasttext_model.bin"
want 1 "${train[@]}" --train-data s/train --name w --max-steps 1 --word-vectors "$corpus/fasttext_model.bin"
says "the fastText model has vectors of 3, the words have 6"

# batch norm: one value a channel has no variance; a frozen norm, or places in a larger picture, have
one=("${train[@]:0:3}" --batch-size 1 --train-data s/train --logs l --workers 0 --max-steps 2)
want 1 "${one[@]}" --name n --override "$(config 32)"
says "has one value a channel and no variance; training needs a larger batch, larger pictures or frozen batch norm"
want 0 "${one[@]}" --name n --override "$(config '32, "frozen_norm": true')" -q
want 0 "${one[@]}" --name m --override "$(config 64)" -q
finish
