# device.mk -- the device program without Autotools:
#
#   make -f gpu/device.mk build      build gpu/build/mpsim-gpu, by all cores unless -j says otherwise
#   make -f gpu/device.mk            and run everything, write data/gpu/<device>-<date>.json
#   make -f gpu/device.mk QUICK=1    a thousandth of the inputs, no record
#
# In the top directory, where the program is run, too. It needs GNU make, a C compiler and nvcc (CUDA 12.8
# or newer); variables: CC, CFLAGS, NVCC, ARCHS (nvcc's code generation, all but that of wgmma.cu,
# kernels/gemm_wgmma.cu and block_scaled.cu).
ifeq ($(filter -j% --jobs% --jobserver%,$(MAKEFLAGS)),)
MAKEFLAGS += -j$(or $(shell nproc 2>/dev/null),4)
endif
NVCC ?= $(firstword $(shell command -v nvcc 2>/dev/null) /usr/local/cuda/bin/nvcc)
CFLAGS ?= -O2
B = gpu/build
cflags = -std=c17 -ffp-contract=off -fno-fast-math -Wall -Wextra -I$(B) -Ilib/include \
  -Idata/digits -Idata/text -D_GNU_SOURCE -DGPU_PLANS_DIR='"gpu/plans"' $(CFLAGS)
# What the library has run on in tests, and PTX for what comes later.
ARCHS ?= -gencode arch=compute_80,code=sm_80 -gencode arch=compute_89,code=sm_89 \
  -gencode arch=compute_90,code=[sm_90,compute_90]
nvccflags = -std=c++17 -O2 -Ilib/include -fmad=false -ftz=false -prec-div=true -prec-sqrt=true -lineinfo \
  --compiler-options=-ffp-contract=off
# What ptxas says of X.o is in X.o.ptxas.
nvcc = sh gpu/nvcc-wrap.sh $@.ptxas $(NVCC)
# The library, with its vector kernels on x86; the trainer, which is the CPU's side of trainings; threads for it.
machine := $(shell uname -m)
ifeq ($(machine),x86_64)
vectors = AVX2 FMA AVX512
unfit = %/neon.c
else ifeq ($(machine),aarch64)
vectors = NEON
unfit = %/avx2.c %/avx512.c %/fma.c
else
unfit = %/avx2.c %/avx512.c %/fma.c %/neon.c
endif
host = $(filter-out $(unfit),$(wildcard lib/*/*.c lib/*/*/*.c gpu/*/*.c))
cuda90a = gpu/checks/wgmma.cu gpu/kernels/gemm_wgmma.cu
cuda120a = gpu/checks/block_scaled.cu
cuda = $(filter-out $(cuda90a) $(cuda120a),$(wildcard gpu/*/*.cu))
objects = $(host:%.c=$(B)/%.o) $(cuda:%.cu=$(B)/%.cu.o) $(cuda90a:%.cu=$(B)/%.cu90a.o) \
  $(cuda120a:%.cu=$(B)/%.cu120a.o)
headers = $(wildcard gpu/*.h gpu/*/*.h gpu/*/*.cuh lib/*/*.h lib/*/*/*.h data/digits/*.inc data/text/*.inc)

record: build
	@status=0; \
	if [ -n "$(QUICK)" ]; then $(B)/mpsim-gpu --quick || status=$$?; \
	else $(B)/mpsim-gpu --output-dir data/gpu || status=$$?; fi; \
	if [ $$status -eq 77 ]; then exit 0; else exit $$status; fi
build: $(B)/mpsim-gpu

$(B)/mpsim-gpu: $(objects)
	$(NVCC) -o $@ $(objects) -Xcompiler -fopenmp -lm -ldl
	@sh gpu/ptxas.sh serialised $(cuda90a:%.cu=$(B)/%.cu90a.o.ptxas) || \
	  echo "device.mk: the same bits, but wgmma slower than it can be"
# The library asks config.h for its version and for its vector kernels.
$(B)/config.h: configure.ac
	@mkdir -p $(B)
	@sed -n 's/^AC_INIT(\[mpsim\], \[\(.*\)\])/#define PACKAGE_VERSION "\1"/p' configure.ac >$@
	@for v in $(vectors); do echo "#define HAVE_$$v 1"; done >>$@
%/avx2.o: cflags += -mavx2 -mfma
%/fma.o: cflags += -mavx2 -mfma
%/avx512.o: cflags += -mavx512f -mavx512dq -mavx512bw -mavx512vl
$(B)/lib/train/parallel.o: cflags += -fopenmp
$(B)/%.o: %.c $(headers) $(B)/config.h
	@mkdir -p $(@D)
	$(CC) $(cflags) -c -o $@ $<
$(B)/%.cu90a.o: %.cu $(headers) $(B)/config.h
	@mkdir -p $(@D)
	$(nvcc) $(nvccflags) -gencode arch=compute_90a,code=sm_90a -c -o $@ $<
$(B)/%.cu120a.o: %.cu $(headers) $(B)/config.h
	@mkdir -p $(@D)
	$(nvcc) $(nvccflags) -gencode arch=compute_120a,code=sm_120a -c -o $@ $<
$(B)/%.cu.o: %.cu $(headers) $(B)/config.h
	@mkdir -p $(@D)
	$(nvcc) $(nvccflags) $(ARCHS) -c -o $@ $<
clean:
	rm -rf $(B)
.PHONY: record build clean
