#!/usr/bin/env python3
"""Bad inputs of .pt (inputs.md, items 39 to 47) into bad/, with bad/EXPECT.txt. Nothing here is ever loaded by pickle or torch."""
import io, os, struct, sys, zipfile, zlib, pickle, pickletools
os.chdir(os.path.dirname(os.path.abspath(__file__)))
os.makedirs('bad', exist_ok=True)
EXPECT = []
def put(name, data, expect):
    with open('bad/' + name, 'wb') as f: f.write(data)
    EXPECT.append('%s\t%s' % (name, expect))
REF = 'exit 3, one line, nothing executed: '

def ptzip(pkl, data=None, version=b'3\n', order=b'little', extra=(), name='archive'):
    out = io.BytesIO()
    with zipfile.ZipFile(out, 'w', zipfile.ZIP_STORED) as z:
        def add(n, b): z.writestr(zipfile.ZipInfo(name + '/' + n, (1980, 1, 1, 0, 0, 0)), b)
        add('data.pkl', pkl)
        if order is not None: add('byteorder', order)
        for k, v in (data or {}).items(): add('data/' + k, v)
        add('version', version)
        for n, b in extra: z.writestr(zipfile.ZipInfo(n, (1980, 1, 1, 0, 0, 0)), b)
    return out.getvalue()

# ---- a small assembler of pickles --------------------------------------------------------------------------------------
def u(s): b = s.encode(); return b'X' + struct.pack('<I', len(b)) + b
def i(n): return b'J' + struct.pack('<i', n) if -2**31 <= n < 2**31 else b'\x8a' + bytes([(n.bit_length() // 8) + 1]) + n.to_bytes(n.bit_length() // 8 + 1, 'little', signed=True)
def tup(*a): return b'(' + b''.join(a) + b't'
def g(mod, name): return b'c' + mod.encode() + b'\n' + name.encode() + b'\n'
def pid(key='0', numel=4, st='FloatStorage', loc='cpu'): return b'(' + u('storage') + g('torch', st) + u(key) + u(loc) + i(numel) + b'tQ'
def tensor(key='0', numel=4, off=0, size=(4,), stride=(1,), st='FloatStorage', p=None):
    return g('torch._utils', '_rebuild_tensor_v2') + b'(' + (p or pid(key, numel, st)) + i(off) + tup(*[i(s) for s in size]) + tup(*[i(s) for s in stride]) + b'\x89' + g('collections', 'OrderedDict') + b')Rt' + b'R'
def doc(body): return b'\x80\x02' + body + b'.'
def dic(*kv): return b'}(' + b''.join(u(k) + v for k, v in kv) + b'u'
F4 = struct.pack('<4f', 1, 2, 3, 4)
GOOD = doc(dic(('w', tensor())))
put('ok_base.pt', ptzip(GOOD, {'0': F4}), 'good: one tensor w float32 [4] = 1 2 3 4')

# ---- 40: code -----------------------------------------------------------------------------------------------------------
MARK = 'touch /tmp/mpsim-pwned'
def sysd(b): return ptzip(doc(dic(('w', tensor()), ('x', b))), {'0': F4})
put('global_os_system.pt', sysd(g('os', 'system') + b'(' + u(MARK) + b'tR'), REF + 'refused: global os.system')
put('global_posix.pt', sysd(g('posix', 'system') + b'(' + u(MARK) + b'tR'), REF + 'refused: global posix.system')
put('stack_global.pt', ptzip(b'\x80\x04' + dic(('w', tensor()), ('x', u('os') + u('system') + b'\x93(' + u(MARK) + b'tR')) + b'.', {'0': F4}), REF + 'refused: global os.system')
put('stack_global_eval.pkl', b'\x80\x04' + u('builtins') + u('eval') + b'\x93' + u('1+1') + b'\x85R.', REF + 'refused: global builtins.eval')
put('inst.pkl', b'(' + b"S'" + MARK.encode() + b"'\n" + b'ios\nsystem\n.', REF + 'refused: global os.system (INST)')
put('obj.pkl', b'(' + g('os', 'system') + b"S'" + MARK.encode() + b"'\n" + b'o.', REF + 'refused: global os.system (OBJ)')
put('newobj.pkl', b'\x80\x02' + g('subprocess', 'Popen') + u(MARK) + b'\x85\x81.', REF + 'refused: global subprocess.Popen (NEWOBJ)')
put('newobj_ex.pkl', b'\x80\x04' + g('subprocess', 'Popen') + u(MARK) + b'\x85}\x92.', REF + 'refused: global subprocess.Popen (NEWOBJ_EX)')
put('ext1.pkl', b'\x80\x02\x82\x01.', REF + 'refused: extension (EXT1)')
put('ext2.pkl', b'\x80\x02\x83\x01\x01.', REF + 'refused: extension (EXT2)')
put('ext4.pkl', b'\x80\x02\x84\x01\x01\x01\x01.', REF + 'refused: extension (EXT4)')
put('build_getattr.pkl', b'\x80\x02' + g('builtins', 'getattr') + b'(' + g('os', 'path') + u('join') + b'tR.', REF + 'refused: global builtins.getattr or os.path')
put('import_torch_hub.pt', sysd(g('torch.hub', 'load') + b'(' + u('x') + b'tR'), REF + 'refused: global torch.hub.load (torch.* is no blanket permission)')
put('torch_load.pt', sysd(g('torch.serialization', 'load') + b'(' + u('/etc/passwd') + b'tR'), REF + 'refused: global torch.serialization.load')
put('numpy_load.pt', sysd(g('numpy', 'load') + b'(' + u('/etc/passwd') + b'tR'), REF + 'refused: global numpy.load')
put('global_newline.pkl', b'\x80\x02c' + b'a' * 70000 + b'\n' + b'b\n.', REF + 'a name of 70,000 bytes: refused, the message stays one short line')
put('global_control.pkl', b'\x80\x02cos\x1b[31m\nsys\x07tem\n(tR.', REF + 'refused; the control characters are escaped in the message')
put('build_on_tensor.pt', ptzip(doc(dic(('w', tensor() + b'}(' + u('x') + i(1) + b'ub'))), {'0': F4}), 'torch refuses it (the state of a tensor is a tuple): exit 3, or w read and the state skipped')
put('build_dict_update.pkl', b'\x80\x02}' + g('os', 'system') + b'b.', REF + 'refused: global os.system')
put('reduce_of_string.pkl', b'\x80\x02' + u('x') + b')R.', REF + 'REDUCE of what is no global')
put('reduce_of_int.pkl', b'\x80\x02K\x01)R.', REF + 'REDUCE of what is no global')
put('persid_unknown.pt', ptzip(doc(b'(' + u('module') + g('os', 'system') + u('a') + u('b') + b'tQ'), {}), REF + 'refused: global os.system, or a persistent id that is no storage')
put('persid_int.pt', ptzip(doc(b'K\x05Q'), {}), REF + 'a persistent id that is no storage')
put('persid_short.pt', ptzip(doc(b'(' + u('storage') + b'tQ'), {}), REF + 'a persistent id of the wrong length')
put('persid_text.pt', ptzip(b"P('storage', <class 'torch.FloatStorage'>, '0', 'cpu', 4)\n.", {'0': F4}), REF + 'a persistent id that is text (protocol 0)')

# ---- 41: recursion ------------------------------------------------------------------------------------------------------
put('memo_cycle_list.pkl', b'\x80\x02]q\x00h\x00a.', REF + 'a tree that contains itself (or: read, the cycle cut, with a note); no endless loop')
put('memo_cycle_dict.pkl', b'\x80\x02}q\x00' + u('a') + b'h\x00s.', REF + 'a tree that contains itself')
put('memo_cycle_deep.pkl', b'\x80\x02]q\x00]q\x01h\x00ah\x01\x86.'.replace(b'h\x01\x86', b'h\x00a0h\x00') , REF + 'a tree that contains itself, two levels')
body = b'\x80\x02]q\x00'
for k in range(40): body += b'](h%ch%ceq%c' % (k, k, k + 1)
put('memo_bomb.pkl', body + b'.', 'exit 3 or an empty trace, at once: 2^40 leaves by sharing (a tree that is walked naively never ends)')
body = b'\x80\x02' + tensor() + b'q\x00'
body = b'\x80\x02](' + tensor() + b'eq\x00'
for k in range(40): body += b'](h%ch%ceq%c' % (k, k, k + 1)
put('memo_bomb_tensors.pt', ptzip(body + b'.', {'0': F4}), 'exit 3, at once: 2^40 tensors by sharing: a limit is said')
put('marks.pkl', b'\x80\x02' + b'(' * 200000 + b'.', REF + 'too many marks, or the stack')
put('marks_popped.pkl', b'\x80\x02' + b'(1' * 400000 + b'N.', 'nothing to read: no tensors (exit 3 as for a pickle without tensors) or exit 3 by the limit of opcodes; memory bounded')
put('deep_tuple.pkl', b'\x80\x02N' + b'\x85' * 100000 + b'.', REF + 'nesting of 100,000')
put('deep_list.pkl', b'\x80\x02' + b']' * 100000 + b'a' * 99999 + b'.', REF + 'nesting of 100,000')
put('deep_dict.pkl', b'\x80\x02' + b'}K\x01' * 100000 + b'N' + b's' * 100000 + b'.', REF + 'nesting of 100,000')
put('deep_reduce.pt', ptzip(b'\x80\x02' + (g('collections', 'OrderedDict') + b'(') * 3000 + b't' + b'R\x85R' * 10 + b'.', {}), REF + 'nested calls')
put('memo_index_max.pkl', b'\x80\x02Nr\xff\xff\xff\xff.', REF + 'a memo index of 2^32-1 (or read without allocating for it)')
put('memo_index_sparse.pkl', b'\x80\x02' + b''.join(b'Nr' + struct.pack('<I', (k * 2654435761) & 0xffffffff) + b'0' for k in range(20000)) + b'N.', 'exit 3, memory bounded, under 2 s: 20,000 memo indices all over 32 bits')
put('memo_get_missing.pkl', b'\x80\x02h\x07.', REF + 'memo 7 is not there')
put('memo_put_text.pkl', b'Np99999999999999999999\n.', REF + 'a memo index too large')
put('memo_put_negative.pkl', b'Np-1\n.', REF + 'a memo index below 0')
put('get_text.pkl', b'g12x\n.', REF + 'a memo index that is no number')

# ---- 42: lengths --------------------------------------------------------------------------------------------------------
put('long4_2g.pkl', b'\x80\x02\x8b\x00\x00\x00\x80.', REF + 'LONG4 of 2^31 bytes (negative length)')
put('long4_big.pkl', b'\x80\x02\x8b\xff\xff\xff\x7f.', REF + 'LONG4 of 2^31-1 bytes')
put('long1_255.pkl', b'\x80\x02\x8a\xff' + b'\x01' * 255 + b'.', 'exit 3: an integer of 255 bytes (limit 16), or no tensors')
put('frame_long.pkl', b'\x80\x04\x95' + struct.pack('<Q', 1 << 60) + b'N.', REF + 'FRAME longer than the file')
put('frame_short.pkl', b'\x80\x04\x95' + struct.pack('<Q', 1) + u('abc') + b'.', REF + 'FRAME that ends in an opcode (Python: pickle exhausted before end of frame), or ignored: no tensors')
put('frame_max.pkl', b'\x80\x04\x95' + b'\xff' * 8 + b'N.', REF + 'FRAME of 2^64-1')
put('binunicode8.pkl', b'\x80\x04\x8d' + struct.pack('<Q', 1 << 63) + b'a.', REF + 'BINUNICODE8 of 2^63')
put('binbytes8.pkl', b'\x80\x04\x8e' + struct.pack('<Q', 1 << 63) + b'a.', REF + 'BINBYTES8 of 2^63')
put('bytearray8.pkl', b'\x80\x05\x96' + struct.pack('<Q', (1 << 64) - 1) + b'a.', REF + 'BYTEARRAY8 of 2^64-1')
put('binunicode.pkl', b'\x80\x02X\xff\xff\xff\xffa.', REF + 'BINUNICODE of 2^32-1')
put('binstring_negative.pkl', b'\x80\x02T\xff\xff\xff\xffa.', REF + 'BINSTRING of length -1')
put('binbytes.pkl', b'\x80\x03B\x00\x00\x00\x80a.', REF + 'BINBYTES of 2^31')
put('short_binunicode.pkl', b'\x80\x04\x8c\x09abc', REF + 'ends in a string')
put('no_stop.pkl', b'\x80\x02N', REF + 'no STOP')
put('no_stop.pt', ptzip(GOOD[:-1], {'0': F4}), REF + 'no STOP')
put('only_proto.pkl', b'\x80\x02', REF + 'no STOP')
put('empty_pkl.pt', ptzip(b'', {'0': F4}), REF + 'data.pkl is empty')
put('stop_empty_stack.pkl', b'\x80\x02.', REF + 'STOP on an empty stack')
for n, b in (('append', b'a'), ('setitem', b's'), ('setitems', b'u'), ('appends', b'e'), ('tuple', b't'), ('tuple3', b'\x87'), ('reduce', b'R'), ('build', b'b'), ('pop', b'0'), ('dup', b'2'), ('popmark', b'1'),
             ('list', b'l'), ('dict', b'd'), ('binput', b'q\x00'), ('memoize', b'\x94'), ('newobj', b'\x81'), ('binpersid', b'Q'), ('stackglobal', b'\x93'), ('additems', b'\x90'), ('frozenset', b'\x91'), ('obj', b'o')):
    put('underflow_%s.pkl' % n, b'\x80\x04' + b + b'.', REF + 'stack underflow')
put('underflow_mark.pkl', b'\x80\x02]K\x01(a.', REF + 'APPEND across a mark')
put('setitems_odd.pkl', b'\x80\x02}(K\x01u.', REF + 'SETITEMS with an odd number')
put('dict_odd.pkl', b'\x80\x02(K\x01d.', REF + 'DICT with an odd number')
put('setitem_on_list.pkl', b'\x80\x02]K\x01K\x02s.', REF + 'SETITEM on what is no dict')
put('append_on_dict.pkl', b'\x80\x02}K\x01a.', REF + 'APPEND on what is no list')
put('protocol6.pkl', b'\x80\x06N.', REF + 'protocol 6')
put('protocol255.pt', ptzip(b'\x80\xffN.', {}), REF + 'protocol 255')
put('proto_inside.pkl', b'\x80\x02N\x80\x07.', REF + 'protocol 7 (PROTO in the middle)')
put('unknown_opcode.pkl', b'\x80\x02\xff.', REF + 'opcode 0xff')
put('next_buffer.pkl', b'\x80\x05\x97.', REF + 'out-of-band buffer (NEXT_BUFFER)')
put('readonly_buffer.pkl', b'\x80\x05N\x98.', REF + 'READONLY_BUFFER of None')
put('string_unquoted.pkl', b'Sabc\n.', REF + 'STRING without quotes')
put('string_no_newline.pkl', b"S'abc", REF + 'ends in a line')
put('int_garbage.pkl', b'I12z\n.', REF + 'INT that is no number')
put('float_garbage.pkl', b'Fnanana\n.', REF + 'FLOAT that is no number')
put('long_garbage.pkl', b'L99999999999999999999999999999999999999999999999999999999L\n.', 'exit 3: a long of more than 16 bytes, or no tensors')
put('unicode_bad_utf8.pkl', b'\x80\x02X\x02\x00\x00\x00\xff\xfe.', REF + 'not UTF-8')
put('unicode_surrogate.pkl', b'\x80\x02X\x03\x00\x00\x00\xed\xa0\x80.', 'exit 3 (no tensors; Python reads a lone surrogate by surrogatepass); must not reach a report as bad UTF-8')
put('key_control.pt', ptzip(doc(dic(('a\nb\x1b[2J', tensor()))), {'0': F4}), 'good, and the name is escaped wherever it is printed')
put('key_empty.pt', ptzip(doc(dic(('', tensor()))), {'0': F4}), 'good: a tensor of the empty name')
put('key_twice.pt', ptzip(doc(dic(('w', tensor()), ('w', tensor(off=1, size=(2,))))), {'0': F4}), 'as Python: the last one wins (shape [2]), or exit 3: name twice')
put('path_clash.pt', ptzip(doc(dic(('a/b', tensor()), ('a', dic(('b', tensor(off=1, size=(2,))))))), {'0': F4}), 'exit 3: two tensors of one name "a/b", or both kept under names that differ; never one silently lost')
put('key_dict.pt', ptzip(doc(b'}}' + tensor() + b's'), {'0': F4}), REF + 'a dict as a key (unhashable)')
put('million_opcodes.pkl', b'\x80\x02' + b'N0' * 500000 + b'N.', 'exit 3: more than 1,000,000 opcodes (1,000,003), under 2 s')
put('million_under.pkl', b'\x80\x02' + b'N0' * 499990 + b'N.', 'exit 3: no tensors (999,983 opcodes); under 2 s')
put('million_list.pkl', b'\x80\x02](' + b'K\x01' * 900000 + b'e.', 'exit 3: no tensors; bounded memory, under 2 s')
put('quadratic_dict.pkl', b'\x80\x02}(' + b''.join(b'J' + struct.pack('<i', k) + b'N' for k in range(200000)) + b'u.', 'exit 3: no tensors; no quadratic time')
put('quadratic_names.pt', ptzip(doc(tensor() + b'q\x000}(' + b''.join(u('n%05d' % k) + b'h\x00' for k in range(3000)) + b'u'), {'0': F4}), 'good: 3,000 names of one tensor')

# ---- 43: storages and shapes --------------------------------------------------------------------------------------------
def one(**k): return doc(dic(('w', tensor(**k))))
put('storage_missing.pt', ptzip(one(key='1'), {'0': F4}), REF + 'no entry data/1')
put('storage_key_nul.pt', ptzip(one(key='0\0'), {'0': F4}), REF + 'a key with a NUL')
put('storage_key_path.pt', ptzip(one(key='../../etc/passwd'), {'0': F4}), REF + 'no such entry')
put('storage_short.pt', ptzip(one(), {'0': F4[:15]}), REF + 'entry of 15 bytes, 4 float32 need 16')
put('storage_long.pt', ptzip(one(), {'0': F4 + b'\0'}), REF + 'entry of 17 bytes, 4 float32 need 16')
put('storage_numel_negative.pt', ptzip(one(numel=-4), {'0': F4}), REF + 'numel below 0')
put('storage_numel_huge.pt', ptzip(one(numel=1 << 62), {'0': F4}), REF + 'numel x itemsize overflows')
put('storage_numel_overflow.pt', ptzip(one(numel=(1 << 62) + 4), {'0': F4}), REF + 'numel x itemsize = 16 modulo 2^64: must not be taken for 16')
put('storage_numel_long.pt', ptzip(doc(dic(('w', tensor(p=b'(' + u('storage') + g('torch', 'FloatStorage') + u('0') + u('cpu') + b'\x8a\x09' + b'\x04' + b'\0' * 7 + b'\x01' + b'tQ')))), {'0': F4}), REF + 'numel of 2^64+4')
put('storage_type_unknown.pt', ptzip(one(st='NoSuchStorage'), {'0': F4}), REF + 'refused: global torch.NoSuchStorage')
put('storage_two_types.pt', ptzip(doc(dic(('a', tensor()), ('b', tensor(st='IntStorage')))), {'0': F4}), 'exit 3, or both read as what each says (torch keeps the first type); never beyond the entry')
put('offset_beyond.pt', ptzip(one(off=1), {'0': F4}), REF + 'elements beyond the storage')
put('offset_negative.pt', ptzip(one(off=-1), {'0': F4}), REF + 'offset below 0')
put('offset_huge.pt', ptzip(one(off=(1 << 63) - 1), {'0': F4}), REF + 'offset beyond the storage')
put('offset_beyond_empty.pt', ptzip(one(off=9, size=(2, 0), stride=(1, 1)), {'0': F4}), 'good (0 elements): torch reads it')
put('offset_2_64.pt', ptzip(one(off=1 << 64), {'0': F4}), REF + 'offset of more than 64 bits')
put('stride_beyond.pt', ptzip(one(stride=(2,)), {'0': F4}), REF + 'elements beyond the storage')
put('stride_negative.pt', ptzip(one(off=3, stride=(-1,)), {'0': F4}), REF + 'negative stride')
put('stride_huge.pt', ptzip(one(size=(2, 2), stride=(1 << 62, 1)), {'0': F4}), REF + 'stride overflows')
put('stride_wrap.pt', ptzip(one(size=(3,), stride=(1 << 63,)), {'0': F4}), REF + 'stride of 2^63')
put('stride_fewer.pt', ptzip(one(size=(2, 2), stride=(1,)), {'0': F4}), REF + 'as many strides as sizes')
put('size_negative.pt', ptzip(one(size=(-4,)), {'0': F4}), REF + 'a size below 0')
put('size_overflow.pt', ptzip(one(size=(1 << 32, 1 << 32), stride=(0, 0)), {'0': F4}), REF + 'the product of the sizes overflows')
put('size_overflow_zero.pt', ptzip(one(size=(1 << 62, 1 << 62, 0), stride=(0, 0, 1)), {'0': F4}), 'good (0 elements) or exit 3; no overflow')
put('size_dims.pt', ptzip(one(size=(1,) * 5000, stride=(1,) * 5000), {'0': F4}), REF + 'too many dimensions (torch: 64 in practice)')
put('expand_huge.pt', ptzip(one(size=(1 << 40,), stride=(0,)), {'0': F4}), 'info says 2^40 elements without allocating; stat would take long: bounded memory')
put('expand_huge4.pt', ptzip(one(size=(1 << 15, 1 << 15, 1 << 15), stride=(0, 0, 0)), {'0': F4}), 'info says 2^45 elements without allocating')
put('size_no_tuple.pt', ptzip(doc(dic(('w', g('torch._utils', '_rebuild_tensor_v2') + b'(' + pid() + i(0) + i(4) + tup(i(1)) + b'\x89' + g('collections', 'OrderedDict') + b')RtR'))), {'0': F4}), REF + 'the size is no tuple')
put('size_strings.pt', ptzip(doc(dic(('w', g('torch._utils', '_rebuild_tensor_v2') + b'(' + pid() + i(0) + tup(u('4')) + tup(i(1)) + b'\x89' + g('collections', 'OrderedDict') + b')RtR'))), {'0': F4}), REF + 'a size that is no integer')
put('size_bool.pt', ptzip(doc(dic(('w', g('torch._utils', '_rebuild_tensor_v2') + b'(' + pid() + i(0) + tup(b'\x88') + tup(i(1)) + b'\x89' + g('collections', 'OrderedDict') + b')RtR'))), {'0': F4}), 'exit 3 or [1]; no crash')
put('rebuild_few.pt', ptzip(doc(dic(('w', g('torch._utils', '_rebuild_tensor_v2') + b'(' + pid() + b'tR'))), {'0': F4}), REF + 'too few arguments')
put('rebuild_none.pt', ptzip(doc(dic(('w', g('torch._utils', '_rebuild_tensor_v2') + b')R'))), {'0': F4}), REF + 'no arguments')
put('rebuild_no_storage.pt', ptzip(doc(dic(('w', g('torch._utils', '_rebuild_tensor_v2') + b'(' + i(1) + i(0) + tup(i(4)) + tup(i(1)) + b'\x89' + g('collections', 'OrderedDict') + b')RtR'))), {'0': F4}), REF + 'the storage is none')
put('rebuild_args_list.pt', ptzip(doc(dic(('w', g('torch._utils', '_rebuild_tensor_v2') + b']R'))), {'0': F4}), REF + 'arguments that are no tuple')
put('parameter_of_int.pt', ptzip(doc(dic(('w', g('torch._utils', '_rebuild_parameter') + b'(' + i(1) + b'\x89' + g('collections', 'OrderedDict') + b')RtR'))), {'0': F4}), 'exit 3, or no tensor')
put('v3_dtype.pt', ptzip(doc(dic(('w', g('torch._utils', '_rebuild_tensor_v3') + b'(' + pid(st='UntypedStorage', numel=16) .replace(g('torch', 'UntypedStorage'), g('torch.storage', 'UntypedStorage')) + i(0) + tup(i(4)) + tup(i(1)) + b'\x89' + g('collections', 'OrderedDict') + b')R' + g('torch', 'no_such_dtype') + b'tR'))), {'0': F4}), REF + 'refused: global torch.no_such_dtype')
put('v3_misaligned.pt', ptzip(doc(dic(('w', g('torch._utils', '_rebuild_tensor_v3') + b'(' + pid(st='UntypedStorage', numel=15).replace(g('torch', 'UntypedStorage'), g('torch.storage', 'UntypedStorage')) + i(0) + tup(i(4)) + tup(i(1)) + b'\x89' + g('collections', 'OrderedDict') + b')R' + g('torch', 'uint32') + b'tR'))), {'0': F4[:15]}), REF + '4 elements of 4 bytes in 15 bytes')

# ---- 44 -----------------------------------------------------------------------------------------------------------------
put('byteorder_big.pt', ptzip(GOOD, {'0': struct.pack('>4f', 1, 2, 3, 4)}, order=b'big'), 'good: w = 1 2 3 4')
put('byteorder_garbage.pt', ptzip(GOOD, {'0': F4}, order=b'middle'), REF + 'byteorder "middle"')
put('byteorder_empty.pt', ptzip(GOOD, {'0': F4}, order=b''), REF + 'byteorder ""')
put('byteorder_long.pt', ptzip(GOOD, {'0': F4}, order=b'l' * 5000), REF + 'byteorder')
put('byteorder_nul.pt', ptzip(GOOD, {'0': F4}, order=b'big\0'), REF + 'byteorder "big" and a NUL, which torch refuses')
put('byteorder_none.pt', ptzip(GOOD, {'0': F4}, order=None), 'good: little endian as in older files; w = 1 2 3 4')
put('version_garbage.pt', ptzip(GOOD, {'0': F4}, version=b'zzz'), 'exit 3 or a note')

# ---- 45: legacy ---------------------------------------------------------------------------------------------------------
MAGIC = b'\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.'
PROT = b'\x80\x02M\xe9\x03.'
SYS = pickle.dumps({'protocol_version': 1001, 'little_endian': True, 'type_sizes': {'short': 2, 'int': 4, 'long': 4}}, 2)
def lpid(key='0', numel=4, view=b'N', st='FloatStorage'): return b'(' + u('storage') + g('torch', st) + u(key) + u('cpu') + i(numel) + view + b'tQ'
def legacy(obj, keys, data, magic=MAGIC, prot=PROT, sysi=SYS): return magic + prot + sysi + obj + pickle.dumps(keys, 2) + data
LG = doc(dic(('w', tensor(p=lpid()))))
LOK = legacy(LG, ['0'], struct.pack('<q', 4) + F4)
put('legacy_ok.pt', LOK, 'good: w = 1 2 3 4')
put('legacy_magic.pt', legacy(LG, ['0'], struct.pack('<q', 4) + F4, magic=b'\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x1a.'), REF + 'the magic number')
put('legacy_protocol.pt', legacy(LG, ['0'], struct.pack('<q', 4) + F4, prot=b'\x80\x02M\xea\x03.'), REF + 'protocol 1002')
put('legacy_big.pt', legacy(LG, ['0'], struct.pack('<q', 4) + F4, sysi=SYS.replace(b'\x88', b'\x89')), 'torch: little_endian of sys_info is not looked at by its loader of storages: w = 1 2 3 4; or exit 3 with a word')
put('legacy_numel_lies.pt', legacy(LG, ['0'], struct.pack('<q', 5) + F4), REF + 'the storage says 5 elements, the object 4')
put('legacy_numel_less.pt', legacy(LG, ['0'], struct.pack('<q', 3) + F4[:12]), REF + 'the storage says 3 elements, the object 4')
put('legacy_numel_negative.pt', legacy(LG, ['0'], struct.pack('<q', -1) + F4), REF + 'numel below 0')
put('legacy_numel_huge.pt', legacy(doc(dic(('w', tensor(p=lpid(numel=1 << 62), size=(4,))))), ['0'], struct.pack('<q', 1 << 62) + F4), REF + 'beyond the file')
put('legacy_key_missing.pt', legacy(LG, [], b''), REF + 'storage 0 is not in the list')
put('legacy_key_unknown.pt', legacy(LG, ['0', '9'], struct.pack('<q', 4) + F4 + struct.pack('<q', 4) + F4), REF + 'key 9 is in the list only')
put('legacy_key_twice.pt', legacy(LG, ['0', '0'], struct.pack('<q', 4) + F4 + struct.pack('<q', 4) + F4), REF + 'key 0 twice')
put('legacy_keys_int.pt', legacy(LG, [0], struct.pack('<q', 4) + F4), REF + 'a key that is no string')
put('legacy_keys_dict.pt', legacy(LG, {'0': 1}, struct.pack('<q', 4) + F4), REF + 'the list of keys is none')
put('legacy_trailing.pt', LOK + b'junk', 'good (torch ignores it) or exit 3: bytes after the last storage')
put('legacy_view.pt', legacy(doc(dic(('w', tensor(p=lpid(view=b'(' + u('v') + i(1) + i(2) + b't'), size=(2,))))), ['0'], struct.pack('<q', 4) + F4), 'good: w = 2 3 (a view of the storage: torch < 0.4)')
put('legacy_view_beyond.pt', legacy(doc(dic(('w', tensor(p=lpid(view=b'(' + u('v') + i(3) + i(2) + b't'), size=(2,))))), ['0'], struct.pack('<q', 4) + F4), REF + 'a view beyond the storage')
for n in sorted(set(list(range(1, 16, 5)) + [16, 20, 21, 30, 60, 100, len(LOK) - len(F4) - 8 - 1, len(LOK) - len(F4) - 8, len(LOK) - len(F4) - 4, len(LOK) - len(F4), len(LOK) - 8, len(LOK) - 1])):
    put('legacy_cut_%03d.pt' % n, LOK[:n], REF + 'truncated')
def nest(d):
    inner = legacy(doc(tensor(p=lpid())), ['0'], struct.pack('<q', 4) + F4)
    for k in range(d):
        body = g('torch.storage', '_load_from_bytes') + b'B' + struct.pack('<I', len(inner)) + inner + b'\x85R'
        inner = legacy(doc(body), [], b'') if k < d - 1 else doc(b'}' + u('w') + body + b's')
    return inner
for d in (1, 2, 3, 4): put('nested_load_%d.pkl' % d, nest(d), 'good: w is a tensor float32 [4] (depth %d)' % d)
for d in (5, 6, 100): put('nested_load_%d.pkl' % d, nest(d), REF + 'nested _load_from_bytes deeper than 4')
put('nested_zip.pkl', doc(dic(('w', g('torch.storage', '_load_from_bytes') + b'B' + struct.pack('<I', len(ptzip(doc(tensor()), {'0': F4}))) + ptzip(doc(tensor()), {'0': F4}) + b'\x85R'))), 'exit 3 or good: a zip inside (torch.load takes it)')
put('nested_garbage.pkl', doc(dic(('w', g('torch.storage', '_load_from_bytes') + b'B\x04\0\0\0junk\x85R'))), REF + 'no torch stream')
put('nested_string.pkl', doc(dic(('w', g('torch.storage', '_load_from_bytes') + u('text') + b'\x85R'))), REF + 'no bytes')
for n in ('cut', 'lie'):
    L = LOK[:-3] if n == 'cut' else legacy(LG, ['0'], struct.pack('<q', 1 << 40) + F4)
    put('nested_%s.pkl' % n, doc(dic(('w', g('torch.storage', '_load_from_bytes') + b'B' + struct.pack('<I', len(L)) + L + b'\x85R'))), REF + 'the stream inside is truncated')

# numpy in pickles
def ndarray(shape=(2,), dt='f4', data=struct.pack('<2f', 1, 2), order=b'<', fortran=b'\x89', ver=1):
    d = g('numpy', 'dtype') + b'(' + u(dt) + b'\x89\x88tR(K\x03' + u(order.decode()) + b'NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb'
    return g('numpy.core.multiarray', '_reconstruct') + g('numpy', 'ndarray') + b'K\x00\x85C\x01b\x87R(' + i(ver) + tup(*[i(s) for s in shape]) + d + fortran + b'B' + struct.pack('<I', len(data)) + data + b'tb'
def npd(**k): return b'\x80\x03' + dic(('a', ndarray(**k))) + b'.'
put('numpy_ok.pkl', npd(), 'good: a float32 [2] = 1 2')
put('numpy_short.pkl', npd(shape=(3,)), REF + '8 bytes for 3 float32')
put('numpy_overflow.pkl', npd(shape=(1 << 32, 1 << 32)), REF + 'the product of the sizes overflows')
put('numpy_negative.pkl', npd(shape=(-1,)), REF + 'a size below 0')
put('numpy_object.pkl', npd(dt='O8'), 'exit 3 or skipped with a note: objects')
put('numpy_dtype_garbage.pkl', npd(dt='zz'), 'exit 3 or skipped with a note')
put('numpy_order_garbage.pkl', npd(order=b'?'), REF + 'byte order')
put('numpy_scalar_short.pkl', b'\x80\x03' + dic(('a', ndarray()), ('s', g('numpy.core.multiarray', 'scalar') + b'(' + g('numpy', 'dtype') + b'(' + u('f8') + b'\x89\x88tRC\x02abtR')) + b'.', 'exit 3 or a skipped scalar')

# ---- 39: zip ------------------------------------------------------------------------------------------------------------
OK = ptzip(GOOD, {'0': F4})
def flip(b, at, mask=1): b = bytearray(b); b[at] ^= mask; return bytes(b)
at = OK.index(F4)
put('crc_storage.pt', flip(OK, at + 5), REF + 'CRC of archive/data/0')
put('crc_pkl.pt', flip(OK, OK.index(b'_rebuild_tensor_v2') - 2 + 30, 0) if False else flip(OK, OK.index(b'w', OK.index(b'}(')), 2), REF + 'CRC of archive/data.pkl')
def setcrc0(b):
    b = bytearray(b)
    k = b.index(b'PK\x01\x02', 0)
    while True:
        n = bytes(b[k + 46:k + 46 + struct.unpack('<H', b[k + 28:k + 30])[0]])
        if n.endswith(b'data/0'): b[k + 16:k + 20] = b'\0' * 4; o = struct.unpack('<I', b[k + 42:k + 46])[0]; b[o + 14:o + 18] = b'\0' * 4
        nx = b.find(b'PK\x01\x02', k + 4)
        if nx < 0: break
        k = nx
    return bytes(b)
put('crc_zero.pt', setcrc0(OK), 'good with a warning: no CRC (set_crc32_options(False)); w = 1 2 3 4')
eocd = OK.rindex(b'PK\x05\x06')
cd = struct.unpack('<I', OK[eocd + 16:eocd + 20])[0]
put('zip_two_eocd.pt', OK + OK[eocd:], 'exit 3, or read by one of the two consistently; never a mix')
put('zip_eocd_in_comment.pt', OK[:eocd + 20] + struct.pack('<H', 22) + OK[eocd:eocd + 22], REF + 'two ends of the directory (parser differential)')
put('zip_prefix.pt', b'#!/bin/sh\n' + OK, 'exit 3: bytes before the archive')
put('zip_suffix.pt', OK + b'junk', 'exit 3: bytes after the archive')
put('zip_entries_lie.pt', OK[:eocd + 8] + struct.pack('<HH', 9, 9) + OK[eocd + 12:], REF + 'number of entries')
put('zip_cd_beyond.pt', OK[:eocd + 16] + struct.pack('<I', 1 << 30) + OK[eocd + 20:], REF + 'directory beyond the file')
put('zip_cd_size.pt', OK[:eocd + 12] + struct.pack('<I', 0xfffffff0) + OK[eocd + 16:], REF + 'size of the directory')
for n in (10, 31, at, at + 7, cd, cd + 20, eocd - 1, eocd, eocd + 4, len(OK) - 1): put('zip_cut_%03d.pt' % n, OK[:n], REF + 'truncated')
def cdset(b, leaf, off, val):
    b = bytearray(b); k = b.index(b'PK\x01\x02')
    while k >= 0:
        n = bytes(b[k + 46:k + 46 + struct.unpack('<H', b[k + 28:k + 30])[0]])
        if n.endswith(leaf): b[k + off:k + off + len(val)] = val
        k = b.find(b'PK\x01\x02', k + 4)
    return bytes(b)
o0 = OK.index(b'archive/data/0') - 30
put('zip_name_mismatch.pt', OK[:o0 + 30] + b'archive/data/1' + OK[o0 + 44:], REF + 'the name in the local header is another')
put('zip_local_beyond.pt', cdset(OK, b'data/0', 42, struct.pack('<I', 1 << 30)), REF + 'member beyond the file')
put('zip_local_elsewhere.pt', cdset(OK, b'data/0', 42, struct.pack('<I', 0)), REF + 'local header of another member (overlap)')
put('zip_size_lies.pt', cdset(cdset(OK, b'data/0', 20, struct.pack('<I', 1 << 20)), b'data/0', 24, struct.pack('<I', 1 << 20)), REF + 'member beyond the file')
put('zip_size_mismatch.pt', cdset(OK, b'data/0', 24, struct.pack('<I', 32)), REF + 'stored: sizes differ')
put('zip_overlap.pt', cdset(cdset(OK, b'byteorder', 20, struct.pack('<I', 60)), b'byteorder', 24, struct.pack('<I', 60)), REF + 'members overlap (or CRC, or byteorder)')
put('zip_method.pt', cdset(OK, b'data/0', 10, struct.pack('<H', 12)), REF + 'method 12 (bzip2)')
put('zip_encrypted.pt', cdset(OK, b'data/0', 8, struct.pack('<H', 1)), REF + 'encrypted')
put('zip_zip64_lies.pt', cdset(OK, b'data/0', 24, b'\xff\xff\xff\xff'), REF + 'zip64 field missing')
import warnings; warnings.simplefilter('ignore')
put('zip_duplicate.pt', ptzip(GOOD, {'0': F4}, extra=[('archive/data/0', struct.pack('<4f', 9, 9, 9, 9))]), REF + 'two members of one name')
put('zip_absolute.pt', ptzip(GOOD, {'0': F4}, extra=[('/etc/passwd', b'x'), ('../up', b'y')]), 'exit 3, or good: other members are not looked at; nothing is ever written')
put('zip_two_roots.pt', ptzip(GOOD, {'0': F4}, extra=[('other/data.pkl', GOOD)]), REF + 'two data.pkl')
put('zip_no_pkl.pt', OK.replace(b'archive/data.pkl', b'archive/data.pk1'), REF + 'no data.pkl (neither npz nor torch)')
put('zip_no_version.pt', OK.replace(b'archive/version', b'archive/versio_'), 'good or exit 3: no version')
put('zip_empty.pt', b'PK\x05\x06' + b'\0' * 18, REF + 'an empty archive')
put('zip_directory_bomb.pt', OK[:eocd + 8] + struct.pack('<HH', 65535, 65535) + struct.pack('<II', 0xffffffff, 0xffffffff) + OK[eocd + 20:], REF + 'zip64 end of directory missing')
def deflated():
    out = io.BytesIO()
    with zipfile.ZipFile(out, 'w', zipfile.ZIP_DEFLATED) as z:
        z.writestr('archive/data.pkl', GOOD); z.writestr('archive/data/0', b'\0' * (16 << 20)); z.writestr('archive/version', b'3\n')
    return out.getvalue()
put('zip_deflate_bomb.pt', deflated(), REF + 'data/0 is 16 MiB, 4 float32 need 16 bytes; not inflated for that')
put('zip_deflate_pkl_bomb.pt', (lambda o: (lambda z: (z.writestr('archive/data.pkl', b'\x80\x02' + b'N0' * (40 << 20)), z.close(), o.getvalue())[2])(zipfile.ZipFile(o, 'w', zipfile.ZIP_DEFLATED)))(io.BytesIO()), REF + 'data.pkl above 64 MiB (80 MiB), or its opcodes; memory bounded')
def deflated_damage():
    out = io.BytesIO()
    with zipfile.ZipFile(out, 'w', zipfile.ZIP_DEFLATED, compresslevel=0) as z:
        for n, b in (('data.pkl', GOOD), ('data/0', F4), ('version', b'3\n')): z.writestr(zipfile.ZipInfo('archive/' + n, (1980, 1, 1, 0, 0, 0)), b, zipfile.ZIP_DEFLATED, 0)
    b = out.getvalue()
    return flip(b, b.index(F4))
put('zip_deflate_damage.pt', deflated_damage(), REF + 'wrong CRC; which member it was is said')
# ---- 46: kept but skipped -----------------------------------------------------------------------------------------------
put('quantized_te.pt', ptzip(doc(dic(('high_precision', tensor()), ('quantized', g('transformer_engine.pytorch.tensor.float8_tensor', 'Float8Tensor') + b')\x81}b'))), {'0': F4}), 'high_precision is read, quantized skipped with a note, exit 0 (or 5); not executed')
put('unknown_class_beside.pt', ptzip(doc(dic(('w', tensor()), ('x', g('mymodule', 'Config') + b')\x81}' + b'(' + u('lr') + b'G?\xb9\x99\x99\x99\x99\x99\x9a' + b'ub'))), {'0': F4}), 'either refused: global mymodule.Config (exit 3), or w read and x skipped with a note: the same decision as for namespace.* of the good files; nothing executed')
# empties and others
put('empty.pt', b'', REF + 'empty file')
put('one_byte.pt', b'\x80', REF + 'truncated')
put('text.pt', b'hello world\n', REF + 'no known format')
put('html.pt', b'<!DOCTYPE html><html>', REF + 'no known format')
put('lfs_pointer.pt', b'version https://git-lfs.github.com/spec/v1\noid sha256:0000\nsize 12\n', REF + 'no known format (a git-lfs pointer)')
put('no_tensors.pt', ptzip(doc(dic(('a', i(1)))), {}), 'no tensors: said, as for an empty trace')
open('bad/EXPECT.txt', 'w').write('\n'.join(EXPECT) + '\n')
print(len(EXPECT), 'files', sum(os.path.getsize('bad/' + f) for f in os.listdir('bad')))
