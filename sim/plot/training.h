/* training.h -- data and variables of the figure training. */
#pragma once

#include "plot.h"

void plot_put_training(FILE *to, const plot_input *in, const plot_request *r);
void plot_put_training_variables(FILE *to, const plot_input *in, const plot_request *r);
