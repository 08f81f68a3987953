/* config.h -- the parameters of a model that a config.json of Hugging Face describes. */
#pragma once

#include "shape.h"

/* memory_shape_of_config -- the parameters of the model that the file describes, by the names that transformers gives its layers. 0, or an
 * exit code after a message. *is: whether the file is such a description; where it is none, nothing is said and *s is empty. */
int memory_shape_of_config(shape *s, const char *path, int *is);
