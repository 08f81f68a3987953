# sim/ -- the mpsim program: all but main.c in a convenience library, so that tests can link it.
trace_sources = \
  sim/trace/dtype.c sim/trace/impl.h sim/trace/layout.c sim/trace/memory.c \
  sim/trace/names.c sim/trace/npy.c sim/trace/npyheader.c sim/trace/npz.c \
  sim/trace/outfile.c sim/trace/outfile.h sim/trace/raw.c sim/trace/read.c \
  sim/trace/safetensors.c sim/trace/source.c sim/trace/text.c sim/trace/trace.c \
  sim/trace/trace.h sim/trace/tree.c sim/trace/writer.c sim/trace/zipdir.c

# mpsim verify: what each group needs decides what is compiled. The oracle is a library of its own,
# which the tests use, too.
verify_sources = sim/cmd_verify.c sim/verify/architecture.c sim/verify/groups.c sim/verify/replay.c \
  sim/verify/report.c sim/verify/vectors.c sim/verify/vectors.h sim/verify/verify.h
verify_libs =
if HAVE_MPFR
verify_sources += sim/verify/inputs.c sim/verify/inputs.h sim/verify/mpfr.c sim/verify/mpfr_arith.c \
  sim/verify/mpfr_dot.c
noinst_LTLIBRARIES += sim/liboracle.la
sim_liboracle_la_SOURCES = sim/verify/oracle.c sim/verify/oracle.h sim/verify/oracle_arith.c \
  sim/verify/oracle_arith.h sim/verify/oracle_dot.c sim/verify/oracle_dot.h
sim_liboracle_la_CPPFLAGS = $(sim_cppflags)
sim_liboracle_la_LIBADD = $(MPFR_LIBS)
verify_libs += sim/liboracle.la
endif
if HAVE_CUDA_HEADERS
noinst_LTLIBRARIES += sim/libnvidia.la
sim_libnvidia_la_SOURCES = sim/verify/nvidia.c
sim_libnvidia_la_CPPFLAGS = $(sim_cppflags) $(CUDA_CPPFLAGS)
sim_libnvidia_la_CFLAGS = -std=gnu11 $(FP_CFLAGS) $(VIS_CFLAGS) $(SAN_CFLAGS)
verify_libs += sim/libnvidia.la
endif
if HAVE_CUDA
verify_sources += sim/verify/gpu.c
verify_libs += gpu/libgpu.la $(CUDA_LIBS)
endif

# The trainer and its CPU engine: without options, JSON and YAML, so that gpu/ links it alone.
noinst_LTLIBRARIES += sim/libtrain.la
sim_libtrain_la_SOURCES = \
  sim/train/backward.c sim/train/batch.c sim/train/compare.c sim/train/cpu.c sim/train/cpu.h \
  sim/train/cpulayers.c sim/train/cpuupdate.c sim/train/digests.c sim/train/digests.h sim/train/cpuupdate.c sim/train/engine.h sim/train/forward.c \
  sim/train/network.c sim/train/params.c sim/train/pass.c sim/train/planfields.c \
  sim/train/planfields.h sim/train/plantext.c sim/train/state.c sim/train/train.c \
  sim/train/train.h sim/train/trainer.h sim/train/update.c sim/train/visit.c
sim_libtrain_la_CPPFLAGS = $(sim_cppflags) -I$(top_srcdir)/data/digits
sim_libtrain_la_LIBADD = lib/libmpsim.la
EXTRA_DIST += data/digits/digits.inc

noinst_LTLIBRARIES += sim/libsim.la
sim_libsim_la_SOURCES = \
  sim/cmd.h sim/cmd_calc.c sim/cmd_cast.c sim/cmd_dot.c sim/cmd_formats.c sim/cmd_info.c sim/cmd_plot.c sim/cmd_replay.c \
  sim/cmd_scaler.c sim/cmd_stat.c sim/cmd_train.c \
  sim/commands.c sim/doterror.c sim/doterror.h sim/input.c sim/input.h sim/inputsteps.c sim/inputsteps.h sim/models.c sim/models.h sim/nameindex.c sim/nameindex.h sim/operand.c sim/operand.h sim/options.c sim/options.h sim/output.c \
  sim/output.h sim/parallel.c sim/parallel.h \
  sim/plot.c sim/plot.h sim/plotaccumulation.c sim/plotdata.c sim/plotdata.h sim/plotfigures.c \
  sim/plotreport.c sim/plotreport.h sim/plotrun.c sim/plotruns.c sim/plotruns.h sim/plotsweep.c sim/plotsweep.h sim/plottext.c sim/plottraining.c \
  sim/policy.c sim/policy.h sim/policykeys.c sim/policykeys.h sim/policylist.c sim/policylist.h \
  sim/policyparts.c sim/policytable.c sim/policyyaml.c sim/policyyaml.h sim/replay.c sim/replay.h \
  sim/replaycast.c sim/replaycsv.c sim/replayjson.c sim/replaymeasure.c sim/replayplan.c \
  sim/replayrecord.c sim/replayreport.c sim/replayreport.h sim/replayrun.h sim/replaystep.c \
  sim/replaytotal.c sim/replayweights.c \
  sim/scaleradaptive.c sim/scaleradaptive.h sim/scalerjson.c sim/scalerlog.c sim/scalerlog.h sim/scalermatch.c sim/scalerpattern.c \
  sim/scalerpattern.h sim/scalerreplay.c sim/scalerreplay.h sim/scalerreport.c sim/scalerreport.h \
  sim/scalerrun.c sim/scalerrun.h sim/scalertable.c sim/scalertrack.c sim/scalertrack.h \
  sim/statreport.c sim/statreport.h sim/stream.c sim/stream.h sim/target.c sim/target.h sim/tensorstat.c \
  sim/tensorstat.h sim/traincheckpoint.c sim/traincheckpoint.h sim/traindevice.c sim/traindevice.h sim/traindigests.c sim/traindigests.h \
  sim/trainmeter.c sim/trainmeter.h sim/trainpolicy.c sim/trainpolicy.h \
  sim/trainrecord.c sim/trainrecord.h sim/trainreport.c sim/trainreport.h sim/trainrun.c \
  sim/trainrun.h \
  sim/trainstore.c sim/trainstore.h sim/traintable.c sim/trainwords.c sim/trainwords.h \
  $(trace_sources) $(verify_sources) \
  sim/report/json.c sim/report/report.h sim/report/table.c
sim_cppflags = $(AM_CPPFLAGS) -I$(top_srcdir)/sim -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64
sim_libsim_la_CPPFLAGS = $(sim_cppflags) -DMPSIM_PLOTS_DIR='"$(plotsdir)"' \
  -DMPSIM_POLICIES_DIR='"$(policiesdir)"'
sim_libsim_la_CFLAGS = $(AM_CFLAGS) $(OPENMP_CFLAGS) $(JANSSON_CFLAGS) $(LIBZIP_CFLAGS) \
  $(YAML_CFLAGS)
sim_libsim_la_LIBADD = sim/libtrain.la lib/libmpsim.la $(JANSSON_LIBS) $(LIBZIP_LIBS) $(YAML_LIBS)

# folders that are compiled in: another --prefix compiles them anew
sim/libsim_la-policy.lo sim/libsim_la-plot.lo: Makefile

bin_PROGRAMS += mpsim
mpsim_SOURCES = sim/main.c
mpsim_CPPFLAGS = $(sim_cppflags)
mpsim_CFLAGS = $(AM_CFLAGS) $(OPENMP_CFLAGS)
mpsim_LDADD = sim/libsim.la $(verify_libs)
mpsim_LDFLAGS = $(AM_LDFLAGS) $(CUDA_LDFLAGS)
EXTRA_DIST += sim/README.md
