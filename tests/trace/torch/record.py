#!/usr/bin/env python3
"""Records small files of torch and what torch itself reads from them.

record.py make DIR          files into DIR/torch-VERSION/, digests.txt and scalars.txt there
record.py digest FILE...    the lines of digests (to standard output) and scalars (with --scalars) of files, as this torch loads them

Runs from torch 1.0 (Python 3.7) on.
"""
from __future__ import print_function
import collections, ctypes, hashlib, io, os, pickle, struct, sys, types, warnings, zipfile
import numpy as np
import torch
import torch.nn as nn
warnings.simplefilter('ignore')
V = torch.__version__.split('+')[0]
VT = tuple(int(x) for x in V.split('.')[:2])

def fill(shape, seed, dtype=None):
    """numbers from a fixed recipe (no generator of torch: versions differ)"""
    n = int(np.prod(shape)) if len(shape) else 1
    k = (np.arange(n, dtype=np.uint64) * np.uint64(2654435761) + np.uint64(seed * 40503)) % np.uint64(1 << 20)
    x = ((k.astype(np.float64) / (1 << 19)) - 1.0)
    t = torch.from_numpy(x.reshape(shape).copy())
    return t.to(dtype if dtype is not None else torch.float32)

class Net(nn.Module):
    def __init__(self):
        super(Net, self).__init__()
        self.conv = nn.Conv2d(1, 2, 2)
        self.bn = nn.BatchNorm2d(2)
        self.fc = nn.Linear(2, 3)
        self.register_buffer('scale', torch.tensor(0.5))
        self.tag = 'net'
    def forward(self, x):
        return self.fc(self.bn(self.conv(x)).mean(dim=3).mean(dim=2)) * self.scale

def net():
    m = Net()
    with torch.no_grad():
        for i, p in enumerate(m.parameters()):
            p.copy_(fill(tuple(p.shape), i + 1))
    return m

def trained():
    m = net()
    Opt = getattr(torch.optim, 'AdamW', torch.optim.Adam)
    o = Opt(m.parameters(), lr=1e-2)
    for s in range(2):
        o.zero_grad()
        m(fill((2, 1, 3, 3), 70 + s)).pow(2).sum().backward()
        o.step()
    return m, o

def hook(g):
    return g

class Sub(torch.Tensor):
    pass

class Args(object):
    def __init__(self):
        self.lr = 0.1
        self.name = 'args'

DTYPES = ['float32', 'float64', 'float16', 'bfloat16', 'bool', 'uint8', 'int8', 'int16', 'int32', 'int64', 'uint16', 'uint32', 'uint64',
    'complex32', 'complex64', 'complex128', 'float8_e4m3fn', 'float8_e5m2', 'float8_e4m3fnuz', 'float8_e5m2fnuz', 'float8_e8m0fnu',
    'float4_e2m1fn_x2', 'int1', 'int2', 'int3', 'int4', 'int5', 'int6', 'int7', 'uint1', 'uint2', 'uint3', 'uint4', 'uint5', 'uint6', 'uint7', 'bits8', 'bits16', 'bits1x8', 'bits2x4', 'bits4x2']

def of_dtype(name):
    """a tensor of 2 x 3 with every byte different (or of booleans)"""
    dt = getattr(torch, name)
    if name == 'bool':
        return torch.tensor([[1, 0, 1], [0, 0, 1]], dtype=torch.uint8).to(dt)
    size = {'complex128': 16, 'float64': 8, 'int64': 8, 'uint64': 8, 'complex64': 8, 'float32': 4, 'int32': 4, 'uint32': 4, 'complex32': 4,
        'float16': 2, 'bfloat16': 2, 'int16': 2, 'uint16': 2, 'bits16': 2}.get(name, 1)
    raw = np.array([(i * 37 + 11) % 120 for i in range(6 * size)], dtype=np.uint8)
    if hasattr(torch.Tensor, 'view') and VT >= (1, 8):
        return torch.from_numpy(raw).view(dt).reshape(2, 3)
    t = torch.zeros(2, 3, dtype=dt)
    ctypes.memmove(t.data_ptr(), raw.tobytes(), len(raw))
    return t

OUT = None
SKIP = []
def put(name, fn):
    path = os.path.join(OUT, name)
    try:
        b = fn()
        with open(path, 'wb') as f:
            f.write(b)
    except Exception as e:
        SKIP.append('%s\t%s: %s' % (name, type(e).__name__, str(e).split('\n')[0][:160]))
        if os.path.exists(path):
            os.remove(path)

def saved(obj, **kw):
    f = io.BytesIO()
    torch.save(obj, f, **kw)
    return f.getvalue()

if VT >= (1, 4):
    FORMS = [('zip', {'_use_new_zipfile_serialization': True}), ('legacy', {'_use_new_zipfile_serialization': False})]
else:
    FORMS = [('legacy', {})]

def objects():
    base = fill((4, 6), 5)
    big = fill((40, 10), 6)
    m, o = trained()
    yield 'state_dict', m.state_dict()
    class NS(object): pass
    yield 'train', {'model': m.state_dict(), 'optimizer': o.state_dict(), 'epoch': 3, 'step': 1234, 'loss_scale': 65536.0,
        'args': {'lr': 1e-3, 'name': u'r\u00e9sum\u00e9', 'flags': [True, False, None], 'big': 1 << 70, 'neg': -5, 'betas': (0.9, 0.999), 'raw': b'\x00\xff'},
        'history': [0.5, float('inf'), float('nan')], 'size': torch.Size([2, 3]), 'dtype': torch.float16, 'device': torch.device('cpu')}
    yield 'module', m
    yield 'tensor', base
    yield 'list', [base, (fill((3,), 8), [fill((2,), 9)])]
    yield 'parameter', nn.Parameter(fill((2, 2), 10))
    yield 'parameters', {'w': nn.Parameter(fill((2, 2), 10)), 'frozen': nn.Parameter(fill((2,), 11), requires_grad=False)}
    yield 'shared', {'all': base, 'row': base[1], 'col': base[:, 2], 'block': base[1:3, 2:5], 't': base.t(), 'again': base}
    yield 'views', {'offset': base.view(-1)[7:11], 'transposed': base.t(), 'expanded': fill((3, 1), 12).expand(3, 5), 'scalar_expanded': torch.tensor(2.5).expand(2, 3),
        'narrow': big.narrow(0, 33, 2), 'zerodim': torch.tensor(-1.25), 'empty': torch.zeros(0), 'empty2': torch.zeros(3, 0, 2), 'every2': base[::2],
        'every2b': base.view(-1)[1::2], 'diag': torch.from_numpy(np.lib.stride_tricks.as_strided(np.zeros(1), (1,), (8,))) if False else base.as_strided((4,), (7,), 0) if hasattr(base, 'as_strided') else base,
        'overlap': torch.arange(10, dtype=torch.float32).as_strided((4, 4), (2, 1)), 'permuted': fill((2, 3, 4), 13).permute(2, 0, 1), 'one': fill((1, 1, 5), 14).expand(1, 1, 5)}
    yield 'keys', collections.OrderedDict([('', torch.zeros(1)), ('a/b', torch.ones(1)), (u'\u03b1', torch.ones(2)), (7, torch.ones(3)), ((1, 'x'), torch.ones(4)),
        ('tab\there', torch.ones(5)), (True, torch.ones(6)), (2.5, torch.ones(7)), ('nest', {'': {'x': torch.ones(8)}})])
    yield 'containers', {'default': collections.defaultdict(list, {'x': [torch.ones(1)]}), 'counter': collections.Counter('aab'), 'set': {1, 2}, 'frozen': frozenset([3]),
        'deque': collections.deque([1, 2]), 'tuple0': (), 'tuple4': (1, 2, 3, torch.ones(2)), 'complex': 1 + 2j, 'bytearray': bytearray(b'ab'), 'range': range(3), 'slice': slice(1, 2)}
    yield 'namespace', {'args': Args(), 'w': torch.ones(2)}
    import argparse
    yield 'argparse', {'args': argparse.Namespace(lr=0.1, w=torch.ones(2)), 'state_dict': {'w': fill((2, 3), 15)}}
    h = fill((3,), 16).requires_grad_()
    h.register_hook(hook)
    yield 'hooks', {'h': h, 'g': fill((3,), 17).requires_grad_()}
    yield 'numpy', {'a': np.arange(6, dtype=np.float32).reshape(2, 3), 'f': np.asfortranarray(np.arange(6, dtype=np.float64).reshape(2, 3)), 'be': np.arange(3, dtype='>f4'),
        's': np.float64(2.5), 'i': np.int64(7), 'str': np.array(['ab', 'c']), 'obj': np.array([1, 'x'], dtype=object), 't': torch.ones(2), 'zero': np.zeros((0, 3), np.float16), 'zd': np.array(3.0)}

def each_dtype():
    d = collections.OrderedDict()
    for n in DTYPES:
        if not hasattr(torch, n):
            continue
        try:
            t = of_dtype(n)
            saved(t)
            d[n] = t
        except Exception as e:
            SKIP.append('dtype %s\t%s: %s' % (n, type(e).__name__, str(e).split('\n')[0][:160]))
    return d

def specials():
    if hasattr(torch, 'channels_last'):
        yield 'channels_last', lambda: {'x': fill((2, 3, 2, 2), 20).contiguous(memory_format=torch.channels_last)}
    if hasattr(torch.Tensor, 'conj') and hasattr(torch.Tensor, 'resolve_neg'):
        c = lambda: torch.complex(fill((2, 3), 21), fill((2, 3), 22))
        yield 'conj', lambda: {'c': c(), 'conj': c().conj(), 'neg': c().conj().imag, 'conjt': c().conj().t(), 'real': c().real}
    yield 'sparse', lambda: {'s': torch.sparse_coo_tensor(torch.tensor([[0, 1], [2, 0]]), torch.tensor([1.5, -2.0]), (2, 3)), 'dense': torch.ones(2)}
    yield 'sparse_csr', lambda: {'s': torch.eye(3).to_sparse_csr(), 'dense': torch.ones(2)}
    if VT >= (1, 3):
        yield 'quantized', lambda: {'q': torch.quantize_per_tensor(fill((2, 3), 23), 0.1, 3, torch.qint8), 'qu': torch.quantize_per_tensor(fill((4,), 24), 0.05, 128, torch.quint8),
            'q32': torch.quantize_per_tensor(fill((4,), 24), 0.05, 0, torch.qint32),
            'pc': torch.quantize_per_channel(fill((2, 3), 25), torch.tensor([0.1, 0.2], dtype=torch.float64), torch.tensor([0, 1]), 0, torch.qint8), 'dense': torch.ones(2)}
    yield 'meta', lambda: {'m': torch.empty(2, 3, device='meta'), 'dense': torch.ones(2)}
    yield 'subclass', lambda: {'s': fill((2, 3), 26).as_subclass(Sub), 'dense': torch.ones(2)}
    yield 'storage', lambda: {'st': fill((5,), 27).storage(), 'dense': torch.ones(2)}
    yield 'untyped_storage', lambda: {'st': fill((5,), 27).untyped_storage(), 'dense': torch.ones(2)}
    yield 'nested', lambda: {'n': torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]), 'dense': torch.ones(2)}
    yield 'attrs', lambda: with_attr()
    yield 'te_dump', te_dump
    yield 'named', lambda: {'n': fill((2, 3), 28).refine_names('a', 'b')}

def with_attr():
    t = fill((2,), 29)
    t.note = 'kept'
    p = nn.Parameter(fill((2,), 30))
    p.sharded = True
    return {'t': t, 'p': p}

def te_modules():
    """stand-ins for TransformerEngine's classes: the same globals in the pickle, nothing else"""
    import enum
    if 'transformer_engine_torch' in sys.modules:
        return
    names = ['transformer_engine', 'transformer_engine.pytorch', 'transformer_engine.pytorch.tensor', 'transformer_engine.pytorch.tensor.float8_tensor', 'transformer_engine_torch']
    for n in names:
        sys.modules[n] = types.ModuleType(n)
    mod = sys.modules[names[3]]
    class Float8Tensor(object):
        def __init__(self, data, dtype, scale, high, shape):
            self.a = (data, dtype, scale, high, shape)
        @classmethod
        def _make_in_reduce_ex(cls, data, dtype, scale, high, shape):
            return cls(data, dtype, scale, high, shape)
        def __reduce_ex__(self, protocol):
            return (Float8Tensor._make_in_reduce_ex, self.a)
    Float8Tensor.__module__ = names[3]
    Float8Tensor.__qualname__ = 'Float8Tensor'
    mod.Float8Tensor = Float8Tensor
    D = enum.Enum('DType', 'kFloat8E4M3 kFloat8E5M2')
    D.__module__ = 'transformer_engine_torch'
    D.__qualname__ = 'DType'
    sys.modules['transformer_engine_torch'].DType = D

def te_dump():
    te_modules()
    F = sys.modules['transformer_engine.pytorch.tensor.float8_tensor'].Float8Tensor
    D = sys.modules['transformer_engine_torch'].DType
    x = fill((2, 3), 31)
    return {'high_precision': x, 'quantized': F((x * 8).to(torch.uint8), D.kFloat8E4M3, torch.tensor([0.125]), torch.bfloat16, torch.Size([2, 3]))}

# ---- forged or rewritten forms ------------------------------------------------------------------------------------------
def rezip(data, change):
    """the members of a zip through change(name, bytes) -> bytes or None, stored"""
    src = zipfile.ZipFile(io.BytesIO(data))
    out = io.BytesIO()
    with zipfile.ZipFile(out, 'w', zipfile.ZIP_STORED) as z:
        for n in src.namelist():
            b = change(n, src.read(n))
            if b is not None:
                z.writestr(zipfile.ZipInfo(n, (1980, 1, 1, 0, 0, 0)), b)
    return out.getvalue()

def big_endian(data, sizes, order=b'big'):
    seen = []
    def f(n, b):
        leaf = n.split('/', 1)[1]
        if leaf == 'byteorder':
            seen.append(1)
            return order
        if leaf.startswith('data/'):
            s = sizes[int(leaf[5:])]
            return b''.join(b[i:i + s][::-1] for i in range(0, len(b), s))
        return b
    r = rezip(data, f)
    if not seen:
        out = io.BytesIO(r)
        with zipfile.ZipFile(out, 'a', zipfile.ZIP_STORED) as z:
            z.writestr(zipfile.ZipInfo(zipfile.ZipFile(io.BytesIO(r)).namelist()[0].split('/')[0] + '/byteorder', (1980, 1, 1, 0, 0, 0)), order)
        r = out.getvalue()
    return r

def big_object():
    return collections.OrderedDict([('f4', fill((2, 3), 40)), ('f8', fill((3,), 41, torch.float64)), ('i2', torch.tensor([1, 258, -3], dtype=torch.int16)), ('u1', torch.tensor([1, 2], dtype=torch.uint8)),
        ('c8', torch.complex(fill((2,), 42), fill((2,), 43)))])

def make():
    for oname, obj in objects():
        for form, kw in FORMS:
            put('%s.%s.pt' % (oname, form), lambda: saved(obj, **kw))
    small = {'w': fill((2, 3), 50), 'b': [fill((2,), 51, torch.float64), 'text', 5, 1 << 40, -1, 300, 70000, 1.5, None, True], 'long key ' * 30: torch.ones(1), 'n': {'again': 'text'}}
    for form, kw in FORMS:
        for p in range(0, pickle.HIGHEST_PROTOCOL + 1):
            put('protocol%d.%s.pt' % (p, form), lambda: saved(small, pickle_protocol=p, **kw))
            put('train_protocol%d.%s.pt' % (p, form), lambda: saved(trained()[1].state_dict(), pickle_protocol=p, **kw)) if p > 3 else None
        for n, t in each_dtype().items():
            put('dtype_%s.%s.pt' % (n, form), lambda: saved({'x': t, 'part': t[1:], 'none': t[:0], 'zd': t[0, 0], 't': t.t()}, **kw))
        for n, fn in specials():
            put('%s.%s.pt' % (n, form), lambda: saved(fn(), **kw))
    if hasattr(torch, 'jit'):
        def jit():
            f = io.BytesIO()
            m = net()
            m.eval()
            torch.jit.save(torch.jit.trace(m, fill((2, 1, 3, 3), 70)), f)
            return f.getvalue()
        put('torchscript.jit.pt', jit)
        def jit2():
            f = io.BytesIO()
            torch.jit.save(torch.jit.script(nn.Linear(2, 3)), f)
            return f.getvalue()
        if VT >= (1, 5): put('torchscript_linear.jit.pt', jit2)
    ser = torch.serialization
    if hasattr(ser, 'set_crc32_options'):
        def nocrc():
            ser.set_crc32_options(False)
            try: return saved(small)
            finally: ser.set_crc32_options(True)
        put('no_crc32.zip.pt', nocrc)
    if VT >= (2, 1):
        put('big_endian.zip.pt', lambda: big_endian(saved(big_object()), [4, 8, 2, 1, 4]))
    if VT >= (1, 6):
        put('rezipped.zip.pt', lambda: rezip(saved(small), lambda n, b: b))
        def deflated():
            src = zipfile.ZipFile(io.BytesIO(saved({'w': torch.zeros(300)})))
            out = io.BytesIO()
            with zipfile.ZipFile(out, 'w', zipfile.ZIP_DEFLATED) as z:
                for n in src.namelist():
                    z.writestr(zipfile.ZipInfo(n, (1980, 1, 1, 0, 0, 0)), src.read(n), zipfile.ZIP_DEFLATED)
            return out.getvalue()
        put('deflated.zip.pt', deflated)
    for p in (0, 1, 2, 3, 4, 5):
        if p <= pickle.HIGHEST_PROTOCOL:
            put('plain_protocol%d.pkl' % p, lambda: pickle.dumps({'g.w': fill((2, 3), 60), 'g.b': fill((2,), 61, torch.float16), 'steps': [1, 2], 'n': np.arange(3, dtype=np.float32),
                'v': fill((3, 4), 62).t(), 's': 2.5}, p))
    put('plain_numpy.pkl', lambda: pickle.dumps({'a': np.arange(6, dtype=np.float32).reshape(2, 3), 'f': np.asfortranarray(np.arange(6.0).reshape(2, 3)), 'be': np.arange(3, dtype='>f4'),
        'h': np.arange(4, dtype=np.float16), 'b': np.array([True, False]), 'c': np.array([1 + 2j]), 's': np.float32(2.5), 'z': np.zeros((2, 0))}, 4))
    put('plain_numpy2.pkl', lambda: pickle.dumps([np.arange(6, dtype=np.int64).reshape(3, 2)], 2))
    if pickle.HIGHEST_PROTOCOL >= 5:
        put('plain_numpy5.pkl', lambda: pickle.dumps([np.arange(6, dtype=np.int64).reshape(3, 2), np.asfortranarray(np.arange(6.0).reshape(2, 3))], 5))
    put('plain_scalars.pkl', lambda: pickle.dumps({'loss': [1.0, 2.5], 'step': 3}, 4))

# ---- what is in a file --------------------------------------------------------------------------------------------------
def esc(s):
    return s.replace('\\', '\\\\').replace('\t', '\\t').replace('\n', '\\n')

def raw(t):
    t = t.detach()
    for f in ('resolve_conj', 'resolve_neg'):
        if hasattr(t, f): t = getattr(t, f)()
    t = t.contiguous()
    n = t.numel() * t.element_size()
    return ctypes.string_at(t.data_ptr(), n) if n else b''

def line_of(file, path, t):
    shape = '[%s]' % ','.join(str(d) for d in t.shape)
    dt = str(t.dtype).replace('torch.', '')
    note = []
    lay = str(getattr(t, 'layout', 'torch.strided')).replace('torch.', '')
    if getattr(t, 'is_nested', False):
        return '\t'.join([file, path, dt, 'nested', '-', 'nested'])
    if lay != 'strided':
        return '\t'.join([file, path, dt, shape, '-', lay])
    if t.device.type == 'meta':
        return '\t'.join([file, path, dt, shape, '-', 'meta'])
    if getattr(t, 'is_quantized', False):
        note.append('quantized'); t = t.int_repr()
    if hasattr(t, 'is_conj') and t.is_conj(): note.append('conj')
    if hasattr(t, 'is_neg') and t.is_neg(): note.append('neg')
    if type(t).__name__ not in ('Tensor', 'Parameter'):
        note.append('class=' + type(t).__name__)
    if hasattr(t, 'as_subclass') and type(t) is not torch.Tensor: t = t.as_subclass(torch.Tensor)
    return '\t'.join([file, path, dt, shape, hashlib.sha256(raw(t)).hexdigest(), ','.join(note) or '-'])

def walk(o, path, tens, scal, depth=0):
    p = '/'.join(path) if path else '-'
    if depth > 50: return
    if isinstance(o, torch.Tensor):
        tens.append((p, o)); return
    if isinstance(o, nn.Module) or type(o).__name__ in ('Args', 'Namespace'):
        for k, v in o.__dict__.items():
            walk(v, path + [esc(str(k))], tens, scal, depth + 1)
        return
    if isinstance(o, np.ndarray):
        if o.dtype == object or o.dtype.kind in 'SUV':
            scal.append((p, 'ndarray', repr(o).replace('\n', ' '))); return
        b = np.ascontiguousarray(o).reshape(o.shape)
        b = b.astype(b.dtype.newbyteorder('<'))
        tens.append((p, ('numpy:' + o.dtype.newbyteorder('=').name, '[%s]' % ','.join(str(d) for d in o.shape), hashlib.sha256(b.tobytes()).hexdigest()))); return
    if isinstance(o, dict):
        for k, v in o.items():
            walk(v, path + [esc(str(k))], tens, scal, depth + 1)
        return
    if type(o).__name__ in ('UntypedStorage', 'TypedStorage', '_UntypedStorage', '_TypedStorage') or 'Storage' in type(o).__name__:
        b = bytes(bytearray(o.untyped() if hasattr(o, 'untyped') else o)) if type(o).__name__ == 'UntypedStorage' else None
        scal.append((p, 'storage', type(o).__name__)); return
    if isinstance(o, (list, tuple)) and not isinstance(o, torch.Size):
        for i, v in enumerate(o):
            walk(v, path + [str(i)], tens, scal, depth + 1)
        return
    if isinstance(o, float): scal.append((p, 'float', float.hex(float(o)) + ' ' + repr(float(o)))); return
    scal.append((p, type(o).__name__, esc(repr(o))))

def read(file):
    with open(file, 'rb') as f: head = f.read(4)
    if file.endswith('.pkl'):
        with open(file, 'rb') as f: return pickle.load(f)
    kw = {'map_location': 'cpu'}
    if VT >= (1, 13): kw['weights_only'] = bool(os.environ.get('WEIGHTS_ONLY'))
    te_modules()
    return torch.load(file, **kw)

def digest(file, shown, out, sc, err):
    try:
        o = read(file)
    except Exception as e:
        err.write('%s\t%s: %s\n' % (shown, type(e).__name__, str(e).split('\n')[0][:200])); return
    tens, scal = [], []
    if '.jit.' in shown or type(o).__name__.endswith('ScriptModule'):
        for n, t in list(o.named_parameters()) + list(o.named_buffers()): tens.append((n.replace('.', '/'), t))
    elif '/module.' in shown or shown.startswith('module.'):
        walk(o, [], tens, scal)
    else:
        walk(o, [], tens, scal)
    for p, t in tens:
        try: out.write((line_of(shown, p, t) if not isinstance(t, tuple) else '\t'.join((shown, p) + t + ('numpy',))) + '\n')
        except Exception as e: err.write('%s\t%s\t%s: %s\n' % (shown, p, type(e).__name__, str(e).split('\n')[0][:200]))
    for p, k, v in scal: sc.write('\t'.join([shown, p, k, v]) + '\n')

def opened(p):
    return io.open(p, 'w', encoding='utf-8')

if __name__ == '__main__':
    if sys.argv[1] == 'make':
        OUT = os.path.join(sys.argv[2], 'torch-' + V)
        if not os.path.isdir(OUT): os.makedirs(OUT)
        make()
        with opened(OUT + '/skipped.txt') as f: f.write(u'\n'.join(SKIP) + u'\n')
        files = sorted(f for f in os.listdir(OUT) if f.endswith(('.pt', '.pkl')))
        with opened(OUT + '/digests.txt') as d, opened(OUT + '/scalars.txt') as s, opened(OUT + '/unread.txt') as e:
            for f in files: digest(os.path.join(OUT, f), f, d, s, e)
        print(V, 'numpy', np.__version__, 'python', sys.version.split()[0], len(files), 'files', sum(os.path.getsize(os.path.join(OUT, f)) for f in files), 'bytes')
    else:
        for f in sys.argv[2:]:
            s = sys.stdout if sys.argv[1] == 'scalars' else io.StringIO()
            digest(f, f, io.StringIO() if sys.argv[1] == 'scalars' else sys.stdout, s, sys.stderr)
