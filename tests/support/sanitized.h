/* sanitized.h -- whether this is compiled with a sanitizer of memory (AddressSanitizer, MemorySanitizer), or of threads: 0 or 1. */
#pragma once

#if defined(__has_feature)
#define SANITIZED_FEATURE(name) __has_feature(name)
#else
#define SANITIZED_FEATURE(name) 0
#endif

#if defined(__SANITIZE_ADDRESS__) || SANITIZED_FEATURE(address_sanitizer) || SANITIZED_FEATURE(memory_sanitizer)
#define SANITIZED_MEMORY 1
#else
#define SANITIZED_MEMORY 0
#endif
#if defined(__SANITIZE_THREAD__) || SANITIZED_FEATURE(thread_sanitizer)
#define SANITIZED_THREADS 1
#else
#define SANITIZED_THREADS 0
#endif
