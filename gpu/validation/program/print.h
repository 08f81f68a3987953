/* print.h -- what was found, as lines for people. Each function returns an exit status
 * (options.h). */
#pragma once

#include "../../gpu.h"
#include "../speed/speed.h"
#include "training.h"

void gpu_print_device(const gpu_device *d);

void gpu_print_checks_head(void);
int gpu_print_check(const char *name, const gpu_result *r);

int gpu_print_probe(const gpu_probe *p, size_t i, int sm);

int gpu_print_order(const gpu_order *o, size_t i);

void gpu_print_speeds_head(void);
int gpu_print_speed(const gpu_speed_row *r);

void gpu_print_trainings_head(void);
int gpu_print_training(const gpu_training *t);
