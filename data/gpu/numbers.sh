#!/bin/sh
# numbers.sh -- the lines of pages that say what devices answered, with every number counted from the records:
#
#   sh data/gpu/numbers.sh PAGE      the lines of this page, as data/gpu/README.md
#   sh data/gpu/numbers.sh --pages   the pages that have such lines
#
# Records: data/gpu/*.json, *.digests, *.txt; answers of PyTorch: data/vectors/device/*/answers.txt. MPSIM_RECORDS is another data/gpu.
# tests/gpu/numbers.sh compares the pages. A check or a training that several records have is counted once.
set -u
LC_ALL=C
export LC_ALL
top=$(cd "$(dirname "$0")/../.." && pwd) || exit 4
pages='README.md data/gpu/README.md data/gpu/speeds.tsv gpu/README.md doc/explanations/accumulation.md doc/explanations/evidence.md data/vectors/device/README.md'
case ${1-} in
--pages) echo "$pages" | tr ' ' '\n' && exit 0 ;;
esac
case " $pages " in
*" ${1:-none} "*) ;;
*) echo "usage: $0 PAGE|--pages; pages: $pages" >&2 && exit 2 ;;
esac
records=${MPSIM_RECORDS:-$top/data/gpu}
set -- "$1" "$records"/*.json "$records"/*.digests "$records"/*.txt "$top"/data/vectors/device/*/answers.txt
page=$1
shift
for f in "$@"; do # patterns without a file
    shift
    [ ! -f "$f" ] || set -- "$@" "$f"
done
exec awk -v page="$page" '
# ---- a line of a record: {"key":number,"key":"text",...} ----
function value(key,    s) {
    if (!match($0, "\"" key "\": ?")) return ""
    s = substr($0, RSTART + RLENGTH)
    if (s ~ /^"/) { s = substr(s, 2); sub(/".*/, "", s) } else sub(/[],}].*/, "", s)
    return s
}
# ---- numbers as pages have them ----
function grouped(n,    s, t) {
    for (s = sprintf("%.0f", n); length(s) > 3; s = substr(s, 1, length(s) - 3)) t = "," substr(s, length(s) - 2) t
    return s t
}
function large(n) { n += 0; return n >= 1e9 ? sprintf("%.3g billion", n / 1e9) : n >= 1e6 ? sprintf("%.3g million", n / 1e6) : grouped(n) }
function percent(x) { return sprintf("%.0f %%", 100 * x) }
function range(a, b) { return a == b ? a : a " to " b }
function also(list, word) { return index(", " list ",", ", " word ",") ? list : list (list == "" ? "" : ", ") word }
function day(date,    m) {
    m = substr("January  February March    April    May      June     July     August   SeptemberOctober  November December ", \
               9 * substr(date, 6, 2) - 8, 9)
    sub(/ *$/, "", m)
    return substr(date, 9, 2) + 0 " " m " " substr(date, 1, 4)
}
function power(n) { return sprintf("2^%d", log(n) / log(2) + 0.5) }
function differing(n) { return n ? grouped(n) : "0" }
function differing_checks(k) { return differing(differ[k]) (answers[k] ? ", and " grouped(answers[k]) " that answer questions" : "") }

# ---- records ----
FNR == 1 {
    file = FILENAME
    sub(/.*\//, "", file)
    kind = FILENAME ~ /answers\.txt$/ ? "answers" : FILENAME ~ /\.digests$/ ? "digests" : FILENAME ~ /\.txt$/ ? "log" : "record"
    folder = FILENAME
    sub(/\/[^\/]*$/, "", folder)
    sub(/.*\//, "", folder)
    part = file # without the device, the day and the end of the name
    sub(/^.*-[0-9][0-9]-[0-9][0-9]-/, "", part)
    sub(/\.[a-z]*$/, "", part)
}
kind == "record" && value("schema") == "mpsim.gpu/1" {
    if (value("quick") + 0) kind = "a quick one"
    cuda = value("driver_cuda")
    device = value("device")
    short = device
    sub(/^NVIDIA /, "", short)
    devices = also(devices, short)
    head = sprintf("%s (sm_%s, driver %s, CUDA %d.%d) on %s", device, value("sm"), value("driver"), cuda / 1000, cuda % 1000 / 10, \
                   day(value("date")))
    heads_of[++records] = head # of each record
    if (!(head in seen)) { seen[head] = 1; heads = heads (heads == "" ? "" : "; ") head }
    next
}
kind == "record" && /"numbers": / && /"digest": / {
    array = $0
    sub(/"equal": .*/, "", array)
    arrays += !(array in seen)
    seen[array] = 1
    arrays_differ += value("equal") != "true"
}
kind == "record" && /"question": "/ { questions++; questions_differ += value("status") != "equal" }
kind == "log" && /ERROR SUMMARY: |RACECHECK SUMMARY: / {
    n = $0
    sub(/.*SUMMARY: /, "", n)
    errors[part] += n
    has_log[part] = 1
}

function check_kind(s) {
    return s ~ /^convert .* below$/ ? "below" : s ~ /^convert / ? "convert" : s ~ /^(add|sub|mul|div|fma|sqrt) / ? "arithmetic" : \
        s ~ /^cvt\./ ? "cvt" : s ~ /^(memory|variant) / ? substr(s, 1, 6) : s ~ /^wgmma.* as mma.sync$/ ? "same" : s ~ /^mma\./ ? "mma" : s ~ /^wgmma\./ ? "wgmma" : "other"
}
kind == "record" && value("status") == "done" && value("count") != "" {
    what = value("name")
    k = check_kind(what)
    if (value("question") == "true") answers[k] += value("mismatches") # no error: what the answer is
    else differ[k] += value("mismatches")
    all_differ += value("question") == "true" ? 0 : value("mismatches")
    if (("check " what) in seen) next
    seen["check " what] = 1
    checks[k]++
    results[k] += value("count")
    seconds[k] += value("seconds")
    if (!(k in fastest) || value("seconds") < fastest[k]) fastest[k] = value("seconds") + 0
    if (value("seconds") > slowest[k]) slowest[k] = value("seconds") + 0
    split(what, word, " ")
    if (k == "convert") { formats = also(formats, word[2]); operands = value("count") }
    if (k == "arithmetic" && word[2] == "binary32") triples = value("count")
    if (k == "arithmetic" && word[2] != "binary32" && word[1] != "fma") couples = value("count")
    if (k == "other") { others = also(others, word[1]); of_word[word[1]]++ }
    if (k == "mma" || k == "wgmma") { pair = word[1] " " word[2]; pairs[k] += !(pair in kinds); kinds[pair]++; each = value("count") }
}
kind == "record" && value("status") == "done" && /"instruction":/ && /"d":/ && !(("probe " value("id") value("instruction") \
    value("operands") value("result")) in seen) {
    seen["probe " value("id") value("instruction") value("operands") value("result")] = 1
    probes++
}
kind == "record" && /"run":/ && value("status") ~ /^(equal|differs)$/ {
    trainings_differ += value("status") != "equal"
    listed[value("digests")] = 1
    listed[substr(file, 1, length(file) - length(part) - 5) value("digests")] = 1 # as take.sh calls it
    if (("run " value("run")) in seen) next
    seen["run " value("run")] = 1
    trained = value("run")
    nets = also(nets, substr(trained, 1, index(trained, "-") - 1))
    ways = also(ways, substr(trained, index(trained, "-") + 1))
    trainings++
    steps += value("steps")
    tensors += value("tensors")
}
kind == "digests" && /^[0-9]/ { digest_steps[file]++ }

# ---- speeds: a row that has a rate; rates of libraries by operands ----
kind == "record" && value("status") == "done" && value("seconds") + 0 > 0 && value("bytes") + value("flops") > 0 {
    rows++
    in_record[rows] = records
    row[rows] = value("name")
    subject[rows] = value("name")
    sub(/,.*/, "", subject[rows])
    of[rows] = records " " subject[rows] # shares are of rates in the same record
    path[rows] = substr(row[rows], length(subject[rows]) + 3)
    flops[rows] = value("flops") / value("seconds")
    bytes[rows] = value("bytes") / value("seconds")
    clock[rows] = value("sm_clock") + 0
    capped[rows] = value("throttle_text") ~ /power cap/
    library[rows] = path[rows] ~ /cublas|cuBLAS/
    mode = library[rows] ? (path[rows] ~ /fast/ ? "fast" : path[rows] ~ /cublasLt/ ? "accurate" : "library") : ""
    if (mode != "" && flops[rows] > best[of[rows], mode]) { best[of[rows], mode] = flops[rows]; best_clock[of[rows], mode] = clock[rows] }
    if (bytes[rows] > 0 && row[rows] ~ /^copy/ && bytes[rows] > copy[records]) copy[records] = bytes[rows]
}
# Of the library: that which adds as the path does; of promoted sums both.
function share(i, mode, words, per_clock,    r) {
    r = flops[i] / best[of[i], mode]
    if (per_clock && !(clock[i] * best_clock[of[i], mode])) return "not known"
    return (per_clock ? percent(r * best_clock[of[i], mode] / clock[i]) : percent(r)) words
}
function shares(i, per_clock) {
    if (best[of[i], "library"] > 0) return share(i, "library", "", per_clock)
    if (best[of[i], "fast"] == 0 || best[of[i], "accurate"] == 0) return ""
    if (library[i]) return share(i, path[i] ~ /fast/ ? "fast" : "accurate", "", per_clock)
    if (path[i] ~ /promoted|blocks/) return share(i, "accurate", " of the accurate mode, ", per_clock) share(i, "fast", " of the fast one", per_clock)
    return share(i, "fast", " of the fast mode", per_clock)
}
# cells: a row of a page, or of a file of columns
function cells(whole, a, b, c, d, e, f) {
    if (whole) print a "\t" b "\t" c "\t" d "\t" e "\t" f
    else print "| " a " | " b " | " c " | " d " | " e " | " f " |"
}
# Of a page, our largest tiles, and promoted sums; of the file (whole) all rows.
function speed_table(record, whole,    i, least, most, held, products) {
    cells(whole, "product", "kernel", "Tf/s", "clock, MHz", "of the library'\''s rate", "of its rate per clock")
    if (!whole) print "|---|---|---|---|---|---|"
    for (i = 1; i <= rows; i++)
        if (flops[i] > 0 && in_record[i] == record) {
            if (whole || path[i] ~ /128 x 256|promoted/)
                cells(whole, subject[i], path[i], sprintf("%.0f", flops[i] / 1e12), clock[i], shares(i, 0), shares(i, 1))
            if (!least || clock[i] < least) least = clock[i]
            if (clock[i] > most) most = clock[i]
            held += capped[i]
            products++
        }
    if (whole) return
    print ""
    printf "The clock was %s MHz after the runs; the power cap limited it in %d of %d rows.\n", range(least, most), held, products
    printf "Casts reach %s of the copy'\''s %.0f GB/s, digests %s, quantisation %s.\n", copies_of(record, "^cast"), \
        copy[record] / 1e9, copies_of(record, "^digest"), copies_of(record, "^quantize")
}
function copies_of(record, pattern,    i, least, most) {
    for (i = 1; i <= rows; i++)
        if (bytes[i] > 0 && in_record[i] == record && row[i] ~ pattern) {
            if (!least || bytes[i] < least) least = bytes[i]
            if (bytes[i] > most) most = bytes[i]
        }
    return copy[record] ? range(sprintf("%.0f", 100 * least / copy[record]), sprintf("%.0f", 100 * most / copy[record])) " %" : "0 %"
}
# Each record that has speeds, the newest last.
function speed_tables(whole,    i, last) {
    for (i = 1; i <= rows; i++)
        if (in_record[i] != last) {
            if (last) print ""
            last = in_record[i]
            print (whole ? "# " : "") heads_of[last] ":"
            if (!whole) print ""
            speed_table(last, whole)
        }
}

# ---- answers of PyTorch ----
kind == "answers" && folder !~ /^cpu-/ {
    question = $1
    sub(/:$/, "", question)
    asked[question]++
    refused[question] += / refused: /
    fitting[question] += /: fits /
}

# ---- pages ----
function counted(words,    word, n, i, s) { # "red, atom": how many checks begin so
    n = split(words, word, ", ")
    for (i = 1; i <= n; i++) s = s (i > 1 ? ", " : "") word[i] " (" of_word[word[i]] ")"
    return s
}
function in_table(what, much, differs) { printf "| %s | %s | %s |\n", what, much, differs }
function kept(has, short, what, much, differs) { # a row, or a name in the list of what has no record
    if (has) in_table(what, much, differs)
    else missing = also(missing, short)
}
function log_row(tool, what,    name) {
    name = tool
    sub(/-.*/, "", name)
    kept(has_log[tool], "compute-sanitizer of some checks", "compute-sanitizer'\''s " name " of " what, "", differing(errors[tool]) " errors")
}
function more_checks(k, what) { in_table(checks[k] " " what, large(results[k]) " results", differing_checks(k)) }
function page_of_records(    f, more, more_steps, pair, few, many) {
    for (f in digest_steps) if (!(f in listed)) { more++; more_steps += digest_steps[f] }
    for (pair in kinds) { if (!few || kinds[pair] < few) few = kinds[pair]; if (kinds[pair] > many) many = kinds[pair] }
    print heads ":"
    print ""
    in_table("what", "how much", "differs")
    print "|---|---|---|"
    in_table("conversions of binary32 to " formats " (`cvt`, " checks["convert"] " instructions): all " power(operands) " operands of each, NaN bits, too", \
        large(results["convert"]) " results", differing_checks("convert"))
    in_table("the 13 bits below a tf32 after " checks["below"] " of these conversions, run again", \
        large(results["below"]) " results", differing_checks("below"))
    in_table("fp16 and bf16: add, sub, mul, div of all " power(couples) " pairs, " power(triples) " fma; " \
        "binary32: add, sub, mul, fma, div, sqrt, " power(triples) " each", \
        large(results["arithmetic"]) " results", differing_checks("arithmetic"))
    in_table("`mma.sync` beside its model: " pairs["mma"] " pairs of formats and depths, " range(few, many) " kinds of operands, " \
        large(each) " results of each", large(results["mma"]) " results", differing_checks("mma"))
    in_table("`wgmma` beside its model: " pairs["wgmma"] " pairs, the same", large(results["wgmma"]) " results", differing_checks("wgmma"))
    in_table("`wgmma` beside `mma.sync`, the same operands: " checks["same"] " pairs", large(results["same"]) " results", differing_checks("same"))
    if (checks["cvt"]) more_checks("cvt", "more conversions (`cvt`: relu, satfinite, up, down, pairs, other sources)")
    if (checks["memory"]) more_checks("memory", "reductions in memory (`red`, `atom`, `cp.reduce`, orders of sums)")
    if (checks["varian"]) more_checks("varian", "variants of instructions of tensor cores")
    if (checks["other"]) more_checks("other", "other checks: " counted(others))
    in_table("probes of single instructions (`gpu/validation/checks/probes.c`)", probes, "0 from the model rows: `t-record` repeats them")
    in_table(trainings " trainings (`gpu/runs`: " nets "; " ways ")", grouped(steps) " steps, " grouped(tensors) " tensors, every bit", \
        differing(trainings_differ))
    in_table(more " trainings by `mpsim train --device cuda` (`more-*.digests`, to which the device'\''s name was added here)", \
        grouped(more_steps) " steps, a digest of all tensors of each", "0: `t-digests` repeats them")
    log_row("memcheck", "checks and kernels")
    log_row("memcheck-variants", "variants of instructions of tensor cores")
    log_row("racecheck", "`gpt-fp8`")
    log_row("memcheck-statistics", "a quarter of the arrays of statistics")
    log_row("racecheck-statistics", "an eighth of them")
    kept(arrays, "`mpsim-gpu-statistics`", "statistics of libmpsim-cuda (`mpsim-gpu-statistics`)", grouped(arrays) " arrays", differing(arrays_differ))
    kept(questions, "`python/cuda_check.py`", "`mpsim.stat` and `mpsim.watch` of tensors on the device (`python/cuda_check.py`)", grouped(questions) " reports and trainings", \
        differing(questions_differ))
    print ""
    printf "Conversions and operations are %s results, %s without the %d repeated conversions. Tensor cores gave\n%s results that a model repeats.\n", \
        large(results["convert"] + results["arithmetic"] + results["below"]), large(results["convert"] + results["arithmetic"]), checks["below"], \
        large(results["mma"] + results["wgmma"])
    if (missing != "") print "\nNo record is kept of " missing "."
    print ""
    speed_tables(0)
}
END {
    verdict = all_differ + differ["same"] + trainings_differ
    cores = results["mma"] + results["wgmma"]
    if (page == "README.md") {
        printf "* **CUDA.** An %s ran the kernels and the Hopper models: %s in %s results and %d trainings\n", devices, \
            verdict ? grouped(verdict) " differences" : "no bit differed", \
            large(results["convert"] + results["arithmetic"] + cores), trainings
        print "  ([data/gpu](data/gpu/README.md))."
    }
    if (page == "data/gpu/README.md") page_of_records()
    if (page == "data/gpu/speeds.tsv") speed_tables(1)
    if (page == "gpu/README.md") {
        printf "An %s checks %s conversions in %s s, and %s results of `wgmma` in %s s. On average\n", devices, power(operands), \
            range(sprintf("%.2f", fastest["convert"]), sprintf("%.2f", slowest["convert"])), power(each), \
            range(sprintf("%.3f", fastest["wgmma"]), sprintf("%.3f", slowest["wgmma"]))
        printf "a result of `wgmma` takes %.1f ns, a result of `mma.sync` %.1f ns.\n", 1e9 * seconds["wgmma"] / results["wgmma"], \
            1e9 * seconds["mma"] / results["mma"]
    }
    if (page == "doc/explanations/accumulation.md") {
        printf "  %s results of each: %s results, %s mismatches.\n", large(each), large(cores), differing(differ["mma"] + differ["wgmma"])
        printf "  %d probes of single questions (the sign of a zero sum, the floor, overflow, the bits of a NaN) gave what the rows say.\n", probes
    }
    if (page == "doc/explanations/evidence.md")
        printf "On an %s %s tensors of %s steps in %d trainings were %s ([records](../../data/gpu/README.md)).\n", devices, \
            grouped(tensors), grouped(steps), trainings, \
            trainings_differ ? "compared, and " trainings_differ " trainings differ" : "equal in every bit"
    if (page == "data/vectors/device/README.md") {
        printf "Of %d products %d fit a way to multiply that the library has; of %d questions on `_scaled_mm` %d, and PyTorch refuses %d.\n", \
            asked["products"], fitting["products"], asked["scaled"], fitting["scaled"], refused["scaled"]
    }
}' "$@"
