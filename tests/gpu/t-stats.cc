/* t-stats.cc -- statistics of libmpsim-cuda, its kernels on a CPU, beside those of libmpsim; reports of
 * mpsim-gpu-statistics on devices (data/gpu/<device>-statistics.json) beside what libmpsim counts. */
#include "tap.h"

#include "../../gpu/stats/check.h"
#include "support/extent.h"

#include <glob.h>

#include <string>

void ask_calls(); /* stats_calls.cc */

/* A fifth of the questions each day, of `make check` (extent.h). */
static int is_due(unsigned question)
{
    return test_in_part(question, 1);
}

static std::string text_of(FILE *f)
{
    std::string text;
    char block[4096];
    rewind(f);
    for (size_t n; (n = fread(block, 1, sizeof block, f)) > 0;)
        text.append(block, n);
    return text;
}

/* The arrays of a report that are due, and of them those that differ; -1: none was there. */
static int replay(const std::string &report, stats_check_plan plan)
{
    FILE *lines = tmpfile();
    plan.record = report.c_str();
    plan.to = lines;
    const int differing = stats_check(&plan);
    const std::string said = text_of(lines);
    fclose(lines);
    printf("# %s", said.substr(said.rfind('\n', said.size() - 2) + 1).c_str());
    return said.find("\n0 arrays are in the report") != std::string::npos ? -1 : differing;
}

/* A report that the CPU executor wrote, as it is and with another digit. */
static void played()
{
    const stats_check_plan few = {0, 0, 0, stdout, NULL, NULL, NULL, 7, 260};
    stats_check_plan plan = few;
    plan.json = tmpfile();
    OK(stats_check(&plan) == 0, "a played report");
    std::string report = text_of(plan.json);
    fclose(plan.json);
    OK(replay(report, few) == 0, "a played report is what libmpsim counts");
    const size_t at = report.find("\"digest\": \"") + 11;
    report[at] = report[at] == '0' ? '1' : '0';
    OK(replay(report, few) == 1, "another digit is found");
    OK(replay("{}", few) == -1, "a report without arrays is told from one that agrees");
}

static void of_devices()
{
    const char *top = getenv("MPSIM_SRCDIR");
    const std::string pattern = std::string(top ? top : ".") + "/data/gpu/*-statistics.json";
    const stats_check_plan plan = {0, 0, 0, stdout, NULL, is_due, NULL, 0, 0};
    glob_t files;
    if (glob(pattern.c_str(), 0, NULL, &files) != 0)
        printf("ok %d - reports of devices # SKIP waits for a device\n", ++tap_count);
    else
        for (size_t i = 0; i < files.gl_pathc; i++) {
            FILE *f = fopen(files.gl_pathv[i], "r");
            const std::string report = f ? text_of(f) : "";
            if (f)
                fclose(f);
            OK(replay(report, plan) == 0, files.gl_pathv[i]);
        }
    globfree(&files);
}

int main()
{
    const stats_check_plan plan = {0, 0, 0, stdout, NULL, is_due, NULL, 0, 0};
    OK(stats_check(&plan) == 0, "arrays of five types are counted as by the CPU's library");
    played();
    ask_calls();
    of_devices();
    return tap_end();
}
