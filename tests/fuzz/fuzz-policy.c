/* fuzz-policy.c -- any bytes must be a policy or be refused: no crash, no hang, no growth.
 *
 * With libFuzzer: clang -g -O1 -fvisibility=hidden -fsanitize=fuzzer,address,undefined -Ilib -Isim
 * -D_GNU_SOURCE -DMPSIM_POLICIES_DIR='""', this file, sim/policy*.c, sim/cli/options.c, the .c files of
 * sim/trace and lib, -lyaml -ljansson -lzip -lz -lm; then
 *   ./fuzz-policy -max_len=4096 new-corpus tests/fuzz/policies data/policies
 * With any compiler, for the files given as arguments: -DFUZZ_STANDALONE. */
#include "fuzzfile.h"
#include "sim/policy/policy.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void must(int true_always)
{
    if (!true_always)
        abort();
}

/* Whatever a message says, it is one line that a terminal can be shown, and it names the file. */
static void check_error(const trace_error *e, int code)
{
    must(code == e->exit && (code == 3 || code == 4));
    must(strncmp(e->text, path, strlen(path)) == 0);
    for (const char *s = e->text; *s; s++)
        must((unsigned char)*s >= 0x20 && *s != 0x7f);
}

/* What replay relies on. */
static void check_plan(const plan *p)
{
    static const char *const layers[] = {"", "fc1", "blocks.0.ln1", "[", "lm_head"};
    char line[512], cut[20];
    must(mpsim_scaler_config_check(&p->scaler) == MPSIM_OK);
    must(p->precision[0] && p->autocast);
    must(p->clip == MPSIM_CLIP_NONE || (p->max_norm > 0 && isfinite(p->max_norm)));
    must(p->optimizer.n_variants >= 1 && p->optimizer.n_variants <= 4);
    for (size_t i = 0; i < p->optimizer.n_variants; i++)
        must(p->optimizer.variants[i] != NULL);
    must(strlen(plan_describe(p, line, sizeof line)) < sizeof line);
    must(strlen(plan_describe(p, cut, sizeof cut)) < sizeof cut);
    if (p->recipe && p->recipe->delayed)
        must(mpsim_delayed_config_check(&p->delayed) == MPSIM_OK);
    for (size_t i = 0; i < sizeof layers / sizeof layers[0]; i++)
        for (int rank = -1; rank < 7; rank++) {
            const layer_kind k = policy_layer(p, layers[i], rank);
            train_placement place;
            must(k < LAYER_KINDS);
            plan_place(p, k, layers[i], &place);
            must(mpsim_format_check(&place.storage) == MPSIM_OK);
            for (int role = 0; role < TRAIN_ROLES; role++) {
                const mpsim_block_recipe *b = place.recipe[role];
                must(!b || mpsim_block_check(b) == MPSIM_OK);
                must(mpsim_format_check(&place.format[role]) == MPSIM_OK);
            }
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    const int fd = input_file();
    policy p;
    trace_error e = {0};
    if (ftruncate(fd, 0) || pwrite(fd, data, n, 0) != (ssize_t)n)
        return 0;
    const int code = policy_load(&p, path, 0, &e);
    if (code) {
        check_error(&e, code);
        return 0;
    }
    must(p.count >= 1 && p.plans[0].from == 0 && p.name);
    for (size_t i = 0; i < p.count; i++) {
        must(i == 0 || p.plans[i].from > p.plans[i - 1].from);
        must(policy_plan(&p, p.plans[i].from) == &p.plans[i]);
        check_plan(&p.plans[i]);
    }
    policy_clear(&p);
    return 0;
}
