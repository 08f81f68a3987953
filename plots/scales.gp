# ---- scales.gp: scales of blocks by recipe, and what saturates ----
# A lane for each block recipe: over the exponent of the scale s, what numbers of codes are multiplied by, how
# many blocks have it, the largest bin as high as the lane. Beside it a table: blocks and elements that saturate.
# Reads the blocks lanes, groups and scales.

# ---- layout, inches ----
width = real(width)
lane_height = 0.21; lane_gap = 0.035
heading_height = headings ? 0.17 : 0
column = 0.50 # of the table
table = (2 + has_lost) * column + 0.04
left = 0.14 + max(0.3, name_length * character_width)
plot_width = width - left - table
lanes_height = n_lanes * (lane_height + lane_gap) + n_groups * heading_height
top = (strlen(title) ? 0.24 : 0.04) + 0.27
axis_height = 0.42
sides = (beyond_low > 0 ? 'left' : '').(beyond_low > 0 && beyond_high > 0 ? ' or ' : '').(beyond_high > 0 ? 'right' : '')
beyond = strlen(sides) ? 'further '.sides.': at most '.percent(max(beyond_low, beyond_high)).' % of a recipe' : ''
notes = (strlen(beyond) > 0) + (strlen(note) > 0) + (strlen(axes) > 0)
height = top + lanes_height + axis_height + notes * line_height + 0.02
bottom = height - top - lanes_height

# ---- where lanes are: those of a group under its heading ----
array group_of[max(1, n_lanes)]; array base_of[max(1, n_lanes)]
array saturated[max(1, n_lanes)]; array elements[max(1, n_lanes)]; array lost[max(1, n_lanes)]; array name[max(1, n_lanes)]
array heading[n_groups]
if (n_lanes) {
    stats data index 'lanes' using (i = int($1) + 1, group_of[i] = int($2) + 1, saturated[i] = $5, elements[i] = $6, \
          lost[i] = $7, name[i] = stringcolumn(12), 0) nooutput
}
stats data index 'groups' using (heading[int($1) + 1] = stringcolumn(2), 0) nooutput
y = height - top
group = 0
array heading_y[n_groups]
do for [g = 1:n_groups] { heading_y[g] = NaN }
do for [i = 1:n_lanes] {
    if (group_of[i] != group) {
        group = group_of[i]
        y = y - heading_height
        heading_y[group] = y + 0.055
    }
    y = y - lane_height - lane_gap
    base_of[i] = y + lane_gap / 2
}

# ---- what is drawn where: inches from the lower left corner ----
x(e) = left + (e - x_low) * plot_width / real(x_high - x_low)
at_column(k) = width - table + (k + 1) * column
unit = real(x_high - x_low) / plot_width # binades per inch
tick = power_of_two(0.30 * unit)
first_tick = tick * ceil(real(x_low) / tick)

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
    head = height - top
    set label shown('saturated (%)') center at at_column(0) + 0.02, head + 0.20 font small_font tc rgb ink
    set label 'blocks' right at at_column(0), head + 0.07 font small_font tc rgb ink
    set label 'elements' right at at_column(1), head + 0.07 font small_font tc rgb ink
    if (has_lost) {
        set label shown('lost (%)') right at at_column(2), head + 0.20 font small_font tc rgb ink
        set label 'blocks' right at at_column(2), head + 0.07 font small_font tc rgb ink
    }
    do for [k = 0:int(floor((x_high - first_tick) / real(tick) + 1e-9))] {
        at = x(first_tick + k * tick)
        set arrow from at, bottom to at, head nohead back lc rgb shade lw 1
        set arrow from at, bottom to at, bottom - 0.035 nohead lc rgb ink lw 1
        set label shown('2'.raised(int(first_tick + k * tick))) center at at, bottom - 0.10 font small_font tc rgb ink
    }
    set label 'scale of a block' center at left + plot_width / 2, bottom - 0.26 font normal_font tc rgb ink
    set arrow from left, bottom to left + plot_width, bottom nohead lc rgb ink lw 1
    do for [i = 1:n_lanes] {
        middle_y = base_of[i] + lane_height / 2
        set arrow from left, base_of[i] to left + plot_width, base_of[i] nohead back lc rgb pale lw 1
        set label shown(name[i]) right at left - 0.06, middle_y font small_font tc rgb ink noenhanced
        set label shown(percent(saturated[i])) right at at_column(0), middle_y font small_font tc rgb ink
        set label shown(percent(elements[i])) right at at_column(1), middle_y font small_font tc rgb ink
        if (has_lost) { set label shown(percent(lost[i])) right at at_column(2), middle_y font small_font tc rgb ink }
    }
    if (headings) {
        do for [g = 1:n_groups] {
            if (heading_y[g] == heading_y[g]) {
                set label shown(heading[g]) left at 0.08, heading_y[g] font normal_font tc rgb ink noenhanced
            }
        }
    }
    note_y = bottom - axis_height + 0.06 + line_height / 2
    do for [words in 'beyond note axes'] {
        if (strlen(value(words))) {
            note_y = note_y - line_height
            set label shown(value(words)) left at 0.08, note_y font small_font tc rgb ink
        }
    }
    if (has_scales) {
        plot data index 'scales' \
            using ($2 < x_low || $2 >= x_high ? NaN : x($2)):(base_of[int($1) + 1]):(x($2)):(x($2 + 1)):(base_of[int($1) + 1]): \
                  (base_of[int($1) + 1] + max(0.008, $4 * lane_height)) \
            with boxxyerror lc rgb blue lw 0.5 fillstyle solid 1 border lc rgb blue
    } else {
        plot NaN notitle
    }
    unset label; unset arrow
    unset multiplot
    unset output
}
