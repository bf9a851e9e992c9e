/* SPDX-License-Identifier: MIT */
/* Checks what only answers have; see guard.h. */
#include "http/message/guard.h"

enum guard_verdict guard_status_line(struct weir_slice line, struct http_head *head)
{
	const char *p = line.p;

	if (line.n < 12 || memcmp(p, "HTTP/1.", 7) != 0 || (p[7] != '0' && p[7] != '1') ||
	    p[8] != ' ')
		return guard_refuse(head, 502, "the status line is malformed");
	head->minor = (uint8_t)(p[7] - '0');
	for (int i = 9; i < 12; i++) {
		if (p[i] < '0' || p[i] > '9')
			return guard_refuse(head, 502, "the status line is malformed");
		head->code = (uint16_t)(head->code * 10 + p[i] - '0');
	}
	if (head->code < 100 || head->code > 599 || (line.n > 12 && p[12] != ' '))
		return guard_refuse(head, 502, "the status line is malformed");
	return GUARD_GOOD;
}

enum guard_verdict guard_whole_answer(struct http_head *head)
{
	bool bodiless = head->code < 200 || head->code == 204;

	if (head->chunked && head->has_length)
		return guard_refuse(head, 502, "Content-Length with Transfer-Encoding");
	if (head->chunked && head->minor == 0)
		return guard_refuse(head, 502, "Transfer-Encoding in HTTP/1.0");
	/* RFC 9110, 8.6 and RFC 9112, 6.1: a server must not send these. Some clients would read a body. */
	if (bodiless && (head->chunked || head->content_length > 0))
		return guard_refuse(head, 502, "a length where no body is allowed");
	return GUARD_GOOD;
}
