dnl mpsim_cuda.m4 -- find a CUDA toolkit that compiles and links a kernel.

dnl MPSIM_CUDA_ARCHS
dnl Sets CUDA_ARCHS and mpsim_archs, its text, from --with-cuda-archs.
AC_DEFUN([MPSIM_CUDA_ARCHS], [
    AS_CASE([$with_cuda_archs],
        [""], [with_cuda_archs=`nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null |
            $SED -n '1s/^\(@<:@0-9@:>@*\)\.\(@<:@0-9@:>@\)$/\1\2/p'`
            test -n "$with_cuda_archs" || with_cuda_archs=90],
        [*@<:@!0-9,@:>@*|,*|*,|*,,*],
            [AC_MSG_ERROR([--with-cuda-archs=$with_cuda_archs is not a list as 80,89,90])])
    mpsim_gpu_codes=" `$NVCC --list-gpu-code 2>/dev/null | tr '\n' ' '`"
    mpsim_archs=
    for mpsim_sm in `echo $with_cuda_archs | tr , ' '`; do
        AS_CASE([$mpsim_gpu_codes], [*" sm_$mpsim_sm "*], [],
            [AC_MSG_ERROR([$NVCC has no code for sm_$mpsim_sm: choose others by --with-cuda-archs])])
        CUDA_ARCHS="$CUDA_ARCHS -gencode arch=compute_$mpsim_sm,code=sm_$mpsim_sm"
        mpsim_archs="$mpsim_archs${mpsim_archs:+, }sm_$mpsim_sm"
    done
    CUDA_ARCHS="$CUDA_ARCHS -gencode arch=compute_$mpsim_sm,code=compute_$mpsim_sm"])

dnl MPSIM_CUDA
dnl   --enable-cuda       build gpu/ with the nvcc of PATH or /usr/local/cuda; stop where it does not work
dnl   --enable-cuda=DIR   with that of DIR
dnl   --with-cuda-archs=LIST  the architectures that get code, as 80,89,90; PTX of the last one for what comes
dnl                       later. Default: that of the device here, 90 where there is none
dnl   --with-cuda-headers=auto|no|DIR  NVIDIA's conversions, plain C in the toolkit's headers, judge ours in make check
dnl                       (auto: of the toolkit that --enable-cuda takes, or would take)
dnl Sets HAVE_CUDA (conditional), NVCC, NVCCFLAGS (-O2 -lineinfo if not set), CUDA_ARCHS (code generation
dnl flags; may be set by the user), CUDA_LDFLAGS, CUDA_LIBS, HAVE_CUDA_HEADERS (conditional: cuda_fp8.h, cuda_fp6.h
dnl and cuda_fp4.h compile as plain C), CUDA_CPPFLAGS, cuda_summary.
AC_DEFUN([MPSIM_CUDA], [
    AC_ARG_ENABLE([cuda], [AS_HELP_STRING([--enable-cuda@<:@=DIR@:>@],
        [build gpu/ with the CUDA toolkit found, or the one in DIR (default: no)])],
        [], [enable_cuda=no])
    AC_ARG_WITH([cuda-archs], [AS_HELP_STRING([--with-cuda-archs=LIST],
        [CUDA architectures, as 80,89,90 (default: that of the device here, else 90)])],
        [], [with_cuda_archs=])
    AC_ARG_WITH([cuda-headers], [AS_HELP_STRING([--with-cuda-headers=auto|no|DIR],
        [compare casts with those of cuda_fp8.h, cuda_fp6.h and cuda_fp4.h in make check (default: auto)])],
        [], [with_cuda_headers=auto])
    AC_ARG_VAR([NVCC], [CUDA compiler])
    AC_ARG_VAR([NVCCFLAGS], [CUDA compiler flags])
    AC_ARG_VAR([CUDA_ARCHS], [CUDA code generation flags of all but *wgmma.cu])
    AS_CASE([" $NVCCFLAGS "],
        [*fast?math*|*ftz=true*|*fmad=true*|*prec-div=false*|*prec-sqrt=false*],
        [AC_MSG_ERROR([NVCCFLAGS=$NVCCFLAGS would change results])])
    have_cuda=no have_cuda_headers=no cuda_summary="no: --enable-cuda builds gpu/"
    AS_CASE([$enable_cuda],
        [no], [],
        [yes], [],
        [AS_IF([test -x "$enable_cuda/bin/nvcc"], [NVCC=$enable_cuda/bin/nvcc],
            [AC_MSG_ERROR([--enable-cuda=$enable_cuda: no $enable_cuda/bin/nvcc])])])
    AS_IF([test -z "$NVCC"], [AC_PATH_PROG([NVCC], [nvcc], [], [$PATH:/usr/local/cuda/bin])])
    AS_IF([test -n "$NVCC"], [
        mpsim_nvcc_real=`readlink -f "$NVCC" 2>/dev/null || echo "$NVCC"`
        mpsim_cuda_root=`AS_DIRNAME(["$mpsim_nvcc_real"])`
        mpsim_cuda_root=`AS_DIRNAME(["$mpsim_cuda_root"])`])
    AS_IF([test "x$enable_cuda" != xno], [
        AS_IF([test -z "$NVCC"], [AC_MSG_ERROR([--enable-cuda: no nvcc in PATH or /usr/local/cuda/bin])])
        AS_IF([test -d "$mpsim_cuda_root/lib64"], [CUDA_LDFLAGS="-L$mpsim_cuda_root/lib64"],
            [CUDA_LDFLAGS="-L$mpsim_cuda_root/lib"])
        dnl sm_90a, the target of cuda_wgmma_codes in gpu/cuda.mk: from CUDA 12 on
        AS_IF([test -n "$CUDA_ARCHS"], [mpsim_archs=$CUDA_ARCHS], [MPSIM_CUDA_ARCHS])
        AC_MSG_CHECKING([whether $NVCC compiles and links a kernel for sm_90a])
        cat >conftest.cu <<\_MPSIM_EOF
__global__ void twice(float *x) { *x *= 2; }
int main(void) { twice<<<1, 1>>>(nullptr); return 0; }
_MPSIM_EOF
        AS_IF([$NVCC $NVCCFLAGS -arch=sm_90a -o conftest_cuda conftest.cu \
            >&AS_MESSAGE_LOG_FD 2>&1],
            [have_cuda=yes])
        AC_MSG_RESULT([$have_cuda])
        rm -f conftest.cu conftest_cuda
        AS_IF([test $have_cuda = yes],
            [cuda_summary="$NVCC, `$NVCC --version | $SED -n 's/.*release \(@<:@0-9.@:>@*\).*/release \1/p'`, $mpsim_archs"])
        AS_IF([test $have_cuda = no], [AC_MSG_ERROR([--enable-cuda: $NVCC does not work, see config.log])])
        AS_IF([test -z "$NVCCFLAGS"], [NVCCFLAGS="-O2 -lineinfo"])])
    AS_CASE([$with_cuda_headers],
        [no], [mpsim_cuda_include=],
        [auto], [mpsim_cuda_include=${mpsim_cuda_root:+$mpsim_cuda_root/include}],
        [mpsim_cuda_include=$with_cuda_headers])
    cuda_headers_summary="no"
    AS_IF([test -n "$mpsim_cuda_include"], [
        mpsim_save_CPPFLAGS=$CPPFLAGS
        mpsim_save_CFLAGS=$CFLAGS
        CUDA_CPPFLAGS="-isystem $mpsim_cuda_include"
        CPPFLAGS="$CPPFLAGS $CUDA_CPPFLAGS"
        CFLAGS="$CFLAGS -std=gnu11"
        AC_MSG_CHECKING([whether cuda_fp8.h, cuda_fp6.h and cuda_fp4.h compile as C])
        AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[
#include <cuda_fp8.h>
#include <cuda_fp6.h>
#include <cuda_fp4.h>]],
            [[return __nv_cvt_float_to_fp8(1.0f, __NV_SATFINITE, __NV_E4M3)]])],
            [have_cuda_headers=yes], [have_cuda_headers=no])
        AC_MSG_RESULT([$have_cuda_headers])
        CPPFLAGS=$mpsim_save_CPPFLAGS
        CFLAGS=$mpsim_save_CFLAGS
        AS_IF([test $have_cuda_headers = yes],
            [cuda_headers_summary="$mpsim_cuda_include (judge of fp8, fp6, fp4 casts)"],
            [AS_CASE([$with_cuda_headers], [auto], [],
                [AC_MSG_ERROR([--with-cuda-headers=$with_cuda_headers: they do not compile, see config.log])])])])
    dnl the static runtime, so that programs start where there is no driver
    CUDA_LIBS="-lcudart_static -ldl -lrt -lpthread -lstdc++"
    AC_SUBST([CUDA_LIBS])
    AC_SUBST([CUDA_LDFLAGS])
    AC_SUBST([CUDA_CPPFLAGS])
    AM_CONDITIONAL([HAVE_CUDA], [test $have_cuda = yes])
    AM_CONDITIONAL([HAVE_CUDA_HEADERS], [test $have_cuda_headers = yes])])
