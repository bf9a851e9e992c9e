/* SPDX-License-Identifier: MIT */
/* Provides the reason phrase, status line and short plain-text body of each status code, from one
 * table. */
#include "http/message/status.h"

/* From IANA's registry. 1xx and most codes of WebDAV and of upgrades are left out, since no stage
 * needs them. */
#define STATUS_TABLE(X)                                                                            \
	X(200, "OK")                                                                               \
	X(201, "Created")                                                                          \
	X(202, "Accepted")                                                                         \
	X(203, "Non-Authoritative Information")                                                    \
	X(204, "No Content")                                                                       \
	X(205, "Reset Content")                                                                    \
	X(206, "Partial Content")                                                                  \
	X(300, "Multiple Choices")                                                                 \
	X(301, "Moved Permanently")                                                                \
	X(302, "Found")                                                                            \
	X(303, "See Other")                                                                        \
	X(304, "Not Modified")                                                                     \
	X(307, "Temporary Redirect")                                                               \
	X(308, "Permanent Redirect")                                                               \
	X(400, "Bad Request")                                                                      \
	X(401, "Unauthorized")                                                                     \
	X(402, "Payment Required")                                                                 \
	X(403, "Forbidden")                                                                        \
	X(404, "Not Found")                                                                        \
	X(405, "Method Not Allowed")                                                               \
	X(406, "Not Acceptable")                                                                   \
	X(408, "Request Timeout")                                                                  \
	X(409, "Conflict")                                                                         \
	X(410, "Gone")                                                                             \
	X(411, "Length Required")                                                                  \
	X(412, "Precondition Failed")                                                              \
	X(413, "Content Too Large")                                                                \
	X(414, "URI Too Long")                                                                     \
	X(415, "Unsupported Media Type")                                                           \
	X(416, "Range Not Satisfiable")                                                            \
	X(417, "Expectation Failed")                                                               \
	X(418, "I'm a teapot")                                                                     \
	X(421, "Misdirected Request")                                                              \
	X(422, "Unprocessable Content")                                                            \
	X(425, "Too Early")                                                                        \
	X(428, "Precondition Required")                                                            \
	X(429, "Too Many Requests")                                                                \
	X(431, "Request Header Fields Too Large")                                                  \
	X(451, "Unavailable For Legal Reasons")                                                    \
	X(500, "Internal Server Error")                                                            \
	X(501, "Not Implemented")                                                                  \
	X(502, "Bad Gateway")                                                                      \
	X(503, "Service Unavailable")                                                              \
	X(504, "Gateway Timeout")                                                                  \
	X(505, "HTTP Version Not Supported")                                                       \
	X(507, "Insufficient Storage")                                                             \
	X(508, "Loop Detected")

#define SLICE(text)                                                                                \
	{                                                                                          \
		text, sizeof(text) - 1                                                             \
	}

static const struct status statuses[] = {
#define STATUS_ROW(code, reason)                                                                   \
	{code, reason, SLICE("HTTP/1.1 " #code " " reason "\r\n"), SLICE(#code " " reason "\n")},
    STATUS_TABLE(STATUS_ROW)
#undef STATUS_ROW
};

const struct status *status_find(int code)
{
	int low = 0, high = (int)(sizeof(statuses) / sizeof(statuses[0])) - 1;

	if (code == 200)
		return &statuses[0];
	while (low <= high) {
		int middle = (low + high) / 2;
		if (statuses[middle].code == code)
			return &statuses[middle];
		if (statuses[middle].code < code)
			low = middle + 1;
		else
			high = middle - 1;
	}
	return NULL;
}

const char *weir_http_reason(int status)
{
	const struct status *s = status_find(status);

	return s ? s->reason : "Unknown";
}
