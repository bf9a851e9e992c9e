/* SPDX-License-Identifier: MIT */
/* Runs the C or C++ compiler for `weir stage build`. Main thread. */
#ifndef WEIR_CLI_STAGE_COMPILE_H
#define WEIR_CLI_STAGE_COMPILE_H

/**
 * Compile source[n] against the installed headers into the shared object `so`, which exports only
 * weir_stage_*. The folder `scratch` is for other files, which are removed.
 *
 * The compiler is $CC (cc), or $CXX (c++) if a source is in C++. $CFLAGS or $CXXFLAGS, $LDFLAGS and
 * $LDLIBS are lists of further arguments, separated by blanks. Returns VERB_OK, or VERB_FINDING after
 * the compiler or this function has printed the reason.
 */
int stage_compile(char *const *source, int n, const char *scratch, const char *so);

#endif
