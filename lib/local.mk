# lib/ -- libmpsim: the numerics, a folder a module. libc and libm only. Beside it the trainer.
mpsimincludedir = $(includedir)/mpsim
dist_mpsiminclude_HEADERS = \
  lib/include/mpsim/api.h lib/include/mpsim/arith.h lib/include/mpsim/attention.h lib/include/mpsim/between.h lib/include/mpsim/block.h lib/include/mpsim/blockstats.h \
  lib/include/mpsim/convolution.h \
  lib/include/mpsim/digest.h lib/include/mpsim/dot.h lib/include/mpsim/format.h \
  lib/include/mpsim/function.h lib/include/mpsim/gradient.h lib/include/mpsim/isa.h lib/include/mpsim/layer.h \
  lib/include/mpsim/loop.h \
  lib/include/mpsim/mpsim.h lib/include/mpsim/muon.h lib/include/mpsim/optim.h lib/include/mpsim/optimstate.h lib/include/mpsim/product.h lib/include/mpsim/placement.h lib/include/mpsim/recipe.h \
  lib/include/mpsim/rng.h lib/include/mpsim/round.h lib/include/mpsim/scaledmm.h lib/include/mpsim/scaler.h \
  lib/include/mpsim/stats.h lib/include/mpsim/status.h \
  lib/include/mpsim/summary.h lib/include/mpsim/torchmm.h lib/include/mpsim/transformer.h lib/include/mpsim/update.h

# Compiled once, without libtool, for the static library, which programs and tests link, and for the shared one, which
# is all of the static one.
lib_LIBRARIES += lib/libmpsim.a
EXTRA_LIBRARIES =
lib_libmpsim_a_CPPFLAGS = $(public_cppflags)
lib_libmpsim_a_CFLAGS = $(product_cflags) $(PIC_CFLAGS)
lib_libmpsim_a_LIBADD =
if SHARED
lib_LTLIBRARIES += lib/libmpsim.la
lib_libmpsim_la_SOURCES =
lib_libmpsim_la_LIBTOOLFLAGS = --tag=disable-static
lib_libmpsim_la_LDFLAGS = $(AM_LDFLAGS) -version-info $(MPSIM_LT_VERSION) -no-undefined $(WHOLE_LIBMPSIM)
lib_libmpsim_la_DEPENDENCIES = lib/libmpsim.a
endif
lib_libmpsim_a_SOURCES = \
  lib/arith/arith.c lib/arith/fixed.c lib/arith/fixed.h lib/arith/function.c \
  lib/arith/kernel/generic.c lib/arith/kernel/kernel.c lib/arith/kernel/kernel.h \
  lib/arith/kernel/lanes.h lib/arith/kernel/vector.h lib/arith/scalar.h lib/base/codes.h \
  lib/base/counts.h lib/base/environment.h lib/base/extent.h lib/base/isa.c lib/base/isa.h lib/base/matrix.h lib/base/status.c \
  lib/base/transpose.h lib/base/turn.c lib/base/turn.h lib/base/version.c lib/base/words.h lib/block/account.c lib/block/account.h lib/block/batch.c \
  lib/block/batch.h lib/block/block.c lib/block/errors.c lib/block/errors.h lib/block/hadamard.c \
  lib/block/kernel/careful.h lib/block/kernel/count.h lib/block/kernel/errors.h lib/block/kernel/generic.c \
  lib/block/kernel/kernel.c lib/block/kernel/kernel.h lib/block/kernel/scales.h \
  lib/block/kernel/vector.h lib/block/recipe.c lib/block/scalar.h lib/block/scale.c lib/block/scale.h lib/block/stats.c \
  lib/block/stats.h lib/block/table.c lib/block/words.c lib/digest/blocks.c lib/digest/digest.c lib/digest/loops/digest_loop.h lib/digest/loops/generic.c \
  lib/digest/loops/loops.h lib/digest/scalar.h \
  lib/dot/binary32.h lib/dot/chain.c lib/dot/chain.h lib/dot/chains.c lib/dot/cpurows.h lib/dot/cut.h lib/dot/dot.c lib/dot/dot.h lib/dot/exact.c \
  lib/dot/exact.h lib/dot/fused.c lib/dot/gemm.c lib/dot/matrix.c lib/dot/groups.c lib/dot/groups.h lib/dot/grouped.h lib/dot/scaledgroups.c lib/dot/scaledgroups.h \
  lib/dot/job.c lib/dot/job.h lib/dot/kinds.c lib/dot/kinds.h lib/dot/loops/kinds_loops.h lib/dot/lanes.c lib/dot/lanes.h lib/dot/loops/scaledgroups_loops.h \
  lib/dot/loops/lanes_loops.h \
  lib/dot/loops/all_loops.h lib/dot/loops/chain_portable.h lib/dot/loops/chain_vectors.h lib/dot/loops/cut_loops.h lib/dot/loops/staged_loops.h lib/dot/loops/wide_loops.h lib/dot/loops/wide_rows.h lib/dot/loops/decode_loops.h \
  lib/dot/loops/doubles_loops.h lib/dot/loops/exact_loops.h lib/dot/loops/fused_loops.h lib/dot/loops/generic.c lib/dot/loops/group_loops.h \
  lib/dot/loops/loops.h lib/dot/loops/rounded_loops.h lib/dot/loops/rounded_vectors.h \
  lib/dot/loops/tile_additions.h lib/dot/loops/tile_loops.h lib/dot/model.c lib/dot/packer.c lib/dot/panel.c lib/dot/panel_any.c lib/dot/panel_f32.c lib/dot/panel_parts.h lib/dot/panel_values.c \
  lib/dot/panel.h lib/dot/panel_decode.h lib/dot/rounded.c lib/dot/rounded.h lib/dot/rows.h \
  lib/dot/convolution.c lib/dot/convolution.h lib/dot/convolution_positions.c lib/dot/convolution_taps.c lib/dot/convolving.c lib/dot/axes.c \
  lib/dot/axes.h lib/dot/sumtile.c lib/dot/sumtile.h lib/dot/window.c lib/dot/window.h \
  lib/dot/onednn.c lib/dot/onednn.h lib/dot/onednn_chunks.c lib/dot/rows_amd.h lib/dot/scalar.h lib/dot/scaledmm.c lib/dot/staged.h lib/dot/torchmm.c \
  lib/dot/enter.c lib/dot/entry.h lib/dot/entrylines.c lib/dot/entryrecipe.c lib/dot/epilogue.c lib/dot/epilogue.h lib/dot/pieces.c lib/dot/pieces.h lib/dot/product.c lib/dot/shape.c lib/dot/shape.h lib/dot/stack.c lib/dot/stack.h \
  lib/dot/special.c lib/dot/special.h lib/dot/sums.c lib/dot/tile.c lib/dot/tile.h lib/dot/tile_lane.h lib/format/format.c \
  lib/layer/activation.c lib/layer/attention.c lib/layer/attention64.c lib/layer/attentionback.c lib/layer/batchnorm.c lib/layer/causal.c lib/layer/elements.c lib/layer/functions.c \
  lib/layer/functions.h lib/layer/kernel/activation.c lib/layer/kernel/activation.h \
  lib/layer/kernel/channels.c lib/layer/kernel/careful.h lib/layer/kernel/channels.h lib/layer/kernel/columns.c lib/layer/kernel/columns.h lib/layer/kernel/elements.c lib/layer/kernel/elements.h lib/layer/kernel/functions.h lib/layer/kernel/kernel.c \
  lib/layer/kernel/kernel.h lib/layer/kernel/lanes.h lib/layer/kernel/norm.c lib/layer/kernel/norm.h lib/layer/kernel/normal.c lib/layer/kernel/normal.h lib/layer/kernel/rounding.h \
  lib/layer/kernel/softmax.c lib/layer/kernel/softmax.h lib/layer/kernel/vector.h lib/layer/kernel/xent.c lib/layer/kernel/xent.h lib/layer/kinds.c lib/layer/layer.c lib/layer/normal.c lib/layer/operands.h lib/layer/rotary.c lib/layer/rownorm.c \
  lib/layer/rows.h lib/layer/run.c lib/layer/run.h lib/layer/scalar.h lib/layer/seen.h lib/layer/shared.h lib/layer/softmax.c lib/layer/strided.c lib/layer/strided.h lib/layer/sums.c lib/layer/tile.c lib/layer/transformer.h \
  lib/optim/adafactor.c lib/optim/adafactor64.c lib/optim/aten.c lib/optim/aten.h lib/optim/expand.c lib/optim/expand.h \
  lib/optim/fused.c lib/optim/gradient.c lib/optim/gradients.c lib/optim/kernel/fused.h lib/optim/kernel/generic.c \
  lib/optim/kernel/gradient.h lib/optim/kernel/kernel.c lib/optim/kernel/kernel.h \
  lib/optim/kernel/held.h lib/optim/kernel/kernels.h lib/optim/kernel/moves.h lib/optim/kernel/ops.h lib/optim/lion.c lib/optim/lowbits.c \
  lib/optim/lowp.c lib/optim/muon.c lib/optim/ops.c lib/optim/optim.c lib/optim/power.c lib/optim/ready.c \
  lib/optim/numbers.h lib/optim/reduce.c lib/optim/reference.c lib/optim/state.c lib/optim/states.c lib/optim/steps.h \
  lib/optim/store.c lib/optim/table.c lib/optim/traits.c lib/optim/update.c lib/round/kernel/cast32.h \
  lib/round/kernel/cast64.h lib/round/kernel/decode.h lib/round/kernel/generic.c \
  lib/round/kernel/kernel.c lib/round/kernel/kernel.h lib/round/kernel/loops.h \
  lib/round/kernel/philox.h lib/round/kernel/words.h lib/round/loop.c lib/round/ready.c lib/round/ready.h lib/round/preset.c lib/round/rng.c lib/round/rng.h lib/round/round.c \
  lib/round/scalar.h lib/scaler/adaptive.c lib/scaler/scaler.c lib/scaler/text.c lib/simd/avx2.h \
  lib/simd/avx512.h lib/simd/generic.h lib/simd/neon.h lib/stats/bins.c lib/stats/bins.h \
  lib/stats/cell.c lib/stats/cells.c lib/stats/cells.h lib/stats/codes.c lib/stats/codes.h \
  lib/stats/differences.h lib/stats/loops/cell_loops.h lib/stats/loops/generic.c \
  lib/stats/loops/loops.h lib/stats/plan.c lib/stats/resolve.c lib/stats/stats.c lib/stats/sum.c \
  lib/stats/sum.h lib/stats/summary.c lib/stats/target.c lib/stats/target.h

if HAVE_NEON
lib_libmpsim_a_SOURCES += lib/arith/kernel/neon.c lib/block/kernel/neon.c lib/layer/kernel/neon.c lib/round/kernel/neon.c
endif

# One kernel, several instruction sets: a unit each, compiled with its flags (lib/base/isa.h).
if HAVE_AVX2
EXTRA_LIBRARIES += lib/libavx2.a
lib_libavx2_a_SOURCES = \
  lib/arith/kernel/avx2.c lib/arith/kernel/vector.h lib/block/kernel/avx2.c \
  lib/block/kernel/vector.h lib/digest/loops/avx2.c lib/dot/loops/avx2.c lib/layer/kernel/avx2.c lib/optim/kernel/avx2.c \
  lib/round/kernel/avx2.c lib/stats/loops/avx2.c
lib_libavx2_a_CPPFLAGS = $(public_cppflags)
lib_libavx2_a_CFLAGS = $(product_cflags) $(PIC_CFLAGS) $(AVX2_CFLAGS)
lib_libmpsim_a_LIBADD += $(lib_libavx2_a_OBJECTS)
endif
if HAVE_AVX512
EXTRA_LIBRARIES += lib/libavx512.a
lib_libavx512_a_SOURCES = \
  lib/arith/kernel/avx512.c lib/arith/kernel/vector.h lib/block/kernel/avx512.c \
  lib/block/kernel/vector.h lib/digest/loops/avx512.c lib/dot/loops/avx512.c lib/layer/kernel/avx512.c \
  lib/optim/kernel/avx512.c lib/round/kernel/avx512.c lib/stats/loops/avx512.c
lib_libavx512_a_CPPFLAGS = $(public_cppflags)
lib_libavx512_a_CFLAGS = $(product_cflags) $(PIC_CFLAGS) $(AVX512_CFLAGS)
lib_libmpsim_a_LIBADD += $(lib_libavx512_a_OBJECTS)
endif
pkgconfig_DATA += lib/mpsim.pc

# The trainer and its CPU engine: no options, no JSON, no YAML. The programs of sim/ and gpu/ link it.
noinst_LIBRARIES += lib/train/libtrain.a
# Its threads are those of libmpsim-trace, too.
noinst_LIBRARIES += lib/threads/libparallel.a
lib_threads_libparallel_a_CPPFLAGS = $(public_cppflags) -D_GNU_SOURCE
lib_threads_libparallel_a_CFLAGS = $(product_cflags) $(PIC_CFLAGS)
lib_threads_libparallel_a_SOURCES = lib/include/threads/parallel.h lib/threads/parallel.c lib/threads/placing.c \
  lib/threads/placing.h lib/threads/processors.c lib/threads/processors.h
train_libs = lib/train/libtrain.a lib/threads/libparallel.a lib/libmpsim.a
lib_train_libtrain_a_CPPFLAGS = $(public_cppflags) -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 \
  -I$(top_srcdir)/data/digits -I$(top_srcdir)/data/text
lib_train_libtrain_a_CFLAGS = $(light_cflags)
lib_train_libtrain_a_SOURCES = \
  lib/include/train/digests.h lib/include/train/engine.h \
  lib/include/train/step.h lib/include/train/train.h \
  lib/train/backward.c lib/train/batch.c lib/train/build.c lib/train/check/attention.c lib/train/check/check.h \
  lib/train/check/checked.c lib/train/check/common.c lib/train/check/layers.c lib/train/check/products.c \
  lib/train/check/tensors.c lib/train/check/tokens.c lib/train/check/updates.c lib/train/common.c lib/train/compare.c \
  lib/train/cpu/attention.c lib/train/cpu/common.c lib/train/cpu/cpu.h lib/train/cpu/engine.c \
  lib/train/cpu/gemm.c lib/train/cpu/heads.c lib/train/cpu/layers.c lib/train/cpu/norm.c \
  lib/train/cpu/rows.c lib/train/cpu/tokens.c lib/train/cpu/update.c lib/train/blocks.c \
  lib/train/decoder/attention.c lib/train/decoder/layers.c lib/train/decoder/open.c \
  lib/train/decoder/settings.c lib/train/decoder/sizes.c lib/train/decoder/tiles.c \
  lib/train/digests.c lib/train/forward.c lib/train/gather.c lib/train/network.c \
  lib/train/params.c lib/train/pass.c \
  lib/train/run/fields.c lib/train/run/fields.h lib/train/run/text.c lib/train/scaled.c lib/train/schedule.c lib/train/scratch.c \
  lib/train/state.c lib/train/step.c lib/train/text.c lib/train/train.c lib/train/trainer.h \
  lib/train/update.c lib/train/visit.c lib/train/windows.c
EXTRA_DIST += lib/README.md data/digits/digits.inc data/text/text.inc
