#!/bin/sh
# report.sh -- mpsim report: a page whose numbers are those of stat, advise and scaler, that loads nothing, that no name of a tensor and
# no drawing breaks, of any size; in a browser where there is one.
# shellcheck source=tests/cli/common.sh
. "${MPSIM_SRCDIR:=.}/tests/cli/common.sh"
unset SOURCE_DATE_EPOCH
digits=$top/data/digits-cnn amp=$top/data/amp-mlp/adam
cd "$dir" || exit 99

# balanced PAGE: every element that begins ends, in its order; no attribute without quotes: what XML asks, too
balanced() {
    awk '
    { text = text $0 "\n" }
    END {
        sub(/^<!DOCTYPE html>/, "", text)
        while (match(text, /\/\*<!\[CDATA\[\*\//)) { # style and script are no markup
            rest = substr(text, RSTART + RLENGTH); text = substr(text, 1, RSTART - 1)
            at = index(rest, "/*]]>*/"); if (!at) exit bad = 1
            text = text substr(rest, at + 7)
        }
        n = split(text, part, "<")
        for (i = 2; i <= n; i++) {
            at = index(part[i], ">"); if (!at) exit bad = 1
            tag = substr(part[i], 1, at - 1); rest = substr(part[i], at + 1)
            if (rest ~ />/ || rest ~ /&([^a-z#]|$)/) exit bad = 1
            name = tag; sub(/[ \/\n].*/, "", name)
            if (tag ~ /^\//) { if (depth < 1 || open[depth--] != substr(tag, 2)) exit bad = 1; continue }
            words = substr(tag, length(name) + 1); sub(/\/$/, "", words)
            gsub(/[ \n]+[A-Za-z0-9-]+="[^"<>]*"/, "", words)
            if (words !~ /^[ \n]*$/) exit bad = 1
            if (tag !~ /\/$/) open[++depth] = name
        }
    }
    END { exit bad || depth != 0 }' "$1" || return 1
    if xmllint --version >/dev/null 2>&1; then
        xmllint --huge --noout "$1" || return 1
    fi
}
# alone PAGE: it loads nothing, and says so to a browser; one script, which is its own
alone() {
    ! grep -q 'https\{0,1\}:\|src=\|@import\|url([^#]\|javascript:' "$1" && [ "$(grep -c '<script' "$1")" = 1 ] &&
        [ "$(grep -o 'href="[^"]*"' "$1" | grep -vc '^href="#')" = 0 ] && grep -q "default-src 'none'" "$1" && ! grep -q ' on[a-z]*="\| style="' "$1"
}
# linked PAGE: no id twice, and each link leads to one
linked() {
    grep -o ' id="[^"]*"' "$1" | sort >ids
    [ -z "$(uniq -d ids)" ] || return 1
    grep -o 'href="#[^"]*"' "$1" | sed 's/href="#/ id="/' | sort -u | comm -13 ids - >lost
    [ ! -s lost ]
}
# table ID PAGE: its rows, cells between tabs
table() {
    sed -n "/<table id=\"$1\"/,/<\/table>/p" "$2" | sed -n 's/^<tr><th scope="row">//p' | sed 's/<\/*b[^>]*>//g; s/<\/t[hdr]>//g; s/<td[^>]*>/\t/g'
}
# words PAGE: its text, without tags and line ends
words() { tr '\n' ' ' <"$1" | sed 's/<[^>]*>//g; s/&#39;/'"'"'/g; s/&lt;/</g; s/&gt;/>/g; s/&quot;/"/g; s/&amp;/\&/g' | tr -s ' '; }

has_gnuplot=$(gnuplot --version 2>/dev/null)
mkdir here && (cd here && "$MPSIM" report --no-figures --no-digests "$digits/step_000001" >out 2>err) && grep -q 'report.html: open it in a browser' here/err && [ ! -s here/out ] && balanced here/report.html
ok $? "without -o the page is report.html"
header='{"wgrad:w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"wgrad:<b>":{"dtype":"C64","shape":[1],"data_offsets":[8,16]}}'
# shellcheck disable=SC2059 # octal
{ printf "\\$(printf %03o ${#header})\\0\\0\\0\\0\\0\\0\\0%s" "$header"; head -c 16 /dev/zero; } >complex.safetensors
run 0 report -q --no-figures -o complex.html complex.safetensors && balanced complex.html && words complex.html | grep -q "1 tensor that may hold numbers is not read: 'wgrad:<b>' of C64 (complex numbers)."; ok $? "the page names what was not read"
run 0 report -q --no-figures --no-digests -o - "$digits/step_000001" && cmp -s out here/report.html; ok $? "-o - writes the page to standard output"
run 0 report -q -o page.html "$digits" && balanced page.html && alone page.html && linked page.html; ok $? "a page that is whole, loads nothing, and links to itself"
[ "$(grep -c '<h1>' page.html)" = 1 ] && grep -q '<main>' page.html && grep -q '<nav aria-label=' page.html && grep -q '<html lang="en">' page.html &&
    ! grep '<thead>' -A 3 page.html | grep '<th scope="col"' | sed 's/<th scope="col" aria-sort="none"[^>]*><button type="button">//g' | grep -q '<th scope="col"'
ok $? "landmarks, one heading of the page; every title of a column is a button in a cell that tells its order"
grep -q '<th scope="col" aria-sort="none" title="Elements other than 0 that become 0."><button type="button">underflow, %</button>' page.html; ok $? "columns have the titles of stat's record, and where a pointer rests the sentence"
if [ "$has_gnuplot" ]; then
    [ "$(grep -c '<svg role="img" aria-label="[^"]' page.html)" = 5 ] && [ "$(grep -c '<figcaption>' page.html)" = 5 ]; ok $? "five figures, each with a caption and words for who does not see it"
else
    ok 0 "five figures # SKIP no gnuplot"
fi

# ---- its numbers: those of the commands that it names
sed -n 's/.*<code>mpsim stat --json -o stat.json \([^<]*\)<.*/\1/p' page.html >command
# shellcheck disable=SC2046 # words
run 0 stat -q --csv --level kind $(cat command) && mv out kinds.csv && run 0 stat -q --csv $(cat command) && mv out tensors.csv &&
    run 0 advise -q --csv "$digits" && mv out advise.csv
ok $? "the command of stat that the page names"
cat >cells.awk <<'END'
# cells as the page has them, from the CSV of stat; in front of a quoted shape columns count from the end
function percent(n, of,   x) {
    x = of ? 100 * n / of : 0
    return x == 0 ? "0" : x < 0.001 ? "<0.001" : x >= 99.95 && x < 100 ? (x > 99.999 ? ">99.999" : "99.99") : sprintf("%.3g", x)
}
function db(x) { return x == "nan" || x == "" ? "\342\200\223" : x == "inf" ? "exact" : x == "-inf" ? x : sprintf("%.1f", x) }
function of(name) { return $(NF - columns + at[name]) }
NR == 1 { columns = NF; for (i = 1; i <= NF; i++) at[$i] = i; next }
what == "kinds" {
    scale = of("scale"); if (scale == 131072) scale = "2^17"
    print $4 "\t" of("format") "\t" scale "\t" percent(of("underflow"), of("count")) "\t" db(of("sqnr_db"))
}
what == "tensors" && of("format") == format && (of("scale") == 1 || of("scale") == "") {
    share = of("underflow") / of("count"); if (!($3 in most) || share > most[$3]) most[$3] = share
    x = of("sqnr_db"); if (x == "inf") x = 1e9
    if (x != "nan" && x != "" && (!($3 in least) || x + 0 < least[$3])) least[$3] = x + 0
}
END { for (t in most) print t "\t" percent(most[t], 1) "\t" (!(t in least) ? db("") : least[t] == 1e9 ? "exact" : db(least[t])) }
END
# same SHOWN WANTED: the lines of the page are lines that the reports give, and not none
same() { [ -s "$1" ] && sort -u "$1" >a.sorted && sort -u "$2" >b.sorted && [ -z "$(comm -23 a.sorted b.sorted)" ]; }
awk -F, -v what=kinds -f cells.awk kinds.csv >wanted
table kinds-lost page.html | cut -f 1-4,8 | grep -v '^all' >shown
[ "$(wc -l <shown)" = 38 ] && same shown wanted; ok $? "by kind: what becomes zero and decibels are those of stat"
for format in fp16 mxfp8; do
    awk -F, -v what=tensors -v format=$format -f cells.awk tensors.csv >wanted
    [ $format = fp16 ] && at=11 || at=21
    table tensors page.html | cut -f "1,$at,$((at + 1))" >shown
    [ "$(wc -l <shown)" = 43 ] && same shown wanted; ok $? "tensor by tensor: the worst of all steps in $format, as stat has it"
done
# the page calls e4m3 and e5m2 of the advice, which have a scale, by another name than the casts
cut -d , -f 1,6 advise.csv | sed 1d | tr ',' '\t' | sed 's/\t\(e[45]m[23]\)$/\tscaled \1/' >wanted
table tensors page.html | cut -f 1,3 >shown
[ "$(wc -l <shown)" = 43 ] && same shown wanted; ok $? "the narrowest format is that of advise"
run 0 advise -q --policy-out policy "$digits" && words page.html >text && sed -n '/^1\. /,/^$/p' out | sed 's/^[0-9]*\. /#/' | tr '\n' ' ' | tr '#' '\n' | tr -s ' ' | sed 's/^ *//; s/ *$//; s/^Loss scale, for fp16: //' >sentences
[ "$(grep -c . sentences)" = 5 ] && while IFS= read -r sentence; do [ ! "$sentence" ] || grep -qF -- "$sentence" text || exit 1; done <sentences; ok $? "its sentences are those of advise"
sed -n '/<pre /,/<\/pre>/p' page.html | sed 's/<[^>]*>//g; s/&quot;/"/g' | sed '$d' | cmp -s - policy; ok $? "so is the policy"
run 0 report -q --no-figures -o amp.html "$amp" && run 0 scaler --csv "$amp" && [ "$(table scales amp.html | grep -c 'overflow, skipped')" = 8 ] &&
    grep -q 'Verdict\|steady' amp.html && words amp.html | grep -q 'gradients were recorded multiplied by their loss scale'
ok $? "the loss scaler of the run itself, its eight skipped steps"
if command -v sha256sum >/dev/null; then
    (cd "$top" && sha256sum data/digits-cnn/step_*/*.safetensors) | cut -d ' ' -f 1 | sort >wanted
    table files page.html | cut -f 3 | sort | cmp -s - wanted; ok $? "digests of the files"
else
    ok 0 "digests of the files # SKIP no sha256sum"
fi

# the members that the page names are there
run 0 stat -q --json -f fp16,mxfp8 "$digits/step_000120" && mv out stat.json && run 0 advise -q --json "$digits/step_000120" && mv out advise.json && run 0 scaler -q --json "$amp" && mv out scaler.json
table sources page.html | cut -f 2,3 | while IFS="$(printf '\t')" read -r of members; do
    for member in $(echo "$members" | grep -o '[a-z0-9_]*'); do
        case $member in of | all | a | name | the | worst | most | zero | lowest | bounds | are | those | advise | json | steps | config) continue ;; esac
        grep -q "\"$member\":" "$of" || echo "$of: $member"
    done
done >lost
[ ! -s lost ]; ok $? "the members that the page names are in the reports"

# ---- the same again
run 0 report -q --no-figures --threads 1 -o few.html "$digits/step_000120" "$digits/step_020000" && mv few.html again && run 0 report -q --no-figures -o few.html "$digits/step_000120" "$digits/step_020000" && cmp -s again few.html; ok $? "the same files give the same page on any number of threads"
SOURCE_DATE_EPOCH=86400 "$MPSIM" report -q --no-figures -o dated.html "$digits/step_000001" && grep -q '<dt>Date</dt><dd>1970-01-02 00:00:00 UTC' dated.html && ! grep -q '<dt>Date' page.html; ok $? "a date where one is given"

# ---- what it lacks it says
MPSIM_GNUPLOT=$dir/none "$MPSIM" report -o bare.html "$digits/step_000001" >out 2>err && grep -q 'no figures: gnuplot' err && balanced bare.html && linked bare.html && grep -q 'There are no figures: gnuplot' bare.html && ! grep -q '<svg' bare.html; ok $? "without gnuplot: tables, and a word"
run 0 report -q --no-figures --no-digests -o one.html "$digits/step_000001" && words one.html | grep -q 'Not known: that needs weight gradients of several steps' && grep -q 'not taken' one.html && ! grep -q 'id="steps"' one.html && linked one.html; ok $? "of one step: no history, no table of steps"
charlm=$top/data/charlm/step_000100
run 0 report -q --no-figures --no-digests -o rounded.html "$charlm" && words rounded.html | grep -q '31 of the 96 elements of wgrad:blocks.0.attn.qkv.bias, and elements of other tensors, are nothing but what rounding left' && grep -q 'stat --json[^<]*--without-roundoff' rounded.html &&
    run 0 stat -q --csv --without-roundoff -f fp16 -m 'wgrad:blocks.1.attn.qkv.bias' "$charlm" && grep -q 'F32,\[96\],64,0,.*,64$' out; ok $? "bug_20261127: round-off is named, and not in the numbers"
run 0 report -q --no-figures -o folder.html "$top/tests/trace/recorded/fsdp" && grep -q '8 tensors' folder.html
ok $? "a folder that is one trace"
run 2 report /dev/stdin && has "can be read only once" err; ok $? "what can be read once alone is refused"
run 2 report && run 2 report -f nothing "$digits" && run 3 report -m nothing "$digits" && has '^mpsim: report: ' err &&
    run 2 report --min-sqnr x "$digits" && has '^mpsim: report: --min-sqnr' err; ok $? "bad words fail, by the name of this command"
run 2 report -q -o "$digits/step_000001/rank_00000.safetensors" "$digits/step_000001/rank_00000.safetensors"; ok $? "no page replaces its trace"

# ---- more casts than columns
run 0 report -q --no-figures --no-digests -f fp16,e5m2,e4m3 -s 2^0..2^5 -o casts.html "$digits/step_000001" && grep -q 'Some casts have no columns here' casts.html &&
    grep -A 3 '<table id="tensors">' casts.html | grep -q '>fp16</th><th scope="colgroup" colspan="2">e5m2</th><th scope="colgroup" colspan="2">e4m3</th><td' && balanced casts.html; ok $? "of 18 casts those at one scale have columns, and a note says so"

# ---- names that are chosen to break it
bad='</th></table><script>alert(1)</script>\u001b]0;x\u0007\"'"'"'&amp;&<b onclick=x>\u202e|/'
header='{"__metadata__":{"mpsim.step":"1"},"wgrad:'$bad'":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"act:<!--":{"dtype":"F32","shape":[2],"data_offsets":[8,16]},"]]>":{"dtype":"F32","shape":[2],"data_offsets":[16,24]}}'
mkdir "<i>&'\"" && f="<i>&'\"/$(printf 'x\377\033').safetensors"
# shellcheck disable=SC2059 # octal numbers
printf "$(printf '\\%03o\\%03o\\000\\000\\000\\000\\000\\000' $((${#header} % 256)) $((${#header} / 256)))" >"$f"
printf '%s\000\000\200\076\000\000\200\077\000\000\200\076\000\000\200\077\000\000\200\076\000\000\200\077' "$header" >>"$f"
run 0 report -q --title '<script>"&' -o bad.html "<i>&'\"" && balanced bad.html && alone bad.html && linked bad.html &&
    grep -q '&lt;script&gt;alert(1)&lt;/script&gt;\\x1b\]0;x\\x07&quot;&#39;&amp;amp;&amp;&lt;b' bad.html && grep -q '<h1>&lt;script&gt;&quot;&amp;</h1>' bad.html && grep -q 'x\\xff\\x1b' bad.html
ok $? "markup, quotes, controls and bytes that are no UTF-8 in names are text"

# ---- a drawing is shapes and texts, whatever drew it
cat >drawer <<'END'
#!/bin/sh
[ "$1" = --version ] && exit
cd "$(echo "$3" | sed "s/^cd '\([^']*\)'.*/\1/")" || exit
figure=$(echo "$3" | sed "s/.*figure = '\([^']*\)'.*/\1/")
cat >"$figure.svg" <<'SVG'
<?xml version="1.0"?><!-- <b> --><svg width="9" height="9" viewBox="0 0 9 9" onload="alert(1)" xmlns:xlink="http://www.w3.org/1999/xlink">
<script>alert(2)</script><style>*{fill:url(http://x)}</style><title>no</title><g onclick='x'><a href="http://x"><path d="M0 0"/></a></g>
<image href="http://x/y.png"/><foreignObject><b>no</b></foreignObject><path id="p" d="M1 1"/><g id="a" fill="url(#p)" style="x"><use xlink:href="#p"/><use xlink:href="http://x#p"/><rect fill="url(http://x)" x='1'/></g>
<text>a &lt; b & c</text><g></g></svg>
SVG
END
chmod +x drawer
MPSIM_GNUPLOT=$dir/drawer "$MPSIM" report -q -o drawn.html "$digits/step_000001" >out 2>err
[ ! -s err ] && balanced drawn.html && alone drawn.html && linked drawn.html && ! grep -q 'alert\|onload\|<style>[^/]\|<image\|foreign\|<title>no\|no</b>' drawn.html &&
    grep -q '<g id="f1-a" fill="url(#f1-p)"><use href="#f1-p"/>' drawn.html && grep -q 'a &lt; b &amp; c' drawn.html
ok $? "of a drawing shapes and texts alone, its ids its own"
sed 's/<text>/<text/' drawer >worse && chmod +x worse
MPSIM_GNUPLOT=$dir/worse "$MPSIM" report -q -o worse.html "$digits/step_000001" >out 2>err
[ $? -eq 4 ] && one_line && [ ! -e worse.html ]; ok $? "what is no drawing fails"

# ---- very many tensors
many() { # many FILE N [WORD]: each of two numbers; names of 1,500 bytes and more, where the word is repeated
    awk -v n="$2" -v word="${3-}" 'BEGIN {
        while (length(word) > 0 && length(word) < 1500) word = word word
        split("weight wgrad agrad act opt.m", kind, " ")
        h = "{\"__metadata__\":{\"mpsim.step\":\"1\"}"
        for (i = 0; i < n; i++)
            h = h sprintf(",\"%s:model.layers.%d.block%d.mlp.projection%s.weight\":{\"dtype\":\"BF16\",\"shape\":[2],\"data_offsets\":[%d,%d]}",
                kind[i % 5 + 1], i / 50, i / 5 % 10, word, 4 * i, 4 * i + 4)
        print h "}"
    }' >header
    size=$(wc -c <header)
    printf "$(printf '\\%03o\\%03o\\%03o\\000\\000\\000\\000\\000' $((size % 256)) $((size / 256 % 256)) $((size / 65536)))" >"$1"
    cat header >>"$1"
    awk -v n="$2" 'BEGIN { for (i = 0; i < n; i++) printf "%c?%c7", 65 + i % 50, 97 + i % 20 }' >>"$1"
}
turns 10
due && many many 10000
run 0 report -q --no-digests -o many.html many && balanced many.html && [ "$(wc -c <many.html)" -lt 5000000 ] && [ "$(table tensors many.html | wc -l)" = 10000 ] && grep -q '<tbody class="rest">' many.html; ok $? "10,000 tensors: all of them, below 5 MB"
turns 1
due && many long 2000 0123456789
run 0 report -q --no-digests --no-figures -o long.html long && balanced long.html && [ "$(wc -c <long.html)" -lt 5000000 ] && grep -q 'Of 2,000 tensors [0-9]* have no row here' long.html
ok $? "names that are long: rows are left out, below 5 MB, and it is said"

# ---- a browser
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome)
# ---- what an emulation has saved ----
mkdir saved && "$MPSIM" stat --ndjson -f fp16,mxfp8 "$digits" >saved/stat.jsonl && "$MPSIM" train --json --steps 4 -P fp32 -P pytorch-amp-fp16 -o saved/train.json &&
    printf 'Net under <b>, arch & co: 4 steps\n  fc1\n' >saved/report.txt && run 0 report -q -o saved.html saved && balanced saved.html && alone saved.html && linked saved.html &&
    words saved.html | grep -q 'Net under <b>, arch & co: 4 steps' && [ "$(table runs saved.html | cut -f 1,2)" = "$(printf 'fp32\t4\npytorch-amp-fp16\t4')" ] &&
    [ "$(table tensors saved.html | cut -f 1 | sort)" = "$(sed -n 's/^{"level": "tensor".* "name": "\([^"]*\)".*/\1/p' saved/stat.jsonl | sort -u)" ]
ok $? "a folder that an emulation has saved: its text, its runs, each of its tensors"
if [ "$has_gnuplot" ]; then
    [ "$(grep -c '<svg role="img" aria-label="[^"]' saved.html)" = 3 ]; ok $? "its figures: the training, SQNR, what becomes zero"
else
    ok 0 "its figures # SKIP no gnuplot"
fi
sed 's/"final_scale"/"x"/; s/"skipped": [0-9]*, "overflows"/"skipped": -1, "overflows"/' saved/train.json >train.json && mv train.json saved/train.json &&
    run 3 report -q --no-figures -o damaged.html saved && has 'saved/train.json: not a report of mpsim train: "skipped" is missing or not a count' err && [ ! -e damaged.html ]
ok $? "one that is damaged: which file, and what"

# shows PAGE: what a browser makes of it
shows() { timeout 60 "$browser" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --user-data-dir="$dir/profile" --virtual-time-budget=3000 --dump-dom "file://$dir/$1" 2>/dev/null >dom; }
if [ ! "$browser" ]; then
    ok 0 "in a browser # SKIP no Chromium"
else
    turns 10 together
    due && shows bare.html
    if again && [ ! -s dom ]; then
        ok 0 "in a browser # SKIP Chromium does not start here"
    else
        due && shows page.html
        again && grep -q 'Rows that contain' dom; ok $? "in a browser: the page's own script runs, under the page's own policy"
        # its policy away, so that a second script may press a button, twice
        due && sed 's/<meta http-equiv="Content-Security[^>]*>//; s,</body>,<script>var b = document.querySelector("#tensors thead tr:last-child th:nth-child(5) button"); b.click(); b.click();</script></body>,' page.html >pressed.html && shows pressed.html
        again && { sed -n '/<table id="tensors"/,/<\/table>/p' dom | tr -d '\n'; echo; } | sed 's/<tr>/\n&/g' | sed -n 's/^<tr><th scope="row">[^<]*<\/th><td>[^<]*<\/td><td>[^<]*<\/td><td>[^<]*<\/td><td>\([0-9,]*\)<.*/\1/p' | tr -d , >sorted
        again && [ "$(wc -l <sorted)" = 43 ] && sort -n sorted | cmp -s - sorted && grep -q '<th scope="col" aria-sort="ascending"><button type="button">elements' dom; ok $? "two presses of a title sort its column upwards, and its cell says so"
    fi
    turns 1
fi
finish
