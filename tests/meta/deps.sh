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

# install_deps MISSING: runs the script with the pretended tools; the calls are in $dir/log.
install_deps() {
    : >"$dir/log"
    PATH=$dir/bin:$PATH PRETEND_LOG=$dir/log PRETEND_MISSING=$1 \
        "$PNB_SOURCE_DIR/tools/install-deps" >"$dir/said" || bad "install-deps failed"
}

install_deps ""
[ -s "$dir/log" ] && bad "apt-get was called with nothing missing: $(cat "$dir/log")"

install_deps "libspng-dev libcmocka-dev"
grep -q '^apt-get update' "$dir/log" || bad "no apt-get update before installing"
grep -q '^apt-get install .*libspng-dev' "$dir/log" || bad "libspng-dev was not installed"
grep -q '^apt-get install .*libcmocka-dev' "$dir/log" || bad "libcmocka-dev was not installed"
grep -q '^apt-get install .*zlib1g-dev' "$dir/log" && bad "zlib1g-dev was there and was installed"
grep -q libspng-dev "$dir/said" || bad "it does not say what it installs"
finish
