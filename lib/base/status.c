/* status.c -- see mpsim/status.h. */
#include <mpsim/status.h>

#include <stddef.h>

const char *mpsim_status_string(mpsim_status s)
{
    static const char *const text[] = {
        [MPSIM_OK] = "success",
        [MPSIM_EINVAL] = "invalid argument",
        [MPSIM_ENOTFOUND] = "unknown name",
        [MPSIM_ERANGE] = "format outside the range of binary64",
        [MPSIM_ENOMEM] = "out of memory",
        [MPSIM_EUNAVAILABLE] = "not available on this machine",
        [MPSIM_EDATA] = "bad data in a file",
        [MPSIM_EIO] = "a file cannot be read",
        [MPSIM_ESTOPPED] = "stopped by the caller",
    };
    const size_t n = sizeof text / sizeof text[0];
    return (size_t)s < n ? text[s] : "unknown status";
}
