/* folders.h -- folders of records: their files, each by its kind, and what becomes of a record that is changed. */
#pragma once

/* Lines of TAP, of t-record.c: a test; the number of one that is skipped. */
void ok(int passed, const char *name, const char *why);
int tap_next(void);

/* test_records -- data/gpu: every record, report and log, and a digest of each file. test_answers -- the digests of what devices
 * answered through PyTorch: tests/record/t-device reads it. */
void test_records(void);
void test_answers(void);

/* A digit that changes in a file of a device, a training that is not that of its digests, a report that is damaged are found. */
void test_changed_digits(void);
void test_changed_trainings(void);
void test_changed_reports(void);

/* test_argument -- "FOLDER/FILE", or a folder, from whatever device. */
void test_argument(char *path);
