dnl mpsim_flags.m4 -- compiler flags and floating-point semantics.

dnl MPSIM_TRY_CFLAG(VARIABLE, FLAG, [IF-NOT]) -- append FLAG to VARIABLE if the compiler takes it.
AC_DEFUN([MPSIM_TRY_CFLAG], [
    AS_VAR_PUSHDEF([cache], [mpsim_cv_cflag_$2])
    AC_CACHE_CHECK([whether $CC accepts $2], [cache], [
        mpsim_save_CFLAGS=$CFLAGS
        CFLAGS="$CFLAGS -Werror $2"
        AC_COMPILE_IFELSE([AC_LANG_PROGRAM()], [AS_VAR_SET([cache], [yes])],
            [AS_VAR_SET([cache], [no])])
        CFLAGS=$mpsim_save_CFLAGS])
    AS_VAR_IF([cache], [yes], [$1="$$1 $2"], [$3])
    AS_VAR_POPDEF([cache])])

dnl MPSIM_TRY_LDFLAG(VARIABLE, FLAG, [IF-NOT]) -- append FLAG to VARIABLE if a program linked with it runs; where programs
dnl cannot be run, or have sanitizers, they are linked as others are.
AC_DEFUN([MPSIM_TRY_LDFLAG], [
    AS_VAR_PUSHDEF([cache], [mpsim_cv_ldflag_$2])
    AC_CACHE_CHECK([whether programs linked with $2 run], [cache], [
        mpsim_save_LDFLAGS=$LDFLAGS
        LDFLAGS="$PIE_LDFLAGS $HARDEN_LDFLAGS $2 $LDFLAGS"
        AS_IF([test -n "$SAN_CFLAGS"], [AS_VAR_SET([cache], [no])],
            [AC_RUN_IFELSE([AC_LANG_PROGRAM()],
                [AS_VAR_SET([cache], [yes])], [AS_VAR_SET([cache], [no])], [AS_VAR_SET([cache], [no])])])
        LDFLAGS=$mpsim_save_LDFLAGS])
    AS_VAR_IF([cache], [yes], [$1="$$1 $2"], [$3])
    AS_VAR_POPDEF([cache])])

dnl MPSIM_REQUIRE_CFLAG(VARIABLE, FLAG) -- the same; stop if the compiler does not take it.
AC_DEFUN([MPSIM_REQUIRE_CFLAG],
    [MPSIM_TRY_CFLAG([$1], [$2], [AC_MSG_ERROR([mpsim needs a compiler that accepts $2])])])

dnl MPSIM_CHECK_FP_SEMANTICS -- the user's CFLAGS come last on every command line, so that they
dnl could undo FP_CFLAGS: refuse the flags that change results. Their text is searched, because
dnl gcc hides some (-Ofast after -fno-fast-math still links code that flushes subnormals), and a
dnl program is run where that is possible.
AC_DEFUN([MPSIM_CHECK_FP_SEMANTICS], [
    AC_MSG_CHECKING([whether the compiler flags keep IEEE 754 semantics])
    mpsim_fp_bad=
    for mpsim_flag in $CC $CFLAGS $LDFLAGS; do
        AS_CASE([$mpsim_flag],
            [-Ofast|-ffast-math|-funsafe-math-optimizations|-fassociative-math|-freciprocal-math|-ffinite-math-only|-fno-signed-zeros|-ffp-contract=fast|-ffp-contract=on|-mdaz-ftz|-fcx-limited-range|-mfpmath=387],
            [mpsim_fp_bad="$mpsim_fp_bad $mpsim_flag"])
    done
    AS_IF([test -n "$mpsim_fp_bad"], [
        AC_MSG_RESULT([no])
        AC_MSG_ERROR([these flags change floating-point results, leave them out:$mpsim_fp_bad])])
    mpsim_save_CFLAGS=$CFLAGS
    CFLAGS="$STD_CFLAGS $FP_CFLAGS $CFLAGS"
    AC_COMPILE_IFELSE([AC_LANG_SOURCE([[
#include <float.h>
#if defined(__FAST_MATH__) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__) \
    || defined(__ASSOCIATIVE_MATH__) || defined(__RECIPROCAL_MATH__) \
    || defined(__NO_SIGNED_ZEROS__) || FLT_EVAL_METHOD != 0
#error value-changing floating-point options
#endif
int main(void) { return 0; }
]])], [], [
        AC_MSG_RESULT([no])
        AC_MSG_ERROR([CC="$CC" CFLAGS="$mpsim_save_CFLAGS" change floating-point results])])
    AC_RUN_IFELSE([AC_LANG_PROGRAM([], [[
volatile double tiny = 4.9406564584124654e-324, x = 1 + 0x1p-30, y = 1 - 0x1p-30;
volatile float ftiny = 1.40129846432481707e-45f;
return tiny * 2 == 0 || ftiny * 2 == 0 || x * y - 1 != 0 ? 1 : 0;]])],
        [AC_MSG_RESULT([yes])], [
        AC_MSG_RESULT([no])
        AC_MSG_ERROR([a program compiled with CC="$CC" CFLAGS="$mpsim_save_CFLAGS" LDFLAGS="$LDFLAGS" flushes subnormal numbers or fuses products])],
        [AC_MSG_RESULT([yes (not run: cross-compiling)])])
    CFLAGS=$mpsim_save_CFLAGS])
