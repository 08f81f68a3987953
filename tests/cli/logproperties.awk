# logproperties.awk -- training logs whose verdict is known from how they are made, for logproperties.sh: files 1, 2, ..., and in
# the file index a line for each: file, group, property, want, how it was made. want: a pattern of the class; with ! before it,
# one that does not fit; =, the class of the first log of the group. Of six parts (part=0 to 5, or all) the groups of one.

function one() { x = x * 16807 % 2147483647; return x / 2147483647 } # the same with every awk
function noise() { return one() + one() + one() + one() - 2 }
function near(level, z) { return level * (1 + z * noise()) }

# ---- courses: loss[1..n] and norm[1..n] of a kind, with noise z
function losses(kind, u, i, z) { # at the share u of the run
    if (kind == "falls") return near(3 + 7 * exp(-4 * u), z)
    if (kind == "flat") return near(3, z)
    if (kind == "stairs") return near(u < 0.33 ? 3 : u < 0.67 ? 2 : 1.5, z)
    if (kind == "restarts") return near((u < 0.5 ? 2.5 : 2.2) * (1 + 0.25 * exp(-12 * (u < 0.5 ? u : u - 0.5))), z)
    if (kind == "slow") return near(3 - 0.6 * u, z / 3)
    if (kind == "spike") return i == int(n / 2) ? 9 : near(3, z)
    if (kind == "zero") return 0
    if (kind == "same") return 6.9078
    if (kind == "rises") return near(2 * exp(1.7 * u), z)
    if (kind == "lost") return u < 0.4 ? near(2, z) : near(9, z)
    if (kind == "NaN") return u < 0.5 ? near(3 + 7 * exp(-4 * u), z) : "nan"
    return near(3 + 7 * exp(-4 * u), z)
}
function course(kind, count, z, i) {
    n = count
    for (i = 1; i <= n; i++) {
        loss[i] = losses(kind, (i - 1) / n, i, z)
        norm[i] = kind == "zero" ? 0 : near(0.8, 0.1)
        scale[i] = 0
    }
}
function scaled(how, i) {
    for (i = 1; i <= n; i++) scale[i] = how == "grows" ? 65536 * 2 ^ int(3 * (i - 1) / n) : how == "one" ? 1 : 65536
}

# ---- forms: one line of each
function f(value) { return value == "nan" ? value : sprintf("%.4f", value) }
function j(value) { return value == "nan" ? "NaN" : sprintf("%.4f", value) }
function head(form) { return form == "csv" ? "step,loss,grad_norm,lr\n" : "" }
function line(form, i, step) {
    step = first + i - 1
    if (form == "trainer")
        return sprintf("{'loss': %s, 'grad_norm': %s, 'learning_rate': 1e-05, 'epoch': %.3f}\n", f(loss[i]), f(norm[i]), step / 1000)
    if (form == "torchtitan")
        return sprintf("[rank0]:[titan] 2026-01-10 09:%02d:%02d,000 - root - INFO - " \
                       "step: %2d  loss: %8s  grad_norm: %7s  memory: 47.39GiB(59.28%%)  tps: 7,282  mfu: 13.31%%\n",
                       int(step / 60) % 60, step % 60, step, f(loss[i]), f(norm[i]))
    if (form == "megatron")
        return sprintf(" iteration %8d/  100000 | consumed samples: %12d | elapsed time per iteration (ms): 1523.4 | " \
                       "learning rate: 1.000E-04 | lm loss: %s | loss scale: %.1f | grad norm: %s | " \
                       "number of skipped iterations:   0 | number of nan iterations:   0 |\n",
                       step, 256 * step, loss[i] == "nan" ? "nan" : sprintf("%.6E", loss[i]), scale[i] ? scale[i] : 1, f(norm[i]))
    if (form == "csv") return sprintf("%d,%s,%s,0.001\n", step, f(loss[i]), f(norm[i]))
    if (form == "json") return sprintf("{\"step\": %d, \"loss\": %s, \"grad_norm\": %s, \"lr\": 0.001}\n", step, j(loss[i]), j(norm[i]))
    if (form == "llm.c") return sprintf("s:%d trl:%s lr:0.000100 norm:%s\n", step, f(loss[i]), f(norm[i]))
    if (form == "bar")
        return sprintf("Epoch 1:  12%%|####      | %d/2000 [00:01<00:07,  5.4it/s, loss=%s, grad_norm=%s]\n", step, f(loss[i]), f(norm[i]))
    if (form == "names") return sprintf("step %d loss: %s grad_norm: %s%s\n", step, f(loss[i]), f(norm[i]), scale[i] ? " scale: " scale[i] : "")
    return sprintf("step %d %s: %s grad_norm: %s\n", step, form, f(loss[i]), f(norm[i])) # a name of the loss
}

# ---- files
# group: another one begins; whether its logs are asked for
function group() { groups++; x = 1000 + 7919 * groups; first = 1; return part == "all" || groups % 6 == part }
# log_of FORM EVERY TWICE BEFORE WANT MADE: the course as a file, every such line of it, once or twice, below another text; its line
# of the index
function log_of(form, every, twice, before, want, made, text, i, l) {
    text = before head(form)
    for (i = 1; i <= n; i++)
        if ((i - 1) % every == 0) text = text (l = line(form, i)) (twice ? l : "")
    printf "%s", text >(++files "")
    close(files "")
    printf "%d\t%d\t%s\t%s\t%s, %d lines, %s\n", files, groups, property, want, form, n, made >"index"
}

# ---- properties
function lost_runs(counts, goods, forms, i, k, good, end, fp16, size, last) { # good steps, then a rise by three to seven
    property = "lost"
    size = split("5 8 12 20 50 100 200 300 500 1000", counts)
    split("names trainer torchtitan megatron csv json llm.c bar", forms)
    for (i = 1; i <= size; i++)
        for (k = last = 0; k < 7; k++) {
            split("1 2 3 5 " int(counts[i] / 10) " " int(counts[i] / 4) " " int(counts[i] / 2), goods)
            good = goods[k + 1]
            if (good <= last || good > counts[i] / 2) continue
            last = good
            for (end = 0; end < 2; end++)
                for (fp16 = 0; fp16 < 2; fp16++)
                    if (group()) lost_run(counts[i], good, end, fp16, forms[1 + groups % 8])
        }
}
function lost_run(count, good, end, fp16, form, i, up) {
    course("flat", count, 0)
    first = groups % 3 ? 1 : 1001
    up = 3 + groups % 5
    for (i = 1; i <= n; i++) loss[i] = near(i <= good ? 2 : 2 * up * (end ? 1 - 0.4 * (i - good - 1) / (n - good) : 1), 0.01 * (groups % 3))
    if (fp16) scaled(groups % 2 ? "grows" : "constant")
    log_of(fp16 ? (groups % 2 ? "names" : "megatron") : form, 1, 0, "", "!^fine", good " good steps, up by " up)
}

function prefixes(kinds, forms, k, m, p, size, some) { # what stands above a log
    property = "prefix"
    size = split("falls zero same rises NaN spike", kinds)
    split("names trainer megatron csv", forms)
    for (k = 1; k <= size; k++)
        for (m = 0; m < 4; m++) {
            if (!group()) continue
            course(kinds[k], m % 2 ? 6 : 20, 0.02)
            if (kinds[k] == "spike" && n < 12) continue
            if (m == 0 && k % 2) scaled("constant")
            log_of(forms[m + 1], 1, 0, "", ".", kinds[k])
            for (p = 1; p <= befores; p++) log_of(forms[m + 1], 1, 0, before[p], "=", kinds[k] " below " name[p])
        }
}

function same_numbers(kinds, counts, forms, names, k, c, i, size) { # forms, names, lines twice, fewer lines
    property = "same"
    size = split("falls flat stairs slow zero same rises lost NaN spike", kinds)
    split("12 40 120", counts)
    for (k = 1; k <= size; k++)
        for (c = 1; c <= 3; c++) {
            if (!group()) continue
            course(kinds[k], counts[c], 0.015)
            log_of("names", 1, 0, "", ".", kinds[k])
            for (i = split("trainer torchtitan megatron csv json llm.c bar", forms); i; i--)
                log_of(forms[i], 1, 0, "", "=", kinds[k])
            for (i = split("train_loss;train/loss;training/loss;lm loss;Loss;total_loss", names, ";"); i; i--)
                log_of(names[i], 1, 0, "", "=", kinds[k])
            for (i = split("names trainer torchtitan megatron json", forms); i; i--)
                log_of(forms[i], 1, 1, "", "=", kinds[k] ", each line twice")
            if (kinds[k] != "spike" && n > 12) { # (the spike may be in a line that is left out)
                log_of("names", 2, 0, "", "=", kinds[k] ", every second line")
                log_of("trainer", 3, 0, "", "=", kinds[k] ", every third line")
            }
        }
}

function numbers_of_lines(kinds, wants, counts, forms, k, m, c) { # from four lines on
    property = "lines"
    split("zero same NaN rises falls slow", kinds)
    split("^warn-not-learning ^warn-not-learning ^warn-nonfinite ^warn-diverging ^fine ^fine", wants)
    split("names trainer torchtitan csv", forms)
    for (k = 1; k <= 6; k++)
        for (m = 1; m <= 4; m++) {
            if (!group()) continue
            for (c = split("4 5 6 7 10 20 50 200", counts); c; c--) {
                course(kinds[k], counts[c], 0.01 * (m % 3))
                log_of(forms[m], 1, 0, "", wants[k], kinds[k])
            }
        }
}

function startups(counts, untrained, forms, c, u, i, top, end, peak, way) { # up from the loss of an untrained model, and two thirds down
    property = "startup"
    split("names megatron csv json", forms)
    for (c = split("10 15 20 40 80", counts); c; c--)
        for (u = split("2.3 6.9 10.8 14", untrained); u; u--)
            for (top = 2; top <= 6; top += 2) {
                if (!group()) continue
                course("flat", counts[c], 0)
                peak = int(n / (3 + groups % 3))
                end = 1 + (top - 1) / 3
                for (i = 1; i <= n; i++) {
                    way = i <= peak ? 1 + (top - 1) * (i - 1) / (peak - 1) : end + (top - end) * (n - i) / (n - peak)
                    loss[i] = near(untrained[u] * way, 0.005 * (groups % 3))
                }
                log_of(forms[1 + groups % 4], 1, 0, "", "!diverging", "from " untrained[u] " up to the " top "fold")
            }
}

function healthy(kinds, counts, forms, k, c, s) {
    property = "healthy"
    split("names trainer torchtitan megatron csv json llm.c bar", forms)
    for (k = split("falls flat stairs restarts slow spike", kinds); k; k--)
        for (c = split("20 50 100 300 1000", counts); c; c--)
            for (s = 0; s < (counts[c] < 1000 ? 4 : 1); s++) {
                if (!group()) continue
                course(kinds[k], counts[c], 0.01 * (1 + s))
                log_of(forms[1 + groups % 8], 1, 0, "", kinds[k] == "spike" ? "^(fine|warn-spikes)" : "^fine", kinds[k])
            }
}

function scales(kinds, hows, forms, counts, k, h, c) { # what forbids "fine" beside a loss scale, too
    property = "scale"
    split("constant grows one", hows)
    split("names megatron", forms)
    for (k = split("zero same rises lost NaN spike", kinds); k; k--)
        for (c = split("12 40 150", counts); c; c--) {
            if (!group()) continue
            for (h = 1; h <= 3; h++) {
                course(kinds[k], counts[c], 0.015)
                scaled(hows[h])
                log_of(forms[1 + (k + h) % 2], 1, 0, "", "!^fine", kinds[k] ", scale: " hows[h])
            }
        }
}

# ---- operands: what stands above logs
FNR == 1 { befores++; name[befores] = FILENAME }
{ before[befores] = before[befores] $0 "\n" }
END {
    lost_runs()
    prefixes()
    same_numbers()
    numbers_of_lines()
    startups()
    healthy()
    scales()
}
