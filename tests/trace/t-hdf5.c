/* t-hdf5.c -- HDF5 files made through its library: item 51 of the list of bad inputs, what must work, several threads,
 * pipes. What h5py and Keras wrote is the matter of t-recorded.c. Skipped where HDF5 was left out. */
#include "config.h"
#include "support/badfile.h"
#include "support/sanitized.h"
#include "support/support.h"

#ifdef HAVE_HDF5
#include <fcntl.h>
#include <hdf5.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if SANITIZED_MEMORY
/* HDF5 1.10.8 loses memory on some damaged files, and on chunks that are packed and found by a fixed array. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:libhdf5";
}
#endif

/* A new file; the latest form is the smallest. */
static hid_t create(const char *path, int latest)
{
    const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    if (latest)
        H5Pset_libver_bounds(access, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST);
    unlink(path);
    const hid_t f = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, access);
    H5Pclose(access);
    ck_assert(f >= 0);
    return f;
}

/* A dataset of two dimensions, with what the list says. 0, 1, 2, ... if it is to be written. */
static void dataset(hid_t file, const char *name, hid_t type, hsize_t rows, hsize_t columns, hid_t list, int write)
{
    const hsize_t n[2] = {rows, columns};
    const hid_t space = H5Screate_simple(2, n, NULL);
    const hid_t d = H5Dcreate2(file, name, type, space, H5P_DEFAULT, list, H5P_DEFAULT);
    ck_assert_msg(d >= 0, "%s", name);
    if (write) {
        float *x = malloc((size_t)(rows * columns) * sizeof *x);
        for (size_t i = 0; i < rows * columns; i++)
            x[i] = (float)i;
        ck_assert(H5Dwrite(d, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, x) >= 0);
        free(x);
    }
    H5Dclose(d);
    H5Sclose(space);
}

static hid_t chunks(hsize_t rows, hsize_t columns)
{
    const hsize_t n[2] = {rows, columns};
    const hid_t list = H5Pcreate(H5P_DATASET_CREATE);
    ck_assert(H5Pset_chunk(list, 2, n) >= 0);
    return list;
}

START_TEST(any_range_of_any_chunks)
{
    enum { ROWS = 37, COLUMNS = 53 };
    const char *path = bad_path("ranges.h5");
    const hid_t f = create(path, 0);
    for (hsize_t k = 1; k < 40; k += 7) {
        char name[16];
        const hid_t list = chunks(k, 41 - k);
        snprintf(name, sizeof name, "%02d", (int)k);
        H5Pset_deflate(list, 3);
        dataset(f, name, H5T_IEEE_F32LE, ROWS, COLUMNS, list, 1);
        H5Pclose(list);
    }
    H5Fclose(f);
    trace_error e;
    trace *t = trace_open(path, NULL, &e);
    ck_assert_msg(t != NULL, "%s", t ? "" : e.text);
    static float x[ROWS * COLUMNS];
    size_t wrong = 0;
    for (size_t i = 0; i < trace_count(t); i++)
        for (size_t first = 0; first < ROWS * COLUMNS; first += 31)
            for (size_t n = 1; first + n <= ROWS * COLUMNS; n += 101) {
                ck_assert_msg(trace_codes(t, i, first, x, n, &e) == 0, "%s", e.text);
                for (size_t k = 0; k < n; k++)
                    wrong += x[k] != (float)(first + k);
            }
    ck_assert_uint_eq(wrong, 0);
    trace_close(t);
}

static void *read_it(void *context)
{
    for (int i = 0; i < 20; i++) {
        const outcome o = bad_read(context, NULL);
        if (o.failed || o.elements != 10000)
            return context;
    }
    return NULL;
}

START_TEST(threads_take_turns)
{
    pthread_t threads[4];
    char path[4400];
    snprintf(path, sizeof path, "%s", bad_path("threads.h5"));
    const hid_t f = create(path, 1);
    dataset(f, "x", H5T_IEEE_F32BE, 100, 100, H5P_DEFAULT, 1);
    H5Fclose(f);
    for (int i = 0; i < 4; i++)
        ck_assert(pthread_create(&threads[i], NULL, read_it, path) == 0);
    for (int i = 0; i < 4; i++) {
        void *result;
        ck_assert(pthread_join(threads[i], &result) == 0 && result == NULL);
    }
}

START_TEST(standard_input)
{
    const char *path = bad_path("stdin.h5");
    const hid_t f = create(path, 1);
    dataset(f, "x", H5T_IEEE_F32LE, 10, 10, H5P_DEFAULT, 1);
    H5Fclose(f);
    const int saved = dup(STDIN_FILENO), file = open(path, O_RDONLY);
    /* a file, and what is left of one, which is copied as a pipe is */
    ck_assert(file >= 0 && dup2(file, STDIN_FILENO) == STDIN_FILENO);
    outcome o = bad_read("-", NULL);
    ck_assert_msg(!o.failed && o.elements == 100, "%s", o.error.text);
    blob b = {0};
    blob_fill(&b, 'x', 100);
    unsigned char all[20000];
    const ssize_t n = pread(file, all, sizeof all, 0);
    ck_assert(n > 0);
    blob_add(&b, all, (size_t)n);
    const int behind = open(bad_write("behind", &b), O_RDONLY);
    ck_assert(behind >= 0 && dup2(behind, STDIN_FILENO) == STDIN_FILENO && lseek(STDIN_FILENO, 100, SEEK_SET) == 100);
    o = bad_read("-", NULL);
    ck_assert_msg(!o.failed && o.elements == 100 && o.first[7] == 7, "%s", o.error.text);
    ck_assert(dup2(saved, STDIN_FILENO) == STDIN_FILENO);
    close(saved);
    close(file);
    close(behind);
}

START_TEST(opaque_and_integers)
{
    const trace_options o = {.assume_v2 = mpsim_format_find("bf16"), .as_int8 = mpsim_format_find("e4m3")};
    const char *path = bad_path("opaque.h5");
    hid_t f = create(path, 1);
    const hid_t v2 = H5Tcreate(H5T_OPAQUE, 2);
    dataset(f, "v", v2, 2, 3, H5P_DEFAULT, 0);
    H5Fclose(f);
    bad_expect(31, "opaque", path, NULL, 3,
               "dataset 'v' of opaque elements does not say what it holds: pass --assume "
               "V2=bf16");
    outcome r = bad_read(path, &o);
    ck_assert_msg(!r.failed && r.elements == 6, "%s", r.error.text);
    f = create(path, 1);
    dataset(f, "i", H5T_STD_I8LE, 2, 3, H5P_DEFAULT, 1);
    dataset(f, "r", H5T_NATIVE_LDOUBLE, 2, 3, H5P_DEFAULT, 1);
    H5Fclose(f);
    r = bad_read(path, &o);
    ck_assert(!r.failed && r.elements == 6 && r.tensors == 2);
    r = bad_read(path, NULL);
    ck_assert(!r.failed && r.elements == 0);
}

START_TEST(item_51_other_files)
{
    const char *path = bad_path("other.h5");
    const hsize_t n[2] = {2, 3};
    hid_t list = H5Pcreate(H5P_DATASET_CREATE);
    ck_assert(H5Pset_external(list, "/etc/passwd", 0, 24) >= 0);
    hid_t f = create(path, 0);
    dataset(f, "x", H5T_IEEE_F32LE, 2, 3, list, 0);
    H5Fclose(f);
    H5Pclose(list);
    bad_expect(51, "external storage", path, NULL, 3, "the elements of dataset 'x' are in other files, which are not");
    const hid_t space = H5Screate_simple(2, n, NULL);
    list = H5Pcreate(H5P_DATASET_CREATE);
    ck_assert(H5Pset_virtual(list, space, "other", "y", space) >= 0);
    f = create(path, 1);
    dataset(f, "x", H5T_IEEE_F32LE, 2, 3, list, 0);
    H5Fclose(f);
    H5Pclose(list);
    H5Sclose(space);
    bad_expect(51, "virtual", path, NULL, 3, "the elements of dataset 'x' are in other files, which are not opened");
    f = create(path, 1);
    ck_assert(H5Lcreate_external("/etc/passwd", "/", f, "e", H5P_DEFAULT, H5P_DEFAULT) >= 0);
    ck_assert(H5Lcreate_soft("/nowhere", f, "s", H5P_DEFAULT, H5P_DEFAULT) >= 0);
    ck_assert(H5Lcreate_hard(f, "/", f, "loop", H5P_DEFAULT, H5P_DEFAULT) >= 0);
    dataset(f, "x", H5T_IEEE_F32LE, 2, 3, H5P_DEFAULT, 1);
    H5Fclose(f);
    const outcome o = bad_read(path, NULL);
    ck_assert_msg(!o.failed && o.tensors == 1 && o.elements == 6, "%s", o.error.text);
}

static size_t as_it_is(unsigned flags, size_t n, const unsigned values[], size_t bytes, size_t *size, void **p)
{
    (void)flags, (void)n, (void)values, (void)size, (void)p;
    return bytes;
}

START_TEST(item_51_filters_chunks_sizes)
{
    static const H5Z_class2_t filter = {H5Z_CLASS_T_VERS, 32000, 1, 1, "lzf", NULL, NULL, as_it_is};
    const char *path = bad_path("filter.h5");
    hid_t list = chunks(1, 3), f = create(path, 1);
    ck_assert(H5Zregister(&filter) >= 0 && H5Pset_filter(list, 32000, 0, 0, NULL) >= 0);
    dataset(f, "x", H5T_IEEE_F32LE, 2, 3, list, 1);
    H5Fclose(f);
    H5Pclose(list);
    bad_expect(51, "filter", path, NULL, 3, "dataset 'x' is packed by filter 32000 (lzf), which is not read");
    f = create(path, 1);
    list = chunks(4096, 4096);
    dataset(f, "x", H5T_IEEE_F32LE, 4096, 4096, list, 0);
    H5Pclose(list);
    H5Fclose(f);
    bad_expect(51, "chunk", path, NULL, 3, "has chunks of more than 32 MiB");
    f = create(path, 1);
    list = chunks(64, 64);
    dataset(f, "x", H5T_IEEE_F32LE, 1 << 14, 1 << 14, list, 0);
    H5Fclose(f);
    bad_expect(51, "size", path, NULL, 3, "have 1073741824 bytes, more than 1000 times those of the file");
    f = create(path, 1);
    dataset(f, "x", H5T_IEEE_F64LE, (hsize_t)1 << 31, (hsize_t)1 << 29, list, 0);
    H5Fclose(f);
    H5Pclose(list);
    bad_expect(51, "size", path, NULL, 3, "the shape of dataset 'x' is too large");
    f = create(path, 1);
    hid_t g = f;
    for (int i = 0; i < 70; i++)
        g = H5Gcreate2(g, "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    H5Fclose(f);
    H5close();
    bad_expect(51, "depth", path, NULL, 3, "groups are nested deeper than 64");
}

START_TEST(hostile_names)
{
    const char *path = bad_path("names.h5");
    const hid_t f = create(path, 1);
    char *name = malloc(5001);
    memset(name, 'n', 5000);
    name[5000] = '\0';
    dataset(f, "\033[31m\xff", H5T_IEEE_F32LE, 1, 1, H5P_DEFAULT, 1);
    H5Fclose(f);
    trace_error e;
    trace *t = trace_open(path, NULL, &e);
    ck_assert_msg(t != NULL, "%s", t ? "" : e.text);
    ck_assert_str_eq(trace_at(t, 0)->name, "\\x1b[31m\\xff"); /* UTF-8, whatever it was */
    trace_close(t);
    const hid_t g = create(path, 1);
    dataset(g, name, H5T_IEEE_F32LE, 1, 1, H5P_DEFAULT, 1);
    H5Fclose(g);
    bad_expect(51, "name", path, NULL, 3, "a path of more than 4096 bytes");
    free(name);
}

START_TEST(any_damage_is_read_or_refused)
{
    const char *path = bad_path("small.h5");
    const hid_t f = create(path, 1), list = chunks(2, 2);
    H5Pset_deflate(list, 1);
    dataset(f, "x", H5T_IEEE_F32LE, 4, 4, list, 1);
    dataset(f, "y", H5T_IEEE_F32LE, 2, 3, H5P_DEFAULT, 1);
    H5Pclose(list);
    H5Fclose(f);
    blob b = {0};
    unsigned char all[20000];
    FILE *in = fopen(path, "rb");
    ck_assert(in != NULL);
    const size_t n = fread(all, 1, sizeof all, in);
    fclose(in);
    blob_add(&b, all, n);
    printf("# %zu bytes\n", n);
    bad_damage_all("damage.h5", &b, NULL);
    blob_clear(&b);
}

int main(void)
{
    TCase *c = test_case("hdf5", 300);
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    tcase_add_test(c, any_range_of_any_chunks);
    tcase_add_test(c, threads_take_turns);
    tcase_add_test(c, standard_input);
    tcase_add_test(c, opaque_and_integers);
    tcase_add_test(c, item_51_other_files);
    tcase_add_test(c, item_51_filters_chunks_sizes);
    tcase_add_test(c, hostile_names);
    tcase_add_test(c, any_damage_is_read_or_refused);
    TCase *const cases[] = {c, NULL};
    return bad_main("hdf5", cases);
}
#else
#include <stdio.h>

int main(void)
{
    puts("1..0 # SKIP configured without HDF5");
    return 0;
}
#endif
