/* figures.h -- the figures: which blocks of data and variables each template gets. */
#ifndef MPSIM_SIM_PLOT_FIGURES_H
#define MPSIM_SIM_PLOT_FIGURES_H

#include "plot.h"

extern const plot_figure plot_figures[]; /* ends with a NULL name */

#endif
