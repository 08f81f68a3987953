/* t-record-read.c -- records: read from JSON and from structs of other records, kept in memory as they are written. */
#include "sim/record/record.h"
#include "support/support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

CASE("reading", 20);

/* ---- reading ---- */

typedef struct grain {
    double weight;
    int64_t step;
} grain;

typedef struct heap {
    const char *name;
    uint64_t count;
    double real;
    int sure, place;
    grain box;
    const grain *grains;
    const char *const *words;
    const double *reals;
    const uint64_t *counts;
    size_t n, n_words, n_reals, n_counts;
} heap;

#define AT(member) offsetof(grain, member)
static const record_field grain_fields[] = {
    FIELD(REAL, "weight", IN_JSON | FIELD_FINITE, AT(weight), NULL), FIELD(STEP, "step", IN_JSON, AT(step), NULL), {0}};
static const record_kind grain_record = {"grain", NULL, sizeof(grain), grain_fields};
#undef AT

#define AT(member) offsetof(heap, member)
static const record_field heap_fields[] = {
    FIELD(TEXT, "name", IN_JSON, AT(name), NULL),
    FIELD(COUNT, "count", IN_JSON, AT(count), NULL),
    FIELD(REAL, "real", IN_JSON, AT(real), NULL),
    FIELD(BOOLEAN, "sure", IN_JSON, AT(sure), NULL),
    FIELD(INTEGER, "place", IN_JSON, AT(place), NULL),
    FIELD(RECORD, "box", IN_JSON, AT(box), NULL, .record = &grain_record),
    FIELD(LIST, "grains", IN_JSON, AT(grains), NULL, .of = AT(n), .record = &grain_record),
    FIELD(TEXTS, "words", IN_JSON, AT(words), NULL, .of = AT(n_words)),
    FIELD(REALS, "reals", IN_JSON, AT(reals), NULL, .of = AT(n_reals)),
    FIELD(COUNTS, "counts", IN_JSON, AT(counts), NULL, .of = AT(n_counts)),
    {0}};
static const record_kind heap_record = {"heap", NULL, sizeof(heap), heap_fields};
#undef AT

static const char heap_needs[] = "name count grains grains.weight box.weight words sure";

/* What both of the texts and the struct below say. */
static void check_heap(const heap *h)
{
    ck_assert_str_eq(h->name, "a");
    ck_assert_uint_eq(h->count, 3);
    ck_assert(isinf(h->real) && h->real < 0);
    ck_assert_int_eq(h->sure, 1);
    ck_assert_int_eq(h->place, -2);
    ck_assert(h->box.weight == 1.5 && h->box.step == 9);
    ck_assert_uint_eq(h->n, 2);
    ck_assert(h->grains[0].weight == 0.5 && h->grains[0].step == 7 && h->grains[1].weight == 2 &&
              h->grains[1].step == -1);
    ck_assert_uint_eq(h->n_words, 2);
    ck_assert_str_eq(h->words[0], "b");
    ck_assert_str_eq(h->words[1], "d");
    ck_assert(h->n_reals == 2 && h->reals[0] == 1 && isnan(h->reals[1]));
    ck_assert(h->n_counts == 1 && h->counts[0] == 5);
}

TEST(reading)
{
    heap h;
    const char *wanted;
    json_t *v = json_loads(
        "{\"name\": \"a\", \"count\": 3, \"real\": \"-Infinity\", \"other\": [], \"sure\": true, \"place\": -2, "
        "\"box\": {\"weight\": 1.5, \"step\": 9}, \"words\": [\"b\", \"d\"], \"reals\": [1, \"NaN\"], \"counts\": [5], "
        "\"grains\": [{\"weight\": 0.5, \"step\": 7}, {\"weight\": 2, \"step\": null}]}",
        0, NULL);
    const record_source from = {.json = v};
    ck_assert_ptr_null(record_read(&heap_record, from, &h, heap_needs, &wanted));
    check_heap(&h);
    record_forget(&heap_record, &h);
    ck_assert_uint_eq(record_items(from, "grains"), 2);
    ck_assert_uint_eq(record_items(from, "box"), 0);
    ck_assert_ptr_null(record_read(&grain_record, record_item(from, "grains", 1), &h, "weight", &wanted));
    ck_assert_str_eq(record_read(&grain_record, record_part(from, "none"), &h, "weight", &wanted), "weight");
    json_decref(v);
}

/* The same as a struct of other types, some of it behind pointers. */
typedef struct store {
    char name[8];
    size_t count;
    float real;
    uint8_t sure;
    int64_t place;
    const grain *box;
    const grain *grains;
    unsigned words;
    const double *reals;
    const uint64_t *counts;
    size_t n, n_counts;
} store;

#define AT(member) offsetof(store, member)
static const char *const letters[] = {"", "b", "c", "d", NULL};
static const record_field part_fields[] = {FIELD(REAL32, "real", IN_ALL, AT(real), NULL),
                                           FIELD(SHARE, "count", IN_CSV, AT(n), NULL, .of = AT(n)),
                                           FIELD(SIZE, "count", IN_JSON, AT(count), NULL),
                                           {0}};
static const record_kind part_record = {"part", NULL, sizeof(store), part_fields};
static const record_field store_fields[] = {
    FIELD(CHARS, "name", IN_ALL, AT(name), NULL),
    FIELD(RECORD, "", IN_ALL | FIELD_INLINE, 0, NULL, .record = &part_record),
    FIELD(FLAG, "sure", IN_JSON, AT(sure), NULL),
    FIELD(LONG, "place", IN_JSON, AT(place), NULL),
    FIELD(RECORD, "box", IN_JSON | FIELD_POINTER, AT(box), NULL, .record = &grain_record),
    FIELD(LIST, "grains", IN_JSON, AT(grains), NULL, .of = AT(n), .record = &grain_record),
    FIELD(SET, "words", IN_JSON, AT(words), NULL, .words = letters),
    FIELD(REALS, "reals", IN_JSON, AT(reals), NULL, .of = AT(n)),
    FIELD(COUNTS, "counts", IN_JSON | FIELD_OPTIONAL, AT(counts), NULL, .of = AT(n_counts)),
    {0}};
static const record_kind store_record = {"store", NULL, sizeof(store), store_fields};
#undef AT

TEST(reading_structs)
{
    heap h;
    const char *wanted;
    const grain box = {1.5, 9}, grains[] = {{0.5, 7}, {2, -1}};
    const double reals[] = {1, (double)NAN};
    const uint64_t counts[] = {5};
    store s = {"a", 3, -(float)INFINITY, 1, -2, &box, grains, 10, reals, counts, 2, 1};
    const record_source from = {.kind = &store_record, .at = &s};
    ck_assert_ptr_null(record_read(&heap_record, from, &h, heap_needs, &wanted));
    check_heap(&h);
    record_forget(&heap_record, &h);
    ck_assert_uint_eq(record_items(from, "words"), 2);
    ck_assert(record_has(from, "grains") && record_has(from, "count") && !record_has(from, "none"));
    ck_assert_ptr_eq(record_item(from, "grains", 1).at, &grains[1]);
    ck_assert_ptr_eq(record_part(from, "box").at, &box);
    s.box = NULL;
    s.counts = NULL;
    ck_assert_str_eq(record_read(&heap_record, from, &h, "box.weight", &wanted), "weight");
    record_forget(&heap_record, &h);
    ck_assert_ptr_null(record_read(&heap_record, from, &h, "", &wanted));
    ck_assert(isnan(h.box.weight) && h.box.step == -1 && !h.counts);
    record_forget(&heap_record, &h);
}

/* ---- keeping ---- */

typedef struct barn {
    uint64_t count;
    const heap *heaps;
    size_t n;
} barn;

#define AT(member) offsetof(barn, member)
static const record_field barn_fields[] = {
    FIELD(COUNT, "count", IN_JSON, AT(count), NULL),
    FIELD(LIST, "heaps", IN_JSON, AT(heaps), NULL, .of = AT(n), .record = &heap_record),
    {0}};
static const record_kind barn_record = {"barn", NULL, sizeof(barn), barn_fields};
#undef AT

/* What writes them: a document whose items have rows of their own. */
static const record_field writes_item[] = {
    FIELD(CHARS, "name", IN_ALL, offsetof(store, name), NULL),
    FIELD(LIST, "grains", IN_JSON | FIELD_STREAM, 0, NULL, .record = &grain_record),
    {0}};
static const record_kind item_kind = {"item", NULL, sizeof(store), writes_item};
static const record_field writes_document[] = {
    FIELD(LIST, "heaps", IN_JSON | FIELD_STREAM, 0, NULL, .record = &item_kind),
    FIELD(SIZE, "count", IN_JSON, offsetof(store, count), NULL),
    {0}};
static const record_kind document_kind = {"document", NULL, sizeof(store), writes_document};
static const report_kind barn_kind = {"mpsim.barn/1", "barn", "A barn.", &document_kind};

/* Rows that are gone when the report ends, as those of a report's writer are. */
TEST(keeping)
{
    record_keep k;
    store s = {.name = "x", .count = 3};
    record_keep_begin(&k, &barn_record);
    record_writer w = {.kind = &barn_kind, .style = REPORT_JSON, .sink = &k.sink, .document = &s};
    record_begin(&w);
    for (int i = 0; i < 3; i++) {
        snprintf(s.name, sizeof s.name, "%c", 'a' + i % 2);
        record_open(&w, &s);
        for (int n = 0; n < i; n++) {
            const grain g = {n, i};
            record_row(&w, &g);
        }
        record_close(&w, &s);
    }
    record_end(&w);
    memset(&s, 0, sizeof s);
    const barn *b = (const barn *)(const void *)k.at;
    ck_assert_ptr_null(k.bad);
    ck_assert(b->count == 3 && b->n == 3 && b->heaps[0].n == 0 && b->heaps[1].n == 1 && b->heaps[2].n == 2);
    ck_assert(b->heaps[2].grains[1].weight == 1 && b->heaps[2].grains[1].step == 2);
    ck_assert_str_eq(b->heaps[1].name, "b");
    ck_assert_ptr_eq(b->heaps[0].name, b->heaps[2].name);
    record_keep_clear(&k);
}

/* What is not as it has to be; "": all is. */
static const struct misread {
    const char *text, *needs, *bad, *wanted;
} misread[] = {
    {"{}", "", "", NULL},
    {"[]", "count", "count", "a count"},
    {"{\"count\": null}", "", "", NULL},
    {"{\"count\": null}", "count", "count", "a count"},
    {"{\"count\": -1}", "", "count", "a count"},
    {"{\"count\": 1.0}", "", "count", "a count"},
    {"{\"name\": 1}", "", "name", "a string"},
    {"{\"real\": \"inf\"}", "", "real", "a number"},
    {"{\"box\": []}", "", "box", "an object"},
    {"{}", "box", "box", "an object"},
    {"{}", "box.*", "weight", "a magnitude"},
    {"{\"box\": {\"weight\": 1}}", "box.*", "step", "a count"},
    {"{\"box\": {\"weight\": 1}}", "box.weight", "", NULL},
    {"{\"sure\": 1}", "", "sure", "a boolean"},
    {"{\"place\": 3000000000}", "", "place", "an integer"},
    {"{\"place\": 1.5}", "", "place", "an integer"},
    {"{\"words\": [\"a\", 1]}", "", "words", "an array of strings"},
    {"{\"words\": null}", "words", "words", "an array of strings"},
    {"{\"reals\": [\"x\"]}", "", "reals", "an array of numbers"},
    {"{\"counts\": [1, -1]}", "", "counts", "an array of counts"},
    {"{\"grains\": {}}", "", "grains", "an array"},
    {"{}", "grains.weight", "", NULL},
    {"{\"grains\": [{}]}", "grains.weight", "weight", "a magnitude"},
    {"{\"grains\": [{}]}", "weight grains.weigh", "", NULL},
    {"{\"grains\": [{\"weight\": -1}]}", "", "weight", "a magnitude"},
    {"{\"grains\": [{\"weight\": \"Infinity\"}]}", "", "weight", "a magnitude"},
    {"{\"grains\": [{\"step\": 1}, 2]}", "grains.step", "step", "a count"},
};

TESTS(misreading, sizeof misread / sizeof *misread)
{
    const struct misread *m = &misread[_i];
    heap h;
    const char *wanted = NULL;
    json_t *v = json_loads(m->text, 0, NULL);
    const char *bad = record_read(&heap_record, (record_source){.json = v}, &h, m->needs, &wanted);
    ck_assert_str_eq(bad ? bad : "", m->bad);
    if (bad)
        ck_assert_str_eq(wanted, m->wanted);
    else
        ck_assert(isnan(h.real));
    record_forget(&heap_record, &h);
    json_decref(v);
}

TEST_MAIN("record-read");
