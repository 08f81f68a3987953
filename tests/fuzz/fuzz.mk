# fuzz.mk -- the fuzz targets with libFuzzer: `make fuzz` calls this (GNU make) with the variables of the Makefile. All
# that the targets need is compiled anew, with sanitizers, into fuzz-build/.
vpath %.c $(srcdir)
out = fuzz-build
targets = $(patsubst $(srcdir)/tests/fuzz/%.c,%,$(wildcard $(srcdir)/tests/fuzz/fuzz-*.c))
sources = tests/fuzz/input.c $(filter-out sim/verify/mpfr% sim/verify/inputs% gpu/%,$(filter %.c,$(SOURCES)))
objects = $(sources:%.c=$(out)/%.o)

sanitizers = -fsanitize=address,undefined,float-cast-overflow -fno-sanitize-recover=all
FUZZ_CFLAGS = -g -O2 -fno-omit-frame-pointer
compile = $(FUZZ_CC) -std=c17 $(FP_CFLAGS) $(VIS_CFLAGS) $(sanitizers) -fsanitize=fuzzer-no-link $(compared) $(FUZZ_CFLAGS) \
  -I. -I$(srcdir)/lib/include -I$(srcdir) -I$(srcdir)/data/digits -I$(srcdir)/data/text -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 \
  -DMPSIM_PLOTS_DIR='""' -DMPSIM_POLICIES_DIR='""' $(LIBRARY_CFLAGS)

# Comparisons are traced, which finds magic words and is slow, where input is read.
readers = lib/dot/model lib/format/% lib/round/round lib/scaler/text lib/train/digests lib/train/run/% lib/train/state \
  sim/cli/t% sim/merge/% sim/pickle/% sim/policy/% sim/scaler/lo% sim/scaler/pattern sim/scaler/spec sim/scaler/words \
  sim/stat/bytes sim/stat/pa% sim/stat/settings sim/trace/% sim/train/% sim/verify/vectors

all: $(targets:%=$(out)/%)

avx2 = $(filter %/avx2.o,$(objects))
avx512 = $(filter %/avx512.o,$(objects))
$(avx2): compile += $(AVX2_CFLAGS)
$(avx512): compile += $(AVX512_CFLAGS)

compared = -fno-sanitize-coverage=trace-cmp
$(readers:%=$(out)/%.o): compared =

$(out)/%.o: %.c config.h $(srcdir)/tests/fuzz/fuzz.mk
	@mkdir -p $(@D)
	@echo "  FUZZ_CC  $@"
	@$(compile) -MMD -c -o $@ $<

$(out)/fuzzed.a: $(objects)
	@rm -f $@
	@ar rc $@ $(objects)

$(out)/fuzz-%: $(out)/tests/fuzz/fuzz-%.o $(out)/fuzzed.a
	@echo "  FUZZ_LD  $@"
	@$(FUZZ_CC) $(sanitizers) -fsanitize=fuzzer $(FUZZ_CFLAGS) -o $@ $< $(out)/fuzzed.a $(LIBRARY_LIBS) -lm

.SECONDARY:
-include $(objects:.o=.d) $(targets:%=$(out)/tests/fuzz/%.d)
