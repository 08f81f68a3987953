# SPDX-License-Identifier: Apache-2.0
"""Record what reference code of the block recipes gives, along rows and columns, as digests.

    python3 record_references.py SOURCES references.txt
    python3 record_references.py SOURCES dump CASE       (that case's arrays, to look at)

A line of references.txt is a case: words "key=value".  Its tensor is made by generate() below from
gen=SEED:KIND (the test has the same generator), so nothing of it is stored.  Results are stored as
the first 16 digits of SHA-256: codes (a byte each; a NaN of E4M3 or E5M2 without its sign, 0 where
a format without NaN meets one), scales (E8M0 or E4M3 codes; or the binary32 numbers that codes are
multiplied by), values (binary32; NaN as 7fc00000), in the order of the quantised matrix: x, or x
transposed if axis=columns.  pad=own: the reference fills the last block with zeros itself;
pad=zeros: it refuses such sides and the recorder filled them; pad=no: no block is cut.

SOURCES is a folder with
    te/                 transformer_engine 2.20.2, its wheel unpacked
    TransformerEngine/tests/pytorch/references/     its test references: blockwise_quantizer_reference.py
                        (1400f7a), quantize_scale_calc.py (3580212), mxfp4_qat_reference.py (3a472d9)
    microxcaling/mx/    mx_ops.py (3b429a8), elemwise_ops.py (4adf988), formats.py (3b429a8)
    DeepGEMM/deep_gemm/utils/math.py (38939a4)
and torch 2.15.0 (CPU), torchao 0.18.0 are installed.  Of TransformerEngine, microxcaling and
DeepGEMM the functions that quantise were run alone on CPU (the packages need a GPU build, and
microxcaling is on no registry), statement by statement as they stand there but for branches not taken
here: CUDA extensions, sparse tensors, integer elements, packed scales.  Stand-ins: those of
record_te.py, no others.
torchao's blockwise references are compiled from their source text, since their module needs Triton.
DeepSeek-V3's and the MXFP8 kernels exist for GPUs only: deepseek() and te_mxfp8() below are NumPy
versions of the published kernels, not runs of them.

What they do:

* torchao's blockwise references multiply by 448 / max(amax, 1e-12), DeepSeek-V3 divides by amax / 448, DeepGEMM multiplies by 1
  / (amax / 448). The last two differ in 2 of 45,000 bfloat16 numbers, so DeepGEMM was recorded with power-of-two scales only.
  DeepGEMM and later DeepSeek kernels bound amax by 1e-4 (rows deepgemm-*, eps=1e-4).
* microxcaling's "nearest" and "even" differ only in ties; -0 becomes +0.
* Incomplete blocks: TransformerEngine's NVFP4 and blockwise references, microxcaling and DeepGEMM pad with zeros (pad=own).
  torchao, the Hadamard transform, TransformerEngine's MXFP4 and DeepSeek's act_quant refuse them (pad=zeros: the recorder
  padded).
"""
import ast
import hashlib
import importlib.util
import os
import sys

import numpy as np
import torch

MASK = (1 << 64) - 1
f32 = np.float32


# --- inputs ----------------------------------------------------------------------------------
def generate(seed, kind, rows, cols, bf16):
    """A matrix of binary32 numbers.  Letters of kind: z zeros, t tiny rows, subnormal numbers in them, h
    huge rows, s infinities and NaN, e elements that make every sum of sixteen exact; n nothing."""
    state = seed * 0x9e3779b97f4a7c15 & MASK

    def draw():
        nonlocal state
        state = (state * 6364136223846793005 + 1442695040888963407) & MASK
        return state >> 32
    bits = np.zeros((rows, cols), np.uint32)
    for r in range(rows):
        w = draw()
        base, row = 127 + w % 16 - 8, w >> 8 & 7
        if row == 1 and "t" in kind:
            base = 6 if w & 0x1000 else 2
        if row == 2 and "h" in kind:
            base = 254
        if "e" in kind:
            base = 127
        for c in range(cols):
            u, v = draw(), draw()
            drop = ((v | 0x1000) & -(v | 0x1000)).bit_length() - 1
            if "e" in kind:
                drop = drop * 6 // 12
            exponent, fraction = base - drop, u & 0x7fffff
            if exponent <= 0:
                exponent, fraction = 0, fraction >> 1
            if bf16 or "e" in kind:
                fraction &= 0x7f0000
            pick = v >> 16 & 255
            if "z" in kind and (row == 0 or c % 23 == 7 or pick < 4):
                exponent = fraction = 0
            if "s" in kind and pick == 4:
                exponent, fraction = 255, 0
            if "s" in kind and pick == 5:
                exponent, fraction = 255, 0x400000
                u = 0
            bits[r, c] = (u >> 31) << 31 | exponent << 23 | fraction
    return bits.view(f32)


# --- sources ---------------------------------------------------------------------------------
def functions(path, names, space):
    """Functions of a source file, decorators and annotations left out."""
    tree = ast.parse(open(path).read())
    tree.body = [n for n in tree.body if getattr(n, "name", "") in names]
    for n in tree.body:
        n.decorator_list = []
        n.returns = None
        for a in n.args.args:
            a.annotation = None
    exec(compile(tree, path, "exec"), space)
    return space


def load(name, path):
    spec = importlib.util.spec_from_file_location(name, path)
    m = importlib.util.module_from_spec(spec)
    sys.modules[name] = m
    spec.loader.exec_module(m)
    return m


class Sources:
    def __init__(self, root):
        import torchao
        from record_te import stand_ins
        self.nvfp4, _ = stand_ins(os.path.join(root, "te"))
        sys.path[:0] = [os.path.join(root, "microxcaling"), os.path.join(root, "TransformerEngine")]
        import mx.mx_ops
        from tests.pytorch.references import blockwise_quantizer_reference as blockwise
        from tests.pytorch.references import mxfp4_qat_reference as qat
        self.microx, self.qat = mx.mx_ops, qat
        self.blockwise = blockwise.BlockwiseQuantizerReference
        self.deepgemm = load("deepgemm_math",
                             os.path.join(root, "DeepGEMM/deep_gemm/utils/math.py"))
        kernels = os.path.join(os.path.dirname(torchao.__file__),
                               "prototype/blockwise_fp8_training/kernels.py")
        self.torchao = functions(kernels, ("torch_blockwise_scale_act_quant_lhs",
                                           "torch_blockwise_scale_act_quant_rhs",
                                           "torch_blockwise_scale_weight_quant"), {
            "torch": torch, "e4m3_dtype": torch.float8_e4m3fn, "EPS": 1e-12, "Tuple": tuple,
            "FP8_E4M3_DTYPES": {torch.float8_e4m3fn}})


FP8 = {"e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2}


def u8(t):
    return t.contiguous().view(torch.uint8).numpy()


def padded(x, rows, cols):
    """x with zeros to multiples of rows, cols."""
    m, n = x.shape
    out = torch.zeros(-(-m // rows) * rows, -(-n // cols) * cols, dtype=x.dtype)
    out[:m, :n] = x
    return out


# Each gives (codes or None, scales, values or None) of x, whose rows are quantised.
def torchao_mx(src, x, p):
    from torchao.prototype.mx_formats.config import ScaleCalculationMode as Mode
    from torchao.prototype.mx_formats.constants import DTYPE_FP6_E2M3, DTYPE_FP6_E3M2
    from torchao.prototype.mx_formats.kernels import unpack_uint4
    from torchao.prototype.mx_formats.mx_tensor import to_dtype, to_mx
    dtype = {**FP8, "e2m3": DTYPE_FP6_E2M3, "e3m2": DTYPE_FP6_E3M2,
             "e2m1": torch.float4_e2m1fn_x2}[p["element"]]
    scale, data = to_mx(padded(x, 1, 32), dtype, 32, Mode[p["mode"].upper()])
    dq = to_dtype(data, scale, dtype, 32, torch.float32)
    codes = unpack_uint4(data) if p["element"] == "e2m1" else data
    n = x.shape[1]
    return u8(codes)[:, :n], u8(scale), dq.numpy()[:, :n]


def torchao_nvfp4(src, x, p):
    from torchao.prototype.mx_formats.kernels import unpack_uint4
    from torchao.prototype.mx_formats.nvfp4_tensor import NVFP4Tensor, per_tensor_amax_to_scale
    pts = None if p["level"] == "1" else per_tensor_amax_to_scale(x.abs().max())
    q = NVFP4Tensor.to_nvfp4(padded(x, 1, 16), per_tensor_scale=pts)
    n = x.shape[1]
    return (u8(unpack_uint4(q.qdata))[:, :n], u8(q.scale),
            q.dequantize(torch.float32).numpy()[:, :n])


def torchao_block(src, x, p):
    """The references give codes and 1 / s; what dequantises is a product in their matrix products."""
    name = {"1x128": "act_quant_lhs", "128x1": "act_quant_rhs", "128x128": "weight_quant"}[p["block"]]
    rows, cols = (int(n) for n in p["block"].split("x"))
    codes, inverse = src.torchao["torch_blockwise_scale_" + name](padded(x, rows, max(cols, 128)))
    m, n = x.shape
    return u8(codes[:m, :n]), inverse[:, :-(-n // cols)].contiguous().numpy(), None


def microx(src, x, p):
    fmt = {"e4m3": "fp8_e4m3", "e5m2": "fp8_e5m2", "e3m2": "fp6_e3m2", "e2m3": "fp6_e2m3",
           "e2m1": "fp4_e2m1"}[p["element"]]
    axis = 1
    if p["axis"] == "columns":                # the library's own axis, not a transposed matrix
        x, axis = x.t().contiguous(), 0
    values = src.microx._quantize_mx(x.clone(), 8, fmt, axes=[axis], block_size=32,
                                     round=p["round"])
    emax = src.microx._get_format_params(fmt)[2]
    blocks, axes, _, _ = src.microx._reshape_to_blocks(x.clone(), [axis], 32)
    e = src.microx._shared_exponents(blocks, axes=[a + 1 for a in axes]) - emax
    e = np.where(e.numpy() > 127, np.nan, np.maximum(e.numpy(), -127))
    e = e.reshape(-(-x.shape[0] // (32 if axis == 0 else 1)), -1)
    code = np.where(np.isnan(e), 255, np.nan_to_num(e) + 127).astype(np.uint8)
    if axis == 0:
        values, code = values.t().contiguous(), code.T
    return None, np.ascontiguousarray(code), values.numpy()


def te_nvfp4(src, x, p):
    """x is given as the matrix itself: the quantiser transposes (and transforms) by itself."""
    tile = (16, 16) if p["tile"] == "16x16" else (1, 16)
    columns = p["axis"] == "columns"
    q = object.__new__(src.nvfp4.NVFP4QuantizerRef)
    q.__dict__.update(
        dtype=None, pow_2_scales=False, eps=0.0, quant_tile_shape=tile, row_scaled_nvfp4=False,
        nvfp4_use_4over6=False, nvfp4_e4m3_max=448, nvfp4_4over6_err_mode="MAE",
        nvfp4_4over6_err_use_fast_math=False, with_rht=p["rht"] == "16",
        with_random_sign_mask=True, rowwise_usage=not columns, columnwise_usage=columns)
    qx, sx, qx_t, sx_t, _, _ = q._quantize(x.t().contiguous() if columns else x)
    data, scale = (qx_t, sx_t) if columns else (qx, sx)
    codes = torch.stack([data & 15, data >> 4], -1).reshape(data.shape[0], -1)
    if tile[0] == 16:                        # the scale of a tile stands in each of its rows
        scale = scale.view(torch.uint8)[::16]
    return u8(codes), u8(scale), None


def te_block(src, x, p):
    """Blocks of columns: the reference's own transposed result."""
    rows, cols = (int(n) for n in p["block"].split("x"))
    run = src.blockwise._quantize_vector_tiling if rows == 1 else \
        src.blockwise._quantize_square_block_tiling
    columns = p["axis"] == "columns"
    r = run(x.t().contiguous() if columns else x, FP8[p["element"]], cols, return_transpose=columns,
            pow_2_scales=p["pow2"] == "1", eps=0.0)
    codes, inverse = (r.data_t, r.scale_t) if columns else (r.data, r.scale)
    grid = inverse.repeat_interleave(rows, 0).repeat_interleave(cols, 1)
    m, n = x.shape
    return u8(codes), inverse.contiguous().numpy(), (codes.float() * grid[:m, :n]).numpy()


def te_mxfp4(src, x, p):
    big = padded(x, 1, 32)
    return None, None, src.qat.mxfp4_fake_quantize_reference(big).numpy()[:, :x.shape[1]]


def deepgemm(src, x, p):
    rows, cols = (int(n) for n in p["block"].split("x"))
    cast = src.deepgemm.per_token_cast_to_fp8 if rows == 1 else src.deepgemm.per_block_cast_to_fp8
    codes, sf = cast(x, p["scale"] == "e8m0", gran_k=cols)
    grid = sf.repeat_interleave(rows, 0).repeat_interleave(cols, 1)
    m, n = x.shape
    dq = (codes.float() * grid[:m, :n]).numpy()
    sf = sf.contiguous().numpy()
    return u8(codes), (sf.view(np.uint32) >> 23).astype(np.uint8) if p["scale"] == "e8m0" else sf, dq


def to_e4m3(y):
    return torch.from_numpy(y).to(torch.float8_e4m3fn)


def deepseek(src, x, p):
    """DeepSeek-V3 inference/kernel.py, act_quant_kernel (0623163) and weight_dequant_kernel: s = max
    |x| / 448, y = x / s; eps=1e-4: later versions, max(max |x|, 1e-4).  Blocks of 128 x 128 the same."""
    rows, cols = (int(n) for n in p["block"].split("x"))
    a = padded(x, rows, cols).numpy()
    tiles = a.reshape(a.shape[0] // rows, rows, a.shape[1] // cols, cols)
    amax = np.abs(tiles).max(axis=(1, 3), keepdims=True)
    amax = np.maximum(amax, f32(float(p["eps"])))
    s = (amax / f32(448)).astype(f32)
    y = to_e4m3((tiles / s).astype(f32).reshape(a.shape))
    dq = y.float().numpy().reshape(tiles.shape) * s
    m, n = x.shape
    return (u8(y)[:m, :n], np.ascontiguousarray(s[:, 0, :, 0]),
            np.ascontiguousarray(dq.reshape(a.shape)[:m, :n]))


def te_mxfp8(src, x, p):
    """TransformerEngine 2.20: quantize_mxfp8.cuh, ptx.cuh float_to_e8m0, exp2f_rcp: amax without NaN,
    f32(amax * f32(1 / max)), its exponent rounded up; NaN 255 (never here), infinite 254."""
    top = {"e4m3": 448, "e5m2": 57344}[p["element"]]
    a = padded(x.float(), 1, 32).numpy().reshape(x.shape[0], -1, 32)
    amax = np.fmax.reduce(np.abs(a), axis=2, initial=f32(0))
    v = (amax * f32(f32(1) / f32(top))).astype(f32)
    bits = v.view(np.uint32).astype(np.int64)
    e, m = bits >> 23, bits & 0x7fffff
    code = np.where(np.isinf(v), 254, e + ((m > 0) & (e != 254) & ~((e == 0) & (m <= 0x400000))))
    r = np.where(code == 254, f32(2.0 ** -127), np.ldexp(f32(1), 127 - code).astype(f32))
    y = (a * r[:, :, None]).astype(f32).reshape(x.shape[0], -1)
    y = torch.from_numpy(np.clip(y, f32(-top), f32(top))).to(FP8[p["element"]])
    d = y.float().numpy().reshape(a.shape) * np.ldexp(f32(1), code - 127).astype(f32)[:, :, None]
    n = x.shape[1]
    return (u8(y)[:, :n], code.astype(np.uint8),
            np.ascontiguousarray(d.reshape(x.shape[0], -1)[:, :n]))


# --- cases -----------------------------------------------------------------------------------
def cases():
    seed = 0

    def case(name, run, kind, rows, cols, x="f32", axis="rows", **words):
        nonlocal seed
        seed += 1
        words = {"run": run.__name__, "axis": axis, "rows": rows, "cols": cols, "x": x,
                 "gen": f"{seed}:{kind}", **words}
        return name, run, {k: str(v) for k, v in words.items()}
    family = {"e4m3": "mxfp8", "e5m2": "mxfp8e5m2", "e2m3": "mxfp6e2m3", "e3m2": "mxfp6e3m2",
              "e2m1": "mxfp4"}
    for axis in ("rows", "columns"):
        m, n = (61, 197) if axis == "rows" else (197, 61)
        for element, base in family.items():
            for mode in ("floor", "even", "ceil", "rceil"):
                for x in ("f32", "bf16"):
                    yield case(f"torchao-{base}-{mode}-{axis}-{x}", torchao_mx, "z", m, n, x, axis,
                               words=f"{base}:{mode}", element=element, mode=mode, pad="zeros")
                    yield case(f"torchao018-{base}-{mode}-{axis}-{x}", torchao_mx, "zths", m, n, x,
                               axis, words=f"torchao-0.18-{mode}", element=element, mode=mode,
                               pad="zeros")
            for rounding in ("nearest", "even"):
                yield case(f"microx-{base}-{rounding}-{axis}", microx, "zths", m, n, "f32", axis,
                           words=f"{base}:microx", element=element, round=rounding, pad="own")
        for element in ("e4m3", "e5m2"):
            for x in ("f32", "bf16"):
                yield case(f"te-{family[element]}-{axis}-{x}", te_mxfp8, "zths", m, n, x, axis,
                           words=f"{family[element]}:te", element=element, pad="zeros")
        yield case(f"te-mxfp4-{axis}", te_mxfp4, "z", m, n, "f32", axis, words="mxfp4:te",
                   element="e2m1", pad="zeros")
        for level in "12":
            for kind, x in (("z", "f32"), ("z", "bf16"), ("zth", "f32")):
                yield case(f"torchao-nvfp4-{level}-{kind}-{axis}-{x}", torchao_nvfp4, kind, m, n, x,
                           axis, words="nvfp4-torchao" if level == "2" else "nvfp4:1level",
                           element="e2m1", level=level, pad="zeros")
        for x in ("f32", "bf16"):
            m2, n2 = (90, 74) if axis == "rows" else (74, 90)
            for kind in ("z", "zt", "zth"):
                for words, tile in (("nvfp4", "1x16"), ("nvfp4:2d", "16x16")):
                    yield case(f"te-{words}-{kind}-{axis}-{x}", te_nvfp4, kind, m2, n2, x, axis,
                               words=words, element="e2m1", tile=tile, rht="0", pad="own")
        for block in ("1x128", "128x128"):
            for x in ("f32", "bf16"):
                for pow2 in "01":
                    for element, kind in (("e4m3", "z"), ("e5m2", "z"), ("e4m3", "zth")):
                        yield case(f"te-{element}-{block}-pow2_{pow2}-{kind}-{axis}-{x}", te_block,
                                   kind, 150, 300, x, axis, words=f"te-block-{block}",
                                   element=element, block=block, pow2=pow2, pad="own")
                for kind in ("z", "zths"):
                    yield case(f"torchao-e4m3-{block}-{kind}-{axis}-{x}", torchao_block, kind, 150,
                               300, x, axis, words="torchao-rowwise", element="e4m3", block=block,
                               pow2=0, pad="zeros")
                for words, kind in ((f"deepgemm-{block}", "zt"), (f"e4m3/{block}:ue8m0", "n")):
                    yield case(f"deepgemm-{words.split('/')[0]}-{block}-{axis}-{x}", deepgemm, kind,
                               150, 300, x, axis, words=words, element="e4m3", block=block,
                               scale="e8m0", pad="own")
            for kind, eps in (("nt", 0), ("zt", 1e-4)):
                yield case(f"deepseek-{block}-{kind}-{axis}", deepseek, kind, 150, 300, "f32", axis,
                           words=f"e4m3/{block}", element="e4m3", block=block, eps=eps, pad="zeros")
    for x in ("f32", "bf16"):
        yield case(f"te-nvfp4-rht-{x}", te_nvfp4, "ez", 96, 74, x, "columns", words="nvfp4:rht",
                   element="e2m1", tile="1x16", rht="16", pad="no")
    yield case("torchao-e4m3-128x1", torchao_block, "z", 256, 130, "f32", "rows",
               words="torchao-rowwise", element="e4m3", block="128x1", pow2=0, pad="no")


def digest(raw):
    return hashlib.sha256(raw).hexdigest()[:16]


def bytes_of(codes, scales, values, x, element):
    """What is compared, as bytes; see the description above."""
    nan = np.isnan(x)
    out = {}
    if codes is not None:
        if element in FP8:
            is_nan = codes & 0x7f > (0x7e if element == "e4m3" else 0x7c)
            codes = np.where(is_nan, 0x7f, codes)
        else:
            codes = np.where(nan, 0, codes)
        out["codes"] = codes.astype(np.uint8).tobytes()
    if scales is not None:
        if scales.dtype == np.float32:
            out["scales"] = np.where(np.isnan(scales), np.nan, scales).astype("<f4").tobytes()
        else:
            out["scales"] = scales.tobytes()
    if values is not None:
        v = np.ascontiguousarray(values, f32).view(np.uint32)
        out["values"] = np.where(np.isnan(values), np.uint32(0x7fc00000), v).astype("<u4").tobytes()
    return out


def result(src, run, p):
    seed, kind = p["gen"].split(":")
    x = generate(int(seed), kind, int(p["rows"]), int(p["cols"]), p["x"] == "bf16")
    if p["axis"] == "columns":
        x = np.ascontiguousarray(x.T)
    t = torch.from_numpy(x.copy())
    if p["x"] == "bf16":
        t = torch.from_numpy((x.view(np.uint32) >> 16).astype(np.uint16).view(np.int16)) \
            .view(torch.bfloat16)
    return x, run(src, t, p)


def main(root, out, wanted=None):
    np.seterr(all="ignore")
    src = Sources(root)
    if out == "dump":
        for name, run, p in cases():
            if name == wanted:
                x, parts = result(src, run, p)
                np.set_printoptions(threshold=sys.maxsize, linewidth=200)
                for label, a in zip(("x", "codes", "scales", "values"), (x, *parts)):
                    print(label, a)
        return
    with open(out, "w") as f:
        print("# SPDX-License-Identifier: Apache-2.0", file=f)
        print("# recorded by record_references.py: torch", torch.__version__.split("+")[0],
              "torchao 0.18.0, transformer_engine 2.20.2, microxcaling 3b429a8, DeepGEMM 38939a4",
              file=f)
        for name, run, p in cases():
            x, (codes, scales, values) = result(src, run, p)
            for what, raw in bytes_of(codes, scales, values, x, p["element"]).items():
                p[what] = digest(raw)
            if scales is not None:
                p["blocks"] = str(scales.size)
            print("case", name, *(f"{k}={v}" for k, v in p.items()), file=f)


if __name__ == "__main__":
    main(*sys.argv[1:])
