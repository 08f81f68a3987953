# ---- accumulation.gp: errors of accumulation models over the length K of a dot product ----
# A curve for each model; models whose errors are all equal share one. A point without error
# stands in the band "0" under the axis, one of results that overflow in the band above, each
# curve in a lane of its own; lines join errors on the axis only. Dotted: the unit roundoff of
# the format of the result. Names stand at the ends of the curves, or in a key if they do not fit.
# Reads the blocks errors and labels.
set datafile missing # NaN interrupts a line

# ---- styles of curves: colour, dashes and marker change together; 8, 5 and 10 of them ----
colors = 'vermilion blue ink green purple orange sky dark'
dashes = '1 (7,3) (9,2,2,2) (3,2) (9,2,2,2,2,2)'
markers = '7 4 9 12 5 6 13 10 11 8' # filled and open by turns
set style line 10 lc rgb dark dt (2, 3) lw 1 # unit roundoffs
do for [c = 1:n_curves] {
    stroke = value(word(colors, (c - 1) % 8 + 1))
    dashed = word(dashes, (c - 1) % 5 + 1)
    mark = word(markers, (c - 1) % 10 + 1)
    eval sprintf('set style line %d lc rgb %d dt %s lw 2', 10 + c, stroke, dashed)
    eval sprintf('set style line %d lc rgb %d dt 1 lw 1 pt %s ps 0.7', 30 + c, stroke, mark)
}

# ---- layout, inches ----
left = 0.54; right = 0.06
gap = 0.06; lane = 0.085; band_margin = 0.05
leader = 0.24 # from the end of a curve to its label
label_gap = 0.112
most = 2.1 # what a plot needs: with less beside them, the names go to a key
beside = name_length
if (n_references) { beside = max(beside, format_length + 16) }
direct = width - left - right - leader - beside * character_width >= most
margin = direct ? leader + beside * character_width : \
         n_references ? leader + format_length * character_width : 0.04
plot_width = width - left - right - margin
n_beside = (direct ? n_models : 0) + n_references # labels
axis_height = max(1.5, min(0.62 * plot_width, 2.5))
zero_height = n_zero ? 2 * band_margin + (n_zero - 1) * lane : 0
inf_height = n_inf ? 2 * band_margin + (n_inf - 1) * lane : 0
base = n_zero ? zero_height + gap : 0
axis_height = max(axis_height, n_beside * label_gap - base)
ceiling = base + axis_height
plot_height = ceiling + (n_inf ? gap + inf_height : 0)
top = strlen(title) ? 0.24 : 0.08
bottom = 0.42
sample = 0.32 # of a line, in the key
entries = n_models + (n_references > 0)

# ---- what is drawn where: inches from the corner of the plot ----
per_decade = axis_height / (y_high - y_low)
pad = 0.08
log2(k) = log(k) / log(2)
x(k) = pad + (log2(k) - log2(k_low)) * (plot_width - 2 * pad) / (log2(k_high) - log2(k_low))
decade(p) = base + (p - y_low) * per_decade
turn(i) = i <= (n_curves + 1) / 2 ? 2 * i - 1 : 2 * (i - (n_curves + 1) / 2) # open ones last
zero_y(c) = zero_height - band_margin - (word(zero_lane, c) - 1) * lane
inf_y(c) = plot_height - band_margin - (word(inf_lane, c) - 1) * lane
y(v, c) = v > 0 ? decade(log10(v)) : v == 0 ? zero_y(c) : v == -1 ? inf_y(c) : NaN

# Labels beside the plot: as near to the ends of their curves as others let them
n_labels = n_models + n_references
array curve[n_labels]; array end_x[n_labels]; array end_y[n_labels]
array place[n_labels]; array caption[n_labels]; array row[n_labels]
array entry[n_labels] # of the key
count = 0; models = 0
do for [i = 1:n_labels] {
    stats data index 'labels' every ::(i - 1)::(i - 1) using \
          (curve[i] = int($1), end_x[i] = x($2), end_y[i] = y($3, int($1)), \
           caption[i] = curve[i] ? stringcolumn(4) : direct ? 'unit roundoff, '.stringcolumn(4) : \
                     stringcolumn(4), 0) nooutput
    place[i] = end_y[i]
    if (direct || !curve[i]) { count = count + 1; row[count] = i }
    if (curve[i]) { models = models + 1 }
    entry[i] = curve[i] ? models : entries
}
do for [pass = 1:60 * count] {
    do for [i = 1:count - 1] {
        overlap = label_gap - (place[row[i]] - place[row[i + 1]])
        if (overlap > 0) {
            place[row[i]] = place[row[i]] + overlap / 2
            place[row[i + 1]] = place[row[i + 1]] - overlap / 2
        }
    }
    if (count && place[row[1]] > plot_height) { place[row[1]] = plot_height }
    if (count && place[row[count]] < 0) { place[row[count]] = 0 }
}

# The key: as few rows as let its columns fit side by side, each as wide as its names
array length[entries] # of the name, characters
do for [i = 1:n_labels] { length[entry[i]] = strlen(curve[i] ? caption[i] : 'unit roundoff') }
array column_x[entries]
rows = 0; key_width = 2 * width
while (key_width > width - 0.08 && rows < entries) {
    rows = rows + 1
    key_width = 0.08
    do for [c = 1:(entries + rows - 1) / rows] {
        column_x[c] = key_width
        widest = 0
        do for [i = (c - 1) * rows + 1:min(entries, c * rows)] { widest = max(widest, length[i]) }
        key_width = key_width + sample + 0.06 + widest * character_width
        if (c * rows < entries) { key_width = key_width + 0.14 }
    }
}
key_x(i) = column_x[(entry[i] - 1) / rows + 1]
key_y(i) = ((entry[i] - 1) % rows + 0.5) * line_height
key_height = direct ? 0 : rows * line_height + 0.04
height = top + plot_height + bottom + key_height

# ---- ticks ----
label_width(k) = strlen(k) * character_width + 0.06
as_power = k_high >= 1e6
k_label(p) = as_power ? '2'.raised(p) : sprintf('%.0f', 2.0 ** p)
widest = label_width(as_power ? '222' : sprintf('%.0f', k_high))
octave = x(2 * k_low) - x(k_low)
k_step = max(1, ceil(widest / octave))
first_power = ceil(log2(k_low) - 1e-9); last_power = floor(log2(k_high) + 1e-9)
y_step = max(1, ceil(0.16 / per_decade))

do for [type in types] {
    eval terminal(type, width, height)
    set multiplot
    unset key; set border 0 lc rgb ink
    set lmargin at screen left / width
    set rmargin at screen 1 - right / width
    set tmargin at screen 1 - top / height
    set bmargin at screen (bottom + key_height) / height
    set xrange [0:width - left - right]
    set yrange [0:plot_height]
    set xtics out nomirror scale 0.5 font small_font tc rgb ink
    set xtics ('' -1)
    if (last_power - first_power >= 1) {
        do for [p = first_power:last_power] {
            if ((last_power - p) % k_step == 0) { set xtics add (shown(k_label(p)) x(2.0 ** p)) }
        }
    } else {
        set xtics add (sprintf('%.0f', k_low) x(k_low), sprintf('%.0f', k_high) x(k_high))
    }
    set ytics out nomirror scale 0.5 font small_font tc rgb ink
    set ytics ('' -1)
    do for [p = y_low:y_high] {
        if ((y_high - p) % y_step == 0) {
            set ytics add (shown('10'.raised(p)) decade(p))
            set arrow from 0, decade(p) to plot_width, decade(p) nohead back lc rgb shade lw 1
        }
    }
    if (n_zero) {
        set ytics add ('0' zero_height / 2)
        set object 1 rectangle from 0, 0 to plot_width, zero_height back \
            fillcolor rgb faint fillstyle solid 1 noborder
    }
    if (n_inf) {
        set ytics add ('Inf, NaN' plot_height - inf_height / 2)
        set object 2 rectangle from 0, plot_height - inf_height to plot_width, plot_height back \
            fillcolor rgb faint fillstyle solid 1 noborder
    }
    set arrow from 0, base to 0, ceiling nohead lc rgb ink lw 1
    set arrow from 0, 0 to plot_width, 0 nohead lc rgb ink lw 1
    if (strlen(title)) {
        set label 1 shown(title) center at screen 0.5, screen 1 - 0.13 / height noenhanced \
            font normal_font tc rgb ink
    }
    set label 2 shown(y_label) center rotate by 90 font normal_font tc rgb ink \
        at screen 0.09 / width, screen (bottom + key_height + base + axis_height / 2) / height
    set label 3 'length K of the dot product' center font normal_font tc rgb ink \
        at first plot_width / 2, screen (key_height + 0.10) / height

    # ---- labels beside the plot ----
    do for [i = 1:n_labels] {
        if (!curve[i]) {
            set arrow from 0, end_y[i] to plot_width, end_y[i] nohead back ls 10
        }
        if (direct || !curve[i]) {
            start = curve[i] ? end_x[i] + 0.06 : plot_width
            stroke = curve[i] ? 30 + curve[i] : 10
            set arrow from start, end_y[i] to plot_width + leader - 0.06, place[i] nohead ls stroke
            set label shown(caption[i]) left at plot_width + leader - 0.02, place[i] font small_font tc rgb ink
        }
    }

    # ---- curves: where they coincide, the gaps of a later one show an earlier one ----
    plot for [c = 1:n_curves] data index 'errors' \
            using (x($1)):(column(c + 1) > 0 ? y(column(c + 1), c) : NaN) \
            with lines ls 10 + c, \
        for [i = 1:n_curves] '' index 'errors' using (x($1)):(y(column(turn(i) + 1), turn(i))) \
            with points ls 30 + turn(i)
    unset label; unset arrow; unset object; unset xtics; unset ytics

    # ---- key ----
    if (!direct) {
        set lmargin at screen 0; set rmargin at screen 1
        set bmargin at screen 0; set tmargin at screen key_height / height
        set xrange [0:width]; set yrange [key_height:0]
        do for [i = 1:n_labels] {
            if (curve[i]) {
                set arrow from key_x(i), key_y(i) to key_x(i) + sample, key_y(i) nohead \
                    ls 10 + curve[i]
            } else {
                set arrow from key_x(i), key_y(i) to key_x(i) + sample, key_y(i) nohead \
                    ls 10
            }
            set label 100 + entry[i] shown(curve[i] ? caption[i] : 'unit roundoff') left font small_font tc rgb ink \
                at key_x(i) + sample + 0.06, key_y(i)
        }
        plot for [i = 1:n_labels] data index 'labels' every ::(i - 1)::(i - 1) \
            using (curve[i] ? key_x(i) + sample / 2 : 2 * width):(key_y(i)) \
            with points ls 30 + max(1, curve[i])
    }
    unset label; unset arrow
    unset multiplot
    unset output
}
