/* session.h -- all that a run of mpsim-gpu finds, and its parts: looks, probes, orders, speed, checks, trainings.
 * Lives in memory that the workers share (worker.h). */
#pragma once

#include "options.h"
#include "record.h"

typedef struct gpu_session {
    gpu_options options;
    gpu_record record; /* its lists are those below */
    gpu_result *looks, *results;
    gpu_probe *probes;
    gpu_order *orders;
    unsigned char *ended; /* of item i, over all parts */
    gpu_training trainings[GPU_TRAININGS];
    gpu_speed_row speeds[GPU_SPEED_ROWS];
    gpu_speed_plan speed;
    char path[512], prefix[512]; /* of the record; of files beside it */
    char refused[256];           /* why there is no device, "": there is one */
    int is_met;                  /* the device has been opened once */
    int status;                  /* of the program, so far */
} gpu_session;

static inline void gpu_session_note(gpu_session *s, int status)
{
    s->status = status > s->status ? status : s->status;
}

/* One kind of item. Those marked W are called in a worker, the others in the program's own process. */
typedef struct gpu_part {
    const char *name; /* the section of --only and --skip */
    double seconds;   /* the longest that an item may be silent */
    size_t (*count)(const gpu_session *s);
    const char *(*item)(const gpu_session *s, size_t i); /* its name */
    /* The instruction or kernel that the item is about, "": none. What fails takes no other item of its
     * group along: they are skipped. */
    void (*group)(const gpu_session *s, size_t i, char *to, size_t size);
    void (*run)(gpu_session *s, size_t i);                   /* W */
    int (*print)(gpu_session *s, size_t i);                  /* an exit status */
    void (*fail)(gpu_session *s, size_t i, const char *why); /* its process did not survive it */
    void (*skip)(gpu_session *s, size_t i, const char *why);
    void (*head)(const gpu_session *s), (*foot)(const gpu_session *s); /* of a table; or NULL */
} gpu_part;

enum { GPU_PARTS = 6, GPU_GROUP = 64 };
extern const gpu_part gpu_parts[GPU_PARTS]; /* in the order of a run */

/* gpu_session_begin -- lists, paths, nothing reached yet: 0, or -1 (no memory). */
int gpu_session_begin(gpu_session *s);
/* gpu_session_device -- in a worker: open the device; the first time, list what it is asked. 0, or -1:
 * refused says why. */
int gpu_session_device(gpu_session *s);

/* gpu_session_write -- the record, to PATH.part, or to PATH if it is complete; never half of it. 0, or -1: an
 * error line was written. */
int gpu_session_write(gpu_session *s, int complete);
/* gpu_session_name -- where the record goes in a folder, which needs the device's name. */
void gpu_session_name(gpu_session *s);
