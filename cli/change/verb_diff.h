/* SPDX-License-Identifier: MIT */
/* Prints the differences between two configurations. */
#ifndef WEIR_CLI_VERB_DIFF_H
#define WEIR_CLI_VERB_DIFF_H

/** Print one difference as a line on stdout. `effect` is from config_effect_word; `from` and `to`
 *  may be NULL. */
void diff_print(const char *effect, const char *path, const char *from, const char *to);

#endif
