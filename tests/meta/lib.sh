# Shared by the scripts of this folder; sourced, not run.
set -euo pipefail
n_bad=0

bad() {
    echo "BAD: $*" >&2
    n_bad=$((n_bad + 1))
}

# Call last: the verdict.
finish() {
    if [ "$n_bad" -gt 0 ]; then
        echo "$n_bad violations" >&2
        exit 1
    fi
    echo "ok"
}

# Exit code 77 is CTest's skip here; only for a tool that install-deps could not install.
need() {
    if ! command -v "$1" >/dev/null; then
        echo "SKIPPED: $1 is not installed; tools/install-deps installs it"
        exit 77
    fi
}
