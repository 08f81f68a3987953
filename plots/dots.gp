# ---- dots.gp: a line for each label, a dot for each seed, a bar at their mean ----
# For data/experiments. Reads lines "row, label, value, mean" separated by tabs, rows from 1 (on
# top). Wants figure (prefix), data, axis (its text) and limit: what is further from zero stands at
# the border as a triangle; 0: none.
set datafile separator '\t'
width = 5.0
stats data using 1 nooutput
rows = int(STATS_max)
longest = 0
stats data using (longest = max(longest, strlen(stringcolumn(2))), 0) nooutput
stats data using 3 nooutput
low = min(0, STATS_min); high = max(0, STATS_max)
if (limit > 0) { low = max(low, -limit); high = min(high, limit) }
span = high > low ? high - low : 1
at(v) = max(low, min(high, v))
outside(v) = v < low || v > high
left = longest * character_width + 0.12
height = 0.165 * rows + 0.52
eval terminal('png', width, height)
unset key
unset border
set lmargin at screen left / width
set rmargin at screen 1 - 0.12 / width
set tmargin at screen 1 - 0.06 / height
set bmargin at screen 0.42 / height
set xrange [low - 0.03 * span:high + 0.03 * span]
set yrange [rows + 0.6:0.4]
step = 10 ** floor(log10(span / 2.5))
step = step * (span / step > 12 ? 5 : span / step > 5 ? 2 : 1)
set xtics step out nomirror scale 0.5 font small_font
set ytics scale 0 font small_font
set xlabel axis font normal_font offset 0, 0.4
do for [i = 1:rows] {
    set arrow from graph 0, first i to graph 1, first i nohead back lc rgb shade lw 1
}
set arrow from 0, graph 0 to 0, graph 1 nohead back lc rgb middle lw 1
plot data using (at($4)):1:(0):(0.34) with vectors nohead lc rgb vermilion lw 3, \
    '' using (at($4)):1:(0):(-0.34) with vectors nohead lc rgb vermilion lw 3, \
    '' using (outside($3) ? low - span : $3):1:ytic(2) with points pt 6 ps 0.7 lc rgb blue, \
    '' using (outside($3) ? at($3) : low - span):1:ytic(2) with points pt 9 ps 0.8 lc rgb blue
