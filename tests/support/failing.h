/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_TESTS_SUPPORT_FAILING_H
#define K3_TESTS_SUPPORT_FAILING_H

#include <stdbool.h>
#include <stdint.h>

/* Makes the n-th allocation, read, write, ... of this program fail, so that a test can fail each of
 * them once:
 *
 *     for (uint64_t nth = 1; ; nth++) {
 *         k3_failing_arm(K3_FAILING_ALLOC, K3_FAILING_ONCE, nth);
 *         code = thing(...);
 *         if (!k3_failing_disarm()) {
 *             break;                     (past the last one: `code` is that of an undisturbed run)
 *         }
 *         ck_assert_int_eq(code, K3_ERR_NO_MEMORY);
 *     }
 *
 * Targets link it with k3_use_failing(target) of failing.cmake. It reaches calls made by our static
 * libraries (jansson's allocations too, where our allocator was given to it) and by the test
 * itself: disarm before ck_assert, for Check allocates. It does not reach what other shared
 * libraries or libc call inside. One arming at a time, shared by all threads. */
enum k3_failing_kind {
    K3_FAILING_ALLOC,    /* malloc, calloc, realloc, strdup: ENOMEM       */
    K3_FAILING_READ,     /* pread: EIO                                    */
    K3_FAILING_WRITE,    /* pwrite, fallocate: ENOSPC                     */
    K3_FAILING_SYNC,     /* fsync: EIO                                    */
    K3_FAILING_TRUNCATE, /* ftruncate: ENOSPC                             */
    K3_FAILING_RENAME,   /* rename: EIO                                   */
    K3_FAILING_OPEN,     /* open, opendir: EMFILE                         */
    K3_FAILING_LIST,     /* readdir: EIO                                  */
    K3_FAILING_MAP,      /* mmap: ENOMEM                                  */
    K3_FAILING_KINDS     /* how many                                      */
};

enum k3_failing_mode {
    K3_FAILING_ONCE,  /* the n-th call                                              */
    K3_FAILING_FROM,  /* the n-th call and every later one: a disk that stays full  */
    K3_FAILING_SHORT, /* reads and writes from the n-th on move half, at least 1    */
    K3_FAILING_EINTR  /* the n-th call is interrupted by a signal                   */
};

/* nth counts from 1, from now. */
void k3_failing_arm(enum k3_failing_kind kind, enum k3_failing_mode mode, uint64_t nth);

/* Everything works again. True when a call was disturbed since arming. */
bool k3_failing_disarm(void);

/* Calls of the kind since arming (disarming does not reset it). */
uint64_t k3_failing_calls(enum k3_failing_kind kind);

#endif
