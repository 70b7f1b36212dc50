#!/bin/bash
# collection in Postgres: a server of the test's own; the same rows and hits as in SQLite, two
# folders of one collection, two writers, a server that goes away and comes back, passwords.
source "$(dirname "$0")/common/lib.sh"
run collection create probe --store postgresql://127.0.0.1:1/none --schema s
if grep -q "needs Postgres" err; then
    says "libpq-dev"
    exit 77 # a build without it
fi
server="bash $PNB_SOURCE_DIR/tests/cli/common/postgres.sh"
base=$(mktemp -d) && chmod 711 "$base"
trap '$server stop "$base/pg"; rm -rf "$work" "$base"' EXIT
$server start "$base/pg" >addresses || { cat addresses; exit 77; }
by_socket=$(sed -n 1p addresses) by_port=$(sed -n 2p addresses)
sql() { psql -q -A -t "$by_socket" -c "$1"; }
make_small
n_rows() { python3 -c 'import json; print(json.load(open("out"))["n_rows"])'; }
rows_are() { # COLLECTION N
    want 0 collection info "$1" --json
    check "$1 holds $2 rows" test "$(n_rows)" -eq "$2"
}
hits() { python3 -c 'import json; print([(h["item"], h["score"]) for h in json.load(open("out"))["hits"]])'; }

# what cannot be an address, or has nothing behind it
want 1 collection create wrong --store mysql://me:secret@host/x
says "postgresql://"
want 1 collection create wrong --store "postgresql://me:sec@ret:x@host:port/x"
check "no part of a password is told" test "$(grep -c ret: err)" -eq 0
want 1 collection create wrong --store postgresql://127.0.0.1:1/none
says "does not answer"
want 1 collection create wrong --store "$by_socket" --schema "a b"
want 2 collection create wrong --join
says "--store"
want 1 collection create wrong --store "$by_socket" --join
says "holds no collection"
rm -rf wrong probe

# made, filled by pictures, listed, searched: as in SQLite
want 0 embed -m model --images shapes/train shapes/test -o all.safetensors -q
want 0 collection create photos --model model --store "$by_socket" --schema photos
want 1 collection create photos2 --store "$by_socket" --schema photos
says "--join"
want 0 collection create other
for c in photos other; do
    want 0 collection add $c --images shapes/train --tags lot "a \"b\" \\c" lot -m model -b 4 --save-every 7 -q
    want 0 collection add $c --images shapes/test shapes/train -m model -q
    want 0 search --collection $c -m model --query-text "a red star" -k 9 --json
    hits >hits.$c
    want 0 search --collection $c -m model --query-text "a red star" -k 3 --tags lot "a \"b\" \\c" --json \
        --min-uncertainty 0 --max-uncertainty 1e9 --since 0 --until 2100-01-01
    hits >filtered.$c
    want 0 collection list $c --json --limit 1000
    python3 -c 'import json
for r in json.load(open("out"))["rows"]: r.pop("added"), r.pop("time"), print(r)' >rows.$c
done
check "the same hits" cmp hits.photos hits.other
check "the same hits of a tag" cmp filtered.photos filtered.other
check "the same rows" cmp rows.photos rows.other
n=$(wc -l <rows.other)
rows_are photos "$n"
check "each row has its embedding" test "$(sql 'SELECT count(*) FROM photos.row JOIN photos.embedding USING (number) WHERE array_length(mean, 1) = 16')" -eq "$n"
check "tags are in their table once" test "$(sql "SELECT count(DISTINCT tag) FROM photos.tag")" -eq 2
want 0 collection verify photos
want 0 collection export photos --to npy --out from_postgres
want 0 collection export other --to npy --out from_sqlite
check "exported alike" cmp from_postgres/vectors.npy from_sqlite/vectors.npy

# pgvector, where a machine has it: the column, its index, and the order of its inner product is csd's
admin=${by_socket/user=penumbra/user=admin}
if psql -q -A -t "$admin" -c "CREATE EXTENSION vector WITH SCHEMA public" 2>/dev/null; then
    want 0 collection create near --model model --store "$by_socket" --schema near
    want 0 collection add near --set all.safetensors
    check "augmented vectors of width D + 1" test "$(sql 'SELECT DISTINCT vector_dims(vector) FROM near.embedding')" -eq 17
    check "with an index on their product" grep -q "hnsw (vector vector_ip_ops)" <<<"$(sql "SELECT indexdef FROM pg_indexes WHERE schemaname = 'near'")"
    echo "a red star" >query.txt
    want 0 embed -m model --texts query.txt -o query.safetensors
    want 0 search --collection near --queries query.safetensors -k 9 --json
    python3 -c 'import json
for h in json.load(open("out"))["hits"]: print(h["row"])' >near.ours
    asked=$(python3 - <<'END'
import json, struct
data = open("query.safetensors", "rb").read()
n = int.from_bytes(data[:8], "little")
begin, end = (8 + n + at for at in json.loads(data[8:8 + n])["mean"]["data_offsets"])
print([*struct.unpack("<%df" % ((end - begin) // 4), data[begin:end]), 1.0])
END
    )
    sql "SET enable_indexscan = off; SELECT number FROM near.embedding ORDER BY vector <#> '$asked' LIMIT 9" >near.theirs
    check "and their order is ours" cmp near.ours near.theirs
fi

# names of files are bytes
mkdir odd
tar -xf shapes/train/00000.tar -C odd --wildcards '*.png'
rm $(ls -d odd/* | tail -n +3)
for f in odd/*; do printf 'x%s' "$f" >>"$f" && mv "$f" "$(printf 'odd/\377\364\217\276\200%s' "$(basename "$f")")"; done
want 0 collection add photos --images odd -m model
run collection list photos --after "$n" --json
want 0 collection remove photos odd/*
check "rows are found by such names" grep -q "rows removed *2" out
rows_are photos "$n"

# another folder of the same collection: its shards are fetched
want 0 collection create elsewhere --store "$by_socket" --schema photos --join
rows_are elsewhere "$n"
want 0 search --collection elsewhere -m model --query-text "a red star" -k 9 --json
check "the same hits from there" test "$(hits)" = "$(cat hits.other)"
gone=$(python3 -c 'import ast; print(ast.literal_eval(open("hits.other").read())[0][0])')
want 0 collection remove elsewhere "$gone"
want 0 search --collection photos -m model --query-text "a red star" -k 1000 --json
check "what one folder removed no other one finds" test "$(grep -cF "\"$gone\"" out)" -eq 0
rows_are photos $((n - 1))
echo junk >"$(ls elsewhere/shards/* | head -1)"
want 1 collection verify elsewhere
want 0 collection verify elsewhere --repair
rows_are elsewhere $((n - 1))
want 0 collection verify elsewhere

# one writer at a time, on whatever machine
psql -q -A -t "$by_socket" >held 2>&1 <<<"SELECT pg_advisory_lock(hashtextextended('penumbra photos', 0)); SELECT pg_sleep(20);" &
holder=$!
for i in $(seq 100); do [ "$(sql "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'")" -gt 0 ] && break; sleep 0.05; done
want 1 collection remove elsewhere x
says "another program is writing"
want 0 collection list photos
sql "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory'" >terminated
wait $holder
want 3 collection remove elsewhere x

# the server goes away and comes back
$server stop "$base/pg"
want 1 search --collection photos -m model --query-text "a red star"
says "does not answer"
want 1 collection add photos --images odd -m model
says "does not answer"
$server again "$base/pg"
want 0 search --collection photos -m model --query-text "a red star"
rows_are photos $((n - 1))

# passwords are asked for, used, and nowhere to be seen
want 0 collection create secret --store "$by_port" --schema secret --model model
cat out err >>told
want 1 collection info secret
says "PGPASSWORD"
cat out err >>told
export PGPASSWORD="a s@cret/word"
want 0 collection add secret --set all.safetensors
cat out err >>told
want 0 collection info secret --json
cat out err secret/store.json >>told
check "the password was never told" test "$(grep -c 'cret' told | head -1)" -eq "$(grep -c 'secret' told)"
check "the word itself" test "$(grep -cE 's(@|%40)cret' told)" -eq 0
unset PGPASSWORD

# sqlite:PATH: the database elsewhere
want 0 collection create far --store sqlite:far.db
want 0 collection add far --set all.safetensors
check "the database is there" test -s far.db -a ! -e far/collection.db
rows_are far "$n"
want 1 collection create far2 --store sqlite:far.db
says "there already"
mv far.db gone.db
want 1 collection info far
says "is gone"
finish
