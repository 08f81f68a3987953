/* training.h -- trainings on the device and on the CPU in step. Plain C.
 *
 * A training is a file with a run (train_run_write). Both engines run it; after each step every
 * tensor, loss, scale and flag is compared. The digests of the device's run are written as a file
 * that `mpsim train --check-digests` repeats without a device. */
#pragma once

#include <train/train.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum gpu_training_status {
    GPU_TRAINING_EQUAL,
    GPU_TRAINING_DIFFERS,
    GPU_TRAINING_SKIPPED, /* not asked for, or the device has no such products: `report` says   */
    GPU_TRAINING_FAILED   /* the run cannot be read, an operation failed: `report` says          */
} gpu_training_status;

enum { GPU_TRAININGS = 64, GPU_TENSORS_STEPS = 3 /* steps whose tensors' digests are written */ };

typedef struct gpu_training {
    char run[48];  /* "mlp-fp16"                                                              */
    char arch[64]; /* whose products: the device's                                            */
    gpu_training_status status;
    uint64_t steps;    /* asked for                                                               */
    uint64_t compared; /* steps in which all is equal                                             */
    uint64_t tensors;  /* equal ones, over all steps                                              */
    uint64_t skipped;  /* steps that the scaler skipped                                           */
    float first_loss, last_loss;
    double seconds;        /* wall time of the comparison, both engines                          */
    double seconds_step;   /* of a step on the device alone: median; 0: not measured             */
    double seconds_graphs; /* the same where its launches are CUDA graphs                        */
    char report[512];      /* the first difference: step, tensor, index, both bits, products     */
    char digests[256];     /* name of their file, without folder; "": none                       */
} gpu_training;

typedef struct gpu_training_how {
    int (*open)(train_engine *e, char *why, size_t size); /* the device's engine */
    int (*graphs)(train_engine *e, int on); /* launches as CUDA graphs from now on; NULL: not measured so */
    const mpsim_pool *pool;                 /* threads for the CPU's engine, or NULL               */
    const char *arch;                       /* of the device: taken for the run's; NULL: the run's   */
    uint64_t part, most;                    /* a part-th of the steps, at most `most` of them      */
    int timed;                              /* steps that are timed, at most 100; 0: none          */
    const char *prefix;                     /* digests go to PREFIX-RUN.digests ; NULL: nowhere    */
    const char *device;                     /* a line for that file: device and date               */
    void (*alive)(void);                    /* called after each step, or NULL                     */
} gpu_training_how;

/* gpu_training_list -- the names in FOLDER/list, one a line with words after it, into t[].run:
 * their number, or 0 with one line in `why`. All are SKIPPED then. */
size_t gpu_training_list(gpu_training *t, size_t max, const char *folder, char *why, size_t size);

/* gpu_training_run -- train FOLDER/RUN.run, t->run says which. */
void gpu_training_run(gpu_training *t, const char *folder, const gpu_training_how *how);

#ifdef __cplusplus
}
#endif
