/* comparison.h -- data and variables of the figure sqnr: SQNR of formats and block recipes side by side. */
#pragma once

#include "plot.h"

void plot_put_comparison(FILE *to, const plot_input *in, const plot_request *r);
void plot_put_comparison_variables(FILE *to, const plot_input *in, const plot_request *r);
