/* spec.c -- see spec.h. */
#include "spec.h"

#include "../array/need.h"
#include "../cli/options.h"
#include "../process/output.h"
#include "../process/textfile.h"
#include "../operand/scalerword.h"

#include <inttypes.h>
#include <mpsim/digest.h>
#include <stdlib.h>
#include <string.h>

/* ---- scalers of a command line ---- */

static int bad_scaler(const char *spec, const char *why)
{
    char name[64], shown[256];
    suggestion near;
    snprintf(name, sizeof name, "%.*s", (int)strcspn(spec, ":"), spec);
    if (mpsim_scaler_find(name))
        return fail(EXIT_USAGE, "scaler: '%s': %s; keys and words are in mpsim scaler --help",
                    escape_text(shown, sizeof shown, spec), why);
    suggestion_init(&near, name);
    for (size_t i = 0; i < mpsim_scaler_count(); i++)
        suggestion_consider(&near, mpsim_scaler_at(i)->config.name);
    return fail(EXIT_USAGE, "scaler: '%s' is not a loss scaler%s", escape_text(shown, sizeof shown, name),
                suggestion_end(&near, "; see mpsim scaler --list"));
}

int scaler_spec_add(scalerrun *s, const char *spec)
{
    mpsim_scaler_config c;
    char shown[256];
    if (!s->tracks)
        s->tracks = need_memory(TRACKS_MAX, sizeof *s->tracks);
    const char *why = scaler_read(&c, spec);
    if (why)
        return bad_scaler(spec, why);
    if (strlen(spec) >= sizeof s->tracks[0].label)
        return fail(EXIT_USAGE, "scaler: '%s' is longer than %zu characters", escape_text(shown, sizeof shown, spec),
                    sizeof s->tracks[0].label - 1);
    if (s->count == TRACKS_MAX)
        return fail(EXIT_USAGE, "scaler: at most %d scalers", TRACKS_MAX);
    for (size_t i = 0; i < s->count; i++)
        if (strcmp(s->tracks[i].label, spec) == 0)
            return 0;
    (void)traininglog_track_init(&s->tracks[s->count++], spec, &c); /* parsed: valid */
    return 0;
}

/* Whether the text after a comma begins another scaler, not another key of the one before. */
static int begins_scaler(const char *text)
{
    const size_t n = strcspn(text, ":,");
    char name[64];
    if (n >= sizeof name || memchr(text, '=', n))
        return 0;
    memcpy(name, text, n);
    name[n] = 0;
    return 1;
}

int scaler_spec_add_list(scalerrun *s, const char *text)
{
    int code = 0;
    if (strcmp(text, "all") == 0) {
        for (size_t i = 0; i < mpsim_scaler_count() && !code; i++)
            if (mpsim_scaler_at(i)->config.dynamic)
                code = scaler_spec_add(s, mpsim_scaler_at(i)->config.name);
        return code;
    }
    while (*text && !code) {
        size_t n = strcspn(text, ",");
        while (text[n] && !begins_scaler(text + n + 1))
            n += 1 + strcspn(text + n + 1, ",");
        char *spec = need_part(text, n);
        code = scaler_spec_add(s, spec);
        free(spec);
        text += n + (text[n] == ',');
    }
    return code;
}

/* ---- states ---- */

static const char state_head[] = "mpsim.scaler-state/2 ", state_end[] = "digest ";
enum { STATE_HEAD = sizeof state_head - 1, STATE_MOST = 4 << 10 /* bytes of a file */ };

/* The first two lines of a state and what is behind them: 0, or -1. */
static int split_state(char *text, char **state, char **rest)
{
    char *end = strchr(text, '\n'), *next = end ? strchr(end + 1, '\n') : NULL;
    if (!next || (size_t)(end - text) >= STATE_HEAD + STATE_SPEC || next - end > STATE_TEXT)
        return -1;
    *state = end + 1;
    *rest = next + 1;
    return 0;
}

/* Whether `rest`, all that is behind the first two lines, is their digest: 0, or an exit code after a message. */
static int check_digest(const char *name, const char *text, const char *rest)
{
    char want[64];
    snprintf(want, sizeof want, "%s%016" PRIx64, state_end, mpsim_digest_bytes(text, (size_t)(rest - text), 0));
    const size_t n = strlen(want);
    if (strncmp(rest, want, n) == 0 && strcmp(rest + n, "\n") == 0)
        return 0;
    return fail(EXIT_DATA, "%s: damaged: after the first two lines the last line should be '%s'", name, want);
}

int scaler_state_read(const char *path, char spec[STATE_SPEC], char state[STATE_TEXT])
{
    const char *name = strcmp(path, "-") == 0 ? "standard input" : path;
    char *line = NULL, *rest = NULL;
    trace_error error;
    int code = 0;
    char *text = text_file_read(path, STATE_MOST, NULL, &error);
    if (!text)
        return fail(error.exit, "%s", error.text);
    if (strncmp(text, state_head, STATE_HEAD) != 0 || split_state(text, &line, &rest) || line - text <= STATE_HEAD + 1)
        code = fail(EXIT_DATA, "%s: not a state of mpsim scaler --state-out", name);
    else
        code = check_digest(name, text, rest);
    if (!code) {
        snprintf(spec, STATE_SPEC, "%.*s", (int)(line - text) - STATE_HEAD - 1, text + STATE_HEAD);
        snprintf(state, STATE_TEXT, "%.*s", (int)(rest - line) - 1, line);
    }
    free(text);
    return code;
}

int scaler_state_write(const char *path, const track *t)
{
    char state[STATE_TEXT], text[STATE_HEAD + STATE_SPEC + STATE_TEXT + 2];
    output out = {0};
    const int code = output_open(&out, path);
    if (code)
        return code;
    mpsim_scaler_save(&t->scaler, state, sizeof state);
    snprintf(text, sizeof text, "%s%s\n%s\n", state_head, t->label, state);
    fprintf(out.file, "%s%s%016" PRIx64 "\n", text, state_end, mpsim_digest_bytes(text, strlen(text), 0));
    return output_close(&out);
}
