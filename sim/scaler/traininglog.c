/* traininglog.c -- see traininglog.h. */
#include "traininglog.h"

#include "../cli/options.h"
#include "../trace/inputs.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* What needs no explanation: growth by 2^SILENT that no line tells, a skipped step that divides the
 * scale by 2^STEEP. TOLERATED overflows in a row that change nothing are no floor. */
enum { ENTRIES_MAX = 1 << 20, SILENT = 2, STEEP = 4, TOLERATED = 3 };

/* ---- lines to entries ---- */

static int same_or_unknown(double a, double b)
{
    return a == b || isnan(a) || isnan(b);
}

/* Whether a line tells more of the overflow that the entry before it told: several phrases of one
 * event, of which one at least is a detail. */
static int is_detail(const log_entry *e, const log_line *l)
{
    return (e->said.what & l->what & LOG_OVERFLOW) && ((e->said.what | l->what) & LOG_DETAIL) &&
           l->rule >= 0 && !(e->rules >> l->rule & 1) && e->said.dialect == l->dialect &&
           same_or_unknown(e->said.before, l->before) && same_or_unknown(e->said.after, l->after);
}

static void add_detail(log_entry *e, const log_line *l)
{
    e->rules |= 1u << l->rule;
    e->said.before = isnan(l->before) ? e->said.before : l->before;
    e->said.after = isnan(l->after) ? e->said.after : l->after;
    if (l->step >= 0)
        e->said.step = e->to = l->step;
    e->said.what |= l->what & LOG_STOP;
}

/* Whether a status says what the one before it says, a step later. */
static int is_more_of(const log_entry *e, const log_line *l)
{
    return e->said.what == l->what && l->what & LOG_STATUS && e->said.skipped == 0 &&
           l->skipped == 0 && e->said.after == l->after && e->said.dialect == l->dialect &&
           (l->step < 0 ? e->to < 0 : e->to >= 0 && l->step > e->to);
}

static int is_repeated(const log_entry *e, const log_line *l)
{
    return l->step >= 0 && e->to == l->step && e->said.what == l->what &&
           same_or_unknown(e->said.after, l->after) && same_or_unknown(e->said.before, l->before);
}

static void add_entry(training_log *log, const log_line *l)
{
    if (log->count == log->room) {
        const size_t room = log->room ? 2 * log->room : 256;
        log_entry *entries = realloc(log->entries, room * sizeof *entries);
        if (!entries) {
            log->failed = 1;
            return;
        }
        log->entries = entries;
        log->room = room;
    }
    log->entries[log->count++] = (log_entry){.line = log->reader.ends + 1,
                                             .said = *l,
                                             .to = l->step,
                                             .n = 1,
                                             .rules = l->rule >= 0 ? 1u << l->rule : 0};
}

/* What the lines of the rank that counts say of the training loss. */
static void add_loss(training_log *log, const log_line *l)
{
    if (l->loss == LOSS_FINITE) {
        log->lost_since = 0;
    } else if (l->loss != LOSS_UNSAID) {
        if (!log->lost_lines++)
            log->lost_as = l->loss;
        if (!log->lost_since)
            log->lost = log->reader.ends + 1;
        log->lost_since = 1;
    }
}

static int visit_line(const char *line, void *context)
{
    training_log *log = context;
    log_line l;
    if (!log_line_parse(&l, line))
        return 0;
    log_entry *last = log->count ? &log->entries[log->count - 1] : NULL;
    log->total++;
    log->recognised[l.dialect]++;
    if (log->total == 1) {
        log->rank = l.rank;
        log->scaler = l.scaler;
    }
    const int other_rank = l.rank != log->rank && l.rank >= 0 && log->rank >= 0;
    if (!other_rank)
        add_loss(log, &l);
    if (l.bad || (l.what == LOG_STATUS && isnan(l.after)))
        log->bad++;
    else if (other_rank)
        log->other_ranks++;
    else if (l.scaler != log->scaler)
        log->other_scalers++;
    else if (last && is_detail(last, &l))
        add_detail(last, &l);
    else if (last && is_repeated(last, &l))
        log->repeats++;
    else if (last && is_more_of(last, &l)) {
        last->to = l.step;
        last->n++;
    } else if (log->count == ENTRIES_MAX)
        log->failed = 2;
    else
        add_entry(log, &l);
    return log->failed;
}

/* ---- several ranks that say the same without a number ---- */

static int are_equal(const log_entry *a, const log_entry *b)
{
    return a->said.what == b->said.what && a->said.dialect == b->said.dialect && a->to < 0 &&
           b->to < 0 && (a->said.before == b->said.before || isnan(a->said.before)) &&
           (a->said.after == b->said.after || isnan(a->said.after));
}

static size_t run_of(const training_log *l, size_t i)
{
    size_t n = 1;
    while (i + n < l->count && are_equal(&l->entries[i], &l->entries[i + n]))
        n++;
    return n;
}

/* Where every run of equal overflows is a multiple of n > 1, n ranks have logged each. */
static void drop_copies(training_log *l)
{
    size_t divisor = 0, runs = 0, kept = 0;
    l->copies = 1;
    for (size_t i = 0, n; i < l->count; i += n, runs++) {
        n = run_of(l, i);
        for (size_t a = n, b; a; a = b) { /* the greatest common divisor */
            b = divisor % a;
            divisor = a;
        }
        if (!(l->entries[i].said.what & LOG_OVERFLOW) || l->entries[i].said.what & LOG_STATUS)
            return;
    }
    if (runs < 2 || divisor < 2)
        return;
    l->copies = divisor;
    for (size_t i = 0; i < l->count; i += divisor)
        l->entries[kept++] = l->entries[i];
    l->count = kept;
}

/* ---- before or after the step ---- */

/* Lines with a scale and whether the step was skipped tell by the skipped ones which scale it is:
 * after the step, if it falls with the first of them; before it, if it falls after the last. */
static void find_convention(training_log *l)
{
    uint64_t before = 0, after = 0;
    for (size_t i = 1; i < l->count; i++) {
        const log_line *a = &l->entries[i - 1].said, *b = &l->entries[i].said;
        const log_line *c = i + 1 < l->count ? &l->entries[i + 1].said : NULL;
        if (b->dialect != LOG_VALUES || !b->skipped || !(a->what & LOG_STATUS))
            continue;
        after += !a->skipped && b->after < a->after;
        before += c && c->what & LOG_STATUS && !c->skipped && c->after < b->after;
    }
    l->before = before > after;
}

/* ---- entries to the recorded track ---- */

static void add_jump(training_log *l, const log_entry *e, double from, double to, int restart)
{
    if (l->n_jumps == l->room_jumps) {
        const size_t room = l->room_jumps ? 2 * l->room_jumps : 16;
        log_jump *jumps = realloc(l->jumps, room * sizeof *jumps);
        if (!jumps) {
            l->failed = 1;
            return;
        }
        l->jumps = jumps;
        l->room_jumps = room;
    }
    l->jumps[l->n_jumps++] = (log_jump){e->line, e->said.step, from, to, restart};
}

/* Where the walk over the entries stands. */
typedef struct walk {
    training_log *log;
    double scale;   /* in force; NaN at first */
    int64_t step;   /* the last one; -1       */
    unsigned extra; /* RECORDED_RESTART after one */
    unsigned held;  /* overflows in a row that left the scale as it was */
} walk;

static void record(walk *w, int64_t from, int64_t to, uint64_t n, unsigned events, double next)
{
    track_record(&w->log->recorded, from, to, n, events | w->extra, w->scale, next);
    w->extra = 0;
    w->held = events & MPSIM_SCALER_OVERFLOW && next == w->scale ? w->held + 1 : 0;
    w->scale = next;
    if (to >= 0)
        w->step = to;
}

/* The scale is `scale` after n clean steps (0: their number is unknown): by growth that no line
 * tells, somewhere among them, or by a jump. */
static void arrive(walk *w, const log_entry *e, double scale, uint64_t n)
{
    const double ratio = scale / w->scale;
    const int64_t first = n && w->step >= 0 ? w->step + 1 : -1;
    const int64_t last = first >= 0 ? w->step + (int64_t)n : -1;
    if (isnan(w->scale) || isnan(scale)) {
        w->scale = isnan(scale) ? w->scale : scale;
        if (n)
            record(w, first, last, n, 0, w->scale);
        return;
    }
    if (w->extra & RECORDED_RESTART ? ratio != 1 : ratio < 1 || ratio > 1 << SILENT) {
        add_jump(w->log, e, w->scale, scale, (w->extra & RECORDED_RESTART) != 0);
        w->extra |= RECORDED_JUMP;
        w->scale = scale;
        if (n)
            record(w, first, last, n, 0, scale);
    } else if (ratio > 1) {
        const unsigned inferred = n == 1 ? 0 : RECORDED_INFERRED;
        record(w, first, last, n ? n : 1, MPSIM_SCALER_GROWTH | inferred, scale);
    } else if (n) {
        record(w, first, last, n, 0, scale);
    }
}

/* How often the scale has halved, which is less than before. Logs print small ones with few digits:
 * 0.0005 and 0.0002 are 2^-11 and 2^-12, and 0 is less than they print. */
static double halvings(double from, double to)
{
    if (to == 0)
        return from <= 1 ? from > 0 : (double)INFINITY;
    return to < 1 ? fmax(1, round(log2(from / to))) : log2(from / to);
}

/* The scale before an overflow of which a line tells the one after it. */
static double scale_before(const walk *w, double after)
{
    if (after < 1 && (isnan(w->scale) ? after == 0 : halvings(w->scale, after) == 1))
        return w->scale;
    return 2 * after;
}

/* An overflow that leaves the scale as it is: tolerated (DeepSpeed's hysteresis, 2 unless the user
 * says otherwise), or at the minimum: 1, or a user's, where it happens more often than that. */
static unsigned held(const walk *w, double scale)
{
    if (scale == 0)
        return MPSIM_SCALER_BACKOFF;
    return scale <= 1 || w->held >= TOLERATED ? MPSIM_SCALER_BACKOFF | MPSIM_SCALER_FLOORED
                                              : MPSIM_SCALER_TOLERATED;
}

/* A line that tells an overflow, or a growth. */
static void walk_event(walk *w, const log_entry *e)
{
    const log_line *l = &e->said;
    const int known = l->step >= 0 && w->step >= 0 && l->step > w->step;
    const uint64_t between = known ? (uint64_t)(l->step - w->step - 1) : 0;
    double before = l->before, after = l->after;
    unsigned events = l->what & LOG_OVERFLOW ? MPSIM_SCALER_OVERFLOW | MPSIM_SCALER_SKIP : 0;
    if (isnan(before))
        before = isnan(after) || l->what & LOG_STOP ? w->scale
                                                         : scale_before(w, after);
    if (isnan(after) || l->what & LOG_STOP)
        after = before;
    if (l->what & LOG_GROWTH && l->step < 0 && w->step >= 0)
        return; /* the next step with a number tells between which steps it was */
    w->log->recorded.unknown_steps |= l->step < 0;
    arrive(w, e, before, between);
    if (l->what & LOG_GROWTH)
        events |= MPSIM_SCALER_GROWTH;
    else if (l->what & LOG_STOP)
        events |= MPSIM_SCALER_RAISED;
    else if (after < before || isnan(before))
        events |= MPSIM_SCALER_BACKOFF;
    else
        events |= l->what & LOG_TOLERATED ? MPSIM_SCALER_TOLERATED : held(w, after);
    record(w, l->step, l->step, 1, events, after);
}

/* Overflows in a row, of which the scale before and after is known: it halves as late as it can. */
static void walk_row(walk *w, int64_t first, uint64_t n, double next, unsigned extra)
{
    enum { MOST = 64 };
    const double times = w->scale > next ? ceil(halvings(w->scale, next) - 1e-9) : 0;
    const uint64_t down = times < MOST ? (uint64_t)times : MOST;
    const uint64_t kept = n > down ? n - down : 0;
    const unsigned events = MPSIM_SCALER_OVERFLOW | MPSIM_SCALER_SKIP | extra;
    if (kept)
        record(w, first, first >= 0 ? first + (int64_t)kept - 1 : -1, kept,
               events | MPSIM_SCALER_TOLERATED, down ? w->scale : next);
    for (uint64_t i = kept; i < n; i++) {
        const int64_t at = first >= 0 ? first + (int64_t)i : -1;
        record(w, at, at, 1, events | MPSIM_SCALER_BACKOFF,
               i + 1 == n ? next : fmax(w->scale / 2, next));
    }
}

/* n steps of which `skipped` were skipped; the scale is `next` after them. */
static void walk_skips(walk *w, const log_entry *e, uint64_t n, uint64_t skipped, double next,
                       unsigned extra)
{
    const double ratio = next / w->scale;
    const int64_t last = w->step >= 0 && e->said.step >= 0 ? e->said.step : -1;
    const int64_t first = last >= 0 ? last - (int64_t)n + 1 : -1;
    const unsigned overflow = MPSIM_SCALER_OVERFLOW | MPSIM_SCALER_SKIP | extra;
    const double times = ratio < 1 ? halvings(w->scale, next) : 0;
    const int jump = ratio > 1 << SILENT || times > STEEP * (double)skipped;
    if (n == skipped && !jump && !isnan(ratio)) {
        walk_row(w, first, n, next, extra);
        return;
    }
    if (jump) {
        add_jump(w->log, e, w->scale, next, (w->extra & RECORDED_RESTART) != 0);
        w->extra |= RECORDED_JUMP;
    }
    w->log->mixed += n > 1;
    record(w, first, last, skipped, overflow | RECORDED_MIXED, next);
    if (n > skipped)
        record(w, first, last, n - skipped, RECORDED_MIXED, next);
}

/* Steps of which it is known that none was skipped, or not known whether. How many steps lie
 * between lines without a number is not known: a loss that is NaN explains any number of overflows.
 */
static void walk_quiet(walk *w, const log_entry *e, uint64_t n, double next, int skips_told)
{
    const double ratio = next / w->scale;
    const double times = ratio < 1 ? halvings(w->scale, next) : 0;
    if (e->said.step < 0 && isfinite(times) && e->said.loss >= LOSS_NAN && n < (uint64_t)times)
        n = (uint64_t)times;
    if (ratio < 1 && !skips_told && times <= (double)n) {
        walk_skips(w, e, n, (uint64_t)ceil(times - 1e-9), next, RECORDED_INFERRED);
        return;
    }
    arrive(w, e, next, n);
}

/* Steps between the first two lines of numbered ones: what the first of them stands for, too. */
static uint64_t spacing(const training_log *l)
{
    const log_entry *a = &l->entries[0], *b = &l->entries[1];
    const int64_t next = a->n > 1 ? a->said.step + (a->to - a->said.step) / (int64_t)(a->n - 1)
                                  : b->said.step;
    const int64_t n = next - a->said.step;
    return n > 0 && n <= a->said.step ? (uint64_t)n : 1;
}

static void walk_status(walk *w, const log_entry *e, double scale)
{
    const log_line *l = &e->said;
    const int numbered = l->step >= 0;
    uint64_t n = numbered && w->step >= 0 ? (uint64_t)(l->step - w->step) : 1;
    w->log->recorded.unknown_steps |= !numbered;
    if (numbered && w->step < 0 && w->log->count > 1) /* the first line: as the next one */
        n = spacing(w->log);
    if (isnan(w->scale) && !l->skipped) /* before a skipped step it is not known */
        w->scale = scale;
    n = n < l->skipped ? l->skipped : n;
    if (numbered && w->step < 0)
        w->step = l->step - (int64_t)n;
    if (w->extra & RECORDED_RESTART && l->skipped == 0)
        arrive(w, e, scale, 1);
    else if (l->skipped)
        walk_skips(w, e, n, l->skipped, scale, 0);
    else
        walk_quiet(w, e, n, scale, (l->what & LOG_SKIPS) != 0);
    if (e->n > 1)
        record(w, numbered ? w->step + 1 : -1, e->to,
               numbered ? (uint64_t)(e->to - w->step) : e->n - 1, 0, w->scale);
}

/* Lines that tell the scale before the step: after it is what the next one says. Of several that
 * say the same only the last may differ. */
static void walk_before(walk *w, const log_entry *e, const log_entry *next)
{
    const log_line *said = &e->said;
    const int followed = next && next->said.what & LOG_STATUS;
    log_entry part = *e;
    if (isnan(w->scale))
        w->scale = said->after;
    if (e->n > 1) {
        part.n = e->n - 1;
        part.to = e->to < 0 ? -1 : e->to - (e->to - said->step) / (int64_t)part.n;
        walk_status(w, &part, said->after);
        part.said.step = part.to = e->to;
        part.n = 1;
    }
    walk_status(w, &part, followed         ? next->said.after
                          : said->skipped ? (double)NAN
                                          : said->after);
}

static void walk_entries(training_log *l)
{
    walk w = {.log = l, .scale = (double)NAN, .step = -1};
    for (size_t i = 0; i < l->count && !l->failed; i++) {
        const log_entry *e = &l->entries[i];
        if (e->said.step >= 0 && w.step >= 0 && e->said.step <= w.step) {
            l->restarts++;
            w.extra |= RECORDED_RESTART;
            w.step = e->said.step - 1;
        }
        if (e->said.what & LOG_STATUS)
            l->before ? walk_before(&w, e, i + 1 < l->count ? e + 1 : NULL)
                      : walk_status(&w, e, e->said.after);
        else
            walk_event(&w, e);
    }
}

/* ---- files ---- */

static int read_bytes(training_log *l, const char *path, const char *name)
{
    static char bytes[1 << 16];
    const int standard = strcmp(path, "-") == 0;
    struct stat st;
    FILE *f = standard ? stdin : fopen(path, "rb");
    if (!f || fstat(fileno(f), &st) != 0 || S_ISDIR(st.st_mode)) {
        const int number = f && errno == 0 ? EISDIR : f ? EISDIR : errno;
        if (f && !standard)
            fclose(f);
        return fail(EXIT_IO, "%s: %s", name, strerror(number));
    }
    size_t n;
    int stop = 0;
    inputs_add(fileno(f));
    errno = 0;
    while (!stop && (n = fread(bytes, 1, sizeof bytes, f)) > 0)
        stop = log_reader_bytes(&l->reader, bytes, n, visit_line, l);
    if (!stop)
        stop = log_reader_end(&l->reader, visit_line, l);
    const int bad = ferror(f) ? errno : 0;
    if (!standard)
        fclose(f);
    return bad ? fail(EXIT_IO, "%s: %s", name, strerror(bad)) : 0;
}

int training_log_read(training_log *l, const char *path)
{
    char name[512];
    memset(l, 0, sizeof *l);
    escape_text(name, sizeof name, strcmp(path, "-") == 0 ? "standard input" : path);
    const int code = read_bytes(l, path, name);
    const mpsim_scaler_config *any = &mpsim_scaler_find("static")->config;
    if (code)
        return code;
    if (!l->failed && l->count == 0)
        return fail(EXIT_DATA,
                    "%s: no line about a loss scale in %" PRIu64 " lines: known are those of Apex, "
                    "DeepSpeed, Megatron and fairseq, and 'step 12 scale 65536 skipped 0', "
                    "'loss_scale: 65536'", name, l->reader.lines);
    drop_copies(l);
    find_convention(l);
    (void)track_init(&l->recorded, "recorded", any); /* a row of the table is valid */
    l->recorded.recorded = 1;
    l->recorded.least = (double)INFINITY;
    l->recorded.most = 0;
    if (!l->failed)
        walk_entries(l);
    if (l->failed == 2)
        return fail(EXIT_DATA, "%s: more than %d changes of the loss scale", name, ENTRIES_MAX);
    return l->failed || l->recorded.failed ? fail(EXIT_IO, "out of memory") : 0;
}

void training_log_clear(training_log *l)
{
    free(l->entries);
    free(l->jumps);
    track_clear(&l->recorded);
}
