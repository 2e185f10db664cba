# SPDX-License-Identifier: Apache-2.0
"""The table of operators against torch's CPU, in every type that it takes, and gradients.

Where the device differs, XLA's CPU backend is asked: what it refuses too, or answers with
our numbers, is torch_xla's own. Counts by verdict stand at the end of pytest's output.
"""

import pytest
import torch

import ops
import ops_nn  # noqa: F401 - its cases

AT_LEAST = 400


def test_the_table_is_large():
    assert len(ops.CASES) >= AT_LEAST


@pytest.mark.parametrize("name", ops.CASES)
def test_operators_agree(name, device, cpu, tally):
    case = ops.CASES[name]
    ways = [(t, False) for t in case.types or ops.TYPES]
    if case.grad and not case.is_random:
        ways.append((torch.float32, True))
    failures, tried = [], 0
    for dtype, with_grad in ways:
        found = ops.judge(name, dtype, with_grad, device, cpu)
        if found is None:
            continue
        tried += 1
        verdict, text = found
        tally(verdict, name)
        if verdict in ("refused", "wrong"):
            failures.append(f"{dtype}{' gradients' if with_grad else ''}: {verdict}: {text}")
    assert tried, "the CPU takes it in no type"
    assert not failures, "\n".join(failures)
