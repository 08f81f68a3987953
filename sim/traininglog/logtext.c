/* logtext.c -- see logtext.h. */
#include "impl.h"

#include "logline.h"

#include "../array/need.h"
#include "../cli/options.h"
#include "../process/textfile.h"
#include "../trace/trace.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* BLOCK: bytes of parts that are looked through together. */
enum { BLOCK = 1 << 26, SETTINGS = 3 };

/* ---- a block ---- */

static const char *text_of(const log_text *t, size_t i)
{
    return (const char *)t->bytes.p + t->parts[i].at;
}

/* The end of a run of parts from i on that are of this kind, or of that. */
static size_t run_of(const log_text *t, size_t i, source_kind a, source_kind b)
{
    while (i < t->count && (t->parts[i].kind == a || t->parts[i].kind == b))
        i++;
    return i;
}

/* What may be code is code between code, and beside code its numbers are settings, as they are where SETTINGS stand one below
 * another. */
static void find_source(log_text *t)
{
    for (size_t i = 0; i < t->count; i++)
        t->parts[i].setting = (t->parts[i].kind = traininglog_source_kind_of(text_of(t, i))) == SOURCE_SETTING;
    for (size_t i = 0, end; i<t->count; i = end> i ? end : i + 1) {
        end = run_of(t, i, SOURCE_MAYBE, SOURCE_SETTING);
        const int before = i > 0 && t->parts[i - 1].kind == SOURCE_CODE;
        const int behind = end < t->count && t->parts[end].kind == SOURCE_CODE;
        const int many = end - i >= SETTINGS;
        for (size_t k = i; k < end; k++) {
            const int maybe = t->parts[k].kind == SOURCE_MAYBE;
            t->parts[k].kind = before && behind                                    ? SOURCE_CODE
                               : (maybe && (before || behind)) || (!maybe && many) ? SOURCE_SETTING
                                                                                   : SOURCE_NONE;
        }
    }
}

/* ---- lines that are printed twice ---- */

/* Whether one is the end of the other: a handler may put a time before it. */
static int are_copies(const char *a, const char *b)
{
    const size_t n = strlen(a), m = strlen(b);
    return n < m ? strcmp(a, b + m - n) == 0 : strcmp(a + n - m, b) == 0;
}

/* Where all lines that measure something stand twice, by tee or by two handlers, the second ones go. */
static void find_copies(log_text *t)
{
    enum { PAIRS = 3 };
    size_t pairs = 0, differ = 0;
    log_part *before = NULL, *last = NULL; /* the last of a pair, the first of the one that is open */
    for (size_t i = 0; i < t->count; i++) {
        log_part *p = &t->parts[i];
        if (p->kind == SOURCE_CODE || !traininglog_shapes_is_live(&t->shapes, p->shape))
            continue;
        if (last && !are_copies((const char *)t->bytes.p + last->at, text_of(t, i)))
            return;
        differ += !last && before && !are_copies((const char *)t->bytes.p + before->at, text_of(t, i));
        pairs += last != NULL;
        before = last ? p : before;
        last = last ? NULL : p;
        p->copy = !last;
    }
    if (last || pairs < PAIRS || 2 * differ < pairs)
        return;
    for (size_t i = 0; i < t->count; i++)
        if (t->parts[i].copy)
            t->parts[i].kind = SOURCE_COPY;
}

static int visit_part(log_text *t, const log_part *p, const char *text)
{
    char masked[LOG_WIDTH + 1];
    if (t->begun && traininglog_shapes_is_live(&t->shapes, p->shape)) /* most lines */
        return t->visit(t->context, p, text, text);
    const int event = t->is_event(text);
    memcpy(masked, text, strlen(text) + 1);
    t->begun |= event;
    if (!event)
        traininglog_shapes_mask(&t->shapes, masked, &t->begun, p->kind != SOURCE_NONE);
    return t->visit(t->context, p, text, masked);
}

static int flush(log_text *t)
{
    int stop = 0;
    (void)need(t->bytes.failed ? NULL : t);
    find_source(t);
    for (size_t i = 0; i < t->count; i++)
        if (t->parts[i].kind != SOURCE_CODE)
            t->parts[i].shape = traininglog_shapes_see(&t->shapes, text_of(t, i), t->parts[i].setting, t->measures);
    find_copies(t);
    for (size_t i = 0; i < t->count && !stop; i++)
        if (t->parts[i].kind != SOURCE_CODE && t->parts[i].kind != SOURCE_COPY)
            stop = visit_part(t, &t->parts[i], text_of(t, i));
    t->bytes.n = t->count = 0;
    return stop;
}

/* A part: what is about one event, or a row of a table as names with values. */
static int add_part(log_text *t, const char *line, size_t n)
{
    char text[LOG_WIDTH + 1], row[LOG_WIDTH + 1];
    snprintf(text, sizeof text, "%.*s", (int)n, line);
    const char *values = traininglog_table_line(&t->table, text, row), *part = values ? values : text;
    need_room(&t->parts, t->count, sizeof *t->parts);
    t->parts[t->count++] = (log_part){.line = t->line, .seq = t->seq, .at = t->bytes.n};
    array_put(&t->bytes, part, strlen(part) + 1);
    return t->bytes.n > BLOCK ? flush(t) : 0;
}

/* A line of which it is known that the next does not go on where it was cut. */
static int add_line(log_text *t, const char *text)
{
    while (*text) {
        const size_t n = traininglog_line_length(text);
        if (add_part(t, text, n))
            return 1;
        text += n;
    }
    return 0;
}

static int visit_line(const char *line, void *context)
{
    log_text *t = context;
    if (!line[strspn(line, " ")] || (t->held[0] && traininglog_line_join(t->held, line)))
        return 0;
    const int stop = add_line(t, t->held);
    memcpy(t->held, line, strlen(line) + 1);
    t->line = t->reader->ends + 1;
    t->seq++;
    return stop;
}

static int end_text(log_text *t)
{
    const int cut = t->reader->n > 0;
    if (traininglog_reader_end(t->reader, visit_line, t) || add_line(t, t->held))
        return 1;
    if (t->count)
        t->parts[t->count - 1].cut = cut;
    return flush(t);
}

/* ---- files ---- */

/* A line of a file that is one series after another. */
static int visit_series(const char *line, uint64_t number, void *context)
{
    log_text *t = context;
    t->line = number;
    t->seq++;
    return add_part(t, line, strlen(line));
}

/* The whole of such a file, of which the first n bytes are read. 0, or an exit code. */
static int read_series(log_text *t, int fd, const char *path, const char *bytes, size_t n)
{
    enum { MOST = 1 << 28 };
    static char more[1 << 16];
    array_bytes all = {NULL, 0, 0, 0};
    trace_error error;
    ssize_t got;
    array_put(&all, bytes, n);
    while ((got = trace_text_file_next(fd, path, more, sizeof more, 0, &error)) > 0 && !all.failed && all.n < MOST)
        array_put(&all, more, (size_t)got);
    array_put(&all, "", 1);
    (void)need(all.failed ? NULL : t);
    if (got >= 0 && !traininglog_series_lines((const char *)all.p, t->table.tag, visit_series, t))
        (void)flush(t);
    t->reader->lines = t->seq;
    free(all.p);
    return got < 0 ? fail(error.exit, "%s", error.text) : 0;
}

/* Whether the first n bytes of a file are no text: more than two and one of fifty are control characters that texts do
 * not have. NULs are passed over, since UTF-16 and files with holes have them, and what is no ASCII, in whatever encoding it is. */
static int is_binary(const char *bytes, size_t n)
{
    size_t characters = 0, controls = 0;
    if (n >= 2 && (memcmp(bytes, "\xff\xfe", 2) == 0 || memcmp(bytes, "\xfe\xff", 2) == 0))
        return 0;
    for (size_t i = 0; i < n; i++) {
        const unsigned char c = (unsigned char)bytes[i];
        controls += (c && c < ' ' && !strchr("\a\b\t\n\v\f\r\x1b", c)) || c == 0x7f;
        characters += c != 0;
    }
    return controls > 2 + characters / 50;
}

/* What the first n bytes of a file show that it is; NULL: text. */
static const char *other_than_text(const char *bytes, size_t n)
{
    return trace_is_events(bytes, n) ? TRACE_EVENTS : is_binary(bytes, n) ? "a binary file" : NULL;
}

static int read_open(log_text *t, int fd, const char *path, const char *name)
{
    static char bytes[1 << 16];
    trace_error error;
    ssize_t n = -1;
    for (int first = 1; (n = trace_text_file_next(fd, path, bytes, sizeof bytes, first, &error)) > 0; first = 0) {
        const char *what = first ? other_than_text(bytes, (size_t)n) : NULL;
        if (what)
            return fail(EXIT_DATA, "%s: offset 0: not a text log but %s", name, what);
        if (first && traininglog_series_begins(bytes, (size_t)n))
            return read_series(t, fd, path, bytes, (size_t)n);
        if (traininglog_reader_bytes(t->reader, bytes, (size_t)n, visit_line, t))
            return 0;
        if (t->reader->since > LOG_ENDLESS)
            return fail(EXIT_DATA, "%s: not a log: %d MiB without the end of a line", name, LOG_ENDLESS >> 20);
    }
    if (n < 0)
        return fail(error.exit, "%s", error.text);
    (void)end_text(t);
    return 0;
}

int traininglog_text_read(log_text *t, const char *path, const char *name)
{
    trace_error error;
    const int fd = trace_text_file_open(path, &error);
    if (fd < 0)
        return fail(error.exit, "%s", error.text);
    t->table.tag = strstr(path, "-tag-") ? strstr(path, "-tag-") + 5 : NULL;
    const int code = read_open(t, fd, path, name);
    if (fd > STDIN_FILENO)
        close(fd);
    free(t->bytes.p);
    free(t->parts);
    traininglog_shapes_clear(&t->shapes);
    return code;
}
