#!/bin/bash
# traverse: sets, words, HierarCaps files, and what does not go together.
source "$(dirname "$0")/common/lib.sh"
make_small
want 0 embed -m model --images shapes/test -o i.safetensors -q
want 0 embed -m model --texts shapes/test/captions.jsonl -o t.safetensors -q

# a HierarCaps file about two of the pictures
first=$(sed -n 's/^{"id": *"\([^"]*\)".*/\1/p' i.ids.jsonl | sed -n 1p)
second=$(sed -n 's/^{"id": *"\([^"]*\)".*/\1/p' i.ids.jsonl | sed -n 2p)
check "pictures have ids" test -n "$first" -a -n "$second"
cat >h.csv <<CSV
id,captions,image_url
$first,"something=>a star=>a red star, large",http://host/$first.png
no-such-id,something=>a ring=>a blue ring,http://host/$second.png
CSV
want 0 traverse --images i.safetensors --texts t.safetensors -m model
prints "from the picture to the root"
prints "caption that includes it most"
want 0 traverse --images i.safetensors --texts t.safetensors --json
prints '"root": "including"'
want 0 traverse --images i.safetensors --truth h.csv -m model --released --steps 7 --json
prints '"root_recall_at_1"'
prints '"n_images": 2'
prints '"stops_before_root": true'
prints '"including": "published"'
want 0 traverse --query-image shapes/test --text 'a star' 'a red star' 'a ring' -m model \
    --root null --show 1 --measure csd --from-picture
want 0 traverse --images i.safetensors --truth h.csv -m model --show 0 --including h
prints "precision"
want 2 traverse --images i.safetensors --texts t.safetensors --root average
says "--root including does without"
want 2 traverse --images i.safetensors --truth h.csv
says "--model is missing"
want 2 traverse --images i.safetensors
says "captions are missing"
want 2 traverse --images i.safetensors --texts t.safetensors -m model --root null --including h
says "--including does nothing"
want 2 traverse --images i.safetensors --texts t.safetensors --tokenizer tok.json
says "--model, which is missing"
want 2 traverse --texts t.safetensors
says "one of --images and --query-image"
want 1 traverse --images i.safetensors --texts t.safetensors --truth h.csv
says "is not in the caption set"
printf 'id,captions,image_url\n1,one level only,u\n' >bad.csv
want 1 traverse --images i.safetensors --truth bad.csv -m model
says 'no "=>"'
printf 'id,captions,image_url\nnobody,a=>b,http://x/nothing.jpg\n' >bad.csv
want 1 traverse --images i.safetensors --truth bad.csv -m model
says "none of the 1 pictures"

# every picture twice, drawn by scenes, has the intervals of every picture once
mkdir -p raw once twice
for shard in shapes/test/*.tar; do tar -xf "$shard" -C raw; done
i=0
for picture in raw/*.png; do
    cp "$picture" once/$i.png
    cp "$picture" twice/a_$i.png
    cp "$picture" twice/b_$i.png
    i=$((i + 1))
done
for set in once twice; do
    want 0 embed -m model --images $set -o $set.safetensors -q
    {
        echo id,captions,image_url
        sed 's/.*"id": *"\([^"]*\)".*/\1/' $set.ids.jsonl | awk '{ s = $1; gsub(/[^0-9]/, "", s)
            print $1 ",something=>a star=>" (s % 2 ? "a red star" : "a ring") ",http://host/x.png" }'
    } >$set.csv
done
sed 's/\("id": *"[ab]_\([^"]*\)"\)/\1, "scene": "\2"/' twice.ids.jsonl >scenes && cp scenes twice.ids.jsonl
figures() { sed -n '/"figures"/,/]/p' out; }
want 0 traverse --images once.safetensors --truth once.csv -m model --show 0 --json
figures >once.txt
prints '"unit": "picture with its captions"'
want 0 traverse --images twice.safetensors --truth twice.csv -m model --show 0 --json
check "drawn one by one they have others" test "$(figures)" != "$(cat once.txt)"
want 0 traverse --images twice.safetensors --truth twice.csv -m model --show 0 --json --cluster scene
check "scenes of equal pictures have the intervals of single ones" cmp <(figures) once.txt
prints '"unit": "pictures of one \"scene\""'
prints "\"n_clusters\": $i"
want 1 traverse --images once.safetensors --truth once.csv -m model --cluster scene
says "has no such field"
want 2 traverse --images once.safetensors --texts t.safetensors --cluster scene
says "--cluster is of the intervals against --truth"

want 0 init --config tiny --override "$small_config" --tokenizer tok.json --seed 1 --out other -q
want 1 traverse --images i.safetensors --texts t.safetensors -m other
says "weights"
finish
