/* healthtext.h -- health.h in words: the verdict, its lines, what to do. */
#pragma once

#include "health.h"

typedef void (*health_say)(void *context, uint64_t line, uint64_t last_line, const char *says);

verdict health_verdict(health_finding found);
const char *health_advice(health_finding found);
void health_text(const health *h, health_finding found, char *text, size_t size);
/* health_evidence -- say it line by line. */
void health_evidence(const health *h, health_say say, void *context);
