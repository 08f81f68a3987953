# cuda.mk -- what both builds of the CUDA sources share, Autotools' (local.mk) and that of device.mk.
cuda_sources = gpu/validation/checks/arith.cu gpu/validation/checks/convert.cu gpu/validation/checks/cvt.cu gpu/validation/checks/device.cu gpu/validation/checks/dmma.cu gpu/validation/checks/mma.cu gpu/validation/checks/mma_variants.cu gpu/validation/checks/order.cu gpu/validation/checks/reduce.cu \
  gpu/kernels/blocks.cu gpu/kernels/engine.cu gpu/kernels/gemm.cu gpu/validation/speed/speed.cu
# libmpsim-cuda: one source to an operation.
cuda_library_sources = gpu/stats/stats.cu gpu/library/enter.cu gpu/library/quantize.cu gpu/library/gemm.cu
cuda_library_sources += gpu/library/cast.cu
cuda_library_sources += gpu/library/fused.cu gpu/library/exact.cu
# Kernels of training that are in it, too.
cuda_library_kernels = gpu/kernels/blocks.cu gpu/kernels/gemm.cu gpu/kernels/gemm_tma.cu gpu/kernels/gemm_wgmma.cu
# mpsim-gpu-functions.
cuda_functions_sources = gpu/functions/functions.cu
# wgmma is an instruction of one target alone.
cuda_wgmma_sources = gpu/validation/checks/variants.cu gpu/validation/checks/wgmma.cu gpu/validation/checks/wgmma_sparse.cu gpu/kernels/gemm_tma.cu gpu/kernels/gemm_wgmma.cu
cuda_library_sources += gpu/library/optimizer.cu gpu/library/muon.cu gpu/library/norm.cu gpu/library/sum.cu gpu/library/between.cu gpu/library/attention.cu
# Instructions of Blackwell alone.
cuda_next_sources = gpu/validation/checks/cvt_next.cu
cuda_next_codes = -gencode arch=compute_100a,code=sm_100a -gencode arch=compute_120a,code=sm_120a
cuda_wgmma_codes = -gencode arch=compute_90a,code=sm_90a
# The bits depend on these. Behind the flags of the user.
cuda_fp_flags = -fmad=false -ftz=false -prec-div=true -prec-sqrt=true \
  --compiler-options=-ffp-contract=off
