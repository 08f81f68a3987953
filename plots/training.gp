# ---- training.gp: the course of trainings ----
# A curve for each run: its training loss; log2 of its loss scale, with a mark at skipped steps,
# where a run has one; the share that rounding loses. A cross: no loss after it is finite. Names
# stand at the ends of the curves of the loss, or in a key if they do not fit.
# Reads the blocks loss, lost, ends, skipped and, for each run with a loss scale, "scale RUN".
set datafile missing # NaN interrupts a line

# ---- styles of marks ----
do for [c = 1:n_runs] {
    eval sprintf('set style line %d lc rgb %d dt 1 lw 3 pt 2 ps 1.3', 70 + c, curve_ink(c))
    eval sprintf('set style line %d lc rgb %d dt (1,4) lw 1', 130 + c, curve_ink(c))
}
set style line 200 lc rgb ink dt 1 lw 1 pt 11 ps 0.8 # skipped
set style line 201 lc rgb ink dt 1 lw 3 pt 2 ps 1.3  # diverged
n_scaled = words(scaled)

# ---- layout, inches ----
left = 0.46; right = 0.06
leader = 0.24 # from the end of a curve to its label
label_gap = 0.112
heading = 0.19 # over each panel
most = 2.1     # what a plot needs: with less beside them, the names go to a key
direct = width - left - right - leader - name_length * character_width >= most
plot_width = width - left - right - (direct ? leader + name_length * character_width : 0.04)
small_height = 0.52; small_pad = 0.07
panels = 1 + (n_scaled > 0) + (lost_high > 0)
below = (panels - 1) * (small_height + heading)
loss_height = max(1.4, min(0.5 * plot_width, 2.2))
if (direct) { loss_height = max(loss_height, n_runs * label_gap - below) }
plot_height = loss_height + below
top = (strlen(title) ? 0.24 : 0.04) + heading
bottom = 0.42
loss_base = below
scale_base = lost_high > 0 ? small_height + heading : 0
lost_base = 0
sample = 0.32 # of a line, in the key

# ---- what is drawn where: inches from the corner of the lowest panel ----
inset = 0.06
x(step) = inset + (step - x_low) * (plot_width - 2 * inset) / (x_high - x_low)
per_loss = loss_height / (y_high - y_low)
on_axis(v) = loss_log ? (v > 0 ? log10(v) : y_low) : v
clip(v) = max(y_low, min(y_high, v))
loss_y(v) = v == v ? loss_base + (clip(on_axis(v)) - y_low) * per_loss : NaN
end_height(v, how) = how == 2 ? loss_base + loss_height : loss_y(v) # 2: no finite loss at all
scale_span = scale_high - scale_low
scale_y(p) = scale_base + small_pad + \
             (p - scale_low) * (small_height - 2 * small_pad) / scale_span
lost_y(p) = lost_base + small_pad + p * (small_height - 1.6 * small_pad) / lost_high

# ---- names: as near to the ends of their curves as others let them ----
array end_x[n_runs]; array end_y[n_runs]; array ended[n_runs]
array caption[n_runs + 2]; array place[n_runs]; array row[n_runs]
do for [i = 1:n_runs] {
    stats data index 'ends' every ::(i - 1)::(i - 1) using \
          (end_x[i] = x($2), end_y[i] = end_height($3, $4), ended[i] = int($4), \
           caption[i] = stringcolumn(5), 0) nooutput
    place[i] = end_y[i]
    row[i] = i
}
level(i) = floor(end_y[i] / 0.03)
do for [pass = 1:n_runs] { # from the highest to the lowest
    do for [i = 1:n_runs - 1] {
        if (level(row[i]) < level(row[i + 1])) {
            swap = row[i]; row[i] = row[i + 1]; row[i + 1] = swap
        }
    }
}
do for [pass = 1:60 * n_runs] {
    do for [i = 1:n_runs - 1] {
        overlap = label_gap - (place[row[i]] - place[row[i + 1]])
        if (overlap > 0) {
            place[row[i]] = place[row[i]] + overlap / 2
            place[row[i + 1]] = place[row[i + 1]] - overlap / 2
        }
    }
    if (place[row[1]] > plot_height) { place[row[1]] = plot_height }
    if (place[row[n_runs]] < 0) { place[row[n_runs]] = 0 }
}

# ---- the key: runs, if they are not beside the plot, and marks ----
first_entry = direct ? n_runs + 1 : 1
last_entry = n_runs
if (n_skipped) {
    last_entry = last_entry + 1
    caption[last_entry] = 'skipped step'
}
if (n_ended) {
    last_entry = last_entry + 1
    caption[last_entry] = 'from here on NaN or Inf'
}
entries = last_entry - first_entry + 1
mark_of(i) = i <= n_runs ? 40 + i : n_skipped > 0 && i == n_runs + 1 ? 200 : 201
sample_of(i) = i > n_runs ? 0.12 : sample
array column_x[n_runs + 2]
rows = 0; key_width = 2 * width
# As few rows as let its columns fit side by side, each as wide as its names
while (key_width > width - 0.08 && rows < entries) {
    rows = rows + 1
    key_width = 0.08
    do for [c = 1:(entries + rows - 1) / rows] {
        column_x[c] = key_width
        widest = 0
        do for [i = (c - 1) * rows + 1:min(entries, c * rows)] {
            widest = max(widest, sample_of(first_entry + i - 1) + 0.06 + \
                         strlen(caption[first_entry + i - 1]) * character_width)
        }
        key_width = key_width + widest
        if (c * rows < entries) { key_width = key_width + 0.14 }
    }
}
key_x(i) = column_x[(i - first_entry) / rows + 1]
key_y(i) = ((i - first_entry) % rows + 0.5) * line_height
key_height = entries > 0 ? rows * line_height + 0.04 : 0
height = top + plot_height + bottom + key_height

# ---- ticks ----
x_step = max(1, rounded(0.5 * (x_high - x_low) / plot_width))
loss_decades = y_high - y_low
number(v) = sprintf('%.10g', v)
as_power = y_high >= 4 || y_low < -3 # of a logarithmic axis
power(m, p) = as_power && m == 1 ? '10'.raised(p) : number(m * 10.0 ** p)
mantissas = loss_log == 0 ? '' : per_loss < 0.5 || as_power ? '1' : per_loss < 0.9 ? '1 3' : '1 2 5'
decade_step = loss_log ? max(1, ceil(0.16 / per_loss)) : 1
loss_step = loss_log ? 1 : rounded(0.3 / per_loss)
scale_step = max(1, ceil(0.17 * scale_span / (small_height - 2 * small_pad)))
lost_step = lost_high > 0 ? rounded(0.35 * lost_high) : 1
spacing = max(1, n_points / 9) # between markers of a curve

do for [type in types] {
    eval terminal(type, width, height)
    set multiplot
    unset key; set border 0 lc rgb ink
    set lmargin at screen left / width
    set rmargin at screen 1 - right / width
    set tmargin at screen 1 - top / height
    set bmargin at screen (bottom + key_height) / height
    set xrange [0:width - left - right]
    set yrange [0:plot_height]
    if (strlen(title)) {
        set label 1 shown(title) center at screen 0.5, screen 1 - 0.13 / height noenhanced \
            font normal_font tc rgb ink
    }
    set label 2 shown('step'.(block > 1 ? sprintf(' (a point: mean of %d steps)', block) : '')) center \
        font normal_font tc rgb ink at first plot_width / 2, screen (key_height + 0.10) / height
    set label 3 'training loss' left font normal_font tc rgb ink at 0, plot_height + 0.09
    set xtics out nomirror scale 0.5 font small_font tc rgb ink
    set xtics ('' -1)
    do for [k = int(ceil(x_low / x_step)):int(floor(x_high / x_step))] {
        set xtics add (sprintf('%.10g', k * x_step) x(k * x_step))
    }
    if (x_low == 1) { set xtics add ('1' x(1)) }
    set ytics out nomirror scale 0.5 font small_font tc rgb ink
    set ytics ('' -1)
    if (loss_log) {
        do for [p = int(floor(y_low)):int(floor(y_high))] {
            do for [m in mantissas] {
                at = p + log10(real(m))
                if (at >= y_low && at <= y_high && p % decade_step == 0) {
                    set ytics add (shown(power(int(m), p)) loss_base + (at - y_low) * per_loss)
                    set arrow from 0, loss_base + (at - y_low) * per_loss \
                        to plot_width, loss_base + (at - y_low) * per_loss \
                        nohead back lc rgb shade lw 1
                }
            }
        }
    } else {
        do for [k = int(ceil(y_low / loss_step - 1e-9)):int(floor(y_high / loss_step))] {
            at = loss_base + (k * loss_step - y_low) * per_loss
            set ytics add (shown(number(k * loss_step)) at)
            if (at > loss_base) {
                set arrow from 0, at to plot_width, at nohead back lc rgb shade lw 1
            }
        }
    }
    set arrow from 0, loss_base to 0, loss_base + loss_height nohead lc rgb ink lw 1
    set arrow from 0, loss_base to plot_width, loss_base nohead lc rgb ink lw 1
    if (n_scaled) {
        set label 4 'loss scale' left font normal_font tc rgb ink \
            at 0, scale_base + small_height + 0.09
        do for [k = 0:int(scale_span / scale_step)] {
            p = scale_high - k * scale_step
            set ytics add (shown('2'.raised(int(p))) scale_y(p))
            set arrow from 0, scale_y(p) to plot_width, scale_y(p) nohead back lc rgb shade lw 1
        }
        set arrow from 0, scale_base to 0, scale_base + small_height nohead lc rgb ink lw 1
        set arrow from 0, scale_base to plot_width, scale_base nohead lc rgb ink lw 1
    }
    if (lost_high > 0) {
        set label 5 shown(lost_label) left font normal_font tc rgb ink at 0, lost_base + small_height + 0.09
        do for [k = 0:int(lost_high / lost_step + 1e-9)] {
            set ytics add (shown(number(k * lost_step)) lost_y(k * lost_step))
            set arrow from 0, lost_y(k * lost_step) to plot_width, lost_y(k * lost_step) \
                nohead back lc rgb shade lw 1
        }
        set arrow from 0, lost_base to 0, lost_base + small_height nohead lc rgb ink lw 1
        set arrow from 0, lost_base to plot_width, lost_base nohead lc rgb ink lw 1
    }

    # ---- labels beside the plot ----
    if (direct) {
        do for [i = 1:n_runs] {
            set arrow from end_x[i] + 0.06, end_y[i] to plot_width + leader - 0.06, place[i] \
                nohead ls (ended[i] ? 130 : 40) + i
            set label shown(caption[i]) left at plot_width + leader - 0.02, place[i] font small_font tc rgb ink
        }
    }

    # ---- curves: where they coincide, the gaps of a later one show an earlier one ----
    plot for [c = 1:n_runs] data index 'loss' using (x($1)):(loss_y(column(c + 1))) \
            with lines ls 10 + c, \
        for [c = 1:n_runs] '' index 'loss' \
            every spacing::(spacing * (c - 1)) / n_runs \
            using (x($1)):(loss_y(column(c + 1))) with points ls 40 + c, \
        for [i = 1:n_runs] '' index 'ends' every ::(i - 1)::(i - 1) \
            using ($4 > 0 ? x($2) : -1):(end_height($3, $4)) with points ls 70 + i
    unset label; unset arrow; unset xtics; unset ytics
    if (n_scaled) {
        plot for [c in scaled] data index 'scale '.c using (x($1)):(scale_y($2)) \
            with steps ls 10 + c, \
            for [c in scaled] data index 'ends' every ::(c - 1)::(c - 1) \
            using (x($7)):(scale_y($8)) with points ls 40 + c
        if (n_skipped) {
            plot for [c in scaled] data index 'skipped' \
                using (int($1) == int(c) ? x($2) : -1):(scale_y($3)) \
                with points ls 100 + c
        }
    }
    if (lost_high > 0) {
        plot for [c = 1:n_runs] data index 'lost' using (x($1)):(lost_y(column(c + 1))) \
                with lines ls 10 + c, \
            for [c = 1:n_runs] '' index 'lost' \
                every spacing::(spacing * (c - 1)) / n_runs \
                using (x($1)):(lost_y(column(c + 1))) with points ls 40 + c
    }

    # ---- key ----
    if (entries > 0) {
        set lmargin at screen 0; set rmargin at screen 1
        set bmargin at screen 0; set tmargin at screen key_height / height
        set xrange [0:width]; set yrange [key_height:0]
        do for [i = first_entry:last_entry] {
            if (i <= n_runs) {
                set arrow from key_x(i), key_y(i) to key_x(i) + sample, key_y(i) nohead ls 10 + i
            }
            set label i shown(caption[i]) left font small_font tc rgb ink at key_x(i) + sample_of(i) + 0.06, key_y(i)
        }
        plot for [i = first_entry:last_entry] data index 'ends' every ::0::0 \
            using (key_x(i) + sample_of(i) / 2):(key_y(i)) with points \
            ls mark_of(i)
    }
    unset label; unset arrow
    unset multiplot
    unset output
}
