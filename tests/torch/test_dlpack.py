# SPDX-License-Identifier: Apache-2.0
"""DLPack has no number for the device: what goes by it is a copy in the CPU's memory, what can't be
one is refused. With torch_xla, with JAX and the PyTorch of the CPU, with both."""

import pytest
import torch

from dlpack import TYPES
from worker import Worker


@pytest.fixture(scope="module")
def jax():
    """A process that has JAX and no torch_xla."""
    w = Worker("TESSERA", JAX_PLATFORMS="tessera,cpu").start()
    yield w
    assert w.stop() == 0


@pytest.mark.parametrize("dtype", TYPES)
def test_tensors_are_taken_and_written_to(dtype, device):
    where, seen, after = device.ask("dlpack", "to_torch", dtype)
    want = (torch.arange(6) % 4).to(TYPES[dtype]).reshape(2, 3).T
    assert where == "cpu"
    assert torch.equal(seen, want) and torch.equal(after, want) and seen.dtype == want.dtype


@pytest.mark.parametrize("dtype", TYPES)
def test_what_others_have_is_taken(dtype, device):
    got = device.ask("dlpack", "from_torch", dtype)
    t = (torch.arange(24) % 5).to(TYPES[dtype]).reshape(4, 6)
    want = [t, t.T[::2], t, t][:len(got) // 2]
    for x, y in zip(got, want + [y + y for y in want], strict=True):
        assert x.dtype == y.dtype and torch.equal(x, y)


def test_torch_xla_refuses_in_words(device):
    tensor, cpu, number, copied = device.ask("dlpack", "refused_by_torch_xla")
    assert tensor == "ValueError: Unknown device type xla for Dlpack"
    assert "torch.utils.dlpack.to_dlpack takes it" in cpu
    assert number.startswith("RuntimeError") and "capsule" in number
    assert torch.equal(copied, torch.ones(3))


@pytest.mark.parametrize("size", [5, 1 << 16])
@pytest.mark.parametrize("dtype", TYPES)
def test_pytorch_takes_arrays_of_jax(dtype, size, jax):
    same, dtypes, again = jax.ask("dlpack", "jax_to_torch", dtype, size)
    assert same and again and dtypes == [str(TYPES[dtype])] * 3


@pytest.mark.parametrize("dtype", TYPES)
def test_jax_takes_tensors_of_pytorch(dtype, jax):
    where, no_copy, same, doubled = jax.ask("dlpack", "torch_to_jax", dtype)
    assert where == ["cpu", "tessera", "tessera"]
    assert no_copy and same
    assert doubled or dtype == "bool"       # a sum of truth values is another in each


def test_jax_refuses_in_words(jax):
    view, here, int4, deleted = jax.ask("dlpack", "refused_by_jax")
    assert view.startswith("BufferError") and "copy=False was asked for" in view
    assert here.startswith("ValueError") and "requires a copy" in here
    assert "S4 has no DLPack equivalent" in int4
    assert deleted.startswith("RuntimeError") and "deleted" in deleted


def test_both_frameworks_share_a_process():
    w = Worker("TESSERA", JAX_PLATFORMS="tessera,cpu")
    got, want = w.ask("dlpack", "through_both")
    torch.testing.assert_close(got, want, rtol=1e-5, atol=1e-6)
    assert w.stop() == 0
