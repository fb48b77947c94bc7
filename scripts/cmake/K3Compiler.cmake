# SPDX-License-Identifier: Apache-2.0
# The one place for compiler flags: every target links k3_flags.

include(CheckCSourceCompiles)
check_c_source_compiles("
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error big endian
#endif
int main(void) { return 0; }" K3_LITTLE_ENDIAN)
if(NOT K3_LITTLE_ENDIAN)
  message(FATAL_ERROR "weights are used in place and are little endian; this machine is not")
endif()

add_library(k3_flags INTERFACE)
target_include_directories(k3_flags INTERFACE "${PROJECT_SOURCE_DIR}")
target_compile_definitions(k3_flags INTERFACE
  _POSIX_C_SOURCE=200809L _DEFAULT_SOURCE _FILE_OFFSET_BITS=64
  K3_VERSION="${PROJECT_VERSION}")
# Exactness: a contracted multiply-add is another rounding (docs/arithmetic.md).
target_compile_options(k3_flags INTERFACE -ffp-contract=off -fno-fast-math -fno-math-errno
  -fvisibility=hidden)
target_compile_options(k3_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wcast-qual -Wcast-align
  -Wpointer-arith -Wvla -Wundef -Wstrict-prototypes -Wmissing-prototypes -Wformat=2
  -Wswitch-enum -Wdouble-promotion)
if(K3_WERROR)
  target_compile_options(k3_flags INTERFACE -Werror)
endif()
if(K3_SANITIZE)
  target_compile_options(k3_flags INTERFACE "-fsanitize=${K3_SANITIZE}"
    -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(k3_flags INTERFACE "-fsanitize=${K3_SANITIZE}")
endif()

if(K3_BUILD_FUZZERS)
  # Everywhere, not only in the targets: coverage of the libraries is what guides a fuzzer.
  target_compile_options(k3_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()

# k3_library(NAME sources... [LINK targets...]): one static library per folder.
function(k3_library name)
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PUBLIC k3_flags ${ARG_LINK})
endfunction()
