# ---- curves.gp: a curve for each series through the means over seeds, a dot for each seed ----
# For data/experiments. Reads lines "series, name, x, value, mean" separated by tabs, series from 1, x
# growing within each. Wants figure (prefix), data, axis and unit (texts), ticks (the x of all,
# between blanks) and logarithmic (axes: '', 'x', 'y', 'xy').
set datafile separator '\t'
width = 5.0
stats data using 1 nooutput
series = int(STATS_max)
array name[series]
longest = 0
stats data using (name[int($1)] = stringcolumn(2), 0) nooutput
do for [i = 1:series] { longest = max(longest, strlen(name[i])) }
right = longest * character_width + 0.5
height = max(2.3, 0.145 * series + 0.6)
colors = 'ink vermilion blue green purple orange sky dark'
dashes = '1 (7,3) (9,2,2,2) (3,2) (9,2,2,2,2,2)'
markers = '7 4 9 12 5 6 13 8'
do for [c = 1:series] {
    eval sprintf('set style line %d lc rgb %d dt %s lw 2 pt %s ps 0.8', 10 + c, \
                 value(word(colors, (c - 1) % 8 + 1)), word(dashes, (c - 1) % 5 + 1), \
                 word(markers, (c - 1) % 8 + 1))
}
eval terminal('png', width, height)
set border 3 lw 1
set lmargin at screen 0.5 / width
set rmargin at screen 1 - right / width
set tmargin at screen 1 - 0.22 / height
set bmargin at screen 0.42 / height
set key at screen 1 - (right - 0.1) / width, screen 1 - 0.22 / height left top Left reverse \
    samplen 2.2 spacing 1.05 font small_font
set xtics out nomirror scale 0.5 font small_font
set ytics out nomirror scale 0.5 font small_font
set xtics ('' -1e30)
do for [t in ticks] { set xtics add (t t + 0) }
if (strstrt(logarithmic, 'x')) { set logscale x }
if (strstrt(logarithmic, 'y')) { set logscale y; set format y '%g' }
set autoscale noextend
set offsets graph 0.03, graph 0.03, graph 0.04, graph 0.04
set xlabel axis font normal_font offset 0, 0.4
set label 1 unit left font normal_font at graph 0, screen 1 - 0.1 / height
plot for [c = 1:series] data using (int($1) == c ? $3 : 1/0):5 smooth unique ls 10 + c \
         with lines notitle, \
    for [c = 1:series] '' using (int($1) == c ? $3 : 1/0):4 with points ls 10 + c notitle, \
    for [c = 1:series] NaN with linespoints ls 10 + c title name[c]
