# SPDX-License-Identifier: Apache-2.0
# k3pack for one long night: partial checks, repair, manifests, random distributions, memory.
foreach(suite partial property repair sha256)
  add_test(NAME cli.k3pack.${suite}
    COMMAND "${K3_PYTHON}" "${CMAKE_CURRENT_LIST_DIR}/k3pack_${suite}.py")
  set_tests_properties(cli.k3pack.${suite} PROPERTIES LABELS cli TIMEOUT 900
    ENVIRONMENT "K3PACK=$<TARGET_FILE:k3pack>;PYTHONDONTWRITEBYTECODE=1")
endforeach()
# Several gigabytes of disk.
add_test(NAME cli.k3pack.memory
  COMMAND "${K3_PYTHON}" "${CMAKE_CURRENT_LIST_DIR}/k3pack_memory.py")
set_tests_properties(cli.k3pack.memory PROPERTIES LABELS "cli;slow" TIMEOUT 1800
  ENVIRONMENT "K3PACK=$<TARGET_FILE:k3pack>;PYTHONDONTWRITEBYTECODE=1")
