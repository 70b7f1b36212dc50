#!/bin/bash
# Helpers of the command-line tests. PENUMBRA is the program; every test runs in its own folder.
set -u
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
n_checks=0
n_failed=0

# run ARGS...: runs the program; leaves out, err (files) and status.
run() {
    printf '%s\t' "$@" >>"$work/.calls"
    echo >>"$work/.calls"
    "$PENUMBRA" "$@" >out 2>err </dev/null
    status=$?
}

fail() {
    n_failed=$((n_failed + 1))
    echo "FAILED: $*"
    echo "--- stdout"; head -20 out
    echo "--- stderr"; head -20 err
}

# want STATUS ARGS...: runs and checks the exit status.
want() {
    local wanted=$1
    shift
    n_checks=$((n_checks + 1))
    run "$@"
    [ "$status" -eq "$wanted" ] || fail "exit status $status instead of $wanted: penumbra $*"
}

# says TEXT / prints TEXT: the last run wrote it to standard error / output.
says() {
    n_checks=$((n_checks + 1))
    grep -qF -- "$1" err || fail "'$1' is not on standard error"
}
prints() {
    n_checks=$((n_checks + 1))
    grep -qF -- "$1" out || fail "'$1' is not on standard output"
}

# check DESCRIPTION COMMAND...: the command succeeds.
check() {
    local what=$1
    shift
    n_checks=$((n_checks + 1))
    "$@" || fail "$what"
}

# every_option COMMAND...: this script gave each option of the command's own help to it at least once.
every_option() {
    local long short
    want 0 "$@" --help
    awk -v its="$(printf '%s\t' "$@")" 'index($0, its) == 1' "$work/.calls" | tr '\t' '\n' |
        sed 's/=.*//' >given
    while read -r long short; do
        check "an option of $*, $long, is tried" grep -qxE -- "$long${short:+|$short}" given
    done < <(sed '/^Common options/,$d' out |
        sed -nE 's/^  (-(.), )?(--[a-z][a-z-]*).*/\3 \1/p' | tr -d ,)
}

# has_keys KEY...: the last run printed a JSON object with these names; a.b is b inside a, and a
# table is looked at by its first row.
has_keys() {
    check "the JSON has $*" python3 -c '
import json, sys
for path in sys.argv[1:]:
    value = json.load(open("out"))
    for key in path.split("."):
        value = value[0] if isinstance(value, list) else value
        assert key in value, path
        value = value[key]' "$@"
}

# A model of a few thousand weights, a tokenizer and a small data set.
small_config='{"embed_dim":16,"vision_cfg":{"layers":1,"width":32,"head_width":16},"text_cfg":{"layers":1,"width":32,"heads":2}}'
make_small() {
    want 0 data shapes --out shapes --n 40 --shard-size 20 --val-share 0.2 --test-share 0.2 -q
    want 0 tokenizer train --captions shapes/train/captions.jsonl --vocab-size 300 --out tok.json
    want 0 init --config tiny --override "$small_config" --tokenizer tok.json --out model -q
}

# SPLIT [N]: the pictures of that part of make_small's shapes, or its first N, in pictures/.
make_pictures() {
    mkdir -p pictures
    tar -xf "shapes/$1/00000.tar" -C pictures --wildcards '*.png'
    if [ $# -gt 1 ]; then
        rm $(ls -d pictures/* | tail -n +$(($2 + 1)))
    fi
}

# Ends the test as skipped where the build has no collections.
needs_sqlite() {
    run collection create probe
    if grep -q "needs\? SQLite" err; then
        exit 77
    fi
}

# Sets written byte by byte: f32 numbers, lowest byte first.
zero='\0\0\0\0' one='\0\0\200\077' minus_one='\0\0\200\277' two='\0\0\0\100'
eight='\0\0\0\101' nan='\0\0\300\177'
point_set() { # NAME WIDTH NUMBERS...: rows of means, called r0, r1, ...
    local name=$1 width=$2 numbers rows header i
    shift 2
    rows=$(($# / width))
    numbers=$(printf '%s' "$@")
    header="{\"mean\":{\"dtype\":\"F32\",\"shape\":[$rows,$width],\"data_offsets\":[0,$((4 * $#))]}}"
    printf "\\x$(printf %x ${#header})\\0\\0\\0\\0\\0\\0\\0%s$numbers" "$header" >"$name.safetensors"
    for ((i = 0; i < rows; i++)); do echo "{\"id\":\"r$i\"}"; done >"$name.ids.jsonl"
}

# family_set NAME FAMILY ARRAYS DATA: a set of four rows of width 2
family_set() {
    local header="{\"__metadata__\":{\"format_version\":\"1\",\"family\":\"$2\"},$3}"
    while [ $((${#header} % 8)) -ne 0 ]; do header="$header "; done
    # shellcheck disable=SC2059  # the formats are the bytes
    {
        printf "$(printf '\\x%02x\\x%02x' $((${#header} % 256)) $((${#header} / 256)))$zero\\0\\0"
        printf '%s' "$header"
        printf "$4"
    } >"$1.safetensors"
    for i in 0 1 2 3; do echo "{\"id\":\"$1$i\"}"; done >"$1.ids.jsonl"
}
wide() { printf '"%s":{"dtype":"F32","shape":[4,2],"data_offsets":[%d,%d]}' "$1" "$2" $(($2 + 32)); }
per_row() { printf '"%s":{"dtype":"F32","shape":[4],"data_offsets":[%d,%d]}' "$1" "$2" $(($2 + 16)); }

# One set of each family: points, vmf, power, generalised. The last but one row of vmf is uniform.
make_families() {
    local means="$one$zero$zero$one$minus_one$zero$zero$minus_one" # four directions of the plane
    local i wide_data=
    for i in 1 2 3 4 5 6 7 8; do wide_data=$wide_data$eight; done
    family_set points point "$(wide mean 0)" "$means"
    family_set vmf vmf "$(wide mean 0),$(per_row kappa 32)" "$means$two$eight$zero$eight"
    family_set power power_spherical "$(wide mean 0),$(per_row kappa 32)" \
        "$means$two$eight$zero$eight"
    family_set generalised gen_gaussian "$(wide mean 0),$(wide inv_alpha 32),$(wide beta 64)" \
        "$means$wide_data$two$two$two$two$two$one$one$one"
}

# ECCV Caption's folder: the sets pictures and captions, 10 pictures of 5 captions each with every
# caption at its picture's place, the lists in eccv/, and labels of the pictures in vectors.csv.
make_eccv() {
    local i d t numbers=() texts=() list header
    mkdir eccv
    for ((i = 0; i < 10; i++)); do
        for ((d = 0; d < 10; d++)); do
            if [ $d -eq $i ]; then numbers+=("$one"); else numbers+=("$zero"); fi
        done
    done
    for ((t = 0; t < 50; t++)); do texts+=("${numbers[@]:$((10 * (t / 5))):10}"); done
    point_set pictures 10 "${numbers[@]}"
    point_set captions 10 "${texts[@]}"
    seq 100 109 | sed 's/.*/{"id":"COCO_val2014_000000000&.jpg"}/' >pictures.ids.jsonl
    seq 0 49 | sed 's/.*/{"id":"&"}/' >captions.ids.jsonl
    for list in original cxc; do # the five captions of each picture, and the other way round
        seq 0 9 | awk '{ printf "%s\"%d\":[%d,%d,%d,%d,%d]", (NR > 1 ? "," : "{"), 100 + $1, 5 * $1,
            5 * $1 + 1, 5 * $1 + 2, 5 * $1 + 3, 5 * $1 + 4 } END { print "}" }' \
            >"eccv/${list}_image_to_caption.json"
        seq 0 49 | awk '{ printf "%s\"%d\":[%d]", (NR > 1 ? "," : "{"), $1, 100 + int($1 / 5) }
            END { print "}" }' >"eccv/${list}_caption_to_image.json"
    done
    echo '{"100":[0,1,45,9999]}' >eccv/eccv_image_to_caption.json
    echo '{"3":[100,109]}' >eccv/eccv_caption_to_image.json
    {
        header="{'descr': '<i8', 'fortran_order': False, 'shape': (50,), }"
        printf '\223NUMPY\001\0\166\0%-117s\n' "$header"
        for ((t = 0; t < 50; t++)); do printf "\\x$(printf %x $t)\\0\\0\\0\\0\\0\\0\\0"; done
    } >eccv/coco_test_ids.npy
    {
        echo id,cat,dog,sun,sea
        seq 100 109 | awk '{ print $1 "," ($1 % 2) ",0,0," ($1 > 104) }'
    } >vectors.csv
}

# Karpathy's form of those pictures, six in test and four in val, one caption each: karpathy.json.
make_karpathy() {
    seq 0 9 | awk '{ printf "%s{\"filename\":\"COCO_val2014_000000000%d.jpg\",\"split\":\"%s\",\"sentences\":[{\"sentid\":%d}]}",
        (NR > 1 ? "," : "{\"images\":["), 100 + $1, ($1 < 6 ? "test" : "val"), 5 * $1 } END { print "]}" }' >karpathy.json
}

# COCO's annotations of three pictures of 64 x 64 in instances.json, two segments each; of the
# pictures in pictures/, taken from the shapes of make_small, the third is cut short.
make_coco() {
    local i n=0 comma=
    {
        printf '{"categories":[{"id":1,"name":"shape"},{"id":2,"name":"ground"}],"images":['
        for i in 1 2 3; do
            printf '%s{"id":%d,"file_name":"p%d.png","width":64,"height":64}' "$comma" $i $i
            comma=,
        done
        printf '],"annotations":['
        comma=
        for i in 1 2 3; do
            printf '%s{"id":%d,"image_id":%d,"category_id":1,"iscrowd":0,"segmentation":[[8,8,40,8,40,40,8,40]]}' \
                "$comma" $((2 * i)) $i
            comma=,
            printf ',{"id":%d,"image_id":%d,"category_id":2,"iscrowd":0,"segmentation":{"size":[64,64],"counts":[2048,1024,1024]}}' \
                $((2 * i + 1)) $i
        done
        printf ']}\n'
    } >instances.json
    mkdir pictures unpacked
    tar -xf shapes/test/00000.tar -C unpacked
    for i in unpacked/*.png; do
        n=$((n + 1))
        [ $n -gt 2 ] || mv "$i" pictures/p$n.png
    done
    head -c 50 pictures/p1.png >pictures/p3.png
}

finish() {
    [ "$n_checks" -gt 0 ] || { echo "no check ran"; exit 1; }
    echo "$((n_checks - n_failed)) of $n_checks checks passed"
    [ "$n_failed" -eq 0 ]
    exit $?
}
