# ---- steps.gp: curves over the steps, in one panel or two ----
# A curve for each scaler, policy or tensor, with a mark where the first panel has one. Panels are of per cent from 0 on, or of
# log2, as lines or, of what holds until it changes, as stairs. Names stand in a key under the panels. Reads the blocks names,
# marks and, for each curve, "curve N".
set datafile missing # NaN interrupts a line

# ---- layout, inches ----
width = real(width); x_low = real(x_low); x_high = real(x_high)
left = 0.46; right = 0.10
heading = 0.19 # over each panel
panel_height = n_panels > 1 ? 1.0 : 1.4
plot_width = width - left - right
top = strlen(title) ? 0.24 : 0.04
sample = 0.32 # of a line, in the key
entries = n_curves + (strlen(mark) > 0)
entry_width = sample + 0.16 + max(name_length, strlen(mark)) * character_width
key_columns = max(1, min(entries, int((width - 0.10) / entry_width)))
key_rows = int(ceil(entries / real(key_columns)))
key_height = key_rows * line_height + 0.04
bottom = 0.42 + key_height
height = top + n_panels * (panel_height + heading) + bottom
pad = 0.08
low(p) = real(p == 1 ? low_1 : low_2)
high(p) = real(p == 1 ? high_1 : high_2)
base(p) = bottom + (n_panels - p) * (panel_height + heading)

# ---- what is drawn where: inches from the lower left corner ----
x(step) = left + pad + (step - x_low) * (plot_width - 2 * pad) / (x_high - x_low)
y(p, v) = v == v ? base(p) + pad + (v - low(p)) * (panel_height - 2 * pad) / (high(p) - low(p)) : NaN
value_text(v) = percent_axis ? sprintf('%.10g', v) : v == 0 ? '1' : '2'.raised(int(v))
y_step(p) = percent_axis ? rounded(0.24 * (high(p) - low(p))) : \
            max(1, ceil(0.17 * (high(p) - low(p)) / (panel_height - 2 * pad)))
x_step = max(1, rounded(0.5 * (x_high - x_low) / plot_width))
key_x(i) = 0.08 + ((i - 1) / key_rows) * entry_width
key_y(i) = key_height - 0.02 - ((i - 1) % key_rows + 0.5) * line_height

array caption[entries]; array points[n_curves]
do for [i = 1:n_curves] {
    stats data index sprintf('curve %d', i) using 1 nooutput
    points[i] = STATS_records
}
spacing(i) = max(1, int(points[i] / 9)) # between markers of a curve
stats data index 'names' using (caption[int($1)] = stringcolumn(2), 0) nooutput
if (strlen(mark)) { caption[entries] = mark }

do for [type in types] {
    eval terminal(type, width, height)
    set multiplot
    unset key; unset border; unset xtics; unset ytics
    set lmargin at screen 0; set rmargin at screen 1
    set bmargin at screen 0; set tmargin at screen 1
    set xrange [0:width]; set yrange [0:height]
    if (strlen(title)) {
        set label shown(title) center at width / 2, height - 0.13 noenhanced font normal_font tc rgb ink
    }
    set label shown(axis.(block > 1 ? sprintf(' (a point: %s of %d steps)', joined, block) : '')) center \
        at left + plot_width / 2, bottom - 0.28 font normal_font tc rgb ink
    do for [p = 1:n_panels] {
        set label shown(p == 1 ? heading_1 : heading_2) left at left, base(p) + panel_height + 0.09 font normal_font tc rgb ink
        set arrow from left, base(p) to left + plot_width, base(p) nohead lc rgb ink lw 1
        set arrow from left, base(p) to left, base(p) + panel_height nohead lc rgb ink lw 1
        do for [k = int(ceil(real(low(p)) / y_step(p) - 1e-9)):int(floor(real(high(p)) / y_step(p) + 1e-9))] {
            at = y(p, k * y_step(p))
            set arrow from left, at to left + plot_width, at nohead back lc rgb shade lw 1
            set label shown(value_text(k * y_step(p))) right at left - 0.05, at font small_font tc rgb ink
        }
        do for [k = int(ceil(real(x_low) / x_step)):int(floor(real(x_high) / x_step))] {
            set arrow from x(k * x_step), base(p) to x(k * x_step), base(p) - 0.035 nohead lc rgb ink lw 1
            if (p == n_panels) { set label shown(sprintf('%.10g', k * x_step)) center at x(k * x_step), bottom - 0.10 font small_font tc rgb ink }
        }
    }
    if (x_low == 1 && x_step > 1) { set label '1' center at x(1), bottom - 0.10 font small_font tc rgb ink }
    do for [i = 1:entries] {
        if (i <= n_curves) {
            set arrow from key_x(i), key_y(i) to key_x(i) + sample, key_y(i) nohead ls 10 + i
        }
        set label '' at key_x(i) + sample / 2, key_y(i) tc rgb ink point ls (i <= n_curves ? 40 + i : 101)
        set label shown(caption[i]) left at key_x(i) + sample + 0.06, key_y(i) noenhanced font small_font tc rgb ink
    }

    # ---- curves: where they coincide, the gaps of a later one show an earlier one ----
    do for [p = 1:n_panels] {
        if (p == 1 ? stairs_1 : stairs_2) {
            plot for [i = 1:n_curves] data index sprintf('curve %d', i) using (x($1)):(y(p, column(p + 1))) \
                with steps ls 10 + i
        } else {
            plot for [i = 1:n_curves] data index sprintf('curve %d', i) using (x($1)):(y(p, column(p + 1))) \
                with lines ls 10 + i
        }
        unset label; unset arrow
        plot for [i = 1:n_curves] data index sprintf('curve %d', i) every spacing(i)::(spacing(i) * (i - 1)) / n_curves \
            using (x($1)):(y(p, column(p + 1))) with points ls 40 + i
        if (p == 1 && strlen(mark)) {
            plot for [i = 1:n_curves] data index 'marks' using (int($1) == i ? x($2) : NaN):(y(1, $3) + 0.05) with points ls 100 + i
        }
    }
    unset multiplot
    unset output
}
