# SPDX-License-Identifier: Apache-2.0
"""What the questions about matrix products tell of a result: its places, a digest, kernels, whether it comes again."""
import torch

from products import kernels
from session import digest, hexadecimal

MOST = 1 << 20                                   # elements: whole rows of the result, from the first
BY_TILES = ("segment_k_on", "stream_k", "streamk")  # kernels that cut the depth of some tiles: 4,096 places show which
NAME = 1500                                      # characters of a kernel's name: those of grouped products hold a tile's shape


def near_ties(d, exact, count):
    """Places of a result of 16 bits whose exact sums are nearest to the middle of two numbers: there orders of additions differ."""
    bits, least = {torch.float16: (10, -14), torch.bfloat16: (7, -126)}[d.dtype]
    x = exact.flatten()[:d.numel()].abs()
    exponent = (torch.frexp(x)[1] - 1).clamp(min=least)
    part = torch.ldexp(x, bits - exponent)
    apart = torch.where(x > 0, (part - part.floor() - 0.5).abs(), torch.ones_like(x))
    return torch.topk(apart, min(count, d.numel()), largest=False).indices


def hard_places(d, exact):
    """"at": the first places, whose codes come first in "d"."""
    if exact is None or d.element_size() != 2:
        return {}, ""
    try:
        at = near_ties(d, exact(), 64)
    except RuntimeError:                         # the places are worth having, the answer is worth more
        return {}, ""
    return {"at": " ".join(f"{place:06x}" for place in at.tolist())}, hexadecimal(d.flatten()[at]) + " "


def told(s, call, stream, places=64, most=MOST, exact=None):
    """call() multiplies. "elements": how many of the result, from the first, the places and the digest are of. exact(): the
    result in binary64, or its first rows."""
    def first():                                 # a row is a line of the last dimension
        d = call()
        return d.reshape(-1, d.shape[-1])[:max(1, most // d.shape[-1])]

    d, facts = first(), {}
    if s.device == "cuda":                       # behind the first call, which may set up what later ones have
        facts["kernels"] = [name[:NAME] for name in kernels(call)]
        if any(mark in name for name in facts["kernels"] for mark in BY_TILES):
            places = 4096
    one, sample = digest(d), s.sample(d, min(places, d.numel()), stream)
    at, codes = hard_places(d, exact)
    return {"out": str(d.dtype)[6:], **at, **sample, "d": codes + sample["d"], "elements": d.numel(), "digest": one,
            "again": digest(first()) == one, **facts}
