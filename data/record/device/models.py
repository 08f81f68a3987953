# SPDX-License-Identifier: Apache-2.0
"""Products of the layers of Llama and Qwen, as training and inference multiply them.

Forward: y = x W^T (NT), the gradient of x: dy W (NN), that of W: dy^T x (TN), whose depth is the tokens. Forward and the
gradient of x have as many tokens as give 2^20 elements at most; 1 and 16 tokens are inference. Of larger gradients of W the
first 2^20 elements are in the digest. a of stream 143, b of stream 144, places of stream 145, else as `products`.
"""
from results import MOST
from segments import multiply

# Model and layer: features out, features in. kv: the heads that a group of queries shares; a head's tile: a part of the vocabulary.
LAYERS = {"llama-3.1-8b q": (4096, 4096), "llama-3.1-8b kv": (1024, 4096), "llama-3.1-8b up": (14336, 4096),
          "llama-3.1-8b down": (4096, 14336), "llama-3.1-8b head": (128256, 4096), "llama-3.1-8b head tile": (16384, 4096),
          "llama-3.2-1b q": (2048, 2048), "llama-3.2-1b kv": (512, 2048), "llama-3.2-1b up": (8192, 2048),
          "llama-3.2-1b down": (2048, 8192), "llama-3.1-70b q": (8192, 8192), "llama-3.1-70b kv": (1024, 8192),
          "llama-3.1-70b down": (8192, 28672), "qwen2.5-0.5b q": (896, 896), "qwen2.5-0.5b kv": (128, 896),
          "qwen2.5-0.5b up": (4864, 896), "qwen2.5-0.5b down": (896, 4864), "qwen2.5-7b q": (3584, 3584),
          "qwen2.5-7b kv": (512, 3584), "qwen2.5-7b up": (18944, 3584), "qwen2.5-7b down": (3584, 18944),
          "qwen2.5-7b head": (152064, 3584), "qwen3-0.6b q": (2048, 1024), "qwen3-0.6b o": (1024, 2048),
          "qwen3-0.6b up": (3072, 1024), "qwen3-0.6b down": (1024, 3072)}
QUICK = {"tiny q": (64, 48), "tiny kv": (16, 48), "tiny down": (48, 192)}
DEPTH = 32768                                    # the reader's most
STREAMS = (143, 144, 145)


def passes(out, into, tokens):
    """Name, layout, shape. tokens: None: as many as fit."""
    def rows(n):
        return tokens or max(1, min(4096, 1 << (MOST // n).bit_length() - 1))

    yield "forward", "NT", (rows(out), out, into)
    if out <= DEPTH:
        yield "dgrad", "NN", (rows(into), into, out)
    if out <= DEPTH and tokens is None:
        yield "wgrad", "TN", (out, into, 2048)


def ask(s):
    kinds = ("bfloat16", "float32") if s.device == "cpu" else ("bfloat16", "float16")
    for kind in kinds:
        for layer, (out, into) in (QUICK if s.quick else LAYERS).items():
            for tokens in (32,) if s.quick else (None, 16, 1):
                for name, layout, shape in passes(out, into, tokens):
                    if tokens and tokens < 32 and kind == "float16":
                        continue
                    case = f"{kind} {layout} {layer} {name} " + "x".join(str(size) for size in shape)
                    s.try_answer(case, lambda: multiply(s, kind, layout, shape, 64, STREAMS))
