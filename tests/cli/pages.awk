# pages.awk -- pages, whose commands are run in one shell and compared with what the pages say: lines of TAP.
#
# awk -v dir=FOLDER -v top=SOURCES -v program=MPSIM -v part=DAY -v all=1-OR-NOTHING -f pages.awk PAGE...: tests/cli/*.md.
# awk -v doc=1 -v before=CASES -v skip=PATTERN -v why_skipped=REASON ...: README.md and doc/, as a reader would run them.
# awk -v compare=1 -f pages.awk SCREEN OUTPUT: what differs first, or nothing.
#
# A screen is an indented line "$ COMMAND" (with its continuations) and the indented lines under it. It runs in a folder that
# looks like the one where mpsim was built. A line "..." stands for one or more lines that are left out; the others must be
# there, in one piece and in their order.
#
# Pages of tests/cli have more. Lines of a screen that begin with "mpsim: " are those of standard error, the others those of
# standard output; where the exit code is not 0, the last line is "[exit 2]". "$ cat >FILE" makes a file of the lines under it.
# A row of a table is a command, too. The heads of its columns say what a cell is: "command"; "output", lines of standard output
# that " ... " separates, in their order, each a whole line but for its blanks, where "..." stands for a piece of a line; "error",
# what the one line of standard error says behind "mpsim: "; "exit", the exit code (0). What no cell names
# is empty: the output of a command that fails (exit code 2 to 5), and the errors. Other columns are words for readers.
# Under a heading that begins with "Files" screens make files: their commands are run every day and are no cases; lines under "$ " go on with a command.
# "one day in N" in a heading: the cases under it take turns, as those of `turns N` in common.sh. Files are made every day.

function trimmed(text) {
    gsub(/[ \t]+/, " ", text)
    gsub(/^ | $/, "", text)
    return text
}
# whether the line is the pattern, in which "..." stands for a piece of a line
function fits(line, pattern,    n, piece, i, at) {
    n = split(pattern, piece, /\.\.\./)
    if (n <= 1) return line == pattern
    if (index(line, piece[1]) != 1 && piece[1] != "") return 0
    line = substr(line, length(piece[1]) + 1)
    for (i = 2; i < n; i++) {
        if (!(at = index(line, piece[i]))) return 0
        line = substr(line, at + length(piece[i]))
    }
    return length(line) >= length(piece[n]) && substr(line, length(line) - length(piece[n]) + 1) == piece[n]
}
# a line of the cell that the output, got[1..n], does not have; "" for none
function missing(cell, n,    m, line, i, at) {
    m = split(cell, line, / \.\.\. /)
    for (i = at = 1; i <= m; i++) {
        while (at <= n && !fits(trimmed(got[at]), line[i])) at++
        if (at++ > n) return "no such line: " line[i]
    }
    return ""
}
# whether lines a to b of the screen are lines i and on of the output
function here(a, b, i,    k) {
    for (k = a; k <= b; k++) if (want[k] != got[i + k - a]) return 0
    return 1
}
# what differs first between the screen, want[1..m], and the output, got[1..n]; "" for nothing
function differs(m, n,    a, b, k, at, gap, last) {
    at = 1 # the next line of the output
    for (a = 1; a <= m; a = b + 1) {
        b = a
        if (want[a] == "...") {
            if (at++ > n) return "line " a " of the screen: nothing is left out here"
            gap = 1
            continue
        }
        while (b < m && want[b + 1] != "...") b++
        last = n - (b - a) # where the piece may begin at the latest
        if (gap && b == m && at <= last) at = last
        while (gap && at < last && !here(a, b, at)) at++
        if (at > last) return "line " a " of the screen: more lines than the output has left: " want[a]
        for (k = a; k <= b; k++)
            if (want[k] != got[at + k - a]) return "line " k " of the screen: \"" want[k] "\"; the output: \"" got[at + k - a] "\""
        at += b - a + 1
        gap = 0
    }
    return !gap && at <= n ? "line " m " of the screen: the output goes on: \"" got[at] "\"" : ""
}
# got[1..n]: the lines of a file
function read_lines(path,    n) {
    while ((getline got[n + 1] < path) > 0) sub(/[ \t]+$/, "", got[++n])
    close(path)
    return n + 0
}

# ---- pages become a script and cases
# a path as a word of the shell
function quoted(path) {
    gsub(/\047/, "\047\\\047\047", path)
    return "\047" path "\047"
}
# a case, if its day has come: what is run, and the line of the page
function begin(text) {
    if (!doc && !all && days > 1 && (++turn + part) % days) { waiting++; return 0 }
    command[++cases] = text
    at_line[cases] = page ":" FNR
    code[cases] = 0
    return cases
}
function run(i,    text) {
    text = command[i]
    if (skip != "" && text ~ skip) { skipped[i] = 1; text = "" }
    else if (doc && text ~ /^cc -o example /) text = quoted(built "/tests/example") # from the page
    else if (doc && text !~ /[.]\/mpsim /) text = "echo no test knows this command"
    printf "%s %s\n%s >%s 2>%s </dev/null\n", doc ? "(" : "{", text == "" ? ":" : text, doc ? ")" : "}", quoted(dir "/" i ".out"),
        doc ? "&1" : quoted(dir "/" i ".err") >script
    printf "echo $? >>%s\n", quoted(dir "/codes") >script
}
function end_screen() {
    if (file) print "END_OF_FILE" >script
    else if (open && more) run(screen)
    file = open = more = blank = 0
}
FNR == 1 {
    end_screen()
    page = substr(FILENAME, 1, length(top) + 1) == top "/" ? substr(FILENAME, length(top) + 2) : FILENAME
    folder = quoted(dir "/page" ++pages)
    printf "mkdir %s && cd %s || exit\nln -s %s %s %s %s .\n", folder, folder, quoted(top "/data"), quoted(top "/plots"),
        quoted(top "/tests"), quoted(program) >script
    days = 1
}
/^#/ { making = /^#+ Files/; days = match($0, /one day in [0-9]+/) ? substr($0, RSTART + 11, RLENGTH - 11) + 0 : 1 }
!doc && /^    \$ cat >[^ ]*$/ {
    end_screen()
    print "cat >" substr($0, 12) " <<'END_OF_FILE'" >script
    file = 1
    next
}
!doc && making && (!file || /^    \$ /) && /^    / {
    if (file) end_screen()
    line = substr($0, 5)
    sub(/^\$ /, "", line)
    print line >script
    next
}
/^    \$ / {
    end_screen()
    open = 1
    if (!(screen = begin(substr($0, 7)))) next
    is_screen[screen] = 1
    more = /\\$/
    if (!more) run(screen)
    next
}
more { command[screen] = command[screen] "\n" substr($0, 5); more = /\\$/; if (!more) run(screen); next }
/^$/ { blank++; columns = 0; next }
(open || file) && /^    / {
    line = substr($0, 5)
    for (; blank > 0; blank--) if (file) print "" >script; else if (screen) shown[screen] = shown[screen] "\n"
    if (file) print line >script
    else if (screen && !doc && line ~ /^\[exit [1-5]\]$/) code[screen] = substr(line, 7, 1)
    else if (screen && !doc && line ~ /^mpsim: /) told[screen] = told[screen] line "\n"
    else if (screen) shown[screen] = shown[screen] line "\n"
    next
}
{ end_screen() }
doc || !/^\|/ { columns = 0; next }
{
    sub(/ *\|$/, "")
    gsub(/\\\|/, "\001")
    n = split(substr($0, 2), cell, "|")
    for (i = 1; i <= n; i++) {
        gsub(/\001/, "|", cell[i])
        gsub(/^ +| +$/, "", cell[i])
        if (cell[i] ~ /^`.*`$/) cell[i] = substr(cell[i], 2, length(cell[i]) - 2)
    }
}
!columns { # the heads
    columns = n
    for (i = 1; i <= n; i++) role[i] = cell[i]
    next
}
cell[1] ~ /^-+$/ { next }
{
    for (i = 1; i <= columns && role[i] != "command"; i++);
    if (!(row = begin(cell[i]))) next
    run(row)
    for (i = 1; i <= columns; i++) {
        if (role[i] == "exit") code[row] = cell[i]
        if (role[i] == "output") { shown[row] = trimmed(cell[i]); has_output[row] = 1 }
        if (role[i] == "error") told[row] = "mpsim: " cell[i]
    }
}

# ---- they are run, and judged
# why a case fails; "" if it does not
function judge(i, got_code,    m, n, why) {
    if (skipped[i]) return ""
    if (!doc) {
        if (got_code != code[i]) return "exit code " got_code
        n = read_lines(dir "/" i ".err")
        m = split(told[i], want, "\n")
        if (is_screen[i]) why = differs(m - (m > 0), n)
        else if (n > 1 || !fits(n ? got[1] : "", told[i])) why = "standard error: " got[1]
        if (why != "") return why
    }
    n = read_lines(dir "/" i ".out")
    m = split(shown[i], want, "\n")
    if (is_screen[i]) return differs(m - (m > 0), n)
    if (has_output[i]) return missing(shown[i], n)
    return n && code[i] > 1 ? "standard output: " got[1] : ""
}
BEGIN {
    if (compare) {
        for (m = read_lines(ARGV[1]); i < m; i++) want[i + 1] = got[i + 1]
        if ((line = differs(m, read_lines(ARGV[2]))) != "") print line
        exit
    }
    script = dir "/script"
    built = program
    sub(/\/[^\/]*$/, "", built)
    print "mpsim() { command \"$MPSIM\" \"$@\"; }" >script
}
END {
    if (compare) exit
    end_screen()
    close(script)
    printf "" >(dir "/codes")
    close(dir "/codes")
    system("sh " quoted(script))
    for (i = 1; i <= cases; i++) {
        if ((getline line < (dir "/codes")) <= 0) line = "none: the shell did not come so far"
        why = judge(i, line)
        name = command[i]
        gsub(/[ \n\\#]+/, " ", name)
        print (why == "" ? "ok " : "not ok ") i + before " - " at_line[i] ": " substr(name, 1, 100) (skipped[i] ? " # SKIP " why_skipped : "")
        if (why == "") continue
        failed = 1
        print "# " why
    }
    if (waiting) print "# " waiting " cases wait for their day; all: MPSIM_TEST_PART=all"
    if (!doc) print "1.." cases
    exit failed
}
