/* ratiosreport.h -- what is said of log-probabilities of the same tokens by two engines. */
#pragma once

#include "../report/report.h"
#include "ratios.h"

/* ratios_band -- the band of ratios from "0.8,1.2", numbers of at least 0, or "0.2", how far it goes from 1; NULL is 0.8,1.2.
 * 0, or EXIT_USAGE after a message that begins with `verb`. */
int ratios_band(double *low, double *high, const char *verb, const char *text);

/* Of ratios with one token or more, sorted: as text, and as JSON (also of none). say_where: the place of the largest
 * difference, which one tensor has. */
void ratios_print(FILE *to, const ratios *r, int say_where);
json_t *ratios_json(const ratios *r);
