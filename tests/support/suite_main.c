/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/suite_main.h"

#include <stdlib.h>

int main(void)
{
    SRunner *runner = srunner_create(k3_suite());
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    const int ran = srunner_ntests_run(runner);
    srunner_free(runner);
    return failed == 0 && ran > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
