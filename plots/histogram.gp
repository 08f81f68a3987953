# ---- histogram.gp: share of elements by binary exponent ----
# Top: a lane for each format: dark = normal numbers, pale = subnormal ones. Middle: the data
# as recorded (filled) and scaled (outlines); the range of the first format is shaded. Zero,
# Inf and NaN stand apart; an arrow tells what lies below the axis. Bottom: what underflows,
# which is also the legend. Reads the blocks bins, special, formats and scales.

# ---- texts ----
first_row = cast_unscaled ? 0 : 1 # of the table: without casts the data are only drawn
power(s) = floor(log(s) / log(2) + 0.5) # the nearest power of two
is_power(s) = abs(log(s) / log(2) - power(s)) < 1e-9
scale_name(s) = '× '.(s == 1 ? '1' : is_power(s) ? '2'.raised(int(power(s))) : \
                      sprintf(s < 1e7 && s == floor(s) ? '%.0f' : '%.6g', s))
shares(u, o) = overflows ? percent(u).' / '.percent(o) : percent(u)
heading = overflows ? 'underflow / overflow (%)' : 'underflow (%)'
tail_text = tail > 0 ? '← '.percent(tail).' % lie further left' : ''
array shift[16]
scale_length = 0; share_length = 0 # characters
stats data index 'scales' using \
      (shift[int($1) + 1] = $3, scale_length = max(scale_length, strlen(scale_name($2))), 0) \
      nooutput
do for [f = 0:n_formats - 1] {
    stats data index 'scales' using (share_length = max(share_length, \
              strlen(shares(column(4 + 2 * f), column(5 + 2 * f)))), 0) nooutput
}

# ---- layout, inches ----
left = logscale && y_low < 0.0009 ? 0.58 : 0.48 # room for 0.0001
right = 0.04; apart = 0.48; side_width = 0.40 # apart, side: bins that stand apart
plot_width = width - left - right
unit = (x_high - x_low) / (plot_width - apart - side_width * n_right - 0.09) # binades per inch
x_min = x_low - apart * unit
x_max = x_high + (side_width * n_right + 0.09) * unit
plot_height = max(1.3, min(0.46 * plot_width, 2.6))
lane = 0.15
key_height = 0.18
lanes_height = lane * n_formats + 0.05
axis_height = 0.42
title_height = strlen(title) ? 0.24 : 0.05
top = title_height + key_height

# The table: as many formats side by side as fit, blocks of equal size below each other. Its
# heading stands beside the names of the formats if that costs no block, else above them.
table_left = width > 4.5 ? left : 0.08
table_width = width - right - table_left
swatch = 0.24
character = 0.053 # of figures, dots, slashes and blanks
cell = 0.10 + max(share_length, name_length) * character
names_width = swatch + 0.08 + scale_length * character
heading_width = strlen(heading) * character
fit(names) = max(1, min(n_formats, int((table_width - names) / cell)))
blocks(names) = (n_formats + fit(names) - 1) / fit(names)
groups = blocks(names_width)
beside = blocks(max(names_width, heading_width)) == groups
if (beside) { names_width = max(names_width, heading_width) }
per_row = (n_formats + groups - 1) / groups
cell = max(cell, min(0.80, (table_width - names_width) / per_row))
lines_above = first_row + !beside
block_height = (n_scales - first_row + 1) * line_height + 0.06
legend_height = lines_above * line_height + groups * block_height
height = top + lanes_height + plot_height + axis_height + legend_height
at_y(inches) = 1 - inches / height # screen coordinate, from the top
at_x(inches) = inches / width

# ---- what is drawn where ----
visible(x) = x >= x_low && x < x_high ? x : NaN
clip(x) = max(x_low, min(x_high, x))
outside = x_max + 2 * (x_max - x_min) # NaN for all of a series would be a warning
bar = 0.11 * unit # half the width of a bin that stands apart
side(s) = s < 0 ? x_min + (bar + 0.06 * unit) : x_high + side_width * (s - 0.4) * unit
tick = power_of_two(0.28 * unit)
base = logscale ? y_low : 0
floored(y) = y > base ? y : base
y_cut = logscale ? y_high : 0.9 * y_high # where a higher bin is cut off
cut(y) = floored(min(y, y_cut))
cell_x(f) = table_left + names_width + (f % per_row + 1) * cell
cell_y(f, row) = (0.5 + lines_above + row - first_row + 1) * line_height + \
                 (f / per_row) * block_height
header = first_row - 1
# Under the axis: its label in the middle, or beside the text about the tail if that is there
axis_left = left + apart
axis_width = (x_high - x_low) / unit
tail_width = strlen(tail_text) ? strlen(tail_text) * character + 0.10 : 0
label_y = at_y(height - legend_height - 0.10)
long = axis_width - tail_width > 1.5
x_label = long ? 'log₂ |x|, one bin per binade' : 'log₂ |x|'
label_x = axis_left + max(axis_width / 2, tail_width + (long ? 0.74 : 0.24))
key_x = width - right - 1.38
key_y = title_height + 0.08

do for [type in types] {
    eval terminal(type, width, height)
    set multiplot
    set lmargin at screen left / width
    set rmargin at screen 1 - right / width
    unset key
    set xrange [x_min:x_max]

    # ---- the ranges of the formats ----
    unset border; unset xtics; unset ytics
    set tmargin at screen at_y(top)
    set bmargin at screen at_y(top + lanes_height - 0.02)
    set yrange [-0.5:n_formats - 0.5]
    if (strlen(title)) {
        set label 1 shown(title) center at screen 0.5, screen at_y(0.13) noenhanced font normal_font tc rgb ink
    }
    if (strlen(note)) {
        set label 2 shown(note) left at screen at_x(table_left), screen at_y(key_y) font small_font tc rgb ink
    }
    set object 1 rectangle from screen at_x(key_x), screen at_y(key_y - 0.036) \
        to screen at_x(key_x + 0.16), screen at_y(key_y + 0.036) \
        fillcolor rgb pale fillstyle solid 1 border lc rgb dark lw 1
    set label 3 'subnormal' left at screen at_x(key_x + 0.21), screen at_y(key_y) \
        font small_font tc rgb ink
    set object 2 rectangle from screen at_x(key_x + 0.83), screen at_y(key_y - 0.036) \
        to screen at_x(key_x + 0.99), screen at_y(key_y + 0.036) \
        fillcolor rgb dark fillstyle solid 1 border lc rgb dark lw 1
    set label 4 'normal' left at screen at_x(key_x + 1.04), screen at_y(key_y) font small_font tc rgb ink
    plot data index 'formats' \
            using (clip($2)):1:(clip($2)):(clip($3)):($1 - 0.24):($1 + 0.24) \
            with boxxyerror lc rgb pale lw 1 fill solid 1 border lc rgb dark, \
        '' index 'formats' using (clip($3)):1:(clip($3)):(clip($4)):($1 - 0.24):($1 + 0.24) \
            with boxxyerror lc rgb dark lw 1 fill solid 1 border lc rgb dark, \
        '' index 'formats' using ($2 < x_low ? x_low : outside):1:(-0.07 * unit):(0) \
            with vectors head filled size screen 0.05 / width, 30 lc rgb dark lw 1, \
        '' index 'formats' using ($4 > x_high ? x_high : outside):1:(0.07 * unit):(0) \
            with vectors head filled size screen 0.05 / width, 30 lc rgb dark lw 1, \
        '' index 'formats' using (x_low - 0.12 * unit):1:(plotted(stringcolumn(6))) \
            with labels right noenhanced font small_font tc rgb ink
    unset label; unset object

    # ---- the data ----
    set border 2 lw 1 lc rgb ink
    set tmargin at screen at_y(top + lanes_height)
    set bmargin at screen at_y(top + lanes_height + plot_height)
    set yrange [y_low:y_high]
    if (logscale) { set logscale y; set format y '%g' }
    set ytics out nomirror scale 0.5 font small_font tc rgb ink
    set xtics out nomirror scale 0.5 font small_font tc rgb ink tick * ceil(real(x_low) / tick), tick, x_high
    set arrow 1 from x_low, base to x_high, base nohead lc rgb ink lw 1 front
    set arrow 2 from x_min, base to side(-1) + 1.5 * bar, base nohead lc rgb ink lw 1 front
    if (n_right) { set arrow 3 from side(1) - 1.5 * bar, base to x_max, base nohead lc rgb ink lw 1 front }
    set label 1 shown('share of elements (%)') center rotate by 90 font normal_font tc rgb ink \
        at screen at_x(0.09), screen at_y(top + lanes_height + plot_height / 2)
    set label 2 shown(x_label) center font normal_font tc rgb ink at screen at_x(label_x), screen label_y
    set label 3 shown(tail_text) left font small_font tc rgb ink at first x_low, screen label_y
    plot data index 'formats' every ::0::0 \
            using (clip($2)):(base):(clip($2)):(clip($3)):(base):(y_high) \
            with boxxyerror lc rgb faint fill solid 1 noborder, \
        '' index 'formats' every ::0::0 \
            using (clip($3)):(base):(clip($3)):(clip($4)):(base):(y_high) \
            with boxxyerror lc rgb shade fill solid 1 noborder, \
        for [c = 2:4] '' index 'formats' every ::0::0 \
            using (visible(column(c))):(base):(0):(y_high - base) \
            with vectors nohead lc rgb middle dt (2, 3) lw 1, \
        '' index 'bins' \
            using (visible($1)):3:($1 + 0.05):($1 + 0.95):(base):(floored($3)) \
            with boxxyerror lc rgb sky fill solid 1 noborder, \
        '' index 'special' \
            using (side($1)):3:(side($1) - bar):(side($1) + bar):(base):(cut($3)) \
            with boxxyerror lc rgb sky fill solid 1 noborder, \
        '' index 'special' \
            using ($3 > y_cut ? side($1) - bar : outside):(0.84 * y_cut):(2 * bar): \
                  (0.04 * y_cut) \
            with vectors nohead lc rgb paper lw 4, \
        '' index 'special' using (side($1)):(cut($3)):(plotted(percent($3))) \
            with labels center offset character 0, 0.6 noenhanced font small_font tc rgb ink, \
        '' index 'special' using (side($1)):(base):(plotted(stringcolumn(4))) \
            with labels center offset character 0, -1.15 noenhanced font small_font tc rgb ink
    unset label; unset arrow; unset border; unset xtics; unset ytics
    # A plot of its own: gnuplot 5.4 stumbles over a plot with an empty iteration.
    if (n_scales > 1) {
        plot for [s = 1:n_scales - 1] data index 'bins' \
            using (visible($1 + shift[s + 1])):(floored($4)) with steps ls s
    }
    unset logscale

    # ---- the table ----
    set lmargin at screen 0; set rmargin at screen 1
    set bmargin at screen 0; set tmargin at screen legend_height / height
    set xrange [0:width]; set yrange [legend_height:0]
    set label 1 shown(heading) left font small_font tc rgb ink at table_left, cell_y(0, header - !beside)
    if (first_row) {
        set label 2 'recorded' left font small_font tc rgb ink \
            at table_left + swatch + 0.08, 0.5 * line_height
    }
    do for [g = 0:first_row ? 0 : groups - 1] {
        y = first_row ? 0.5 * line_height : cell_y(g * per_row, 0)
        set object g + 1 rectangle from table_left, y - 0.04 to table_left + swatch, y + 0.04 \
            fillcolor rgb sky fillstyle solid 1 noborder
    }
    do for [g = 0:groups - 1] {
        do for [s = 1:n_scales - 1] {
            y = cell_y(g * per_row, s)
            set arrow from table_left, y to table_left + swatch, y nohead ls s
        }
    }
    plot for [f = 0:n_formats - 1] data index 'formats' every ::f::f \
            using (cell_x(f)):(cell_y(f, header)):(plotted(stringcolumn(6))) \
            with labels right noenhanced font small_font tc rgb ink, \
        for [g = 0:groups - 1] '' index 'scales' every ::first_row \
            using (table_left + swatch + 0.08):(cell_y(g * per_row, $1)):(plotted(scale_name($2))) \
            with labels left noenhanced font small_font tc rgb ink, \
        for [f = 0:n_formats - 1] '' index 'scales' every ::first_row \
            using (cell_x(f)):(cell_y(f, $1)): \
                  (plotted(shares(column(4 + 2 * f), column(5 + 2 * f)))) \
            with labels right noenhanced font small_font tc rgb ink
    unset label; unset arrow; unset object
    unset multiplot
    unset output
}
