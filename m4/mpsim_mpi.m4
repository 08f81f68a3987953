dnl mpsim_mpi.m4 -- an MPI library, for the program mpsim-mpi.

dnl MPSIM_MPI
dnl Sets HAVE_MPI (conditional), MPI_CFLAGS, MPI_LIBS, MPIRUN, have_mpi, mpi_summary. One file is compiled with these flags, by
dnl $CC: pkg-config knows them (ompi-c, mpich), or the compiler wrapper MPICC tells (Open MPI: --showme, MPICH: -compile_info).
AC_DEFUN([MPSIM_MPI], [
    AC_ARG_WITH([mpi], [AS_HELP_STRING([--with-mpi=auto|yes|no],
        [build mpsim-mpi, stat and replay on the ranks of an MPI job (default: auto)])], [], [with_mpi=auto])
    AC_ARG_VAR([MPICC], [compiler wrapper of an MPI library, which is asked for its flags])
    AC_ARG_VAR([MPIRUN], [starts MPI jobs, in make check])
    have_mpi=no mpi_from= mpi_summary='no: stat and replay run in one process'
    AS_CASE([$with_mpi], [auto|yes|no], [], [AC_MSG_ERROR([--with-mpi is auto, yes or no])])
    AS_IF([test "x$with_mpi" != xno], [
        AS_IF([test -n "$MPI_CFLAGS$MPI_LIBS"], [mpi_from='MPI_CFLAGS, MPI_LIBS'])
        AS_IF([test -z "$mpi_from" && test -z "$MPICC"],
            [PKG_CHECK_MODULES([MPI], [ompi-c], [mpi_from='pkg-config ompi-c'],
                [PKG_CHECK_MODULES([MPI], [mpich], [mpi_from='pkg-config mpich'], [mpi_from=])])])
        AC_CHECK_PROGS([MPICC], [mpicc])
        AS_IF([test -z "$mpi_from" && test -n "$MPICC"], [
            AS_IF([MPI_CFLAGS=`$MPICC --showme:compile 2>/dev/null` && MPI_LIBS=`$MPICC --showme:link 2>/dev/null`],
                [mpi_from=$MPICC],
                [MPI_CFLAGS=`$MPICC -compile_info 2>/dev/null` && MPI_LIBS=`$MPICC -link_info 2>/dev/null`],
                [MPI_CFLAGS=`AS_ECHO(["$MPI_CFLAGS"]) | $SED 's/^[[^ ]]* *//; s/ -c / /'`
                MPI_LIBS=`AS_ECHO(["$MPI_LIBS"]) | $SED 's/^[[^ ]]* *//'`
                mpi_from=$MPICC])])
        AS_IF([test -n "$mpi_from"], [
            mpsim_save_CFLAGS=$CFLAGS mpsim_save_LIBS=$LIBS
            CFLAGS="$STD_CFLAGS $MPI_CFLAGS $CFLAGS" LIBS="$MPI_LIBS $LIBS"
            AC_MSG_CHECKING([whether $CC links MPI 3, with the flags of $mpi_from])
            AC_LINK_IFELSE([AC_LANG_PROGRAM([[
#include <mpi.h>
#if MPI_VERSION < 3
#error needed: windows of shared memory
#endif]], [[void *base; MPI_Win w;
                return MPI_Win_allocate_shared(1, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &w);]])],
                [have_mpi=yes mpi_summary="$mpi_from"])
            AC_MSG_RESULT([$have_mpi])
            CFLAGS=$mpsim_save_CFLAGS LIBS=$mpsim_save_LIBS])
        AS_IF([test $have_mpi = no && test "x$with_mpi" = xyes],
            [AC_MSG_ERROR([--with-mpi given, but no MPI was found (Debian: libopenmpi-dev openmpi-bin)])])
        AC_PATH_PROGS([MPIRUN], [mpirun mpiexec])])
    AC_SUBST([MPI_CFLAGS])
    AC_SUBST([MPI_LIBS])
    AM_CONDITIONAL([HAVE_MPI], [test $have_mpi = yes])])
