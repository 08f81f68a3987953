/* t-speed.cc -- the table of speeds on the host executor: every row measured by itself, in any order, compares
 * with the CPU and is equal; what is missing or wrong says so. */
extern "C" {
#include "support/support.h"
}

#include "../../gpu/validation/speed/speed.cu"

#include <mpsim/mpsim.h>

#include <string>

static gpu_speed_plan plan_of(size_t elements, size_t order)
{
    gpu_speed_plan plan = {90, elements, order, 0, 1, "no-such-library.so", "no-such-library.so", "no-such-library.so"};
    return plan;
}

static size_t row_of(const gpu_speed_row *rows, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(rows[i].name, name) == 0)
            return i;
    ck_abort_msg("no row \"%s\"", name);
    return 0;
}

/* Words that differ are counted, all of them. */
START_TEST(compared)
{
    const gpu_speed_plan plan = plan_of(0, 0);
    gpu_speed_row r = {};
    session s = {&plan, NULL, NULL, 0, &r, 1, NULL, cudaSuccess};
    std::vector<uint32_t> x(5003, 7), y(5003, 7);
    for (size_t i : {size_t(0), size_t(4999), size_t(5002)})
        y[i] ^= 1u << i % 32;
    memory a, b;
    a.get(&s, 4 * x.size());
    b.get(&s, 4 * y.size());
    ck_assert_int_eq(s.error, cudaSuccess);
    cudaMemcpy(a.p, x.data(), 4 * x.size(), cudaMemcpyHostToDevice);
    cudaMemcpy(b.p, y.data(), 4 * y.size(), cudaMemcpyHostToDevice);
    compare(&s, a.p, b.p, x.size());
    ck_assert_int_eq(s.error, cudaSuccess);
    ck_assert_uint_eq(r.compared, 5003);
    ck_assert_uint_eq(r.differing, 3);
    ck_assert_int_eq(r.checked, 0);
    compare(&s, a.p, a.p, x.size());
    ck_assert_uint_eq(r.differing, 0);
    ck_assert_int_eq(r.checked, 1);
}

/* The list is the same at any time, and none of it is measured; plans out of range have no rows. */
START_TEST(listed)
{
    gpu_speed_row rows[GPU_SPEED_ROWS], few[3];
    gpu_speed_plan plan = plan_of(1024, 128);
    const size_t n = gpu_speed_list(rows, GPU_SPEED_ROWS, &plan);
    ck_assert_uint_eq(n, 2 + 17 + 9 + 12 + 11 + 11 + 4 + 4 + 5 + 1 + 2 + 3 + 11);
    for (size_t i = 0; i < n; i++) {
        ck_assert_msg(rows[i].status == GPU_SKIPPED && strcmp(rows[i].text, "not reached") == 0, "%s", rows[i].name);
        ck_assert_msg(rows[i].name[0] && rows[i].group[0], "row %zu", i);
        ck_assert_msg((rows[i].bytes > 0) != (rows[i].flops > 0), "%s", rows[i].name);
        for (size_t k = 0; k < i; k++)
            ck_assert_str_ne(rows[i].name, rows[k].name);
    }
    ck_assert_str_eq(rows[row_of(rows, n, "fp16 128^3, wgmma, b transposed")].group, "wgmma fp16");
    ck_assert_uint_eq(gpu_speed_list(few, 3, &plan), 3);
    plan.sm = 80;
    ck_assert_uint_eq(gpu_speed_list(rows, GPU_SPEED_ROWS, &plan), 2 + 17 + 9 + 12 + 6 + 6 + 4 + 4 + 2 + 10);
    plan.elements = 1000;
    ck_assert_uint_eq(gpu_speed_list(rows, GPU_SPEED_ROWS, &plan), 0);
    plan.elements = (1 << 20) + 1024;
    ck_assert_uint_eq(gpu_speed_list(rows, GPU_SPEED_ROWS, &plan), 0);
}

/* All rows from the last to the first: none needs another. */
START_TEST(alone)
{
    gpu_speed_row rows[GPU_SPEED_ROWS];
    const gpu_speed_plan plan = plan_of(4096, test_expensive() ? 128 : 0);
    const size_t n = gpu_speed_list(rows, GPU_SPEED_ROWS, &plan);
    const size_t before = gpu_host.memory.size();
    for (size_t i = n; i-- > 0;) {
        ck_assert_msg(gpu_speed_measure(rows, n, i, &plan) == 0, "%s: %s", rows[i].name, rows[i].text);
        const int library = strstr(rows[i].group, "ublas") || strstr(rows[i].group, "uBLAS");
        ck_assert_msg(library ? rows[i].status == GPU_SKIPPED && strstr(rows[i].text, "not found")
                              : rows[i].status == GPU_DONE && rows[i].checked == 1,
                      "%s: %s", rows[i].name, rows[i].text);
        if (rows[i].flops > 0 && !library)
            ck_assert_msg(strstr(rows[i].text, "elements by mpsim_dot") || strstr(rows[i].text, "of the first head"),
                          "%s", rows[i].text);
        ck_assert_uint_eq(gpu_host.memory.size(), before);
    }
    ck_assert_int_eq(gpu_speed_measure(rows, n, n, &plan), -1);
}

/* Paths of a product: the first by a sample, the others whole, unless the first was not measured well. */
START_TEST(paths)
{
    gpu_speed_row rows[GPU_SPEED_ROWS];
    const gpu_speed_plan plan = plan_of(0, 128);
    const size_t n = gpu_speed_list(rows, GPU_SPEED_ROWS, &plan);
    const size_t first = row_of(rows, n, "bf16 128^3, mma.sync");
    const size_t second = row_of(rows, n, "bf16 128^3, wgmma 128 x 256, b transposed");
    ck_assert_int_eq(gpu_speed_measure(rows, n, second, &plan), 0);
    ck_assert_int_eq(rows[second].checked, 1);
    ck_assert_uint_eq(rows[second].compared, 0);
    ck_assert_ptr_nonnull(strstr(rows[second].text, "64 elements by mpsim_dot, model hopper-bf16-fp32; "
                                                    "unchecked: all of it, bf16 128^3, mma.sync was"));
    ck_assert_int_eq(gpu_speed_measure(rows, n, first, &plan), 0);
    ck_assert_str_eq(rows[first].text, "64 elements by mpsim_dot, model hopper-bf16-fp32");
    ck_assert_int_eq(gpu_speed_measure(rows, n, second, &plan), 0);
    ck_assert_str_eq(rows[second].text, "all elements: those of mma.sync");
    ck_assert_uint_eq(rows[second].compared, 128 * 128);
    ck_assert_int_eq(rows[second].checked, 1);
    rows[first].checked = 0;
    ck_assert_int_eq(gpu_speed_measure(rows, n, second, &plan), 0);
    ck_assert_uint_eq(rows[second].compared, 0);
}

/* Shares are of what was measured before. */
START_TEST(shares)
{
    gpu_speed_row rows[GPU_SPEED_ROWS];
    gpu_speed_plan plan = plan_of(1024, 128);
    item_list list;
    const size_t n = gpu_speed_list(rows, GPU_SPEED_ROWS, &plan);
    list_items(&list, &plan);
    for (size_t i = 0; i < n; i++) {
        session s = {&plan, list.at, rows, i, &rows[i], 1, NULL, cudaSuccess};
        rows[i].status = GPU_DONE;
        rows[i].seconds = i == 1 ? 0.25 : strstr(rows[i].name, "fp16") ? 2 : 1;
        set_share(&s, &list.at[i]);
    }
    const double factor = rows[2].bytes / rows[1].bytes / 4;
    ck_assert(rows[0].share == 1 && rows[1].share == 1 && rows[2].share == factor / 2);
    ck_assert(rows[row_of(rows, n, "bf16 128^3, mma.sync")].share == 1);
    rows[row_of(rows, n, "fp16 128^3, cuBLAS")].status = GPU_FAILED;
    rows[row_of(rows, n, "fp16 128^3, cuBLAS, b transposed")].status = GPU_FAILED;
    const size_t i = row_of(rows, n, "fp16 128^3, mma.sync");
    session s = {&plan, list.at, rows, i, &rows[i], 1, NULL, cudaSuccess};
    rows[i].share = 0;
    set_share_of_libraries(&s);
    ck_assert(rows[i].share == 0);
}

/* An operation of the engine that gives another number is found; so is a scale. */
START_TEST(wrong_tensor)
{
    for (const tensor_case &c : tensor_cases) {
        operands o = {};
        char why[192];
        ck_assert_int_eq(train_engine_cuda(&o.e, why, sizeof why), 0);
        ck_assert_int_eq(fill_tensor(&o, &c, 2048, 1024), 0);
        ck_assert_int_eq(operate(&o, &c), 0);
        ck_assert_int_eq(tensor_matches(&o, &c, 1024), 1);
        std::vector<float> values(2048, 0.0f);
        train_tensor *t = c.to ? &o.y : &o.x;
        ck_assert_int_eq(o.e.ops->get(&o.e, t, values.data()), 0);
        values[1023] = values[1023] == 0.5f ? 1.0f : 0.5f;
        const float inverse = t->inverse;
        ck_assert_int_eq(o.e.ops->put(&o.e, t, values.data()), 0);
        t->inverse = inverse;
        ck_assert_msg(tensor_matches(&o, &c, 1024) == 0, "%s", c.name);
        release(&o);
    }
}

/* The same of layers and attention: each is run in full, then a number of the result, or of what it is made from, is
 * another. */
START_TEST(wrong_layer)
{
    const gpu_speed_plan plan = plan_of(2048, 128);
    item_list list;
    list_items(&list, &plan);
    for (size_t i = 0; i < list.n; i++) {
        const layer_case *c = list.at[i].layer;
        layer l = {};
        char why[192];
        if (!c)
            continue;
        ck_assert_int_eq(train_engine_cuda(&l.e, why, sizeof why), 0);
        c->size(&l, &plan);
        ck_assert_msg(c->make(&l, c) == 0 && c->run(&l) == 0, "%s: %s", c->name, l.e.error);
        ck_assert_msg(layer_matches(&l, c) == 1, "%s", list.at[i].name);
        std::vector<float> values(l.n);
        ck_assert_int_eq(l.e.ops->get(&l.e, &l.t[0], values.data()), 0);
        values[l.sample - 1] = values[l.sample - 1] == 0.5f ? 1.0f : 0.5f;
        ck_assert_int_eq(l.e.ops->put(&l.e, &l.t[0], values.data()), 0);
        ck_assert_msg(layer_matches(&l, c) == 0, "%s", list.at[i].name);
        release_layer(&l);
    }
}

/* A row that cannot be measured has no time, and is told from one that differs. */
START_TEST(failed)
{
    gpu_speed_row rows[GPU_SPEED_ROWS];
    gpu_speed_plan plan = plan_of(0, 128);
    const size_t n = gpu_speed_list(rows, GPU_SPEED_ROWS, &plan);
    const size_t i = row_of(rows, n, "fp16 128^3, mma.sync");
    gpu_host_fail(cudaErrorLaunchFailure, "a fault");
    ck_assert_int_eq(gpu_speed_measure(rows, n, i, &plan), -1);
    ck_assert_int_eq(rows[i].status, GPU_FAILED);
    ck_assert_ptr_nonnull(strstr(rows[i].text, "a fault"));
    ck_assert(rows[i].seconds == 0 && rows[i].checked == -1 && rows[i].share == 0);
    gpu_host_clear();
    ck_assert_int_eq(gpu_speed_measure(rows, n, i, &plan), 0);
    ck_assert_int_eq(rows[i].checked, 1);
}

/* A library in a Python environment that only python3 knows of, and one that the environment names, which comes
 * first. */
START_TEST(python)
{
    static const char make[] =
        "command -v python3 >/dev/null && mkdir -p %s/python/nvidia/cu13/lib %s/toolkit/lib64 && cd %s && "
        "echo 'int answer(void) { return 42; }' | ${CC:-cc} -shared -fPIC -x c -o toolkit/lib64/libmpsim-stand-in.so.12 - "
        "2>/dev/null && cp toolkit/lib64/*.12 python/nvidia/cu13/lib/libmpsim-stand-in.so.13";
    char folder[] = "/tmp/mpsim-speed-XXXXXX", command[1024], want[256];
    gpu_library l;
    int (*answer)(void) = NULL;
    const char *const name = "answer";
    void *const function = &answer;
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(command, sizeof command, make, folder, folder, folder);
    const int made = system(command) == 0; /* else: no Python, or no compiler of shared libraries */
    ck_assert_int_eq(gpu_library_open(&l, "libmpsim-stand-in", NULL), -1);
    snprintf(want, sizeof want, "%s/python", folder);
    setenv("PYTHONPATH", want, 1);
    if (made) {
        ck_assert_int_eq(gpu_library_open(&l, "libmpsim-stand-in", NULL), 0);
        snprintf(want, sizeof want, "%s/python/nvidia/cu13/lib/libmpsim-stand-in.so.13", folder);
        ck_assert_str_eq(l.name, want);
        ck_assert_int_eq(gpu_library_functions(&l, 1, &name, &function), 0);
        ck_assert_int_eq(answer(), 42);
        gpu_library_close(&l);
        snprintf(want, sizeof want, "%s/toolkit", folder);
        setenv("CUDA_HOME", want, 1);
        ck_assert_int_eq(gpu_library_open(&l, "libmpsim-stand-in", NULL), 0);
        snprintf(want, sizeof want, "%s/toolkit/lib64/libmpsim-stand-in.so.12", folder);
        ck_assert_str_eq(l.name, want);
        gpu_library_close(&l);
    }
    snprintf(command, sizeof command, "rm -r %s", folder);
    ck_assert_int_eq(system(command), 0);
}

/* What holds clocks down, in words; bits without one as a number. */
START_TEST(reasons)
{
    char text[64];
    gpu_nvml_reasons(0, text, sizeof text);
    ck_assert_str_eq(text, "");
    gpu_nvml_reasons(0x44, text, sizeof text);
    ck_assert_str_eq(text, "power cap, thermal (hardware)");
    gpu_nvml_reasons(0x1008, text, sizeof text);
    ck_assert_str_eq(text, "slowdown (hardware), 0x1000");
    gpu_nvml_reasons(~(uint64_t)0, text, 20);
    ck_assert_uint_lt(strlen(text), 20);
}

int main(void)
{
    TCase *c = test_case("speed", 20);
    tcase_add_test(c, compared);
    tcase_add_test(c, listed);
    tcase_add_test(c, alone);
    tcase_add_test(c, paths);
    tcase_add_test(c, shares);
    tcase_add_test(c, wrong_tensor);
    tcase_add_test(c, wrong_layer);
    tcase_add_test(c, failed);
    tcase_add_test(c, python);
    tcase_add_test(c, reasons);
    TCase *cases[] = {c, NULL};
    return test_main("gpu/validation/speed", cases);
}
