# SPDX-License-Identifier: MIT
# One shared library of weir's objects, for several hundred test programs.
#
# Linked statically, each program would have a copy of weir with its debug information: 4 GB in a
# debug build. The library has the same objects as the program `weir`. Their symbols are hidden and
# the tests call them, so visible.c marks them as visible first. -Bsymbolic: calls inside the library
# stay inside it, as in `weir`.
add_executable(visible link/visible.c)
target_compile_definitions(visible PRIVATE _GNU_SOURCE)

# weir_test_objects(NAME OPTION...): a shared library of weir's objects, with options of the linker.
function(weir_test_objects name)
  set(parts weir_framework weir_stages weir_llhttp weir_config weir_admin weir_load weir_export weir_sim)
  list(TRANSFORM parts REPLACE "(.+)" "$<TARGET_OBJECTS:\\1>" OUTPUT_VARIABLE objects)
  set(no_lto "")
  if(CMAKE_C_COMPILER_ID STREQUAL GNU)
    set(no_lto -fno-lto)
  endif()
  set(joined ${CMAKE_CURRENT_BINARY_DIR}/${name}.o)
  file(GENERATE OUTPUT ${joined}.list CONTENT "$<JOIN:${objects},\n>\n")
  add_custom_command(OUTPUT ${joined}
    COMMAND ${CMAKE_C_COMPILER} -r -nostdlib ${no_lto} -o ${joined} @${joined}.list
    COMMAND ${CMAKE_OBJCOPY} --wildcard --remove-section=.gnu.lto_* ${joined}
    COMMAND visible ${joined}
    DEPENDS ${objects} ${joined}.list visible VERBATIM COMMAND_EXPAND_LISTS
    COMMENT "Joining the objects of ${name}")
  set_source_files_properties(${joined} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
  add_library(${name} SHARED ${joined})
  set_target_properties(${name} PROPERTIES LINKER_LANGUAGE C)
  target_include_directories(${name} INTERFACE ${CMAKE_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/framework)
  target_link_libraries(${name} PUBLIC weir_public weir_flags weir_urcu weir_yaml weir_mhd weir_gnutls
    weir_openssl weir_cares weir_codecs weir_jansson weir_curl Threads::Threads m ${CMAKE_DL_LIBS})
  target_link_options(${name} PRIVATE -Wl,-Bsymbolic ${ARGN})
endfunction()

# weir_test_links(NAME): properties of a program that is linked with such a library. It is compiled as a
# library is, since code of programs (-fPIE) has its own copy of foreign variables. Its functions are
# visible, so that one called malloc or clock_gettime replaces that of libc in the library, too. A
# changed library does not need to link the program again.
function(weir_test_links name)
  set_target_properties(${name} PROPERTIES ENABLE_EXPORTS ON C_VISIBILITY_PRESET default POSITION_INDEPENDENT_CODE OFF
    LINK_DEPENDS_NO_SHARED ON)
  target_compile_options(${name} PRIVATE -fPIC)
endfunction()
