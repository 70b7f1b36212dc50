#!/bin/bash
# embed: every kind of input, damaged pictures, formats, bad tensors, continuing after a kill.
source "$(dirname "$0")/common/lib.sh"
make_small

# data sets, folders, globs, lists
want 0 embed -m model --images shapes/test -o a.safetensors --json
prints '"n_rows": 8'
check "one id a row" test "$(wc -l <a.ids.jsonl)" -eq 8
make_pictures test
want 0 embed -m model --images pictures -o folder.safetensors -q
want 0 embed -m model --images 'pictures/*.png' -o glob.safetensors -q
check "the glob finds every picture" test "$(wc -l <glob.ids.jsonl)" -eq 8
ls pictures/*.png | "$PENUMBRA" embed -m model --images - -o list.safetensors -q >out 2>err
check "a list on standard input works" cmp -s list.safetensors glob.safetensors
want 0 embed -m model --images pictures -o folder3.safetensors -q -b 3
check "rows are named alike whatever the batch" cmp -s folder.ids.jsonl folder3.ids.jsonl

# EXIF orientation is ignored unless asked for
photo="$PNB_SOURCE_DIR/tests/io/data/image/exif6.jpg"
want 0 embed -m model --images "$photo" -o lying.npy -q
want 0 embed -m model --images "$photo" -o turned.npy --exif -q
check "--exif turns the picture" test "$(cmp -s lying.npy turned.npy; echo $?)" -eq 1
want 2 embed -m model --text a --exif -o n.safetensors
says "--exif needs --images"
want 0 embed -m model --images "$photo" -o turned.safetensors --exif -q
want 0 search --index turned.safetensors -m model --query-image "$photo" --exif --measure mean --json
prints '"score": 1.0'
want 2 search --index turned.safetensors -m model --query-text a --exif
says "--exif needs --query-image"

# masked copies: the seed draws patches and tokens; a share of patches is rounded down (36 of them)
for seed in 1 2; do
    want 0 embed -m model --images shapes/test --masked --seed $seed -o pm$seed.npy -q
    want 0 embed -m model --texts shapes/test/captions.jsonl --masked --seed $seed -o tm$seed.npy -q
done
check "patches are drawn from --seed" test "$(cmp -s pm1.npy pm2.npy; echo $?)" -eq 1
check "tokens are drawn from --seed" test "$(cmp -s tm1.npy tm2.npy; echo $?)" -eq 1
want 0 embed -m model --images shapes/test --masked --seed 1 -o again.npy -q
check "the same seed draws the same" cmp -s pm1.npy again.npy
for keep in 0.31 0.33 0.34; do
    want 0 embed -m model --images shapes/test --masked --mask-keep $keep -o keep$keep.npy -q
done
check "11.2 and 11.9 patches are 11" cmp -s keep0.31.npy keep0.33.npy
check "12.2 patches are 12" test "$(cmp -s keep0.33.npy keep0.34.npy; echo $?)" -eq 1
# and the share of tokens is the one asked for: with 0 a masked copy is the caption itself
want 0 embed -m model --texts shapes/test/captions.jsonl -o unmasked.npy -q
for drop in 0 0.2 0.9; do
    want 0 embed -m model --texts shapes/test/captions.jsonl --masked --mask-drop $drop \
        -o drop$drop.npy -q
done
check "no token is deleted" cmp -s unmasked.npy drop0.npy
check "more are deleted of 0.9 than of 0.2" test "$(cmp -s drop0.2.npy drop0.9.npy; echo $?)" -eq 1
check "deleting changes captions" test "$(cmp -s unmasked.npy drop0.2.npy; echo $?)" -eq 1

# captions
want 0 embed -m model --texts shapes/test/captions.jsonl -o t.safetensors -q
grep -q '"level": *3' t.ids.jsonl || fail "levels travel with captions"
printf 'a red star\n\na blue ring\r\n' >lines.txt
want 0 embed -m model --texts lines.txt --text 'a star' -o lines.safetensors --json
prints '"n_rows": 4'
printf 'title,x\n"a red, large star",1\na ring,2\n' >c.csv
want 0 embed -m model --texts c.csv -o csv.safetensors --json
prints '"n_rows": 2'
# Karpathy's json and a folder with its captions elsewhere, as train takes them
mkdir -p karpathy/val2014 cub/images/01.wren cub/images/02.owl cub/text/01.wren cub/text/02.owl
for i in 0 1 2 3; do
    tar -xOf shapes/test/00000.tar "$(tar -tf shapes/test/00000.tar | grep -m1 png)" >karpathy/val2014/$i.png
done
cp karpathy/val2014/0.png cub/images/01.wren/a.png && cp karpathy/val2014/1.png cub/images/02.owl/b.png
printf 'a red star\na blue ring\n' | tee cub/text/01.wren/a.txt >cub/text/02.owl/b.txt
echo '02.owl' >cub/classes.txt
python3 - <<'PY'
import json
sentences = lambda i: [{"raw": f"star {k} of {i}", "sentid": 2 * i + k, "imgid": i} for k in range(2)]
json.dump({"images": [{"filename": f"{i}.png", "filepath": "val2014", "imgid": i, "split": "test" if i else "val",
                       "sentids": [2 * i, 2 * i + 1], "sentences": sentences(i)} for i in range(4)]},
          open("karpathy/dataset_coco.json", "w"))
PY
for spec in 'karpathy/dataset_coco.json#split=test' 'karpathy/dataset_coco.json#split=test,images=karpathy'; do
    want 0 embed -m model --images "$spec" -o ki.safetensors --json
    prints '"n_rows": 3'
    want 0 embed -m model --texts "$spec" -o kt.safetensors --json
    prints '"n_rows": 6'
    want 0 eval retrieval --images ki.safetensors --texts kt.safetensors --truth karpathy/dataset_coco.json --split test --bootstrap 0
    says "split test: 3 of 3 pictures and 6 of 6 captions"
done
want 1 embed -m model --texts model/config.json -o x.safetensors
says 'has no list "images"'
want 1 embed -m model --images 'karpathy/dataset_coco.json#split=dev' -o x.safetensors
says "is in the split 'dev'"
owls='cub/images#captions=cub/text,classes=cub/classes.txt'
want 0 embed -m model --images "$owls" -o ci.safetensors --json
prints '"n_rows": 1'
want 0 embed -m model --texts "$owls" -o ct.safetensors --json
prints '"n_rows": 2'
check "captions know their class" grep -q '"class": "02.owl"' ct.ids.jsonl
want 0 embed -m model --text "$(yes star | head -60 | tr '\n' ' ')" -o long.safetensors
says "1 caption was longer than the model's context and cut"
# a list of words says of which captions it knows nothing; an empty one is among them
cp -r model wordy
want 0 tokenizer train --captions shapes/train/captions.jsonl --kind word --vocab-size 100 \
    --out wordy/tokenizer.json
want 0 embed -m wordy --text 'zyzzyva quux' 'a star' -o unknown.safetensors --json
says "1 caption has no word that the vocabulary knows"
prints '"n_unknown": 1'
want 0 embed -m wordy --texts lines.txt -o unknown.safetensors --json
prints '"n_unknown": 1'
want 0 embed -m wordy --text 'a star' -o known.safetensors --json
prints '"n_unknown": 0'
printf 'good\nbad \377\376\nfine\n' >mixed.txt
want 3 embed -m model --texts mixed.txt -o mixed.safetensors
says "mixed.txt line 2: not valid UTF-8"
check "the good ones are there" test "$(wc -l <mixed.ids.jsonl)" -eq 2

# every picture of a folder is read or named: none is passed over
mkdir mixed
images="$PNB_SOURCE_DIR/tests/io/data/image"
cp "$images"/{b8.bmp,rgb8.png} mixed/
n_read=2
for format in GIF:plain.gif TIFF:t_RGB_packbits.tif AVIF:heif_a.avif HEIC:heif_a.heic; do
    if "$PENUMBRA" --version | grep -q "${format%%:*}"; then
        cp "$images/${format#*:}" mixed/
        n_read=$((n_read + 1))
    fi
done
ln -s . mixed/loop
ln -s ../mixed mixed/again
want 0 embed -m model --images mixed -o mixed_ok.safetensors --json
prints "\"n_rows\": $n_read"
printf '\0\0\0\014JXL \r\n\207\n' >mixed/new.jxl
echo '8BPS....' >mixed/layers.psd
want 3 embed -m model --images mixed -o mixed_some.safetensors --json
prints "\"n_rows\": $n_read"
says "new.jxl: JPEG XL is not read"
says "layers.psd: Photoshop is not read"
says "2 inputs skipped"
mkdir only_unread
cp mixed/new.jxl only_unread/
want 1 embed -m model --images only_unread -o none.safetensors
says "new.jxl"
mkdir bare
want 1 embed -m model --images bare -o none.safetensors
says "bare: holds no picture"

# damaged pictures are skipped and listed
cp -r pictures damaged
first=$(ls damaged | head -1)
head -c 60 "pictures/$first" >"damaged/$first"
: >damaged/empty.png
echo 'not a picture' >damaged/text.png
want 3 embed -m model --images damaged -o damaged.safetensors
says "$first"
says "empty.png"
says "text.png"
says "3 inputs skipped"
check "the others are there" test "$(wc -l <damaged.ids.jsonl)" -eq 7
want 1 embed -m model --images damaged/empty.png damaged/text.png -o none.safetensors
says "none of the 2 inputs could be read"
check "no half output" test ! -e none.safetensors -a ! -e none.safetensors.journal

# formats
want 0 embed -m model --text a b -o x.npy -q
check "means and log-variances" test -s x.npy -a -s x_logvar.npy
want 0 embed -m model --text a b -o x.jsonl -q
check "one row a line" test "$(wc -l <x.jsonl)" -eq 2

# what is missing or cannot be written
want 1 embed -m model --images nowhere -o n.safetensors
says "nowhere: no such file or folder"
want 1 embed -m model --images 'nowhere/*.png' -o n.safetensors
says "no file matches"
want 1 embed -m nowhere --text a -o n.safetensors
says "nowhere"
want 1 embed -m model --text a -o n.txt --format safetensors
check "no half output" test ! -e n.txt
if [ "$(id -u)" -ne 0 ]; then
    mkdir locked && chmod 500 locked
    want 1 embed -m model --text a -o locked/n.safetensors
    says "locked"
fi
if [ -w /dev/full ]; then
    want 1 embed -m model --text a -o /dev/full/n.safetensors
fi

# a model whose parts do not belong together
cp -r model broken && echo '{"crop_size":99,"size":99}' >broken/preprocessor_config.json
want 1 embed -m broken --images pictures -o n.safetensors
says "broken"
rm broken/tokenizer.json
want 1 embed -m broken --text a -o n.safetensors
says "tokenizer"
head -c 1000 model/model.safetensors >broken/model.safetensors
want 1 embed -m broken --text a -o n.safetensors
says "model.safetensors"

# killed and continued: same bytes as in one go
want 0 embed -m model --images shapes/train -o whole.safetensors -q -b 2
check "the journal is gone afterwards" test ! -e whole.safetensors.journal
"$PENUMBRA" embed -m model --images shapes/train -o cut.safetensors -b 2 --save-every 2 -q \
    >out 2>err </dev/null &
pid=$!
for _ in $(seq 200); do
    [ -s cut.safetensors.journal/parts.jsonl ] && break
    sleep 0.02
done
kill -KILL $pid 2>/dev/null
wait $pid 2>/dev/null
want 0 embed -m model --images shapes/train -o cut.safetensors -b 2 --save-every 2 -q
check "continued rows are the same" cmp -s whole.safetensors cut.safetensors
check "continued names are the same" cmp -s whole.ids.jsonl cut.ids.jsonl
check "the journal is gone afterwards" test ! -e cut.safetensors.journal
mkdir -p busy.safetensors.journal
flock busy.safetensors.journal/lock sleep 3 &
sleep 0.3
want 1 embed -m model --text a -o busy.safetensors
says "busy.safetensors is being written by another run"
wait
# precision: recorded, another set than in floats, compared with it by a note
want 0 embed -m model --images shapes/test -o whole.safetensors -q
want 0 embed -m model --images shapes/test --precision bf16 -o half.safetensors -q
check "another set" test "$(sha256sum <whole.safetensors)" != "$(sha256sum <half.safetensors)"
want 0 info half.safetensors --json
prints '"precision": "bf16"'
want 0 search --index whole.safetensors --queries half.safetensors -k 1 --measure mean
says "half.safetensors was embedded in precision bf16, what came before it in fp32"
want 0 search --index half.safetensors --queries half.safetensors -k 1 --measure mean
check "no note on one precision" test "$(grep -c precision err)" -eq 0
want 2 embed -m model --text a --precision fp8 -o x.npy
says "fp32|fp32-tiles|fp32-tiles-fast|bf16|int8"
# in 8 bits from the floats' own file: recorded, and the weights are still told apart as theirs
want 0 embed -m model --images shapes/test --precision int8 -o bytes.safetensors -q
want 0 info bytes.safetensors --json
prints '"precision": "int8"'
want 0 search --index whole.safetensors --queries bytes.safetensors -k 1 --measure mean
says "bytes.safetensors was embedded in precision int8, what came before it in fp32"
# floats on tiles: near enough that no hit changes; floats to the bit where there are no tiles
PENUMBRA_CPU=emulated want 0 embed -m model --images shapes/test --precision fp32-tiles -o tiles.safetensors -q
check "tiles are not floats to the bit" test "$(sha256sum <whole.safetensors)" != "$(sha256sum <tiles.safetensors)"
want 0 info tiles.safetensors --json
prints '"precision": "fp32-tiles"'

finish
