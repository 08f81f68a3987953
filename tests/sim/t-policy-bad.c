/* t-policy-bad.c -- what the keys of a policy file refuse, contradictions between keys, and files that are none. */
#include "sim/policy/policy.h"
#include "support/badfile.h"
#include "support/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *write_bytes(const void *bytes, size_t n)
{
    blob b = {0};
    blob_add(&b, bytes, n);
    return bad_write("case.yaml", &b);
}

/* One line "PATH: line N: ... FRAGMENT ..." and exit code 3; line 0: no line. */
static void refused(const void *bytes, size_t n, unsigned line, const char *fragment)
{
    policy p;
    trace_error e = {0};
    char start[4200];
    const char *path = write_bytes(bytes, n);
    const int code = policy_load(&p, path, 0, &e);
    if (line)
        snprintf(start, sizeof start, "%s: line %u: ", path, line);
    else
        snprintf(start, sizeof start, "%s: ", path);
    ck_assert_msg(code == 3 && e.exit == 3, "code %d, %d (%s), wanted: %s", code, e.exit, e.text, fragment);
    ck_assert_msg(strncmp(e.text, start, strlen(start)) == 0, "'%s' does not begin with '%s'", e.text, start);
    ck_assert_msg(strstr(e.text + strlen(start), fragment) != NULL, "'%s' does not have '%s'", e.text, fragment);
    for (const char *s = e.text; *s; s++)
        ck_assert_msg((unsigned char)*s >= 0x20 && *s != 0x7f, "control character: %s", e.text);
    ck_assert_ptr_null(p.plans);
    ck_assert_ptr_null(p.patterns);
    ck_assert_ptr_null(p.name);
}

/* clang-format off */
static const struct {
    const char *text;
    unsigned line;
    const char *fragment; /* of the error line */
} bad[] = {
    /* the file */
    {"- precision: fp16\n", 1, "'key: value' pairs are needed"},
    {"fp16\n", 1, "'key: value' pairs are needed"},
    {"precision: fp16\n---\nprecision: bf16\n", 3, "a second document"},
    {"precision: fp16\nclip: 1\nprecision: bf16\n", 3, "'precision' stands twice"},
    {"clip: {max_norm: 1,\n  max_norm: 2}\n", 2, "'max_norm' stands twice"},
    {"clip: 1\nnote: *a\n", 2, "not valid YAML: found undefined alias"},
    {"opt_level: O2\nparams: fp32\n", 2, "params"},
    {"opt_level: O0\nmaster_weights: false\nsteps_per_epoch: -3\n", 3, "steps_per_epoch"},
    {"precision: bf16\nparams: bf16\nautocast: none\n", 2, "params"},
    {"compute: bf16\n", 1, "compute"},
    {"precision: fp16\nloss_scaling: 0\n", 2, "loss_scaling"},
    {"optimizer: {lr: -1}\n", 1, "lr"},
    {"optimizer: {betas: [2, -1]}\n", 1, "optimizer: betas: '2' is not a number from 0 to below 1"},
    {"optimizer:\n  betas: [0.9, 0.99]\n  beta2: 0.5\n", 3, "optimizer: beta2 does not go with betas"},
    {"precision: bf16\nparams: bf16\noptimizer: {variant: torch, store: kahan}\n", 3, "variant"},
    {"optimizer: {name: sgd, variant: torchao}\n", 1, "variant"},
    {"optimizer: {name: adam, variant: apex, amsgrad: true}\n", 1, "amsgrad"},
    {"optimizer: {name: sgd, nesterov: true, momentum: 0}\n", 1, "nesterov"},
    {"optimizer: {name: sgd, amsgrad: true}\n", 1, "sgd has no amsgrad"},
    {"loss_scaling: {scaler: torch, floor: 2^20}\n", 1, "floor"},
    {"loss_scaling: {scaler: torch, growth: 0.5}\n", 1, "growth"},
    {"clip: {rule: none, max_norm: 1}\n", 1, "clip: max_norm does not go with rule: none"},
    {"fp8: none\nfp8_recipe: delayed\n", 1, "fp8: none contradicts"},
    {"fp8: hybrid\nfp8_recipe: deepseek\n", 1, "has no hybrid form"},
    {"clip: &a [*a]\n", 1, "nested too deeply"},
    {"clip: &a {<<: *a}\n", 1, "nested too deeply"},
    {"optimizer: &o {lr: 1}\nclip: {<<: [*o, 1]}\n", 2, "<<: 'key: value' pairs are needed, or an alias of them"},
    {"optimizer: &o {lr: -1}\n<<: {optimizer: *o, clip: 1}\n", 1, "lr"},
    {"a: &a [x,x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\n"
     "d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: [*d,*d,*d]\n", 1, "too many keys and values"},
    {"a: &a {<<: {k: 1}}\nb: &b {<<: [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]}\nc: &c {<<: [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]}\n"
     "d: &d {<<: [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]}\ne: &e {<<: [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]}\n"
     "f: &f {<<: [*e,*e,*e,*e,*e,*e,*e,*e,*e,*e]}\n", 1, "too many keys and values"},
    {"? [a]\n: b\n", 1, "a key must be a word"},
    {"\"a\\0b\": 1\n", 1, "a key must be a word"},
    {"note: x\nprecision: \"a\\0b\"\n", 2, "a zero byte"},
    {"clip:\n\tmax_norm: 1\n", 2, "not valid YAML"},
    {"precision: fp16\n clip: 1\n", 2, "not valid YAML"},
    {"clip: [1\n", 2, "not valid YAML"},
    {"clip: 'abc\n", 2, "not valid YAML"},
    {"%YAML 9.9\n---\na: 1\n", 1, "not valid YAML"},
    {"note: \"\\ud800\"\n", 1, "not valid YAML"},
    {"clip: [[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]\n", 1, "nested too deeply"}, /* 17 */
    {"clip: [[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]\n", 1, "clip: a norm"},
    {"\"a\\nb\\x1b\": 1\n", 1, "unknown key 'a\\nb\\x1b'"},
    {"\"%s%n\": 1\n", 1, "unknown key '%s%n'"},
    {"\"%s%n\": 1\n\"%s%n\": 1\n", 2, "'%s%n' stands twice"},
    /* keys of the policy */
    {"\npresision: fp16\n", 2, "unknown key 'presision': did you mean precision?"},
    {"Precision: fp16\n", 1, "unknown key 'Precision'"},
    {"step: 3\n", 1, "unknown key 'step'"},
    {"epoch: 3\n", 1, "unknown key 'epoch'"},
    {"<<: 3\n", 1, "<<: 'key: value' pairs are needed"},
    {"name: [a]\n", 1, "name: one word"},
    {"name: ''\n", 1, "name: one word"},
    {"source: {}\n", 1, "source: one word"},
    {"note:\n", 1, "note: one word"},
    /* a policy that says nothing */
    {"", 0, "no key is given: a policy is 'key: value' lines, as 'precision: bf16'"},
    {"# precision: fp16\n\n", 0, "no key is given"},
    {"{}\n", 0, "no key is given"},
    {"name: x\n", 0, "no key of a training is given: a policy is 'key: value' lines, as 'precision: bf16'"},
    {"name: x\nnote: y\n", 0, "no key of a training is given"},
    {"schedule: []\n", 0, "no key of a training is given"},
    {"name: x\nschedule:\n  - step: 5\n", 0, "no key of a training is given"},
    {"---\n...\n", 2, "'key: value' pairs are needed here"},
    {"null\n", 1, "'key: value' pairs are needed here"},
    {"~\n", 1, "'key: value' pairs are needed here"},
    {"[]\n", 1, "'key: value' pairs are needed here"},
    {"policy: {}\n", 1, "policy: no key is given: 'key: value' lines are needed under it"},
    {"precision: fp17\n", 1, "precision: 'fp17' is not one of no, fp32"},
    {"precision: [fp16]\n", 1, "precision: one word"},
    {"precision: \"\\x1b[31m\"\n", 1, "precision: '\\x1b[31m'"},
    {"precision: O2\n", 1, "precision: 'O2'"},
    {"opt_level: O4\n", 1, "opt_level: 'O4' is not one of O0, O1, O2, O3"},
    {"precision: no\noptimizer: {muon: {form: x}}\n", 2, "muon: form: 'x' is neither torch nor keller"},
    {"precision: no\noptimizer: {muon: {adjust_lr: x}}\n", 2, "muon: adjust_lr: 'x' is not one of original, match_rms_adamw, spectral_unclamped, none"},
    {"precision: no\noptimizer: {muon: {lrs: 1}}\n", 2, "muon: unknown key 'lrs'"},
    {"precision: no\ngrad_reduce: {average: x}\n", 2, "grad_reduce: average: 'x' is not one of none, before, after"},
    {"precision: no\nclip: {max_norm: 1, norm: x}\n", 2, "clip: norm: 'x' is neither exact nor trace"},
    {"precision: no\noptimizer: {store: x}\n", 2, "store: 'x' is not one of nearest, stochastic, kahan"},
    {"opt_level: fp16\n", 1, "opt_level: 'fp16'"},
    {"precision: fp61\nopt_level: O2\n", 1, "precision: 'fp61' is not one of"},
    {"precision: fp16\nopt_level: O5\n", 2, "opt_level: 'O5' is not one of O0, O1, O2, O3"},
    /* max_grad_norm, and the block of NeMo RL */
    {"max_grad_norm: 0\n", 1, "clip: '0' is not a number above 0"},
    {"max_grad_norm: [1]\n", 1, "max_grad_norm: a number is needed"},
    {"clip: 1\nmax_grad_norm: 2\n", 2, "max_grad_norm contradicts clip of line 1"},
    {"precision: fp16\nclip: {rule: deepspeed, max_norm: 1, before_unscale: true}\n", 2, "clip: before_unscale does not go with rule: deepspeed: it needs a rule that does not unscale"},
    {"clip: {rule: none, before_unscale: true}\n", 1, "clip: before_unscale does not go with rule: none: it needs a rule"},
    {"clip: {max_norm: 1, before_unscale: 3}\n", 1, "before_unscale: '3' is neither true nor false"},
    {"policy: fp61\n", 1, "policy: 'fp61' is not one of"},
    {"precision: fp16\nmixed_precision: bf16\n", 2, "mixed_precision and precision of line 1 are one key"},
    {"clip: 1\ngradient_clipping: 1\n", 2, "gradient_clipping and clip of line 1 are one key"},
    {"mixed_precison: fp16\n", 1, "unknown key 'mixed_precison': did you mean mixed_precision?"},
    {"precision: fp16\nloss_scaling: torch:backoff=1.5\n", 2, "torch asserts that the backoff factor is below 1"},
    {"precision: fp16\ngrad_scaler_growth_factor: 1\n", 2, "torch asserts that the growth factor is above 1"},
    {"precision: fp16\nloss_scaling: {scaler: megatron, min_loss_scale: 0}\n", 2, "Megatron asserts that the smallest scale is above 0"},
    {"precision: fp16\nscale_factor: 0.5\n", 2, "scale_factor: above 1 is needed"},
    {"precision: fp16\ngrad_scaler_speed: 2\n", 2, "loss_scaling: unknown key 'speed'"},
    {"precision: fp16\nloss_scaling: [torch]\nskip: true\n", 3, "unknown key 'skip'"},
    {"param_dtype: fp61\n", 1, "param_dtype: 'fp61' is not a format"},
    {"policy:\n  precison: fp16\n", 2, "policy: unknown key 'precison': did you mean precision?"},
    {"policy:\n  precision: fp61\n", 2, "precision: 'fp61' is not one of"},
    {"policy: {max_grad_norm: -1}\n", 1, "clip: max_norm: '-1' is not a number above 0"},
    {"precision: fp16\npolicy:\n  precision: bfloat16\n", 3, "policy: precision stands beside the block, too"},
    {"clip: 1\npolicy:\n  max_grad_norm: 1\n", 3, "policy: clip stands beside the block, too"},
    {"policy:\n  max_grad_norm: ${policy.norm}\n", 2, "policy: '${policy.norm}' refers to nothing in the block"},
    {"policy:\n  a: ${policy.a}\n  max_grad_norm: ${policy.a}\n", 2, "refers to nothing"},
    {"policy:\n  optimizer: adam\n", 2, "policy: optimizer: 'key: value' pairs are needed"},
    {"policy:\n  optimizer:\n    name: torch.optim.Rprop\n", 3, "optimizer: 'Rprop' is not one of"},
    {"policy:\n  optimizer:\n    name: torch.optim.Adam\n    kwargs: {lrr: 1}\n", 4, "policy: unknown key 'optimizer.kwargs.lrr': did you mean lr?"},
    {"policy:\n  megatron_cfg:\n    enabled: maybe\n", 3, "enabled: 'maybe' is neither true nor false"},
    {"policy:\n  megatron_cfg: {fp8_cfg: {enabled: true, fp8_recipe: none}}\n", 2, "fp8_recipe: 'none' is not known"},
    {"policy: {precision: float16}\nclipp: {}\n", 2, "unknown key 'clipp'"},
    {"compute: fp17\n", 1, "compute: 'fp17' is not a format"},
    {"compute: binary64\n", 1, "compute: binary64 is not a part of binary32"},
    {"params: e8m0\n", 1, "params: e8m0 is not a part of binary32"},
    {"params: []\n", 1, "params: one word"},
    {"grads: int8\n", 1, "grads: 'int8' is not a format"},
    {"precision: bf16\nmaster_weights: true\n", 2, "master_weights: the parameters are fp32 already"},
    {"opt_level: O1\nmaster_weights: true\n", 2, "master_weights: the parameters are fp32 already"},
    {"precision: fp16\nparams: fp16\nmaster_weights: split\n", 3, "master_weights: split needs bf16 parameters (params), not fp16"},
    {"master_weights: split\n", 1, "master_weights: split needs bf16 parameters (params), not binary32"},
    {"master_weights: 1\n", 1, "master_weights: '1' is neither true nor false"},
    {"master_weights: [true]\n", 1, "master_weights: one word"},
    {"autocast: O1\n", 1, "autocast: 'O1' is not one of none, all, torch, norms-fp32, batchnorm-fp32, megatron"},
    {"autocast: {}\n", 1, "autocast: one word"},
    {"opt_level: O2\nkeep_batchnorm_fp32: maybe\n", 2, "keep_batchnorm_fp32: 'maybe'"},
    {"keep_batchnorm_fp32: true\n", 1, "keep_batchnorm_fp32: all parameters are fp32 already"},
    {"opt_level: O1\nkeep_batchnorm_fp32: true\n", 2, "keep_batchnorm_fp32: all parameters are fp32 already"},
    {"opt_level: O3\nautocast: all\nkeep_batchnorm_fp32: true\n", 3, "keep_batchnorm_fp32 contradicts autocast of line 2"},
    {"keep_fp32: head\n", 1, "keep_fp32: a list of patterns"},
    {"keep_fp32: {a: b}\n", 1, "keep_fp32: a list of patterns"},
    {"keep_fp32:\n  - a\n  - [b]\n", 3, "keep_fp32: a pattern is one word"},
    {"layer_kinds: [fc1]\n", 1, "layer_kinds: 'pattern: kind' pairs"},
    {"layer_kinds:\n  fc1: dense\n", 2, "layer_kinds: 'dense' is not one of linear, conv"},
    {"layer_kinds:\n  fc1: [linear]\n", 2, "layer_kinds: one word"},
    /* loss_scaling */
    {"loss_scaling: -1\n", 1, "loss_scaling: '-1' is not a scaler: the initial scale must be a positive number"},
    {"loss_scaling: 1e400\n", 1, "loss_scaling: '1e400'"},
    {"loss_scaling: nan\n", 1, "loss_scaling: 'nan'"},
    {"loss_scaling: true\n", 1, "loss_scaling: 'true'"},
    {"loss_scaling: pytorch\n", 1, "loss_scaling: 'pytorch'"},
    {"loss_scaling: torch:windw=3\n", 1, "loss_scaling: 'torch:windw=3'"},
    {"loss_scaling:\n", 1, "loss_scaling: one word"},
    {"loss_scaling: [torch]\n", 1, "loss_scaling: a scaler's name"},
    {"loss_scaling: {window: 3}\n", 1, "loss_scaling: which scaler: key 'scaler' is missing"},
    {"loss_scaling: {scaler: [torch]}\n", 1, "loss_scaling: one word"},
    {"loss_scaling:\n  scaler: torch\n  windw: 3\n", 3, "loss_scaling: unknown key 'windw'"},
    {"loss_scaling:\n  scaler: torch\n  growth_interval: 0\n", 3, "growth_interval: '0' is not possible"},
    {"loss_scaling:\n  scaler: torch\n  init_scale: 0.1x\n", 3, "init_scale: '0.1x' is not possible"},
    {"loss_scaling:\n  scaler: torch\n  init_scale: [1]\n", 3, "init_scale: one word"},
    {"loss_scaling:\n  scaler: torch\n  init: 4\n  init_scale: 8\n", 4, "init_scale: '8' is not possible"},
    {"loss_scaling:\n  scaler: torch\n  window: '3,init=5,init=6'\n", 3, "window"},
    {"loss_scaling:\n  scaler: 1024\n  init: 4\n", 3, "init: '4' is not possible: a key twice"},
    {"loss_scaling:\n  scaler: torch:window=3,init=2\n  init: 4\n", 3, "init: '4' is not possible: a key twice"},
    {"loss_scaling:\n  scaler: torch:init=2,3\n", 2, "loss_scaling: 'torch:init=2,3' is not a scaler: a change is KEY=VALUE"},
    {"loss_scaling:\n  scaler: torch\n  window: 3x\n", 3, "window: '3x' is not possible: a malformed number"},
    {"loss_scaling:\n  scaler: megatron\n  window: 3\n  min_loss_scale: 2^40\n  hysteresis: 2\n", 4, "min_loss_scale: '2^40' is not possible: Megatron asserts that the smallest scale"},
    /* optimizer */
    {"optimizer: lamb\n", 1, "optimizer: 'lamb' is not one of sgd, adam, adamw, lion, adafactor, trace"},
    {"optimizer: {name: lion, eps: 1e-8}\n", 1, "optimizer: lion has no eps"},
    {"optimizer: {name: lion, variant: torch}\n", 1, "optimizer: variant torch has no lion"},
    {"optimizer: {name: lion, d: 1}\n", 1, "optimizer: lion has no d"},
    {"optimizer: {name: adafactor, betas: [0.9, 0.99]}\n", 1, "optimizer: adafactor has no betas"},
    {"optimizer: {name: adafactor, d: 0.5}\n", 1, "optimizer: d: '0.5' is not a number of at least 1"},
    {"optimizer: {name: adafactor, beta2_decay: 0.8}\n", 1, "optimizer: beta2_decay: '0.8' is not a number of at most 0"},
    {"optimizer: {name: adafactor, states: coat}\n", 1, "optimizer: states does not go with name: adafactor: adafactor has moments of rows and columns"},
    {"optimizer: [adam]\n", 1, "optimizer: a name"},
    {"optimizer: {}\nclip: x\n", 2, "clip: 'x'"},
    {"optimizer:\n  nam: adam\n", 2, "optimizer: unknown key 'nam'"},
    {"optimizer:\n  name: lamb\n", 2, "optimizer: 'lamb'"},
    {"optimizer:\n  variant: torhc\n", 2, "variant: 'torhc' is not one of ieee, torch"},
    {"optimizer:\n  variant: []\n", 2, "variant: the list is empty"},
    {"optimizer:\n  variant: [ieee, ieee, ieee, ieee, ieee]\n", 2, "variant: too many"},
    {"optimizer:\n  variant:\n    - ieee\n    - {}\n", 4, "variant: one word"},
    {"optimizer:\n  store: random\n", 2, "store: 'random' is not one of nearest, stochastic, kahan"},
    {"optimizer:\n  betas: 0.9\n", 2, "betas: two numbers"},
    {"optimizer:\n  betas: [0.9]\n", 2, "betas: two numbers"},
    {"optimizer:\n  betas: [0.9, x]\n", 2, "betas: 'x' is not a number"},
    {"optimizer:\n  lr: fast\n", 2, "lr: 'fast' is not a number"},
    {"optimizer:\n  eps: inf\n", 2, "eps: 'inf' is not a number"},
    {"optimizer:\n  nesterov: 2\n", 2, "nesterov: '2' is neither"},
    {"optimizer:\n  state: fp128\n", 2, "state: 'fp128' is not a format"},
    {"optimizer:\n  state: binary64\n", 2, "state: binary64 is not a part of binary32"},
    {"precision: bf16\noptimizer: {store: kahan, variant: optimi}\n", 2, "optimizer: store needs parameters in a lower precision"},
    {"optimizer: {store: stochastic}\n", 1, "optimizer: store needs parameters in a lower precision"},
    {"autocast: all\nparams: bf16\nmaster_weights: true\noptimizer: {variant: optimi, store: kahan}\n", 4, "optimizer: store kahan contradicts master_weights"},
    {"autocast: all\nparams: bf16\nmaster_weights: split\noptimizer: {store: stochastic}\n", 4, "optimizer: store stochastic contradicts master_weights"},
    /* keys of optimizers: states, Muon */
    {"optimizer: {states: coatt}\n", 1, "states: 'coatt' is not one of torchao-8bit"},
    {"optimizer: {states: coat, state: bf16}\n", 1, "optimizer: state does not go with states"},
    {"optimizer: {muon: {lr: 1}, states: coat}\n", 1, "optimizer: muon does not go with states: muon keeps its buffer"},
    {"optimizer: {muon: {lr: 1}, store: stochastic}\n", 1, "optimizer: muon does not go with store: stochastic: muon keeps its buffer in the parameter's format, stores to nearest"},
    {"optimizer: {muon: {lr: 1}, maximize: true}\n", 1, "optimizer: muon does not go with maximize: muon keeps its buffer in the parameter's format, stores to nearest and minimises"},
    {"optimizer: {muon: 3}\n", 1, "muon: 'key: value' pairs are needed"},
    {"optimizer: {muon: {step: 3}}\n", 1, "muon: unknown key 'step'"},
    {"optimizer: {muon: {ns_steps: 100}}\n", 1, "muon: ns_steps: '100' is not an integer from 0 to 99"},
    {"optimizer: {muon: {model: nothing}}\n", 1, "'nothing' is neither a model"},
    {"optimizer: {muon: {model: volta}}\n", 1, "architecture that multiplies bf16"},
    {"optimizer: {muon: {model: hopper-fp16-fp32}}\n", 1, "does not multiply bf16"},
    {"optimizer: {muon: {variant: apex}}\n", 1, "no operations on tensors"},
    {"optimizer: {muon: {adjust_lr: big}}\n", 1, "not one of original, match_rms_adamw"},
    {"optimizer: {muon: {ns_coefficients: [1, 2]}}\n", 1, "three numbers are needed"},
    {"optimizer: {muon: {momentum: 0}}\n", 1, "nesterov needs a momentum"},
    {"optimizer: {muon: {ns_coefficients: [1e300, 2, 3]}}\n", 1, "no Muon has such settings: lr 0.001, momentum 0.95, weight decay 0.1, eps 1e-07, coefficients 1e+300 2 3"},
    {"optimizer: {muon: {momentum: 0, variant: apex, nesterov: false}}\n", 1, "'apex' has no operations on tensors"},
    {"optimizer: {muon: {lr: -1}}\n", 1, "muon: lr: '-1' is not a number of at least 0"},
    {"muon_exclude: [head]\n", 1, "works on the optimizer muon"},
    /* clip */
    {"clip: 0\n", 1, "clip: '0' is not a number above 0"},
    {"clip: -1\n", 1, "clip: '-1' is not a number above 0"},
    {"clip: inf\n", 1, "clip: 'inf' is not a number"},
    {"clip:\n", 1, "clip: one word or number"},
    {"clip: [1]\n", 1, "clip: a norm, or rule and max_norm"},
    {"clip: {}\n", 1, "clip: key 'max_norm' is missing"},
    {"clip: {rule: torch}\n", 1, "clip: key 'max_norm' is missing"},
    {"clip:\n  rule: value\n  max_norm: 1\n", 2, "clip: 'value' is not a rule"},
    {"clip:\n  max_norm: 0\n", 2, "clip: max_norm: '0' is not a number above 0"},
    {"clip:\n  max_norm: 1\n  norm: l2\n", 3, "clip: norm: 'l2' is neither exact nor trace"},
    {"clip:\n  max_norm: 1\n  type: 2\n", 3, "clip: unknown key 'type'"},
    /* grad_reduce */
    {"grad_reduce: none\n", 1, "grad_reduce: 'none' is not a format"},
    {"grad_reduce: binary64\n", 1, "grad_reduce: binary64 is not"},
    {"grad_reduce: [fp32]\n", 1, "grad_reduce: a format or"},
    {"grad_reduce:\n  wire: fp61\n", 2, "wire: 'fp61' is not a format"},
    {"grad_reduce:\n  accumulate: x\n", 2, "accumulate: 'x' is not a format"},
    {"grad_reduce:\n  order: star\n", 2, "grad_reduce: order: 'star' is not one of sequential, ring, tree"},
    {"grad_reduce:\n  average: mean\n", 2, "grad_reduce: average: 'mean' is not one of none, before, after"},
    {"grad_reduce:\n  ranks: 8\n", 2, "grad_reduce: unknown key 'ranks'"},
    /* fp8 */
    {"fp8: e5m2\n", 1, "fp8: 'e5m2' is not one of hybrid, e4m3, none"},
    {"fp8: [hybrid]\n", 1, "fp8: one word"},
    {"precision: fp8\nfp8_recipe: none\n", 2, "fp8_recipe: 'none' is not known: delayed, current"},
    {"precision: bf16\nfp8_amax_history_len: 4\n", 2, "fp8_amax_history_len: works on delayed scaling, which the policy does not have: precision is bf16"},
    {"precision: mxfp8\nfp8_margin: 0\n", 2, "fp8_margin: works on delayed scaling, which the policy does not have: the recipe is mxfp8"},
    {"fp8_recipe: current\nfp8_amax_compute_algo: max\n", 2, "fp8_amax_compute_algo: works on delayed scaling, which the policy does not have: the recipe is current"},
    {"precision: fp8\nfp8_margin: 0.5\n", 2, "fp8_margin: '0.5' is not an integer from -126 to 126"},
    {"precision: mxfp8\ndisable_rht: true\n", 2, "disable_rht: works on TransformerEngine's NVFP4 recipe"},
    {"precision: nvfp4\nfp8_recipe: nvfp4:torchao\ndisable_2d_quantization: true\n", 3, "disable_2d_quantization: works on TransformerEngine's NVFP4 recipe"},
    {"disable_stochastic_rounding: true\n", 1, "disable_stochastic_rounding: works on TransformerEngine's NVFP4 recipe"},
    {"precision: mxfp8\nschedule:\n  - {step: 9, disable_rht: true}\n", 3, "disable_rht: works on TransformerEngine's NVFP4 recipe"},
    {"precision: bf16\nschedule:\n  - {step: 9, first_last_layers_bf16: true}\n", 3, "first_last_layers_bf16: works on an FP8 recipe, and the policy has none"},
    {"precision: nvfp4\nschedule:\n  - step: 9\n    num_layers_at_end_in_bf16: 1\n", 4, "num_layers_at_end_in_bf16: needs first_last_layers_bf16: true"},
    {"precision: nvfp4\ndisable_rht: 16\n", 2, "disable_rht: '16' is neither true nor false"},
    {"precision: bf16\nfirst_last_layers_bf16: true\n", 2, "first_last_layers_bf16: works on an FP8 recipe, and the policy has none"},
    {"precision: nvfp4\nnum_layers_at_start_in_bf16: 1\n", 2, "num_layers_at_start_in_bf16: needs first_last_layers_bf16: true"},
    {"precision: nvfp4\nfirst_last_layers_bf16: false\nnum_layers_at_end_in_bf16: 1\n", 3, "num_layers_at_end_in_bf16: needs first_last_layers_bf16: true"},
    {"precision: nvfp4\nfirst_last_layers_bf16: true\nnum_layers_at_end_in_bf16: 101 %\n", 3, "num_layers_at_end_in_bf16: '101 %' is neither"},
    {"precision: nvfp4\nfirst_last_layers_bf16: true\nnum_layers_at_end_in_bf16: -1\n", 3, "num_layers_at_end_in_bf16: '-1' is neither"},
    {"precision: nvfp4\nfirst_last_layers_bf16: true\nnum_layers_at_end_in_bf16: 1 %%\n", 3, "num_layers_at_end_in_bf16: '1 %%' is neither"},
    {"precision: nvfp4\nfirst_last_layers_bf16: true\nnum_layers_at_end_in_bf16: '%'\n", 3, "num_layers_at_end_in_bf16: '%' is neither"},
    {"precision: mxfp8\nfp8_recipe: mxfp8:up\n", 2, "fp8_recipe: 'mxfp8:up' is not known: delayed, current"},
    {"precision: fp8\nfp8_margin: 127\n", 2, "fp8_margin: '127' is not an integer from -126 to 126"},
    {"precision: fp8\nfp8_margin: two\n", 2, "fp8_margin: 'two' is not an integer from -126 to 126"},
    {"precision: fp8\nfp8_amax_history_len: 0\n", 2, "fp8_amax_history_len: '0' is not an integer from 1 to 2^20"},
    {"precision: fp8\nfp8_amax_history_len: 1048577\n", 2, "fp8_amax_history_len: '1048577' is not an integer from 1 to 2^20"},
    {"precision: fp8\nfp8_amax_history_len: -1\n", 2, "fp8_amax_history_len: '-1' is not"},
    {"precision: fp8\nfp8_amax_history_len: 1.5\n", 2, "fp8_amax_history_len: '1.5' is not"},
    {"precision: fp8\nfp8_amax_compute_algo: recent\n", 2, "fp8_amax_compute_algo: 'recent' is neither max nor most_recent"},
    {"precision: bf16\nfp8_params: true\n", 2, "fp8_params: works on an FP8 recipe, and the policy has none"},
    {"precision: fp8\nfp8_params: some\n", 2, "fp8_params: 'some' is neither"},
    {"precision: bf16\nfp8_exclude: [head]\n", 2, "fp8_exclude: works on an FP8 recipe, and the policy has none"},
    {"precision: fp8\nfp8_exclude: head\n", 2, "fp8_exclude: a list of patterns"},
    /* schedule */
    {"schedule: 3\n", 1, "schedule: a list of entries"},
    {"schedule:\n", 1, "schedule: a list of entries"},
    {"schedule: {step: 3}\n", 1, "schedule: a list of entries"},
    {"schedule:\n  - 3\n", 2, "'key: value' pairs"},
    {"schedule:\n  - precision: bf16\n", 2, "schedule: an entry needs either step or epoch"},
    {"steps_per_epoch: 2\nschedule:\n  - {step: 3, epoch: 2}\n", 3, "schedule: an entry needs either step or epoch"},
    {"schedule:\n  - epoch: 2\n", 2, "epoch: needs the key steps_per_epoch"},
    {"steps_per_epoch: 0\nschedule: [{epoch: 2}]\n", 1, "steps_per_epoch: '0' is not an integer from 1 to 4294967295"},
    {"steps_per_epoch: ten\nschedule: [{epoch: 2}]\n", 1, "steps_per_epoch: 'ten' is not an integer from 1 to 4294967295"},
    {"steps_per_epoch: 10\nschedule: [{epoch: 0}]\n", 2, "epoch"},
    {"steps_per_epoch: 10\nschedule: [{epoch: 2.5}]\n", 2, "epoch: '2.5' is not"},
    {"schedule: [{step: -1}]\n", 1, "step: '-1' is not"},
    {"schedule: [{step: 18446744073709551616}]\n", 1, "step: '18446744073709551616'"},
    {"schedule: [{step: 0}]\n", 1, "schedule: steps count from 1"},
    {"schedule:\n  - step: 5\n  - step: 5\n", 3, "schedule: steps must increase"},
    {"schedule:\n  - step: 5\n  - step: 4\n", 3, "schedule: steps must increase"},
    {"steps_per_epoch: 10\nschedule:\n  - epoch: 2\n  - step: 11\n", 4, "schedule: steps must increase"},
    {"schedule:\n  - step: 1\n    name: x\n", 3, "unknown key 'name' in an entry of the schedule"},
    {"schedule:\n  - step: 1\n    schedule: []\n", 3, "unknown key 'schedule' in an entry of the schedule"},
    {"schedule:\n  - step: 1\n    steps_per_epoch: 5\n", 3, "unknown key 'steps_per_epoch' in an entry"},
    {"schedule:\n  - step: 1\n    precsion: x\n", 3, "did you mean precision?"},
    {"schedule:\n  - step: 1\n    precision: x\n", 3, "precision: 'x' is not one of"},
    {"autocast: all\nparams: bf16\noptimizer: {store: kahan, variant: optimi}\nschedule:\n  - {step: 5, precision: fp32}\n", 3, "optimizer: store needs parameters"},
    {"precision: bf16\nschedule:\n  - {step: 5, fp8_margin: 1}\n", 3, "fp8_margin: works on delayed scaling"},
};
/* clang-format on */
enum { BAD = sizeof bad / sizeof bad[0] };

CASE("refused", 20);

TESTS(bad_keys, BAD)
{
    refused(bad[_i].text, strlen(bad[_i].text), bad[_i].line, bad[_i].fragment);
}

/* Bytes that no text can hold, and size. */
TEST(bad_files)
{
    enum { MIB = 1 << 20 };
    char *big = malloc(2 * MIB);
    policy p;
    trace_error e = {0};
    ck_assert_ptr_nonnull(big);
    memset(big, 'x', 2 * MIB);
    memcpy(big, "clip: 1\n#", 9);
    refused(big, 2 * MIB, 0, "more than the 1048576 bytes");
    refused(big, MIB + 1, 0, "more than the 1048576 bytes");
    ck_assert_int_eq(policy_load(&p, write_bytes(big, MIB), 0, &e), 0);
    policy_clear(&p);
    free(big);
    refused("precision: fp16\0\n", 17, 1, "not valid YAML");
    refused("name: caf\xe9\n", 11, 1, "not valid YAML");
    refused("a: 1\nname: caf\xe9\n", 16, 2, "not valid YAML");
    refused("name: \x01\n", 8, 1, "not valid YAML");
    /* UTF-16 with its mark is YAML, too */
    const char *wide = write_bytes("\xff\xfe"
                                   "c\0l\0i\0p\0:\0 \0"
                                   "2\0",
                                   16);
    ck_assert_int_eq(policy_load(&p, wide, 0, &e), 0);
    ck_assert(p.plans[0].max_norm == 2);
    policy_clear(&p);
}

TEST_MAIN_BY(bad_main, "policy-bad");
