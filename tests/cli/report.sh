#!/bin/bash
# report: what stands on the page, from which inputs, its figures beside those of eval retrieval, and
# what it refuses. How pages look is pages.sh's.
source "$(dirname "$0")/common/lib.sh"
make_small
want 0 embed -m model --images shapes/test -o i.safetensors -q
want 0 embed -m model --texts shapes/test/captions.jsonl -o t.safetensors -q
want 0 embed -m model --images shapes/test --masked -o im.safetensors -q
want 0 embed -m model --texts shapes/test/captions.jsonl --masked -o tm.safetensors -q
want 0 init --config tiny --override "$small_config" --tokenizer tok.json --seed 1 --out other -q
want 0 embed -m other --images shapes/test -o oi.safetensors -q
want 0 embed -m other --texts shapes/test/captions.jsonl -o o.safetensors -q
truth=shapes/truth/test.pairs

want 0 report --images i.safetensors --texts t.safetensors --truth $truth \
    --masked-images im.safetensors --out r.html --title 'a <b> & "c"' --json
has_keys out bytes n_missing_images
check "as many bytes as were told" test "$(sed -n 's/.*"bytes": \([0-9]*\).*/\1/p' out)" -eq "$(stat -c %s r.html)"
check "the title is escaped" grep -qF 'a &lt;b&gt; &amp; &quot;c&quot;' r.html
check "no outside resource" test "$(grep -cE '(src|href)="?(https?:)?//' r.html)" -eq 0
check "no broken number" test "$(grep -cE '="-?(nan|inf)' r.html)" -eq 0
check "pictures are inside" grep -qF 'data:image/png;base64,' r.html

for heading in "Answering only when certain" "Do probabilities hold?" \
    "Does a longer caption say more?"; do
    check "the section $heading" grep -qF ">$heading<" r.html
done
check "no classes where a picture has many captions of a level" \
    test "$(grep -c 'Zero-shot classes' r.html)" -eq 0

# Four classes of pictures, taken in turn, and texts that say nothing.
for i in 0 1 2 3; do printf '{"id":"c%d","level":0,"text":"kind %d"}\n' $i $i; done >classes.jsonl
sed -n 's/.*"id": *"\([^"]*\)".*/\1/p' i.ids.jsonl |
    awk '{printf "%s\tc%d\n", $1, NR % 4}' >classes.pairs
want 0 embed -m model --texts classes.jsonl -o c.safetensors -q
want 0 embed -m model --text "" "a picture" "something" -o null.safetensors -q
want 0 report --images i.safetensors --texts c.safetensors --truth classes.pairs \
    --null-texts null.safetensors --out classes.html
n_pictures=$(grep -c . i.ids.jsonl)
check "classes stand in a table" grep -qE \
    'level 0</td><td class="n">4</td><td class="n">[0-9.]+%</td><td class="n">' classes.html
check "two of four are taken away" grep -qF '2 classes known, 2 taken away' classes.html
for rule in dummy margin threshold score uncertainty; do
    check "rejection by $rule" grep -qF "<tr><td>$rule</td>" classes.html
done
check "a way to the root for eight pictures or all" \
    test "$(grep -c '</td><td>kind [0-3] ' classes.html)" -eq $((n_pictures < 8 ? n_pictures : 8))
want 0 report --images i.safetensors --texts c.safetensors --truth classes.pairs \
    --null-texts null.safetensors --out few.html --examples 3
check "--examples: for three" test "$(grep -c '</td><td>kind [0-3] ' few.html)" -eq 3
want 1 report --images i.safetensors --texts t.safetensors --truth $truth \
    --null-texts o.safetensors --out other.html
says "weights"
check "no report of sets that do not belong together" test ! -e other.html

# a control: the same sets by another model
want 0 report --images i.safetensors --texts t.safetensors --truth $truth \
    --masked-images im.safetensors --masked-texts tm.safetensors --control-images oi.safetensors \
    --control-texts o.safetensors --bootstrap 0 --out control.html
check "a column of the control" test "$(grep -ci control control.html)" -gt "$(grep -ci control r.html)"
want 0 embed -m other --images shapes/test --masked -o oim.safetensors -q
want 0 embed -m other --texts shapes/test/captions.jsonl --masked -o otm.safetensors -q
want 0 report --texts t.safetensors --masked-texts tm.safetensors --control-texts o.safetensors \
    --control-masked-texts otm.safetensors --out masked.html
want 0 report --images i.safetensors --texts t.safetensors --truth $truth --masked-images im.safetensors \
    --control-images oi.safetensors --control-texts o.safetensors \
    --control-masked-images oim.safetensors --bootstrap 0 --out masked.html
want 1 report --images i.safetensors --texts t.safetensors --truth $truth --masked-images t.safetensors \
    --out none.html
says "masked"

# one level, one measure
want 0 report --images i.safetensors --texts t.safetensors --truth $truth --truth-format pairs \
    --level 3 --measure w2 --bootstrap 0 --out level.html
check "ranked by w2" grep -q "ranked by w2" level.html
want 1 report --images i.safetensors --texts t.safetensors --truth $truth --truth-format coco --out none.html
# class folders: two pictures of each of four classes, a caption each
n=0
for id in $(sed -n 's/.*"id": *"\([^"]*\)".*/\1/p' i.ids.jsonl); do
    mkdir -p folders/c$((n % 4))
    echo "picture $n" >folders/c$((n % 4))/$id.txt
    echo "{\"id\":\"$id#0\",\"text\":\"picture $n\"}"
    n=$((n + 1))
done >own.jsonl
want 0 embed -m model --texts own.jsonl -o own.safetensors -q
pairs_of() { # OPTIONS...: how many pairs the report's figures are of
    want 0 report --images i.safetensors --texts own.safetensors --truth folders --bootstrap 0 \
        --out own.html --output own.json "$@"
    n_pairs=$(sed -n 's/.*"n_pairs": *\([0-9]*\).*/\1/p' own.json)
}
pairs_of
check "each picture and its caption" test "$n_pairs" -eq 8
pairs_of --by-class
check "--by-class: and the other one of the class" test "$n_pairs" -eq 16

# the figures are eval retrieval's
shared=(--truth $truth --recall-k 5 7 --uncertainty geo_std --bootstrap 30 --bins 4
    --binning equal_width --bin-by hit --dataset shapes)
want 0 eval retrieval --images i.safetensors --texts t.safetensors "${shared[@]}" --csv one.csv \
    --markdown one.md --output one.json
want 0 report --images i.safetensors --texts t.safetensors "${shared[@]}" --out page.html \
    --csv page.csv --markdown page.md --output '{dataset}_page.json'
for end in csv md; do check "the report's $end is eval retrieval's" cmp one.$end page.$end; done
check "and its JSON" cmp one.json shapes_page.json
check "the page has other bins" grep -q 'by the uncertainty of what they found into bins of equal width' page.html
check "the headline has the first cut-off" grep -q 'find a right picture among the first 5 and' page.html
check "the page names the data" grep -q 'on shapes' page.html
want 2 report --run none --csv page.csv --out none.html
says "are of the figures of --images and --texts"

# lists of ECCV Caption, labels of pictures, a split, clusters
make_eccv
want 0 report --images pictures.safetensors --texts captions.safetensors --eccv eccv \
    --label-vectors vectors.csv --out lists.html
check "figures of the lists on the page" grep -q '<td class="soft">ECCV mAP@R</td>' lists.html
check "and of the labels" grep -q '<td class="soft">PMRP</td>' lists.html
make_karpathy
want 0 report --images pictures.safetensors --texts captions.safetensors --truth karpathy.json \
    --split val --cluster id --out val.html
says "split val: 4 of 10 pictures and 4 of 50 captions"
check "the unit is the field" grep -q 'id' val.html
want 2 report --images pictures.safetensors --texts captions.safetensors --split val --out none.html
says "--split is a part"

# sets of every family: the measure and the uncertainty that are theirs
make_families
families() { # SET MEASURE
    want 0 report --images points.safetensors --texts "$1.safetensors" --out "$1.html" --bins 2
    check "report of $1 ranks by $2" grep -q "ranked by $2," "$1.html"
    check "and has every figure with its interval" grep -qE 'RSUM, all recalls both ways: [0-9.]+ \[' "$1.html"
    check "no broken number in it" test "$(grep -cE '="-?(nan|inf)' "$1.html")" -eq 0
}
families vmf vmf
families power power_spherical
families generalised csd
families points csd
want 0 report --images vmf.safetensors --texts vmf.safetensors --measure vmf_exact --out exact.html
check "report takes a measure" grep -q "ranked by vmf_exact," exact.html
check "and says what its uncertainty is" grep -q "uncertainty (1/kappa)" exact.html
want 1 report --images vmf.safetensors --texts vmf.safetensors --measure csd --out none.html
says "family vmf; use mean, avg_l2, match_prob, or vmf or vmf_exact"
check "and writes nothing then" test ! -e none.html

# a run: curves of its results
mkdir run
for step in 1 2 3; do
    printf '{"kind":"train","step":%d,"loss":%d.5,"lr":0.001,"image_uncertainty":0.1,"text_uncertainty":0.2}\n' \
        $step $((4 - step))
done >run/results.jsonl
printf '{"kind":"eval","step":3,"val_loss":2.25,"i2t_r1":0.25,"t2i_r1":0.5}\n{"kind":"tr' >>run/results.jsonl
want 0 report --run run -o run.html
check "where it ended" grep -qF 'The loss ended at 1.5, 2.25 on the validation set, where 50.0% of the captions find their picture first' run.html
for title in "Total loss" "Recall at 1 on the validation set" "Mean uncertainty" "Learning rate"; do
    check "the chart $title" grep -qF ">$title<" run.html
done
mkdir fresh && : >fresh/results.jsonl
want 1 report --run fresh --out none.html
says "fresh/results.jsonl: no record of a step in it"
want 1 report --run nowhere --out none.html
says "nowhere/results.jsonl"

# what is refused
want 2 report --out none.html
says "--run, or --texts with --images, is wanted"
want 2 report --run run --images i.safetensors --out none.html
says "--images needs --texts"
want 2 report --texts t.safetensors
says "--out FILE is missing"
want 2 report --texts t.safetensors --out none.html --examples 0
says "--examples 0: must be between"
want 1 report --texts nowhere.safetensors --out none.html
says "nowhere.safetensors"
check "nothing was written" test ! -e none.html

want 0 report --images i.safetensors --texts t.safetensors --truth $truth --bootstrap 0 \
    --measure match_prob --samples 2 --match-a 4 --match-b 3 --out match.html
check "match_prob is a probability by constants that were given" grep -qE '[ >]p = [01]\.[0-9]{2}' match.html
want 0 report --images i.safetensors --texts t.safetensors --truth $truth --bootstrap 0 \
    --measure match_prob --samples 2 --out match.html
check "and none by those of nobody" test "$(grep -cE '[ >]p = [01]\.[0-9]{2}' match.html)" -eq 0
want 2 report --images i.safetensors --texts t.safetensors --truth $truth --samples 2 --out no.html
says "--samples belongs to the measures avg_l2 and match_prob"
want 1 report --images i.safetensors --texts t.safetensors --class-key id --out no.html
says "--class-key id: no query shares its label"
want 1 report --images i.safetensors --texts t.safetensors --truth $truth --methods none --text-entropy entropy_bits \
    --out none.html
says "none/table.json"
every_option report
finish
