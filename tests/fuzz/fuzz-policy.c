/* fuzz-policy.c -- any bytes, apart at zero bytes, must be policies or be refused: no crash, no hang, no growth. */
#include "input.h"
#include "sim/policy/policy.h"

#include <math.h>
#include <string.h>

/* The message names the file. */
static void check_error(const trace_error *e, int code, const char *path)
{
    must(code == e->exit && (code == 3 || code == 4));
    must(strncmp(e->text, path, strlen(path)) == 0);
    must_be_line(e->text);
}

/* What replay relies on. */
static void check_plan(const plan *p)
{
    static const char *const layers[] = {"", "fc1", "blocks.0.ln1", "[", "lm_head"};
    policy_depth depth = {0, 0, 0};
    char line[512];
    must(mpsim_scaler_config_check(&p->scaler) == MPSIM_OK);
    must(p->precision[0] && p->autocast);
    must(p->clip == MPSIM_CLIP_NONE || (p->max_norm > 0 && isfinite(p->max_norm)));
    must(p->optimizer.n_variants >= 1 && p->optimizer.n_variants <= 4);
    for (size_t i = 0; i < p->optimizer.n_variants; i++)
        must(p->optimizer.variants[i] != NULL);
    must(strlen(policy_plan_describe(p, line, sizeof line)) < sizeof line);
    (void)policy_plan_describe(p, short_room(20), 20);
    must_be_short();
    if (p->recipe && p->recipe->delayed)
        must(mpsim_delayed_config_check(&p->delayed) == MPSIM_OK);
    for (size_t i = 0; i < sizeof layers / sizeof layers[0]; i++)
        for (int rank = -1; rank < 7; rank++) {
            const layer_kind k = policy_layer(p, layers[i], rank);
            train_placement place;
            must(k < LAYER_KINDS);
            policy_plan_place(p, k, layers[i], &place);
            policy_depth_add(&depth, layers[i]);
            policy_plan_keep_ends(p, &depth, layers[i], &place);
            must(mpsim_format_check(&place.storage) == MPSIM_OK && policy_layer_kind_name(k));
            must(!policy_plan_is_muon(p, k, layers[i], 2) || p->optimizer.has_muon);
            policy_plan_place_attention(p, &place);
            for (int role = 0; role < TRAIN_ROLES; role++) {
                const mpsim_block_recipe *b = place.recipe[role];
                must(!b || mpsim_block_check(b) == MPSIM_OK);
                must(mpsim_format_check(&place.format[role]) == MPSIM_OK);
            }
        }
}

static void read_policy(const uint8_t *data, size_t n)
{
    const char *path = input_path(data, n);
    policy p;
    trace_error e = {0};
    const int code = policy_load(&p, path, 0, &e);
    if (code) {
        check_error(&e, code, path);
        return;
    }
    must(p.count >= 1 && p.plans[0].from == 0 && p.name);
    for (size_t i = 0; i < p.count; i++) {
        must(i == 0 || p.plans[i].from > p.plans[i - 1].from);
        must(policy_plan(&p, p.plans[i].from) == &p.plans[i]);
        check_plan(&p.plans[i]);
    }
    policy_clear(&p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    input_pieces(data, n, read_policy);
    return 0;
}
