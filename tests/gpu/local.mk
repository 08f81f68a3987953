# tests/gpu/ -- the CUDA kernels of training on a CPU (tests/gpu/host.h): C++17, no CUDA, no Check.
# gpu/validation/program/training.c with an engine that has faults.
if HAVE_CHECK
tests_gpu_t_in_step_SOURCES = \
  gpu/validation/program/training.c gpu/validation/program/training.h tests/gpu/t-in-step.c
tests_gpu_t_in_step_CPPFLAGS = $(AM_CPPFLAGS)
# records of devices: the program's, and what is kept beside them
tests_gpu_t_record_SOURCES = \
  tests/gpu/agree.c tests/gpu/agree.h tests/gpu/folders.c tests/gpu/folders.h tests/gpu/kept.c tests/gpu/kept.h \
  tests/gpu/replay.c tests/gpu/replay.h tests/gpu/t-record.c tests/gpu/whole.c tests/gpu/whole.h

endif
# Records of mpsim-gpu-functions: a made-up unit, the reader. The unit tests spend their time in loops of their own.
made_up_unit = tests/gpu/around.c tests/gpu/unit.c tests/gpu/unit.h
unit_fitter = tests/gpu/unitfit.c tests/gpu/unitfit.h
dist_check_SCRIPTS += tests/gpu/functions.sh
tests_all += tests/gpu/functions.sh
if HAVE_CHECK
functions_tests = tests/gpu/t-functions
tests_gpu_t_functions_SOURCES = $(made_up_unit) tests/gpu/functionsjudge.c tests/gpu/functionsjudge.h \
  tests/gpu/functionsrecord.c tests/gpu/functionsrecord.h tests/gpu/t-functions.c $(unit_fitter) tests/gpu/unitrules.c tests/gpu/unitrules.h
tests_gpu_t_functions_LDADD = gpu/libfunctions.a $(LDADD)
tests_gpu_t_functions_CFLAGS = $(OPT_CFLAGS) $(test_cflags)
if HAVE_MPFR
functions_tests += tests/gpu/t-exact
tests_gpu_t_exact_LDADD = gpu/libfunctions.a $(LDADD)
tests_gpu_t_exact_CFLAGS = $(OPT_CFLAGS) $(test_cflags)
endif
# What the fitter finds in a record: run by hand (gpu/README.md).
programs_all += $(functions_tests) tests/gpu/x-fit
tests_gpu_x_fit_SOURCES = tests/gpu/functionsrecord.c tests/gpu/functionsrecord.h $(unit_fitter) tests/gpu/unitrules.c \
  tests/gpu/unitrules.h tests/gpu/x-fit.c
tests_gpu_x_fit_LDADD = gpu/libfunctions.a $(LDADD)
tests_gpu_x_fit_CFLAGS = $(OPT_CFLAGS) $(test_cflags)
tests_all += $(functions_tests)
endif
if HAVE_CXX
kernel_cppflags = $(public_cppflags) -I$(top_srcdir)/gpu/include -I$(top_srcdir)/tests/gpu -I$(top_srcdir)/tests -D_GNU_SOURCE
kernel_cxxflags = $(KERNEL_CXXFLAGS) -Wall -Wextra -Wno-unknown-pragmas $(SAN_CFLAGS)
AM_CXXFLAGS = $(TEST_CXXFLAGS) $(kernel_cxxflags) $(CHECK_CFLAGS)
kernel_libs = tests/gpu/libkernels.a $(train_libs)
EXTRA_LIBRARIES += tests/gpu/libkernels.a
tests_gpu_libkernels_a_SOURCES = \
  tests/gpu/blocks_host.cc tests/gpu/engine_host.cc tests/gpu/gemm_host.cc tests/gpu/host.h tests/gpu/host_cores.h tests/gpu/library_exact_host.cc tests/gpu/library_fused_host.cc tests/gpu/library_gemm_host.cc \
  tests/gpu/host_faults.h tests/gpu/host_fibers.h tests/gpu/host_launch.h tests/gpu/host_graph.h tests/gpu/host_runtime.h tests/gpu/host_mma.h \
  tests/gpu/host_tma.h tests/gpu/host_wgmma.h tests/gpu/tma_host.cc tests/gpu/wgmma_host.cc \
  tests/support/extent.c
tests_gpu_libkernels_a_CPPFLAGS = $(kernel_cppflags)
tests_gpu_libkernels_a_CFLAGS = $(OPT_CFLAGS) $(test_cflags)
tests_gpu_libkernels_a_CXXFLAGS = $(OPT_CXXFLAGS) $(kernel_cxxflags)
kernel_tests = tests/gpu/t-blocks tests/gpu/t-decoder tests/gpu/t-host tests/gpu/t-engine tests/gpu/t-engine-products tests/gpu/t-library-gemm \
  tests/gpu/t-launches tests/gpu/t-library-quantize \
  tests/gpu/t-stats tests/gpu/t-training tests/gpu/t-transformer tests/gpu/t-variants
tests_gpu_t_blocks_SOURCES = tests/gpu/t-blocks.cc
tests_gpu_t_blocks_CPPFLAGS = $(kernel_cppflags)
tests_gpu_t_blocks_LDADD = $(kernel_libs)
tests_gpu_t_decoder_SOURCES = tests/gpu/t-decoder.cc
tests_gpu_t_decoder_CPPFLAGS = $(kernel_cppflags)
tests_gpu_t_decoder_LDADD = $(kernel_libs)
tests_gpu_t_host_SOURCES = tests/gpu/t-host.cc tests/gpu/tap.h
tests_gpu_t_host_CPPFLAGS = $(kernel_cppflags)
tests_gpu_t_host_LDADD = $(kernel_libs)
tests_gpu_t_engine_SOURCES = tests/gpu/t-engine.cc tests/gpu/pairs.h
tests_gpu_t_engine_CPPFLAGS = $(kernel_cppflags)
tests_gpu_t_engine_LDADD = $(kernel_libs)
tests_gpu_t_engine_products_SOURCES = tests/gpu/t-engine-products.cc tests/gpu/pairs.h
tests_gpu_t_engine_products_CPPFLAGS = $(kernel_cppflags)
tests_gpu_t_engine_products_LDADD = $(kernel_libs)
tests_gpu_t_launches_SOURCES = tests/gpu/t-launches.cc
tests_gpu_t_launches_CPPFLAGS = $(kernel_cppflags)
tests_gpu_t_launches_LDADD = $(kernel_libs)
kernel_tests += tests/gpu/t-library-cast
tests_gpu_t_library_cast_SOURCES = tests/gpu/t-library-cast.cc
tests_gpu_t_library_cast_CPPFLAGS = $(kernel_cppflags)
tests_gpu_t_library_cast_LDADD = $(kernel_libs)
tests_gpu_t_library_quantize_SOURCES = tests/gpu/t-library-quantize.cc
tests_gpu_t_library_quantize_CPPFLAGS = $(kernel_cppflags)
tests_gpu_t_library_quantize_LDADD = $(kernel_libs)
kernel_tests += tests/gpu/t-library-muon tests/gpu/t-library-optimizer tests/gpu/t-library-sum
tests_gpu_t_library_muon_SOURCES = tests/gpu/t-library-muon.cc
tests_gpu_t_library_muon_CPPFLAGS = $(kernel_cppflags)
tests_gpu_t_library_muon_CXXFLAGS = $(OPT_CXXFLAGS) $(kernel_cxxflags)
tests_gpu_t_library_muon_LDADD = $(kernel_libs)
tests_gpu_t_library_sum_SOURCES = tests/gpu/t-library-sum.cc
tests_gpu_t_library_sum_CPPFLAGS = $(kernel_cppflags)
tests_gpu_t_library_sum_CXXFLAGS = $(OPT_CXXFLAGS) $(kernel_cxxflags)
tests_gpu_t_library_sum_LDADD = $(kernel_libs)
kernel_tests += tests/gpu/t-library-between
tests_gpu_t_library_between_SOURCES = tests/gpu/t-library-between.cc
tests_gpu_t_library_between_CPPFLAGS = $(kernel_cppflags)
tests_gpu_t_library_between_CXXFLAGS = $(OPT_CXXFLAGS) $(kernel_cxxflags)
tests_gpu_t_library_between_LDADD = $(kernel_libs)
kernel_tests += tests/gpu/t-library-attention
tests_gpu_t_library_attention_SOURCES = tests/gpu/t-library-attention.cc
tests_gpu_t_library_attention_CPPFLAGS = $(kernel_cppflags)
tests_gpu_t_library_attention_CXXFLAGS = $(OPT_CXXFLAGS) $(kernel_cxxflags)
tests_gpu_t_library_attention_LDADD = $(kernel_libs)
tests_gpu_t_library_optimizer_SOURCES = tests/gpu/t-library-optimizer.cc
tests_gpu_t_library_optimizer_CPPFLAGS = $(kernel_cppflags)
tests_gpu_t_library_optimizer_CXXFLAGS = $(OPT_CXXFLAGS) $(kernel_cxxflags)
tests_gpu_t_library_optimizer_LDADD = $(kernel_libs)
tests_gpu_t_stats_SOURCES = tests/gpu/t-stats.cc tests/gpu/stats_calls.cc tests/gpu/stats_host.cc gpu/stats/plan.c
tests_gpu_t_stats_CPPFLAGS = $(kernel_cppflags)
tests_gpu_t_stats_CFLAGS = $(OPT_CFLAGS) $(test_cflags)
tests_gpu_t_stats_CXXFLAGS = $(OPT_CXXFLAGS) $(kernel_cxxflags)
tests_gpu_t_stats_LDADD = $(kernel_libs)
tests_gpu_t_library_gemm_SOURCES = tests/gpu/t-library-gemm.cc tests/gpu/library_gemm.h tests/gpu/tap.h
tests_gpu_t_library_gemm_CPPFLAGS = $(kernel_cppflags)
tests_gpu_t_library_gemm_CXXFLAGS = $(OPT_CXXFLAGS) $(kernel_cxxflags)
tests_gpu_t_library_gemm_LDADD = $(kernel_libs)
tests_gpu_t_training_SOURCES = tests/gpu/t-training.cc tests/gpu/steps.h
tests_gpu_t_training_CPPFLAGS = $(kernel_cppflags)
tests_gpu_t_training_LDADD = $(kernel_libs)
tests_gpu_t_transformer_SOURCES = tests/gpu/t-transformer.cc tests/gpu/steps.h
tests_gpu_t_transformer_CPPFLAGS = $(kernel_cppflags)
tests_gpu_t_transformer_LDADD = $(kernel_libs)
tests_gpu_t_variants_SOURCES = tests/gpu/t-variants.cc
tests_gpu_t_variants_CPPFLAGS = $(kernel_cppflags)
tests_gpu_t_variants_LDADD = gpu/libchecks.a $(kernel_libs)
if HAVE_CHECK
kernel_tests += tests/gpu/t-gemm
tests_gpu_t_gemm_SOURCES = tests/gpu/t-gemm.cc
tests_gpu_t_gemm_CPPFLAGS = $(kernel_cppflags)
tests_gpu_t_gemm_LDADD = tests/gpu/libkernels.a $(LDADD)
kernel_tests += tests/gpu/t-speed
tests_gpu_t_speed_SOURCES = tests/gpu/t-speed.cc $(speed_libraries)
tests_gpu_t_speed_CPPFLAGS = $(kernel_cppflags)
tests_gpu_t_speed_LDADD = tests/gpu/libkernels.a $(LDADD) -ldl
endif
programs_all += $(kernel_tests)
tests_all += $(kernel_tests)
# mpsim-gpu on a CPU: tests/gpu/program.sh and libraries.sh run it.
programs_all += tests/gpu/mpsim-gpu-host
tests_gpu_mpsim_gpu_host_SOURCES = tests/gpu/device_host.cc tests/gpu/speed_host.cc $(gpu_program) \
  $(speed_libraries)
tests_gpu_mpsim_gpu_host_CPPFLAGS = $(kernel_cppflags) -Dtrain_engine_cuda=test_engine_cuda
tests_gpu_mpsim_gpu_host_LDADD = gpu/libchecks.a $(kernel_libs) -ldl
tests_gpu_mpsim_gpu_host_LINK = $(CXXLINK) -rdynamic
# mpsim-gpu-statistics on a CPU, for gpu/dry-run.sh.
programs_all += tests/gpu/mpsim-gpu-statistics-host
tests_gpu_mpsim_gpu_statistics_host_SOURCES = tests/gpu/stats_host.cc gpu/stats/main.c gpu/stats/plan.c
tests_gpu_mpsim_gpu_statistics_host_CPPFLAGS = $(kernel_cppflags)
tests_gpu_mpsim_gpu_statistics_host_CXXFLAGS = $(OPT_CXXFLAGS) $(kernel_cxxflags)
tests_gpu_mpsim_gpu_statistics_host_LDADD = $(kernel_libs)
tests_gpu_mpsim_gpu_statistics_host_LINK = $(CXXLINK)
# mpsim-gpu-functions on a CPU, whose special function unit is made up: tests/gpu/functions.sh runs it.
programs_all += tests/gpu/mpsim-gpu-functions-host
tests_gpu_mpsim_gpu_functions_host_SOURCES = tests/gpu/functions_host.cc tests/gpu/host_unit.h $(made_up_unit) \
  gpu/functions/main.c gpu/validation/program/worker.c
tests_gpu_mpsim_gpu_functions_host_CPPFLAGS = $(kernel_cppflags)
tests_gpu_mpsim_gpu_functions_host_CFLAGS = $(OPT_CFLAGS) $(test_cflags)
tests_gpu_mpsim_gpu_functions_host_CXXFLAGS = $(OPT_CXXFLAGS) $(kernel_cxxflags)
tests_gpu_mpsim_gpu_functions_host_LDADD = gpu/libfunctions.a $(kernel_libs) -ldl -lm
tests_gpu_mpsim_gpu_functions_host_LINK = $(CXXLINK) -rdynamic
endif
EXTRA_DIST += tests/gpu/standin-cublas.c
