# SPDX-License-Identifier: Apache-2.0
"""Layers on the device: results, gradients and buffers as on XLA's CPU backend (torch_xla keeps
another running variance than torch), results as on torch's own CPU."""

import pytest

import layers
from conftest import agree
from worker import to_cpu


@pytest.mark.parametrize("name", layers.LAYERS)
def test_layers_go_forwards_and_backwards(name, both):
    ours = both("layers", "run", name, rtol=2e-4, atol=2e-4)
    agree(ours[0], to_cpu(layers.step(name, "cpu")[0]), 2e-4, 2e-4)


def test_there_are_thirty_kinds():
    assert len(layers.LAYERS) >= 30
