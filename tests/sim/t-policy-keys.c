/* t-policy-keys.c -- what every key of a policy file takes and refuses, contradictions between
 * keys, and files that are none. */
#include "sim/policy/policy.h"
#include "support/badfile.h"
#include "support/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *write_bytes(const void *bytes, size_t n)
{
    blob b = {0};
    blob_add(&b, bytes, n);
    return bad_write("case.yaml", &b);
}

static void load(policy *p, const char *text)
{
    trace_error e = {0};
    const int code = policy_load(p, write_bytes(text, strlen(text)), 0, &e);
    ck_assert_msg(code == 0, "refused: %s\n%s", e.text, text);
}

/* One line "PATH: line N: ... FRAGMENT ..." and exit code 3; line 0: no line. */
static void refused_bytes(const void *bytes, size_t n, unsigned line, const char *fragment)
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

static void refused(const char *text, unsigned line, const char *fragment)
{
    refused_bytes(text, strlen(text), line, fragment);
}

typedef struct row {
    const char *text;
    unsigned line;
    const char *fragment; /* of plan_describe (the last plan), or of the error line */
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
    {"schedule:\n  - step: 1\n    precision: bf16\n    opt_level: O1\n", 2, "O1: compute fp16, autocast torch"},
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
static const row bad[] = {
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
    {"optimizer: {betas: [2, -1]}\n", 1, "betas"},
    {"optimizer: {betas: [0.9, 0.99], beta1: 0.5}\n", 1, "beta1"},
    {"precision: bf16\nparams: bf16\noptimizer: {variant: torch, store: kahan}\n", 3, "variant"},
    {"optimizer: {name: sgd, variant: torchao}\n", 1, "variant"},
    {"optimizer: {name: adam, variant: apex, amsgrad: true}\n", 1, "amsgrad"},
    {"optimizer: {name: sgd, nesterov: true, momentum: 0}\n", 1, "nesterov"},
    {"optimizer: {name: sgd, amsgrad: true}\n", 1, "sgd has no amsgrad"},
    {"loss_scaling: {scaler: torch, floor: 2^20}\n", 1, "floor"},
    {"loss_scaling: {scaler: torch, growth: 0.5}\n", 1, "growth"},
    {"clip: {rule: none, max_norm: 1}\n", 1, "max_norm"},
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
    {"opt_level: fp16\n", 1, "opt_level: 'fp16'"},
    {"precision: fp61\nopt_level: O2\n", 1, "precision: 'fp61' is not one of"},
    {"precision: fp16\nopt_level: O5\n", 2, "opt_level: 'O5' is not one of O0, O1, O2, O3"},
    /* max_grad_norm, and the block of NeMo RL */
    {"max_grad_norm: 0\n", 1, "clip: the largest norm must be above 0"},
    {"max_grad_norm: [1]\n", 1, "max_grad_norm: a number is needed"},
    {"clip: 1\nmax_grad_norm: 2\n", 2, "max_grad_norm contradicts clip of line 1"},
    {"policy: fp16\n", 1, "unknown key 'policy'"},
    {"policy:\n  precison: fp16\n", 2, "policy: unknown key 'precison': did you mean precision?"},
    {"policy:\n  precision: fp61\n", 2, "precision: 'fp61' is not one of"},
    {"policy: {max_grad_norm: -1}\n", 1, "clip: the largest norm"},
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
    {"loss_scaling: -1\n", 1, "loss_scaling: 'static:init=-1'"},
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
    {"loss_scaling:\n  scaler: 1024\n  init: 4\n", 3, "init: '4' is not possible"},
    /* optimizer */
    {"optimizer: lamb\n", 1, "optimizer: 'lamb' is not one of sgd, adam, adamw, lion, adafactor, trace"},
    {"optimizer: {name: lion, eps: 1e-8}\n", 1, "optimizer: lion has no eps"},
    {"optimizer: {name: lion, variant: torch}\n", 1, "optimizer: variant torch has no lion"},
    {"optimizer: {name: lion, d: 1}\n", 1, "optimizer: lion has no d"},
    {"optimizer: {name: adafactor, betas: [0.9, 0.99]}\n", 1, "optimizer: adafactor has no betas"},
    {"optimizer: {name: adafactor, d: 0.5}\n", 1, "optimizer: d: 0.5 is not possible"},
    {"optimizer: {name: adafactor, beta2_decay: 0.8}\n", 1, "optimizer: beta2_decay: 0.8 is not possible"},
    {"optimizer: {name: adafactor, states: coat}\n", 1, "optimizer: adafactor has moments of rows and columns: no states"},
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
    /* clip */
    {"clip: 0\n", 1, "clip: the largest norm must be above 0"},
    {"clip: -1\n", 1, "clip: the largest norm must be above 0"},
    {"clip: inf\n", 1, "clip: 'inf' is not a number"},
    {"clip:\n", 1, "clip: one word or number"},
    {"clip: [1]\n", 1, "clip: a norm, or rule and max_norm"},
    {"clip: {}\n", 1, "clip: key 'max_norm' is missing"},
    {"clip: {rule: torch}\n", 1, "clip: key 'max_norm' is missing"},
    {"clip:\n  rule: value\n  max_norm: 1\n", 2, "clip: 'value' is not a rule"},
    {"clip:\n  max_norm: 0\n", 2, "clip: the largest norm must be above 0"},
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
    {"precision: fp8\nfp8_margin: 0.5\n", 2, "fp8_margin: an integer"},
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
    {"precision: fp8\nfp8_margin: 127\n", 2, "fp8_margin: an integer"},
    {"precision: fp8\nfp8_margin: two\n", 2, "fp8_margin: 'two' is not a number"},
    {"precision: fp8\nfp8_amax_history_len: 0\n", 2, "fp8_amax_history_len: 1 to 1048576"},
    {"precision: fp8\nfp8_amax_history_len: 1048577\n", 2, "fp8_amax_history_len: 1 to 1048576"},
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
    {"schedule:\n  - epoch: 2\n", 2, "schedule: epoch needs the key steps_per_epoch"},
    {"steps_per_epoch: 0\nschedule: [{epoch: 2}]\n", 1, "steps_per_epoch: 1 to"},
    {"steps_per_epoch: ten\nschedule: [{epoch: 2}]\n", 1, "steps_per_epoch: 1 to"},
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
enum { GOOD = sizeof good / sizeof good[0], BAD = sizeof bad / sizeof bad[0] };

START_TEST(good_keys)
{
    const row *r = &good[_i];
    policy p;
    char line[512], cut[24];
    load(&p, r->text);
    ck_assert_uint_eq(p.count, r->line);
    plan_describe(&p.plans[p.count - 1], line, sizeof line);
    ck_assert_msg(strstr(line, r->fragment) != NULL, "%s\nis '%s', not '%s'", r->text, line, r->fragment);
    plan_describe(&p.plans[p.count - 1], cut, sizeof cut);
    ck_assert_msg(strncmp(cut, line, sizeof cut - 1) == 0 && strlen(cut) == sizeof cut - 1,
                  "'%s' is not the beginning of '%s'", cut, line);
    policy_clear(&p);
}
END_TEST

START_TEST(bad_keys)
{
    refused(bad[_i].text, bad[_i].line, bad[_i].fragment);
}
END_TEST

/* Bytes that no text can hold, and size. */
START_TEST(bad_files)
{
    enum { MIB = 1 << 20 };
    char *big = malloc(2 * MIB);
    policy p;
    trace_error e = {0};
    ck_assert_ptr_nonnull(big);
    memset(big, 'x', 2 * MIB);
    memcpy(big, "clip: 1\n#", 9);
    refused_bytes(big, 2 * MIB, 0, "more than the 1048576 bytes");
    refused_bytes(big, MIB + 1, 0, "more than the 1048576 bytes");
    ck_assert_int_eq(policy_load(&p, write_bytes(big, MIB), 0, &e), 0);
    policy_clear(&p);
    free(big);
    refused_bytes("precision: fp16\0\n", 17, 1, "not valid YAML");
    refused_bytes("name: caf\xe9\n", 11, 1, "not valid YAML");
    refused_bytes("a: 1\nname: caf\xe9\n", 16, 2, "not valid YAML");
    refused_bytes("name: \x01\n", 8, 1, "not valid YAML");
    /* UTF-16 with its mark is YAML, too */
    const char *wide = write_bytes("\xff\xfe"
                                   "c\0l\0i\0p\0:\0 \0"
                                   "2\0",
                                   16);
    ck_assert_int_eq(policy_load(&p, wide, 0, &e), 0);
    ck_assert(p.plans[0].max_norm == 2);
    policy_clear(&p);
}
END_TEST

START_TEST(files)
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
END_TEST

START_TEST(scaler_words)
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
END_TEST

START_TEST(optimizer_keys)
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
END_TEST

START_TEST(clip_and_reduce)
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
END_TEST

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

START_TEST(remarks)
{
    policy p;
    char text[1024];
    load(&p, "opt_level: O1\nprecision: bf16\n");
    ck_assert_str_eq(p.remarks, "line 2: precision bf16 does not count beside opt_level O1 of line 1");
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
END_TEST

int main(void)
{
    TCase *keys = test_case("keys", 20), *values = test_case("values", 20);
    tcase_add_loop_test(keys, good_keys, 0, GOOD);
    tcase_add_loop_test(keys, bad_keys, 0, BAD);
    tcase_add_test(keys, bad_files);
    tcase_add_test(keys, files);
    tcase_add_test(keys, remarks);
    tcase_add_test(values, scaler_words);
    tcase_add_test(values, optimizer_keys);
    tcase_add_test(values, clip_and_reduce);
    return bad_main("policy-keys", (TCase *const[]){keys, values, NULL});
}
