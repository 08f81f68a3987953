/* judge.c -- see judge.h. */
#include "judge.h"

#include "../text/words.h"
#include "evidence.h"
#include "sentences.h"
#include "stuck.h"

const char *log_class(verdict v)
{
    return verdict_class(v);
}

const char *confidence_name(confidence c)
{
    static const char *const names[] = {"not enough", "likely", "certain"};
    return names[c];
}

verdict track_verdict(const track *t, char *text, size_t size)
{
    facts f;
    stuck_facts(&f, t);
    const verdict_row *row = verdict_find(&f);
    verdict_says(row, &f, text, size);
    return row->verdict;
}

/* What the log tells besides. */
static void add_rest(log_judgement *j, const facts *f, const verdict_row *row)
{
    const int says_loss = row->verdict == VERDICT_NOT_FINITE && row->says != says_isolated;
    if (row->by_numbers && f->set & FACT(SCALED) && row->verdict != VERDICT_UNCLEAR)
        text_add(j->text, sizeof j->text, " The loss scale alone would look better.");
    else if (!row->by_numbers)
        sentence_rest(f, !says_loss, row->verdict != VERDICT_RESUMED, j->text, sizeof j->text);
}

void log_judge(log_judgement *j, const training_log *l)
{
    static facts f; /* many series */
    facts_of_log(&f, l);
    const verdict_row *row = verdict_find(&f);
    *j = (log_judgement){.verdict = row->verdict, .sure = verdict_confidence(row, &f), .advice = row->advice};
    verdict_says(row, &f, j->text, sizeof j->text);
    add_rest(j, &f, row);
    evidence_find(j, &f, row->by_numbers);
    evidence_miss(j, &f, row->by_numbers);
    facts_clear(&f);
}
