/* t-pickle.c -- the trees of pickles: one object of all types in the six protocols, as Python 3.11 wrote it, and what
 * a reader may refuse. */
#include "sim/pickle/pickle.h"
#include "support/support.h"

#include <stdlib.h>
#include <string.h>

/* [None, True, False, -5, 300, 2**40, 2**70, -2**70, 2.5, 't\u00e4\0xt', b'bytes', (1, 2, 3), {1: 'a', 'b': [7]}, {9},
 *  OrderedDict(z=1), k], where k = K.__new__(K, 1, a=2) has the attribute x = 5 */
static const struct {
    const char *bytes;
    size_t n;
} pickled[] = {
    {"\050\154\160\060\012\116\141\111\060\061\012\141\111\060\060\012\141\111\055\065\012\141\111\063\060\060"
     "\012\141\114\061\060\071\071\065\061\061\066\062\067\067\067\066\114\012\141\114\061\061\070\060\065\071"
     "\061\066\062\060\067\061\067\064\061\061\063\060\063\064\062\064\114\012\141\114\055\061\061\070\060\065"
     "\071\061\066\062\060\067\061\067\064\061\061\063\060\063\064\062\064\114\012\141\106\062\056\065\012\141"
     "\126\164\344\134\165\060\060\060\060\170\164\012\160\061\012\141\143\137\143\157\144\145\143\163\012\145"
     "\156\143\157\144\145\012\160\062\012\050\126\142\171\164\145\163\012\160\063\012\126\154\141\164\151\156"
     "\061\012\160\064\012\164\160\065\012\122\160\066\012\141\050\111\061\012\111\062\012\111\063\012\164\160"
     "\067\012\141\050\144\160\070\012\111\061\012\126\141\012\160\071\012\163\126\142\012\160\061\060\012\050"
     "\154\160\061\061\012\111\067\012\141\163\141\143\137\137\142\165\151\154\164\151\156\137\137\012\163\145"
     "\164\012\160\061\062\012\050\050\154\160\061\063\012\111\071\012\141\164\160\061\064\012\122\160\061\065"
     "\012\141\143\143\157\154\154\145\143\164\151\157\156\163\012\117\162\144\145\162\145\144\104\151\143\164"
     "\012\160\061\066\012\050\164\122\160\061\067\012\126\172\012\160\061\070\012\111\061\012\163\141\143\143"
     "\157\160\171\137\162\145\147\012\137\162\145\143\157\156\163\164\162\165\143\164\157\162\012\160\061\071"
     "\012\050\143\155\012\113\012\160\062\060\012\143\137\137\142\165\151\154\164\151\156\137\137\012\157\142"
     "\152\145\143\164\012\160\062\061\012\116\164\160\062\062\012\122\160\062\063\012\050\144\160\062\064\012"
     "\126\170\012\160\062\065\012\111\065\012\163\142\141\056",
     404},
    {"\135\161\000\050\116\111\060\061\012\111\060\060\012\112\373\377\377\377\115\054\001\114\061\060\071\071"
     "\065\061\061\066\062\067\067\067\066\114\012\114\061\061\070\060\065\071\061\066\062\060\067\061\067\064"
     "\061\061\063\060\063\064\062\064\114\012\114\055\061\061\070\060\065\071\061\066\062\060\067\061\067\064"
     "\061\061\063\060\063\064\062\064\114\012\107\100\004\000\000\000\000\000\000\130\006\000\000\000\164\303"
     "\244\000\170\164\161\001\143\137\143\157\144\145\143\163\012\145\156\143\157\144\145\012\161\002\050\130"
     "\005\000\000\000\142\171\164\145\163\161\003\130\006\000\000\000\154\141\164\151\156\061\161\004\164\161"
     "\005\122\161\006\050\113\001\113\002\113\003\164\161\007\175\161\010\050\113\001\130\001\000\000\000\141"
     "\161\011\130\001\000\000\000\142\161\012\135\161\013\113\007\141\165\143\137\137\142\165\151\154\164\151"
     "\156\137\137\012\163\145\164\012\161\014\050\135\161\015\113\011\141\164\161\016\122\161\017\143\143\157"
     "\154\154\145\143\164\151\157\156\163\012\117\162\144\145\162\145\144\104\151\143\164\012\161\020\051\122"
     "\161\021\130\001\000\000\000\172\161\022\113\001\163\143\143\157\160\171\137\162\145\147\012\137\162\145"
     "\143\157\156\163\164\162\165\143\164\157\162\012\161\023\050\143\155\012\113\012\161\024\143\137\137\142"
     "\165\151\154\164\151\156\137\137\012\157\142\152\145\143\164\012\161\025\116\164\161\026\122\161\027\175"
     "\161\030\130\001\000\000\000\170\161\031\113\005\163\142\145\056",
     354},
    {"\200\002\135\161\000\050\116\210\211\112\373\377\377\377\115\054\001\212\006\000\000\000\000\000\001\212"
     "\011\000\000\000\000\000\000\000\000\100\212\011\000\000\000\000\000\000\000\000\300\107\100\004\000\000"
     "\000\000\000\000\130\006\000\000\000\164\303\244\000\170\164\161\001\143\137\143\157\144\145\143\163\012"
     "\145\156\143\157\144\145\012\161\002\130\005\000\000\000\142\171\164\145\163\161\003\130\006\000\000\000"
     "\154\141\164\151\156\061\161\004\206\161\005\122\161\006\113\001\113\002\113\003\207\161\007\175\161\010"
     "\050\113\001\130\001\000\000\000\141\161\011\130\001\000\000\000\142\161\012\135\161\013\113\007\141\165"
     "\143\137\137\142\165\151\154\164\151\156\137\137\012\163\145\164\012\161\014\135\161\015\113\011\141\205"
     "\161\016\122\161\017\143\143\157\154\154\145\143\164\151\157\156\163\012\117\162\144\145\162\145\144\104"
     "\151\143\164\012\161\020\051\122\161\021\130\001\000\000\000\172\161\022\113\001\163\143\146\165\156\143"
     "\164\157\157\154\163\012\160\141\162\164\151\141\154\012\161\023\143\137\137\142\165\151\154\164\151\156"
     "\137\137\012\147\145\164\141\164\164\162\012\161\024\143\137\137\142\165\151\154\164\151\156\137\137\012"
     "\157\142\152\145\143\164\012\161\025\130\007\000\000\000\137\137\156\145\167\137\137\161\026\206\161\027"
     "\122\161\030\205\161\031\122\161\032\050\150\030\143\155\012\113\012\161\033\113\001\206\161\034\175\161"
     "\035\150\011\113\002\163\116\164\161\036\142\051\122\161\037\175\161\040\130\001\000\000\000\170\161\041"
     "\113\005\163\142\145\056",
     370},
    {"\200\003\135\161\000\050\116\210\211\112\373\377\377\377\115\054\001\212\006\000\000\000\000\000\001\212"
     "\011\000\000\000\000\000\000\000\000\100\212\011\000\000\000\000\000\000\000\000\300\107\100\004\000\000"
     "\000\000\000\000\130\006\000\000\000\164\303\244\000\170\164\161\001\103\005\142\171\164\145\163\161\002"
     "\113\001\113\002\113\003\207\161\003\175\161\004\050\113\001\130\001\000\000\000\141\161\005\130\001\000"
     "\000\000\142\161\006\135\161\007\113\007\141\165\143\142\165\151\154\164\151\156\163\012\163\145\164\012"
     "\161\010\135\161\011\113\011\141\205\161\012\122\161\013\143\143\157\154\154\145\143\164\151\157\156\163"
     "\012\117\162\144\145\162\145\144\104\151\143\164\012\161\014\051\122\161\015\130\001\000\000\000\172\161"
     "\016\113\001\163\143\146\165\156\143\164\157\157\154\163\012\160\141\162\164\151\141\154\012\161\017\143"
     "\142\165\151\154\164\151\156\163\012\147\145\164\141\164\164\162\012\161\020\143\142\165\151\154\164\151"
     "\156\163\012\157\142\152\145\143\164\012\161\021\130\007\000\000\000\137\137\156\145\167\137\137\161\022"
     "\206\161\023\122\161\024\205\161\025\122\161\026\050\150\024\143\155\012\113\012\161\027\113\001\206\161"
     "\030\175\161\031\150\005\113\002\163\116\164\161\032\142\051\122\161\033\175\161\034\130\001\000\000\000"
     "\170\161\035\113\005\163\142\145\056",
     321},
    {"\200\004\225\262\000\000\000\000\000\000\000\135\224\050\116\210\211\112\373\377\377\377\115\054\001\212"
     "\006\000\000\000\000\000\001\212\011\000\000\000\000\000\000\000\000\100\212\011\000\000\000\000\000\000"
     "\000\000\300\107\100\004\000\000\000\000\000\000\214\006\164\303\244\000\170\164\224\103\005\142\171\164"
     "\145\163\224\113\001\113\002\113\003\207\224\175\224\050\113\001\214\001\141\224\214\001\142\224\135\224"
     "\113\007\141\165\217\224\050\113\011\220\214\013\143\157\154\154\145\143\164\151\157\156\163\224\214\013"
     "\117\162\144\145\162\145\144\104\151\143\164\224\223\224\051\122\224\214\001\172\224\113\001\163\214\001"
     "\155\224\214\001\113\224\223\224\113\001\205\224\175\224\150\005\113\002\163\222\224\175\224\214\001\170"
     "\224\113\005\163\142\145\056",
     189},
    {"\200\005\225\262\000\000\000\000\000\000\000\135\224\050\116\210\211\112\373\377\377\377\115\054\001\212"
     "\006\000\000\000\000\000\001\212\011\000\000\000\000\000\000\000\000\100\212\011\000\000\000\000\000\000"
     "\000\000\300\107\100\004\000\000\000\000\000\000\214\006\164\303\244\000\170\164\224\103\005\142\171\164"
     "\145\163\224\113\001\113\002\113\003\207\224\175\224\050\113\001\214\001\141\224\214\001\142\224\135\224"
     "\113\007\141\165\217\224\050\113\011\220\214\013\143\157\154\154\145\143\164\151\157\156\163\224\214\013"
     "\117\162\144\145\162\145\144\104\151\143\164\224\223\224\051\122\224\214\001\172\224\113\001\163\214\001"
     "\155\224\214\001\113\224\223\224\113\001\205\224\175\224\150\005\113\002\163\222\224\175\224\214\001\170"
     "\224\113\005\163\142\145\056",
     189},
};

typedef struct memory {
    const char *bytes;
    size_t n;
} memory;

static ssize_t read_memory(void *context, void *p, size_t n, uint64_t at)
{
    const memory *m = context;
    const size_t left = at < m->n ? m->n - (size_t)at : 0;
    if (n > left)
        n = left;
    memcpy(p, m->bytes + at, n);
    return (ssize_t)n;
}

static pickle *read_bytes(const char *bytes, size_t n, const pickle_rules *rules, pickle_error *e)
{
    memory m = {bytes, n};
    const pickle_source source = {read_memory, &m, 0, n};
    const pickle_rules all = {.max_bytes = 1 << 20, .max_memory = 1 << 20};
    return pickle_read(&source, rules ? rules : &all, e);
}

static int64_t number(const pickle *p, pickle_ref r)
{
    int64_t i = INT64_MIN;
    ck_assert_int_eq(pickle_int(p, r, &i), 0);
    return i;
}

START_TEST(every_type_in_every_protocol)
{
    pickle_error e;
    pickle *p = read_bytes(pickled[_i].bytes, pickled[_i].n, NULL, &e);
    ck_assert_msg(p != NULL, "%s", e.text);
    const pickle_ref root = pickle_root(p);
    pickle_ref item[16];
    ck_assert_uint_eq(pickle_end(p), pickled[_i].n);
    ck_assert(pickle_type_of(p, root) == PICKLE_LIST && pickle_count(p, root) == 16);
    for (size_t i = 0; i < 16; i++)
        item[i] = pickle_item(p, root, i);
    ck_assert(pickle_type_of(p, item[0]) == PICKLE_NONE);
    ck_assert(number(p, item[1]) == 1 && number(p, item[2]) == 0);
    if (_i >= 2) /* protocol 0 and 1 write I01, which is a bool, too */
        ck_assert(pickle_type_of(p, item[1]) == PICKLE_BOOL);
    ck_assert(number(p, item[3]) == -5 && number(p, item[4]) == 300 && number(p, item[5]) == (int64_t)1 << 40);
    size_t n;
    const unsigned char *big = pickle_big(p, item[6], &n);
    ck_assert(big && n == 9 && memcmp(big, "\0\0\0\0\0\0\0\0\x40", 9) == 0);
    big = pickle_big(p, item[7], &n);
    ck_assert(big && n == 9 && memcmp(big, "\0\0\0\0\0\0\0\0\xc0", 9) == 0);
    double d = 0;
    ck_assert(pickle_float(p, item[8], &d) == 0 && d == 2.5);
    const char *text = pickle_text(p, item[9], &n);
    ck_assert(text && n == 6 && memcmp(text, "t\xc3\xa4\0xt", 7) == 0);
    if (_i >= 3) {
        pickle_bytes b;
        ck_assert(pickle_type_of(p, item[10]) == PICKLE_BYTES && pickle_data(p, item[10], &b) == 0 && b.n == 5);
        ck_assert(b.coding == PICKLE_PLAIN && memcmp(pickled[_i].bytes + b.at, "bytes", 5) == 0);
    } else {
        ck_assert_str_eq(pickle_global(p, item[10]), "_codecs.encode");
        ck_assert(pickle_is_text(p, pickle_item(p, pickle_args(p, item[10]), 0), "bytes"));
    }
    ck_assert(pickle_type_of(p, item[11]) == PICKLE_TUPLE && number(p, pickle_item(p, item[11], 2)) == 3);
    ck_assert(pickle_item(p, item[11], 3) == PICKLE_ABSENT);
    ck_assert(pickle_count(p, item[12]) == 2 && number(p, pickle_key(p, item[12], 0)) == 1);
    ck_assert(number(p, pickle_item(p, pickle_get(p, item[12], "b"), 0)) == 7 && !pickle_get(p, item[12], "c"));
    ck_assert(pickle_type_of(p, item[13]) == (_i >= 4 ? PICKLE_SET : PICKLE_OBJECT));
    ck_assert_str_eq(pickle_global(p, item[14]), "collections.OrderedDict");
    ck_assert(_i < 4 || number(p, pickle_get(p, item[14], "z")) == 1);
    if (_i >= 4) {
        ck_assert_str_eq(pickle_global(p, item[15]), "m.K");
        ck_assert(pickle_use_of(p, item[15]) == PICKLE_MADE &&
                  number(p, pickle_item(p, pickle_args(p, item[15]), 0)) == 1);
        ck_assert(number(p, pickle_get(p, pickle_kwargs(p, item[15]), "a")) == 2);
    }
    ck_assert(number(p, pickle_get(p, pickle_state(p, item[15]), "x")) == 5);
    pickle_free(p);
}

START_TEST(every_prefix_is_refused)
{
    for (size_t n = 0; n < pickled[_i].n; n++) {
        pickle_error e;
        ck_assert(read_bytes(pickled[_i].bytes, n, NULL, &e) == NULL);
        ck_assert(e.what == PICKLE_BAD && e.at <= n && e.text[0]);
    }
}

/* Strings and objects as Python 2 wrote them; what Python's own unpickler makes of each. */
START_TEST(what_python_2_wrote)
{
    static const struct {
        const char *bytes, *text;
    } strings[] = {
        {"S'it\\'s'\n.", "it's"}, {"S\"a\\tb\\n\\x41\\101\\08\\\\\"\n.", "a\tb\nAA\0008\\"},
        {"S'\\q'\n.", "\\q"}, /* what is no escape stays */
        {"S''\n.", ""},           {"V\\u0041\\U00000042\\n\n.", "AB\\n"},
    };
    static const struct {
        const char *bytes, *why;
    } bad[] = {
        {"Sabc\n.", ""},
        {"S'abc\"\n.", ""},
        {"S'abc\\'\n.", ""},
        {"V\\u00g0\n.", ""},
        {"V\\U00110000\n.", ""},
        {"V\\u004\n.", ""},
        {"(o.", "not a class"},
        {"(I1\no.", "global expected"},
        {"I1\n(io\nx\nN\x92.", ""},
    };
    pickle_error e;
    for (size_t i = 0; i < sizeof strings / sizeof strings[0]; i++) {
        pickle *p = read_bytes(strings[i].bytes, strlen(strings[i].bytes), NULL, &e);
        size_t n = 0;
        ck_assert_msg(p != NULL, "%s: %s", strings[i].bytes, e.text);
        const char *text = pickle_text(p, pickle_root(p), &n);
        const size_t wanted = i == 1 ? 9 : strlen(strings[i].text);
        ck_assert_msg(text && n == wanted && memcmp(text, strings[i].text, n) == 0, "%s: %zu bytes", strings[i].bytes,
                      n);
        pickle_free(p);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ck_assert_msg(!read_bytes(bad[i].bytes, strlen(bad[i].bytes), NULL, &e), "%s", bad[i].bytes);
        ck_assert_msg(e.what == PICKLE_BAD && strstr(e.text, bad[i].why), "%s: %s", bad[i].bytes, e.text);
    }
    static const char *const objects[] = {"(I7\nim\nK\n.", "(cm\nK\nI7\no."};
    for (size_t i = 0; i < 2; i++) {
        pickle *p = read_bytes(objects[i], strlen(objects[i]), NULL, &e);
        ck_assert_msg(p != NULL, "%s: %s", objects[i], e.text);
        ck_assert_str_eq(pickle_global(p, pickle_root(p)), "m.K");
        ck_assert(pickle_use_of(p, pickle_root(p)) == PICKLE_CALLED);
        ck_assert_int_eq(number(p, pickle_item(p, pickle_args(p, pickle_root(p)), 0)), 7);
        pickle_free(p);
    }
}

/* A literal that is too long to be kept in memory: where it lies, without its quotes. */
START_TEST(bug_20261127_long_literals_of_python_2)
{
    enum { N = 100000 };
    char *line = malloc(N + 3);
    pickle_error e;
    memset(line, 'x', N);
    memcpy(line, "S'", 2);
    memcpy(line + N, "'\n.", 3);
    pickle *p = read_bytes(line, N + 3, NULL, &e);
    pickle_bytes data;
    ck_assert_msg(p != NULL, "%s", p ? "" : e.text);
    ck_assert(pickle_data(p, pickle_root(p), &data) == 0 && !data.memory);
    ck_assert(data.at == 2 && data.n == N - 2 && data.coding == PICKLE_QUOTED);
    pickle_free(p);
    line[1] = '"';
    ck_assert(!read_bytes(line, N + 3, NULL, &e) && strstr(e.text, "not a string"));
    line[1] = line[N] = 'x';
    ck_assert(!read_bytes(line, N + 3, NULL, &e) && strstr(e.text, "not a string"));
    free(line);
}

/* Elements that lie in a text: Latin-1 in UTF-8, in escapes of protocol 0, in any cut. */
START_TEST(bytes_in_texts)
{
    static const struct {
        pickle_coding coding;
        const char *text;
        long n; /* -1: refused */
        const char *bytes;
    } rows[] = {
        {PICKLE_UTF8, "a\xc3\xa4\xc2\x80", 3, "a\xe4\x80"},
        {PICKLE_UTF8, "\xc4\x80", -1, ""}, /* above Latin-1 */
        {PICKLE_UTF8, "a\xc3", -1, ""},
        {PICKLE_ESCAPED, "a\xe4\\u0041\\n", 5,
         "a\xe4"
         "A\\n"},
        {PICKLE_ESCAPED, "\\u00ff\\u000a", 2, "\xff\n"},
        {PICKLE_ESCAPED, "\\u0100", -1, ""},
        {PICKLE_ESCAPED, "\\U00000041", -1, ""},
        {PICKLE_ESCAPED, "\\u00", -1, ""},
        {PICKLE_PLAIN, "a\\u", 3, "a\\u"},
        {PICKLE_QUOTED, "it's\\'", 5, "it's'"},
        {PICKLE_QUOTED, "\\t\\x41\\101\\18\\\\\\q\\xg", 11, "\tAA\0018\\\\q\\xg"},
        {PICKLE_QUOTED, "\\377\\1", 2, "\377\1"},
        {PICKLE_QUOTED, "\\x4", 3, "\\x4"},
        {PICKLE_QUOTED, "a\\", -1, ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const size_t n = strlen(rows[i].text);
        for (size_t cut = 0; cut <= n; cut++) { /* a window, and the rest with what the first left */
            char out[32];
            size_t used = 0, rest = 0;
            const long first = pickle_decode(rows[i].coding, rows[i].text, cut, 0, out, &used);
            const long last = first < 0
                                  ? -1
                                  : pickle_decode(rows[i].coding, rows[i].text + used, n - used, 1, out + first, &rest);
            const long all = last < 0 ? -1 : first + last;
            ck_assert_msg(all == rows[i].n && (all < 0 || memcmp(out, rows[i].bytes, (size_t)all) == 0),
                          "row %zu, cut at %zu: %ld", i, cut, all);
        }
    }
}

static const char *refuse_os(void *context, const pickle *p, pickle_ref what, pickle_use use)
{
    const char *name = pickle_global(p, what);
    *(int *)context += use == PICKLE_CALLED;
    return name && strncmp(name, "os.", 3) == 0 ? name : NULL;
}

START_TEST(what_rules_refuse)
{
    pickle_error e;
    int calls = 0;
    const pickle_rules rules = {.max_bytes = 100, .max_memory = 1 << 20, .refused = refuse_os, .context = &calls};
    static const char called[] = "cposix\nsystem\n(Vx\ntR.", named[] = "cos\nsystem\n.";
    pickle *p = read_bytes(called, sizeof called - 1, &rules, &e);
    ck_assert(p && calls == 1 && pickle_use_of(p, pickle_root(p)) == PICKLE_CALLED);
    pickle_free(p);
    ck_assert(!read_bytes(named, sizeof named - 1, &rules, &e));
    ck_assert_str_eq(e.text, "refused: global os.system");
    ck_assert(!read_bytes(pickled[0].bytes, pickled[0].n, &rules, &e) && strstr(e.text, "above the cap of 100"));
    const pickle_rules small = {.max_bytes = 1 << 20, .max_memory = 600};
    ck_assert(!read_bytes(pickled[0].bytes, pickled[0].n, &small, &e) && strstr(e.text, "of memory"));
}

int main(void)
{
    const int n = sizeof pickled / sizeof pickled[0];
    TCase *c = test_case("pickle", 10);
    tcase_add_loop_test(c, every_type_in_every_protocol, 0, n);
    tcase_add_loop_test(c, every_prefix_is_refused, 0, n);
    tcase_add_test(c, what_python_2_wrote);
    tcase_add_test(c, bug_20261127_long_literals_of_python_2);
    tcase_add_test(c, bytes_in_texts);
    tcase_add_test(c, what_rules_refuse);
    TCase *const cases[] = {c, NULL};
    return test_main("pickle", cases);
}
