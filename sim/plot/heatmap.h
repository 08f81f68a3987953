/* heatmap.h -- data and variables of the figure diff. */
#pragma once

#include "plot.h"

void plot_put_heatmap(FILE *to, const plot_input *in, const plot_request *r);
void plot_put_heatmap_variables(FILE *to, const plot_input *in, const plot_request *r);
