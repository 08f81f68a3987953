/* models.c -- see models.h. */
#include "models.h"

#include "../array/need.h"
#include "../cli/options.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

static int append(model_list *l, const mpsim_model *m)
{
    need_room(&l->items, l->count, sizeof *l->items);
    l->items[l->count++] = *m;
    return 0;
}

static int not_found(const char *verb, const char *name)
{
    suggestion s;
    mpsim_model m;
    char row[96];
    snprintf(row, sizeof row, "%.*s", (int)strcspn(name, ":"), name);
    suggestion_init(&s, row);
    for (size_t i = 0; mpsim_model_at(&m, i) == MPSIM_OK; i++) {
        char folded[96];
        fold_word(folded, sizeof folded, m.name);
        if (strcmp(s.word, folded) == 0)
            return fail(EXIT_USAGE, "%s: model '%s': not a format, or a mode without round= (see mpsim dot --help)",
                        verb, name);
        suggestion_consider(&s, m.name);
    }
    const char *near = suggestion_end(&s, "; see mpsim formats --models");
    if (s.kin_count > 1)
        return fail(EXIT_USAGE, "%s: no model '%s'%s The pattern '%s*' takes all that begin so", verb, name, near, row);
    return fail(EXIT_USAGE, "%s: no model '%s'%s", verb, name, near);
}

/* Cut ":KEY=..." out of a name where it stands once: 1, else 0. */
static int cut_change(char *name, const char *key)
{
    char *at = strstr(name, key);
    if (!at || strstr(at + 1, key))
        return 0;
    const char *rest = at + 1 + strcspn(at + 1, ":");
    memmove(at, rest, strlen(rest) + 1);
    return 1;
}

/* Why the order of a name is refused, if it is that; else NULL. */
static const char *order_reason(const char *name)
{
    char plain[128];
    mpsim_model m;
    if (strlen(name) >= sizeof plain)
        return NULL;
    strcpy(plain, name);
    const int pairwise = strstr(name, ":order=pairwise") != NULL;
    const int quads = strstr(name, ":order=quads") != NULL;
    const int odd_first = strstr(name, ":order=odd-first") != NULL, lanes = strstr(name, ":order=lanes") != NULL;
    const int chunk = cut_change(plain, ":chunk="), order = cut_change(plain, ":order=");
    if (lanes)
        (void)cut_change(plain, ":L=");
    if ((!chunk && !order) || mpsim_model_parse(&m, plain) != MPSIM_OK)
        return NULL;
    if (pairwise && m.addition != MPSIM_ADDITION_MULADD)
        return "order=pairwise is for muladd models only";
    if (odd_first && m.addition != MPSIM_ADDITION_FMA && m.addition != MPSIM_ADDITION_MULADD)
        return "order=odd-first is for fma and muladd models only";
    if (lanes)
        return "order=lanes is for fma and muladd models, with chunk= and L=, as in order=lanes:chunk=64:L=8: chunks of 64 products, "
               "summed in 8 lanes";
    if (quads && m.addition != MPSIM_ADDITION_FUSED)
        return "order=quads is for models of tensor cores only";
    if (quads || (!order && m.order == MPSIM_ORDER_QUADS))
        return "order=quads is an order within chunks: it needs chunk=N, a multiple of 4 up to 4096; "
               "without chunks say order=sequential";
    return NULL;
}

/* The keys of changes, as mpsim/dot.h lists them. */
static const char changes[] =
    " acc product outer result round product-round outer-round result-round chunk order flush F L ways kept drop group "
    "floor operand-emin align normalised ";

/* Whether the change of n characters at `at` is all that is wrong with a name. */
static int spoils(const char *name, const char *at, int n)
{
    char without[256];
    mpsim_model m;
    snprintf(without, sizeof without, "%.*s%s", (int)(at - 1 - name), name, at + n);
    return mpsim_model_parse(&m, without) == MPSIM_OK;
}

static int bad_change(const char *verb, const char *name)
{
    char key[64];
    const char *spoiler = NULL;
    for (const char *at = strchr(name, ':'); at; at = strchr(at, ':')) {
        const int n = (int)strcspn(++at, ":");
        snprintf(key, sizeof key, " %.*s ", (int)strcspn(at, ":="), at);
        if (memchr(at, '=', (size_t)n) && !strstr(changes, key))
            return fail(EXIT_USAGE, "%s: model '%s': '%.*s' is not a change; the changes are%.*s", verb, name, n, at,
                        (int)strlen(changes) - 1, changes);
        spoiler = spoils(name, at, n) ? at : spoiler;
    }
    if (spoiler)
        return fail(EXIT_USAGE, "%s: model '%s': '%.*s' comes twice, is out of range or has no effect in this model",
                    verb, name, (int)strcspn(spoiler, ":"), spoiler);
    return fail(EXIT_USAGE, "%s: model '%s': its changes do not go together, or are out of range; the changes are%.*s",
                verb, name, (int)strlen(changes) - 1, changes);
}

static int add_one(model_list *l, const char *verb, const char *name, const mpsim_format *fa, const mpsim_format *fb)
{
    mpsim_model m;
    const char *why;
    switch (mpsim_model_parse(&m, name)) {
    case MPSIM_OK:
        break;
    case MPSIM_ENOTFOUND:
        return not_found(verb, name);
    case MPSIM_ERANGE:
        return fail(EXIT_USAGE, "%s: model '%s': a format outside binary64, or too long a name", verb, name);
    default:
        why = order_reason(name);
        if (why)
            return fail(EXIT_USAGE, "%s: model '%s': %s", verb, name, why);
        return bad_change(verb, name);
    }
    if (fa && !mpsim_model_accepts(&m, fa, fb))
        return fail(EXIT_USAGE, "%s: model '%s' does not take %s and %s but %s", verb, name, fa->name, fb->name,
                    m.operands);
    return append(l, &m);
}

static int add_matching(model_list *l, const char *verb, const char *pattern, const mpsim_format *fa,
                        const mpsim_format *fb)
{
    const int all = strcmp(pattern, "all") == 0;
    mpsim_model m;
    int found = 0;
    for (size_t i = 0; mpsim_model_at(&m, i) == MPSIM_OK; i++) {
        if (!all && fnmatch(pattern, m.name, 0) != 0)
            continue;
        found = 1;
        if (fa && !mpsim_model_accepts(&m, fa, fb))
            continue;
        const int status = append(l, &m);
        if (status)
            return status;
    }
    if (!found && strchr(pattern, ':'))
        return fail(EXIT_USAGE, "%s: '%s': a pattern takes no changes", verb, pattern);
    return found ? 0 : fail(EXIT_USAGE, "%s: no model matches '%s'; see mpsim formats --models", verb, pattern);
}

int model_list_make(model_list *l, const char *verb, const char *names, const mpsim_format *fa, const mpsim_format *fb)
{
    memset(l, 0, sizeof *l);
    if (!*names)
        return fail(EXIT_USAGE, "%s: no model named", verb);
    while (*names) {
        const size_t n = strcspn(names, ",");
        char *name = need_part(names, n);
        const int pattern = strcmp(name, "all") == 0 || strpbrk(name, "*?[") != NULL;
        const int status = pattern ? add_matching(l, verb, name, fa, fb) : add_one(l, verb, name, fa, fb);
        free(name);
        if (status)
            return status;
        names += n + (names[n] == ',');
    }
    return l->count == 0 && fa ? fail(EXIT_USAGE, "%s: none of the models takes %s and %s", verb, fa->name, fb->name)
                               : 0;
}

void model_list_clear(model_list *l)
{
    free(l->items);
    memset(l, 0, sizeof *l);
}

/* ---- the table ---- */

static const char *const addition_names[] = {
    [MPSIM_ADDITION_EXACT] = "exact", [MPSIM_ADDITION_FMA] = "fma",       [MPSIM_ADDITION_MULADD] = "muladd",
    [MPSIM_ADDITION_FUSED] = "fused", [MPSIM_ADDITION_STAGED] = "staged", [MPSIM_ADDITION_GROUPED] = "grouped"};
static const char *const order_names[] = {[MPSIM_ORDER_SEQUENTIAL] = "sequential",
                                          [MPSIM_ORDER_PAIRWISE] = "pairwise",
                                          [MPSIM_ORDER_QUADS] = "quads",
                                          [MPSIM_ORDER_ODD_FIRST] = "odd-first",
                                          [MPSIM_ORDER_LANES] = "lanes"};
static const char *const alignment_names[] = {
    [MPSIM_ALIGN_TRUNCATE] = "truncate", [MPSIM_ALIGN_FLOOR] = "floor", [MPSIM_ALIGN_NEAREST] = "nearest"};
static const char *const evidence_names[] = {[MPSIM_EVIDENCE_DEFINED] = "defined",
                                             [MPSIM_EVIDENCE_VECTORS] = "vectors",
                                             [MPSIM_EVIDENCE_REPORTED] = "reported",
                                             [MPSIM_EVIDENCE_MANUAL] = "manual",
                                             [MPSIM_EVIDENCE_NONE] = "none"};

/* A rounding as "binary32 toward-zero", or short as "binary32 rz"; nearest-even is not said. */
static const char *place_text(char *out, size_t size, const mpsim_rounded *p, int brief)
{
    static const char *const briefly[MPSIM_ROUND_MODES] = {"", "rna", "rz", "up", "down", "odd", "sra", "srb", "src"};
    const mpsim_round_mode mode = (mpsim_round_mode)p->rounding.mode;
    const char *name = brief ? briefly[mode] : mpsim_round_mode_name(mode);
    snprintf(out, size, "%s%s%s", p->format.name, mode ? " " : "", mode ? name : "");
    return out;
}

static void set_place(json_t *v, const char *key, const mpsim_rounded *p)
{
    json_t *place = json_object();
    json_object_set_new(place, "format", json_string(p->format.name));
    json_object_set_new(place, "round", json_string(mpsim_round_mode_name((mpsim_round_mode)p->rounding.mode)));
    json_object_set_new(v, key, place);
}

static json_t *text_or_null(const char *s)
{
    return s ? json_string(s) : json_null();
}

static const char *const trait_names[] = {"flush-operands", "flush-sums", "filled",
                                          "overflow-inf",   "nan-minus",  "plus-zero"};

static json_t *traits_json(unsigned traits)
{
    json_t *list = json_array();
    for (size_t i = 0; i < sizeof trait_names / sizeof trait_names[0]; i++)
        if (traits >> i & 1)
            json_array_append_new(list, json_string(trait_names[i]));
    return list;
}

/* Whether the exponent of alignment has a lower bound. */
static int has_floor(const mpsim_model *m)
{
    return m->addition >= MPSIM_ADDITION_FUSED && m->addition != MPSIM_ADDITION_STAGED &&
           m->floor != MPSIM_MODEL_NO_FLOOR;
}

static json_t *number_if(int there, int n)
{
    return there ? json_integer(n) : json_null();
}

static json_t *model_json(const mpsim_model *m)
{
    const int fused = m->addition == MPSIM_ADDITION_FUSED, staged = m->addition == MPSIM_ADDITION_STAGED;
    const int grouped = m->addition == MPSIM_ADDITION_GROUPED, core = fused || staged || grouped;
    json_t *v = json_object();
    json_object_set_new(v, "name", json_string(m->name));
    json_object_set_new(v, "architecture", text_or_null(m->architecture));
    json_object_set_new(v, "instruction", text_or_null(m->instruction));
    json_object_set_new(v, "operands", text_or_null(m->operands));
    json_object_set_new(v, "addition", json_string(addition_names[m->addition]));
    json_object_set_new(v, "order", json_string(order_names[m->order]));
    json_object_set_new(v, "length", number_if(m->length != 0, m->length));
    json_object_set_new(v, "fraction", number_if(core, m->fraction));
    json_object_set_new(v, "alignment", fused || grouped ? json_string(alignment_names[m->alignment]) : json_null());
    json_object_set_new(v, "normalised", fused ? json_boolean(m->normalised) : json_null());
    json_object_set_new(v, "floor", number_if(has_floor(m), m->floor));
    json_object_set_new(v, "operand_emin",
                        fused && m->operand_emin != MPSIM_MODEL_OWN_EMIN ? json_integer(m->operand_emin) : json_null());
    json_object_set_new(v, "chunk", json_integer(m->chunk));
    json_object_set_new(v, "traits", traits_json(m->traits));
    json_object_set_new(v, "ways", number_if(staged, m->ways));
    json_object_set_new(v, "kept", number_if(staged, m->kept));
    json_object_set_new(v, "drop", number_if(staged, m->drop));
    json_object_set_new(v, "group", number_if(grouped, m->group));
    json_object_set_new(v, "block", number_if(m->block != 0, m->block));
    json_object_set_new(v, "scales", text_or_null(m->scales));
    if (m->addition == MPSIM_ADDITION_MULADD)
        set_place(v, "product", &m->product);
    if (m->addition != MPSIM_ADDITION_EXACT || m->chunk || m->length)
        set_place(v, "accumulator", &m->accumulator);
    if (m->chunk)
        set_place(v, "outer", &m->outer);
    set_place(v, "result", &m->result);
    json_object_set_new(v, "evidence", json_string(evidence_names[m->evidence]));
    json_object_set_new(v, "unconfirmed", text_or_null(m->unconfirmed));
    json_object_set_new(v, "source", text_or_null(m->source));
    return v;
}

static void csv_if(FILE *to, int there, int n)
{
    if (there)
        fprintf(to, "%d", n);
    fputc(',', to);
}

static void print_csv(FILE *to, const mpsim_model *m)
{
    char accumulator[96];
    const int fused = m->addition == MPSIM_ADDITION_FUSED;
    const char *const texts[] = {m->name, m->operands ? m->operands : "any", addition_names[m->addition],
                                 order_names[m->order]};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        csv_text(to, texts[i]);
        fputc(',', to);
    }
    csv_if(to, m->length != 0, m->length);
    csv_if(to, m->addition >= MPSIM_ADDITION_FUSED, m->fraction);
    csv_if(to, has_floor(m), m->floor);
    fprintf(to, "%u,%s,%s,", (unsigned)m->chunk,
            fused || m->addition == MPSIM_ADDITION_GROUPED ? alignment_names[m->alignment] : "",
            fused ? m->normalised ? "yes" : "no" : "");
    if (fused && m->operand_emin != MPSIM_MODEL_OWN_EMIN)
        fprintf(to, "%d", m->operand_emin);
    fputc(',', to);
    csv_text(to, place_text(accumulator, sizeof accumulator, &m->accumulator, 0));
    fputc(',', to);
    csv_text(to, m->result.format.name);
    fprintf(to, ",%s,", evidence_names[m->evidence]);
    csv_text(to, m->instruction ? m->instruction : "");
    fputc(',', to);
    csv_text(to, m->source ? m->source : "");
    fputc(',', to);
    csv_text(to, m->unconfirmed ? m->unconfirmed : "");
    fputc(',', to);
    const int staged = m->addition == MPSIM_ADDITION_STAGED;
    csv_if(to, staged, m->ways);
    csv_if(to, staged, m->kept);
    csv_if(to, staged, m->drop);
    csv_if(to, m->addition == MPSIM_ADDITION_GROUPED, m->group);
    csv_if(to, m->block != 0, m->block);
    csv_text(to, m->scales ? m->scales : "");
    fputc('\n', to);
}

/* A number, or nothing. */
static void cell_if(table *t, int there, int n)
{
    if (there)
        table_cell(t, "%d", n);
    else
        table_cell(t, "%s", "");
}

static void print_row(table *t, const mpsim_model *m)
{
    char text[96];
    table_cell(t, "%s", m->name);
    table_cell(t, "%s", m->operands ? m->operands : "any");
    cell_if(t, m->length != 0, m->length);
    cell_if(t, m->addition >= MPSIM_ADDITION_FUSED, m->fraction);
    cell_if(t, has_floor(m), m->floor);
    cell_if(t, m->chunk != 0, (int)m->chunk);
    table_cell(t, "%s",
               m->addition == MPSIM_ADDITION_EXACT && !m->chunk && !m->length
                   ? ""
                   : place_text(text, sizeof text, &m->accumulator, 1));
    table_cell(t, "%s", m->result.format.name);
    table_cell(t, "%s", evidence_names[m->evidence]);
}

static const char legend[] =
    "\n"
    "L, F       tensor cores: L products and the accumulator are aligned to the largest exponent,\n"
    "           truncated F bits below it, added exactly, rounded once (rz: toward zero)\n"
    "           (AMD CDNA1: exactly, without F; CDNA2: a tree of rounded sums; CDNA3, fp4 with scales of\n"
    "           blocks: lib/include/mpsim/dot.h, _STAGED and _GROUPED);\n"
    "           instructions of CPUs: L sums, product k goes to sum k mod L\n"
    "floor      the exponent of the alignment is not lower\n"
    "chunk      products summed from zero, then added to the result in its format\n"
    "evidence   vectors: equal in every bit to recorded outputs of that hardware (mpsim verify\n"
    "           vectors); reported: found on hardware by the authors of the source, no outputs\n"
    "           compared here; manual: what a manual says, no hardware compared; defined: software;\n"
    "           none: a row with changes\n"
    "Instructions and sources: --json or --csv. Changes, as in fma:bf16 or hopper-fp16-fp32:F=24:\n"
    "mpsim dot --help.\n";

/* Whether a model's list of open questions, separated by "; ", has this one of n letters. */
static int has_question(const mpsim_model *m, const char *question, size_t n)
{
    for (const char *p = m->unconfirmed; p && *p;) {
        const size_t length = strcspn(p, ";");
        if (length == n && memcmp(p, question, n) == 0)
            return 1;
        p += length + (p[length] == ';');
        p += *p == ' ';
    }
    return 0;
}

static void print_names(const model_list *l, const char *question, size_t n, int has, FILE *to)
{
    int column = 4;
    for (size_t i = 0; i < l->count; i++) {
        if (!l->items[i].architecture || has_question(&l->items[i], question, n) != has ||
            (!has && l->items[i].addition != MPSIM_ADDITION_FUSED))
            continue;
        if (column + (int)strlen(l->items[i].name) > 98) {
            fputs("\n   ", to);
            column = 4;
        }
        column += fprintf(to, " %s", l->items[i].name);
    }
}

static void print_question(const model_list *l, const char *question, size_t n, FILE *to)
{
    size_t with = 0, without = 0, others = 0; /* tensor cores; instructions of CPUs */
    for (size_t i = 0; i < l->count; i++)
        if (l->items[i].architecture) {
            const int has = has_question(&l->items[i], question, n);
            if (l->items[i].addition == MPSIM_ADDITION_FUSED)
                *(has ? &with : &without) += 1;
            others += has && l->items[i].addition != MPSIM_ADDITION_FUSED;
        }
    fprintf(to, "  %.*s\n   ", (int)n, question);
    if (without == 0 && !others) {
        fputs(" all of these tensor cores", to);
    } else if (without * 4 < with && !others) {
        fputs(" all of these tensor cores but", to);
        print_names(l, question, n, 0, to);
    } else {
        print_names(l, question, n, 1, to);
    }
    fputc('\n', to);
}

/* What is not settled about the models, each question once. */
static void print_unconfirmed(const model_list *l, FILE *to)
{
    int headed = 0;
    for (size_t i = 0; i < l->count; i++)
        for (const char *p = l->items[i].unconfirmed; p && *p;) {
            const size_t n = strcspn(p, ";");
            size_t first = 0;
            while (!has_question(&l->items[first], p, n))
                first++;
            if (first == i) {
                fputs(headed++ ? "" : "\nNot confirmed:\n", to);
                print_question(l, p, n, to);
            }
            p += n + (p[n] == ';');
            p += *p == ' ';
        }
}

void models_print(const model_list *l, report_style style, FILE *to)
{
    if (style == REPORT_JSON || style == REPORT_NDJSON) {
        const int array = style == REPORT_JSON;
        if (array)
            json_begin(to, "mpsim.models/1");
        fputs(array ? "\"models\": [" : "", to);
        for (size_t i = 0; i < l->count; i++)
            json_item(to, style, i, model_json(&l->items[i]));
        fputs(array ? "]}\n" : "", to);
        return;
    }
    if (style == REPORT_CSV) {
        fputs(
            "name,operands,addition,order,length,fraction,floor,chunk,alignment,normalised,operand_emin,accumulator,result,evidence,"
            "instruction,source,unconfirmed,ways,kept,drop,group,block,scales\n",
            to);
        for (size_t i = 0; i < l->count; i++)
            print_csv(to, &l->items[i]);
        return;
    }
    table *t = table_new("<model|<operands|>L|>F|>floor|>chunk|<accumulator|<result|<evidence");
    for (size_t i = 0; i < l->count; i++)
        print_row(t, &l->items[i]);
    table_print(t, to, "");
    table_free(t);
    fputs(legend, to);
    print_unconfirmed(l, to);
}
