#!/bin/bash
# embed and odd files: names that are not UTF-8, pipes and sockets among the pictures, a closed
# terminal, a limit on file sizes, names of outputs that could never be written, standard output.
source "$(dirname "$0")/common/lib.sh"
make_small
make_pictures test
some=$(ls pictures | head -1)

# ---- a name is bytes: kept, escaped in JSON, found again ----
odd=$'caf\xe9 \xff.png'
mkdir odd
cp pictures/* odd/
cp "pictures/$some" "odd/$odd"
(cd odd && tar -cf ../odd.tar "$odd")
want 0 embed -m model --images odd -o odd.safetensors -q
check "one row a picture" test "$(wc -l <odd.ids.jsonl)" -eq 9
check "bytes are escaped as Python has it" grep -qF '\udce9 \udcff.png"' odd.ids.jsonl
check "the names are UTF-8" iconv -f UTF-8 -t UTF-8 -o /dev/null odd.ids.jsonl
if command -v python3 >/dev/null; then
    python3 - odd.ids.jsonl >opened 2>&1 <<'E'
import json, os, sys
for line in open(sys.argv[1], encoding="utf-8"):
    os.stat(json.loads(line)["path"])
print("all found")
E
    check "Python opens every path" grep -q "all found" opened
fi
want 0 search --index odd.safetensors -m model --query-image "odd/$odd" --measure mean --json
prints '"score": 1.0'
prints '\udce9 \udcff'
check "results are UTF-8" iconv -f UTF-8 -t UTF-8 -o /dev/null out
want 0 classify -m model --images odd --classnames a,b --templates simple --json
prints '\udce9 \udcff.png'
check "results are UTF-8" iconv -f UTF-8 -t UTF-8 -o /dev/null out
want 0 classify -m model --images odd --classnames a,b --templates simple --predictions p.jsonl
check "and predictions" grep -qF '\udce9 \udcff.png' p.jsonl
timeout 60 "$PENUMBRA" embed -m model --texts /dev/zero -o zero.npy >out 2>err
check "no text without an end is refused" test $? -eq 1
says "NUL bytes"
for of in "odd/$odd" odd.tar; do
    want 0 embed -m model --images "$of" -o one.safetensors -q
    check "one row" test "$(wc -l <one.ids.jsonl)" -eq 1
    check "escaped" grep -qF '\udce9 \udcff' one.ids.jsonl
done
ls -d odd/* >list
"$PENUMBRA" embed -m model --images - -o list.npy -q <list >out 2>err
check "a list of such names" test $? -eq 0
want 0 embed -m model --images odd -o odd.jsonl -q
check "in JSON lines too" grep -qF '\udcff' odd.jsonl
mkdir $'\xfe'
cp odd.tar $'\xfe/a.tar'
want 0 embed -m model --images $'\xfe/a.tar' -o source.safetensors -q
want 0 search --index source.safetensors -m model --query-image "odd/$odd" --measure mean --json
true >"odd/broken $odd"
want 3 embed -m model --images odd -b 2 --save-every 2 -o broken.safetensors
says "skipped"
rm "odd/broken $odd"

# ---- what could keep open() waiting ----
cp -r pictures special
mkfifo special/pipe.png
timeout 60 "$PENUMBRA" embed -m model --images special -o special.safetensors >out 2>err </dev/null
check "a pipe in a folder is skipped or passed over" test $? -eq 3 -o $? -eq 0
check "the others are there" test "$(wc -l <special.ids.jsonl)" -eq 8
ls -d special/* >list
timeout 60 "$PENUMBRA" embed -m model --images - -o special.safetensors <list >out 2>err
check "a pipe in a list is skipped" test $? -eq 3
says "pipe.png"
says "is a pipe"
for name in pipe.tar pipe.csv pipe.jsonl; do
    mkfifo $name
    timeout 60 "$PENUMBRA" embed -m model --images $name -o n.safetensors >out 2>err </dev/null
    check "$name is refused" test $? -eq 1
    rm $name
done
mkdir shards && cp shapes/test/00000.tar shards/ && mkfifo shards/00001.tar
timeout 60 "$PENUMBRA" embed -m model --images shards -o n.safetensors >out 2>err </dev/null
check "a pipe among shards is refused" test $? -eq 1
says "00001.tar is a pipe"

# ---- signals and limits ----
"$PENUMBRA" embed -m model --images shapes/train -o hup.safetensors -b 1 --save-every 1 >out 2>err \
    </dev/null &
pid=$!
for _ in $(seq 500); do
    [ -e hup.safetensors.journal ] && break
    sleep 0.01
done
kill -HUP $pid
wait $pid
code=$?
check "SIGHUP stops cleanly, found $code" test $code -eq 130 -o $code -eq 0
want 0 embed -m model --images shapes/train -o whole.safetensors -b 1 -q
want 0 embed -m model --images shapes/train -o hup.safetensors -b 1 --save-every 1 -q
check "and goes on" cmp -s hup.safetensors whole.safetensors
(trap '' HUP; "$PENUMBRA" embed -m model --images shapes/train -o nohup.safetensors -b 1 -q \
    >out 2>err </dev/null & pid=$!; sleep 0.05; kill -HUP $pid; wait $pid)
check "what nohup started goes on" test $? -eq 0
(ulimit -f 2; exec "$PENUMBRA" embed -m model --images shapes/train -o big.safetensors -q >out 2>err)
check "a file size limit is an error" test $? -eq 1
says "File too large"
check "nothing is left" test -z "$(ls | grep '^big')"
"$PENUMBRA" embed -m model --text a -o full.jsonl >/dev/full 2>err
check "a full standard output is an error" test $? -eq 1
says "No space left on device"

# ---- names of outputs are looked at before the work ----
refused() { # TEXT ARGS...: fails with the text before anything was embedded
    local text=$1
    shift
    run "$@"
    n_checks=$((n_checks + 1))
    [ "$status" -eq 1 ] || [ "$status" -eq 2 ] || fail "exit status $status: penumbra $*"
    says "$text"
    check "nothing was done" test "$(grep -c embedding err)" -eq 0
}
mkdir folder readonly
chmod 500 readonly
refused "must end in .safetensors, .npy or .jsonl" embed -m model --images pictures -o x.pt
refused "must end in .safetensors, .npy or .jsonl" embed -m nomodel --images pictures -o x
refused "must end in .npy" embed -m model --images pictures -o x.safetensors --format npy
refused "must end in .safetensors" embed -m model --images pictures -o x.jsonl --format safetensors
refused "is a folder" embed -m model --images pictures -o folder
refused "there is no folder nowhere" embed -m model --images pictures -o nowhere/x.npy
printf '{"text":"a"}\n' >t.jsonl
refused "is the file that --texts reads" embed -m model --texts t.jsonl -o ./t.jsonl
ln t.jsonl linked.jsonl
refused "is the file that --texts reads" embed -m model --texts t.jsonl -o linked.jsonl
printf '{"text":"a"}\n' >t.ids.jsonl
refused "which names its rows, is an input" embed -m model --texts t.ids.jsonl -o t.npy
check "the captions are still there" grep -q text t.ids.jsonl
if [ "$(id -u)" -ne 0 ]; then
    refused "Permission denied" embed -m model --images pictures -o readonly/x.npy
fi
want 0 embed -m model --text a b -o texts.safetensors -q
cp texts.safetensors images.safetensors && cp texts.ids.jsonl images.ids.jsonl
refused "would write the same file" curate duplicates --set texts.safetensors --keep k.txt --drop ./k.txt
refused "there is no folder" calibrate --images images.safetensors --texts texts.safetensors \
    --out nowhere/c.json
refused "there is no folder" report --images images.safetensors --texts texts.safetensors \
    --out nowhere/r.html
refused "is the file that --images reads" report --images images.safetensors \
    --texts texts.safetensors --out images.safetensors
refused "is a file; a folder is wanted" init --config tiny --tokenizer tok.json --out t.jsonl
refused "is a folder; a file is wanted" eval retrieval --images images.safetensors \
    --texts texts.safetensors --output folder
refused "must end in one of .npy" filter --images images.safetensors --texts texts.safetensors \
    --uids kept.txt

# ---- standard output: the set and nothing else ----
want 0 embed -m model --text a b -o two.npy -q
for to in - /dev/stdout; do
    "$PENUMBRA" embed -m model --text a b -o $to >piped.safetensors 2>err
    check "to $to" test $? -eq 0
    says "rows"
    want 0 search --index piped.safetensors -m model --query-text a --measure mean --json
    prints '"id": "0"'
    prints '"score": 1.0'
    "$PENUMBRA" embed -m model --text a b -o $to --format jsonl --json 2>err | cat >piped.jsonl
    check "two rows" test "$(grep -c '"mean"' piped.jsonl)" -eq 2 -a "$(wc -l <piped.jsonl)" -eq 2
    { echo before; "$PENUMBRA" embed -m model --text a b -o $to --format npy -q; } 2>err >piped.npy
    check "a stream is added to" grep -qa '^before' piped.npy
    tail -c +8 piped.npy >rest.npy
    check "npy: the means, then the log-variances" \
        eval 'cat two.npy two_logvar.npy | cmp -s - rest.npy'
done
check "no file of names, no journal" test ! -e ./-.ids.jsonl -a ! -e ./-.journal -a ! -e ./-
"$PENUMBRA" embed -m model --images special -o - --format npy 2>err >piped.npy
code=$?
check "what is skipped is told, found $code" test $code -eq 3 -o $code -eq 0
finish
