# SPDX-License-Identifier: Apache-2.0
"""Import before torch: makes a CPU training give the same bits at every run.

The code paths which depend on the processor (ATen kernels, MKL, oneDNN) are
pinned to their most general variant.  Another torch version may still give
other last bits.

Bits that depend on MKL and ATen, torch 2.15.0 on an AMD EPYC (family 25), 4,003 parameters, 20 steps:

* MKL's float32 square root (data/vectors/optim) is wrong in 17 % of the cases in its general code, which processors other than Intel's
  always run, and in 0.6 % in its AVX-512 code: 0.7 % of Adam's weights cannot be replayed. With ieee_sqrt() of deterministic.py the runs of
  ../amp-mlp, recorded on an Intel processor, repeat in all 100 files.
* ATEN_CPU_CAPABILITY default has no fused multiply-add: 71 % of the weights of SGD with momentum and decay differ from avx2, 42 % of AdamW's (variants
  torch-cpu-default, torch-cpu). avx512 equals avx2 in every optimizer. Forward and backward differ in 24 of 25 cases, and in one (attention)
  between avx2 and avx512.
* MKL_CBWR changes float32 matrix products: one of 25 cases (scheduler-sgd) ends with other weights under COMPATIBLE.
"""
import os

os.environ["ATEN_CPU_CAPABILITY"] = "default"
os.environ["MKL_CBWR"] = "COMPATIBLE"
os.environ["MKL_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import torch  # noqa: E402


def setup(seed):
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    torch.backends.mkldnn.enabled = False


def ieee_sqrt():
    """After this, float32 square roots of tensors are IEEE's.

    Those of MKL are only in its AVX2 code (MKL_CBWR=AVX2), which MKL takes on Intel's processors
    alone. Where it does not, they are taken by way of float64, which gives the same bits."""
    sqrt = torch.sqrt

    def right(x):
        return sqrt(x.double()).float() if x.dtype == torch.float32 else sqrt(x)

    probe = torch.arange(1.0, 4097.0)
    if not torch.equal(sqrt(probe), right(probe)):
        torch.Tensor.sqrt = right
        torch._foreach_sqrt = lambda tensors: [right(x) for x in tensors]
        power = torch.Tensor.__pow__
        torch.Tensor.__pow__ = lambda x, y: right(x) if isinstance(y, float) and y == 0.5 else power(x, y)
