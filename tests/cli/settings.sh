#!/bin/bash
# Options set beforehand: command line over environment over config file over default, and what is
# refused.
source "$(dirname "$0")/common/lib.sh"
export HOME=$work XDG_CONFIG_HOME=$work/config
mkdir -p config/penumbra
config=config/penumbra/config
want 0 data shapes --out shapes --n 12 -q

# seed of a data set, by where it was set: its captions tell
made() {
    rm -rf out_set
    "$PENUMBRA" data shapes --n 12 --out out_set -q "$@" >out 2>err </dev/null || return 1
    cat out_set/*/captions.jsonl | sha256sum
}
default=$(made)
one=$(made --seed 1)
two=$(made --seed 2)
three=$(made --seed 3)
check "seeds differ" test "$default" != "$one" -a "$one" != "$two" -a "$two" != "$three"
check "from the environment" test "$(PENUMBRA_SEED=1 made)" = "$one"
check "the command line wins" test "$(PENUMBRA_SEED=1 made --seed 2)" = "$two"
echo '# mine
seed = 3' >$config
check "from the file" test "$(made)" = "$three"
check "the environment wins" test "$(PENUMBRA_SEED=1 made)" = "$one"
check "the command line too" test "$(made --seed 2)" = "$two"
check "an empty variable is none" test "$(PENUMBRA_SEED='' made)" = "$three"
printf 'seed = 3\n[data shapes]\nseed = 2\n[train]\nseed = 1\n' >$config
check "the section of the command wins" test "$(made)" = "$two"
printf '[data]\nseed = 1\n' >$config
check "the family speaks for its members" test "$(made)" = "$one"
echo 'seed = 1' >other.conf
check "another file" test "$(PENUMBRA_CONFIG=other.conf made)" = "$one"
rm $config

# the mask of instruction sets
PENUMBRA_CPU=generic want 0 tokenizer train --captions shapes/train/captions.jsonl --vocab-size 300 --out cpu.json -q
PENUMBRA_CPU=sse9 want 1 tokenizer train --captions shapes/train/captions.jsonl --vocab-size 300 --out cpu.json
says "PENUMBRA_CPU: instruction set 'sse9' is unknown; known are auto, generic, avx2"

# flags, and options of one command only
PENUMBRA_JSON=true want 0 tokenizer train --captions shapes/train/captions.jsonl --vocab-size 300 --out t.json
check "a flag" grep -q '^{' out
PENUMBRA_JSON=true want 0 tokenizer train --captions shapes/train/captions.jsonl --vocab-size 300 --out t.json --json=false
check "taken back" test "$(grep -c '^{' out)" -eq 0
PENUMBRA_VOCAB_SIZE=310 want 0 tokenizer train --captions shapes/train/captions.jsonl --out t.json
PENUMBRA_VOCAB_SIZE=310 want 0 data shapes --out s2 --n 12 -q

# refused by name
PENUMBRA_SEDE=1 want 2 data shapes --out x
says "PENUMBRA_SEDE: no command has an option --sede"
PENUMBRA_SEED=abc want 2 data shapes --out x
says "PENUMBRA_SEED: --seed abc: a whole number is wanted"
PENUMBRA_JSON=yes want 2 data shapes --out x
says "PENUMBRA_JSON: --json 'yes': true or false is wanted"
PENUMBRA_DEVICE=gpu want 2 data shapes --out x
says "there are cpu, ref, cuda, cuda:1"
PENUMBRA_TEXTS=a.txt want 2 embed -m model --out x.safetensors
says "PENUMBRA_TEXTS: --texts takes several words"
PENUMBRA_CONFIG=nowhere want 1 data shapes --out x
says "nowhere"
refuses() {
    printf '%s\n' "$1" >$config
    want 2 data shapes --out x
    says "$2"
}
refuses 'sed = 1' "config:1: no command has an option --sed"
refuses 'seed 1' "config:1: 'seed 1' is no setting"
refuses '[data shape]' "config:1: there is no command 'data shape'"
refuses '[data' "config:1: '[data' is no section"
refuses '# one

seed = x' "config:3: --seed x: a whole number is wanted"
printf 'seed = 1\0\n' >$config
want 2 data shapes --out x
says "NUL byte"
check "nothing was made" test ! -e x

# words of release 0.1: their sections and options go on, under the new word too
rm -f "$config"
want 0 tokenizer train --captions shapes/train/captions.jsonl --vocab-size 300 --out tok.json -q
want 0 init --config tiny --override "$small_config" --tokenizer tok.json --out m -q
want 0 embed -m m --images shapes/test --out set.safetensors -q
printf '[duplicates]\nmin-score = 0.123\n[include]\nfind = inside\n[tokenize]\ncontext-length = 5\n' >$config
want 0 data shapes --out s3 --n 12 -q
for words in "duplicates" "curate duplicates"; do
    # shellcheck disable=SC2086  # one word or two
    want 0 $words --set set.safetensors
    prints "0.1230"
done
want 0 include --index set.safetensors --queries set.safetensors --json
prints '"direction": "inside"'
want 0 search --index set.safetensors --queries set.safetensors -k 2
want 0 tokenizer encode --tokenizer tok.json --text 'a red star above a blue ring' --json
prints '"truncated": true'

# a byte order mark and CRLF, as editors elsewhere write them
printf '\xef\xbb\xbfthreads = 1\r\n[tokenizer]\r\ncontext-length = 3\r\n' >marked
PENUMBRA_CONFIG=marked want 0 tokenizer encode --tokenizer tok.json --text 'a red star above a blue ring' --json
prints '"truncated": true'

# help does not need a good file
want 0 data shapes --help
want 0 --help
prints "PENUMBRA_CONFIG"
finish
