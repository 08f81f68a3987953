/* look.h -- how a page looks, and how its tables sort: CSS and JavaScript, lines each, NULL ends them. */
#pragma once

extern const char *const page_look_style[];
extern const char *const page_look_script[];
