#!/bin/bash
# The Release products load one OpenBLAS, the OpenMP build, and one OpenMP runtime: two thread pools
# in a process fight for the cores. They do so whatever the alternatives system points to, which is
# searched after LD_LIBRARY_PATH: a decoy there must not be taken either.
. "$(dirname "$0")/lib.sh"
products=("$PNB_RELEASE_DIR/libpenumbra.so")
[ -e "$PNB_RELEASE_DIR/penumbra" ] && products+=("$PNB_RELEASE_DIR/penumbra")
decoy=$(mktemp -d)
trap 'rm -rf "$decoy"' EXIT
for name in libopenblas.so.0 libblas.so.3 liblapack.so.3; do
    found=$(ldd "${products[@]}" | awk -v name="$name" '$1 == name && !n++ { print $3 }')
    [ -n "$found" ] && cp -L "$found" "$decoy/$name"
done

for product in "${products[@]}"; do
    taken=$(LD_LIBRARY_PATH=$decoy ldd "$product" | grep -F "$decoy" || true)
    [ -z "$taken" ] || bad "$product takes another BLAS than the one it was built with: $taken"
    loaded=$(ldd "$product" | awk '/=>/ { print $3 }' | xargs -r readlink -f)
    blas=$(grep openblas <<<"$loaded" | grep '/libopenblas' | sort -u || true)
    # A product whose kernels are not linked in yet has no BLAS at all, which is fine.
    [ "$(grep -c . <<<"$blas")" -le 1 ] || bad "$product loads several OpenBLAS: $blas"
    grep -q pthread <<<"$blas" && bad "$product loads the pthread OpenBLAS: $blas"
    while read -r library; do
        [[ -z $library || $library == *openblas-openmp* ]] || bad "$product loads $library"
    done < <(grep -E '/lib(blas|lapack)\.so' <<<"$loaded" || true)
    grep -qE '/lib(omp|iomp5)\.so' <<<"$loaded" && bad "$product loads a second OpenMP runtime"
    readelf -d "$product" | grep -q 'RUNPATH' && bad "$product has RUNPATH, RPATH is needed"
done
finish
