# ---- published.gp: numbers of papers beside mpsim's ----
# For published.sh. A row for each number: open, what is published, a line where that is a range; filled, mpsim's; at the
# right the difference. Reads lines "label, low, high, here, difference" separated by tabs. Wants figure (prefix), data, types, unit
# (text of the axis) and logarithmic (1: the axis).
set datafile separator '\t'
width = 6.0
rows = 0; longest = 0
stats data using (rows = rows + 1, longest = max(longest, strlen(stringcolumn(1))), 0) nooutput
array label[rows]; array gap[rows]
stats data using (label[int($0) + 1] = stringcolumn(1), gap[int($0) + 1] = stringcolumn(5), 0) nooutput
scaled(v) = logarithmic ? log10(v) : v
gone = -width # where there is no number
least = 1e30; most = -1e30
stats data using (least = min(least, min(scaled($2), scaled($4))), most = max(most, max(scaled($3), scaled($4))), 0) nooutput
if (!logarithmic) { least = min(0, least) }
row_height = 0.17
left = 0.16 + longest * character_width; right = 0.75
height = 0.26 + rows * row_height + 0.62
plot_width = width - left - right
margin = 0.04 * (most - least)
x(v) = v != v ? gone : left + (scaled(v) - least + margin) * plot_width / (most - least + 2 * margin)
y(row) = height - 0.26 - (row + 0.5) * row_height
floor_y = y(rows - 0.5)
step = logarithmic ? max(1, ceil(0.35 * (most - least) / plot_width)) : rounded(0.4 * (most - least) / plot_width)

do for [type in types] {
    eval terminal(type, width, height)
    set multiplot
    unset key; unset border; unset xtics; unset ytics
    set lmargin at screen 0; set rmargin at screen 1
    set bmargin at screen 0; set tmargin at screen 1
    set xrange [0:width]; set yrange [0:height]
    set arrow from left, floor_y to left + plot_width, floor_y nohead lc rgb ink lw 1
    set label 'difference' right at width - 0.10, height - 0.13 font small_font tc rgb ink
    set label shown(unit) center at left + plot_width / 2, floor_y - 0.27 font normal_font tc rgb ink
    do for [k = int(ceil(real(least) / step - 1e-9)):int(floor(real(most) / step + 1e-9))] {
        value = logarithmic ? 10.0 ** (k * step) : k * step
        set arrow from x(value), floor_y to x(value), height - 0.26 nohead back lc rgb shade lw 1
        set label sprintf('%.10g', value) center at x(value), floor_y - 0.10 font small_font tc rgb ink
    }
    do for [i = 1:rows] {
        if (i % 2 == 0) {
            set object i rectangle from 0.06, y(i - 1) - row_height / 2 to width - 0.06, y(i - 1) + row_height / 2 \
                behind fillcolor rgb faint fillstyle solid 1 noborder
        }
        set label shown(label[i]) right at left - 0.08, y(i - 1) font small_font tc rgb ink
        set label shown(gap[i]) right at width - 0.10, y(i - 1) font small_font tc rgb ink
    }
    key_y = 0.08
    set label '' at left, key_y tc rgb ink point pt 6 ps 1.1 lc rgb vermilion lw 2
    set label 'published' left at left + 0.10, key_y font small_font tc rgb ink
    set label '' at left + 1.0, key_y tc rgb ink point pt 7 ps 0.7 lc rgb blue
    set label 'here' left at left + 1.10, key_y font small_font tc rgb ink
    plot data using (x($2)):(y($0)):(x($3) - x($2)):(0) with vectors nohead lc rgb vermilion lw 3, \
        '' using (x($2)):(y($0)) with points pt 6 ps 1.1 lc rgb vermilion lw 2, \
        '' using (x($3)):(y($0)) with points pt 6 ps 1.1 lc rgb vermilion lw 2, \
        '' using (x($4)):(y($0)) with points pt 7 ps 0.7 lc rgb blue
    unset label; unset arrow; unset object
    unset multiplot
    unset output
}
