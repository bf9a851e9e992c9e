/* SPDX-License-Identifier: MIT */
/* Classifies the first record; see tls_hello.h. A client that does not speak TLS is recognized at
 * the first byte that shows it. */
#include "net/tls/tls_hello.h"

enum tls_hello tls_hello_judge(const unsigned char *head, size_t n, size_t waiting)
{
	size_t length;

	if (head[0] >= 'A' && head[0] <= 'Z')
		return TLS_HELLO_PLAIN;
	if (head[0] != TLS_HELLO_TYPE || (n > 1 && head[1] != 3))
		return TLS_HELLO_BAD;
	if (n < TLS_HELLO_HEAD)
		return TLS_HELLO_LATER;
	length = (size_t)head[3] << 8 | head[4];
	if (length == 0 || length > TLS_RECORD_BYTES)
		return TLS_HELLO_BAD;
	return waiting >= TLS_HELLO_HEAD + length ? TLS_HELLO_WHOLE : TLS_HELLO_LATER;
}
