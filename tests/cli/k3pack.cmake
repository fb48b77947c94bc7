# SPDX-License-Identifier: Apache-2.0
# End-to-end tests of k3pack: one ctest per file, unittest inside.
find_program(K3_PYTHON NAMES python3 PATHS /usr/bin NO_DEFAULT_PATH REQUIRED)
foreach(name cli damage identity inputs layouts resume)
  add_test(NAME cli.k3pack.${name}
    COMMAND "${K3_PYTHON}" "${CMAKE_CURRENT_LIST_DIR}/k3pack_${name}.py")
  set_tests_properties(cli.k3pack.${name} PROPERTIES LABELS cli TIMEOUT 900
    ENVIRONMENT "K3PACK=$<TARGET_FILE:k3pack>;PYTHONDONTWRITEBYTECODE=1")
endforeach()
