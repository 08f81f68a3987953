/* inputset.c -- what kinds of inputs have of one another: arrays and names of a set, hashes, random words. */
#include "inputs.h"

#include "../array/want.h"
#include "../operand/element.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

mpsim_status judge_inputs_fail(const judge_inputs *w, mpsim_status status, const char *text, const char *name)
{
    if (w->why && w->size)
        snprintf(w->why, w->size, text, name);
    return status;
}

void judge_set_clear(mpsim_judge_set *set)
{
    for (size_t i = 0; i < set->arrays; i++)
        free((void *)(uintptr_t)set->array[i].codes);
    free(set->row);
    free(set->class_of);
    free(set->format);
    memset(set, 0, sizeof *set);
}

void *judge_inputs_array(mpsim_judge_set *set, size_t i, const char *role, size_t rows, size_t columns)
{
    void *codes = want_memory(rows * columns + 1, mpsim_format_code_bytes(&set->format[i]));
    if (codes) {
        set->array[i] = (mpsim_judge_array){role, &set->format[i], codes, rows, columns};
        set->arrays = i + 1;
    }
    return codes;
}

uint64_t judge_inputs_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

int judge_inputs_name(mpsim_judge_set *set, const char *name)
{
    if (strlen(name) >= MPSIM_JUDGE_ROW - 1)
        return 0;
    for (size_t i = 0; i < set->rows; i++)
        if (strcmp(set->row[i], name) == 0)
            return 0;
    if (want_room(&set->row, set->rows, 1, sizeof set->row[0]))
        return -1;
    snprintf(set->row[set->rows++], MPSIM_JUDGE_ROW, "%s", name);
    return 0;
}

uint64_t judge_inputs_mix_codes(uint64_t hash, const mpsim_format *f, const void *codes, size_t n, int any_nan)
{
    const size_t bytes = mpsim_format_code_bytes(f);
    for (size_t i = 0; i < n; i++) {
        const uint64_t code = element_code(codes, bytes, i);
        hash = judge_inputs_mix(hash, any_nan && mpsim_classify(f, code) == MPSIM_CLASS_NAN ? f->nan_code : code);
    }
    return hash;
}
