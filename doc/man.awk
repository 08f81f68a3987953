# man.awk -- a page of doc/ as a manual page, in the macros of man(7), on standard output: headings, paragraphs, lists,
# tables (the first column becomes a tag), indented code; code and bold text are bold; links are their text, pictures are
# left out.
#
#   awk -v name=mpsim-policy -v section=5 -v version='mpsim 0.1.0' -f man.awk data/policies/README.md
function escaped(s) {
    gsub(/\\/, "\\e", s)
    gsub(/-/, "\\-", s)
    gsub(/'/, "\\(aq", s)
    gsub(/~/, "\\(ti", s)
    gsub(/\^/, "\\(ha", s)
    sub(/^\./, "\\\\\\&.", s)
    return s
}
# Links, code and bold text of a line of text that is escaped already.
function marked(s,    out, part, n, i) {
    gsub(/!\[[^]]*\]\([^)]*\)/, "", s)
    while (match(s, /\[[^]]*\]\([^)]*\)/)) {
        part = substr(s, RSTART + 1, RLENGTH - 1)
        sub(/\]\(.*/, "", part)
        s = substr(s, 1, RSTART - 1) part substr(s, RSTART + RLENGTH)
    }
    gsub(/\*\*/, "`", s)
    n = split(s, parts, "`")
    out = parts[1]
    for (i = 2; i <= n; i++)
        out = out (i % 2 ? "\\fR" : "\\fB") parts[i]
    return out
}
function text(s) { return marked(escaped(s)) }
# The paragraph or item that is gathered.
function flush() {
    if (gathered != "") {
        if (kind == "item")
            print ".IP \\(bu 2"
        else if (fresh)
            fresh = 0
        else
            print ".PP"
        print text(gathered)
    }
    gathered = ""
    kind = ""
}
function code_end() {
    if (in_code)
        print ".fi"
    in_code = blank = 0
}
function heading(macro, s) {
    flush()
    code_end()
    print macro " \"" escaped(s) "\""
    fresh = 1
}
BEGIN {
    upper = toupper(name)
    gsub(/-/, "\\-", upper)
    printf ".TH %s %s \"\" \"%s\" \"mpsim\"\n.ad l\n.nh\n", upper, section, version
}
/^# / { print ".SH NAME"; print escaped(name) " \\- " text(tolower(substr($0, 3, 1)) substr($0, 4)); print ".SH DESCRIPTION"; fresh = 1; next }
/^## / { heading(".SH", substr($0, 4)); next }
/^### / { heading(".SS", substr($0, 5)); next }
/^    / && gathered == "" {
    if (!in_code) {
        if (!fresh)
            print ".PP"
        fresh = 0
        print ".nf"
        in_code = 1
    }
    if (blank)
        print ""
    blank = 0
    print escaped(substr($0, 5))
    next
}
/^[ \t]*$/ { flush(); if (in_code) blank = 1; next }
{ code_end() }
/^\|[-| ]*\|$/ { next }
/^\|/ {
    flush()
    line = $0
    gsub(/\\\|/, "\001", line)
    n = split(line, cell, "|")
    rest = ""
    for (i = 3; i < n; i++) {
        gsub(/^ +| +$/, "", cell[i])
        if (cell[i] != "")
            rest = rest (rest == "" ? "" : "; ") cell[i]
    }
    tag = cell[2]
    gsub(/^ +| +$/, "", tag)
    gsub(/\001/, "|", tag)
    gsub(/\001/, "|", rest)
    if (!in_table) { in_table = 1; next } # its head
    print ".TP"
    print "\\fB" text(tag) "\\fR"
    print text(rest)
    next
}
{ in_table = 0 }
/^\* / || /^[0-9]+\. / { flush(); kind = "item"; gathered = $0; sub(/^(\*|[0-9]+\.) +/, "", gathered); next }
{ line = $0; sub(/^ +/, "", line); gathered = gathered (gathered == "" ? "" : " ") line }
END { flush(); code_end() }
