/* fuzz-pattern.c -- overflow patterns: refused with a place and a word, or as many steps as the check says,
 * which loss scalers then go through. */
#include "input.h"
#include "sim/scaler/pattern.h"
#include "sim/scaler/spec.h"
#include "sim/traininglog/judge.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FEW = 1000 }; /* steps that are gone through */

static int count(double limit, uint64_t n, void *context)
{
    must(limit == -1 || limit >= 0);
    *(uint64_t *)context += n;
    return 0;
}

static void check_track(track *t)
{
    char text[1024], events[128];
    uint64_t steps = 0;
    must(traininglog_verdict_name(traininglog_track_verdict(t, text, sizeof text)) != NULL);
    must_be_line(text);
    (void)traininglog_track_verdict(t, short_room(12), 12);
    must_be_short();
    for (size_t i = 0; i < t->count; i++) {
        steps += t->spans[i].steps;
        must_be_line(traininglog_events_text(events, sizeof events, t, &t->spans[i]));
    }
    must(steps <= t->steps);
}

static void run(const char *text)
{
    scalerrun s = {0};
    messages_begin();
    must(scaler_spec_add_list(&s, "torch,deepspeed,fairseq,static") == 0);
    scaler_run_pattern(&s, text);
    messages_check(0);
    for (size_t i = 0; i < s.count; i++) {
        check_track(&s.tracks[i]);
        traininglog_track_clear(&s.tracks[i]);
    }
    free(s.tracks);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char *text = input_text(data, n);
    uint64_t steps = 0, again = 0, seen = 0;
    size_t at = 0;
    const char *reason = NULL;
    if (scaler_pattern_each(text, NULL, NULL, &steps, &at, &reason)) {
        must(reason && at <= strlen(text));
        must_be_line(reason);
    } else {
        must(steps <= PATTERN_STEPS);
        if (steps <= FEW) {
            must(scaler_pattern_each(text, count, &seen, &again, &at, &reason) == 0);
            must(seen == steps && again == steps);
            run(text);
        }
    }
    free(text);
    return 0;
}
