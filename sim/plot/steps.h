/* steps.h -- data and variables of the figures lossscale, updates and amax: curves over the steps. */
#pragma once

#include "plot.h"

void plot_put_courses(FILE *to, const plot_input *in, const plot_request *r);
void plot_put_courses_variables(FILE *to, const plot_input *in, const plot_request *r);
