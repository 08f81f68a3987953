/* status.h -- the status that every fallible function of libmpsim returns. */
#ifndef MPSIM_STATUS_H
#define MPSIM_STATUS_H

#include <mpsim/api.h>

MPSIM_BEGIN

typedef enum mpsim_status {
    MPSIM_OK = 0,
    MPSIM_EINVAL,       /* an argument is outside its documented domain           */
    MPSIM_ENOTFOUND,    /* a name (format, mode, preset) is not known             */
    MPSIM_ERANGE,       /* the format cannot be represented (see mpsim_format)    */
    MPSIM_ENOMEM,       /* out of memory                                          */
    MPSIM_EUNAVAILABLE, /* this machine cannot do that                         */
    MPSIM_EDATA,        /* a file does not hold what it should                  */
    MPSIM_EIO,          /* a file cannot be opened or read                      */
    MPSIM_ESTOPPED      /* the caller has stopped it                            */
} mpsim_status;

/* mpsim_status_string -- one English phrase for a status, without a full stop.
 *
 * Never NULL; an unknown number gives "unknown status". The string is static. */
MPSIM_API const char *mpsim_status_string(mpsim_status s);

MPSIM_END

#endif
