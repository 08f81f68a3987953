/* architecture.h -- which tensor cores a GPU has, by its name. */
#pragma once

/* architecture_of -- the architecture that a file's name tells ("h100.npz": "hopper"), or NULL.
 * architecture_find -- the architecture of that name, in any letter case, as the table of models
 * spells it, or NULL. architecture_list -- all of them, for messages. */
const char *architecture_of(const char *file);
const char *architecture_find(const char *name);
const char *architecture_list(void);
