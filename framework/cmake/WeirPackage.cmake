# SPDX-License-Identifier: MIT
# Debian packages by CPack: `weir` (program, units, servers), `libweirN.N-abiN` and `libweir-dev`.
#   scripts/deb   builds them into build/deb
# Included after WeirInstall.cmake, whose install() calls name the components.
set(WEIR_MAINTAINER "weir contributors <weir@example.org>" CACHE STRING "Maintainer of Debian packages: NAME <ADDRESS>")
set(weir_debian ${PROJECT_BINARY_DIR}/debian)
string(TIMESTAMP weir_today "%a, %d %b %Y %H:%M:%S +0000" UTC)
file(CONFIGURE OUTPUT ${weir_debian}/changelog @ONLY CONTENT
"weir (@PROJECT_VERSION@) unstable; urgency=medium

  * Built from commit @weir_commit@; CHANGELOG.md has the changes.

 -- @WEIR_MAINTAINER@  @weir_today@
")
file(READ LICENSE weir_license)
string(REGEX REPLACE "^MIT License\n\nCopyright[^\n]*\n\n" "" weir_license "${weir_license}")
string(REGEX REPLACE "\n\n" "\n.\n" weir_license "${weir_license}")
string(REGEX REPLACE "\n([^\n])" "\n \\1" weir_license "\n${weir_license}")
file(CONFIGURE OUTPUT ${weir_debian}/copyright @ONLY CONTENT
"Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: weir

Files: *
Copyright: 2026 weir contributors
License: Expat

License: Expat@weir_license@")
file(WRITE ${weir_debian}/shlibs "libweir ${weir_so} libweir${weir_so} (>= ${PROJECT_VERSION})\n")
file(WRITE ${weir_debian}/triggers "activate-noawait ldconfig\n")
# The programs among the bpftrace scripts are run by bpftrace.
file(WRITE ${weir_debian}/overrides "weir: unusual-interpreter bpftrace *\n")
install(FILES ${weir_debian}/overrides RENAME weir DESTINATION ${CMAKE_INSTALL_DATADIR}/lintian/overrides
  COMPONENT weir EXCLUDE_FROM_ALL)
# Changes that an administrator makes to this file are kept.
file(WRITE ${weir_debian}/conffiles "/etc/logrotate.d/weir\n")
# CPack writes maintainer scripts that call ldconfig, in addition to the trigger.
file(WRITE ${weir_debian}/overrides-libweir "libweir${weir_so}: maintscript-calls-ldconfig *\n")
install(FILES ${weir_debian}/overrides-libweir RENAME libweir${weir_so}
  DESTINATION ${CMAKE_INSTALL_DATADIR}/lintian/overrides COMPONENT libweir EXCLUDE_FROM_ALL)
find_program(GZIP_PROGRAM gzip)
if(GZIP_PROGRAM)
  execute_process(COMMAND ${GZIP_PROGRAM} -9nf ${weir_debian}/changelog)
endif()
foreach(package weir libweir${weir_so} libweir-dev)
  string(REGEX REPLACE "^libweir[0-9].*$" "libweir" component ${package})
  install(FILES ${weir_debian}/copyright DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${package}
    COMPONENT ${component} EXCLUDE_FROM_ALL)
  install(FILES ${weir_debian}/changelog.gz DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${package}
    COMPONENT ${component} EXCLUDE_FROM_ALL)
endforeach()

set(CPACK_GENERATOR DEB)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL weir libweir libweir-dev)
set(CPACK_PACKAGE_NAME weir)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_PACKAGE_MAINTAINER "${WEIR_MAINTAINER}")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_RELEASE "")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_ENABLE_COMPONENT_DEPENDS OFF)
set(CPACK_DEBIAN_WEIR_PACKAGE_NAME weir)
set(CPACK_DEBIAN_WEIR_PACKAGE_SECTION httpd)
set(CPACK_DEBIAN_WEIR_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_WEIR_PACKAGE_CONTROL_EXTRA ${weir_debian}/conffiles)
set(CPACK_DEBIAN_WEIR_DESCRIPTION
"servers declared in YAML as graphs of stages
Each stage has a queue, a pool of threads and admission control, so a server
under overload keeps doing useful work and refuses the rest early. An admin
endpoint with a dashboard shows every stage.")
set(CPACK_DEBIAN_LIBWEIR_PACKAGE_NAME libweir${weir_so})
set(CPACK_DEBIAN_LIBWEIR_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_LIBWEIR_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_LIBWEIR_PACKAGE_CONTROL_EXTRA ${weir_debian}/shlibs ${weir_debian}/triggers)
set(CPACK_DEBIAN_LIBWEIR_DESCRIPTION
"servers from YAML files inside programs - library
The stages, the loader of YAML files and the admin endpoint of weir, for
programs that contain a server.")
set(CPACK_DEBIAN_LIBWEIR-DEV_PACKAGE_NAME libweir-dev)
set(CPACK_DEBIAN_LIBWEIR-DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_LIBWEIR-DEV_PACKAGE_DEPENDS "libweir${weir_so} (= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_LIBWEIR-DEV_DESCRIPTION
"servers from YAML files inside programs - development files
Headers, a pkg-config file and a CMake package, for programs that contain a
server and for stage types of your own.")
include(CPack)
