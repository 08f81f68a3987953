# tests/ -- unit tests (Check, TAP), proofs (MPFR), tests of the program (shell).
TEST_EXTENSIONS = .sh
LOG_DRIVER = env AM_TAP_AWK='$(AWK)' $(SHELL) $(top_srcdir)/build-aux/tap-driver.sh
SH_LOG_DRIVER = $(LOG_DRIVER)
AM_TESTS_ENVIRONMENT = \
  CK_TAP_LOG_FILE_NAME=-; CK_VERBOSITY=silent; \
  MPSIM=$(abs_top_builddir)/mpsim; MPSIM_SRCDIR=$(abs_top_srcdir); \
  MPSIM_PLOTS=$(abs_top_srcdir)/plots; \
  export CK_TAP_LOG_FILE_NAME CK_VERBOSITY MPSIM MPSIM_SRCDIR MPSIM_PLOTS;
