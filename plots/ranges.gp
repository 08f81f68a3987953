# ---- ranges.gp: recipes or models, a row each, in panels side by side ----
# A dot is a value, or the median of several: then the thick line is the middle half of them and the thin one all. A value
# beyond the left end is 0, one beyond the right end is without error. Reads the blocks rows and "panel N".

# ---- layout, inches ----
width = real(width)
left = 0.14 + max(0.3, name_length * character_width)
right = 0.10; gap = 0.24
panel_width = (width - left - right - (n_panels - 1) * gap) / n_panels
row_height = 0.145
top = (strlen(title) ? 0.26 : 0.04) + 0.20
words = (spread ? sprintf('dot: median of %d tensor%s; thick: middle half; thin: all', n_values, n_values == 1 ? '' : 's') : '').(negatives ? (spread ? '; ' : '').'open: below 0' : '')
notes = (strlen(words) > 0) + (strlen(note) > 0) + (strlen(axes) > 0)
bottom = 0.24 + notes * line_height
height = top + n_rows * row_height + bottom
band = 0.12 # of 0, or of no error, beside the axis

# ---- what is drawn where: inches from the lower left corner ----
base(p) = left + (p - 1) * (panel_width + gap)
from(p) = base(p) + (zero[p] ? band : 0) + 0.03
to(p) = base(p) + panel_width - (infinite[p] ? band : 0) - 0.03
x(p, v) = v < low[p] ? base(p) + band / 2 : v > high[p] ? base(p) + panel_width - band / 2 : \
          from(p) + (v - low[p]) * (to(p) - from(p)) / real(high[p] - low[p])
y(r) = height - top - (r + 0.5) * row_height
x_step(p) = logarithmic[p] ? max(1, ceil(0.30 * (high[p] - low[p]) / (to(p) - from(p)))) : \
            rounded(0.28 * (high[p] - low[p]) / (to(p) - from(p)))
value_text(p, v) = !logarithmic[p] ? sprintf('%.10g', v) : v >= -2 && v <= 2 ? sprintf('%.10g', 10.0 ** v) : '10'.raised(int(v))

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
    floor_y = bottom; head = height - top
    do for [r = 0:n_rows - 1] {
        if (r % 2) { set object 1 + r rectangle from 0.06, y(r) - row_height / 2 to width - right, y(r) + row_height / 2 \
                back fillcolor rgb faint fillstyle solid 1 noborder }
    }
    do for [p = 1:n_panels] {
        set label shown(heading[p]) center at base(p) + panel_width / 2, head + 0.10 font small_font tc rgb ink
        set arrow from base(p), floor_y to base(p) + panel_width, floor_y nohead lc rgb ink lw 1
        if (zero[p]) { set label '0' center at base(p) + band / 2, floor_y - 0.10 font small_font tc rgb ink }
        if (infinite[p]) { set label shown('∞') center at base(p) + panel_width - band / 2, floor_y - 0.10 font small_font tc rgb ink }
        do for [k = int(ceil(real(low[p]) / x_step(p) - 1e-9)):int(floor(real(high[p]) / x_step(p) + 1e-9))] {
            at = x(p, k * x_step(p))
            set arrow from at, floor_y to at, head nohead back lc rgb shade lw 1
            apart = band / 2 + (0.5 * strlen(value_text(p, k * x_step(p))) + 1) * character_width # from 0, or no error
            if ((at - base(p) > apart || !zero[p]) && (base(p) + panel_width - at > apart || !infinite[p])) {
                set label shown(value_text(p, k * x_step(p))) center at at, floor_y - 0.10 font small_font tc rgb ink
            }
        }
    }
    note_y = notes * line_height
    do for [what in 'words note axes'] {
        if (strlen(value(what))) {
            set label shown(value(what)) left at 0.08, note_y - 0.06 font small_font tc rgb ink
            note_y = note_y - line_height
        }
    }
    plot data index 'rows' using (left - 0.06):(y($1)):(plotted(stringcolumn(2))) with labels right noenhanced font small_font tc rgb ink
    unset label; unset arrow; unset object
    do for [p = 1:n_panels] {
        if (!any[p]) { continue }
        block = sprintf('panel %d: %s%s', p, heading[p], logarithmic[p] ? ', log10' : '')
        plot for [once = 1:spread] data index block using (x(p, $2)):(y($1)):(x(p, $6) - x(p, $2)):(0) with vectors nohead lc rgb middle lw 1.5, \
            for [once = 1:spread] '' index block using (x(p, $3)):(y($1)):(x(p, $5) - x(p, $3)):(0) with vectors nohead lc rgb blue lw 5, \
            '' index block using (x(p, $4)):(y($1)):($7 > 0 ? 6 : 7) with points pt variable ps 0.9 lc rgb ink
    }
    unset multiplot
    unset output
}
