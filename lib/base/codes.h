/* codes.h -- arrays of codes: unsigned integers of 1, 2, 4 or 8 bytes, at any alignment. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline uint64_t mpsim_code_load(const void *codes, size_t bytes, size_t i)
{
    const unsigned char *from = (const unsigned char *)codes + i * bytes;
    uint16_t u16;
    uint32_t u32;
    uint64_t u64;
    switch (bytes) {
    case 1:
        return *from;
    case 2:
        memcpy(&u16, from, 2);
        return u16;
    case 4:
        memcpy(&u32, from, 4);
        return u32;
    default:
        memcpy(&u64, from, 8);
        return u64;
    }
}

static inline void mpsim_code_store(void *codes, size_t bytes, size_t i, uint64_t code)
{
    unsigned char *to = (unsigned char *)codes + i * bytes;
    const uint16_t u16 = (uint16_t)code;
    const uint32_t u32 = (uint32_t)code;
    switch (bytes) {
    case 1:
        *to = (unsigned char)code;
        break;
    case 2:
        memcpy(to, &u16, 2);
        break;
    case 4:
        memcpy(to, &u32, 4);
        break;
    default:
        memcpy(to, &code, 8);
    }
}
