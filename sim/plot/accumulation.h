/* accumulation.h -- data and variables of the figure accumulation. */
#ifndef MPSIM_SIM_PLOT_ACCUMULATION_H
#define MPSIM_SIM_PLOT_ACCUMULATION_H

#include "plot.h"

void plot_put_accumulation(FILE *to, const plot_input *in, const plot_request *r);
void plot_put_accumulation_variables(FILE *to, const plot_input *in, const plot_request *r);

#endif
