/* SPDX-License-Identifier: MIT */
#ifndef WEIR_HTTP_KNOBS_H
#define WEIR_HTTP_KNOBS_H

#include <weir/knob.h>

/** The knobs of struct http_conf. */
extern const struct weir_knob server_knobs[];

#endif
