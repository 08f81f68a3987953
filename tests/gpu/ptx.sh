#!/bin/sh
# ptx.sh -- what the kernels are compiled to: the instructions under test and no others; in trainings, operations rounded
# to nearest and nothing approximated, flushed or contracted. The PTX that the build keeps of every .cu file, or that of
# the flags of the build (MPSIM_NVCC_FLAGS).
#
# Allowed approximations: __hdiv is made of rcp.approx.ftz.f32 (fp16) and div.approx.f32 (bf16), by
# NVIDIA's headers; they stand in the kernels of 16-bit arithmetic and nowhere else. GELU by eights starts from
# rcp.approx.ftz.f32 of a number from 1 to 2^100 and rounds the quotient correctly (flat_two_over).
# shellcheck source=tests/cli/common.sh
. "${MPSIM_SRCDIR:=.}/tests/cli/common.sh"
: "${MPSIM_NVCC_FLAGS:=-fmad=false -ftz=false -prec-div=true -prec-sqrt=true}"
: "${NVCC=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)}" # empty: built without CUDA
if [ -z "$NVCC" ] || ! "$NVCC" --version >/dev/null 2>&1; then
    echo "1..0 # SKIP built without CUDA, or no nvcc"
    exit 0
fi
# of the build: X.o, X.ptxas, X.sm_90.ptx and the like
built=$(dirname "${MPSIM_GPU:-./mpsim-gpu}")/gpu

ptx() { # ptx FILE TARGET: $dir/FILE.ptx, kept by the build (gpu/nvcc-wrap.sh) where it has code for that target
    # of several files of that name the first: kernels before library
    kept=$(find "$built" -name "$1.$2.ptx" | sort | head -n 1)
    if [ -n "$kept" ]; then
        cp "$kept" "$dir/$1.ptx"
    else
        # shellcheck disable=SC2086 # flags
        "$NVCC" -std=c++17 -O2 -I"$MPSIM_SRCDIR/lib/include" -I"$MPSIM_SRCDIR/gpu/include" $MPSIM_NVCC_FLAGS -ptx -arch="compute_${2#sm_}" \
            -o "$dir/$1.ptx" "$(find "$MPSIM_SRCDIR/gpu" -name "$1.cu" | sort | head -n 1)" >"$dir/out" 2>"$dir/err"
    fi
    ok $? "PTX of $1.cu for $2"
}

# Lines of $dir/$1.ptx that compute in floating point, each as its instruction alone. Moves, loads,
# conversions and the tensor-core instructions are not among them.
arithmetic() {
    sed -n 's/.*[ 	{;]\(\(add\|sub\|mul\|div\|fma\|mad\|neg\|abs\|min\|max\|sqrt\|rsqrt\|rcp\|ex2\|lg2\|sin\|cos\|tanh\|setp\|set\|copysign\|testp\)\.[a-z0-9_.]*\(f16\|bf16\|f32\|f64\)[a-z0-9_.]*\) .*/\1/p' "$1"
}

none() { # none NAME TEXT: ok if the text is empty
    printf '%s\n' "$2" >"$dir/out"
    [ -z "$2" ]
    ok $? "$1"
}

lists() { # lists NAME FILE INSTRUCTION...: each stands in the file
    name=$1 file=$2
    shift 2
    : >"$dir/out"
    for i in "$@"; do
        grep -q -F -- "$i " "$file" || echo "missing: $i" >>"$dir/out"
    done
    [ ! -s "$dir/out" ]
    ok $? "$name"
}

for f in convert cvt reduce order arith dmma mma mma_variants device; do
    ptx $f sm_90
done
ptx wgmma sm_90a
ptx cvt_next sm_100a
cat "$dir/cvt_next.ptx" >>"$dir/cvt.ptx"
ptx variants sm_90a
ptx wgmma_sparse sm_90a

# ---- no floating point but the instruction under test: so none in the integer reference ----
for f in convert cvt reduce order dmma mma mma_variants variants wgmma wgmma_sparse device; do
    none "$f.cu computes nothing in floating point" "$(arithmetic "$dir/$f.ptx")"
done
none "no flushing to zero and no approximation outside arith.cu" \
    "$(grep -n -E '\.(ftz|approx)' "$dir/convert.ptx" "$dir/cvt.ptx" "$dir/reduce.ptx" "$dir/order.ptx" "$dir/mma.ptx" "$dir/dmma.ptx" "$dir/mma_variants.ptx" \
        "$dir/variants.ptx" "$dir/wgmma.ptx" "$dir/device.ptx")"

# ---- arith.cu, kernel by kernel ----
for k in hardware16 hardware_bf16 hardware32; do
    awk -v k="$k" '/\.entry/ { on = index($0, k) > 0 } on' "$dir/arith.ptx" >"$dir/$k.ptx"
    [ -s "$dir/$k.ptx" ]
    ok $? "arith.cu has a kernel $k"
done
awk '/\.entry/ { exit } 1' "$dir/arith.ptx" >"$dir/functions.ptx"
none "functions of arith.cu compute nothing in floating point" "$(arithmetic "$dir/functions.ptx")"
arithmetic "$dir/hardware32.ptx" | sort >"$dir/out"
printf '%s\n' add.rn.f32 div.rn.f32 fma.rn.f32 mul.rn.f32 sqrt.rn.f32 sub.rn.f32 |
    cmp -s - "$dir/out"
ok $? "binary32: one add, div, fma, mul, sqrt, sub, each rounded to nearest, and nothing else"
none "16 bits: no approximation but those of __hdiv" \
    "$(grep -h -E '\.(ftz|approx)' "$dir/hardware16.ptx" "$dir/hardware_bf16.ptx" |
        grep -v -E 'rcp\.approx\.ftz\.f32|div\.approx\.f32')"
for t in f16 bf16; do
    k=hardware_bf16
    [ $t = f16 ] && k=hardware16
    arithmetic "$dir/$k.ptx" | grep -E "^(add|sub|mul)\..*\.$t$|^fma.*\.$t$" | sort >"$dir/out"
    printf '%s\n' "add.rn.$t" "fma.rn.$t" "mul.rn.$t" "sub.rn.$t" >"$dir/wanted"
    # __hdiv of fp16 corrects its quotient by one fma more
    sort -u "$dir/out" | cmp -s - "$dir/wanted"
    ok $? "$t: add, sub, mul and fma as single rounded instructions"
done

# ---- every instruction asked for is there ----
lists "convert.cu has every cvt" "$dir/convert.ptx" cvt.rn.f16.f32 cvt.rz.f16.f32 cvt.rn.bf16.f32 \
    cvt.rz.bf16.f32 cvt.rna.tf32.f32 cvt.rn.tf32.f32 cvt.rz.tf32.f32 cvt.rn.satfinite.e4m3x2.f32 \
    cvt.rn.satfinite.e5m2x2.f32
rows() { # rows FILE.c: the first strings of the table that it makes of its list
    "${CC:-cc}" -E "$MPSIM_SRCDIR/gpu/validation/checks/$1" -I"$MPSIM_SRCDIR/lib/include" |
        grep -o '{"[a-z][^,{]*\.[^,]*' | sed 's/[{"]//g; s/memory //; s/async\.bulk\./&global.shared::cta.bulk_group./; s/ //g'
}
# shellcheck disable=SC2046 # words
lists "cvt.cu and cvt_next.cu have every cvt of their list" "$dir/cvt.ptx" $(rows conversions.c)
# shellcheck disable=SC2046 # words
lists "reduce.cu has every red, atom and cp.reduce of its list" "$dir/reduce.ptx" $(rows reductions.c)
# shellcheck disable=SC2046 # words
lists "and so has order.cu" "$dir/order.ptx" $(rows reductions.c)
for f in reduce order; do # st.v4, vectors of red and cp.reduce fault elsewhere; .read would not wait for what was written
    ! grep -E '\.(global|shared) \.align [1248] |cp\.async\.bulk\.wait_group\.read' "$dir/$f.ptx" >"$dir/out" &&
        grep -q 'cp\.async\.bulk\.wait_group 0;' "$dir/$f.ptx"
    ok $? "places of $f.cu are aligned to 16 bytes, and what cp.reduce has written is waited for"
done
! grep -E '(membar|fence)\.([a-z]*\.)*(gl|gpu|sys);' "$dir/reduce.ptx" >"$dir/out"
ok $? "and no case of reduce.cu waits for the whole device"
mma=mma.sync.aligned.m16n8
lists "mma.cu has every mma.sync" "$dir/mma.ptx" \
    ${mma}k8.row.col.f32.f16.f16.f32 ${mma}k16.row.col.f32.f16.f16.f32 \
    ${mma}k8.row.col.f16.f16.f16.f16 ${mma}k16.row.col.f16.f16.f16.f16 \
    ${mma}k8.row.col.f32.bf16.bf16.f32 ${mma}k16.row.col.f32.bf16.bf16.f32 \
    ${mma}k4.row.col.f32.tf32.tf32.f32 ${mma}k8.row.col.f32.tf32.tf32.f32 \
    ${mma}k32.row.col.f32.e4m3.e4m3.f32 ${mma}k32.row.col.f32.e4m3.e5m2.f32 \
    ${mma}k32.row.col.f32.e5m2.e4m3.f32 ${mma}k32.row.col.f32.e5m2.e5m2.f32 \
    ${mma}k32.row.col.f16.e4m3.e4m3.f16 ${mma}k32.row.col.f16.e4m3.e5m2.f16 \
    ${mma}k32.row.col.f16.e5m2.e4m3.f16 ${mma}k32.row.col.f16.e5m2.e5m2.f16
wgmma=wgmma.mma_async.sync.aligned.m64n8
lists "wgmma.cu has every wgmma, and what they wait for" "$dir/wgmma.ptx" \
    ${wgmma}k16.f32.f16.f16 ${wgmma}k16.f16.f16.f16 ${wgmma}k16.f32.bf16.bf16 \
    ${wgmma}k8.f32.tf32.tf32 ${wgmma}k32.f32.e4m3.e4m3 ${wgmma}k32.f32.e4m3.e5m2 \
    ${wgmma}k32.f32.e5m2.e4m3 ${wgmma}k32.f32.e5m2.e5m2 ${wgmma}k32.f16.e4m3.e4m3 \
    ${wgmma}k32.f16.e4m3.e5m2 ${wgmma}k32.f16.e5m2.e4m3 ${wgmma}k32.f16.e5m2.e5m2 \
    "wgmma.wait_group.sync.aligned"
grep -q '^[ 	]*fence\.proxy\.async\.shared::cta;' "$dir/wgmma.ptx" && grep -q 'wgmma\.fence\.sync\.aligned' \
    "$dir/wgmma.ptx" && grep -q 'wgmma\.commit_group\.sync\.aligned' "$dir/wgmma.ptx"
ok $? "wgmma.cu fences and commits"
lists "dmma.cu has every mma.sync of binary64" "$dir/dmma.ptx" mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 \
    ${mma}k4.row.col.f64.f64.f64.f64 ${mma}k8.row.col.f64.f64.f64.f64 ${mma}k16.row.col.f64.f64.f64.f64
sparse=mma.sp::ordered_metadata.sync.aligned.m16n8
lists "mma_variants.cu has every sparse mma, and FP8 with a depth of 16" "$dir/mma_variants.ptx" \
    ${sparse}k32.row.col.f32.f16.f16.f32 ${sparse}k16.row.col.f32.f16.f16.f32 ${sparse}k32.row.col.f16.f16.f16.f16 \
    ${sparse}k32.row.col.f32.bf16.bf16.f32 ${sparse}k16.row.col.f32.tf32.tf32.f32 ${sparse}k8.row.col.f32.tf32.tf32.f32 \
    ${sparse}k64.row.col.f32.e4m3.e4m3.f32 ${sparse}k64.row.col.f32.e4m3.e5m2.f32 ${sparse}k64.row.col.f32.e5m2.e4m3.f32 \
    ${sparse}k64.row.col.f32.e5m2.e5m2.f32 ${mma}k16.row.col.f32.e4m3.e4m3.f32 ${mma}k16.row.col.f32.e4m3.e5m2.f32 \
    ${mma}k16.row.col.f32.e5m2.e4m3.f32 ${mma}k16.row.col.f32.e5m2.e5m2.f32 ${mma}k16.row.col.f16.e4m3.e4m3.f16 \
    ${mma}k16.row.col.f16.e4m3.e5m2.f16 ${mma}k16.row.col.f16.e5m2.e4m3.f16 ${mma}k16.row.col.f16.e5m2.e5m2.f16
w=wgmma.mma_async.sync.aligned.m64n
lists "variants.cu has every pair of types" "$dir/variants.ptx" \
    ${w}16k16.f32.f16.f16 ${w}16k16.f16.f16.f16 ${w}16k16.f32.bf16.bf16 ${w}16k8.f32.tf32.tf32 \
    ${w}16k32.f32.e4m3.e4m3 ${w}16k32.f32.e4m3.e5m2 ${w}16k32.f32.e5m2.e4m3 ${w}16k32.f32.e5m2.e5m2 \
    ${w}16k32.f16.e4m3.e4m3 ${w}16k32.f16.e4m3.e5m2 ${w}16k32.f16.e5m2.e4m3 ${w}16k32.f16.e5m2.e5m2 \
    ${w}24k16.f32.f16.f16 ${w}32k16.f32.f16.f16 ${w}64k16.f32.f16.f16 ${w}128k16.f32.f16.f16 ${w}256k16.f32.f16.f16 \
    ${w}256k16.f16.f16.f16 ${w}256k32.f32.e4m3.e4m3
# Signs of A and B, and whether they are MN-major; two registers of A and its descriptor
sed -n 's/.*wgmma.mma_async[^{]*{[^}]*}, *\({*\)[^;]*, p, \([-0-9, ]*\);.*/\1\2/p' "$dir/variants.ptx" | tr -d ' ' | sort -u >"$dir/out"
printf '%s\n' -1,-1 -1,-1,0,0 -1,1 -1,1,0,0 '{-1,1,0' '{1,1' '{1,1,0' '{1,1,1' 1,-1 1,-1,0,0 1,1 1,1,0,0 1,1,0,1 1,1,1,0 1,1,1,1 |
    sort | cmp -s - "$dir/out"
ok $? "negated, MN-major, and with A in registers"

# ---- the special function unit: every instruction that is asked, and nothing else in floating point ----
ptx functions sm_90
unit=".approx.ftz.f32 .approx.f32"
for f in ex2 rcp rsqrt lg2 sin cos sqrt div; do
    for way in $unit; do echo "$f$way"; done
done >"$dir/unit"
printf '%s\n' tanh.approx.f32 div.full.ftz.f32 div.full.f32 >>"$dir/unit"
for t in f16 f16x2; do printf '%s\n' "ex2.approx.$t" "tanh.approx.$t"; done >>"$dir/unit"
for t in bf16 bf16x2; do printf '%s\n' "ex2.approx.ftz.$t" "tanh.approx.$t"; done >>"$dir/unit"
arithmetic "$dir/functions.ptx" | sort -u >"$dir/out"
sort -u "$dir/unit" | cmp -s - "$dir/out"
ok $? "functions.cu has each of the 27 approximate instructions, and computes nothing else in floating point"
w=wgmma.mma_async.sp.sync.aligned.m64n16
lists "wgmma_sparse.cu has every sparse wgmma" "$dir/wgmma_sparse.ptx" ${w}k32.f32.f16.f16 ${w}k32.f16.f16.f16 \
    ${w}k32.f32.bf16.bf16 ${w}k16.f32.tf32.tf32 ${w}k64.f32.e4m3.e4m3 ${w}k64.f32.e5m2.e5m2 ${w}k64.f16.e4m3.e4m3
# ---- products of training, and what is measured: operations rounded to nearest, in a fixed order ----
rounded() { # rounded NAME FILE: nothing but rn and what is exact, no approximation, no flushing, no atomic sums
    { arithmetic "$2" | grep -v -E '^(add|sub|mul|div|fma|sqrt|rcp)\.rn\.f(32|64)$|^(setp|neg|abs|min|max)\.'
        grep -n -E '\.(ftz|approx)|(red|atom)\.[a-z.]*add\.[a-z.]*f' "$2"; } >"$dir/out"
    [ ! -s "$dir/out" ]
    ok $? "$1"
}
# Casts with a scale (...Li0ELi1E: to nearest, SCALED) cut a product off (rz), and compute what was lost (rp). Those with random
# bits (Li3E) cut sums off.
no_casts() { # no_casts FILE: without these instructions of these kernels
    awk '/\.entry/ { scaled = /usual_cast_kernel.*Li0ELi1E8gpu_list/; random = /usual_cast_kernel.*Li3ELi0E8gpu_list/ }
        !(scaled && /[ \t](mul\.rz|fma\.rp)\.f32 /) && !(random && /[ \t](add|fma)\.rz\.f32 /)' "$1"
}
ptx gemm sm_90
ptx speed sm_90
ptx stats sm_90
no_casts "$dir/speed.ptx" >"$dir/out" && mv "$dir/out" "$dir/speed.ptx"
for f in gemm speed stats; do
    rounded "$f.cu: every operation is rounded to nearest, none is approximated" "$dir/$f.ptx"
done
none "stats.cu: sums are sums of integers, without a binary64 fma" "$(grep 'fma[a-z.]*f64' "$dir/stats.ptx")"
# made FILE FLAG...: $dir/FILE, which the build keeps in gpu/library or gpu/stats, or nvcc makes of the source of that name
made() {
    kept=$built/library/$1
    [ -f "$kept" ] || kept=$built/stats/$1
    name=$1
    shift
    if [ -f "$kept" ]; then
        cp "$kept" "$dir/$name"
    else
        # shellcheck disable=SC2086 # flags
        "$NVCC" -std=c++17 -O2 -I"$MPSIM_SRCDIR/lib/include" -I"$MPSIM_SRCDIR/gpu/include" $MPSIM_NVCC_FLAGS "$@" -o "$dir/$name" \
            "$MPSIM_SRCDIR"/gpu/[ls]*/"${name%%.*}.cu" >"$dir/out" 2>"$dir/err"
    fi
    ok $? "$name of libmpsim-cuda"
}
made cast.sm_90.ptx -ptx -arch=compute_90
no_casts "$dir/cast.sm_90.ptx" >"$dir/cast.ptx"
rounded "cast.cu: the same, but that casts with a scale round to odd, and random bits cut off" "$dir/cast.ptx"
none "cast.cu: no other fma" "$(arithmetic "$dir/cast.ptx" | grep fma)"
made sum.sm_90.ptx -ptx -arch=compute_90
rounded "sum.cu: the same" "$dir/sum.sm_90.ptx"
none "sum.cu: no fma" "$(arithmetic "$dir/sum.sm_90.ptx" | grep fma)"
made optimizer.sm_90.ptx -ptx -arch=compute_90
rounded "optimizer.cu: the same" "$dir/optimizer.sm_90.ptx"
# Recipes of libraries whose kernels have fma ask for it, in binary32; others have none.
awk '/\.entry/ { name = $2; seen[name]; if (name !~ /optim_kernel|adafactor_/) delete seen[name] } /[ \t]fma\./ { n[name] = $1 }
    END {
        for (k in n) { fused += k in seen; if (!(k in seen) || n[k] != "fma.rn.f32") print k, n[k] }
        for (k in seen) plain += !(k in n)
        if (!fused || !plain) print  fused + 0, "kernels with fma,", plain + 0, "without"
    }' "$dir/optimizer.sm_90.ptx" >"$dir/out"
[ ! -s "$dir/out" ]
ok $? "optimizer.cu: fma in binary32, in kernels of optimizers, and not in all"
for f in muon norm; do
    made $f.sm_90.ptx -ptx -arch=compute_90
    rounded "$f.cu: the same" "$dir/$f.sm_90.ptx"
done
awk '/\.entry/ { name = $2 } /[ \t]fma\./ && ($1 != "fma.rn.f32" || name !~ /muon_(apply|momentum)_kernel/) { print name, $1 }' \
    "$dir/muon.sm_90.ptx" "$dir/norm.sm_90.ptx" | sort -u >"$dir/out"
[ ! -s "$dir/out" ]
ok $? "muon.cu and norm.cu: fma in binary32, where a variant contracts, and nowhere else"
lists "cast.cu has every packed conversion" "$dir/cast.sm_90.ptx" cvt.rn.f16x2.f32 cvt.rn.bf16x2.f32 \
    cvt.rn.satfinite.e4m3x2.f32 cvt.rn.satfinite.e5m2x2.f32
made cast.o -cubin -arch=sm_90
sh "$MPSIM_SRCDIR/gpu/sass.sh" "$dir/cast.o" >"$dir/out" 2>"$dir/err"
case $? in
77) echo "# no cuobjdump: instructions of casts are not counted" ;;
*)
    awk '{ most = /stochastic/ ? 41 : /to e2m1.*scaled/ ? 27 : /scaled|to e2m1, as/ ? 21 : 18 } !/ 0 bytes of stack/ || $(NF - 3) > most { bad = 1; print > "/dev/stderr" }
        END { exit bad || NR < 40 }' "$dir/out" 2>"$dir/err"
    ok $? "casts between usual formats: no stack, at most 18 instructions an element, 21 with a scale (27 to e2m1) and to e2m1 as a wider format, 41 with random bits"
    ;;
esac
made stats.o -cubin -arch=sm_90
sh "$MPSIM_SRCDIR/gpu/sassstats.sh" "$dir/stats.o" >"$dir/out" 2>"$dir/err"
case $? in
77) echo "# no cuobjdump: instructions of statistics are not counted" ;;
*)
    awk '$4 > 128 || $6 > 32 || $(NF - 3) > 22 + 5 * $2 { bad = 1; print > "/dev/stderr" } END { exit bad || NR != 5 }' "$dir/out" 2>"$dir/err"
    ok $? "statistics of binary32: at most 22 instructions an element, and 5 more for each cast"
    ;;
esac
engine=$(dirname "$MPSIM")/gpu/kernels/engine.o
if [ -f "$engine" ] && sh "$MPSIM_SRCDIR/gpu/sassrows.sh" "$engine" >"$dir/out" 2>"$dir/err"; then
    awk '!/ 0 bytes of stack/ { bad = 1 } END { exit bad || NR < 11 }' "$dir/out"
    ok $? "norms, softmax and attention in rows of eights: no stack"
fi
blocks=$(dirname "$MPSIM")/gpu/kernels/blocks.o # with the codes of one architecture, whose kernels are counted
if [ -f "$blocks" ] && KERNELS='[0-9]blocks_kernelILi1ELi[01]ELi0ELi32' sh "$MPSIM_SRCDIR/gpu/sassblocks.sh" "$blocks" >"$dir/out" 2>"$dir/err" &&
    [ "$(wc -l <"$dir/out")" -le 2 ]; then
    awk '!/ 0 bytes of stack/ || $(NF - 8) > 10 || $(NF - 4) { bad = 1 } END { exit bad || NR != 2 }' "$dir/out"
    ok $? "MXFP8 of bf16 takes at most 10 instructions an element and has no stack"
fi
# The most instructions a product, for the first words of a kernel's name that are in the list.
cat >"$dir/most" <<'X'
fma, binary32 1.3
fma, two lanes, flushed 3.7
fma 8.3
pairs to odd, flushed 5.8
tree of all products 2.3
sequential, binary32 2.3
sequential 11.3
fused, L = 16, staged, two sums 5.7
fused, L = 32 3.5
fused, L = 16 5.0
fused, L = 8 7.2
fused, L = 4 12.5
X
made gemm.o -cubin -arch=sm_90
made fused.o -cubin -arch=sm_90
sh "$MPSIM_SRCDIR/gpu/sassproducts.sh" "$dir/gemm.o" "$dir/fused.o" >"$dir/products" 2>"$dir/err"
case $? in
77) echo "# no cuobjdump: instructions of products are not counted" ;;
*)
    awk 'NR == FNR { name[n++] = substr($0, 1, length($0) - length($NF) - 1); most[n - 1] = $NF; next }
        { for (i = 0; i < n && index($0, name[i]) != 1; i++) continue }
        i < n { seen[i] = 1 }
        i < n && $(NF - 3) > most[i] { print; bad = 1 }
        END { for (i = 0; i < n; i++) if (!seen[i]) { print name[i], "is missing"; bad = 1 } exit bad }' \
        "$dir/most" "$dir/products" >"$dir/out"
    ok $? "products without tensor cores: at most so many instructions a product"
    ;;
esac
# libmpsim-cuda: fused additions in binary64
awk '/Compiling entry/ { on = /fused_kernel/; sub(/.*fused_kernelI/, ""); name = $1 }
    on && /spill stores/ { spilt = $5 } on && /Used/ { print "# fused additions", name ": " $5, "registers, spilt", spilt; on = 0; if (spilt > 64) bad = 1; n++ }
    END { exit bad || n < 4 }' "$built/library/fused.ptxas" >"$dir/out"
ok $? "fused additions: at most 64 bytes of registers are spilt"
cat "$dir/out"
awk '/\.entry/ { name = $0 } /[ \t]fma\./ && name !~ /gemm_fma/ { print name }' "$dir/gemm.ptx" | sort -u >"$dir/out"
grep -q 'fma\.rn\.f32' "$dir/gemm.ptx" && [ ! -s "$dir/out" ]
ok $? "gemm.cu: fma in the kernel of that model and nowhere else"
lists "gemm.cu has every mma.sync that trainings take" "$dir/gemm.ptx" \
    ${mma}k16.row.col.f32.f16.f16.f32 ${mma}k16.row.col.f32.bf16.bf16.f32 \
    ${mma}k8.row.col.f32.tf32.tf32.f32 ${mma}k32.row.col.f32.e4m3.e4m3.f32 \
    ${mma}k32.row.col.f32.e4m3.e5m2.f32 ${mma}k32.row.col.f32.e5m2.e4m3.f32 \
    ${mma}k32.row.col.f32.e5m2.e5m2.f32
ptx gemm_wgmma sm_90a
rounded "gemm_wgmma.cu: the same" "$dir/gemm_wgmma.ptx"
awk '/\.entry/ { name = $0 } /[ \t]fma\./ && name !~ /gemm_wgmma_kernelILi[3-6]ELi128ELi2ELi0E/ { print name }' \
    "$dir/gemm_wgmma.ptx" | sort -u >"$dir/out" # 2: GPU_SUMS_FACTORED
grep -q '[ 	]fma\.rn\.f32' "$dir/gemm_wgmma.ptx" && [ ! -s "$dir/out" ]
ok $? "gemm_wgmma.cu: fma where sums are multiplied by factors, in kernels of FP8, and nowhere else"
w=wgmma.mma_async.sync.aligned.m64n128
lists "gemm_wgmma.cu has every wgmma that trainings take" "$dir/gemm_wgmma.ptx" \
    ${w}k16.f32.f16.f16 ${w}k16.f32.bf16.bf16 ${w}k32.f32.e4m3.e4m3 ${w}k32.f32.e4m3.e5m2 \
    ${w}k32.f32.e5m2.e4m3 ${w}k32.f32.e5m2.e5m2
ptx gemm_tma sm_90a
rounded "gemm_tma.cu: the same" "$dir/gemm_tma.ptx"
awk '/\.entry/ { name = $0 } /[ \t]fma\./ && name !~ /gemm_tma_kernelILi[3-6]ELi1ELi1ELi2E/ { print name }' \
    "$dir/gemm_tma.ptx" | sort -u >"$dir/out" # 2: GPU_SUMS_FACTORED
grep -q '[ 	]fma\.rn\.f32' "$dir/gemm_tma.ptx" && [ ! -s "$dir/out" ]
ok $? "gemm_tma.cu: fma where sums are multiplied by factors, in kernels of FP8, and nowhere else"
v=wgmma.mma_async.sync.aligned.m64n256
lists "gemm_tma.cu has every wgmma that trainings take" "$dir/gemm_tma.ptx" \
    ${v}k16.f32.f16.f16 ${v}k16.f32.bf16.bf16 ${v}k32.f32.e4m3.e4m3 ${v}k32.f32.e4m3.e5m2 ${v}k32.f32.e5m2.e4m3 \
    ${v}k32.f32.e5m2.e5m2 ${w}k32.f32.e4m3.e4m3 ${w}k32.f32.e4m3.e5m2 ${w}k32.f32.e5m2.e4m3 ${w}k32.f32.e5m2.e5m2
# Of each kernel: wgmma of a stage (kept sums 4, of 256 columns; others 8), waits for them, tiles by TMA (MN-major 2 of an operand).
awk '/\.entry/ { name = $0; sub(/.*gemm_tma_kernelI/, "", name); sub(/EEv.*/, "", name); gsub(/E?Li/, " ", name); n++ }
    /wgmma\.mma_async/ { products[name]++ } /wgmma\.wait_group/ { waits[name]++ }
    /cp\.async\.bulk\.tensor/ { tiles[name]++; both[name] += /multicast::cluster/ }
    /setmaxnreg/ { registers[name]++ }
    END {
        for (k in products) {
            split(k, w, " ")
            kept = w[4] == 0
            if (products[k] != (kept ? 4 : 8) || waits[k] != 2 || registers[k] != 2 || both[k] != (w[3] ? 1 : 2) ||
                tiles[k] != (w[2] ? 1 : 2) + both[k])
                print k ": " products[k], waits[k], tiles[k], both[k], registers[k]
        }
        if (n != 20)
            print n " kernels"
    }' "$dir/gemm_tma.ptx" >"$dir/out"
[ ! -s "$dir/out" ]
ok $? "gemm_tma.cu: 20 kernels, each with the products, waits and tiles of one stage"
none "gemm_tma.cu: nothing waits for the device's memory in the loop" \
    "$(grep -n -E 'acquire\.cluster\.shared|arrive\.release\.cluster\.|fence\.proxy|membar' "$dir/gemm_tma.ptx" | grep -v 'barrier\.cluster')"
none "gemm_wgmma.cu: fences of shared memory alone" \
    "$(grep 'fence\.proxy' "$dir/gemm_wgmma.ptx" | grep -v '^[ 	]*fence\.proxy\.async\.shared::cta;')"

# ---- what ptxas made of it in the build: X.ptxas beside X.o, by gpu/nvcc-wrap.sh ----
ptxas() { # ptxas WANTED WHAT FILE...: the exit code of gpu/ptxas.sh
    want=$1
    shift
    sh "$MPSIM_SRCDIR/gpu/ptxas.sh" "$@" >"$dir/out" 2>"$dir/err"
    [ $? -eq "$want" ]
}
ptxas 0 serialised "$built/kernels/gemm_wgmma.ptxas" "$built/kernels/gemm_tma.ptxas" "$built/kernels/gemm.ptxas" \
    "$built/validation/checks/variants.ptxas" "$built/validation/checks/wgmma.ptxas" "$built/validation/checks/wgmma_sparse.ptxas" "$built/validation/checks/mma.ptxas"
ok $? "ptxas serialises no wgmma"
ptxas 0 spills "$built/kernels/gemm_wgmma.ptxas" "$built/kernels/gemm_tma.ptxas" "$built/kernels/gemm.ptxas" \
    "$built/validation/checks/variants.ptxas" "$built/validation/checks/wgmma.ptxas" "$built/validation/checks/wgmma_sparse.ptxas" "$built/validation/checks/mma.ptxas" \
    "$built/validation/checks/mma_variants.ptxas" "$built/validation/checks/dmma.ptxas"
ok $? "and spills nothing in matrix products and checks of their instructions"

# ---- the search itself: a register of a product under way is read; more registers than there are; no file ----
cat >"$dir/slow.cu" <<'X'
#define D(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
__global__ void __launch_bounds__(128) serial(float *x, unsigned long long a)
{
    float d[4] = {};
    for (int i = 0; i < 9; i++) {
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
        asm volatile("{ .reg .pred p; setp.ne.b32 p, 1, 0; wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 "
                     "{%0,%1,%2,%3}, %4, %4, p, 1, 1, 0, 0; }" : D(0) : "l"(a));
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        x[threadIdx.x] += d[0];
    }
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    x[threadIdx.x] += d[1] + d[2] + d[3];
}
__global__ void __launch_bounds__(1024, 2) spilt(float *x)
{
    float d[64];
    for (int i = 0; i < 64; i++)
        d[i] = x[i * threadIdx.x];
    __syncthreads();
    for (int i = 0; i < 64; i++)
        x[i + threadIdx.x] = d[i] * d[63 - i];
}
X
sh "$MPSIM_SRCDIR/gpu/nvcc-wrap.sh" "$dir/slow.ptxas" "$NVCC" -O2 -cubin -gencode arch=compute_90a,code=sm_90a \
    -o "$dir/slow.cubin" "$dir/slow.cu" >"$dir/out" 2>"$dir/err"
ok $? "kernels that are slow compile"
ptxas 1 serialised "$dir/slow.ptxas" && has serial
ok $? "a serialised wgmma is recognised"
ptxas 1 spills "$dir/slow.ptxas" && has spilt && ! has serial
ok $? "a spill is recognised"
ptxas 2 spills "$dir/slow.cubin" && ptxas 2 serialised "$dir/none.ptxas"
ok $? "and so is what ptxas did not write"

# ---- the check itself: contraction would be seen ----
cat >"$dir/bad.cu" <<'X'
__global__ void bad(float *x) { x[0] = x[1] * x[2] + x[3]; x[4] = __fdividef(x[0], x[1]); }
X
"$NVCC" -ptx -arch=compute_90 -o "$dir/bad.ptx" "$dir/bad.cu" >"$dir/out" 2>"$dir/err"
arithmetic "$dir/bad.ptx" | sort >"$dir/out"
printf '%s\n' div.approx.f32 fma.rn.f32 | cmp -s - "$dir/out"
ok $? "a contracted multiply-add and an approximate division are recognised"
{ arithmetic "$dir/bad.ptx" | grep -v -E '^(add|sub|mul|div|fma|sqrt)\.rn\.f(32|64)$'; } >"$dir/out"
[ "$(cat "$dir/out")" = div.approx.f32 ]
ok $? "and by the rule for trainings"

# ---- the training engine: fma in exp, log, tanh, erf and sigmoid, the optimizer's torch variants, promoted sums,
# quotients of blocks and random bits, and nowhere else ----
ptx engine sm_90
ptx blocks sm_90
cat "$dir/blocks.ptx" >>"$dir/engine.ptx"
# Floating-point operations, each as its instruction alone: "function instruction".
awk '/\.entry|^\.func|^\.visible/ { if (match($0, /_Z[A-Za-z0-9_]*/)) name = substr($0, RSTART, RLENGTH) }
    { for (i = 1; i <= NF; i++)
        if ($i ~ /^(add|sub|mul|div|fma|mad|sqrt|rsqrt|rcp|ex2|lg2|sin|cos|tanh)\..*f(16|32|64)$/)
            print name, $i }' "$dir/engine.ptx" | sort -u >"$dir/operations"
[ "$(wc -l <"$dir/operations")" -gt 20 ]
ok $? "operations are recognised"
# Random bits (of FP4, element 5 of blocks; of casts, mode 3) are added, and the sum is cut off. GELU has its reciprocal.
grep -v -E ' (add|sub|mul|div|rcp|fma|sqrt)\.rn\.f(32|64)$|blocks_kernelILi[0-2]ELi5E[^ ]* fma\.rz\.f32$|usual_cast_kernel[^ ]*Li3E[^ ]* (add|fma)\.rz\.f32$|flat_gelu[^ ]* rcp\.approx\.ftz\.f32$' \
    "$dir/operations" >"$dir/out"
[ ! -s "$dir/out" ]
ok $? "every operation is rounded to nearest, with subnormal numbers, exactly, but that random bits are added and the sum cut off"
grep ' fma\.' "$dir/operations" | grep -v -E 'softmax_exp|softmax_kernel|optim_kernel|promote_kernel|quantize_kernel|blocks?_kernel|usual_cast_kernel[^ ]*Li3E|activate|flat_gelu|flat_loss|causal|tile_' >"$dir/out"
[ ! -s "$dir/out" ]
ok $? "no fma but in exp, log and their like, the optimizer, promoted sums, quotients of blocks and random bits"
awk '/\.entry|^\.func|^\.visible/ { gelu = /flat_gelu/ } !(gelu && /[ \t]rcp\.approx\.ftz\.f32 /)' "$dir/engine.ptx" |
    grep -E '\.(ftz|approx)|red\.[a-z.]*add\.[a-z.]*f|atom\.[a-z.]*add\.[a-z.]*f' >"$dir/out"
[ ! -s "$dir/out" ]
ok $? "no flushing to zero, no approximation but GELU's reciprocal, no floating-point atomics"
! grep -q ' fma.*f64' "$dir/operations"
ok $? "no fma in the binary64 reference"
finish
