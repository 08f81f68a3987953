/* t-record.c -- records: JSON, lines, CSV, cells of a struct with a field of each type; the schemas in doc/schema are those that the
 * tables give. With MPSIM_WRITE_SCHEMAS set to 1 they are written instead. */
#include "sim/advise/record.h"
#include "sim/attention/record.h"
#include "sim/calc/calc.h"
#include "sim/cast/explain.h"
#include "sim/diff/diff.h"
#include "sim/dot/models.h"
#include "sim/dot/pair.h"
#include "sim/dot/record.h"
#include "sim/dot/reduce.h"
#include "sim/explain/explain.h"
#include "sim/judge/record.h"
#include "sim/formats/formats.h"
#include "sim/formats/positions.h"
#include "sim/formats/recipes.h"
#include "sim/info/record.h"
#include "sim/memory/record.h"
#include "sim/mismatch/report.h"
#include "sim/replay/fields.h"
#include "sim/train/fields.h"
#include "sim/verify/report.h"
#include "sim/log/report.h"
#include "sim/scaler/adaptive.h"
#include "sim/scaler/record.h"
#include "sim/scaler/table.h"
#include "sim/stat/report.h"
#include "sim/text/option.h"
#include "support/support.h"

#include <mpsim/mpsim.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(x) (sizeof(x) / sizeof(x)[0])

/* ---- a record with everything ---- */

typedef struct inner {
    uint64_t part, whole;
} inner;

typedef struct outer {
    const char *text, *none;
    char chars[8];
    int truth, number;
    uint8_t flag;
    uint64_t count, zero;
    size_t size, items_count, words_count, there;
    double real;
    float real32;
    inner in;
    const inner *items, *pointer, *lacking;
    const char *const *words;
    const size_t *sizes;
    json_t *map;
    const uint64_t *numbers;
    int64_t step, no_step, whole;
    const int64_t *wholes;
    const float *narrow;
} outer;

#define AT(member) offsetof(inner, member)
static const record_field inner_fields[] = {
    FIELD(SHARE, "part", IN_ALL, AT(part), "A part.", .title = ">share", .of = AT(whole)),
    FIELD(COUNT, "whole", IN_ALL, AT(whole), NULL),
    {0}};
static const record_kind inner_record = {"inner", NULL, sizeof(inner), inner_fields};
#undef AT

static const record_field lacking_fields[] = {FIELD(COUNT, "extra", IN_TREE, 0, NULL), {0}};
static const record_kind lacking_record = {"lacking", NULL, sizeof(inner), lacking_fields};

enum { SHOW_ODD = 1 };
static const char *const choices[] = {"yes, it is", "no", NULL};

#define AT(member) offsetof(outer, member)
static const record_field outer_fields[] = {
    FIELD(TEXT, "text", IN_ALL, AT(text), "A \"word\".", .title = "<text", .words = choices),
    FIELD(TEXT, "none", IN_ALL | FIELD_NULL, AT(none), NULL, .title = "<none"),
    FIELD(TEXT, NULL, 0, AT(none), NULL, .title = "<lacking", .lacking = "-"),
    FIELD(COUNT, NULL, FIELD_BYTES, AT(count), NULL, .title = ">bytes"),
    FIELD(TEXT, "left_out", IN_TREE | FIELD_OPTIONAL, AT(none), NULL),
    FIELD(CHARS, "chars", IN_ALL, AT(chars), NULL, .title = "<chars", .column = 2),
    FIELD(BOOLEAN, "truth", IN_ALL, AT(truth), NULL, .title = "<truth"),
    FIELD(FLAG, "flag", IN_ALL, AT(flag), NULL, .title = "<flag"),
    FIELD(INTEGER, "number", IN_ALL, AT(number), NULL, .title = ">number", .column = 1),
    FIELD(COUNT, "count", IN_ALL, AT(count), NULL, .title = ">count"),
    FIELD(COUNT, "zero", IN_ALL | FIELD_BLANK, AT(zero), NULL, .title = ">zero"),
    FIELD(SIZE, "size", IN_ALL | FIELD_PLAIN, AT(size), NULL, .title = ">size"),
    FIELD(REAL, "real", IN_ALL, AT(real), NULL, .title = ">real", .format = "%.1f"),
    FIELD(REAL32, "real32", IN_ALL, AT(real32), NULL, .title = ">real32"),
    FIELD(RECORD, "in", IN_ALL, AT(in), NULL, .title = "above", .record = &inner_record),
    FIELD(RECORD, "pointer", IN_TREE | FIELD_POINTER, AT(pointer), NULL, .record = &inner_record),
    FIELD(RECORD, "lacking", IN_ALL | FIELD_POINTER | FIELD_NULL, AT(lacking), NULL, .title = "",
          .record = &inner_record),
    FIELD(RECORD, "inline", IN_LINE | FIELD_INLINE | FIELD_POINTER, AT(pointer), NULL, .record = &inner_record),
    FIELD(RECORD, "if", IN_TREE | FIELD_IF | FIELD_OPTIONAL, AT(in), NULL, .of = AT(there), .record = &inner_record),
    FIELD(LIST, "items", IN_TREE, AT(items), NULL, .of = AT(items_count), .record = &inner_record),
    FIELD(TEXTS, "words", IN_TREE, AT(words), NULL, .of = AT(words_count)),
    FIELD(SIZES, "sizes", IN_TREE | FIELD_NULL, AT(sizes), NULL, .of = AT(words_count)),
    FIELD(COUNTS, "numbers", IN_ALL, AT(numbers), NULL, .title = "<numbers", .of = AT(words_count)),
    FIELD(PAIRS, "pairs", IN_TREE, AT(numbers), NULL, .of = AT(words_count)),
    FIELD(TALLY, "tally", IN_TREE, AT(numbers), NULL, .words = choices),
    FIELD(STEP, "step", IN_ALL, AT(step), NULL, .title = ">step"),
    FIELD(STEP, "no_step", IN_ALL | FIELD_NULL, AT(no_step), NULL, .title = ">no step"),
    FIELD(LONG, "long", IN_ALL, AT(whole), NULL, .title = ">long"),
    FIELD(LONGS, "longs", IN_TREE, AT(wholes), NULL, .of = AT(words_count)),
    FIELD(REALS32, "reals32", IN_TREE | FIELD_OPTIONAL, AT(narrow), NULL, .of = AT(words_count)),
    FIELD(CODES, "codes", IN_TREE, AT(words), NULL, .of = AT(words_count)),
    FIELD(RECORD, "may_lack", IN_TREE | FIELD_IF | FIELD_INLINE | FIELD_OPTIONAL, AT(in), NULL, .of = AT(there),
          .record = &lacking_record),
    FIELD(COUNT, NULL, 0, AT(count), NULL, .title = ">kB", .unit = 1e3),
    FIELD(SHARE, NULL, FIELD_BLANK, AT(zero), NULL, .title = ">blank", .of = AT(count)),
    FIELD(MAP, "map", IN_TREE | FIELD_OPTIONAL, AT(map), NULL),
    FIELD(COUNT, "odd", IN_CSV, AT(count), NULL, .when = SHOW_ODD),
    FIELD(TEXT, "", IN_CSV, AT(text), NULL),
    {0}};
static const record_kind outer_record = {"outer", "All types.", sizeof(outer), outer_fields};
#undef AT

static const record_field document_fields[] = {
    FIELD(CHARS, "before", IN_JSON, offsetof(outer, chars), NULL),
    FIELD(LIST, "rows", IN_JSON | FIELD_STREAM, 0, NULL, .record = &outer_record),
    FIELD(COUNT, "after", IN_JSON, offsetof(outer, count), NULL),
    {0}};
static const record_kind document = {"document", NULL, sizeof(outer), document_fields};
static const report_kind all_types = {"mpsim.test/1", "Test", "A test.", &document};

static const inner both[] = {{1, 4}, {0, 0}};
static const char *const two[] = {"a", "b", NULL};
static const uint64_t numbers[] = {0, 5, 6, 7};
static const int64_t wholes[] = {INT64_MIN, 3};
static const float narrow[] = {0.5f, (float)NAN};
static const outer example = {.text = "=a,\"b\"",
                              .chars = "chars",
                              .truth = 1,
                              .number = -7,
                              .flag = 0,
                              .count = UINT64_C(12345),
                              .size = 12345,
                              .items_count = 2,
                              .words_count = 2,
                              .real = 0.25,
                              .real32 = 1.5f,
                              .in = {1, 8},
                              .items = both,
                              .pointer = both,
                              .words = two,
                              .numbers = numbers,
                              .step = 12345,
                              .no_step = -1,
                              .whole = -12345,
                              .wholes = wholes,
                              .narrow = narrow};

/* What `style` makes of a report whose document and rows are `at`. */
static char *report_of(const report_kind *kind, const void *at, report_style style, unsigned shows, int rows)
{
    char *text = NULL;
    size_t n = 0;
    FILE *to = open_memstream(&text, &n);
    record_writer w = {.kind = kind, .to = to, .style = style, .shows = shows, .document = at};
    ck_assert_ptr_nonnull(to);
    record_begin(&w);
    for (int i = 0; i < rows; i++)
        record_row(&w, at);
    table_print(w.rows, to, "");
    record_end(&w);
    ck_assert_int_eq(fclose(to), 0);
    return text;
}

static void expect(report_style style, unsigned shows, int rows, const char *expected)
{
    char *text = report_of(&all_types, &example, style, shows, rows);
    ck_assert_str_eq(text, expected);
    free(text);
}

#define MEMBERS                                                                                                              \
    "\"text\": \"=a,\\\"b\\\"\", \"none\": null, \"chars\": \"chars\", \"truth\": true, \"flag\": false, \"number\": -7, "   \
    "\"count\": 12345, \"zero\": 0, \"size\": 12345, \"real\": 0.25, \"real32\": 1.5, \"in\": {\"part\": 1, \"whole\": 8}, " \
    "\"pointer\": {\"part\": 1, \"whole\": 4}, \"lacking\": null, "
#define LISTS                                                                                                             \
    "\"items\": [{\"part\": 1, \"whole\": 4}, {\"part\": 0, \"whole\": 0}], \"words\": [\"a\", \"b\"], \"sizes\": null, " \
    "\"numbers\": [0, 5], \"pairs\": [[0, 5], [6, 7]], \"tally\": {\"no\": 5}, \"step\": 12345, \"no_step\": null, "      \
    "\"long\": -12345, \"longs\": [-9223372036854775808, 3], \"reals32\": [0.5, \"NaN\"], \"codes\": [\"a\", \"b\"]"

CASE("forms", 20);

TEST(forms)
{
    expect(REPORT_NDJSON, 0, 1, "{" MEMBERS "\"part\": 1, \"whole\": 4, " LISTS "}\n");
    expect(
        REPORT_CSV, 0, 1,
        "text,none,chars,truth,flag,number,count,zero,size,real,real32,in_part,in_whole,lacking_part,lacking_whole,numbers,step,no_step,long,\n"
        "\"'=a,\"\"b\"\"\",,chars,yes,no,-7,12345,0,12345,0.25,1.5,1,8,,,\"[0, 5]\",12345,,-12345,\"'=a,\"\"b\"\"\"\n");
    expect(
        REPORT_CSV, SHOW_ODD, 0,
        "text,none,chars,truth,flag,number,count,zero,size,real,real32,in_part,in_whole,lacking_part,lacking_whole,numbers,step,no_step,long,odd,\n");
    expect(
        REPORT_TEXT, 0, 1,
        "                                                                     above\n"
        "text    lacking     bytes  truth  flag   count   size  real  real32    share  numbers   step    long     kB  number  chars\n"
        "=a,\"b\"  -        12.1 KiB  yes    no    12,345  12345   0.2     1.5  12.50 %  [0, 5]   12345  -12345  12.35      -7  chars\n");
}

TEST(documents)
{
    char *version = NULL;
    const int n = asprintf(&version,
                           "{\"schema\": \"mpsim.test/1\",\n\"mpsim\": \"%s\",\n\"before\": \"chars\",\n\"rows\": "
                           "[\n {" MEMBERS LISTS "},\n {" MEMBERS LISTS "}],\n\"after\": 12345}\n",
                           mpsim_version());
    ck_assert_int_gt(n, 0);
    expect(REPORT_JSON, 0, 2, version);
    free(version);
}

/* ---- cells that a reader sorts ---- */

typedef struct sorted {
    uint64_t part, whole, none;
    double share, ratio, least;
} sorted;

#define AT(member) offsetof(sorted, member)
static const record_field sorted_fields[] = {COLUMN(COUNT, ">lost", 0, AT(part), "Elements that are lost."),
                                             COLUMN(SHARE, ">", 0, AT(part), NULL, .of = AT(whole)),
                                             COLUMN(COUNT, ">none", FIELD_BLANK, AT(none), NULL),
                                             COLUMN(REAL, "<share", FIELD_PERCENT, AT(share), "Share."),
                                             COLUMN(REAL, ">ratio", FIELD_DECIBEL, AT(ratio), NULL),
                                             COLUMN(REAL, ">least", FIELD_BLANK, AT(least), NULL, .lacking = "-"),
                                             {0}};
#undef AT
static const record_kind sorted_record = {"sorted", NULL, sizeof(sorted), sorted_fields};
static const record_field above_fields[] = {COLUMN(RECORD, "above", 0, 0, NULL, .record = &sorted_record), {0}};
static const record_kind above_record = {"above", NULL, sizeof(sorted), above_fields};

static void put_title(void *to, const record_title *t)
{
    fprintf(to, "%s/%s%s=%s|", t->above, t->is_text ? "<" : "", t->title, t->what ? t->what : "");
}

static void put_text(void *to, const record_field *f, const char *text)
{
    fprintf(to, "%c%s|", *f->title, text);
}

TEST(sorted_cells)
{
    static const sorted rows[] = {{1, 8, 0, 0.999999, 12.34, 0}, {0, 0, 7, 0.125, (double)INFINITY, 0.5}};
    char *text = NULL;
    size_t n = 0;
    FILE *to = open_memstream(&text, &n);
    ck_assert_ptr_nonnull(to);
    record_titles(&above_record, 0, put_title, to);
    for (size_t i = 0; i < COUNT(rows); i++)
        record_texts(&above_record, &rows[i], 0, put_text, to);
    table *t = record_table(&sorted_record, 0);
    record_cells(t, &sorted_record, &rows[1], 0);
    fputc('\n', to);
    table_print(t, to, "");
    table_free(t);
    ck_assert_int_eq(fclose(to), 0);
    ck_assert_str_eq(text,
                     "above/lost, %=Elements that are lost.|above/none=|above/<share, %=|above/ratio=|above/least=|"
                     ">12.5|>0|<>99.999|>12.3|>-|>|>7|<12.5|>exact|>0.5|\n"
                     "lost  none  share   ratio  least\n"
                     "   0     7  12.5 %  exact    0.5\n");
    free(text);
}

/* ---- words, sets, bytes; a list of lists that are written as they come ---- */

typedef struct leaf {
    uint32_t count;
    unsigned word, set;
    int truth;
    uint64_t bytes;
    double real;
    size_t there;
} leaf;

typedef struct branch {
    char name[8];
    uint64_t sum;
} branch;

static const char *const fruits[] = {"apple", "pear", "fig", NULL};

#define AT(member) offsetof(leaf, member)
static const record_field leaf_fields[] = {
    FIELD(COUNT32, "count", IN_ALL, AT(count), NULL, .title = ">count"),
    FIELD(WORD, "word", IN_ALL | FIELD_NULL, AT(word), NULL, .title = "<word", .words = fruits),
    FIELD(SET, "set", IN_ALL, AT(set), NULL, .words = fruits),
    FIELD(BOOLEAN, "truth", IN_ALL | FIELD_DIGIT | FIELD_LOOSE, AT(truth), NULL),
    FIELD(COUNT, "bytes", IN_ALL | FIELD_BYTES, AT(bytes), NULL, .title = ">bytes"),
    FIELD(REAL, "real", IN_ALL | FIELD_IF | FIELD_OPTIONAL, AT(real), NULL, .of = AT(there)),
    FIELD(COUNT, "foreign", IN_JSON | FIELD_FOREIGN, 0, NULL),
    {0}};
static const record_kind leaf_record = {"leaf", NULL, sizeof(leaf), leaf_fields};
#undef AT

static const record_field branch_fields[] = {
    FIELD(CHARS, "name", IN_JSON, offsetof(branch, name), NULL),
    FIELD(LIST, "leaves", IN_JSON | FIELD_STREAM, 0, NULL, .record = &leaf_record),
    FIELD(COUNT, "sum", IN_JSON, offsetof(branch, sum), NULL),
    {0}};
static const record_kind branch_record = {"branch", NULL, sizeof(branch), branch_fields};
static const report_kind tree = {"mpsim.tree/1", "Tree", "A test.", REPORT_ROWS("branches", &branch_record)};

static const leaf leaves[] = {{.count = 12345, .word = 1, .set = 5, .truth = 1, .bytes = 2048},
                              {.word = 7, .real = (double)NAN, .there = 1}};

static void expect_tree(report_style style, const char *expected)
{
    char *text = NULL;
    size_t n = 0;
    FILE *to = open_memstream(&text, &n);
    record_writer w = {.kind = &tree, .to = to, .style = style};
    ck_assert_ptr_nonnull(to);
    record_begin(&w);
    for (size_t i = 0; i < 2; i++) {
        branch b = {.name = "b", .sum = i};
        record_open(&w, &b);
        for (size_t k = 0; k < 2 * (1 - i); k++)
            record_row(&w, &leaves[k]);
        b.sum += 10;
        record_close(&w, &b);
    }
    table_print(w.rows, to, "");
    record_end(&w);
    ck_assert_int_eq(fclose(to), 0);
    ck_assert_ptr_nonnull(strstr(text, expected));
    free(text);
}

#define FIRST "\"count\": 12345, \"word\": \"pear\", \"set\": [\"apple\", \"fig\"], \"truth\": true, \"bytes\": 2048}"
#define SECOND "\"count\": 0, \"word\": null, \"set\": [], \"truth\": false, \"bytes\": 0, \"real\": \"NaN\"}"

TEST(trees)
{
    expect_tree(REPORT_JSON, "\"branches\": [\n{\"name\": \"b\",\n\"leaves\": [\n{" FIRST ",\n{" SECOND
                             "],\n\"sum\": 10},\n{\"name\": \"b\",\n\"leaves\": [],\n\"sum\": 11}]}\n");
    expect_tree(REPORT_NDJSON, "{" FIRST "\n{" SECOND "\n");
    expect_tree(REPORT_CSV, "count,word,set,truth,bytes,real\n12345,pear,apple+fig,1,2048,\n0,,,0,0,nan\n");
    expect_tree(REPORT_TEXT, " count  word    bytes\n12,345  pear  2.0 KiB\n     0\n");
}

static char *schema_of(const report_kind *kind)
{
    char *text = NULL;
    size_t n = 0;
    FILE *to = open_memstream(&text, &n);
    ck_assert_ptr_nonnull(to);
    record_schema(to, kind);
    ck_assert_int_eq(fclose(to), 0);
    return text;
}

static void contains(const char *text, const char *part)
{
    ck_assert_msg(strstr(text, part) != NULL, "'%s' is not in %s", part, text);
}

/* ---- words, and a document without its optional members ---- */

typedef struct wordy {
    unsigned word, none, set, empty;
    uint8_t small;
    uint32_t count;
    const inner *lacking;
    inner kept;
} wordy;

static const char *const bits[] = {"one", "", "four", "eight", NULL};

#define AT(member) offsetof(wordy, member)
static const record_field wordy_fields[] = {
    FIELD(WORD, "word", IN_ALL, AT(word), NULL, .title = "<word", .words = two),
    FIELD(WORD, "none", IN_ALL | FIELD_NULL, AT(none), NULL, .words = two),
    FIELD(SET, "set", IN_ALL, AT(set), NULL, .words = bits),
    FIELD(SET, "empty", IN_ALL, AT(empty), NULL, .words = bits),
    FIELD(WORD8, "small", IN_ALL, AT(small), NULL, .title = "<small", .words = two),
    FIELD(COUNT32, "count", IN_ALL, AT(count), NULL, .title = ">count"),
    {0}};
static const record_kind wordy_record = {"wordy", NULL, sizeof(wordy), wordy_fields};
static const record_field lacking_document_fields[] = {
    FIELD(RECORD, "first", IN_JSON | FIELD_POINTER | FIELD_OPTIONAL, AT(lacking), NULL, .record = &inner_record),
    FIELD(LIST, "rows", IN_JSON | FIELD_STREAM, 0, NULL, .record = &wordy_record),
    FIELD(RECORD, "", IN_JSON | FIELD_POINTER | FIELD_OPTIONAL | FIELD_INLINE, AT(lacking), NULL,
          .record = &inner_record),
    FIELD(RECORD, "", IN_JSON | FIELD_INLINE, AT(kept), NULL, .record = &inner_record),
    {0}};
#undef AT
static const record_kind lacking_document = {"document", NULL, sizeof(wordy), lacking_document_fields};
static const report_kind words_kind = {"mpsim.test/1", "Test", "Words.", &lacking_document};

static void expect_words(report_style style, const char *expected)
{
    static const wordy row = {1, 2, 7, 0, 1, UINT32_MAX, NULL, {1, 4}};
    char *text = report_of(&words_kind, &row, style, 0, 1), *from = strchr(text, '\n');
    ck_assert_ptr_nonnull(from);
    ck_assert_str_eq(style == REPORT_JSON ? strchr(from + 1, '\n') : text, expected);
    free(text);
}

TEST(words)
{
    expect_words(REPORT_JSON,
                 "\n\"rows\": [\n {\"word\": \"b\", \"none\": null, \"set\": [\"one\", \"four\"], "
                 "\"empty\": [], \"small\": \"b\", \"count\": 4294967295}],\n\"part\": 1, \"whole\": 4}\n");
    expect_words(REPORT_CSV, "word,none,set,empty,small,count\nb,,one+four,,b,4294967295\n");
    expect_words(REPORT_TEXT, "word  small          count\nb     b      4,294,967,295\n");
}

/* ---- a record as words of a command line ---- */

typedef struct lined {
    const char *text, *none;
    int yes, no;
    uint64_t count, zero;
    option_list list, empty;
} lined;

/* What is there and not 0, in the order of the table; written back they give the same words. */
TEST(words_of_a_line)
{
    static const record_field rows[] = {
        FIELD(TEXT, "text", IN_TREE, offsetof(lined, text), NULL),
        FIELD(TEXT, "none", IN_TREE, offsetof(lined, none), NULL),
        FIELD(BOOLEAN, "yes", IN_TREE, offsetof(lined, yes), NULL),
        FIELD(BOOLEAN, "no", IN_TREE, offsetof(lined, no), NULL),
        FIELD(TEXTS, "list", IN_TREE, offsetof(lined, list.items), NULL, .of = offsetof(lined, list.count)),
        FIELD(TEXTS, "empty", IN_TREE, offsetof(lined, empty.items), NULL, .of = offsetof(lined, empty.count)),
        FIELD(COUNT, "count", IN_TREE, offsetof(lined, count), NULL),
        FIELD(COUNT, "zero", IN_TREE, offsetof(lined, zero), NULL),
        {0}};
    static const record_kind kind = {"lined", NULL, sizeof(lined), rows};
    static const char *const wanted[][2] = {
        {"text", ""}, {"yes", "1"}, {"list", "a b"}, {"list", "1"}, {"count", "18446744073709551615"}};
    lined l = {.text = "", .yes = 1, .count = UINT64_MAX}, back = {0};
    record_word w;
    option_list_add(&l.list, "a b");
    option_list_add(&l.list, "1");
    for (size_t i = 0; i < COUNT(wanted); i++) {
        ck_assert_int_eq(record_word_at(&kind, &l, i, &w), 1);
        ck_assert_str_eq(w.key, wanted[i][0]);
        ck_assert_str_eq(w.text, wanted[i][1]);
        ck_assert_int_eq(w.is_flag, i == 1);
        ck_assert_int_eq(record_put_word(&kind, &back, wanted[i][0], wanted[i][1]), 0);
    }
    ck_assert_int_eq(record_word_at(&kind, &l, COUNT(wanted), &w), 0);
    ck_assert(*back.text == '\0' && back.yes == 1 && back.count == UINT64_MAX && back.list.count == 2);
    ck_assert_int_eq(record_put_word(&kind, &back, "yes", "0"), 0);
    ck_assert(!back.yes);
    ck_assert_int_eq(record_put_word(&kind, &back, "counts", "1"), WORD_UNKNOWN);
    ck_assert_int_eq(record_put_word(&kind, &back, "count", "x"), WORD_BAD);
    option_list_clear(&l.list);
    option_list_clear(&back.list);
}

CASE("schemas", 20);

/* What help says: a sentence once, that of a field of the same place for a column without one; nothing of null, or of what a title
 * says. */
TEST(columns)
{
    static const record_field told[] = {FIELD(COUNT, "rows", IN_ALL, 0, "Rows.", .title = ">rows"),
                                        FIELD(COUNT, "bytes", IN_ALL, 8, "Bytes of all; null: unknown."),
                                        FIELD(COUNT, NULL, 0, 8, NULL, .title = ">GB", .unit = 1e9),
                                        FIELD(COUNT, NULL, 0, 8, NULL, .title = ">GiB", .unit = 0x1p30),
                                        FIELD(TEXT, "name", IN_ALL, 16, "null: none.", .title = "<name"),
                                        FIELD(REAL, "lost", IN_ALL, 24, "Lost.", .title = ">", .column = 1),
                                        FIELD(REAL, "mean", IN_ALL, 32, "Of all.", .title = ">mean", .when = 1),
                                        FIELD(REAL, "most", IN_ALL, 40, "Of all.", .title = ">most", .when = 2),
                                        {0}};
    static const record_kind r = {"r", NULL, 48, told};
    record_column to[RECORD_COLUMNS_MOST];
    ck_assert_uint_eq(record_columns(to, 0, &r, 1), 2);
    ck_assert_str_eq(to[0].title, "GB");
    ck_assert_str_eq(to[0].what, "Bytes of all.");
    ck_assert_str_eq(to[1].title, "mean");
    ck_assert_str_eq(to[1].what, "Of all.");
    ck_assert_uint_eq(record_columns(to, 2, &r, 3), 3);
    ck_assert_str_eq(to[2].title, "most");
}

TEST(schema_of_words)
{
    char *text = schema_of(&words_kind);
    contains(text, "\"word\": {\"enum\": [\"a\", \"b\"]}");
    contains(text, "\"none\": {\"enum\": [\"a\", \"b\", null]}");
    contains(text, "\"set\": {\"type\": \"array\", \"items\": {\"enum\": [\"one\", \"four\", \"eight\"]}}");
    contains(text, "\"count\": {\"$ref\": \"#/$defs/count\"}");
    contains(text, "\"required\": [\"schema\", \"mpsim\", \"rows\", \"part\", \"whole\"]");
    free(text);
}

/* ---- rows of several kinds ---- */

static const record_kind *const kinds[] = {&inner_record, &wordy_record, NULL};
static const record_field several_fields[] = {FIELD(LIST, "rows", IN_JSON | FIELD_STREAM, 0, NULL, .either = kinds),
                                              {0}};
static const record_kind several_document = {"document", NULL, 0, several_fields};
static const report_kind several = {"mpsim.test/1", "Test", "Rows of two kinds.", &several_document};

CASE("forms", 20);

TEST(rows_of_several_kinds)
{
    static const wordy word = {0, 0, 8, 0, 0, 7, NULL, {0, 0}};
    char *text = NULL;
    size_t n = 0;
    FILE *to = open_memstream(&text, &n);
    record_writer w = {.kind = &several, .to = to, .style = REPORT_JSON};
    record_begin(&w);
    record_row_of(&w, &inner_record, both);
    record_row_of(&w, &wordy_record, &word);
    record_end(&w);
    ck_assert_int_eq(fclose(to), 0);
    contains(text,
             "\"rows\": [\n {\"part\": 1, \"whole\": 4},\n {\"word\": \"a\", \"none\": \"a\", \"set\": [\"eight\"], "
             "\"empty\": [], \"small\": \"a\", \"count\": 7}]}\n");
    free(text);
    text = schema_of(&several);
    contains(text, "\"rows\": {\"type\": \"array\", \"items\": {\"anyOf\": [{\"$ref\": \"#/$defs/inner\"}, {\"$ref\": "
                   "\"#/$defs/wordy\"}]}}");
    contains(text, "\"line\": {\"anyOf\": [{\"$ref\": \"#/$defs/inner\"}, {\"$ref\": \"#/$defs/wordy\"}]}");
    contains(text, "\"inner\": {\n");
    contains(text, "\"wordy\": {\n");
    free(text);
}

/* ---- several lists; what cells show of numbers that are none ---- */

typedef struct number {
    double real, scale;
    uint64_t part, whole;
    json_t *lists;
} number;

#define AT(member) offsetof(number, member)
static const record_field number_fields[] = {
    FIELD(TEXT, "level", IN_LINE | FIELD_OPTIONAL, AT(lists), NULL),
    FIELD(REAL, "real", IN_ALL, AT(real), NULL, .title = ">real", .lacking = "-"),
    FIELD(REAL, "scale", IN_ALL | FIELD_SCALE, AT(scale), NULL, .title = ">scale"),
    FIELD(SHARE, "part", IN_TREE | FIELD_ZERO, AT(part), NULL, .of = AT(whole), .title = ">part"),
    FIELD(LISTS, "lists", IN_TREE | FIELD_OPTIONAL, AT(lists), NULL),
    {0}};
#undef AT
static const record_kind number_record = {"number", NULL, sizeof(number), number_fields};
static const record_kind *const lines[] = {&inner_record, &number_record, NULL};
static const record_field lists_fields[] = {
    FIELD(LIST, "first", IN_JSON | FIELD_STREAM, 0, NULL, .record = &inner_record, .rows = &number_record,
          .lines = lines),
    FIELD(CHARS, "between", IN_JSON, offsetof(outer, chars), NULL),
    FIELD(LIST, "second", IN_JSON | FIELD_STREAM, 0, NULL, .record = &number_record),
    FIELD(COUNT, "after", IN_JSON, offsetof(outer, count), NULL),
    {0}};
static const record_kind lists_document = {"document", NULL, sizeof(outer), lists_fields};
static const report_kind lists_kind = {"mpsim.test/1", "Test", "Lists.", &lists_document};

static void expect_lists(report_style style, const char *expected)
{
    char *text = NULL;
    size_t n = 0;
    FILE *to = open_memstream(&text, &n);
    record_writer w = {.kind = &lists_kind, .to = to, .style = style, .document = &example};
    const number none = {.real = (double)NAN, .scale = 65536}; /* a share of nothing */
    ck_assert_ptr_nonnull(to);
    record_begin(&w);
    if (style == REPORT_JSON)
        record_row_of(&w, &inner_record, both);
    record_next(&w);
    record_row_of(&w, &number_record, &none);
    record_row_of(&w, &number_record, &none);
    table_print(w.rows, to, "");
    record_end(&w);
    ck_assert_int_eq(fclose(to), 0);
    contains(text, expected);
    free(text);
}

TEST(several_lists)
{
    expect_lists(REPORT_JSON, "\"first\": [\n {\"part\": 1, \"whole\": 4}],\n\"between\": \"chars\",\n\"second\": [\n "
                              "{\"real\": \"NaN\", \"scale\": 65536.0, \"part\": 0},\n {");
    expect_lists(REPORT_JSON, "\"part\": 0}],\n\"after\": 12345}\n");
    expect_lists(REPORT_CSV, "real,scale\nnan,65536\nnan,65536\n");
    expect_lists(REPORT_TEXT, "real  scale  part\n   -   2^16     0\n");
    char *text = schema_of(&lists_kind);
    contains(text, "\"line\": {\"anyOf\": [{\"$ref\": \"#/$defs/inner_line\"}, {\"$ref\": \"#/$defs/number_line\"}]}");
    contains(text, "\"number_line\": {\n      \"type\": \"object\",\n      \"properties\": {\n        \"level\"");
    contains(text, "\"number\": {\n      \"type\": \"object\",\n      \"properties\": {\n        \"real\"");
    contains(text, "\"lists\": {\"type\": \"object\", \"additionalProperties\": {\"type\": \"array\", \"items\": "
                   "{\"type\": \"string\"}}}");
    free(text);
}

/* ---- schemas ---- */

static const report_kind *const reports[] = {&scaler_adaptive_kind,
                                             &advise_report,
                                             &attention_kind,
                                             &calc_kind,
                                             &cast_explain_kind,
                                             &formats_check_kind,
                                             &diff_kind,
                                             &dot_kind,
                                             &explain_kind,
                                             &judge_kind,
                                             &judge_run_kind,
                                             &judge_inputs_report,
                                             &judge_tolerance_report,
                                             &formats_kind,
                                             &info_kind,
                                             &log_kind,
                                             &diff_logprob_kind,
                                             &memory_kind,
                                             &mismatch_kind,
                                             &dot_models_kind,
                                             &dot_pair_kind,
                                             &formats_positions_kind,
                                             &formats_recipes_kind,
                                             &dot_reduce_kind,
                                             &replay_kind,
                                             &scaler_kind,
                                             &scaler_scalers_kind,
                                             &stat_kind,
                                             &train_kind,
                                             &verify_kind};
enum { REPORTS = sizeof reports / sizeof reports[0] };

CASE("schemas", 20);

TEST(schema)
{
    char *text = schema_of(&all_types);
    contains(text, "\"schema\": {\"const\": \"mpsim.test/1\"}");
    contains(text, "\"text\": {\"description\": \"A \\\"word\\\".\", \"enum\": [\"yes, it is\", \"no\"]}");
    contains(text, "\"none\": {\"anyOf\": [{\"type\": \"string\"}, {\"type\": \"null\"}]}");
    contains(text, "\"items\": {\"type\": \"array\", \"items\": {\"$ref\": \"#/$defs/inner\"}}");
    contains(text, "\"required\": [\"schema\", \"mpsim\", \"before\", \"rows\", \"after\"]");
    contains(
        text,
        "\"required\": [\"text\", \"none\", \"chars\", \"truth\", \"flag\", \"number\", \"count\", \"zero\", \"size\", "
        "\"real\", \"real32\", \"in\", \"pointer\", \"lacking\", \"part\", \"whole\", \"items\", \"words\", \"sizes\", \"numbers\", "
        "\"pairs\", \"tally\", \"step\", \"no_step\", \"long\", \"longs\", \"codes\"]");
    contains(text, "\"step\": {\"$ref\": \"#/$defs/count\"}");
    contains(text, "\"no_step\": {\"anyOf\": [{\"$ref\": \"#/$defs/count\"}, {\"type\": \"null\"}]}");
    contains(text, "\"numbers\": {\"type\": \"array\", \"items\": {\"$ref\": \"#/$defs/count\"}}");
    contains(text, "\"pairs\": {\"type\": \"array\", \"items\": {\"type\": \"array\", \"items\": {\"$ref\": "
                   "\"#/$defs/count\"}, \"minItems\": 2, \"maxItems\": 2}}");
    contains(text, "\"tally\": {\"type\": \"object\", \"propertyNames\": {\"enum\": [\"yes, it is\", \"no\"]}, "
                   "\"additionalProperties\": {\"$ref\": \"#/$defs/count\"}}");
    contains(text, "\"longs\": {\"type\": \"array\", \"items\": {\"type\": \"integer\"}}");
    contains(text, "\"reals32\": {\"type\": \"array\", \"items\": {\"$ref\": \"#/$defs/number\"}}");
    contains(text, "\"codes\": {\"type\": \"array\", \"items\": {\"$ref\": \"#/$defs/code\"}}");
    contains(text, "\"extra\": {");
    contains(text, "\"map\": {\"type\": \"object\", \"additionalProperties\": {\"type\": \"string\"}}");
    ck_assert_ptr_null(strstr(text, "\"odd\""));
    free(text);
    text = schema_of(&tree);
    contains(text, "\"branches\": {\"type\": \"array\", \"items\": {\"$ref\": \"#/$defs/branch\"}}");
    contains(text, "\"word\": {\"enum\": [\"apple\", \"pear\", \"fig\", null]}");
    contains(text, "\"set\": {\"type\": \"array\", \"items\": {\"enum\": [\"apple\", \"pear\", \"fig\"]}}");
    contains(text, "\"foreign\": {\"$ref\": \"#/$defs/count\"}");
    contains(text, "\"required\": [\"count\", \"word\", \"set\", \"bytes\"]");
    free(text);
}

/* doc/schema/mpsim.NAME.VERSION.json */
static void path_of(char *path, size_t size, const report_kind *kind)
{
    const char *source = getenv("srcdir");
    const int n = snprintf(path, size, "%s/doc/schema/%s", source ? source : ".", kind->schema);
    ck_assert_int_lt(n, (int)size - 6);
    *strrchr(path, '/') = '.';
    strcat(path, ".json");
}

static char *file_text(const char *path)
{
    char *text = NULL;
    size_t n = 0;
    FILE *file = fopen(path, "r");
    ck_assert_msg(file != NULL, "%s cannot be opened", path);
    ck_assert_int_gt(getdelim(&text, &n, '\0', file), 0);
    fclose(file);
    return text;
}

static void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    ck_assert_msg(file && fputs(text, file) >= 0 && fclose(file) == 0, "%s cannot be written", path);
}

TESTS(schemas, REPORTS)
{
    char path[512];
    char *text = schema_of(reports[_i]);
    path_of(path, sizeof path, reports[_i]);
    if (getenv("MPSIM_WRITE_SCHEMAS"))
        write_text(path, text);
    char *filed = file_text(path);
    ck_assert_msg(strcmp(text, filed) == 0,
                  "%s is not what the table of its fields gives: MPSIM_WRITE_SCHEMAS=1 writes it", path);
    free(filed);
    free(text);
}

TEST_MAIN("record");
