# gpu/ -- the cross-check with CUDA devices. The table of checks and the writer of records are plain C
# and built without CUDA too: tests replay records with them.
noinst_LIBRARIES += gpu/libchecks.a
gpu_libchecks_a_CPPFLAGS = $(public_cppflags)
gpu_libchecks_a_CFLAGS = $(product_cflags)
gpu_libchecks_a_SOURCES = \
  gpu/validation/checks/cases.h gpu/validation/checks/checks.c gpu/validation/checks/checks.h gpu/validation/checks/conversions.c gpu/validation/checks/conversions.h \
  gpu/validation/checks/doubles.h gpu/validation/checks/instructions.c gpu/validation/checks/instructions.h gpu/validation/checks/mma_forms.h gpu/validation/checks/orders.c gpu/validation/checks/orders.h gpu/validation/checks/packing.h gpu/validation/checks/probes.c \
  gpu/validation/checks/reductions.c gpu/validation/checks/reductions.h \
  gpu/validation/checks/reference.h gpu/validation/checks/variants.c gpu/validation/checks/variants.h gpu/gpu.h gpu/validation/program/json.h gpu/validation/program/record.c gpu/validation/program/record.h

# Of mpsim-gpu-functions what a CPU needs to read its records.
noinst_LIBRARIES += gpu/libfunctions.a
gpu_libfunctions_a_CPPFLAGS = $(public_cppflags)
gpu_libfunctions_a_CFLAGS = $(product_cflags)
gpu_libfunctions_a_SOURCES = gpu/functions/cases.h gpu/functions/exact.h gpu/functions/functions.h gpu/functions/pack.c \
  gpu/functions/pack.h gpu/functions/plan.c gpu/functions/record.c gpu/functions/session.h gpu/functions/tables.c
EXTRA_DIST += $(cuda_functions_sources) gpu/functions/main.c gpu/functions/unit.cuh gpu/validation/checks/open.cuh

EXTRA_DIST += gpu/library/chain.cuh gpu/library/chain_tree.cuh gpu/library/fused.cuh gpu/library/fused_tile.cuh gpu/library/staged.cuh gpu/library/grouped.cuh gpu/library/fused.h gpu/library/tile.cuh gpu/library/flushed.cuh gpu/library/exact.cuh gpu/library/exact.h gpu/validation/speed/models.cuh

# What only nvcc compiles; the kernels of trainings a plain C++ compiler takes, too (tests/gpu/host.h).
EXTRA_DIST += $(cuda_sources) $(cuda_wgmma_sources) $(cuda_next_sources) $(cuda_library_sources) gpu/stats/check.cu gpu/stats/check.h gpu/stats/main.c \
  gpu/stats/alone.cuh gpu/stats/bounds.cuh gpu/stats/limbs.cuh gpu/stats/window.cuh \
  gpu/stats/binary32.cuh gpu/stats/codes.cuh gpu/stats/plan.c gpu/stats/plan.h gpu/stats/state.h gpu/include/mpsim/cuda.h gpu/include/mpsim/cudacall.h gpu/include/mpsim/cudagemm.h gpu/include/mpsim/cudastats.h gpu/library/call.cuh gpu/library/core.cuh gpu/README.md gpu/device.mk gpu/nvcc-wrap.sh gpu/ptxas.sh gpu/session.sh gpu/dry-run.sh gpu/include/mpsim/cudaenter.h gpu/include/mpsim/cudaquantize.h gpu/library/recipes.cuh gpu/library/product.cuh gpu/library/walk.cuh \
  gpu/train.h \
  gpu/validation/checks/chosen.cuh gpu/validation/checks/cvt.cuh gpu/validation/checks/mma.cuh gpu/validation/checks/reduce.cuh gpu/validation/checks/scalar.cuh gpu/validation/checks/tally.cuh gpu/validation/checks/wgmma_forms.cuh \
  gpu/kernels/attention.cuh gpu/kernels/casts.cuh gpu/kernels/codes.cuh gpu/kernels/cuda.cuh gpu/kernels/digests.cuh gpu/kernels/elements.cuh gpu/kernels/blocks.cuh gpu/kernels/blocks_launch.cuh gpu/kernels/blocks_put.cuh gpu/kernels/blocks_whole.cuh gpu/kernels/blocks_both.cuh gpu/kernels/grids.cuh gpu/kernels/groups.cuh gpu/kernels/hadamard.cuh \
  gpu/kernels/engine.cuh gpu/kernels/engine_attention.cuh gpu/kernels/engine_blocks.cuh gpu/kernels/engine_casts.cuh \
  gpu/kernels/engine_layers.cuh gpu/kernels/engine_quantize.cuh gpu/kernels/engine_rows.cuh \
  gpu/kernels/engine_tokens.cuh gpu/kernels/flat.cuh gpu/kernels/flat_elements.cuh gpu/kernels/flat_norms.cuh gpu/kernels/flat_softmax.cuh \
  gpu/kernels/engine_lists.cuh gpu/kernels/engine_updates.cuh gpu/kernels/fragments.cuh \
  gpu/kernels/gemm.h gpu/kernels/gemm_finish.cuh gpu/kernels/gemm_fma.cuh \
  gpu/kernels/gemm_mma.cuh gpu/kernels/gemm_path.cuh gpu/kernels/gemm_tma.cuh gpu/kernels/gemm_wgmma.cuh gpu/kernels/tma.cuh gpu/kernels/wgmma.cuh \
  gpu/kernels/layers.cuh gpu/kernels/list.cuh gpu/kernels/lists.cuh gpu/kernels/optimizer.cuh \
  gpu/kernels/quantize.cuh gpu/kernels/recipe.cuh gpu/kernels/replay.cuh gpu/kernels/rows.cuh gpu/kernels/squares.cuh gpu/kernels/stack.cuh gpu/kernels/sums.cuh gpu/kernels/tokens.cuh gpu/kernels/usual.cuh \
  gpu/validation/speed/attention.cuh gpu/validation/speed/casts.cuh gpu/validation/speed/layers.cuh gpu/validation/speed/measure.cuh gpu/validation/speed/products.cuh gpu/validation/speed/speed.h gpu/validation/speed/tensors.cuh \
  gpu/validation/speed/beside/heads.py gpu/validation/speed/beside/layers.py gpu/validation/speed/beside/multiply.py gpu/validation/speed/beside/timing.py \
  gpu/validation/speed/beside/updates.py gpu/validation/speed/shares.py
EXTRA_DIST += gpu/include/mpsim/cudabetween.h gpu/library/between.cuh
EXTRA_DIST += gpu/include/mpsim/cudaattention.h gpu/library/attention.cuh
EXTRA_DIST += gpu/include/mpsim/cudamuon.h gpu/include/mpsim/cudanorm.h gpu/kernels/adafactor.cuh gpu/kernels/contract.cuh gpu/kernels/muon.cuh gpu/library/adafactor.cuh
EXTRA_DIST += gpu/include/mpsim/cudaoptim.h gpu/include/mpsim/cudasum.h gpu/kernels/flat_loss.cuh gpu/kernels/orders.cuh gpu/kernels/optimizer_ops.cuh gpu/kernels/optimizer_steps.cuh
EXTRA_DIST += gpu/sass.awk gpu/sass.sh gpu/sassproducts.sh gpu/sassrows.sh gpu/sassblocks.sh gpu/sassstats.sh gpu/include/mpsim/cudacast.h gpu/kernels/anycast.cuh
# Libraries of NVIDIA, looked for at run time.
speed_libraries = gpu/validation/speed/cublas.c gpu/validation/speed/cublas.h gpu/validation/speed/library.c gpu/validation/speed/library.h \
  gpu/validation/speed/nvml.c gpu/validation/speed/nvml.h

# The program; tests build it for a CPU, too. Runs are written by mpsim train, see README.md.
gpu_program = gpu/validation/program/main.c gpu/validation/program/options.c gpu/validation/program/options.h gpu/validation/program/output.c \
  gpu/validation/program/parts.c gpu/validation/program/print.c gpu/validation/program/print.h gpu/validation/program/session.h gpu/validation/program/training.c \
  gpu/validation/program/training.h gpu/validation/program/worker.c gpu/validation/program/worker.h
gpu_runs = gpu/runs/mlp-fp16.run gpu/runs/mlp-bf16.run gpu/runs/mlp-fp8.run \
  gpu/runs/mlp-mxfp8.run gpu/runs/mlp-tf32.run gpu/runs/mlp-fp32.run \
  gpu/runs/mlp-stochastic.run gpu/runs/mlp-masters.run gpu/runs/cnn-fp16.run \
  gpu/runs/cnn-bf16.run gpu/runs/cnn-fp8.run gpu/runs/cnn-mxfp8.run gpu/runs/cnn-tf32.run \
  gpu/runs/cnn-fp32.run gpu/runs/cnn-stochastic.run gpu/runs/cnn-masters.run \
  gpu/runs/gpt-fp32.run gpu/runs/gpt-tf32.run gpu/runs/gpt-bf16.run gpu/runs/gpt-fp16.run \
  gpu/runs/gpt-fp8.run gpu/runs/gpt-mxfp8.run
EXTRA_DIST += gpu/runs/list $(gpu_runs) gpu/runs/wide/list gpu/runs/wide/wide-bf16.run gpu/validation/speed/beside/steps.py

if HAVE_CUDA
# What links it needs $(CUDA_LDFLAGS) and $(CUDA_LIBS).
noinst_LIBRARIES += gpu/libgpu.a
cuda_objects = $(cuda_sources:.cu=.o)
cuda_wgmma_objects = $(cuda_wgmma_sources:.cu=.o)
cuda_next_objects = $(cuda_next_sources:.cu=.o)
gpu_libgpu_a_SOURCES = $(speed_libraries)
gpu_libgpu_a_CPPFLAGS = $(public_cppflags)
gpu_libgpu_a_CFLAGS = $(product_cflags)
gpu_libgpu_a_LIBADD = gpu/library/gemm.o gpu/library/fused.o gpu/library/exact.o $(cuda_objects) $(cuda_wgmma_objects) $(cuda_next_objects)
bin_PROGRAMS += mpsim-gpu
mpsim_gpu_SOURCES = $(gpu_program)
mpsim_gpu_CPPFLAGS = $(public_cppflags) -D_GNU_SOURCE -DGPU_RUNS_DIR='"$(gpurunsdir)"'
mpsim_gpu_CFLAGS = $(product_cflags)
gpurunsdir = $(pkgdatadir)/gpu-runs
dist_gpuruns_DATA = gpu/runs/list $(gpu_runs)
mpsim_gpu_LDADD = gpu/libgpu.a gpu/libchecks.a $(train_libs) $(CUDA_LDFLAGS) $(CUDA_LIBS)
mpsim_gpu_LINK = $(program_link)
cuda_nvcc = $(NVCC)
# libmpsim-cuda, which has what it needs of libmpsim; and what judges it.
noinst_LIBRARIES += gpu/libstats.a
cuda_library_objects = $(cuda_library_sources:.cu=.o)
cuda_check_objects = gpu/stats/check.o
gpu_libstats_a_SOURCES = gpu/stats/plan.c gpu/stats/plan.h gpu/stats/state.h
gpu_libstats_a_CPPFLAGS = $(public_cppflags)
gpu_libstats_a_CFLAGS = $(product_cflags) $(PIC_CFLAGS)
cuda_library = gpu/libmpsim-cuda.so.0
cuda_library_parts = $(cuda_library_objects) $(cuda_library_kernels:.cu=.o) gpu/libstats.a lib/libmpsim.a
$(cuda_library): $(cuda_library_parts)
	$(AM_V_CCLD)$(CC) $(AM_LDFLAGS) $(LDFLAGS) -shared -Wl,-soname,libmpsim-cuda.so.0 -Wl,--exclude-libs,ALL -o $@ \
	  $(cuda_library_parts) $(CUDA_LDFLAGS) $(CUDA_LIBS) -lm
mpsiminclude_HEADERS = gpu/include/mpsim/cuda.h gpu/include/mpsim/cudacall.h gpu/include/mpsim/cudagemm.h gpu/include/mpsim/cudastats.h gpu/include/mpsim/cudaenter.h gpu/include/mpsim/cudaquantize.h
mpsiminclude_HEADERS += gpu/include/mpsim/cudaattention.h gpu/include/mpsim/cudabetween.h gpu/include/mpsim/cudacast.h gpu/include/mpsim/cudamuon.h gpu/include/mpsim/cudanorm.h gpu/include/mpsim/cudaoptim.h gpu/include/mpsim/cudasum.h
noinst_PROGRAMS = mpsim-gpu-statistics
mpsim_gpu_statistics_SOURCES = gpu/stats/main.c gpu/stats/check.h
mpsim_gpu_statistics_CPPFLAGS = $(public_cppflags)
mpsim_gpu_statistics_CFLAGS = $(product_cflags)
mpsim_gpu_statistics_LDADD = gpu/stats/check.o $(cuda_library_parts) $(CUDA_LDFLAGS) $(CUDA_LIBS) -lm
mpsim_gpu_statistics_LINK = $(program_link)
# Every result of the special function unit.
cuda_functions_objects = $(cuda_functions_sources:.cu=.o)
noinst_PROGRAMS += mpsim-gpu-functions
mpsim_gpu_functions_SOURCES = gpu/functions/main.c gpu/validation/program/worker.c gpu/validation/program/worker.h
mpsim_gpu_functions_CPPFLAGS = $(public_cppflags) -D_GNU_SOURCE
mpsim_gpu_functions_CFLAGS = $(product_cflags)
mpsim_gpu_functions_LDADD = gpu/libfunctions.a $(cuda_functions_objects) gpu/libfunctions.a lib/libmpsim.a $(CUDA_LDFLAGS) $(CUDA_LIBS) -lm
mpsim_gpu_functions_LINK = $(program_link)
cudaexecdir = $(libdir)
cudaexec_DATA = $(cuda_library)
install-exec-hook:
	cd $(DESTDIR)$(libdir) && ln -sf libmpsim-cuda.so.0 libmpsim-cuda.so
uninstall-hook:
	rm -f $(DESTDIR)$(libdir)/libmpsim-cuda.so
else
cuda_functions_objects =
cuda_library_objects =
cuda_check_objects =
cuda_library =
cuda_objects =
cuda_wgmma_objects =
cuda_next_objects =
cuda_nvcc =
endif

# X.ptxas beside X.o is what ptxas said, X.sm_90.ptx and the like what it was given.
SUFFIXES = .cu
AM_V_NVCC = $(am__v_NVCC_@AM_V@)
am__v_NVCC_ = $(am__v_NVCC_@AM_DEFAULT_V@)
am__v_NVCC_0 = @echo "  NVCC    " $@;
am__v_NVCC_1 =
cuda_codes = $(CUDA_ARCHS)
nvcc_compile = $(SHELL) $(top_srcdir)/gpu/nvcc-wrap.sh --keep-ptx $(@:.o=.ptxas) $(NVCC) -std=c++17 $(public_cppflags) -I$(top_srcdir)/gpu/include $(NVCCFLAGS) \
  $(cuda_fp_flags) -MMD -MP -MF $@.d -MT $@ -c -o $@
$(cuda_library_objects) $(cuda_library_kernels:.cu=.o): NVCCFLAGS += --compiler-options=-fPIC
$(cuda_wgmma_objects): cuda_codes = $(cuda_wgmma_codes)
$(cuda_next_objects): cuda_codes = $(cuda_next_codes)
.cu.o:
	$(AM_V_NVCC)$(MKDIR_P) $(@D) && $(nvcc_compile) $(cuda_codes) $<
cuda_all = $(cuda_objects) $(cuda_wgmma_objects) $(cuda_next_objects) $(cuda_library_objects) $(cuda_check_objects) $(cuda_functions_objects)
cuda_dependencies = $(cuda_all:.o=.o.d)
-include $(cuda_dependencies)
MOSTLYCLEANFILES = $(cuda_all) $(cuda_dependencies) $(cuda_all:.o=.ptxas) $(cuda_all:.o=.*.ptx) $(cuda_library)
