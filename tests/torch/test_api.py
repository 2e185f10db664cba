# SPDX-License-Identifier: Apache-2.0
"""torch_xla's documented functions on the device, beside PJRT_DEVICE=CPU."""

import pytest

import api_names
from worker import Worker


@pytest.mark.parametrize("name", api_names.PLAIN)
def test_documented_functions_agree(name, both):
    both("api", name)


@pytest.mark.parametrize("name", api_names.OPTIMIZERS)
def test_optimizers_take_the_same_steps(name, both):
    both("api", "optimizer", name, rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize("how", ["torch", "xm", "xser", "from the host"])
def test_what_is_saved_loads(how, both):
    both("api", "saved", how)


@pytest.mark.parametrize("training", [False, True])
def test_torch_compile_with_openxla(training, both):
    both("api", "openxla", training, rtol=1e-4, atol=1e-4)


def test_bfloat16_by_autocast(both):
    losses, kinds = both("api", "mixed_precision", rtol=2e-2, atol=2e-2)
    assert set(kinds) == {"torch.bfloat16"} and losses[-1] < losses[0]


def test_gradients_are_scaled(both):
    scales = both("api", "scaled_gradients", rtol=2e-2, atol=2e-2)[::5]
    assert scales == [16.0, 32.0, 16.0, 16.0, 32.0] * 4


def test_random_state_is_kept_and_numbers_are_uniform(both):
    state, again, same, *rest = both("api", "random_state")
    assert (state, again, same) == (1234, True, False) and all(rest)


def test_each_permutation_is_another(device):
    found = [tuple(p.tolist()) for p in device.ask("api", "permutations")]
    assert len(set(found)) == 5
    assert all(sorted(p) == list(range(30)) for p in found)


def test_a_seed_makes_permutations_the_same():
    found = []
    for seed in "11", "11", "12":
        worker = Worker("TESSERA", TESSERA_RNG_SEED=seed)
        found.append([tuple(p.tolist()) for p in worker.ask("api", "permutations")])
        worker.stop()
    assert found[0] == found[1] != found[2]


def test_the_device_names_itself(device):
    kind, hardware, name, attributes = device.ask("api", "kinds")
    assert (kind, hardware, name) == ("TESSERA", "TESSERA", "Tessera T1")
    assert attributes["coords"] == [0, 0, 0] and attributes["core_on_chip"] == 0
    assert "slice_index" not in attributes


def test_memory_info_follows_a_tensor(device):
    before, during, after = device.ask("api", "memory")
    assert set(before) == {"bytes_used", "bytes_limit", "peak_bytes_used"}
    assert during["bytes_used"] >= before["bytes_used"] + (4 << 20)
    assert during["peak_bytes_used"] >= during["bytes_used"]
    assert after["bytes_used"] == before["bytes_used"]
    assert before["bytes_limit"] == after["bytes_limit"] >= 1 << 30
