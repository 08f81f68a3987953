# SPDX-License-Identifier: Apache-2.0
"""Convolutions of cuDNN: in which order are filter places and channels added, in which parts?

x (N, C, H, W) of stream 154, the filter (K, C, R, R) of stream 155, dy (N, K, P, P) of stream 156, exponents -6 to 3, places of
stream 157, all numbered as NCHW. Algorithms are cuDNN's own choice among the deterministic ones, without benchmarks. NHWC:
tensors in channels_last.
"""
import torch

from products import KINDS, allow
from results import told

# Images, channels in, height and width, channels out, the filter's height and width, stride, padding.
SHAPES = ((4, 64, 32, 64, 3, 1, 1), (4, 128, 16, 256, 3, 1, 1), (8, 64, 32, 128, 3, 2, 1), (4, 256, 32, 256, 1, 1, 0),
          (8, 512, 7, 512, 3, 1, 1), (2, 3, 64, 64, 7, 2, 3), (4, 64, 56, 64, 1, 1, 0), (2, 48, 30, 80, 5, 1, 2))
QUICK = ((1, 32, 8, 32, 3, 1, 1), (2, 64, 5, 16, 1, 1, 0), (2, 16, 9, 16, 3, 2, 1))
GIVEN = ("bfloat16", "float16", "tf32", "float32")
PASSES = ("forward", "dgrad", "wgrad")
STREAMS = (154, 155, 156, 157)


def settings(given):
    torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark = True, False
    torch.backends.cudnn.allow_tf32 = given == "tf32"
    allow(given)


def convolve(s, kind, of, layout, shape):
    images, c, size, k, filter, stride, padding = shape
    out = (size + 2 * padding - filter) // stride + 1
    form, given = KINDS[kind]
    settings(given)
    memory = torch.channels_last if layout == "NHWC" else torch.contiguous_format
    sizes = ((images, c, size, size), (k, c, filter, filter), (images, k, out, out))
    x, w, dy = (s.draw(form, sizes[i], STREAMS[i], -6, 4).contiguous(memory_format=memory) for i in range(3))

    def call(x=x, w=w, dy=dy):
        if of == "forward":
            return torch.nn.functional.conv2d(x, w, None, stride, padding)
        wanted = [of == "dgrad", of == "wgrad", False]
        return torch.ops.aten.convolution_backward(dy, x, w, None, [stride] * 2, [padding] * 2, [1, 1], False, [0, 0], 1,
                                                   wanted)[wanted.index(True)]

    return {"form": form, "of": of, "images": images, "channels": c, "size": size, "filters": k, "filter": filter,
            "stride": stride, "padding": padding, "streams": list(STREAMS[:3]), **told(s, call, STREAMS[3], exact=lambda: call(x.double(), w.double(), dy.double()))}


def ask(s):
    for shape in QUICK if s.quick else SHAPES:
        for kind in ("float32",) if s.device == "cpu" else GIVEN:
            for of in PASSES:
                for layout in ("NHWC", "NCHW"):
                    name = f"{kind} {of} {layout} " + "x".join(str(size) for size in shape)
                    s.try_answer(name, lambda: convolve(s, kind, of, layout, shape))
