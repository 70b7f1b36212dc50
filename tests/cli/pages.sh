#!/bin/bash
# Every HTML page: it opens with the question and the answer, lists its sections, fits a telephone,
# offers each figure as SVG and its data as CSV, and needs neither network nor script. How a browser
# lays the pages out is checked by tools/check-pages, run here too where a chromium is installed.
source "$(dirname "$0")/common/lib.sh"

make_small
want 0 embed -m model --images shapes/test --out i.safetensors -q
want 0 embed -m model --texts shapes/test/captions.jsonl --out t.safetensors -q
pairs=shapes/truth/test.pairs

want 0 report --images i.safetensors --texts t.safetensors --truth $pairs --out report.html
want 0 report --texts t.safetensors --out levels.html
want 0 embed -m model --images shapes/train --out all.safetensors -q
want 0 embed -m model --images shapes/train --masked --out hidden.safetensors -q
want 0 calibrate --images all.safetensors --texts hidden.safetensors --holdout 0.5 --alphas 0.1 \
    --bins 3 --out c.json --plot calibrate.html
want 0 filter --images i.safetensors --texts t.safetensors --pairs $pairs --top 0.5 \
    --list kept.jsonl --preview filter.html
want 0 explain -m model --text 'a red star above a ring' --images shapes/test --cell 4 \
    --html explain.html
want 0 probe -m model --images shapes/test --texts shapes/test/captions.jsonl --shares 0 0.5 \
    --limit 6 --html probe.html
want 0 probe -m model --texts shapes/test/captions.jsonl --shares 0 0.5 --limit 6 \
    --html captions.html
want 0 search --index i.safetensors -m model --query-text 'a red star' 'a <b>blue</b> ring' -k 3 \
    --html search.html --json
check "the result names the page" grep -q '"html": *"search.html"' out
want 0 search --index t.safetensors --queries i.safetensors -k 3 --html search_pictures.html

want 0 classify -m model --images i.safetensors --classnames circle,square,star --templates simple \
    --html classify.html
awk -F'"' 'NR > 0 { split("circle square star", c, " "); print $4 "\t" c[1 + NR % 3] }' i.ids.jsonl >labels.tsv
awk '{ print $1 "\t" (NR % 2 ? "odd" : "even") }' labels.tsv >groups.tsv
want 0 classify -m model --images i.safetensors --classnames circle,square,star --templates simple \
    --labels labels.tsv --groups groups.tsv -o labelled.json --html labelled.html

# page NAME: what holds for all of them.
page() {
    local page=$1.html line
    sed 's/base64,[^"]*//g' "$page" >plain
    for part in '<p class="asked">Asked: ' '<p class="answer">' '<ul class="contents">' \
        '<meta name="viewport" content="width=device-width'; do
        check "$page has $part" grep -qF "$part" plain
    done
    check "$page: the answer comes first" test "$(grep -n 'class="answer"' plain | cut -d: -f1)" -lt \
        "$(grep -n '<section' plain | head -1 | cut -d: -f1)"
    check "$page: no outside resource" test "$(grep -cE '(src|href)="?(https?:)?//' plain)" -eq 0
    check "$page: no script" test "$(grep -c '<script' plain)" -eq 0
    check "$page: no broken number" test "$(grep -cE '="-?(nan|inf)|[^a-z]nan[^a-z]' plain)" -eq 0
    check "$page: every contents entry has its section" \
        test "$(grep -oE '<li><a href="#s[0-9]+"' plain | wc -l)" -eq "$(grep -c '<section id=' plain)"
    # A figure is a chart: as many of them as links to save one, and each with its data.
    check "$page: every figure can be saved" \
        test "$(grep -c '<figure class="chart' plain)" -eq "$(grep -o 'download="[a-z0-9-]*.svg"' plain | wc -l)"
    check "$page: with its data" \
        test "$(grep -c '<figure class="chart' plain)" -eq "$(grep -o 'download="[a-z0-9-]*.csv"' plain | wc -l)"
    # 390 pixels: no width in pixels beyond it, tables in a box that scrolls, drawings that shrink.
    check "$page: nothing asks for more than 390 pixels" \
        test "$(grep -oE 'style="[^"]*' plain | grep -oE '(min-)?width: *[0-9]+' |
            awk -F: '$2 > 358' | wc -l)" -eq 0
    check "$page: tables scroll by themselves" \
        test "$(grep -oE '.{21}<table' plain | grep -cv '<div class="scroll"><table')" -eq 0
    check "$page: drawings keep their shape" \
        test "$(grep -oE '<svg [^>]*role' plain | grep -cv viewBox)" -eq 0
    check "$page: and shrink" grep -q 'figure.chart svg{display:block;width:100%;max-width:100%' plain
    check "$page: light and dark" grep -q 'prefers-color-scheme:dark' plain
}

for name in report levels calibrate filter explain probe captions search search_pictures classify \
    labelled; do
    page $name
done

# Pictures open the pages that have them, the best before the worst.
for name in report filter probe calibrate search classify labelled; do
    check "$name.html opens with pictures" \
        test "$(grep -n '<img' $name.html | head -1 | cut -d: -f1)" -lt \
        "$(grep -n '<section' $name.html | head -1 | cut -d: -f1)"
done
check "best before worst" test "$(grep -n 'Fails worst' report.html | cut -d: -f1)" -gt \
    "$(grep -n 'Works best\|Fails worst' report.html | head -1 | cut -d: -f1)" -o \
    "$(grep -c 'Works best' report.html)" -eq 0
# Figures are those of the result, where labels give any.
check "accuracy of the page is the result's" python3 - <<'END'
import json, re
m, page = json.load(open("labelled.json"))["metrics"], open("labelled.html", encoding="utf-8").read()
said = re.search(r"([\d.]+)% \[([\d.]+), ([\d.]+)\] of the pictures with a label", page).groups()
assert said == tuple("%.1f" % (100 * m[k]) for k in ("acc1", "acc1_low", "acc1_high")), said
END
head -1 labels.tsv >one.tsv
want 0 classify -m model --images i.safetensors --classnames circle,square,star --templates simple \
    --labels one.tsv --html one.html
check "one picture has no interval" test "$(grep -c '\[nan' one.html)" -eq 0
check "every picture once, the surest and the least sure one twice" \
    test "$(grep -o '<img' labelled.html | wc -l)" -eq "$(($(wc -l <i.ids.jsonl) + 2))"
for part in 'Does it know?' 'Groups' 'Weakest classes'; do
    check "labels give $part" grep -qF "$part</h2>" labelled.html
    check "none without them: $part" test "$(grep -cF "$part" classify.html)" -eq 0
done
check "a query is text, not HTML" grep -qF 'a &lt;b&gt;blue' search.html

# A saved figure stands alone; its data are those of the chart.
link() { grep -oE "download=\"$2\.$3\" href=\"data:[^\"]*" "$1" | sed 's/.*base64,//' | base64 -d; }
link calibrate.html probability-of-pairs svg >f.svg
link calibrate.html probability-of-pairs csv >f.csv
check "it is SVG" grep -q '^<svg viewBox=' f.svg
check "without the page's variables" test "$(grep -c 'var(--' f.svg)" -eq 0
check "the data have names" grep -q '^series,mark,.*share that matches' f.csv
check "and rows" test "$(wc -l <f.csv)" -ge 3
if command -v xmllint >/dev/null; then check "it is XML" xmllint --noout f.svg; fi

check "the map lies over the picture" grep -qE '<image [^>]*href="data:image/png' explain.html
check "with a colour bar" grep -qE '>removes [0-9.e+-]+</text>' explain.html
check "probe says what H > 0 means" grep -qF 'What H &gt; 0 means' probe.html
check "probe draws intervals" grep -qF 'class="whisker' probe.html
check "and prints them" grep -qE '% <span class="soft">\[[0-9.]+, [0-9.]+\]' probe.html
check "log axes say so" grep -qF ', log scale</text>' report.html

# Names, not codes: a picture of a data set is called by its caption.
check "no bare ids in the search" test \
    "$(grep -cE '<figcaption><b>[0-9a-f]{4,}[-0-9a-f]*</b>' search.html)" -eq 0

if command -v chromium >/dev/null; then
    check "a browser finds nothing beside the screen" \
        "$PNB_SOURCE_DIR/tools/check-pages" report.html explain.html search.html
fi
finish
