/* namemap.h -- rules of the user that say what names mean: REGEX=KIND:FQN.
 *
 * REGEX is a POSIX extended regular expression that the whole name must fit, KIND a word of the vocabulary, FQN a text in
 * which \1 to \9 stand for what the parentheses took. REGEX=none: no kind. The first rule that fits counts. A KIND alone is that of
 * tensors of numbers to which neither a rule nor a convention gives one. A map may come
 * with a trace, which is untrusted: back references, braces, what is repeated twice (a++), and a repeated group that repeats
 * or chooses within, which would take time or memory without bounds, are refused; so are rules beyond NAMEMAP_RULES, and texts beyond
 * NAMEMAP_LONGEST. */
#pragma once

#include "trace.h"

enum { NAMEMAP_RULES = 200, NAMEMAP_LONGEST = 400 };

/* The file of rules beside a trace. */
#define NAMEMAP_FILE "mpsim-names.map"

typedef struct namemap namemap;

/* `label` says where the rules are from: "--map", or the path of a file. NULL if out of memory. */
namemap *trace_namemap_new(const char *label);
void trace_namemap_free(namemap *m); /* accepts NULL */
const char *trace_namemap_label(const namemap *m);
size_t trace_namemap_count(const namemap *m);
/* trace_namemap_rule -- the text of rule i. */
const char *trace_namemap_rule(const namemap *m, size_t i);

/* trace_namemap_add -- a rule of n characters. 0, or -1 with why not in *error, empty for want of memory: "at 6: ...", for a message that says
 * where the rule is from. */
int trace_namemap_add(namemap *m, const char *rule, size_t n, char error[200]);

/* trace_namemap_join -- the rules of `other` after those of m. 0, or -1: no memory, or too many. */
int trace_namemap_join(namemap *m, const namemap *other);

/* trace_namemap_rest -- the kind of what has none otherwise; NULL: no rule says it. */
const char *trace_namemap_rest(const namemap *m);

/* trace_namemap_find -- the kind (NULL: none) and the fqn of a name, which live as long as t. 1; 0 if no rule fits; -1: no
 * memory. From several threads at once. */
int trace_namemap_find(const namemap *m, trace *t, const char *name, const char **kind, const char **fqn);
