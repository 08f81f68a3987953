# lib/ -- libmpsim: the numerics. libc and libm only.
lib_LTLIBRARIES += lib/libmpsim.la
mpsimincludedir = $(includedir)/mpsim
dist_mpsiminclude_HEADERS = \
  lib/mpsim/api.h lib/mpsim/arith.h lib/mpsim/block.h lib/mpsim/digest.h lib/mpsim/dot.h \
  lib/mpsim/format.h lib/mpsim/gradient.h lib/mpsim/isa.h lib/mpsim/layer.h lib/mpsim/mpsim.h \
  lib/mpsim/optim.h lib/mpsim/recipe.h lib/mpsim/rng.h lib/mpsim/round.h lib/mpsim/scaler.h \
  lib/mpsim/stats.h lib/mpsim/status.h
lib_libmpsim_la_SOURCES = \
  lib/adaptive.c lib/arith.c lib/batchnorm.c lib/block.c lib/block_scale.c lib/block_scale.h \
  lib/block_table.c lib/chain.c lib/chain.h lib/chain_portable.h lib/chain_steps.h lib/codes.h \
  lib/counts.h lib/digest.c lib/dot.c lib/dot.h lib/exact.c lib/exact.h lib/format.c lib/gemm.c \
  lib/gradient.c lib/kernel.c lib/kernel.h lib/layer.c lib/layer_math.h lib/loops.c lib/loops.h \
  lib/model.c lib/optim.c lib/optim_fused.c lib/optim_lowp.c lib/optim_ops.c lib/optim_steps.h \
  lib/panel.c lib/panel.h lib/panel_steps.h lib/preset.c lib/recipe.c lib/reduce.c lib/rng.c \
  lib/rng.h lib/round.c lib/scalar.h lib/scalar_arith.h lib/scalar_digest.h lib/scalar_dot.h \
  lib/scalar_math.h lib/scaler.c lib/scaler_text.c lib/stats.c lib/status.c lib/sum.c lib/sum.h \
  lib/tile.c lib/tile.h lib/tile_run.h lib/tile_steps.h lib/version.c lib/words.h
lib_libmpsim_la_LDFLAGS = $(AM_LDFLAGS) -version-info $(MPSIM_LT_VERSION) -no-undefined
lib_libmpsim_la_LIBADD =
if HAVE_AVX2
noinst_LTLIBRARIES += lib/libavx2.la
lib_libavx2_la_SOURCES = lib/kernel_avx2.c lib/kernel_vector.h lib/kernel.h
lib_libavx2_la_CFLAGS = $(AM_CFLAGS) $(AVX2_CFLAGS)
lib_libmpsim_la_LIBADD += lib/libavx2.la
endif
if HAVE_FMA
noinst_LTLIBRARIES += lib/libfma.la
lib_libfma_la_SOURCES = lib/loops_fma.c
lib_libfma_la_CFLAGS = $(AM_CFLAGS) $(FMA_CFLAGS)
lib_libmpsim_la_LIBADD += lib/libfma.la
endif
if HAVE_AVX512
noinst_LTLIBRARIES += lib/libavx512.la
lib_libavx512_la_SOURCES = lib/kernel_avx512.c lib/kernel_vector.h lib/kernel.h lib/loops_avx512.c
lib_libavx512_la_CFLAGS = $(AM_CFLAGS) $(AVX512_CFLAGS)
lib_libmpsim_la_LIBADD += lib/libavx512.la
endif
pkgconfig_DATA += lib/mpsim.pc
EXTRA_DIST += lib/README.md
