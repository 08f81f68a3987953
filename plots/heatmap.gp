# ---- heatmap.gp: tensor by step, how far two runs are apart, or what a cast loses ----
# A row for each tensor, or layer, a column for each step. The darker a cell, the worse; pale: nothing is apart, or lost;
# blank: nothing to show. Reads the blocks steps, rows and cells.

# ---- layout, inches ----
right = 0.10
left = 0.14 + max(0.3, name_length * character_width)
plot_width = width - left - right
row_height = max(0.025, min(0.125, 7.0 / max(1, n_rows)))
named = int(ceil(0.11 / row_height - 0.13)) # of so many rows one has its name
plot_height = max(1, n_rows) * row_height
top = strlen(title) ? 0.28 : 0.07
axis_height = 0.36
bar_height = 0.36
signs = strlen(pale_words) + strlen(red_words) + strlen(mark_words) + (first_row >= 0) > 0
legend_rows = signs + (strlen(first) > 0)
legend_height = legend_rows * line_height + 0.06
height = top + plot_height + axis_height + bar_height + legend_height
bottom = height - top - plot_height
cell = plot_width / real(n_columns)
thin = n_columns > 60 || row_height < 0.08 ? 0 : 0.5 # white lines between cells, points

# ---- what is drawn where: inches from the lower left corner ----
x(c) = left + c * cell
y(r) = height - top - (r + 1) * row_height
part(v) = max(0.0, min(1.0, (v - v_low) / real(v_high - v_low)))
dark_of(v) = less_is_worse ? 1 - part(v) : part(v)
# from a light blue to a dark one, growing darker in grey, too; on a dark ground from a dark one to a light one
colour_of(t) = mixed(is_dark ? 0x283E5C : 0xC8DEF0, much, t)
cell_colour(v, state) = state eq 'equal' ? faint : state eq 'apart' ? colour_of(dark_of(v)) : \
                        state eq 'broken' ? vermilion : paper
# drawn with characters: · ░ ▒ ▓ █ from pale to dark, ! for NaN and Inf, × for what has the mark
shade_text(v, state) = state eq 'equal' ? '·' : state eq 'broken' ? '!' : state eq 'apart' ? \
                       (dark_of(v) < 0.25 ? '░' : dark_of(v) < 0.5 ? '▒' : dark_of(v) < 0.75 ? '▓' : '█') : ' '
sign = row_height >= 0.08 && cell >= 0.05 # room for one; red and blue are alike in grey
cell_text(v, state, marked, type) = sign && state eq 'broken' ? '!' : marked > 0 ? '×' : type eq 'txt' ? shade_text(v, state) : ' '
mark_colour(v, state) = state eq 'broken' ? black : state eq 'apart' && dark_of(v) > (is_dark ? 0.35 : 0.5) ? paper : ink
value_text(v) = unit == 0 ? sprintf('%g', v) : unit == 1 ? (v == 0 ? '1' : '2'.raised(int(v))) : \
                v < -2 ? '10'.raised(int(v)) : sprintf('%g', 10.0 ** v)
tick_step = max(1, int(ceil(max(0.30, (step_length + 1) * character_width) / cell)))

do for [type in types] {
    eval terminal(type, width, height)
    set multiplot
    unset key; unset border; unset xtics; unset ytics
    set lmargin at screen 0; set rmargin at screen 1
    set bmargin at screen 0; set tmargin at screen 1
    set xrange [0:width]; set yrange [0:height]
    if (strlen(title)) {
        set label shown(title) center at width / 2.0, height - 0.13 noenhanced font normal_font tc rgb ink
    }
    set label shown(several ? 'step (the worst of several in a column)' : 'step') center \
        at (several ? width / 2.0 : left + plot_width / 2), bottom - 0.26 font normal_font tc rgb ink
    set object 1 rectangle from left, bottom to left + plot_width, bottom + plot_height front \
        fillstyle empty border lc rgb dark lw 1
    if (first_row >= 0 && first_column >= 0) {
        set object 2 rectangle from x(first_column), y(first_row) \
            to x(first_column + 1), y(first_row) + row_height front fillstyle empty border lc rgb orange lw 3
    }
    if (n_rows == 0) {
        set label 'all are equal' center at left + plot_width / 2, bottom + plot_height / 2 font small_font tc rgb ink
    }

    # ---- the bar of colours ----
    bar = legend_height + 0.20
    bar_left = max(left, 0.18 + strlen(bar_words) * character_width); bar_width = width - right - bar_left - 0.04
    shades = 64
    do for [i = 0:shades - 1] {
        set object 100 + i rectangle from bar_left + bar_width * i / shades, bar \
            to bar_left + bar_width, bar + 0.08 \
            fillcolor rgb colour_of((less_is_worse ? shades - 1 - i : i) / (shades - 1.0)) fillstyle solid 1 noborder
    }
    v_step = power_of_two((v_high - v_low) * 0.42 / bar_width)
    do for [k = int(ceil(real(v_low) / v_step)):int(floor(real(v_high) / v_step))] {
        at = bar_left + bar_width * (k * v_step - v_low) / (v_high - v_low)
        set label shown(value_text(k * v_step)) center at at, bar - 0.06 font small_font tc rgb ink
    }
    if (type eq 'txt') {
        do for [i = 0:3] {
            set label shown(word('░ ▒ ▓ █', less_is_worse ? 4 - i : i + 1)) center at bar_left + bar_width * (i + 0.5) / 4, bar + 0.03 tc rgb ink
        }
    }
    set label shown(bar_words) right at bar_left - 0.08, bar + 0.03 font small_font tc rgb ink noenhanced

    # ---- legend: the signs that occur ----
    row_1 = legend_height - 0.5 * line_height - 0.02
    at = 0.10
    do for [k = 1:4] {
        words = k == 1 ? pale_words : k == 2 ? red_words : k == 3 ? mark_words : first_row >= 0 ? 'first' : ''
        if (strlen(words)) {
            if (k == 3) { set label shown('×') center at at + 0.06, row_1 font normal_font tc rgb ink }
            if (k < 3) {
                set object 2 + k rectangle from at, row_1 - 0.04 to at + 0.12, row_1 + 0.04 \
                    fillcolor rgb k == 1 ? faint : vermilion fillstyle solid 1 border lc rgb middle lw 1
            }
            if (k == 4) {
                set object 2 + k rectangle from at, row_1 - 0.04 to at + 0.12, row_1 + 0.04 \
                    fillstyle empty border lc rgb orange lw 3
            }
            if (k == 2 && sign) { set label '!' center at at + 0.06, row_1 font small_font tc rgb black }
            set label shown(words) left at at + 0.18, row_1 font small_font tc rgb ink
            at = at + 0.34 + strlen(words) * character_width
        }
    }
    if (strlen(first)) {
        fits = int((width - 0.2) / (0.92 * character_width))
        words = strlen(first) > fits ? substr(first, 1, fits - 1).'…' : first
        set label shown(words) left at 0.10, 0.06 + 0.5 * line_height - 0.02 font small_font tc rgb ink noenhanced
    }

    if (n_rows > 0) {
        plot for [once = 1:(type ne 'txt')] data index 'cells' using (x($1) + cell / 2):(y($2) + row_height / 2): \
                (x($1)):(x($1 + 1)):(y($2)):(y($2) + row_height):(cell_colour($3, stringcolumn(4))) \
                with boxxyerror lc rgb variable lw thin fillstyle solid 1 border rgb paper, \
            data index 'cells' using (latex && cell_text($3, stringcolumn(4), $5, type) eq ' ' ? -width : x($1) + cell / 2):(y($2) + row_height / 2):(plotted(cell_text($3, stringcolumn(4), $5, type))): \
                (mark_colour($3, stringcolumn(4))) with labels center font small_font textcolor rgb variable, \
            '' index 'rows' using (left - 0.06):(y($1) + row_height / 2):(int($1) % named == 0 ? plotted(stringcolumn(2)) : ' ') \
                with labels right noenhanced font small_font tc rgb ink, \
            '' index 'steps' using (x($1) + cell / 2):(bottom - 0.09):(int($1) % tick_step == 0 ? plotted(stringcolumn(2)) : ' ') \
                with labels center noenhanced font small_font tc rgb ink
    } else {
        plot NaN notitle
    }
    unset label; unset object
    unset multiplot
    unset output
}
