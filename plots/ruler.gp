# ---- ruler.gp: ranges of formats over ranges of tensors ----
# A bar for each format: dark = normal numbers, pale = subnormal ones; under it the smallest
# subnormal | smallest normal | largest number. Below, from the smallest to the largest
# magnitude of each kind of tensor, with a dot at the root mean square of the non-zero
# elements. Reads the blocks formats and ranges.

# ---- layout, inches ----
right = 0.14
left = 0.14 + max(0.3, name_length * character_width)
if (left > 0.42 * width) { left = 0.42 * width }
plot_width = width - left - right
unit = (x_high - x_low) / plot_width # binades per inch
format_height = 0.29; range_height = 0.16
between = 0.10
bottom_of_formats = n_formats * format_height + 0.02
plot_height = bottom_of_formats + between + n_ranges * range_height + 0.04
top = (strlen(title) ? 0.24 : 0.05) + 0.36
axis_height = 0.42
legend_height = (strlen(note) ? 4 : 3) * line_height + 0.05
height = top + plot_height + axis_height + legend_height
at_y(inches) = 1 - inches / height # screen coordinate, from the top

# ---- what is drawn where: y in inches below the top of the plot ----
format_y(row) = 0.10 + row * format_height
range_y(row) = bottom_of_formats + between + (row + 0.5) * range_height
# Numbers stand under the middle of their bar, but inside of the plot.
half(s) = 0.5 * strlen(s) * 0.9 * character_width * unit
inside(x, s) = max(x_low + half(s), min(x_high - half(s), x))
tick = power_of_two(0.32 * unit)
decade = log(10) / log(2)
decades = max(1, ceil(0.40 * unit / decade)) # between labels
decades = decades > 5 ? 10 * ceil(decades / 10.0) : decades > 2 ? 5 : decades

do for [type in types] {
    eval terminal(type, width, height)
    set multiplot
    set lmargin at screen left / width
    set rmargin at screen 1 - right / width
    set tmargin at screen at_y(top)
    set bmargin at screen at_y(top + plot_height)
    unset key
    set border 5 lw 1 lc rgb ink
    set xrange [x_low:x_high]
    set yrange [plot_height:0]
    unset ytics
    set xtics out nomirror scale 0.5 font small_font tc rgb ink tick * ceil(real(x_low) / tick), tick, x_high
    set x2range [x_low:x_high]
    set x2tics out scale 0.5 font small_font tc rgb ink offset 0, -0.3
    set x2tics ('1' 0)
    do for [k = decades * ceil(real(x_low) / decade / decades):floor(real(x_high) / decade):decades] {
        set x2tics add (shown(decimal(k)) k * decade)
    }
    set grid x2tics lc rgb shade lw 1 dt 1
    set grid back
    if (strlen(title)) {
        set label 1 shown(title) center at screen 0.5, screen at_y(0.13) noenhanced font normal_font tc rgb ink
    }
    set label 2 shown('magnitude |x|') center font normal_font tc rgb ink \
        at graph 0.5, screen at_y(top - 0.30)
    set label 3 shown('log₂ |x|') center font normal_font tc rgb ink \
        at graph 0.5, screen at_y(height - legend_height - 0.12)
    set arrow 1 from graph 0, first bottom_of_formats + between / 2 \
        to graph 1, first bottom_of_formats + between / 2 nohead lc rgb middle lw 1
    plot data index 'formats' \
            using 2:(format_y($1)):2:3:(format_y($1) - 0.05):(format_y($1) + 0.05) \
            with boxxyerror lc rgb pale lw 1 fill solid 1 border lc rgb dark, \
        '' index 'formats' \
            using 3:(format_y($1)):3:4:(format_y($1) - 0.05):(format_y($1) + 0.05) \
            with boxxyerror lc rgb dark lw 1 fill solid 1 border lc rgb dark, \
        '' index 'formats' \
            using (inside(($2 + $4) / 2, stringcolumn(5))):(format_y($1) + 0.125): \
                  (plotted(stringcolumn(5))) \
            with labels center noenhanced font small_font tc rgb ink, \
        '' index 'formats' using (x_low):(format_y($1)):(plotted(stringcolumn(6))) \
            with labels right offset character -0.8, 0 noenhanced font small_font tc rgb ink, \
        '' index 'ranges' using 2:(range_y($1)):($4 - $2):(0) \
            with vectors nohead lc rgb blue lw 3, \
        '' index 'ranges' using 2:(range_y($1) - 0.035):(0):(0.07) \
            with vectors nohead lc rgb blue lw 2, \
        '' index 'ranges' using 4:(range_y($1) - 0.035):(0):(0.07) \
            with vectors nohead lc rgb blue lw 2, \
        '' index 'ranges' using 3:(range_y($1)) with points pt 7 ps 0.8 lc rgb paper, \
        '' index 'ranges' using 3:(range_y($1)) with points pt 7 ps 0.55 lc rgb ink, \
        '' index 'ranges' \
            using ($2 == $2 ? 2 * x_low - x_high : (x_low + x_high) / 2):(range_y($1)): \
                  ('no non-zero elements') \
            with labels center noenhanced font small_font textcolor rgb middle, \
        '' index 'ranges' using (x_low):(range_y($1)):(plotted(stringcolumn(7))) \
            with labels right offset character -0.8, 0 noenhanced font small_font tc rgb ink
    unset label; unset arrow; unset grid; unset x2tics

    # ---- legend ----
    unset border; unset xtics
    set lmargin at screen 0; set rmargin at screen 1
    set bmargin at screen 0; set tmargin at screen legend_height / height
    set xrange [0:width]; set yrange [legend_height:0]
    row_1 = 0.5 * line_height; row_2 = 2.5 * line_height
    set object 1 rectangle from 0.10, row_1 - 0.045 to 0.30, row_1 + 0.045 \
        fillcolor rgb pale fillstyle solid 1 border lc rgb dark lw 1
    set label 1 'subnormal' at 0.36, row_1 left font small_font tc rgb ink
    set object 2 rectangle from 0.98, row_1 - 0.045 to 1.18, row_1 + 0.045 \
        fillcolor rgb dark fillstyle solid 1 border lc rgb dark lw 1
    set label 2 'normal' at 1.24, row_1 left font small_font tc rgb ink
    set label 3 shown('text: least | least normal | largest') at 0.36, 1.5 * line_height left font small_font tc rgb ink
    set arrow 1 from 0.10, row_2 to 0.30, row_2 nohead lc rgb blue lw 3
    set arrow 2 from 0.10, row_2 - 0.035 to 0.10, row_2 + 0.035 nohead lc rgb blue lw 2
    set arrow 3 from 0.30, row_2 - 0.035 to 0.30, row_2 + 0.035 nohead lc rgb blue lw 2
    set label 4 shown('least, root mean square and largest non-zero |x|') at 0.36, row_2 left \
        font small_font tc rgb ink
    if (strlen(note)) { set label 5 shown(note) at 0.36, 3.5 * line_height left font small_font tc rgb ink }
    plot data index 'formats' every ::0::0 using (0.24):(row_2) \
            with points pt 7 ps 0.8 lc rgb paper, \
        '' index 'formats' every ::0::0 using (0.24):(row_2) \
            with points pt 7 ps 0.55 lc rgb ink
    unset label; unset arrow; unset object
    unset multiplot
    unset output
}
# from bin/plots
# from plots
# from share/mpsim/plots
# from bin/plots
# from plots
# from share/mpsim/plots
