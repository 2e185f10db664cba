# SPDX-License-Identifier: Apache-2.0
"""What needs a process of its own: the platform's other name, the cache on disk."""

import pytest
import torch

from conftest import agree
from worker import Worker


def ask(device, function, *args, **environ):
    w = Worker(device, **environ)
    try:
        return w.ask("alone", function, *args)
    finally:
        assert w.stop() == 0


def test_a_hybrid_mesh_needs_the_name_tpu():
    assert ask("TESSERA", "hybrid_mesh") == ["TESSERA"]
    hardware, mesh, product = ask("TESSERA", "hybrid_mesh", TESSERA_PLATFORM_NAME="tpu")
    assert hardware == "TPU" and mesh == [[0]]
    x = torch.arange(8.0).reshape(4, 2)
    assert torch.equal(product, x @ x.T + 1)


@pytest.mark.parametrize("as_mlir", ["0", "1"])
def test_factorisations_come_in_both_formats(as_mlir):
    x = torch.randn(6, 6, generator=torch.Generator().manual_seed(0))
    x = x @ x.T + 6 * torch.eye(6)
    values, vectors = torch.linalg.eigh(x)
    agree(ask("TESSERA", "factorised", x, XLA_STABLEHLO_COMPILE=as_mlir),
          [torch.inverse(x), values, vectors.abs()], 1e-4, 1e-5)


def test_the_persistent_cache_does_what_it_does_elsewhere(tmp_path):
    """torch_xla writes an executable; it asks no plugin to read one, and compiles again."""
    for _ in range(2):
        agree(ask("TESSERA", "persistent_cache", str(tmp_path / "ours")),
              ask("CPU", "persistent_cache", str(tmp_path / "cpu")))
