# device.mk -- everything that a machine with a CUDA device needs, without Autotools:
#
#   make -f gpu/device.mk            build in gpu/build, run all checks, write data/gpu/<device>-<date>.json
#   make -f gpu/device.mk QUICK=1    a thousandth of the inputs, no record
#   make -f gpu/device.mk build      build only
#
# In the top directory, where the program is run, too. It needs GNU make, a C compiler and nvcc; variables: CC, CFLAGS, NVCC, ARCHS
# (nvcc's code generation, all but that of wgmma.cu and wgmma_gemm.cu).
NVCC ?= $(firstword $(shell command -v nvcc 2>/dev/null) /usr/local/cuda/bin/nvcc)
CFLAGS ?= -O2
B = gpu/build
cflags = -std=c17 -ffp-contract=off -fno-fast-math -Wall -Wextra -I$(B) -Ilib -Isim \
  -Idata/digits -D_GNU_SOURCE -DGPU_PLANS_DIR='"gpu/plans"' $(CFLAGS)
# What the library has run on in tests, and PTX for what comes later.
ARCHS ?= -gencode arch=compute_80,code=sm_80 -gencode arch=compute_89,code=sm_89 \
  -gencode arch=compute_90,code=[sm_90,compute_90]
nvccflags = -std=c++17 -O2 -Ilib -fmad=false -ftz=false -prec-div=true -prec-sqrt=true -lineinfo \
  --compiler-options=-ffp-contract=off
# The library, with its vector kernels on x86; the trainer, which is the CPU's side of trainings; threads for it.
ifeq ($(shell uname -m),x86_64)
vectors = AVX2 FMA AVX512
else
unfit = %_avx2 %_avx512 %_fma
endif
lib = $(filter-out $(unfit),$(basename $(notdir $(wildcard lib/*.c))))
train = $(basename $(notdir $(wildcard sim/train/*.c)))
host = checks cublas main options print probes record training
cuda = arith convert device engine gemm mma speed
cuda90a = wgmma wgmma_gemm
objects = $(lib:%=$(B)/lib-%.o) $(train:%=$(B)/train-%.o) $(B)/parallel.o $(host:%=$(B)/%.o) \
  $(cuda:%=$(B)/%.cu.o) $(cuda90a:%=$(B)/%.cu90a.o)
headers = $(wildcard gpu/*.h gpu/*.cuh lib/*.h lib/mpsim/*.h sim/train/*.h data/digits/*.inc)

record: build
	@status=0; \
	if [ -n "$(QUICK)" ]; then $(B)/mpsim-gpu --quick || status=$$?; \
	else $(B)/mpsim-gpu --output-dir data/gpu || status=$$?; fi; \
	if [ $$status -eq 77 ]; then exit 0; else exit $$status; fi
build: $(B)/mpsim-gpu

$(B)/mpsim-gpu: $(objects)
	$(NVCC) -o $@ $(objects) -Xcompiler -fopenmp -lm -ldl
# The library asks config.h for its version and for its vector kernels.
$(B)/config.h: configure.ac
	@mkdir -p $(B)
	@sed -n 's/^AC_INIT(\[mpsim\], \[\(.*\)\])/#define PACKAGE_VERSION "\1"/p' configure.ac >$@
	@for v in $(vectors); do echo "#define HAVE_$$v 1"; done >>$@
$(B)/lib-%_avx2.o: cflags += -mavx2
$(B)/lib-%_fma.o: cflags += -mavx2 -mfma
$(B)/lib-%_avx512.o: cflags += -mavx512f -mavx512dq -mavx512bw -mavx512vl
$(B)/lib-%.o: lib/%.c $(headers) $(B)/config.h
	$(CC) $(cflags) -c -o $@ $<
$(B)/train-%.o: sim/train/%.c $(headers) $(B)/config.h
	$(CC) $(cflags) -c -o $@ $<
$(B)/parallel.o: sim/parallel.c sim/parallel.h $(headers) $(B)/config.h
	$(CC) $(cflags) -fopenmp -c -o $@ $<
$(B)/%.o: gpu/%.c $(headers) $(B)/config.h
	$(CC) $(cflags) -c -o $@ $<
$(B)/%.cu90a.o: gpu/%.cu $(headers) $(B)/config.h
	$(NVCC) $(nvccflags) -gencode arch=compute_90a,code=sm_90a -c -o $@ $<
$(B)/%.cu.o: gpu/%.cu $(headers) $(B)/config.h
	$(NVCC) $(nvccflags) $(ARCHS) -c -o $@ $<
clean:
	rm -rf $(B)
.PHONY: record build clean
