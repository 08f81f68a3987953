# sass.awk -- what sass.sh, sassproducts.sh, sassrows.sh and sassblocks.sh share: cuobjdump's registers, bytes of stack and instructions of the kernels whose
# names match `wanted`; loops; ways through them. The other file has report(name, registers, bytes of stack), which prints a kernel
# from text[0] to text[n - 1] and returns whether it did. Exit code 2: nothing was printed.
/^ *Function [^:]*:/ && !/Function :/ { of = $2; sub(/:.*/, "", of) }
/REG:/ && of ~ wanted {
    match($0, /REG:[0-9]+/); registers[of] = substr($0, RSTART + 4, RLENGTH - 4)
    match($0, /STACK:[0-9]+/); stack[of] = substr($0, RSTART + 6, RLENGTH - 6)
    of = ""
}
/Function : / {
    finish()
    name = $3
    next
}
name ~ wanted && match($0, /^ *\/\*[0-9a-f]+\*\//) {
    at = $1
    gsub(/[\/*]/, "", at)
    text[n] = $0
    sub(/;.*/, "", text[n])
    place[at] = n++
}
function finish() {
    if (n) seen += report(name, registers[name], stack[name])
    n = 0
    delete place
}
# Where instruction k may jump; -1: nowhere.
function target(k,   at) {
    if (!match(text[k], /BRA.* 0x[0-9a-f]+/)) return -1
    at = substr(text[k], RSTART, RLENGTH)
    sub(/.* 0x/, "", at)
    while (length(at) < 4) at = "0" at
    return at in place ? place[at] : -1
}
# The way of fewest instructions from the first to the last of a loop; past: past the loops in it, which are for rare elements.
# before[k]: what comes before instruction k on the way to it.
function shortest(from, to, past,   k, where, cost, rare, last) {
    for (k = from; k <= to; k++) cost[k] = 1e9
    for (last = from; past && last < to; last++)
        if ((where = target(last)) > from && where < last)
            for (k = where; k <= last; k++) rare[k]
    cost[from] = 1
    for (k = from; k < to; k++) {
        if (k in rare) continue
        where = target(k)
        if (where > k && where <= to && cost[k] + 1 < cost[where]) { cost[where] = cost[k] + 1; before[where] = k }
        if ((where < 0 || text[k] ~ /@|BRA[.]DIV|BRA !?U?P/) && cost[k] + 1 < cost[k + 1]) { cost[k + 1] = cost[k] + 1; before[k + 1] = k }
    }
    return cost[to]
}
END {
    finish()
    exit seen ? 0 : 2
}
