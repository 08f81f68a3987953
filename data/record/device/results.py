# SPDX-License-Identifier: Apache-2.0
"""What the questions about matrix products tell of a result: its places, a digest, kernels, whether it comes again."""
from products import kernels
from session import digest

MOST = 1 << 20                                   # elements: whole rows of the result, from the first
BY_TILES = ("segment_k_on", "stream_k", "streamk")  # kernels that cut the depth of some tiles: 4,096 places show which
NAME = 400                                       # characters of a kernel's name: grouped products have long ones


def told(s, call, stream, places=64, most=MOST):
    """call() multiplies. "elements": how many of the result, from the first, the places and the digest are of."""
    def first():                                 # a row is a line of the last dimension
        d = call()
        return d.reshape(-1, d.shape[-1])[:max(1, most // d.shape[-1])]

    d, facts = first(), {}
    if s.device == "cuda":                       # behind the first call, which may set up what later ones have
        facts["kernels"] = [name[:NAME] for name in kernels(call)]
        if any(mark in name for name in facts["kernels"] for mark in BY_TILES):
            places = 4096
    one = digest(d)
    return {"out": str(d.dtype)[6:], **s.sample(d, min(places, d.numel()), stream), "elements": d.numel(), "digest": one,
            "again": digest(first()) == one, **facts}
