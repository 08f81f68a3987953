/* api.h -- what every public header needs: export macro and C linkage. */
#ifndef MPSIM_API_H
#define MPSIM_API_H

#if defined(__GNUC__)
#define MPSIM_API __attribute__((visibility("default")))
#else
#define MPSIM_API
#endif

#ifdef __cplusplus
#define MPSIM_BEGIN extern "C" {
#define MPSIM_END }
#else
#define MPSIM_BEGIN
#define MPSIM_END
#endif

#endif
