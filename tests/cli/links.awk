# links.awk -- the links of pages: lines "PAGE <tab> LINK <tab> TARGET" for those whose target must exist, and for those whose
# heading is missing "PAGE <tab> LINK <tab>" with nothing behind. Run in the folder that the names of the pages begin at:
#
#   awk -f links.awk README.md doc/README.md ...
#
# The anchor of a heading is its text as forges make it: small letters, no punctuation but "-" and "_", a hyphen for a blank;
# the second heading of the same text ends in -1.
function anchor(heading) {
    heading = tolower(heading)
    while (match(heading, /\]\([^)]*\)/)) heading = substr(heading, 1, RSTART - 1) substr(heading, RSTART + RLENGTH)
    gsub(/[^a-z0-9_ -]/, "", heading)
    gsub(/ /, "-", heading)
    return heading
}
# FOLDER/a/../b is FOLDER/b
function simple(path,    n, part, i, out, m) {
    n = split(path, part, "/")
    for (i = 1; i <= n; i++) {
        if (part[i] == "." || part[i] == "") continue
        if (part[i] == ".." && m > 0 && out[m] != "..") m--
        else out[++m] = part[i]
    }
    path = ""
    for (i = 1; i <= m; i++) path = path (i > 1 ? "/" : "") out[i]
    return path
}
FNR == 1 {
    folder = FILENAME
    if (!sub(/\/[^\/]*$/, "", folder)) folder = "."
    is_page[FILENAME] = 1
    fenced = 0
}
/^```/ { fenced = !fenced }
fenced || /^    / { next }
/^#+ / {
    heading = $0
    sub(/^#+ +/, "", heading)
    heading = anchor(heading)
    again = seen[FILENAME, heading]++
    has[FILENAME "#" heading (again ? "-" again : "")] = 1
}
{
    rest = $0
    gsub(/`[^`]*`/, "", rest)
    while (match(rest, /\]\([^)]*\)/)) {
        link = substr(rest, RSTART + 2, RLENGTH - 3)
        rest = substr(rest, RSTART + RLENGTH)
        if (link ~ /^[a-z]+:/) continue
        page[++links] = FILENAME
        name[links] = link
        from[links] = folder
    }
}
END {
    for (i = 1; i <= links; i++) {
        path = heading = name[i]
        sub(/#.*/, "", path)
        if (!sub(/^[^#]*#/, "", heading)) heading = ""
        target = path == "" ? page[i] : simple(from[i] "/" path)
        print page[i] "\t" name[i] "\t" target
        if (heading != "" && is_page[target] && !has[target "#" heading]) print page[i] "\t" name[i] "\t"
    }
}
