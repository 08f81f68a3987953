# ---- histogram.gp: share of elements by binary exponent ----
# Top: a lane for each format: dark = normal numbers, pale = subnormal ones. Middle: the data
# as recorded (filled) and scaled (outlines); the range of the first format is shaded. Zero,
# Inf and NaN stand apart; an arrow tells what lies below the axis. Bottom: what underflows,
# which is also the legend. Reads the blocks bins, special, formats and scales.

# ---- layout, inches ----
left = 0.48; right = 0.04; apart = 0.48; side_width = 0.40 # apart, side: bins that stand apart
plot_width = width - left - right
unit = (x_high - x_low) / (plot_width - apart - side_width * n_right - 0.09) # binades per inch
x_min = x_low - apart * unit
x_max = x_high + (side_width * n_right + 0.09) * unit
plot_height = max(1.3, min(0.46 * plot_width, 2.6))
lane = 0.15
lanes_height = lane * n_formats + 0.05
table_left = width > 4.5 ? left : 0.08
cell = max(overflows ? 0.80 : 0.48, name_length * character_width + 0.12)
names_width = overflows ? 1.10 : 0.90
per_row = max(1, min(n_formats, int((width - table_left - names_width - 0.05) / cell)))
groups = (n_formats + per_row - 1) / per_row
legend_height = groups * (n_scales + 1) * line_height + 0.05
axis_height = 0.42
top = strlen(title) ? 0.24 : 0.05
height = top + lanes_height + plot_height + axis_height + legend_height
at_y(inches) = 1 - inches / height # screen coordinate, from the top

# ---- what is drawn where ----
visible(x) = x >= x_low && x < x_high ? x : NaN
clip(x) = max(x_low, min(x_high, x))
bar = 0.11 * unit # half the width of a bin that stands apart
side(s) = s < 0 ? x_min + (bar + 0.06 * unit) : x_high + side_width * (s - 0.4) * unit
tick = power_of_two(0.28 * unit)
base = logscale ? y_low : 0
floored(y) = y > base ? y : base
y_cut = logscale ? y_high : 0.9 * y_high # where a higher bin is cut off
cut(y) = floored(min(y, y_cut))
label_y = at_y(height - legend_height - 0.10)
x_label = (x_high - x_low) / unit > 2.8 ? 'log₂ |x|, one bin per binade' : 'log₂ |x|'
scale_name(s) = '× '.sprintf(s < 1e7 && s == floor(s) ? '%.0f' : '%.6g', s)
shares(u, o) = overflows ? percent(u).' / '.percent(o) : percent(u)
cell_x(f) = table_left + names_width + (f % per_row + 1) * cell
cell_y(f, row) = (0.5 + (f / per_row) * (n_scales + 1) + row + 1) * line_height
array shift[16]
stats data index 'scales' using (shift[int($1) + 1] = $3, 0) nooutput

do for [type in types] {
    eval terminal(type, width, height)
    set output figure.'.'.type
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
        set label 1 title center at screen 0.5, screen at_y(0.13) noenhanced font normal_font
    }
    plot data index 'formats' \
            using (clip($2)):1:(clip($2)):(clip($3)):($1 - 0.24):($1 + 0.24) \
            with boxxyerror lc rgb pale lw 1 fill solid 1 border lc rgb dark, \
        '' index 'formats' using (clip($3)):1:(clip($3)):(clip($4)):($1 - 0.24):($1 + 0.24) \
            with boxxyerror lc rgb dark lw 1 fill solid 1 border lc rgb dark, \
        '' index 'formats' using ($2 < x_low ? x_low : NaN):1:(-0.07 * unit):(0) \
            with vectors head filled size screen 0.05 / width, 30 lc rgb dark lw 1, \
        '' index 'formats' using ($4 > x_high ? x_high : NaN):1:(0.07 * unit):(0) \
            with vectors head filled size screen 0.05 / width, 30 lc rgb dark lw 1, \
        '' index 'formats' using (x_low - 0.12 * unit):1:(stringcolumn(6)) \
            with labels right noenhanced font small_font
    unset label 1

    # ---- the data ----
    set border 2 lw 1
    set tmargin at screen at_y(top + lanes_height)
    set bmargin at screen at_y(top + lanes_height + plot_height)
    set yrange [y_low:y_high]
    if (logscale) { set logscale y; set format y '%g' }
    set ytics out nomirror scale 0.5 font small_font
    set xtics out nomirror scale 0.5 font small_font tick * ceil(x_low / tick), tick, x_high
    set arrow 1 from x_low, base to x_high, base nohead lw 1 front
    set arrow 2 from x_min, base to side(-1) + 1.5 * bar, base nohead lw 1 front
    if (n_right) { set arrow 3 from side(1) - 1.5 * bar, base to x_max, base nohead lw 1 front }
    set label 2 'share of elements (%)' center rotate by 90 font normal_font \
        at screen 0.09 / width, screen at_y(top + lanes_height + plot_height / 2)
    set label 3 x_label center font normal_font at first (x_low + x_high) / 2, screen label_y
    if (tail > 0) {
        set label 4 '← '.percent(tail).' %' left font small_font at first x_low, screen label_y
    }
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
            using (side($1) - bar):($3 > y_cut ? 0.84 * y_cut : NaN):(2 * bar):(0.04 * y_cut) \
            with vectors nohead lc rgb white lw 4, \
        '' index 'special' using (side($1)):(cut($3)):(percent($3)) \
            with labels center offset character 0, 0.6 noenhanced font small_font, \
        '' index 'special' using (side($1)):(base):(stringcolumn(4)) \
            with labels center offset character 0, -1.15 noenhanced font small_font, \
        for [s = 1:n_scales - 1] '' index 'bins' \
            using (visible($1 + shift[s + 1])):(floored($3)) with steps ls s
    unset label; unset arrow; unset logscale

    # ---- the table ----
    unset border; unset xtics; unset ytics
    set lmargin at screen 0; set rmargin at screen 1
    set bmargin at screen 0; set tmargin at screen legend_height / height
    set xrange [0:width]; set yrange [legend_height:0]
    plot for [f = 0:n_formats - 1] data index 'formats' every ::f::f \
            using (cell_x(f)):(cell_y(f, -1)):(stringcolumn(6)) \
            with labels right noenhanced font small_font, \
        for [g = 0:groups - 1] '' index 'scales' every ::0::0 \
            using (table_left):(cell_y(g * per_row, -1)): \
                  (overflows ? 'under- / overflow (%)' : 'underflow (%)') \
            with labels left noenhanced font small_font, \
        for [g = 0:groups - 1] '' index 'scales' every ::0::0 \
            using (table_left):(cell_y(g * per_row, 0)):(table_left):(table_left + 0.24): \
                  (cell_y(g * per_row, 0) - 0.04):(cell_y(g * per_row, 0) + 0.04) \
            with boxxyerror lc rgb sky fill solid 1 noborder, \
        for [s = 1:n_scales - 1] for [g = 0:groups - 1] '' index 'scales' every ::s::s \
            using (table_left):(cell_y(g * per_row, s)):(0.24):(0) with vectors nohead ls s, \
        for [g = 0:groups - 1] '' index 'scales' \
            using (table_left + 0.32):(cell_y(g * per_row, $1)):(scale_name($2)) \
            with labels left noenhanced font small_font, \
        for [f = 0:n_formats - 1] '' index 'scales' \
            using (cell_x(f)):(cell_y(f, $1)):(shares(column(4 + 2 * f), column(5 + 2 * f))) \
            with labels right noenhanced font small_font
    unset multiplot
    unset output
}
