#!/bin/sh
# excerpt.sh -- the rows of doc/explanations/speed.md from the CSV of make bench: excerpt.sh bench.csv
set -eu
awk -F, '
BEGIN {
    # operation/what/how = words
    n = split("round/fp16/nearest-even=binary32 rounded to fp16;" \
              "encode/e4m3/nearest-even=binary32 to E4M3 codes;" \
              "round/bf16/stochastic-c=binary32 to bf16, stochastic;" \
              "quantize/mxfp8/values=MXFP8, blocks of 32;" \
              "add/fp16/nearest-even=fp16 additions;" \
              "stat/binary32/all of 4 formats=`mpsim stat` of a binary32 file, four formats;" \
              "stat/bf16/all of 4 formats=the same of a bf16 file;" \
              "adamw/torch-foreach/binary32 28 B=AdamW steps as torch does them;" \
              "gemm/hopper-fp16-fp32/fp16=multiply-adds as a tensor core does them;" \
              "train/fp16/mlp 512 step=multiply-adds of whole training steps", rows, ";")
    for (i = 1; i <= n; i++) {
        split(rows[i], r, "=")
        words[r[1]] = r[2]
        order[i] = r[1]
    }
}
/^# mpsim/ { machine = substr($0, 3) }
/^# (gcc|Clang|clang|Ubuntu|Debian)/ { compiler = substr($0, 3) }
{ key = $2 "/" $3 "/" $4 }
key in words && $6 == 1 && !(key in seen) { # the best instruction set comes first
    seen[key] = 1
    speed[key] = $8 >= 999.5e6 ? sprintf("%.1f G", $8 / 1e9) : sprintf("%.0f M", $8 / 1e6)
    to = $10 == "memcpy" ? $10 : "a " ($10 ~ /^plain/ ? $10 : "plain " $10)
    ratio[key] = $10 == "" ? "" : sprintf($9 < 2 ? "%.2f of %s" : "%.1f times %s", $9, to)
}
END {
    print machine "; " compiler "."
    print ""
    print "| one core | a second | speed |"
    print "|---|---|---|"
    for (i = 1; i <= n; i++)
        if (order[i] in seen)
            printf "| %s | %s | %s |\n", words[order[i]], speed[order[i]], ratio[order[i]]
}' "${1:?the CSV of make bench}"
