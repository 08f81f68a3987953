/* stacks.c -- which ways give the recorded elements of a stack of products; see stacks.h. */
#include "stacks.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 64, CUTS = 1 << 13, TRIALS = 1 << 16 };

/* A row, a cut, an order, an ending, by their numbers. */
typedef struct trial {
    short row, cut, partial, order, ending, out;
} trial;

typedef struct trials {
    mpsim_model rows[ROWS];
    cut cuts[CUTS];
    trial t[TRIALS];
    size_t models, first, cut, n; /* first: of the cuts of an order */
} trials;

int stacks_read(const json_t *c, stack *s)
{
    *s = (stack){
        .c = c, .form = device_text(c, "form"), .groups = 1, .orders = 1, .out = device_format(device_text(c, "out"))};
    s->operand = strcmp(s->form, "tf32") == 0 ? mpsim_format_find("tf32") : device_format(s->form);
    for (size_t i = 0; i < 4; i++)
        s->streams[i] = (uint64_t)json_integer_value(json_array_get(json_object_get(c, "streams"), i));
    return s->operand && s->out && *device_text(c, "d");
}

/* ---- candidates ---- */

static void collect_rows(trials *all, const stack *s, const char *arch, int software)
{
    all->models = 0;
    for (size_t i = mpsim_model_count(); i-- > 0 && all->models < ROWS;)
        if (mpsim_model_at(&all->rows[all->models], i) == MPSIM_OK &&
            (all->rows[all->models].architecture == NULL) == software &&
            ways_has(&all->rows[all->models], arch, s->operand, s->operand))
            all->models++;
}

static void add_trials(trials *all, const stack *s, trial t)
{
    for (size_t e = 0; e < s->endings; e++) {
        if (all->n == TRIALS || (s->ends[e].narrow && s->out->bits == 32) ||
            (s->ends[e].added == ADDED_BEFORE_PARTS && all->cuts[t.cut].part == 0))
            continue;
        t.ending = (short)e;
        all->t[all->n++] = t;
    }
}

/* The largest depth of a group. */
static size_t deepest(const stack *s, int order)
{
    size_t most = 0, sizes[3];
    for (size_t g = 0; g < s->groups; g++) {
        s->sizes(s, order, g, sizes);
        most = sizes[2] > most ? sizes[2] : most;
    }
    return most;
}

/* Cuts of other orders keep their numbers. */
static void add_cut(trials *all, const cut *c)
{
    for (size_t i = all->first; i < all->cut; i++)
        if (all->cuts[i].part == c->part)
            return;
    if (all->cut < CUTS)
        all->cuts[all->cut++] = *c;
}

/* Those that names of kernels tell, or guesses: they leave out the whole depth, and go on to 64 parts of whole 32s. */
static void find_cuts(trials *all, const stack *s, size_t depth, int guess)
{
    cut cuts[WAYS_CUTS];
    const size_t n = ways_cuts(s->c, depth, guess, cuts);
    all->first = all->cut;
    for (size_t i = (size_t)guess; i < n; i++)
        add_cut(all, &cuts[i]);
    for (size_t parts = 9, last = depth; guess && parts <= 64; parts++) {
        const size_t part = ((depth + parts - 1) / parts + 31) / 32 * 32;
        if (part < last && part < depth / 8)
            add_cut(all, &(cut){.part = part});
        last = part;
    }
}

static void add_order(trials *all, const stack *s, short order)
{
    const int device = json_object_get(s->c, "kernels") != NULL;
    for (size_t row = 0; row < all->models; row++)
        for (size_t c = all->first; c < all->cut; c++)
            for (short partial = 0; partial <= (s->out->bits == 16 && device && all->cuts[c].part > 0); partial++)
                add_trials(all, s, (trial){(short)row, (short)c, partial, order, 0, 0});
}

/* software: rows of no architecture. Orders are outermost: an element is drawn once for each. */
static void collect(trials *all, const json_t *head, const stack *s, int software, int guess)
{
    collect_rows(all, s, ways_architecture(head), software);
    all->n = all->cut = 0;
    for (short order = 0; order < s->orders; order++) {
        if (s->repeats && s->repeats(s, order))
            continue;
        find_cuts(all, s, deepest(s, order), guess);
        add_order(all, s, order);
    }
}

/* ---- an element ---- */

static void draw(const stack *s, int order, spot p, element *e)
{
    size_t sizes[3];
    s->sizes(s, order, p.group, sizes);
    e->fa = e->fb = s->operand;
    e->out = s->out;
    e->k = sizes[2];
    for (size_t k = 0; k < e->k; k++) {
        e->a[k] = s->a(s, order, p, k);
        e->b[k] = s->b(s, order, p, k);
    }
    ways_encode(e);
}

float stacks_finish(const stack *s, const ending *e, spot p, float sum)
{
    const float added = s->added ? s->added(s, p) : 0;
    if (s->scale)
        sum = s->scale(s, (int)(e - s->ends), p, sum);
    return e->after ? e->after(s->out, sum, added) : sum;
}

/* An element by a way; the sum is that of the last call where `same`. */
static uint64_t result(const stack *s, const way *w, const ending *e, spot p, element *x, int same)
{
    static float sum;
    if (!same) {
        const float added = s->added ? s->added(s, p) : 0;
        x->start = e->added == ADDED_BEFORE_PRODUCTS ? added : 0;
        x->onto = e->added == ADDED_BEFORE_PARTS ? added : 0;
        sum = x->k ? ways_whole(w, x) : 0;
    }
    return device_encode(s->out, stacks_finish(s, e, p, sum));
}

static way way_of(const trials *all, const trial *t)
{
    return (way){.m = all->rows[t->row], .cut = all->cuts[t->cut], .partial = t->partial};
}

/* Chunks that take turns fill their parts. */
static int fills(const cut *c, size_t depth)
{
    return !c->turn || (depth % c->part == 0 && c->part % c->turn == 0);
}

/* Whether both have the same sum. */
static int same_sum(const stack *s, const trial *t, const trial *last)
{
    return last && t->row == last->row && t->cut == last->cut && t->partial == last->partial &&
           t->order == last->order && s->ends[t->ending].added <= ADDED_AFTER &&
           s->ends[last->ending].added <= ADDED_AFTER;
}

/* Which trials give place i. */
static size_t judge_place(trials *all, const stack *s, size_t i)
{
    static element e;
    const spot p = s->find(s, device_place(s->c, i));
    const trial *last = NULL;
    size_t left = 0;
    for (size_t j = 0; j < all->n; j++) {
        trial *t = &all->t[j];
        if (t->out)
            continue;
        if (!last || last->order != t->order)
            draw(s, t->order, p, &e);
        const way w = way_of(all, t);
        t->out = !fills(&w.cut, e.k) || result(s, &w, &s->ends[t->ending], p, &e, same_sum(s, t, last)) !=
                                            device_code(device_text(s->c, "d"), i);
        left += !t->out;
        last = t;
    }
    return left;
}

/* ---- the answer ---- */

static void name_trials(const trials *all, const stack *s, device_fits *fits)
{
    for (size_t j = 0; j < all->n; j++) {
        const trial *t = &all->t[j];
        char text[200] = "";
        if (t->out)
            continue;
        if (s->order_name)
            s->order_name(s, t->order, text, sizeof text);
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s", s->ends[t->ending].text);
        const way w = way_of(all, t);
        ways_fit(&w, text, fits);
    }
}

/* The digests of the trials of an order that are left. */
static void add_digests(const trials *all, const stack *s, int order, uint64_t *digests)
{
    for (size_t g = 0; g < s->groups; g++) {
        whole_product *x = whole_open(s, order, g);
        const trial *last = NULL;
        for (size_t j = 0; j < all->n; j++)
            if (!all->t[j].out && all->t[j].order == order) {
                const trial *t = &all->t[j];
                const way w = way_of(all, t);
                digests[j] += whole_digest(x, &w, &s->ends[t->ending], same_sum(s, t, last));
                last = t;
            }
        whole_close(x);
    }
}

static int has_order(const trials *all, int order)
{
    for (size_t j = 0; j < all->n; j++)
        if (!all->t[j].out && all->t[j].order == order)
            return 1;
    return 0;
}

/* Trials that give all places but another digest are out. */
static void judge_digest(trials *all, const stack *s)
{
    static uint64_t digests[TRIALS];
    memset(digests, 0, all->n * sizeof *digests);
    for (int order = 0; order < s->orders; order++)
        if (has_order(all, order))
            add_digests(all, s, order, digests);
    for (size_t j = 0; j < all->n; j++)
        all->t[j].out |= !device_same_digest(s->c, "digest", digests[j]);
}

static size_t judge_sample(trials *all, const stack *s)
{
    const size_t places = device_codes(device_text(s->c, "d"));
    size_t left = all->n;
    for (size_t i = 0; i < places && left > 0; i++)
        left = judge_place(all, s, i);
    return left;
}

/* Multiply-adds of all elements. */
static double products(const stack *s)
{
    double all = 0;
    size_t sizes[3];
    for (size_t g = 0; g < s->groups; g++) {
        s->sizes(s, 0, g, sizes);
        all += (double)sizes[0] * (double)sizes[1] * (double)sizes[2];
    }
    return all;
}

/* Cuts are guessed where no way fits that does without, and names of kernels do not tell. */
void stacks_answer(const json_t *head, const stack *s, char *answer)
{
    static trials all;
    device_fits fits = {.all = 1,
                        .sample = products(s) > device_most_products / 8}; /* several ways, a case a day or two */
    const int guesses = s->guess || !json_object_get(s->c, "kernels");
    for (int software = 0; software < 2; software++)
        for (int guess = 0; guess <= guesses && fits.count == 0; guess++) {
            collect(&all, head, s, software, guess);
            if (judge_sample(&all, s) > 0 && !fits.sample)
                judge_digest(&all, s);
            name_trials(&all, s, &fits);
        }
    device_say_fits(answer, &fits);
    if (json_is_false(json_object_get(s->c, "again")))
        strncat(answer, "; not the same again", DEVICE_ANSWER - strlen(answer) - 1);
}

void stacks_play(json_t *c, const stack *s, const played *by)
{
    static element e;
    way w = {.cut = {.part = by->part}};
    const size_t places = (size_t)json_integer_value(json_array_get(json_object_get(c, "places"), 0));
    char *words = calloc(places, 9), hex[17];
    const ending *end = &s->ends[by->ending];
    uint64_t digest = 0;
    device_need(words && mpsim_model_parse(&w.m, by->row) == MPSIM_OK);
    for (size_t i = 0; i < places; i++) {
        const spot p = s->find(s, device_place(c, i));
        draw(s, by->order, p, &e);
        sprintf(words + strlen(words), "%s%0*x", i ? " " : "", s->out->bits / 4,
                (unsigned)result(s, &w, end, p, &e, 0));
    }
    for (size_t g = 0; g < s->groups; g++) {
        whole_product *x = whole_open(s, by->order, g);
        digest += whole_digest(x, &w, end, 0);
        whole_close(x);
    }
    snprintf(hex, sizeof hex, "%016" PRIx64, digest);
    json_object_set_new(c, "d", json_string(words));
    json_object_set_new(c, "digest", json_string(hex));
    free(words);
}
