# SPDX-License-Identifier: Apache-2.0
"""SPMD mode on eight devices beside the same programs on one."""


import pytest
import torch

import test_alone
from conftest import agree
from worker import Worker

PLAIN = ["every_type", "specs", "uneven", "products", "reductions", "moves", "looked_up",
         "convolutions", "attention", "loops", "marks_between", "marked_anew", "without_marks",
         "in_place_and_between_steps", "manual", "many_parameters", "openxla",
         "distributed_tensors", "saved"]
PLANS = ["data", "tensor", "data and tensor", "everything"]


def worker(n, **environ):
    return Worker("TESSERA", TESSERA_DEVICES="", TESSERA_SIM=f"devices={n},lanes=1", **environ)


@pytest.fixture(scope="module")
def eight():
    w = worker(8).start()
    yield w
    assert w.stop() == 0


@pytest.fixture(scope="module")
def one():
    w = worker(1).start()
    yield w
    assert w.stop() == 0


@pytest.fixture(scope="module")
def as_on_one(eight, one):
    """as_on_one(function, *args, tol=): the result of eight devices, which agrees with one's."""
    def ask(function, *args, tol=1e-4):
        ours = eight.ask("spmd", function, *args)
        agree(ours, one.ask("spmd", function, *args), tol, tol)
        return ours
    return ask


@pytest.mark.parametrize("name", PLAIN)
def test_marked_tensors_compute_as_on_one_device(name, as_on_one):
    as_on_one(name)


@pytest.mark.parametrize("kind", ["SGD", "AdamW"])
@pytest.mark.parametrize("plan", PLANS)
def test_a_model_trains_in_parts(plan, kind, as_on_one):
    losses = as_on_one("trained", plan, kind)[0]
    assert losses[-1] < losses[0]


@pytest.mark.parametrize("name", ["fully_sharded", "patched_linear"])
def test_wrapped_models_train(name, as_on_one):
    losses = as_on_one(name)[0]
    assert losses[-1] < losses[0]


@pytest.mark.parametrize("how", [{}, {"bf16": True}, {"again": True}, {"compiled": True}],
                         ids=lambda how: "".join(how) or "plain")
def test_a_transformer_trains_on_two_axes(how, as_on_one):
    """bf16: by autocast; again: activations computed anew; compiled: by torch_xla.compile."""
    losses = as_on_one("transformer", *(how.get(k, False) for k in ("bf16", "again", "compiled")),
                       tol=2e-2 if how.get("bf16") else 1e-4)[0]
    assert losses[-1] < losses[0]


@pytest.mark.parametrize("minibatch", [False, True])
def test_a_loader_sends_parts(minibatch, as_on_one):
    as_on_one("loaded", minibatch)


def test_a_checkpoint_loads_into_another_mesh(as_on_one):
    saved, loaded = as_on_one("checkpointed")
    agree(saved, loaded, 0, 0)


def test_training_resumes_from_a_managed_checkpoint(as_on_one):
    said, kept, ended, resumed = as_on_one("managed_checkpoints")
    assert said == [True, False, True, False, True, False] and kept == [2, 4]
    # Resumed at step 4, one more is step 5, where the first one ended.
    agree(resumed[1:], ended, 1e-5, 1e-6)


# ---- how it lies ----

@pytest.mark.parametrize("names", [("x", "y"), (None, "y"), ("y", "x"), (("y", "x"), None)])
def test_each_device_holds_its_part(names, eight):
    sizes = {"x": 2, "y": 4}
    shards, whole = eight.ask("spmd", "parts", *names)
    for k, (device, shape, data, _) in enumerate(shards):
        place, index, steps = {"x": k // 4, "y": k % 4}, [], []
        for axes, size in zip(names, whole.shape):
            at, n = 0, 1
            for axis in filter(None, axes if isinstance(axes, tuple) else (axes,)):
                at, n = at * sizes[axis] + place[axis], n * sizes[axis]
            steps.append(-(-size // n))
            index.append(slice(at * steps[-1], (at + 1) * steps[-1]))
        assert device == f"TESSERA:{k}" and shape == steps
        assert torch.equal(data, whole[tuple(index)])


def test_parts_are_written(eight):
    agree(eight.ask("spmd", "written_parts"),
          torch.arange(8.0).repeat_interleave(2)[:, None].expand(16, 2) + 1)


def test_results_lie_as_the_compiler_chose(eight):
    given, product, total, again = eight.ask("spmd", "carried_on")
    assert given.startswith("{devices=[8,1]0,")
    assert product == again == "{devices=[8,1]<=[8]}"
    assert total == "{replicated}"


def test_random_numbers_are_the_same_wherever_they_are_the_same_tensor(eight):
    (whole, split), values = eight.ask("spmd", "random_numbers")
    for w in whole:
        assert torch.equal(w, whole[0]) and w.shape == (64, 16)
    assert torch.equal(torch.cat(split), values)
    assert 0 <= values.min() and values.max() < 1 and len(values.unique()) > 1000


def test_the_world_is_one_process_with_eight_devices(eight):
    assert eight.ask("spmd", "counts") == [True, 8, 1, 1, 8, "xla:0", 8]


def test_a_hybrid_mesh_spans_the_devices():
    environ = {"TESSERA_SIM": "devices=4,lanes=1", "TESSERA_PLATFORM_NAME": "tpu"}
    for sizes in ((4, 1), (2, 2), (1, 4)):
        hardware, mesh, product = test_alone.ask("TESSERA", "hybrid_mesh", sizes, **environ)
        x = torch.arange(8.0).reshape(4, 2)
        assert hardware == "TPU" and sorted(sum(mesh, [])) == [0, 1, 2, 3]
        assert (len(mesh), len(mesh[0])) == sizes
        agree(product, x @ x.T + 1)


def test_parts_are_not_taken_for_the_whole_in_either_form():
    environ = {"TESSERA_SIM": "devices=4,lanes=1"}
    for as_mlir in ("0", "1"):
        assert test_alone.ask("TESSERA", "product_in_parts", XLA_STABLEHLO_COMPILE=as_mlir,
                              **environ) is True
