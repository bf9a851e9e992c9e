/* SPDX-License-Identifier: MIT */
/*
 * Finds the name that is spelt most like a word, for "did you mean", by Damerau-Levenshtein
 * distance (optimal string alignment, in which swapping two adjacent letters, the most common typo,
 * is one edit). Case is ignored.
 */
#include <weir/knob.h>

#include <ctype.h>
#include <string.h>

/* Maximum length of the words and names that are compared. */
#define WORD_MAX 64

static int min_of(int a, int b)
{
	return a < b ? a : b;
}

static bool same(char a, char b)
{
	return tolower((unsigned char)a) == tolower((unsigned char)b);
}

static int distance(const char *a, int na, const char *b, int nb)
{
	int rows[3][WORD_MAX + 1], *before = rows[0], *last = rows[1], *now = rows[2];

	for (int j = 0; j <= nb; j++)
		last[j] = j;
	for (int i = 1; i <= na; i++) {
		now[0] = i;
		for (int j = 1; j <= nb; j++) {
			now[j] = min_of(last[j], now[j - 1]) + 1;
			now[j] = min_of(now[j], last[j - 1] + !same(a[i - 1], b[j - 1]));
			if (i > 1 && j > 1 && same(a[i - 1], b[j - 2]) && same(a[i - 2], b[j - 1]))
				now[j] = min_of(now[j], before[j - 2] + 1);
		}
		int *spare = before;
		before = last;
		last = now;
		now = spare;
	}
	return last[nb];
}

const char *weir_nearest(const char *word, const char *const *names, int n)
{
	int len = (int)strnlen(word, WORD_MAX + 1);
	int best = len / 3 + 1; /* only names at a smaller distance are suggested */
	const char *nearest = NULL;

	if (len > WORD_MAX)
		return NULL;
	for (int i = 0; i < n; i++) {
		int name_len = (int)strnlen(names[i], WORD_MAX + 1);
		if (name_len > WORD_MAX || name_len - len >= best || len - name_len >= best)
			continue;
		int d = distance(word, len, names[i], name_len);
		if (d < best) {
			best = d;
			nearest = names[i];
		}
	}
	return nearest;
}
