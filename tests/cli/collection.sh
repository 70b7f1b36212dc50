#!/bin/bash
# collection: made, filled by pictures, captions and sets, searched, thinned out, exported, watched;
# killed and gone on with; what does not belong, and damage.
source "$(dirname "$0")/common/lib.sh"
run collection create probe
if grep -q "needs\? SQLite" err; then
    says "libsqlite3-dev"
    exit 77 # a build without it
fi
rm -rf probe
make_small
n_rows() { python3 -c 'import json; print(json.load(open("out"))["n_rows"])'; }
rows_are() { # COLLECTION N
    want 0 collection info "$1" --json
    check "$1 holds $2 rows" test "$(n_rows)" -eq "$2"
}

# pictures: what is new is embedded, what is there is not, what is broken is listed
make_pictures train 6
touch -d @1000000000 pictures/*.png
want 0 collection create photos --model model
prints "photos"
want 1 collection create photos
says "is there already"
want 0 collection add photos --images pictures --tags "first lot" small -b 2 --save-every 4
prints "6"
rows_are photos 6
head -c 50 "$(ls -d pictures/* | head -1)" >pictures/broken.png
want 3 collection add photos --images pictures shapes/test --wait 0 --json
says "broken.png"
has_keys collection n_added n_known n_replaced n_skipped
check "eight are new, six are there" grep -q '"n_known": 6' out
rows_are photos 14
want 0 collection info photos
prints "gaussian_diag"
prints "image"
prints "model"

# the rows, and the same found by a set of all and by the collection
want 0 collection list photos --tags small "first lot" --json --limit 2
has_keys rows.number rows.id rows.time rows.uncertainty rows.tags rows.path rows.sha256 rows.added
says "--after 2"
check "a page of two" test "$(grep -c '"number"' out)" -eq 2
check "the content's hash" grep -q "$(sha256sum <"$(ls -d pictures/* | head -1)" | cut -c1-64)" out
want 0 collection list photos --after 2 --until 2001-12-31 --since 2001-09-09T01:46:40Z
check "four of them are as old as their files" test "$(grep -c 2001-09-09T01:46:40Z out)" -eq 4
want 0 collection list photos --max-uncertainty 0
check "no row is certain" test "$(wc -l <out)" -le 1
want 0 collection list photos --min-uncertainty 0 --limit 100
check "every row has an uncertainty" test "$(wc -l <out)" -eq 15
want 2 collection list photos --since yesterday
says "2024-05-31"
hits() { python3 -c 'import json; print([(h["path"] if "path" in h else h["item"], h["score"]) for h in json.load(open("out"))["hits"]])'; }
rm pictures/broken.png
want 0 embed -m model --images pictures shapes/test -o all.safetensors -q
want 0 search --index all.safetensors -m model --query-text "a red star" -k 5 --json
hits >by_set
want 0 search --collection photos --query-text "a red star" -k 5 --json --html page.html
check "a collection finds what a set finds" test "$(hits)" = "$(cat by_set)"
check "the page speaks of all rows" grep -q "which of 14 rows" page.html
want 0 search --collection photos --query-text "a red star" -k 3 --tags small --json --until 2002-01-01
check "as many as are asked for, all of that tag" test "$(grep -c '"item": "pictures/' out)" -eq 3
want 0 search --collection photos --query-text "a red star" -k 50 --json
check "no more than there are" test "$(grep -c '"rank"' out)" -eq 14
want 0 search --collection photos --query-text "a red star" --min-probability 0.999
prints "no good result"
want 1 search --collection photos --query-text "a red star" --tags nobody
says "no row passes"
want 2 search --collection photos --index all.safetensors --query-text a
says "one of --index and --collection"
want 2 search --index all.safetensors -m model --query-text a --tags b
says "speak of a --collection"
want 2 search --collection photos --query-text a --inclusion inside
says "speak of an --index"

# removed rows do not come back
gone=$(python3 -c 'import ast; print(ast.literal_eval(open("by_set").read())[0][0])')
want 3 collection remove photos "$gone" nobody
says "nobody: no row has this id"
want 0 search --collection photos --query-text "a red star" -k 14 --json
check "$gone is not found any more" test "$(grep -c "\"$gone\"" out)" -eq 0
rows_are photos 13
want 0 collection remove photos --tags small --min-uncertainty 0 --max-uncertainty 1e9 --since 0 --until 2001-12-31
want 2 collection remove photos
says "one of both"
want 0 collection list photos --tags small
check "nothing of that tag is left" test "$(wc -l <out)" -le 1

# a thumbnail is as the picture was held, whatever the model sees
photo="$PNB_SOURCE_DIR/tests/io/data/image/exif6.jpg"
want 0 collection create held --model model
want 0 collection add held --images "$photo" -q
check "it is turned as its EXIF says" python3 -c '
import sqlite3, struct
def size(b): # of a baseline JPEG
    at = 2
    while b[at + 1] not in (0xC0, 0xC1, 0xC2):
        at += 2 + struct.unpack(">H", b[at + 2:at + 4])[0]
    return struct.unpack(">HH", b[at + 5:at + 9])
shown, = sqlite3.connect("held/collection.db").execute("SELECT picture FROM thumbnail").fetchone()
import sys
assert size(shown) == size(open(sys.argv[1], "rb").read())[::-1], size(shown)' "$photo"

# captions have a collection of their own; the same twice is one row
printf 'a red star\na blue disc\na red star\n' >lines.txt
want 0 collection create captions
want 2 collection add captions --texts lines.txt
says "--model"
want 0 collection add captions --texts lines.txt --model model --tokenizer tok.json
rows_are captions 2
printf 'id\ttitle\n1\tx\n' >t.tsv
want 0 collection add captions --texts t.tsv --csv-caption-key title -m model
rows_are captions 3
want 1 collection add photos --texts lines.txt
says "image and text"
want 2 collection add captions --texts lines.txt --set all.safetensors
says "one of --images, --texts and --set"

# ready sets, and a model that is another one: both are named
want 0 collection create ready
want 0 collection add ready --set all.safetensors --tags set
want 0 collection add ready --set all.safetensors
check "a set added twice is there once" grep -q "there already *14" out
want 0 init --config tiny --override "$small_config" --tokenizer tok.json --seed 9 --out other -q
want 1 collection add photos --images pictures --model other --preprocess model/preprocessor_config.json
says "other"
says "different weights"
ours=$(sha256sum model/*.safetensors | cut -c1-12)
says "$ours"
want 1 collection add ready --set nowhere.safetensors
point_set narrow 2 "$one" "$zero"
want 1 collection add ready --set narrow.safetensors
says "width 16"

# two writers: one waits for the other, or says so
exec 9>photos/writer.lock
flock 9
want 1 collection add photos --images pictures
says "another program is writing"
want 1 collection remove photos x
says "another program is writing"
want 0 collection list photos
want 0 search --collection photos --query-text "a red star"
exec 9>&-

# the database elsewhere; a second folder would not have the shards
want 0 collection create far --store sqlite:far.db
check "the database is there" test -s far.db -a ! -e far/collection.db
want 1 collection create near --store sqlite:far.db --schema s --join
says "one folder"

# indexes beside the shards
want 0 search --collection ready --queries all.safetensors -k 2 --approx int8 --json
has_keys n_unsure approx
want 0 search --collection ready --queries all.safetensors -k 2 --json
hits >exactly
run collection build ready --approx hnsw --recall 0.9 --measure auto --json
if grep -q "needs FAISS" err; then
    says "libfaiss-dev"
else
    check "built" test "$status" -eq 0
    has_keys collection n_shards n_built recall bytes
    check "a file beside the shard" test -s ready/shards/*.hnsw
    index=$(ls ready/shards/*.hnsw)
    cp "$index" whole
    sed -i '1s/"recall": [0-9.]*/"recall": 0.25/' "$index"
    want 0 collection build ready --approx hnsw --json
    prints '"recall": 0.25'
    says "remove their files, shards/*.hnsw"
    truncate -s -9 "$index"
    want 1 collection build ready --approx hnsw
    says "is damaged: remove the file"
    cp whole "$index"
    want 0 search --collection ready --queries all.safetensors -k 2 --approx hnsw --json
    check "the same hits" test "$(hits | cut -c1-60)" = "$(cut -c1-60 exactly)"
    want 0 search --index all.safetensors --queries all.safetensors -k 2 --approx ivf --recall 0.9
    says "building it"
    want 0 search --index all.safetensors --queries all.safetensors -k 2 --approx ivf
    check "opened, not built" test "$(grep -c 'building it' err)" -eq 0
    check "and enough for what is wanted" test "$(grep -c 'recall' err)" -eq 0
    sed -i '1s/"recall": [0-9.]*/"recall": 0.25/' all.safetensors.ivf
    want 0 search --index all.safetensors --queries all.safetensors -k 2 --approx ivf
    says "its recall of 0.2500 is below the 0.9900 that are wanted: remove the file"
fi
want 2 search --index all.safetensors --queries all.safetensors --approx int8 --shortlist 5
says "--shortlist"

# exports: each program's files, and how to ask
for format in npy qdrant pgvector; do
    want 0 collection export ready --to $format --out out.$format --json --tags set
    has_keys collection out n_rows dim measure query
    check "it says what a query is" grep -q '\[mean of the query, 1\]' out
    check "and what order that is" grep -q 'as csd does' out
done
run collection export ready --to faiss --out out.faiss --json --tags set
if grep -q "needs FAISS" err; then
    says "libfaiss-dev"
    check "and nothing is made" test ! -e out.faiss
else
    check "exported" test "$status" -eq 0
    has_keys collection out n_rows dim measure query
    check "it says what a query is" grep -q '\[mean of the query, 1\], by inner product' out
    check "FAISS's own flat index" test "$(head -c 4 out.faiss/index.faiss)" = IxFI
    check "the same numbers" cmp <(tail -c $((4 * 14 * 17)) out.npy/vectors.npy) <(tail -c $((4 * 14 * 17)) out.faiss/index.faiss)
    check "the same payload" cmp out.npy/payload.jsonl out.faiss/payload.jsonl
fi
want 0 search --collection ready --queries all.safetensors -k 14 --json
cp out ranked.json
check "npy and qdrant, asked as they say, rank as the collection does" python3 -B "$PNB_SOURCE_DIR/tests/cli/common/exported.py" \
    ranked.json all.safetensors out.npy out.qdrant
check "npy: all rows and one dimension more" grep -aq "'shape': (14, 17)" out.npy/vectors.npy
check "payloads are JSON" python3 -c '
import json
rows = [json.loads(l) for l in open("out.npy/payload.jsonl")]
points = [p for l in open("out.qdrant/points.jsonl") for p in json.loads(l)["points"]]
assert len(rows) == len(points) == 14
assert rows == [p["payload"] for p in points] and rows[0]["tags"] == ["set"]
assert all(len(p["vector"]) == 17 for p in points)
assert json.load(open("out.qdrant/collection.json"))["vectors"] == {"size": 17, "distance": "Dot"}'
check "pgvector: a line a row" test "$(sed -n '/^COPY/,/^\\\.$/p' out.pgvector/rows.sql | wc -l)" -eq 16
want 1 collection export ready --to npy --out ready
says "ready is a collection"
want 1 collection export ready --to npy --out none --tags nobody
says "no row to export"
want 1 collection export ready --to npy --out none --since 2020-01-01 --until 2019-01-01 --min-uncertainty 0 --max-uncertainty 1

# watch: what comes is added, what goes is removed
want 0 collection create watched --model model
mkdir empty
want 0 collection watch watched --images empty --rounds 2 --every 0.05
rows_are watched 0
want 0 collection watch watched --images pictures --rounds 1 --every 0.05 --tags seen -b 4 --save-every 3 --exif
rows_are watched 6
mv "$(ls -d pictures/* | head -1)" moved.png
cp moved.png pictures/renamed.png
want 0 collection watch watched --images pictures/ --rounds 1 --json --keep
check "the same picture under another name is there" grep -q '"n_removed": 0' out
want 0 collection watch watched --images pictures --rounds 2 --every 0.05 --wait 0 -m model --exif \
    --tokenizer tok.json --preprocess model/preprocessor_config.json
rows_are watched 6
want 0 collection list watched
check "it has its new name" grep -q renamed.png out

# shards are sets: of a collection whose database is lost they make a new one
want 0 collection create again
for lot in pictures shapes/test; do
    want 0 embed -m model --images $lot -o lot.safetensors -q
    want 0 collection create lot
    want 0 collection add lot --set lot.safetensors
    want 0 collection add again --set lot/shards/*.safetensors
    says "has no ids"
    rm -r lot
done
rows_are again 14
want 0 collection add again --set ready/shards/*.safetensors
check "none comes twice, and none took another one's place" grep -q "rows added *0" out

# damage
want 0 collection verify ready --repair
shard=$(ls ready/shards/*.safetensors)
truncate -s -4 "$shard"
want 1 search --collection ready --queries all.safetensors
says "collection verify ready"
want 1 collection verify ready
says "--repair"
want 0 collection verify ready --repair --json
has_keys collection n_rows n_shards n_leftovers n_problems n_repaired
rows_are ready 0
want 1 search --collection ready --queries all.safetensors
says "has no rows yet"
echo junk >ready/collection.db
want 1 collection info ready
says "damaged or no collection"
want 1 collection info nowhere
says "holds no collection"

# killed at steps on the disk, and started again as it was: every row is there, each once
want 0 collection create base --model model
cp -r base fault
{ PNB_DISK_FAULT=1 "$PENUMBRA" collection add fault --images pictures -q >out 2>err; } 2>/dev/null
if [ $? -eq 137 ]; then
    for ((step = 0; step < 60; step += 9)); do
        rm -rf killed
        cp -r base killed
        { PNB_DISK_FAULT=$step "$PENUMBRA" collection add killed --images pictures --save-every 2 \
            -q >out 2>err; } 2>/dev/null
        died=$?
        want 0 collection verify killed
        want 0 collection add killed --images pictures --save-every 2 -q
        rows_are killed 6
        [ "$died" -eq 137 ] || break
    done
    check "it was killed often enough, and ended at last" test $step -gt 17 -a $step -lt 60
    rm -rf full
    cp -r base full
    PNB_DISK_FAULT=3:28 "$PENUMBRA" collection add full --images pictures >out 2>err
    check "a full disk is an error" test $? -eq 1
    says "No space left on device"
    want 0 collection add full --images pictures
    rows_are full 6
fi

# every option has been tried
want 1 collection add watched --images shapes/test -q
says "differently preprocessed"
want 0 collection add captions --texts lines.txt --exif -m model --csv-img-key filepath --tags t --preprocess model/preprocessor_config.json
for sub in create add remove list info export verify watch build; do every_option collection $sub; done
finish
