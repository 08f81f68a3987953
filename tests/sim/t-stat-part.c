/* t-stat-part.c -- parts of a report: shares of the work are a partition of it; accumulators come back from their
 * bytes as they were, and merge to the same in any order and split; heads that do not fit are refused. */
#include "sim/merge/merge.h"
#include "sim/merge/parts.h"
#include "sim/stat/shard.h"
#include "support/support.h"

#include <float.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- shares ---- */

typedef struct shape {
    uint64_t count, width;
    int whole;
} shape;

/* The tensors of a file, and which element of each is due next, or that the empty one was there. */
typedef struct file {
    shape tensors[6];
    uint64_t next[6];
    int met[6];
    size_t count;
    uint64_t bytes;
} file;

static uint64_t below(uint64_t *state, uint64_t n)
{
    return test_random(state) % n;
}

static void make_file(file *f, uint64_t *state)
{
    static const uint64_t widths[] = {0, 1, 2, 4, 8};
    memset(f, 0, sizeof *f);
    f->count = below(state, 7);
    for (size_t i = 0; i < f->count; i++) {
        f->tensors[i] = (shape){below(state, 4) ? below(state, 60) : 0, widths[below(state, 5)], below(state, 5) == 0};
        f->bytes += f->tensors[i].count * f->tensors[i].width;
    }
}

/* What shard k has of a file: it goes on where the one before ended. */
static void take_share(const share *s, size_t i, file *f)
{
    share_cut cut;
    uint64_t at = 0, first, n;
    stat_share_cut_file(s, i, f->bytes, &cut);
    for (size_t t = 0; t < f->count; t++) {
        const shape *x = &f->tensors[t];
        if (stat_share_cut_tensor(&cut, at, x->count, x->width, x->whole, &first, &n)) {
            ck_assert_uint_eq(first, f->next[t]);
            ck_assert(n > 0 || x->count == 0);
            ck_assert(n == x->count || (!x->whole && x->width));
            ck_assert(!f->met[t] || first > 0);
            f->next[t] = first + n;
            f->met[t] = 1;
        }
        at += x->count * x->width;
    }
}

CASE("shares", 60);

/* Files whose sizes have nothing to do with what is in them, as packed ones. */
TEST(shares_are_a_partition)
{
    enum { FILES = 9 };
    uint64_t state = test_seed();
    for (size_t run = 0; run < test_scaled(20000); run++) {
        file files[FILES];
        uint64_t starts[FILES + 1] = {0};
        int owned[FILES] = {0};
        const size_t n_files = below(&state, FILES + 1);
        const uint64_t n = 1 + below(&state, run % 3 ? 8 : 100);
        for (size_t i = 0; i < n_files; i++) {
            make_file(&files[i], &state);
            starts[i + 1] = starts[i] + (below(&state, 5) ? below(&state, 400) << below(&state, 40) : 0);
        }
        size_t next = 0;
        for (uint64_t k = 1; k <= n; k++) {
            share s;
            stat_share_make(&s, k, n, starts, n_files);
            ck_assert(s.first <= s.last && s.last <= n_files);
            ck_assert(s.first == s.last || s.first == next || s.first + 1 == next);
            for (size_t i = s.first; i < s.last; i++) {
                owned[i] += stat_share_owns(&s, i);
                take_share(&s, i, &files[i]);
            }
            next = s.last > s.first ? s.last : next;
        }
        ck_assert_uint_eq(next, n_files);
        for (size_t i = 0; i < n_files; i++) {
            ck_assert_int_eq(owned[i], 1);
            for (size_t t = 0; t < files[i].count; t++)
                ck_assert(files[i].met[t] && files[i].next[t] == files[i].tensors[t].count);
        }
    }
}

TEST(shares_as_typed)
{
    uint64_t k, n;
    ck_assert(stat_share_parse(&k, &n, "2/7") == 0 && k == 2 && n == 7);
    ck_assert(stat_share_parse(&k, &n, "1000000/1000000") == 0);
    static const char *const bad[] = {"", "/", "1", "1/", "/1", "0/1", "2/1", "1/1000001", "a/2", "1/2/3", "-1/2"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        ck_assert_int_eq(stat_share_parse(&k, &n, bad[i]), -1);
}

/* ---- accumulators ---- */

static target_list targets;

static void make_targets(const char *formats, const char *scales)
{
    ck_assert(target_list_make(&targets, &(target_options){.formats = formats, .scales = scales, .recipes = 1}, "test",
                               "fp16") == 0);
}

/* Numbers of all sizes, with what is none. */
static double any_number(uint64_t *state)
{
    const uint64_t u = test_random(state), kind = below(state, 8);
    return kind == 0   ? 0
           : kind == 1 ? f64_of_bits(u)
           : kind == 2 ? (double)f32_of_bits((uint32_t)u)
                       : (double)(int64_t)u * 0x1p-70;
}

static void account(group *g, const double *x, size_t n, uint64_t first)
{
    const mpsim_rng rng = {5, 6, first};
    mpsim_stats_add(&g->stats, x, n);
    mpsim_histogram_add(g->histogram, x, n);
    size_t casts;
    mpsim_cast_stats *own = stat_group_own(g, &casts);
    ck_assert_uint_eq(casts, g->scaled ? targets.count : targets.formats);
    for (size_t i = 0; i < casts; i++) {
        const target *t = g->scaled ? &targets.items[i] : target_of_format(&targets, i);
        mpsim_rounding r = t->rounding;
        r.scale = g->scaled ? r.scale : 1;
        ck_assert(mpsim_cast_stats_add(&own[i], &t->format, &r, &rng, x, n) == MPSIM_OK);
    }
    for (size_t i = 0; i < targets.blocks.count; i++) /* blocks of one element: any split has the same */
        for (size_t k = 0; k < n; k++) {
            const float element = (float)x[k];
            const mpsim_blocks out = {.stats = &g->blocks[i].stats};
            g->blocks[i].elements++;
            ck_assert(mpsim_block_quantize(&targets.blocks.items[i].recipe, &element, 1, 1, -1, 1, NULL, &out, NULL) ==
                      MPSIM_OK);
        }
}

/* All records of a group in one piece. */
static array_bytes packed(const group *g)
{
    array_bytes b = {0};
    for (int row = 0; row < PACK_ROWS; row++)
        for (size_t i = 0; i < stat_pack_count(row, g); i++)
            stat_pack_put(&b, row, g, i);
    ck_assert(!b.failed);
    return b;
}

/* Record by record, through their bytes. */
static void through_bytes(group *to, const group *from)
{
    stat_pack_begin(to, from->scaled != 0);
    for (int row = 0; row < PACK_ROWS; row++)
        for (size_t i = 0; i < stat_pack_count(row, from); i++) {
            array_bytes b = {0};
            stat_pack_put(&b, row, from, i);
            unsigned char *copy = malloc(b.n + 1); /* with nothing behind */
            ck_assert(copy && !b.failed);
            memcpy(copy, b.p, b.n);
            taker t = {copy, copy + b.n, 0};
            ck_assert_int_eq(stat_pack_take(&t, row, to, i), 0);
            taker shorter = {copy, copy + b.n - 1, 0};
            group other;
            stat_group_init(&other, &targets, 1);
            stat_pack_begin(&other, from->scaled != 0);
            other.stats.count = from->stats.count;
            ck_assert_int_eq(stat_pack_take(&shorter, row, &other, i), -1);
            stat_group_clear(&other);
            free(copy);
            stat_bytes_clear(&b);
        }
}

static void must_be_equal(const group *a, const group *b)
{
    array_bytes x = packed(a), y = packed(b);
    ck_assert(x.n == y.n && memcmp(x.p, y.p, x.n) == 0);
    ck_assert(a->tensors == b->tensors && a->scaled == b->scaled);
    for (size_t i = 0; i < targets.count; i++) /* those that are not written are nothing */
        ck_assert(memcmp(&a->casts[i].counts, &b->casts[i].counts, sizeof a->casts[i].counts) == 0);
    for (size_t i = 0; i < targets.formats; i++)
        ck_assert(memcmp(&a->unscaled[i].counts, &b->unscaled[i].counts, sizeof a->unscaled[i].counts) == 0);
    stat_bytes_clear(&x);
    stat_bytes_clear(&y);
}

CASE("accumulators", 60);

/* Elements in pieces, each through its bytes, merged in any order: as if they had come at once. */
TEST(groups_come_back_and_merge)
{
    enum { MOST = 400, PIECES = 8 };
    uint64_t state = test_seed();
    make_targets("fp16,e4m3@cuda,e2m1,mxfp8:floor,nvfp4,e4m3/tensor", "1,2^10,3");
    for (size_t run = 0; run < test_scaled(300); run++) {
        double x[MOST];
        group whole, pieces[PIECES], sum;
        const size_t n = below(&state, MOST + 1);
        const int scaled = (int)below(&state, 2);
        for (size_t i = 0; i < n; i++)
            x[i] = any_number(&state);
        stat_group_init(&whole, &targets, 1);
        stat_group_init(&sum, &targets, 1);
        stat_pack_begin(&whole, scaled);
        account(&whole, x, n, 0);
        size_t at = 0;
        for (int i = 0; i < PIECES; i++) {
            group piece;
            const size_t m = i == PIECES - 1 ? n - at : below(&state, n - at + 1);
            stat_group_init(&piece, &targets, 1);
            stat_group_init(&pieces[i], &targets, 1);
            stat_pack_begin(&piece, scaled);
            account(&piece, x + at, m, at);
            through_bytes(&pieces[i], &piece);
            must_be_equal(&pieces[i], &piece);
            stat_group_clear(&piece);
            at += m;
        }
        const size_t turn = below(&state, PIECES);
        for (size_t i = 0; i < PIECES; i++)
            stat_group_merge(&sum, &pieces[(i * 3 + turn) % PIECES]);
        sum.tensors = 1;
        sum.scaled = scaled != 0;
        must_be_equal(&sum, &whole);
        for (int i = 0; i < PIECES; i++)
            stat_group_clear(&pieces[i]);
        stat_group_clear(&whole);
        stat_group_clear(&sum);
    }
    target_list_clear(&targets);
}

/* Bytes that are no group: refused, or taken for one that gives the same bytes. */
TEST(any_bytes_are_taken_or_refused)
{
    uint64_t state = test_seed();
    make_targets("fp16,mxfp4", "1");
    group g, from;
    stat_group_init(&g, &targets, 1);
    stat_group_init(&from, &targets, 1);
    const double x[] = {1, -0x1p-1074, 1e308, 3e-5, -7};
    stat_pack_begin(&from, 1);
    account(&from, x, 5, 0);
    for (size_t run = 0; run < test_scaled(20000); run++) {
        const int row = (int)below(&state, PACK_ROWS);
        array_bytes b = {0}, again = {0};
        stat_pack_put(&b, row, &from, 0);
        for (size_t i = 0; i < 1 + run % 3; i++)
            b.p[below(&state, b.n)] ^= (unsigned char)(1 << below(&state, 8));
        taker t = {b.p, b.p + b.n, 0};
        stat_pack_begin(&g, 1);
        g.stats.count = 5;
        if (stat_pack_take(&t, row, &g, 0) == 0) {
            stat_group_merge(&g, &from);
            stat_pack_put(&again, row, &g, 0);
            ck_assert(!again.failed);
        }
        stat_bytes_clear(&b);
        stat_bytes_clear(&again);
    }
    stat_group_clear(&g);
    stat_group_clear(&from);
    target_list_clear(&targets);
}

TEST(numbers_as_bytes)
{
    static const uint64_t counts[] = {0, 1, 0x7f, 0x80, 0x3fff, 0x4000, UINT32_MAX, INT64_MAX, UINT64_MAX};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        array_bytes b = {0};
        stat_bytes_put_count(&b, counts[i]);
        stat_bytes_put_signed(&b, (int64_t)counts[i]);
        stat_bytes_put_text(&b, "text");
        taker t = {b.p, b.p + b.n, 0};
        ck_assert(stat_take_count(&t) == counts[i] && stat_take_signed(&t) == (int64_t)counts[i]);
        ck_assert_str_eq(stat_take_text(&t), "text");
        ck_assert_int_eq(stat_take_end(&t), 0);
        stat_bytes_clear(&b);
    }
    static const unsigned char longer[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02};
    taker t = {longer, longer + sizeof longer, 0};
    ck_assert(stat_take_count(&t) == 0 && t.bad);
}

/* ---- heads ---- */

/* What a call says on standard error. */
static int said(char *text, size_t size, int (*call)(const part_source *), const part_source *sources)
{
    FILE *f = tmpfile();
    ck_assert_ptr_nonnull(f);
    fflush(stderr);
    const int before = dup(STDERR_FILENO);
    ck_assert(before >= 0 && dup2(fileno(f), STDERR_FILENO) >= 0);
    const int code = call(sources);
    fflush(stderr);
    ck_assert(dup2(before, STDERR_FILENO) >= 0);
    close(before);
    rewind(f);
    text[fread(text, 1, size - 1, f)] = '\0';
    fclose(f);
    return code;
}

static int report_two(const part_source *sources)
{
    const stat_form form = {.out.path = "/dev/null"};
    return merge_report("merge", sources, 2, &form);
}

/* Part k of 2 of a bundled trace, in memory, and what `change` makes of its head. */
static part_source part_of(uint64_t k, void (*change)(part_head *))
{
    stat_settings settings = {.to.formats = "e4m3", .counts = 1};
    char *operands[] = {(char *)(uintptr_t)test_source_path("data/charlm/step_000100")};
    shards s;
    char *text = NULL;
    size_t n = 0;
    ck_assert_int_eq(stat_shards_open(&s, &settings, operands, 1, 2), 0);
    FILE *f = open_memstream(&text, &n);
    ck_assert_ptr_nonnull(f);
    const part_head before = s.head;
    if (change)
        change(&s.head);
    ck_assert_int_eq(stat_shards_write(&s, k, f), 0);
    s.head = before;
    fclose(f);
    stat_shards_close(&s);
    return (part_source){.name = k == 1 ? "one" : "two", .bytes = text, .n = n};
}

static void other_version(part_head *h)
{
    h->version = "0.0.1";
}

static part_pair one_format = {"e4m3", "e4m3: bits 8 exponent 4 significand 3 bias 8"};

static void other_format(part_head *h)
{
    h->formats = (part_pairs){&one_format, 1};
}

static part_pair one_word = {"frobnicate", "7"};

static void other_word(part_head *h)
{
    h->words = (part_pairs){&one_word, 1};
}

static void other_bytes(part_head *h)
{
    h->bytes++;
}

static void other_names(part_head *h)
{
    h->digest++;
}

static void other_shards(part_head *h)
{
    h->shards++;
}

CASE("heads", 60);

TEST(heads_that_do_not_fit)
{
    static const struct {
        void (*first)(part_head *), (*second)(part_head *);
        int code;
        const char *says;
    } rows[] = {
        {NULL, NULL, 0, ""},
        {NULL, other_version, 3, "mpsim: two: written by mpsim 0.0.1, one by "},
        {NULL, other_format, 3, "mpsim: two: another definition of the format e4m3: e4m3: bits 8"},
        {other_format, other_format, 3, "mpsim: one: another definition of the format e4m3: e4m3: bits 8"},
        {other_word, other_word, 3, "mpsim: one: unknown option --frobnicate 7"},
        {NULL, other_word, 3, "mpsim: two: other options: with --frobnicate 7, which one is without"},
        {NULL, other_bytes, 3, "mpsim: two: other inputs: "},
        {NULL, other_names, 3, "mpsim: two: other inputs: as many files and bytes"},
        {NULL, other_shards, 3, "mpsim: two: of 3 shards, one of 2"},
        {other_shards, other_shards, 3, "mpsim: one: offset "},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const part_source two[] = {part_of(1, rows[i].first), part_of(2, rows[i].second)};
        char text[2000];
        ck_assert_int_eq(said(text, sizeof text, report_two, two), rows[i].code);
        ck_assert_msg(strncmp(text, rows[i].says, strlen(rows[i].says)) == 0, "%s", text);
        ck_assert_msg(!*text || strchr(text, '\n') == text + strlen(text) - 1, "%s", text);
        free((void *)(uintptr_t)two[0].bytes);
        free((void *)(uintptr_t)two[1].bytes);
    }
}

TEST_MAIN("stat-part");
