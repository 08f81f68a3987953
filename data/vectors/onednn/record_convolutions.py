# SPDX-License-Identifier: Apache-2.0
"""Record what torch gives for convolutions of bfloat16 images and their gradients on a CPU: digests, and the first results.

    pip install torch numpy
    ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16 python3 record_convolutions.py >intel-convolutions.txt

See README.md.  The operands are a formula, so that a test can make them again (tests/dot/t-convolution-torch.c).

Convolutions

| sums | channels first | channels last |
| forward | block of 16 channels, tap, channel | tap, channel |
| gradient of the input, stride 1 | block of 16 outputs, tap as in the weight, output | tap as it reads, output |
| kernels of one tap | up to 160, 512 or 1024 channels at once, fewer where columns would collide in the cache, added in binary32 | all |
| gradient of the weight, one thread, more than one tap | up to 28 columns of a row at once, or rows of an image from 128 channels on, added in binary32 | the same |

Pairs are channels of one tap; an odd one is paired with +0. python/src/mpsim/emulate/_torchconv.py has the rules by size, after oneDNN's
jit_avx512_core_bf16_1x1_conv_kernel.cpp; python/tests/emulate/test_autocast.py tests some.
"""
import functools
import math

import numpy as np
import torch
from record_onednn import digest, tensor, words

# images, channels, outputs, rows, columns, kernel rows and columns, stride, padding
SHAPES = [(2, 16, 16, 8, 8, 3, 3, 1, 1), (2, 32, 32, 8, 8, 3, 3, 1, 1), (2, 64, 48, 8, 8, 3, 3, 1, 1), (2, 32, 64, 9, 9, 3, 3, 1, 1),
          (2, 32, 32, 8, 8, 3, 3, 2, 1), (2, 64, 48, 9, 7, 5, 3, 2, 1), (2, 40, 24, 7, 8, 3, 3, 1, 1)]
# The same with a kernel of one tap: where channels come first, so many channels are added at once.
ONE_TAP = {(2, 200, 32, 14, 14, 1, 1, 1, 0): 160, (1, 1040, 16, 7, 7, 1, 1, 1, 0): 512}
# The same, and what the model of a weight gradient is, in one thread: its chunk, and what rows are filled up to (mpsim/convolution.h).
CHUNKS = {(2, 16, 32, 6, 9, 3, 3, 1, 1): (10, 10), (2, 20, 24, 5, 61, 5, 5, 1, 2): (28, 28), (2, 32, 16, 9, 31, 3, 3, 2, 1): (16, 16),
          (2, 128, 16, 8, 9, 3, 3, 1, 1): (80, 2), (2, 128, 16, 60, 60, 3, 3, 1, 1): (300, 2)}
MEMORY = {"nchw": torch.contiguous_format, "nhwc": torch.channels_last}


def out_of(shape):
    _, _, _, rows, columns, down, across, stride, padding = shape
    return (rows + 2 * padding - down) // stride + 1, (columns + 2 * padding - across) // stride + 1


def codes(w):
    """Numbers from 2^-6 to 2^7, of both signs."""
    return ((w & np.uint64(0x807F)) | (np.uint64(121) + (w >> np.uint64(20)) % np.uint64(13)) << np.uint64(7)).astype(np.uint16)


def operands(shape):
    n, channels, outputs, rows, columns, down, across, _, _ = shape
    sizes = (n, channels, rows, columns), (outputs, channels, down, across), (n, outputs, *out_of(shape))
    counts = [math.prod(size) for size in sizes]
    w = words(functools.reduce(lambda seed, size: seed * 101 + size, shape), sum(counts))
    return [codes(part).reshape(size) for part, size in zip(np.split(w, np.cumsum(counts)[:2]), sizes)]


# Products of the second half of a sum are the opposites of those of the first: what is left is its roundings, so that another
# order shows in nearly every result.


def cancel_channels(x, w):
    """The first axis of both."""
    half = len(x) // 2
    x[half:2 * half], w[half:2 * half] = x[:half], w[:half] ^ 0x8000


def cancel_columns(x, dy, shape):
    """Of each row of positions; dy is 0 where windows reach beyond the columns of x."""
    _, _, _, _, columns, _, across, stride, padding = shape
    out = dy.shape[3]
    first = -(-padding // stride)
    last = min(out, (columns + padding - across) // stride + 1)
    half = (last - first) // 2
    x[:] = x[..., np.arange(columns) % (stride * half)]
    dy[..., first + half:first + 2 * half] = dy[..., first:first + half] ^ 0x8000
    dy[..., :first] = 0
    dy[..., first + 2 * half:] = 0


def result(kind, memory, shape):
    x, w, dy = operands(shape)
    if kind == "forward":
        cancel_channels(x.swapaxes(0, 1), w.swapaxes(0, 1))
    elif kind == "input":
        cancel_channels(dy.swapaxes(0, 1), w)
    else:
        cancel_columns(x, dy, shape)
    x, w, dy = (tensor(t, torch.bfloat16).contiguous(memory_format=MEMORY[memory]) for t in (x, w, dy))
    stride, padding = [shape[7]] * 2, [shape[8]] * 2
    if kind == "forward":
        return torch.nn.functional.conv2d(x, w, None, stride, padding)
    wanted = [kind == "input", kind == "weight", False]
    return torch.ops.aten.convolution_backward(dy, x, w, None, stride, padding, [1, 1], False, [0, 0], 1, wanted)[wanted.index(True)]


def products():
    """Threads, kind, memory, shape, chunk, row multiple."""
    for memory in MEMORY:
        for threads in 1, 2:
            for shape in SHAPES:
                yield threads, "forward", memory, shape, 0, 1
                if shape[7] == 1:
                    yield threads, "input", memory, shape, 0, 1
            for shape, chunk in ONE_TAP.items():
                turned = shape[0], shape[2], shape[1], *shape[3:]
                yield threads, "forward", memory, shape, chunk if memory == "nchw" else 0, 1
                yield threads, "input", memory, turned, chunk if memory == "nchw" else 0, 1
        for shape, (chunk, multiple) in CHUNKS.items():
            yield 1, "weight", memory, shape, chunk, multiple


def main():
    print("mpsim-onednn-convolutions/1")
    print(f"# torch {torch.__version__}; {[x for x in torch.__config__.show().splitlines() if 'MKL-DNN' in x][0].strip()}")
    print("# kind, memory, threads; images, channels, outputs, rows, columns, kernel rows and columns, stride, padding;"
          " chunk, row multiple; digest, the first results")
    for threads, kind, memory, shape, chunk, multiple in products():
        torch.set_num_threads(threads)
        c = result(kind, memory, shape).contiguous().view(torch.int16).numpy().view("uint16")
        first = " ".join(f"{v:04x}" for v in c.reshape(-1)[:6])
        print(kind, memory, threads, *shape, chunk, multiple, f"{digest(c):016x}", first)


if __name__ == "__main__":
    main()
