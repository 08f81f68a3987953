/* facts.h -- what a log tells, put together for the rules of judge.h: where its first overflows
 * are, what explains the later ones, what follows, the course of loss and norm. */
#pragma once

#include "episode.h"
#include "health.h"

/* DEEP: more overflows in a row after a growth than hysteresis explains. ENOUGH: clean steps that
 * show that overflows have stopped. MANY: lines that make a judgement sure. */
enum { FACTS_DEEP = 3, FACTS_ENOUGH = 5, FACTS_MANY = 20 };

/* No gradients are so large that they need a smaller scale. */
#define FACTS_TINY 0x1p-6

typedef struct facts {
    const training_log *l;
    const track *t;
    int by_sum;          /* fairseq, whose losses are sums: scales below 1 are usual   */
    log_dialect dialect; /* of its first line                                        */
    log_episodes e;
    loss_course loss;
    norm_course norm;
    int begins;          /* the log begins with its first overflows                   */
    uint64_t lost_apart; /* losses that are not finite at other steps                */
    int initial;         /* the first overflow is at the scale the run starts at      */
    int early;           /* the first overflows are in the beginning of the run       */
    int late;            /* they are known not to be                                  */
    int ends;            /* clean steps follow the last overflow, enough of them      */
    uint64_t search;     /* episodes of the search                                    */
    uint64_t probes;     /* that a growth explains                                    */
    uint64_t spikes;     /* that nothing explains                                     */
    double highest;      /* scale at which one of these came                          */
    const episode *spike;
    const log_note *total; /* the last that tells how many steps were skipped        */
    const log_note *resumed, *ended;
    double declared; /* the first scale of the settings; NaN                      */
    health health;   /* what the log tells besides a scale                        */
    health_finding found;
} facts;

void facts_find(facts *f, const training_log *l);
void facts_clear(facts *f);

/* facts_late -- whether the line `seq`, at that place, is known not to be in the beginning. */
int facts_late(const log_place *p, uint64_t seq);
/* facts_loss_rises -- from its smallest. */
int facts_loss_rises(const facts *f);
/* facts_skips_most -- more than half of all steps of a run that is under way. */
int facts_skips_most(const facts *f);
/* facts_scaleless -- the log tells no loss scale, and no skipped step that would be one's work; or one that is 1 all
 * the time. */
int facts_scaleless(const facts *f);
/* facts_constant -- the log tells a scale that never moves. */
int facts_constant(const facts *f);
/* facts_isolated -- overflows are single steps among many clean ones, at a scale that never moves, and the loss goes
 * on. */
int facts_isolated(const facts *f);
/* facts_stuck -- nothing overflows any more at a scale that is far below what any gradients need. */
int facts_stuck(const facts *f);
/* facts_first, facts_last -- the first and last overflows; NULL. */
const episode *facts_first(const facts *f);
const episode *facts_last(const facts *f);
