/* judge.c -- see judge.h. A log is judged in five steps:
 *
 *     facts (facts.c, numbers.c) -> the first row of verdict.c that fits -> its sentence, and what the log tells besides
 *                                -> doubts, which may weaken the verdict  -> the lines that it rests on, what is missing (evidence.c) */
#include "judge.h"

#include "../record/cells.h"
#include "../text/words.h"
#include "impl.h"
#include "sentences.h"

#include <stdio.h>

const char *traininglog_class(verdict v)
{
    return traininglog_verdict_class(v);
}

const char *const traininglog_confidence_names[] = {"not enough", "likely", "certain", NULL};

verdict traininglog_track_verdict(const track *t, char *text, size_t size)
{
    facts f;
    traininglog_stuck_facts(&f, t);
    const verdict_row *row = traininglog_verdict_find(&f);
    traininglog_verdict_says(row, &f, text, size);
    return row->verdict;
}

/* What the log tells besides. */
static void add_rest(log_judgement *j, const facts *f, const verdict_row *row)
{
    const int says_loss = row->verdict == VERDICT_NOT_FINITE && row->says != traininglog_says_isolated;
    if (row->by_numbers && f->set & FACT(SCALED) && row->verdict != VERDICT_UNCLEAR)
        text_add(j->text, sizeof j->text, " The loss scale alone would look better.");
    else if (!row->by_numbers)
        traininglog_sentence_rest(f, !says_loss, row->verdict != VERDICT_RESUMED, j->text, sizeof j->text);
}

/* Notes with one of these marks. */
static size_t marked(const training_log *l, unsigned mark)
{
    size_t n = 0;
    for (size_t i = 0; i < l->notes.count; i++)
        n += (l->notes.at[i].marks & mark) != 0;
    return n;
}

/* A bar's mean stays NaN to the end of an epoch, whatever the steps after it do. */
static void doubt_bar(log_judgement *j, const facts *f)
{
    if (j->verdict != VERDICT_LOST || !f->loss.lost || marked(f->l, NOTE_BAR) < f->loss.lost)
        return;
    j->sure = j->sure > LIKELY ? LIKELY : j->sure;
    text_add(
        j->text, sizeof j->text,
        " The loss of this bar is a mean: one step whose loss is NaN makes it NaN to the end of the epoch. Look at the "
        "losses of single steps.");
}

/* Steps that are skipped with a finite norm: no overflow, and no training. */
static void doubt_skipped(log_judgement *j, const facts *f)
{
    char a[32];
    const size_t n = marked(f->l, NOTE_SKIPPED);
    const int fine = j->verdict == VERDICT_WELL || j->verdict == VERDICT_CLEAN || j->verdict == VERDICT_UNCLEAR;
    if (n == 0 || 2 * n < f->norm.n || !fine)
        return;
    j->verdict = VERDICT_UNCLEAR;
    j->sure = NOT_ENOUGH;
    j->advice = "Look at the threshold: raise it if such norms are usual for this run. Else look at the batches.";
    snprintf(
        j->text, sizeof j->text,
        "%s step%s skipped with a finite norm of the gradients: by a threshold of the norm, not by an overflow. While "
        "every step is skipped the run stands still.",
        text_count(a, n), n == 1 ? " is" : "s are");
}

/* What to do, without what is done already. */
static const char *advice_of(const verdict_row *row, const facts *f)
{
    return row->verdict == VERDICT_WELL && f->loss.n && f->norm.n ? "Go on." : row->advice;
}

void traininglog_judge(log_judgement *j, const training_log *l)
{
    static facts f; /* many series */
    traininglog_facts_of_log(&f, l);
    const verdict_row *row = traininglog_verdict_find(&f);
    *j = (log_judgement){
        .verdict = row->verdict, .sure = traininglog_verdict_confidence(row, &f), .advice = advice_of(row, &f)};
    traininglog_verdict_says(row, &f, j->text, sizeof j->text);
    add_rest(j, &f, row);
    doubt_bar(j, &f);
    doubt_skipped(j, &f);
    traininglog_evidence_find(j, &f, row->by_numbers);
    traininglog_evidence_miss(j, &f, row->by_numbers);
    traininglog_facts_clear(&f);
}
