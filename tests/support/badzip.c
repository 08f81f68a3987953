/* badzip.c -- see badzip.h. */
#include "badzip.h"

#include <string.h>

/* crc and sizes 0 and bit 3 in the local header, as for a stream, if `streamed` */
void archive_member(archive *a, const char *name, const blob *data, int streamed)
{
    a->local[a->members++] = a->b.n;
    blob_text(&a->b, "PK\3\4");
    blob_int(&a->b, 20, 2);
    blob_int(&a->b, streamed ? 8 : 0, 2);
    blob_int(&a->b, 0, 2 + 4); /* stored; time and date */
    blob_int(&a->b, streamed ? 0 : bad_crc32(data->data, data->n), 4);
    blob_int(&a->b, streamed ? 0 : data->n, 4);
    blob_int(&a->b, streamed ? 0 : data->n, 4);
    blob_int(&a->b, strlen(name), 2);
    blob_int(&a->b, 0, 2);
    blob_add(&a->b, name, strlen(name));
    blob_add(&a->b, data->data, data->n);
    if (streamed) {
        blob_text(&a->b, "PK\7\10");
        blob_int(&a->b, bad_crc32(data->data, data->n), 4);
        blob_int(&a->b, data->n, 4);
        blob_int(&a->b, data->n, 4);
    }
}

void archive_central(archive *a, size_t i, const char *name, const blob *data, int streamed)
{
    a->central[i] = a->b.n;
    blob_text(&a->b, "PK\1\2");
    blob_int(&a->b, 20, 2);
    blob_int(&a->b, 20, 2);
    blob_int(&a->b, streamed ? 8 : 0, 2);
    blob_int(&a->b, 0, 2 + 4);
    blob_int(&a->b, bad_crc32(data->data, data->n), 4);
    blob_int(&a->b, data->n, 4);
    blob_int(&a->b, data->n, 4);
    blob_int(&a->b, strlen(name), 2);
    blob_int(&a->b, 0, 8); /* extra, comment, disk, attributes */
    blob_int(&a->b, 0, 4);
    blob_int(&a->b, a->local[i], 4);
    blob_add(&a->b, name, strlen(name));
}

void archive_end(archive *a)
{
    const size_t central = a->members ? a->central[0] : a->b.n;
    a->end = a->b.n;
    blob_text(&a->b, "PK\5\6");
    blob_int(&a->b, 0, 4);
    blob_int(&a->b, a->members, 2);
    blob_int(&a->b, a->members, 2);
    blob_int(&a->b, a->end - central, 4);
    blob_int(&a->b, central, 4);
    blob_int(&a->b, 0, 2);
}

blob archive_array(float first)
{
    const float x[3] = {first, 2, 3};
    return bad_npy(1, DICT("'" BAD_FLOAT "'", "(3,)"), x, sizeof x);
}

archive archive_of(size_t n, const char *const *names, int streamed)
{
    archive a = {0};
    blob data[4];
    for (size_t i = 0; i < n; i++) {
        data[i] = archive_array((float)i + 1);
        archive_member(&a, names[i], &data[i], streamed);
    }
    for (size_t i = 0; i < n; i++)
        archive_central(&a, i, names[i], &data[i], streamed);
    archive_end(&a);
    for (size_t i = 0; i < n; i++)
        blob_clear(&data[i]);
    return a;
}

archive archive_of_two(void)
{
    static const char *const names[] = {"a.npy", "b.npy"};
    return archive_of(2, names, 0);
}

archive archive_zip64(uint64_t count, uint64_t size_lie, uint64_t offset_lie, uint64_t place_lie)
{
    archive a = archive_of_two();
    const size_t central = a.central[0], record = a.end;
    a.b.n = a.end;
    blob_text(&a.b, "PK\6\6");
    blob_int(&a.b, 44, 8);
    blob_int(&a.b, 45, 2);
    blob_int(&a.b, 45, 2);
    blob_int(&a.b, 0, 8);
    blob_int(&a.b, count, 8);
    blob_int(&a.b, count, 8);
    blob_int(&a.b, record - central + size_lie, 8);
    blob_int(&a.b, central + offset_lie, 8);
    blob_text(&a.b, "PK\6\7");
    blob_int(&a.b, 0, 4);
    blob_int(&a.b, record + place_lie, 8);
    blob_int(&a.b, 1, 4);
    a.end = a.b.n;
    blob_text(&a.b, "PK\5\6");
    blob_int(&a.b, 0, 4);
    blob_int(&a.b, 0xffffffff, 4);
    blob_int(&a.b, 0xffffffff, 4);
    blob_int(&a.b, 0xffffffff, 4);
    blob_int(&a.b, 0, 2);
    return a;
}
