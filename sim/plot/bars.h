/* bars.h -- data and variables of the figure memory: a bar for each policy, of its components. */
#pragma once

#include "plot.h"

void plot_put_bars(FILE *to, const plot_input *in, const plot_request *r);
void plot_put_bars_variables(FILE *to, const plot_input *in, const plot_request *r);
