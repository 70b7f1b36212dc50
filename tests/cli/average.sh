#!/bin/bash
# average: number by number between two models and over more, what is carried, what is refused.
source "$(dirname "$0")/common/lib.sh"
config='{"embed_dim": 8, "vision_cfg": {"width": 8, "head_width": 4, "image_size": 8, "patch_size": 4, "layers": 1}, "text_cfg": {"width": 8, "heads": 2, "layers": 1, "vocab_size": 20, "context_length": 6}}'
for seed in 1 2 3; do
    want 0 init --config tiny --override "$config" --out "m$seed" --seed "$seed" -q
done
want 0 average m1 m2 --alpha 0.25 --out quarter --json
has_keys dir n_models first_share n_carried
prints '"n_models": 2'
want 0 average m1 m2 --alpha 0 --out same -q
want 0 average m1 m2 m3 --out soup -q
check "shares of every array" python3 - <<'PY'
import array, json, struct
def load(name):
    data = open(name + "/model.safetensors", "rb").read()
    n = struct.unpack("<Q", data[:8])[0]
    head = json.loads(data[8:8 + n])
    return {k: array.array("f", data[8 + n + v["data_offsets"][0]:8 + n + v["data_offsets"][1]])
            for k, v in head.items() if k != "__metadata__"}
one, two, three, quarter, same, soup = map(load, ("m1", "m2", "m3", "quarter", "same", "soup"))
assert one.keys() == quarter.keys() == soup.keys() and one != two
near = lambda x, y: abs(x - y) <= 1e-6 * (1 + abs(y))
for k in one:
    for a, b, c, q, s in zip(one[k], two[k], three[k], quarter[k], soup[k]):
        assert near(q, 0.75 * a + 0.25 * b), (k, a, b, q)
        assert near(s, (a + b + c) / 3), (k, a, b, c, s)
assert same == one
PY
want 0 info quarter -q
check "preprocessing is carried" test -f quarter/preprocessor_config.json

want 1 average m1 m2 --out quarter
says "holds a model already"
want 0 init --config tiny --override "${config/\"layers\": 1/\"layers\": 2}" --out deep -q
want 1 average m1 deep --out new
says "deep: its configuration is not that of the first model"

# words by their numbers: the same numbers of other words, rules or texts are another model
printf 'a red star\ntwo blue circles\n' >one.txt
printf 'a red star\ntwo blue squares\n' >two.txt
for words in one two; do
    want 0 tokenizer train --captions $words.txt --kind word --vocab-size 20 --out $words.json -q
done
for m in t1 t2 t3; do cp -r m1 $m; done
cp one.json t1/tokenizer.json
cp one.json t2/tokenizer.json
cp two.json t3/tokenizer.json
want 0 average t1 t2 --out alike -q
check "the tokenizer is carried" cmp -s one.json alike/tokenizer.json
want 0 average t1 m2 --out without
says "m2 has no tokenizer that is read here, and t1 has one"
want 0 average m2 t1 --out first_without
says "and it is not carried, since the first model's files are"
check "nor is it" test ! -e first_without/tokenizer.json
want 0 average m1 m2 --out neither
check "where none has one nothing is said" test ! -s err
want 1 average t1 t2 t3 --out new
says "t3: its tokenizer is not that of the first model: id "
says '"circles" there, '
echo '{' >t3/tokenizer.json
want 1 average t1 t3 --out new
says "t3/tokenizer.json"
mkdir lora
cp m1/model.safetensors lora/adapter_model.safetensors
echo '{"peft_type": "LORA"}' >lora/adapter_config.json
want 1 average m1 lora --out new
says 'lora is a LoRA adapter, not a model; `penumbra convert BASE --lora lora --out DIR` makes a model of both'
want 1 average lora m1 --out new
says "lora is a LoRA adapter, not a model"
want 0 average m1 m2 --alpha 1.5 --out beyond -q
want 2 average m1 --out new
says "two model folders and more"
want 2 average m1 m2 m3 --alpha 0.3 --out new
says "have equal shares"
want 1 average m1 gone --out new
want 2 average m1 m2
want 0 average --help
prints "below 0 and above 1"
check "nothing was written" test ! -e new
finish
