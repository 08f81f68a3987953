# fuzz.mk -- the fuzz targets with libFuzzer: `make fuzz` calls this (GNU make) with the variables of the Makefile. All
# that the targets need is compiled anew, with sanitizers, into fuzz-build/; for `make fuzz-coverage` (kind = coverage) as
# programs that run the files they are given and count lines, into fuzz-build/coverage/.
vpath %.c $(srcdir)
kind = fuzz
out = $(out_$(kind))
out_fuzz = fuzz-build
out_coverage = fuzz-build/coverage
targets = $(patsubst $(srcdir)/tests/fuzz/%.c,%,$(wildcard $(srcdir)/tests/fuzz/fuzz-*.c))
sources = tests/fuzz/input.c tests/fuzz/members.c $(filter-out sim/verify/mpfr% sim/verify/inputs% gpu/%,$(filter %.c,$(SOURCES)))
objects = $(sources:%.c=$(out)/%.o)

checked_fuzz = -fsanitize=address,undefined,float-cast-overflow -fno-sanitize-recover=all
linked_fuzz = -fsanitize=fuzzer
FUZZ_CFLAGS = -g -O2 -fno-omit-frame-pointer
compile_fuzz = $(checked_fuzz) -fsanitize=fuzzer-no-link $(compared) $(FUZZ_CFLAGS)
checked_coverage = -fprofile-instr-generate -fcoverage-mapping
compile_coverage = $(checked_coverage) -O0 -DFUZZ_STANDALONE
compile = $(FUZZ_CC) -std=c17 $(FP_CFLAGS) $(VIS_CFLAGS) $(compile_$(kind)) \
  -I. -I$(srcdir)/lib/include -I$(srcdir) -I$(srcdir)/data/digits -I$(srcdir)/data/text -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 \
  -DMPSIM_PLOTS_DIR='""' -DMPSIM_POLICIES_DIR='""' $(LIBRARY_CFLAGS)

# Comparisons are traced, which finds magic words and costs a third of the time, where no dictionary (dict/) has the words.
compared_in = lib/dot/model lib/format/% lib/round/round lib/scaler/text lib/train/run/% sim/cli/t% sim/merge/% \
  sim/scaler/pattern sim/scaler/spec sim/traininglog/words sim/stat/bytes sim/stat/pa% sim/stat/settings sim/trace/layout \
  sim/trace/llmc sim/trace/npyheader sim/trace/onnx% sim/trace/chunks sim/trace/msgpack sim/trace/zeroname sim/train/% sim/verify/vectors

all: $(targets:%=$(out)/%)

avx2 = $(filter %/avx2.o,$(objects))
avx512 = $(filter %/avx512.o,$(objects))
$(avx2): compile += $(AVX2_CFLAGS)
$(avx512): compile += $(AVX512_CFLAGS)

compared = -fno-sanitize-coverage=trace-cmp
$(compared_in:%=$(out)/%.o): compared =

$(out)/%.o: %.c config.h $(srcdir)/tests/fuzz/fuzz.mk
	@mkdir -p $(@D)
	@echo "  FUZZ_CC  $@"
	@$(compile) -MMD -MP -c -o $@ $<

$(out)/fuzzed.a: $(objects)
	@rm -f $@
	@ar rc $@ $(objects)

# Targets of archives and headers with lengths have mutations of their own.
mutated_fuzz = checkpoint folder operands pair torch trace
$(mutated_$(kind):%=$(out)/fuzz-%): $(out)/tests/fuzz/mutate.o

$(out)/fuzz-%: $(out)/tests/fuzz/fuzz-%.o $(out)/fuzzed.a
	@echo "  FUZZ_LD  $@"
	@$(FUZZ_CC) $(checked_$(kind)) $(linked_$(kind)) -o $@ $(filter %.o,$^) $(out)/fuzzed.a $(LIBRARY_LIBS) -lm

.SECONDARY:
-include $(objects:.o=.d) $(targets:%=$(out)/tests/fuzz/%.d)
