/* rules.c -- see rules.h. */
#include "rules.h"

#include "../text/words.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { SENTENCE = 2048 };

const rule_style rule_options = {"--", " "}, rule_keys = {"", ": "};

/* ---- terms ---- */

/* One part of a term: "!NAME", "NAME=WORD", "NAME>N", "NAME#N". */
typedef struct part {
    char name[40], word[40];
    int negated, is_operand;
    char op; /* '=', '>', '#', or 0 */
} part;

/* The part that `at` begins with; what is behind it. */
static const char *read_part(part *p, const char *at)
{
    p->negated = *at == '!';
    at += p->negated;
    const size_t n = strcspn(at, "=>#+ ");
    snprintf(p->name, sizeof p->name, "%.*s", (int)n, at);
    p->is_operand = isupper((unsigned char)*at) != 0;
    at += n;
    p->op = *at && strchr("=>#", *at) ? *at : '\0';
    at += p->op != '\0';
    const size_t m = strcspn(at, "+ ");
    snprintf(p->word, sizeof p->word, "%.*s", (int)m, at);
    return at + m;
}

static const char *next_term(const char *at)
{
    at += strcspn(at, " ");
    return at + strspn(at, " ");
}

static int is_name(const char *name, const char *in)
{
    return strcmp(name, in) == 0;
}

static int find(const options_given *g, const char *name)
{
    for (int i = 0; i < g->n; i++)
        if (is_name(name, g->rows[i]->name))
            return i;
    return -1;
}

static uint64_t number_of(const option_row *o, const char *text)
{
    uint64_t n = 0;
    switch (o->type) {
    case OPTION_COUNT:
        return *(const uint64_t *)o->value;
    case OPTION_LIST:
    case OPTION_INPUTS:
        return ((const option_list *)o->value)->count;
    default:
        return text && parse_count(&n, text) == 0 ? n : 0;
    }
}

static int option_holds(const options_given *g, const part *p)
{
    const int i = find(g, p->name);
    if (i < 0)
        return 0;
    const option_row *o = g->rows[i];
    if (p->op == '>' || p->op == '#')
        return number_of(o, g->texts[i]) > strtoull(p->word, NULL, 10);
    if (!g->texts[i])
        return 0;
    return p->op ? strcasecmp(p->word, g->texts[i]) == 0
                 : o->type != OPTION_COUNT || *(const uint64_t *)o->value != g->defaults[i];
}

static int is_number(const part *p)
{
    return isdigit((unsigned char)*p->word) != 0;
}

static int operands_hold(const options_given *g, const part *p)
{
    if (p->op != '=')
        return g->operands > atoi(p->word);
    if (is_number(p))
        return g->operands == atoi(p->word);
    for (int i = 0; i < g->operands; i++)
        if (is_name(p->word, g->words[i]))
            return 1;
    return 0;
}

static int part_holds(const options_given *g, const part *p)
{
    return (p->is_operand ? operands_hold(g, p) : option_holds(g, p)) != p->negated;
}

static int term_holds(const options_given *g, const char *term)
{
    part p;
    for (const char *at = term;; at++) {
        at = read_part(&p, at);
        if (!part_holds(g, &p))
            return 0;
        if (*at != '+')
            return 1;
    }
}

/* The first term of the list that holds; or NULL. */
static const char *first_held(const options_given *g, const char *list)
{
    for (; *list; list = next_term(list))
        if (term_holds(g, list))
            return list;
    return NULL;
}

/* ---- sentences ---- */

typedef struct sentence {
    char *to;
    size_t size;
    const rule_style *style;
} sentence;

/* A part without its '!'. */
static void say_part(const sentence *s, const part *p)
{
    const int n = atoi(p->word);
    const char *name = p->is_operand ? "" : s->style->before;
    if (p->op == '#')
        text_add(s->to, s->size, "more than %d %s%s", n, name, p->name);
    else if (!p->is_operand)
        text_add(s->to, s->size, "%s%s%s%s", name, p->name,
                 p->op == '>' ? " above "
                 : p->op      ? s->style->between
                              : "",
                 p->word);
    else if (p->op && !is_number(p))
        text_add(s->to, s->size, "%s %s", p->name, p->word);
    else if (p->op)
        text_add(s->to, s->size, "%s%d %s%s", p->op == '>' ? "more than " : "", n, p->name, n == 1 ? "" : "s");
    else
        text_add(s->to, s->size, "%s%s", p->negated ? "" : "a ", p->name);
}

/* Which parts of a term are said: all; those that are missing; or those without a '!', if it has any. */
enum { SAY_ALL, SAY_MISSING, SAY_GIVEN };

/* The parts with a '!', or those without, behind `first`; how many. */
static int say_half(const sentence *s, const char *term, int negated, int which, const options_given *g,
                    const char *first, const char *between)
{
    part p;
    int said = 0;
    for (const char *at = term;; at++) {
        at = read_part(&p, at);
        if (p.negated == negated && (which != SAY_MISSING || !part_holds(g, &p))) {
            text_add(s->to, s->size, "%s", said++ ? between : first);
            say_part(s, &p);
        }
        if (*at != '+')
            return said;
    }
}

/* How many parts without a '!' were said. */
static int say_parts(const sentence *s, const char *term, int which, const options_given *g)
{
    const int said = say_half(s, term, 0, which, g, "", " and ");
    if (!said || which != SAY_GIVEN)
        say_half(s, term, 1, which, g, said ? " without " : which == SAY_MISSING ? "" : "no ", " or ");
    return said;
}

static void say_term(const sentence *s, const char *term)
{
    say_parts(s, term, SAY_GIVEN, NULL);
}

/* Whether the table, if one is given, has what a term begins with. */
static int is_known(const option_row *table, const char *term)
{
    part p;
    read_part(&p, term);
    if (p.is_operand || !table)
        return 1;
    for (const option_row *o = table; o->name; o++)
        if (option_is(o->type) && is_name(p.name, o->name))
            return 1;
    return 0;
}

/* The terms of a list that the table knows, as "--a, --b or --c"; how many they are. */
static int say_list(const sentence *s, const option_row *table, const char *list, const char *last)
{
    const char *held = NULL;
    int n = 0;
    for (; *list; list = next_term(list)) {
        if (!is_known(table, list))
            continue;
        if (held) {
            text_add(s->to, s->size, "%s", n > 1 ? ", " : "");
            say_parts(s, held, SAY_ALL, NULL);
        }
        held = list;
        n++;
    }
    if (n > 1)
        text_add(s->to, s->size, " %s ", last);
    if (held)
        say_parts(s, held, SAY_ALL, NULL);
    return n;
}

int range_has(const option_range *r, double x)
{
    return (r->above ? x > r->least : x >= r->least) && (r->below ? x < r->most : x <= r->most);
}

void range_say(char *to, size_t size, const option_range *r)
{
    char ends[2][32];
    const double values[2] = {r->least, r->most};
    for (int i = 0; i < 2; i++) {
        int e;
        if (values[i] >= 1 << 16 && frexp(values[i], &e) == 0.5)
            snprintf(ends[i], sizeof ends[i], "2^%d", e - 1);
        else
            snprintf(ends[i], sizeof ends[i], "%.*g", fabs(values[i]) < 1e15 ? 15 : 6, values[i]);
    }
    if (isinf(r->least))
        text_add(to, size, "at most %s", ends[1]);
    else if (isinf(r->most))
        text_add(to, size, "%s %s", r->above ? "above" : "at least", ends[0]);
    else
        text_add(to, size, "from %s to %s%s", ends[0], r->below ? "below " : "", ends[1]);
}

void number_say(char *to, size_t size, int is_whole, const option_range *r)
{
    snprintf(to, size, "%s", is_whole ? "an integer" : "a number");
    if (!r)
        return;
    text_add(to, size, isinf(r->least) || (isinf(r->most) && !r->above) ? " of " : " ");
    range_say(to, size, r);
}

void rule_say(char *to, size_t size, const option_row *table, const option_row *rule, const rule_style *style)
{
    char left[SENTENCE] = "", right[SENTENCE] = "";
    const char *others = rule->argument;
    const int exclusive = rule->type == OPTION_EXCLUDES && !others;
    const int n = say_list(&(sentence){left, sizeof left, style}, exclusive ? table : NULL, rule->name, "and");
    const int m = others ? say_list(&(sentence){right, sizeof right, style}, NULL, others, "or") : 0;
    *to = '\0';
    if (rule->type == OPTION_RANGE && n) {
        text_add(to, size, "%s %s ", left, n > 1 ? "are" : "is");
        range_say(to, size, rule->value);
    } else if (exclusive && n > 1) {
        text_add(to, size, "%s exclude each other", left);
    } else if (rule->type == OPTION_EXCLUDES && n && m) {
        text_add(to, size, "%s %s not go with %s", left, n > 1 ? "do" : "does", right);
    } else if (rule->type == OPTION_NEEDS && n && m) {
        text_add(to, size, "%s need%s %s", left, n > 1 ? "" : "s", right);
    } else if (rule->type == OPTION_NEEDS && m) {
        text_add(to, size, "%s %s needed", right, strtol(right, NULL, 10) > 1 ? "are" : "is"); /* "2 FILEs" */
    }
    if (*to && rule->help)
        text_add(to, size, ": %s", rule->help);
}

/* ---- rules ---- */

/* Whether a rule is broken, which s then says; *held: the term of its name that holds. */
static int is_exclusive_broken(const sentence *s, const option_row *rule, const options_given *g, const char **held)
{
    *held = first_held(g, rule->name);
    const char *second = *held ? first_held(g, next_term(*held)) : NULL;
    if (!second)
        return 0;
    say_term(s, *held);
    text_add(s->to, s->size, " and ");
    say_term(s, second);
    text_add(s->to, s->size, " exclude each other");
    return 1;
}

static int is_exclusion_broken(const sentence *s, const option_row *rule, const options_given *g, const char **held)
{
    *held = first_held(g, rule->name);
    const char *second = *held ? first_held(g, rule->argument) : NULL;
    if (!*held || (!second && *rule->argument))
        return 0;
    say_term(s, *held);
    if (second) {
        text_add(s->to, s->size, " does not go with ");
        say_term(s, second);
    }
    return 1;
}

/* What is needed and not there. */
static int is_need_broken(const sentence *s, const option_row *rule, const options_given *g, const char **held)
{
    char wants[SENTENCE] = "";
    const sentence w = {wants, sizeof wants, s->style};
    int positive = 1;
    *held = first_held(g, rule->name);
    if ((*rule->name && !*held) || first_held(g, rule->argument))
        return 0;
    if (!*held || *next_term(rule->argument))
        say_list(&w, NULL, rule->argument, "or");
    else
        positive = say_parts(&w, rule->argument, SAY_MISSING, g);
    if (*held) {
        say_term(s, *held);
        text_add(s->to, s->size, " %s ", positive ? "needs" : "does not go with");
    }
    text_add(s->to, s->size, "%s", wants);
    return 1;
}

static int is_broken(const sentence *s, const option_row *rule, const options_given *g, const char **held)
{
    if (rule->type == OPTION_NEEDS)
        return is_need_broken(s, rule, g, held);
    if (rule->type != OPTION_EXCLUDES)
        return 0;
    return rule->argument ? is_exclusion_broken(s, rule, g, held) : is_exclusive_broken(s, rule, g, held);
}

const option_row *rules_broken(const option_row *table, const options_given *g, char *text, size_t size,
                               const char **held)
{
    const sentence s = {text, size, g->style};
    *text = '\0';
    for (const option_row *o = table; o->name; o++)
        if (is_broken(&s, o, g, held))
            return o;
    return NULL;
}

int rules_check(const command *c, const option_row *table, const options_given *g)
{
    char line[SENTENCE];
    const char *held = NULL;
    const option_row *rule = rules_broken(table, g, line, sizeof line, &held);
    if (!rule)
        return -1;
    if (held)
        return fail(EXIT_USAGE, "%s: %s%s%s", c->name, line, rule->help ? ": " : "", rule->help ? rule->help : "");
    const char *what = strncmp(line, "a ", 2) == 0 ? line + 2 : line;
    if (isdigit((unsigned char)*line))
        return fail(EXIT_USAGE, "%s: it takes %s; try 'mpsim %s --help'", c->name, line, c->name);
    return rule->help ? fail(EXIT_USAGE, "%s: no %s given: %s", c->name, what, rule->help)
                      : fail(EXIT_USAGE, "%s: no %s given; try 'mpsim %s --help'", c->name, what, c->name);
}

const option_range *range_of(const option_row *table, const char *name)
{
    part p;
    for (const option_row *o = table; o->name; o++)
        for (const char *at = o->name; o->type == OPTION_RANGE && *at; at = next_term(at)) {
            read_part(&p, at);
            if (is_name(p.name, name))
                return o->value;
        }
    return NULL;
}
