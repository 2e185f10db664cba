# SPDX-License-Identifier: Apache-2.0
"""xmp.spawn: a rank for each of several devices, a thread for each in one process, or a process.

What must come of collectives is calculated here, from what all ranks had (replicas.given);
models train as one does on the whole batch, by PyTorch's CPU.
"""

import functools
import operator
import re

import pytest
import torch
from torch.nn import functional as F

from conftest import agree, served
from worker import Worker


def ask(devices, function, *args):
    """In a process that has opened no device: xmp.spawn refuses others."""
    w = Worker("TESSERA", TESSERA_DEVICES="", TESSERA_SIM=f"devices={devices},lanes=1")
    try:
        return w.ask("replicas", function, *args)
    finally:
        w.stop()


class Ranks:
    """What the ranks of a spawn had and returned."""

    def __init__(self, n, out):
        self.n, self.out = n, out
        assert len(out) == n

    def given(self, *shape, **how):
        # Not from replicas, whose import opens torch_xla here.
        found = []
        for rank in range(self.n):
            g = torch.Generator().manual_seed(1000 + rank)
            if "below" in how:
                x = torch.randint(how["below"], shape, generator=g)
            else:
                x = torch.randn(shape, generator=g)
            found.append(x.to(how.get("dtype", x.dtype)))
        return found

    def gave(self, case, wanted, tol=1e-5):
        """wanted(rank): the list that the rank returns."""
        for rank, out in enumerate(self.out):
            agree(out[case], wanted(rank), tol, tol, f"rank {rank}")

    def halves(self, x, rank):
        """What the members of a rank's half had."""
        return x[:self.n // 2] if rank < self.n // 2 else x[self.n // 2:]


def ask_processes(n, function, *args):
    with served(n) as devices:
        w = Worker("TESSERA", TESSERA_DEVICES=devices, TESSERA_PROCESSES=str(n))
        try:
            return w.ask("replicas", function, *args)
        finally:
            w.stop()


@pytest.fixture(scope="module", params=["4 threads", "8 threads", "4 processes"])
def ranks(request):
    n, kind = request.param.split()
    ranks = Ranks(int(n), (ask if kind == "threads" else ask_processes)(int(n), "spawned"))
    ranks.are_threads = kind == "threads"
    return ranks


def test_each_rank_has_its_device(ranks):
    n = ranks.n
    ranks.gave("places", lambda r: [r, n, r, r == 0, f"xla:{r}", 1, n] if ranks.are_threads else
               [r, n, r, r == 0, "xla:0", n, 1])


def test_all_reduce_adds_up(ranks):
    x, i, large = ranks.given(3, 4), ranks.given(5, below=50), ranks.given(300, 100)
    ranks.gave("sums", lambda r: [sum(x), sum(i), sum(x) / 4, sum(ranks.halves(x, r)), sum(x),
                                  sum(large)])


def test_all_reduce_knows_other_reductions(ranks):
    x, i = torch.stack(ranks.given(3, 4)), ranks.given(6, below=16, dtype=torch.int32)
    ranks.gave("other_reductions", lambda r: [
        x.amax(0), x.amin(0), x.prod(0), functools.reduce(operator.and_, i),
        functools.reduce(operator.or_, i)])


def test_lists_are_reduced_in_place(ranks):
    a, b = ranks.given(3), ranks.given(2, 2)
    ranks.gave("lists", lambda r: [sum(a), sum(b), 2 * sum(ranks.halves(a, r)),
                                   2 * sum(ranks.halves(b, r))])


def test_all_gather(ranks):
    x, i = ranks.given(2, 3), ranks.given(1, below=9)
    whole = torch.cat(x)
    ranks.gave("gathers", lambda r: [whole, torch.cat(x, 1), torch.cat(ranks.halves(x, r)), whole,
                                     whole, whole + 1, torch.cat(i)])


def test_reduce_scatter(ranks):
    n, x, y = ranks.n, ranks.given(2 * ranks.n, 3), ranks.given(3, ranks.n)

    def part(x, rank, n, dim=0):
        return sum(x).chunk(n, dim)[rank]
    ranks.gave("scatters", lambda r: [
        part(x, r, n), part(y, r, n, 1), part(x, r, n) / 2, part(x, r, n),
        part(ranks.halves(x, r), r % (n // 2), n // 2)])


def test_all_to_all(ranks):
    n, x = ranks.n, ranks.given(ranks.n, 2 * ranks.n)

    def exchange(x, rank, n, split, join):
        return torch.cat([v.chunk(n, split)[rank] for v in x], join)
    ranks.gave("exchanges", lambda r: [
        exchange(x, r, n, 1, 0), exchange(x, r, n, 0, 1),
        exchange(ranks.halves(x, r), r % (n // 2), n // 2, 0, 0), exchange(x, r, n, 1, 0)])


def test_permutations_and_broadcasts(ranks):
    n, x, y = ranks.n, ranks.given(4), ranks.given(3)
    back = {0: x[1], 2: x[0]}
    ranks.gave("moves", lambda r: [x[r - 1], back.get(r, torch.zeros(4)), y[0], y[n - 1]])


def test_buckets(ranks):
    n, given = ranks.n, ranks.given
    ranks.gave("bucketed", lambda r: [
        torch.cat(given(2, 3)), torch.cat(given(4, 2)), sum(given(n, 3))[r:r + 1],
        sum(given(2 * n, 2))[2 * r:2 * r + 2]])


def test_ranks_run_programs_of_their_own(ranks):
    x = ranks.given(4)

    def wanted(rank):
        total = sum(v + k for k, v in enumerate(x)) * (rank > 0)
        for _ in range(rank):
            total = torch.sin(total) + x[rank]
        return [total, sum(v * k for k, v in enumerate(x))]
    ranks.gave("unlike", wanted, 1e-4)


def test_a_rank_may_be_many_steps_ahead(ranks):
    ranks.gave("ahead", lambda r: [sum(ranks.given(8)) / ranks.n + 20], 1e-4)


def test_ranks_meet_on_the_host(ranks):
    words = [b"rank %d" % r for r in range(ranks.n)]
    ranks.gave("meetings", lambda r: [words, (ranks.n - 1) / 2, list(range(ranks.n))])


def net():
    model = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.Tanh(), torch.nn.Linear(16, 4))
    with torch.no_grad():
        for k, p in enumerate(model.parameters()):
            g = torch.Generator().manual_seed(3 + k)
            p.copy_(torch.randn(p.shape, generator=g) / 3)
    return model


def trained(n, kind, steps=4, batch=8):
    """As replicas.data_parallel, with the batches of all ranks at once; their losses apart."""
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9) if kind == "SGD" else \
        torch.optim.Adam(model.parameters(), lr=1e-2)
    losses = []
    for step in range(steps + 1):
        x, t = [], []
        for rank in range(n):
            g = torch.Generator().manual_seed(100 * step + rank)
            x.append(torch.randn(batch, 6, generator=g))
            t.append(torch.randint(4, (batch,), generator=g))
        if step == steps:
            return torch.stack(losses), model, model(x[0]).detach()
        optimizer.zero_grad()
        each = torch.stack([F.cross_entropy(model(a), b) for a, b in zip(x, t)])
        each.mean().backward()
        optimizer.step()
        losses.append(each.detach())


@pytest.mark.parametrize("case, kind", [("data_parallel", "SGD"),
                                        ("data_parallel_by_adam", "Adam")])
def test_data_parallel_training_is_as_with_the_whole_batch(case, kind, ranks):
    losses, model, _ = trained(ranks.n, kind)
    weights = [p.detach() for p in model.parameters()]
    ranks.gave(case, lambda r: [losses[:, r], *weights], 1e-4)
    # The very same bits everywhere.
    for out in ranks.out:
        for a, b in zip(out[case][1:], ranks.out[0][case][1:]):
            assert torch.equal(a, b)


def test_fully_sharded_training_is_as_with_the_whole_batch(ranks):
    losses, model, after = trained(ranks.n, "SGD")
    for rank, (lost, gave, mine) in enumerate(out["fully_sharded"] for out in ranks.out):
        agree([lost, gave], [losses[:, rank], after], 1e-4, 1e-4, f"rank {rank}")
        # Parts are filled up to multiples of 128.
        assert mine == sum(-(-p.numel() // (128 * ranks.n)) * 128 for p in model.parameters())


def test_collectives_have_gradients(ranks):
    """torch_xla's own rules: each rank's gradient is of what it computes itself."""
    x = ranks.given(5, 3)
    ranks.gave("batch_norm_of_all", lambda r: [
        sum(x) * x[r], torch.cat(x), 3 * x[r]], 1e-4)


def test_a_sampler_gives_each_rank_its_part(ranks):
    n = ranks.n
    data = torch.arange(16.0 * n)
    ranks.gave("loaded", lambda r: [
        data[r::n], torch.stack([data[4 * n * k:4 * n * (k + 1)].sum() for k in range(4)])])


def test_the_master_saves_for_all(ranks):
    wanted = [p.detach() * (ranks.n * (ranks.n - 1) / 2)
              for p in net().parameters()]
    ranks.gave("saved", lambda r: [wanted, wanted], 1e-4)


def test_ranks_may_be_of_a_forked_process():
    ranks = ask(3, "spawned", ["places", "unlike"], "fork")
    assert [r["places"][:2] for r in ranks] == [[0, 3], [1, 3], [2, 3]]


# ---- ranks that end ----

@pytest.mark.parametrize("name, says", [
    ("raises", "member 1, on device 1, does not come to the program on 4 devices where others "
               "wait for it: ValueError: of rank 1"),
    ("returns_early", "member 2, on device 2, does not come .*its function has returned"),
    ("waits_twice", "ValueError: of rank 0"),
    # One of those that came alike is named beside the one that differs.
    ("differs", "(?=.*member [012], on device [012], in [^;]*all-reduce)"
                "(?=.*member 3, on device 3, in [^;]*all-gather)"
                ".*with the same collectives in the same order")])
def test_a_rank_that_does_not_come_is_named(name, says):
    words = ask(4, "ended", name)
    assert re.search(says, words), words
