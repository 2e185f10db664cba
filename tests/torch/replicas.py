# SPDX-License-Identifier: Apache-2.0
"""What each rank of xmp.spawn does: one thread a device, a program of its own on each.

Functions named in CASES run on every rank, one after the other in one spawn; what a rank
returns is kept by its number. What they take is known from the rank's number alone, so that
test_replicas.py knows what must come of it.
"""

import os
import tempfile

import torch
import torch_xla
import torch_xla.core.xla_model as xm
import torch_xla.distributed.parallel_loader as pl
import torch_xla.distributed.xla_multiprocessing as xmp
import torch_xla.runtime as xr
from torch import nn
from torch.nn import functional as F

from worker import to_cpu


def given(rank, *shape, dtype=torch.float32, below=None):
    """What a rank has, on the CPU."""
    g = torch.Generator().manual_seed(1000 + rank)
    if below is not None:
        return torch.randint(below, shape, generator=g).to(dtype)
    return torch.randn(shape, generator=g).to(dtype)


def mine(*shape, **how):
    return given(xr.global_ordinal(), *shape, **how).to(torch_xla.device())


def halves():
    n = xr.world_size()
    return [list(range(n // 2)), list(range(n // 2, n))]


# ---- collectives ----

def places():
    device = torch_xla.device()
    return [xr.global_ordinal(), xr.world_size(), xr.local_ordinal(), xm.is_master_ordinal(),
            str(device), xr.process_count(), xr.addressable_device_count()]


def sums():
    x, y = mine(3, 4), mine(5, below=50, dtype=torch.int64)
    return [xm.all_reduce(xm.REDUCE_SUM, x), xm.all_reduce(xm.REDUCE_SUM, y),
            xm.all_reduce(xm.REDUCE_SUM, x, scale=0.25),
            xm.all_reduce(xm.REDUCE_SUM, x, groups=halves()),
            xm.all_reduce(xm.REDUCE_SUM, x, pin_layout=False),
            xm.all_reduce(xm.REDUCE_SUM, mine(300, 100))]


def other_reductions():
    x, i = mine(3, 4), mine(6, below=16, dtype=torch.int32)
    return [xm.all_reduce(xm.REDUCE_MAX, x), xm.all_reduce(xm.REDUCE_MIN, x),
            xm.all_reduce(xm.REDUCE_MUL, x), xm.all_reduce(xm.REDUCE_AND, i),
            xm.all_reduce(xm.REDUCE_OR, i)]


def lists():
    a, b = mine(3), mine(2, 2)
    xm.all_reduce(xm.REDUCE_SUM, [a, b])
    c, d = mine(3), mine(2, 2)
    xm.all_reduce(xm.REDUCE_SUM, [c, d], groups=halves(), scale=2.0)
    return [a, b, c, d]


def gathers():
    x = mine(2, 3)
    return [xm.all_gather(x), xm.all_gather(x, dim=1), xm.all_gather(x, groups=halves()),
            xm.all_gather(x, pin_layout=False), *xm.all_gather([x, x + 1], pin_layout=False),
            xm.all_gather(mine(1, below=9, dtype=torch.int64))]


def scatters():
    n = xr.world_size()
    x, y = mine(2 * n, 3), mine(3, n)

    def scatter(x, dim, groups=None, count=n, **how):
        return xm.reduce_scatter(xm.REDUCE_SUM, x, how.pop("scale", 1.0), dim, count, groups,
                                 **how)
    return [scatter(x, 0), scatter(y, 1), scatter(x, 0, scale=0.5), scatter(x, 0, pin_layout=False),
            scatter(x, 0, halves(), n // 2)]


def exchanges():
    n = xr.world_size()
    x = mine(n, 2 * n)
    return [xm.all_to_all(x, 1, 0, n), xm.all_to_all(x, 0, 1, n),
            xm.all_to_all(x, 0, 0, n // 2, groups=halves()),
            xm.all_to_all(x, 1, 0, n, pin_layout=False)]


def moves():
    n, x = xr.world_size(), mine(4)
    out = [xm.collective_permute(x, [[i, (i + 1) % n] for i in range(n)]),
           xm.collective_permute(x, [[1, 0], [0, 2]])]
    for root in (0, n - 1):
        y = mine(3)
        xm.collective_broadcast([y], root_ordinal=root)
        out.append(y)
    return out


def bucketed():
    n = xr.world_size()
    x, y = mine(2, 3), mine(4, 2)
    a, b = mine(n, 3), mine(2 * n, 2)
    gathered = xm.all_gather_bucketized([x, y], dim=0, bucket_cap_mb=1)
    scattered = xm.reduce_scatter_bucketized(xm.REDUCE_SUM, [a, b], 1.0, 0, n)
    return [*gathered, *scattered]


# ---- ranks that differ ----

def unlike():
    """Each rank's graph holds its number, work of its own, and its own way to use a sum."""
    rank, x = xr.global_ordinal(), mine(4)
    total = xm.all_reduce(xm.REDUCE_SUM, x + rank)
    if rank == 0:
        total = total * 0
    for _ in range(rank):
        total = torch.sin(total) + x
    if rank % 2:
        print(x.sum().item(), "of rank", rank)     # a program that others do not run
    return [total, xm.all_reduce(xm.REDUCE_SUM, x * rank)]


def ahead():
    """Rank 0 traces and launches many steps before the others begin."""
    import time
    if xr.global_ordinal():
        time.sleep(2)
    x = mine(8)
    for _ in range(20):
        x = xm.all_reduce(xm.REDUCE_SUM, x, scale=1 / xr.world_size()) + 1
        torch_xla.sync()
    return [x]


def meetings():
    rank = xr.global_ordinal()
    payloads = xm.rendezvous("first", b"rank %d" % rank)
    xm.rendezvous("second", replicas=[])
    xm.rendezvous("none")
    mean = xm.mesh_reduce("mean", float(rank), lambda all: sum(all) / len(all))
    words = xm.mesh_reduce("words", {"rank": rank}, lambda all: sorted(w["rank"] for w in all))
    return [[bytes(p) for p in payloads], mean, words]


# ---- training ----

BATCH, STEPS = 8, 4     # of a rank


def net():
    """Weights of a generator of its own: threads share torch's."""
    model, g = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 4)), torch.Generator()
    with torch.no_grad():
        for k, p in enumerate(model.parameters()):
            p.copy_(torch.randn(p.shape, generator=g.manual_seed(3 + k)) / 3)
    return model


def batch(rank, step):
    g = torch.Generator().manual_seed(100 * step + rank)
    return torch.randn(BATCH, 6, generator=g), torch.randint(4, (BATCH,), generator=g)


def make_optimizer(kind, parameters):
    if kind == "SGD":
        return torch.optim.SGD(parameters, lr=0.1, momentum=0.9)
    return torch.optim.Adam(parameters, lr=1e-2, capturable=True)


def data_parallel(kind="SGD"):
    """Losses of this rank, and its weights in the end."""
    device, model = torch_xla.device(), net()
    if xr.global_ordinal():
        for p in model.parameters():
            p.data.zero_()
    model = model.to(device)
    xm.broadcast_master_param(model)
    optimizer, losses = make_optimizer(kind, model.parameters()), []
    for step in range(STEPS):
        x, t = (v.to(device) for v in batch(xr.global_ordinal(), step))
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), t)
        loss.backward()
        xm.optimizer_step(optimizer)
        torch_xla.sync()
        losses.append(loss.detach())
    return [torch.stack(losses), *(p.detach() for p in model.parameters())]


def data_parallel_by_adam():
    return data_parallel("Adam")


def fully_sharded():
    from torch_xla.distributed.fsdp import XlaFullyShardedDataParallel as FSDP
    device = torch_xla.device()
    model = net().to(device)
    model = FSDP(nn.Sequential(FSDP(model[0]), model[1], FSDP(model[2])))
    optimizer, losses = make_optimizer("SGD", model.parameters()), []
    for step in range(STEPS):
        x, t = (v.to(device) for v in batch(xr.global_ordinal(), step))
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), t)
        loss.backward()
        optimizer.step()        # no all-reduce: gradients came in parts
        torch_xla.sync()
        losses.append(loss.detach())
    x, _ = batch(0, STEPS)
    return [torch.stack(losses), model(x.to(device)).detach(),
            sum(p.numel() for p in model.parameters())]


def batch_norm_of_all():
    from torch_xla.core.functions import all_gather, all_reduce
    x = mine(5, 3).requires_grad_()
    y = all_reduce(xm.REDUCE_SUM, x) * mine(5, 3)
    z = all_gather(x, dim=0)
    (y.sum() + (z * z).sum()).backward()
    return [y, z, x.grad]


def loaded():
    """A sampler gives each rank its own part of the data."""
    n, rank = xr.world_size(), xr.global_ordinal()
    data = torch.utils.data.TensorDataset(torch.arange(16.0 * n))
    sampler = torch.utils.data.distributed.DistributedSampler(data, n, rank, shuffle=False)
    loader = torch.utils.data.DataLoader(data, batch_size=4, sampler=sampler)
    seen, sums = [], []
    for (x,) in pl.MpDeviceLoader(loader, torch_xla.device()):
        seen.append(x.clone())
        sums.append(xm.all_reduce(xm.REDUCE_SUM, x.sum()))
    return [torch.cat(seen), torch.stack(sums)]


def saved():
    """The master writes, all read."""
    folder = xm.mesh_reduce("folder", tempfile.mkdtemp() if xm.is_master_ordinal() else "",
                            lambda all: next(filter(None, all)))
    path = os.path.join(folder, "model.pt")
    model = net().to(torch_xla.device())
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(xm.all_reduce(xm.REDUCE_SUM, p * xr.global_ordinal()))
    xm.save(model.state_dict(), path)
    xm.rendezvous("saved")
    return [list(torch.load(path).values()), list(model.state_dict().values())]


CASES = ["places", "sums", "other_reductions", "lists", "gathers", "scatters", "exchanges",
         "moves", "bucketed", "unlike", "ahead", "meetings", "data_parallel",
         "data_parallel_by_adam", "fully_sharded", "batch_norm_of_all", "loaded", "saved"]


# ---- spawning ----

def rank(index, names, folder):
    assert index == xr.global_ordinal()
    torch.save({name: to_cpu(globals()[name]()) for name in names},
               os.path.join(folder, f"{index}.pt"))


def spawned(names=CASES, start_method="spawn"):
    """What each rank returned, by its number."""
    with tempfile.TemporaryDirectory() as folder:
        xmp.spawn(rank, args=(names, folder), start_method=start_method)
        return [torch.load(os.path.join(folder, f"{r}.pt"), weights_only=False)
                for r in range(len(os.listdir(folder)))]


# ---- ranks that end ----

def raises(index):
    x = mine(4)
    torch_xla.sync()
    if index == 1:
        raise ValueError("of rank 1")
    for _ in range(3):
        x = xm.all_reduce(xm.REDUCE_SUM, x)
        torch_xla.sync()
    x.cpu()


def returns_early(index):
    if index == 2:
        return
    xm.rendezvous("with all")


def waits_twice(index):
    """Who catches the error and goes on is told again."""
    if index == 0:
        raise ValueError("of rank 0")
    for _ in range(2):
        try:
            xm.all_reduce(xm.REDUCE_SUM, mine(4)).cpu()
        except RuntimeError as e:
            assert "ValueError: of rank 0" in str(e), str(e)
        else:
            raise AssertionError("rank 0 was here")
    raise KeyError("both times")


def differs(index):
    """Rank 3 gathers where the others add up."""
    x = mine(4)
    x = xm.all_gather(x, pin_layout=False) if index == 3 else xm.all_reduce(xm.REDUCE_SUM, x)
    x.cpu()


def in_words(index, name, folder):
    """What the function raised here; its own exception ends the rank as well."""
    try:
        globals()[name](index)
    except RuntimeError as e:
        with open(os.path.join(folder, str(index)), "w", encoding="utf-8") as f:
            f.write(str(e))


def ended_apart(name):
    """What each rank's RuntimeError said, "" where it had none."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            xmp.spawn(in_words, args=(name, folder))
        except (ValueError, RuntimeError):  # a rank's own, or what it was told at its end
            pass
        words = [""] * 4
        for rank in os.listdir(folder):
            with open(os.path.join(folder, rank), encoding="utf-8") as f:
                words[int(rank)] = f.read()
        return words


def ended(name, start_method="fork"):
    """The words in which xmp.spawn fails; the exception that its process raised, if there is
    one, comes first."""
    try:
        xmp.spawn(globals()[name], start_method=start_method)
    except Exception as e:
        return f"{e.__cause__}\n{type(e).__name__}: {e}"
    return "nothing"

