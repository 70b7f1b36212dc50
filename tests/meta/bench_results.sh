#!/bin/bash
# tools/readme-table and tools/check-results: one run of one commit or nothing, targets that were not
# met are told, results of older sources are named.
. "$(dirname "$0")/lib.sh"
cd "$PNB_SOURCE_DIR"
command -v python3 >/dev/null || exit 77
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
head=$(git rev-parse HEAD 2>/dev/null | cut -c1-12)
: "${head:=0123456789ab}"

# result NAME COMMIT RUN FIGURES
result() {
    printf '{"bench": "%s", "commit": "%s", "run": "%s", "date": "2026-01-02 03:04", "machine": "M",
"cores": 2, "busy": false, "figures": {%s}}\n' "$1" "$2" "$3" "$4" >"$dir/$1.json"
}
figure() { printf '"%s": {"value": %s, "target": "<= %s", "met": %s}' "$@"; }
all() {
    result encode "$1" "$2" "$(figure 'image, batch 1: time to PyTorch' 0.724 0.75 true), $(
        figure 'text, batch 1: time to ONNX Runtime' 0.912 0.90 false)"
    result train_step "$1" "$2" "$(figure 'ViT-B/16, batch 8: time to PyTorch' 0.666 0.8 true), $(
        figure 'ViT-B/16, batch 8: memory to PyTorch' 0.56 0.8 true)"
    result search "$1" "$2" "$(figure '1 queries: time to FAISS' 0.116 0.2 true)"
}
made() { tools/readme-table --results "$dir" "$@" >"$dir/said" 2>&1; }

all "$head" one
made || bad "one run of one commit is refused: $(cat "$dir/said")"
grep -qF '| pictures, batch 1 / 8 / 32 | 0.72 / – / – |' "$dir/said" || bad "a figure is missing"
grep -qF '0.91 (target <= 0.90 not met)' "$dir/said" || bad "a target that was not met is not told"
grep -qF 'Targets not met in this run: text, batch 1' "$dir/said" || bad "nor listed"
result other 000000000000 two "$(figure 'of no row' 1 1 true)"
made || bad "a bench that the table does not show hinders it: $(cat "$dir/said")"
grep -qF "commit \`$head\`" "$dir/said" || bad "the commit is not named"

printf 'before\n<!-- speed: made by tools/readme-table from bench/results -->\nold\n<!-- /speed -->\nafter\n' \
    >"$dir/README.md"
made --readme "$dir/README.md" --check && bad "an old table passes the check"
made --readme "$dir/README.md" --write || bad "the table is not written"
made --readme "$dir/README.md" --check || bad "the table that was written fails the check"
grep -qx before "$dir/README.md" && grep -qx after "$dir/README.md" || bad "what is around is lost"
grep -qx old "$dir/README.md" && bad "the old table is still there"
echo none >"$dir/none.md"
made --readme "$dir/none.md" --write && bad "a README without marks is written"

result search fedcba987654 one "$(figure '1 queries: time to FAISS' 0.1 0.2 true)"
made && bad "two commits are mixed"
grep -qF 'search.json: fedcba987654' "$dir/said" || bad "which one is not said"
result search "$head" two "$(figure '1 queries: time to FAISS' 0.1 0.2 true)"
made && bad "two runs are mixed"
all "$head-dirty" one
made && bad "sources that are in no commit are taken"
rm "$dir/search.json"
made && bad "a table without search"

grep -q '^<!-- speed: made by tools/readme-table' README.md || bad "README has no marks"
if git rev-parse HEAD >/dev/null 2>&1; then
    printf '== a ==\ncommit: %s, run x\n' "$head" >"$dir/a.txt"
    tools/check-results "$dir" >"$dir/said" || bad "a result of these sources is called old"
    root=$(git rev-list --max-parents=0 HEAD | tail -1)
    printf '== b ==\ncommit: %s, run x\n' "$root" >"$dir/b.txt"
    echo '== c ==' >"$dir/c.txt"
    tools/check-results "$dir" >"$dir/said" && bad "old results pass"
    [ "$root" = "$(git rev-parse HEAD)" ] || grep -q '^b: of ' "$dir/said" || bad "b is not named"
    grep -q '^c: names no commit' "$dir/said" || bad "c is not named"
    grep -q '^a:' "$dir/said" && bad "a is named"
fi
finish
