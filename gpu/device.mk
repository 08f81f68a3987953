# device.mk -- the device program without Autotools:
#
#   make -f gpu/device.mk build      build gpu/build/mpsim-gpu, by all cores unless -j says otherwise
#   make -f gpu/device.mk            and run everything, write data/gpu/<device>-<date>.json
#   make -f gpu/device.mk QUICK=1    a thousandth of the inputs, no record
#   make -f gpu/device.mk cuda       build gpu/build/libmpsim-cuda.so (mpsim/cuda.h), which needs no other library of ours,
#                                    and gpu/build/mpsim-gpu-statistics, which judges and times it
#   make -f gpu/device.mk functions  build gpu/build/mpsim-gpu-functions
#
# In the top directory, where the program is run, too. It needs GNU make, a C compiler and nvcc (CUDA 12.8 or
# newer); variables: CC, CFLAGS, NVCC, NVCCFLAGS ("-O2 -lineinfo": lines for profilers and compute-sanitizer, four
# times the size), ARCHS (nvcc's code generation, all but that of wgmma).
ifeq ($(filter -j% --jobs% --jobserver%,$(MAKEFLAGS)),)
MAKEFLAGS += -j$(or $(shell nproc 2>/dev/null),4)
endif
NVCC ?= $(firstword $(shell command -v nvcc 2>/dev/null) /usr/local/cuda/bin/nvcc)
CFLAGS ?= -O2
B = gpu/build
cflags = -std=c17 -fPIC -ffp-contract=off -fno-fast-math -Wall -Wextra -I$(B) -Ilib/include -Igpu/include \
  -Idata/digits -Idata/text -D_GNU_SOURCE -DGPU_RUNS_DIR='"gpu/runs"' $(CFLAGS)
include gpu/cuda.mk
# The device at hand; others: ARCHS='-gencode arch=compute_80,code=sm_80 -gencode arch=compute_89,code=sm_89'.
ARCHS ?= -gencode arch=compute_90,code=sm_90
NVCCFLAGS ?= -O2
# Code for devices is packed: the program travels.
nvccflags = -std=c++17 -Xcompiler -fPIC -Ilib/include -Igpu/include -Xfatbin -compress-all $(NVCCFLAGS) $(cuda_fp_flags)
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
host = $(filter-out $(unfit) gpu/stats/% gpu/functions/%,$(wildcard lib/*/*.c lib/*/*/*.c gpu/*/*.c gpu/*/*/*.c))
cuda_objects = $(cuda_sources:%=$(B)/%.o)
cuda_wgmma_objects = $(cuda_wgmma_sources:%=$(B)/%.o)
cuda_next_objects = $(cuda_next_sources:%=$(B)/%.o)
objects = $(host:%.c=$(B)/%.o) $(B)/gpu/library/gemm.cu.o $(B)/gpu/library/fused.cu.o $(B)/gpu/library/exact.cu.o $(cuda_objects) $(cuda_wgmma_objects) $(cuda_next_objects)
library_objects = $(B)/gpu/stats/plan.o $(cuda_library_sources:%=$(B)/%.o) $(cuda_library_kernels:%=$(B)/%.o)
functions_objects = $(cuda_functions_sources:%=$(B)/%.o) $(patsubst %.c,$(B)/%.o,$(wildcard gpu/functions/*.c)) $(B)/gpu/validation/program/worker.o
library = $(patsubst %.c,$(B)/%.o,$(filter lib/base/% lib/block/% lib/dot/% lib/format/% lib/layer/% lib/optim/% lib/round/% lib/stats/%,$(host)))
headers = $(wildcard gpu/*.h gpu/*/*.h gpu/*/*.cuh gpu/*/*/*.h gpu/*/*/*.cuh gpu/include/mpsim/*.h lib/include/*/*.h lib/*/*.h lib/*/*/*.h data/digits/*.inc data/text/*.inc)

record: build
	@status=0; \
	if [ -n "$(QUICK)" ]; then $(B)/mpsim-gpu --quick || status=$$?; \
	else $(B)/mpsim-gpu --output-dir data/gpu || status=$$?; sh data/gpu/take.sh --sums data/gpu || status=$$?; fi; \
	if [ $$status -eq 77 ]; then exit 0; else exit $$status; fi
build: $(B)/mpsim-gpu cuda functions
	@find $(B) -maxdepth 1 -type f -perm -u+x -size +0 -exec ls -l {} + | awk '{ n += $$5; print $$NF ": " $$5 " bytes" } \
	  END { print "all that is carried of $(B): " n " bytes; 64 MiB may travel (gpu/dry-run.sh counts the rest)" }'
cuda: $(B)/libmpsim-cuda.so $(B)/mpsim-gpu-statistics
functions: $(B)/mpsim-gpu-functions

$(B)/mpsim-gpu: $(objects)
	$(NVCC) -o $@ $(objects) -lm -ldl -lpthread
	@sh gpu/ptxas.sh serialised $(cuda_wgmma_objects:%=%.ptxas) || \
	  echo "device.mk: the same bits, but wgmma slower than it can be"
# Of the library what is needed, and not for others to see.
$(B)/libmpsim.a: $(library)
	rm -f $@
	$(AR) cr $@ $(library)
$(B)/libmpsim-cuda.so: $(library_objects) $(B)/libmpsim.a
	$(NVCC) -shared -o $@ $(library_objects) $(B)/libmpsim.a -lm -Xlinker --exclude-libs,ALL -Xlinker -z,defs -Xlinker -soname,libmpsim-cuda.so.0
$(B)/mpsim-gpu-statistics: $(library_objects) $(B)/gpu/stats/check.cu.o $(B)/gpu/stats/main.o $(B)/libmpsim.a
	$(NVCC) -o $@ $^ -lm
$(B)/mpsim-gpu-functions: $(functions_objects) $(B)/libmpsim.a
	$(NVCC) -o $@ $^ -lm
# The library asks config.h for its version and for its vector kernels.
$(B)/config.h: configure.ac
	@mkdir -p $(B)
	@sed -n 's/^AC_INIT(\[mpsim\], \[\(.*\)\])/#define PACKAGE_VERSION "\1"/p' configure.ac >$@
	@for v in $(vectors); do echo "#define HAVE_$$v 1"; done >>$@
%/avx2.o: cflags += -mavx2 -mfma -mf16c
%/fma.o: cflags += -mavx2 -mfma
%/avx512.o: cflags += -mavx512f -mavx512dq -mavx512bw -mavx512vl
$(B)/%.o: %.c $(headers) $(B)/config.h
	@mkdir -p $(@D)
	$(CC) $(cflags) -c -o $@ $<
codes = $(ARCHS)
$(cuda_wgmma_objects): codes = $(cuda_wgmma_codes)
$(cuda_next_objects): codes = $(cuda_next_codes)
$(B)/%.cu.o: %.cu $(headers) $(B)/config.h
	@mkdir -p $(@D)
	$(nvcc) $(nvccflags) $(codes) -c -o $@ $<
clean:
	rm -rf $(B)
.PHONY: record build cuda functions clean
