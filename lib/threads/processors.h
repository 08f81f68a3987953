/* processors.h -- how many processors are there for this process. */
#pragma once

/* threads_processors -- those that it may use: its affinity, the quota of its control group (rounded up). At
 * least 1. */
int threads_processors(void);

/* threads_processors_free -- of these, as many as the load average of the last minute leaves free, but at least
 * half of them, rounded up. */
int threads_processors_free(void);
