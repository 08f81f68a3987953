/* course.h -- what figures show over the steps: curves, in one panel or two: loss scales, lost updates, amaxes and scales of FP8. */
#pragma once

#include "select.h"

enum { PLOT_COURSES_MAX = 20, PLOT_PANELS = 2 };

/* A step of a curve. */
typedef struct plot_moment {
    double step;
    double values[PLOT_PANELS]; /* NaN: none */
    int marked;
} plot_moment;

typedef struct plot_curve_of_steps {
    char *name;
    size_t n;
    plot_moment *moments; /* steps grow */
} plot_curve_of_steps;

/* What a figure shows. */
typedef struct plot_course_kind {
    const char *panels[PLOT_PANELS]; /* their headings; NULL: there is one */
    int percent;                     /* the unit: per cent; else values are log2 */
    int stairs;                      /* bits: a panel holds its value until the next step */
    const char *mark;                /* what a mark in the first panel means */
    int joined;                      /* of several steps in a point: 0 none are joined, 1 the mean, 2 the largest */
} plot_course_kind;

typedef struct plot_courses {
    const plot_report *report;
    const plot_course_kind *kind;
    const char *axis; /* what steps are */
    plot_curve_of_steps items[PLOT_COURSES_MAX];
    size_t n;
    int panels; /* that hold something */
} plot_courses;

/* What a report of mpsim scaler is in memory (record_keep). */
extern const record_kind plot_scalers_record;

void plot_courses_clear(plot_courses *c);
