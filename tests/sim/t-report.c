/* t-report.c -- the report of stat as a function (mpsim/report.h): the program's bytes, of files and of arrays at any strides; its errors;
 * from two threads at once, and after errors; stopped; the caller's thread as it was; and every allocation failing in turn. */
#include "support/allocations.h"
#include "support/badfile.h"
#include "support/extent.h"
#include "support/support.h"

#include <mpsim/mpsim.h>
#include <mpsim/report.h>
#include <threads/parallel.h>

#include <fenv.h>
#include <locale.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

/* ---- what there is to report on ---- */

enum { ROWS = 5, COLS = 40, WIDE = 3 };

static float narrow[ROWS * COLS];
static double wide[WIDE] = {1e-300, -1, 1e300};
static uint16_t halves[ROWS * COLS];
static unsigned char bytes[COLS];
static const uint64_t matrix[2] = {ROWS, COLS}, turned[2] = {COLS, ROWS}, line[1] = {WIDE}, none[2] = {0, 7},
                      row[1] = {COLS}, cube[3] = {2, ROWS, COLS / 4};
static const int64_t along_columns[2] = {sizeof(float), COLS * sizeof(float)}, backwards[1] = {-1},
                     again[3] = {0, COLS * sizeof(float), 4 * sizeof(float)};

static void fill(void)
{
    const mpsim_format *f = mpsim_format_find("fp16");
    for (int i = 0; i < ROWS * COLS; i++) {
        narrow[i] = (float)(i - 70) * (i % 3 ? 1e-6f : 37.5f);
        halves[i] = (uint16_t)(i * 271);
    }
    narrow[11] = -(float)__builtin_inf();
    for (int i = 0; i < COLS; i++)
        bytes[i] = (unsigned char)(i * 7);
    ck_assert_ptr_nonnull(f);
}

static const mpsim_format *format(const char *name)
{
    return mpsim_format_find(name);
}

/* The tensors, as arrays: elements that lie in order, turned, backwards, and the same ones again. */
enum { ARRAYS = 8 };

static void make_arrays(mpsim_array a[ARRAYS])
{
    const mpsim_array all[ARRAYS] = {
        {"wgrad:a", format("binary32"), narrow, matrix, NULL, 2},
        {"act:turned", format("binary32"), narrow, turned, along_columns, 2},
        {"weight:wide", format("binary64"), wide, line, NULL, 1},
        {"wgrad:half", format("fp16"), halves, matrix, NULL, 2},
        {"empty", format("bf16"), NULL, none, NULL, 2},
        {"agrad:back", format("e4m3"), bytes + COLS - 1, row, backwards, 1},
        {"one", format("binary64"), wide + 1, NULL, NULL, 0},
        {"again", format("binary32"), narrow + 1, cube, again, 3},
    };
    memcpy(a, all, sizeof all);
}

/* Element i of an array, found by its strides alone. */
static const unsigned char *element_of(const mpsim_array *a, uint64_t i, size_t width)
{
    int64_t at = 0, dense = (int64_t)width;
    for (size_t k = a->dimensions; k-- > 0; i /= a->shape[k]) {
        at += (int64_t)(i % a->shape[k]) * (a->strides ? a->strides[k] : dense);
        dense *= (int64_t)a->shape[k];
    }
    return (const unsigned char *)a->data + at;
}

/* The same as a safetensors file. */
static const char *write_arrays(const mpsim_array *a, size_t n)
{
    trace_tensor t[ARRAYS];
    trace_error error;
    static char path[4400];
    snprintf(path, sizeof path, "%s", bad_path("arrays.safetensors"));
    uint64_t counts[ARRAYS];
    for (size_t i = 0; i < n; i++) {
        counts[i] = 1;
        for (size_t k = 0; k < a[i].dimensions; k++)
            counts[i] *= a[i].shape[k];
        t[i] = (trace_tensor){
            .name = a[i].name, .format = a[i].format, .shape = a[i].shape, .rank = a[i].dimensions, .count = counts[i]};
    }
    trace_writer *w = trace_writer_safetensors(path, t, n, NULL, 0, &error);
    ck_assert_msg(w != NULL, "%s", error.text);
    for (size_t i = 0; i < n; i++)
        for (uint64_t k = 0; k < counts[i]; k++) {
            unsigned char code[8];
            const size_t width = mpsim_format_code_bytes(a[i].format);
            memcpy(code, element_of(&a[i], k, width), width);
            trace_to_little_endian(code, width, 1);
            ck_assert_int_eq(trace_writer_data(w, code, width, &error), 0);
        }
    ck_assert_int_eq(trace_writer_finish(w, &error), 0);
    return path;
}

/* ---- the program ---- */

static char *read_all(const char *command, int *code)
{
    FILE *from = popen(command, "r");
    ck_assert_ptr_nonnull(from);
    size_t n = 0, got;
    char *text = NULL;
    do {
        text = realloc(text, n + 65536);
        ck_assert_ptr_nonnull(text);
        got = fread(text + n, 1, 65535, from);
        n += got;
    } while (got);
    text[n] = '\0';
    const int status = pclose(from);
    *code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return text;
}

static const char *program(void)
{
    const char *at = getenv("MPSIM");
    return at ? at : "./mpsim";
}

/* Options as words of the program, quoted. */
static void put_words(char *to, size_t size, const mpsim_option *o, size_t n)
{
    static const char *const flags[] = {"counts", "histogram", "flush-subnormals", "tensors", "keep-going"};
    size_t used = 0;
    to[0] = '\0';
    for (size_t i = 0; i < n; i++) {
        int flag = 0;
        for (size_t k = 0; k < sizeof flags / sizeof flags[0]; k++)
            flag |= strcmp(o[i].name, flags[k]) == 0;
        used += (size_t)snprintf(to + used, size - used, flag ? " --%s" : " --%s='%s'", o[i].name, o[i].value);
    }
}

static void is_program(const char *operands, const mpsim_option *o, size_t n, const mpsim_report *r)
{
    char words[1024], command[8192];
    int code;
    put_words(words, sizeof words, o, n);
    snprintf(command, sizeof command, "%s stat --json%s %s 2>'%s'", program(), words, operands, bad_path("lines"));
    char *json = read_all(command, &code);
    ck_assert_int_eq(code, mpsim_report_code(r));
    size_t bytes_of;
    const char *mine = mpsim_report_json(r, &bytes_of);
    ck_assert(strlen(json) == bytes_of && memcmp(json, mine, bytes_of) == 0);
    free(json);
    snprintf(command, sizeof command, "sed 's/^mpsim: //' '%s'", bad_path("lines"));
    char *lines = read_all(command, &code), *at = lines;
    for (size_t i = 0; (mine = mpsim_report_note(r, i)); i++) {
        char *end = strchr(at, '\n');
        ck_assert_msg(end && (size_t)(end - at) == strlen(mine) && strncmp(at, mine, strlen(mine)) == 0, "%s: %s", at,
                      mine);
        at = end + 1;
    }
    ck_assert_str_eq(at, "");
    free(lines);
    if (strstr(words, "--histogram")) /* which only JSON shows */
        return;
    snprintf(command, sizeof command, "%s stat%s %s 2>/dev/null", program(), words, operands);
    char *text = read_all(command, &code);
    ck_assert_str_eq(text, mpsim_report_text(r, NULL));
    free(text);
}

static mpsim_report *of_arrays(const mpsim_option *o, size_t n)
{
    mpsim_array a[ARRAYS];
    char why[1024] = "";
    mpsim_report *r;
    make_arrays(a);
    const mpsim_status s = mpsim_stat_arrays(&r, a, ARRAYS, o, n, NULL, NULL, why, sizeof why);
    ck_assert_msg(s == MPSIM_OK, "%s", why);
    return r;
}

typedef struct asked {
    mpsim_option o[5];
    size_t n;
} asked;

static const asked questions[] = {
    {{{NULL, NULL}}, 0},
    {{{"format", "fp16,e4m3@cuda"}, {"scale", "1,2^10"}, {"histogram", "1"}}, 3},
    {{{"format", "mxfp8:rceil,nvfp4,bf16"}, {"axis", "both"}, {"rht", "16"}, {"fail-if", "nan,inf,underflow>1%"}}, 4},
    {{{"fail-if", "inf,total:sqnr<300"}, {"fail-if", "saturated_blocks>0"}, {"format", "mxfp4,e5m2"}, {"tensors", "1"}},
     4},
    {{{"kind", "wgrad,act"}, {"match", "*a*"}, {"round", "srb:8"}, {"seed", "7"}, {"counts", "1"}}, 5},
    {{{"scale-kinds", "all"}, {"scale", "2^0..2^4"}, {"map", "one=weight:one"}, {"flush-subnormals", "1"}}, 4},
    {{{"format", "mxfp8"}, {"axis", "columns"}, {"threads", "3"}}, 3},
};
enum { QUESTIONS = sizeof questions / sizeof questions[0] };

START_TEST(arrays_are_a_file_of_them)
{
    char operands[4500];
    mpsim_array a[ARRAYS];
    if (_i > 3 && !test_in_whole_part((uint64_t)_i, 3))
        return;
    make_arrays(a);
    snprintf(operands, sizeof operands, "- <'%s'", write_arrays(a, ARRAYS));
    mpsim_report *r = of_arrays(questions[_i].o, questions[_i].n);
    is_program(operands, questions[_i].o, questions[_i].n, r);
    mpsim_report_free(r);
}

/* What counts arrays that this process is not to read: it gathers them. */
static mpsim_status count_elsewhere(void *context, size_t array, const mpsim_cast *casts, size_t n, unsigned want,
                                    mpsim_stats *stats, mpsim_histogram *histogram, mpsim_cast_stats *results)
{
    const mpsim_array *a = (const mpsim_array *)context + array;
    const size_t width = mpsim_format_code_bytes(a->format);
    unsigned char codes[8 * 4 * ROWS * COLS];
    uint64_t count = 1;
    for (size_t k = 0; k < a->dimensions; k++)
        count *= a->shape[k];
    for (uint64_t i = 0; i < count; i++)
        memcpy(codes + i * width, element_of(a, i, width), width);
    mpsim_summary *s = mpsim_summary_new();
    ck_assert_ptr_nonnull(s);
    mpsim_status status = mpsim_summary_begin(s, casts, n, want);
    if (status == MPSIM_OK)
        status = mpsim_summary_add_codes(s, a->format, NULL, codes, (size_t)count);
    if (status == MPSIM_OK)
        status = mpsim_summary_read(s, stats, histogram, results);
    mpsim_summary_free(s);
    return status;
}

START_TEST(arrays_counted_elsewhere_have_the_same_report)
{
    static const mpsim_status wanted[QUESTIONS] = {
        [2] = MPSIM_EUNAVAILABLE, [3] = MPSIM_EUNAVAILABLE, [4] = MPSIM_EINVAL, [6] = MPSIM_EUNAVAILABLE};
    mpsim_array a[ARRAYS], blind[ARRAYS];
    char why[1024] = "";
    mpsim_report *r;
    const asked *q = &questions[_i];
    make_arrays(a);
    make_arrays(blind);
    for (int i = 0; i < ARRAYS; i++)
        blind[i].data = blind[i].data ? (void *)8 : NULL;
    const mpsim_status s = mpsim_stat_counted(&r, blind, ARRAYS, q->o, q->n, count_elsewhere, a, why, sizeof why);
    ck_assert_msg(s == wanted[_i], "%d: %s", (int)s, why); /* recipes; random bits, which the function refuses */
    if (s != MPSIM_OK) {
        ck_assert_ptr_null(r);
        ck_assert(why[0] != '\0');
        return;
    }
    mpsim_report *want = of_arrays(q->o, q->n);
    ck_assert_str_eq(mpsim_report_json(r, NULL), mpsim_report_json(want, NULL));
    ck_assert_str_eq(mpsim_report_text(r, NULL), mpsim_report_text(want, NULL));
    mpsim_report_free(r);
    mpsim_report_free(want);
}

/* What a caller has counted is the record that the report has, with all that the table of fields has. */
START_TEST(counts_are_a_record_of_the_report)
{
    static const float x[8] = {1e-8f, 3e-5f, -0.5f, 7e4f, 0, 1, 0.1f, -2};
    const uint64_t shape[2] = {1, 8};
    const mpsim_array a = {"wgrad:x", mpsim_format_find("binary32"), x, shape, NULL, 2};
    const mpsim_option options[2] = {{"format", "fp16,mxfp8"}, {"scale", "4"}};
    char text[4096] = "-", why[256] = "";
    mpsim_stats stats = {0};
    mpsim_cast_stats cast = {0};
    static mpsim_block_stats blocks; /* all 0 */
    const mpsim_cast how = {mpsim_format_find("fp16"), {.mode = MPSIM_ROUND_NEAREST_EVEN, .scale = 4}};
    mpsim_summary *s = mpsim_summary_new();
    mpsim_report *r;
    ck_assert_int_eq(mpsim_summary_begin(s, &how, 1, MPSIM_SUMMARY_SUMS | MPSIM_SUMMARY_ERRORS), MPSIM_OK);
    mpsim_summary_add_f32(s, NULL, x, 8);
    mpsim_summary_read(s, &stats, NULL, &cast);
    mpsim_summary_free(s);
    const mpsim_loss losses[2] = {{"mxfp8", "rows", 1, &stats, NULL, &blocks}, {"fp16", NULL, 4, &stats, &cast, NULL}};
    const size_t n = mpsim_stat_record(text, 8, &stats, losses + 1, 1);
    ck_assert_str_eq(text, "-"); /* no room */
    ck_assert_uint_eq(mpsim_stat_record(text, n + 1, &stats, losses + 1, 1), n);
    ck_assert_uint_eq(strlen(text), n);
    ck_assert_msg(mpsim_stat_arrays(&r, &a, 1, options, 2, NULL, NULL, why, sizeof why) == MPSIM_OK, "%s", why);
    text[n - 1] = '\0'; /* without the bracket */
    ck_assert_msg(strstr(mpsim_report_json(r, NULL), text + 1) != NULL, "%s", text);
    mpsim_report_free(r);
    ck_assert_uint_gt(mpsim_stat_record(text, sizeof text, &stats, losses, 2), n);
    ck_assert_ptr_nonnull(strstr(text, "\"recipe\": \"mxfp8\", \"axis\": \"rows\", \"elements\": 8,"));
}

START_TEST(files_are_those_of_the_program)
{
    static const asked of_files[] = {{{{"threads", "2"}}, 1}, {{{"keep-going", "1"}, {"format", "fp16"}}, 2}};
    const char *top = getenv("MPSIM_SRCDIR");
    char one[4000], two[4000], operands[8100], why[1024] = "";
    snprintf(one, sizeof one, "%s/data/digits-cnn/step_000001", top ? top : ".");
    snprintf(two, sizeof two, "%s/%s", top ? top : ".", _i ? "README.md" : "tests/trace/recorded/flax.msgpack");
    snprintf(operands, sizeof operands, "'%s' '%s'", one, two);
    const char *const paths[2] = {one, two};
    mpsim_report *r;
    ck_assert_msg(mpsim_stat_files(&r, paths, 2, of_files[_i].o, of_files[_i].n, NULL, NULL, why, sizeof why) ==
                      MPSIM_OK,
                  "%s", why);
    ck_assert_int_eq(mpsim_report_code(r), _i ? 5 : 0);
    is_program(operands, of_files[_i].o, of_files[_i].n, r);
    mpsim_report_free(r);
}

/* Larger than what one thread does alone, and than a piece: in order or by strides, on one thread or three. */
START_TEST(large_arrays_are_divided)
{
    enum { SIDE = 1600 };
    float *x = malloc((size_t)SIDE * SIDE * sizeof *x);
    const uint64_t shape[2] = {SIDE, SIDE};
    const int64_t columns[2] = {sizeof *x, SIDE * sizeof *x};
    mpsim_report *r[3];
    ck_assert_ptr_nonnull(x);
    for (size_t i = 0; i < SIDE; i++) /* its own transpose */
        for (size_t k = 0; k < SIDE; k++)
            x[i * SIDE + k] = (float)(i * k % 977) * 1e-7f;
    parallel_eager(1);
    for (int i = 0; i < 3; i++) {
        const mpsim_array a = {"x", format("binary32"), x, shape, i == 2 ? columns : NULL, 2};
        const mpsim_option o = {"threads", i ? "3" : "1"};
        ck_assert_int_eq(mpsim_stat_arrays(&r[i], &a, 1, &o, 1, NULL, NULL, NULL, 0), MPSIM_OK);
        ck_assert_str_eq(mpsim_report_json(r[i], NULL), mpsim_report_json(r[0], NULL));
    }
    for (int i = 0; i < 3; i++)
        mpsim_report_free(r[i]);
    free(x);
}

/* ---- errors ---- */

static void expect(const mpsim_array *a, size_t n, const mpsim_option *o, mpsim_status want, const char *fragment)
{
    char why[1024] = "";
    mpsim_report *r = (mpsim_report *)(void *)&why;
    const mpsim_status s = mpsim_stat_arrays(&r, a, n, o, o != NULL, NULL, NULL, why, sizeof why);
    ck_assert_msg(s == want && strstr(why, fragment) && !strchr(why, '\n'), "%d: %s", (int)s, why);
    ck_assert_ptr_null(r);
}

START_TEST(each_error_has_its_status_and_the_next_call_is_as_before)
{
    static const struct {
        mpsim_option option;
        mpsim_status want;
        const char *line;
    } rows[] = {{{"colour", "red"}, MPSIM_ENOTFOUND, "stat: --colour is not an option here"},
                {{"names", "{}"}, MPSIM_ENOTFOUND, "stat: --names is not an option here"},
                {{"json", "1"}, MPSIM_ENOTFOUND, "stat: --json is not an option here"},
                {{"format", "fp61"}, MPSIM_EINVAL, "stat: unknown format 'fp61': did you mean fp64 or fp16?"},
                {{"format", NULL}, MPSIM_EINVAL, "stat: an array, a shape or a text is NULL"},
                {{"seed", "x"}, MPSIM_EINVAL, "stat: --seed: 'x' is not a non-negative integer"},
                {{"threads", "5000"}, MPSIM_EINVAL, "stat: --threads: at most 1024"},
                {{"fail-if", "nice"}, MPSIM_EINVAL, "stat: --fail-if: 'nice' is not a condition"},
                {{"dtype", "fp16"}, MPSIM_EINVAL, "are for files, not arrays"},
                {{"axis", "both"}, MPSIM_EINVAL, "stat: --axis needs a block recipe, as in -f mxfp8"},
                {{"match", "zzz"}, MPSIM_EDATA, "stat: -: no tensor of floating-point numbers is selected"},
                {{"map", "@/nowhere"}, MPSIM_EIO, "/nowhere: No such file"}};
    mpsim_array a[ARRAYS];
    mpsim_report *before = of_arrays(NULL, 0);
    make_arrays(a);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        expect(a, ARRAYS, &rows[i].option, rows[i].want, rows[i].line);
        mpsim_report *after = of_arrays(NULL, 0);
        ck_assert_str_eq(mpsim_report_json(after, NULL), mpsim_report_json(before, NULL));
        mpsim_report_free(after);
    }
    mpsim_report_free(before);
    a[1].name = a[0].name;
    expect(a, 2, NULL, MPSIM_EINVAL, "array 'wgrad:a' is given twice");
    a[1].name = "\xff";
    expect(a, 2, NULL, MPSIM_EINVAL, "the name of array 1 is not a text of UTF-8");
    a[0].data = NULL;
    expect(a, 1, NULL, MPSIM_EINVAL, "array 'wgrad:a' has no elements, and a shape that has some");
    a[0].format = NULL;
    expect(a, 1, NULL, MPSIM_EINVAL, "array 'wgrad:a' has no format");
    static const uint64_t huge[3][3] = {
        {UINT64_MAX, UINT64_MAX, 0}, {UINT64_MAX, 0, UINT64_MAX}, {0, UINT64_MAX, UINT64_MAX}};
    static const int64_t strides[3] = {INT64_MAX, INT64_MIN, 0};
    static const uint64_t two[1] = {2};
    static const int64_t far[1] = {INT64_MIN + 1};
    a[0] = (mpsim_array){"a", mpsim_format_find("fp16"), narrow, two, far, 1};
    expect(a, 1, NULL, MPSIM_EINVAL, "array 'a' is larger than memory can be");
    expect(a, SIZE_MAX / 8, NULL, MPSIM_EINVAL, "is NULL");
    for (size_t i = 0; i < 6; i++) { /* where the 0 stands makes no difference */
        a[0] = (mpsim_array){"a", mpsim_format_find("fp16"), NULL, huge[i / 2], i % 2 ? strides : NULL, 3};
        expect(a, 1, NULL, MPSIM_EINVAL, "array 'a' is larger than memory can be");
    }
    expect(NULL, 0, NULL, MPSIM_EDATA, "no tensor of floating-point numbers");
    expect(NULL, 1, NULL, MPSIM_EINVAL, "is NULL");
    const char *const path = "/no/such";
    char why[100] = "";
    mpsim_report *r;
    ck_assert_int_eq(mpsim_stat_files(&r, &path, 1, NULL, 0, NULL, NULL, why, 20), MPSIM_EIO);
    ck_assert_str_eq(why, "/no/such: cannot op");
    ck_assert_int_eq(mpsim_stat_files(&r, NULL, 0, NULL, 0, NULL, NULL, NULL, 0), MPSIM_EINVAL);
    ck_assert_int_eq(mpsim_stat_files(&r, &path, 1, &rows[0].option, SIZE_MAX, NULL, NULL, NULL, 0), MPSIM_EINVAL);
    mpsim_reader *reader;
    ck_assert_int_eq(mpsim_reader_open(&reader, &path, SIZE_MAX, NULL, 0, NULL, 0), MPSIM_EINVAL);
    ck_assert_int_eq(mpsim_reader_open(&reader, &path, 1, &rows[0].option, SIZE_MAX, NULL, 0), MPSIM_EINVAL);
    mpsim_report_free(NULL);
}

/* ---- threads, and the caller's own ---- */

static void *ask_often(void *want)
{
    for (int i = 0; i < QUESTIONS; i++) {
        mpsim_report *r = of_arrays(questions[i % QUESTIONS].o, questions[i % QUESTIONS].n);
        ck_assert_str_eq(mpsim_report_json(r, NULL), ((char **)want)[i % QUESTIONS]);
        mpsim_report_free(r);
        expect(NULL, 0, NULL, MPSIM_EDATA, "no tensor");
    }
    return NULL;
}

START_TEST(threads_ask_side_by_side)
{
    enum { THREADS = 4 };
    char *want[QUESTIONS];
    pthread_t t[THREADS];
    parallel_eager(1);
    for (int i = 0; i < QUESTIONS; i++) {
        mpsim_report *r = of_arrays(questions[i].o, questions[i].n);
        want[i] = strdup(mpsim_report_json(r, NULL));
        mpsim_report_free(r);
    }
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&t[i], NULL, ask_often, want), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(t[i], NULL);
    for (int i = 0; i < QUESTIONS; i++)
        free(want[i]);
}

START_TEST(the_thread_keeps_its_environment)
{
    ck_assert(fesetround(FE_UPWARD) == 0 && feraiseexcept(FE_INEXACT) == 0);
    const locale_t before = uselocale((locale_t)0);
    mpsim_report *r = of_arrays(NULL, 0);
    ck_assert(fegetround() == FE_UPWARD && fetestexcept(FE_ALL_EXCEPT) == FE_INEXACT);
    ck_assert(uselocale((locale_t)0) == before);
    fesetenv(FE_DFL_ENV);
    mpsim_report *same = of_arrays(NULL, 0);
    ck_assert_str_eq(mpsim_report_json(r, NULL), mpsim_report_json(same, NULL));
    mpsim_report_free(same);
    mpsim_report_free(r);
}

/* ---- progress ---- */

typedef struct watched {
    int times, until; /* stop after so many */
    uint64_t last;
    int wrong;
} watched;

/* Asks itself, too. */
static int watch(void *context, uint64_t done, uint64_t total)
{
    watched *w = context;
    mpsim_report *r = of_arrays(NULL, 0);
    w->wrong |= done < w->last || done > total || total == 0 || !mpsim_report_json(r, NULL);
    mpsim_report_free(r);
    w->last = done;
    return ++w->times == w->until;
}

START_TEST(the_caller_is_asked_and_may_stop)
{
    const uint64_t shape[1] = {UINT64_C(1) << 40}; /* hours of work */
    const int64_t stride[1] = {0};
    const mpsim_array a = {"x", format("binary32"), narrow, shape, stride, 1};
    const mpsim_option o[] = {{"format", "fp16,bf16,e4m3,e5m2,e2m1"}, {"scale", "2^0..2^20"}, {"threads", "2"}};
    char why[100] = "";
    mpsim_report *r;
    watched w = {.until = 2};
    ck_assert_int_eq(mpsim_stat_arrays(&r, &a, 1, o, 3, watch, &w, why, sizeof why), MPSIM_ESTOPPED);
    ck_assert_str_eq(why, "stat: stopped by its caller");
    ck_assert_msg(w.times == 2 && !w.wrong && r == NULL, "%d times, last %llu", w.times, (unsigned long long)w.last);
}

/* ---- memory ---- */

#ifdef CAN_FAIL
static mpsim_status digest(const asked *q, uint64_t *sum, char *why, size_t size)
{
    mpsim_array a[ARRAYS];
    mpsim_report *r;
    size_t n;
    make_arrays(a);
    const mpsim_status s = mpsim_stat_arrays(&r, a, ARRAYS, q->o, q->n, NULL, NULL, why, size);
    if (s != MPSIM_OK)
        return s;
    const char *json = mpsim_report_json(r, &n);
    *sum = bad_crc32(json, n);
    const char *text = mpsim_report_text(r, &n);
    *sum = *sum * 31 + bad_crc32(text, n);
    for (size_t i = 0; mpsim_report_note(r, i); i++)
        *sum = *sum * 31 + bad_crc32(mpsim_report_note(r, i), strlen(mpsim_report_note(r, i)));
    mpsim_report_free(r);
    return s;
}

static int fail_at(const asked *q, long n, uint64_t want)
{
    char why[1024] = "";
    uint64_t sum = 0;
    const long before = live;
    failed = 0;
    until = n;
    const mpsim_status s = digest(q, &sum, why, sizeof why);
    until = 0;
    ck_assert_msg(live == before, "allocation %ld: %ld are not freed", n, live - before);
    ck_assert_msg(s == MPSIM_OK ? sum == want : failed && s == MPSIM_ENOMEM && strstr(why, "out of memory"),
                  "allocation %ld: status %d, %s", n, (int)s, s ? why : "another report");
    return failed;
}

/* On one thread: glibc keeps what threads had. And without --map: its regcomp (2.36) frees twice where it has no memory. */
START_TEST(each_allocation_that_fails_is_said)
{
    char why[1024];
    uint64_t want;
    asked q = questions[_i];
    if (_i != 1 && !test_in_whole_part((uint64_t)_i, 3))
        return;
    for (size_t i = 0; i < q.n; i++)
        if (strcmp(q.o[i].name, "threads") == 0 || strcmp(q.o[i].name, "map") == 0)
            q.o[i] = (mpsim_option){"seed", "3"};
    ck_assert_int_eq(digest(&q, &want, why, sizeof why), MPSIM_OK);
    long n = 1;
    while (fail_at(&q, n, want)) /* all of the first hundred, then ever fewer */
        n += 1 + n / 100;
    ck_assert(n > 10);
}
#endif

int main(void)
{
    fill();
    TCase *t = test_case("report", 120);
    tcase_add_loop_test(t, arrays_are_a_file_of_them, 0, QUESTIONS);
    tcase_add_loop_test(t, arrays_counted_elsewhere_have_the_same_report, 0, QUESTIONS);
    tcase_add_test(t, counts_are_a_record_of_the_report);
    tcase_add_loop_test(t, files_are_those_of_the_program, 0, 2);
    tcase_add_test(t, large_arrays_are_divided);
    tcase_add_test(t, each_error_has_its_status_and_the_next_call_is_as_before);
    tcase_add_test(t, threads_ask_side_by_side);
    if (!test_under_valgrind())
        tcase_add_test(t, the_thread_keeps_its_environment);
    tcase_add_test(t, the_caller_is_asked_and_may_stop);
#ifdef CAN_FAIL
    if (!test_under_valgrind())
        tcase_add_loop_test(t, each_allocation_that_fails_is_said, 0, QUESTIONS);
#endif
    TCase *const cases[] = {t, NULL};
    return bad_main("report", cases);
}
