# gpu/ -- the cross-check with CUDA devices. The table of checks and the writer of records are plain C
# and built without CUDA too: tests replay records with them.
noinst_LTLIBRARIES += gpu/libchecks.la
gpu_libchecks_la_CPPFLAGS = $(public_cppflags)
gpu_libchecks_la_CFLAGS = $(base_cflags)
gpu_libchecks_la_SOURCES = gpu/gpu.h gpu/checks/cases.h gpu/checks/checks.c gpu/checks/checks.h \
  gpu/checks/probes.c gpu/checks/reference.h gpu/program/record.c gpu/program/record.h

# What only nvcc compiles; the kernels of trainings a plain C++ compiler takes, too (tests/gpu/host.h).
EXTRA_DIST += $(cuda_sources) $(cuda_wgmma_sources) gpu/README.md gpu/device.mk gpu/nvcc-wrap.sh gpu/ptxas.sh gpu/session.sh \
  gpu/train.h \
  gpu/checks/mma.cuh gpu/checks/scalar.cuh gpu/checks/tally.cuh \
  gpu/kernels/attention.cuh gpu/kernels/codes.cuh gpu/kernels/cuda.cuh gpu/kernels/elements.cuh \
  gpu/kernels/engine.cuh gpu/kernels/engine_attention.cuh gpu/kernels/engine_blocks.cuh \
  gpu/kernels/engine_layers.cuh gpu/kernels/engine_quantize.cuh gpu/kernels/engine_rows.cuh \
  gpu/kernels/engine_tokens.cuh \
  gpu/kernels/engine_lists.cuh gpu/kernels/engine_updates.cuh gpu/kernels/fragments.cuh \
  gpu/kernels/gemm.h gpu/kernels/gemm_finish.cuh gpu/kernels/gemm_fma.cuh \
  gpu/kernels/gemm_mma.cuh gpu/kernels/gemm_wgmma.cuh \
  gpu/kernels/layers.cuh gpu/kernels/list.cuh gpu/kernels/lists.cuh gpu/kernels/optimizer.cuh \
  gpu/kernels/quantize.cuh gpu/kernels/rows.cuh gpu/kernels/squares.cuh gpu/kernels/sums.cuh gpu/kernels/tokens.cuh \
  gpu/speed/measure.cuh gpu/speed/products.cuh gpu/speed/speed.h gpu/speed/tensors.cuh
# Libraries of NVIDIA, looked for at run time.
speed_libraries = gpu/speed/cublas.c gpu/speed/cublas.h gpu/speed/library.c gpu/speed/library.h \
  gpu/speed/nvml.c gpu/speed/nvml.h

# The program; tests build it for a CPU, too. Plans are written by mpsim train, see README.md.
gpu_program = gpu/program/main.c gpu/program/options.c gpu/program/options.h gpu/program/output.c \
  gpu/program/parts.c gpu/program/print.c gpu/program/print.h gpu/program/session.h gpu/program/training.c \
  gpu/program/training.h gpu/program/worker.c gpu/program/worker.h
gpu_plans = gpu/plans/mlp-fp16.plan gpu/plans/mlp-bf16.plan gpu/plans/mlp-fp8.plan \
  gpu/plans/mlp-mxfp8.plan gpu/plans/mlp-tf32.plan gpu/plans/mlp-fp32.plan \
  gpu/plans/mlp-stochastic.plan gpu/plans/mlp-masters.plan gpu/plans/cnn-fp16.plan \
  gpu/plans/cnn-bf16.plan gpu/plans/cnn-fp8.plan gpu/plans/cnn-mxfp8.plan gpu/plans/cnn-tf32.plan \
  gpu/plans/cnn-fp32.plan gpu/plans/cnn-stochastic.plan gpu/plans/cnn-masters.plan \
  gpu/plans/gpt-fp32.plan gpu/plans/gpt-tf32.plan gpu/plans/gpt-bf16.plan gpu/plans/gpt-fp16.plan \
  gpu/plans/gpt-fp8.plan gpu/plans/gpt-mxfp8.plan
EXTRA_DIST += gpu/plans/list $(gpu_plans)

if HAVE_CUDA
# What links it needs $(CUDA_LDFLAGS) and $(CUDA_LIBS).
noinst_LTLIBRARIES += gpu/libgpu.la
cuda_objects = $(cuda_sources:.cu=.lo)
cuda_wgmma_objects = $(cuda_wgmma_sources:.cu=.lo)
gpu_libgpu_la_SOURCES = $(speed_libraries)
gpu_libgpu_la_CPPFLAGS = $(public_cppflags)
gpu_libgpu_la_CFLAGS = $(base_cflags)
gpu_libgpu_la_LIBADD = $(cuda_objects) $(cuda_wgmma_objects) gpu/libchecks.la
bin_PROGRAMS += mpsim-gpu
mpsim_gpu_SOURCES = $(gpu_program)
mpsim_gpu_CPPFLAGS = $(public_cppflags) -D_GNU_SOURCE -DGPU_PLANS_DIR='"$(gpuplansdir)"'
mpsim_gpu_CFLAGS = $(base_cflags)
gpuplansdir = $(pkgdatadir)/gpu-plans
dist_gpuplans_DATA = gpu/plans/list $(gpu_plans)
mpsim_gpu_LDADD = gpu/libgpu.la lib/train/libtrain.la lib/libmpsim.la $(CUDA_LIBS)
mpsim_gpu_LDFLAGS = $(AM_LDFLAGS) $(CUDA_LDFLAGS)
cuda_nvcc = $(NVCC)
else
cuda_objects =
cuda_wgmma_objects =
cuda_nvcc =
endif

# nvcc under libtool; X.ptxas beside X.lo is what ptxas said.
SUFFIXES = .cu
AM_V_NVCC = $(am__v_NVCC_@AM_V@)
am__v_NVCC_ = $(am__v_NVCC_@AM_DEFAULT_V@)
am__v_NVCC_0 = @echo "  NVCC    " $@;
am__v_NVCC_1 =
cuda_codes = $(CUDA_ARCHS)
nvcc_compile = $(LIBTOOL) $(AM_V_lt) --tag=CC $(AM_LIBTOOLFLAGS) $(LIBTOOLFLAGS) --mode=compile \
  $(SHELL) $(top_srcdir)/gpu/nvcc-wrap.sh $(@:.lo=.ptxas) $(NVCC) -std=c++17 $(public_cppflags) $(NVCCFLAGS) \
  $(cuda_fp_flags) -MMD -MP -MF $@.d -MT $@ -c -o $@
$(cuda_wgmma_objects): cuda_codes = $(cuda_wgmma_codes)
.cu.lo:
	$(AM_V_NVCC)$(MKDIR_P) $(@D) && $(nvcc_compile) $(cuda_codes) $<
cuda_dependencies = $(cuda_objects:.lo=.lo.d) $(cuda_wgmma_objects:.lo=.lo.d)
-include $(cuda_dependencies)
MOSTLYCLEANFILES = $(cuda_dependencies) $(cuda_objects:.lo=.ptxas) $(cuda_wgmma_objects:.lo=.ptxas)
# Automake cleans after libtool where it compiles itself.
mostlyclean-local:
	-rm -f $(cuda_objects) $(cuda_objects:.lo=.o) $(cuda_wgmma_objects) $(cuda_wgmma_objects:.lo=.o)
	-rm -rf gpu/checks/.libs gpu/kernels/.libs gpu/speed/.libs
