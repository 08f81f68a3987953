/* digests.c -- see digests.h. */
#include <train/digests.h>

#include <mpsim/digest.h>

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static const char *const schemas[] = {
    [TRAIN_DIGEST_CODES] = "# mpsim-train-digests/2", [TRAIN_DIGEST_BLOCKS] = "# mpsim-train-digests/3"};
static const char run_prefix[] = "# run ", end_prefix[] = "# end ";

/* ---- a step ---- */

static uint32_t loss_bits(float loss)
{
    uint32_t u;
    if (isnan(loss))
        return 0x7fc00000;
    memcpy(&u, &loss, sizeof u);
    return u;
}

static void keep(const char *name, uint64_t digest, void *context)
{
    train_step_digests *d = context;
    if (d->count == d->room) {
        const size_t room = d->room ? 2 * d->room : 64;
        train_tensor_digest *tensors = realloc(d->tensors, room * sizeof *tensors);
        if (!tensors) {
            d->no_memory = 1;
            return;
        }
        d->tensors = tensors;
        d->room = room;
    }
    snprintf(d->tensors[d->count].name, sizeof d->tensors->name, "%s", name);
    d->tensors[d->count++].digest = digest;
}

int train_digests_take(train_step_digests *d, train *t, const train_step *s, char *error)
{
    d->count = 0;
    d->no_memory = 0;
    d->step = s->step + 1;
    d->loss = loss_bits(s->loss);
    if (train_digest_step(t, s, &d->all, keep, d, error))
        return -1;
    if (d->no_memory) {
        snprintf(error, TRAIN_ERROR, "out of memory");
        return -1;
    }
    return 0;
}

void train_digests_free(train_step_digests *d)
{
    free(d->tensors);
    memset(d, 0, sizeof *d);
}

/* ---- writing ---- */

#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
static void
put(train_digest_writer *w, const char *format, ...)
{
    char text[1024];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    const size_t n = strlen(text);
    w->digest += mpsim_digest_bytes(text, n, w->bytes);
    w->bytes += n;
    fputs(text, w->to);
}

/* The run as text, to be freed; NULL: no memory. Into memory of a given size, since glibc's open_memstream may lose what one
 * fprintf gives where it lacks memory, and not say so. */
static char *run_text(const train_run *r)
{
    enum { FIRST = 1 << 16, MOST = 1 << 28 };
    for (size_t size = FIRST; size <= MOST; size *= 4) {
        char *text = malloc(size);
        FILE *f = text ? fmemopen(text, size, "w") : NULL;
        const int bad = !f || train_run_write(r, f) != 0;
        if (f && fclose(f) == 0 && !bad && strnlen(text, size) < size - 1)
            return text;
        free(text);
        if (!f)
            return NULL;
    }
    return NULL;
}

int train_digests_head(train_digest_writer *w, FILE *to, const train_run *r, train_digest_kind kind)
{
    char *text = run_text(r);
    int begins = 1;
    *w = (train_digest_writer){.to = to};
    if (!text)
        return -1;
    put(w, "%s\n# step, bits of the loss, digest of the step; then of tensors\n", schemas[kind]);
    for (const char *p = text; *p;) { /* in parts that `put` takes */
        const size_t line = strcspn(p, "\n"), n = p[line] ? line + 1 : line, part = n < 511 ? n : 511;
        put(w, "%s%.*s", begins ? run_prefix : "", (int)part, p);
        begins = part == n;
        p += part;
    }
    free(text);
    return ferror(to) ? -1 : 0;
}

void train_digests_comment(train_digest_writer *w, const char *text)
{
    put(w, "# %.1000s\n", text);
}

void train_digests_write(train_digest_writer *w, const train_step_digests *d, int tensors)
{
    put(w, "%" PRIu64 " %08" PRIx32 " %016" PRIx64 "\n", d->step, d->loss, d->all);
    for (size_t i = 0; tensors && i < d->count; i++)
        put(w, "  %s %016" PRIx64 "\n", d->tensors[i].name, d->tensors[i].digest);
}

void train_digests_end(train_digest_writer *w)
{
    fprintf(w->to, "%s%016" PRIx64 "\n", end_prefix, w->digest);
}

/* ---- reading ---- */

static int trouble(train_digest_file *d, const char *what, char *error)
{
    d->io = 1;
    snprintf(error, TRAIN_ERROR, "%s", what);
    return -1;
}

static int bad_line(train_digest_file *d, const char *what, char *error)
{
    d->io = 0;
    snprintf(error, TRAIN_ERROR, "line %" PRIu64 ": %s", d->line_number, what);
    return -1;
}

/* Have a line in d->line, or d->have_line 0 at the end of the file. */
static int peek(train_digest_file *d, char *error)
{
    if (d->have_line)
        return 0;
    if (!fgets(d->line, sizeof d->line, d->from))
        return ferror(d->from) ? trouble(d, "it cannot be read", error) : 0;
    d->line_number++;
    const size_t n = strcspn(d->line, "\n");
    d->newline = d->line[n] == '\n';
    if (!d->newline && !feof(d->from))
        return bad_line(d, "too long, or with a zero byte", error);
    d->line[n] = '\0';
    d->have_line = 1;
    return 0;
}

/* Another line of the run. */
static int add_run(train_digest_file *d, const char *line, size_t *length, char *error)
{
    const size_t n = strlen(line);
    char *run = realloc(d->run, *length + n + 2);
    if (!run)
        return trouble(d, "out of memory", error);
    memcpy(run + *length, line, n);
    memcpy(run + *length + n, "\n", 2);
    d->run = run;
    *length += n + 1;
    return 0;
}

static int read_head(train_digest_file *d, char *error)
{
    const size_t prefix = sizeof run_prefix - 1;
    size_t length = 0;
    if (peek(d, error))
        return -1;
    while (d->have_line && d->line[0] == '#') {
        if (strncmp(d->line, run_prefix, prefix) == 0 && add_run(d, d->line + prefix, &length, error))
            return -1;
        d->have_line = 0;
        if (peek(d, error))
            return -1;
    }
    return d->run ? 0 : bad_line(d, "no lines '# run ...' above the first step", error);
}

static int scan_hex(const char **p, size_t digits, uint64_t *x)
{
    static const char hex[] = "0123456789abcdef";
    *x = 0;
    for (size_t i = 0; i < digits; i++, ++*p) {
        const char *at = **p ? strchr(hex, **p) : NULL;
        if (!at)
            return -1;
        *x = *x << 4 | (uint64_t)(at - hex);
    }
    return 0;
}

/* The line at hand as that of a step. */
static int scan_step(train_digest_file *d, train_step_digests *s, char *error)
{
    const char *p = d->line;
    uint64_t bits = 0;
    s->step = 0;
    while (*p >= '0' && *p <= '9' && s->step < UINT64_MAX / 10 - 1)
        s->step = s->step * 10 + (uint64_t)(*p++ - '0');
    if (p == d->line || *p++ != ' ' || scan_hex(&p, 8, &bits) || *p++ != ' ' || scan_hex(&p, 16, &s->all) || *p)
        return bad_line(d, "not 'STEP LOSS DIGEST'", error);
    s->loss = (uint32_t)bits;
    return 0;
}

/* The line at hand as that of a tensor. */
static int scan_tensor(train_digest_file *d, char *name, size_t size, uint64_t *digest, char *error)
{
    const char *space = strrchr(d->line, ' '), *p = space + 1;
    if (d->line[1] != ' ' || space < d->line + 3 || scan_hex(&p, 16, digest) || *p)
        return bad_line(d, "not '  TENSOR DIGEST'", error);
    snprintf(name, size, "%.*s", (int)(space - d->line - 2), d->line + 2);
    for (char *c = name; *c; c++) /* what may be shown on a terminal */
        if (*c < ' ' || *c > '~')
            *c = '?';
    return 0;
}

/* ---- the whole file ---- */

/* What the line at hand adds. */
static void count_line(train_digest_file *d)
{
    const size_t n = strlen(d->line);
    d->digest += mpsim_digest_bytes(d->line, n, d->bytes);
    d->digest += mpsim_digest_bytes("\n", d->newline != 0, d->bytes + n);
    d->bytes += n + (d->newline != 0);
}

static int check_end(train_digest_file *d, char *error)
{
    char what[128];
    uint64_t digest;
    const char *p = d->line + sizeof end_prefix - 1;
    if (scan_hex(&p, 16, &digest) || *p || !d->newline)
        return bad_line(d, "not '# end DIGEST'", error);
    if (digest == d->digest)
        return 0;
    snprintf(what, sizeof what, "what is above has digest %016" PRIx64 ", not %016" PRIx64 ": it is damaged", d->digest,
             digest);
    return bad_line(d, what, error);
}

/* A line of the body: steps ascend, tensors follow one. */
static int check_line(train_digest_file *d, uint64_t *step, char *error)
{
    char name[sizeof d->line], what[128];
    train_step_digests theirs;
    uint64_t digest;
    if (d->line[0] == '#')
        return 0;
    if (d->line[0] == ' ')
        return *step ? scan_tensor(d, name, sizeof name, &digest, error)
                     : bad_line(d, "a tensor before the first step", error);
    if (scan_step(d, &theirs, error))
        return -1;
    snprintf(what, sizeof what, "step %" PRIu64 " after step %" PRIu64 ": steps must increase from 1", theirs.step,
             *step);
    if (theirs.step <= *step)
        return bad_line(d, what, error);
    *step = theirs.step;
    return 0;
}

static int find_kind(train_digest_file *d)
{
    for (int k = TRAIN_DIGEST_CODES; d->have_line && k <= TRAIN_DIGEST_BLOCKS; k++)
        if (strcmp(d->line, schemas[k]) == 0) {
            d->kind = (train_digest_kind)k;
            return 0;
        }
    return -1;
}

static int check_whole(train_digest_file *d, char *error)
{
    uint64_t step = 0;
    int ended = 0;
    if (peek(d, error))
        return -1;
    if (find_kind(d)) {
        d->line_number = 1;
        return bad_line(d, "not a file of digests of mpsim train (# mpsim-train-digests/2 or /3)", error);
    }
    while (d->have_line) {
        if (ended)
            return bad_line(d, "something after its end", error);
        ended = strncmp(d->line, end_prefix, sizeof end_prefix - 1) == 0;
        if (ended ? check_end(d, error) : check_line(d, &step, error))
            return -1;
        count_line(d);
        d->have_line = 0;
        if (peek(d, error))
            return -1;
    }
    return ended ? 0 : bad_line(d, "the last line should be '# end DIGEST': the file is cut off", error);
}

int train_digest_file_open(train_digest_file *d, FILE *from, char *error)
{
    memset(d, 0, sizeof *d);
    d->from = from;
    if (check_whole(d, error))
        return -1;
    if (fseek(from, 0, SEEK_SET) != 0)
        return trouble(d, "it cannot be read twice", error);
    d->line_number = 0;
    d->have_line = 0;
    return read_head(d, error);
}

void train_digest_file_close(train_digest_file *d)
{
    free(d->run);
    d->run = NULL;
}

/* ---- comparison ---- */

static void describe(char *difference, size_t size, const train_step_digests *s, size_t i, const char *name,
                     uint64_t digest)
{
    if (i >= s->count || strcmp(s->tensors[i].name, name) != 0)
        snprintf(difference, size, "step %" PRIu64 ", tensor %s: there it is %.100s", s->step,
                 i < s->count ? s->tensors[i].name : "(none)", name);
    else
        snprintf(difference, size, "step %" PRIu64 ", tensor %s: digest %016" PRIx64 ", there %016" PRIx64, s->step,
                 name, s->tensors[i].digest, digest);
}

/* The tensors that follow a step's line, in order; 1 at the first that differs. */
static int compare_tensors(train_digest_file *d, const train_step_digests *s, char *difference, size_t size,
                           char *error)
{
    int found = 0;
    for (size_t i = 0;; i++) {
        char name[sizeof d->line];
        uint64_t digest = 0;
        d->have_line = 0;
        if (peek(d, error))
            return -1;
        if (!d->have_line || d->line[0] != ' ')
            return found;
        if (scan_tensor(d, name, sizeof name, &digest, error))
            return -1;
        if (found || (i < s->count && strcmp(s->tensors[i].name, name) == 0 && s->tensors[i].digest == digest))
            continue;
        describe(difference, size, s, i, name, digest);
        found = 1;
    }
}

/* To the line of this step: 1; 0 if the file has none. */
static int find_step(train_digest_file *d, uint64_t step, train_step_digests *theirs, char *error)
{
    for (;;) {
        if (peek(d, error))
            return -1;
        if (!d->have_line)
            return 0;
        if (d->line[0] != ' ' && d->line[0] != '#') {
            if (scan_step(d, theirs, error))
                return -1;
            if (theirs->step >= step)
                return theirs->step == step;
        }
        d->have_line = 0;
    }
}

int train_digest_file_compare(train_digest_file *d, const train_step_digests *s, char *difference, size_t size,
                              char *error)
{
    train_step_digests theirs = {0};
    char whole[160] = "";
    int code = find_step(d, s->step, &theirs, error);
    if (code <= 0)
        return code;
    d->compared++;
    if (theirs.loss != s->loss)
        snprintf(whole, sizeof whole, "step %" PRIu64 ": loss %08" PRIx32 ", there %08" PRIx32, s->step, s->loss,
                 theirs.loss);
    else if (theirs.all != s->all)
        snprintf(whole, sizeof whole, "step %" PRIu64 ": digest %016" PRIx64 ", there %016" PRIx64, s->step, s->all,
                 theirs.all);
    /* names the tensor where the file has them */
    code = compare_tensors(d, s, difference, size, error);
    if (code == 0 && whole[0]) {
        snprintf(difference, size, "%s", whole);
        return 1;
    }
    return code;
}
