/* metric.c -- see metric.h. */
#include "metric.h"

#include "../array/need.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 8192 };

/* Limits: NeMo RL draws samples whose token_mult_prob_error is above 1.05 (nemo_rl/algorithms/grpo.py) and its nightly
 * tests take a mean gen_kl_error up to 0.01. 1.05 is the mean of exp |difference of log-probabilities|, so that 0.05 is
 * as far for differences themselves. A KL of 1 is a policy that gives its tokens a third of the probability that they
 * had; clipping 0.3 of all tokens is far outside what the clip range of PPO and GRPO is for. */
const metric metrics[] = {
    {"token_mult_prob_error", METRIC_GAP, 1.05},
    {"gen_kl_error", METRIC_GAP, 0.01},
    {"generation kl error", METRIC_GAP, 0.01},
    {"js_divergence_error", METRIC_GAP, 0.01},
    {"rollout_probs_diff_mean", METRIC_GAP, 0.05},
    {"rollout_corr/kl", METRIC_GAP, 0.01},
    {"sampling_logp_difference/mean", METRIC_GAP, 0.05},
    {"mismatch kl", METRIC_GAP, 0.01},
    {"train_rollout_logprob_abs_diff", METRIC_GAP, 0.05},
    {"kl", METRIC_KL, 1},
    {"kl_loss", METRIC_KL, 1},
    {"kl_penalty", METRIC_KL, 1},
    {"ppo_kl", METRIC_KL, 1},
    {"approx_kl", METRIC_KL, 1},
    {"approxkl_avg", METRIC_KL, 1},
    {"pg_clipfrac", METRIC_CLIP, 0.3},
    {"clip_fraction", METRIC_CLIP, 0.3},
    {"clipfrac_avg", METRIC_CLIP, 0.3},
    {"clip_ratio", METRIC_CLIP, 0.3},
    {"clip_ratio/region_mean", METRIC_CLIP, 0.3},
    {"reward", METRIC_REWARD, 0},
    {"reward score", METRIC_REWARD, 0},
    {"score/mean", METRIC_REWARD, 0},
};
const size_t metric_count = sizeof metrics / sizeof metrics[0];

/* Whether a line may have one of them: most have not. */
static int may_have(const char *line)
{
    static const char *const parts[] = {"kl", "clip", "prob", "logp", "reward", "score", "diverg", NULL};
    for (size_t i = 0; parts[i]; i++)
        if (strstr(line, parts[i]))
            return 1;
    return 0;
}

void metric_values_take(metric_values *all, const char *text, uint64_t line, int64_t step)
{
    char lower[WIDTH + 1];
    size_t length = 0;
    for (; text[length] && length < WIDTH; length++)
        lower[length] = (char)tolower((unsigned char)text[length]);
    lower[length] = 0;
    for (unsigned i = 0; may_have(lower) && i < metric_count; i++) {
        const char *const name[] = {metrics[i].name, NULL};
        metric_value v = {.line = line, .step = step, .metric = i};
        if ((v.kind = words_value_of(lower, name, &v.value)) == VALUE_UNSAID)
            continue;
        if (all->count == METRICS_MAX) {
            all->truncated = 1;
            return;
        }
        need_room(&all->at, all->count, sizeof *all->at);
        all->at[all->count++] = v;
    }
}

int metric_is_in(const char *text)
{
    metric_values some = {.count = 0};
    metric_values_take(&some, text, 0, -1);
    const int found = some.count > 0;
    free(some.at);
    return found;
}
