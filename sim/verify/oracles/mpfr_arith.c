/* mpfr_arith.c -- verify: operations in and between formats, against GNU MPFR's own. */
#include "../../process/progress.h"
#include "../../text/words.h"
#include "../impl.h"
#include "oracle_arith.h"

#include <inttypes.h>
#include <mpsim/arith.h>
#include <stdio.h>

/* The same operation as the library and the oracle take it. */
typedef struct operation {
    mpsim_arith lib;
    oracle_arith oracle;
} operation;

static const oracle_format *set_format(mpsim_format *f, size_t i)
{
    *f = *mpsim_format_at(i % mpsim_format_count());
    return oracle_find(f->name);
}

/* Formats by number: of a, b, c and of the result. */
static int make(operation *p, mpsim_op op, const size_t formats[4])
{
    p->lib.op = op;
    p->oracle.op = (int)op;
    int known = 1;
    for (int i = 0; i < 3; i++) {
        p->oracle.operand[i] = set_format(&p->lib.operand[i], formats[i]);
        known &= p->oracle.operand[i] != NULL;
    }
    p->oracle.result = set_format(&p->lib.result, formats[3]);
    return known && p->oracle.result != NULL;
}

static void set_mode(operation *p, uint64_t word)
{
    mpsim_rounding_init(&p->lib.rounding, (mpsim_round_mode)(word % MPSIM_ROUND_MODES));
    p->lib.rounding.sr_bits = (uint8_t)(1 + (word >> 8) % 32);
    p->oracle.r = p->lib.rounding;
}

static void report(verify_row *row, const operation *p, const uint64_t code[3], uint64_t got, unsigned got_flags,
                   uint64_t want, unsigned want_flags)
{
    char text[300] = "", flags[48] = "";
    for (int i = 0; i < mpsim_op_operands(p->lib.op); i++)
        text_add(text, sizeof text, "%s%s 0x%" PRIx64 " (%a)", i ? ", " : "", p->lib.operand[i].name, code[i],
                 oracle_decode(p->oracle.operand[i], code[i]));
    if (want_flags != got_flags)
        snprintf(flags, sizeof flags, "; flags 0x%x, MPFR 0x%x", got_flags, want_flags);
    verify_differs(row, "%s of %s to %s, %s: 0x%" PRIx64 " (%a), MPFR 0x%" PRIx64 " (%a)%s", mpsim_op_name(p->lib.op),
                   text, p->lib.result.name, mpsim_round_mode_name((mpsim_round_mode)p->lib.rounding.mode), got,
                   oracle_decode(p->oracle.result, got), want, oracle_decode(p->oracle.result, want), flags);
}

static void compare(verify_row *row, operation *p, const uint64_t code[3], uint64_t *state)
{
    const uint64_t word = verify_inputs_word(state);
    const uint32_t random = (uint32_t)(word >> 32);
    unsigned flags, want_flags;
    set_mode(p, word);
    const uint64_t want = oracle_arith_mpfr(&p->oracle, code[0], code[1], code[2], random, &want_flags);
    const uint64_t got = mpsim_arith_apply(&p->lib, code[0], code[1], code[2], random, &flags);
    row->compared++;
    if (got != want || flags != want_flags)
        report(row, p, code, got, flags, want, want_flags);
}

/* All pairs of a narrow format, each in a mode that changes from pair to pair. */
static void every_pair(verify_row *row, mpsim_op op, size_t format, uint64_t *state)
{
    operation p;
    if (!make(&p, op, (const size_t[4]){format, format, format, format}))
        return;
    const uint64_t n = (uint64_t)1 << p.lib.result.bits;
    const uint64_t nb = mpsim_op_operands(op) > 1 ? n : 1;
    for (uint64_t a = 0; a < n; a++)
        for (uint64_t b = 0; b < nb; b++)
            compare(row, &p, (const uint64_t[3]){a, b, verify_inputs_word(state) % n}, state);
}

static void some(verify_row *row, operation *p, size_t n, uint64_t *state)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t code[3];
        for (int k = 0; k < 3; k++)
            code[k] = verify_inputs_code(p->oracle.operand[k], state);
        compare(row, p, code, state);
    }
}

static void in_one_format(verify *v, mpsim_op op, const char *judge)
{
    uint64_t state = v->seed + (uint64_t)op;
    verify_row *row = verify_add(v, "mpfr", "%s in %zu formats, %d modes", mpsim_op_name(op), mpsim_format_count(),
                                 MPSIM_ROUND_MODES);
    snprintf(row->with, sizeof row->with, "%s", judge);
    for (size_t i = 0; i < mpsim_format_count(); i++) {
        operation p;
        if (!make(&p, op, (const size_t[4]){i, i, i, i})) {
            verify_differs(row, "the oracle has no format %s", mpsim_format_at(i)->name);
            continue;
        }
        progress_say("mpfr: %s", row->what);
        some(row, &p, v->thorough ? 200000 : 10000, &state);
        if (p.lib.result.bits <= (v->thorough ? 8 : 6))
            every_pair(row, op, i, &state);
    }
}

static void between_formats(verify *v, const char *judge)
{
    uint64_t state = v->seed + MPSIM_OPS;
    verify_row *row = verify_add(v, "mpfr", "all operations between formats, %d modes", MPSIM_ROUND_MODES);
    snprintf(row->with, sizeof row->with, "%s", judge);
    for (size_t i = 0; i < (v->thorough ? 200000 : 10000); i++) {
        operation p;
        size_t formats[4];
        for (int k = 0; k < 4; k++)
            formats[k] = (size_t)verify_inputs_word(&state);
        if (make(&p, (mpsim_op)(i % MPSIM_OPS), formats))
            some(row, &p, 20, &state);
        if (i % 1000 == 0)
            progress_say("mpfr: %s", row->what);
    }
}

int verify_mpfr_arith(verify *v, const char *judge)
{
    for (int op = MPSIM_OP_ADD; op < MPSIM_OPS; op++)
        in_one_format(v, (mpsim_op)op, judge);
    between_formats(v, judge);
    return 0;
}
