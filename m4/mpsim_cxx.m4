dnl mpsim_cxx.m4 -- a C++17 compiler, for tests that run the CUDA kernels on a CPU.

dnl MPSIM_CXX
dnl Sets HAVE_CXX (conditional), KERNEL_CXXFLAGS (language and floating-point semantics), have_cxx. The user's
dnl CXXFLAGS come last on every command line: with flags that change results there are no such tests.
AC_DEFUN([MPSIM_CXX], [
    KERNEL_CXXFLAGS="-std=c++17 -ffp-contract=off -fno-fast-math"
    have_cxx=no
    AS_CASE([" $CXX $CXXFLAGS "],
        [*fast-math*|*Ofast*|*unsafe-math*|*associative-math*|*reciprocal-math*|*finite-math*|*no-signed-zeros*|*ffp-contract=fast*|*ffp-contract=on*|*mdaz-ftz*|*mfpmath=387*],
        [AC_MSG_WARN([CXXFLAGS change floating-point results: the tests of CUDA kernels on the CPU are left out])],
        [AC_LANG_PUSH([C++])
        mpsim_save_CXXFLAGS=$CXXFLAGS
        CXXFLAGS="$KERNEL_CXXFLAGS $CXXFLAGS"
        AC_MSG_CHECKING([whether $CXX compiles and links C++17])
        AC_LINK_IFELSE([AC_LANG_PROGRAM([[
#include <float.h>
#include <stdlib.h>
#include <vector>
#if !defined(__GNUC__) || FLT_EVAL_METHOD != 0
#error needed: attributes, operations in their own type
#endif
struct alignas(16) four { float x, y, z, w; };
inline std::vector<four> all;
template <class... P, class... A> void call(void (*f)(P...), A... a) { f(static_cast<P>(a)...); }
static void grow(size_t n) { all.resize(n); }
#if !defined(__x86_64__)
#include <ucontext.h>
#endif]],
            [[call(grow, 3); free(aligned_alloc(64, 64)); return all.size() != 3;]])],
            [have_cxx=yes])
        AC_MSG_RESULT([$have_cxx])
        CXXFLAGS=$mpsim_save_CXXFLAGS
        AC_LANG_POP([C++])
        AS_IF([test $have_cxx = no],
            [AC_MSG_WARN([no C++17 compiler: the tests of CUDA kernels on the CPU are left out])])])
    AC_SUBST([KERNEL_CXXFLAGS])
    AM_CONDITIONAL([HAVE_CXX], [test $have_cxx = yes])])
