#include "ways.h"
void device_segments(const json_t *head, const json_t *c, char *answer)
{
    device_products(head, c, answer);
}
