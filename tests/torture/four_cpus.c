/* SPDX-License-Identifier: MIT */
/* Linked into a torture test of core groups, which has four CPUs then. */
#define FIXTURE_CPUS 4
#include "fixture/graph/cpus.h"
