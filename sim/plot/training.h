/* training.h -- data and variables of the figure training. */
#ifndef MPSIM_SIM_PLOT_TRAINING_H
#define MPSIM_SIM_PLOT_TRAINING_H

#include "plot.h"

void plot_put_training(FILE *to, const plot_input *in, const plot_request *r);
void plot_put_training_variables(FILE *to, const plot_input *in, const plot_request *r);

#endif
