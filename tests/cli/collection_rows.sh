#!/bin/bash
# What is known of rows that are added: caption and url of tables and JSON lines, tags as a list,
# times before 1970, a line that is no JSON.
source "$(dirname "$0")/common/lib.sh"
needs_sqlite
make_small
make_pictures train 4
mapfile -t all < <(ls -d pictures/*)
row() { # FIELD N: that field of row N of the last list
    python3 -c 'import json, sys
print(json.dumps(json.load(open("out"))["rows"][int(sys.argv[2])][sys.argv[1]]))' "$1" "$2"
}
extra() { # COLLECTION N: what else is kept of its row N
    python3 -c 'import sqlite3, sys
print(sqlite3.connect(sys.argv[1] + "/collection.db").execute(
    "SELECT extra FROM row ORDER BY number LIMIT 1 OFFSET ?", (int(sys.argv[2]),)).fetchone()[0])' "$1" "$2"
}

# a table and JSON lines say the same
printf 'filepath,words,url\n%s,"a star, red",http://a/1\n%s,a ring,\n' "${all[0]}" "${all[1]}" >t.csv
printf 'filepath\ttitle\turl\n%s\ta star, red\thttp://a/1\n%s\ta ring\t\n' "${all[0]}" "${all[1]}" >t.tsv
printf '{"filepath": "%s", "caption": "a star, red", "url": "http://a/1"}\n{"filepath": "%s", "caption": "a ring"}\n' \
    "${all[0]}" "${all[1]}" >t.jsonl
for kind in csv tsv jsonl; do
    key=title
    [ $kind != csv ] || key=words
    want 0 collection create of_$kind --model model
    want 0 collection add of_$kind --images t.$kind --csv-caption-key $key --tags b a -q
    check "$kind: the url is kept" grep -qF '"url":"http://a/1"' <(extra of_$kind 0)
    check "$kind: the caption is kept" grep -qF '"caption":"a star, red"' <(extra of_$kind 0)
    check "$kind: and no url where there is none" test "$(extra of_$kind 1 | grep -c url)" -eq 0
    want 0 collection list of_$kind --json
    check "$kind: the caption is listed" test "$(row caption 0)" = '"a star, red"'
    check "$kind: and the other one" test "$(row caption 1)" = '"a ring"'
    check "$kind: tags are a list" test "$(row tags 0)" = '["a", "b"]'
    want 0 collection list of_$kind
    check "$kind: tags are one word in text" grep -q ' a,b ' out
    want 0 embed -m model --images t.$kind --csv-caption-key $key -o of_$kind.safetensors -q
    check "$kind: a set has both" test "$(grep -l 'a star, red' of_$kind.ids.jsonl | xargs grep -c http://a/1)" -eq 1
done
python3 -c 'import sqlite3
base = sqlite3.connect("of_csv/collection.db")
print(*base.execute("SELECT count(caption) FROM row").fetchone())
base.execute("UPDATE row SET caption = NULL")
base.commit()' >column
check "captions have a column of their own" test "$(cat column)" = 2
want 0 collection list of_csv --json
check "rows of before have their caption among other fields" test "$(row caption 0)" = '"a star, red"'

# times before 1970 are times
touch -d 1969-12-31T23:59:59Z "${all[2]}"
touch -d 1950-01-02T03:04:05Z "${all[3]}"
want 0 collection create old --model model
want 0 collection add old --images "${all[2]}" "${all[3]}" -q
want 0 collection list old --json
check "a second before 1970" test "$(row time 0)" = '"1969-12-31T23:59:59Z"'
check "twenty years before" test "$(row time 1)" = '"1950-01-02T03:04:05Z"'
want 0 collection list old --until 1960-01-01 --json
check "one is so old" test "$(grep -c '"number"' out)" -eq 1

# a line that is no JSON, or names no picture, is named; the others are added
printf '{"filepath": "%s"}\nno JSON\n{"caption": "nothing"}\n{"filepath": "%s"}\n{"filepath": "gone.png"}\n' \
    "${all[0]}" "${all[1]}" >bad.jsonl
for order in bad.jsonl last.jsonl; do
    [ -e $order ] || { sed -n 2,5p bad.jsonl; sed -n 1p bad.jsonl; } >$order
    want 0 collection create of_$order --model model
    want 3 collection add of_$order --images $order --json
    check "$order: two are there" grep -q '"n_added": 2' out
    check "$order: three are not" grep -q '"n_skipped": 3' out
    says "gone.png"
    says "no picture"
done
printf '{"text": "a star"}\n{broken\n{"caption": 3}\n{"captions": ["a ring", "a disc"]}\n' >bad_texts.jsonl
want 0 collection create captions --model model
want 3 collection add captions --texts bad_texts.jsonl --json
check "three captions are there" grep -q '"n_added": 3' out
check "two lines are not" grep -q '"n_skipped": 2' out
says "bad_texts.jsonl line 2"
says "bad_texts.jsonl line 3"
want 3 embed --texts bad_texts.jsonl -m model -o texts.safetensors
finish
