# ---- memory.gp: bytes by component and policy ----
# A bar for each policy, its components one after the other, with their numbers where they fit, and the sum behind it. Reads
# the blocks policies, components and parts.

# ---- layout, inches ----
width = real(width)
left = 0.14 + max(0.3, name_length * character_width)
right = 0.46
plot_width = width - left - right
row_height = 0.19; bar_height = 0.14
top = strlen(title) ? 0.26 : 0.06
entry_width = 0.30 + component_length * character_width
key_columns = max(1, min(n_components, int((width - 0.16) / entry_width)))
key_rows = n_components ? int(ceil(n_components / real(key_columns))) : 0
key_height = key_rows * line_height + 0.06
bottom = 0.40 + key_height
height = top + n_rows * row_height + bottom

# ---- what is drawn where: inches from the lower left corner; neighbours differ in grey, too ----
colours = 'blue sky pale dark light vermilion green ink shade purple'
light = 0xF3D27A
fill_of(k) = value(word(colours, int(k) % 10 + 1))
text_ink(k) = value(word('white black ink paper black black black paper ink black', int(k) % 10 + 1))
x(v) = left + v * plot_width / real(x_high)
y(r) = height - top - (r + 0.5) * row_height
number(v) = v >= 99.95 ? sprintf('%.0f', v) : v >= 9.995 ? sprintf('%.1f', v) : sprintf('%.2f', v)
fits(from, to) = x(to) - x(from) > (strlen(number(to - from)) + 0.4) * character_width
x_step = rounded(0.5 * x_high / plot_width)

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
    set label shown(unit) center at left + plot_width / 2, bottom - 0.26 font normal_font tc rgb ink
    set arrow from left, bottom to left + plot_width, bottom nohead lc rgb ink lw 1
    do for [k = 0:int(floor(real(x_high) / x_step + 1e-9))] {
        set arrow from x(k * x_step), bottom to x(k * x_step), height - top nohead back lc rgb shade lw 1
        set label shown(sprintf('%.10g', k * x_step)) center at x(k * x_step), bottom - 0.10 font small_font tc rgb ink
    }
    plot data index 'parts' using (x(($3 + $4) / 2)):(y($1)):(x($3)):(x($4)):(y($1) - bar_height / 2):(y($1) + bar_height / 2): \
            (fill_of($2)) with boxxyerror lc rgb variable lw 0.5 fillstyle solid 1 border rgb paper, \
        '' index 'parts' using (x(($3 + $4) / 2)):(y($1)):(fits($3, $4) ? plotted(number($4 - $3)) : ' '):(text_ink($2)) \
            with labels center font small_font textcolor rgb variable, \
        '' index 'policies' using (left - 0.06):(y($1)):(plotted(stringcolumn(3))) with labels right noenhanced font small_font tc rgb ink, \
        '' index 'policies' using (x($2) + 0.05):(y($1)):(plotted(number($2))) with labels left font small_font tc rgb ink, \
        for [once = 1:n_components > 0] '' index 'components' using (0.14 + (int($0) % key_columns) * entry_width): \
            (key_height - 0.03 - (int($0) / key_columns + 0.5) * line_height):(0.05):(0.04):(fill_of($1)) \
            with boxxyerror lc rgb variable lw 0.5 fillstyle solid 1 border rgb middle, \
        for [once = 1:n_components > 0] '' index 'components' using (0.24 + (int($0) % key_columns) * entry_width): \
            (key_height - 0.03 - (int($0) / key_columns + 0.5) * line_height):(plotted(stringcolumn(2))) \
            with labels left noenhanced font small_font tc rgb ink
    unset label; unset arrow
    unset multiplot
    unset output
}
