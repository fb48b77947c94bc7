/* SPDX-License-Identifier: Apache-2.0 */
#ifndef K3_RUNTIME_CLI_PLAN_REPORT_H
#define K3_RUNTIME_CLI_PLAN_REPORT_H

#include <stdio.h>

#include "format/tool/json_out.h"
#include "runtime/engine/memory_plan.h"

/* The plan as an object "plan" of an open JSON object. */
void k3_plan_put(struct k3_json_out *out, const struct k3_memory_plan *plan,
                 const struct k3_pack_tables *tables);

/* The plan for people: what --plan prints. */
void k3_plan_print(FILE *stream, const struct k3_memory_plan *plan,
                   const struct k3_pack_tables *tables);

#endif
