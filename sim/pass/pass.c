/* pass.c -- see pass.h. */
#include "pass.h"

#include <threads/parallel.h>

#include <limits.h>
#include <stdatomic.h>

int pass_lanes(void)
{
    return parallel_threads();
}

/* ---- pieces ---- */

typedef struct pieces {
    pass_piece *piece;
    void *context;
    const atomic_int *asked;
    uint64_t first; /* of those at hand         */
    int lanes;
    atomic_int failed;  /* the first, or INT_MAX    */
    atomic_flag busy;   /* somebody writes *error   */
    trace_error *error; /* of the one that failed   */
} pieces;

static void note(pieces *p, int k, const trace_error *error)
{
    while (atomic_flag_test_and_set(&p->busy))
        continue;
    if (k < atomic_load(&p->failed)) {
        *p->error = *error;
        atomic_store(&p->failed, k);
    }
    atomic_flag_clear(&p->busy);
}

static void run_piece(int k, void *context)
{
    pieces *p = context;
    trace_error error;
    if ((p->asked && *p->asked) || atomic_load(&p->failed) < k)
        return;
    if (p->piece(p->context, p->first + (uint64_t)k, p->lanes > 1 ? parallel_self() : 0, &error))
        note(p, k, &error);
}

int pass_pieces(uint64_t n, int lanes, pass_piece *piece, void *context, const atomic_int *asked, trace_error *error)
{
    enum { AT_ONCE = 1 << 16 };
    pieces p = {.piece = piece,
                .context = context,
                .asked = asked,
                .lanes = lanes,
                .failed = INT_MAX,
                .busy = ATOMIC_FLAG_INIT,
                .error = error};
    for (; p.first < n && atomic_load(&p.failed) == INT_MAX; p.first += AT_ONCE) {
        const int now = (int)(n - p.first < AT_ONCE ? n - p.first : AT_ONCE);
        if (lanes > 1)
            parallel_for(now, run_piece, &p);
        for (int k = 0; lanes <= 1 && k < now; k++)
            run_piece(k, &p);
    }
    return atomic_load(&p.failed) == INT_MAX ? 0 : -1;
}

/* ---- items ---- */

static void run_item(int k, void *context)
{
    const pass_queue *q = context;
    q->run(q->context, k, parallel_self());
}

int pass_flush(pass_queue *q)
{
    const int n = q->n;
    int code = 0;
    parallel_for(n, run_item, q);
    for (int k = 0; k < n; k++) {
        const int said = q->tell(q->context, k, code != 0);
        code = code ? code : said;
    }
    q->n = 0;
    q->bytes = 0;
    return code;
}

int pass_alone(pass_queue *q)
{
    return q->n ? pass_flush(q) : 0;
}

int pass_put(pass_queue *q, uint64_t bytes, int alone)
{
    q->n++;
    q->bytes += bytes;
    return alone || q->n == q->room || q->bytes >= q->most ? pass_flush(q) : 0;
}
