/* config.h -- what a report of stat says of itself: what was asked for, and what the names of formats and recipes mean, so that
 * the report can be read without mpsim. */
#pragma once

#include "settings.h"

/* What a format name of the report means. */
typedef struct stat_format {
    const char *name, *preset;
    size_t bits, exponent_bits, significand_bits;
    int bias;
    double max, min_normal, min_positive, epsilon;
} stat_format;

typedef struct stat_config {
    const char *schema, *level, *version; /* of a line */
    const char **labels;                  /* of the formats */
    stat_format *formats;
    size_t n_formats;
    double *scales;
    size_t n_scales;
    unsigned scaled_kinds, axes;
    const char *round, *overflow;
    uint64_t random_bits, seed;
    int flush_subnormals, flush_inputs;
    const option_list *match, *kinds;
    int counts; /* 1; -1: sums too */
    const char **recipe_labels;
    target_recipe_row *recipes;
    size_t n_recipes;
    json_t *map;
} stat_config;

extern const record_kind stat_config_record, stat_format_record; /* of a stat_config, a stat_format */

/* stat_config_make -- of settings and targets, which must outlive it. 0, or EXIT_IO without memory (host.h); stat_config_clear in any
 * case. */
int stat_config_make(stat_config *c, const stat_settings *s, const target_list *targets, const char *version);
void stat_config_clear(stat_config *c);
