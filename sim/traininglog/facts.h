/* facts.h -- the facts of a log, or of a simulated scaler, found once: the overflows and what explains them, the courses of the loss,
 * the norm and other numbers. A set of facts decides the verdict (verdict.h); numbers behind them are for the sentences. */
#pragma once

#include "course.h"
#include "episode.h"

/* DEEP: more overflows in a row after a growth than hysteresis explains. ENOUGH: clean steps that
 * show that overflows have stopped. MANY: lines that make a judgement sure. FEW: from so many lines on their number
 * changes how sure a verdict is, not which one it is. */
enum { FACTS_DEEP = 3, FACTS_ENOUGH = 5, FACTS_MANY = 20, FACTS_FEW = 4 };

/* No gradients are so large that they need a smaller scale. */
#define FACTS_TINY 0x1p-6

/* ---- facts, a bit each ---- */

#define FACTS(X)                                                                                                \
    X(SIMULATED)    /* a scaler, no log */                                                                      \
    X(STEPS)        /* the log has steps with a scale */                                                        \
    X(SCALED)       /* the log has a loss scale that is not always 1 */                                         \
    X(OVERFLOWS)    /* any */                                                                                   \
    X(SKIPS_MOST)   /* more than half of all steps of a run under way are skipped */                            \
    X(STOPPED)      /* by the framework's own error */                                                          \
    X(TAKEN)        /* steps with Inf or NaN are taken */                                                       \
    X(NORM_TAKEN)   /* the norm is NaN at steps that were taken by the log */                                   \
    X(LOW)          /* nothing overflows any more at a scale far below what any gradients need */               \
    X(STUCK)        /* simulated: far from what fits, by the scaler's own settings */                           \
    X(AT_ONE)       /* the last scale is 1 or less */                                                           \
    X(ISOLATED)     /* single overflows among many clean steps, at a scale that never moves */                  \
    X(RUNS_AWAY)    /* the last steps overflow at every scale */                                                \
    X(COLLAPSES)    /* overflows in a row, late; or they push the scale down while the loss rises */            \
    X(GONE_AT_ONE)  /* the norm is NaN step after step at a scale of 1 */                                       \
    X(NOT_FINITE)   /* simulated: overflows are Inf or NaN as recorded */                                       \
    X(RESUMED)      /* a jump of the scale, or a search after a checkpoint was loaded */                        \
    X(LOST_BETWEEN) /* the loss is not finite at overflows; or totals report skipped steps after the last */    \
    X(SEARCH)       /* all overflows are of the search at the beginning */                                      \
    X(PLACED)       /* their place in the run is known, or what follows */                                      \
    X(ENDS)         /* clean steps follow the last overflow, enough of them */                                  \
    X(UNSURE)       /* they are of an interval in which that came */                                            \
    X(PROBES)       /* growth explains the overflows after the search */                                        \
    X(SPIKES)       /* nothing explains them */                                                                 \
    X(CONSTANT)     /* the scale never moves */                                                                 \
    X(RANKS)        /* ranks report different scales at the same step */                                        \
    X(LOSS_GONE)    /* the loss is Inf or NaN to the end, or in most lines */                                   \
    X(LOSS_APART)   /* at steps without an overflow, finite after; or on another rank */                        \
    X(NORM_GONE)                                                                                                \
    X(NORM_APART)                                                                                               \
    X(NORM_LOST) /* anywhere: without NORM_APART before the first finite one, of few lines */                   \
    X(VALIDATION_GONE)                                                                                          \
    X(METRIC_GONE)                                                                                              \
    X(GAP)       /* trainer and sampler differ */                                                               \
    X(KL)        /* the policy has left its reference */                                                        \
    X(CLIP)      /* most of the objective is clipped */                                                         \
    X(FLAT)      /* nothing is learned */                                                                       \
    X(RISES)     /* the loss has left its best level */                                                         \
    X(AT_START)  /* the log begins where the run does */                                                        \
    X(STARTING)  /* it did so, or was above its first value, at the start, and falls */                         \
    X(JUMPS)     /* of the loss or the norm */                                                                  \
    X(LEARNS)    /* by reinforcement: the loss is no measure */                                                 \
    X(ZERO_LOSS) /* and is 0 or near it */                                                                      \
    X(FEW)       /* fewer lines than a verdict needs */                                                         \
    X(ONE_LINE)  /* has a scale and no overflow */                                                              \
    /* what forbids to reassure besides */                                                                      \
    X(UNREAD)      /* overflows whose scale cannot be read */                                                   \
    X(BAD_LAST)    /* the last scale cannot be read */                                                          \
    X(HIDDEN)      /* the rest of lines that are too long has scales */                                         \
    X(MAY_RISE)    /* the loss ends above what it reached, and nothing shows that this is noise */              \
    X(ZEROS)       /* the loss is exactly 0 at the end, or the same number all the time */                      \
    X(LOST_MEAN)   /* a running mean is not finite */                                                           \
    X(DOWN_AT_ONE) /* overflows, and the scale is down at 1 */                                                  \
    X(BELOW_ONE)   /* the scale is below 1 */                                                                   \
    X(ENDED)       /* an error ends the run */                                                                  \
    /* what makes sure */                                                                                       \
    X(READ)       /* nothing is left out: no lines cut, no numbers unread */                                    \
    X(MANY)       /* lines with a loss and a norm */                                                            \
    X(LONG)       /* steps and losses enough */                                                                 \
    X(ENDING)     /* the last loss is not finite */                                                             \
    X(ENDLESS)    /* overflows beyond any search */                                                             \
    X(SURE_SCALE) /* a search from a known start to clean steps; or several growths, and all steps are known */ \
    X(NORM_TOLD)                                                                                                \
    X(SETTLED)   /* the loss ends near its best level */                                                        \
    X(SURE_RISE) /* the rise is many times its error */                                                         \
    X(RESTARTS)  /* the steps begin again */

#define FACTS_NUMBER(name) FACT_##name##_AT,
enum { FACTS(FACTS_NUMBER) FACTS_COUNT };
#undef FACTS_NUMBER
_Static_assert(FACTS_COUNT <= 64, "facts are bits of 64");

/* FACT(SEARCH): the bit. */
#define FACT(name) ((uint64_t)1 << FACT_##name##_AT)

static inline uint64_t traininglog_if_so(int so, uint64_t fact)
{
    return so ? fact : 0;
}

/* ---- numbers behind them ---- */

/* Why a simulated scale is far from what fits. */
typedef enum stuck { STUCK_NOT, STUCK_CONSTANT, STUCK_FLOOR, STUCK_LOW, STUCK_HIGH, STUCK_INFINITE } stuck;

typedef struct facts {
    uint64_t set;
    const training_log *l; /* NULL: a simulated scaler */
    const track *t;
    int by_sum;          /* fairseq, whose losses are sums: scales below 1 are usual   */
    log_dialect dialect; /* of its first line                                        */
    log_episodes e;
    series loss, norm, validation, more[METRIC_NAMES];
    course of_loss, of_norm, of_worst;
    size_t n_more;
    const series *worst; /* the metric beyond its limit */
    double limit;        /* that */
    sample high;         /* the number beyond it */
    int initial;         /* the first overflow is at the scale the run starts at      */
    int early;           /* the first overflows are in the beginning of the run       */
    int late;            /* they are known not to be                                  */
    uint64_t spikes;     /* groups of overflows that nothing explains                 */
    const episode *spike;
    const log_note *total; /* the last with the number of skipped steps        */
    const log_note *resumed, *ended, *lost_mean;
    double declared; /* the first scale of the settings; NaN                      */
    stuck stuck;
} facts;

/* traininglog_facts_of_log -- find them all; of a simulated scaler: stuck.h. */
void traininglog_facts_of_log(facts *f, const training_log *l);
void traininglog_facts_clear(facts *f);

/* traininglog_facts_last -- the last overflows; NULL. */
const episode *traininglog_facts_last(const facts *f);
