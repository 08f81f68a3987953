/* models.c -- see models.h. */
#include "models.h"
#include "../operand/target.h"

#include "../array/need.h"
#include "../cli/options.h"

#include "../text/screen.h"
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
        return fail(EXIT_USAGE, "%s: no model '%s'%s The pattern '%s*' selects all names with that beginning", verb,
                    name, near, row);
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
        return fail(EXIT_USAGE, "%s: model '%s': '%.*s' is given twice, out of range or without effect in this model",
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
        return fail(EXIT_USAGE, "%s: model '%s': a format is wider than binary64, or the name is too long", verb, name);
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

int dot_model_list_make(model_list *l, const char *verb, const char *names, const mpsim_format *fa,
                        const mpsim_format *fb)
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

void dot_model_list_clear(model_list *l)
{
    free(l->items);
    memset(l, 0, sizeof *l);
}

int dot_model_one(mpsim_model *m, const char *verb, const char *name, const mpsim_format *fa, const char *need)
{
    model_list l;
    int code = dot_model_list_make(&l, verb, name, fa, fa);
    if (!code && l.count != 1)
        code = fail(EXIT_USAGE, "%s: '%s' is %zu models; %s", verb, name, l.count, need);
    if (!code)
        *m = l.items[0];
    dot_model_list_clear(&l);
    return code;
}

/* ---- the table ---- */

static const char *const addition_names[] = {[MPSIM_ADDITION_EXACT] = "exact",
                                             [MPSIM_ADDITION_FMA] = "fma",
                                             [MPSIM_ADDITION_MULADD] = "muladd",
                                             [MPSIM_ADDITION_FUSED] = "fused",
                                             [MPSIM_ADDITION_STAGED] = "staged",
                                             [MPSIM_ADDITION_GROUPED] = "grouped",
                                             NULL};
static const char *const trace_order_names[] = {
    [MPSIM_ORDER_SEQUENTIAL] = "sequential", [MPSIM_ORDER_PAIRWISE] = "pairwise", [MPSIM_ORDER_QUADS] = "quads",
    [MPSIM_ORDER_ODD_FIRST] = "odd-first",   [MPSIM_ORDER_LANES] = "lanes",       NULL};
static const char *const alignment_names[] = {
    [MPSIM_ALIGN_TRUNCATE] = "truncate", [MPSIM_ALIGN_FLOOR] = "floor", [MPSIM_ALIGN_NEAREST] = "nearest", NULL};
static const char *const evidence_names[] = {
    [MPSIM_EVIDENCE_DEFINED] = "defined", [MPSIM_EVIDENCE_VECTORS] = "vectors", [MPSIM_EVIDENCE_REPORTED] = "reported",
    [MPSIM_EVIDENCE_MANUAL] = "manual",   [MPSIM_EVIDENCE_NONE] = "none",       NULL};

/* A rounding as "binary32 toward-zero", or short as "binary32 rz"; nearest-even is not said. */
static const char *place_text(char *out, size_t size, const mpsim_rounded *p, int brief)
{
    static const char *const briefly[MPSIM_ROUND_MODES] = {"", "rna", "rz", "up", "down", "odd", "sra", "srb", "src"};
    const mpsim_round_mode mode = (mpsim_round_mode)p->rounding.mode;
    const char *name = brief ? briefly[mode] : mpsim_round_mode_name(mode);
    snprintf(out, size, "%s%s%s", p->format.name, mode ? " " : "", mode ? name : "");
    return out;
}

static const char *const trait_names[] = {"flush-operands", "flush-sums", "filled", "overflow-inf",
                                          "nan-minus",      "plus-zero",  NULL};
enum { TRAITS = sizeof trait_names / sizeof trait_names[0] - 1 };

/* Where something is rounded. */
typedef struct place {
    const char *format, *round;
} place;

/* A model in reports; FIELD_NONE, below 0 and NULL: it has nothing of the kind. */
typedef struct model_row {
    const char *name, *architecture, *instruction, *takes, *operands, *addition, *order, *alignment, *scales, *evidence,
        *unconfirmed, *source;
    int length, fraction, floor, chunk, chunks, normalised, operand_emin, ways, kept, drop, group, block;
    const char *traits[TRAITS], *const *trait_list;
    size_t trait_count;
    place at[4]; /* products, sums, sums of chunks, results */
    const place *product, *accumulator, *outer;
    char sums[96], brief[96]; /* of the accumulator */
} model_row;

static const record_field place_fields[] = {
    FIELD(TEXT, "format", IN_TREE, offsetof(place, format), NULL),
    FIELD(TEXT, "round", IN_TREE, offsetof(place, round), NULL, .words = target_modes),
    {0}};
static const record_kind place_record = {"place", "Where something is rounded.", sizeof(place), place_fields};

#define AT(member) offsetof(model_row, member)
static const record_field model_fields[] = {
    FIELD(TEXT, "name", IN_ALL, AT(name), NULL, .title = "<model"),
    FIELD(TEXT, "architecture", IN_TREE | FIELD_NULL, AT(architecture), NULL),
    FIELD(TEXT, "operands", IN_TREE | FIELD_NULL, AT(takes), "Formats that it takes, a blank between them; null: any."),
    FIELD(TEXT, "operands", IN_CSV, AT(operands), NULL, .title = "<operands"),
    FIELD(TEXT, "addition", IN_ALL, AT(addition), NULL, .words = addition_names),
    FIELD(TEXT, "order", IN_ALL, AT(order), NULL, .words = trace_order_names),
    FIELD(INTEGER, "length", IN_ALL | FIELD_NULL, AT(length), "Products that are added at once; null: all.",
          .title = ">L"),
    FIELD(INTEGER, "fraction", IN_ALL | FIELD_NULL, AT(fraction), "Bits behind the point after alignment.",
          .title = ">F"),
    FIELD(INTEGER, "floor", IN_ALL | FIELD_NULL, AT(floor), "The least exponent of alignment; null: none.",
          .title = ">floor", .spare = 2),
    FIELD(INTEGER, "chunk", IN_ALL, AT(chunk),
          "Products after which a sum is added to an outer one; 0: there is none."),
    FIELD(INTEGER, NULL, 0, AT(chunks), NULL, .title = ">chunk", .spare = 2),
    FIELD(TEXT, "alignment", IN_ALL | FIELD_NULL, AT(alignment), "What happens to bits below `fraction`.",
          .words = alignment_names),
    FIELD(BOOLEAN, "normalised", IN_ALL | FIELD_NULL, AT(normalised),
          "Whether products are normalised before alignment."),
    FIELD(INTEGER, "operand_emin", IN_ALL | FIELD_NULL, AT(operand_emin),
          "The least exponent of an operand; null: its format's."),
    FIELD(CHARS, "accumulator", IN_CSV, AT(sums), NULL),
    FIELD(CHARS, NULL, 0, AT(brief), NULL, .title = "<accumulator"),
    FIELD(TEXT, "result", IN_CSV, AT(at[3].format), NULL, .title = "<result", .spare = 3),
    FIELD(TEXT, "evidence", IN_ALL, AT(evidence), NULL, .title = "<evidence", .words = evidence_names),
    FIELD(TEXT, "instruction", IN_ALL | FIELD_NULL, AT(instruction), NULL),
    FIELD(TEXT, "source", IN_ALL | FIELD_NULL, AT(source), NULL),
    FIELD(TEXT, "unconfirmed", IN_ALL | FIELD_NULL, AT(unconfirmed), "What nobody has compared."),
    FIELD(INTEGER, "ways", IN_ALL | FIELD_NULL, AT(ways), "Of a staged addition."),
    FIELD(INTEGER, "kept", IN_ALL | FIELD_NULL, AT(kept), "Of a staged addition: bits."),
    FIELD(INTEGER, "drop", IN_ALL | FIELD_NULL, AT(drop), "Of a staged addition: bits."),
    FIELD(INTEGER, "group", IN_ALL | FIELD_NULL, AT(group), "Of a grouped addition: products."),
    FIELD(INTEGER, "block", IN_ALL | FIELD_NULL, AT(block), "Products that share a scale."),
    FIELD(TEXT, "scales", IN_ALL | FIELD_NULL, AT(scales), "The format of the scales."),
    FIELD(TEXTS, "traits", IN_TREE, AT(trait_list), NULL, .of = AT(trait_count), .words = trait_names),
    FIELD(RECORD, "product", IN_TREE | FIELD_POINTER | FIELD_OPTIONAL, AT(product), NULL, .record = &place_record),
    FIELD(RECORD, "accumulator", IN_TREE | FIELD_POINTER | FIELD_OPTIONAL, AT(accumulator), NULL,
          .record = &place_record),
    FIELD(RECORD, "outer", IN_TREE | FIELD_POINTER | FIELD_OPTIONAL, AT(outer), "Where chunks are added.",
          .record = &place_record),
    FIELD(RECORD, "result", IN_TREE, AT(at[3]), NULL, .record = &place_record),
    {0}};
#undef AT
static const record_kind model_record = {"model", "A model.", sizeof(model_row), model_fields};
const report_kind dot_models_kind = {
    "mpsim.models/1", "mpsim formats --models: models of matrix instructions",
    "How instructions and libraries add products, as numbers. $defs/line is a line of --ndjson, which "
    "names no schema.",
    REPORT_ROWS("models", &model_record)};

/* Whether the exponent of alignment has a lower bound. */
static int has_floor(const mpsim_model *m)
{
    return m->addition >= MPSIM_ADDITION_FUSED && m->addition != MPSIM_ADDITION_STAGED &&
           m->floor != MPSIM_MODEL_NO_FLOOR;
}

static int number_if(int there, int n)
{
    return there ? n : FIELD_NONE;
}

static model_row row_of(const mpsim_model *m)
{
    const int fused = m->addition == MPSIM_ADDITION_FUSED, staged = m->addition == MPSIM_ADDITION_STAGED;
    const int grouped = m->addition == MPSIM_ADDITION_GROUPED;
    return (model_row){.name = m->name,
                       .architecture = m->architecture,
                       .instruction = m->instruction,
                       .takes = m->operands,
                       .operands = m->operands ? m->operands : "any",
                       .addition = addition_names[m->addition],
                       .order = trace_order_names[m->order],
                       .alignment = fused || grouped ? alignment_names[m->alignment] : NULL,
                       .scales = m->scales,
                       .evidence = evidence_names[m->evidence],
                       .unconfirmed = m->unconfirmed,
                       .source = m->source,
                       .length = number_if(m->length != 0, m->length),
                       .fraction = number_if(fused || staged || grouped, m->fraction),
                       .floor = number_if(has_floor(m), m->floor),
                       .chunk = (int)m->chunk,
                       .chunks = number_if(m->chunk != 0, (int)m->chunk),
                       .normalised = fused ? m->normalised : -1,
                       .operand_emin = number_if(fused && m->operand_emin != MPSIM_MODEL_OWN_EMIN, m->operand_emin),
                       .ways = number_if(staged, m->ways),
                       .kept = number_if(staged, m->kept),
                       .drop = number_if(staged, m->drop),
                       .group = number_if(grouped, m->group),
                       .block = number_if(m->block != 0, m->block)};
}

static void set_places(model_row *row, const mpsim_model *m)
{
    const mpsim_rounded *const at[] = {&m->product, &m->accumulator, &m->outer, &m->result};
    const int sums = m->addition != MPSIM_ADDITION_EXACT || m->chunk || m->length;
    for (size_t i = 0; i < 4; i++)
        row->at[i] = (place){at[i]->format.name, mpsim_round_mode_name((mpsim_round_mode)at[i]->rounding.mode)};
    row->product = m->addition == MPSIM_ADDITION_MULADD ? &row->at[0] : NULL;
    row->accumulator = sums ? &row->at[1] : NULL;
    row->outer = m->chunk ? &row->at[2] : NULL;
    place_text(row->sums, sizeof row->sums, &m->accumulator, 0);
    if (sums)
        place_text(row->brief, sizeof row->brief, &m->accumulator, 1);
}

static void write_model(record_writer *w, const mpsim_model *m)
{
    model_row row = row_of(m);
    set_places(&row, m);
    for (size_t i = 0; i < TRAITS; i++)
        if (m->traits >> i & 1)
            row.traits[row.trait_count++] = trait_names[i];
    row.trait_list = row.traits;
    record_row(w, &row);
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

void dot_models_print(const model_list *l, report_style style, FILE *to)
{
    record_writer w = {.kind = &dot_models_kind, .to = to, .style = style};
    record_begin(&w);
    for (size_t i = 0; i < l->count; i++)
        write_model(&w, &l->items[i]);
    if (style == REPORT_TEXT) {
        table_print(w.rows, to, "");
        screen_text(to, screen_columns(to), legend);
        print_unconfirmed(l, to);
    }
    record_end(&w);
}
