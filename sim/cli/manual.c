/* manual.c -- see manual.h. */
#include "manual.h"

#include "columns.h"
#include "rules.h"

#include "../text/screen.h"

#include <ctype.h>
#include <mpsim/mpsim.h>
#include <stdio.h>
#include <string.h>

/* Text with what roff would take for its own escaped: backslashes, a point or an apostrophe that begins a line, and
 * hyphens, which would become typographic ones and could not be copied. */
static void put(const char *text, size_t n, int begins)
{
    if (begins && n && (text[0] == '.' || text[0] == '\''))
        fputs("\\&", stdout);
    for (size_t i = 0; i < n; i++)
        switch (text[i]) {
        case '\\':
            fputs("\\e", stdout);
            break;
        case '-':
            fputs("\\-", stdout);
            break;
        case '\'':
            fputs("\\(aq", stdout);
            break;
        case '~':
            fputs("\\(ti", stdout);
            break;
        case '^':
            fputs("\\(ha", stdout);
            break;
        case '`':
            fputs("\\(ga", stdout);
            break;
        default:
            putchar(text[i]);
        }
}

static void put_text(const char *text)
{
    put(text, strlen(text), 1);
}

static void put_upper(const char *text)
{
    for (; *text; text++)
        putchar(toupper((unsigned char)*text));
}

static void head(const char *name, const char *verb, const char *summary)
{
    fputs(".TH ", stdout);
    put_upper(name);
    if (verb) {
        fputs("\\-", stdout);
        put_upper(verb);
    }
    printf(" 1 \"\" \"mpsim %s\" \"mpsim\"\n.ad l\n.nh\n.SH NAME\n", mpsim_version());
    put_text(name);
    if (verb) {
        fputs("\\-", stdout);
        put_text(verb);
    }
    fputs(" \\- ", stdout);
    putchar(tolower((unsigned char)summary[0]));
    put(summary + 1, strlen(summary + 1), 0);
    fputs("\n.SH SYNOPSIS\n", stdout);
}

static void section(const char *title)
{
    fputs(".SS ", stdout);
    put_text(title);
    putchar('\n');
}

static void option(const option_row *o)
{
    if (o->type == OPTION_HEADING) {
        section(o->name);
        return;
    }
    if (!option_is(o->type))
        return;
    fputs(".TP\n", stdout);
    if (o->letter)
        printf("\\fB\\-%c\\fR, ", o->letter);
    fputs("\\fB\\-\\-", stdout);
    put_text(o->name);
    fputs("\\fR", stdout);
    if (o->argument) {
        fputs(" \\fI", stdout);
        put_text(o->argument);
        fputs("\\fR", stdout);
    }
    putchar('\n');
    put_text(o->help);
    putchar('\n');
}

/* Which options go together, a sentence a paragraph. */
static void rules(const option_row *table)
{
    char line[4096];
    const char *title = ".SS \"What goes together\"\n";
    for (const option_row *o = table; o->name; o++) {
        rule_say(line, sizeof line, table, o, &rule_options);
        if (!*line)
            continue;
        fputs(*title ? title : ".PP\n", stdout);
        put_text(line);
        fputs(".\n", stdout);
        title = "";
    }
}

static void column(const char *title, const char *what)
{
    fputs(".TP\n\\fB", stdout);
    put_text(title);
    fputs("\\fR\n", stdout);
    put_text(what);
    putchar('\n');
}

/* ---- the text behind the options ---- */

/* The heading that a line is instead of text. */
static const char *heading(const char *line, size_t n)
{
    static const struct {
        const char *line, *heading;
    } table[] = {{"Examples:", "EXAMPLES"}, {"Example:", "EXAMPLES"}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (strlen(table[i].line) == n && memcmp(line, table[i].line, n) == 0)
            return table[i].heading;
    return NULL;
}

static void details(const char *more)
{
    enum { NOTHING, TEXT, VERBATIM } state = NOTHING;
    const char *title = "DETAILS"; /* still to be said */
    for (const char *end; *more; more = *end ? end + 1 : end) {
        end = strchr(more, '\n');
        end = end ? end : more + strlen(more);
        const size_t n = (size_t)(end - more);
        const int verbatim = screen_is_verbatim(more, n);
        if (state == VERBATIM && !verbatim) {
            fputs(".fi\n", stdout);
            state = NOTHING;
        }
        if (n == 0) {
            state = NOTHING;
            continue;
        }
        if (heading(more, n)) {
            title = heading(more, n);
            continue;
        }
        if (title)
            printf(".SH %s\n", title);
        else if (state == NOTHING || (verbatim && state == TEXT))
            fputs(".PP\n", stdout);
        title = NULL;
        if (verbatim && state != VERBATIM)
            fputs(".nf\n", stdout);
        state = verbatim ? VERBATIM : TEXT;
        put(more, n, 1);
        putchar('\n');
    }
    if (state == VERBATIM)
        fputs(".fi\n", stdout);
}

/* ---- pages ---- */

void manual_command(const command *c, const option_row *table, const option_row own[HELP_OWN], const char *more)
{
    head("mpsim", c->name, c->summary);
    printf("\\fBmpsim %s\\fR [\\fIoption\\fR]... ", c->name);
    put_text(c->operands);
    fputs("\n.SH DESCRIPTION\n", stdout);
    put_text(c->summary);
    fputs(".\n.SH OPTIONS\n", stdout);
    for (const option_row *o = table; o->name; o++)
        option(o);
    for (int i = 0; i < HELP_OWN; i++)
        option(&own[i]);
    rules(table);
    columns_each(table, section, column);
    if (more)
        details(more);
    fputs(".SH \"SEE ALSO\"\n.BR mpsim (1)\n", stdout);
}

void manual_program(const program *p)
{
    head(p->name, NULL, p->about);
    fputs("\\fB", stdout);
    put_text(p->usage);
    fputs("\\fR \\fIcommand\\fR [\\fIoption\\fR]... [\\fIoperand\\fR]...\n.SH DESCRIPTION\n", stdout);
    put_text(p->about);
    fputs(".\n.SH COMMANDS\n", stdout);
    for (const command *c = p->commands; c->name; c++) {
        if (c->group)
            printf(".SS %s\n", c->group);
        printf(".TP\n.BR mpsim\\-%s (1)\n", c->name);
        put_text(c->summary);
        fputs(".\n", stdout);
    }
    if (p->topics)
        fputs(".SH TOPICS\n", stdout);
    for (const help_topic *t = p->topics; t && t->name; t++) {
        printf(".TP\n\\fB%s help %s\\fR\n", p->name, t->name);
        put_text(t->summary);
        fputs(".\n", stdout);
    }
    details(p->more);
    fputs(".SH \"SEE ALSO\"\n", stdout);
    for (const command *c = p->commands; c->name; c++)
        printf(".BR mpsim\\-%s (1)%s\n", c->name, c[1].name ? "," : "");
}
