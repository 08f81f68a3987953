/* dots.h -- data and variables of the figures ranking and attention: a row for each recipe or model, in panels. */
#pragma once

#include "plot.h"

void plot_put_dots(FILE *to, const plot_input *in, const plot_request *r);
void plot_put_dots_variables(FILE *to, const plot_input *in, const plot_request *r);
