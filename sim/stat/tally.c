/* tally.c -- see tally.h. */
#include "tally.h"

#include "../array/array.h"
#include "../text/screen.h"
#include "../text/words.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Up to so many tensors are listed in text without being asked for, if they have no kinds. */
enum { FEW = 30 };

struct keyed {
    const char *kind;
    int64_t step;
    group g;
};

/* ---- grouping ---- */

static int compare_keys(const keyed *a, const keyed *b)
{
    if (a->step != b->step)
        return a->step < b->step ? -1 : 1;
    return trace_kind_rank(a->kind) - trace_kind_rank(b->kind);
}

/* The entry of a key, inserted in order if it is new; NULL without memory, which was told. */
static group *find_group(tally *r, keyed_list *l, const char *kind, int64_t step)
{
    const keyed key = {.kind = kind, .step = step};
    size_t at = 0, end = l->count; /* where it is, or belongs: files come by step, at the end */
    while (at < end) {
        const size_t middle = at + (end - at) / 2;
        if (compare_keys(&l->items[middle], &key) < 0)
            at = middle + 1;
        else
            end = middle;
    }
    if (at < l->count && compare_keys(&l->items[at], &key) == 0)
        return &l->items[at].g;
    keyed fresh = key;
    if (stat_group_init(&fresh.g, r->targets, r->settings->histogram))
        return NULL;
    if (array_room(&l->items, l->count, sizeof *l->items)) {
        stat_group_clear(&fresh.g);
        (void)host_no_memory();
        return NULL;
    }
    keyed *items = l->items;
    memmove(items + at + 1, items + at, (l->count - at) * sizeof *items);
    items[at] = fresh;
    l->count++;
    return &items[at].g;
}

static void clear_groups(keyed_list *l)
{
    for (size_t i = 0; i < l->count; i++)
        stat_group_clear(&l->items[i].g);
    free(l->items);
}

/* ---- tensors ---- */

static int wants(const tally_form *f, stat_level level)
{
    return f->style != REPORT_CSV || strcmp(f->level ? f->level : "tensor", stat_levels[level]) == 0;
}

/* Whether all tensors are listed, and not in text, where few are without being asked for. */
static int lists_all(const tally_form *f)
{
    return f->tensors || f->style != REPORT_TEXT;
}

/* What tells tensors of the same name in several files apart where there is no step. */
static const char *file_and_name(char both[1024], const stat_place *p)
{
    const char *name = p->tensor->name;
    snprintf(both, 1024, "%s%s%s", p->path, name[0] ? ": " : "", name);
    return both;
}

/* An entry of the report; also judges the tensor. In text few are listed without being asked for, but
 * always those with NaN or Inf. */
static void report_tensor(tally *r, const stat_place *p, const group *g)
{
    char both[1024];
    stat_row row = {.level = STAT_TENSOR,
                    .file = p->path,
                    .name = r->show_file && p->step < 0 ? file_and_name(both, p) : p->tensor->name,
                    .kind = p->kind,
                    .step = p->step,
                    .tensor = p->tensor};
    const int broken = stat_report_is_broken(g);
    r->broken += (uint64_t)broken;
    stat_row_fill(&r->rows, &row, g);
    stat_conditions_judge(&r->conditions, &row);
    for (tally_form *f = r->forms; f < r->forms + r->n_forms; f++)
        if (wants(f, STAT_TENSOR) && (lists_all(f) || r->total.tensors <= FEW || (broken && r->broken <= FEW)))
            stat_report_entry(&f->report, &row);
}

void stat_tally_file(tally *r, const char *path, uint64_t tensors)
{
    const input_options *from = &r->settings->from;
    r->files++;
    if (tensors == 0 && r->all > 1 && !from->wanted.match.count && !from->wanted.kinds.count && r->empty++ == 0)
        escape_text(r->first_empty, sizeof r->first_empty, path);
}

void stat_tally_failed(tally *r)
{
    r->failed++;
}

/* Whether a tensor has elements, but none of them along columns. */
static int lacks_columns(const group *of, const block_list *l)
{
    for (size_t i = 0; i < of->n_blocks; i++)
        if (l->items[i].axis != BLOCK_ROWS)
            return of->stats.count > 0 && of->blocks[i].elements == 0;
    return 0;
}

/* The first is named. */
static void see_roundoff(tally *r, const trace_tensor *x, const group *of)
{
    if (of->roundoff && r->rounded++ == 0)
        escape_text(r->first_rounded, sizeof r->first_rounded, x->name);
}

int stat_tally_tensor(tally *r, const stat_place *place, const group *of)
{
    if (!of) {
        r->left_out++;
        return unread_add(&r->unread, place->path, place->tensor);
    }
    group *kind = find_group(r, &r->kinds, place->kind, 0);
    group *at_step = find_group(r, &r->steps, NULL, place->step);
    if (!kind || !at_step)
        return EXIT_IO;
    stat_group_merge(kind, of);
    stat_group_merge(at_step, of);
    stat_group_merge(&r->total, of);
    r->lines += (uint64_t)lacks_columns(of, &r->targets->blocks);
    see_roundoff(r, place->tensor, of);
    report_tensor(r, place, of);
    return 0;
}

/* ---- sums ---- */

/* Rows of sums, each until the next is made. */
static stat_row kind_row(const tally *r, size_t i)
{
    stat_row row = {.level = STAT_KIND, .kind = r->kinds.items[i].kind, .step = -1};
    stat_row_fill(&r->rows, &row, &r->kinds.items[i].g);
    return row;
}

static stat_row step_row(const tally *r, size_t i)
{
    stat_row row = {.level = STAT_STEP, .step = r->steps.items[i].step};
    stat_row_fill(&r->rows, &row, &r->steps.items[i].g);
    return row;
}

static stat_row total_row(const tally *r)
{
    stat_row row = {
        .level = STAT_TOTAL, .step = -1, .failed = r->failed, .unread = &r->unread, .partial = r->partial ? 1 : -1};
    stat_row_fill(&r->rows, &row, &r->total);
    return row;
}

void stat_tally_sums(const tally *r, void (*visit)(void *context, const stat_row *row), void *context)
{
    for (size_t i = 0; i < r->kinds.count; i++) {
        const stat_row row = kind_row(r, i);
        visit(context, &row);
    }
    for (size_t i = 0; i < r->steps.count; i++) {
        const stat_row row = step_row(r, i);
        visit(context, &row);
    }
    const stat_row row = total_row(r);
    visit(context, &row);
}

/* The conditions of --fail-if on sums, once these are known. */
static void judge_sum(void *context, const stat_row *row)
{
    tally *r = context;
    stat_conditions_judge(&r->conditions, row);
}

static void report_kinds(const tally *r, tally_form *f)
{
    stat_report_list(&f->report, STAT_KIND, "By kind");
    for (size_t i = 0; i < r->kinds.count && wants(f, STAT_KIND); i++) {
        const stat_row row = kind_row(r, i);
        stat_report_entry(&f->report, &row);
    }
    stat_report_list_end(&f->report);
}

static void report_steps(const tally *r, tally_form *f)
{
    for (size_t i = 0; i < r->steps.count && wants(f, STAT_STEP); i++) {
        const stat_row row = step_row(r, i);
        stat_report_entry(&f->report, &row);
    }
}

/* Which of the kinds at hand the scales multiply, if there are scales. */
static void print_scaled(FILE *to, const tally *r)
{
    int n[2] = {0, 0}, scales = 0;
    for (size_t i = 0; i < r->targets->count; i++)
        scales |= r->targets->items[i].rounding.scale != 1;
    for (int scaled = 1; scales && scaled >= 0; scaled--)
        for (size_t i = 0; i < r->kinds.count; i++) {
            const char *kind = r->kinds.items[i].kind;
            if (stat_is_scaled(r->settings, kind) != scaled)
                continue;
            fprintf(to, "%s%s",
                    n[scaled]++ ? ", "
                    : scaled    ? "Scaled: "
                    : n[1]      ? "; as they are: "
                                : "Nothing is scaled: ",
                    kind ? kind : "tensors without a kind");
        }
    if (scales)
        fprintf(to, "%s.\n", n[0] ? " (see --scale-kinds)" : "");
}

/* Whether all gradients are numbers of fp16: a cast to it without a scale changes none. */
static int are_of_fp16(const tally *r)
{
    enum { CHANCE = 64 };
    for (size_t i = 0; i < r->kinds.count; i++) {
        const group *g = &r->kinds.items[i].g;
        if (!r->kinds.items[i].kind || strcmp(r->kinds.items[i].kind, "wgrad") != 0 ||
            g->stats.count < CHANCE + g->stats.zero)
            continue;
        for (size_t k = 0; k < stat_group_casts(g); k++) {
            group_cast c;
            stat_group_cast_at(g, r->targets, k, &c);
            if (c.scale == 1 && strcmp(c.to->label, "fp16") == 0)
                return c.stats.counts.inexact == 0;
        }
    }
    return 0;
}

static void print_head(FILE *to, const tally *r)
{
    char a[32], b[32], c[32], d[32], e[64] = "";
    const target *first = r->targets->count ? &r->targets->items[0] : NULL;
    const char *preset = first ? first->preset : "";
    const size_t steps = r->steps.count - (r->steps.items[0].step < 0); /* the first is "none" */
    for (size_t i = 1; i < r->targets->count; i++)
        if (strcmp(preset, r->targets->items[i].preset) != 0)
            preset = "several";
    if (steps)
        snprintf(e, sizeof e, ", %s step%s", text_count(d, steps), text_plural(steps));
    fprintf(to, "%s file%s, %s tensor%s, %s element%s%s", text_count(a, r->files), text_plural(r->files),
            text_count(b, r->total.tensors), text_plural(r->total.tensors), text_count(c, r->total.stats.count),
            text_plural(r->total.stats.count), e);
    if (first)
        fprintf(to, "; rounding %s, preset %s", mpsim_round_mode_name((mpsim_round_mode)first->rounding.mode), preset);
    fputc('\n', to);
    if (r->failed)
        fprintf(to, "%d file%s failed and %s not, or not wholly, in these numbers\n", r->failed,
                text_plural((uint64_t)r->failed), r->failed == 1 ? "is" : "are");
    unread_print(to, &r->unread);
    fputs("Shares are of all elements.\n", to);
    print_scaled(to, r);
    if (are_of_fp16(r))
        screen_text(
            to, screen_columns(to),
            "All weight gradients are numbers of fp16, as GradScaler's backward leaves them before unscale_: if a loss scale\n"
            "multiplied them, these numbers are those of scaled gradients (mpsim advise --loss-scale).\n");
}

/* The first line of a report that was interrupted, and the last. */
static void print_partial(FILE *to, const tally *r)
{
    char a[32], b[32], c[32];
    fprintf(to, "PARTIAL: interrupted; %s of %s file%s begun, %s tensor%s", text_count(a, r->files),
            text_count(b, r->all), text_plural(r->all), text_count(c, r->total.tensors), text_plural(r->total.tensors));
    if (r->cut)
        fprintf(to, ", %s of them in part", text_count(a, r->cut));
    fputc('\n', to);
}

/* For people: what repeats nothing. Without kinds the tensors themselves, if they are few;
 * without several steps only the total; of a single tensor or kind nothing more. */
static void report_text(const tally *r, tally_form *f)
{
    const int kinds = r->kinds.count > 1 || r->kinds.items[0].kind;
    const int list = f->tensors || (!kinds && r->total.tensors <= FEW);
    print_head(f->to, r);
    if (list)
        stat_report_list_end(&f->report);
    else
        stat_report_list_broken(&f->report, r->broken > FEW ? r->broken - FEW : 0);
    if (kinds)
        report_kinds(r, f);
    if (r->steps.count == 1 && ((list && r->total.tensors == 1) || (kinds && r->kinds.count == 1)))
        return;
    if (r->steps.count > 1) {
        stat_report_list(&f->report, STAT_STEP, "By step, and in total");
        report_steps(r, f);
    } else {
        stat_report_list(&f->report, STAT_TOTAL, "In total");
    }
    const stat_row row = total_row(r);
    stat_report_total(&f->report, &row);
    stat_report_list_end(&f->report);
}

/* ---- from begin to end ---- */

int stat_tally_init(tally *r, const char *verb, const stat_settings *settings, const option_list *fail_if,
                    const target_list *targets)
{
    memset(r, 0, sizeof *r);
    r->settings = settings;
    r->targets = targets;
    int code = stat_conditions_make(&r->conditions, verb, fail_if, targets, settings->counts);
    if (!code)
        code = stat_rows_make(&r->rows, targets, settings->counts, settings->without_roundoff);
    return code ? code : stat_group_init(&r->total, targets, settings->histogram);
}

void stat_tally_clear(tally *r)
{
    stat_conditions_clear(&r->conditions);
    stat_config_clear(&r->config);
    stat_rows_clear(&r->rows);
    stat_group_clear(&r->total);
    clear_groups(&r->kinds);
    clear_groups(&r->steps);
    unread_clear(&r->unread);
}

int stat_tally_begin(tally *r, tally_form *forms, size_t n, size_t files, const char *version)
{
    r->forms = forms;
    r->n_forms = n;
    r->show_file = files > 1;
    r->all = files;
    const int code = stat_config_make(&r->config, r->settings, r->targets, version);
    for (tally_form *f = forms; f < forms + n && !code; f++) {
        stat_report_begin(&f->report, f->to, f->sink, f->style, r->targets, &r->config);
        stat_report_list(&f->report, STAT_TENSOR, "By tensor");
    }
    return code;
}

/* What follows the tensors, for programs. */
static void report_data(const tally *r, tally_form *f)
{
    report_kinds(r, f);
    stat_report_list(&f->report, STAT_STEP, NULL);
    report_steps(r, f);
    const stat_row row = total_row(r);
    if (wants(f, STAT_TOTAL))
        stat_report_total(&f->report, &row);
    stat_report_end(&f->report, r->partial);
}

/* For people. */
static void report_all_text(const tally *r, tally_form *f)
{
    if (r->partial)
        print_partial(f->to, r);
    report_text(r, f);
    stat_report_end(&f->report, r->partial);
    if (r->partial) {
        fputc('\n', f->to);
        print_partial(f->to, r);
    }
}

/* What can be done where no tensor is selected, since none has a kind; "". */
static const char *kind_hint(const tally *r, char hint[128])
{
    char kind[16], n[32];
    hint[0] = '\0';
    if (r->in && r->in->without_kind && !r->left_out)
        snprintf(hint, 128, ": %s tensor%s no kind; --map %s says what they are", text_count(n, r->in->without_kind),
                 r->in->without_kind == 1 ? " has" : "s have", input_first_kind(r->in, kind));
    return hint;
}

static int has_sums(const tally *r, const char *names)
{
    char hint[128];
    if (r->total.tensors == 0 && r->partial)
        return fail(r->partial, "stat: %s: interrupted before a tensor was read", names);
    if (r->total.tensors == 0)
        return fail(r->failed ? EXIT_PARTIAL : EXIT_DATA, "stat: %s: no tensor of floating-point numbers %s%s", names,
                    r->left_out || r->failed ? "is left" : "is selected", kind_hint(r, hint));
    return 0;
}

int stat_tally_end(tally *r, int code, const char *names)
{
    r->partial = code > 128 ? code : 0;
    unread_settle(&r->unread);
    if (code == r->partial)
        code = has_sums(r, names);
    if (!code)
        stat_tally_sums(r, judge_sum, r);
    for (tally_form *f = r->forms; f < r->forms + r->n_forms; f++) {
        if (code)
            stat_report_list_drop(&f->report);
        else if (f->style == REPORT_TEXT)
            report_all_text(r, f);
        else
            report_data(r, f);
    }
    return code;
}

/* A gate that could not look at all numbers does not pass. */
static int gate_unseen(const tally *r)
{
    return r->conditions.count ? unread_gate(&r->unread, r->conditions.verb) : 0;
}

int stat_tally_tell(tally *r)
{
    if (r->left_out)
        note("%" PRIu64 " tensor%s without floating-point numbers left out", r->left_out, text_plural(r->left_out));
    input_note_empty(r->first_empty, r->empty);
    if (r->rounded)
        note("%" PRIu64 " element%s of %" PRIu64 " tensor%s nothing but rounding and left out; the first tensor is %s",
             r->total.roundoff, text_plural(r->total.roundoff), r->rounded, r->rounded == 1 ? " are" : "s are",
             r->first_rounded);
    if (r->lines)
        note("%" PRIu64 " tensor%s of one dimension, without columns, ignored along columns", r->lines,
             text_plural(r->lines));
    if (r->partial) {
        note("stat: interrupted: the report is partial");
        return r->partial;
    }
    const int code = stat_conditions_tell(&r->conditions), unseen = gate_unseen(r);
    return code ? code : r->failed ? EXIT_PARTIAL : unseen;
}
