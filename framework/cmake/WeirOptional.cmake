# SPDX-License-Identifier: MIT
# Optional features: USDT probes (sys/sdt.h, Debian's systemtap-sdt-dev) and the export of traces,
# whose library the program needs anyway. Values of WEIR_USDT and WEIR_OTLP: auto, on (it is an
# error if the package is missing), off.

# weir_optional(OPTION FOUND PACKAGE RESULT): set RESULT to whether the feature is enabled, given
# the value of OPTION and whether PACKAGE was found.
function(weir_optional option found package result)
  string(TOLOWER "${${option}}" want)
  if(NOT want MATCHES "^(auto|on|off)$")
    message(FATAL_ERROR "${option} is '${${option}}': it takes auto, on or off")
  endif()
  if(want STREQUAL "on" AND NOT found)
    message(FATAL_ERROR "${option} is on, and a Debian package is missing: apt-get install ${package}")
  endif()
  if(found AND NOT want STREQUAL "off")
    set(${result} TRUE PARENT_SCOPE)
  else()
    set(${result} FALSE PARENT_SCOPE)
  endif()
endfunction()

include(CheckIncludeFile)
check_include_file(sys/sdt.h WEIR_SDT_FOUND)
weir_optional(WEIR_USDT "${WEIR_SDT_FOUND}" systemtap-sdt-dev weir_have_usdt)

weir_optional(WEIR_OTLP TRUE libcurl4-openssl-dev weir_have_otlp)
