#!/bin/bash
# tools/install-deps with a pretended apt: asks for what is missing only, and for nothing at all when
# nothing is missing.
. "$(dirname "$0")/lib.sh"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/bin"

cat >"$dir/bin/dpkg-query" <<'END'
#!/bin/bash
package=${!#}
[[ " $PRETEND_MISSING " == *" $package "* ]] && exit 1
echo "ii "
END
cat >"$dir/bin/apt-get" <<'END'
#!/bin/bash
echo "apt-get $*" >>"$PRETEND_LOG"
END
cat >"$dir/bin/id" <<'END'
#!/bin/bash
echo 0
END
chmod +x "$dir"/bin/*

# install_deps MISSING [ARGUMENT...]: runs the script with the pretended tools; the calls are in
# $dir/log.
install_deps() {
    local missing=$1
    shift
    : >"$dir/log"
    PATH=$dir/bin:$PATH PRETEND_LOG=$dir/log PRETEND_MISSING=$missing \
        "$PNB_SOURCE_DIR/tools/install-deps" "$@" >"$dir/said" 2>&1
}
wants() { install_deps "$@" || bad "install-deps ${*:2} failed: $(cat "$dir/said")"; }

wants ""
[ -s "$dir/log" ] && bad "apt-get was called with nothing missing: $(cat "$dir/log")"

wants "libspng-dev libcmocka-dev"
grep -q '^apt-get update' "$dir/log" || bad "no apt-get update before installing"
grep -q '^apt-get install .*libspng-dev' "$dir/log" || bad "libspng-dev was not installed"
grep -q '^apt-get install .*libcmocka-dev' "$dir/log" || bad "libcmocka-dev was not installed"
grep -q '^apt-get install .*zlib1g-dev' "$dir/log" && bad "zlib1g-dev was there and was installed"
grep -q libspng-dev "$dir/said" || bad "it does not say what it installs"

# Pictures are installed only when asked for, and nothing else then.
all="openclipart-svg openclipart-png tuxpaint-stamps-default libspng-dev"
wants "openclipart-svg openclipart-png tuxpaint-stamps-default"
[ -s "$dir/log" ] && bad "pictures were installed unasked: $(cat "$dir/log")"
wants "$all" --data clipart
grep -q '^apt-get install .*openclipart-svg openclipart-png$' "$dir/log" || bad "--data clipart: $(cat "$dir/log")"
wants "$all" --data stamps
grep -q '^apt-get install .* tuxpaint-stamps-default$' "$dir/log" || bad "--data stamps: $(cat "$dir/log")"
wants "$all" --data mixed
grep -q 'openclipart-png tuxpaint-stamps-default$' "$dir/log" || bad "--data mixed: $(cat "$dir/log")"
for wrong in "--data faces" "--data" "--pictures" "--data clipart stamps"; do
    # shellcheck disable=SC2086  # the arguments are words
    install_deps "$all" $wrong && bad "install-deps $wrong ran"
    grep -q 'clipart, stamps, mixed' "$dir/said" || bad "install-deps $wrong does not name the sets"
    [ -s "$dir/log" ] && bad "install-deps $wrong called apt-get"
done
finish
