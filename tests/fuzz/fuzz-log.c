/* fuzz-log.c -- training logs (mpsim scaler --log), also with lines of the user's own: any bytes are a log
 * with a verdict and its evidence, or none. */
#include "input.h"
#include "sim/traininglog/judge.h"
#include "sim/traininglog/match.h"

#include <string.h>

static void check_judgement(const training_log *l)
{
    log_judgement j;
    traininglog_judge(&j, l);
    must_be_line(j.text);
    must(j.n_evidence <= EVIDENCE_MAX && strlen(j.missing) < sizeof j.missing);
    for (size_t i = 0; i < j.n_evidence; i++) {
        must_be_line(j.evidence[i].says);
        must(j.evidence[i].line <= j.evidence[i].last_line);
    }
    must(traininglog_verdict_name(j.verdict) && traininglog_confidence_names[j.sure] && traininglog_class(j.verdict));
}

static void check_log(const training_log *l)
{
    const track *t = &l->recorded;
    char events[128];
    log_match m;
    check_judgement(l);
    for (size_t i = 0; i < t->count; i++)
        must_be_line(traininglog_events_text(events, sizeof events, t, &t->spans[i]));
    traininglog_match_scaler(&m, "torch", &mpsim_scaler_find("torch")->config, t, 1);
    must(m.agreed <= m.compared);
}

/* Lines of the user's own, which are no input: regcomp is not for those of strangers. */
static const log_pattern *own_lines(size_t n)
{
    static const char *const good[] = {"it {step} .*amp={scale} skip={overflow}",
                                       "^r{rank} e{epoch} s{step} (loss|lm) {loss} [^]x{}]+ {norm} {scale} {skipped}",
                                       "from {before} to {after} at {step}"};
    static const char *const bad[] = {"{scale} {none}", "{scale} {scale}", "{loss}",
                                      "{scale} (",      "[^]a]{scale} [[", "{"};
    static log_pattern *own[3];
    const char *reason;
    if (own[n % 3])
        return own[n % 3];
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        must(traininglog_pattern_add(&own[n % 3], bad[i], &reason) != 0 && *reason);
    must(traininglog_pattern_add(&own[n % 3], good[n % 3], &reason) == 0);
    return own[n % 3];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static training_log l;
    const char *path = input_path(data, n);
    messages_begin();
    const int code = traininglog_training_log_read(&l, path, n % 2 ? own_lines(n / 2) : NULL);
    messages_check(code);
    if (!code)
        check_log(&l);
    traininglog_training_log_clear(&l);
    return 0;
}
