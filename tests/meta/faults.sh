#!/bin/bash
# Every fault of tests/faults still applies: its text stands exactly once in the file it names.
. "$(dirname "$0")/lib.sh"
need python3
"$PNB_SOURCE_DIR/tools/plant-faults" --check || bad "a fault does not apply any more"

# The check sees a text that is gone.
table=$(mktemp)
trap 'rm -f "$table"' EXIT
printf 'fault gone: nothing\nfile  src/base/alloc.c\ntests base_\n- %s\n+ x\n' 'no such text' >"$table"
"$PNB_SOURCE_DIR/tools/plant-faults" --check "$table" >/dev/null 2>&1 && bad "accepted a fault without its text"

# ... and tests that are not there: such a fault would survive for ever.
printf 'fault unseen: nothing\nfile  src/base/alloc.c\ntests base_nowhere\n- %s\n+ x\n' "$(sed -n '/^#include/{p;q}' \
    "$PNB_SOURCE_DIR/src/base/alloc.c")" >"$table"
said=$("$PNB_SOURCE_DIR/tools/plant-faults" --check "$table" 2>&1) && bad "accepted a fault whose tests are not there"
grep -q "no test begins with base_nowhere" <<<"$said" || bad "it does not say which tests are not there: $said"
finish
