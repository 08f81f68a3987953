/* figures.h -- the figures: which blocks of data and variables each template gets. */
#pragma once

#include "plot.h"

extern const plot_figure plot_figures[]; /* ends with a NULL name */
