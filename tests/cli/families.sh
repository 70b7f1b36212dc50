#!/bin/bash
# Sets of every family through eval and search: what fits, and what the errors say.
source "$(dirname "$0")/common/lib.sh"

# f32 numbers, lowest byte first: 0, 1, -1, 2, 8
z='\x00\x00\x00\x00' p='\x00\x00\x80\x3f' m='\x00\x00\x80\xbf' two='\x00\x00\x00\x40'
eight='\x00\x00\x00\x41'
means="$p$z$z$p$m$z$z$m" # four directions of the plane

# write_set NAME FAMILY ARRAYS DATA: a safetensors file of four rows of width 2
write_set() {
    local header="{\"__metadata__\":{\"format_version\":\"1\",\"family\":\"$2\"},$3}"
    while [ $((${#header} % 8)) -ne 0 ]; do header="$header "; done
    # shellcheck disable=SC2059  # the formats are the bytes
    {
        printf "$(printf '\\x%02x\\x%02x' $((${#header} % 256)) $((${#header} / 256)))$z\\x00\\x00"
        printf '%s' "$header"
        printf "$4"
    } >"$1.safetensors"
    for i in 0 1 2 3; do echo "{\"id\":\"$1$i\"}"; done >"$1.ids.jsonl"
}
wide() { printf '"%s":{"dtype":"F32","shape":[4,2],"data_offsets":[%d,%d]}' "$1" "$2" $(($2 + 32)); }
per_row() { printf '"%s":{"dtype":"F32","shape":[4],"data_offsets":[%d,%d]}' "$1" "$2" $(($2 + 16)); }

write_set points point "$(wide mean 0)" "$means"
write_set vmf vmf "$(wide mean 0),$(per_row kappa 32)" "$means$two$eight$z$eight"
write_set power power_spherical "$(wide mean 0),$(per_row kappa 32)" "$means$two$eight$z$eight"
write_set generalised gen_gaussian "$(wide mean 0),$(wide inv_alpha 32),$(wide beta 64)" \
    "$means$eight$eight$eight$eight$eight$eight$eight$eight$two$two$two$two$two$p$p$p"

for pair in "vmf vmf" "vmf vmf_exact" "power power_spherical" "generalised csd" "generalised w2" \
    "vmf mean" "power avg_l2" "generalised match_prob"; do
    read -r set measure <<<"$pair"
    want 0 eval retrieval --images points.safetensors --texts "$set.safetensors" \
        --measure "$measure" --bins 2
    prints "RSUM"
    want 0 search --index "$set.safetensors" --queries points.safetensors --measure "$measure" -k 2
    prints "points3"
done
# The uniform row (kappa 0) is the most uncertain, and its score is -log 2pi for every query.
want 0 search --index vmf.safetensors --queries points.safetensors --measure vmf_exact -k 4 --json
check "uniform row scores the log density of the circle" \
    test "$(grep -c '"score": -1.83787[67]' out)" -eq 4

# Without a measure the families decide, and so they do about the uncertainty.
families() { # SET MEASURE UNCERTAINTY
    want 0 eval retrieval --images points.safetensors --texts "$1.safetensors" --bins 2 --json
    prints "\"measure\": \"$2\""
    prints "\"kind\": \"$3\""
    want 0 search --index "$1.safetensors" --queries points.safetensors --json
    prints "\"measure\": \"$2\""
    want 0 report --images points.safetensors --texts "$1.safetensors" --out "$1.html" --bins 2
    check "report of $1 ranks by $2" grep -q "ranked by $2," "$1.html"
    check "and has every figure with its interval" grep -q "<td>RSUM</td>.*\[.*\]" "$1.html"
    check "no broken number in it" test "$(grep -cE '="-?(nan|inf)' "$1.html")" -eq 0
}
families vmf vmf inv_kappa
families power power_spherical inv_kappa
families generalised csd gg_var
families points csd cosine
want 0 report --images vmf.safetensors --texts vmf.safetensors --measure vmf_exact --out exact.html
check "report takes a measure" grep -q "ranked by vmf_exact," exact.html
check "and says what its uncertainty is" grep -q "uncertainty (1/kappa)" exact.html
want 1 report --images vmf.safetensors --texts vmf.safetensors --measure csd --out none.html
says "family vmf; use mean, avg_l2, match_prob, or vmf or vmf_exact"
check "and writes nothing then" test ! -e none.html
want 0 eval retrieval --images points.safetensors --texts vmf.safetensors --uncertainty inv_kappa --bins 2
want 1 eval retrieval --images points.safetensors --texts generalised.safetensors --uncertainty inv_kappa
says "have no uncertainty 'inv_kappa'; use gg_var"

want 1 search --index vmf.safetensors --queries points.safetensors --measure csd
says "family vmf; use mean, avg_l2, match_prob, or vmf or vmf_exact"
want 1 search --index power.safetensors --queries points.safetensors --measure vmf
says "family power_spherical"
want 1 eval retrieval --images points.safetensors --texts points.safetensors --measure vmf
says "both sets are points"
want 1 search --index generalised.safetensors --queries points.safetensors --measure kl
says "both sides"
finish
