/* architecture.h -- which tensor cores a GPU has, by its name. */
#pragma once

/* verify_architecture_of -- the architecture that a file's name tells ("h100.npz": "hopper"), or NULL.
 * verify_architecture_find -- the architecture of that name, in any letter case, as the table of models
 * spells it, or NULL. verify_architecture_list -- all of them, for messages. */
const char *verify_architecture_of(const char *file);
const char *verify_architecture_find(const char *name);
const char *verify_architecture_list(void);
