# ---- histogram.gp: share of elements by binary exponent ----
# Top: a lane for each format: solid = normal numbers, hatched = subnormal ones. Middle: the
# data as recorded (filled) and scaled (outlines); the range of the first format is shaded.
# Zero, Inf and NaN stand apart. Bottom: what underflows. Reads the blocks bins, special,
# formats and scales.

# ---- layout, inches ----
left = 0.50; right = 0.10; apart = 0.46 # apart: room for a bin that stands apart
plot_width = width - left - right
unit = (x_high - x_low) / (plot_width - apart - 0.36 * n_right) # binades per inch
x_min = x_low - apart * unit
x_max = x_high + 0.36 * n_right * unit
plot_height = min(0.52 * plot_width, 2.6)
lane = 0.15
lanes_height = lane * n_formats + 0.05
cell = max(overflows ? 0.78 : 0.46, name_length * character_width + 0.10)
names_width = 1.25
per_row = max(1, min(n_formats, int((width - names_width - 0.05) / cell)))
table_rows = (n_formats + per_row - 1) / per_row * (n_scales + 1)
legend_height = table_rows * line_height + 0.06
axis_height = 0.40
top = strlen(title) ? 0.24 : 0.05
height = top + lanes_height + plot_height + axis_height + legend_height

at_y(inches) = 1 - inches / height # screen coordinate, from the top
clip(x) = max(x_low, min(x_high, x))
bar = 0.11 * unit # half the width of a bin that stands apart
side(s) = s < 0 ? x_low - 0.55 * apart * unit : x_high + 0.36 * (s - 0.4) * unit
tick = power_of_two(0.33 * unit)
base = logscale ? y_low : 0
floored(y) = y > base ? y : base

do for [type in types] {
    eval terminal(type, width, height)
    set output figure.'.'.type
    set multiplot
    set lmargin at screen left / width
    set rmargin at screen 1 - right / width
    unset key
    set xrange [x_min:x_max]

    # ---- the ranges of the formats ----
    unset border; unset xtics; unset ytics; unset xlabel; unset ylabel
    set tmargin at screen at_y(top)
    set bmargin at screen at_y(top + lanes_height - 0.02)
    set yrange [-0.5:n_formats - 0.5]
    if (strlen(title)) {
        set label 1 title at screen 0.5, screen at_y(0.12) center noenhanced
    }
    plot data index 'formats' \
            using (clip($2)):1:(clip($2)):(clip($3)):($1 - 0.24):($1 + 0.24) \
            with boxxyerror fill pattern 4 border lc rgb middle lw 0.5, \
        '' index 'formats' using (clip($3)):1:(clip($3)):(clip($4)):($1 - 0.24):($1 + 0.24) \
            with boxxyerror fill solid 1 noborder lc rgb dark, \
        '' index 'formats' using ($2 < x_low ? x_low : NaN):1:(-0.07 * unit):(0) \
            with vectors head filled size screen 0.05 / width, 30 lc rgb middle lw 0.8, \
        '' index 'formats' using ($4 > x_high ? x_high : NaN):1:(0.07 * unit):(0) \
            with vectors head filled size screen 0.05 / width, 30 lc rgb dark lw 0.8, \
        '' index 'formats' using (x_low - 0.12 * unit):1:(stringcolumn(6)) \
            with labels right noenhanced font small_font
    unset label 1

    # ---- the data ----
    set border 3 lw 0.6
    set tmargin at screen at_y(top + lanes_height)
    set bmargin at screen at_y(top + lanes_height + plot_height)
    set yrange [y_low:y_high]
    if (logscale) { set logscale y }
    set ytics out nomirror scale 0.5 font small_font
    if (logscale) { set format y '%g' } else { set format y '%h' }
    set xtics out nomirror scale 0.5 font small_font tick
    set xtics (tick * ceil(x_low / tick)) , tick, x_high
    set ylabel 'share of elements (%)' font normal_font \
        at screen 0.09 / width, screen at_y(top + lanes_height + plot_height / 2) center rotate
    plot data index 'bins' using 1:3
    unset logscale
    unset multiplot
    unset output
}
