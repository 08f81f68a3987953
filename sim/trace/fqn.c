/* fqn.c -- the name of a parameter or module, from what a convention found in the name of a tensor: with dots where
 * trees have slashes, without what wrappers put before names. */
#include "kinds.h"

#include <string.h>

/* torch.distributed.fsdp, torch.compile, torch.utils.checkpoint (PyTorch 2.5); DeepSpeed's strategy of Lightning 2.4 */
static const char *const wrappers[] = {"_fsdp_wrapped_module.", "_orig_mod.", "_checkpoint_wrapped_module.",
                                       "_forward_module."};

static size_t wrapper_at(const char *s)
{
    for (size_t i = 0; i < sizeof wrappers / sizeof wrappers[0]; i++)
        if (strncmp(s, wrappers[i], strlen(wrappers[i])) == 0)
            return strlen(wrappers[i]);
    return 0;
}

/* Whether there may be a wrapper: a word that begins with '_'. */
static int may_be_wrapped(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (s[i] == '_' && (i == 0 || s[i - 1] == '.'))
            return 1;
    return 0;
}

/* In place. */
static void unwrap(char *s)
{
    char *to = s;
    for (const char *from = s; *from;) {
        const size_t n = from == s || from[-1] == '.' ? wrapper_at(from) : 0;
        if (n)
            from += n;
        else
            *to++ = *from++;
    }
    *to = '\0';
}

static size_t put(char *to, convention_part p, const char *before)
{
    size_t n = 0;
    if (!p.n)
        return 0;
    while (*before)
        to[n++] = *before++;
    for (size_t i = 0; i < p.n; i++)
        to[n++] = (char)(p.at[i] == '/' ? '.' : p.at[i]);
    return n;
}

const char *trace_kinds_fqn(trace *t, const char *name, const convention_match *m)
{
    const size_t n_name = strlen(name), most = m->fqn.n + m->leaf.n + m->call.n + strlen(m->ends) + 3;
    if (t->arena_bytes + most > TRACE_MEMORY + t->max_header)
        return NULL;
    /* most names end with it */
    const int plain = !memchr(m->fqn.at, '/', m->fqn.n) && !may_be_wrapped(m->fqn.at, m->fqn.n);
    if (plain && !m->leaf.n && !m->call.n && !*m->ends && m->fqn.at + m->fqn.n == name + n_name)
        return m->fqn.at;
    char *fqn = trace_alloc(t, most);
    if (!fqn)
        return NULL;
    size_t n = put(fqn, m->fqn, "");
    n += put(fqn + n, m->leaf, ".");
    n += put(fqn + n, m->call, ".");
    strcpy(fqn + n, m->ends);
    unwrap(fqn);
    return fqn;
}

int trace_kinds_is_number(const char *fqn)
{
    return *fqn && fqn[strspn(fqn, "0123456789")] == '\0';
}

const char *trace_kinds_bare_fqn(const char *name, char *to, size_t size)
{
    const size_t n = strlen(name);
    if (n >= size)
        return NULL;
    to[put(to, (convention_part){name, n}, "")] = '\0';
    unwrap(to);
    return to;
}
