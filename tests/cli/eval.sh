#!/bin/bash
# eval retrieval and compare: files of results, truth in other people's formats, sets and files that
# do not fit. The sets come from a small model; what is checked is plumbing, not quality.
source "$(dirname "$0")/common/lib.sh"
make_small
want 0 embed -m model --images shapes/test -o i.safetensors -q
want 0 embed -m model --texts shapes/test/captions.jsonl -o t.safetensors -q
truth=shapes/truth/test.pairs
retrieval() { # STATUS OPTIONS...
    local status=$1
    shift
    want "$status" eval retrieval --images i.safetensors --texts t.safetensors --bootstrap 50 "$@"
}

# the result in all its forms
retrieval 0 --truth $truth --bins 4 --dataset 'my/shapes' --json \
    --output '{dataset}_{model}_{language}_{task}.json' --csv r.csv --markdown r.md
for key in '"dataset": "my/shapes"' '"pretrained"' '"task": "zeroshot_retrieval"' \
    '"language": "en"' '"image_retrieval_recall@5"' '"text_retrieval_recall@10"' \
    '"minus_s_r2"' '"risk_coverage"' '"augrc"' '"ece"' '"nlpd"' '"i2t_low"' '"weights_sha256"' '"by_hit"'; do
    prints "$key"
done
check "the commit of the program, or null outside a repository" \
    grep -qE '"git": (null|"[0-9a-f]{40}(-changed)?")' out
check "the output file is the printed result" cmp -s out my_shapes_*_en_zeroshot_retrieval.json
check "a csv line for recall@1 both ways" test "$(grep -c ',recall@1,' r.csv)" -eq 2
check "a csv line by query and by hit" test "$(grep -c 'text_to_image,aurc,' r.csv)" -eq 2
check "a csv line for RSUM" test "$(grep -c ',both,rsum,,[0-9.]*,[0-9.]*,[0-9.]*,' r.csv)" -eq 1
check "RSUM in the table, once for both ways" test "$(grep -c 'RSUM\|| |' r.md)" -eq 2
check "all csv lines have 17 fields" test "$(awk -F, 'NF != 17' r.csv | wc -l)" -eq 0
check "every csv line says what was resampled" \
    test "$(grep -vc ',picture with the captions of it alone$\|,clusters,unit$' r.csv)" -eq 0
check "and the table" grep -q 'intervals over [0-9]* clusters; a cluster is a picture' r.md
check "the table has two rows" test "$(grep -c '^| .* | \(image\|text\) to' r.md)" -eq 2
check "the table has intervals" grep -q '\[.*, .*\]' r.md
cp out first.json
retrieval 0 --truth $truth --bins 4 --dataset 'my/shapes' --json -t 1
check "one thread gives the same figures" \
    diff <(grep -v '"n_\|csv' first.json) <(grep -v '"n_\|csv' out)
for seed in 1 2; do
    retrieval 0 --truth $truth --seed $seed --csv seed$seed.csv
done
check "values do not depend on --seed" \
    diff <(cut -d, -f1-6 seed1.csv) <(cut -d, -f1-6 seed2.csv)
for figure in rsum recall@1; do
    check "resamples of $figure are drawn from --seed" \
        test "$(grep -h ",$figure," seed[12].csv | sort -u | wc -l)" -gt \
        "$(grep -c ",$figure," seed1.csv)"
done
retrieval 0 --truth $truth --bootstrap 0
prints "by chance"
check "no intervals without resamples" test "$(grep -c resamples out)" -eq 0
retrieval 0 --truth $truth --bootstrap 0 --json --csv bare.csv --markdown bare.md
for key in '"auroc"' '"aurc"' '"augrc"' '"ece"' '"ece_debiased"' '"nlpd"' '"query_spearman"' \
    '"by_hit"' '"figure": "map_at_r"'; do
    prints "$key"
done
cp out bare.json
retrieval 0 --truth $truth --json --csv full.csv
check "--bootstrap 0 drops intervals only" \
    diff <(cut -d, -f1-6 bare.csv) <(cut -d, -f1-6 full.csv)
check "and gives none" test "$(tail -n +2 bare.csv | cut -d, -f7,8 | sort -u)" = ,
check "the table without brackets" test "$(grep -c '\[' bare.md)" -eq 0
retrieval 0 --truth $truth --bin-by hit --binning equal_width --recall-k 1 1000
prints "R@1000"
retrieval 1 --truth $truth --output '{set}.json'
says "{set} is unknown"
retrieval 1 --truth $truth --csv no/such/folder/r.csv
says "no/such/folder"
retrieval 2 --split test
retrieval 2 --truth $truth --truth-format xml

# what is resampled together
retrieval 0 --truth $truth --json
prints '"unit": "'
prints '"n_clusters"'
awk '{ sub(/}$/, ", \"scene\": " int(NR / 2) "}"); print }' i.ids.jsonl >scene.jsonl
cp i.safetensors j.safetensors && cp scene.jsonl j.ids.jsonl
want 0 eval retrieval --images j.safetensors --texts t.safetensors --truth $truth --bootstrap 50 \
    --cluster scene --json
prints '"unit": "rows of one \"scene\""'
prints '"key": "scene"'
retrieval 1 --truth $truth --cluster scene
says "row 0 of i.safetensors has no such field"
want 0 eval compare --images i.safetensors i.safetensors --texts t.safetensors t.safetensors \
    --names a b --truth $truth --bootstrap 0 --markdown bare.md
prints "resampled unit"
check "a comparison without resamples has no intervals" test "$(grep -c '\[' bare.md)" -eq 0

# truth of other people
coco() { # COCO captions of two pictures, by their ids
    local a b
    a=$(sed -n '1s/.*"id": *"\([^"]*\)".*/\1/p' i.ids.jsonl)
    b=$(sed -n '2s/.*"id": *"\([^"]*\)".*/\1/p' i.ids.jsonl)
    printf '{"images":[{"id":1,"file_name":"%s.jpg"},{"id":2,"file_name":"%s.jpg"},' "$a" "$b"
    printf '{"id":3,"file_name":"absent.jpg"}],"annotations":['
    printf '{"id":11,"image_id":1,"caption":"%s"},' "$(caption 1)"
    printf '{"id":12,"image_id":2,"caption":"%s"},{"id":13,"image_id":3,"caption":"nothing"}]}' \
        "$(caption 6)"
}
caption() { sed -n "$1s/.*\"text\": *\"\([^\"]*\)\".*/\1/p" t.ids.jsonl; }
coco >captions.json
retrieval 0 --truth captions.json --json
says "1 of its 3 pictures and 1 of its 3 captions are in no row"
says "bins instead of 10"
prints '"text_retrieval_n_queries": 2'
retrieval 0 --truth shapes/test --json # the data set itself
prints '"n_pairs"'
cp out dataset.json
retrieval 0 --truth $truth --json
check "tars and pairs give one result" \
    diff <(grep recall@ dataset.json) <(grep recall@ out)
retrieval 1 --truth captions.json --split test
says "no splits"
retrieval 1 --truth captions.json --truth-format hierarcaps
retrieval 1 --eccv .
says "original_image_to_caption.json"
retrieval 1 --truth $truth --label-vectors captions.json
says "categories"

# what does not fit
: >empty.pairs
retrieval 1 --truth empty.pairs
says "no pairs"
echo '{"images":[],"annotations":[]}' >empty.json
retrieval 1 --truth empty.json
says "no pair fits"
points() { # STATUS A B OPTIONS...
    local status=$1 a=$2 b=$3
    shift 3
    want "$status" eval retrieval --images "$a.safetensors" --texts "$b.safetensors" "$@"
}
point_set unit 2 "$one" "$zero" "$zero" "$one"
point_set long 2 "$two" "$zero" "$zero" "$one"
point_set wide 3 "$one" "$zero" "$zero" "$zero" "$one" "$zero"
point_set broken 2 "$one" "$zero" "$nan" "$one"
points 0 unit unit --json # one class only: always right, all as certain
prints '"image_retrieval_recall@1": 1.0'
prints '"auroc": null'
prints '"minus_s_r2": 0.0'
points 0 long unit
says "not of unit length (row 0: 2)"
points 0 long unit --measure mean
check "mean normalises and does not warn" test ! -s err -o "$(grep -c 'unit length' err)" -eq 0
want 0 search --index long.safetensors --queries unit.safetensors
says "long.safetensors: the means of 1 of 2 rows are not of unit length (row 0: 2)"
want 0 search --index long.safetensors --queries unit.safetensors --measure mean
check "and search neither" test "$(grep -c 'unit length' err)" -eq 0
points 1 unit wide
says "unit.safetensors and wide.safetensors"
want 1 search --index unit.safetensors --queries wide.safetensors
says "unit.safetensors and wide.safetensors: embeddings of width 2 and 3"
want 1 report --images wide.safetensors --texts unit.safetensors --out none.html
says "unit.safetensors and wide.safetensors: embeddings of width 2 and 3"
points 1 broken unit
says "error: broken.safetensors: mean of row"
want 1 report --images broken.safetensors --texts unit.safetensors --out none.html
says "error: broken.safetensors: mean of row"
echo '{}' >empty.json
points 1 unit unit --truth empty.json
says "it names no picture"
printf 'r0#0\ta cat\nr1#0\ta dog\n' >captions.token
points 1 unit unit --truth captions.token
says "A caption of the file is called 'r0#0', one of the set 'r0'"
printf 'r0\tr0\nr1\tr1\nr0\tr0\n' >twice.pairs
points 0 unit unit --truth twice.pairs
says "1 pairs stand there more than once"
printf 'r0\tr1\nr0\tr7\n' >absent.pairs
points 1 unit unit --truth absent.pairs
says "'r7'"
printf '{"id":"r0"}\n{"id":"r0"}\n' >long.ids.jsonl
printf 'r0\tr0\n' >first.pairs
points 1 long unit --truth first.pairs
says "rows 0 and 1"
echo '{"images":[{"id":1,"file_name":"r0"}],"annotations":[{"id":5,"image_id":1}]}' >r0.json
points 1 long unit --truth r0.json
says "rows 0 and 1"

# another family: means and concentrations
sphere='{"mean":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},"kappa":{"dtype":"F32","shape":[2],"data_offsets":[16,24]}}'
printf "\\x$(printf %x ${#sphere})\\0\\0\\0\\0\\0\\0\\0%s$one$zero$zero$one$two$one" "$sphere" \
    >sphere.safetensors
cp unit.ids.jsonl sphere.ids.jsonl
points 0 unit sphere --measure vmf
prints "median rank"
points 1 unit sphere --measure kl
says "vmf"

# ECCV Caption's folder
make_eccv
points 0 pictures captions --eccv eccv --label-vectors vectors.csv --json
for key in coco_1k_r1 coco_5k_r10 cxc_r5 eccv_r1 eccv_map_at_r eccv_rprecision pmrp pmrp_interval pmrp_zeta2 \
    pmrp_1k pmrp_1k_zeta0_interval; do
    prints "\"$key\": {"
done
tr -d ' \n' <out >flat
# picture 100: captions 0 and 1 lead, 45 and the absent 9999 count in R = 4
check "positives that no row has stay in R" grep -q '"eccv_rprecision":{"i2t":0.5,"t2i":0.5}' flat
check "every caption finds its picture" grep -q '"coco_1k_r1":{"i2t":1.0,"t2i":1.0}' flat
check "intervals stand beside" grep -q '"coco_1k_r1_interval":{"i2t":\[0\.[0-9]*,1.0\],"t2i":\[0\.[0-9]*,1.0\]}' flat
check "an interval of each zeta" grep -q '"pmrp_zeta0_interval":{"i2t":\[' flat
for figure in coco_5k_r1 cxc_r10 eccv_map_at_r pmrp; do
    check "$figure among the figures" grep -q "\"figure\":\"$figure\",\"sorted_by\":\"\",\"i2t\":[^,]*,\"i2t_low\":[^,]*,\"i2t_high\"" flat
done
points 0 pictures captions --eccv eccv --label-vectors vectors.csv --seed 3 --csv coco.csv --markdown coco.md --json
cp out again
points 0 pictures captions --eccv eccv --label-vectors vectors.csv --seed 3 --json
check "the same with the same seed" cmp -s out again
check "figures of COCO in csv" grep -q ',image_to_text,coco_1k_r1,,1,0[.][0-9]*,1,,1,10,,,,,10,picture with its captions\?$' coco.csv
check "both ways, 22 each" test "$(grep -c ',coco_\|,cxc_\|,eccv_\|,pmrp' coco.csv)" -eq 44
check "as many fields as the head" test "$(awk -F, '{ print NF }' coco.csv | sort -u | wc -l)" -eq 1
check "figures of COCO in Markdown" grep -q '| 1K R@1 | 1.0000 \[[0-9.]*, 1.0000\] | 1.0000 \[[0-9.]*, 1.0000\] |' coco.md
points 0 pictures captions --eccv eccv --label-vectors vectors.csv --bootstrap 0 --json
check "no intervals without resamples" test "$(grep -c _interval out)" -eq 0
check "the bins stand at the top too" grep -q '"minus_s_r2":[^{]*"auroc"' flat
# several models take the same lists and labels
want 0 eval compare --images pictures.safetensors pictures.safetensors --names one two \
    --texts captions.safetensors captions.safetensors --eccv eccv --label-vectors vectors.csv \
    --bootstrap 50 --markdown both.md --json
tr -d ' \n' <out >flat
for figure in coco_1k_r1 coco_5k_r10 cxc_r1 eccv_map_at_r pmrp_zeta2; do
    check "$figure of both models" test "$(grep -o "\"figure\":\"$figure\",\"sorted_by\":\"\",\"model\":\"\(one\|two\)\"" flat | wc -l)" -eq 4
done
check "half of R, as of one model" grep -q '"figure":"eccv_rprecision","sorted_by":"","model":"two","seeds":1,"value":0.5,"std":null,"low":null,"high":null,"difference":0' flat
check "in Markdown with intervals" grep -q '| two | 1K R@1 | 1.0000 \[0[.][0-9]*, 1.0000\] | 1.0000 \[' both.md
# another model finds every third caption's neighbour: COCO 5K is the whole gallery, so its tests are
# those of recall, which other code resamples
texts=()
for ((t = 0; t < 50; t++)); do
    for ((d = 0; d < 10; d++)); do
        if [ $d -eq $(((t / 5 + (t % 3 == 0)) % 10)) ]; then texts+=("$one"); else texts+=("$zero"); fi
    done
done
point_set wrong 10 "${texts[@]}"
cp captions.ids.jsonl wrong.ids.jsonl
for resamples in 400 0; do
    want 0 eval compare --names one two two three same --images pictures.safetensors \
        pictures.safetensors pictures.safetensors pictures.safetensors pictures.safetensors --texts \
        captions.safetensors wrong.safetensors captions.safetensors wrong.safetensors \
        captions.safetensors --eccv eccv --label-vectors vectors.csv --bootstrap $resamples --seed 5 --csv tests.csv \
        --markdown tests.md --json
    fields() { sed -n "s/,$1,,/,,,/p" tests.csv; }
    check "COCO 5K has the intervals and tests of recall, $resamples resamples" \
        cmp <(fields 'recall@1') <(fields coco_5k_r1)
    check "a line of each model both ways" test "$(fields coco_5k_r1 | wc -l)" -eq 8
    if [ $resamples -gt 0 ]; then
        check "p of the second model" test "$(grep ',two,.*,pmrp,' tests.csv | cut -d, -f12-15 | grep -c '[0-9],[-0-9.]*,[-0-9.]*,[0-9]')" -eq 2
        check "a star where it differs" grep -q '| three | 5K R@1 | [^|]*[]][*] | [^|]*[]][*] |' tests.md
    else
        check "no p without resamples" test "$(tail -n +2 tests.csv | cut -d, -f13-15 | sort -u)" = ,,
    fi
done
make_karpathy
awk '{ while (sub(/"split"/, "\"cocoid\":" ++n ",\"SPLIT\"")) ; gsub("SPLIT", "split"); print }' karpathy.json >coco.json
points 0 pictures captions --truth coco.json --split test
says "no COCO 1K: its 5 folds are 1000 pictures each of a split of 5000, and coco.json (split test) has 6"
rm eccv/coco_test_ids.npy
points 0 pictures captions --eccv eccv
says "COCO 1K is left out"
prints "ECCV mAP@R"

# several models
want 0 init --config tiny --override "$small_config" --tokenizer tok.json --seed 7 --out other -q
want 0 embed -m other --images shapes/test -o i2.safetensors -q
want 0 embed -m other --texts shapes/test/captions.jsonl -o t2.safetensors -q
want 0 eval compare --images i.safetensors i2.safetensors --texts t.safetensors t2.safetensors \
    --truth $truth --bootstrap 40 --csv c.csv --markdown c.md --json
prints '"baseline": "i"'
want 0 eval compare --images i.safetensors i2.safetensors --texts t.safetensors t2.safetensors \
    --truth $truth --bootstrap 40 --seed 1 --csv c1.csv
for figure in rsum recall@1; do
    check "compare draws resamples of $figure from --seed" \
        test "$(grep -h ",$figure," c.csv c1.csv | sort -u | wc -l)" -gt \
        "$(grep -c ",$figure," c.csv)"
done
check "RSUM of both, the second tested" test "$(grep ',rsum,' c.csv | cut -d, -f15 | grep -c '[0-9]$')" -eq 1
check "two models both ways" test "$(grep -c ',recall@1,' c.csv)" -eq 4
check "p of the second only" test "$(grep ',recall@1,' c.csv | cut -d, -f15 | grep -c '^$')" -eq 2
want 0 eval compare --images i.safetensors i2.safetensors i.safetensors --texts t.safetensors \
    t2.safetensors t.safetensors --names ours ours base --truth $truth --bootstrap 40 --markdown s.md
prints "difference"
check "a spread over seeds" grep -q '±' s.md
want 1 eval compare --images i.safetensors i2.safetensors --texts t.safetensors t.safetensors \
    --truth $truth
says "weights"
want 0 embed -m model --images shapes/val -o v.safetensors -q
want 0 embed -m model --texts shapes/val/captions.jsonl -o vt.safetensors -q
want 1 eval compare --images i.safetensors v.safetensors --texts t.safetensors vt.safetensors \
    --truth $truth
want 2 eval compare --images i.safetensors i2.safetensors --texts t.safetensors --truth $truth

# compare and report take what eval retrieval takes; that report gives the same is report.sh's
options() { "$PENUMBRA" "$@" --help | grep -oE '^ +(-., )?--[a-z-]+' | grep -oE -- '--[a-z-]+' |
    grep -vx -- --rank-timeout | sort; } # the others work in one process
for command in "eval compare" report; do
    # shellcheck disable=SC2086
    check "$command takes every option of eval retrieval" \
        test -z "$(comm -23 <(options eval retrieval) <(options $command))"
done
shared=(--truth $truth --recall-k 5 7 --uncertainty geo_std --bootstrap 30 --bins 4
    --binning equal_width --bin-by hit --dataset shapes)
retrieval 0 "${shared[@]}" --output one.json
want 0 eval compare --images i.safetensors i2.safetensors i.safetensors --texts t.safetensors \
    t2.safetensors t.safetensors --names a b/c b/c "${shared[@]}" --output '{dataset}_{model}.json' --json
check "the output is the printed result" cmp out shapes_a+b_c.json
bins() { sed -n '/"bins": \[/,/\]/p' "$1" | grep -oE '"(u_mean|accuracy)": [^,]*' | sort -u; }
check "there are bins" test "$(bins one.json | wc -l)" -gt 6
check "those of a model are the same as alone" test -z "$(comm -23 <(bins one.json) <(bins out))"
check "and of every model and seed" test "$(sed -n '/"bins"/,/\]/p' out | grep -c '"seed": 1')" -gt 3
check "their orders" test "$(sed -n '/"orders"/,/\]/p' out | grep -c minus_s_r2)" -eq 4
prints '"binning": "equal_width"'
prints '"bin_by": "hit"'

# every similarity in one table
measures=(eval measures --images i.safetensors --texts t.safetensors --truth $truth)
want 0 "${measures[@]}" --json
has_keys measures.measure measures.floats_per_item measures.i2t_recall_at_1 \
    measures.t2i_r_precision measures.rsum samples match_a
check "the figures of eval retrieval, and the numbers a row costs" python3 - <<'END'
import json, subprocess, os
rows = {r["measure"]: r for r in json.load(open("out"))["measures"]}
dim = rows["mean"]["floats_per_item"]
assert rows["csd"]["floats_per_item"] == dim + 1 and rows["w2"]["floats_per_item"] == 2 * dim, rows
assert rows["match_prob"]["floats_per_item"] == 7 * dim and "vmf" not in rows, rows
for name in ("csd", "kl", "match_prob"):
    one = json.loads(subprocess.run(
        [os.environ["PENUMBRA"], "eval", "retrieval", "--images", "i.safetensors", "--texts",
         "t.safetensors", "--truth", "shapes/truth/test.pairs", "--bootstrap", "0", "--json",
         "--measure", name], check=True, capture_output=True).stdout)
    assert abs(one["metrics"]["rsum"] - rows[name]["rsum"]) < 1e-12, (name, one["metrics"])
END
want 0 "${measures[@]}" --measure mean match_prob --samples 3 --match-a 9
prints "floats an item"
check "two measures" test "$(grep -cE '^(csd|w2|mean|match_prob) ' out)" -eq 2
want 2 "${measures[@]}" --measure mean --samples 3
says "--samples belongs to avg_l2 and match_prob: neither is compared"
want 1 "${measures[@]}" --measure nonsense
says "nonsense"
want 1 "${measures[@]}" --measure vmf
says "measure vmf"
want 0 eval retrieval --images i.safetensors --texts t.safetensors --truth $truth --bootstrap 0 \
    --measure match_prob --samples 2 --json
prints '"samples": 2'

finish
