/* SPDX-License-Identifier: MIT */
/* How a difference between two configurations is printed. */
#ifndef WEIR_CLI_VERB_DIFF_H
#define WEIR_CLI_VERB_DIFF_H

/** One line of it on stdout. `effect` is config_effect_word's; `from` and `to` are NULL where there is none. */
void diff_print(const char *effect, const char *path, const char *from, const char *to);

#endif
