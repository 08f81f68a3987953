/* completion.c -- see completion.h. */
#include "completion.h"

#include "../text/words.h"

#include <stdio.h>
#include <string.h>

/* What an option's argument is, as far as a shell can help. */
typedef enum argument {
    ARGUMENT_NONE,
    ARGUMENT_ANY,
    ARGUMENT_FILE,
    ARGUMENT_FORMAT, /* a name that `mpsim formats` knows, or several with commas between */
    ARGUMENT_CHOICE  /* one of the words that the option's `argument` lists: inf|saturate */
} argument;

static argument argument_of(const option_row *o)
{
    if (!o->argument)
        return ARGUMENT_NONE;
    if (option_is_path(o->type))
        return ARGUMENT_FILE;
    if (strchr(o->argument, '|'))
        return ARGUMENT_CHOICE;
    if (strcmp(o->argument, "FORMAT") == 0 || strcmp(o->name, "format") == 0)
        return ARGUMENT_FORMAT;
    return ARGUMENT_ANY;
}

/* Whether the operands of a command are files. */
static int takes_files(const command *c)
{
    static const char *const files[] = {"FILE", "TRACE", "PART", "REPORT", "A B"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (strstr(c->operands, files[i]))
            return 1;
    return 0;
}

/* The choices of "inf|saturate", with blanks between. */
static void put_choices(const char *choices)
{
    for (; *choices; choices++)
        putchar(*choices == '|' ? ' ' : *choices);
}

/* The first words of what an option does, to the first mark behind which details follow, within single quotes. Brackets,
 * which end such a text in zsh, are left out. */
static void put_about(const char *help)
{
    size_t n = strcspn(help, ";(");
    const char *colon = strstr(help, ": "), *example = strstr(help, ", as ");
    n = colon && (size_t)(colon - help) < n ? (size_t)(colon - help) : n;
    n = example && (size_t)(example - help) < n ? (size_t)(example - help) : n;
    while (n && help[n - 1] == ' ')
        n--;
    for (size_t i = 0; i < n; i++)
        if (help[i] == '\'')
            fputs("'\\''", stdout);
        else if (!strchr("[]\\", help[i]))
            putchar(help[i]);
}

/* ---- a row of each shell ---- */

/* The table, then the command's own, headings left out. */
static void each(const option_row *table, const option_row own[HELP_OWN],
                 void (*put)(const command *, const option_row *), const command *c)
{
    for (const option_row *o = table; o->name; o++)
        if (option_is(o->type))
            put(c, o);
    for (int i = 0; i < HELP_OWN; i++)
        put(c, &own[i]);
}

static void bash_name(const option_row *o)
{
    if (o->letter)
        printf("-%c|", o->letter);
    printf("--%s)", o->name);
}

static void bash_argument(const command *c, const option_row *o)
{
    (void)c;
    const argument a = argument_of(o);
    if (a == ARGUMENT_NONE)
        return;
    fputs("        ", stdout);
    bash_name(o);
    if (a == ARGUMENT_FILE)
        fputs(" what=files", stdout);
    else if (a == ARGUMENT_FORMAT)
        fputs(" what=formats", stdout);
    else if (a == ARGUMENT_CHOICE) {
        fputs(" words='", stdout);
        put_choices(o->argument);
        fputs("' what=words", stdout);
    } else
        fputs(" what=nothing", stdout);
    fputs(" ;;\n", stdout);
}

static void bash_command(const command *c, const option_row *table, const option_row own[HELP_OWN])
{
    printf("    %s)\n        options='", c->name);
    const char *between = "";
    for (const option_row *o = table; o->name; o++)
        if (option_is(o->type)) {
            printf("%s--%s", between, o->name);
            between = " ";
        }
    for (int i = 0; i < HELP_OWN; i++)
        printf(" --%s", own[i].name);
    printf("'\n        what=%s\n        case $before in\n", takes_files(c) ? "files" : "nothing");
    each(table, own, bash_argument, c);
    fputs("        esac ;;\n", stdout);
}

static void zsh_option(const command *c, const option_row *o)
{
    (void)c;
    fputs(" \\\n            '", stdout);
    if (o->letter)
        printf("(-%c --%s)'{-%c,--%s}'", o->letter, o->name, o->letter, o->name);
    else
        printf("--%s", o->name);
    putchar('[');
    put_about(o->help);
    putchar(']');
    switch (argument_of(o)) {
    case ARGUMENT_NONE:
        break;
    case ARGUMENT_FILE:
        printf(":%s:_files", o->argument);
        break;
    case ARGUMENT_FORMAT:
        printf(":%s:_mpsim_formats", o->argument);
        break;
    case ARGUMENT_CHOICE:
        fputs(":word:(", stdout);
        put_choices(o->argument);
        putchar(')');
        break;
    case ARGUMENT_ANY:
        printf(":%s: ", o->argument);
        break;
    }
    putchar('\'');
}

static void fish_option(const command *c, const option_row *o)
{
    printf("complete -c mpsim -n '__fish_seen_subcommand_from %s'", c->name);
    if (o->letter)
        printf(" -s %c", o->letter);
    printf(" -l %s", o->name);
    switch (argument_of(o)) {
    case ARGUMENT_NONE:
        break;
    case ARGUMENT_FILE:
        fputs(" -r -F", stdout);
        break;
    case ARGUMENT_FORMAT:
        fputs(" -x -a '(__mpsim_formats)'", stdout);
        break;
    case ARGUMENT_CHOICE:
        fputs(" -x -a '", stdout);
        put_choices(o->argument);
        putchar('\'');
        break;
    case ARGUMENT_ANY:
        fputs(" -x", stdout);
        break;
    }
    fputs(" -d '", stdout);
    put_about(o->help);
    fputs("'\n", stdout);
}

void completion_command(help_form form, const command *c, const option_row *table, const option_row own[HELP_OWN])
{
    if (form == HELP_BASH)
        bash_command(c, table, own);
    if (form == HELP_ZSH) {
        printf("        %s)\n        _arguments", c->name);
        each(table, own, zsh_option, c);
        printf(" \\\n            '*:%s:%s' ;;\n", takes_files(c) ? "file" : "operand", takes_files(c) ? "_files" : " ");
    }
    if (form == HELP_FISH) {
        each(table, own, fish_option, c);
        if (takes_files(c))
            printf("complete -c mpsim -n '__fish_seen_subcommand_from %s' -F\n", c->name);
    }
}

/* ---- the program ---- */

static const char bash_head[] = "# bash completion for mpsim; made by mpsim --help=bash\n"
                                "_mpsim()\n"
                                "{\n"
                                "    local word=$2 before=$3 command=${COMP_WORDS[1]} options= what=nothing words=\n"
                                "    COMPREPLY=()\n"
                                "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
                                "        COMPREPLY=($(compgen -W '%s' -- \"$word\"))\n"
                                "        return\n"
                                "    fi\n"
                                "    case $command in\n";
static const char bash_tail[] =
    "    esac\n"
    "    case $word in\n"
    "    -*) COMPREPLY=($(compgen -W \"$options\" -- \"$word\")) ;;\n"
    "    *)\n"
    "        case $what in\n"
    "        files) compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -f -- \"$word\")) ;;\n"
    "        words) COMPREPLY=($(compgen -W \"$words\" -- \"$word\")) ;;\n"
    "        formats)\n"
    "            local rest=; [[ $word != *,* ]] || rest=${word%,*},\n"
    "            COMPREPLY=($(compgen -P \"$rest\" -W \"$(\"$1\" formats --csv 2>/dev/null | sed '1d; s/,.*//')\" -- \"${word##*,}\"))\n"
    "            ;;\n"
    "        esac ;;\n"
    "    esac\n"
    "}\n"
    "complete -F _mpsim mpsim\n";

static const char zsh_head[] =
    "#compdef mpsim\n"
    "# zsh completion for mpsim; made by mpsim --help=zsh\n"
    "_mpsim_formats() {\n"
    "    _values -s , format ${(f)\"$(mpsim formats --csv 2>/dev/null | sed '1d; s/,.*//')\"}\n"
    "}\n"
    "_mpsim() {\n"
    "    local -a commands\n"
    "    commands=(\n";
static const char zsh_middle[] = "    )\n"
                                 "    if (( CURRENT == 2 )); then\n"
                                 "        _describe command commands\n"
                                 "        return\n"
                                 "    fi\n"
                                 "    local command=${words[2]}\n"
                                 "    shift words\n"
                                 "    (( CURRENT-- ))\n"
                                 "    case $command in\n";
static const char zsh_tail[] = "    esac\n"
                               "}\n"
                               "_mpsim \"$@\"\n";

static const char fish_head[] = "# fish completion for mpsim; made by mpsim --help=fish\n"
                                "function __mpsim_formats\n"
                                "    mpsim formats --csv 2>/dev/null | sed '1d; s/,.*//'\n"
                                "end\n"
                                "complete -c mpsim -f\n";

static void bash_program_head(const program *p)
{
    char names[1024] = "help";
    for (const command *c = p->commands; c->name; c++)
        text_add(names, sizeof names, " %s", c->name);
    printf(bash_head, names);
}

static void zsh_program_head(const program *p)
{
    fputs(zsh_head, stdout);
    for (const command *c = p->commands; c->name; c++) {
        printf("        '%s:", c->name);
        put_about(c->summary);
        fputs("'\n", stdout);
    }
    fputs(zsh_middle, stdout);
}

static void fish_program_head(const program *p)
{
    fputs(fish_head, stdout);
    for (const command *c = p->commands; c->name; c++) {
        printf("complete -c mpsim -n __fish_use_subcommand -a %s -d '", c->name);
        put_about(c->summary);
        fputs("'\n", stdout);
    }
}

void completion_program(help_form form, const program *p)
{
    static const struct {
        char option[16];
        void (*head)(const program *);
        const char *tail;
    } shells[] = {[HELP_BASH] = {"--help=bash", bash_program_head, bash_tail},
                  [HELP_ZSH] = {"--help=zsh", zsh_program_head, zsh_tail},
                  [HELP_FISH] = {"--help=fish", fish_program_head, ""}};
    shells[form].head(p);
    for (const command *c = p->commands; c->name; c++) {
        char name[32], option[16];
        snprintf(name, sizeof name, "%s", c->name);
        memcpy(option, shells[form].option, sizeof option);
        char *words[] = {name, option, NULL};
        (void)c->run(c, 2, words);
    }
    fputs(shells[form].tail, stdout);
}
