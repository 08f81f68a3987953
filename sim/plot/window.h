/* window.h -- data and variables of the figure sweep: underflow, overflow and SQNR over the loss scale. */
#pragma once

#include "plot.h"

void plot_put_window(FILE *to, const plot_input *in, const plot_request *r);
void plot_put_window_variables(FILE *to, const plot_input *in, const plot_request *r);
