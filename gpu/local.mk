# gpu/ -- the cross-check with CUDA devices. The table of checks and the writer of records are plain C
# and built without CUDA too: tests replay records with them.
noinst_LTLIBRARIES += gpu/libchecks.la
gpu_libchecks_la_SOURCES = gpu/cases.h gpu/checks.c gpu/checks.h gpu/gpu.h \
  gpu/probes.c gpu/record.c gpu/record.h gpu/reference.h
EXTRA_DIST += gpu/README.md gpu/arith.cu gpu/convert.cu gpu/device.cu gpu/device.mk gpu/mma.cu \
  gpu/mma.cuh gpu/nvcc-wrap.sh gpu/scalar.cuh gpu/tally.cuh gpu/wgmma.cu

if HAVE_CUDA
# What links it needs $(CUDA_LDFLAGS) and $(CUDA_LIBS).
noinst_LTLIBRARIES += gpu/libgpu.la
cuda_objects = gpu/arith.lo gpu/convert.lo gpu/device.lo gpu/mma.lo gpu/wgmma.lo
gpu_libgpu_la_SOURCES =
gpu_libgpu_la_LIBADD = $(cuda_objects) gpu/libchecks.la
bin_PROGRAMS += mpsim-gpu
mpsim_gpu_SOURCES = gpu/main.c
mpsim_gpu_LDADD = gpu/libgpu.la lib/libmpsim.la $(CUDA_LIBS)
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
-include gpu/arith.lo.d gpu/convert.lo.d gpu/device.lo.d gpu/mma.lo.d gpu/wgmma.lo.d
MOSTLYCLEANFILES = gpu/arith.lo.d gpu/convert.lo.d gpu/device.lo.d gpu/mma.lo.d gpu/wgmma.lo.d
