#!/usr/bin/env python3
"""Files of tensors as the libraries and programs of their formats write them, and the digests of what they hold.

    python3 -m venv venv && venv/bin/pip install numpy==2.4.6 ml_dtypes==0.6.0 gguf==0.19.0 safetensors==0.8.0 h5py==3.16.0 keras==3.15.1 scipy jax flax onnx==1.23.2 torch
    git clone https://github.com/karpathy/llm.c         # the writers of train_gpt2.py and train_llama3.py are run
    PYTHONPATH=llm.c venv/bin/python tests/trace/recorded/record.py tests/trace/recorded

(names of writers behind the folder, as onnx_file, write those files alone) writes the files and digests.tsv: file, tensor, dtype, shape, SHA-256 of its codes, little-endian, or "-" where elements
are not read. Files whose name ends in .xz are packed by xz -9. torch itself is needed by export_file alone: the other writers ask of a tensor
what NumPy can do, through the stand-in below.
"""
import hashlib
import os
import struct
import subprocess
import sys
import types

import ml_dtypes
import numpy as np

rows = []


def row(file, name, dtype, shape, codes):
    """codes: an array of what the file holds, or None."""
    digest = "-"
    if codes is not None:
        codes = np.ascontiguousarray(codes)
        digest = hashlib.sha256(codes.astype(codes.dtype.newbyteorder("<")).tobytes()).hexdigest()
    rows.append("\t".join([file, name, dtype, ",".join(map(str, shape)), digest]))


def pack(path):
    subprocess.run(["xz", "-9", "-f", path], check=True)
    return os.path.basename(path) + ".xz"


# ---- GGUF ----

# Where the numbers of more than 8 bits of a block are, that are swapped in a big-endian file: (offset, bytes).
WORDS = {"Q2_K": ((80, 2), (82, 2)), "Q3_K": ((108, 2),), "Q6_K": ((208, 2),), "TQ1_0": ((52, 2),), "TQ2_0": ((64, 2),),
         "Q8_K": ((0, 4),), "MXFP4": (), "NVFP4": (), "Q4_0": ((0, 2),), "Q5_0": ((0, 2),), "Q8_0": ((0, 2),),
         "IQ4_NL": ((0, 2),), "Q4_1": ((0, 2), (2, 2)), "Q5_1": ((0, 2), (2, 2)), "Q4_K": ((0, 2), (2, 2)),
         "Q5_K": ((0, 2), (2, 2)), "IQ4_XS": ((0, 2), (2, 2))}


def gguf_numbers(kind, data, big):
    """What the blocks stand for: None for the types that are not read; a NaN is 0x7fc00000."""
    import gguf
    if kind.name not in WORDS:
        return None
    size = gguf.GGML_QUANT_SIZES[kind][1]
    data = data.reshape(-1, size).copy()
    for at, n in WORDS[kind.name] if big else ():
        data[:, at:at + n] = data[:, at:at + n][:, ::-1].copy()
    if kind.name == "Q8_K":  # which gguf has no function for: d times codes (ggml, dequantize_row_q8_K)
        x = data[:, :4].copy().view(np.float32) * data[:, 4:260].view(np.int8).astype(np.float32)
    else:
        x = gguf.dequantize(data, kind)
    return np.where(np.isnan(x), np.float32(np.nan), x).astype(np.float32)


def gguf_file(folder, name, big):
    import gguf
    rng = np.random.default_rng(1)
    endian = gguf.GGUFEndian.BIG if big else gguf.GGUFEndian.LITTLE
    w = gguf.GGUFWriter(os.path.join(folder, name), "llama", endianess=endian)
    w.add_name("recorded")
    w.add_description("lines\nand \u00e4\u4e2d")
    w.add_uint8("test.u8", 255)
    w.add_int8("test.i8", -128)
    w.add_uint16("test.u16", 65535)
    w.add_int16("test.i16", -32768)
    w.add_uint32("test.u32", 4294967295)
    w.add_int32("test.i32", -2147483648)
    w.add_uint64("test.u64", 18446744073709551615)
    w.add_int64("test.i64", -9223372036854775808)
    w.add_float32("test.f32", 1e-5)
    w.add_float64("test.f64", 0.1)
    w.add_bool("test.bool", True)
    w.add_array("test.numbers", [1, 2, 3])
    w.add_array("test.long", list(range(1000)))
    w.add_array("test.strings", ["a", "bc", ""] * 100)
    f32 = rng.standard_normal((3, 5)).astype(np.float32)
    plain = {
        "f32.weight": ("F32", f32),
        "f16.weight": ("F16", rng.standard_normal((2, 3, 4)).astype(np.float16)),
        "f64.weight": ("F64", rng.standard_normal((7,))),
        "bf16.weight": ("BF16", rng.standard_normal((4, 6)).astype(ml_dtypes.bfloat16).view(np.uint16)),
        "one": ("F32", np.array([2.5], np.float32)),
    }
    for key, (dtype, x) in plain.items():
        w.add_tensor(key, x.copy(), raw_dtype=gguf.GGMLQuantizationType[dtype]) # which swaps the bytes
        row(name, key, dtype, x.shape, x)
    for kind, (block, size) in gguf.GGML_QUANT_SIZES.items():
        if kind.name in ("F32", "F16", "F64", "BF16"):
            continue
        shape = (2, block)
        data = rng.integers(0, 256, (2, size), np.uint8)
        w.add_tensor("blk.0." + kind.name, data, raw_shape=data.shape, raw_dtype=kind)
        row(name, "blk.0." + kind.name, kind.name, shape, gguf_numbers(kind, data, big))
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


# ---- safetensors ----

def safetensors_file(folder):
    """F4, which the library calls float4_e2m1fn_x2: two of ml_dtypes' float4_e2m1fn in a byte, the first in the low half, as torch has
    them. It takes the shape of the bytes and writes that of the elements."""
    from safetensors import TensorSpec, serialize_file
    rng = np.random.default_rng(7)
    name = "f4.safetensors"
    arrays = {"w": rng.standard_normal((6, 10)).astype(ml_dtypes.float4_e2m1fn), "v": np.arange(16, dtype=np.uint8).view(ml_dtypes.float4_e2m1fn)}
    packed = {k: (x.view(np.uint8)[..., ::2] & 15) | (x.view(np.uint8)[..., 1::2] << 4) for k, x in arrays.items()}
    serialize_file({k: TensorSpec(dtype="float4_e2m1fn_x2", shape=b.shape, data_ptr=b.ctypes.data, data_len=b.nbytes)
                    for k, b in packed.items()}, os.path.join(folder, name), metadata=None)
    for key in "v", "w":
        row(name, key, "F4", arrays[key].shape, arrays[key].view(np.uint8) & 15)


# ---- Flax, ONNX ----

def flax_file(folder):
    from flax import serialization
    rng = np.random.default_rng(4)
    kernel, bias = rng.standard_normal((2, 3)).astype(np.float32), rng.standard_normal(3).astype(ml_dtypes.bfloat16)
    mu = rng.standard_normal((2, 2)).astype(np.float16)
    tree = {"step": 7, "params": {"Dense_0": {"bias": bias, "kernel": kernel}}, "opt": [np.int32(3), {"mu": mu, "none": np.zeros((0, 2), np.float32)}],
            "lr": 1e-3, "name": "\u00e9", "flag": True, "none": None, "below": -5, "far": -300, "bytes": b"xyz"}
    name = "flax.msgpack"
    with open(os.path.join(folder, name), "wb") as f:
        f.write(serialization.msgpack_serialize(serialization.to_state_dict(tree)))
    for key, dtype, x in (("opt/0", "int32", None), ("opt/1/mu", "float16", mu), ("opt/1/none", "float32", np.zeros((0, 2), np.float32)),
                          ("params/Dense_0/bias", "bfloat16", bias.view(np.uint16)), ("params/Dense_0/kernel", "float32", kernel)):
        row(name, key, dtype, () if x is None else x.shape, x)


def flax_chunks(folder):
    """Arrays above 1 GiB are written in pieces: here those above 16 bytes are."""
    from flax import serialization
    rng = np.random.default_rng(10)
    w, b, long = rng.standard_normal((3, 5)).astype(np.float32), rng.standard_normal(13).astype(ml_dtypes.bfloat16), np.arange(101, dtype=np.float16)
    tree = {"params": {"b": b, "long": long, "small": np.ones(2, np.float32), "w": w}, "ids": np.arange(9), "step": 7}
    serialization.MAX_CHUNK_SIZE = 16
    name, written = "chunks.msgpack", serialization.msgpack_serialize(serialization.to_state_dict(tree))
    with open(os.path.join(folder, name), "wb") as f:
        f.write(written)
    back = serialization.msgpack_restore(written)
    assert np.array_equal(back["params"]["w"], w) and np.array_equal(back["params"]["long"], long)
    for key, dtype, x in (("ids", "int64", None), ("params/b", "bfloat16", b.view(np.uint16)), ("params/long", "float16", long), ("params/small", "float32", np.ones(2, np.float32)),
                          ("params/w", "float32", w)):
        row(name, key, dtype, (9,) if x is None else x.shape, x)


def onnx_file(folder):
    import onnx
    from onnx import TensorProto, helper, numpy_helper
    rng = np.random.default_rng(5)
    w, d = rng.standard_normal((4, 3)).astype(np.float32), rng.standard_normal(2)
    h, e4m3 = rng.standard_normal(2).astype(np.float16), rng.standard_normal(5).astype(ml_dtypes.float8_e4m3fn)
    b = np.array([1, 2, 3], np.float32)
    initializers = [numpy_helper.from_array(w, "w"), helper.make_tensor("b", TensorProto.FLOAT, [3], b),
                    helper.make_tensor("h", TensorProto.FLOAT16, [2], h.tobytes(), raw=True),
                    helper.make_tensor("varints", TensorProto.FLOAT16, [2], [1.0, 2.0]), numpy_helper.from_array(np.arange(5), "i"),
                    helper.make_tensor("d", TensorProto.DOUBLE, [2], d),
                    helper.make_tensor("e", TensorProto.FLOAT8E4M3FN, [5], e4m3.tobytes(), raw=True)]
    value = helper.make_tensor_value_info
    graph = helper.make_graph([helper.make_node("Gemm", ["x", "w", "b"], ["y"])], "g", [value("x", TensorProto.FLOAT, [1, 4])],
                              [value("y", TensorProto.FLOAT, [1, 3])], initializers)
    name = "model.onnx"
    onnx.save(helper.make_model(graph, producer_name="record"), os.path.join(folder, name))
    for key, dtype, x in (("w", "F32", w), ("b", "F32", b), ("h", "F16", h), ("varints", "F16", np.array([1, 2], np.float16)), ("i", "I64", None),
                          ("d", "F64", d), ("e", "F8_E4M3", e4m3.view(np.uint8))):
        row(name, key, dtype, (5,) if key == "i" else x.shape, x)


def onnx_graphs(folder):
    """Weights that are no initialisers of the main graph: values of Constants, in every form; those of If, Loop and functions."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper
    rng = np.random.default_rng(8)
    numbers = lambda *shape: rng.standard_normal(shape).astype(np.float32)
    w = {k: numbers(2, 3) for k in ("tensor", "inner", "then/weight", "deep/weight", "body", "of_function", "list/0", "list/1")}
    node, value = helper.make_node, helper.make_tensor_value_info
    tensor = lambda k, name="t": numpy_helper.from_array(w[k], name)
    out = [value("o", TensorProto.FLOAT, [2, 3])]
    deep = helper.make_graph([node("Identity", ["weight"], ["o"])], "deep", [], out, [numpy_helper.from_array(w["deep/weight"], "weight")])
    then = helper.make_graph([node("Constant", [], ["c"], value=tensor("inner")), node("If", ["p"], ["o"], then_branch=deep, else_branch=deep)],
                             "then", [], out, [numpy_helper.from_array(w["then/weight"], "weight")])
    body = helper.make_graph([node("Constant", [], ["v"], value=tensor("body")), node("Identity", ["c_in"], ["c_out"])], "body",
                             [value("n", TensorProto.INT64, []), value("c_in", TensorProto.BOOL, [])],
                             [value("c_out", TensorProto.BOOL, []), value("v", TensorProto.FLOAT, [2, 3])])
    nodes = [node("Constant", [], ["tensor"], value=tensor("tensor")), node("Constant", [], ["one"], value_float=1.5),
             node("Constant", [], ["some"], value_floats=[1.0, 2.0, -3.0]), node("Constant", [], ["int"], value_int=-7),
             node("Constant", [], ["ints"], value_ints=[1, -1, 300]), node("Constant", [], ["text"], value_string=b"x"),
             node("Constant", [], ["sparse"], sparse_value=helper.make_sparse_tensor(
                 helper.make_tensor("sv", TensorProto.FLOAT, [2], [4.0, 5.0]), helper.make_tensor("si", TensorProto.INT64, [2], [0, 5]), [2, 3])),
             node("If", ["p"], ["if_out"], name="named", then_branch=then, else_branch=deep), node("Loop", ["", "p"], ["loop_out"], body=body),
             node("Own", [], ["own"], domain="test", weights=[tensor("list/0"), tensor("list/1")], pads=[0, 1], alpha=0.5)]
    graph = helper.make_graph(nodes, "g", [value("p", TensorProto.BOOL, [])], [value("if_out", TensorProto.FLOAT, [2, 3])])
    function = helper.make_function("test", "F", [], ["o"], [node("Constant", [], ["o"], value=tensor("of_function"))], [helper.make_opsetid("", 20)])
    name = "graphs.onnx"
    onnx.save(helper.make_model(graph, producer_name="record"), os.path.join(folder, name))
    calls = helper.make_graph([node("F", [], ["o"], domain="test")], "g", [], out)
    onnx.save(helper.make_model(calls, producer_name="record", functions=[function]), os.path.join(folder, "function.onnx"))
    f4 = lambda *x: np.array(x, np.float32)
    for key, dtype, x in (("tensor", "F32", w["tensor"]), ("one", "F32", np.float32(1.5)), ("some", "F32", f4(1, 2, -3)), ("int", "I64", ()), ("ints", "I64", (3,)),
                          ("sparse", "F32", f4(4, 5)), ("sparse/indices", "I64", (2,)),
                          # attributes stand in the order of their names
                          ("if_out/else_branch/weight", "F32", w["deep/weight"]), ("if_out/then_branch/c", "F32", w["inner"]),
                          ("if_out/then_branch/o/else_branch/weight", "F32", w["deep/weight"]), ("if_out/then_branch/o/then_branch/weight", "F32", w["deep/weight"]),
                          ("if_out/then_branch/weight", "F32", w["then/weight"]), ("loop_out/body/v", "F32", w["body"]),
                          ("own/weights/0", "F32", w["list/0"]), ("own/weights/1", "F32", w["list/1"])):
        row(name, key, dtype, x if dtype == "I64" else x.shape, None if dtype == "I64" else x)
    row("function.onnx", "F/o", "F32", (2, 3), w["of_function"])


def onnx_types(folder):
    """Every type of elements: raw, as numbers, and in a file beside the model; of less than a byte an odd number of them."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper
    from onnx.external_data_helper import set_external_data
    read = {"FLOAT": "F32", "DOUBLE": "F64", "FLOAT16": "F16", "BFLOAT16": "BF16", "FLOAT8E4M3FN": "F8_E4M3", "FLOAT8E4M3FNUZ": "F8_E4M3FNUZ",
            "FLOAT8E5M2": "F8_E5M2", "FLOAT8E5M2FNUZ": "F8_E5M2FNUZ", "FLOAT8E8M0": "F8_E8M0", "FLOAT4E2M1": "F4", "FLOAT6E2M3": "F6_E2M3", "FLOAT6E3M2": "F6_E3M2"}
    listed = {"UINT8": "U8", "INT8": "I8", "UINT16": "U16", "INT16": "I16", "INT32": "I32", "INT64": "I64", "UINT32": "U32", "UINT64": "U64",
              "BOOL": "BOOL", "COMPLEX64": "C64"}
    name, data, made, lines = "types.onnx", bytearray(b"head"), [], []
    for kind, number in sorted(TensorProto.DataType.items(), key=lambda item: item[1]):
        if kind in ("UNDEFINED", "STRING"):
            continue
        dtype = helper.tensor_dtype_to_np_dtype(number)
        x = (np.array([1, 2, 4, 0.5, 1]) if kind == "FLOAT8E8M0" else np.array([0, 1, 1, 0, 1]) if kind.startswith(("U", "BOOL"))
             else np.array([-1, 0, 1, -1.5, 2]) if kind in read else np.array([-1, 0, 1, -2, 1])).astype(dtype)
        for form in "numbers", "raw", "beside":
            t = helper.make_tensor(kind + "." + form, number, [5], x)
            if form != "numbers":  # from_array packs elements of less than a byte
                t = numpy_helper.from_array(x, kind + "." + form)
                raw = t.raw_data
            if form == "beside":
                set_external_data(t, "types.onnx.data", offset=len(data), length=len(raw))
                t.ClearField("raw_data")
                data += raw
            made.append(t)
            codes = None
            if kind in read:
                width = dtype.itemsize
                codes = x.view(np.uint8 if width == 1 else np.uint16 if width == 2 else x.dtype)
                codes = codes & {"FLOAT4": 15, "FLOAT6": 63}[kind[:6]] if kind[:6] in ("FLOAT4", "FLOAT6") else codes
            lines.append((t.name, read.get(kind) or listed.get(kind) or kind, codes))
    made.append(helper.make_tensor("STRING", TensorProto.STRING, [2], [b"a", b"bc"]))
    lines.append(("STRING", "STRING", None))
    graph = helper.make_graph([], "g", [], [], made)
    open(os.path.join(folder, name), "wb").write(helper.make_model(graph, producer_name="record").SerializeToString())
    open(os.path.join(folder, name + ".data"), "wb").write(data)
    for key, dtype, codes in lines:
        row(name, key, dtype, (2,) if key == "STRING" else (5,), codes)


# ---- JAX ----

def jax_file(folder):
    import pickle
    import jax.numpy as jnp
    rng = np.random.default_rng(6)
    w, b, e = rng.standard_normal((2, 3)).astype(np.float32), rng.standard_normal(3).astype(ml_dtypes.bfloat16), np.ones(4, ml_dtypes.float8_e5m2)
    name = "jax.pkl"
    with open(os.path.join(folder, name), "wb") as f:
        pickle.dump({"w": jnp.asarray(w), "b": jnp.asarray(b), "i": jnp.arange(3), "e": e}, f, protocol=4)
    for key, dtype, x in (("w", "float32", w), ("b", "bfloat16", b.view(np.uint16)), ("i", "int32", None), ("e", "float8_e5m2", e.view(np.uint8))):
        row(name, key, dtype, (3,) if x is None else x.shape, x)


def python2_file(folder):
    """What Python 2 wrote by protocol 0: elements as a literal of Python, here of more than 32,768 characters; Python 3 judges it."""
    import pickle
    x = np.random.default_rng(9).standard_normal(2900).astype("<f4")
    quoted = '"' if b"'" in x.tobytes() and b'"' not in x.tobytes() else "'"
    plain = {9: "\\t", 10: "\\n", 13: "\\r", 92: "\\\\", ord(quoted): "\\" + quoted}
    literal = quoted + "".join(plain.get(c, chr(c) if 32 <= c < 127 else f"\\x{c:02x}") for c in x.tobytes()) + quoted
    text = (f"(dp0\nS'w'\np1\ncnumpy.core.multiarray\n_reconstruct\np2\n(cnumpy\nndarray\np3\n(I0\ntp4\nS'b'\np5\ntp6\nRp7\n(I1\n(I{x.size}\ntp8\n"
            f"cnumpy\ndtype\np9\n(S'f4'\np10\nI0\nI1\ntp11\nRp12\n(I3\nS'<'\np13\nNNNI-1\nI-1\nI0\ntp14\nbI00\nS{literal}\np15\ntp16\nbs.")
    name = "python2.pkl"
    assert pickle.loads(text.encode("latin1"), encoding="latin1")["w"].tobytes() == x.tobytes()
    with open(os.path.join(folder, name), "wb") as f:
        f.write(text.encode("latin1"))
    row(name, "w", "float32", x.shape, x)


# ---- torch.export ----

def hide_folders(path):
    """torch.export keeps where each line of the model was: the folders of this machine become dashes, with CRCs."""
    import re
    import zipfile
    import zlib
    data = bytearray(open(path, "rb").read())
    with zipfile.ZipFile(path) as z:
        for info in z.infolist():
            old = z.read(info)
            new = re.sub(rb'/[^ "\\\\]*/(?=[a-z_]+\.py)', lambda m: b"-" * len(m[0]), old)
            if new != old:
                at = data.index(old)
                data[at:at + len(old)] = new
                before, after = (zlib.crc32(x).to_bytes(4, "little") for x in (old, new))
                while before in data:
                    at = data.index(before)
                    data[at:at + 4] = after
    open(path, "wb").write(data)


def export_file(folder):
    import torch

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = torch.nn.Linear(3, 2)
            self.narrow = torch.nn.Parameter(torch.randn(4).bfloat16())
            self.turned = torch.nn.Parameter(torch.randn(2, 3).t())
            self.register_buffer("steps", torch.arange(3))

        def forward(self, x):
            return self.fc(x) + self.narrow.sum() + self.turned.sum() + self.steps.sum()

    torch.manual_seed(1)
    model, name = Model(), "model.pt2"
    torch.export.save(torch.export.export(model, (torch.randn(1, 3),)), os.path.join(folder, name))
    hide_folders(os.path.join(folder, name))
    state = {k: v.detach() for k, v in model.state_dict().items()}
    row(name, "turned", "unread", (3, 2), None)
    for key, dtype in (("narrow", "BF16"), ("fc.weight", "F32"), ("fc.bias", "F32")):
        row(name, key, dtype, state[key].shape, state[key].view(torch.uint16).numpy() if dtype == "BF16" else state[key].numpy())
    row(name, "steps", "I64", (3,), None)


def optimizer_file(folder):
    """An optimizer's own state_dict(), as Hugging Face's Trainer saves it: weights decay, biases do not."""
    import torch
    torch.manual_seed(2)
    model, name = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Linear(2, 2)), "optimizer.pt"
    weights, biases = ([p for p in model.parameters() if p.ndim == n] for n in (2, 1))
    opt = torch.optim.AdamW([{"params": weights, "weight_decay": 0.1}, {"params": biases, "weight_decay": 0}])
    model(torch.randn(4, 3)).sum().backward()
    opt.step()
    torch.save(opt.state_dict(), os.path.join(folder, name))
    for number, state in opt.state_dict()["state"].items():
        for key, x in state.items():
            row(name, f"state/{number}/{key}", "float32", x.shape, x.numpy())


def package_files(folder):
    """torch.package: pickles beside modules and texts, which share storages; and an archive with one pickle."""
    import torch
    from torch.package import PackageExporter
    torch.manual_seed(3)
    w, h, i = torch.randn(3, 4), torch.randn(5).bfloat16(), torch.arange(4)
    two = {"models/one.pkl": {"w": w, "turned": w.t()[1:], "i": i}, "models/two.pkl": [torch.nn.Parameter(w), {"h": h}]}
    for name, pickles in ("package.pt", two), ("package-one.pt", {"models/one.pkl": two["models/one.pkl"]}):
        with PackageExporter(os.path.join(folder, name)) as e:
            for path, x in pickles.items():
                e.save_pickle(*path.split("/"), x)
            e.save_text("notes", "note.txt", "text")
            e.save_source_string("module", "x = 1")
        below = "models/one.pkl/" if len(pickles) > 1 else ""
        row(name, below + "w", "float32", (3, 4), w.numpy())
        row(name, below + "turned", "float32", (3, 3), w.t()[1:].contiguous().numpy())
        row(name, below + "i", "int64", (4,), None)
        if below:
            row(name, "models/two.pkl/0", "float32", (3, 4), w.numpy())
            row(name, "models/two.pkl/1/h", "bfloat16", (5,), h.view(torch.int16).numpy().view(np.uint16))


# ---- HDF5 ----

def hdf5_files(folder):
    import h5py
    rng = np.random.default_rng(2)
    name = "h5py.h5"
    x = rng.standard_normal((5, 7, 3))
    with h5py.File(os.path.join(folder, name), "w") as f:
        f.attrs.update({"step": 42, "lr": np.float32(1e-3), "note": "lines\nand \u00e4", "names": ["a", "b"],
                        "betas": [0.9, 0.999]})
        f.create_group("model/layer 0").attrs["units"] = np.int16(-3)
        f["model/soft"] = h5py.SoftLink("/plain/F64")
        f["model/external"] = h5py.ExternalLink("other.h5", "/x")
        for dtype, short in ("f8", "F64"), ("f4", "F32"), ("f2", "F16"):
            f["plain/" + short] = x.astype("<" + dtype)
            f["plain/" + short + "_big"] = x.astype(">" + dtype)
        f["model/hard"] = f["plain/F32"]
        f["model/again"] = f["model"] # a loop
        f.create_dataset("packed/gzip", data=x.astype("f4"), chunks=(2, 3, 2), compression="gzip")
        f.create_dataset("packed/shuffle", data=x, chunks=(5, 7, 1), compression="gzip", shuffle=True, fletcher32=True)
        f.create_dataset("packed/chunked", data=x, chunks=(4, 4, 2))
        f.create_dataset("packed/sparse", shape=(6, 6), dtype="f4", chunks=(2, 2), fillvalue=1.5)
        f["packed/sparse"][2:4, 3:5] = 7
        f.create_dataset("plain/unwritten", shape=(4,), dtype="f4")
        for dtype, short in ("i1", "I8"), ("u2", "U16"), ("i4", "I32"), ("u8", "U64"):
            f["integers/" + short] = np.arange(6).reshape(2, 3).astype(dtype)
        f["other/bool"] = np.array([True, False])
        f["other/strings"] = ["x", "yz"]
        f["other/complex"] = np.array([1 + 2j])
        f["scalar"] = np.float32(2.5)
        f["empty"] = h5py.Empty("f4")
        # what HDF5 2 calls BFLOAT16LE and F8E4M3: fields of a type of our own
        for short, size, fields, bias in ("BF16", 2, (15, 7, 8, 0, 7), 127), ("F8_E4M3", 1, (7, 3, 4, 0, 3), 7):
            t = h5py.h5t.IEEE_F32LE.copy()
            t.set_fields(*fields)
            t.set_precision(8 * size)
            t.set_size(size)
            t.set_ebias(bias)
            codes = rng.integers(0, 120, (3, 4)).astype("u%d" % size)
            d = h5py.h5d.create(f.id, ("fields_" + short).encode(), t, h5py.h5s.create_simple((3, 4)))
            d.write(h5py.h5s.ALL, h5py.h5s.ALL, codes, t)
            if short == "BF16":
                bf16 = codes
            else:
                e4m3 = codes
    with h5py.File(os.path.join(folder, name), "r") as f:
        listed = []
        f.visit(lambda k: listed.append(k) if isinstance(f[k], h5py.Dataset) else None)
        a = {k: f[k] for k in listed}
        short = {"f8": "F64", "f4": "F32", "f2": "F16", "i1": "I8", "u2": "U16", "i4": "I32", "u8": "U64"}
        for k in sorted(listed, key=lambda k: k.split("/")):
            d = a[k]
            if k.startswith("fields_"):
                codes = bf16 if "BF16" in k else e4m3
                row(name, k, k[7:], codes.shape, codes)
            elif d.shape is None:
                row(name, k, "F32", (0,), np.zeros(0, "f4"))
            elif k.startswith("other/"):
                row(name, k, {"bool": "enum", "strings": "string", "complex": "compound"}[k[6:]], d.shape, None)
            else:
                row(name, k, short[d.dtype.str[1:]], d.shape, d[()] if d.dtype.kind == "f" else None)


def keras_file(folder):
    os.environ["KERAS_BACKEND"] = "jax"
    import h5py
    import keras
    keras.utils.set_random_seed(3)
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3, activation="relu"),
                              keras.layers.BatchNormalization(), keras.layers.Dense(2)])
    model.save(os.path.join(folder, "model.keras"))
    name = "keras.weights.h5"
    model.save_weights(os.path.join(folder, name))
    with h5py.File(os.path.join(folder, name), "r") as f:
        listed = []
        f.visit(lambda k: listed.append(k) if isinstance(f[k], h5py.Dataset) else None)
        for file in name, "model.keras":  # the same weights
            for k in sorted(listed, key=lambda k: k.split("/")):
                row(file, k, "F32" if f[k].dtype == "f4" else "I32", f[k].shape, f[k][()] if f[k].dtype == "f4" else None)


# ---- llm.c ----

class Tensor:
    """What the writers ask of a torch tensor."""
    def __init__(self, a):
        self.a = np.asarray(a)
        self.shape, self.ndim = self.a.shape, self.a.ndim

    def detach(self):
        return self

    cpu = detach

    def to(self, dtype):
        return Tensor(self.a.astype(dtype))

    def view(self, dtype):
        return Tensor(self.a.view(dtype))

    def numpy(self):
        return self.a

    def size(self, i):
        return self.a.shape[i]

    def __setitem__(self, i, x):
        self.a[i] = x


def stand_in():
    torch = types.ModuleType("torch")
    torch.float32, torch.bfloat16 = np.float32, ml_dtypes.bfloat16
    torch.int16, torch.int32 = np.int16, np.int32
    torch.zeros = lambda n, dtype: Tensor(np.zeros(n, dtype))
    torch.no_grad = lambda: lambda f: f
    functional = types.ModuleType("torch.nn.functional")
    functional.pad = lambda t, p, value: Tensor(np.pad(t.a, ((0, p[3]), (0, 0)), constant_values=value))
    nn = types.ModuleType("torch.nn")
    nn.functional = functional
    torch.nn = nn
    sys.modules.update({"torch": torch, "torch.nn": nn, "torch.nn.functional": functional})


def values(name, shape, salt):
    """Numbers of all magnitudes that pack well: a row of 16 again and again, another one in each tensor."""
    seed = int.from_bytes(hashlib.sha256((name + salt).encode()).digest()[:4], "little")
    row16 = np.random.default_rng(seed).standard_normal(16).astype(np.float32) * np.float32(2.0) ** (seed % 40 - 30)
    return np.resize(row16, shape)


class Model:
    def __init__(self, config, shapes):
        self.config = types.SimpleNamespace(**config)
        self.parameters = {}
        for name, shape in shapes.items():
            p = Tensor(values(name, shape, "weight"))
            p.grad = Tensor(values(name, shape, "grad"))
            self.parameters[name] = p

    def named_parameters(self):
        return self.parameters.items()


def layers(n, c, rows):
    return {f"transformer.h.{i}.{k}": s for k, s in rows.items() for i in range(n)}


def gpt2_shapes(n, c, v=50257):
    a = {"transformer.wte.weight": (v, c), "transformer.wpe.weight": (1024, c)}
    a.update(layers(n, c, {
        "ln_1.weight": (c,), "ln_1.bias": (c,), "attn.c_attn.weight": (3 * c, c), "attn.c_attn.bias": (3 * c,),
        "attn.c_proj.weight": (c, c), "attn.c_proj.bias": (c,), "ln_2.weight": (c,), "ln_2.bias": (c,),
        "mlp.c_fc.weight": (4 * c, c), "mlp.c_fc.bias": (4 * c,), "mlp.c_proj.weight": (c, 4 * c),
        "mlp.c_proj.bias": (c,)}))
    a.update({"transformer.ln_f.weight": (c,), "transformer.ln_f.bias": (c,)})
    return a


def llama_shapes(n, c, heads, pairs, hidden, v):
    a = {"transformer.wte.weight": (v, c)}
    a.update(layers(n, c, {
        "ln_1.weight": (c,), "attn.c_attn.weight": ((heads + 2 * pairs) * (c // heads), c),
        "attn.c_proj.weight": (c, c), "ln_2.weight": (c,), "mlp.c_fc.weight": (hidden, c),
        "mlp.c_fc2.weight": (hidden, c), "mlp.c_proj.weight": (c, hidden)}))
    a.update({"transformer.ln_f.weight": (c,), "lm_head.weight": (v, c)})
    return a


def padded(name, a):
    return np.pad(a, ((0, 47), (0, 0))) if name == "transformer.wte.weight" and a.shape[0] == 50257 else a


def llmc_files(folder):
    stand_in()
    import train_gpt2
    import train_llama3
    path = lambda name: os.path.join(folder, name)
    n, c = 2, 32
    m = Model({"block_size": 1024, "vocab_size": 50257, "n_layer": n, "n_head": 2, "n_embd": c}, gpt2_shapes(n, c))
    for dtype, short, name in ("float32", "F32", "gpt2.bin"), ("bfloat16", "BF16", "gpt2_bf16.bin"):
        train_gpt2.write_model(m, path(name), dtype)
        file = pack(path(name))
        for key, p in m.named_parameters():
            a = padded(key, p.a)
            a = a if short == "F32" else a.astype(ml_dtypes.bfloat16).view(np.uint16)
            row(file, "weight:" + key, short, a.shape, a)
    x = np.arange(10).reshape(2, 5)
    logits, loss = values("logits", (2, 5, 50257), ""), np.float32(10.5)
    train_gpt2.write_state(m, Tensor(x), Tensor(x + 1), Tensor(logits), Tensor(loss), path("gpt2_debug_state.bin"))
    file = pack(path("gpt2_debug_state.bin"))
    row(file, "x", "I32", x.shape, None)
    row(file, "y", "I32", x.shape, None)
    row(file, "out:logits", "F32", logits.shape, logits)
    row(file, "loss", "F32", (), loss)
    for key, p in m.named_parameters():
        row(file, "wgrad:" + key, "F32", padded(key, p.grad.a).shape, padded(key, p.grad.a))
    c, heads, pairs, hidden, v = 64, 4, 2, 192, 300
    m = Model({"block_size": 128, "vocab_size": v, "n_layer": 2, "n_head": heads, "n_kv_head": pairs, "n_embd": c,
               "multiple_of": 32, "use_scaled_rope": True, "version": "3.1", "ffn_dim_multiplier": 1.1,
               "norm_eps": 1e-5, "rope_theta": 5e5}, llama_shapes(2, c, heads, pairs, hidden, v))
    train_llama3.write_model(m, path("llama3.bin"), "bfloat16")
    file = pack(path("llama3.bin"))
    for key, p in m.named_parameters():
        row(file, "weight:" + key, "BF16", p.a.shape, p.a.astype(ml_dtypes.bfloat16).view(np.uint16))
    for name, magic, version, dtype in ("tokens", 20240520, 1, "u2"), ("tokens_llama", 20240801, 7, "u4"):
        with open(path(name + ".bin"), "wb") as f: # write_datafile of dev/data/data_common.py
            f.write(np.array([magic, version, 100] + [0] * 253, "<i4").tobytes() + np.arange(100, dtype="<" + dtype).tobytes())
        row(name + ".bin", "tokens", "U16" if dtype == "u2" else "U32", (100,), None)
    for name, processes, masters, shuffle in ("state", 1, 1, 0), ("state_shuffle", 1, 0, 1), ("state_shard", 4, 0, 0):
        optimizer_state(folder, name + "_00000007_00000.bin", processes, masters, shuffle)


def optimizer_state(folder, name, processes, masters, shuffle):
    """What save_state of train_gpt2.cu writes, which needs a GPU to run."""
    shapes = gpt2_shapes(1, 48, 50304) if processes == 1 else {"parameters": (12345,)}
    kinds = ["opt.m", "opt.v"] + ["master"] * masters
    header = np.zeros(256, "<i4")
    header[[0, 1, 2, 4, 5, 10]] = 20240527, 1, processes, masters, shuffle, 7
    path = os.path.join(folder, name)
    tensors = [(f"{k}:{n}", values(n, s, k)) for k in kinds for n, s in shapes.items()]
    with open(path, "wb") as f:
        f.write(header.tobytes())
        for _, a in tensors:
            f.write(a.tobytes())
        if shuffle:
            f.write(struct.pack("<Q3iQ5i", 3, 2, 0, 1, 5, 4, 2, 0, 1, 3) + bytes(2520))
    file = pack(path)
    for n, a in tensors:
        row(file, n, "F32", a.shape, a)
    if shuffle:
        row(file, "loader", "U8", (8 + 12 + 8 + 20 + 2520,), None)


def gguf_files(folder):
    gguf_file(folder, "little.gguf", False)
    gguf_file(folder, "big.gguf", True)


WRITERS = (gguf_files, safetensors_file, flax_file, flax_chunks, onnx_file, onnx_graphs, onnx_types, jax_file, python2_file, export_file, optimizer_file, package_files, hdf5_files, keras_file, llmc_files)


def main(folder, *names):
    for writer in WRITERS:
        if not names or writer.__name__ in names:
            writer(folder)
    digests = os.path.join(folder, "digests.tsv")
    written = {r.split("\t")[0] for r in rows}
    kept = [r for r in open(digests, encoding="utf-8").read().splitlines() if names and r.split("\t")[0] not in written]
    with open(digests, "w", encoding="utf-8") as f:
        f.write("\n".join(kept + rows) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
