/* svg.h -- a drawing as a part of a page. */
#pragma once

/* page_svg_inline -- what a program has drawn, as an element <svg>: of it only shapes and texts, as attributes only what places and
 * colours them, so that nothing of it runs, loads or speaks of other files, and every id behind `prefix`, so that several drawings
 * may be in one page. `label` is what it shows, in words. In memory of its own; NULL: it is no such drawing. */
char *page_svg_inline(const char *drawn, const char *prefix, const char *label);
