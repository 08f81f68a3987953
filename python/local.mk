# python/ -- the Python package over the shared library: doc/reference/python.md. Nothing of it is built by make.
EXTRA_DIST += python/README.md python/pyproject.toml python/backend/mpsim_backend.py \
  python/backend/licences/GPL-3 python/backend/licences/LGPL-3 python/bench.py \
  python/check.sh python/manylinux.sh python/nocrypto.sh python/sdist.sh python/stat_cost.py python/watch_cost.py \
  python/src/mpsim/__init__.py python/src/mpsim/__main__.py python/src/mpsim/_advice.py python/src/mpsim/_arrays.py \
  python/cuda_check.py python/src/mpsim/_cuda.py python/tests/test_cuda.py \
  python/src/mpsim/_blocks.py python/src/mpsim/_cast.py python/src/mpsim/_dot.py python/src/mpsim/_error.py \
  python/src/mpsim/_figures.py python/src/mpsim/_formats.py python/src/mpsim/_inspect.py python/src/mpsim/_library.py \
  python/src/mpsim/_lines.py python/src/mpsim/_loops.py python/src/mpsim/_numbers.py \
  python/src/mpsim/_open.py python/src/mpsim/_optim.py python/src/mpsim/_options.py python/src/mpsim/_policy.py \
  python/src/mpsim/_program.py python/src/mpsim/_random.py python/src/mpsim/_reports.py python/src/mpsim/_scaler.py python/src/mpsim/_stat.py python/src/mpsim/_statistics.py \
  python/src/mpsim/_room.py python/src/mpsim/_roundoff.py python/src/mpsim/_typing.py python/src/mpsim/_updates.py python/src/mpsim/_watch.py python/src/mpsim/_watching.py python/src/mpsim/_windows.py python/src/mpsim/callbacks.py python/src/mpsim/_inputs.py python/src/mpsim/_invariance.py python/src/mpsim/_judge.py python/src/mpsim/_tolerance.py python/src/mpsim/testing.py python/src/mpsim/py.typed python/src/mpsim/record.py \
  python/src/mpsim/record.pyi \
  python/src/mpsim/emulate/__init__.py python/src/mpsim/emulate/__main__.py python/src/mpsim/emulate/_apart.py python/src/mpsim/emulate/_audit.py python/src/mpsim/emulate/_bisect.py python/src/mpsim/emulate/_compare.py python/src/mpsim/emulate/_counting.py python/src/mpsim/emulate/_record.py python/src/mpsim/emulate/_report.py python/src/mpsim/emulate/_said.py python/src/mpsim/emulate/_script.py python/src/mpsim/emulate/_doctor.py python/src/mpsim/emulate/_attention.py python/src/mpsim/emulate/_between.py \
  python/src/mpsim/emulate/_claims.py python/src/mpsim/emulate/_core.py python/src/mpsim/emulate/_convolutions.py python/src/mpsim/emulate/_delayed.py \
  python/src/mpsim/emulate/_emulator.py python/src/mpsim/emulate/_fused.py python/src/mpsim/emulate/_grouped.py python/src/mpsim/emulate/_layers.py python/src/mpsim/emulate/_mode.py python/src/mpsim/emulate/_paths.py \
  python/src/mpsim/emulate/_optimizer.py python/src/mpsim/emulate/_rules.py python/src/mpsim/emulate/_scaling.py \
  python/src/mpsim/emulate/_plans.py python/src/mpsim/emulate/_products.py python/src/mpsim/emulate/_roles.py python/src/mpsim/emulate/_streams.py python/src/mpsim/emulate/_torchconv.py python/src/mpsim/emulate/_torchcpu.py \
  python/tests/conftest.py python/tests/test_arrays.py python/tests/test_blocks.py python/tests/test_callbacks.py python/tests/test_testing.py \
  python/tests/test_casts.py python/tests/test_dot.py python/tests/test_layout.py python/tests/test_odd.py python/tests/test_open.py python/tests/test_pages.py python/tests/test_papers.py \
  python/tests/test_peers.py python/tests/test_emulate.py python/tests/test_emulate_optimizer.py python/tests/test_policy.py python/tests/test_random.py \
  python/tests/emulate/autocast.py python/tests/emulate/networks.py python/tests/emulate/parity.py python/tests/emulate/peers.py \
  python/tests/emulate/test_autocast.py python/tests/emulate/test_networks.py \
  python/tests/emulate/test_operands.py python/tests/emulate/test_parity.py \
  python/tests/test_emulate_everyday.py python/tests/test_emulate_report.py python/tests/test_reports.py python/tests/test_scaler.py python/tests/test_schemas.py python/tests/test_tutorial.py python/tests/test_watch.py
# products by torch itself, and which torch is needed
EXTRA_DIST += python/bench_emulate.py python/src/mpsim/emulate/_casts.py python/src/mpsim/emulate/_needs.py python/tests/emulate/test_casts.py \
  python/tests/emulate/test_torches.py
# what emulate refuses, and model families that it is tried on
EXTRA_DIST += python/tests/emulate/README.md python/tests/emulate/families.tsv python/src/mpsim/emulate/_refusals.py python/tests/emulate/bugs.py python/tests/emulate/families.py \
  python/tests/emulate/judges.py python/tests/emulate/refusals.py python/tests/emulate/survey.py \
  python/tests/emulate/test_bugs.py python/tests/emulate/test_families.py python/tests/emulate/test_refusals.py
# products, layers and convolutions on arrays
EXTRA_DIST += python/src/mpsim/_attention.py python/src/mpsim/_convolution.py python/src/mpsim/_functions.py \
  python/src/mpsim/_layer.py python/src/mpsim/_product.py python/src/mpsim/_threads.py python/src/mpsim/_torchmm.py \
  python/src/mpsim/emulate/_operands.py python/tests/test_convolution.py python/tests/test_functions.py \
  python/tests/test_judge_packages.py python/tests/test_judge_stacks.py python/tests/test_layer.py python/tests/test_product.py python/tests/test_torchmm.py
# arrays on a device, operators of torch
EXTRA_DIST += python/cuda_emulate.py python/src/mpsim/_device.py python/src/mpsim/_doors.py python/src/mpsim/operators.py python/src/mpsim/emulate/_homes.py python/src/mpsim/emulate/_there.py \
  python/tests/test_doors.py python/tests/test_emulate_device.py python/tests/test_operators.py
# a whole model on the stand
EXTRA_DIST += python/src/mpsim/_asked.py python/src/mpsim/_classes.py python/src/mpsim/_guilty.py python/src/mpsim/_replay.py python/src/mpsim/_run.py python/src/mpsim/_stand.py python/src/mpsim/_verdict.py python/tests/standing.py python/tests/standing_ops.py python/tests/test_stand.py
PYTHON = python3

# The program of the wheel finds libraries in ../lib: its own, and those that they need (an rpath of the old kind is
# for all of them). libarchive is linked statically where that can be: of the shared one, a third of which we use, come
# 40 MB of libxml2 and ICU. The kernels of libmpsim are in the wheel once: its program takes them from its library.
python_link = $(mpsim_LINK) -Wl,--disable-new-dtags,-rpath,'$$ORIGIN/../lib' $(mpsim_OBJECTS)
python_needs = $(mpsim_LDADD:lib/libmpsim.a=-Llib/.libs -lmpsim)
python/program: mpsim$(EXEEXT) lib/libmpsim.la
	@$(MKDIR_P) python
	$(AM_V_CCLD)closure=$$(ldd ./mpsim | awk '/=> \// && !/lib[cm][.]so/ { print $$3 }'); \
	  static=$$(echo '$(python_needs)' | sed 's/-larchive/-Wl,--as-needed,-Bstatic -larchive -Wl,-Bdynamic/'); \
	  $(python_link) $$static $$closure $(LIBS) 2>/dev/null || $(python_link) $(python_needs) $(LIBS)
# libmpsim-trace of the wheel, which finds the libraries beside it in the same way.
trace_objects = -Wl,--whole-archive sim/libtracelib.a -Wl,--no-whole-archive sim/libjudge.a sim/libpolicy.a sim/libstat.a sim/libtrace.a \
  lib/threads/libparallel.a
# What is linked statically stays hidden.
trace_link = $(CC) $(base_cflags) $(PIC_CFLAGS) $(CFLAGS) $(AM_LDFLAGS) $(LDFLAGS) -shared -Wl,-soname,libmpsim-trace.so.0 \
  -Wl,--disable-new-dtags,-rpath,'$$ORIGIN' -Wl,--version-script=python/trace.map -o $@ $(trace_objects)
trace_needs = $(JANSSON_LIBS) $(LIBZIP_LIBS) $(YAML_LIBS) $(ZLIB_LIBS) $(LIBARCHIVE_LIBS) $(HDF5_LIBS) -Llib/.libs -lmpsim -lm -lpthread
python/libmpsim-trace.so.0: lib/libmpsim-trace.la
	@$(MKDIR_P) python
	@echo '{ global: mpsim_*; local: *; };' >python/trace.map
	$(AM_V_CCLD)closure=$$(ldd lib/.libs/libmpsim-trace.so.0 | awk '/=> \// && !/lib[cm][.]so|libmpsim/ { print $$3 }'); \
	  static=$$(echo '$(trace_needs)' | sed 's/-larchive/-Wl,--as-needed,-Bstatic -larchive -Wl,-Bdynamic/'); \
	  $(trace_link) $$static $$closure 2>/dev/null || $(trace_link) $(trace_needs)
# What the wheel has of the build, as make install lays it out.
python_stage = python/stage
python-stage: python/program python/libmpsim-trace.so.0 lib/libmpsim.la $(cuda_library)
	rm -rf $(python_stage)
	$(MKDIR_P) $(python_stage)/bin $(python_stage)/lib $(python_stage)/share/mpsim/policies $(python_stage)/share/mpsim/plots
	$(INSTALL_STRIP_PROGRAM) python/program $(python_stage)/bin/mpsim
	$(INSTALL_STRIP_PROGRAM) lib/.libs/libmpsim.so.0 $(python_stage)/lib/libmpsim.so.0
	$(INSTALL_STRIP_PROGRAM) python/libmpsim-trace.so.0 $(python_stage)/lib/libmpsim-trace.so.0
	for f in $(cuda_library); do $(INSTALL_STRIP_PROGRAM) $$f $(python_stage)/lib; done
	CC='$(CC)' sh $(srcdir)/python/nocrypto.sh ./mpsim $(python_stage)/lib
	for f in $(dist_policies_DATA); do $(INSTALL_DATA) $(srcdir)/$$f $(python_stage)/share/mpsim/policies; done
	for f in $(dist_plots_DATA); do $(INSTALL_DATA) $(srcdir)/$$f $(python_stage)/share/mpsim/plots; done
# make wheel: python/dist/mpsim-*.whl, of this build.
wheel: all
	@$(MKDIR_P) python/dist
	@rm -f python/dist/*.whl
	@cd python/dist && MPSIM_BUILD="$(abs_builddir)" PYTHONPATH="$(abs_srcdir)/python/backend" \
	  $(PYTHON) -B -c 'import mpsim_backend; print("python/dist/" + mpsim_backend.build_wheel("."))'
# libmpsim-cuda with a CPU for a device, for tests.
if HAVE_CXX
python_cuda = tests/gpu/cuda-host.so
EXTRA_LIBRARIES += tests/gpu/libcudahost.a
tests_gpu_libcudahost_a_SOURCES = tests/gpu/cuda_host.cc tests/gpu/blocks_host.cc tests/gpu/gemm_host.cc \
  tests/gpu/library_exact_host.cc tests/gpu/library_fused_host.cc tests/gpu/library_gemm_host.cc tests/gpu/tma_host.cc \
  tests/gpu/wgmma_host.cc gpu/stats/plan.c
tests_gpu_libcudahost_a_CPPFLAGS = $(kernel_cppflags)
tests_gpu_libcudahost_a_CFLAGS = $(product_cflags) $(PIC_CFLAGS)
tests_gpu_libcudahost_a_CXXFLAGS = $(OPT_CXXFLAGS) $(kernel_cxxflags) -fPIC -fvisibility=hidden
$(python_cuda): tests/gpu/libcudahost.a lib/libmpsim.a
	$(AM_V_CXXLD)$(CXX) $(SAN_CFLAGS) $(CXXFLAGS) -shared -o $@ -Wl,--whole-archive tests/gpu/libcudahost.a -Wl,--no-whole-archive \
	  lib/libmpsim.a -Wl,--exclude-libs,libmpsim.a -ldl -lm
MOSTLYCLEANFILES += $(python_cuda)
else
python_cuda =
endif
check-python: wheel $(python_cuda)
	@PYTHON='$(PYTHON)' MPSIM_TEST_CUDA="$(python_cuda:%=$(abs_builddir)/%)" sh $(srcdir)/python/check.sh $(srcdir) "$$(ls python/dist/*.whl)"
# make check-sdist: a source distribution, built from its own contents; minutes, in check-long.
check-sdist: all
	@PYTHON='$(PYTHON)' sh $(srcdir)/python/sdist.sh $(srcdir)
# make manylinux: a wheel for glibc 2.28 or newer, in python/manylinux, with a compiler and libraries of its own.
manylinux:
	@sh $(srcdir)/python/manylinux.sh $(srcdir) python/manylinux
# make bench-python, bench-watch, bench-stat: of the package that PYTHON has installed.
bench-python:
	@$(PYTHON) $(srcdir)/python/bench.py
bench-watch:
	@$(PYTHON) -W ignore $(srcdir)/python/watch_cost.py
bench-stat:
	@$(PYTHON) $(srcdir)/python/stat_cost.py
# make check-emulate: judges of mpsim.emulate, of the package that PYTHON has installed, with torch; an hour. PEERS: options of peers.py.
emulate_tests = $(srcdir)/python/tests/emulate
check-emulate:
	@MPSIM_SRCDIR="$(abs_srcdir)" $(PYTHON) $(emulate_tests)/parity.py --all-policies --steps 100
	@$(PYTHON) $(emulate_tests)/autocast.py --controls
	@MPSIM_SRCDIR="$(abs_srcdir)" $(PYTHON) $(emulate_tests)/peers.py $(PEERS)
.PHONY: python-stage wheel manylinux check-python check-sdist check-emulate bench-python bench-watch
CLEANFILES += python/program python/libmpsim-trace.so.0 python/trace.map
