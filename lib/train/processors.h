/* processors.h -- how many processors are there for this process. */
#pragma once

/* train_processors -- those that it may use: its affinity, the quota of its control group (rounded up). At
 * least 1. */
int train_processors(void);

/* train_processors_free -- of these, as many as the load average of the last minute leaves free, but at least
 * half of them, rounded up. */
int train_processors_free(void);
