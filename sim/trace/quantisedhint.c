/* quantisedhint.c -- what the metadata of a file say of its quantised tensors: mpsim's own descriptions; the JSON of
 * torchao 0.18 beside the tensors of a safetensors file (prototype/safetensors/safetensors_utils.py); attributes of the
 * objects of torchao and TransformerEngine in pickles, which torchtree.c lists as NAME/elem_dtype and so on. */
#include "quantised.h"

#include "../text/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_MAX = 16 << 10 };

static int compare_pairs(const void *pa, const void *pb)
{
    const quantised_pair *a = pa, *b = pb;
    return strcmp(a->key, b->key);
}

int trace_quantised_index_new(quantised_index *x, const trace *t, trace_error *error)
{
    x->n = t->n_metadata;
    x->pairs = malloc((x->n + 1) * sizeof *x->pairs);
    if (!x->pairs)
        return trace_no_memory(t, error);
    for (size_t i = 0; i < x->n; i++)
        x->pairs[i] = (quantised_pair){t->metadata[2 * i], t->metadata[2 * i + 1]};
    if (x->n)
        qsort(x->pairs, x->n, sizeof *x->pairs, compare_pairs);
    return 0;
}

void trace_quantised_index_free(quantised_index *x)
{
    free(x->pairs);
    x->pairs = NULL;
}

/* The value of the key BEFORE NAME AFTER, or NULL. */
static const char *value_of(const quantised_index *x, const char *before, const char *name, const char *after)
{
    const size_t a = strlen(before), b = strlen(name);
    size_t low = 0, high = x->n;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const char *key = x->pairs[middle].key;
        int c = strncmp(key, before, a);
        if (c == 0)
            c = strncmp(key + a, name, b);
        if (c == 0)
            c = strcmp(key + a + b, after);
        if (c == 0)
            return x->pairs[middle].value;
        if (c < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

/* ---- mpsim ---- */

static int described(const char *text, quantised_hint *hint, char *why, size_t size)
{
    quant_description *d = &hint->mpsim;
    const int code = quant_described(d, text, why, size);
    if (code)
        return code;
    const quant_form *f = quant_layout_find(d->layout);
    if (!f || !mpsim_format_find(d->element)) {
        snprintf(why, size, "its description names the %s '%.31s', which is not known", f ? "element" : "layout",
                 f ? d->element : d->layout);
        return -1;
    }
    hint->known = hint->described = 1;
    hint->layout = f->layout;
    snprintf(hint->element, sizeof hint->element, "%.31s", mpsim_format_find(d->element)->name);
    hint->swizzled = d->swizzled;
    return 0;
}

/* ---- torchao, TransformerEngine ---- */

/* What they call elements; a word of the value decides. TransformerEngine 2.12, common/include/transformer_engine.h:
 * NVTEDType 7 and 8. */
static void set_element(quantised_hint *hint, const char *value)
{
    static const char *const names[][2] = {
        {"float4_e2m1fn_x2", "e2m1"}, {"fp6_e2m3", "e2m3"},   {"fp6_e3m2", "e3m2"},   {"float8_e4m3fn", "e4m3"},
        {"float8_e5m2", "e5m2"},      {"Float8E4M3", "e4m3"}, {"Float8E5M2", "e5m2"}, {"DType(7)", "e4m3"},
        {"DType(8)", "e5m2"},         {"Float4E2M1", "e2m1"}};
    for (size_t i = 0; value && i < sizeof names / sizeof names[0]; i++) {
        const char *at = strstr(value, names[i][0]);
        if (at && at[strlen(names[i][0])] != 'u') { /* float8_e4m3fnuz */
            snprintf(hint->element, sizeof hint->element, "%s", names[i][1]);
            return;
        }
    }
}

static int torchao_json(const char *text, quantised_hint *hint)
{
    int no_memory = 0;
    json_t *v = strlen(text) < TEXT_MAX ? json_text(text, strlen(text), 0, NULL, &no_memory) : NULL;
    const char *type = json_string_value(json_object_get(v, "_type"));
    const json_t *data = json_object_get(v, "_data"), *element = json_object_get(data, "elem_dtype");
    const json_t *swizzled = json_object_get(data, "is_swizzled_scales");
    if (type && json_is_object(data)) {
        hint->known = 1;
        hint->layout = quant_layout_find("torchao")->layout;
        snprintf(hint->type, sizeof hint->type, "%s", type);
        set_element(hint, json_string_value(json_is_object(element) ? json_object_get(element, "_data") : element));
        hint->swizzled = json_is_boolean(swizzled) ? json_is_true(swizzled) : -1;
    }
    json_decref(v);
    return no_memory ? -2 : 0;
}

static void attributes(const quantised_index *x, const char *name, quantised_hint *hint)
{
    static const char *const elements[] = {"/elem_dtype", "/fp8_dtype", "/fp4_dtype"};
    static const char *const swizzles[] = {"/is_swizzled_scales", "/with_gemm_swizzled_scales"};
    for (size_t i = 0; i < sizeof elements / sizeof elements[0]; i++)
        set_element(hint, value_of(x, "", name, elements[i]));
    for (size_t i = 0; i < sizeof swizzles / sizeof swizzles[0]; i++) {
        const char *value = value_of(x, "", name, swizzles[i]);
        if (value)
            hint->swizzled = strcmp(value, "True") == 0;
    }
    hint->known = hint->element[0] || hint->swizzled >= 0;
}

int trace_quantised_hints(const quantised_index *x, const char *name, quantised_hint *hint, char *why, size_t size)
{
    hint->known = hint->described = hint->type[0] = hint->element[0] = 0;
    hint->layout = NULL;
    hint->swizzled = -1;
    if (!x->n)
        return 0;
    const char *text = value_of(x, QUANT_KEY, name, "");
    if (text)
        return described(text, hint, why, size);
    text = value_of(x, "", name, "");
    if (text && text[0] == '{')
        return torchao_json(text, hint);
    attributes(x, name, hint);
    return 0;
}
