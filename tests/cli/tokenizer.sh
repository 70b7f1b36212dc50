#!/bin/bash
# penumbra tokenizer encode | decode: ids and pieces, cutting, ids back to text, every kind of file, wrong uses.
source "$(dirname "$0")/common/lib.sh"
golden=$PNB_SOURCE_DIR/tests/golden/tokenizers
clip=$golden/clip_bpe/tiny_merges.txt
unigram=$golden/sp_unigram400/tokenizer.model

want 0 tokenizer encode --tokenizer "$clip" --text 'A dog &amp; “x”'
prints "<start_of_text>"
prints "dog</w>"
prints "&</w>"
says "1 captions, "
says "0 captions were cut"
want 0 tokenizer encode --tokenizer "$clip" --text 'a photo of two dogs' --context-length 4
prints "cut from"
says "1 captions were cut"

want 0 tokenizer encode --tokenizer "$unigram" --text 'two dogs' 'zwei hunde' --context-length 8 --json -q
prints '"n_texts": 2'
prints '"pad_id": 1, "vocab_size": 400'
prints '"text": "two dogs", "n_tokens": 4, "n_total": 4, "truncated": false, "ids": [16, 28, 80, 1, 1, 1, 1, 1]'
prints '"pieces": ["▁t", "wo", "▁dogs", "</s>", "</s>"'
want 0 tokenizer decode --tokenizer "$unigram" --text '16 28, 80 1'
check "the text comes back" test "$(cat out)" = "two dogs"

printf 'two dogs\nred\n' >texts.txt
want 0 tokenizer encode --tokenizer "$unigram" --texts texts.txt -q
cp out from_file
"$PENUMBRA" tokenizer encode --tokenizer "$unigram" -q <texts.txt >out 2>err || fail "standard input"
check "standard input is the default" cmp -s out from_file
printf 'two dogs\n\xff\xfe\n' >bad.txt
want 3 tokenizer encode --tokenizer "$unigram" --texts bad.txt
says "caption"

make_small
want 0 tokenizer encode --model model --text 'a red star' --json
ids=$(grep -o '"ids": \[[^]]*\]' out | grep -o '[0-9]\+' | wc -l)
tokens=$(grep -o '"n_tokens": [0-9]*' out | head -1 | grep -o '[0-9]*$')
check "the row has the model's context length: $ids ids, $tokens tokens" test "$ids" -gt "$tokens"
want 0 tokenizer encode --tokenizer tok.json --text 'a red star' --json
check "a tokenizer alone pads nothing" \
    test "$(grep -o '"ids": \[[^]]*\]' out | grep -o '[0-9]\+' | wc -l)" -eq "$tokens"
want 0 bench tokenize --tokenizer "$unigram" --texts texts.txt --seconds 0 --repeats 2 --json
prints '"mb_per_s"'

wrong() { # STATUS TEXT ARGS...
    want "$1" tokenizer "${@:3}"
    says "$2"
    check "nothing on standard output" test ! -s out
}
wrong 2 "one of --model and --tokenizer" encode --text a
wrong 2 "only one of --model and --tokenizer" encode --model m --tokenizer t --text a
wrong 1 "spiece.model" encode --tokenizer . --text a
wrong 1 "want ids" decode --tokenizer "$unigram" --text '1 x'
wrong 1 "the vocabulary has 0..399" decode --tokenizer "$unigram" --text '400'
wrong 1 "want at least 2" encode --tokenizer "$clip" --text a --context-length 1

# the word of release 0.1 goes on working, with a line that says the new one
want 0 tokenizer encode --tokenizer "$unigram" --text 'two dogs' --json -q
cp out now
want 0 tokenize --tokenizer "$unigram" --text 'two dogs' --json -q
check "tokenize is tokenizer encode" cmp -s out now
says 'warning: `penumbra tokenize` is now `penumbra tokenizer encode` or `penumbra tokenizer decode`'
want 0 tokenize --tokenizer "$unigram" --decode --text '16 28, 80 1'
check "and tokenizer decode" test "$(cat out)" = "two dogs"
finish
