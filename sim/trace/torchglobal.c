/* torchglobal.c -- which globals the pickles of PyTorch may name, and what they mean to a reader of tensors.
 *
 * Nothing is called, whatever a pickle says, so that this is not what protects the reader: it tells a file of
 * tensors from a file that was made to run something, and what is understood from what would be left out in
 * silence. The rule:
 *   - What is in the table is read.
 *   - A class outside the table may be named, and objects made of it (by __new__, which takes no other code)
 *     are kept as data: what is in them is read under their paths, and a note names the class.
 *   - What a class outside the table is called with (REDUCE, OBJ, INST) is data in the same way: that is how
 *     enumerations and settings are pickled, TrainingArguments of transformers with those of accelerate.
 *   - A call of a function outside the table is refused; so is what belongs to a module that runs, loads or
 *     writes something, wherever it stands.
 * Sources: the allow-list of torch/_weights_only_unpickler.py of PyTorch 2.6.0; the pickles of seven versions. */
#include "torch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* clang-format off */
static const torch_global rows[] = { /* in the order of strcmp */
    {"_codecs.encode", TORCH_ENCODED, {0}},
    {"argparse.Namespace", TORCH_DATA, {0}},
    {"builtins.bool", TORCH_VALUE, {0}},
    {"builtins.bytearray", TORCH_VALUE, {0}},
    {"builtins.bytes", TORCH_VALUE, {0}},
    {"builtins.complex", TORCH_VALUE, {0}},
    {"builtins.dict", TORCH_CONTENT, {0}},
    {"builtins.float", TORCH_VALUE, {0}},
    {"builtins.frozenset", TORCH_VALUE, {0}},
    {"builtins.getattr", TORCH_VALUE, {0}},
    {"builtins.int", TORCH_VALUE, {0}},
    {"builtins.list", TORCH_CONTENT, {0}},
    {"builtins.long", TORCH_VALUE, {0}},
    {"builtins.object", TORCH_VALUE, {0}},
    {"builtins.range", TORCH_VALUE, {0}},
    {"builtins.set", TORCH_VALUE, {0}},
    {"builtins.slice", TORCH_VALUE, {0}},
    {"builtins.str", TORCH_VALUE, {0}},
    {"builtins.tuple", TORCH_CONTENT, {0}},
    {"builtins.type", TORCH_VALUE, {0}},
    {"builtins.xrange", TORCH_VALUE, {0}},
    {"collections.Counter", TORCH_CONTENT, {0}},
    {"collections.OrderedDict", TORCH_CONTENT, {0}},
    {"collections.defaultdict", TORCH_DATA, {0}},
    {"collections.deque", TORCH_CONTENT, {0}},
    {"copyreg._reconstructor", TORCH_DATA, {0}},
    {"datetime.date", TORCH_VALUE, {0}},
    {"datetime.datetime", TORCH_VALUE, {0}},
    {"datetime.time", TORCH_VALUE, {0}},
    {"datetime.timedelta", TORCH_VALUE, {0}},
    {"datetime.timezone", TORCH_VALUE, {0}},
    {"decimal.Decimal", TORCH_VALUE, {0}},
    {"fractions.Fraction", TORCH_VALUE, {0}},
    {"functools.partial", TORCH_DATA, {0}},
    {"jax._src.array._reconstruct_array", TORCH_ARRAY, {0}},
    {"numpy.core.multiarray._reconstruct", TORCH_ARRAY, {0}},
    {"numpy.core.multiarray.scalar", TORCH_SCALAR, {0}},
    {"numpy.core.numeric._frombuffer", TORCH_ARRAY, {0}},
    {"numpy.dtype", TORCH_VALUE, {0}},
    {"numpy.ndarray", TORCH_VALUE, {0}},
    {"numpy.random._pickle.__bit_generator_ctor", TORCH_DATA, {0}},
    {"numpy.random._pickle.__generator_ctor", TORCH_DATA, {0}},
    {"numpy.random._pickle.__randomstate_ctor", TORCH_DATA, {0}},
    {"pathlib.Path", TORCH_VALUE, {0}},
    {"pathlib.PosixPath", TORCH_VALUE, {0}},
    {"pathlib.PurePosixPath", TORCH_VALUE, {0}},
    {"pathlib.WindowsPath", TORCH_VALUE, {0}},
    {"torch.Size", TORCH_VALUE, {0}},
    {"torch._tensor._rebuild_from_type", TORCH_FROM_TYPE, {0}},
    {"torch._tensor._rebuild_from_type_v2", TORCH_FROM_TYPE, {0}},
    {"torch._utils._rebuild_device_tensor_from_cpu_tensor", TORCH_ARGUMENT, {0}},
    {"torch._utils._rebuild_device_tensor_from_numpy", TORCH_ARGUMENT, {0}},
    {"torch._utils._rebuild_meta_tensor_no_storage", TORCH_NOWHERE, {0, 1}},
    {"torch._utils._rebuild_nested_tensor", TORCH_PARTS, {0}},
    {"torch._utils._rebuild_parameter", TORCH_ARGUMENT, {0}},
    {"torch._utils._rebuild_parameter_with_state", TORCH_ARGUMENT, {0}},
    {"torch._utils._rebuild_qtensor", TORCH_TENSOR, {0, 1, 2, 3, -1, -1}},
    {"torch._utils._rebuild_sparse_csr_tensor", TORCH_SPARSE, {0}},
    {"torch._utils._rebuild_sparse_tensor", TORCH_SPARSE, {0}},
    {"torch._utils._rebuild_tensor", TORCH_TENSOR, {0, 1, 2, 3, -1, -1}},
    {"torch._utils._rebuild_tensor_v2", TORCH_TENSOR, {0, 1, 2, 3, -1, 6}},
    {"torch._utils._rebuild_tensor_v3", TORCH_TENSOR, {0, 1, 2, 3, 6, 7}},
    {"torch._utils._rebuild_wrapper_subclass", TORCH_NOWHERE, {1, 2}},
    {"torch._utils._rebuild_xla_tensor", TORCH_ARGUMENT, {0}},
    {"torch.autograd.variable.Variable", TORCH_ARGUMENT, {0}},
    {"torch.device", TORCH_VALUE, {0}},
    {"torch.jit._pickle.build_boollist", TORCH_ARGUMENT, {0}},
    {"torch.jit._pickle.build_doublelist", TORCH_ARGUMENT, {0}},
    {"torch.jit._pickle.build_intlist", TORCH_ARGUMENT, {0}},
    {"torch.jit._pickle.build_tensorlist", TORCH_ARGUMENT, {0}},
    {"torch.jit._pickle.restore_type_tag", TORCH_ARGUMENT, {0}},
    {"torch.nn.backends.thnn._get_thnn_function_backend", TORCH_VALUE, {0}},
    {"torch.nn.parameter.Parameter", TORCH_ARGUMENT, {0}},
    {"torch.serialization._get_layout", TORCH_VALUE, {0}},
    {"torch.storage._load_from_bytes", TORCH_BYTES, {0}},
    {"torch.torch.Size", TORCH_VALUE, {0}},
    {"types.SimpleNamespace", TORCH_DATA, {0}},
    {"uuid.UUID", TORCH_VALUE, {0}},
};

/* Modules, and what is below them: nothing of them is in a file of tensors but to do something. */
static const char *const refused[] = {
    "_bootlocale", "_io", "_osx_support", "_pickle", "_posixsubprocess", "_winapi", "aiohttp", "ast", "asyncio",
    "bdb", "builtins", "cProfile", "cloudpickle", "code", "codecs", "codeop", "concurrent", "ctypes", "dill", "distutils",
    "doctest", "ensurepip", "fileinput", "ftplib", "gc", "glob", "http", "httplib", "idlelib", "imaplib", "imp", "importlib",
    "inspect", "io", "lib2to3", "linecache", "logging.config", "mailcap", "marshal", "mmap", "multiprocessing", "nntplib",
    "nt", "ntpath", "numpy.distutils", "numpy.f2py", "numpy.fromfile", "numpy.load", "numpy.loadtxt", "numpy.memmap", "numpy.save",
    "numpy.testing", "operator", "os", "pathlib", "pdb", "pickle", "pip", "pkgutil", "platform", "popen2", "poplib", "posix",
    "posixpath", "profile", "pty", "pydoc", "requests", "runpy", "safetensors", "setuptools", "shelve",
    "shlex", "shutil", "signal", "site", "smtplib", "socket", "socketserver", "sqlite3", "ssl", "subprocess", "symtable", "sys",
    "sysconfig", "tarfile", "telnetlib", "tempfile", "threading", "timeit", "torch._dynamo", "torch._inductor",
    "torch.classes", "torch.compile", "torch.distributed.elastic", "torch.distributed.run", "torch.hub", "torch.jit.load",
    "torch.load", "torch.ops", "torch.package", "torch.save", "torch.serialization", "torch.storage",
    "torch.utils._config_module", "torch.utils.bottleneck", "torch.utils.collect_env", "torch.utils.cpp_extension",
    "torch.utils.data", "traceback", "types", "urllib", "urllib2", "urllib3", "uuid", "venv", "webbrowser", "wsgiref",
    "xmlrpc", "zipfile", "zipimport",
};

/* Packages whose functions of classes may be called, too: they make what checkpoints hold, tensors of their own. */
static const char *const packages[] = {
    "__torch__", "apex", "deepspeed", "enum", "fairscale", "fairseq", "lightning", "lightning_fabric", "megatron", "nemo",
    "numpy", "omegaconf", "pytorch_lightning", "torch", "torchao", "torchvision", "transformer_engine",
    "transformer_engine_torch", "transformers",
};
/* clang-format on */

static int compare(const void *name, const void *row)
{
    return strcmp(name, ((const torch_global *)row)->name);
}

/* Other versions of Python and numpy have other names for some modules. */
static const char *plain_name(const char *name, char *out, size_t size)
{
    static const char *const others[][2] = {{"__builtin__.", "builtins."},
                                            {"copy_reg.", "copyreg."},
                                            {"numpy._core.", "numpy.core."},
                                            {"torch.tensor.", "torch._tensor."}};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        const size_t n = strlen(others[i][0]);
        if (strncmp(name, others[i][0], n) == 0) {
            snprintf(out, size, "%s%s", others[i][1], name + n);
            return out;
        }
    }
    return name;
}

const torch_global *trace_torch_global_find(const char *name)
{
    char plain[TORCH_GLOBAL_MAX];
    return name ? bsearch(plain_name(name, plain, sizeof plain), rows, sizeof rows / sizeof rows[0], sizeof rows[0],
                          compare)
                : NULL;
}

/* Whether a name is one of a list, or within one. */
static int is_within(const char *name, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const size_t k = strlen(list[i]);
        if (strncmp(name, list[i], k) == 0 && (name[k] == '.' || name[k] == 0))
            return 1;
    }
    return 0;
}

static int is_capital(const char *s)
{
    return *s >= 'A' && *s <= 'Z';
}

/* Whether the name is that of a class: its last word is capitalised, behind underscores. */
static int is_class(const char *name)
{
    const char *last = strrchr(name, '.');
    return last && is_capital(last + 1 + strspn(last + 1, "_"));
}

/* Whether it is that of what belongs to a class: "Float8Tensor._make". */
static int is_of_class(const char *name)
{
    const char *last = strrchr(name, '.'), *before = last;
    while (before && before > name && before[-1] != '.')
        before--;
    return before && is_capital(before);
}

const char *trace_torch_callable(const pickle *p, pickle_ref callable, char *out, size_t size)
{
    const char *name = pickle_global(p, callable);
    size_t n;
    switch (pickle_type_of(p, callable)) {
    case PICKLE_GLOBAL:
        return name;
    case PICKLE_PERSISTENT: { /* a class with its source: ('module', class, file, source) */
        const pickle_ref id = pickle_persistent(p, callable);
        return pickle_is_text(p, pickle_item(p, id, 0), "module") ? pickle_global(p, pickle_item(p, id, 1)) : NULL;
    }
    case PICKLE_OBJECT: { /* getattr(class, method) */
        const char *of = pickle_global(p, pickle_item(p, pickle_args(p, callable), 0));
        const char *method = pickle_text(p, pickle_item(p, pickle_args(p, callable), 1), &n);
        char plain[TORCH_GLOBAL_MAX];
        if (!of || !method || !name || strcmp(plain_name(name, plain, sizeof plain), "builtins.getattr") != 0)
            return NULL;
        snprintf(out, size, "%s.%s", of, method);
        return out;
    }
    default:
        return NULL;
    }
}

/* The name of what would be called, or made; see trace_torch_callable. */
static const char *refused_use(const char *name, pickle_use use)
{
    char copy[TORCH_GLOBAL_MAX];
    const char *plain = plain_name(name, copy, sizeof copy);
    const torch_global *row = trace_torch_global_find(plain);
    if (row)
        return NULL;
    if (is_within(plain, refused, sizeof refused / sizeof refused[0]))
        return trace_torch_storage_find(plain) || trace_torch_storage_untyped(plain) ||
                       strcmp(plain, "torch.storage.TypedStorage") == 0
                   ? NULL
                   : name;
    if (use != PICKLE_CALLED || is_class(plain) ||
        (is_of_class(plain) && is_within(plain, packages, sizeof packages / sizeof packages[0])))
        return NULL;
    return name;
}

const char *trace_torch_refused(void *context, const pickle *p, pickle_ref what, pickle_use use)
{
    const char *name = trace_torch_callable(p, what, context, TORCH_GLOBAL_MAX);
    return name ? refused_use(name, use) : "expected, found another value";
}
