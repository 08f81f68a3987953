# common.sh -- what the experiments share: trainings, tables, figures. To be read by a script with
# the arguments FOLDER [SEED...]; reports, policies and figures go into FOLDER.
#
#     . "$(dirname "$0")/common.sh"
#     begin islands 'What an island in fp32 is worth'
#     policy all <<END               a policy of one's own, FOLDER/policies/all.yaml
#     precision: bf16
#     END
#     train plain --steps 200 -P fp32 -P policies/all.yaml
#     table                          every run and policy: validation loss with its spread
#     paired fp32                    differences from fp32, seed by seed
#     dots islands 'validation loss: difference from fp32'
#
# KEEP=1: trainings whose reports are there are not made again.
set -eu
if [ $# -lt 1 ]; then
    echo "usage: [MPSIM=PROGRAM] ${0##*/} FOLDER [SEED...]   (seeds 0 1 2 3 4)" >&2
    exit 2
fi
: "${MPSIM:=mpsim}" "${KEEP:=}"
here=$(cd "$(dirname "$0")" && pwd)
: "${MPSIM_PLOTS:=$here/../../../plots}" "${MPSIM_POLICIES:=$here/../../policies}" "${MPSIM_GNUPLOT:=gnuplot}"
MPSIM_PLOTS=$(cd "$MPSIM_PLOTS" && pwd) MPSIM_POLICIES=$(cd "$MPSIM_POLICIES" && pwd)
export MPSIM_PLOTS MPSIM_POLICIES
case $MPSIM in */*) MPSIM=$(cd "$(dirname "$MPSIM")" && pwd)/${MPSIM##*/} ;; esac
mkdir -p "$1"
cd "$1"
shift
[ $# -gt 0 ] || set -- 0 1 2 3 4
seeds=$*
echo "# Printed by data/experiments/transformer/${0##*/}: each table has its commands above it. README.md says how to read it."
awk='function mean(s, n) { return s / n }
function deviation(s, squares, n) { s = n > 1 ? (squares - s * s / n) / (n - 1) : 0; return s > 0 ? sqrt(s) : 0 }
function finite(x) { return x ~ /^[-+0-9.]/ && x !~ /[nN]/ }

# ranks(x, n, r): of x[1] to x[n], 1 the smallest, those of equal numbers their mean
function ranks(x, n, r, i, j, below, equal) {
    for (i = 1; i <= n; i++) {
        below = equal = 0
        for (j = 1; j <= n; j++) { below += x[j] < x[i]; equal += x[j] == x[i] }
        r[i] = below + (equal + 1) / 2
    }
}

# spearman(x, y, n): the correlation of their ranks
function spearman(x, y, n, r, q, i, m, a, b, c) {
    ranks(x, n, r); ranks(y, n, q)
    m = (n + 1) / 2
    for (i = 1; i <= n; i++) {
        a += (r[i] - m) ^ 2; b += (q[i] - m) ^ 2; c += (r[i] - m) * (q[i] - m)
    }
    return a * b > 0 ? c / sqrt(a * b) : 0
}'

# begin NAME TITLE: an experiment; its rows are in NAME.rows
begin() {
    experiment=$1
    printf '\n# %s\n' "$2"
    mkdir -p policies "$experiment"
    : >"$experiment.rows"
}

# columns COLUMN...: a table begins: an empty line, the names of its columns, tabs between them
columns() {
    printf '\n%s' "$1"
    shift
    printf '\t%s' "$@"
    echo
}

# policy NAME: standard input as policies/NAME.yaml, by that name
policy() {
    {
        echo "name: $1"
        cat
    } >"policies/$1.yaml"
}

# train NAME OPTION...: of each seed a report, EXPERIMENT/NAME-SEED.json, and rows
train() {
    run=$1
    shift
    echo "# $run: mpsim train --net gpt $*"
    for seed in $seeds; do
        report=$experiment/$run-$seed.json
        if [ -z "$KEEP" ] || [ ! -s "$report" ]; then
            "$MPSIM" train --net gpt --quiet --threads 1 --json --every 100000 --seed "$seed" \
                "$@" -o "$report"
        fi
        rows "$run" "$seed" "$report" >>"$experiment.rows"
    done
}

# rows RUN SEED REPORT: of each policy, tab-separated: run, policy, seed, validation loss, loss at
# the end, what is lost of activations, of their gradients, of weight gradients and of updates (per
# cent), skipped steps, verdict
rows() {
    awk -v run="$1" -v seed="$2" '
        function text(key) {
            if (!match($0, "\"" key "\": *\"[^\"]*\"")) return ""
            return substr($0, RSTART + length(key) + 5, RLENGTH - length(key) - 6)
        }
        function number(key) { # "NaN" and "Infinity" are words
            if (match($0, "\"" key "\": *[0-9.eE+-]+"))
                return substr($0, RSTART + length(key) + 4, RLENGTH - length(key) - 4)
            return text(key)
        }
        function share(kind, whole, part) {
            match($0, "\"" kind "\": *[{][^}]*")
            whole = $0
            $0 = substr(whole, RSTART, RLENGTH)
            part = number("nonzero") ? 100 * number("lost") / number("nonzero") : 0
            $0 = whole
            return part
        }
        /^{"policy"/ { name = text("name") }
        /^"total"/ {
            match($0, "\"updates\": *[0-9]+, \"lost\": *[0-9]+")
            split(substr($0, RSTART, RLENGTH), u, /[:,] */)
            printf "%s\t%s\t%s\t%s\t%s\t%.6g\t%.6g\t%.6g\t%.6g\t%d\t%s\n", run, name, seed, \
                number("validation_loss"), number("final_loss"), share("act"), share("agrad"), \
                share("wgrad"), u[2] ? 100 * u[4] / u[2] : 0, number("skipped"), text("status")
        }' "$3"
}

# table [sorted]: a line for each run and policy, in their order or by validation loss
table() {
    columns run policy 'validation loss' 'lowest to highest' perplexity 'loss at the end' \
        'activation gradients zero' 'updates lost' skipped verdict
    awk -F '\t' "$awk"'
        function shown(x) { return x == 0 ? "0" : x < 0.1 ? "< 0.1 %" : sprintf("%.1f %%", x) }
        { key = $1 "\t" $2 }
        !(key in runs) { order[++rows] = key }
        {
            n = ++runs[key]
            end[key] += $5; agrad[key] += $7; lost[key] += $9
            if ($10 > skipped[key]) skipped[key] = $10
            if ($11 != "") verdict[key] = $11
            if (!finite($4)) { bad[key]++; next }
            sum[key] += $4; squares[key] += $4 * $4
            if (n == 1 || $4 < low[key]) low[key] = $4
            if (n == 1 || $4 > high[key]) high[key] = $4
        }
        END {
            for (i = 1; i <= rows; i++) {
                k = order[i]; n = runs[k]
                split(k, part, "\t")
                m = sum[k] / n
                loss = sprintf("%.4f ± %.4f\t%.4f to %.4f\t%.4g\t%.4f", m, \
                    deviation(sum[k], squares[k], n), low[k], high[k], exp(m), end[k] / n)
                if (bad[k]) loss = "NaN (" bad[k] " of " n ")\t\t\t"
                printf "%.9f\t%s\t%s\t%s\t%s\t%s\t%d\t%s\n", bad[k] ? 1e9 : m, part[1], \
                    part[2], loss, shown(agrad[k] / n), shown(lost[k] / n), skipped[k], verdict[k]
            }
        }' "$experiment.rows" | if [ "${1-}" = sorted ]; then sort -n; else cat; fi | cut -f 2-
}

# paired POLICY [RUN]: differences of validation losses from POLICY's in the same run (or in RUN),
# seed by seed: mean and deviation, and whether they can be told from nothing: by the 95 % interval of
# Student's t, and 0.00001 at least. Each difference is in EXPERIMENT.paired: label (POLICY, of several runs
# RUN: POLICY), seed, difference.
paired() {
    columns run policy "difference from $1${2:+ in $2}" 'lowest to highest' 'above in' verdict
    awk -F '\t' -v base="$1" -v within="${2-}" -v out="$experiment.paired" "$awk"'
        function label() { return n_runs > 1 ? part[1] ": " part[2] : part[2] }
        BEGIN {
            split("12.706 4.303 3.182 2.776 2.571 2.447 2.365 2.306 2.262", t, " ")
            printf "" >out
        }
        { key = $1 "\t" $2; loss[key, $3] = $4 }
        !($1 in runs) { runs[$1] = 1; n_runs++ }
        !(key in rows) { rows[key] = 1; order[++n_rows] = key }
        !($3 in seeds) { seeds[$3] = 1; seed[++n] = $3 }
        END {
            for (i = 1; i <= n_rows; i++) {
                split(order[i], part, "\t")
                from = (within == "" ? part[1] : within) "\t" base
                if (from == order[i] || !(from in rows)) continue
                sum = squares = above = bad = 0
                for (s = 1; s <= n; s++) {
                    a = loss[order[i], seed[s]]; b = loss[from, seed[s]]
                    if (!finite(a) || !finite(b)) { bad++; continue }
                    d = a - b
                    print label() "\t" seed[s] "\t" d >out
                    if (s == 1 || d < low) low = d
                    if (s == 1 || d > high) high = d
                    sum += d; squares += d * d; above += d > 0
                }
                if (bad) {
                    print part[1] "\t" part[2] "\tNaN in " bad " of " n "\t\t\tdiverged"
                    continue
                }
                m = sum / n; s = deviation(sum, squares, n)
                size = m > 0 ? m : -m
                far = n > 1 && n <= 10 && size >= 5e-6 && size > t[n - 1] * s / sqrt(n)
                printf "%s\t%s\t%+.5f ± %.5f\t%+.5f to %+.5f\t%d of %d\t%s\n", part[1], \
                    part[2], m, s, low, high, above, n, \
                    (!far ? "no difference" : (m > 0 ? "worse" : "better"))
            }
        }' "$experiment.rows"
}

# dots NAME AXIS [LIMIT [FILE]]: the figure NAME.png of EXPERIMENT.paired (or FILE): a line for each
# label, a dot for each seed, a bar at their mean; what is further than LIMIT stands at the border
dots() {
    awk -F '\t' '
        !($1 in row) { row[$1] = ++rows; label[rows] = $1 }
        { sum[$1] += $3; n[$1]++; value[$1, n[$1]] = $3 }
        END {
            for (i = 1; i <= rows; i++)
                for (j = 1; j <= n[label[i]]; j++)
                    print i "\t" label[i] "\t" value[label[i], j] "\t" sum[label[i]] / n[label[i]]
        }' "${4:-$experiment.paired}" >"$1.dat"
    gnuplot_figure dots "$1" "axis = '$2'; limit = ${3:-0}"
}

# curves NAME AXIS UNIT FILE [LOGARITHMIC]: the figure NAME.png of lines "series, x, value" (tabs
# between), one for each seed, x growing: a curve for each series through the means, a mark for each
# seed. LOGARITHMIC: x, y or xy
curves() {
    awk -F '\t' '
        !($1 in series) { series[$1] = ++n }
        { sum[$1, $2] += $3; count[$1, $2]++; line[NR] = $0 }
        END {
            for (i = 1; i <= NR; i++) {
                split(line[i], f, "\t")
                print series[f[1]] "\t" line[i] "\t" sum[f[1], f[2]] / count[f[1], f[2]]
            }
        }' "$4" >"$1.dat"
    gnuplot_figure curves "$1" "axis = '$2'; unit = '$3'; logarithmic = '${5-}'; \
        ticks = '$(cut -f 2 "$4" | sort -u | tr '\n' ' ')'"
}

gnuplot_figure() { # gnuplot_figure TEMPLATE NAME SETTINGS
    "$MPSIM_GNUPLOT" -e "figure = '$2'; data = '$2.dat'; $3" "$MPSIM_PLOTS/style.gp" \
        "$MPSIM_PLOTS/$1.gp"
    printf '# figure: %s.png\n' "$2"
}
