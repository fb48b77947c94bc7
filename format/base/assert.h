/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_FORMAT_BASE_ASSERT_H
#define K3_FORMAT_BASE_ASSERT_H

/* k3_assert says that our own code is wrong, and stays on in release builds: stopping beats
 * plausible text. Files, arguments and the machine are never asserted about: they are errors. */
_Noreturn void k3_assert_failed(const char *expression, const char *file, int line);

#define k3_assert(expression)                                                                      \
    ((expression) ? (void)0 : k3_assert_failed(#expression, __FILE__, __LINE__))

#ifdef NDEBUG
#define k3_debug_assert(expression) ((void)sizeof(!(expression)))
#else
#define k3_debug_assert(expression) k3_assert(expression)
#endif

#endif
