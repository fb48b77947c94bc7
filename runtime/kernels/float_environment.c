/* SPDX-License-Identifier: Apache-2.0 */
#include <fenv.h>

#include "runtime/kernels/kernels.h"

#if defined(__x86_64__)
#include <xmmintrin.h>

/* MXCSR: bit 15 flush to zero, bits 14-13 rounding (0 is nearest), bit 6 denormals are zero. */
static const char *what_is_wrong(void)
{
    const unsigned mxcsr = _mm_getcsr();
    return mxcsr & 0x6000U   ? "rounding is not to nearest"
           : mxcsr & 0x8000U ? "results are flushed to zero"
           : mxcsr & 0x0040U ? "denormals are taken for zero"
                             : NULL;
}
#elif defined(__aarch64__)
/* FPCR: bit 24 flush to zero, bits 23-22 rounding (0 is nearest), bit 1 the alternative handling
 * of tiny values, bit 0 flushing of inputs. */
static const char *what_is_wrong(void)
{
    uint64_t fpcr;
    __asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
    return fpcr & 0xc00000U    ? "rounding is not to nearest"
           : fpcr & 0x1000000U ? "results are flushed to zero"
           : fpcr & 0x3U       ? "denormals are taken for zero"
                               : NULL;
}
#else
/* Asks the arithmetic itself; volatile keeps the compiler from answering. */
static const char *what_is_wrong(void)
{
    volatile float tiny = 0x1p-149F;
    volatile float small = 0x1p-126F;
    volatile float half = 0.5F;
    const float half_small = small * half;
    const float doubled = tiny + tiny;
    return fegetround() != FE_TONEAREST ? "rounding is not to nearest"
           : half_small == 0.0F         ? "results are flushed to zero"
           : doubled == 0.0F            ? "denormals are taken for zero"
                                        : NULL;
}
#endif

enum k3_code k3_float_environment_check(struct k3_error *err)
{
    const char *wrong = what_is_wrong();
    if (wrong) {
        return k3_fail(err, K3_ERR_UNSUPPORTED, K3_ERROR_NO_OFFSET,
                       "floating-point mode of this thread: %s", wrong);
    }
    return K3_OK;
}
