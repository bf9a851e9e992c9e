# SPDX-License-Identifier: MIT
# Version, libweir and `cmake --install`.
#
#   bin/weir                          the command; plug-ins take its exported symbols
#   lib/libweir-test.a                for tests of stage types (weir/test.h)
#   lib/libweir.so                    framework, stages, YAML and admin endpoint for other programs
#   include/weir/*.h                  the public headers
#   lib/pkgconfig/weir.pc             cc $(pkg-config --cflags --libs weir)
#   lib/cmake/weir/                   find_package(weir): weir::weir, weir::headers, weir_stage()
#   share/man/                        weir(1), weir.yaml(5), one page per stage type
#   share/{bash-completion,zsh,fish}/ completions
#   share/weir/servers/               the servers to start from
#   share/weir/prometheus/, grafana/  scrape configuration, rules, a dashboard
#   share/weir/bpftrace/              scripts for the USDT probes
#   lib/systemd/system/               weir@.service, weir@.socket
#   etc/logrotate.d/weir              rotation of logs; in /etc with the prefix /usr
#   share/doc/weir/                   README, licence, documents
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# ---- version: determined again by CMake when HEAD changes ----
set(weir_commit unknown)
find_program(GIT_PROGRAM git)
if(GIT_PROGRAM AND EXISTS ${PROJECT_SOURCE_DIR}/.git)
  execute_process(COMMAND ${GIT_PROGRAM} rev-parse --short=12 HEAD
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE weir_head RESULT_VARIABLE weir_no_head
    OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(NOT weir_no_head)
    set(weir_commit ${weir_head})
  endif()
  if(EXISTS ${PROJECT_SOURCE_DIR}/.git/logs/HEAD)
    set_property(DIRECTORY ${PROJECT_SOURCE_DIR} APPEND PROPERTY
      CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/.git/logs/HEAD)
  endif()
endif()
# These macros are set only on the sources that use them, so that a new commit does not rebuild other sources.
set_source_files_properties(cli/load/bench.c cli/help.c cli/man.c cli/run.c admin/stream/sse.c admin/api/routes.c admin/api/view_prom.c PROPERTIES COMPILE_DEFINITIONS
  "WEIR_VERSION=\"${PROJECT_VERSION}\";WEIR_COMMIT=\"${weir_commit}\";WEIR_CFLAGS=\"${CMAKE_BUILD_TYPE} ${CMAKE_C_FLAGS_RELEASE}\"")

file(RELATIVE_PATH weir_include_from_bin ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_INCLUDEDIR})
set_source_files_properties(cli/stage/compile.c PROPERTIES COMPILE_DEFINITIONS
  "WEIR_INCLUDE_FROM_BIN=\"${weir_include_from_bin}\"")

# weir_headers, for other projects, has the installed headers only; weir_public names folders of
# this tree.
add_library(weir_headers INTERFACE)
target_include_directories(weir_headers INTERFACE
  $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
set_target_properties(weir_headers PROPERTIES EXPORT_NAME headers)

# ---- libweir: all but the command line; only weir_* is exported ----
add_library(libweir SHARED $<TARGET_OBJECTS:weir_framework> $<TARGET_OBJECTS:weir_stages>
  $<TARGET_OBJECTS:weir_llhttp> $<TARGET_OBJECTS:weir_config> $<TARGET_OBJECTS:weir_admin>
  $<TARGET_OBJECTS:weir_export> $<TARGET_OBJECTS:weir_server>)
set(weir_exports ${PROJECT_SOURCE_DIR}/framework/cmake/libweir.map)
target_link_libraries(libweir PRIVATE weir_flags weir_urcu weir_openssl weir_yaml weir_mhd weir_gnutls weir_cares weir_codecs weir_jansson
  weir_curl Threads::Threads m ${CMAKE_DL_LIBS}
  INTERFACE $<BUILD_INTERFACE:weir_public> weir_headers)
target_link_options(libweir PRIVATE -Wl,--version-script=${weir_exports})
if(NOT WEIR_SANITIZE) # the sanitizer's run-time library is part of the program
  target_link_options(libweir PRIVATE -Wl,-z,defs)
endif()
# The minor version is part of the soname, since any minor version may add members to structs that
# only embedders use (weir/view.h, weir/spec.h). So is WEIR_STAGE_ABI, the version for stages.
file(STRINGS framework/include/weir/stage.h weir_abi REGEX "^#define WEIR_STAGE_ABI [0-9]+$")
string(REGEX REPLACE "[^0-9]" "" weir_abi "${weir_abi}")
set(weir_so ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}-abi${weir_abi})
set_target_properties(libweir PROPERTIES OUTPUT_NAME weir EXPORT_NAME weir LINKER_LANGUAGE C
  VERSION ${PROJECT_VERSION} SOVERSION ${weir_so}
  LINK_DEPENDS ${weir_exports})

# ---- the package ----
set(weir_package ${CMAKE_INSTALL_LIBDIR}/cmake/weir)
# These files are not written to the build folder itself. find_package searches the folders of PATH,
# to which the tutorial adds the build folder, and the files work only where they are installed.
# Earlier versions wrote them there, so these copies are removed.
set(weir_made ${PROJECT_BINARY_DIR}/package)
file(REMOVE ${PROJECT_BINARY_DIR}/weir-config.cmake ${PROJECT_BINARY_DIR}/weir-config-version.cmake)
configure_package_config_file(framework/cmake/weir-config.cmake.in ${weir_made}/weir-config.cmake
  INSTALL_DESTINATION ${weir_package})
write_basic_package_version_file(${weir_made}/weir-config-version.cmake COMPATIBILITY SameMinorVersion)
# The prefix in weir.pc is relative to that file, so that `cmake --install --prefix` and DESTDIR
# work.
file(RELATIVE_PATH weir_pc_prefix ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
configure_file(framework/cmake/weir.pc.in weir.pc @ONLY)

# ---- what the program writes about itself: manual pages, completions for shells ----
set(weir_written ${PROJECT_BINARY_DIR}/written)
add_custom_command(OUTPUT ${weir_written}/done
  COMMAND ${CMAKE_COMMAND} -E rm -rf ${weir_written}
  COMMAND ${CMAKE_COMMAND} -E make_directory ${weir_written}/man1 ${weir_written}/man5
  COMMAND sh ${PROJECT_SOURCE_DIR}/framework/cmake/written.sh $<TARGET_FILE:weir> ${weir_written}
  COMMAND ${CMAKE_COMMAND} -E touch ${weir_written}/done
  DEPENDS weir framework/cmake/written.sh VERBATIM COMMENT "Writing manual pages and completions")
add_custom_target(weir_written ALL DEPENDS ${weir_written}/done)
install(DIRECTORY ${weir_written}/man1 ${weir_written}/man5 DESTINATION ${CMAKE_INSTALL_MANDIR} COMPONENT weir)
install(FILES ${weir_written}/weir.bash RENAME weir
  DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions COMPONENT weir)
install(FILES ${weir_written}/weir.zsh RENAME _weir DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions
  COMPONENT weir)
install(FILES ${weir_written}/weir.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d
  COMPONENT weir)

# ---- cmake --build BUILD --target uninstall: remove what the last installation wrote ----
add_custom_target(uninstall COMMAND ${CMAKE_COMMAND} -P ${PROJECT_SOURCE_DIR}/framework/cmake/uninstall.cmake
  COMMENT "Removing the installed files")

# ---- what is installed; WeirPackage.cmake makes a Debian package of each component ----
install(TARGETS weir COMPONENT weir)
target_link_libraries(weir_testing INTERFACE libweir)
install(TARGETS weir_headers libweir weir_testing EXPORT weir-targets LIBRARY COMPONENT libweir NAMELINK_COMPONENT libweir-dev
  ARCHIVE COMPONENT libweir-dev)
install(DIRECTORY framework/include/weir stages/include/weir server/include/weir testing/include/weir
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT libweir-dev FILES_MATCHING PATTERN "*.h")
install(EXPORT weir-targets NAMESPACE weir:: DESTINATION ${weir_package} COMPONENT libweir-dev)
install(FILES ${weir_made}/weir-config.cmake ${weir_made}/weir-config-version.cmake
  framework/cmake/WeirStage.cmake framework/cmake/weir-stage.map DESTINATION ${weir_package} COMPONENT libweir-dev)
install(FILES ${PROJECT_BINARY_DIR}/weir.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT libweir-dev)
install(DIRECTORY config/servers contrib/prometheus contrib/grafana
  DESTINATION ${CMAKE_INSTALL_DATADIR}/weir COMPONENT weir)
install(DIRECTORY contrib/bpftrace DESTINATION ${CMAKE_INSTALL_DATADIR}/weir COMPONENT weir
  FILE_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
# The units are not installed below CMAKE_INSTALL_LIBDIR: systemd searches only lib of /usr and
# /usr/local.
install(FILES contrib/systemd/weir@.service contrib/systemd/weir@.socket DESTINATION lib/systemd/system COMPONENT weir)
# logrotate reads /etc/logrotate.d only. As in GNUInstallDirs, the prefix /usr means /etc; that is known
# only when `cmake --install --prefix` or CPack runs.
if(IS_ABSOLUTE "${CMAKE_INSTALL_SYSCONFDIR}")
  set(weir_etc "${CMAKE_INSTALL_SYSCONFDIR}")
else()
  set(weir_etc "\${weir_etc_root}/${CMAKE_INSTALL_SYSCONFDIR}")
endif()
install(CODE "set(weir_etc_root \"\${CMAKE_INSTALL_PREFIX}\")
  if(weir_etc_root MATCHES \"^/usr/?\$|/_CPack_Packages/.*/usr\$\")
    string(REGEX REPLACE \"/usr/?\$\" \"\" weir_etc_root \"\${weir_etc_root}\")
  endif()
  file(INSTALL \"${PROJECT_SOURCE_DIR}/contrib/logrotate/weir\" DESTINATION \"${weir_etc}/logrotate.d\"
    TYPE FILE PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)"
  COMPONENT weir)
install(FILES README.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT weir)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT licence)
install(DIRECTORY docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT weir)
