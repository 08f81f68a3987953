/* fuzzfile.h -- what the fuzz targets share: the one file that inputs are written to, and a main that
 * runs the files given as arguments (FUZZ_STANDALONE). Included once, by the target. */
#ifndef MPSIM_TESTS_FUZZ_FUZZFILE_H
#define MPSIM_TESTS_FUZZ_FUZZFILE_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static char path[4096];

static void remove_file(void)
{
    unlink(path);
}

/* The one file that all inputs are written to. */
static int input_file(void)
{
    static int fd = -1;
    if (fd < 0) {
        const char *dir = getenv("TMPDIR");
        snprintf(path, sizeof path, "%s/mpsim-fuzz-XXXXXX", dir && *dir ? dir : "/tmp");
        fd = mkstemp(path);
        if (fd < 0) {
            perror(path);
            exit(EXIT_FAILURE);
        }
        atexit(remove_file);
    }
    return fd;
}

#ifdef FUZZ_STANDALONE
int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        FILE *f = fopen(argv[i], "rb");
        uint8_t *data = malloc(1 << 24);
        if (!f || !data) {
            perror(argv[i]);
            return EXIT_FAILURE;
        }
        const size_t n = fread(data, 1, 1 << 24, f);
        fclose(f);
        LLVMFuzzerTestOneInput(data, n);
        free(data);
    }
    return EXIT_SUCCESS;
}
#endif

#endif
