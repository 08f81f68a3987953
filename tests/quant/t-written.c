/* t-written.c -- what mpsim cast writes in each layout of checkpoints, byte for byte against layouts.safetensors: codes and
 * scales of torchao, laid out by record_layouts.py, which shares nothing with sim/quant. The program itself runs. */
#include "sim/trace/trace.h"

#include "support/stored.h"
#include "support/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[] = "/tmp/t-written-XXXXXX", model[64], result[64];

/* The recorded model as a file that cast reads. */
static void write_model(const stored_file *s)
{
    static const char *const names[] = {"x.weight", "x.bias"};
    static const char *const metadata[][2] = {{"recorded", "yes"}};
    trace_tensor tensors[2] = {{0}};
    stored_tensor t[2];
    trace_error error;
    for (size_t i = 0; i < 2; i++) {
        ck_assert(stored_find(s, names[i], &t[i]) && strcmp(t[i].dtype, "BF16") == 0);
        tensors[i] = (trace_tensor){.name = names[i],
                                    .format = mpsim_format_find("bf16"),
                                    .shape = t[i].sides,
                                    .rank = t[i].rank,
                                    .count = t[i].bytes / 2};
    }
    trace_writer *w = trace_writer_safetensors(model, tensors, 2, metadata, 1, &error);
    ck_assert_msg(w != NULL, "%s", error.text);
    for (size_t i = 0; i < 2; i++)
        ck_assert(trace_writer_data(w, t[i].data, t[i].bytes, &error) == 0);
    ck_assert(trace_writer_finish(w, &error) == 0);
}

/* A part of a case: its dtype, shape and bytes. */
static size_t check_part(const stored_file *s, const stored_file *out, const char *key, const char *name)
{
    json_t *want = json_loads(stored_text(s, key), 0, NULL);
    const json_t *shape = json_object_get(want, "shape");
    stored_tensor part, bytes;
    ck_assert_msg(stored_find(out, name, &part), "no tensor %s", name);
    ck_assert(want && stored_find(s, json_string_value(json_object_get(want, "bytes")), &bytes));
    ck_assert_msg(strcmp(part.dtype, json_string_value(json_object_get(want, "dtype"))) == 0, "%s: %s", key,
                  part.dtype);
    ck_assert_msg(part.rank == json_array_size(shape), "%s: %zu dimensions", key, part.rank);
    for (size_t i = 0; i < part.rank; i++)
        ck_assert(part.sides[i] == (uint64_t)json_integer_value(json_array_get(shape, i)));
    ck_assert_msg(part.bytes == bytes.bytes && memcmp(part.data, bytes.data, bytes.bytes) == 0, "%s: its bytes differ",
                  key);
    json_decref(want);
    return bytes.bytes;
}

CASE("written", 60);

TEST(written)
{
    const char *program = getenv("MPSIM"), *key;
    stored_file s = stored_open(test_source_path("tests/quant/layouts.safetensors"));
    json_t *metadata = json_object_get(s.header, "__metadata__"), *v;
    size_t cases = 0, tensors = 0, bytes = 0;
    ck_assert(program && mkdtemp(folder));
    snprintf(model, sizeof model, "%s/model", folder);
    snprintf(result, sizeof result, "%s/result", folder);
    write_model(&s);
    for (char name[16]; snprintf(name, sizeof name, "case%02zu", cases), stored_text(&s, name); cases++) {
        char command[8192], part[128];
        snprintf(command, sizeof command, "'%s' cast -q %s -o %s %s", program, stored_text(&s, name), result, model);
        ck_assert_msg(system(command) == 0, "%s", command);
        stored_file out = stored_open(result);
        size_t parts = 0;
        const size_t n = strlen(name);
        json_object_foreach(metadata, key, v)
        {
            if (strncmp(key, name, n) != 0 || key[n] != '/')
                continue;
            snprintf(part, sizeof part, "x.weight%s", key + n + 1);
            bytes += check_part(&s, &out, key, part);
            parts++;
        }
        stored_tensor bias, was;
        ck_assert(stored_find(&out, "x.bias", &bias) && stored_find(&s, "x.bias", &was) && bias.bytes == was.bytes &&
                  memcmp(bias.data, was.data, was.bytes) == 0);
        ck_assert_msg(json_object_size(out.header) == parts + 2, "%s: other tensors", name);
        tensors += parts;
        stored_close(&out);
    }
    printf("# %zu files in the layouts of checkpoints, %zu tensors, %zu bytes: equal\n", cases, tensors, bytes);
    ck_assert(cases >= 20 && unlink(model) == 0 && unlink(result) == 0 && rmdir(folder) == 0);
    stored_close(&s);
}

TEST_MAIN("quantised files");
