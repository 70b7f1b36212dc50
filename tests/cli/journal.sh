#!/bin/bash
# embed killed, or failed by the disk, at every single step of a job's life: writing a part, joining,
# removing the journal. The next run always ends with the rows of an undisturbed one.
source "$(dirname "$0")/common/lib.sh"
make_small
{ PNB_DISK_FAULT=0 "$PENUMBRA" embed -m model --text a -o probe.safetensors -q >out 2>err; } \
    2>/dev/null
[ $? -eq 0 ] && exit 77 # a build without PNB_FAULTS

make_pictures test 3
job="embed -m model --images pictures -b 1 --save-every 1 -q"

# killed_at STEP ARGS... / failed_at STEP ARGS...: leaves status
killed_at() {
    { PNB_DISK_FAULT=$1 "$PENUMBRA" "${@:2}" >out 2>err </dev/null; } 2>/dev/null
    status=$?
}
failed_at() {
    PNB_DISK_FAULT=$1:28 "$PENUMBRA" "${@:2}" >out 2>err </dev/null
    status=$?
}
same_set() { # A B ENDING: two sets with the same bytes
    cmp -s "$1.$3" "$2.$3" && cmp -s "$1.ids.jsonl" "$2.ids.jsonl"
}
is_clean() { # nothing but what was there before and the sets named
    [ -z "$(find . -name '*.tmp-*' -o -name '*.old-*' -o -name '*.journal')" ]
}

# killed before every step
want 0 $job -o whole.safetensors
step=0
while killed_at $step $job -o x.safetensors; [ "$status" -ne 0 ]; do
    check "step $step: killed" test "$status" -eq 137
    [ ! -e x.safetensors ] || check "step $step: a set that is there is whole" same_set x whole safetensors
    want 0 $job -o x.safetensors
    check "step $step: the rows are those of one go" same_set x whole safetensors
    check "step $step: no journal is left" test ! -e x.safetensors.journal
    rm -f x.*
    step=$((step + 1))
    [ $step -lt 200 ] || break
done
check "a job has many steps, found $step" test $step -gt 35 -a $step -lt 200

# the disk is full at every step: said with the reason, nothing left lying about, the next run ends
for ((n = 0; n < step; n++)); do
    failed_at $n $job -o y.safetensors
    if [ "$status" -ne 0 ]; then
        says "No space left on device"
        check "step $n: no half set" test ! -e y.safetensors
    fi
    check "step $n: nothing temporary is left" test -z "$(find . -name '*.tmp-*' -o -name '*.old-*')"
    [ $((n % 3)) -eq 0 ] || { rm -rf y.*; continue; } # killed runs above are continued at every step
    want 0 $job -o y.safetensors
    check "step $n: the rows are those of one go" same_set y whole safetensors
    rm -rf y.*
done
check "nothing temporary is left" is_clean

# a set of several .npy files over an older one: never old numbers beside new names
want 0 embed -m model --text old older -o old.npy -q
want 0 embed -m model --text new newer -o new.npy -q
one_writing() { # the set z is wholly the old or the new one, or is not there
    [ -e z.npy ] || return 0
    for of in old new; do
        cmp -s z.npy $of.npy && cmp -s z_logvar.npy ${of}_logvar.npy &&
            cmp -s z.ids.jsonl $of.ids.jsonl && return 0
    done
    return 1
}
npy_step=0
while rm -rf z*; cp old.npy z.npy; cp old_logvar.npy z_logvar.npy; cp old.ids.jsonl z.ids.jsonl
    [ ! -e old.json ] || cp old.json z.json
    killed_at $npy_step embed -m model --text new newer -o z.npy -q; [ "$status" -ne 0 ]; do
    check "npy step $npy_step, killed: old or new, not both" one_writing
    rm -rf z*; cp old.npy z.npy; cp old_logvar.npy z_logvar.npy; cp old.ids.jsonl z.ids.jsonl
    [ ! -e old.json ] || cp old.json z.json
    failed_at $npy_step embed -m model --text new newer -o z.npy -q
    [ "$status" -eq 0 ] || check "npy step $npy_step, failed: the old set is whole" \
        cmp -s z.ids.jsonl old.ids.jsonl
    check "npy step $npy_step, failed: old or new, and there" eval 'one_writing && [ -e z.npy ]'
    check "nothing temporary is left" test -z "$(find . -maxdepth 1 -name '*.tmp-*')"
    npy_step=$((npy_step + 1))
    [ $npy_step -lt 200 ] || break
done
check "found $npy_step steps" test $npy_step -gt 9 -a $npy_step -lt 200
rm -rf z*

# a step at which two parts are recorded
for ((half = 5; half < step; half++)); do
    rm -rf h.*
    killed_at $half $job -o h.safetensors
    [ "$(cat h.safetensors.journal/parts.jsonl 2>/dev/null | wc -l)" -ge 2 ] && break
done
cut_short() { # OUT ARGS...: killed with two parts on the disk
    rm -rf "$1".*
    killed_at $half "${@:2}" -o "$1.safetensors"
    check "two parts are kept" test "$(wc -l <"$1.safetensors.journal/parts.jsonl")" -ge 2
}
continues() { says "continuing after 2 of 3 inputs"; }
begins_anew() { check "begins anew: $1" test "$(grep -c continuing err)" -eq 0; }
loud=${job% -q}

cut_short h $job
want 0 $loud -o h.safetensors
continues
check "the same rows" same_set h whole safetensors

# damaged journals: a part, its names or a line missing or torn
damage() { # WHAT COMMAND...
    cut_short h $job
    (cd h.safetensors.journal && "${@:2}")
    want 0 $job -o h.safetensors
    check "$1: the rows are those of one go" same_set h whole safetensors
    check "$1: the journal is gone" test ! -e h.safetensors.journal
}
damage "first part missing" rm part-00000.safetensors
damage "last part missing" rm part-00001.safetensors
damage "names of a part missing" rm part-00000.ids.jsonl
damage "part torn" truncate -s 100 part-00001.safetensors
damage "parts exchanged" mv part-00000.safetensors part-00001.safetensors
damage "line torn" truncate -s -5 parts.jsonl
damage "line of another job" sed -i '1s/part-00000/..\/part-00000/' parts.jsonl
damage "job file missing" rm job
damage "nothing but the lock" rm -f job parts.jsonl part-00000.safetensors part-00001.safetensors
mkdir own.safetensors.journal
echo mine >own.safetensors.journal/notes.txt
want 0 $job -o own.safetensors
check "a stranger's file stays" test -s own.safetensors.journal/notes.txt
rm -r own.safetensors.journal

# a picture replaced between the runs, with the same size and time: its row is made again
first=$(ls -d pictures/* | head -1)
mkdir spare
tar -xf shapes/train/00000.tar -C spare --wildcards '*.png'
other=$(ls -dSr spare/* | head -1) # a smaller file: bytes behind a PNG do no harm
check "there is a smaller picture" test "$(stat -c %s "$other")" -le "$(stat -c %s "$first")"
replace() {
    touch -r "$first" stamp
    cp "$other" "$first"
    truncate -s "$(stat -c %s saved.png)" "$first"
    touch -r stamp "$first"
}
cp -p "$first" saved.png
printf 'filepath\ttitle\n' >table.csv
for p in pictures/*; do
    printf '%s\tx\n' "$p" >>table.csv
    printf '{"image":"%s","caption":"x"}\n' "$p" >>lines.jsonl
done
for source in pictures "$(echo pictures/*.png)" table.csv lines.jsonl; do
    cp -p saved.png "$first"
    replaced="embed -m model --images $source -b 1 --save-every 1 -q"
    cut_short h $replaced
    replace
    want 0 ${replaced% -q} -o h.safetensors
    says "continuing after 1 of 3 inputs" # the part of the picture that stayed
    want 0 $replaced -o fresh.safetensors
    check "$source: the replaced picture's row is the new one" same_set h fresh safetensors
done
cp -p saved.png "$first"
tar -cf shard.tar -C pictures .
shard="embed -m model --images shard.tar -b 1 --save-every 1 -q"
cut_short h $shard
replace
tar -cf shard.tar -C pictures .
want 0 $shard -o h.safetensors
want 0 $shard -o fresh.safetensors
check "the replaced shard's rows are the new ones" same_set h fresh safetensors
cp -p saved.png "$first"
last=$(ls -d pictures/* | sed -n 3p)
cut_short h $job # only the part of a replaced picture is made again
cp -p "$last" late.png && cp "$other" "$last"
want 0 $loud -o h.safetensors
continues
cp -p late.png "$last"

# whatever changes a row changes the job
cp tok.json other.json
for change in "--device ref" "--batch-invariant" "--masked" "--exif" "-b 2" "--seed 4"; do
    cut_short h $job
    want 0 $loud $change -o h.safetensors
    begins_anew "$change"
done
cut_short h $job --masked --mask-keep 0.3
want 0 $loud --masked --mask-keep 0.30000001 -o h.safetensors
begins_anew "--mask-keep"
printf 'a\nb\nc\n' >captions.txt
texts="embed -m model --texts captions.txt -b 1 --save-every 1"
cut_short h $texts -q
want 0 $texts -o h.safetensors
continues
cut_short h $texts -q
want 0 $texts --tokenizer other.json -o h.safetensors
begins_anew "--tokenizer"
cut_short h $texts -q
sed -i 's/b/d/' captions.txt
want 0 $texts -o h.safetensors
begins_anew "another caption"
finish
