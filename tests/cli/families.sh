#!/bin/bash
# Sets of every family through eval retrieval: what fits, what is chosen, and what the errors say. Search
# and report of the same sets are in search.sh and report.sh.
source "$(dirname "$0")/common/lib.sh"

make_families

for pair in "vmf vmf" "vmf vmf_exact" "power power_spherical" "generalised csd" "generalised w2" \
    "vmf mean" "power avg_l2" "generalised match_prob"; do
    read -r set measure <<<"$pair"
    want 0 eval retrieval --images points.safetensors --texts "$set.safetensors" \
        --measure "$measure" --bins 2
    prints "RSUM"
done
# Without a measure the families decide, and so they do about the uncertainty.
families() { # SET MEASURE UNCERTAINTY
    want 0 eval retrieval --images points.safetensors --texts "$1.safetensors" --bins 2 --json
    prints "\"measure\": \"$2\""
    prints "\"kind\": \"$3\""
}
families vmf vmf inv_kappa
families power power_spherical inv_kappa
families generalised csd gg_var
families points csd cosine
want 0 eval retrieval --images points.safetensors --texts vmf.safetensors --uncertainty inv_kappa --bins 2
want 1 eval retrieval --images points.safetensors --texts generalised.safetensors --uncertainty inv_kappa
says "have no uncertainty 'inv_kappa'; use gg_var"

want 1 eval retrieval --images points.safetensors --texts points.safetensors --measure vmf
says "neither set has one"
finish
