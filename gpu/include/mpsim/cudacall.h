/* cudacall.h -- what all operations of libmpsim-cuda have in common: the stream, the workspace, the line of an error.
 *
 * An operation has the bits of the function of libmpsim that its header names. Operations put kernels on a stream and return. They
 * allocate nothing, wait for nothing, and read nothing back, so a stream that captures a graph may be used: the graph repeats the
 * operation with the same addresses. Structures that a function is given are read before it returns. Arrays in them, and what an
 * operation counts, are memory of the device unless the header says otherwise, and must stay until the stream has done the work.
 *
 * An operation runs on the current device of the calling thread; stream, memory and workspace must belong to this device.
 * Operations may be called by several threads at once, each with a workspace of its own.
 *
 * The functions return MPSIM_EINVAL for an argument that is invalid, MPSIM_EUNAVAILABLE if the device has no kernel for the
 * operation, MPSIM_ENOMEM if the workspace is too small, and MPSIM_EIO if the device fails. Nothing is launched then, except under
 * MPSIM_EIO. */
#ifndef MPSIM_CUDACALL_H
#define MPSIM_CUDACALL_H

#include <mpsim/status.h>

#include <stddef.h>

MPSIM_BEGIN

enum { MPSIM_CUDA_ALIGNMENT = 256 }; /* of a workspace, in bytes */

typedef struct mpsim_cuda_call {
    void *stream;    /* a cudaStream_t or CUstream; NULL: the default stream                              */
    void *room;      /* the workspace; NULL if the function mpsim_cuda_..._room of the operation gives 0  */
    size_t bytes;    /* of the workspace; more than needed is not used                                    */
    char *why;       /* receives one line without a full stop if the status is not MPSIM_OK; NULL: none   */
    size_t why_size; /* bytes of `why`; a longer line is cut                                              */
} mpsim_cuda_call;

MPSIM_END

#endif
