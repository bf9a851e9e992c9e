# SPDX-License-Identifier: MIT
# weir.cdx.json: the libraries that this build links or compiles in, with their versions, in the format
# CycloneDX 1.5 (ECMA-424).
set(weir_parts "")

# weir_sbom(NAME VERSION LICENCE PURL)
function(weir_sbom name version licence purl)
  string(CONFIGURE [[
    { "type": "library", "bom-ref": "@purl@@@version@", "name": "@name@", "version": "@version@",
      "purl": "@purl@@@version@", "licenses": [{ "expression": "@licence@" }] }]] part @ONLY)
  if(weir_parts)
    set(part "${weir_parts},${part}")
  endif()
  set(weir_parts "${part}" PARENT_SCOPE)
endfunction()

weir_sbom(liburcu "${urcu_VERSION}" LGPL-2.1-or-later pkg:deb/debian/liburcu8)
weir_sbom(libyaml "${yaml_VERSION}" MIT pkg:deb/debian/libyaml-0-2)
weir_sbom(libmicrohttpd "${mhd_VERSION}" LGPL-2.1-or-later pkg:deb/debian/libmicrohttpd12)
weir_sbom(jansson "${jansson_VERSION}" MIT pkg:deb/debian/libjansson4)
weir_sbom(openssl "${openssl_VERSION}" Apache-2.0 pkg:deb/debian/libssl3)
weir_sbom(gnutls "${gnutls_VERSION}" LGPL-2.1-or-later pkg:deb/debian/libgnutls30)
weir_sbom(c-ares "${cares_VERSION}" MIT pkg:deb/debian/libc-ares2)
if("zlib" IN_LIST weir_codings)
  weir_sbom(zlib "${zlib_VERSION}" Zlib pkg:deb/debian/zlib1g)
endif()
if("libzstd" IN_LIST weir_codings)
  weir_sbom(zstd "${libzstd_VERSION}" BSD-3-Clause pkg:deb/debian/libzstd1)
endif()
if("libbrotlienc" IN_LIST weir_codings)
  weir_sbom(brotli "${libbrotlienc_VERSION}" MIT pkg:deb/debian/libbrotli1)
endif()
weir_sbom(libcurl "${curl_VERSION}" curl pkg:deb/debian/libcurl4)
# Compiled in: versions are in the headers.
file(STRINGS ${LLHTTP_INCLUDE_DIR}/llhttp.h weir_llhttp_version REGEX "#define LLHTTP_VERSION_(MAJOR|MINOR|PATCH) ")
string(REGEX REPLACE "[^0-9;]" "" weir_llhttp_version "${weir_llhttp_version}")
list(JOIN weir_llhttp_version "." weir_llhttp_version)
weir_sbom(llhttp "${weir_llhttp_version}" MIT pkg:npm/llhttp)
file(STRINGS ${XXHASH_INCLUDE_DIR}/xxhash.h weir_xxhash_version REGEX "#define XXH_VERSION_(MAJOR|MINOR|RELEASE) ")
string(REGEX REPLACE "[^0-9;]" "" weir_xxhash_version "${weir_xxhash_version}")
list(JOIN weir_xxhash_version "." weir_xxhash_version)
weir_sbom(xxhash "${weir_xxhash_version}" BSD-2-Clause pkg:generic/xxhash)
# The dashboard: the packages that vite bundles.
if(NOT WEIR_UI STREQUAL "off")
  file(READ admin/ui/package.json weir_ui)
  string(JSON weir_ui_n LENGTH "${weir_ui}" dependencies)
  math(EXPR weir_ui_last "${weir_ui_n} - 1")
  foreach(i RANGE ${weir_ui_last})
    string(JSON weir_ui_name MEMBER "${weir_ui}" dependencies ${i})
    string(JSON weir_ui_version GET "${weir_ui}" dependencies ${weir_ui_name})
    string(REPLACE "@" "%40" weir_ui_purl ${weir_ui_name})
    weir_sbom(${weir_ui_name} ${weir_ui_version} MIT pkg:npm/${weir_ui_purl})
  endforeach()
endif()

file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/weir.cdx.json @ONLY CONTENT [[
{
  "bomFormat": "CycloneDX",
  "specVersion": "1.5",
  "version": 1,
  "metadata": {
    "component": { "type": "application", "bom-ref": "weir", "name": "weir", "version": "@PROJECT_VERSION@",
      "description": "servers declared in YAML as graphs of stages", "licenses": [{ "license": { "id": "MIT" } }],
      "properties": [{ "name": "commit", "value": "@weir_commit@" }] }
  },
  "components": [@weir_parts@
  ]
}
]])
install(FILES ${PROJECT_BINARY_DIR}/weir.cdx.json DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT weir)
