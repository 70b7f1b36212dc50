#!/bin/bash
# tools/count-tests, whose last line is the verdict of `make test`, on results of every kind.
. "$(dirname "$0")/lib.sh"
count=$PNB_SOURCE_DIR/tools/count-tests
file=$(mktemp)
trap 'rm -f "$file"' EXIT

# expect CTEST_EXIT WANTED_LINE WANTED_EXIT STATUS...
expect() {
    local ctest_exit=$1 wanted=$2 wanted_exit=$3 said exit_code=0
    shift 3
    printf '<testsuite>\n' >"$file"
    for status in "$@"; do
        printf '<testcase name="a" classname="a" time="1" status="%s">\n' "${status%%:*}" >>"$file"
        [ "$status" = notrun:skip ] && printf '<skipped message="SKIP_RETURN_CODE=77"/>\n' >>"$file"
        [ "$status" = notrun ] && printf '<skipped message="Unable to find executable"/>\n' >>"$file"
        printf '</testcase>\n' >>"$file"
    done
    said=$("$count" "$file" "$ctest_exit" 2>/dev/null | tail -n 1) || exit_code=$?
    [ "$said" = "$wanted" ] || bad "$*: '$said', '$wanted' wanted"
    [ "$exit_code" -eq "$wanted_exit" ] || bad "$*: exit $exit_code, $wanted_exit wanted"
}

expect 0 "2 passed, 0 failed" 0 run run
expect 8 "1 passed, 1 failed" 1 run fail
expect 8 "0 passed, 1 failed" 1 fail
expect 0 "1 passed, 0 failed" 0 run notrun:skip
expect 8 "1 passed, 1 failed" 1 run notrun
expect 8 "1 passed, 1 failed" 1 run
expect 0 "0 passed, 1 failed" 1
expect 0 "0 passed, 1 failed" 1 notrun:skip
expect 0 "1 passed, 1 failed" 1 run disabled
finish
