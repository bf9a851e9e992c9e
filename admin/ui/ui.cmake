# SPDX-License-Identifier: MIT
# The dashboard. The assembler includes its files in admin/request/assets.c, where dependency
# scanners do not detect them.
#
# -DWEIR_UI=prebuilt  admin/ui/dist as it is in the tree: no Node.js is needed (the default)
# -DWEIR_UI=build     built from admin/ui/src by vite; needs npm, which fetches what package-lock.json names
# -DWEIR_UI=off       no dashboard; the path / is answered with one sentence
set(WEIR_UI prebuilt CACHE STRING "The dashboard: prebuilt, build or off")
set_property(CACHE WEIR_UI PROPERTY STRINGS prebuilt build off)

set(ui_names index.html app.js app.css icon.svg LICENSES.txt)
if(WEIR_UI STREQUAL "prebuilt")
  set(ui_dir ${CMAKE_CURRENT_SOURCE_DIR}/admin/ui/dist)
elseif(WEIR_UI STREQUAL "build")
  find_program(WEIR_NPM npm REQUIRED)
  set(ui_dir ${CMAKE_CURRENT_BINARY_DIR}/ui)
  file(GLOB_RECURSE ui_sources CONFIGURE_DEPENDS admin/ui/src/*)
  list(TRANSFORM ui_names PREPEND ${ui_dir}/ OUTPUT_VARIABLE ui_outputs)
  add_custom_command(OUTPUT ${ui_outputs}
    COMMAND ${WEIR_NPM} ci --no-fund --no-audit
    COMMAND ${WEIR_NPM} run build -- --outDir ${ui_dir}
    DEPENDS ${ui_sources} admin/ui/package.json admin/ui/package-lock.json admin/ui/vite.config.js
    WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR}/admin/ui
    COMMENT "Building the dashboard with vite" VERBATIM)
elseif(NOT WEIR_UI STREQUAL "off")
  message(FATAL_ERROR "WEIR_UI is '${WEIR_UI}'; it is one of prebuilt, build and off")
endif()

if(WEIR_UI STREQUAL "off")
  target_compile_definitions(weir_admin PRIVATE WEIR_UI_OFF)
else()
  list(TRANSFORM ui_names PREPEND ${ui_dir}/ OUTPUT_VARIABLE ui_files)
  target_compile_definitions(weir_admin PRIVATE WEIR_UI_DIR="${ui_dir}")
endif()

# The description of the API is embedded in the same way, regardless of WEIR_UI.
set(ui_openapi ${CMAKE_CURRENT_SOURCE_DIR}/admin/openapi.json)
list(APPEND ui_files ${ui_openapi})

# Every file is also embedded compressed; without gzip the dashboard is sent uncompressed. -n leaves
# out the time, so that equal files make equal programs.
find_program(WEIR_GZIP gzip)
if(WEIR_GZIP)
  set(ui_zipped_dir ${CMAKE_CURRENT_BINARY_DIR}/ui-zipped)
  file(MAKE_DIRECTORY ${ui_zipped_dir})
  foreach(ui_file IN LISTS ui_files)
    get_filename_component(ui_name ${ui_file} NAME)
    set(ui_zip ${ui_zipped_dir}/${ui_name}.gz)
    add_custom_command(OUTPUT ${ui_zip} COMMAND ${WEIR_GZIP} -9nc ${ui_file} > ${ui_zip}
      DEPENDS ${ui_file} VERBATIM)
    list(APPEND ui_zips ${ui_zip})
  endforeach()
  list(APPEND ui_files ${ui_zips})
  target_sources(weir_admin PRIVATE ${ui_zips})
  target_compile_definitions(weir_admin PRIVATE WEIR_ZIPPED_DIR="${ui_zipped_dir}")
endif()
set_source_files_properties(admin/request/assets.c PROPERTIES OBJECT_DEPENDS "${ui_files}")
target_compile_definitions(weir_admin PRIVATE WEIR_OPENAPI_FILE="${ui_openapi}")
