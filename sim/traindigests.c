/* traindigests.c -- see traindigests.h. */
#include "traindigests.h"

#include "options.h"
#include "trace/trace.h"
#include "traincheckpoint.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char schema[] = "# mpsim-train-digests/1";

/* ---- reading ---- */

static int bad_line(const train_digests *d, const char *what)
{
    trace_error error;
    trace_error_set(&error, EXIT_DATA, d->path, UINT64_MAX, "line %" PRIu64 ": %s", d->line_number,
                    what);
    return fail(error.exit, "%s", error.text);
}

/* Have a line in d->line, or d->have_line 0 at the end of the file. */
static int peek(train_digests *d)
{
    if (d->have_line)
        return 0;
    if (!fgets(d->line, sizeof d->line, d->from))
        return ferror(d->from) ? fail(EXIT_IO, "%s: %s", d->path, strerror(errno)) : 0;
    d->line_number++;
    const size_t n = strcspn(d->line, "\n");
    if (d->line[n] != '\n' && !feof(d->from))
        return bad_line(d, "too long");
    d->line[n] = '\0';
    d->have_line = 1;
    return 0;
}

/* The plan of the file's comments as text, or NULL. */
static int read_head(train_digests *d, char **text)
{
    static const char prefix[] = "# plan ";
    size_t n = 0;
    FILE *f = open_memstream(text, &n);
    int code = f ? peek(d) : fail(EXIT_IO, "train: out of memory");
    if (!code && (!d->have_line || strcmp(d->line, schema) != 0))
        code = bad_line(d, "these are no digests of mpsim train");
    while (!code && d->have_line && d->line[0] == '#') {
        if (strncmp(d->line, prefix, sizeof prefix - 1) == 0)
            fprintf(f, "%s\n", d->line + sizeof prefix - 1);
        d->have_line = 0;
        code = peek(d);
    }
    if (f && fclose(f) != 0 && !code)
        code = fail(EXIT_IO, "train: out of memory");
    return code;
}

static int open_other(train_digests *d, const char *own)
{
    char difference[256], *theirs = NULL;
    trace_error error;
    d->from = fopen(d->path, "r");
    if (!d->from)
        return fail(EXIT_IO, "%s: %s", d->path, strerror(errno));
    int code = read_head(d, &theirs);
    if (!code && run_difference(difference, sizeof difference, theirs, own)) {
        trace_error_set(&error, EXIT_DATA, d->path, UINT64_MAX, "digests of another run: %s",
                        difference);
        code = fail(error.exit, "%s", error.text);
    }
    free(theirs);
    return code;
}

static int scan_hex(const char **p, size_t digits, uint64_t *x)
{
    *x = 0;
    for (size_t i = 0; i < digits; i++, ++*p) {
        static const char hex[] = "0123456789abcdef";
        const char *at = **p ? strchr(hex, **p) : NULL;
        if (!at)
            return -1;
        *x = *x << 4 | (uint64_t)(at - hex);
    }
    return 0;
}

/* The line at hand as that of a step. */
static int scan_step(const train_digests *d, uint64_t *step, uint32_t *loss, uint64_t *digest)
{
    const char *p = d->line;
    uint64_t bits = 0;
    *step = 0;
    while (*p >= '0' && *p <= '9' && *step < UINT64_MAX / 10 - 1)
        *step = *step * 10 + (uint64_t)(*p++ - '0');
    if (p == d->line || *p++ != ' ' || scan_hex(&p, 8, &bits) || *p++ != ' ' ||
        scan_hex(&p, 16, digest) || *p)
        return bad_line(d, "not 'STEP LOSS DIGEST'");
    *loss = (uint32_t)bits;
    return 0;
}

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
    train_digests *d = context;
    if (d->count == d->room) {
        const size_t room = d->room ? 2 * d->room : 64;
        tensor_digest *now = realloc(d->now, room * sizeof *now);
        if (!now) {
            d->no_memory = 1;
            return;
        }
        d->now = now;
        d->room = room;
    }
    snprintf(d->now[d->count].name, sizeof d->now->name, "%s", name);
    d->now[d->count++].digest = digest;
}

/* The tensors that follow a step's line, in order; the first that differs. */
static int compare_tensors(train_digests *d, uint64_t step)
{
    int code = 0;
    for (size_t i = 0; !code; i++) {
        char name[sizeof d->line], shown[128];
        uint64_t digest = 0;
        d->have_line = 0;
        code = peek(d);
        if (code || !d->have_line || d->line[0] != ' ')
            return code;
        const char *space = strrchr(d->line, ' '), *p = space + 1;
        if (d->line[1] != ' ' || space < d->line + 2 || scan_hex(&p, 16, &digest) || *p)
            return bad_line(d, "not '  TENSOR DIGEST'");
        snprintf(name, sizeof name, "%.*s", (int)(space - d->line - 2), d->line + 2);
        if (d->difference[0] || (i < d->count && strcmp(d->now[i].name, name) == 0 &&
                                 d->now[i].digest == digest))
            continue;
        if (i < d->count && strcmp(d->now[i].name, name) == 0)
            snprintf(d->difference, sizeof d->difference,
                     "step %" PRIu64 ", tensor %.100s: digest %016" PRIx64 ", there %016" PRIx64,
                     step, name, d->now[i].digest, digest);
        else
            snprintf(d->difference, sizeof d->difference,
                     "step %" PRIu64 ", tensor %s: there it is %s", step,
                     i < d->count ? d->now[i].name : "(none)",
                     escape_text(shown, sizeof shown, name));
    }
    return code;
}

static int compare(train_digests *d, uint64_t step, uint32_t loss, uint64_t digest)
{
    uint64_t their_step = 0, their_digest = 0;
    uint32_t their_loss = 0;
    char whole[160] = "";
    int code;
    for (;;) { /* to the line of this step */
        code = peek(d);
        if (code || !d->have_line)
            return code;
        if (d->line[0] != ' ' && d->line[0] != '#') {
            code = scan_step(d, &their_step, &their_loss, &their_digest);
            if (code || their_step > step)
                return code;
            if (their_step == step)
                break;
        }
        d->have_line = 0;
    }
    d->compared++;
    if (their_loss != loss)
        snprintf(whole, sizeof whole, "step %" PRIu64 ": loss %08" PRIx32 ", there %08" PRIx32,
                 step, loss, their_loss);
    else if (their_digest != digest)
        snprintf(whole, sizeof whole,
                 "step %" PRIu64 ": digest %016" PRIx64 ", there %016" PRIx64, step, digest,
                 their_digest);
    code = compare_tensors(d, step); /* names the tensor where the file has them */
    if (!d->difference[0])
        memcpy(d->difference, whole, sizeof whole);
    return code;
}

int train_digests_step(train_digests *d, train *t, const train_step *s)
{
    char line[TRAIN_ERROR];
    uint64_t all;
    if (!d->to && !d->from)
        return 0;
    d->count = 0;
    if (train_digest_step(t, s, &all, d->tensors || d->from ? keep : NULL, d, line))
        return fail(EXIT_IO, "train: %s", line);
    if (d->no_memory)
        return fail(EXIT_IO, "train: out of memory");
    if (d->to) {
        fprintf(d->to, "%" PRIu64 " %08" PRIx32 " %016" PRIx64 "\n", s->step + 1,
                loss_bits(s->loss), all);
        for (size_t i = 0; d->tensors && i < d->count; i++)
            fprintf(d->to, "  %s %016" PRIx64 "\n", d->now[i].name, d->now[i].digest);
    }
    return d->from && !d->difference[0] ? compare(d, s->step + 1, loss_bits(s->loss), all) : 0;
}

int train_digests_begin(train_digests *d, const train_run *r)
{
    int code = 0;
    if (!d->to && !d->path)
        return 0;
    char *text = run_text(r);
    if (!text)
        return fail(EXIT_IO, "train: out of memory");
    if (d->path)
        code = open_other(d, text);
    if (!code && d->to) {
        fprintf(d->to, "%s\n# step, bits of the loss, digest of the step; then of tensors\n",
                schema);
        for (const char *p = text; *p;) {
            const size_t n = strcspn(p, "\n");
            fprintf(d->to, "# plan %.*s\n", (int)n, p);
            p += n + (p[n] == '\n');
        }
    }
    free(text);
    return code;
}

void train_digests_clear(train_digests *d)
{
    if (d->from)
        fclose(d->from);
    free(d->now);
    d->from = NULL;
    d->now = NULL;
    d->count = d->room = 0;
}
