# SPDX-License-Identifier: Apache-2.0
# k3_use_failing(target): lets a test make calls fail (failing.h). The linker swaps the names, so it
# reaches our static libraries and nothing else; both spellings, for 64-bit file offsets rename some.
include_guard(GLOBAL)
function(k3_use_failing target)
  target_sources(${target} PRIVATE "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/failing.c")
  foreach(name malloc calloc realloc strdup fsync rename opendir)
    target_link_options(${target} PRIVATE "LINKER:--wrap=${name}")
  endforeach()
  foreach(name open pread pwrite ftruncate fallocate mmap readdir)
    target_link_options(${target} PRIVATE "LINKER:--wrap=${name}" "LINKER:--wrap=${name}64")
  endforeach()
endfunction()
