#!/bin/bash
# serve: the page in a real browser, on a desk and on a phone (tests/browser/page.c). Left out where
# chromium, chromium-driver or libcurl are missing.
source "$(dirname "$0")/common/lib.sh"
source "$(dirname "$0")/common/serve.sh"
for program in chromium chromedriver "${PNB_BROWSER_TEST:-libcurl}"; do
    command -v "$program" >/dev/null || {
        echo "skipped: $program is not installed"
        exit 77
    }
done
needs_sqlite
make_small
make_pictures train
for name in photos plain; do
    want 0 collection create $name --model model
    want 0 collection add $name --images pictures -q
done
want 0 collection create captions --model model
want 0 collection add captions --texts shapes/train/captions.jsonl -q
# An untrained model is sure of nothing. What its scores are worth is said here: five hits of the query
# that the test asks are likely in photos, none in plain.
want 0 embed -m model --images pictures -o i.safetensors -q
want 0 embed -m model --texts shapes/train/captions.jsonl -o t.safetensors -q
want 0 search --index i.safetensors --queries t.safetensors -k 1 --json
check "a truth" python3 - <<'END'
import json
hits, ids = json.load(open("out"))["hits"], [json.loads(line)["id"] for line in open("t.ids.jsonl")]
open("own.pairs", "w").writelines("%s\t%s\n" % (h["id"], i) for h, i in zip(hits, ids, strict=True))
END
want 0 calibrate --images i.safetensors --texts t.safetensors --gallery images --truth own.pairs --out fit.json -q
want 0 search --index i.safetensors -m model --query-text 'a red star' -k 20 --json
check "two calibrations" python3 - <<'END'
import json
score = [h["score"] for h in json.load(open("out"))["hits"]]
middle, step = (score[4] + score[5]) / 2, score[4] - score[5]
fit = json.load(open("fit.json"))
fit["method"] = "platt"
for name, a, b in (("photos", 20 / step, -20 / step * middle), ("plain", 1, -12)):
    fit["platt"].update(a=a, b=b)
    json.dump(fit, open(name + "/collection.calibration.json", "w"))
END
start_server -m model --collection photos plain captions
mkdir -p "${PNB_SHOTS:-shots}"
picture=$(ls -d "$PWD"/pictures/*.png | sed -n 4p)
for size in "1280 900" "390 844"; do
    # shellcheck disable=SC2086  # two numbers
    "$PNB_BROWSER_TEST" "$url" $size "$picture" "${PNB_SHOTS:-shots}" >seen 2>&1
    status=$?
    cat seen
    [ $status -ne 77 ] || exit 77
    check "the page at $size" test $status -eq 0
done
stop_server
finish
