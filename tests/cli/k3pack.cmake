# SPDX-License-Identifier: Apache-2.0
# End-to-end tests of k3pack: one ctest per file, unittest inside.
set(K3_PYTHON "/usr/bin/python3" CACHE FILEPATH "A Python 3 with numpy, xxhash and zstandard")
foreach(name cli damage identity inputs layouts resume)
  add_test(NAME cli.k3pack.${name}
    COMMAND "${K3_PYTHON}" "${CMAKE_CURRENT_LIST_DIR}/k3pack_${name}.py")
  set_tests_properties(cli.k3pack.${name} PROPERTIES LABELS cli TIMEOUT 900
    ENVIRONMENT "K3PACK=$<TARGET_FILE:k3pack>;PYTHONDONTWRITEBYTECODE=1")
endforeach()
