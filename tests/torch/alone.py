# SPDX-License-Identifier: Apache-2.0
"""What changes the process that it runs in: each is called in a process of its own."""

import os

import torch
import torch_xla
import torch_xla.core.xla_model as xm
import torch_xla.debug.metrics as met
import torch_xla.runtime as xr


def product_in_parts():
    """Whether a result that is cut along both dims is right."""
    xr.use_spmd()
    import torch_xla.distributed.spmd as xs
    mesh = xs.Mesh(range(4), (2, 2), ("a", "b"))
    x = torch.arange(64.0).reshape(8, 8)
    y = x.to(torch_xla.device())
    xs.mark_sharding(y, mesh, ("a", None))
    product = y @ y
    xs.mark_sharding(product, mesh, ("a", "b"))
    torch_xla.sync()
    return torch.equal(product.cpu(), x @ x)


def hybrid_mesh(sizes=(1, 1)):
    """A mesh of these sizes, which HybridMesh makes for the hardware type TPU alone."""
    xr.use_spmd()
    import torch_xla.distributed.spmd as xs
    hardware = xm.xla_device_hw(torch_xla.device())
    try:
        mesh = xs.HybridMesh(ici_mesh_shape=tuple(sizes), axis_names=("data", "model"))
    except AssertionError:
        return [hardware]
    x = torch.arange(8.0).reshape(4, 2).to(torch_xla.device())
    xs.mark_sharding(x, mesh, ("data", "model"))
    return [hardware, mesh.get_logical_mesh().tolist(), (x @ x.T + 1).cpu()]


def factorised(x):
    """By custom calls, whose results are a tuple in the MLIR that torch_xla makes."""
    x = x.to(torch_xla.device())
    return [torch.inverse(x), torch.linalg.eigh(x)[0], torch.linalg.eigh(x)[1].abs()]


def persistent_cache(folder):
    """A result, what the cache says of itself, how many files it has."""
    xr.initialize_cache(folder, readonly=False)
    x = torch.arange(12.0).to(torch_xla.device())
    y = (x * 3 + 1).sum()
    torch_xla.sync(wait=True)
    said = {n: met.counter_value(n) for n in sorted(met.counter_names()) if "Persistent" in n}
    return [y, said, len(os.listdir(folder))]
