/* distribution.h -- data and variables of the figure scales: scales of blocks by recipe, and what saturates. */
#pragma once

#include "plot.h"

void plot_put_distribution(FILE *to, const plot_input *in, const plot_request *r);
void plot_put_distribution_variables(FILE *to, const plot_input *in, const plot_request *r);
