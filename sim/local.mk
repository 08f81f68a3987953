# sim/ -- the mpsim program, a folder a command: all but main.c in a library, so that
# tests can link it.
sim_cppflags = $(public_cppflags) -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64
noinst_LIBRARIES += sim/libsim.a
# Most leads to the loops of lib/; these are loops over elements.
sim_loops = sim/diff/libsim_a-computed.$(OBJEXT) sim/diff/libsim_a-measure.$(OBJEXT) sim/diff/libsim_a-side.$(OBJEXT) \
  sim/text/libsim_a-sha256.$(OBJEXT)
$(sim_loops): LIGHT_CFLAGS = $(OPT_CFLAGS)
sim_libsim_a_CPPFLAGS = $(sim_cppflags)
sim_libsim_a_CFLAGS = $(light_cflags) $(JANSSON_CFLAGS) $(LIBZIP_CFLAGS) $(YAML_CFLAGS) \
  $(ZLIB_CFLAGS) $(LIBARCHIVE_CFLAGS) $(HDF5_CFLAGS)
# libsim and all that it needs
# (each of libsim and libstat needs the other: the program tells what libstat does)
sim_libs = sim/libsim.a sim/libjudge.a sim/libpolicy.a sim/libstat.a sim/libsim.a sim/libstat.a sim/libtrace.a $(oracle_libs) $(verify_libs) $(train_libs) $(JANSSON_LIBS) $(LIBZIP_LIBS) $(YAML_LIBS) \
  $(ZLIB_LIBS) $(LIBARCHIVE_LIBS) $(HDF5_LIBS) $(oracle_libraries) $(cuda_libraries)
sim_libsim_a_SOURCES = \
  sim/advise/advise.h sim/advise/candidates.c sim/advise/candidates.h sim/advise/cmd.c sim/advise/gate.c \
  sim/advise/gate.h sim/advise/hold.c sim/advise/judge.c sim/advise/measure.c sim/advise/policyfile.c sim/advise/reason.c sim/advise/record.c sim/advise/record.h \
  sim/advise/report.c sim/advise/run.c sim/advise/sentences.c sim/advise/stall.c \
  sim/array/need.c sim/array/need.h sim/attention/attention.h sim/attention/cmd.c sim/attention/generate.c \
  sim/attention/heads.c sim/attention/heads.h sim/attention/mask.c sim/attention/measure.c sim/attention/measure.h sim/attention/record.c sim/attention/record.h sim/attention/report.c \
  sim/calc/calc.c sim/calc/calc.h sim/calc/cmd.c \
  sim/calc/files.c sim/cast/cast.h sim/cast/about.c sim/cast/blocks.c sim/cast/cmd.c sim/cast/contents.c \
  sim/cast/convert.c sim/cast/explain.c sim/cast/explain.h \
  sim/cast/folder.c sim/cast/lay.c sim/cast/lay.h \
  sim/cast/number.c sim/cast/pairs.c sim/cast/plain.c sim/cast/quantise.c \
  sim/cast/recipe.c sim/cast/recipe.h sim/cast/tensors.c sim/cast/tiles.c \
  sim/cast/tiles.h sim/cli/columns.c sim/cli/columns.h sim/cli/completion.c sim/cli/completion.h sim/cli/confine.c sim/cli/confine.h sim/operand/element.c sim/operand/element.h \
  sim/process/environment.c sim/process/environment.h sim/cli/help.c sim/cli/help.h sim/cli/manual.c sim/cli/manual.h \
  sim/process/memory.c sim/process/memory.h sim/input/names.c sim/input/names.h sim/cli/options.c \
  sim/cli/options.h sim/process/host.c sim/process/output.c sim/process/output.h sim/process/progress.c sim/process/progress.h \
  sim/cli/reportoptions.c sim/cli/reportoptions.h \
  sim/input/steps.c sim/input/steps.h \
  sim/process/textfile.c sim/process/textfile.h \
  sim/process/world.c sim/process/world.h sim/commands.c sim/commands.h \
  sim/diff/impl.h sim/diff/cmd.c sim/diff/compare.c sim/diff/compare.h sim/diff/axes.c sim/diff/bytes.c sim/diff/computed.c \
  sim/diff/constants.c sim/diff/diff.h sim/diff/dropout.c sim/diff/entry.c \
  sim/diff/fit.c sim/diff/fit.h sim/diff/line.c sim/diff/linematch.c sim/diff/lines.c sim/diff/moved.c \
  sim/diff/logcase.c sim/diff/logcase.h sim/diff/logjudge.c sim/diff/logjudge.h sim/diff/logplain.c sim/diff/logprob.c sim/diff/logprob.h sim/diff/logsampled.c sim/diff/parts.c sim/diff/match.c sim/diff/match.h sim/diff/measure.c \
  sim/diff/measure.h sim/diff/numbers.c sim/diff/order.c sim/diff/order.h \
  sim/diff/patterns.c sim/diff/ratios.c sim/diff/ratios.h sim/diff/ratiosreport.c sim/diff/ratiosreport.h sim/diff/places.c sim/diff/rearrange.c \
  sim/diff/recipe.c sim/diff/remains.c sim/diff/report.c sim/diff/report.h sim/diff/sequence.c sim/diff/sequence.h sim/diff/shift.c \
  sim/diff/side.c sim/diff/side.h sim/diff/stale.c sim/diff/tolerance.c \
  sim/diff/tolerance.h sim/diff/verdict.c sim/diff/verdict.h sim/diff/walk.c sim/diff/walk.h \
  sim/dot/blocks.c sim/dot/blocks.h sim/dot/cmd.c sim/dot/distance.c sim/dot/distance.h sim/dot/distancereport.c sim/dot/distancereport.h sim/dot/error.c sim/dot/error.h sim/dot/like.c sim/dot/like.h sim/dot/models.c sim/dot/models.h sim/dot/operand.c \
  sim/dot/operand.h sim/dot/pieces.c sim/dot/pieces.h sim/dot/pair.c sim/dot/pair.h sim/dot/record.c sim/dot/record.h sim/dot/reduce.c sim/dot/reduce.h sim/emulate/cmd.c sim/formats/cmd.c sim/formats/formats.h sim/formats/positions.c sim/formats/positions.h \
  sim/formats/recipes.c sim/formats/recipes.h sim/info/cmd.c \
  sim/info/quantised.c sim/info/quantised.h sim/info/record.c sim/info/record.h sim/memory/activations.c sim/memory/cmd.c sim/memory/config.c sim/memory/config.h sim/memory/family.c sim/memory/family.h \
  sim/memory/count.h sim/memory/ledger.c sim/memory/ledger.h sim/memory/optimizer.c \
  sim/memory/optimizer.h sim/memory/parameters.c sim/memory/record.c sim/memory/record.h sim/memory/report.c sim/memory/report.h \
  sim/memory/shape.c sim/memory/shape.h sim/merge/cmd.c sim/merge/join.c sim/merge/join.h \
  sim/merge/merge.c sim/merge/merge.h sim/mismatch/arithmetic.c sim/mismatch/arithmetic.h sim/mismatch/attend.c sim/mismatch/attend.h sim/mismatch/cmd.c \
  sim/mismatch/logsoftmax.c sim/mismatch/logsoftmax.h sim/mismatch/measure.c sim/mismatch/measure.h sim/mismatch/operands.c sim/mismatch/operands.h sim/mismatch/report.c \
  sim/mismatch/report.h sim/merge/parts.c sim/merge/parts.h sim/merge/ranks.c \
  sim/merge/ranks.h \
  sim/pass/chosen.c sim/pass/chosen.h \
  sim/plot/impl.h sim/plot/accumulation.c sim/plot/bars.c sim/plot/cmd.c sim/plot/comparison.c \
  sim/plot/course.c sim/plot/course.h sim/plot/grid.c sim/plot/grid.h \
  sim/plot/groups.c sim/plot/groups.h sim/plot/plans.c sim/plot/distribution.c sim/plot/dots.c sim/plot/figures.c \
  sim/plot/figures.h sim/plot/gnuplot.c sim/plot/gnuplot.h sim/plot/heatmap.c sim/plot/item.c sim/plot/item.h sim/plot/ledger.c sim/plot/ledger.h sim/plot/lines.c \
  sim/plot/noise.c sim/plot/noise.h sim/plot/ranges.c sim/plot/ranges.h sim/plot/plot.c sim/plot/plot.h sim/plot/report.c \
  sim/plot/report.h sim/plot/runs.c sim/plot/runs.h sim/plot/select.c sim/plot/select.h sim/plot/skim.c sim/plot/skim.h sim/plot/steps.c sim/plot/sweep.c \
  sim/plot/sweep.h sim/plot/text.c sim/plot/training.c sim/plot/window.c sim/policy/impl.h sim/policy/list.c \
  sim/policy/list.h sim/policy/unmatched.c sim/policy/unmatched.h sim/program.c sim/program.h \
  sim/replay/impl.h sim/replay/cast.c sim/replay/clip.c sim/replay/cmd.c sim/replay/fields.c sim/replay/fields.h \
  sim/replay/groups.c sim/replay/layer.c sim/replay/measure.c \
  sim/replay/moments.c sim/replay/moments.h sim/replay/muon.c sim/replay/norm.c sim/replay/note.c \
  sim/replay/optimizer.c sim/replay/plan.c sim/replay/record.c sim/replay/replay.c \
  sim/replay/replay.h sim/replay/report.c sim/replay/said.c \
  sim/replay/several.c sim/replay/share.c sim/replay/state.c sim/replay/step.c \
  sim/replay/total.c sim/replay/total.h sim/replay/turns.c sim/replay/weights.c sim/record/jsonvalues.c \
  sim/exact/exact.c sim/exact/exact.h sim/exact/natural.c sim/exact/natural.h \
  sim/judge/arrays.c sim/judge/arrays.h sim/judge/cmd.c sim/judge/inputsout.c sim/judge/inputsout.h sim/judge/run.h sim/judge/runread.c sim/judge/runjudge.c sim/judge/runout.c sim/judge/toleranceout.c sim/judge/record.c sim/judge/record.h \
  sim/explain/explain.h sim/explain/cmd.c sim/explain/match.c sim/explain/match.h sim/explain/messages.c sim/explain/messages.h \
  sim/log/cmd.c sim/log/compare.c sim/log/compare.h sim/log/report.c sim/log/report.h sim/log/runs.c sim/log/runs.h \
  sim/record/cells.h sim/sandbox/calls.c sim/sandbox/files.c sim/sandbox/links.c \
  sim/sandbox/sandbox.h sim/record/keep.c sim/record/read.c sim/record/step.c sim/record/step.h sim/scaler/adaptive.c \
  sim/scaler/adaptive.h sim/scaler/cmd.c \
  sim/scaler/record.c sim/scaler/record.h \
  sim/scaler/pattern.c \
  sim/scaler/pattern.h sim/scaler/report.c \
  sim/scaler/report.h sim/scaler/run.c sim/scaler/run.h sim/scaler/spec.c sim/scaler/spec.h \
  sim/scaler/table.c sim/scaler/table.h \
  sim/scaler/wide.c sim/scaler/wide.h \
  sim/traininglog/impl.h sim/traininglog/entries.c sim/traininglog/course.c sim/traininglog/course.h sim/traininglog/episode.c sim/traininglog/episode.h \
  sim/traininglog/evidence.c sim/traininglog/facts.c sim/traininglog/facts.h \
  sim/traininglog/field.c sim/traininglog/field.h sim/traininglog/judge.c sim/traininglog/judge.h \
  sim/traininglog/logline.c sim/traininglog/logline.h sim/traininglog/lognote.c sim/traininglog/lognote.h \
  sim/traininglog/logpattern.c sim/traininglog/logpattern.h sim/traininglog/logseries.c \
  sim/traininglog/logtable.c \
  sim/traininglog/logtext.c sim/traininglog/logwalk.c \
  sim/traininglog/match.c sim/traininglog/match.h sim/traininglog/metric.c sim/traininglog/metric.h \
  sim/traininglog/numbers.c sim/traininglog/reader.c sim/traininglog/reader.h \
  sim/traininglog/sentences.c sim/traininglog/sentences.h sim/traininglog/series.c sim/traininglog/series.h \
  sim/traininglog/shape.c sim/traininglog/source.c \
  sim/traininglog/stuck.c sim/traininglog/track.c sim/traininglog/track.h \
  sim/traininglog/traininglog.c sim/traininglog/traininglog.h sim/traininglog/verdict.c \
  sim/traininglog/verdict.h sim/traininglog/words.c sim/traininglog/words.h \
  sim/page/cmd.c sim/page/figures.c sim/page/history.c sim/page/html.c sim/page/html.h sim/page/inputs.c sim/page/look.c sim/page/look.h \
  sim/page/measure.c sim/page/page.c sim/page/page.h sim/page/provenance.c sim/page/saved.c sim/page/summary.c sim/page/svg.c sim/page/svg.h sim/page/tables.c \
  sim/stat/stat.h sim/stat/bytes.c sim/stat/bytes.h \
  sim/stat/cmd.c sim/stat/cmd.h \
  sim/stat/form.c sim/stat/form.h sim/stat/pack.c sim/stat/pack.h sim/stat/part.c sim/stat/part.h \
  sim/stat/shard.c sim/stat/shard.h \
  sim/text/sha256.c sim/text/sha256.h \
  sim/train/train.h sim/train/checkpoint.c sim/train/checkpoint.h sim/train/cmd.c \
  sim/train/decoder.c sim/train/decoder.h sim/train/decodertable.c \
  sim/train/describe.c sim/train/describe.h sim/train/device.c \
  sim/train/digests.c sim/train/digests.h sim/train/groups.c sim/train/job.c \
  sim/train/job.h sim/train/meter.c sim/train/meter.h sim/train/operations.c sim/train/operations.h \
  sim/train/policy.c sim/train/policy.h \
  sim/train/record.c sim/train/record.h sim/train/fields.c sim/train/fields.h sim/train/report.c sim/train/store.c \
  sim/train/store.h sim/train/table.c sim/train/text.c sim/train/text.h \
  sim/train/words.c sim/verify/impl.h sim/verify/architecture.c \
  sim/verify/cmd.c sim/verify/groups.c \
  sim/verify/cpu.c sim/verify/cpu.h sim/verify/cpugroup.c sim/verify/kinds.c sim/verify/kinds.h \
  sim/verify/recorded.c sim/verify/report.c sim/verify/report.h sim/verify/vectors.c \
  sim/verify/vectors.h sim/verify/verify.c sim/verify/verify.h

# Files of tensors: of the program, and of the library that others link against, so compiled once for both.
noinst_LIBRARIES += sim/libtrace.a sim/libtracelib.a
sim_libtrace_a_CPPFLAGS = $(sim_cppflags)
sim_libtrace_a_CFLAGS = $(light_cflags) $(PIC_CFLAGS) $(JANSSON_CFLAGS) $(LIBZIP_CFLAGS) $(ZLIB_CFLAGS) \
  $(LIBARCHIVE_CFLAGS) $(HDF5_CFLAGS)
sim_libtrace_a_SOURCES = \
  sim/array/array.c sim/array/array.h sim/pickle/coding.c sim/pickle/containers.c sim/pickle/impl.h sim/pickle/input.c \
  sim/pickle/literals.c sim/pickle/machine.c sim/pickle/machine.h sim/pickle/objects.c sim/pickle/stack.c \
  sim/pickle/pickle.h sim/pickle/tree.c sim/quant/describe.c sim/quant/describe.h sim/quant/form.c \
  sim/quant/geometry.c sim/quant/ggml.c sim/quant/ggml.h sim/quant/pack.c sim/quant/quant.h sim/quant/scales.c \
  sim/text/escape.c sim/text/escape.h sim/text/filekind.c sim/text/filekind.h sim/text/json.c sim/text/json.h sim/text/option.c sim/text/option.h \
  sim/text/screen.c sim/text/screen.h \
  sim/text/words.c sim/text/words.h sim/trace/arrays.c sim/trace/bytewalk.c sim/trace/bytewalk.h sim/trace/chunks.c sim/trace/chunks.h sim/trace/convention.c \
  sim/trace/convention.h sim/trace/copy.c sim/trace/distcp.c sim/trace/dtype.c sim/trace/folder.c sim/trace/fqn.c \
  sim/trace/gguf.c sim/trace/gguf.h sim/trace/ggufhead.c sim/trace/impl.h sim/trace/inputs.c sim/trace/inputs.h \
  sim/trace/jsontext.c sim/trace/jsontext.h sim/trace/kinds.c sim/trace/kinds.h sim/trace/layout.c sim/trace/llmc.c \
  sim/trace/maps.c sim/trace/maps.h sim/trace/memory.c sim/trace/msgpack.c sim/trace/namemap.c sim/trace/namemap.h \
  sim/trace/names.c sim/trace/npy.c sim/trace/npyheader.c sim/trace/npz.c sim/trace/onnx.c sim/trace/onnx.h sim/trace/onnxdata.c sim/trace/onnxtensor.c sim/trace/order.c \
  sim/trace/order.h sim/trace/outfile.c sim/trace/outfile.h sim/trace/owndigests.c sim/trace/owndigests.h \
  sim/trace/packed.h sim/trace/packedfit.c sim/trace/packedread.c sim/trace/parameters.c sim/trace/parts.c \
  sim/trace/parts.h sim/trace/partsource.c sim/trace/partsource.h sim/trace/plainentry.c sim/trace/protowalk.c sim/trace/protowalk.h sim/trace/quantised.c \
  sim/trace/quantised.h sim/trace/quantisedfit.c sim/trace/quantisedfit.h sim/trace/quantisedhint.c \
  sim/trace/quantisedread.c sim/trace/raw.c sim/trace/read.c sim/trace/roundoff.c sim/trace/roundoff.h sim/trace/safetensors.c sim/trace/shards.c \
  sim/trace/source.c sim/trace/stream.c sim/trace/stream.h sim/trace/streamgzip.c sim/trace/temporary.c \
  sim/trace/temporary.h sim/trace/text.c sim/trace/textfile.c sim/trace/textfile.h sim/trace/torch.c \
  sim/trace/torch.h sim/trace/torchdata.c sim/trace/torchdtype.c sim/trace/torchexport.c sim/trace/torchfields.c \
  sim/trace/torchglobal.c sim/trace/torchlegacy.c sim/trace/torchnumpy.c sim/trace/torchpickle.c \
  sim/trace/torchquantised.c sim/trace/torchrebuild.c sim/trace/torchtensor.c sim/trace/torchtext.c \
  sim/trace/torchtree.c sim/trace/torchview.c sim/trace/torchzip.c sim/trace/trace.c sim/trace/trace.h \
  sim/trace/tree.c sim/trace/unnamed.c sim/trace/unnamed.h sim/trace/unzip.c sim/trace/wanted.c sim/trace/wanted.h \
  sim/trace/unread.c sim/trace/weights.c sim/trace/weights.h sim/trace/whole.c sim/trace/whole.h sim/trace/writer.c sim/trace/zero.c \
  sim/trace/zero.h sim/trace/zeroname.c sim/trace/zeroname.h sim/trace/zerotensor.c sim/trace/zip.c \
  sim/trace/zipdir.c

# The work of stat: of the program, and of the same library.
noinst_LIBRARIES += sim/libstat.a
sim_libstat_a_CPPFLAGS = $(sim_cppflags)
sim_libstat_a_CFLAGS = $(light_cflags) $(PIC_CFLAGS) $(JANSSON_CFLAGS)
sim_libstat_a_SOURCES = \
  sim/array/lacking.h sim/array/memory.c sim/array/memory.h sim/operand/blocktarget.c sim/operand/blocktarget.h sim/process/host.h sim/input/input.c sim/input/input.h sim/operand/scalelist.c \
  sim/operand/scalelist.h sim/operand/stream.c sim/operand/stream.h sim/cli/suggestion.c sim/cli/suggestion.h \
  sim/operand/target.c sim/operand/target.h sim/input/twice.c sim/input/twice.h sim/input/unread.c sim/input/unread.h sim/pass/amax.c sim/pass/amax.h sim/pass/elements.c sim/pass/elements.h \
  sim/pass/pass.c sim/pass/pass.h sim/pass/tiles.c sim/pass/tiles.h sim/record/cells.c sim/record/columns.c sim/record/csv.c sim/record/field.c sim/record/field.h sim/record/words.c sim/record/json.c sim/record/record.h sim/record/report.c sim/record/schema.c \
  sim/record/csvcells.c sim/record/jsonout.c \
  sim/record/jsonout.h sim/record/narrow.c sim/record/short.c sim/record/table.c sim/record/table.h sim/stat/blockquant.c \
  sim/stat/blocks.c sim/stat/blockviews.c \
  sim/stat/conditions.c sim/stat/conditions.h sim/stat/limit.c sim/stat/limit.h sim/stat/group.c sim/stat/group.h sim/stat/report.c \
  sim/stat/report.h sim/stat/config.c sim/stat/config.h sim/stat/record.c sim/stat/record.h sim/stat/settings.c sim/stat/settings.h \
  sim/stat/share.c sim/stat/share.h sim/stat/tally.c sim/stat/tally.h sim/stat/tensor.c sim/stat/tensor.h \
  sim/stat/walk.c sim/stat/walk.h

# The judges of other programs' results: likewise.
noinst_LIBRARIES += sim/libjudge.a
sim_libjudge_a_CPPFLAGS = $(sim_cppflags)
sim_libjudge_a_CFLAGS = $(product_cflags) $(PIC_CFLAGS)
sim_libjudge_a_SOURCES = sim/judge/activation.c sim/judge/arith.c sim/judge/arithrow.c sim/judge/arithrow.h sim/judge/attend.c sim/judge/attendformula.c sim/judge/attendformula.h sim/judge/attendrow.c sim/judge/attendrow.h sim/judge/attendsearch.c sim/judge/attendsearch.h sim/judge/attendscore.c sim/judge/attendscore.h sim/judge/attendtile.c sim/judge/attendtile.h sim/judge/block.c sim/judge/blockrow.c sim/judge/blockrow.h sim/judge/cast.c sim/judge/castcode.c sim/judge/castrow.c sim/judge/castrow.h sim/judge/castsay.c sim/judge/castsearch.c sim/judge/castsearch.h sim/judge/formulas.c sim/judge/formulas.h sim/judge/impl.h \
  sim/judge/inputarith.c sim/judge/inputattend.c sim/judge/inputcast.c sim/judge/inputproduct.c sim/judge/inputquantise.c sim/judge/inputs.c sim/judge/inputs.h sim/judge/inputset.c sim/judge/judge.c sim/judge/judge.h sim/judge/list.c sim/judge/list.h sim/judge/modelword.c sim/judge/modelword.h \
  sim/judge/narrow.c sim/judge/norm.c sim/judge/places.c sim/judge/product.c sim/judge/productrow.c sim/judge/productrow.h sim/judge/quantise.c sim/judge/quantrow.c sim/judge/quantrow.h sim/judge/say.c \
  sim/judge/scales.c sim/judge/scales.h sim/judge/softmax.c sim/judge/sum.c sim/judge/table.c sim/judge/table.h sim/judge/tolerance.c sim/judge/tolerance.h sim/judge/update.c

# Policies: of the program, and of the same library.
noinst_LIBRARIES += sim/libpolicy.a
sim_libpolicy_a_CPPFLAGS = $(sim_cppflags) -DMPSIM_PLOTS_DIR='"$(plotsdir)"' -DMPSIM_POLICIES_DIR='"$(policiesdir)"'
sim_libpolicy_a_CFLAGS = $(light_cflags) $(PIC_CFLAGS) $(YAML_CFLAGS)
sim_libpolicy_a_SOURCES = \
  sim/array/want.c sim/array/want.h sim/process/resource.c sim/process/resource.h sim/operand/scalerword.c sim/operand/scalerword.h \
  sim/cli/rules.c sim/cli/rules.h sim/policy/blocks.c sim/policy/gather.c sim/policy/keys.c \
  sim/policy/muon.c sim/policy/muon.h sim/policy/needs.c sim/policy/nemo.c sim/policy/parts.c sim/policy/patterns.c \
  sim/policy/plan.c sim/policy/plan.h sim/policy/policy.c sim/policy/policy.h sim/policy/scaling.c sim/policy/table.c \
  sim/policy/table.h sim/policy/tree.c sim/policy/value.c sim/policy/value.h sim/policy/yaml.c \
  sim/policy/yaml.h

# layouts of files that need a library which may not be there
if HAVE_LIBARCHIVE
sim_libtrace_a_SOURCES += sim/trace/streamlibarchive.c
endif
if HAVE_HDF5
sim_libtrace_a_SOURCES += sim/trace/hdf5.c sim/trace/hdf5.h sim/trace/hdf5dataset.c sim/trace/hdf5driver.c \
  sim/trace/hdf5metadata.c
endif

# libmpsim-trace: all of libtracelib, what that needs of libjudge, libpolicy, libstat, libtrace and the threads, and libmpsim beside it.
sim_libtracelib_a_CPPFLAGS = $(sim_cppflags)
sim_libtracelib_a_CFLAGS = $(light_cflags) $(PIC_CFLAGS) $(JANSSON_CFLAGS)
sim_libtracelib_a_SOURCES = sim/tracelib/call.h sim/tracelib/files.c sim/tracelib/files.h sim/tracelib/host.c sim/tracelib/judge.c \
  sim/tracelib/policy.c sim/tracelib/reader.c sim/tracelib/record.c sim/tracelib/report.c sim/tracelib/surroundings.c sim/tracelib/surroundings.h sim/tracelib/threads.c
if SHARED
lib_LTLIBRARIES += lib/libmpsim-trace.la
lib_libmpsim_trace_la_SOURCES =
lib_libmpsim_trace_la_LIBTOOLFLAGS = --tag=disable-static
lib_libmpsim_trace_la_LDFLAGS = $(AM_LDFLAGS) -version-info $(MPSIM_LT_VERSION) -no-undefined $(WHOLE_LIBREADER)
lib_libmpsim_trace_la_DEPENDENCIES = sim/libtracelib.a sim/libjudge.a sim/libpolicy.a sim/libstat.a sim/libtrace.a lib/threads/libparallel.a lib/libmpsim.la
dist_mpsiminclude_HEADERS += lib/include/mpsim/judge.h lib/include/mpsim/policy.h lib/include/mpsim/report.h lib/include/mpsim/threads.h lib/include/mpsim/trace.h
pkgconfig_DATA += lib/mpsim-trace.pc
else
EXTRA_DIST += lib/include/mpsim/judge.h lib/include/mpsim/policy.h lib/include/mpsim/report.h lib/include/mpsim/threads.h lib/include/mpsim/trace.h
endif

# mpsim verify: what each group needs decides what is compiled. The oracle is a library of its own,
# which the tests use, too.
oracle_libs =
oracle_libraries =
verify_libs =
cuda_libraries =
if HAVE_MPFR
sim_libsim_a_SOURCES += sim/verify/oracles/inputs.c sim/verify/oracles/mpfr.c \
  sim/verify/oracles/mpfr_arith.c sim/verify/oracles/mpfr_dot.c
noinst_LIBRARIES += sim/liboracle.a
sim_liboracle_a_SOURCES = sim/verify/oracles/oracle.c sim/verify/oracles/oracle.h sim/verify/oracles/oracle_arith.c \
  sim/verify/oracles/oracle_arith.h sim/verify/oracles/oracle_dot.c sim/verify/oracles/oracle_dot.h sim/verify/oracles/oracle_sum.c
sim_liboracle_a_CPPFLAGS = $(sim_cppflags)
sim_liboracle_a_CFLAGS = $(product_cflags)
oracle_libs += sim/liboracle.a
oracle_libraries += $(MPFR_LIBS)
endif
if HAVE_CUDA_HEADERS
noinst_LIBRARIES += sim/libnvidia.a
sim_libnvidia_a_SOURCES = sim/verify/nvidia.c
sim_libnvidia_a_CPPFLAGS = $(sim_cppflags) $(CUDA_CPPFLAGS)
sim_libnvidia_a_CFLAGS = $(OPT_CFLAGS) $(HARDEN_CFLAGS) -std=gnu11 $(FP_CFLAGS) $(VIS_CFLAGS) $(PIE_CFLAGS) $(SAN_CFLAGS)
verify_libs += sim/libnvidia.a
endif
# the instructions of the machine that mpsim is built for
if CPU_X86
sim_libsim_a_SOURCES += sim/verify/cpux86.c
else
if CPU_ARM
sim_libsim_a_SOURCES += sim/verify/cpuarm.c
else
sim_libsim_a_SOURCES += sim/verify/cpunone.c
endif
endif
# Files, not a macro: where the rest is built, ./configure --enable-cuda and make compile these alone.
if HAVE_CUDA
sim_libsim_a_SOURCES += sim/train/cuda.c sim/verify/gpu.c
verify_libs += gpu/libgpu.a gpu/libchecks.a
cuda_libraries += $(CUDA_LDFLAGS) $(CUDA_LIBS)
else
sim_libsim_a_SOURCES += sim/train/nocuda.c sim/verify/nogpu.c
endif

# folders that are compiled in: another --prefix compiles them anew
sim/cli/libpolicy_a-resource.o sim/cli/libpolicy_a-resource.obj: Makefile

bin_PROGRAMS += mpsim
mpsim_SOURCES = sim/main.c
mpsim_CPPFLAGS = $(sim_cppflags)
mpsim_CFLAGS = $(light_cflags)
mpsim_LDADD = $(sim_libs)
mpsim_LINK = $(program_link)

# The ranks of an MPI job: the one file that is compiled with MPI's flags.
if HAVE_MPI
bin_PROGRAMS += mpsim-mpi
mpsim_mpi_SOURCES = sim/mpi/main.c
mpsim_mpi_CPPFLAGS = $(sim_cppflags)
mpsim_mpi_CFLAGS = $(light_cflags) $(MPI_CFLAGS)
mpsim_mpi_LDADD = $(sim_libs) $(MPI_LIBS)
mpsim_mpi_LINK = $(program_link)
endif
EXTRA_DIST += sim/README.md
