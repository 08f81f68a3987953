# lib/ -- libmpsim: the numerics. libc and libm only.
lib_LTLIBRARIES += lib/libmpsim.la
mpsimincludedir = $(includedir)/mpsim
dist_mpsiminclude_HEADERS = \
  lib/mpsim/api.h lib/mpsim/format.h lib/mpsim/mpsim.h lib/mpsim/rng.h lib/mpsim/round.h \
  lib/mpsim/stats.h lib/mpsim/status.h
lib_libmpsim_la_SOURCES = \
  lib/format.c lib/rng.c lib/rng.h lib/round.c lib/scalar.h lib/stats.c lib/status.c \
  lib/sum.c lib/version.c
lib_libmpsim_la_LDFLAGS = $(AM_LDFLAGS) -version-info $(MPSIM_LT_VERSION) -no-undefined
pkgconfig_DATA += lib/mpsim.pc
EXTRA_DIST += lib/README.md
