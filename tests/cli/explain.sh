#!/bin/bash
# explain: words and patches left out, its page, and what cannot be taken apart.
source "$(dirname "$0")/common/lib.sh"
make_small

want 0 explain -m model --text 'a red star above a ring' --json
prints '"word": "above"'
prints '"removed"'
want 0 explain -m model --text 'a red star above a ring' --images shapes/test --cell 4 --html e.html
prints "removes"
check "the page has words" grep -qF 'star' e.html
check "no broken number" test "$(grep -cE '="-?(nan|inf)' e.html)" -eq 0
want 0 explain -m model --images shapes/test --cell 4 --remove grey --json
want 1 explain -m model --images shapes/test --cell 4000
says "leaves nothing"
want 2 explain -m model --text 'a star' --cell 2
says "about patches"
want 2 explain -m model
says "--text or --images"
want 1 explain -m model --text ' '
says "has no words"
want 1 explain -m model --images tok.json
finish
