# Libraries from Debian, each behind a small interface target.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
foreach(dep urcu:liburcu-memb yaml:yaml-0.1 mhd:libmicrohttpd jansson:jansson cunit:cunit)
  string(REPLACE ":" ";" pair ${dep})
  list(GET pair 0 short)
  list(GET pair 1 module)
  if(short STREQUAL cunit AND NOT WEIR_TESTS)
    continue()
  endif()
  pkg_check_modules(${short} REQUIRED IMPORTED_TARGET ${module})
  add_library(weir_${short} INTERFACE)
  target_link_libraries(weir_${short} INTERFACE PkgConfig::${short})
endforeach()
# The RCU hash table and deferred calls live in libraries of their own.
target_link_libraries(weir_urcu INTERFACE urcu-cds urcu-memb)

# llhttp is shipped by Debian as C source inside node-llhttp; it is compiled, not copied. The package
# pulls in Node.js, so scripts/lib.sh unpacks it below build/deps where it is not installed.
set(llhttp_deps ${PROJECT_SOURCE_DIR}/build/deps/usr/share)
find_path(LLHTTP_INCLUDE_DIR llhttp.h PATH_SUFFIXES llhttp
  PATHS ${llhttp_deps}/include /usr/share/include /usr/include REQUIRED)
find_path(LLHTTP_SOURCE_DIR llhttp.c PATH_SUFFIXES llhttp PATHS ${llhttp_deps} /usr/share REQUIRED)
add_library(weir_llhttp OBJECT
  ${LLHTTP_SOURCE_DIR}/api.c ${LLHTTP_SOURCE_DIR}/http.c ${LLHTTP_SOURCE_DIR}/llhttp.c)
target_include_directories(weir_llhttp PUBLIC ${LLHTTP_INCLUDE_DIR})
target_compile_options(weir_llhttp PRIVATE -w $<$<CONFIG:Release>:-O3>)
