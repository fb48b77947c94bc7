/* SPDX-License-Identifier: Apache-2.0 */
#include "format/base/assert.h"

#include <stdio.h>
#include <stdlib.h>

void k3_assert_failed(const char *expression, const char *file, int line)
{
    fprintf(stderr, "internal error: %s:%d: '%s' does not hold; please report this\n", file, line,
            expression);
    abort();
}
