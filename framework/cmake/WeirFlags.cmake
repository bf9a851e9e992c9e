# SPDX-License-Identifier: MIT
# Warnings, hardening and sanitizers, in the interface target weir_flags. weir_hardening alone is
# for foreign C sources compiled here: the linker drops a protection (the IBT and SHSTK marks) from
# the whole program when one object lacks it.
add_library(weir_flags INTERFACE)
add_library(weir_hardening INTERFACE)
target_compile_definitions(weir_flags INTERFACE _GNU_SOURCE)
target_compile_options(weir_flags INTERFACE
  -Wall -Wextra -Wshadow -Wundef -Wwrite-strings -Wformat=2 -Wmissing-prototypes
  -Wmissing-declarations -Wstrict-prototypes -Wpointer-arith -Wcast-qual -Wvla
  -fno-strict-overflow -fno-omit-frame-pointer -ftls-model=initial-exec
  $<$<C_COMPILER_ID:GNU>:-Wduplicated-cond -Wduplicated-branches -Wlogical-op>
  $<$<C_COMPILER_ID:Clang>:-Wthread-safety>)
if(WEIR_WERROR)
  target_compile_options(weir_flags INTERFACE -Werror)
endif()
if(WEIR_SANITIZE)
  # -g1 has what a stack trace needs. With -g, the objects and programs take three times
  # the space.
  target_compile_options(weir_flags INTERFACE -fsanitize=${WEIR_SANITIZE} -fno-sanitize-recover=all -g1)
  target_link_options(weir_flags INTERFACE -fsanitize=${WEIR_SANITIZE})
  if(WEIR_SANITIZE MATCHES thread)
    target_compile_definitions(weir_flags INTERFACE WEIR_TSAN=1)
  endif()
else()
  target_compile_options(weir_hardening INTERFACE
    $<$<CONFIG:Release>:-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3>
    -fstack-protector-strong -fstack-clash-protection -fcf-protection=full)
  target_link_options(weir_hardening INTERFACE -Wl,-z,relro,-z,now,-z,noexecstack)
endif()
target_link_libraries(weir_flags INTERFACE weir_hardening)
if(WEIR_FUZZ)
  target_compile_options(weir_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()
if(WEIR_COVERAGE)
  target_compile_options(weir_flags INTERFACE --coverage -fprofile-update=atomic -g1)
  target_link_options(weir_flags INTERFACE --coverage)
endif()
# -O2 instead of CMake's -O3: the same speed on the hot path with smaller code. Asserts stay: NDEBUG
# only removes the lock-owner checks and execution counts of debug builds.
set(CMAKE_C_FLAGS_RELEASE "-O2 -DNDEBUG -g")
set(CMAKE_C_FLAGS_DEBUG "-O1 -g")

# weir_whole(TARGET): let gcc optimise the objects of TARGET across files when the program is
# linked. Targets linked with -fno-lto use the plain code in the same objects. A request of
# http.server runs code of 20 files, and takes 9 % fewer instructions with this optimisation.
option(WEIR_LTO "Optimise the release program as a whole (gcc)" ON)
if(NOT CMAKE_C_COMPILER_ID STREQUAL GNU OR NOT CMAKE_BUILD_TYPE STREQUAL Release OR WEIR_SANITIZE OR WEIR_FUZZ OR WEIR_COVERAGE)
  set(WEIR_LTO OFF)
endif()
function(weir_whole target)
  if(WEIR_LTO)
    target_compile_options(${target} PRIVATE -flto=auto -ffat-lto-objects)
  endif()
endfunction()
