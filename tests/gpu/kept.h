/* kept.h -- what a folder of records keeps beside the records of mpsim-gpu: a digest of each file, reports of
 * mpsim-gpu-statistics and python/cuda_check.py, logs of compute-sanitizer. */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

enum { WHY = 512 };

/* Each returns the number of things that are not as they should be, the first one in `why` of WHY bytes if that was empty. */

/* kept_sums -- every file of the folder has its SHA-256 in SHA256SUMS, and every file there is in the folder. Left out:
 * README.md, scripts, answers.txt, which is no record, and what begins with a dot. */
int kept_sums(const char *folder, char *why);

/* kept_statistics -- a report of mpsim-gpu-statistics is whole and has no difference; t-stats counts its arrays again. */
int kept_statistics(const json_t *root, char *why);

/* kept_cuda_check -- a report of python/cuda_check.py is whole and has no difference. */
int kept_cuda_check(const json_t *root, char *why);

/* kept_log -- a log of compute-sanitizer has a summary, with 0 errors. */
int kept_log(const char *path, char *why);

/* kept_has -- 1 if SHA256SUMS of the folder has these bytes under this name. */
int kept_has(const char *folder, const char *name, const void *bytes, size_t n);

/* kept_read -- a file as text: NULL without one or without memory. */
char *kept_read(const char *folder, const char *name, size_t *n);

/* kept_ends -- 1 if the name ends so. */
int kept_ends(const char *name, const char *end);

/* kept_complain -- 1; the first complaint goes to `why`. */
int kept_complain(char *why, const char *name, const char *what);

/* kept_text, kept_number -- what an object has under a key: "" and 0 where that is no text, no integer. */
const char *kept_text(const json_t *o, const char *key);
uint64_t kept_number(const json_t *o, const char *key);
