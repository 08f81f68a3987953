# SPDX-License-Identifier: Apache-2.0
"""Record the iteration of torch.optim.Muon with torch's own products of bf16 matrices on CPUs.

    python3 record_products.py .          (writes products.safetensors)
    python3 record_products.py . amx      (writes products-amx.safetensors, on a CPU with AMX)

Recorded with torch 2.15.0: `default` and `avx2` by its own kernels of both capabilities (ATEN_CPU_CAPABILITY), without
oneDNN; `onednn` by oneDNN 3.13.3 on an AMD EPYC (Zen 5) with AVX512-BF16, in products-amx on an Intel Xeon; there `amx` by oneDNN with AMX. Seeds of which
orders of sums show in the results.
"""
import os
import subprocess
import sys

import torch
from safetensors.torch import load_file, save_file

SHAPE = 44, 119                                             # blocks of 64, pairs of vectors, single elements
SEEDS = {"": {"wide": 3, "tall": 59}, "-amx": {"wide": 8, "tall": 4}}   # tall ones are transposed
CAPABILITIES = {"": {"default": None, "avx2": None, "onednn": "AVX512_CORE_BF16"},
                "-amx": {"onednn": "AVX512_CORE_BF16", "amx": "AVX512_CORE_AMX"}}


def iterate(path, which):
    from torch.optim._muon import _zeropower_via_newtonschulz
    out = {}
    for name, seed in SEEDS[which].items():
        torch.manual_seed(seed)
        shape = SHAPE if name == "wide" or not which else SHAPE[::-1]
        u = torch.randn(shape).bfloat16()
        u = out[f"{name}/u"] = u.T.contiguous() if name == "tall" and not which else u
        with torch.backends.mkldnn.flags(enabled="MPSIM_ONEDNN" in os.environ):
            out[f"{name}/y"] = _zeropower_via_newtonschulz(u, (3.4445, -4.7750, 2.0315), 5, 1e-7).contiguous()
    save_file(out, path)


def record(directory, which=""):
    out, path = {}, f"{directory}/products{which}.safetensors"
    for capability, isa in CAPABILITIES[which].items():
        subprocess.run([sys.executable, __file__, path, which, "one"], check=True,
                       env={**os.environ, "ATEN_CPU_CAPABILITY": "avx512" if isa else capability,
                            "OMP_NUM_THREADS": "1",
                            **({"MPSIM_ONEDNN": "1", "ONEDNN_MAX_CPU_ISA": isa} if isa else {})})
        for key, value in load_file(path).items():
            out[key if key.endswith("u") else f"{key}.{capability}"] = value
    save_file(out, path, {"mpsim.framework": "torch " + torch.__version__.split("+")[0]})


if __name__ == "__main__":
    if sys.argv[3:]:
        iterate(*sys.argv[1:3])
    else:
        record(sys.argv[1], "-amx" if sys.argv[2:] else "")
