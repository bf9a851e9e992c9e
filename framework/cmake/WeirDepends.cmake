# SPDX-License-Identifier: MIT
# Libraries from Debian, each wrapped in a small interface target. All missing ones are listed at
# once, with their packages.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
set(weir_missing "")
foreach(dep urcu:liburcu-memb:liburcu-dev yaml:yaml-0.1:libyaml-dev
    mhd:libmicrohttpd:libmicrohttpd-dev jansson:jansson:libjansson-dev openssl:openssl:libssl-dev
    gnutls:gnutls:libgnutls28-dev cares:libcares:libc-ares-dev curl:libcurl:libcurl4-openssl-dev cunit:cunit:libcunit1-dev)
  string(REPLACE ":" ";" dep ${dep})
  list(GET dep 0 short)
  list(GET dep 1 module)
  list(GET dep 2 package)
  if(short STREQUAL cunit AND NOT WEIR_TESTS)
    continue()
  endif()
  pkg_check_modules(${short} IMPORTED_TARGET ${module})
  if(NOT ${short}_FOUND)
    list(APPEND weir_missing ${package})
    continue()
  endif()
  add_library(weir_${short} INTERFACE)
  target_link_libraries(weir_${short} INTERFACE PkgConfig::${short})
endforeach()

# The codings of http.compress; a build without one of them does without that coding.
set(weir_codings "")
add_library(weir_codecs INTERFACE)
foreach(dep zlib:zlib:ZLIB libzstd:libzstd:ZSTD libbrotlienc:libbrotlienc:BROTLI)
  string(REPLACE ":" ";" dep ${dep})
  list(GET dep 0 short)
  list(GET dep 1 module)
  list(GET dep 2 name)
  option(WEIR_${name} "Compress with ${module}, if it is installed" ON)
  if(WEIR_${name})
    pkg_check_modules(${short} QUIET IMPORTED_TARGET ${module})
  endif()
  if(WEIR_${name} AND ${short}_FOUND)
    target_link_libraries(weir_codecs INTERFACE PkgConfig::${short})
    target_compile_definitions(weir_codecs INTERFACE WEIR_HAVE_${name})
    list(APPEND weir_codings ${module})
  endif()
endforeach()
list(JOIN weir_codings " " weir_pc_codings)
if(weir_pc_codings)
  string(PREPEND weir_pc_codings " ")
endif()
message(STATUS "http.compress: ${weir_codings}")

# Used as a header only, so there is nothing to link.
find_path(XXHASH_INCLUDE_DIR xxhash.h)
if(NOT XXHASH_INCLUDE_DIR)
  list(APPEND weir_missing libxxhash-dev)
endif()

# Debian ships llhttp as C source in node-llhttp; it is compiled, not copied. The package pulls in
# Node.js, so scripts/lib.sh unpacks it below build/deps where it is not installed.
set(llhttp_deps ${PROJECT_SOURCE_DIR}/build/deps/usr/share)
find_path(LLHTTP_INCLUDE_DIR llhttp.h PATH_SUFFIXES llhttp
  PATHS ${llhttp_deps}/include /usr/share/include /usr/include)
find_path(LLHTTP_SOURCE_DIR llhttp.c PATH_SUFFIXES llhttp PATHS ${llhttp_deps} /usr/share)
if(NOT LLHTTP_INCLUDE_DIR OR NOT LLHTTP_SOURCE_DIR)
  list(APPEND weir_missing node-llhttp)
endif()

if(weir_missing)
  set(weir_advice "")
  if("libcunit1-dev" IN_LIST weir_missing)
    string(APPEND weir_advice "  Without libcunit1-dev: -DWEIR_TESTS=OFF.")
  endif()
  if("node-llhttp" IN_LIST weir_missing)
    string(APPEND weir_advice "  node-llhttp brings Node.js; scripts/run unpacks its C sources alone.")
  endif()
  list(JOIN weir_missing " " weir_missing)
  message(FATAL_ERROR "Debian packages are missing: apt-get install ${weir_missing}.${weir_advice}")
endif()

# The RCU hash table and deferred calls are in separate libraries.
target_link_libraries(weir_urcu INTERFACE urcu-cds urcu-memb)

add_library(weir_llhttp OBJECT
  ${LLHTTP_SOURCE_DIR}/api.c ${LLHTTP_SOURCE_DIR}/http.c ${LLHTTP_SOURCE_DIR}/llhttp.c)
target_include_directories(weir_llhttp PUBLIC ${LLHTTP_INCLUDE_DIR})
target_compile_options(weir_llhttp PRIVATE -w $<$<CONFIG:Release>:-O3>)
target_link_libraries(weir_llhttp PRIVATE weir_hardening)
