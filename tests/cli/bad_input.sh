#!/bin/bash
# Damaged and hostile models, sets and disks: exit status 1, the culprit named, nothing half-written.
source "$(dirname "$0")/common/lib.sh"
make_small
want 0 embed -m model --text a b -o old.safetensors -q
cp old.safetensors before.safetensors

refuses() { # TEXT: the model in bad/ is refused with it, and no output appears
    want 1 embed -m bad --text a -o new.safetensors
    says "$1"
    check "no half output" test ! -e new.safetensors -a ! -e new.ids.jsonl
    rm -rf bad
}
copy() { cp -r model bad && rm -f bad/model.safetensors.sha256; }

copy; sed -i 's/"embed_dim"/"embed_dimm"/' bad/config.json; refuses embed_dim
copy; sed -i 's/"width": *32/"width": 48/' bad/config.json; refuses "bad"
copy; echo '{' >bad/config.json; refuses config.json
copy; rm bad/config.json; refuses config.json
copy; rm bad/model.safetensors; refuses model.safetensors
copy; head -c 5 model/model.safetensors >bad/model.safetensors; refuses model.safetensors
copy; truncate -s -8 bad/model.safetensors; refuses model.safetensors
copy; printf '\377\377\377\377\377\377\377\177' | dd of=bad/model.safetensors conv=notrunc \
    status=none; refuses model.safetensors
copy; printf '\020\0\0\0\0\0\0\0{"a":1}         ' >bad/model.safetensors; refuses model.safetensors
# every weight NaN: the data part starts behind the header
copy
header=$(od -An -tu8 -N8 bad/model.safetensors | tr -d ' ')
size=$(stat -c %s bad/model.safetensors)
head -c $((size - header - 8)) /dev/zero | tr '\0' '\377' |
    dd of=bad/model.safetensors bs=1M seek=$((header + 8)) oflag=seek_bytes conv=notrunc status=none
refuses "NaN or infinity"
copy; echo 'not json' >bad/tokenizer.json; refuses tokenizer.json

# a picture that claims 50,000 x 50,000 pixels is skipped before anything is allocated
printf '\211PNG\r\n\032\n\0\0\0\rIHDR\0\0\303\120\0\0\303\120\010\002\0\0\0' >huge.png
tar -xf shapes/test/00000.tar --wildcards '*.png'
want 3 embed -m model --images huge.png 0*.png -o some.safetensors
says "huge.png"
# a size that only the limit on bombs stops: refused from the header, and the option is named
printf '\211PNG\r\n\032\n\0\0\0\rIHDR\0\0\100\0\0\0\100\0\020\002\0\0\0\166\072\133\220' >bomb.png
head -c 2000000 /dev/zero >>bomb.png
want 1 embed -m model --images bomb.png -o none.safetensors
says "16384x16384 pixels"
says "--max-image-pixels"
want 1 embed -m model --images 0*.png -o none.safetensors --max-image-pixels 100
says "the limit is 100 in all"
want 2 embed -m model --images 0*.png -o none.safetensors --max-image-pixels 0

# a full disk: the writer may not grow a file past one block; what was there stays
for target in old.safetensors report.html; do
    [ -n "${PNB_NO_FILE_LIMIT:-}" ] && break
    (
        trap '' XFSZ
        ulimit -f 1
        case $target in
        *.html) "$PENUMBRA" report --texts old.safetensors --images some.safetensors -o $target ;;
        *) "$PENUMBRA" embed -m model --images shapes/train -o $target ;;
        esac
    ) >out 2>err </dev/null
    status=$?
    n_checks=$((n_checks + 1))
    [ "$status" -eq 1 ] || fail "a full disk gives status $status instead of 1 for $target"
done
check "the old file is whole" cmp -s old.safetensors before.safetensors
check "no half report" test ! -e report.html

# sets: rows that are not numbers, names that are another set's
cp old.safetensors nan.safetensors
cp old.ids.jsonl nan.ids.jsonl
printf '\377\377\377\377' | dd of=nan.safetensors bs=1 seek=$(($(stat -c %s nan.safetensors) - 4)) \
    conv=notrunc status=none
want 1 info nan.safetensors
says "nan.safetensors"
want 1 data shapes --out model --n 5
check "a folder with something else in it stays" test -e model/config.json
finish
