# SPDX-License-Identifier: Apache-2.0
"""Judge layouts/grids.safetensors and layouts/torchao.safetensors with NumPy alone.

    python3 check_layouts.py layouts

Two descriptions of the swizzled order of scales, each written out here as it is published and as a
loop over single scales, against what torchao's to_blocked gave:
* cuBLAS documentation, "1D Block Scaling Factors Layout" (13.0): tiles of 128 x 4 scales lie
  row-major; the scale (outer, inner) of a tile is byte (outer % 32) * 16 + (outer / 32) * 4 + inner;
* TransformerEngine, tests/cpp/operator/test_swizzle.cu (2.20), its reference: tile (m / 128, k / 4)
  begins at (m / 128) * 128 * K + (k / 4) * 512, K padded to a multiple of 4; in it, row m % 32 of
  16 bytes, column (m % 128) / 32 * 4 + k % 4.
Scales that pad a tile are 0.  Four bits: the even element in the low half of its byte.  Six bits,
torchao 0.13's: four elements a, b, c, d become the bytes a5..a2 b5..b2, d5..d2 c5..c2,
a1a0 b1b0 d1d0 c1c0, from the highest bit down.
"""
import os
import sys

import numpy as np

from record_torchao import load


def cublas(plain):
    rows, cols = plain.shape
    across = -(-cols // 4)
    out = np.zeros(-(-rows // 128) * across * 512, np.uint8)
    for r in range(rows):
        for c in range(cols):
            outer, inner = r % 128, c % 4
            tile = (r // 128) * across + c // 4
            out[tile * 512 + outer % 32 * 16 + outer // 32 * 4 + inner] = plain[r, c]
    return out


def transformer_engine(plain):
    m_pad, k_pad = (-(-n // t) * t for n, t in zip(plain.shape, (128, 4)))
    padded = np.zeros((m_pad, k_pad), np.uint8)
    padded[:plain.shape[0], :plain.shape[1]] = plain
    out = np.zeros(m_pad * k_pad, np.uint8)
    for m in range(m_pad):
        for k in range(k_pad):
            start = m // 128 * 128 * k_pad + k // 4 * 512
            out[start + m % 128 % 32 * 16 + m % 128 // 32 * 4 + k % 4] = padded[m, k]
    return out


def pack4(plain):
    return (plain[..., 0::2] | plain[..., 1::2] << 4).astype(np.uint8)


def pack6(plain):
    a, b, c, d = (plain[..., i::4].astype(int) for i in range(4))
    out = np.stack((a >> 2 << 4 | b >> 2, d >> 2 << 4 | c >> 2,
                    (a & 3) << 6 | (b & 3) << 4 | (d & 3) << 2 | c & 3), -1)
    return out.reshape(*plain.shape[:-1], -1).astype(np.uint8)


def raw(path):
    """Tensors of any dtype as bytes: name -> (dtype, shape, bytes)."""
    import json
    import struct
    data = open(path, "rb").read()
    n = struct.unpack("<Q", data[:8])[0]
    head = json.loads(data[8:8 + n])
    head.pop("__metadata__")
    return {k: (v["dtype"], v["shape"], np.frombuffer(
        data[8 + n + v["data_offsets"][0]:8 + n + v["data_offsets"][1]], np.uint8))
        for k, v in head.items()}


def main(directory):
    count, wrong = {}, {}

    def compare(what, a, b):
        a, b = np.asarray(a).reshape(-1), np.asarray(b).reshape(-1)
        count[what] = count.get(what, 0) + b.size
        wrong[what] = wrong.get(what, 0) + (b.size if a.size != b.size else int((a != b).sum()))

    meta, grid = load(os.path.join(directory, "grids.safetensors"))
    for name in meta:
        if name.startswith("swizzle"):
            for judge in (cublas, transformer_engine):
                compare("to_blocked by " + judge.__name__, judge(grid[name + "/plain"]),
                        grid[name + "/blocked"])
        elif name.startswith("pack"):
            judge = pack4 if name == "pack4" else pack6
            compare(name, judge(grid[name + "/plain"]), grid[name + "/packed"])
    stored = raw(os.path.join(directory, "torchao.safetensors"))
    expected = raw(os.path.join(directory, "expected.safetensors"))
    for name, (dtype, shape, data) in stored.items():
        if "._weight_" not in name:
            continue
        tensor, part = name.split("._weight_")
        tensor += ".weight/"
        if part == "qdata":
            _, full, codes = expected[tensor + "codes"]
            packed = pack4(codes.reshape(full)) if shape[-1] * 2 == full[-1] else codes
            compare("qdata", packed, data)
        elif part == "scale":
            _, full, scale = expected[tensor + "scale"]
            swizzled = dtype != "F32" and shape != full
            compare("scale, swizzled" if swizzled else "scale",
                    cublas(scale.reshape(full)) if swizzled else scale, data)
        else:
            compare(part, expected[tensor + "pts"][2], data)
    for what, n in count.items():
        print(f"{what}: {n - wrong[what]} of {n} bytes equal")
    return sum(wrong.values()) != 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
