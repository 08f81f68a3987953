/* columns.h -- the columns of a command's report, as its OPTION_COLUMNS rows name them. */
#pragma once

#include "options.h"

/* columns_each -- calls `heading` and then `column` for each column that help describes. */
void columns_each(const option_row *options, void (*heading)(const char *title),
                  void (*column)(const char *title, const char *what));
