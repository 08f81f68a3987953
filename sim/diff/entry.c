/* entry.c -- see entry.h. */
#include "impl.h"

#include "../array/need.h"
#include "../text/words.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- the record ---- */

#define AT(member) offsetof(entry_place, member)
static const record_field place_fields[] = {
    FIELD(COUNTS, "index", IN_TREE, AT(index), "The element, an index for each axis.", .of = AT(rank)),
    FIELD(COUNTS, "first_index", IN_CSV, AT(index), NULL, .of = AT(rank)),
    FIELD(COUNT, "at", IN_TREE, AT(at), "The same, elements counted in the tensor."),
    FIELD(REAL, "a", IN_ALL, AT(a), NULL),
    FIELD(REAL, "b", IN_ALL, AT(b), NULL),
    FIELD(CODE, "a_code", IN_ALL, AT(a_code), NULL),
    FIELD(CODE, "b_code", IN_ALL, AT(b_code), NULL),
    {0}};
static const record_kind place_record = {"place", NULL, sizeof(entry_place), place_fields};
#undef AT

#define AT(member) offsetof(entry_measure, member)
#define MAX_REL "The largest |B - A|, relative to the larger magnitude of the two."
#define MAX_ULP "The largest distance, in steps between neighbouring numbers of the narrower format."
static const record_field cell_fields[] = {
    FIELD(CHARS, NULL, 0, AT(max_ulp_text), MAX_ULP, .title = ">max ULP", .spare = 2),
    FIELD(REAL, NULL, 0, AT(of.max_rel), MAX_REL, .title = ">max rel", .spare = 1),
    FIELD(REAL, NULL, 0, AT(sqnr), NULL, .title = ">SQNR (dB)"),
    {0}};
static const record_kind cell_record = {"cells", NULL, sizeof(entry_measure), cell_fields};

static const record_field measure_fields[] = {
    FIELD(SHARE, "differ", IN_TREE, AT(of.differ), "Elements that differ.", .title = ">differ", .of = AT(of.count)),
    FIELD(RECORD, "first", IN_TREE, AT(first), "The first element that differs.", .record = &place_record),
    FIELD(RECORD, "first", IN_CSV | FIELD_INLINE, AT(first), NULL, .record = &place_record),
    FIELD(RECORD, "worst", IN_TREE | FIELD_IF | FIELD_OPTIONAL, AT(worst),
          "The first of the elements that are most units in the last place apart.", .of = AT(compared),
          .record = &place_record),
    FIELD(COUNT, "max_ulp", IN_ALL, AT(of.max_ulp), MAX_ULP),
    FIELD(CHARS, "ulp_format", IN_TREE, AT(ulp_format), "The narrower format, whose steps are counted."),
    FIELD(PAIRS, "ulps", IN_TREE, AT(ulps.list), "[first distance of a bin, elements].", .of = AT(ulps.n)),
    FIELD(PAIRS, "bits", IN_TREE | FIELD_OPTIONAL, AT(bits.list), "[bit that differs, elements]; of one format.",
          .of = AT(bits.n)),
    FIELD(REAL, "max_abs_err", IN_ALL, AT(of.max_abs), "The largest |B - A|."),
    FIELD(REAL, "max_rel_err", IN_ALL, AT(of.max_rel), MAX_REL),
    FIELD(REAL, "sqnr_db", IN_ALL, AT(sqnr), "In decibels."),
    FIELD(REAL, "correlation", IN_TREE, AT(correlation), NULL),
    FIELD(COUNT, "larger", IN_TREE, AT(of.larger), "Elements with B above A."),
    FIELD(COUNT, "smaller", IN_TREE, AT(of.smaller), "Elements with B below A."),
    FIELD(COUNTS, "zero", IN_TREE, AT(zero), "In A, in B.", .of = AT(two)),
    FIELD(COUNTS, "nan", IN_TREE, AT(nan), "In A, in B.", .of = AT(two)),
    FIELD(COUNTS, "inf", IN_TREE, AT(inf), "In A, in B.", .of = AT(two)),
    FIELD(RECORD, NULL, FIELD_IF, 0, NULL, .title = "", .of = AT(compared), .record = &cell_record),
    {0}};
static const record_kind measure_record = {"measure", NULL, sizeof(entry_measure), measure_fields};
#undef AT

#define AT(member) offsetof(entry, member)
static const record_field step_fields[] = {
    FIELD(STEP, "step_b", IN_TREE | FIELD_NULL, AT(step_b), "The step of B, if it is another one."), {0}};
static const record_kind step_record = {"step_b", NULL, sizeof(entry), step_fields};

static const record_field tensor_fields[] = {
    FIELD(TEXT, "name_b", IN_CSV, AT(sides[1].name), NULL),
    FIELD(TEXT, "name_b", IN_TREE | FIELD_OPTIONAL, AT(other.name), "The name in B, if it is another one."),
    FIELD(WORD, "matched", IN_ALL | FIELD_NULL, AT(matched), "What A's and B's tensor have in common.",
          .words = diff_match_words),
    FIELD(STEP, "rank", IN_TREE | FIELD_OPTIONAL, AT(told_rank), "Where steps have files of several ranks."),
    FIELD(TEXT, "kind", IN_ALL | FIELD_NULL, AT(kind), NULL, .words = trace_kinds),
    FIELD(TEXT, "dtype", IN_ALL, AT(sides[0].dtype), NULL),
    FIELD(TEXT, "dtype_b", IN_CSV, AT(sides[1].dtype), NULL),
    FIELD(TEXT, "dtype_b", IN_TREE | FIELD_OPTIONAL, AT(other.dtype), "The dtype in B, if it is another one."),
    FIELD(COUNTS, "shape", IN_ALL, AT(sides[0].shape), NULL, .of = AT(sides[0].rank)),
    FIELD(COUNTS, "shape_b", IN_CSV | FIELD_OPTIONAL, AT(sides[1].shape), NULL, .of = AT(sides[1].rank)),
    FIELD(COUNTS, "shape_b", IN_TREE | FIELD_OPTIONAL, AT(other.shape), "The shape in B, if it is another one.",
          .of = AT(sides[1].rank)),
    FIELD(COUNT, "count", IN_ALL, AT(count), "Elements."),
    FIELD(TEXT, "file", IN_TREE, AT(sides[0].file), NULL),
    FIELD(TEXT, "file_b", IN_TREE | FIELD_OPTIONAL, AT(sides[1].file), "The file of B, where A has one, too."),
    {0}};
static const record_kind tensor_record = {"tensor", NULL, sizeof(entry), tensor_fields};

static const record_field entry_fields[] = {
    FIELD(STEP, "step", IN_ALL | FIELD_NULL, AT(step), NULL, .title = ">step"),
    FIELD(RECORD, "", IN_TREE | FIELD_INLINE | FIELD_IF | FIELD_OPTIONAL, 0, NULL, .of = AT(other_step),
          .record = &step_record),
    FIELD(STEP, "rank", IN_CSV, AT(rank), NULL),
    FIELD(TEXT, "name", IN_ALL | FIELD_NULL, AT(name), "Null: a whole step is in A or B alone."),
    FIELD(TEXT, NULL, 0, AT(shown), NULL, .title = "<tensor"),
    FIELD(RECORD, "", IN_ALL | FIELD_INLINE | FIELD_IF | FIELD_OPTIONAL, 0, NULL, .of = AT(some),
          .record = &tensor_record),
    FIELD(WORD, "verdict", IN_ALL, AT(verdict), NULL, .title = "<verdict", .words = diff_verdict_words),
    FIELD(TEXT, "title", IN_TREE | FIELD_OPTIONAL, AT(title), "The verdict in words."),
    FIELD(STEP, "differ", IN_CSV, AT(differ), NULL),
    FIELD(RECORD, "", IN_ALL | FIELD_INLINE | FIELD_IF | FIELD_OPTIONAL, AT(m), NULL, .title = "", .of = AT(measured),
          .record = &measure_record),
    FIELD(TEXT, "evidence", IN_ALL | FIELD_OPTIONAL, AT(evidence), NULL),
    FIELD(TEXT, "format", IN_TREE | FIELD_OPTIONAL, AT(format), "To which one side was rounded."),
    FIELD(TEXT, "mode", IN_TREE | FIELD_OPTIONAL, AT(mode), "How."),
    FIELD(REAL, "scale", IN_TREE | FIELD_OPTIONAL, AT(scale), "B / A."),
    FIELD(INTEGER, "bit", IN_TREE | FIELD_OPTIONAL, AT(bit), "The flipped one, 0 the lowest."),
    FIELD(LONG, "shift", IN_TREE | FIELD_IF | FIELD_OPTIONAL, AT(shift), "In elements.", .of = AT(shifted)),
    {0}};
const record_kind diff_entry_record = {"entry", NULL, sizeof(entry), entry_fields};
#undef AT

/* ---- tensors ---- */

verdict diff_entry_verdict(const sequence_entry *e)
{
    return e->compared ? e->compared->found.verdict : e->missing ? VERDICT_MISSING : VERDICT_EXTRA;
}

static void fill_side(entry_side *s, const side_tensor *t)
{
    *s = (entry_side){.name = need_text(t->name), .dtype = need_text(t->dtype), .rank = t->rank, .file = t->file->path};
    s->shape = need_memory(t->rank + 1, sizeof *s->shape);
    if (t->rank)
        memcpy(s->shape, t->shape, t->rank * sizeof *t->shape);
}

static void fill_other(entry_other *o, const entry_side s[2])
{
    const size_t bytes = s[0].rank * sizeof *s[0].shape;
    o->name = strcmp(s[0].name, s[1].name) ? s[1].name : NULL;
    o->dtype = strcmp(s[0].dtype, s[1].dtype) ? s[1].dtype : NULL;
    o->shape = s[0].rank != s[1].rank || memcmp(s[0].shape, s[1].shape, bytes) ? s[1].shape : NULL;
}

static void fill_tensors(entry *to, const sequence_entry *e)
{
    const side_tensor *x = e->tensors[0] ? e->tensors[0] : e->tensors[1];
    fill_side(&to->sides[0], x);
    if (e->tensors[0] && e->tensors[1]) {
        fill_side(&to->sides[1], e->tensors[1]);
        fill_other(&to->other, to->sides);
    }
    to->some = 1;
    to->name = to->sides[0].name;
    to->kind = x->kind;
    to->count = x->count;
    to->rank = x->file->said.rank;
    to->told_rank = e->several ? to->rank : -1;
    to->matched = (unsigned)e->how - MATCH_NAME;
}

/* ---- measures ---- */

static void put_code(char out[24], const side_tensor *t, uint64_t code)
{
    snprintf(out, 24, "0x%0*" PRIx64, (int)(mpsim_format_code_bytes(t->format) * 2), code);
}

static void fill_place(entry_place *to, const sequence_entry *e, const measure_place *p)
{
    const side_tensor *t = e->tensors[1];
    uint64_t at = p->at;
    to->index = to->own;
    to->rank = t->rank < ENTRY_AXES ? t->rank : ENTRY_AXES;
    to->at = at;
    to->a = p->values[0];
    to->b = p->values[1];
    put_code(to->a_code, e->tensors[0], p->codes[0]);
    put_code(to->b_code, t, p->codes[1]);
    for (size_t k = to->rank; k-- > 0;) {
        to->own[k] = t->shape[k] ? at % t->shape[k] : 0;
        at /= t->shape[k] ? t->shape[k] : 1;
    }
}

/* Of each bin that is not empty. */
static void fill_pairs(entry_pairs *to, const uint64_t *counts, size_t n, int powers)
{
    to->list = to->own;
    for (size_t i = 0; i < n; i++)
        if (counts[i]) {
            uint64_t *pair = to->own + 2 * to->n++;
            pair[0] = !powers ? i : i ? UINT64_C(1) << (i - 1) : 0;
            pair[1] = counts[i];
        }
}

static void fill_ulps(entry_measure *to, const measurer *by)
{
    const measure *m = &to->of;
    fill_pairs(&to->ulps, m->ulps, MEASURE_ULP_BINS, 1);
    if (by->same)
        fill_pairs(&to->bits, m->bits, MEASURE_BITS, 0);
    snprintf(to->ulp_format, sizeof to->ulp_format, "%s", by->narrow.name);
    if (m->max_ulp < 1024)
        text_count(to->max_ulp_text, m->max_ulp);
    else
        text_number(to->max_ulp_text, (double)m->max_ulp);
}

static void fill_measure(entry_measure *to, const sequence_entry *e)
{
    const measure *m = &to->of;
    to->of = e->compared->c.all;
    to->zero = m->zero;
    to->nan = m->nan;
    to->inf = m->inf;
    to->two = 2;
    to->compared = m->compared != 0;
    to->sqnr = diff_measure_sqnr(m);
    to->correlation = diff_measure_correlation(m);
    fill_place(&to->first, e, &m->first);
    if (m->compared)
        fill_place(&to->worst, e, &m->worst);
    fill_ulps(to, &e->compared->c.measurer);
}

/* ---- findings ---- */

static void fill_finding(entry *to, const finding *f)
{
    to->found = *f;
    to->evidence = to->found.evidence;
    to->format = f->format[0] ? to->found.format : NULL;
    to->mode = f->mode;
    to->scale = f->scale;
    to->bit = f->bit < 0 ? FIELD_NONE : f->bit;
    to->shifted = f->shift != 0;
    to->shift = f->shift;
}

static void fill_comparison(entry *to, const sequence_entry *e)
{
    const comparison *c = e->compared;
    const measure *m = &c->c.all;
    to->measured = c->measured && m->differ;
    to->differ = c->measured ? (int64_t)m->differ : c->found.verdict <= VERDICT_CODES ? 0 : -1;
    if (to->measured)
        fill_measure(&to->m, e);
    if (to->verdict != VERDICT_EQUAL)
        fill_finding(to, &c->found);
}

entry *diff_entry_new(const sequence_entry *e)
{
    entry *to = need_memory(1, sizeof *to);
    *to = (entry){.verdict = diff_entry_verdict(e),
                  .step = e->steps[0],
                  .step_b = e->steps[1],
                  .other_step = e->steps[0] != e->steps[1],
                  .rank = -1,
                  .told_rank = -1,
                  .differ = -1,
                  .scale = (double)NAN,
                  .bit = FIELD_NONE,
                  .evidence = e->missing ? "the whole step is in A alone" : "the whole step is in B alone"};
    to->title = to->verdict == VERDICT_EQUAL ? NULL : diff_verdict_titles[to->verdict];
    if (e->tensors[0] || e->tensors[1])
        fill_tensors(to, e);
    if (e->compared) {
        to->evidence = NULL;
        fill_comparison(to, e);
    }
    to->shown = to->told_rank >= 0 ? need_format("%s (rank %" PRId64 ")", to->name, to->rank)
                                   : need_text(to->name ? to->name : "all");
    return to;
}

void diff_entry_free(entry *e)
{
    for (int i = 0; e && i < 2; i++) {
        free(e->sides[i].name);
        free(e->sides[i].dtype);
        free(e->sides[i].shape);
    }
    if (e)
        free(e->shown);
    free(e);
}

/* ---- the first difference, for people ---- */

enum { LIST = 1536 }; /* room for a list of ENTRY_AXES numbers */

static void print_place(FILE *to, const char *title, const entry_place *p)
{
    char text[LIST];
    fprintf(to, "%s%s  A %.9g (%s)  B %.9g (%s)\n", title, text_shape(text, sizeof text, p->index, p->rank), p->a,
            p->a_code, p->b, p->b_code);
}

/* "1: 12, 2: 3, 4: 1" with powers of two from 1,024 on as such; of many, several in one. */
static void print_pairs(FILE *to, const char *title, const entry_pairs *p)
{
    enum { MOST = 9 };
    char text[1024] = "", a[32], b[32];
    const size_t each = (p->n + MOST - 1) / MOST;
    for (size_t i = 0; i < p->n; i += each) {
        uint64_t sum = 0;
        const uint64_t first = p->list[2 * i];
        for (size_t k = i; k < i + each && k < p->n; k++)
            sum += p->list[2 * k + 1];
        if (first >= 1024)
            text_scale(a, (double)first);
        else
            snprintf(a, sizeof a, "%" PRIu64, first);
        text_add(text, sizeof text, "%s%s: %s", *text ? ", " : "", a, text_count(b, sum));
    }
    if (*text)
        text_wrapped(to, title, text);
}

static void print_tensors(FILE *to, const entry *e)
{
    const entry_side *a = &e->sides[0], *b = &e->sides[1];
    char text[256], list[LIST];
    fprintf(to, "\ntensor     %s ", escape_text(text, sizeof text, a->dtype));
    fputs(text_shape(list, sizeof list, a->shape, a->rank), to);
    if (e->other.dtype || e->other.shape) {
        fprintf(to, ", in B %s ", escape_text(text, sizeof text, b->dtype));
        fputs(text_shape(list, sizeof list, b->shape, b->rank), to);
    }
    if (e->other.name)
        fprintf(to, ", in B named %s", escape_text(text, sizeof text, b->name));
    fputc('\n', to);
}

static void print_errors(FILE *to, const entry_measure *m)
{
    const measure *x = &m->of;
    char a[32], b[32], d[32];
    fprintf(to, "elements   %s of %s differ, %s", text_count(a, x->differ), text_count(b, x->count),
            text_share(d, x->differ, x->count));
    fprintf(to, "; largest error %s, relative %s", text_number(a, x->max_abs), text_number(b, x->max_rel));
    fprintf(to, "; SQNR %s dB\n", text_number(d, m->sqnr));
}

static void print_measure(FILE *to, const entry_measure *m)
{
    enum { FEW_BITS = 6 };
    char title[96];
    print_place(to, "first at   ", &m->first);
    if (m->compared && m->worst.at != m->first.at)
        print_place(to, "worst at   ", &m->worst);
    print_errors(to, m);
    snprintf(title, sizeof title, "ULPs       of %s, from: elements  ", m->ulp_format);
    print_pairs(to, title, &m->ulps);
    if (m->bits.n <= FEW_BITS)
        print_pairs(to, "bits       that differ: elements  ", &m->bits);
}

void diff_entry_print(FILE *to, const entry *e)
{
    if (e->some)
        print_tensors(to, e);
    if (e->measured)
        print_measure(to, &e->m);
}
