/* gnuplot.h -- running gnuplot. */
#ifndef MPSIM_SIM_PLOT_GNUPLOT_H
#define MPSIM_SIM_PLOT_GNUPLOT_H

/* plot_gnuplot -- run PREFIX.gp and rename what it draws to PREFIX.pdf, .png, .svg. Nothing
 * appears unless all of them were drawn. 0, or an exit code after a message. */
int plot_gnuplot(const char *prefix, unsigned types);

extern const char *const plot_suffixes[3]; /* "pdf", ...: bit i of `types` */

#endif
