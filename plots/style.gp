# ---- style.gp: what all figures share ----
# Colours: Okabe and Ito's set for colour-blind readers; series differ in grey and in dashes
# as well. Lengths are in inches. Text is never interpreted (noenhanced).
set encoding utf8
set termoption noenhanced
set datafile missing NaN
set minussign

blue = 0x0072B2; sky = 0x56B4E9; green = 0x009E73; orange = 0xE69F00
vermilion = 0xD55E00; purple = 0xCC79A7; black = 0x000000
dark = 0x404040; middle = 0x808080; pale = 0xCCCCCC; shade = 0xE4E4E4; faint = 0xF3F3F3
white = 0xFFFFFF

font_size = 8; small_size = 7 # points
face = 'Helvetica'
normal_font = sprintf('%s,%g', face, font_size)
small_font = sprintf('%s,%g', face, small_size)
character_width = 0.54 * small_size / 72.0 # of the small font, on the large side
line_height = 0.145

# Outlines of scaled series. A line width of 1 is 0.5 points.
set style line 1 lc rgb vermilion dt 1 lw 2
set style line 2 lc rgb black dt (6, 3) lw 2
set style line 3 lc rgb green dt (9, 2, 2, 2) lw 2
set style line 4 lc rgb purple dt (2, 2) lw 2
set style line 5 lc rgb blue dt (9, 2, 2, 2, 2, 2) lw 2

# Curves by number, at most 20: lines from 10 on, markers from 40 on, marks from 100 on. Colour, dashes and marker change
# together; there are 8, 5 and 10 of them.
colors = 'black vermilion blue green purple orange sky dark'
dashes = '1 (7,3) (9,2,2,2) (3,2) (9,2,2,2,2,2)'
markers = '7 4 9 12 5 6 13 8' # filled and open by turns; 11 is a skipped step
curve_ink(c) = value(word(colors, (c - 1) % 8 + 1))
do for [c = 1:20] {
    dashed = word(dashes, (c - 1) % 5 + 1)
    marker = word(markers, (c - 1) % 8 + 1)
    eval sprintf('set style line %d lc rgb %d dt %s lw 2', 10 + c, curve_ink(c), dashed)
    eval sprintf('set style line %d lc rgb %d dt 1 lw 1 pt %s ps 0.7', 40 + c, curve_ink(c), marker)
    eval sprintf('set style line %d lc rgb %d dt 1 lw 1 pt 11 ps 0.8', 100 + c, curve_ink(c))
}

min(a, b) = a < b ? a : b
max(a, b) = a > b ? a : b
# The smallest of 1, 2, 4, 8, ... that is at least x
power_of_two(x) = x <= 1 ? 1 : 2 ** ceil(log(x) / log(2) - 1e-9)
# Per cent for people: 0, <0.01, 0.25, 12.3, 100
percent(p) = p != p ? '–' : p == 0 ? '0' : p < 0.01 ? '<0.01' : p < 1 ? sprintf('%.2f', p) : \
             p >= 100 ? '100' : sprintf('%.1f', p)
# The next of 1, 2, 5 times a power of ten
nice(t) = t <= 1 ? 1 : t <= 2 ? 2 : t <= 5 ? 5 : 10
rounded(t) = 10 ** floor(log10(t)) * nice(t / 10 ** floor(log10(t)) - 1e-9)
# A power of ten
decimal(k) = k == 0 ? '1' : k > 0 && k < 4 ? sprintf('%d', 10 ** k) : \
             k < 0 ? sprintf('1e−%d', -k) : sprintf('1e%d', k)

# An exponent: ⁻¹²
digit(d) = word('⁰ ¹ ² ³ ⁴ ⁵ ⁶ ⁷ ⁸ ⁹', d + 1)
raised(n) = n < 0 ? '⁻'.raised(-n) : n < 10 ? digit(n) : raised(n / 10).digit(n % 10)

# One terminal for each type of file, of the same physical size; 300 pixels per inch, 24 characters (at least 80 to a line). The
# cairo terminals take a point for 1/96 inch.
terminal(type, w, h) = \
    type eq 'pdf' ? sprintf("set terminal pdfcairo noenhanced color size %g,%g font '%s'", \
                            w, h, normal_font)." fontscale 0.75 linewidth 1 pointscale 0.58" : \
    type eq 'png' ? sprintf("set terminal pngcairo noenhanced size %d,%d font '%s'", \
                            300 * w, 300 * h, normal_font). \
                    sprintf(" fontscale %g linewidth 2.08 pointscale 2.08", 300 / 96.0) : \
    type eq 'txt' ? sprintf("set terminal dumb noenhanced size %d,%d", max(80, 24 * w), max(12, max(54, 16 * w) * h / w)) : \
    sprintf("set terminal svg noenhanced background rgb 'white' size %d,%d font '%s'", \
            96 * w, 96 * h, normal_font). \
    sprintf(" fontscale %g linewidth %g", 96 / 72.0, 0.667)
