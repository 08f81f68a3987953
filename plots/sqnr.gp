# ---- sqnr.gp: SQNR of formats and block recipes side by side ----
# A table of decibels, the darker the lower. Of few groups of tensors: a row for each format and recipe, a column
# for each group, and one for all that is selected; of more, rows and columns change places. Numbers are left out
# where they do not fit. A red line under a number: the share of the elements, of the width of the cell, that SQNR says little
# of, as they become zero, Inf or NaN. Reads the blocks targets, groups and decibels.

set datafile missing # NaN is a word here
array target_name[n_targets]; array all_of[n_targets]; array group_name[n_groups]
stats data index 'targets' using (target_name[int($1) + 1] = stringcolumn(5), all_of[int($1) + 1] = strcol(3), 0) nooutput
stats data index 'groups' using (group_name[int($1) + 1] = stringcolumn(2), 0) nooutput

# ---- layout, inches ----
width = real(width)
few = n_groups <= 8
apart = 0.06 # between formats and recipes, before what is of all
n_split = n_formats > 0 && n_formats < n_targets
has_all = n_groups > 1
n_columns = few ? n_groups + has_all : n_targets
n_rows = few ? n_targets : n_groups + has_all
column_gaps = few ? has_all : n_split
row_gaps = few ? n_split : has_all
row_length = few ? name_length : group_length
column_length = few ? max(group_length, 3) : name_length
left = 0.14 + max(0.3, row_length * character_width)
right = 0.08
most = 0.62 # a column is not wider
cell = min(most, (width - left - right - column_gaps * apart) / n_columns)
cell_height = 0.14
upright = column_length * character_width > cell - 0.02
decimals = cell >= 4.4 * character_width ? 1 : 0
numbers = cell >= 2.2 * character_width
top = strlen(title) ? 0.28 : 0.06
head = upright ? column_length * character_width + 0.09 : 0.16
body = n_rows * cell_height + row_gaps * apart
losses = most_lost < 0.05 ? '' : 'red: share of elements lost to 0, Inf or NaN, at most '.percent(most_lost).' %'
notes = (strlen(note) > 0) + (strlen(axes) > 0) + (strlen(losses) > 0)
bar_height = 0.40
height = top + head + body + bar_height + notes * line_height + 0.03
bottom = height - top - head - body

# ---- what is drawn where: inches from the lower left corner ----
target_gap(k) = n_split && k >= n_formats ? apart : 0
group_gap(g) = g == n_groups ? apart : 0 # of all
x(k, g) = left + (few ? g * cell + group_gap(g) : k * cell + target_gap(k))
y(k, g) = height - top - head - (few ? (k + 1) * cell_height + target_gap(k) : (g + 1) * cell_height + group_gap(g))
c_high = min(v_high, v_low + 40) # lighter it does not become
part(v) = max(0.0, min(1.0, (v - v_low) / real(c_high - v_low)))
colour_of(t) = mixed(much, is_dark ? 0x202C3E : 0xECF3F9, t) # from a dark blue to a light one; on a dark ground the reverse
cell_colour(s) = s eq 'NaN' ? paper : s eq 'exact' ? faint : colour_of(part(real(s)))
cell_text(s) = s eq 'NaN' ? '–' : s eq 'exact' ? '∞' : sprintf(decimals ? '%.1f' : '%.0f', real(s))
text_colour(s) = s ne 'NaN' && s ne 'exact' && part(real(s)) < (is_dark ? 0.6 : 0.4) ? paper : ink

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
    note_y = 0.04 + (notes - 0.5) * line_height
    do for [words in 'losses note axes'] {
        if (strlen(value(words))) {
            set label shown(value(words)) left at 0.08, note_y font small_font tc rgb ink
            note_y = note_y - line_height
        }
    }

    # ---- names ----
    do for [i = 1:n_columns] {
        k = few ? 0 : i - 1; g = few ? i - 1 : 0
        name = few ? (g == n_groups ? 'all' : group_name[i]) : target_name[i]
        if (upright) {
            set label shown(name) left rotate by 90 at x(k, g) + cell / 2, bottom + body + 0.05 font small_font tc rgb ink noenhanced
        } else {
            set label shown(name) center at x(k, g) + cell / 2, bottom + body + 0.08 font small_font tc rgb ink noenhanced
        }
    }
    do for [i = 1:n_rows] {
        k = few ? i - 1 : 0; g = few ? 0 : i - 1
        name = few ? target_name[i] : g == n_groups ? 'all' : group_name[i]
        set label shown(name) right at left - 0.06, y(k, g) + cell_height / 2 font small_font tc rgb ink noenhanced
    }

    # ---- the bar of colours ----
    bar = bottom - 0.19; bar_left = max(left, 0.80); bar_width = min(width - bar_left - 0.20, 3.0)
    shades = 64
    do for [i = 0:shades - 1] {
        set object 100 + i rectangle from bar_left + bar_width * i / shades, bar to bar_left + bar_width, bar + 0.08 \
            fillcolor rgb colour_of(i / (shades - 1.0)) fillstyle solid 1 noborder
    }
    bar_step = max(1, rounded(0.34 * (c_high - v_low) / bar_width))
    do for [k = int(ceil(v_low / real(bar_step))):int(floor(c_high / real(bar_step)))] {
        set label shown(sprintf('%g', k * bar_step)) center font small_font tc rgb ink \
            at bar_left + bar_width * (k * bar_step - v_low) / real(c_high - v_low), bar - 0.06
    }
    set label shown('SQNR (dB)') right at bar_left - 0.08, bar + 0.03 font small_font tc rgb ink

    # ---- cells: those of all behind those of groups ----
    plot data index 'decibels' using (x($1, $2) + cell / 2):(y($1, $2) + cell_height / 2):(x($1, $2)):(x($1, $2) + cell): \
            (y($1, $2)):(y($1, $2) + cell_height):(cell_colour(strcol(3))) \
            with boxxyerror lc rgb variable lw 0.5 fillstyle solid 1 border rgb paper, \
        for [once = 1:has_all] '' index 'targets' using (x($1, n_groups) + cell / 2):(y($1, n_groups) + cell_height / 2): \
            (x($1, n_groups)):(x($1, n_groups) + cell):(y($1, n_groups)):(y($1, n_groups) + cell_height): \
            (cell_colour(strcol(3))) with boxxyerror lc rgb variable lw 0.5 fillstyle solid 1 border rgb paper, \
        '' index 'decibels' using (x($1, $2)):(y($1, $2)):(x($1, $2)):(x($1, $2) + cell * $4 / 100): \
            (y($1, $2)):(y($1, $2) + 0.024) with boxxyerror lc rgb vermilion lw 0.5 fillstyle solid 1 noborder, \
        for [once = 1:has_all] '' index 'targets' using (x($1, n_groups)):(y($1, n_groups)):(x($1, n_groups)): \
            (x($1, n_groups) + cell * $4 / 100):(y($1, n_groups)):(y($1, n_groups) + 0.024) \
            with boxxyerror lc rgb vermilion lw 0.5 fillstyle solid 1 noborder, \
        '' index 'decibels' using (numbers ? x($1, $2) + cell / 2 : NaN):(y($1, $2) + cell_height / 2): \
            (plotted(cell_text(strcol(3)))):(text_colour(strcol(3))) with labels center font small_font textcolor rgb variable, \
        for [once = 1:has_all] '' index 'targets' \
            using (numbers ? x($1, n_groups) + cell / 2 : NaN):(y($1, n_groups) + cell_height / 2): \
            (plotted(cell_text(strcol(3)))):(text_colour(strcol(3))) with labels center font small_font textcolor rgb variable
    unset label; unset arrow; unset object
    unset multiplot
    unset output
}
