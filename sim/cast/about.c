/* about.c -- what a quantised file says of itself: see quantise.h. */
#include "../array/need.h"
#include "../quant/describe.h"
#include "cast.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* A text of jansson's, or of quant_describe, which is freed. */
static void put(pairs *p, const char *key, char *text)
{
    cast_pairs_put(p, key, "%s", (char *)need(text));
    free(text);
}

/* ---- mpsim's own ---- */

static void describe(pairs *p, const quantise_options *o, const quantised *q)
{
    char key[8192 + 64];
    quant_description d = {.rank = q->g->tensor.rank,
                           .block_rows = quant_side(q->g->block_rows, QUANT_ANY),
                           .block_cols = quant_side(q->g->block_cols, QUANT_ANY),
                           .columns = o->columns,
                           .swizzled = q->g->swizzled,
                           .tensor_scale = q->has[QUANT_TENSOR_SCALE],
                           .transform = o->how->transform};
    snprintf(d.layout, sizeof d.layout, "%s", q->g->form->layout);
    snprintf(d.recipe, sizeof d.recipe, "%s", o->how->block.name);
    snprintf(d.element, sizeof d.element, "%s", o->how->block.element);
    snprintf(d.scale, sizeof d.scale, "%s", strcmp(q->g->form->scale, "binary32") == 0 ? "binary32" : o->how->scale);
    memcpy(d.shape, q->g->tensor.sides, d.rank * sizeof *d.shape);
    snprintf(key, sizeof key, QUANT_KEY "%s", q->name);
    put(p, key, quant_describe(&d));
}

/* ---- torchao's ---- */

static json_t *torch_dtype(const char *name)
{
    return json_pack("{s:s, s:s}", "_type", "torch.dtype", "_data", name);
}

/* What torch calls the format of a tensor that was quantised; it is one of these for torchao. */
static const char *torch_name(const mpsim_format *f)
{
    static const char *const names[][2] = {{"bf16", "bfloat16"}, {"fp16", "float16"}, {"binary64", "float64"}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(f->name, names[i][0]) == 0)
            return names[i][1];
    return "float32";
}

static json_t *torchao_element(const char *element)
{
    static const char *const dtypes[][2] = {
        {"e4m3", "float8_e4m3fn"}, {"e5m2", "float8_e5m2"}, {"e2m1", "float4_e2m1fn_x2"}};
    for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++)
        if (strcmp(element, dtypes[i][0]) == 0)
            return torch_dtype(dtypes[i][1]);
    return json_sprintf("fp6_%s", element); /* mx_formats/constants.py */
}

/* The attributes of torchao 0.18's classes: tensor_attribute_names, optional_tensor_attribute_names. */
static json_t *torchao_data(const quantise_options *o, const quantised *q)
{
    const char *type = q->g->form->type, *dtype = torch_name(q->x->format);
    const json_int_t rows = (json_int_t)q->g->block_rows, cols = (json_int_t)q->g->block_cols;
    if (strcmp(type, "MXTensor") == 0)
        return json_pack("{s:o, s:I, s:o, s:{s:s, s:s}, s:n, s:b}", "elem_dtype",
                         torchao_element(o->how->block.element), "block_size", cols, "orig_dtype", torch_dtype(dtype),
                         "kernel_preference", "_type", "KernelPreference", "_data", "EMULATED", "act_quant_kwargs",
                         "is_swizzled_scales", q->g->swizzled);
    if (strcmp(type, "NVFP4Tensor") == 0)
        return json_pack("{s:b, s:b, s:n, s:I, s:o}", "is_swizzled_scales", q->g->swizzled, "use_triton_kernel", 0,
                         "act_quant_kwargs", "block_size", cols, "orig_dtype", torch_dtype(dtype));
    json_t *sides = q->g->tensor.rank == 3 ? json_pack("[i, I, I]", 1, rows, cols) : json_pack("[I, I]", rows, cols);
    return json_pack("{s:o, s:n, s:n, s:{s:s, s:s}, s:o}", "block_size", sides, "mm_config", "act_quant_kwargs",
                     "kernel_preference", "_type", "KernelPreference", "_data", "AUTO", "dtype", torch_dtype(dtype));
}

static char *torchao_text(const quantise_options *o, const quantised *q)
{
    json_t *v = q->kept || q->copy ? json_pack("{s:s}", "_type", "Tensor")
                                   : json_pack("{s:s, s:o, s:[s, s]}", "_type", q->g->form->type, "_data",
                                               torchao_data(o, q), "_tensor_data_names", "qdata", "scale");
    if (v && q->has[QUANT_TENSOR_SCALE])
        json_array_insert_new(json_object_get(v, "_tensor_data_names"), 0, json_string("per_tensor_scale"));
    char *text = v ? json_dumps(v, 0) : NULL;
    json_decref(v);
    return text;
}

static void torchao_all(pairs *p, const quantise_options *o, const quantised *q, size_t n)
{
    json_t *names = json_array();
    for (size_t i = 0; i < n; i++) {
        json_array_append_new(names, json_string(q[i].name));
        put(p, q[i].name, torchao_text(o, &q[i]));
    }
    put(p, "tensor_names", json_dumps(names, 0));
    json_decref(names);
}

/* ---- all ---- */

static void about_file(pairs *p, const quantise_options *o)
{
    const cast_recipe *r = o->how;
    cast_pairs_put(p, "mpsim.cast.recipe", "%s", r->block.name);
    cast_pairs_put(p, "mpsim.cast.layout", "%s", o->widen ? "values" : o->layout);
    cast_pairs_put(p, "mpsim.cast.axis", o->columns ? "columns" : "rows");
    cast_pairs_put(p, "mpsim.cast.version", "%s", mpsim_version());
    if (r->transform)
        cast_pairs_put(p, "mpsim.cast.transform", "%u", r->transform);
    if (r->transform || r->block.element_mode >= MPSIM_ROUND_STOCHASTIC_A)
        cast_pairs_put(p, "mpsim.cast.seed", "%" PRIu64, o->seed);
    if (r->block.rule == MPSIM_SCALE_MSAMP)
        cast_pairs_put(p, "mpsim.cast.scale", "%.9g", (double)r->given);
}

void cast_quantise_metadata(pairs *p, const quantise_options *o, const trace *t, const quantised *q, size_t n)
{
    const int torchao = !o->widen && strcmp(o->layout, "torchao") == 0;
    if (!torchao)
        cast_pairs_put_input(p, t);
    about_file(p, o);
    for (size_t i = 0; i < n; i++)
        if (q[i].g)
            describe(p, o, &q[i]);
    if (torchao)
        torchao_all(p, o, q, n);
}
