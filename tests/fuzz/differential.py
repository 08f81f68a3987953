#!/usr/bin/env python3
"""differential.py -- valid files, changed at random, read by mpsim and by the reader of whoever defined the format.

Both must accept the same files and read the same from them. Where they do not, the file is one of a group by what both
said; groups that are known are in EXPLAINED with the reason, others are printed with the first file of each and make
the exit code 1.

    python3 -m venv venv && venv/bin/pip install numpy safetensors gguf
    make tests/fuzz/read-tensors
    venv/bin/python tests/fuzz/differential.py -n 20000 [--format npy] [--seed 1] [--keep FOLDER]

Last run with safetensors 0.8.0, numpy 2.4.6, gguf 0.19.0 (counts: differential.tsv).
"""
import argparse
import collections
import io
import json
import os
import random
import re
import resource
import signal
import struct
import subprocess
import sys
import tempfile
import warnings
import zipfile

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))

# (format, what mpsim did, the reference's words, mpsim's words, reason); patterns of re.search
REFUSES, ACCEPTS, DIFFER = "only mpsim refuses", "only mpsim accepts", "differ"
EXPLAINED = [
    ("safetensors", REFUSES, "", "too big integer", "an integer of 2^63 or more beside a dimension of 0"),
    ("safetensors", REFUSES, "", "JSON_ALLOW_NUL", "a zero byte in a name"),
    ("safetensors", REFUSES, "", "two tensors have the name", "a name that occurs twice: the reference takes the last"),
    ("safetensors", REFUSES, "", "keys other than dtype", "keys that the reference ignores"),
    ("safetensors", REFUSES, "", "duplicate|occurs twice", "a key that occurs twice: the reference takes the last"),
    ("np", REFUSES, "", "promises N bytes of data, there are N", "bytes after the array, which NumPy ignores"),
    ("np", REFUSES, "", "dtype '.' (holds|does not say)|complex numbers|long double", "dtypes that mpsim does not read"),
    ("np", REFUSES, "", "no newline at its end", "a header without the newline that the format requires"),
    ("np", REFUSES, "", "npy header is not valid", "Python syntax that NumPy never writes: comments, 3L, r'descr', a key twice, 0 for False"),
    ("npz", REFUSES, "", "zip directory|zip archive|zip member", "contradicting records of a zip archive: Python uses one of them"),
    ("npz", REFUSES, "", "absolute or leads out", "names of members that lead out of the archive"),
    ("npz", REFUSES, "", "not an npy member", "members that are not arrays: NumPy returns their bytes"),
    ("np", REFUSES, "", "dtype '.' is not known", "dtype spellings that NumPy never writes: '<i', '>f  2'"),
    ("npz", ACCEPTS, "", "left out with a note", "an unreadable member beside a readable one"),
    ("npz", ACCEPTS, "zip file version", "", "the zip version that an archive claims to need"),
    ("npz", DIFFER, "other names", "left out with a note", "members that are not read are left out"),
    ("npz", DIFFER, "no number here", "", "a.npy beside a.npy.npy: NumPy finds the first under both names"),
    ("npz", DIFFER, "another shape|other elements", "", "a.npy beside a.npy.npy: NumPy finds the first under both names"),
    ("gguf", REFUSES, "", "bytes after the last tensor", "bytes after the last tensor"),
    ("gguf", REFUSES, "", "holds a NUL", "a zero byte in a name or text"),
    ("gguf", REFUSES, "", "ends past the file", "an offset near 2^64, which wraps in the reference"),
    ("gguf", REFUSES, "", "where the previous one, padded", "gaps between tensors; tensors that overlap"),
]


# ---- mpsim ----

class Reader:
    """The program that reads one file after the other."""

    def __init__(self, program):
        self.pipe = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def read(self, path):
        self.pipe.stdin.write(path.encode() + b"\n")
        self.pipe.stdin.flush()
        line = self.pipe.stdout.readline()
        if not line:
            raise SystemExit(f"read-tensors ended at {path}")
        said = json.loads(line)
        if "refused" in said:
            return None, said["refused"].split(path)[-1].lstrip(": ")
        found = {}
        for t in said["tensors"]:
            data = self.pipe.stdout.read(t["bytes"])
            found[t["name"]] = (t, np.frombuffer(data, "f8") if t["numbers"] else data)
        return found, "members left out with a note" if said["left_out"] else ""


class TooLong(Exception):
    """A reference that reads for more than two seconds refuses."""


def too_long(*_):
    raise TooLong


# ---- the references: NAME: (shape, dtype word, numbers as binary64 or bytes), or an exception ----

NUMBERS = {"F64": "<f8", "F32": "<f4", "F16": "<f2"}


def bfloat16(data):
    return (np.frombuffer(data, "<u2").astype("<u4") << 16).view("<f4").astype("f8")


def read_safetensors(path):
    import safetensors
    with open(path, "rb") as f:
        tensors = safetensors.deserialize(f.read())
    found = {}
    for name, t in tensors:
        data, dtype = bytes(t["data"]), t["dtype"]
        if dtype in NUMBERS:
            values = np.frombuffer(data, NUMBERS[dtype]).astype("f8")
        else:
            values = bfloat16(data) if dtype == "BF16" else data
        found[name] = (list(t["shape"]), values)
    return found


def array(a):
    flat = np.ascontiguousarray(a.T if a.flags.f_contiguous and not a.flags.c_contiguous else a).ravel()
    return list(a.shape), flat.astype("f8") if a.dtype.kind == "f" and a.dtype.itemsize <= 8 else \
        flat.astype(a.dtype.newbyteorder("=")).tobytes()


def read_npy(path):
    return {"": array(np.load(path, allow_pickle=False))}


def read_npz(path):
    with np.load(path, allow_pickle=False) as z:
        if not isinstance(z, np.lib.npyio.NpzFile):
            raise ValueError("no archive")
        return {name: array(z[name]) for name in z.files}


def read_gguf(path):
    import gguf
    found = {}
    for t in gguf.GGUFReader(path).tensors:
        shape = [int(n) for n in reversed(t.shape)]
        if t.tensor_type.name in ("F32", "F16", "F64"):
            found[t.name] = (shape, np.asarray(t.data).ravel().astype("f8"))
        elif t.tensor_type.name in ("I8", "I16", "I32", "I64"):
            found[t.name] = (shape, np.ascontiguousarray(t.data).tobytes())
        else:
            try:
                found[t.name] = (shape, gguf.dequantize(t.data, t.tensor_type).ravel().astype("f8"))
            except NotImplementedError:
                found[t.name] = (shape, None)
    return found


# ---- valid files ----

def make_safetensors(rng):
    dtypes = {"F32": 4, "F16": 2, "BF16": 2, "F64": 8, "I32": 4, "U8": 1, "I64": 8, "BOOL": 1, "F8_E4M3": 1, "F8_E5M2": 1}
    header, body = {}, b""
    if rng.random() < 0.5:
        header["__metadata__"] = {"format": "pt"}
    for i in range(rng.randrange(4)):
        dtype = rng.choice(list(dtypes))
        shape = [rng.randrange(4) for _ in range(rng.randrange(4))]
        size = int(np.prod(shape, dtype=int)) * dtypes[dtype]
        header[rng.choice("abcd") + str(i)] = {"dtype": dtype, "shape": shape, "data_offsets": [len(body), len(body) + size]}
        body += rng.randbytes(size)
    text = json.dumps(header, separators=rng.choice([(",", ":"), (", ", ": ")])).encode()
    text += b" " * rng.choice([0, 0, -len(text) % 8, 3])
    return struct.pack("<Q", len(text)) + text + body


def make_array(rng):
    dtype = rng.choice("<f4 >f4 <f2 <f8 >f2 <i4 |i1 |u1 >i8 |b1 <u2".split())
    shape = tuple(rng.randrange(1, 4) for _ in range(rng.randrange(4)))
    a = np.frombuffer(rng.randbytes(int(np.prod(shape, dtype=int)) * np.dtype(dtype).itemsize), dtype).reshape(shape)
    return np.asfortranarray(a) if rng.random() < 0.3 else a


def make_npy(rng):
    out = io.BytesIO()
    np.lib.format.write_array(out, make_array(rng), version=rng.choice([(1, 0), (2, 0), (3, 0)]))
    return out.getvalue()


def zip_of(members):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as z:
        for name, data, how in members:
            info = zipfile.ZipInfo(name)
            info.compress_type = how
            z.writestr(info, data)
    return out.getvalue()


def make_npz(rng):
    how = rng.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
    return zip_of([(f"arr_{i}.npy", make_npy(rng), how) for i in range(rng.randrange(1, 3))])


def make_gguf(rng):
    import gguf
    with tempfile.NamedTemporaryFile() as f:
        w = gguf.GGUFWriter(f.name, rng.choice(["llama", "gpt2"]))
        w.add_uint32("n", rng.randrange(9))
        if rng.random() < 0.5:
            w.add_array("list", ["a", "bc"] if rng.random() < 0.5 else [1, 2, 3])
        for i in range(rng.randrange(1, 4)):
            a = np.frombuffer(rng.randbytes(64 * 4), "<i4").astype("f4").reshape(2, 32)
            kind = rng.choice(["F32", "F16", "I8", "Q4_0", "Q8_0", "Q5_1", "BF16"])
            if kind in ("F32", "F16"):
                w.add_tensor(f"t{i}", a.astype("f4") if kind == "F32" else (a / 2 ** 20).astype("f2"))
            elif kind == "I8":
                w.add_tensor(f"t{i}", a.astype("i1"))
            else:
                t = gguf.GGMLQuantizationType[kind]
                w.add_tensor(f"t{i}", gguf.quantize(a / 2 ** 20, t), raw_dtype=t)
        w.write_header_to_file()
        w.write_kv_data_to_file()
        w.write_tensors_to_file()
        w.close()
        with open(f.name, "rb") as g:
            return g.read()


# ---- changes ----

WORDS = [b"0", b"1", b"-1", b"9", b"[", b"]", b"{", b"}", b",", b":", b'"', b" ", b"\\u0000", b"null", b"true", b"1.0", b"1e2",
         b"18446744073709551616", b"F32", b"F8_E8M0", b"F4", b"I16", b"C64", b"\xff", b"\x00", b"<f4", b"|V2", b"(", b")", b"True",
         b"False", b"'shape'", b"L", b"__metadata__"]


def change_text(rng, t):
    t = bytearray(t)
    for _ in range(rng.choice([1, 1, 1, 1, 1, 2])):
        at = rng.randrange(len(t) + 1)
        numbers = [m.span() for m in re.finditer(rb"\d+", t)]
        how = rng.randrange(6)
        if how == 0 and t:
            t[at - 1] = rng.randrange(256)
        elif how == 1:
            t[at:at] = rng.choice(WORDS)
        elif how == 2:
            del t[at:at + rng.choice([1, 1, 2, 8])]
        elif how == 3 and numbers:
            a, b = rng.choice(numbers)
            t[a:b] = str(rng.choice([int(t[a:b]) + 1, int(t[a:b]) - 1, int(t[a:b]) * 2, 0, 2 ** 63, 2 ** 64 - 1, rng.randrange(99)])).encode()
        elif how == 4 and t:
            a = rng.randrange(len(t))
            t[at:at] = t[a:a + rng.choice([1, 4, 20])]
        else:
            word = rng.choice(WORDS)
            t[at:at + len(word)] = word
    return bytes(t)


def change_bytes(rng, b):
    b = bytearray(b)
    for _ in range(rng.choice([1, 1, 1, 2])):
        at = rng.randrange(len(b) + 1)
        how = rng.randrange(8)
        if how < 4 and b:
            at = min(at, len(b) - 1)
            b[at] = rng.choice([rng.randrange(256), b[at] ^ 1 << rng.randrange(8), 0, 255, b[at] + 1 & 255])
        elif how == 4 and len(b) > 8:
            n = rng.choice([2, 4, 8])
            b[at:at + n] = rng.choice([0, 1, 2 ** 31, 2 ** 63, 2 ** 64 - 1, len(b)]).to_bytes(8, "little")[:n]
        elif how == 5:
            del b[len(b) - rng.randrange(1, 40):]
        elif how == 6:
            b += rng.randbytes(rng.randrange(1, 9))
        else:
            del b[at:at + 1]
    return bytes(b)


def change_safetensors(rng, b):
    n = struct.unpack_from("<Q", b)[0]
    if rng.random() < 0.2:
        return change_bytes(rng, b)
    text = change_text(rng, b[8:8 + n])
    return struct.pack("<Q", len(text)) + text + b[8 + n:]


def change_npy(rng, b):
    wide = 4 if b[6] > 1 else 2
    n = int.from_bytes(b[8:8 + wide], "little")
    if rng.random() < 0.2:
        return change_bytes(rng, b)
    text = change_text(rng, b[8 + wide:8 + wide + n])
    return b[:8] + len(text).to_bytes(wide, "little") + text + b[8 + wide + n:]


def change_npz(rng, b):
    if rng.random() < 0.3:
        return change_bytes(rng, b)
    with zipfile.ZipFile(io.BytesIO(b)) as z:
        members = [[i.filename, z.read(i), i.compress_type] for i in z.infolist()]
    m = rng.choice(members)
    if rng.random() < 0.1:
        m[0] = rng.choice(["a", "../a.npy", "a/b.npy", "arr_0.npy.npy", "a.npy"])
    else:
        m[1] = change_npy(rng, m[1])
    return zip_of(members)


def change_gguf(rng, b):
    head = min(len(b), 420)  # most of it is header; elements hold any bytes
    return change_bytes(rng, b[:head]) + b[head:] if rng.random() < 0.8 else change_bytes(rng, b)


FORMATS = {
    "safetensors": (make_safetensors, change_safetensors, read_safetensors),
    "npy": (make_npy, change_npy, read_npy),
    "npz": (make_npz, change_npz, read_npz),
    "gguf": (make_gguf, change_gguf, read_gguf),
}


# ---- both ----

def same(mine, reference):
    """Why what was read is not the same; "" if it is."""
    if sorted(mine) != sorted(reference):
        return "other names"
    for name, (t, values) in mine.items():
        shape, theirs = reference[name]
        if t["shape"] != shape:
            return f"another shape of {t['dtype']}"
        if theirs is None or t["packed"]:
            continue
        if isinstance(theirs, bytes):
            if t["numbers"]:  # of a format that the reference gives as bytes
                continue
            equal = theirs == values
        else:
            if not t["numbers"]:
                return f"{t['dtype']} is no number here"
            equal = np.array_equal(theirs, values, equal_nan=True)
        if not equal:
            return f"other elements of {t['dtype']}"
    return ""


def plain(text):
    """A message without what varies."""
    text = re.sub(r"'[^']*'|\"[^\"]*\"", "'.'", text.splitlines()[0] if text else "")
    return re.sub(r"-?\d[\d,.]*", "N", text)[:110]


def judge(reader, read, path):
    mine, why = reader.read(path)
    try:
        signal.alarm(2)
        theirs, said = read(path), ""
    except Exception as e:  # whatever the reference raises is its refusal
        theirs, said = None, f"{type(e).__name__}: {e}"
    finally:
        signal.alarm(0)
    if mine is None and theirs is None:
        return "both refuse", "", ""
    if mine is not None and theirs is not None:
        how = same(mine, theirs)
        return ("differ", how, why) if how else ("both accept", "", "")
    return ("only mpsim accepts", plain(said), why) if mine is not None else ("only mpsim refuses", "", plain(why))


def reason(name, what, said, why):
    for row in EXPLAINED:
        if row[0] in name and row[1] == what and re.search(row[2], said) and re.search(row[3], why):
            return row[4]
    return None


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("-n", type=int, default=2000, help="files of each format")
    p.add_argument("--format", choices=FORMATS, action="append")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--keep", help="a folder for the first file of each group that is not explained")
    p.add_argument("--reader", default=os.path.join(TOP, "tests/fuzz/read-tensors"))
    o = p.parse_args()
    np.seterr(all="ignore")
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGALRM, too_long)
    resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
    reader = Reader(o.reader)
    bad = 0
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as folder:
        for name in o.format or FORMATS:
            make, change, read = FORMATS[name]
            rng = random.Random(o.seed)
            counts, groups, first = collections.Counter(), collections.Counter(), {}
            path = os.path.join(folder, "x." + name)
            for i in range(o.n):
                if i % 50 == 0:
                    valid = make(rng)
                data = valid if i % 50 == 0 else change(rng, valid)
                with open(path, "wb") as f:
                    f.write(data)
                what = judge(reader, read, path)
                known = reason(name, *what) if what[0] not in ("both accept", "both refuse") else None
                counts[what[0] if known is None else "explained"] += 1
                if known is not None:
                    groups[("explained", known)] += 1
                elif what[0] not in ("both accept", "both refuse"):
                    groups[what] += 1
                    first.setdefault(what, (i, data))
            print(f"{name}: {o.n} files: " + ", ".join(f"{k} {v}" for k, v in sorted(counts.items())))
            for k, (group, v) in enumerate(groups.most_common()):
                print(f"  {v:6d}  " + " | ".join(x for x in group if x))
                if group in first and o.keep:
                    with open(os.path.join(o.keep, f"{name}-{k}"), "wb") as f:
                        f.write(first[group][1])
            bad |= bool(first)
    return bad


if __name__ == "__main__":
    sys.exit(main())
