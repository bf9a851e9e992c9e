/* SPDX-License-Identifier: MIT */
/* Umbrella header for stage authors. Embedders also include spec.h and graph.h. */
#ifndef WEIR_WEIR_H
#define WEIR_WEIR_H

#include <weir/annotate.h>
#include <weir/error.h>
#include <weir/event.h>
#include <weir/io.h>
#include <weir/knob.h>
#include <weir/log.h>
#include <weir/metric.h>
#include <weir/payload.h>
#include <weir/stage.h>
#include <weir/trace.h>
#include <weir/vars.h>

#endif
