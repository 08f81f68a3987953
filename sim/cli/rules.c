/* rules.c -- see rules.h. */
#include "rules.h"

#include "../text/words.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { SENTENCE = 2048 };

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
    return p->op ? is_name(p->word, g->texts[i])
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

/* A part without its '!'. */
static void say_part(char *to, size_t size, const part *p)
{
    const int n = atoi(p->word);
    if (p->op == '#')
        text_add(to, size, "more than %d --%s", n, p->name);
    else if (!p->is_operand)
        text_add(to, size, "--%s%s%s", p->name, p->op == '>' ? " above " : p->op ? " " : "", p->word);
    else if (p->op && !is_number(p))
        text_add(to, size, "%s %s", p->name, p->word);
    else if (p->op)
        text_add(to, size, "%s%d %s%s", p->op == '>' ? "more than " : "", n, p->name, n == 1 ? "" : "s");
    else
        text_add(to, size, "%s%s", p->negated ? "" : "a ", p->name);
}

/* Which parts of a term are said: all; those that are missing; or those without a '!', if it has any. */
enum { SAY_ALL, SAY_MISSING, SAY_GIVEN };

/* The parts with a '!', or those without, behind `first`; how many. */
static int say_half(char *to, size_t size, const char *term, int negated, int which, const options_given *g,
                    const char *first, const char *between)
{
    part p;
    int said = 0;
    for (const char *at = term;; at++) {
        at = read_part(&p, at);
        if (p.negated == negated && (which != SAY_MISSING || !part_holds(g, &p))) {
            text_add(to, size, "%s", said++ ? between : first);
            say_part(to, size, &p);
        }
        if (*at != '+')
            return said;
    }
}

/* How many parts without a '!' were said. */
static int say_parts(char *to, size_t size, const char *term, int which, const options_given *g)
{
    const int said = say_half(to, size, term, 0, which, g, "", " and ");
    if (!said || which != SAY_GIVEN)
        say_half(to, size, term, 1, which, g, said ? " without " : which == SAY_MISSING ? "" : "no ", " or ");
    return said;
}

static void say_term(char *to, size_t size, const char *term)
{
    say_parts(to, size, term, SAY_GIVEN, NULL);
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
static int say_list(char *to, size_t size, const option_row *table, const char *list, const char *last)
{
    const char *held = NULL;
    int n = 0;
    for (; *list; list = next_term(list)) {
        if (!is_known(table, list))
            continue;
        if (held) {
            text_add(to, size, "%s", n > 1 ? ", " : "");
            say_parts(to, size, held, SAY_ALL, NULL);
        }
        held = list;
        n++;
    }
    if (n > 1)
        text_add(to, size, " %s ", last);
    if (held)
        say_parts(to, size, held, SAY_ALL, NULL);
    return n;
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
    if (isinf(r->most))
        text_add(to, size, "%s %s", r->above ? "above" : "at least", ends[0]);
    else
        text_add(to, size, "from %s to %s", ends[0], ends[1]);
}

void rule_say(char *to, size_t size, const option_row *table, const option_row *rule)
{
    char left[SENTENCE] = "", right[SENTENCE] = "";
    const char *others = rule->argument;
    const int exclusive = rule->type == OPTION_EXCLUDES && !others;
    const int n = say_list(left, sizeof left, exclusive ? table : NULL, rule->name, "and");
    const int m = others ? say_list(right, sizeof right, NULL, others, "or") : 0;
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

static int say_broken(const command *c, const option_row *rule, const char *line)
{
    return fail(EXIT_USAGE, "%s: %s%s%s", c->name, line, rule->help ? ": " : "", rule->help ? rule->help : "");
}

static int check_exclusive(const command *c, const option_row *rule, const options_given *g)
{
    char line[SENTENCE] = "";
    const char *first = first_held(g, rule->name), *second = first ? first_held(g, next_term(first)) : NULL;
    if (!second)
        return -1;
    say_term(line, sizeof line, first);
    text_add(line, sizeof line, " and ");
    say_term(line, sizeof line, second);
    text_add(line, sizeof line, " exclude each other");
    return say_broken(c, rule, line);
}

static int check_excludes(const command *c, const option_row *rule, const options_given *g)
{
    char line[SENTENCE] = "";
    const char *first = first_held(g, rule->name), *second = first ? first_held(g, rule->argument) : NULL;
    if (!first || (!second && *rule->argument))
        return -1;
    say_term(line, sizeof line, first);
    if (second) {
        text_add(line, sizeof line, " does not go with ");
        say_term(line, sizeof line, second);
    }
    return say_broken(c, rule, line);
}

/* What is needed and not there. */
static int check_needs(const command *c, const option_row *rule, const options_given *g)
{
    char line[SENTENCE] = "";
    const char *first = first_held(g, rule->name);
    if ((*rule->name && !first) || first_held(g, rule->argument))
        return -1;
    if (first) {
        char wants[SENTENCE] = "";
        int positive = 1;
        if (*next_term(rule->argument))
            say_list(wants, sizeof wants, NULL, rule->argument, "or");
        else
            positive = say_parts(wants, sizeof wants, rule->argument, SAY_MISSING, g);
        say_term(line, sizeof line, first);
        text_add(line, sizeof line, " %s %s", positive ? "needs" : "does not go with", wants);
        return say_broken(c, rule, line);
    }
    say_list(line, sizeof line, NULL, rule->argument, "or");
    const char *what = strncmp(line, "a ", 2) == 0 ? line + 2 : line;
    if (isdigit((unsigned char)*line))
        return fail(EXIT_USAGE, "%s: it takes %s; try 'mpsim %s --help'", c->name, line, c->name);
    return rule->help ? fail(EXIT_USAGE, "%s: no %s given: %s", c->name, what, rule->help)
                      : fail(EXIT_USAGE, "%s: no %s given; try 'mpsim %s --help'", c->name, what, c->name);
}

int rules_check(const command *c, const option_row *table, const options_given *g)
{
    int code = -1;
    for (const option_row *o = table; o->name && code < 0; o++)
        if (o->type == OPTION_NEEDS)
            code = check_needs(c, o, g);
        else if (o->type == OPTION_EXCLUDES)
            code = o->argument ? check_excludes(c, o, g) : check_exclusive(c, o, g);
    return code;
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
