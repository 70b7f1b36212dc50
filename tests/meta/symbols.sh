#!/bin/bash
# Names and state of the Release build: libpenumbra.so exports pnb_<letter>... only; every global
# symbol of libpenumbra.a starts with pnb_, but for the weak ones that C++ makes of FAISS's headers
# in the bridge, which are everybody's, and for what nvcc makes of kernels, mangled names of files of
# src/kernels/cuda (_GLOBAL__N_, pnb__cu..., stubs) and its register of them; no room of the library has a variable that can change,
# but for the pool of threads and the functions of libraries that are opened late: both belong to the process.
. "$(dirname "$0")/lib.sh"
shared=$PNB_RELEASE_DIR/libpenumbra.so
static=$PNB_RELEASE_DIR/libpenumbra.a

exported=$(nm -D --defined-only --format=posix "$shared" | awk '$2 != "A" { print $1 }' | sed 's/@.*//')
[ -n "$exported" ] || bad "$shared exports nothing"
grep -qx pnb_version <<<"$exported" || bad "$shared does not export pnb_version"
while read -r name; do
    [[ $name =~ ^pnb_[a-z] ]] || bad "$shared exports $name"
done <<<"$exported"

while read -r name; do
    [[ $name == pnb_* || $name =~ ^_Z[0-9]+(pnb__cu|__device_stub__) || $name =~ _GLOBAL__N_ ]] || bad "$static defines the global symbol $name"
done < <(nm -g --defined-only --format=posix "$static" |
    awk 'NF >= 3 && !($2 ~ /^[uVW]$/ && $1 ~ /^(_Z|DW\.ref\.)/) { print $1 }')

# Objects in writable sections; .data.rel.ro is constant once the loader has filled in addresses.
writable() {
    objdump -t "$1" | awk '
        /^[^ ].*file format/ { file = $1 }
        $3 ~ /^\.tbss/ || $4 ~ /^\.(data|bss|tdata|tbss)/ || $5 ~ /^\.(data|bss|tdata|tbss)/ || / \*COM\*/ {
            # DW.ref: an address that C++ unwinds by, weak and constant once loaded
            if ($0 !~ /\.data\.rel\.ro/ && $0 !~ / d +\./ && $NF !~ /^DW\.ref\./) print file " " $NF
        }'
}
for room in "$PNB_RELEASE_DIR"/libpnb_room_*.a; do
    # app belongs to the program: what a signal handler may touch is a variable by nature
    [[ $room == */libpnb_room_app.a ]] && continue
    while read -r line; do
        [[ "$(basename "$room"): $line" =~ ^libpnb_room_base\.a:\ pool\.c\.o:\ (pool|is_inside)$ ]] && continue
        # nvcc's register of kernels, written once when the program is loaded
        [[ "$(basename "$room"): $line" =~ ^libpnb_room_kernels\.a:.*\ _Z.*(__device_stub__|__cuda|__nv_) ]] && continue
        # functions of a library that is opened late, written once, under the lock, by whoever needs it first
        [[ "$(basename "$room"): $line" =~ ^libpnb_room_(server\.a:\ listen_library\.c\.o:\ pnb__mhd|store\.a:\ postgres_library\.c\.o:\ pnb__pq|base\.a:\ library\.c\.o:\ lock\.[0-9]+)$ ]] && continue
        bad "$(basename "$room"): variable that can change: $line"
    done < <(writable "$room")
done

# The check itself must see a planted variable of each kind.
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cat >"$dir/planted.c" <<'END'
int planted_common;
static int planted_bss;
static int planted_data = 3;
static _Thread_local int planted_thread;
static const char *const constant_table[] = {"a", "b"};
int *planted_use(int i);
int *planted_use(int i)
{
    static int planted_local;
    return i == 0 ? &planted_bss : i == 1 ? &planted_data : i == 2 ? &planted_local : i == 3 ? &planted_thread : (int *)constant_table[i];
}
END
"${CC:-gcc}" -fPIC -w -c "$dir/planted.c" -o "$dir/planted.o"
found=$(writable "$dir/planted.o")
for name in planted_common planted_bss planted_data planted_local planted_thread; do
    grep -q "$name" <<<"$found" || bad "the check does not see $name"
done
grep -q constant_table <<<"$found" && bad "the check takes constant_table for a variable"
finish
