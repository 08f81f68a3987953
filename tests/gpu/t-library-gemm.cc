/* t-library-gemm.cc -- mpsim_cuda_gemm on the executor beside mpsim_product_run: every model row with every pair of formats that it
 * takes, models of one's own, operands that are rounded as they are read, strides, batches, factors, what follows the sum. Equal
 * in every bit, of NaNs and of what lies between results, too. */
#include "library_gemm.h"

static int failed_here;

static std::string kernel_here; /* of the last product */

static void run(const test_product &t)
{
    const std::string wrong = compare_product(t, nullptr, &kernel_here);
    if (wrong != "") {
        failed_here++;
        printf("# %s: %s\n", describe(t).c_str(), wrong.c_str());
    }
}

static std::vector<std::string> words_of(const char *text)
{
    std::vector<std::string> all;
    std::string word;
    for (const char *c = text;; c++) {
        if (*c != ' ' && *c) {
            word += *c;
            continue;
        }
        all.push_back(word);
        word = "";
        if (!*c)
            return all;
    }
}

static void every_row()
{
    const char *part = getenv("MPSIM_TEST_PART");
    const int all = part && strcmp(part, "all") == 0;
    for (size_t i = 0; i < mpsim_model_count(); i++) {
        mpsim_model m;
        (void)mpsim_model_at(&m, i);
        const int is_wide = m.result.format.bits == 64;
        const std::vector<std::string> formats = words_of(m.operands ? m.operands : "fp16 e5m2 binary32");
        std::string kernel;
        failed_here = 0;
        for (size_t k = 0; k < formats.size(); k++)
            for (size_t l = 0; l < formats.size(); l++) {
                const std::string &a = formats[k], &b = formats[l];
                if (!all && formats.size() > 2 && l != (k + 1) % formats.size())
                    continue;
                const char *d = is_wide ? "binary64" : m.result.format.name;
                for (int how = 0; how < 4; how++) {
                    test_product t = product_of(m.name, a.c_str(), b.c_str(), d, 5, 7, how == 0 ? 130 : 67);
                    t.how = static_cast<test_numbers>(how);
                    t.start = how == 1;
                    t.strange = how == 2;
                    run(t);
                    kernel = how == 0 ? kernel_here : kernel;
                    if (m.block && formats.size() < 3) {
                        t.factors = m.block;
                        run(t);
                    }
                }
            }
        OK(failed_here == 0, "%s: %s", m.name, kernel.c_str());
    }
}

static void own_models()
{
    static const char *const models[] = {
        "fma:bf16",
        "fma:fp16",
        "sequential:bf16:round=sr:16",
        "pairwise:fp16:product-round=sr:round=sr",
        "pairwise:L=6:round=sr",
        "chunked:result=binary32",
        "chunked:order=lanes:L=5:round=sr:8:product-round=sr",
        "chunked:order=odd-first:round=toward-zero:flush=all",
        "exact:L=3:acc=bf16:round=up",
        "exact:chunk=32:acc=fp16",
        "fma:e5m7:fn:round=sr:16:result-round=sr",
        "hopper-fp16-fp32:L=7:F=30:align=floor",
        "hopper-fp16-fp32:align=nearest:normalised=1",
        "hopper-fp16-fp32:round=sr:acc=bf16",
        "hopper-mma-fp8-fp32:chunk=16:outer=bf16",
        "cdna3-fp8-fp32:kept=20:ways=1:F=12:chunk=48",
        "volta-fp16-fp32:L=1:floor=none:operand-emin=-30",
        "fma:binary64",
    };
    for (const char *model : models) {
        failed_here = 0;
        for (int how = 0; how < 3; how++) {
            test_product t = product_of(model, "fp16", "bf16", strstr(model, "binary64") ? "binary64" : "binary32", 3,
                                        5, 90);
            t.how = static_cast<test_numbers>(how);
            t.strange = how == 1;
            t.start = how == 2;
            run(t);
        }
        OK(failed_here == 0, "%s", model);
    }
}

/* What lies around the sums, at random. */
static void any_call(int n)
{
    static const char *const models[] = {"fma",   "hopper-fp16-fp32", "hopper-fp16-fp16", "sequential:bf16",
                                         "exact", "ampere-fp64"};
    static const char *const formats[] = {"binary32", "fp16", "bf16", "e4m3", "e5m2fnuz", "tf32", "binary64"};
    failed_here = 0;
    for (int i = 0; i < n; i++) {
        const char *const model = models[random_below(6)];
        const int is_wide = strstr(model, "fp64") != nullptr;
        test_product t = product_of(model, formats[random_below(7)], formats[random_below(7)],
                                    formats[is_wide ? 6 : random_below(7)], 1 + random_below(6), 1 + random_below(6),
                                    random_below(20));
        if (strcmp(t.a, "binary64") == 0 || chance(2))
            t.a_as = formats[1 + random_below(4)];
        if (strcmp(t.b, "binary64") == 0 || chance(2))
            t.b_as = formats[1 + random_below(4)];
        if (strstr(model, "hopper") && !t.a_as)
            t.a_as = "bf16";
        if (strstr(model, "hopper") && !t.b_as)
            t.b_as = "fp16";
        t.mode = chance(2) ? MPSIM_ROUND_NEAREST_EVEN : MPSIM_ROUND_TOWARD_ZERO;
        if (!is_wide && strcmp(t.d, "binary32") == 0 && chance(2))
            t.numbers = formats[1 + random_below(5)];
        if (chance(2))
            t.bias = formats[random_below(is_wide ? 7 : 6)];
        if (chance(2))
            t.add = formats[random_below(is_wide ? 7 : 6)];
        t.start = chance(3);
        t.counts = chance(2);
        t.strange = chance(2);
        t.batch = static_cast<int>(random_below(4));
        t.limit = chance(3) ? 1 + random_below(20) : 0;
        t.factor = chance(2) ? 1 : 0.375f;
        t.add_factor = chance(2) ? 1 : -1.5f;
        t.inverse = chance(2) ? 1 : 0.11f;
        t.how = static_cast<test_numbers>(random_below(3));
        run(t);
    }
    OK(failed_here == 0, "%d calls of any kind", n);
}

static void promoted()
{
    failed_here = 0;
    for (int i = 0; i < 12; i++) {
        test_product t = product_of(i % 2 ? "hopper-wgmma-fp8-fp32" : "fma", "e4m3", i % 3 ? "e5m2" : "e4m3",
                                    i % 4 ? "bf16" : "binary32", 6, 5, 20 + random_below(60));
        t.factors = 16;
        t.batch = i % 4;
        t.how = TEST_BELL;
        t.bias = i % 3 == 1 ? "bf16" : NULL;
        t.strange = i % 2;
        run(t);
    }
    OK(failed_here == 0, "blocks with factors");
}

/* By tiles: blocks of a length that additions divide or not, the last one short. */
static void promoted_tiles()
{
    static const struct {
        const char *model, *format;
        int block;
    } rows[] = {{"blackwell-tcgen05-fp8-fp32", "e4m3", 128},
                {"blackwell-tcgen05-fp8-fp32", "e5m2", 20},
                {"ada-fp8-fp32", "e4m3", 32},
                {"hopper-wgmma-fp8-fp32", "e5m2", 48},
                {"cdna3-fp8-fp32", "e4m3fnuz", 128},
                {"cdna3-fp8-fp32", "e5m2fnuz", 9}};
    for (const auto &r : rows) {
        std::string kernel;
        failed_here = 0;
        for (int i = 0; i < 6; i++) {
            test_product t = product_of(r.model, r.format, r.format, i % 2 ? "binary32" : "bf16", i ? 6 : 70,
                                        i == 1 ? 66 : 5, 20 + random_below(i > 1 ? 200 : 60));
            t.factors = r.block;
            t.batch = i % 4;
            t.strange = i % 2;
            t.counts = i == 3;
            t.bias = i == 2 ? "binary32" : NULL;
            t.how = i == 5 ? TEST_ANY_BITS : TEST_SPREAD;
            const std::string wrong = compare_product(t, nullptr, &kernel);
            if (wrong != "" || kernel != "binary64") {
                failed_here++;
                printf("# %s: %s, %s\n", describe(t).c_str(), kernel.c_str(), wrong.c_str());
            }
        }
        OK(failed_here == 0, "%s: blocks of %d with factors by %s", r.model, r.block, kernel.c_str());
    }
}

/* Models of other devices that have the parameters of an instruction of this one (sm_90), and those that have not. */
static void by_cores()
{
    static const struct {
        const char *model, *format;
        int is_core;
    } rows[] = {{"hopper-fp16-fp32", "fp16", 1},
                {"blackwell-bf16-fp32", "bf16", 1},
                {"rtx-blackwell-tf32-fp32", "tf32", 1},
                {"blackwell-mma-fp8-fp32", "e5m2", 1},
                {"hopper-wgmma-fp8-promoted", "e4m3", 1},
                {"hopper-fp16-fp32:F=25:L=16", "fp16", 1},
                {"ampere-bf16-fp32", "bf16", 0},
                {"hopper-fp16-fp32:F=24", "fp16", 0},
                {"fma", "bf16", 0}};
    for (const auto &r : rows) {
        std::string kernel;
        failed_here = 0;
        for (int i = 0; i < 6; i++) {
            test_product t = product_of(r.model, r.format, r.format, i % 2 ? "binary32" : "bf16", 9, 17, 40);
            t.how = TEST_ANY_BITS;
            t.batch = i % 4;
            t.strange = i == 5;
            t.bias = i == 3 ? "binary32" : NULL;
            t.add = i == 4 ? "bf16" : NULL;
            t.counts = i == 4;
            t.inverse = i == 1 ? 0.3f : 1;
            t.factor = i == 2 ? 0.7f : 1;
            if (i == 0 && strcmp(r.format, "tf32") != 0)
                t.a = "binary32", t.a_as = r.format;
            const std::string wrong = compare_product(t, nullptr, &kernel);
            if (wrong != "" || (i != 5 && (kernel == "tensor cores") != r.is_core)) {
                failed_here++;
                printf("# %s: %s, %s\n", describe(t).c_str(), kernel.c_str(), wrong.c_str());
            }
        }
        OK(failed_here == 0, "%s: %stensor cores", r.model, r.is_core ? "" : "no ");
    }
    test_product t = product_of("hopper-wgmma-fp8-fp32", "e4m3", "e4m3", "binary32", 20, 30, 300);
    std::string kernel;
    t.factors = 128;
    t.how = TEST_SPREAD;
    const std::string wrong = compare_product(t, nullptr, &kernel);
    OK(wrong == "" && kernel == "tensor cores", "factors of blocks of 128: %s", wrong.c_str());
}

/* Chains in binary32, bf16 and fp16: ties of accumulators, ends of their ranges, short chunks, several tiles. */
static void chains()
{
    static const struct {
        const char *model;
        int is_fast;
    } rows[] = {{"fma", 1},
                {"sequential", 1},
                {"fma:bf16", 1},
                {"fma:fp16", 1},
                {"sequential:bf16", 1},
                {"sequential:fp16", 1},
                {"fma:fp16:result=binary32", 1},
                {"sequential:bf16:result=binary32", 1},
                {"chunked:binary32", 1},
                {"chunked:bf16:chunk=5", 1},
                {"fma:fp16:chunk=40", 1},
                {"sequential:bf16:chunk=16:outer=binary32:result=binary32", 1},
                {"sequential:product=binary32:acc=bf16", 0},
                {"fma:bf16:round=toward-zero", 0},
                {"pairwise", 1},
                {"amx-bf16-fp32:chunk=6", 1},
                {"fma:order=odd-first", 0},
                {"fma:flush=all", 0},
                {"chunked", 0}};
    static const char *const formats[] = {"bf16", "fp16", "e4m3", "binary32", "e5m2", "tf32", "e4m3fnuz"};
    const char *part = getenv("MPSIM_TEST_PART");
    const int all = part && strcmp(part, "all") == 0;
    for (const auto &r : rows) {
        std::string kernel;
        failed_here = 0;
        for (int i = 0; i < (all ? 70 : 14); i++) {
            mpsim_model m;
            (void)mpsim_model_parse(&m, r.model);
            const int is_large = i % 7 == 3;
            test_product t = product_of(r.model, formats[i % 7], formats[i / 7 % 2 ? (i + 3) % 7 : i % 7],
                                        i % 3 ? "binary32" : m.result.format.name,
                                        is_large && i % 2 ? 70 : 1 + random_below(9),
                                        is_large && i % 2 == 0 ? 67 : 1 + random_below(9), 1 + random_below(90));
            t.how = i % 5 == 4 ? TEST_ANY_BITS : i % 3 == 1 ? TEST_SPREAD : TEST_BELL;
            t.batch = is_large ? 0 : i % 4;
            t.strange = i % 2;
            t.start = i % 4 == 1 && !strstr(r.model, "result=") && !strstr(r.model, "amx");
            t.bias = i % 5 == 2 ? "bf16" : NULL;
            t.counts = i % 3 == 2;
            t.inverse = i % 6 == 5 ? 0.3f : 1;
            const std::string wrong = compare_product(t, nullptr, &kernel);
            if (wrong != "" || (kernel == "binary32") != r.is_fast) {
                failed_here++;
                printf("# %s: %s, %s\n", describe(t).c_str(), kernel.c_str(), wrong.c_str());
            }
        }
        OK(failed_here == 0, "%s: %s", r.model, kernel.c_str());
    }
}

/* Infinities of both signs in blocks of 128 with factors, on a device whose NaNs have another sign than x86's. */
static void infinities_of_blocks()
{
    std::string kernel;
    failed_here = 0;
    gpu_host.device_nans = 1;
    for (int i = 0; i < 4; i++) {
        test_product t = product_of("hopper-wgmma-fp8-fp32", "e5m2", "e5m2", i % 2 ? "bf16" : "binary32", 20, 30, 400);
        t.factors = 128;
        t.how = TEST_ANY_BITS;
        t.infinities = 1;
        t.bias = i > 1 ? "binary32" : NULL;
        const std::string wrong = compare_product(t, nullptr, &kernel);
        if (wrong != "" || kernel != "tensor cores") {
            failed_here++;
            printf("# %s: %s, %s\n", describe(t).c_str(), kernel.c_str(), wrong.c_str());
        }
    }
    gpu_host.device_nans = 0;
    OK(failed_here == 0, "infinities of both signs in blocks with factors: the NaNs of the CPU");
}

/* Several tiles, and more than one group of eight rows of tiles. */
static void tiles()
{
    static const size_t shapes[][3] = {{70, 140, 40}, {530, 66, 17}, {66, 5, 200}};
    failed_here = 0;
    for (const auto &s : shapes) {
        test_product t = product_of("ampere-fp16-fp32", "fp16", "fp16", "binary32", s[0], s[1], s[2]);
        t.strange = s[1] == 5;
        t.how = s[1] == 140 ? TEST_ANY_BITS : TEST_SPREAD;
        run(t);
    }
    OK(failed_here == 0 && kernel_here == "binary64", "several tiles");
}

/* Many results near ties, ends of ranges and sums that cancel, of models with tiles of their own. */
static void many_results()
{
    static const struct {
        const char *model, *format, *by;
        int factors;
    } rows[] = {{"cdna3-fp16-fp32", "fp16", "binary64", 0},
                {"cdna3-bf16-fp32", "bf16", "binary64", 0},
                {"cdna3-xf32-fp32", "tf32", "binary64", 0},
                {"cdna3-fp8-fp32", "e5m2fnuz", "binary64", 0},
                {"cdna3-fp8-fp32", "e4m3fnuz", "binary64", 0},
                {"cdna3-fp8-fp32", "bf16", "binary64", 0},
                {"blackwell-tcgen05-mxf4nvf4", "e2m1", "binary64", 16},
                {"blackwell-tcgen05-mxf4", "e2m1", "binary64", 32},
                {"exact", "bf16", "binary64", 0},
                {"cdna1-fp16-fp32", "fp16", "binary64", 0},
                {"cdna1-bf16-fp32", "bf16", "binary64", 0},
                {"arm-ebf16-fp32", "bf16", "binary64", 0},
                {"amx-fp8-fp32", "e5m2", "binary64", 0},
                {"cdna2-fp16-fp32", "fp16", "binary32", 0},
                {"cdna2-bf16-fp32", "bf16", "binary32", 0},
                {"cdna2-bf16-2-fp32", "bf16", "binary32", 0},
                {"avx512-bf16-fp32", "bf16", "binary32", 0},
                {"amx-bf16-fp32", "bf16", "binary32", 0},
                {"amx-fp16-fp32", "fp16", "binary32", 0},
                {"arm-bf16-fp32", "bf16", "binary32", 0},
                {"pairwise", "bf16", "binary32", 0},
                {"fma", "e4m3", "binary32", 16},
                {"sequential:bf16:result=binary32", "bf16", "binary32", 7},
                {"blackwell-tcgen05-mxf4", "e2m3", "binary64", 0}};
    for (const auto &r : rows) {
        std::string kernel;
        failed_here = 0;
        for (int i = 0; i < 12; i++) {
            test_product t = product_of(r.model, r.format, r.format, "binary32", 48, 64, 1 + random_below(40));
            t.factors = r.factors;
            t.depth += r.factors > 15 ? 150 : 0;
            t.how = i % 4 ? TEST_TIES : TEST_SPREAD;
            const std::string wrong = compare_product(t, nullptr, &kernel);
            if (wrong != "" || kernel != r.by) {
                failed_here++;
                printf("# %s: %s, %s\n", describe(t).c_str(), kernel.c_str(), wrong.c_str());
            }
        }
        OK(failed_here == 0, "%s of %s: 12 x 3072 results by %s", r.model, r.format, kernel.c_str());
    }
}

/* Sums that leave the normal numbers of binary32 and come back: near 2^128, where an infinity stays, and near 2^-126, where sums are
 * flushed or subnormal. */
static void ends_of_ranges()
{
    static const struct {
        const char *model, *format;
    } rows[] = {{"cdna3-bf16-fp32", "bf16"},
                {"cdna3-xf32-fp32", "tf32"},
                {"exact", "bf16"},
                {"exact:L=2:flush=sums", "bf16"},
                {"exact:chunk=5:flush=sums", "tf32"},
                {"cdna1-bf16-fp32", "bf16"},
                {"cdna2-bf16-fp32", "bf16"},
                {"avx512-bf16-fp32", "bf16"},
                {"hopper-bf16-fp32:floor=none:F=26", "bf16"},
                {"hopper-bf16-fp32:chunk=32:L=16", "bf16"}};
    static const struct {
        int center, far;
        size_t depth;
    } data[] = {{1, 3, 200}, {1, 12, 60}, {-1, 29, 40}, {-1, 13, 40}, {-1, 27, 6}};
    for (const auto &r : rows) {
        std::string kernel;
        failed_here = 0;
        for (const auto &x : data) {
            test_product t = product_of(r.model, r.format, r.format, "binary32", 24, 24, x.depth);
            t.how = TEST_TIES;
            t.center = x.center;
            t.far = x.far;
            const std::string wrong = compare_product(t, nullptr, &kernel);
            if (wrong != "" || kernel == "one thread a result") {
                failed_here++;
                printf("# %s: %s, %s\n", describe(t).c_str(), kernel.c_str(), wrong.c_str());
            }
        }
        OK(failed_here == 0, "%s: sums at the ends of its range by %s", r.model, kernel.c_str());
    }
}

/* Sums of given products, a and b by turns, and those of -a; with starting values of any kind, where a model takes them. */
static void known_sums()
{
    static const std::vector<double> sums[] = {
        {-0x1.8p-75, 0x1p-76, 0x1p-63,
         0x1p-63}, /* just below 2^-126: binary32 rounds to it, a flush takes it for zero */
        {0x1p-63, 0x1p-63, 0, 0},
        /* just below 2^128, in additions of 4 and of 8: an infinity, which stays */
        {0x1p64, 0x1p64, -0x1p50, 0x1p50, -0x1p63, 0x1p63, -1, 1},
        {0x1p63,  0x1p63, 0x1p63, 0x1p63, 0x1p63, 0x1p63, 0x1p63, 0x1p63, 0,       1,      0,       1,
         -0x1p51, 0x1p52, 0,      1,      0,      1,      0,      1,      -0x1p62, 0x1p63, -0x1p62, 0x1p63},
        /* a subnormal sum far below products that drop smaller ones */
        {-0x1p-71, 0x1p-71, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0x1p-57, 0x1p-58},
        /* a sum that is flushed to -0, and zeros behind it */
        {0x1p-63, 0x1p-63, 0, 1, -0x1.8p-63, 0x1p-63, 0, 1, -0x1p-70, 0x1p-70},
        {0x1p-63, 0x1p-63, 0, 1, -0x1.8p-63, 0x1p-63, 0, 1, -0.0, 1, -0.0, 1},
        {0x1p-63, 0x1p-63, 0, 1, 0, 1, 0,        1,       -0x1.8p-63, 0x1p-63,
         0,       1,       0, 1, 0, 1, -0x1p-70, 0x1p-70, -0x1p-70,   0x1p-70},
        {0x1p-63, 0x1p-63, 0, 1, 0, 1,        0,       1,        -0x1.8p-63, 0x1p-63,  0,
         1,       0,       1, 0, 1, -0x1p-70, 0x1p-70, -0x1p-70, 0x1p-70,    -0x1p-70, 0x1p-70},
        {-0.0, 1}};
    static const char *const models[] = {"amx-bf16-fp32:chunk=4",
                                         "exact:L=2:flush=sums",
                                         "exact:chunk=2:flush=sums",
                                         "exact:L=4",
                                         "exact",
                                         "cdna1-bf16-fp32",
                                         "cdna2-bf16-fp32",
                                         "cdna2-bf16-2-fp32",
                                         "avx512-bf16-fp32",
                                         "amx-bf16-fp32",
                                         "arm-bf16-fp32",
                                         "arm-ebf16-fp32",
                                         "pairwise",
                                         "hopper-bf16-fp32",
                                         "cdna3-bf16-fp32",
                                         "cdna3-xf32-fp32:L=8"};
    for (const char *model : models) {
        std::string by;
        failed_here = 0;
        for (size_t i = 0; i < 4 * (sizeof sums / sizeof *sums); i++) {
            std::vector<double> numbers = sums[i / 4];
            test_product t = product_of(model, "bf16", "bf16", "binary32", 4, 4, numbers.size() / 2);
            for (size_t k = 0; i % 2 && k < numbers.size(); k += 2)
                numbers[k] = -numbers[k];
            t.given = numbers.data();
            t.start = i % 4 > 1;
            run(t);
            by = i ? by : kernel_here;
        }
        OK(failed_here == 0, "%s: sums of given products by %s", model, by.c_str());
    }
}

/* Blocks whose sums are infinities of both signs. */
static void infinite_blocks()
{
    double numbers[64];
    for (int k = 0; k < 64; k++) /* b of the second block is negative */
        numbers[k] = k % 32 >= 16 ? k % 2 : k > 32 && k % 2 ? -0x1p63 : 0x1p63;
    test_product t = product_of("hopper-bf16-fp32:F=26", "bf16", "bf16", "binary32", 4, 4, 32);
    t.given = numbers;
    t.factors = 16;
    failed_here = 0;
    run(t);
    OK(failed_here == 0 && kernel_here == "binary64", "infinities of blocks with factors that cancel by %s",
       kernel_here.c_str());
}

/* Formats whose normal numbers lie below those of binary32 or reach beyond its largest; scales of no use in binary64. */
static void far_formats()
{
    static const struct {
        const char *model, *a, *b, *by;
    } rows[] = {{"hopper-fp16-fp32:F=13:floor=none", "e2m8:ieee:bias=132", "e4m7", "binary64"},
                {"hopper-fp16-fp32:F=13:floor=none", "e4m7:bias=-100", "e4m7:bias=-100", "binary64"},
                {"volta-fp16-fp32:floor=none", "e8m0", "e2m8:ieee:bias=132", "binary64"},
                {"hopper-fp16-fp32", "e11m1", "e8m0", "one thread a result"},
                {"hopper-fp16-fp16", "e2m9:ieee:bias=134", "e7m5:ieee:bias=-45", "binary64"},
                {"cdna3-xf32-fp32", "bf16", "e2m1:ieee:bias=-120", "binary64"},
                {"cdna3-fp8-fp32", "e8m0", "e3m3:bias=140", "binary64"},
                {"exact:chunk=3:flush=all", "e2m8:ieee:bias=132", "e2m8:ieee:bias=132", "binary64"},
                {"exact:L=2:flush=operands", "e3m4:bias=133:ieee", "bf16", "binary64"},
                {"exact:L=4", "e2m3:finite:bias=100", "e2m3:finite:bias=100", "binary64"},
                {"exact", "e8m0", "e8m0", "binary64"},
                {"amx-bf16-fp32:chunk=4", "e3m4:bias=133:ieee", "bf16", "binary32"},
                {"fma:order=odd-first:flush=all", "e3m4:bias=133:ieee", "bf16", "binary32"},
                {"cdna2-fp16-fp32", "e3m3:bias=140", "bf16", "one thread a result"},
                {"cdna2-bf16-2-fp32", "e3m3:bias=126", "e7m4:bias=126", "binary32"},
                {"fma:bf16", "e8m0", "e3m3:bias=140", "binary32"},
                {"blackwell-tcgen05-mxf4", "e2m1:finite:bias=300", "e2m3:finite:bias=100", "binary64"},
                {"blackwell-tcgen05-mxf4", "e2m1:finite:bias=900", "e2m1:finite:bias=900", "one thread a result"}};
    for (const auto &r : rows) {
        std::string kernel;
        failed_here = 0;
        for (int i = 0; i < 12; i++) {
            test_product t = product_of(r.model, i % 2 ? r.a : r.b, i % 2 ? r.b : r.a, "binary32", 12, 17,
                                        1 + random_below(50));
            t.how = static_cast<test_numbers>(i % 3);
            t.batch = i % 5 == 4;
            if (strstr(r.model, "fp16-fp16") || strstr(r.model, "fma:bf16"))
                t.d = strstr(r.model, "bf16") ? "bf16" : "fp16";
            const std::string wrong = compare_product(t, nullptr, &kernel);
            if (wrong != "" || kernel != r.by) {
                failed_here++;
                printf("# %s: %s, %s\n", describe(t).c_str(), kernel.c_str(), wrong.c_str());
            }
        }
        OK(failed_here == 0, "%s of %s and %s: %s", r.model, r.a, r.b, kernel.c_str());
    }
}

static void refused()
{
    mpsim_status s = MPSIM_OK;
    test_product t = product_of("hopper-fp16-fp32", "fp16", "fp16", "e4m3", 2, 2, 2);
    t.numbers = "binary32";
    const std::string wrong = compare_product(t, &s);
    OK(wrong == "" && s == MPSIM_ERANGE, "numbers that d cannot hold are refused as on a CPU: %s", wrong.c_str());
    t = product_of("hopper-fp16-fp32", "binary64", "fp16", "binary32", 2, 2, 2);
    OK(compare_product(t, &s) == "" && s == MPSIM_ERANGE, "so are operands that the model cannot take");
    t = product_of("fma", "fp16", "fp16", "binary32", 0, 2, 2);
    OK(compare_product(t, &s) == "" && s == MPSIM_OK, "nothing is done for no rows");
}

int main()
{
    every_row();
    own_models();
    any_call(200);
    promoted();
    promoted_tiles();
    by_cores();
    chains();
    infinities_of_blocks();
    tiles();
    many_results();
    ends_of_ranges();
    known_sums();
    infinite_blocks();
    far_formats();
    refused();
    return tap_end();
}
