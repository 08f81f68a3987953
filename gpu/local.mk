# gpu/ -- the cross-check with CUDA devices. The table of checks and the writer of records are plain C
# and built without CUDA too: tests replay records with them.
noinst_LTLIBRARIES += gpu/libchecks.la
gpu_libchecks_la_SOURCES = gpu/cases.h gpu/checks.c gpu/checks.h gpu/gpu.h \
  gpu/probes.c gpu/record.c gpu/record.h gpu/reference.h
EXTRA_DIST += gpu/README.md gpu/arith.cu gpu/convert.cu gpu/device.cu gpu/device.mk gpu/mma.cu \
  gpu/mma.cuh gpu/nvcc-wrap.sh gpu/scalar.cuh gpu/tally.cuh gpu/wgmma.cu
# Training: the kernels, which a plain C++ compiler takes, too (host.h)
EXTRA_DIST += gpu/codes.cuh gpu/cublas.c gpu/cublas.h gpu/cuda.cuh gpu/elements.cuh gpu/engine.cu \
  gpu/engine.cuh gpu/engine_layers.cuh gpu/engine_quantize.cuh \
  gpu/engine_updates.cuh gpu/fragments.cuh gpu/gemm.cu gpu/gemm.h gpu/gemm_finish.cuh \
  gpu/gemm_fma.cuh gpu/gemm_mma.cuh gpu/gemm_wgmma.cuh gpu/host.h gpu/hostcores.h gpu/hostfibers.h \
  gpu/hostruntime.h gpu/layers.cuh \
  gpu/optimizer.cuh gpu/quantize.cuh gpu/speed.cu gpu/speed.h gpu/statistics.cuh gpu/stream.cuh \
  gpu/sums.cuh gpu/train.h gpu/wgmma_gemm.cu

# The program; tests build it for a CPU, too. Plans are written by mpsim train, see README.md.
gpu_program = gpu/main.c gpu/options.c gpu/options.h gpu/print.c gpu/print.h gpu/training.c \
  gpu/training.h sim/parallel.c sim/parallel.h
gpu_plans = gpu/plans/mlp-fp16.plan gpu/plans/mlp-bf16.plan gpu/plans/mlp-fp8.plan \
  gpu/plans/mlp-mxfp8.plan gpu/plans/mlp-tf32.plan gpu/plans/mlp-fp32.plan \
  gpu/plans/mlp-stochastic.plan gpu/plans/mlp-masters.plan gpu/plans/cnn-fp16.plan \
  gpu/plans/cnn-bf16.plan gpu/plans/cnn-fp8.plan gpu/plans/cnn-mxfp8.plan gpu/plans/cnn-tf32.plan \
  gpu/plans/cnn-fp32.plan gpu/plans/cnn-stochastic.plan gpu/plans/cnn-masters.plan
EXTRA_DIST += gpu/plans/list $(gpu_plans)

if HAVE_CUDA
# What links it needs $(CUDA_LDFLAGS) and $(CUDA_LIBS).
noinst_LTLIBRARIES += gpu/libgpu.la
cuda_objects = gpu/arith.lo gpu/convert.lo gpu/device.lo gpu/engine.lo gpu/gemm.lo gpu/mma.lo \
  gpu/speed.lo gpu/wgmma.lo gpu/wgmma_gemm.lo
gpu_libgpu_la_SOURCES = gpu/cublas.c
gpu_libgpu_la_LIBADD = $(cuda_objects) gpu/libchecks.la
bin_PROGRAMS += mpsim-gpu
mpsim_gpu_SOURCES = $(gpu_program)
mpsim_gpu_CPPFLAGS = $(AM_CPPFLAGS) -DGPU_PLANS_DIR='"$(gpuplansdir)"'
mpsim_gpu_CFLAGS = $(AM_CFLAGS) $(OPENMP_CFLAGS)
gpuplansdir = $(pkgdatadir)/gpu-plans
dist_gpuplans_DATA = gpu/plans/list $(gpu_plans)
mpsim_gpu_LDADD = gpu/libgpu.la sim/libtrain.la lib/libmpsim.la $(CUDA_LIBS)
mpsim_gpu_LDFLAGS = $(AM_LDFLAGS) $(CUDA_LDFLAGS)
cuda_nvcc = $(NVCC)
else
cuda_nvcc =
endif

# nvcc under libtool. The flags that the bits depend on stand behind the user's.
SUFFIXES = .cu
AM_V_NVCC = $(am__v_NVCC_@AM_V@)
am__v_NVCC_ = $(am__v_NVCC_@AM_DEFAULT_V@)
am__v_NVCC_0 = @echo "  NVCC    " $@;
am__v_NVCC_1 =
cuda_fp_flags = -fmad=false -ftz=false -prec-div=true -prec-sqrt=true \
  --compiler-options=-ffp-contract=off
nvcc_compile = $(LIBTOOL) $(AM_V_lt) --tag=CC $(AM_LIBTOOLFLAGS) $(LIBTOOLFLAGS) --mode=compile \
  $(SHELL) $(top_srcdir)/gpu/nvcc-wrap.sh $(NVCC) -std=c++17 $(AM_CPPFLAGS) $(NVCCFLAGS) \
  $(cuda_fp_flags) -MMD -MP -MF $@.d -MT $@ -c -o $@
.cu.lo:
	$(AM_V_NVCC)$(MKDIR_P) $(@D) && $(nvcc_compile) $(CUDA_ARCHS) $<
# wgmma is an instruction of this target alone
gpu/wgmma.lo: gpu/wgmma.cu
	$(AM_V_NVCC)$(MKDIR_P) $(@D) && $(nvcc_compile) $(CUDA_WGMMA_ARCH) $(srcdir)/gpu/wgmma.cu
gpu/wgmma_gemm.lo: gpu/wgmma_gemm.cu
	$(AM_V_NVCC)$(MKDIR_P) $(@D) && $(nvcc_compile) $(CUDA_WGMMA_ARCH) $(srcdir)/gpu/wgmma_gemm.cu
-include gpu/arith.lo.d gpu/convert.lo.d gpu/device.lo.d gpu/engine.lo.d gpu/gemm.lo.d gpu/mma.lo.d \
  gpu/speed.lo.d gpu/wgmma.lo.d gpu/wgmma_gemm.lo.d
MOSTLYCLEANFILES = gpu/arith.lo.d gpu/convert.lo.d gpu/device.lo.d gpu/engine.lo.d gpu/gemm.lo.d \
  gpu/mma.lo.d gpu/speed.lo.d gpu/wgmma.lo.d gpu/wgmma_gemm.lo.d
