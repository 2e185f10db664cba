# SPDX-License-Identifier: Apache-2.0
"""A rank of torchrun, with a chip or more of its own: processes.py WHAT. Prints one line of JSON
for each thing it did. WHAT: ranks, killed, spmd."""

import json
import os
import signal
import sys

import torch
import torch.distributed as dist
import torch_xla
import torch_xla.core.xla_model as xm
import torch_xla.distributed.xla_backend  # noqa: F401
import torch_xla.runtime as xr


def say(**facts):
    # In one piece: ranks of torchrun share the pipe.
    os.write(1, (json.dumps(facts) + "\n").encode())


def ranks():
    """torch.distributed's own collectives, and a device for each rank."""
    rank, n, device = dist.get_rank(), dist.get_world_size(), torch_xla.device()
    x = torch.arange(4.0).to(device) + 10 * rank
    parts = [torch.zeros(4, device=device) for _ in range(n)]
    dist.all_gather(parts, x)
    dist.all_reduce(x)
    model = torch.nn.Linear(3, 2)
    with torch.no_grad():
        for p in model.parameters():
            p.fill_(rank + 1)
    model = model.to(device)
    xm.broadcast_master_param(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    model(torch.full((1, 3), float(rank), device=device)).sum().backward()
    xm.optimizer_step(optimizer)
    say(rank=rank, n=n, ordinal=xr.global_ordinal(), processes=xr.process_count(),
        own=xr.addressable_device_count(), sum=x.cpu().tolist(),
        parts=[p.cpu().tolist() for p in parts], weight=model.weight.cpu().tolist(),
        bias=model.bias.cpu().tolist())


def killed():
    """The last one, when all have met once."""
    rank = dist.get_rank()
    x = torch.ones(4, device=torch_xla.device())
    xm.all_reduce(xm.REDUCE_SUM, x).cpu()
    if rank == dist.get_world_size() - 1:
        os.kill(os.getpid(), signal.SIGKILL)
    try:
        xm.all_reduce(xm.REDUCE_SUM, x + 1).cpu()
        say(rank=rank, error=None)
    except RuntimeError as e:
        say(rank=rank, error=str(e))
    # torch_xla tells a launch's error once more, at the device's next use.
    for _ in range(2):
        try:
            alone = torch.arange(5.0).to(torch_xla.device()).sum().item()
        except RuntimeError:
            alone = None
    say(rank=rank, alone=alone)
    # XLA's coordinator, in rank 0, takes the others along when it ends.
    sys.stdin.read()
    os._exit(0)


def spmd():
    """Every process has the whole of what is sharded, as torch_xla wants it."""
    import numpy as np
    import torch_xla.distributed.spmd as xs
    n = xr.global_runtime_device_count()
    mesh = xs.Mesh(np.arange(n), (n,), ("data",))
    x = torch.arange(6.0 * n).reshape(2 * n, 3).to(torch_xla.device())
    xs.mark_sharding(x, mesh, ("data", None))
    y = (x @ x.T).sum(1)
    say(process=xr.process_index(), own=xr.addressable_runtime_device_count(), n=n,
        y=y.cpu().tolist(), x=x.sum(0).cpu().tolist())


if __name__ == "__main__":
    WHAT = sys.argv[1]
    if WHAT == "spmd":
        xr.use_spmd()
    # torch_xla has no group of its own in SPMD mode, but joins the processes of any.
    dist.init_process_group("gloo" if WHAT == "spmd" else "xla", init_method="xla://")
    {"ranks": ranks, "killed": killed, "spmd": spmd}[WHAT]()
