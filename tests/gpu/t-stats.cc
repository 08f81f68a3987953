/* t-stats.cc -- statistics of libmpsim-cuda, its kernels on a CPU, beside those of libmpsim. */
#include "tap.h"

#include "../../gpu/stats/check.h"
#include "support/extent.h"

/* A fifth of the questions each day, of `make check` (extent.h). */
static int is_due(unsigned question)
{
    return test_in_part(question, 1);
}

int main()
{
    const stats_check_plan plan = {0, 0, 0, stdout, NULL, is_due};
    OK(stats_check(&plan) == 0, "arrays of five types are counted as by the CPU's library");
    return tap_end();
}
