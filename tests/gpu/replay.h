/* replay.h -- a record of mpsim-gpu on the CPU: every sample of every check again from its inputs, by the public functions of the
 * library, and every probe by its model row. */
#pragma once

#include <jansson.h>
#include <stddef.h>

/* Each returns the number of entries that are not as they should be, the first one in `why` of WHY bytes (kept.h) if that was
 * empty. */

/* replay_record -- all of it; beside: see agree_training. */
int replay_record(const json_t *root, const char *beside, char *why);

/* replay_check, replay_probe -- entry i of this version's table, of a device of compute capability sm. */
int replay_check(const json_t *o, size_t i, int sm, int quick, char *why);
int replay_probe(const json_t *o, size_t i, int sm, char *why);

/* replay_is_device -- 0 where the reference "plays", or a CPU executes the kernels: no witness of hardware. */
int replay_is_device(const char *name);
