# ---- sweep.gp: underflow, overflow and SQNR over the loss scale ----
# For each format two panels: the share of elements that underflow (solid) and overflow (dashed), a
# curve for each kind or tensor, and the SQNR of those that do not overflow. Shares are logarithmic; 0
# is the band under the axis. Shaded: the safe scales. Dotted: the underflow that is safe.
# Reads the blocks windows, curves and, for each format, "casts FORMAT".
set datafile missing # NaN interrupts a line

# ---- styles of curves: colour and marker change together; 8 and 10 of them ----
colors = 'vermilion blue ink green purple orange sky dark'
markers = '7 4 9 12 5 6 13 10 11 8' # filled and open by turns
do for [c = 1:n_curves] {
    stroke = value(word(colors, (c - 1) % 8 + 1))
    mark = word(markers, (c - 1) % 10 + 1)
    eval sprintf('set style line %d lc rgb %d dt 1 lw 2', 10 + c, stroke)
    eval sprintf('set style line %d lc rgb %d dt (8,4) lw 1.6', 30 + c, stroke)
    eval sprintf('set style line %d lc rgb %d dt 1 lw 1 pt %s ps 0.6', 50 + c, stroke, mark)
}
set style line 1 lc rgb ink dt 1 lw 2
set style line 2 lc rgb ink dt (8,4) lw 1.6
set style line 3 lc rgb dark dt (3,4) lw 1
window = is_dark ? 0x1E4034 : 0xCFE8DD # pale green, and pale grey in print; dark green

# ---- layout, inches: columns of cells, a cell for each format ----
left = 0.52; right = 0.08; between = 0.16
columns = max(1, min(n_formats, int((width - left - right + between) / (2.05 + between))))
columns = n_formats == 4 && columns == 3 ? 2 : columns
rows = (n_formats + columns - 1) / columns
plot_width = (width - left - right - (columns - 1) * between) / columns
heading_lines = (heading_length + 2) * character_width > plot_width ? 2 : 1
heading = 0.04 + 0.125 * heading_lines
zero_height = 0.11; zero_gap = 0.04
squeeze = rows > 2 ? 0.62 : 1 # so that four formats fit on a page
axis_height = squeeze * max(1.0, min(0.40 * plot_width, 1.3))
share_height = zero_height + zero_gap + axis_height
gap = 0.09
exact_height = exact ? 0.11 : 0
sqnr_height = squeeze * max(0.58, min(0.24 * plot_width, 0.8)) + exact_height
cell = heading + share_height + gap + sqnr_height + 0.10
bottom = 0.26
top = strlen(title) ? 0.24 : 0.04
plots_height = rows * cell + bottom

# ---- the key: curves, what the dashes and the shade mean; as many side by side as fit ----
sample = 0.30; apart = 0.14
entries = n_curves + 3
array caption[entries]; array key_x[entries]; array key_row[entries]
stats data index 'curves' using (caption[int($1)] = stringcolumn(5), 0) nooutput
caption[n_curves + 1] = 'underflow'
caption[n_curves + 2] = 'overflow; SQNR of the rest'
caption[n_curves + 3] = sprintf('safe: no overflow, underflow ≤ %g %%', limit)
key_rows = 1; x_free = 0.08
do for [i = 1:entries] {
    entry_width = sample + 0.06 + strlen(caption[i]) * character_width
    if (i == n_curves + 1 || (x_free > 0.08 && x_free + entry_width > width - 0.02)) {
        key_rows = key_rows + 1; x_free = 0.08
    }
    key_x[i] = x_free; key_row[i] = key_rows
    x_free = x_free + entry_width + apart
}
key_height = (key_rows + (strlen(note) > 0)) * line_height + 0.04
height = top + plots_height + key_height

# ---- what is drawn where: inches from the lower left corner of the figure; f from 1 on ----
pad = 0.06
cell_left(f) = left + ((f - 1) % columns) * (plot_width + between)
cell_top(f) = height - top - ((f - 1) / columns) * cell
share_base(f) = cell_top(f) - heading - share_height
sqnr_base(f) = share_base(f) - gap - sqnr_height
x(f, v) = cell_left(f) + pad + (v - x_low) * (plot_width - 2 * pad) / real(x_high - x_low)
per_decade = axis_height / (2 - y_low)
axis_y(f, p) = share_base(f) + zero_height + zero_gap + (p - y_low) * per_decade
lane(f, c) = share_base(f) + zero_height * (n_curves - c + 0.5) / n_curves
share_y(f, c, v) = v > 0 ? axis_y(f, max(y_low, log10(v))) : v == 0 ? lane(f, c) : NaN
per_db = (sqnr_height - exact_height) / (sqnr_high - sqnr_low)
db_y(f, v) = sqnr_base(f) + (v - sqnr_low) * per_db
exact_y(f) = sqnr_base(f) + sqnr_height - exact_height / 2
sqnr_y(f, column) = stringcolumn(column) eq 'exact' ? exact_y(f) : db_y(f, column(column))
is_last(f) = f + columns > n_formats # of its column

# ---- ticks ----
unit = real(x_high - x_low) / (plot_width - 2 * pad) # binades per inch
tick = power_of_two(0.30 * unit)
first_tick = tick * ceil(real(x_low) / tick)
ticks = int(floor((x_high - first_tick) / tick + 1e-9))
if (ticks < 1) { first_tick = x_low; tick = x_high - x_low; ticks = 1 } # the ends
scale_name(v) = v == floor(v) ? '2'.raised(int(v)) : sprintf('%.4g', 2.0 ** v)
decade_step = max(1, ceil(0.17 / per_decade))
db_step = max(1, rounded(0.12 / per_db))
spacing = max(1, int(0.28 * unit * n_scales / real(x_high - x_low))) # between markers of a curve
power_name(p) = p == 0 ? '1' : p > 0 ? sprintf('%d', 10 ** p) : p > -4 ? sprintf('%g', 10.0 ** p) : '10'.raised(int(p))

do for [type in types] {
    eval terminal(type, width, height)
    set multiplot
    unset key; unset border; unset xtics; unset ytics
    set lmargin at screen 0; set rmargin at screen 1
    set bmargin at screen 0; set tmargin at screen 1
    set xrange [0:width]; set yrange [0:height]
    if (strlen(title)) {
        set label 1 shown(title) center at width / 2.0, height - 0.13 noenhanced font normal_font tc rgb ink
    }
    array safe_from[n_formats]; array safe_to[n_formats]; array name[n_formats]; array says[n_formats]
    stats data index 'windows' using \
          (f = int($1), name[f] = stringcolumn(4), says[f] = stringcolumn(5), \
           safe_from[f] = strcol(2), safe_to[f] = strcol(3), 0) nooutput

    # ---- axes, shades and words of each cell ----
    do for [f = 1:n_formats] {
        l = cell_left(f); r = l + plot_width
        b = share_base(f); q = sqnr_base(f); t = b + share_height
        set object rectangle from l, b to r, b + zero_height back \
            fillcolor rgb faint fillstyle solid 1 noborder
        if (safe_from[f] ne 'NaN') {
            one = x(f, real(safe_from[f])); two = x(f, real(safe_to[f]))
            if (two - one < 0.04) { one = one - 0.02; two = two + 0.02 }
            set object rectangle from one, b to two, t back fillcolor rgb window \
                fillstyle solid 1 noborder
            set object rectangle from one, q to two, q + sqnr_height back fillcolor rgb window \
                fillstyle solid 1 noborder
        }
        do for [p = int(y_low):2] {
            y = axis_y(f, p)
            set arrow from l, y to r, y nohead back lc rgb shade lw 1
            if (l < left + 0.01 && (2 - p) % decade_step == 0) {
                set label shown(power_name(p)) right at l - 0.05, y font small_font tc rgb ink
            }
        }
        if (limit > 0) {
            set arrow from l, axis_y(f, log10(limit)) to r, axis_y(f, log10(limit)) nohead back ls 3
        }
        do for [k = has_sqnr ? int(ceil(real(sqnr_low) / db_step - 1e-9)) : 1:\
                    has_sqnr ? int(floor(real(sqnr_high) / db_step + 1e-9)) : 0] {
            y = db_y(f, k * db_step)
            set arrow from l, y to r, y nohead back lc rgb shade lw 1
            if (l < left + 0.01) {
                set label shown(sprintf('%g', k * db_step)) right at l - 0.05, y font small_font tc rgb ink
            }
        }
        if (l < left + 0.01) {
            set label '0' right at l - 0.05, b + zero_height / 2 font small_font tc rgb ink
            if (exact) { set label 'exact' right at l - 0.05, exact_y(f) font small_font tc rgb ink }
            set label shown('elements (%)') center rotate by 90 font small_font tc rgb ink \
                at 0.09, (axis_y(f, y_low) + t) / 2
            set label shown('SQNR (dB)') center rotate by 90 font small_font tc rgb ink at 0.09, q + sqnr_height / 2
        }
        if (!has_sqnr && !exact) {
            set label 'nothing to compare' center at l + plot_width / 2, q + sqnr_height / 2 \
                font small_font textcolor rgb middle
        }
        set arrow from l, b + zero_height + zero_gap to l, t nohead lc rgb ink lw 1
        set arrow from l, q to l, q + sqnr_height - exact_height nohead lc rgb ink lw 1
        set arrow from l, b to r, b nohead lc rgb ink lw 1
        set arrow from l, q to r, q nohead lc rgb ink lw 1
        do for [k = 0:ticks] {
            at = x(f, first_tick + k * tick)
            set arrow from at, q to at, q - 0.035 nohead lc rgb ink lw 1
            set arrow from at, b to at, b - 0.035 nohead lc rgb ink lw 1
            if (is_last(f)) {
                set label shown(scale_name(first_tick + k * tick)) center at at, q - 0.10 \
                    font small_font tc rgb ink
            }
        }
        if (is_last(f)) {
            set label shown(axis) center at l + plot_width / 2, q - 0.24 font normal_font tc rgb ink
        }
        set label shown(name[f]) left at l, t + (heading_lines - 1) * 0.125 + 0.08 font normal_font tc rgb ink noenhanced
        if (heading_lines == 1) {
            set label shown(says[f]) right at r, t + 0.08 font small_font tc rgb ink
        } else {
            set label shown(says[f]) left at l, t + 0.08 font small_font tc rgb ink
        }
    }

    # ---- key ----
    key_y(i) = key_height - (key_row[i] - 0.5) * line_height
    do for [i = 1:entries] {
        if (i < entries) {
            style = i <= n_curves ? 10 + i : i - n_curves
            set arrow from key_x[i], key_y(i) to key_x[i] + sample, key_y(i) nohead ls style
        } else {
            set object rectangle from key_x[i], key_y(i) - 0.05 to key_x[i] + sample, key_y(i) + 0.05 \
                fillcolor rgb window fillstyle solid 1 noborder
        }
        set label shown(caption[i]) left at key_x[i] + sample + 0.06, key_y(i) font small_font tc rgb ink noenhanced
    }
    if (strlen(note)) {
        set label shown(note) left at 0.08, key_height - (key_rows + 0.5) * line_height font small_font tc rgb ink
    }
    plot for [i = 1:n_curves] data index 'curves' every ::0::0 \
        using (key_x[i] + sample / 2):(key_y(i)) with points ls 50 + i
    unset label; unset arrow; unset object

    # ---- curves ----
    do for [f = 1:n_formats] {
        plot for [c = 1:n_curves] data index 'casts '.f \
                using (x(f, $1)):(share_y(f, c, column(3 * c))) with lines ls 30 + c, \
            for [c = 1:n_curves] '' index 'casts '.f \
                using (x(f, $1)):(share_y(f, c, column(3 * c - 1))) with lines ls 10 + c, \
            for [c = 1:n_curves] '' index 'casts '.f \
                using (x(f, $1)):(sqnr_y(f, 3 * c + 1)) with lines ls 30 + c, \
            for [c = 1:n_curves] '' index 'casts '.f \
                using (x(f, $1)):(column(3 * c) > 0 ? NaN : sqnr_y(f, 3 * c + 1)) with lines ls 10 + c, \
            for [c = 1:n_curves] '' index 'casts '.f \
                every spacing::(spacing * (c - 1)) / n_curves \
                using (x(f, $1)):(column(3 * c - 1) > 0 ? share_y(f, c, column(3 * c - 1)) : NaN) \
                with points ls 50 + c, \
            for [c = 1:n_curves] '' index 'casts '.f \
                every spacing::(spacing * (c - 1)) / n_curves \
                using (x(f, $1)):(column(3 * c) > 0 ? share_y(f, c, column(3 * c)) : NaN) \
                with points ls 50 + c, \
            for [c = 1:n_curves] '' index 'casts '.f \
                every spacing::(spacing * (c - 1)) / n_curves \
                using (x(f, $1)):(sqnr_y(f, 3 * c + 1)) with points ls 50 + c
    }
    unset multiplot
    unset output
}
