# Features that need an optional library: USDT probes (sys/sdt.h, Debian's systemtap-sdt-dev) and
# the export of traces (libcurl4-openssl-dev). WEIR_USDT and WEIR_OTLP: auto, on (missing is an
# error), off.

# weir_optional(OPTION FOUND PACKAGE RESULT): is the feature enabled, given the option and FOUND?
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

pkg_check_modules(curl IMPORTED_TARGET libcurl)
weir_optional(WEIR_OTLP "${curl_FOUND}" libcurl4-openssl-dev weir_have_otlp)
add_library(weir_curl INTERFACE)
if(weir_have_otlp)
  target_link_libraries(weir_curl INTERFACE PkgConfig::curl)
endif()
