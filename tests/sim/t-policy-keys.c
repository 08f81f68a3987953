/* t-policy-keys.c -- what every key of a policy file takes, and what a file says of itself. (What is refused: t-policy-bad.c.) */
#include "sim/cli/rules.h"
#include "sim/policy/impl.h"
#include "support/badfile.h"
#include "support/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void load(policy *p, const char *text)
{
    trace_error e = {0};
    blob b = {0};
    blob_add(&b, text, strlen(text));
    const int code = policy_load(p, bad_write("case.yaml", &b), 0, &e);
    ck_assert_msg(code == 0, "refused: %s\n%s", e.text, text);
}

typedef struct row {
    const char *text;
    unsigned plans;
    const char *fragment; /* of policy_plan_describe of the last plan */
} row;

/* clang-format off */
/* Text; how many plans; a part of what the last one says of itself. */
static const row good[] = {
    {"precision: no\n", 1, "no: compute binary32, autocast none, parameters binary32, gradients binary32, scaler none"},
    {"# a comment\nprecision: fp32\n", 1, "compute binary32"},
    {"---\nprecision: fp16\n...\n", 1, "fp16: compute fp16"},
    {"%YAML 1.1\n---\nprecision: fp16\n", 1, "fp16: compute fp16"},
    {"{precision: fp16, clip: 1}\n", 1, "clip 1 (torch)"},
    {"precision: fp16\r\nclip: 0.5\r\n", 1, "clip 0.5 (torch)"},
    {"\xef\xbb\xbfprecision: bf16\n", 1, "bf16: compute bf16"},
    {"\"precision\": 'fp16'\n", 1, "fp16: compute fp16, autocast torch, parameters binary32, gradients fp16, scaler torch"},
    {"note: >\n  several\n  lines\nprecision: no\n", 1, "no: compute binary32"},
    {"name: Größe\nsource: s\nnote: n\nprecision: no\n", 1, "no: compute"},
    {"precision: no\n", 1, "no: compute binary32"},
    {"precision: fp32\n", 1, "fp32: compute binary32"},
    {"precision: 32\n", 1, "32: compute binary32"},
    {"precision: float32\n", 1, "float32: compute binary32"},
    {"precision: FP16\n", 1, "compute fp16"},
    {"precision: float16\n", 1, "compute fp16, autocast torch, parameters binary32, gradients fp16, scaler torch"},
    {"precision: 16-mixed\n", 1, "compute fp16"},
    {"precision: mixed_float16\n", 1, "compute fp16, autocast norms-fp32, parameters binary32, gradients fp16, scaler keras"},
    {"precision: bf16\n", 1, "compute bf16, autocast torch, parameters binary32, gradients bf16, scaler none"},
    {"precision: bfloat16\n", 1, "compute bf16"},
    {"precision: bf16-mixed\n", 1, "compute bf16"},
    {"precision: mixed_bfloat16\n", 1, "compute bf16, autocast norms-fp32, parameters binary32, gradients bf16, scaler none"},
    {"precision: fp8\n", 1, "compute bf16, autocast torch, parameters binary32, gradients bf16, scaler none, delayed hybrid"},
    {"precision: mxfp8\n", 1, "scaler none, mxfp8"},
    {"precision: mxfp6\n", 1, "scaler none, mxfp6"},
    {"precision: mxfp4\n", 1, "scaler none, mxfp4"},
    {"precision: nvfp4\n", 1, "scaler none, nvfp4"},
    {"opt_level: O0\n", 1, "O0: compute binary32, autocast none, parameters binary32, gradients binary32, scaler static"},
    {"opt_level: O1\n", 1, "O1: compute fp16, autocast torch, parameters binary32, gradients fp16, scaler apex"},
    {"opt_level: O2\n", 1, "O2: compute fp16, autocast batchnorm-fp32, parameters fp16, fp32 master, gradients fp16, scaler apex"},
    {"opt_level: O3\n", 1, "O3: compute fp16, autocast all, parameters fp16, gradients fp16, scaler static"},
    {"opt_level: O3\nkeep_batchnorm_fp32: true\n", 1, "autocast batchnorm-fp32"},
    {"opt_level: O2\nkeep_batchnorm_fp32: False\n", 1, "autocast all"},
    {"precision: bf16\nfp8: e4m3\nfp8_recipe: mxfp8\n", 1, "mxfp8"},
    {"precision: bf16\nfp8: e4m3\nfp8_recipe: blockwise\n", 1, "blockwise"},
    {"precision: bf16\nfp8: none\n", 1, "bf16"},
    {"clip: null\n", 1, "scaler none"},
    {"opt_level: O2\nmaster_weights: false\n", 1, "parameters fp16, gradients"},
    {"opt_level: O2\nloss_scaling: dynamic\n", 1, "scaler apex"},
    {"opt_level: O2\nloss_scaling: 128.0\n", 1, "scaler static"},
    {"autocast: torch\ncompute: bf16\n", 1, "fp32: compute bf16, autocast torch, parameters binary32, gradients bf16"},
    {"precision: fp16\ngrads: fp32\n", 1, "gradients binary32"},
    {"grads: fp32\nprecision: fp16\ncompute: bf16\n", 1, "compute bf16, autocast torch, parameters binary32, gradients binary32"},
    {"precision: bf16\nparams: bf16\n", 1, "parameters bf16, gradients bf16"},
    {"precision: bf16\nparams: bf16\nmaster_weights: yes\n", 1, "parameters bf16, fp32 master"},
    {"precision: bf16\nparams: bf16\nmaster_weights: Split\n", 1, "parameters bf16, split master"},
    {"precision: bf16\nparams: bf16\nmaster_weights: off\n", 1, "parameters bf16, gradients"},
    {"master_weights: no\n", 1, "parameters binary32, gradients"},
    {"precision: fp16\nautocast: megatron\n", 1, "autocast megatron"},
    {"precision: fp16\nautocast: NONE\n", 1, "autocast none"},
    {"precision: fp16\nautocast: norms-fp32\n", 1, "autocast norms-fp32"},
    {"keep_fp32: [head, '*norm*']\n", 1, "fp32"},
    {"keep_fp32: []\n", 1, "fp32"},
    {"layer_kinds: {'fc*': conv, x: Linear}\n", 1, "fp32"},
    {"precision: fp16\nloss_scaling: none\n", 1, "scaler none"},
    {"precision: fp16\nloss_scaling: no\n", 1, "scaler none"},
    {"precision: fp16\nloss_scaling: false\n", 1, "scaler none"},
    {"precision: fp16\nloss_scaling: dynamic\n", 1, "scaler torch"},
    {"precision: fp16\nloss_scaling: 2^10\n", 1, "scaler static"},
    {"precision: fp16\nloss_scaling: tf_keras\n", 1, "scaler tf-keras"},
    {"precision: fp16\nloss_scaling: 'fairseq:init=4'\n", 1, "scaler fairseq"},
    {"fp8: hybrid\n", 1, "delayed hybrid"},
    {"fp8: E4M3\n", 1, "delayed e4m3"},
    {"precision: fp16\nfp8: e4m3\nfp8_recipe: current\n", 1, "current e4m3"},
    {"precision: bf16\nfp8: hybrid\nfp8_recipe: tensorwise\n", 1, "tensorwise hybrid"},
    {"precision: bf16\nfp8_recipe: blockwise\n", 1, ", blockwise"},
    {"precision: bf16\nfp8_recipe: torchao-tensorwise\n", 1, ", torchao-tensorwise"},
    {"precision: bf16\nfp8_recipe: torchao-rowwise\n", 1, ", torchao-rowwise"},
    {"precision: bf16\nfp8_recipe: ms-amp\n", 1, ", ms-amp"},
    {"precision: fp8\nfp8_params: true\n", 1, "delayed"},
    {"precision: bf16\nfp8_params: false\n", 1, "bf16"},
    {"precision: fp8\nfp8_exclude: [head]\n", 1, "delayed"},
    {"precision: fp8\nfp8_margin: -3\nfp8_amax_history_len: 1Ki\nfp8_amax_compute_algo: MAX\n", 1, "delayed"},
    {"precision: nvfp4\n", 1, "scaler none, nvfp4"},
    {"precision: nvfp4\ndisable_rht: true\ndisable_2d_quantization: yes\ndisable_stochastic_rounding: on\n", 1, "nvfp4 without RHT without 2D scales without stochastic rounding"},
    {"precision: nvfp4\nfirst_last_layers_bf16: true\nnum_layers_at_end_in_bf16: 18446744073709551615\n", 1, "last 18446744073709551615 layers"},
    {"precision: nvfp4\ndisable_rht: false\n", 1, "nvfp4"},
    {"precision: fp8\nfirst_last_layers_bf16: true\n", 1, "delayed hybrid, first 1 and last 1 layers in bf16"},
    {"precision: mxfp8\nfp8_recipe: mxfp8:rceil\nfirst_last_layers_bf16: true\nnum_layers_at_start_in_bf16: 0\nnum_layers_at_end_in_bf16: 12.5%\n", 1, "mxfp8:rceil, first 0 and last 12.5 % layers in bf16"},
    {"precision: bf16\nfp8_recipe: deepseek\n", 1, ", deepseek"},
    {"clip: 1.5\n", 1, "clip 1.5 (torch)"},
    {"clip: none\n", 1, "scaler none"},
    {"max_grad_norm: 1.0\n", 1, "clip 1 (torch)"},
    {"max_grad_norm: null\n", 1, "scaler none"},
    {"schedule:\n  - step: 1\n    precision: bf16\n    opt_level: O1\n", 2, "O1 bf16: compute bf16, autocast torch"},
    /* words that frameworks and guides print */
    {"precision: fp16-mixed\n", 1, "compute fp16, autocast torch, parameters binary32, gradients fp16, scaler torch"},
    {"mixed_precision: fp16\n", 1, "fp16: compute fp16, autocast torch"},
    {"mixed_precision: torch.bfloat16\n", 1, "bfloat16: compute bf16, autocast torch"},
    {"policy: mixed_float16\n", 1, "mixed_float16: compute fp16, autocast norms-fp32"},
    {"amp_opt_level: O2\n", 1, "O2: compute fp16, autocast batchnorm-fp32"},
    {"opt_level: O1\nprecision: bf16-mixed\n", 1, "O1 bf16: compute bf16, autocast torch, parameters binary32, gradients bf16, scaler none"},
    {"amp_opt_level: O2\nmixed_precision: bf16\n", 1, "O2 bf16: compute bf16, autocast batchnorm-fp32, parameters bf16, fp32 master, gradients bf16, scaler none"},
    {"opt_level: O2\nprecision: bf16\nloss_scaling: 128\n", 1, "gradients bf16, scaler static"},
    {"opt_level: O2\ncompute: bf16\n", 1, "O2 bf16: compute bf16, autocast batchnorm-fp32, parameters bf16, fp32 master, gradients bf16, scaler none"},
    {"param_dtype: bf16\nbuffer_dtype: bf16\ncast_forward_inputs: true\n", 1, "parameters bf16, fp32 master, gradients bf16, scaler none"},
    {"param_dtype: torch.bfloat16\nreduce_dtype: torch.float32\n", 1, "param_dtype bf16: compute bf16, autocast all, parameters bf16, fp32 master, gradients bf16, scaler none, ranks added in a ring over a wire of binary32"},
    {"param_dtype: bf16\nreduce_dtype: null\n", 1, "parameters bf16, fp32 master, gradients bf16, scaler none"},
    {"precision: fp16\nparam_dtype: float16\n", 1, "fp16: compute fp16, autocast all, parameters fp16, fp32 master, gradients fp16, scaler torch"},
    {"param_dtype: float32\n", 1, "param_dtype binary32: compute binary32, autocast none, parameters binary32, gradients binary32"},
    {"gradient_clipping: 0.5\n", 1, "clip 0.5 (torch)"},
    {"gradient_clip_val: 0.5\n", 1, "clip 0.5 (torch)"},
    {"precision: fp8\nfp8_margin: 2\nfp8_amax_history_len: 16\nfp8_amax_compute_algo: most_recent\n", 1, "delayed hybrid, FP8 margin 2, history 16, amax most_recent"},
    {"precision: fp16\nschedule:\n  - step: 5\n    mixed_precision: bf16\n", 2, "bf16: compute bf16, autocast torch, parameters binary32, gradients bf16, scaler none"},
    {"precision: fp16\nopt_level: O2\n", 1, "O2: compute fp16, autocast batchnorm-fp32, parameters fp16, fp32 master, gradients fp16, scaler apex"},
    {"policy:\n  precision: bfloat16\n  max_grad_norm: 1.0\n", 1, "bfloat16: compute bf16, autocast megatron, parameters binary32, gradients bf16, scaler none, ranks added in a ring over a wire of binary32, clip 1 (megatron-float)"},
    {"policy:\n  precision: float16\n", 1, "float16: compute fp16, autocast megatron, parameters binary32, gradients fp16, scaler none, ranks"},
    {"policy:\n  precision: float32\n  max_grad_norm: null\n", 1, "float32: compute binary32, autocast none, parameters binary32, gradients binary32, scaler none, ranks added in a ring over a wire of binary32"},
    {"keep_fp32: [head]\nautocast: torch\npolicy: {precision: bfloat16}\n", 1, "bfloat16: compute bf16, autocast torch"},
    {"policy:\n  precision: bfloat16\n  megatron_cfg: {enabled: true, distributed_data_parallel_config: {grad_reduce_in_fp32: true}}\n", 1, "bfloat16: compute bf16, autocast megatron, parameters bf16, fp32 master, gradients binary32, scaler none, ranks added in a ring over a wire of binary32"},
    {"policy:\n  precision: float16\n  max_grad_norm: 2\n  megatron_cfg: {enabled: true, optimizer: {clip_grad: 1}}\n", 1, "float16: compute fp16, autocast megatron, parameters fp16, fp32 master, gradients fp16, scaler megatron, ranks added in a ring over a wire of fp16, clip 2 (megatron)"},
    {"policy:\n  megatron_cfg: {enabled: true, optimizer: {clip_grad: 3.0}}\n", 1, "clip 3 (megatron)"},
    {"policy:\n  precision: bfloat16\n  megatron_cfg:\n    fp8_cfg: {fp8: hybrid, fp8_recipe: tensorwise, fp8_param: false}\n", 1, "tensorwise hybrid"},
    {"policy: {precision: bfloat16, fp8_cfg: {enabled: true, fp8: e4m3, fp8_recipe: blockwise, fp8_param: false}}\n", 1, ", blockwise"},
    {"policy:\n  megatron_cfg: {enabled: true, fp8_cfg: {enabled: false, fp8: e4m3, fp8_recipe: blockwise}}\n", 1, "scaler none, ranks added in a ring over a wire of bf16"},
    {"clip: {max_norm: 2}\n", 1, "clip 2 (torch)"},
    {"precision: fp16\nclip: {max_norm: 2, before_unscale: true}\n", 1, "clip 2 (torch, before unscaling)"},
    {"clip: {rule: megatron-float, max_norm: 2, norm: trace}\n", 1, "clip 2 (megatron-float)"},
    {"clip: {rule: none}\n", 1, "scaler none"},
    {"precision: bf16\nparams: bf16\noptimizer: {store: kahan, variant: optimi}\n", 1, "parameters bf16, Kahan"},
    {"precision: bf16\nparams: bf16\noptimizer: {store: stochastic}\n", 1, "parameters bf16, stochastic rounding"},
    {"policy: &base {precision: bfloat16, max_grad_norm: 2}\nteacher: {<<: *base, precision: float32}\n", 1, "bfloat16: compute bf16, autocast megatron, parameters binary32, gradients bf16, scaler none, ranks added in a ring over a wire of binary32, clip 2 (megatron-float)"},
    {"steps_per_epoch: 10\n", 1, "fp32"},
    {"schedule: []\nprecision: fp16\n", 1, "fp16"},
    {"schedule:\n  - {step: 1, precision: bf16}\n", 2, "bf16: compute bf16"},
    {"schedule:\n  - {step: 5, precision: bf16}\n  - {step: 6, clip: 1}\n", 3, "bf16: compute bf16, autocast torch, parameters binary32, gradients bf16, scaler none, clip 1 (torch)"},
    {"steps_per_epoch: 10\nschedule: [{epoch: 2}, {step: 12, precision: fp16}]\n", 3, "fp16"},
    /* a new precision says everything of precision anew, and nothing else */
    {"opt_level: O2\nclip: 1\nschedule: [{step: 9, precision: bf16}]\n", 2, "bf16: compute bf16, autocast torch, parameters binary32, gradients bf16, scaler none, clip 1 (torch)"},
    {"precision: fp8\nfp8_margin: 1\nfp8_exclude: [a]\nfp8_params: true\nschedule: [{step: 9, precision: no}]\n", 2, "no: compute binary32, autocast none, parameters binary32, gradients binary32, scaler none"},
    {"precision: fp16\nloss_scaling: keras\nschedule: [{step: 9, precision: bf16}]\n", 2, "scaler none"},
    {"precision: bf16\nloss_scaling: keras\nschedule: [{step: 9, clip: 1}]\n", 2, "scaler keras"},
    {"precision: bf16\nparams: bf16\nmaster_weights: split\nschedule: [{step: 9, opt_level: O3}]\n", 2, "O3: compute fp16, autocast all, parameters fp16, gradients fp16, scaler static"},
    /* anchors, aliases and merge keys: what is given goes before what is merged, the first map before the second */
    {"precision: bf16\nsteps_per_epoch: 10\nschedule:\n  - &a {step: 5, clip: &n 3}\n  - {<<: *a, step: 6}\n", 3, "scaler none, clip 3 (torch)"},
    {"precision: bf16\nschedule:\n  - &a {step: 5, clip: 3}\n  - &b {step: 6, clip: 4, precision: fp16}\n  - {<<: [*a, *b], step: 7}\n", 4, "fp16: compute fp16, autocast torch, parameters binary32, gradients fp16, scaler torch, clip 3 (torch)"},
    /* parts switched off, and what an entry inherits without a use for it */
    {"precision: bf16\ndisable_rht: false\nfirst_last_layers_bf16: false\n", 1, "scaler none"},
    {"precision: nvfp4\nfirst_last_layers_bf16: true\nnum_layers_at_start_in_bf16: 2\nschedule:\n  - {step: 9, first_last_layers_bf16: false}\n", 2, "nvfp4"},
    {"precision: nvfp4\nfirst_last_layers_bf16: true\nnum_layers_at_start_in_bf16: 2\nschedule:\n  - {step: 9, first_last_layers_bf16: false}\n  - {step: 10, first_last_layers_bf16: true}\n", 3, "nvfp4, first 2 and last 1 layers in bf16"},
    {"precision: nvfp4\ndisable_rht: true\nschedule:\n  - {step: 9, fp8_recipe: mxfp8:floor}\n", 2, ", mxfp8:floor"},
    {"precision: nvfp4\ndisable_rht: true\nschedule:\n  - {step: 9, fp8_recipe: mxfp8:floor}\n  - {step: 10, fp8_recipe: nvfp4}\n", 3, "nvfp4 without RHT"},
    {"precision: bf16\nparams: bf16\nschedule: [{step: 9, grads: fp32}]\n", 2, "bf16: compute bf16, autocast torch, parameters bf16, gradients binary32"},
};

/* Text; the line of the mistake; what the message names. */
/* clang-format on */
enum { GOOD = sizeof good / sizeof good[0] };

CASE("keys", 20);

TESTS(good_keys, GOOD)
{
    const row *r = &good[_i];
    policy p;
    char line[512], cut[24];
    load(&p, r->text);
    ck_assert_uint_eq(p.count, r->plans);
    policy_plan_describe(&p.plans[p.count - 1], line, sizeof line);
    ck_assert_msg(strstr(line, r->fragment) != NULL, "%s\nis '%s', not '%s'", r->text, line, r->fragment);
    policy_plan_describe(&p.plans[p.count - 1], cut, sizeof cut);
    ck_assert_msg(strncmp(cut, line, sizeof cut - 1) == 0 && strlen(cut) == sizeof cut - 1,
                  "'%s' is not the beginning of '%s'", cut, line);
    policy_clear(&p);
}

TEST(files)
{
    policy p;
    trace_error e = {0};
    const char *name = bad_path("none.yaml"), *folder = bad_path("");
    ck_assert_int_eq(policy_load(&p, name, 0, &e), 4);
    ck_assert_msg(e.exit == 4 && strncmp(e.text, name, strlen(name)) == 0, "%s", e.text);
    ck_assert_int_eq(policy_load(&p, "no-such-policy", 0, &e), 4);
    ck_assert_msg(strncmp(e.text, "no-such-policy: ", 16) == 0, "%s", e.text);
    ck_assert_int_eq(policy_load(&p, folder, 0, &e), 3);
    /* without a name, the file's; a name in the file counts */
    load(&p, "clip: 1\n");
    ck_assert_str_eq(p.name, "case");
    ck_assert_ptr_null(p.source);
    ck_assert_ptr_null(p.note);
    policy_clear(&p);
    load(&p, "name: mine\nsource: there\nnote: this\nprecision: no\n");
    ck_assert_str_eq(p.name, "mine");
    ck_assert_str_eq(p.source, "there");
    ck_assert_str_eq(p.note, "this");
    policy_clear(&p);
}

CASE("values", 20);

TEST(scaler_words)
{
    static const char text[] = "precision: fp16\nloss_scaling:\n  %s\n";
    static const struct {
        const char *keys, *spec; /* spec: as mpsim_scaler_parse takes it */
    } rows[] = {
        {"{init_scale: 4, growth_interval: 3, growth_factor: 4, backoff_factor: .25, "
         "scaler: torch}",
         "torch:init=4,window=3,growth=4,backoff=.25"},
        {"{scaler: keras, initial_scale: 2^5, dynamic_growth_steps: 7}", "keras:init=32,window=7"},
        {"{scaler: megatron, initial_loss_scale: 8, min_loss_scale: 2, hysteresis: 3}",
         "megatron:init=8,floor=2,hysteresis=3"},
        {"{scaler: megatron, fp16_initial_loss_scale: 4294967296}", "megatron"},
        {"{scaler: deepspeed, initial_scale_power: 12, loss_scale_window: 5}", "deepspeed:init=4096,window=5"},
        {"{scaler: deepspeed, loss_scale: 0}", "deepspeed"},
        {"{scaler: apex, init: 512, max_loss_scale: 1024}", "apex:init=512,ceiling=1024"},
        {"{scaler: fairseq, tolerance: 0.1, threshold: 2}", "fairseq:tolerance=0.1,threshold=2"},
        {"{scaler: torch, skip: 0, guard: 0, refill: clean, check: norm, unscale: divide}",
         "torch:skip=0,guard=0,refill=clean,check=norm,unscale=divide"},
        {"{scaler: torch, growth_rule: multiple, floor_rule: stop, order: before-step}",
         "torch:growth-rule=multiple,floor-rule=stop,order=before-step"},
        {"{scaler: torch, arithmetic: f64, init: 3, growth: 3, backoff: 0.5, window: 9}",
         "torch:arithmetic=f64,init=3,growth=3,backoff=0.5,window=9"},
        {"{scaler: torch, floor: 1, ceiling: 2^20}", "torch:floor=1,ceiling=1048576"},
        /* what keys are together counts when all are there */
        {"{scaler: megatron, min_loss_scale: 2^40, initial_loss_scale: 2^41}", "megatron:init=2^41,floor=2^40"},
        {"{scaler: dynamic, window: 3}", "torch:window=3"},
        {"{scaler: 512}", "static:512"},
        {"{scaler: 'torch:init=2', window: 3}", "torch:init=2,window=3"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char yaml[512];
        policy p;
        mpsim_scaler_config c;
        memset(&c, 0, sizeof c);
        ck_assert_int_eq(mpsim_scaler_parse(&c, rows[i].spec), MPSIM_OK);
        snprintf(yaml, sizeof yaml, text, rows[i].keys);
        load(&p, yaml);
        const mpsim_scaler_config *g = &p.plans[0].scaler;
        ck_assert_msg(strcmp(g->name, c.name) == 0 && g->init == c.init && g->window == c.window &&
                          g->growth == c.growth && g->backoff == c.backoff && g->floor == c.floor &&
                          g->ceiling == c.ceiling && g->hysteresis == c.hysteresis && g->tolerance == c.tolerance &&
                          g->threshold == c.threshold,
                      "%s: numbers", rows[i].keys);
        ck_assert_msg(g->skip == c.skip && g->guard == c.guard && g->refill == c.refill && g->check == c.check &&
                          g->unscale == c.unscale && g->growth_rule == c.growth_rule && g->floor_rule == c.floor_rule &&
                          g->order == c.order && g->arithmetic == c.arithmetic,
                      "%s: rules", rows[i].keys);
        policy_clear(&p);
    }
    policy p; /* the words that Check would not see if both sides forgot them */
    load(&p, "loss_scaling: {scaler: torch, init_scale: 4, growth_interval: 3,\n"
             "  growth_factor: 4}\n");
    ck_assert(p.plans[0].scaler.init == 4 && p.plans[0].scaler.window == 3 && p.plans[0].scaler.growth == 4);
    policy_clear(&p);
}

TEST(optimizer_keys)
{
    policy p;
    load(&p, "optimizer: AdamW\n");
    ck_assert_int_eq(p.plans[0].optimizer.algorithm, MPSIM_OPTIM_ADAMW);
    ck_assert(isnan(p.plans[0].optimizer.lr));
    ck_assert_int_eq(p.plans[0].optimizer.nesterov, -1);
    policy_clear(&p);
    load(&p, "optimizer: {name: adam, variant: Torch_Fused-B, betas: [0.8, 0.9], eps: 1e-6,\n"
             "  lr: 2^-3, weight_decay: 0.1, amsgrad: true, maximize: false, state: bf16}\n");
    const plan_optimizer *o = &p.plans[0].optimizer;
    ck_assert_int_eq(o->algorithm, MPSIM_OPTIM_ADAM);
    ck_assert_str_eq(o->variants[0]->name, "torch-fused-b");
    ck_assert(o->beta1 == 0.8 && o->beta2 == 0.9 && o->eps == 1e-6 && o->lr == 0.125 && o->weight_decay == 0.1 &&
              isnan(o->momentum));
    ck_assert(o->amsgrad == 1 && o->maximize == 0 && o->nesterov == -1);
    ck_assert(o->state_given && strcmp(o->state.name, "bf16") == 0);
    policy_clear(&p);
    load(&p, "optimizer: {name: sgd, momentum: 0.9, dampening: 0, nesterov: true}\n");
    o = &p.plans[0].optimizer;
    ck_assert_int_eq(o->algorithm, MPSIM_OPTIM_SGD);
    ck_assert(o->momentum == 0.9 && o->dampening == 0 && o->nesterov == 1);
    ck_assert_str_eq(o->variants[0]->name, "ieee");
    policy_clear(&p);
    load(&p, "optimizer: {variant: [torchao, apex, torch, ieee]}\n");
    o = &p.plans[0].optimizer;
    ck_assert_uint_eq(o->n_variants, 4);
    ck_assert_str_eq(o->variants[1]->name, "apex");
    ck_assert_int_eq(o->algorithm, -1);
    policy_clear(&p);
}

TEST(clip_and_reduce)
{
    policy p;
    for (int rule = 1; rule < MPSIM_CLIP_RULES; rule++) {
        char text[128];
        snprintf(text, sizeof text, "clip: {rule: %s, max_norm: 0x1p-2}\n", mpsim_clip_name((mpsim_clip_rule)rule));
        load(&p, text);
        ck_assert_int_eq((int)p.plans[0].clip, rule);
        ck_assert(p.plans[0].max_norm == 0.25);
        policy_clear(&p);
    }
    load(&p, "clip: {max_norm: 3, norm: trace}\n");
    ck_assert_int_eq(p.plans[0].recorded_norm, 1);
    policy_clear(&p);
    load(&p, "clip: {max_norm: 3, norm: exact}\n");
    ck_assert_int_eq(p.plans[0].recorded_norm, 0);
    policy_clear(&p);
    load(&p, "precision: fp16\ngrad_reduce: {order: tree, average: after}\n");
    const mpsim_reduce *r = &p.plans[0].reduce;
    ck_assert(strcmp(r->wire.name, "fp16") == 0 && strcmp(r->accumulator.name, "fp16") == 0);
    ck_assert(r->order == MPSIM_REDUCE_TREE && r->average == MPSIM_AVERAGE_AFTER);
    policy_clear(&p);
    load(&p, "grad_reduce: {accumulate: fp32, wire: bf16, order: sequential, average: none}\n");
    r = &p.plans[0].reduce;
    ck_assert(strcmp(r->wire.name, "bf16") == 0 && strcmp(r->result.name, "bf16") == 0);
    ck_assert_str_eq(r->accumulator.name, "binary32");
    ck_assert(r->order == MPSIM_REDUCE_SEQUENTIAL && r->average == MPSIM_AVERAGE_NONE);
    policy_clear(&p);
    load(&p, "precision: fp8\nfp8_margin: -3\nfp8_amax_history_len: 7\n"
             "fp8_amax_compute_algo: most_recent\n");
    ck_assert(p.plans[0].delayed.margin == -3 && p.plans[0].delayed.history == 7 &&
              p.plans[0].delayed.algorithm == MPSIM_AMAX_MOST_RECENT);
    policy_clear(&p);
    load(&p, "precision: fp8\n"); /* TransformerEngine's DelayedScaling */
    ck_assert(p.plans[0].delayed.margin == 0 && p.plans[0].delayed.history == 1024 &&
              p.plans[0].delayed.algorithm == MPSIM_AMAX_MAX && !p.plans[0].fp8_params);
    policy_clear(&p);
    load(&p, "precision: fp8\nfp8_params: on\n");
    ck_assert_int_eq(p.plans[0].fp8_params, 1);
    policy_clear(&p);
}

/* ---- what a file says of itself that does not count ---- */

static const char block[] =
    "policy:\n"
    "  model_name: m\n"
    "  tokenizer: {name: '${policy.model_name}'}\n"
    "  precision: bfloat16\n"
    "  megatron_cfg:\n"
    "    enabled: false\n"
    "    optimizer: {optimizer: adam, lr: 7, clip_grad: '${policy.max_grad_norm}'}\n"
    "  max_grad_norm: 1.0\n"
    "  optimizer:\n"
    "    name: torch.optim.AdamW\n"
    "    kwargs: {lr: 5.0e-6, weight_decay: 0.01, betas: [0.9, 0.98], eps: 1e-5, foreach: %s, fused: False, capturable: False}\n";

CASE("keys", 20);

TEST(remarks)
{
    policy p;
    char text[1024];
    load(&p, "opt_level: O1\nprecision: fp32\n");
    ck_assert_str_eq(p.remarks, "line 2: precision fp32 does not count beside opt_level O1 of line 1");
    policy_clear(&p);
    load(&p, "opt_level: O1\nprecision: bf16\n"); /* bf16 is what the level lowers to */
    ck_assert_ptr_null(p.remarks);
    policy_clear(&p);
    load(&p, "precision: bf16\nclip: 1\n");
    ck_assert_ptr_null(p.remarks);
    policy_clear(&p);
    snprintf(text, sizeof text, block, "False");
    load(&p, text);
    ck_assert_str_eq(p.remarks, "line 1: ignored in policy: model_name, tokenizer, megatron_cfg (not enabled), "
                                "optimizer.kwargs.capturable");
    const plan_optimizer *o = &p.plans[0].optimizer;
    ck_assert(o->algorithm == MPSIM_OPTIM_ADAMW && o->lr == 5e-6 && o->weight_decay == 0.01 && o->beta1 == 0.9 &&
              o->beta2 == 0.98 && o->eps == 1e-5 && strcmp(o->variants[0]->name, "torch") == 0);
    ck_assert(p.plans[0].clip == MPSIM_CLIP_MEGATRON_FLOAT && p.plans[0].max_norm == 1);
    policy_clear(&p);
    snprintf(text, sizeof text, block, "True");
    load(&p, text);
    ck_assert_str_eq(p.plans[0].optimizer.variants[0]->name, "torch-foreach");
    policy_clear(&p);
    load(
        &p,
        "policy:\n  megatron_cfg:\n    fp8_cfg: {fp8: hybrid, fp8_recipe: delayed, fp8_param: true}\n"
        "    optimizer: {optimizer: adam, lr: 1e-3, adam_beta1: 0.8, adam_beta2: 0.9, adam_eps: 1e-7, sgd_momentum: 0.9, min_lr: 0}\n");
    ck_assert_str_eq(p.remarks, "line 3: fp8_cfg is taken as enabled; NeMo RL needs enabled: true\n"
                                "line 1: ignored in policy: megatron_cfg.optimizer.min_lr");
    o = &p.plans[0].optimizer;
    ck_assert(o->algorithm == MPSIM_OPTIM_ADAMW && o->lr == 1e-3 && o->beta1 == 0.8 && o->beta2 == 0.9 &&
              o->eps == 1e-7 && strcmp(o->variants[0]->name, "apex") == 0 && isnan(o->momentum));
    ck_assert(p.plans[0].recipe && p.plans[0].recipe->delayed && p.plans[0].fp8_params &&
              p.plans[0].master == TRAIN_MASTER);
    policy_clear(&p);
    load(&p, "policy: {megatron_cfg: {optimizer: {optimizer: sgd, lr: 0.1, sgd_momentum: 0.8, adam_eps: 1}}}\n");
    o = &p.plans[0].optimizer;
    ck_assert(o->algorithm == MPSIM_OPTIM_SGD && o->momentum == 0.8 && isnan(o->eps));
    policy_clear(&p);
}

/* Settings of a scaler that stand one by one; powers of two as Python writes them; a constant scale that skips. */
TEST(gathered)
{
    policy p;
    load(
        &p,
        "precision: fp16\ngrad_scaler_init_scale: 2**15\ngrad_scaler_growth_factor: 1.5\ngrad_scaler_backoff_factor: 0.25\n"
        "grad_scaler_growth_interval: 100\ngrad_scaler_enabled: True\n");
    const mpsim_scaler_config *c = &p.plans[0].scaler;
    ck_assert(strcmp(c->name, "torch") == 0 && c->init == 32768 && c->growth == 1.5 && c->backoff == 0.25 &&
              c->window == 100);
    policy_clear(&p);
    load(&p, "precision: fp16\ngrad_scaler_init_scale: 2.**4\ngrad_scaler_enabled: false\n");
    ck_assert_str_eq(p.plans[0].scaler.name, "none");
    policy_clear(&p);
    load(&p, "precision: fp16\nloss_scaling: deepspeed\nscale_factor: 4\n");
    c = &p.plans[0].scaler;
    ck_assert(strcmp(c->name, "deepspeed") == 0 && c->growth == 4 && c->backoff == 0.25);
    policy_clear(&p);
    load(&p, "precision: fp16\nloss_scaling: 2**10\nskip: true\n");
    c = &p.plans[0].scaler;
    ck_assert(strcmp(c->name, "static") == 0 && c->init == 1024 && c->skip == 1 && !c->dynamic);
    policy_clear(&p);
    load(&p, "precision: fp16\nloss_scaling: {loss_scale: 128, skip: yes}\n");
    c = &p.plans[0].scaler;
    ck_assert(strcmp(c->name, "static") == 0 && c->init == 128 && c->skip == 1);
    policy_clear(&p);
    load(&p, "precision: fp16\nloss_scaling: {scaler: apex, scale_window: 7, min_scale: 2, init_scale: 2.0**8}\n");
    c = &p.plans[0].scaler;
    ck_assert(strcmp(c->name, "apex") == 0 && c->window == 7 && c->floor == 2 && c->init == 256);
    policy_clear(&p);
    load(&p, "precision: no\nschedule:\n  - step: 3\n    precision: fp16\n    grad_scaler_init_scale: 8\n");
    ck_assert(p.count == 2 && p.plans[1].scaler.init == 8);
    policy_clear(&p);
    static const char *const bare = "precision: fp16\ninit_scale: 2**15\ngrowth_factor: 1.5\nbackoff_factor: 0.25\n"
                                    "growth_interval: 100\n";
    load(&p, bare);
    ck_assert(p.plans[0].scaler.init == 0x1p15 && p.plans[0].scaler.growth == 1.5);
    ck_assert(p.plans[0].scaler.backoff == 0.25 && p.plans[0].scaler.window == 100);
    policy_clear(&p);
}

/* A clip that is there and off, also beside a norm; NeMo RL's block with fp16, whose worker has no scaler. */
TEST(off)
{
    static const char *const texts[] = {
        "precision: bf16\ngradient_clipping: False\nmax_grad_norm: 1.0\n",
        "max_grad_norm: 1.0\ngradient_clipping: 0.0\n", "gradient_clip_val: 0\n",
        "policy: {precision: bfloat16, max_grad_norm: 1.0, gradient_clipping: False}\n"};
    policy p;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        load(&p, texts[i]);
        ck_assert_msg(p.plans[0].clip == MPSIM_CLIP_NONE && p.plans[0].clip_given, "%s", texts[i]);
        policy_clear(&p);
    }
    load(&p, "policy: {precision: bfloat16, gradient_clipping: 0.5}\n");
    ck_assert(p.plans[0].clip == MPSIM_CLIP_MEGATRON_FLOAT && p.plans[0].max_norm == 0.5);
    policy_clear(&p);
    load(&p, "policy: {precision: float16}\n");
    ck_assert(p.remarks && strstr(p.remarks, "its DTensor worker has none"));
    ck_assert_str_eq(p.plans[0].scaler.name, "none");
    policy_clear(&p);
    load(&p, "loss_scaling: torch\npolicy: {precision: float16}\n");
    ck_assert(!p.remarks && strcmp(p.plans[0].scaler.name, "torch") == 0);
    policy_clear(&p);
}

static char *page_text(void)
{
    const char *source = getenv("srcdir");
    char path[1024], *text = NULL;
    size_t n = 0;
    snprintf(path, sizeof path, "%s/data/policies/README.md", source ? source : ".");
    FILE *file = fopen(path, "r");
    ck_assert_msg(file != NULL, "%s cannot be opened", path);
    ck_assert_int_gt(getdelim(&text, &n, '\0', file), 0);
    fclose(file);
    return text;
}

static void page_has(const char *page, const policy_words *words)
{
    for (size_t i = 0; i < words->count; i++) {
        char quoted[64];
        snprintf(quoted, sizeof quoted, "`%s`", policy_words_at(words, i));
        ck_assert_msg(strstr(page, quoted) != NULL, "data/policies/README.md has no %s", quoted);
    }
}

/* A row of the page's table of ranges and needs: "| `KEY` | RULE |", of a map's key "| `MAP`: `KEY` | RULE |". */
static void page_has_rule(const char *page, const char *map, const char *key, const char *rule)
{
    char line[600];
    snprintf(line, sizeof line, "\n| %s%s%s%s%s%s | %s |\n", map ? "`" : "", map ? map : "", map ? "`" : "",
             map && key ? ": " : "", key ? "`" : "", key ? key : "", rule);
    if (key) {
        char *end = strstr(line, key) + strlen(key);
        memmove(end + 1, end, strlen(end) + 1);
        *end = '`';
    }
    ck_assert_msg(strstr(page, line) != NULL, "data/policies/README.md has no %s", line);
}

static void page_has_range(const char *page, const char *map, const policy_row *key)
{
    char text[128];
    if (!policy_row_range(key))
        return;
    number_say(text, sizeof text, key->type != POLICY_NUMBER, policy_row_range(key));
    page_has_rule(page, map, key->key, text);
}

static void page_has_rules(const char *page, const policy_map *map)
{
    char text[512];
    for (const option_row *rule = map->rules; rule && rule->name; rule++) {
        rule_say(text, sizeof text, NULL, rule, &rule_keys);
        page_has_rule(page, map->name, NULL, text);
    }
}

static const policy_map *const maps[] = {&policy_optimizer_map, &policy_muon_map, &policy_clip_map, &policy_reduce_map};

/* The page of policies names every key and every word that a row has. */
TEST(documented)
{
    const policy_words *const lists[] = {&policy_keys_own,   &policy_keys_other,  &policy_keys_passed_over,
                                         &policy_precisions, &policy_levels,      &policy_autocasts,
                                         &policy_recipes,    &policy_layer_kinds, &policy_scaling_keys};
    char *page = page_text();
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        page_has(page, lists[i]);
    for (size_t i = 0; i < sizeof maps / sizeof *maps; i++) {
        const policy_words keys = {maps[i]->rows, sizeof *maps[i]->rows, maps[i]->count};
        page_has(page, &keys);
        for (size_t k = 0; k < maps[i]->count; k++)
            if (maps[i]->rows[k].words)
                page_has(page, maps[i]->rows[k].words);
    }
    free(page);
}

/* And every range, and what a key needs or does not go with. */
TEST(documented_rules)
{
    char *page = page_text();
    policy_need need;
    for (size_t i = 0; i < policy_keys_own.count; i++) {
        const policy_row *key = policy_key_row(i, &need);
        page_has_range(page, NULL, key);
        if (need)
            page_has_rule(page, NULL, key->key, policy_need_say(need));
    }
    for (size_t i = 0; i < sizeof maps / sizeof *maps; i++) {
        for (size_t k = 0; k < maps[i]->count; k++)
            page_has_range(page, maps[i]->name, &maps[i]->rows[k]);
        page_has_rules(page, maps[i]);
    }
    free(page);
}

/* The rules that before_unscale goes with are those that leave unscaling to others. */
TEST(unscaling)
{
    for (int i = MPSIM_CLIP_NONE + 1; i < MPSIM_CLIP_RULES; i++) {
        char text[128];
        policy p;
        trace_error e = {0};
        snprintf(text, sizeof text, "precision: fp16\nclip: {rule: %s, max_norm: 1, before_unscale: true}\n",
                 mpsim_clip_name((mpsim_clip_rule)i));
        const int code = policy_read(&p, "x", text, strlen(text), 0, &e);
        ck_assert_msg((code != 0) == mpsim_clip_unscales((mpsim_clip_rule)i), "%s%s", text, e.text);
        policy_clear(&p);
    }
}

TEST_MAIN_BY(bad_main, "policy-keys");
