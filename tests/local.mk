# tests/ -- unit tests (Check, TAP), proofs (MPFR), tests of the program (shell).
#
# To add a unit test: tests/MODULE/t-NAME.c, and its name without .c in one of the lists below. The defaults
# (flags, what it is linked with) are those of every program here.
TEST_EXTENSIONS = .sh
LOG_DRIVER = env AM_TAP_AWK='$(AWK)' $(SHELL) $(top_srcdir)/build-aux/tap-driver.sh
SH_LOG_DRIVER = $(LOG_DRIVER)
AM_TESTS_ENVIRONMENT = \
  CK_TAP_LOG_FILE_NAME=-; CK_VERBOSITY=silent; MPSIM_TEST_EAGER=1; export MPSIM_TEST_EAGER; \
  MPSIM_TEST_MULTIPLIER=$${MPSIM_TEST_MULTIPLIER-0.2}; export MPSIM_TEST_MULTIPLIER; \
  MPSIM="$(abs_top_builddir)/mpsim"; MPSIM_SRCDIR="$(abs_top_srcdir)"; \
  MPSIM_PLOTS="$(abs_top_srcdir)/plots"; \
  MPSIM_MPI="$(abs_top_builddir)/mpsim-mpi"; MPIRUN='$(MPIRUN)'; export MPSIM_MPI MPIRUN; \
  MPSIM_GPU="$(abs_top_builddir)/mpsim-gpu"; NVCC='$(cuda_nvcc)'; MPSIM_NVCC_FLAGS='$(cuda_fp_flags)'; \
  export CK_TAP_LOG_FILE_NAME CK_VERBOSITY MPSIM MPSIM_SRCDIR MPSIM_PLOTS MPSIM_GPU NVCC MPSIM_NVCC_FLAGS;

AM_CPPFLAGS = $(public_cppflags) -I$(top_srcdir) -I$(top_srcdir)/tests -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64
AM_CFLAGS = $(TEST_CFLAGS) $(test_cflags)
test_cflags = $(base_cflags) $(CHECK_CFLAGS) $(JANSSON_CFLAGS) $(LIBZIP_CFLAGS) $(ZLIB_CFLAGS) $(LIBARCHIVE_CFLAGS) $(HDF5_CFLAGS)
# (the functions of libtracelib behind the program's: of sim/process/host.h each has its own)
LDADD = $(support_libs) $(sim_libs) sim/libtracelib.a $(sim_libs) gpu/libchecks.a $(train_libs) $(CHECK_LIBS) -lpthread
support_libs =

# ---- the program
shell_tests = tests/ck-house.sh tests/cli/calc.sh tests/cli/cast.sh tests/cli/wholecast.sh tests/cli/quantised.sh tests/cli/counts.sh tests/cli/columns.sh \
  tests/cli/advise.sh tests/cli/attention.sh tests/cli/decoder.sh tests/cli/deep.sh tests/cli/doc.sh tests/cli/dot.sh tests/cli/experiments.sh tests/cli/formats.sh \
  tests/cli/faults.sh tests/cli/interrupt.sh tests/cli/killed.sh tests/cli/library.sh tests/cli/names.sh tests/cli/diff.sh \
  tests/cli/noreplace.sh tests/cli/optimizers.sh tests/cli/outputs.sh tests/cli/plot.sh tests/cli/policies.sh tests/cli/program.sh \
  tests/cli/hostile-names.sh tests/cli/endless.sh tests/cli/environment.sh tests/cli/replay.sh tests/cli/report.sh \
  tests/cli/sandbox.sh tests/cli/scaler.sh tests/cli/stat.sh tests/cli/train.sh tests/cli/verify.sh \
  tests/cli/replay-cases.sh tests/cli/logs.sh tests/cli/written.sh tests/cli/logproperties.sh tests/cli/explain.sh tests/cli/log.sh tests/cli/logreader.sh tests/cli/manual.sh tests/cli/emulate.sh tests/cli/judge.sh tests/cli/mismatch.sh tests/cli/plot-large.sh tests/cli/plot-types.sh tests/cli/gallery.sh tests/cli/model-memory.sh \
  tests/cli/progress.sh tests/cli/quick.sh tests/cli/scale.sh tests/cli/mpi.sh tests/cli/blocks.sh tests/cli/merge.sh \
  tests/cli/torch.sh tests/cli/stored.sh tests/cli/pages.sh tests/cli/questions.sh tests/cli/examples.sh tests/cli/recorders.sh \
  tests/bench/run.sh tests/fuzz/corpus.sh tests/gpu/device.sh tests/gpu/isolation.sh tests/gpu/libraries.sh tests/gpu/numbers.sh tests/gpu/program.sh \
  tests/gpu/ptx.sh tests/gpu/session.sh tests/gpu/shares.sh tests/gpu/take.sh
dist_check_SCRIPTS += $(shell_tests)
tests_all += $(shell_tests)
# read by tests/cli/pages.sh: commands and what they print
cli_pages = tests/cli/calc.md tests/cli/formats.md tests/cli/scaler.md tests/cli/dot.md tests/cli/program.md tests/cli/cast.md tests/cli/attention.md tests/cli/judge.md tests/cli/mismatch.md tests/cli/log.md

if HAVE_CHECK
# ---- what the unit tests share: support/ helps, oracle/ judges
EXTRA_LIBRARIES += tests/libsupport.a
support_libs += tests/libsupport.a
tests_libsupport_a_CFLAGS = $(LIGHT_CFLAGS) $(test_cflags)
tests_libsupport_a_SOURCES = \
  tests/oracle/attention.c tests/oracle/attention.h tests/oracle/core.c tests/oracle/core.h \
  tests/oracle/frameworks.c tests/oracle/frameworks.h \
  tests/oracle/layer.c tests/oracle/layer.h tests/oracle/replay.c tests/oracle/replay.h \
  tests/oracle/train.c tests/oracle/train.h tests/oracle/trainparts.c tests/oracle/trainparts.h \
  tests/oracle/trainupdate.c tests/support/allocations.h tests/support/badfile.c tests/support/badfile.h tests/support/badzip.c \
  tests/support/badzip.h tests/support/blockinput.c tests/support/blockinput.h tests/support/convnaive.c tests/support/convnaive.h tests/support/convtensor.c tests/support/convtensor.h \
  tests/support/decoderinput.c tests/support/decoderinput.h tests/support/dotcases.c \
  tests/support/dotcases.h tests/support/dotset.c tests/support/dotset.h \
  tests/support/mmset.c tests/support/mmset.h tests/support/extent.c tests/support/extent.h tests/support/faultyrun.c \
  tests/support/faultyrun.h tests/support/layerinput.c tests/support/layerinput.h \
  tests/support/onebyone.h tests/support/peers.c tests/support/peers.h tests/support/points.c \
  tests/support/judged.h tests/support/points.h tests/support/products.c tests/support/products.h tests/support/recorded.c tests/support/recorded.h \
  tests/support/replaykept.c tests/support/replaykept.h tests/support/replaytrace.c \
  tests/support/replaytrace.h tests/support/sanitized.h sim/text/sha256.c sim/text/sha256.h tests/support/stored.c \
  tests/support/stored.h tests/support/subjects.c tests/support/subjects.h tests/support/support.c \
  tests/support/support.h tests/support/sweep.c tests/support/sweep.h tests/support/textruns.h \
  tests/support/trainengine.c tests/support/trainengine.h tests/support/trainer.c \
  tests/support/trainer.h tests/support/trainruns.h tests/support/trainscenarios.h \
  tests/support/vectors.c tests/support/vectors.h tests/support/walls.c tests/support/walls.h \
  tests/support/words.c tests/support/words.h

# ---- sets of dot products and products for other emulators, for data/vectors/mmasim and mmaemu
programs_all += tests/support/dotsets tests/support/scaledmms

# ---- rules, recorded outputs, other emulators' mistakes
unit_tests = \
  tests/arith/t-kernel tests/base/t-env tests/base/t-extent tests/base/t-inline tests/base/t-isa tests/base/t-status tests/block/t-figures \
  tests/block/t-kernel tests/block/t-parts tests/block/t-recorded tests/block/t-references tests/arith/t-arith-proof \
  tests/block/t-published tests/block/t-words \
  tests/digest/t-digest \
  tests/dot/t-chain tests/dot/t-chain-corners tests/dot/t-convolution tests/dot/t-convolution-orders tests/dot/t-convolution-torch tests/dot/t-cpu tests/dot/t-fused tests/dot/t-gemm tests/dot/t-gemm-calls tests/dot/t-mmasim tests/dot/t-model tests/dot/t-onednn tests/dot/t-product tests/dot/t-product-calls tests/dot/t-scaled tests/dot/t-scaledmm tests/dot/t-special tests/dot/t-steps tests/dot/t-tensorcore \
  tests/format/t-published \
  tests/gpu/t-conversions tests/gpu/t-in-step tests/gpu/t-orders tests/gpu/t-record \
  tests/layer/t-activation tests/layer/t-attention tests/layer/t-attention-back tests/layer/t-batchnorm tests/layer/t-causal tests/layer/t-elements tests/layer/t-kernels tests/layer/t-rownorm \
  tests/layer/t-run tests/layer/t-softmax tests/layer/t-xent tests/layer/t-vectors \
  tests/optim/t-figures tests/optim/t-gradient-recorded tests/optim/t-recorded \
  tests/optim/t-training tests/quant/t-form tests/quant/t-layout tests/optim/t-states \
  tests/optim/t-muon tests/optim/t-update tests/quant/t-tiles tests/quant/t-written tests/record/t-device \
  tests/round/t-cast-proof tests/round/t-framework tests/round/t-golden tests/round/t-isa \
  tests/round/t-nan tests/round/t-cast \
  tests/round/t-peers tests/round/t-refused tests/round/t-rng tests/round/t-stochastic \
  tests/round/t-zeros tests/sandbox/t-sandbox \
  tests/scaler/t-own tests/scaler/t-recorded tests/scaler/t-scaler tests/scaler/t-text \
  tests/sim/t-diff tests/sim/t-diff-verdicts tests/sim/t-policy tests/sim/t-policy-bad tests/sim/t-policy-keys tests/sim/t-replay \
  tests/sim/t-diff-bytes tests/sim/t-replay-casts tests/sim/t-diff-faults tests/sim/t-diff-pairs \
  tests/sim/t-replay-fp8 tests/sim/t-replay-lost tests/sim/t-replay-odd tests/sim/t-replay-rules \
  tests/sim/t-replay-synthetic tests/sim/t-cut tests/sim/t-dot-split tests/sim/t-logprob tests/sim/t-mismatch tests/sim/t-mismatch-cache tests/sim/t-nameindex tests/sim/t-options tests/sim/t-pass tests/sim/t-scaler-log tests/sim/t-log-lines tests/sim/t-log-compare tests/sim/t-stat-blocks tests/sim/t-stat-part tests/sim/t-stat-tensor tests/sim/t-policy-reader tests/sim/t-record tests/sim/t-record-read tests/sim/t-report tests/sim/t-textfile tests/sim/t-threads \
  tests/sim/t-train-checkpoint tests/sim/t-train-damage tests/sim/t-replay-groups \
  tests/sim/t-replay-record tests/sim/t-scaler-judge \
  tests/sim/t-train-decoder tests/sim/t-train-policy tests/sim/t-train-record \
  tests/stats/t-summary tests/trace/t-names tests/trace/t-npy tests/trace/t-npz \
  tests/trace/t-safetensors tests/trace/t-temporary tests/trace/t-codes tests/trace/t-torch \
  tests/trace/t-trace tests/trace/t-writer tests/trace/t-zipdir tests/trace/t-recorded \
  tests/trace/t-stream tests/trace/t-gguf tests/trace/t-llmc tests/trace/t-hdf5 tests/trace/t-quantised tests/trace/t-roundoff tests/trace/t-walked \
  tests/trace/t-conventions tests/trace/t-parts tests/trace/t-reader tests/trace/t-pickle \
  tests/train/t-decoder-autocast tests/train/t-accumulate tests/train/t-decoder-run \
  tests/train/t-decoder-torch \
  tests/train/t-digests tests/train/t-engine-errors tests/train/t-engine-layers \
  tests/train/t-decoder-graph \
  tests/train/t-engine-products tests/train/t-engine-stacks tests/train/t-engine-tensors \
  tests/train/t-engine-transformer tests/train/t-engine-update tests/train/t-gradients tests/train/t-layers \
  tests/train/t-oracle tests/base/t-parallel tests/train/t-run-text tests/train/t-replay tests/train/t-run \
  tests/train/t-schedule tests/train/t-step tests/train/t-text tests/train/t-torch

# ---- against MPFR
if HAVE_MPFR
tests_libsupport_a_SOURCES += \
  tests/oracle/block.c tests/oracle/block.h tests/oracle/blockstat.c tests/oracle/blockstat.h \
  tests/oracle/decoder.c tests/oracle/decoder.h tests/oracle/decoderattention.c \
  tests/oracle/decodergrad.c tests/oracle/decodernames.c tests/oracle/decoderoptim.c \
  tests/oracle/decoderoptim.h tests/oracle/decoderparts.h tests/oracle/decoderrows.c \
  tests/oracle/decoderrows.h tests/oracle/instructions.c tests/oracle/instructions.h \
  tests/oracle/integers.c tests/oracle/integers.h \
  tests/oracle/neighbours.c tests/oracle/neighbours.h tests/oracle/optim.h tests/oracle/optimexact.h \
  tests/oracle/optimkernels.h tests/oracle/recipe.c tests/oracle/recipe.h tests/oracle/rounded.h \
  tests/support/blockcompare.c tests/support/blockcompare.h tests/support/cases.c \
  tests/support/cases.h tests/support/decoderscenarios.h tests/support/exact.c tests/support/exact.h \
  tests/support/gradientinput.c tests/support/gradientinput.h tests/support/ops.c \
  tests/support/ops.h tests/support/optiminput.c tests/support/optiminput.h \
  tests/support/plainsummary.c tests/support/plainsummary.h tests/support/rounding.c \
  tests/support/rounding.h
mpfr_tests = \
  tests/arith/t-arith tests/arith/t-array tests/arith/t-exact tests/arith/t-fma tests/arith/t-function \
  tests/arith/t-wide \
  tests/block/t-block tests/block/t-block-proof tests/block/t-elements tests/block/t-hadamard tests/block/t-outputs \
  tests/block/t-recipe tests/block/t-recipe-scale tests/block/t-rules tests/block/t-blockstats \
  tests/dot/t-dot tests/dot/t-instruction \
  tests/format/t-codes tests/format/t-names \
  tests/layer/t-functions tests/layer/t-math \
  tests/optim/t-adafactor tests/optim/t-contract tests/optim/t-gradient tests/optim/t-gradient-clip \
  tests/optim/t-gradient-reduce tests/optim/t-kernels tests/optim/t-math tests/optim/t-optim tests/optim/t-stores \
  tests/round/t-arrays tests/round/t-round tests/round/t-round64 tests/round/t-tiny tests/sim/t-distance tests/sim/t-exact tests/sim/t-judge tests/sim/t-judge-arith tests/sim/t-judge-attention tests/sim/t-judge-inputs tests/sim/t-judge-narrow tests/sim/t-judge-products tests/sim/t-judge-quantise tests/sim/t-judge-rows tests/sim/t-judge-scaled tests/sim/t-judge-tolerance tests/sim/t-stat-rationals \
  tests/scaler/t-adaptive \
  tests/stats/t-stats tests/stats/t-sum tests/stats/t-summary-proof tests/train/t-decoder
else
mpfr_tests =
endif

# ---- against NVIDIA's headers, compiled as plain C
if HAVE_CUDA_HEADERS
nvidia_tests = tests/round/t-cudahdr
tests_round_t_cudahdr_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
tests_round_t_cudahdr_CFLAGS = -std=gnu11 $(FP_CFLAGS) $(VIS_CFLAGS) $(SAN_CFLAGS) $(CHECK_CFLAGS)
else
nvidia_tests =
endif

# what devices answered through PyTorch: a reader for each kind of question
tests_record_t_device_SOURCES = \
  tests/record/attentions.c tests/record/batched.c tests/record/convolutions.c tests/record/cuts.c tests/record/device.c tests/record/device.h \
  tests/record/digests.c tests/record/doubles.c tests/record/elementwise.c tests/record/endings.c tests/record/grouped.c \
  tests/record/integers.c tests/record/matrices.c tests/record/multiply.c tests/record/optimizers.c tests/record/plays.c \
  tests/record/pointwise.c tests/record/products.c tests/record/scaled.c tests/record/segments.c tests/record/segments.h \
  tests/record/stacks.c tests/record/stacks.h tests/record/sums.c tests/record/t-device.c tests/record/tables.c \
  tests/record/tiles.c tests/record/ways.c tests/record/ways.h tests/record/whole.c

# two files of one tensor
# the library's own host of the work (sim/process/host.h) comes before the program's
tests_sim_t_policy_reader_LDADD = $(support_libs) sim/libtracelib.a $(LDADD)
tests_dot_t_chain_SOURCES = tests/dot/chain.c tests/dot/chain.h tests/dot/t-chain.c
tests_dot_t_chain_corners_SOURCES = tests/dot/chain.c tests/dot/chain.h tests/dot/t-chain-corners.c
tests_sim_t_diff_SOURCES = tests/sim/samples.c tests/sim/samples.h tests/sim/t-diff.c
tests_sim_t_diff_verdicts_SOURCES = tests/sim/samples.c tests/sim/samples.h tests/sim/t-diff-verdicts.c

# pairs of tensors with known causes
tests_sim_t_diff_pairs_SOURCES = \
  tests/sim/pairs/base.c tests/sim/pairs/elements.c tests/sim/pairs/pairs.h tests/sim/pairs/rounded.c \
  tests/sim/pairs/tensors.c tests/sim/t-diff-pairs.c

programs_all += $(unit_tests) $(mpfr_tests) $(nvidia_tests)
tests_all += $(unit_tests) $(mpfr_tests) $(nvidia_tests)

# Those that spend their time in loops of their own.
hot_objects = tests/gpu/replay.$(OBJEXT) tests/gpu/t-record.$(OBJEXT) tests/gpu/whole.$(OBJEXT) tests/record/device.$(OBJEXT) tests/record/attentions.$(OBJEXT) \
  tests/record/convolutions.$(OBJEXT) tests/record/elementwise.$(OBJEXT) tests/record/integers.$(OBJEXT) \
  tests/record/matrices.$(OBJEXT) tests/record/multiply.$(OBJEXT) tests/record/whole.$(OBJEXT) \
  tests/record/scaled.$(OBJEXT) tests/record/sums.$(OBJEXT) \
  tests/round/t-cast.$(OBJEXT) tests/dot/chain.$(OBJEXT) tests/dot/t-chain.$(OBJEXT) tests/dot/t-chain-corners.$(OBJEXT) tests/train/t-gradients.$(OBJEXT)
$(hot_objects): TEST_CFLAGS = $(OPT_CFLAGS)

# ---- all 2^32 inputs: make check-long
if HAVE_MPFR
programs_all += tests/arith/x-arith tests/round/x-sweep
endif
programs_all += tests/round/x-cast
endif

# ---- the program of the front page, for tests/cli/doc.sh: the public headers and the library are all it needs
check_PROGRAMS += tests/example
nodist_tests_example_SOURCES = tests/example.c
tests_example_CPPFLAGS = $(public_cppflags)
tests_example_LDADD = lib/libmpsim.a
tests/example.c: $(top_srcdir)/README.md
	@$(MKDIR_P) tests
	$(AM_V_GEN)sed -n '/^    #include <mpsim/,/^    }$$/s/^    //p' $(top_srcdir)/README.md >$@
CLEANFILES += tests/example.c

# ---- loaded before the program, it lets system calls and allocations fail, for tests/cli/faults.sh; glibc only
programs_all += tests/support/failcall.so
tests_support_failcall_so_SOURCES = tests/support/failcall.c
tests_support_failcall_so_CFLAGS = $(base_cflags) -fPIC
tests_support_failcall_so_LINK = $(CCLD) -shared -o $@
tests_support_failcall_so_LDADD = -ldl

# ---- runs a program whose standard output is a terminal, for tests/cli/columns.sh
programs_all += tests/support/pty
tests_support_pty_LDADD =

# ---- writes recorded vectors that never were, for tests/cli/verify.sh
programs_all += tests/support/mkvectors
tests_support_mkvectors_LDADD = lib/libmpsim.a $(LIBZIP_LIBS)

# ---- runs a program as on a kernel without a sandbox, for tests/cli/sandbox.sh
programs_all += tests/support/oldkernel
tests_support_oldkernel_LDADD =

# ---- the fuzz targets, as plain programs over their corpora; with libFuzzer: make fuzz
EXTRA_LIBRARIES += tests/fuzz/libinput.a
tests_fuzz_libinput_a_SOURCES = tests/fuzz/input.c tests/fuzz/input.h tests/fuzz/members.c tests/fuzz/members.h
tests_fuzz_libinput_a_CPPFLAGS = $(AM_CPPFLAGS) $(ZLIB_CFLAGS) -DFUZZ_STANDALONE
fuzz_targets = \
  tests/fuzz/fuzz-advise tests/fuzz/fuzz-checkpoint tests/fuzz/fuzz-digests tests/fuzz/fuzz-drawing tests/fuzz/fuzz-explain tests/fuzz/fuzz-folder \
  tests/fuzz/fuzz-format tests/fuzz/fuzz-log tests/fuzz/fuzz-logs tests/fuzz/fuzz-model tests/fuzz/fuzz-names tests/fuzz/fuzz-operands \
  tests/fuzz/fuzz-pair tests/fuzz/fuzz-part tests/fuzz/fuzz-pattern tests/fuzz/fuzz-policy \
  tests/fuzz/fuzz-report tests/fuzz/fuzz-run tests/fuzz/fuzz-spec tests/fuzz/fuzz-state tests/fuzz/fuzz-text \
  tests/fuzz/fuzz-torch tests/fuzz/fuzz-trace tests/fuzz/fuzz-vectors
programs_all += $(fuzz_targets)
fuzz_ldadd = tests/fuzz/libinput.a $(sim_libs)
tests_fuzz_fuzz_advise_LDADD = $(fuzz_ldadd)
tests_fuzz_fuzz_checkpoint_LDADD = $(fuzz_ldadd)
tests_fuzz_fuzz_digests_LDADD = $(fuzz_ldadd)
tests_fuzz_fuzz_drawing_LDADD = $(fuzz_ldadd)
tests_fuzz_fuzz_explain_LDADD = $(fuzz_ldadd)
tests_fuzz_fuzz_folder_LDADD = $(fuzz_ldadd)
tests_fuzz_fuzz_format_LDADD = $(fuzz_ldadd)
tests_fuzz_fuzz_log_LDADD = $(fuzz_ldadd)
tests_fuzz_fuzz_logs_LDADD = $(fuzz_ldadd)
tests_fuzz_fuzz_model_LDADD = $(fuzz_ldadd)
tests_fuzz_fuzz_names_LDADD = $(fuzz_ldadd)
tests_fuzz_fuzz_operands_LDADD = $(fuzz_ldadd)
tests_fuzz_fuzz_pair_LDADD = $(fuzz_ldadd)
tests_fuzz_fuzz_part_LDADD = $(fuzz_ldadd)
tests_fuzz_fuzz_pattern_LDADD = $(fuzz_ldadd)
tests_fuzz_fuzz_policy_LDADD = $(fuzz_ldadd)
tests_fuzz_fuzz_report_LDADD = $(fuzz_ldadd)
tests_fuzz_fuzz_run_LDADD = $(fuzz_ldadd)
tests_fuzz_fuzz_spec_LDADD = $(fuzz_ldadd)
tests_fuzz_fuzz_state_LDADD = $(fuzz_ldadd)
tests_fuzz_fuzz_text_LDADD = $(fuzz_ldadd)
tests_fuzz_fuzz_torch_LDADD = $(fuzz_ldadd)
tests_fuzz_fuzz_trace_LDADD = $(fuzz_ldadd)
tests_fuzz_fuzz_vectors_LDADD = $(fuzz_ldadd)

# What differential.py reads with.
EXTRA_PROGRAMS = tests/fuzz/read-tensors
tests_fuzz_read_tensors_LDADD = $(sim_libs)

# FUZZ_RUNS executions of each target (FUZZ_TARGETS: of those named), compiled by FUZZ_CC, which configure looks for.
FUZZ_RUNS = 100000
fuzz_make = test -n "$(FUZZ_CC)" || { echo "make $@ needs clang with libFuzzer: install it and run configure again," \
	  "or say where it is: make $@ FUZZ_CC=clang-19" >&2; exit 1; }; \
	$(MAKE) $(AM_MAKEFLAGS) -f $(srcdir)/tests/fuzz/fuzz.mk srcdir='$(srcdir)' FUZZ_CC='$(FUZZ_CC)' \
	  FP_CFLAGS='$(FP_CFLAGS)' VIS_CFLAGS='$(VIS_CFLAGS)' AVX2_CFLAGS='$(AVX2_CFLAGS)' \
	  AVX512_CFLAGS='$(AVX512_CFLAGS)' \
	  LIBRARY_CFLAGS='$(JANSSON_CFLAGS) $(LIBZIP_CFLAGS) $(YAML_CFLAGS) $(ZLIB_CFLAGS) $(LIBARCHIVE_CFLAGS) $(HDF5_CFLAGS)' \
	  LIBRARY_LIBS='$(JANSSON_LIBS) $(LIBZIP_LIBS) $(YAML_LIBS) $(ZLIB_LIBS) $(LIBARCHIVE_LIBS) $(HDF5_LIBS)' \
	  SOURCES='$(lib_libmpsim_a_SOURCES) $(lib_libavx2_a_SOURCES) \
	    $(lib_libavx512_a_SOURCES) $(lib_train_libtrain_a_SOURCES) $(lib_threads_libparallel_a_SOURCES) $(sim_libsim_a_SOURCES) \
	    $(sim_libjudge_a_SOURCES) $(sim_libpolicy_a_SOURCES) $(sim_libstat_a_SOURCES) $(sim_libtrace_a_SOURCES)'
fuzz:
	@$(fuzz_make)
	@sh $(srcdir)/tests/fuzz/run.sh fuzz-build $(srcdir) $(FUZZ_RUNS) $(FUZZ_TARGETS)
# Lines of the readers that the corpora reach.
fuzz-coverage:
	@$(fuzz_make) kind=coverage
	@sh $(srcdir)/tests/fuzz/coverage.sh fuzz-build/coverage $(srcdir) '$(FUZZ_CC)' $(FUZZ_TARGETS)
.PHONY: fuzz fuzz-coverage

EXTRA_DIST += tests/README.md tests/properties.tsv tests/defects.tsv tests/runs.md tests/runs.tsv tests/mutants/results.tsv tests/analyze/known tests/analyze/run.sh tests/bench/excerpt.sh tests/cli/common.sh tests/cli/links.awk tests/cli/logproperties.awk tests/cli/logmade.awk tests/cli/pages.awk $(cli_pages) tests/cli/plotting.sh tests/cli/screens.sh tests/cli/reports \
  tests/coverage.sh tests/dot/controls.py tests/fuzz/README.md tests/fuzz/aside tests/fuzz/campaigns.tsv tests/fuzz/corpus tests/fuzz/coverage.sh tests/fuzz/pack.sh tests/fuzz/dict tests/fuzz/differential.py tests/fuzz/differential.tsv tests/fuzz/reached.tsv \
  tests/fuzz/fuzz.mk tests/fuzz/mutate.c tests/fuzz/run.sh tests/fuzz/targets.sh tests/golden \
  tests/logs tests/trace/recorded tests/bench/mpi.sh tests/trace/conventions.tsv \
  tests/trace/conventions-recorded.tsv tests/trace/record_names.py tests/trace/models.tsv \
  tests/trace/record_models.py tests/trace/quantised \
  tests/trace/torch tests/bench/busy.sh tests/bench/scale.sh tests/bench/transformers.sh \
  tests/quant/layouts.safetensors \
  tests/quant/record_layouts.py tests/quant/roundtrip.py tests/wide/cross.sh tests/wide/reproducible.sh tests/wide/same.sh

# ---- what cppcheck and the analyzers of clang and gcc find that tests/analyze/known does not explain; half an hour
analyze:
	@CPPFLAGS='$(JANSSON_CFLAGS) $(LIBZIP_CFLAGS) $(YAML_CFLAGS) $(ZLIB_CFLAGS) $(LIBARCHIVE_CFLAGS)' \
	  sh $(srcdir)/tests/analyze/run.sh $(ANALYZE)
# Frama-C's Eva over the references, for all inputs; mutants of modules of lib, each judged by the module's unit tests
MUTANTS = lib/round lib/block lib/scaler lib/format
eva:
	@sh $(srcdir)/tests/analyze/eva/run.sh
mutants: lib/libmpsim.a
	@python3 $(srcdir)/tests/mutants/mutants.py $(MUTANTS)
EXTRA_DIST += tests/analyze/eva/known tests/analyze/eva/references.c tests/analyze/eva/run.sh tests/mutants/equivalent tests/mutants/mutants.py tests/bench/growth.py
.PHONY: analyze eva mutants

# ---- longer runs: all 2^32 binary32 inputs (by MPFR, and every instruction set), all 2^32 pairs of fp16, recorded
# trainings to their end; make check with ten times the random inputs and without shortcuts (NVIDIA's headers over all
# 2^32 inputs, too); the unit tests once for each instruction set; everything under valgrind.
# A minute of each fuzz target, where there is a compiler for them.
FUZZ_SECONDS = 60
check-long: $(check_PROGRAMS) mpsim
	@test -x tests/round/x-sweep || { echo "check-long needs MPFR and Check"; exit 1; }
	./tests/round/x-sweep
	./tests/round/x-cast
	./tests/arith/x-arith
	./tests/gpu/t-exact --all
	MPSIM_TEST_EXPENSIVE=1 MPSIM_SRCDIR="$(abs_top_srcdir)" ./tests/train/t-digests
	MPSIM_TEST_EXPENSIVE=1 MPSIM_SRCDIR="$(abs_top_srcdir)" ./tests/gpu/t-record
	MPSIM_TEST_EXPENSIVE=1 MPSIM_SRCDIR="$(abs_top_srcdir)" ./tests/record/t-device
	MPSIM_TEST_EXPENSIVE=1 MPSIM="$(abs_top_builddir)/mpsim" MPSIM_SRCDIR="$(abs_top_srcdir)" MPSIM_PLOTS="$(abs_top_srcdir)/plots" \
	  $(SHELL) $(top_srcdir)/tests/cli/faults.sh
	MPSIM_TEST_EXPENSIVE=1 MPSIM="$(abs_top_builddir)/mpsim" MPSIM_SRCDIR="$(abs_top_srcdir)" $(SHELL) $(top_srcdir)/tests/cli/killed.sh
	MPSIM_TEST_PART=all MPSIM="$(abs_top_builddir)/mpsim" MPSIM_SRCDIR="$(abs_top_srcdir)" $(SHELL) $(top_srcdir)/tests/cli/questions.sh
	@if test -z "$(FUZZ_CC)"; then echo "no fuzzing: no clang with libFuzzer was found"; \
	else FUZZ_OPTIONS="-max_total_time=$(FUZZ_SECONDS) $$FUZZ_OPTIONS" $(MAKE) $(AM_MAKEFLAGS) fuzz FUZZ_RUNS=-1; fi
	$(MAKE) $(AM_MAKEFLAGS) check-sdist
check-wide:
	MPSIM_TEST_EXPENSIVE=1 MPSIM_TEST_MULTIPLIER=10 $(MAKE) $(AM_MAKEFLAGS) check
check-isa:
	@for i in scalar generic avx2 avx512; do echo "== MPSIM_ISA=$$i"; \
	  MPSIM_ISA=$$i $(MAKE) $(AM_MAKEFLAGS) check || exit 1; done
check-valgrind:
	$(MAKE) $(AM_MAKEFLAGS) check \
	  LOG_COMPILER="valgrind -q --error-exitcode=1"
# Lines of lib and sim that the tests reach, by module: in a build with --enable-coverage. A process that is killed, or whose
# calls fail, loses the counts of all before it, so the scripts that do that are left out. (failcall.so as a build without
# counts made it lets the calls of libgcov fail, too, as the process ends: __gcov_exit then crashes where malloc gives nothing.)
coverage:
	@case '$(SAN_CFLAGS)' in *--coverage*) ;; *) echo "make coverage needs a build that ./configure --enable-coverage made" >&2; exit 1 ;; esac
	find lib sim -name '*.gcda' -exec rm -f {} +
	-$(MAKE) $(AM_MAKEFLAGS) check TESTS="$$(echo '$(TESTS)' | sed 's|tests/cli/killed.sh||; s|tests/cli/faults.sh||')"
	@sh $(srcdir)/tests/coverage.sh $(srcdir)
.PHONY: check-long check-wide check-isa check-valgrind coverage

# ---- what frameworks recorded, reproduced: values and mismatches, a line each
recorded_tests = tests/scaler/t-recorded tests/optim/t-gradient-recorded tests/optim/t-recorded \
  tests/optim/t-training tests/block/t-recorded tests/block/t-references tests/optim/t-states \
  tests/optim/t-muon
recorded: mpsim $(recorded_tests)
	@{ for t in $(recorded_tests); do echo "== $$t"; \
	  MPSIM_SRCDIR="$(abs_top_srcdir)" CK_TAP_LOG_FILE_NAME=- CK_VERBOSITY=silent ./$$t | \
	    grep -e '^#' -e '^not ok' | grep -v 'instruction set'; done; \
	for t in sgd:autocast adam:autocast adamw:adamw half:half cuda/foreach-adamw:cuda/foreach cuda/fused-adamw:cuda/fused; do \
	  echo "== mpsim replay, data/amp-mlp/$${t%:*}"; \
	  ./mpsim replay -P $(srcdir)/data/amp-mlp/$${t#*:}.yaml $(srcdir)/data/amp-mlp/$${t%:*} | \
	    sed -n 's/^record  */# /p'; done; \
	echo "== mpsim replay, data/replay-cases"; \
	MPSIM_TEST_PART=all MPSIM=./mpsim MPSIM_SRCDIR="$(abs_top_srcdir)" $(srcdir)/tests/cli/replay-cases.sh | \
	  grep -e '^#' -e '^not ok'; } | \
	  awk '{ print } / runs,/ { for (i = 2; i <= NF; i++) if ($$i == "runs,") n = $$(i - 1); \
	      if (/^# torch-/) torch += n; else others += n } \
	    / cases,.* steps \(/ { cases += $$4; steps += $$6 } \
	    END { print "== in all: optimizer runs of PyTorch " torch ", of torchao and optimi " \
	      others "; scaler runs " cases ", steps " steps }'
.PHONY: recorded

# ---- what papers print of block formats, computed again: theirs, ours, the difference
published_tests = tests/block/t-published tests/block/t-figures
published: $(published_tests)
	@for t in $(published_tests); do \
	  CK_TAP_LOG_FILE_NAME=- CK_VERBOSITY=silent ./$$t | grep -e '^#' -e '^not ok'; done
.PHONY: published

# ---- speed, as ratios to memcpy and others in the same run: a table, and bench.csv. make check only sees that they run
# (tests/bench/run.sh). The first prints the head.
EXTRA_DIST += tests/bench/functions.tsv
benchmarks = tests/bench/casts tests/bench/blocks tests/bench/arith tests/bench/stats \
  tests/bench/files tests/bench/dot tests/bench/convolutions tests/bench/steps tests/bench/layers tests/bench/train
bench_objects = $(benchmarks:=.$(OBJEXT)) tests/bench/command.$(OBJEXT)
$(bench_objects): TEST_CFLAGS = $(OPT_CFLAGS)
EXTRA_LIBRARIES += tests/bench/libbench.a
tests_bench_libbench_a_SOURCES = tests/bench/frame.c tests/bench/frame.h tests/bench/goals.c \
  tests/bench/goals.h tests/bench/peak.c tests/bench/peak.h tests/bench/timing.h
tests_bench_libbench_a_CFLAGS = $(product_cflags)
tests_bench_libbench_a_CPPFLAGS = $(AM_CPPFLAGS) -DBENCH_COMPILED='"$(OPT_CFLAGS) $(CFLAGS)"'
programs_all += $(benchmarks)
bench_ldadd = tests/bench/libbench.a lib/threads/libparallel.a lib/libmpsim.a -lpthread
tests_bench_arith_LDADD = $(bench_ldadd)
tests_bench_blocks_LDADD = $(bench_ldadd)
tests_bench_casts_LDADD = $(bench_ldadd)
tests_bench_convolutions_LDADD = $(bench_ldadd)
tests_bench_dot_LDADD = $(bench_ldadd)
tests_bench_layers_LDADD = $(bench_ldadd)
tests_bench_stats_LDADD = $(bench_ldadd)
tests_bench_steps_LDADD = $(bench_ldadd)
# what runs commands of the program
bench_sim_ldadd = tests/bench/libbench.a $(sim_libs) -lpthread
tests_bench_files_SOURCES = \
  tests/bench/command.c tests/bench/command.h tests/bench/files.c
tests_bench_files_LDADD = $(bench_sim_ldadd)
tests_bench_train_SOURCES = \
  tests/bench/command.c tests/bench/command.h tests/bench/train.c
tests_bench_train_LDADD = $(bench_sim_ldadd)
bench: $(benchmarks)
	@rm -f bench.csv
	@for b in $(benchmarks); do \
	  MPSIM_POLICIES="$(abs_srcdir)/data/policies" ./$$b --csv bench.csv || exit 1; done
	@echo "The same as CSV: bench.csv"
bench-quick: $(benchmarks)
	@rm -f bench-quick.csv
	@for b in $(benchmarks); do \
	  MPSIM_POLICIES="$(abs_srcdir)/data/policies" ./$$b --quick --csv bench-quick.csv || exit 1; done
	@echo "The same as CSV: bench-quick.csv"
# mpsim-mpi against the number of ranks and the size of a trace
bench-scale: mpsim
	@MPSIM=./mpsim sh $(srcdir)/tests/bench/scale.sh
# time and memory of every command against the size of what it is given
bench-growth: mpsim
	@MPSIM_POLICIES="$(abs_srcdir)/data/policies" python3 $(srcdir)/tests/bench/growth.py -m ./mpsim $(GROWTH)
bench-transformers: mpsim
	@MPSIM=./mpsim MPSIM_POLICIES="$(abs_srcdir)/data/policies" sh $(srcdir)/tests/bench/transformers.sh
bench-busy: mpsim
	@MPSIM=./mpsim MPSIM_SRCDIR="$(abs_srcdir)" sh $(srcdir)/tests/bench/busy.sh
bench-mpi: $(bin_PROGRAMS)
	@MPSIM="$(abs_builddir)/mpsim" MPSIM_MPI="$(abs_builddir)/mpsim-mpi" MPIRUN='$(MPIRUN)' \
	  MPSIM_POLICIES="$(abs_srcdir)/data/policies" sh $(srcdir)/tests/bench/mpi.sh
CLEANFILES += bench.csv bench-quick.csv
.PHONY: bench bench-busy bench-growth bench-mpi bench-quick bench-scale bench-transformers
