# SPDX-License-Identifier: Apache-2.0
"""Tensors of which only the bounds are known when they are asked for, against PyTorch's CPU."""

import pytest
import torch

from worker import Worker


@pytest.fixture(scope="module")
def experimental():
    w = Worker("TESSERA", XLA_EXPERIMENTAL="nonzero:masked_select").start()
    yield w
    assert w.stop() == 0


@pytest.mark.parametrize("values", [
    [0.0, 0, 0, 0], [0.0, 0, 3, 0], [1.0, 0, 3, 4], [1.0, 2, 3, 4], [-1.0, 2, 0, -4],
    [[0.0, 1, 0], [2, 0, 3]]], ids=str)
def test_what_is_found_is_as_long_as_it_is(values, experimental):
    is_open, at, some, total, more = experimental.ask("dynamic", "found", values)
    x = torch.tensor(values)
    want = torch.masked_select(x, x > 0)
    assert is_open
    assert torch.equal(at.long(), torch.nonzero(x))
    assert torch.equal(some, want)
    torch.testing.assert_close(total, (want * 2).sum())
    torch.testing.assert_close(more, (want * 2).exp())


@pytest.mark.parametrize("values", [
    [[1.0, 2, 3]], [[-1.0, 2, 3]], [[1.0, 2], [-1, 5], [3, 4]]], ids=str)
def test_rows_that_are_found_are_summed(values, experimental):
    x = torch.tensor(values)
    torch.testing.assert_close(experimental.ask("dynamic", "rows", values),
                               x[x[:, 0] > 0].sum(0))
