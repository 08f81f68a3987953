# tests/ -- unit tests (Check, TAP), proofs (MPFR), tests of the program (shell).
TEST_EXTENSIONS = .sh
LOG_DRIVER = env AM_TAP_AWK='$(AWK)' $(SHELL) $(top_srcdir)/build-aux/tap-driver.sh
SH_LOG_DRIVER = $(LOG_DRIVER)
AM_TESTS_ENVIRONMENT = \
  CK_TAP_LOG_FILE_NAME=-; CK_VERBOSITY=silent; \
  MPSIM=$(abs_top_builddir)/mpsim; MPSIM_SRCDIR=$(abs_top_srcdir); \
  MPSIM_PLOTS=$(abs_top_srcdir)/plots; \
  MPSIM_GPU=$(abs_top_builddir)/mpsim-gpu; NVCC='$(cuda_nvcc)'; MPSIM_NVCC_FLAGS='$(cuda_fp_flags)'; \
  export CK_TAP_LOG_FILE_NAME CK_VERBOSITY MPSIM MPSIM_SRCDIR MPSIM_PLOTS MPSIM_GPU NVCC MPSIM_NVCC_FLAGS;

dist_check_SCRIPTS += tests/gpu/device.sh tests/gpu/program.sh tests/gpu/ptx.sh
TESTS += tests/gpu/device.sh tests/gpu/program.sh tests/gpu/ptx.sh

dist_check_SCRIPTS += tests/ck-house.sh tests/cli/calc.sh tests/cli/counts.sh tests/cli/dot.sh \
  tests/cli/formats.sh tests/cli/plot.sh tests/cli/policies.sh tests/cli/program.sh \
  tests/cli/replay.sh tests/cli/scaler.sh tests/cli/train.sh tests/cli/verify.sh
TESTS += tests/ck-house.sh tests/cli/calc.sh tests/cli/counts.sh tests/cli/dot.sh \
  tests/cli/formats.sh tests/cli/plot.sh tests/cli/policies.sh tests/cli/program.sh \
  tests/cli/replay.sh tests/cli/scaler.sh tests/cli/train.sh tests/cli/verify.sh

test_cppflags = $(AM_CPPFLAGS) -I$(top_srcdir)/sim -I$(top_srcdir)/sim/verify \
  -I$(top_srcdir)/tests -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64
test_cflags = $(AM_CFLAGS) $(CHECK_CFLAGS) $(JANSSON_CFLAGS) $(LIBZIP_CFLAGS)

# What the test programs share.
if HAVE_CHECK
check_LTLIBRARIES += tests/libsupport.la
tests_libsupport_la_SOURCES = tests/support.c tests/support.h tests/sha256.c tests/sha256.h
tests_libsupport_la_CPPFLAGS = $(test_cppflags)
tests_libsupport_la_CFLAGS = $(test_cflags)
tests_libsupport_la_LIBADD = lib/libmpsim.la $(CHECK_LIBS)
test_ldadd = tests/libsupport.la lib/libmpsim.la
trace_test_ldadd = tests/libsupport.la sim/libsim.la

# Without MPFR.
lib_tests = tests/t-env tests/t-framework tests/t-fused tests/t-gemm tests/t-golden tests/t-isa \
  tests/t-model tests/t-nan tests/t-peers tests/t-published \
  tests/t-refused tests/t-rng tests/t-status tests/t-stochastic tests/t-zeros
tests_t_env_SOURCES = tests/t-env.c
tests_t_env_CPPFLAGS = $(test_cppflags)
tests_t_env_CFLAGS = $(test_cflags)
tests_t_env_LDADD = $(test_ldadd)
tests_t_framework_SOURCES = tests/t-framework.c
tests_t_framework_CPPFLAGS = $(test_cppflags)
tests_t_framework_CFLAGS = $(test_cflags)
tests_t_framework_LDADD = $(test_ldadd)
tests_t_fused_SOURCES = tests/t-fused.c tests/dotcases.c tests/dotcases.h
tests_t_fused_CPPFLAGS = $(test_cppflags)
tests_t_fused_CFLAGS = $(test_cflags)
tests_t_fused_LDADD = $(test_ldadd) -lm
tests_t_gemm_SOURCES = tests/t-gemm.c tests/dotcases.c tests/dotcases.h
tests_t_gemm_CPPFLAGS = $(test_cppflags)
tests_t_gemm_CFLAGS = $(test_cflags) -pthread
tests_t_gemm_LDADD = $(test_ldadd) -lm -lpthread
tests_t_golden_SOURCES = tests/t-golden.c
tests_t_golden_CPPFLAGS = $(test_cppflags)
tests_t_golden_CFLAGS = $(test_cflags)
tests_t_golden_LDADD = $(test_ldadd)
tests_t_isa_SOURCES = tests/t-isa.c
tests_t_isa_CPPFLAGS = $(test_cppflags)
tests_t_isa_CFLAGS = $(test_cflags)
tests_t_isa_LDADD = $(test_ldadd)
tests_t_model_SOURCES = tests/t-model.c
tests_t_model_CPPFLAGS = $(test_cppflags)
tests_t_model_CFLAGS = $(test_cflags)
tests_t_model_LDADD = $(test_ldadd)
tests_t_nan_SOURCES = tests/t-nan.c tests/peers.c tests/peers.h
tests_t_nan_CPPFLAGS = $(test_cppflags)
tests_t_nan_CFLAGS = $(test_cflags)
tests_t_nan_LDADD = $(test_ldadd)
tests_t_peers_SOURCES = tests/t-peers.c tests/peers.c tests/peers.h
tests_t_peers_CPPFLAGS = $(test_cppflags)
tests_t_peers_CFLAGS = $(test_cflags)
tests_t_peers_LDADD = $(test_ldadd)
tests_t_published_SOURCES = tests/t-published.c
tests_t_published_CPPFLAGS = $(test_cppflags)
tests_t_published_CFLAGS = $(test_cflags)
tests_t_published_LDADD = $(test_ldadd) -lm
tests_t_refused_SOURCES = tests/t-refused.c tests/peers.c tests/peers.h
tests_t_refused_CPPFLAGS = $(test_cppflags)
tests_t_refused_CFLAGS = $(test_cflags)
tests_t_refused_LDADD = $(test_ldadd)
tests_t_rng_SOURCES = tests/t-rng.c
tests_t_rng_CPPFLAGS = $(test_cppflags)
tests_t_rng_CFLAGS = $(test_cflags)
tests_t_rng_LDADD = $(test_ldadd)
tests_t_status_SOURCES = tests/t-status.c
tests_t_status_CPPFLAGS = $(test_cppflags)
tests_t_status_CFLAGS = $(test_cflags)
tests_t_status_LDADD = $(test_ldadd)
tests_t_stochastic_SOURCES = tests/t-stochastic.c
tests_t_stochastic_CPPFLAGS = $(test_cppflags)
tests_t_stochastic_CFLAGS = $(test_cflags)
tests_t_stochastic_LDADD = $(test_ldadd)
tests_t_zeros_SOURCES = tests/t-zeros.c tests/peers.c tests/peers.h
tests_t_zeros_CPPFLAGS = $(test_cppflags)
tests_t_zeros_CFLAGS = $(test_cflags)
tests_t_zeros_LDADD = $(test_ldadd)
lib_tests += tests/t-gpurecord
tests_t_gpurecord_SOURCES = tests/t-gpurecord.c
tests_t_gpurecord_CPPFLAGS = $(test_cppflags)
tests_t_gpurecord_CFLAGS = $(test_cflags)
tests_t_gpurecord_LDADD = gpu/libchecks.la $(test_ldadd) $(JANSSON_LIBS)
check_PROGRAMS += $(lib_tests)
TESTS += $(lib_tests)

# The trainer and what it is made of.
train_tests = tests/t-digest tests/t-layer-xent tests/t-layer-batchnorm tests/t-chain \
  tests/t-train-engine tests/t-train-plan tests/t-train-run tests/t-train-step \
  tests/t-train-oracle tests/t-train-replay tests/t-train-torch tests/t-train-policy \
  tests/t-train-record
tests_t_digest_SOURCES = tests/t-digest.c
tests_t_digest_CPPFLAGS = $(test_cppflags)
tests_t_digest_CFLAGS = $(test_cflags)
tests_t_digest_LDADD = $(test_ldadd) -lm
tests_t_layer_xent_SOURCES = tests/t-layer-xent.c tests/layeroracle.c tests/layeroracle.h
tests_t_layer_xent_CPPFLAGS = $(test_cppflags)
tests_t_layer_xent_CFLAGS = $(test_cflags)
tests_t_layer_xent_LDADD = $(test_ldadd) -lm
tests_t_layer_batchnorm_SOURCES = tests/t-layer-batchnorm.c tests/layeroracle.c tests/layeroracle.h
tests_t_layer_batchnorm_CPPFLAGS = $(test_cppflags)
tests_t_layer_batchnorm_CFLAGS = $(test_cflags)
tests_t_layer_batchnorm_LDADD = $(test_ldadd) -lm
tests_t_chain_SOURCES = tests/t-chain.c
tests_t_chain_CPPFLAGS = $(test_cppflags)
tests_t_chain_CFLAGS = $(test_cflags)
tests_t_chain_LDADD = $(test_ldadd) -lm
tests_t_train_engine_SOURCES = tests/t-train-engine.c
tests_t_train_engine_CPPFLAGS = $(test_cppflags)
tests_t_train_engine_CFLAGS = $(test_cflags)
tests_t_train_engine_LDADD = $(trace_test_ldadd) -lm
tests_t_train_plan_SOURCES = tests/t-train-plan.c
tests_t_train_plan_CPPFLAGS = $(test_cppflags)
tests_t_train_plan_CFLAGS = $(test_cflags)
tests_t_train_plan_LDADD = $(trace_test_ldadd) -lm
tests_t_train_run_SOURCES = tests/t-train-run.c tests/trainruns.h
tests_t_train_run_CPPFLAGS = $(test_cppflags)
tests_t_train_run_CFLAGS = $(test_cflags)
tests_t_train_run_LDADD = $(trace_test_ldadd) -lm
tests_t_train_oracle_SOURCES = tests/t-train-oracle.c tests/coreoracle.c tests/coreoracle.h \
  tests/layeroracle.c tests/layeroracle.h tests/trainoracle.c tests/trainoracle.h \
  tests/trainparts.c tests/trainparts.h tests/trainscenarios.h tests/trainupdate.c
tests_t_train_oracle_CPPFLAGS = $(test_cppflags)
tests_t_train_oracle_CFLAGS = $(test_cflags)
tests_t_train_oracle_LDADD = $(trace_test_ldadd) -lm
tests_t_train_step_SOURCES = tests/t-train-step.c tests/trainruns.h
tests_t_train_step_CPPFLAGS = $(test_cppflags)
tests_t_train_step_CFLAGS = $(test_cflags)
tests_t_train_step_LDADD = $(trace_test_ldadd) -lm
tests_t_train_replay_SOURCES = tests/t-train-replay.c
tests_t_train_replay_CPPFLAGS = $(test_cppflags)
tests_t_train_replay_CFLAGS = $(test_cflags)
tests_t_train_replay_LDADD = tests/libreplay.la $(trace_test_ldadd) -lm
tests_t_train_torch_SOURCES = tests/t-train-torch.c tests/recorded.c tests/recorded.h
tests_t_train_torch_CPPFLAGS = $(test_cppflags)
tests_t_train_torch_CFLAGS = $(test_cflags)
tests_t_train_torch_LDADD = $(trace_test_ldadd) -lm
tests_t_train_policy_SOURCES = tests/t-train-policy.c
tests_t_train_policy_CPPFLAGS = $(test_cppflags)
tests_t_train_policy_CFLAGS = $(test_cflags)
tests_t_train_policy_LDADD = $(trace_test_ldadd) -lm
tests_t_train_record_SOURCES = tests/t-train-record.c
tests_t_train_record_CPPFLAGS = $(test_cppflags)
tests_t_train_record_CFLAGS = $(test_cflags)
tests_t_train_record_LDADD = tests/libreplay.la $(trace_test_ldadd) -lm
train_tests += tests/t-train-digests
tests_t_train_digests_SOURCES = tests/t-train-digests.c
tests_t_train_digests_CPPFLAGS = $(test_cppflags)
tests_t_train_digests_CFLAGS = $(test_cflags)
tests_t_train_digests_LDADD = tests/libsupport.la sim/libtrain.la lib/libmpsim.la -lm
check_PROGRAMS += $(train_tests)
TESTS += $(train_tests)

# Scalers, optimizers, recipes: rules of the specification, and what frameworks recorded.
recipe_tests = tests/t-block-figures tests/t-block-recorded tests/t-gradient-recorded \
  tests/t-optim-figures tests/t-optim-recorded tests/t-optim-training tests/t-policy \
  tests/t-policy-keys tests/t-replay tests/t-replay-casts tests/t-replay-fp8 tests/t-replay-lost \
  tests/t-replay-odd tests/t-replay-rules tests/t-replay-synthetic tests/t-scaler \
  tests/t-scaler-log tests/t-scaler-own tests/t-scaler-recorded tests/t-scaler-text
check_LTLIBRARIES += tests/libreplay.la
tests_libreplay_la_SOURCES = tests/replaykept.c tests/replaykept.h tests/replayoracle.c \
  tests/replayoracle.h tests/replaytrace.c tests/replaytrace.h
tests_libreplay_la_CPPFLAGS = $(test_cppflags)
tests_libreplay_la_CFLAGS = $(test_cflags)
tests_t_block_figures_SOURCES = tests/t-block-figures.c
tests_t_block_figures_CPPFLAGS = $(test_cppflags)
tests_t_block_figures_CFLAGS = $(test_cflags)
tests_t_block_figures_LDADD = $(trace_test_ldadd) -lm
tests_t_block_recorded_SOURCES = tests/t-block-recorded.c tests/recorded.c tests/recorded.h
tests_t_block_recorded_CPPFLAGS = $(test_cppflags)
tests_t_block_recorded_CFLAGS = $(test_cflags)
tests_t_block_recorded_LDADD = $(trace_test_ldadd) -lm
tests_t_gradient_recorded_SOURCES = tests/t-gradient-recorded.c tests/words.c tests/words.h
tests_t_gradient_recorded_CPPFLAGS = $(test_cppflags)
tests_t_gradient_recorded_CFLAGS = $(test_cflags)
tests_t_gradient_recorded_LDADD = $(trace_test_ldadd) -lm
tests_t_optim_figures_SOURCES = tests/t-optim-figures.c tests/recorded.c tests/recorded.h
tests_t_optim_figures_CPPFLAGS = $(test_cppflags)
tests_t_optim_figures_CFLAGS = $(test_cflags)
tests_t_optim_figures_LDADD = $(trace_test_ldadd) -lm
tests_t_optim_recorded_SOURCES = tests/t-optim-recorded.c tests/recorded.c tests/recorded.h
tests_t_optim_recorded_CPPFLAGS = $(test_cppflags)
tests_t_optim_recorded_CFLAGS = $(test_cflags)
tests_t_optim_recorded_LDADD = $(trace_test_ldadd) -lm
tests_t_optim_training_SOURCES = tests/t-optim-training.c tests/recorded.c tests/recorded.h
tests_t_optim_training_CPPFLAGS = $(test_cppflags)
tests_t_optim_training_CFLAGS = $(test_cflags)
tests_t_optim_training_LDADD = $(trace_test_ldadd) -lm
tests_t_policy_SOURCES = tests/t-policy.c
tests_t_policy_CPPFLAGS = $(test_cppflags)
tests_t_policy_CFLAGS = $(test_cflags)
tests_t_policy_LDADD = $(trace_test_ldadd) -lm
tests_t_policy_keys_SOURCES = tests/t-policy-keys.c tests/badfile.c tests/badfile.h
tests_t_policy_keys_CPPFLAGS = $(test_cppflags)
tests_t_policy_keys_CFLAGS = $(test_cflags)
tests_t_policy_keys_LDADD = $(trace_test_ldadd) -lm
tests_t_replay_SOURCES = tests/t-replay.c
tests_t_replay_CPPFLAGS = $(test_cppflags)
tests_t_replay_CFLAGS = $(test_cflags)
tests_t_replay_LDADD = tests/libreplay.la $(trace_test_ldadd) -lm
tests_t_replay_casts_SOURCES = tests/t-replay-casts.c
tests_t_replay_casts_CPPFLAGS = $(test_cppflags)
tests_t_replay_casts_CFLAGS = $(test_cflags)
tests_t_replay_casts_LDADD = tests/libreplay.la $(trace_test_ldadd) -lm
tests_t_replay_fp8_SOURCES = tests/t-replay-fp8.c
tests_t_replay_fp8_CPPFLAGS = $(test_cppflags)
tests_t_replay_fp8_CFLAGS = $(test_cflags)
tests_t_replay_fp8_LDADD = tests/libreplay.la $(trace_test_ldadd) -lm
tests_t_replay_lost_SOURCES = tests/t-replay-lost.c
tests_t_replay_lost_CPPFLAGS = $(test_cppflags)
tests_t_replay_lost_CFLAGS = $(test_cflags)
tests_t_replay_lost_LDADD = tests/libreplay.la $(trace_test_ldadd) -lm
tests_t_replay_odd_SOURCES = tests/t-replay-odd.c
tests_t_replay_odd_CPPFLAGS = $(test_cppflags)
tests_t_replay_odd_CFLAGS = $(test_cflags)
tests_t_replay_odd_LDADD = tests/libreplay.la $(trace_test_ldadd) -lm
tests_t_replay_rules_SOURCES = tests/t-replay-rules.c
tests_t_replay_rules_CPPFLAGS = $(test_cppflags)
tests_t_replay_rules_CFLAGS = $(test_cflags)
tests_t_replay_rules_LDADD = tests/libreplay.la $(trace_test_ldadd) -lm
tests_t_replay_synthetic_SOURCES = tests/t-replay-synthetic.c
tests_t_replay_synthetic_CPPFLAGS = $(test_cppflags)
tests_t_replay_synthetic_CFLAGS = $(test_cflags)
tests_t_replay_synthetic_LDADD = tests/libreplay.la $(trace_test_ldadd) -lm
tests_t_scaler_SOURCES = tests/t-scaler.c tests/frameworks.c tests/frameworks.h
tests_t_scaler_CPPFLAGS = $(test_cppflags)
tests_t_scaler_CFLAGS = $(test_cflags)
tests_t_scaler_LDADD = $(trace_test_ldadd) -lm
tests_t_scaler_log_SOURCES = tests/t-scaler-log.c
tests_t_scaler_log_CPPFLAGS = $(test_cppflags)
tests_t_scaler_log_CFLAGS = $(test_cflags)
tests_t_scaler_log_LDADD = $(trace_test_ldadd) -lm
tests_t_scaler_own_SOURCES = tests/t-scaler-own.c tests/frameworks.h
tests_t_scaler_own_CPPFLAGS = $(test_cppflags)
tests_t_scaler_own_CFLAGS = $(test_cflags)
tests_t_scaler_own_LDADD = $(trace_test_ldadd) -lm
tests_t_scaler_recorded_SOURCES = tests/t-scaler-recorded.c tests/words.c tests/words.h
tests_t_scaler_recorded_CPPFLAGS = $(test_cppflags)
tests_t_scaler_recorded_CFLAGS = $(test_cflags)
tests_t_scaler_recorded_LDADD = $(trace_test_ldadd) -lm
tests_t_scaler_text_SOURCES = tests/t-scaler-text.c
tests_t_scaler_text_CPPFLAGS = $(test_cppflags)
tests_t_scaler_text_CFLAGS = $(test_cflags)
tests_t_scaler_text_LDADD = $(trace_test_ldadd) -lm
check_PROGRAMS += $(recipe_tests)
TESTS += $(recipe_tests)

# The readers and writers, and the fuzz target as a plain program over its corpus.
trace_tests = tests/t-names tests/t-npy tests/t-npz tests/t-safetensors tests/t-tensorcore \
  tests/t-trace \
  tests/t-writer tests/t-zipdir
tests_t_names_SOURCES = tests/t-names.c tests/badfile.c tests/badfile.h
tests_t_names_CPPFLAGS = $(test_cppflags)
tests_t_names_CFLAGS = $(test_cflags)
tests_t_names_LDADD = $(trace_test_ldadd)
tests_t_npy_SOURCES = tests/t-npy.c tests/badfile.c tests/badfile.h
tests_t_npy_CPPFLAGS = $(test_cppflags)
tests_t_npy_CFLAGS = $(test_cflags)
tests_t_npy_LDADD = $(trace_test_ldadd)
tests_t_npz_SOURCES = tests/t-npz.c tests/badfile.c tests/badfile.h tests/badzip.c tests/badzip.h
tests_t_npz_CPPFLAGS = $(test_cppflags)
tests_t_npz_CFLAGS = $(test_cflags)
tests_t_npz_LDADD = $(trace_test_ldadd) $(LIBZIP_LIBS)
tests_t_safetensors_SOURCES = tests/t-safetensors.c tests/badfile.c tests/badfile.h
tests_t_safetensors_CPPFLAGS = $(test_cppflags)
tests_t_safetensors_CFLAGS = $(test_cflags)
tests_t_safetensors_LDADD = $(trace_test_ldadd)
tests_t_tensorcore_SOURCES = tests/t-tensorcore.c tests/dotcases.c tests/dotcases.h \
  tests/vectors.c tests/vectors.h
tests_t_tensorcore_CPPFLAGS = $(test_cppflags)
tests_t_tensorcore_CFLAGS = $(test_cflags)
tests_t_tensorcore_LDADD = $(trace_test_ldadd) -lm
tests_t_trace_SOURCES = tests/t-trace.c tests/badfile.c tests/badfile.h
tests_t_trace_CPPFLAGS = $(test_cppflags)
tests_t_trace_CFLAGS = $(test_cflags)
tests_t_trace_LDADD = $(trace_test_ldadd)
tests_t_writer_SOURCES = tests/t-writer.c tests/badfile.c tests/badfile.h
tests_t_writer_CPPFLAGS = $(test_cppflags)
tests_t_writer_CFLAGS = $(test_cflags)
tests_t_writer_LDADD = $(trace_test_ldadd)
tests_t_zipdir_SOURCES = tests/t-zipdir.c tests/badfile.c tests/badfile.h tests/badzip.c tests/badzip.h
tests_t_zipdir_CPPFLAGS = $(test_cppflags)
tests_t_zipdir_CFLAGS = $(test_cflags)
tests_t_zipdir_LDADD = $(trace_test_ldadd) $(LIBZIP_LIBS)
check_PROGRAMS += $(trace_tests)
TESTS += $(trace_tests)

# Against MPFR.
if HAVE_MPFR
mpfr_tests = tests/t-adaptive tests/t-arith tests/t-arith-array tests/t-arith-fma \
  tests/t-arith-wide tests/t-arrays tests/t-block tests/t-block-elements tests/t-block-hadamard \
  tests/t-block-outputs tests/t-block-rules tests/t-codes tests/t-dot tests/t-gradient \
  tests/t-gradient-clip tests/t-gradient-reduce tests/t-optim tests/t-optim-contract \
  tests/t-optim-math tests/t-optim-stores tests/t-recipe tests/t-recipe-scale tests/t-round \
  tests/t-round64 tests/t-stats tests/t-sum
check_LTLIBRARIES += tests/libcases.la
tests_libcases_la_SOURCES = tests/cases.c tests/cases.h tests/ops.c tests/ops.h tests/rounding.c \
  tests/rounding.h
tests_libcases_la_CPPFLAGS = $(test_cppflags)
tests_libcases_la_CFLAGS = $(test_cflags)
oracle_ldadd = tests/libcases.la sim/liboracle.la $(test_ldadd) $(MPFR_LIBS)
tests_t_arith_SOURCES = tests/t-arith.c
tests_t_arith_CPPFLAGS = $(test_cppflags)
tests_t_arith_CFLAGS = $(test_cflags)
tests_t_arith_LDADD = $(oracle_ldadd)
tests_t_arith_array_SOURCES = tests/t-arith-array.c
tests_t_arith_array_CPPFLAGS = $(test_cppflags)
tests_t_arith_array_CFLAGS = $(test_cflags)
tests_t_arith_array_LDADD = $(oracle_ldadd)
tests_t_arith_fma_SOURCES = tests/t-arith-fma.c
tests_t_arith_fma_CPPFLAGS = $(test_cppflags)
tests_t_arith_fma_CFLAGS = $(test_cflags)
tests_t_arith_fma_LDADD = $(oracle_ldadd) -lm
tests_t_arith_wide_SOURCES = tests/t-arith-wide.c
tests_t_arith_wide_CPPFLAGS = $(test_cppflags)
tests_t_arith_wide_CFLAGS = $(test_cflags)
tests_t_arith_wide_LDADD = $(oracle_ldadd) -lm
tests_t_arrays_SOURCES = tests/t-arrays.c
tests_t_arrays_CPPFLAGS = $(test_cppflags)
tests_t_arrays_CFLAGS = $(test_cflags)
tests_t_arrays_LDADD = $(oracle_ldadd)
tests_t_codes_SOURCES = tests/t-codes.c
tests_t_codes_CPPFLAGS = $(test_cppflags)
tests_t_codes_CFLAGS = $(test_cflags)
tests_t_codes_LDADD = $(oracle_ldadd)
tests_t_dot_SOURCES = tests/t-dot.c tests/dotcases.c tests/dotcases.h
tests_t_dot_CPPFLAGS = $(test_cppflags)
tests_t_dot_CFLAGS = $(test_cflags)
tests_t_dot_LDADD = $(oracle_ldadd) -lm
tests_t_round_SOURCES = tests/t-round.c
tests_t_round_CPPFLAGS = $(test_cppflags)
tests_t_round_CFLAGS = $(test_cflags)
tests_t_round_LDADD = $(oracle_ldadd)
tests_t_round64_SOURCES = tests/t-round64.c
tests_t_round64_CPPFLAGS = $(test_cppflags)
tests_t_round64_CFLAGS = $(test_cflags)
tests_t_round64_LDADD = $(oracle_ldadd)
tests_t_stats_SOURCES = tests/t-stats.c tests/exact.c tests/exact.h
tests_t_stats_CPPFLAGS = $(test_cppflags)
tests_t_stats_CFLAGS = $(test_cflags)
tests_t_stats_LDADD = $(test_ldadd) $(MPFR_LIBS)
tests_t_sum_SOURCES = tests/t-sum.c tests/exact.c tests/exact.h
tests_t_sum_CPPFLAGS = $(test_cppflags)
tests_t_sum_CFLAGS = $(test_cflags)
tests_t_sum_LDADD = $(test_ldadd) $(MPFR_LIBS)
tests_t_adaptive_SOURCES = tests/t-adaptive.c
tests_t_adaptive_CPPFLAGS = $(test_cppflags)
tests_t_adaptive_CFLAGS = $(test_cflags)
tests_t_adaptive_LDADD = $(test_ldadd) $(MPFR_LIBS) -lm
tests_t_block_SOURCES = tests/t-block.c tests/blockcompare.c tests/blockcompare.h \
  tests/blockinput.c tests/blockinput.h tests/blockoracle.c tests/blockoracle.h
tests_t_block_CPPFLAGS = $(test_cppflags)
tests_t_block_CFLAGS = $(test_cflags)
tests_t_block_LDADD = $(test_ldadd) $(MPFR_LIBS) -lm
tests_t_block_elements_SOURCES = tests/t-block-elements.c tests/blockinput.c tests/blockinput.h \
  tests/blockoracle.c tests/blockoracle.h
tests_t_block_elements_CPPFLAGS = $(test_cppflags)
tests_t_block_elements_CFLAGS = $(test_cflags)
tests_t_block_elements_LDADD = $(test_ldadd) $(MPFR_LIBS) -lm
tests_t_block_hadamard_SOURCES = tests/t-block-hadamard.c tests/blockinput.c tests/blockinput.h \
  tests/blockoracle.c tests/blockoracle.h
tests_t_block_hadamard_CPPFLAGS = $(test_cppflags)
tests_t_block_hadamard_CFLAGS = $(test_cflags)
tests_t_block_hadamard_LDADD = $(test_ldadd) $(MPFR_LIBS) -lm
tests_t_block_outputs_SOURCES = tests/t-block-outputs.c tests/blockcompare.c \
  tests/blockcompare.h tests/blockinput.c tests/blockinput.h tests/blockoracle.c \
  tests/blockoracle.h
tests_t_block_outputs_CPPFLAGS = $(test_cppflags)
tests_t_block_outputs_CFLAGS = $(test_cflags)
tests_t_block_outputs_LDADD = $(test_ldadd) $(MPFR_LIBS) -lm
tests_t_block_rules_SOURCES = tests/t-block-rules.c tests/blockoracle.c tests/blockoracle.h
tests_t_block_rules_CPPFLAGS = $(test_cppflags)
tests_t_block_rules_CFLAGS = $(test_cflags)
tests_t_block_rules_LDADD = $(test_ldadd) $(MPFR_LIBS) -lm
tests_t_gradient_SOURCES = tests/t-gradient.c tests/gradientinput.c tests/gradientinput.h \
  tests/rounded.h
tests_t_gradient_CPPFLAGS = $(test_cppflags)
tests_t_gradient_CFLAGS = $(test_cflags)
tests_t_gradient_LDADD = $(test_ldadd) $(MPFR_LIBS) -lm
tests_t_gradient_clip_SOURCES = tests/t-gradient-clip.c tests/gradientinput.c \
  tests/gradientinput.h tests/rounded.h
tests_t_gradient_clip_CPPFLAGS = $(test_cppflags)
tests_t_gradient_clip_CFLAGS = $(test_cflags)
tests_t_gradient_clip_LDADD = $(test_ldadd) $(MPFR_LIBS) -lm
tests_t_gradient_reduce_SOURCES = tests/t-gradient-reduce.c tests/gradientinput.c \
  tests/gradientinput.h tests/rounded.h
tests_t_gradient_reduce_CPPFLAGS = $(test_cppflags)
tests_t_gradient_reduce_CFLAGS = $(test_cflags)
tests_t_gradient_reduce_LDADD = $(test_ldadd) $(MPFR_LIBS) -lm
tests_t_optim_SOURCES = tests/t-optim.c tests/optiminput.c tests/optiminput.h tests/optimexact.h \
  tests/optimkernels.h tests/optimoracle.h tests/rounded.h
tests_t_optim_CPPFLAGS = $(test_cppflags)
tests_t_optim_CFLAGS = $(test_cflags)
tests_t_optim_LDADD = $(test_ldadd) $(MPFR_LIBS) -lm
tests_t_optim_contract_SOURCES = tests/t-optim-contract.c tests/optiminput.c tests/optiminput.h \
  tests/optimexact.h tests/optimoracle.h tests/rounded.h
tests_t_optim_contract_CPPFLAGS = $(test_cppflags)
tests_t_optim_contract_CFLAGS = $(test_cflags)
tests_t_optim_contract_LDADD = $(test_ldadd) $(MPFR_LIBS) -lm
tests_t_optim_math_SOURCES = tests/t-optim-math.c tests/optiminput.c tests/optiminput.h \
  tests/optimexact.h tests/optimoracle.h tests/rounded.h
tests_t_optim_math_CPPFLAGS = $(test_cppflags)
tests_t_optim_math_CFLAGS = $(test_cflags)
tests_t_optim_math_LDADD = $(test_ldadd) $(MPFR_LIBS) -lm
tests_t_optim_stores_SOURCES = tests/t-optim-stores.c tests/optiminput.c tests/optiminput.h \
  tests/optimexact.h tests/optimoracle.h tests/rounded.h
tests_t_optim_stores_CPPFLAGS = $(test_cppflags)
tests_t_optim_stores_CFLAGS = $(test_cflags)
tests_t_optim_stores_LDADD = $(test_ldadd) $(MPFR_LIBS) -lm
tests_t_recipe_SOURCES = tests/t-recipe.c tests/recipeoracle.c tests/recipeoracle.h
tests_t_recipe_CPPFLAGS = $(test_cppflags)
tests_t_recipe_CFLAGS = $(test_cflags)
tests_t_recipe_LDADD = $(test_ldadd) $(MPFR_LIBS) -lm
tests_t_recipe_scale_SOURCES = tests/t-recipe-scale.c tests/recipeoracle.c tests/recipeoracle.h
tests_t_recipe_scale_CPPFLAGS = $(test_cppflags)
tests_t_recipe_scale_CFLAGS = $(test_cflags)
tests_t_recipe_scale_LDADD = $(test_ldadd) $(MPFR_LIBS) -lm
mpfr_tests += tests/t-layer-math
tests_t_layer_math_SOURCES = tests/t-layer-math.c
tests_t_layer_math_CPPFLAGS = $(test_cppflags)
tests_t_layer_math_CFLAGS = $(test_cflags)
tests_t_layer_math_LDADD = $(test_ldadd) $(MPFR_LIBS)
check_PROGRAMS += $(mpfr_tests) tests/x-arith tests/x-sweep
TESTS += $(mpfr_tests)
tests_x_arith_SOURCES = tests/x-arith.c tests/sweep.c tests/sweep.h
tests_x_arith_CPPFLAGS = $(test_cppflags)
tests_x_arith_CFLAGS = $(test_cflags)
tests_x_arith_LDADD = $(oracle_ldadd)
tests_x_sweep_SOURCES = tests/x-sweep.c tests/sweep.c tests/sweep.h
tests_x_sweep_CPPFLAGS = $(test_cppflags)
tests_x_sweep_CFLAGS = $(test_cflags)
tests_x_sweep_LDADD = $(oracle_ldadd)
endif

# Against NVIDIA's headers, compiled as plain C.
if HAVE_CUDA_HEADERS
check_PROGRAMS += tests/t-cudahdr
TESTS += tests/t-cudahdr
tests_t_cudahdr_SOURCES = tests/t-cudahdr.c
tests_t_cudahdr_CPPFLAGS = $(test_cppflags) $(CUDA_CPPFLAGS)
tests_t_cudahdr_CFLAGS = -std=gnu11 $(FP_CFLAGS) $(VIS_CFLAGS) $(SAN_CFLAGS) $(CHECK_CFLAGS)
tests_t_cudahdr_LDADD = $(test_ldadd)
endif
endif
EXTRA_DIST += tests/README.md tests/golden/round.sha256 \
  tests/golden/train-cnn-bf16.digests \
  tests/golden/train-cnn-fp8.digests \
  tests/golden/train-cnn-sequential.digests \
  tests/golden/train-mlp-ampere.digests \
  tests/golden/train-mlp-bf16.digests \
  tests/golden/train-mlp-exact.digests \
  tests/golden/train-mlp-fp16.digests \
  tests/golden/train-mlp-fp32.digests \
  tests/golden/train-mlp-fp8.digests \
  tests/golden/train-mlp-mxfp8.digests \
  tests/golden/train-mlp-stochastic.digests \
  tests/golden/train-mlp-tf32.digests \
  tests/cli/common.sh tests/cli/plot/report.json tests/cli/plot/dot.json tests/cli/plot/train.json \
  tests/fuzz/corpus/npy-bfloat16 \
  tests/fuzz/corpus/npy-big-fortran \
  tests/fuzz/corpus/npy-f4 \
  tests/fuzz/corpus/npy-void \
  tests/fuzz/corpus/npz-deflated \
  tests/fuzz/corpus/npz-none \
  tests/fuzz/corpus/npz-stored \
  tests/fuzz/corpus/npz-zip64-end \
  tests/fuzz/corpus/npz-zip64-local \
  tests/fuzz/corpus/safetensors-escapes \
  tests/fuzz/corpus/safetensors-none \
  tests/fuzz/corpus/safetensors-packed \
  tests/fuzz/corpus/safetensors-two \
  tests/fuzz/policies/aliases \
  tests/fuzz/policies/all-keys \
  tests/fuzz/policies/bytes \
  tests/fuzz/policies/documents \
  tests/fuzz/policies/escapes \
  tests/fuzz/policies/kahan \
  tests/fuzz/policies/nested \
  tests/fuzz/policies/opt-level \
  tests/fuzz/policies/twice \
  tests/fuzz/policies/utf-16 \
  tests/logs/apex-runaway.txt \
  tests/logs/apex.txt \
  tests/logs/deepspeed-fused.txt \
  tests/logs/deepspeed.txt \
  tests/logs/fairseq.txt \
  tests/logs/megatron-interval.txt \
  tests/logs/megatron.txt \
  tests/logs/resume.txt

# Writes recorded vectors that never were, for tests/cli/verify.sh.
check_PROGRAMS += tests/mkvectors
tests_mkvectors_SOURCES = tests/mkvectors.c
tests_mkvectors_CPPFLAGS = $(test_cppflags)
tests_mkvectors_CFLAGS = $(AM_CFLAGS) $(LIBZIP_CFLAGS)
tests_mkvectors_LDADD = lib/libmpsim.la $(LIBZIP_LIBS)

# The fuzz target of the readers, as a plain program over its corpus (see tests/fuzz/fuzz-trace.c
# for libFuzzer).
check_PROGRAMS += tests/fuzz/fuzz-trace
tests_fuzz_fuzz_trace_SOURCES = tests/fuzz/fuzz-trace.c tests/fuzz/fuzzfile.h
tests_fuzz_fuzz_trace_CPPFLAGS = $(test_cppflags) -DFUZZ_STANDALONE
tests_fuzz_fuzz_trace_LDADD = sim/libsim.la
check_PROGRAMS += tests/fuzz/fuzz-policy
tests_fuzz_fuzz_policy_SOURCES = tests/fuzz/fuzz-policy.c tests/fuzz/fuzzfile.h
tests_fuzz_fuzz_policy_CPPFLAGS = $(test_cppflags) -DFUZZ_STANDALONE
tests_fuzz_fuzz_policy_LDADD = sim/libsim.la
dist_check_SCRIPTS += tests/fuzz/corpus.sh
TESTS += tests/fuzz/corpus.sh

# All 2^32 binary32 inputs, all 2^32 pairs of fp16. make check with ten times the random inputs and without shortcuts
# (NVIDIA's headers over all 2^32 inputs, too). The unit tests once for each instruction set.
# Everything under valgrind.
check-long: $(check_PROGRAMS) $(check_LTLIBRARIES)
	@test -x tests/x-sweep || { echo "check-long needs MPFR and Check"; exit 1; }
	./tests/x-sweep
	./tests/x-arith
	MPSIM_TEST_EXPENSIVE=1 MPSIM_SRCDIR=$(abs_top_srcdir) ./tests/t-train-digests
check-wide:
	MPSIM_TEST_EXPENSIVE=1 MPSIM_TEST_MULTIPLIER=10 $(MAKE) $(AM_MAKEFLAGS) check
check-isa:
	@for i in generic avx2 avx512; do echo "== MPSIM_ISA=$$i"; \
	  MPSIM_ISA=$$i $(MAKE) $(AM_MAKEFLAGS) check || exit 1; done
check-valgrind:
	$(MAKE) $(AM_MAKEFLAGS) check \
	  LOG_COMPILER="$(LIBTOOL) --mode=execute valgrind -q --error-exitcode=1"
.PHONY: check-long check-wide check-isa check-valgrind

# What frameworks recorded, reproduced: values and mismatches, a line each.
recorded_tests = tests/t-scaler-recorded tests/t-gradient-recorded tests/t-optim-recorded \
  tests/t-optim-training tests/t-block-recorded
recorded: $(recorded_tests)
	@{ for t in $(recorded_tests); do echo "== $$t"; \
	  MPSIM_SRCDIR=$(abs_top_srcdir) CK_TAP_LOG_FILE_NAME=- CK_VERBOSITY=silent ./$$t | \
	    grep -e '^#' -e '^not ok' | grep -v 'instruction set'; done; \
	for t in sgd:autocast adam:autocast adamw:adamw half:half; do \
	  echo "== mpsim replay, data/amp-mlp/$${t%:*}"; \
	  ./mpsim replay -P $(srcdir)/data/amp-mlp/$${t#*:}.yaml $(srcdir)/data/amp-mlp/$${t%:*} | \
	    sed -n 's/^record  */# /p'; done; } | \
	  awk '{ print } / runs,/ { for (i = 2; i <= NF; i++) if ($$i == "runs,") n = $$(i - 1); \
	      if (/^# torch-/) torch += n; else others += n } \
	    / cases,.* steps \(/ { cases += $$4; steps += $$6 } \
	    END { print "== in all: optimizer runs of PyTorch " torch ", of torchao and optimi " \
	      others "; scaler runs " cases ", steps " steps }'
.PHONY: recorded

# Speed, as ratios to memcpy, or to a plain loop, in the same run; CSV.
EXTRA_PROGRAMS = tests/bench/bench tests/bench/dot tests/bench/steps
tests_bench_bench_SOURCES = tests/bench/bench.c tests/bench/timing.h
tests_bench_bench_CPPFLAGS = $(test_cppflags)
tests_bench_bench_LDADD = lib/libmpsim.la
tests_bench_dot_SOURCES = tests/bench/dot.c tests/bench/timing.h
tests_bench_dot_CPPFLAGS = $(test_cppflags)
tests_bench_dot_LDADD = lib/libmpsim.la
tests_bench_steps_SOURCES = tests/bench/steps.c tests/bench/timing.h
tests_bench_steps_CPPFLAGS = $(test_cppflags)
tests_bench_steps_LDADD = lib/libmpsim.la
CLEANFILES += tests/bench/bench tests/bench/dot tests/bench/steps
bench: tests/bench/bench tests/bench/dot tests/bench/steps
	./tests/bench/bench
	./tests/bench/dot
	./tests/bench/steps
.PHONY: bench
