/* SPDX-License-Identifier: Apache-2.0 */
/* Which steps there are and how they end, for who runs them and who reads what a run wrote. */
#include "tools/bringup/bringup.h"

const struct bringup_step bringup_steps[] = {
#define STEP(number, name, level, proves) { number, level, #name, proves },
#include "tools/bringup/steps.def"
#undef STEP
};
const unsigned bringup_n_steps = sizeof(bringup_steps) / sizeof(*bringup_steps);

const char *bringup_result_name(enum bringup_result r)
{
	return r == BRINGUP_PASS ? "pass" : r == BRINGUP_FAIL ? "fail" : "skip";
}
