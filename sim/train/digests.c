/* digests.c -- see digests.h. */
#include "digests.h"

#include "../array/need.h"
#include "../cli/options.h"
#include "../process/output.h"
#include "../process/textfile.h"
#include "../text/words.h"
#include "checkpoint.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int file_failed(const train_digests *d, const char *line)
{
    trace_error error;
    trace_error_set(&error, d->file.io ? EXIT_IO : EXIT_DATA, d->path, UINT64_MAX, "%s", line);
    return fail(error.exit, "%s", error.text);
}

enum { MOST = 256 << 20 }; /* bytes of a file that is compared with */

static int open_other(train_digests *d, const train_run *r)
{
    char line[TRAIN_ERROR], difference[256];
    trace_error error;
    int code = 0;
    d->text = text_file_read(d->path, MOST, NULL, &error);
    if (!d->text)
        return fail(error.exit, "%s", error.text);
    d->from = need(fmemopen(d->text, d->text[0] ? strlen(d->text) : 1, "r"));
    if (train_digest_file_open(&d->file, d->from, line))
        return file_failed(d, line);
    char *own = train_run_text(r);
    if (train_run_difference(difference, sizeof difference, d->file.run, own)) {
        snprintf(line, sizeof line, "digests of another run: %.200s", difference);
        code = file_failed(d, line);
    }
    free(own);
    return code;
}

/* A step has one kind of digest: the file that is compared with says which, and what is written has the same. */
static int choose_kind(const train_digests *d, train_engine *e)
{
    static const char *const names[] = {"of codes", "by blocks"};
    const train_digest_kind asked = d->blocks ? TRAIN_DIGEST_BLOCKS : TRAIN_DIGEST_CODES;
    e->digests = d->path ? d->file.kind : asked;
    if (!d->to || e->digests == asked)
        return 0;
    return fail(EXIT_USAGE, "train: --digests writes digests %s, but %s has digests %s: %s --digests-blocks",
                names[asked], d->path, names[e->digests], asked ? "omit" : "add");
}

int train_digests_begin(train_digests *d, const train_run *r, train_engine *e)
{
    char line[300];
    int code = d->path ? open_other(d, r) : 0;
    code = code ? code : choose_kind(d, e);
    if (!code && d->to && train_digests_head(&d->writer, d->to, r, e->digests))
        return ferror(d->to) ? output_failed() : fail(EXIT_IO, "train: a temporary file: %s", text_error(errno));
    if (!code && d->to && e->device[0]) {
        snprintf(line, sizeof line, "device %s", e->device);
        train_digests_comment(&d->writer, line);
    }
    return code;
}

int train_digests_step(train_digests *d, train *t, const train_step *s)
{
    char line[TRAIN_ERROR];
    if (!d->to && !d->from)
        return 0;
    if (train_digests_take(&d->now, t, s, line))
        return fail(EXIT_IO, "train: %s", line);
    if (d->to)
        train_digests_write(&d->writer, &d->now, d->tensors);
    if (!d->from || d->difference[0])
        return 0;
    if (train_digest_file_compare(&d->file, &d->now, d->difference, sizeof d->difference, line) < 0)
        return file_failed(d, line);
    d->compared = d->file.compared;
    return 0;
}

void train_digests_finish(train_digests *d)
{
    if (d->to)
        train_digests_end(&d->writer);
}

void train_digests_clear(train_digests *d)
{
    if (d->from)
        fclose(d->from);
    train_digest_file_close(&d->file);
    train_digests_free(&d->now);
    d->from = NULL;
    free(d->text);
    d->text = NULL;
}
