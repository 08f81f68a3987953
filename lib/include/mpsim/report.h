/* report.h -- the report of `mpsim stat` as a function, of files or of arrays in memory: in libmpsim-trace.
 *
 * Statistics of casts of tensors: the program's report to the byte, by the same code. What trace.h says of files, errors, the
 * locale and the floating-point environment holds here, too. Nothing prints, ends the program or changes how signals are
 * handled (but for what trace.h says of want of memory, of which glibc dies in the regular expressions of map, too), and nothing is
 * kept between calls: several threads may call at once. A call may start threads, which take no signals and
 * have ended when it returns. The caller's rights are not given up, as the program gives its own up: of files from strangers
 * that are read in this process SECURITY.md says more. */
#ifndef MPSIM_REPORT_H
#define MPSIM_REPORT_H

#include <mpsim/blockstats.h>
#include <mpsim/summary.h>
#include <mpsim/trace.h>

MPSIM_BEGIN

typedef struct mpsim_report mpsim_report;

/* Elements in memory, read in place while a call runs. */
typedef struct mpsim_array {
    const char *name;           /* as in a file: "wgrad:fc.weight"; UTF-8                                       */
    const mpsim_format *format; /* of the elements, mpsim_format_code_bytes each, in the byte order of this machine */
    const void *data;           /* the first element; NULL where there are none                                */
    const uint64_t *shape;      /* dimensions, the slowest first                                               */
    const int64_t *strides;     /* bytes from one element to the next in each; NULL: one behind the other      */
    size_t dimensions;
} mpsim_array;

/* Asked now and then by the thread that has called, while elements are read (not while files are opened, or unpacked): `done` of
 * `total` bytes are done, about so many. 0, or anything else to stop: the call fails with MPSIM_ESTOPPED. It may call what is
 * here itself. */
typedef int mpsim_progress(void *context, uint64_t done, uint64_t total);

/* mpsim_stat_files -- of n paths, at least one, as mpsim_reader_open takes them. mpsim_stat_arrays -- of n arrays, whose file is called
 * "-" in the report: that of a safetensors file with the same tensors. Both: progress may be NULL.
 *
 * Options are those of `mpsim stat` without dashes, and of options that may be repeated each is one ("1": an option
 * without an argument): those of mpsim_reader_open, and
 *
 *   format, scale, scale-kinds, round, preset, overflow, flush-subnormals, flush-inputs, seed, rht, axis    what to cast to
 *   counts, histogram    fewer sums; more
 *   without-roundoff     without elements of gradients that are nothing but rounding
 *   fail-if              conditions; mpsim_report_code says whether they hold
 *   tensors              the text lists every tensor
 *   threads              at most so many; else as many as processors are free, and one where the work is small
 *   quiet                no notes
 *
 * MPSIM_ENOTFOUND: there is no such option; MPSIM_EINVAL: it takes no such argument, or what is given is not as it
 * should be; MPSIM_EDATA, MPSIM_EIO, MPSIM_ENOMEM, as mpsim_reader_open; MPSIM_ESTOPPED. The line is that of the program, without
 * its "mpsim: ". *r is NULL then. */
MPSIM_API mpsim_status mpsim_stat_files(mpsim_report **r, const char *const *paths, size_t n,
                                        const mpsim_option *options, size_t n_options, mpsim_progress *progress,
                                        void *context, char *error, size_t size);
MPSIM_API mpsim_status mpsim_stat_arrays(mpsim_report **r, const mpsim_array *arrays, size_t n,
                                         const mpsim_option *options, size_t n_options, mpsim_progress *progress,
                                         void *context, char *error, size_t size);

/* mpsim_stat_counted -- the same of arrays whose elements this process cannot read, as those in a device's memory (mpsim/cudastats.h):
 * `data` is not looked at, but where there are elements it is not NULL, and `count` is called once for each array, by the thread that has called:
 * to add what number `array` holds, and what the casts do to it, to accumulators, as mpsim_summary_read after
 * mpsim_summary_begin (histogram: NULL unless wanted). Its status other than MPSIM_OK ends the call with it.
 *
 * MPSIM_EUNAVAILABLE: recipes and transforms are asked for, which need the elements. */
typedef mpsim_status mpsim_count(void *context, size_t array, const mpsim_cast *casts, size_t n, unsigned want,
                                 mpsim_stats *stats, mpsim_histogram *histogram, mpsim_cast_stats *results);
MPSIM_API mpsim_status mpsim_stat_counted(mpsim_report **r, const mpsim_array *arrays, size_t n,
                                          const mpsim_option *options, size_t n_options, mpsim_count *count,
                                          void *context, char *error, size_t size);

/* mpsim_report_free -- accepts NULL, which the others do not. What they return belongs to the report. */
MPSIM_API void mpsim_report_free(mpsim_report *r);

/* mpsim_report_json -- what the program writes with --json (schema mpsim.stat/1), mpsim_report_text: without; *n bytes (may be NULL), and a zero
 * byte behind them. */
MPSIM_API const char *mpsim_report_json(const mpsim_report *r, size_t *n);
MPSIM_API const char *mpsim_report_text(const mpsim_report *r, size_t *n);

/* mpsim_report_note -- line i of what the program writes beside it, without "mpsim: ": "note: ..." of what a reader should know,
 * files that failed (keep-going), conditions that hold; NULL past the last one. */
MPSIM_API const char *mpsim_report_note(const mpsim_report *r, size_t i);

/* mpsim_report_code -- the program's exit code: 0; 1 where a condition of fail-if holds; 5 where files failed. */
MPSIM_API int mpsim_report_code(const mpsim_report *r);

/* What a cast, or a block recipe, did to elements that a caller has counted. */
typedef struct mpsim_loss {
    const char *name;                /* of the format or the recipe, as the report is to have it */
    const char *axis;                /* of a recipe: "rows", "columns" or "requantised"         */
    double scale;                    /* of a cast                                               */
    const mpsim_stats *of;           /* the elements                                            */
    const mpsim_cast_stats *cast;    /* or NULL: of a recipe                                    */
    const mpsim_block_stats *blocks; /* of a recipe                                             */
} mpsim_loss;

/* mpsim_stat_record -- what `mpsim stat --ndjson` would say of elements with these statistics, and of n losses: a JSON object with the
 * members of a record from "count" on (doc/schema/mpsim.stat.1.json). Its length, and it is in `to` with a zero byte behind it if that is
 * below `size`, which may be 0; 0 without memory. */
MPSIM_API size_t mpsim_stat_record(char *to, size_t size, const mpsim_stats *stats, const mpsim_loss *losses, size_t n);

MPSIM_END

#endif
