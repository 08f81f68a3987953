# device.mk -- everything that a machine with a CUDA device needs, without Autotools:
#
#   make -f gpu/device.mk            build in gpu/build, run all checks, write data/gpu/<device>-<date>.json
#   make -f gpu/device.mk QUICK=1    a thousandth of the inputs, no record
#   make -f gpu/device.mk build      build only
#
# In the top directory. It needs GNU make, a C compiler and nvcc; variables: CC, CFLAGS, NVCC, ARCHS
# (nvcc's code generation, all but that of wgmma.cu and wgmma_gemm.cu).
NVCC ?= $(firstword $(shell command -v nvcc 2>/dev/null) /usr/local/cuda/bin/nvcc)
CFLAGS ?= -O2
B = gpu/build
cflags = -std=c17 -ffp-contract=off -fno-fast-math -Wall -Wextra -I$(B) -Ilib -Isim \
  -Idata/digits -D_GNU_SOURCE $(CFLAGS)
# What the library has run on in tests, and PTX for what comes later.
ARCHS ?= -gencode arch=compute_80,code=sm_80 -gencode arch=compute_89,code=sm_89 \
  -gencode arch=compute_90,code=[sm_90,compute_90]
nvccflags = -std=c++17 -O2 -Ilib -fmad=false -ftz=false -prec-div=true -prec-sqrt=true -lineinfo \
  --compiler-options=-ffp-contract=off
# The library without its vector kernels, which config.h does not ask for here; the trainer.
lib = $(filter-out %_avx2 %_avx512 %_fma,$(basename $(notdir $(wildcard lib/*.c))))
train = $(basename $(notdir $(wildcard sim/train/*.c)))
host = checks cublas main probes record
cuda = arith convert device engine gemm mma speed
cuda90a = wgmma wgmma_gemm
objects = $(lib:%=$(B)/lib-%.o) $(train:%=$(B)/train-%.o) $(host:%=$(B)/%.o) \
  $(cuda:%=$(B)/%.cu.o) $(cuda90a:%=$(B)/%.cu90a.o)
headers = $(wildcard gpu/*.h gpu/*.cuh lib/*.h lib/mpsim/*.h sim/train/*.h data/digits/*.inc)

record: build
	@status=0; \
	if [ -n "$(QUICK)" ]; then $(B)/mpsim-gpu --quick || status=$$?; \
	else $(B)/mpsim-gpu --output-dir data/gpu || status=$$?; fi; \
	if [ $$status -eq 77 ]; then exit 0; else exit $$status; fi
build: $(B)/mpsim-gpu

$(B)/mpsim-gpu: $(objects)
	$(NVCC) -o $@ $(objects) -lm -ldl
# The library asks config.h for its version and for vector kernels: there are none here.
$(B)/config.h: configure.ac
	@mkdir -p $(B)
	@sed -n 's/^AC_INIT(\[mpsim\], \[\(.*\)\])/#define PACKAGE_VERSION "\1"/p' configure.ac >$@
$(B)/lib-%.o: lib/%.c $(headers) $(B)/config.h
	$(CC) $(cflags) -c -o $@ $<
$(B)/train-%.o: sim/train/%.c $(headers) $(B)/config.h
	$(CC) $(cflags) -c -o $@ $<
$(B)/%.o: gpu/%.c $(headers) $(B)/config.h
	$(CC) $(cflags) -c -o $@ $<
$(B)/%.cu90a.o: gpu/%.cu $(headers) $(B)/config.h
	$(NVCC) $(nvccflags) -gencode arch=compute_90a,code=sm_90a -c -o $@ $<
$(B)/%.cu.o: gpu/%.cu $(headers) $(B)/config.h
	$(NVCC) $(nvccflags) $(ARCHS) -c -o $@ $<
clean:
	rm -rf $(B)
.PHONY: record build clean
