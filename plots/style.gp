# ---- style.gp: what all figures share ----
# Colours: Okabe and Ito's set for colour-blind readers; series differ in grey and in dashes
# as well. Lengths are in inches. Text is never interpreted: noenhanced, and for LaTeX by shown().
set encoding utf8
set termoption noenhanced
set datafile missing NaN
set minussign

blue = 0x0072B2; sky = 0x56B4E9; green = 0x009E73; orange = 0xE69F00
vermilion = 0xD55E00; purple = 0xCC79A7
black = 0x000000; white = 0xFFFFFF
# Text and ground, and greys between them from the one to the other; is_dark: light on dark, for slides and dark pages
if (!exists('is_dark')) is_dark = 0
ink = is_dark ? 0xE8E8E8 : black; paper = is_dark ? 0x16181C : white
dark = is_dark ? 0xB8BABE : 0x404040; middle = is_dark ? 0x8C9096 : 0x808080; pale = is_dark ? 0x4A4E55 : 0xCCCCCC
shade = is_dark ? 0x34373D : 0xE4E4E4; faint = is_dark ? 0x23262B : 0xF3F3F3
much = is_dark ? 0xD6E8F8 : 0x082454 # the far end of colours that stand for a number
channel(c, k) = (c >> k) & 255
mix(a, b, t) = int(a + (b - a) * t + 0.5)
mixed(a, b, t) = 65536 * mix(channel(a, 16), channel(b, 16), t) + 256 * mix(channel(a, 8), channel(b, 8), t) + \
                 mix(channel(a, 0), channel(b, 0), t)

font_size = 8; small_size = 7 # points
face = 'Helvetica'
normal_font = sprintf('%s,%g', face, font_size)
small_font = sprintf('%s,%g', face, small_size)
character_width = 0.6 * small_size / 72.0 # of the small font, on the large side: DejaVu Sans, where nothing is like Helvetica
line_height = 0.145

# Outlines of scaled series. A line width of 1 is 0.5 points.
set style line 1 lc rgb vermilion dt 1 lw 2
set style line 2 lc rgb ink dt (6, 3) lw 2
set style line 3 lc rgb green dt (9, 2, 2, 2) lw 2
set style line 4 lc rgb purple dt (2, 2) lw 2
set style line 5 lc rgb blue dt (9, 2, 2, 2, 2, 2) lw 2

# Curves by number, at most 20: lines from 10 on, markers from 40 on, marks from 100 on. Colour, dashes and marker change
# together; there are 8, 5 and 10 of them.
colors = 'ink vermilion blue green purple orange sky dark'
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

# ---- text for LaTeX ----
# What means something to LaTeX, and to gnuplot's cairolatex at the beginning of a text, or what its fonts lack, and what stands
# for it; other text is what it is, or ?. Nothing but this reaches a .tex file, whatever a name says.
tex_plain = ' ,.:;!?()/+=*@ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÑÒÓÔÕÖØÙÚÛÜÝàáâãäåæçèéêëìíîïñòóôõöøùúûüýÿßŒœŠšŽž'
tex_from = '\ { } $ & # % _ ^ ~ < > | [ ] - ` ⁻ ⁰ ¹ ² ³ ⁴ ⁵ ⁶ ⁷ ⁸ ⁹ ₂ − × ≤ ≥ ∞ → ← ↓ ↑ · – …'
tex_to = '\textbackslash{} \{ \} \$ \& \# \% \_ \textasciicircum{} \textasciitilde{} \textless{} \textgreater{} \textbar{} \lbrack{} \rbrack{} -{} \textasciigrave{} '. \
         '$^{-}$ $^{0}$ $^{1}$ $^{2}$ $^{3}$ $^{4}$ $^{5}$ $^{6}$ $^{7}$ $^{8}$ $^{9}$ $_{2}$ $-$ $\times$ $\leq$ $\geq$ $\infty$ '. \
         '$\rightarrow$ $\leftarrow$ $\downarrow$ $\uparrow$ $\cdot$ \textendash{} \dots{}'
tex_place(c) = sum [tex_k = 1:words(tex_from)] (word(tex_from, tex_k) eq c ? tex_k : 0)
tex_letter(c) = !strlen(c) || strstrt(tex_plain, c) ? c : c eq "'" ? "'{}" : c eq '"' ? "''{}" : \
                (tex_at = tex_place(c)) ? word(tex_to, tex_at) : '?'
tex_half(s, n) = tex(s[1:n]).tex(s[n + 1:strlen(s)])
tex(s) = strlen(s) < 2 ? tex_letter(s) : tex_half(s, strlen(s) / 2)
latex = 0 # of the type that is drawn
shown(s) = latex ? tex(s) : s
# The same for "with labels", which takes a backslash in a string for the begin of an escape
doubled(s) = !strstrt(s, '\') ? s : strlen(s) < 2 ? '\\' : doubled(s[1:strlen(s) / 2]).doubled(s[strlen(s) / 2 + 1:strlen(s)])
plotted(s) = doubled(shown(s))

# One terminal for each type of file, of the same physical size, and its file; 300 pixels per inch, 24 characters (at least 80 to
# a line). The cairo terminals take a point for 1/96 inch. cairolatex writes a .tex that asks for the .pdf of its name; its text
# has the font of the page, and seven points.
ground = sprintf(" background rgb '#%06x'", paper)
terminal(type, w, h) = sprintf("latex = %d; ", type eq 'cairolatex'). ( \
    type eq 'pdf' ? sprintf("set terminal pdfcairo noenhanced color size %g,%g font '%s'", \
                            w, h, normal_font)." fontscale 0.75 linewidth 1 pointscale 0.58".(is_dark ? ground : '') : \
    type eq 'png' ? sprintf("set terminal pngcairo noenhanced size %d,%d font '%s'", \
                            300 * w, 300 * h, normal_font). \
                    sprintf(" fontscale %g linewidth 2.08 pointscale 2.08", 300 / 96.0).(is_dark ? ground : '') : \
    type eq 'txt' ? sprintf("set terminal dumb noenhanced size %d,%d", max(80, 24 * w), max(12, max(54, 16 * w) * h / w)) : \
    type eq 'cairolatex' ? sprintf("set terminal cairolatex pdf input colortext color size %g,%g font ',%g'", w, h, small_size). \
                           " linewidth 1 pointscale 0.58 header '\\fontsize{7}{8.4}\\selectfont'".(is_dark ? ground : '') : \
    sprintf("set terminal svg noenhanced%s size %d,%d font '%s'", ground, \
            96 * w, 96 * h, normal_font). \
    sprintf(" fontscale %g linewidth %g", 96 / 72.0, 0.667)). \
    "; set output figure.".(type eq 'cairolatex' ? "'-latex.tex'" : "'.".type."'")
