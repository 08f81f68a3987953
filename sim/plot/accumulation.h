/* accumulation.h -- data and variables of the figure accumulation. */
#pragma once

#include "plot.h"

void plot_put_accumulation(FILE *to, const plot_input *in, const plot_request *r);
void plot_put_accumulation_variables(FILE *to, const plot_input *in, const plot_request *r);
