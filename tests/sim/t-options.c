/* t-options.c -- values and rules of options: what each kind takes and refuses, one line for what is broken, and how the help says it. */
#include "sim/cli/rules.h"
#include "support/support.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A command with an option of each kind. */
typedef struct values {
    int flag, word;
    const char *text, *choice;
    uint64_t count, late;
    uint32_t small;
    double number;
    unsigned char byte;
    option_list list;
    int read, then;
} values;

static int read_even(void *to, const char *where, const char *text)
{
    if (strcmp(text, "none") == 0) /* a message of its own */
        return fprintf(stderr, "mpsim: %s: nothing is not a number\n", where) > 0 ? EXIT_DATA : 0;
    *(int *)to = (int)strlen(text);
    return strlen(text) % 2 ? -1 : 0;
}

static int remember(void *to, const char *where, const char *text)
{
    values *v = to;
    (void)where;
    (void)text;
    v->then = v->word;
    v->small = 7;
    return 0;
}

static values v;
static char error[512];

/* The options of `line`, words with blanks between: the exit code, -1 for none; the line on stderr in `error`. */
static int parse(const char *line, char *help)
{
    static const command self = {"test", "FILE...", "a test", NULL, 0, NULL};
    static char words[512];
    char *argv[32] = {words}, *rest = NULL;
    int argc = 0, first;
    v = (values){.count = 16, .number = 1};
    const option_row rows[] = {
        {0, "flag", OPTION_FLAG, &v.flag, NULL, "a flag"},
        {0, "text", OPTION_STRING, &v.text, "T", "a text"},
        {0, "word", OPTION_WORD, &v.word, "red|green|blue", "a word"},
        {0, "", OPTION_THEN, READS(remember, &v, NULL), NULL, NULL},
        {0, "choice", OPTION_CHOICE, &v.choice, "one|two", "a word as a text"},
        {0, "byte", OPTION_BYTE, &v.byte, "no|yes", "a word as a byte"},
        {'c', "count", OPTION_COUNT, &v.count, "N", "a count"},
        {0, "late", OPTION_COUNT64, &v.late, "N", "another"},
        {0, "small", OPTION_COUNT32, &v.small, "N", "a small one"},
        {0, "number", OPTION_NUMBER, &v.number, "X", "a number"},
        {0, "list", OPTION_LIST, &v.list, "X", "a list"},
        {0, "read", OPTION_READ, READS(read_even, &v.read, "of even length"), "X", "what a function reads"},
        RANGE("count late", 1, 1 << 20),
        RANGE("number", -1, 2.5),
        EXCLUSIVE("flag text other", NULL),
        EXCLUDES("word=green list#1", "count late", "for a reason"),
        EXCLUDES("FILE>2", "", "they are A and B"),
        NEEDS("byte", "count>100 FILE=x", NULL),
        NEEDS("choice+!FILE", "number+!read", "it is so"),
        {0, NULL, OPTION_FLAG, NULL, NULL, NULL}};
    snprintf(words, sizeof words, "test %s", line);
    for (char *w = strtok_r(words, " ", &rest); w; w = strtok_r(NULL, " ", &rest))
        argv[argc++] = w;
    argv[argc] = NULL;
    for (const option_row *o = rows; help && o->name; o++) {
        char sentence[512];
        rule_say(sentence, sizeof sentence, rows, o, &rule_options);
        if (*sentence)
            strcat(strcat(help, sentence), "\n");
    }
    rewind(stderr);
    ck_assert(ftruncate(fileno(stderr), 0) == 0);
    const int code = options_parse(&self, rows, argc, argv, &first, NULL);
    fflush(stderr);
    rewind(stderr);
    error[fread(error, 1, sizeof error - 1, stderr)] = '\0';
    option_list_clear(&v.list);
    return code;
}

static const struct {
    const char *line, *error; /* NULL: it is taken */
} lines[] = {
    {"", NULL},
    {"--word blue --choice two --number 2 --read ab x", NULL},
    {"--word pink", "--word: 'pink' is not one of red, green, blue"},
    {"--word pink --word red", NULL}, /* the last one counts */
    {"--choice three", "--choice: 'three' is not one of one, two"},
    {"--count 0", "--count: '0' is not an integer from 1 to 2^20"},
    {"--count x", "--count: 'x' is not a non-negative integer"},
    {"--late 2^21", "--late: '2^21' is not an integer from 1 to 2^20"},
    {"--late x", "--late: 'x' is not an integer from 1 to 2^20"},
    {"--small 4294967295", NULL},
    {"--small 4294967296", "--small: '4294967296' is not an integer"},
    {"--number 2.6", "--number: '2.6' is not a number from -1 to 2.5"},
    {"--number x", "--number: 'x' is not a number from -1 to 2.5"},
    {"--number -1", NULL},
    {"--read abc", "--read: 'abc' is not of even length"},
    {"--read none", "--read: nothing is not a number"},
    {"--flag --text t", "--flag and --text exclude each other"},
    {"--flag", NULL},
    {"--word green --count 17", "--word green does not go with --count: for a reason"},
    {"--word green --count 16", NULL}, /* the default is as if it were not given */
    {"--word green --late 1", "--word green does not go with --late: for a reason"},
    {"--list a --late 1", NULL},
    {"--list a --list b --late 1", "more than 1 --list does not go with --late: for a reason"},
    {"a b", NULL},
    {"a b c", "more than 2 FILEs: they are A and B"},
    {"--byte yes", "--byte needs --count above 100 or FILE x"},
    {"--byte yes -c 101", NULL},
    {"--byte yes y x", NULL},
    {"--choice one", "--choice needs --number: it is so"},
    {"--choice one --number 1", NULL},
    {"--choice one --number 1 --read ab", "--choice does not go with --read: it is so"},
    {"--choice one x", NULL},
};

START_TEST(taken_and_refused)
{
    char want[512] = "";
    const int code = parse(lines[_i].line, NULL);
    if (lines[_i].error)
        snprintf(want, sizeof want, "mpsim: test: %s\n", lines[_i].error);
    ck_assert_str_eq(error, want);
    ck_assert_int_eq(code, !lines[_i].error ? -1 : strstr(error, "nothing") ? EXIT_DATA : EXIT_USAGE);
}

START_TEST(read_values)
{
    ck_assert_int_eq(parse("--word blue --choice two --byte yes -c 200 --late 3 --number 0.5 --read abcd", NULL),
                     EXIT_USAGE);
    ck_assert_int_eq(parse("--word blue --choice two --byte yes -c 200 --late 3 --number 0.5 --read abcd x", NULL), -1);
    ck_assert(v.word == 2 && strcmp(v.choice, "two") == 0 && v.byte == 1 && v.count == 200 && v.late == 3);
    ck_assert(v.number == 0.5 && v.read == 4);
    ck_assert(v.then == 2 && v.small == 7); /* the word was read before, what is below after it */
    ck_assert_int_eq(parse("--small 9", NULL), -1);
    ck_assert(v.small == 9);
}

START_TEST(sentences)
{
    char help[2048] = "";
    parse("", help);
    ck_assert_str_eq(help, "--count and --late are from 1 to 2^20\n"
                           "--number is from -1 to 2.5\n"
                           "--flag and --text exclude each other\n"
                           "--word green and more than 1 --list do not go with --count or --late: for a reason\n"
                           "--byte needs --count above 100 or FILE x\n"
                           "--choice without FILE needs --number without --read: it is so\n");
}

int main(void)
{
    TCase *t = test_case("options", 20);
    ck_assert(freopen("/dev/null", "r", stdin) != NULL);
    stderr = tmpfile();
    tcase_add_loop_test(t, taken_and_refused, 0, sizeof lines / sizeof *lines);
    tcase_add_test(t, read_values);
    tcase_add_test(t, sentences);
    TCase *const cases[] = {t, NULL};
    return test_main("options", cases);
}
