#!/bin/bash
# tools/run-tests, which is `make test`, with a pretended CMake and CTest: a tree that cannot be configured
# or built, a test that fails, no test and no results are a failure each, told by the last line.
. "$(dirname "$0")/lib.sh"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir -p "$dir/bin" "$dir/tools"
cp "$PNB_SOURCE_DIR/tools/run-tests" "$PNB_SOURCE_DIR/tools/count-tests" "$dir/tools"

# FAIL_CONFIGURE and FAIL_BUILD name the folder that fails.
cat >"$dir/bin/cmake" <<'END'
#!/bin/bash
echo "cmake $*" >>calls
case "$1 $2" in
"-S .") mkdir -p "$4" && [ "$4" != "$FAIL_CONFIGURE" ] ;;
"--build $FAIL_BUILD") echo "a warning of $2" && exit 1 ;;
"--build build-clang") [ -z "$SLOW" ] || { sleep 60 & echo $! >sleeper; wait; } ;;
esac
END
cat >"$dir/bin/ctest" <<'END'
#!/bin/bash
echo "ctest $*" >>calls
[ -z "$RESULTS" ] || printf '<testsuite>\n%s\n</testsuite>\n' "${RESULTS# }" >build-test/junit.xml
exit "$CTEST_EXIT"
END
chmod +x "$dir"/bin/*
passed='<testcase name="a" classname="a" time="1" status="run">'
failed='<testcase name="b" classname="b" time="1" status="fail">'

# expect WANTED_LINE WANTED_EXIT CONFIGURE BUILD CTEST_EXIT RESULTS
expect() {
    local said exit_code=0
    : >"$dir/calls"
    rm -rf "$dir"/build*
    said=$(PATH=$dir/bin:$PATH FAIL_CONFIGURE=$3 FAIL_BUILD=$4 CTEST_EXIT=$5 RESULTS=$6 \
        "$dir/tools/run-tests" 2>"$dir/err" | tail -n 1) || exit_code=$?
    [ "$said" = "$1" ] || bad "configure '$3', build '$4', ctest $5: '$said', '$1' wanted"
    [ "$exit_code" -eq "$2" ] || bad "configure '$3', build '$4', ctest $5: exit $exit_code, $2 wanted"
}

expect "1 passed, 0 failed" 0 "" "" 0 "$passed"
for folder in build build-clang build-test; do
    grep -q "^cmake --build $folder " "$dir/calls" || bad "$folder is not built"
done
# CUDA's kernels are left to `make build` in a tree that is new, where there is no device
if [ ! -e /dev/nvidiactl ]; then
    grep -q '^cmake -S . -B build .*-DPNB_CUDA_LATER=ON' "$dir/calls" || bad "a new tree makes CUDA's kernels"
fi
[[ $(make -n -C "$PNB_SOURCE_DIR" build) == *"-B build "*-DPNB_CUDA_LATER=OFF* ]] ||
    bad "make build leaves CUDA's kernels out of a tree that make test made"
mkdir -p "$dir/build" && touch "$dir/build/CMakeCache.txt" && : >"$dir/calls"
PATH=$dir/bin:$PATH CTEST_EXIT=0 RESULTS=$passed "$dir/tools/run-tests" >"$dir/err" 2>&1 || bad "a tree that is there: $(cat "$dir/err")"
grep -q -- '-DPNB_CUDA_LATER' "$dir/calls" && bad "a tree that is there loses CUDA's kernels"
expect "1 passed, 1 failed" 1 "" "" 8 "$passed"$'\n'"$failed"
expect "1 passed, 1 failed" 1 "" "" 8 "$passed"
expect "0 passed, 1 failed" 1 "" "" 0 " "
expect "0 passed, 1 failed" 1 "" "" 0 ""
for folder in build build-clang build-test; do
    expect "0 passed, 1 failed" 1 $folder "" 0 "$passed"
    expect "0 passed, 1 failed" 1 "" $folder 0 "$passed"
    # Clang's tree is built while the tests run
    [ $folder = build-clang ] || ! grep -q "^ctest" "$dir/calls" || bad "tests were run although $folder was not built"
done
expect "0 passed, 1 failed" 1 "" build-clang 0 "$passed"
grep -q "the Clang build failed" "$dir/err" || bad "Clang's warnings are told as: $(cat "$dir/err")"
said=$(PATH=$dir/bin:$PATH FAIL_BUILD=build-clang CTEST_EXIT=0 RESULTS=$passed "$dir/tools/run-tests" 2>&1) || true
[[ $said == *"a warning of build-clang"* ]] || bad "Clang's warnings are not shown"

# What is stopped leaves no compiler behind.
cat >"$dir/bin/ctest" <<'END'
#!/bin/bash
while [ ! -s sleeper ]; do sleep 0.05; done
kill $PPID
END
(SLOW=1 PATH=$dir/bin:$PATH timeout 30 "$dir/tools/run-tests") >"$dir/err" 2>&1 && bad "a stopped run is no failure"
for i in {1..40}; do
    kill -0 "$(cat "$dir/sleeper")" 2>/dev/null || break
    sleep 0.05
done
[ "$i" -lt 40 ] || bad "Clang's build outlives the script"
finish
