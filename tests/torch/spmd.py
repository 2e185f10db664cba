# SPDX-License-Identifier: Apache-2.0
"""Programs in SPMD mode: tensors lie in parts on all devices, and results are as on one.

Each is called in a process with several devices and in one with one, where every mesh has
one place and the same calls run. What a function returns is compared, so it is whole
tensors. How they lie is asked by the functions at the end, for several devices only.
"""

import os
import tempfile

import numpy as np
import torch
import torch_xla
import torch_xla.core.xla_model as xm
import torch_xla.distributed.parallel_loader as pl
import torch_xla.distributed.spmd as xs
import torch_xla.runtime as xr
from torch import nn
from torch.nn import functional as F

xr.use_spmd()


def mesh(turned=False, **axes):
    """Of these sizes, for all devices; of one place where there is one. turned: the devices
    come in another order."""
    n = xr.global_runtime_device_count()
    sizes = tuple(axes.values()) if n > 1 else (1,) * len(axes)
    ids = np.arange(n)
    return xs.Mesh(np.roll(ids[::-1], 1) if turned else ids, sizes, tuple(axes))


def tensor(*shape, seed=0, dtype=torch.float32, below=None):
    g = torch.Generator().manual_seed(seed)
    if below is not None:
        return torch.randint(below, shape, generator=g).to(torch_xla.device())
    return torch.randn(shape, generator=g).to(dtype).to(torch_xla.device())


def marked(m, spec, *shape, **how):
    x = tensor(*shape, **how)
    xs.mark_sharding(x, m, spec)
    return x


# ---- values ----

def every_type():
    m, out = mesh(x=8), []
    for dtype in (torch.float32, torch.bfloat16, torch.float16, torch.float64, torch.int64,
                  torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool,
                  torch.complex64):
        x = (tensor(16, 3) * 3).to(dtype)
        xs.mark_sharding(x, m, ("x", None))
        out += [x, ~x if dtype == torch.bool else x + x]
    return out


def specs():
    """One, two and three axes; one axis, or several, of a dim; some that no dim has."""
    out = []
    for axes, spec in (({"x": 8}, (0, None)), ({"x": 8}, (None, "x")), ({"x": 8}, (None, None)),
                       ({"x": 2, "y": 4}, ("x", "y")), ({"x": 2, "y": 4}, ("y", "x")),
                       ({"x": 2, "y": 4}, ("y", None)), ({"x": 4, "y": 2}, (("x", "y"), None)),
                       ({"x": 4, "y": 2}, (None, ("y", "x"))), ({"x": 1, "y": 8}, ("x", "y")),
                       ({"x": 2, "y": 2, "z": 2}, (("z", "x"), "y")),
                       ({"x": 2, "y": 2, "z": 2}, (None, "y"))):
        for turned in (False, True):
            x = marked(mesh(turned, **axes), spec, 16, 8)
            out += [x + 1, x.sum(), x.t() @ x]
    return out


def uneven():
    """Parts of other sizes, and devices with none."""
    out = []
    for axes, spec in (({"x": 8}, ("x", None)), ({"x": 8}, (None, "x")),
                       ({"x": 2, "y": 4}, ("y", "x")), ({"x": 2, "y": 4}, (("x", "y"), None))):
        for rows, columns in (10, 5), (3, 7), (9, 1), (1, 13):
            m = mesh(**axes)
            x, y = marked(m, spec, rows, columns), marked(m, spec[::-1], columns, rows, seed=1)
            out += [x * 2, x.sum(0), x.amax(1), x.mean(), x @ y, x.softmax(0), x.argmax(0),
                    torch.cat([x, x]), x.flip(0), x.cumsum(0)]
    return out


def products():
    m, n = mesh(x=2, y=4), mesh(x=8)
    a, b = marked(m, ("x", "y"), 8, 12), marked(m, ("y", None), 12, 6, seed=1)
    c, d = marked(n, (None, "x"), 5, 16), marked(n, ("x", None), 16, 7, seed=1)
    e, f = marked(m, ("x", None, "y"), 4, 3, 8), marked(m, ("x", "y", None), 4, 8, 5, seed=1)
    g, h = marked(n, ("x", None), 16, 6), marked(n, (None, "x"), 6, 8, seed=1)
    return [a @ b, c @ d, torch.bmm(e, f), g @ h, torch.relu(g @ h) @ marked(n, ("x", None), 8, 6),
            torch.einsum("bik,bkj->bij", e, f), a.sum(), d.t() @ d]


def reductions():
    x = marked(mesh(x=2, y=4), ("x", "y"), 8, 16)
    y = marked(mesh(x=8), (None, "x", None), 2, 8, 3)
    return [x.sum(), x.mean(0), x.amax(1), x.argmax(1), x.argmin(0), x.prod(1), x.std(),
            x.softmax(1), x.log_softmax(0), x.logsumexp((0, 1)), (x > 0).all(1), x.norm(),
            y.sum((0, 2)), y.cumsum(1), y.var(1), F.layer_norm(x, (16,)), *x.max(0)]


def moves():
    x = marked(mesh(x=8), ("x", None), 16, 6)
    y = marked(mesh(x=2, y=4), ("y", None, "x"), 4, 2, 6)
    return [x[1:7], x[3], x[:, 2], x[::3], torch.cat([x, x * 2], 0), torch.stack([x, x], 1),
            F.pad(x, (1, 2, 1, 0)), x.flip(0), x.roll(1, 0), x.roll(3, 1), x.t().contiguous(),
            x.reshape(4, 4, 6), x.reshape(-1), x.repeat(2, 1), x.tril(), x.diagonal(),
            y.permute(2, 0, 1), y.reshape(8, 6), y.unsqueeze(0).expand(3, 4, 2, 6),
            *x.split(5), *x.chunk(4, 1), torch.where(x > 0, x, -x)]


def looked_up():
    m, n = mesh(x=8), mesh(x=2, y=4)
    table, rows = marked(m, ("x", None), 16, 4), tensor(3, 5, below=16)
    x, i = marked(n, ("x", "y"), 8, 8), marked(n, ("x", None), 8, 3, below=8)
    z = marked(m, ("x", None), 16, 4)
    z[tensor(2, below=16)] = 1
    z[:, 1] += 2
    return [F.embedding(rows, table), F.embedding(rows, marked(m, (None, "x"), 16, 8)),
            x.gather(1, i), x.scatter_add(1, i, tensor(8, 3)), x[i[:, 0]], z,
            x.index_select(1, i[0]), F.one_hot(i, 8), *x.sort(1), *x.topk(2, 0),
            torch.bincount(i.cpu().flatten())]


def convolutions():
    m, n = mesh(x=8), mesh(x=2, y=4)
    out = []
    for x, w in ((marked(m, (0, None, None, None), 8, 4, 6, 6), tensor(6, 4, 3, 3, seed=1)),
                 (marked(m, (None, None, 0, None), 2, 4, 16, 6), tensor(6, 4, 3, 3, seed=1)),
                 (tensor(2, 4, 6, 6), marked(m, (0, None, None, None), 8, 4, 3, 3, seed=1)),
                 (marked(n, (0, None, 1, None), 4, 4, 8, 8), tensor(6, 4, 3, 3, seed=1)),
                 (marked(n, (0, 1, None, None), 4, 4, 6, 6), tensor(6, 4, 3, 3, seed=1))):
        x, w = x.detach().requires_grad_(), w.detach().requires_grad_()
        y = F.conv2d(x, w, padding=1)
        out += [y, *torch.autograd.grad(y.square().sum(), (x, w)), F.max_pool2d(x, 2),
                F.avg_pool2d(x, 2), F.batch_norm(x, None, None, training=True)]
    return out


def attention():
    m, n = mesh(x=8), mesh(x=2, y=4)
    out = []
    for k, spec in ((m, (None, 0, None, None)), (n, (0, None, 1, None)), (n, (0, 1, None, None)),
                    (m, (None, None, 0, None))):
        q, key, v = (marked(k, spec, 2, 8, 8, 4, seed=s).detach().requires_grad_()
                     for s in range(3))
        y = F.scaled_dot_product_attention(q, key, v, is_causal=True)
        out += [y, *torch.autograd.grad(y.square().sum(), (q, key, v))]
    return out


def loops():
    from torch_xla.experimental.scan import scan
    x, more = marked(mesh(x=8), ("x", None), 16, 3), marked(mesh(x=8), (None, "x", None), 4, 16, 3)
    return list(scan(lambda c, a: (torch.tanh(c + a), c * a), x, more))


# ---- marks ----

def marks_between():
    m = mesh(x=2, y=4)
    x, w = tensor(8, 6).requires_grad_(), marked(m, (None, "y"), 6, 8, seed=1)
    y = x @ w
    xs.mark_sharding(y, m, ("x", None))
    z = xs.mark_sharding_with_gradients(torch.tanh(y), m, ("x", "y"))
    return [y, z, *torch.autograd.grad(z.square().sum(), x)]


def marked_anew():
    m = mesh(x=8)
    x = marked(m, ("x", None), 16, 8)
    y = x * 2
    torch_xla.sync(wait=True)
    xs.clear_sharding(y)
    xs.mark_sharding(y, m, (None, "x"))
    custom = xs.annotate_custom_sharding(y + 1, m, (None, None))
    return [x, y, y + 1, custom.global_tensor * 1]


def without_marks():
    x = tensor(5, 4)
    return [x @ x.t(), torch.arange(7, device=x.device) * 2, x.sum().item()]


def in_place_and_between_steps():
    m = mesh(x=2, y=4)
    x = marked(m, ("x", "y"), 8, 8)
    out = []
    for k in range(4):
        x.mul_(0.5).add_(k)
        x[k] = k
        torch_xla.sync()
        out.append(x.sum(0))
    return [x, *out]


def manual():
    """Code for one device's own part, and its own collectives."""
    m, n = mesh(x=8), mesh(x=2, y=4)
    count = xr.global_runtime_device_count()
    everyone = [list(range(count))]
    known = {"channel_id": 1, "use_global_device_ids": True}

    def part(x, spec, over):
        return xs.enable_manual_sharding(x, spec, mesh=over).global_tensor

    def whole(x, spec, shape, over):
        return xs.disable_manual_sharding(x, spec, shape, mesh=over).global_tensor

    x = tensor(16, 8)
    out = [whole(torch.tanh(part(x, (0, None), m)) * 2, (0, None), x.shape, m)]
    product = part(tensor(4, 6), ("x", None), n) @ part(tensor(6, 8), (None, "y"), n)
    out.append(whole(product, ("x", "y"), (4, 8), n))
    partial = part(tensor(4, 16), (None, 0), m) @ part(tensor(16, 3), (0, None), m)
    reduced = torch_xla._XLAC._xla_spmd_all_reduce(xm.REDUCE_SUM, partial, 1.0, everyone)
    out.append(whole(reduced, (None, None), (4, 3), m))
    gathered = xm.all_gather(part(tensor(16, 8), (0, None), m), 0, groups=everyone,
                             pin_layout=False, **known)
    out.append(whole(gathered * 1, (None, None), x.shape, m))
    scattered = torch_xla._XLAC._xla_spmd_reduce_scatter(
        xm.REDUCE_SUM, part(tensor(16, 8), (None, None), m), 1.0 / count, 0, count, everyone)
    out.append(whole(scattered, (0, None), x.shape, m))
    return out


# ---- models ----

def mlp():
    torch.manual_seed(5)
    return nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 4)).to(torch_xla.device())


def digits(m, spec, n=16):
    x, t = tensor(n, 6), tensor(n, below=4)
    xs.mark_sharding(x, m, (spec, None))
    xs.mark_sharding(t, m, (spec,))
    return x, t


def steps(net, optimizer, x, t, n=4):
    losses = []
    for _ in range(n):
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x), t)
        loss.backward()
        optimizer.step()
        torch_xla.sync()
        losses.append(loss.detach())
    return [torch.stack(losses), *(p.detach() for p in net.parameters())]


PLANS = {
    "data": ({"x": 8}, {}, "x"),
    "tensor": ({"x": 8}, {"0.weight": ("x", None), "0.bias": ("x",), "2.weight": (None, "x")},
               None),
    "data and tensor": ({"x": 2, "y": 4}, {"0.weight": ("y", None), "0.bias": ("y",),
                                           "2.weight": (None, "y")}, "x"),
    "everything": ({"x": 8}, {"0.weight": ("x", None), "0.bias": ("x",),
                              "2.weight": ("x", None), "2.bias": ("x",)}, "x"),
}


def trained(plan, kind):
    """By SGD with momentum or AdamW. "everything" has parameters that do not divide."""
    axes, specs, batch = PLANS[plan]
    m, net = mesh(**axes), mlp()
    for name, p in net.named_parameters():
        if name in specs:
            xs.mark_sharding(p, m, specs[name])
    optimizer = (torch.optim.SGD(net.parameters(), 0.1, momentum=0.9) if kind == "SGD" else
                 torch.optim.AdamW(net.parameters(), 1e-2))
    return steps(net, optimizer, *digits(m, batch))


def fully_sharded():
    from torch_xla.experimental.spmd_fully_sharded_data_parallel import (
        SpmdFullyShardedDataParallel)
    m = mesh(fsdp=8, model=1)
    net = SpmdFullyShardedDataParallel(mlp(), mesh=m, shard_output=lambda out, over: None)
    x, t = digits(m, "fsdp")
    return steps(net, torch.optim.SGD(net.parameters(), 0.1), x, t)


class Block(nn.Module):
    """A transformer's, with heads and hidden units on one axis and the batch on the other."""

    def __init__(self, m, width=16, heads=4):
        super().__init__()
        self.m, self.heads = m, heads
        self.norm, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        # A bias of keys has a gradient of nothing but rounding.
        self.qkv, self.out = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def mark(self):
        for one, spec in ((self.qkv, ("y", None)), (self.out, (None, "y")),
                          (self.up, ("y", None)), (self.down, (None, "y"))):
            xs.mark_sharding(one.weight, self.m, spec)

    def forward(self, x):
        b, s, w = x.shape
        q, k, v = (p.reshape(b, s, self.heads, -1).transpose(1, 2)
                   for p in self.qkv(self.norm(x)).split(w, 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, s, w))
        xs.mark_sharding(x, self.m, ("x", None, None))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


def transformer(bf16=False, again=False, compiled=False):
    m = mesh(x=2, y=4)
    torch.manual_seed(2)
    embed, block, head = nn.Embedding(11, 16), Block(m), nn.Linear(16, 11)
    net = nn.ModuleList([embed, block, head]).to(torch_xla.device())
    block.mark()
    xs.mark_sharding(embed.weight, m, (None, "y"))
    tokens = marked(m, ("x", None), 4, 9, below=11)
    # Rounding of bfloat16 moves AdamW's first steps, which are of one size, to either side.
    optimizer = (torch.optim.SGD(net.parameters(), 0.1) if bf16 else
                 torch.optim.AdamW(net.parameters(), 1e-2))
    losses = []

    def step():
        optimizer.zero_grad()
        with torch.autocast("xla", torch.bfloat16, enabled=bf16):
            x = embed(tokens[:, :-1])
            if again:
                from torch_xla.utils.checkpoint import checkpoint
                x = checkpoint(block, x)
            else:
                x = block(x)
            loss = F.cross_entropy(head(x).flatten(0, 1).float(), tokens[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        return loss.detach()

    once = torch_xla.compile(step) if compiled else step
    for _ in range(3):
        losses.append(once())
        torch_xla.sync()
    return [torch.stack(losses), *(p.detach() for p in net.parameters())]


def patched_linear():
    m, net = mesh(x=2, y=4), mlp()
    from torch_xla.distributed.spmd.xla_sharding import apply_xla_patch_to_nn_linear
    net = apply_xla_patch_to_nn_linear(net)
    xs.mark_sharding(net[0].weight, m, ("y", None))
    return steps(net, torch.optim.SGD(net.parameters(), 0.1), *digits(m, "x"))


def many_parameters():
    """More than torch_xla hands to a program one by one: they come as one tuple."""
    m = mesh(x=8)
    rows = [marked(m, ("x",), 8, seed=k) if k % 100 == 0 else tensor(8, seed=k)
            for k in range(3300)]
    return torch.stack(rows).sum(0)


def openxla():
    """torch.compile's backend, on inputs that are marked."""
    m, net = mesh(x=8), mlp().eval()
    xs.mark_sharding(net[0].weight, m, ("x", None))
    run = torch.compile(net, backend="openxla")
    with torch.no_grad():
        return [run(marked(m, ("x", None), 16, 6)), run(marked(m, ("x", None), 16, 6, seed=1))]


def distributed_tensors():
    """torch.distributed.tensor's own functions."""
    from torch.distributed.tensor import DeviceMesh, Replicate, Shard
    axes = mesh(x=2, y=4).mesh_shape
    m = DeviceMesh("xla", list(range(xr.global_runtime_device_count())))
    n = DeviceMesh("xla", np.arange(xr.global_runtime_device_count()).reshape(axes).tolist(),
                   mesh_dim_names=("x", "y"))
    x = xs.xla_distribute_tensor(torch.arange(48.0).reshape(16, 3), m, [Shard(0)])
    y = xs.xla_distribute_tensor(torch.arange(64.0).reshape(8, 8), n, [Shard(0), Shard(1)])
    z = xs.xla_distribute_tensor(torch.arange(24.0).reshape(8, 3), n, [Replicate(), Shard(0)])
    return [x.global_tensor * 2, y.global_tensor @ z.global_tensor]


# ---- what goes in and out ----

def loaded(minibatch=False):
    """A loader whose batches arrive in parts."""
    m = mesh(x=8)
    data = [(torch.arange(k * 96.0, k * 96 + 96).reshape(16, 6), torch.arange(16) + k)
            for k in range(5)]
    spec = {0: ("x", None), 1: ("x",)}
    one = [xs.ShardingSpec(m, spec[k], minibatch=minibatch) for k in spec]
    batches = pl.MpDeviceLoader([list(d) for d in data], torch_xla.device(),
                                input_sharding=xs.ShardingSpec(m, ("x", None),
                                                               minibatch=minibatch))
    named = pl.MpDeviceLoader([{"x": d[0], "t": d[1]} for d in data], torch_xla.device(),
                              input_sharding={"x": one[0], "t": one[1]})
    return [[x * 2, t] if not k % 2 else [x.sum(), t + 1] for k, (x, t) in enumerate(batches)] + \
           [[b["x"].mean(0), b["t"]] for b in named]


def checkpointed():
    """Saved in parts by torch.distributed.checkpoint, loaded into another mesh."""
    import torch.distributed.checkpoint as dist_cp
    import torch_xla.experimental.distributed_checkpoint as xc
    m, other = mesh(x=8), mesh(turned=True, x=2, y=4)
    net, fresh = mlp(), mlp()
    xs.mark_sharding(net[0].weight, m, ("x", None))
    xs.mark_sharding(net[2].weight, m, ("x", None))
    with torch.no_grad():
        for p in fresh.parameters():
            p.zero_()
    xs.mark_sharding(fresh[0].weight, other, ("y", "x"))
    torch_xla.sync(wait=True)
    with tempfile.TemporaryDirectory() as folder:
        dist_cp.save(state_dict={"net": net.state_dict()}, no_dist=True,
                     storage_writer=dist_cp.FileSystemWriter(folder),
                     planner=xc.SPMDSavePlanner())
        state = {"net": fresh.state_dict()}
        dist_cp.load(state_dict=state, storage_reader=dist_cp.FileSystemReader(folder),
                     no_dist=True, planner=xc.SPMDLoadPlanner())
    fresh.load_state_dict(state["net"])
    return [list(net.parameters()), list(fresh.parameters())]


def managed_checkpoints():
    """By CheckpointManager, in time with training and beside it; resumed, it goes on as it
    would have."""
    import torch.distributed as dist
    import torch_xla.experimental.distributed_checkpoint as xc
    dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())
    m = mesh(x=8)

    def make():
        net = mlp()
        xs.mark_sharding(net[0].weight, m, ("x", None))
        return net, torch.optim.AdamW(net.parameters(), 1e-2)

    with tempfile.TemporaryDirectory() as folder:
        net, optimizer = make()
        batch = digits(m, "x")
        manager = xc.CheckpointManager(folder, save_interval=2, max_to_keep=2,
                                       chkpt_on_preemption=False)
        said = []
        for k in range(6):
            steps(net, optimizer, *batch, n=1)
            state = {"net": net.state_dict(), "optimizer": optimizer.state_dict()}
            said.append(manager.save_async(k, state) if k == 2 else manager.save(k, state))
        manager.join()
        kept = manager.all_steps()
        net2, optimizer2 = make()
        xc.prime_optimizer(optimizer2)
        state = {"net": net2.state_dict(), "optimizer": optimizer2.state_dict()}
        manager.restore(4, state)
        net2.load_state_dict(state["net"])
        optimizer2.load_state_dict(state["optimizer"])
        more = steps(net2, optimizer2, *batch, n=1)
    dist.destroy_process_group()
    return [said, sorted(kept), list(net.parameters()), more]


def saved():
    m, net = mesh(x=8), mlp()
    xs.mark_sharding(net[0].weight, m, ("x", None))
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "net.pt")
        xm.save(net.state_dict(), path)
        return list(torch.load(path).values())


# ---- how it lies: several devices only ----

def parts(*names):
    """Of a 10 x 8 tensor by axes of a mesh of 2 x 4: each device's part, as it is there and
    without what fills it up."""
    x = xs.mark_sharding(tensor(10, 8), mesh(x=2, y=4), names)
    torch_xla.sync(wait=True)
    return [[str(s.shard_device), list(s.data.shape), s.unpadded_data, s.replica_id]
            for s in x.local_shards], tensor(10, 8)


def written_parts():
    x = xs.mark_sharding(tensor(16, 2), mesh(x=8), ("x", None))
    torch_xla.sync(wait=True)
    some = x.local_shards
    for k, s in enumerate(some):
        s.data = torch.full_like(s.data, float(k))
    x.load_local_shards_(some)
    return x.global_tensor + 1


def carried_on():
    """What results of marked tensors lie like, as the compiler chose: texts of shardings."""
    m = mesh(x=8)
    x, w = marked(m, ("x", None), 16, 8), tensor(8, 8, seed=1)
    y = torch.tanh(x @ w)
    s = y.sum()
    torch_xla.sync(wait=True)
    again = y * 2
    torch_xla.sync(wait=True)
    return [torch_xla._XLAC._get_xla_sharding_spec(t) for t in (x, y, s, again)]


def random_numbers():
    """The same on all devices that hold the same, others in each part."""
    m = mesh(x=8)
    torch_xla.manual_seed(7)
    a = torch.rand(64, 16, device=torch_xla.device())
    whole = xs.mark_sharding(a + 0, m, (None, None))
    b = torch.rand(64, 16, device=torch_xla.device())
    split = xs.mark_sharding(b, m, ("x", None))
    torch_xla.sync(wait=True)
    return [[s.data for s in xs.wrap_if_sharded(t).local_shards] for t in (whole, split)], b


def counts():
    return [xr.is_spmd(), xr.global_runtime_device_count(), xr.global_device_count(),
            xr.process_count(), xr.addressable_runtime_device_count(), str(torch_xla.device()),
            len(xr.global_runtime_device_attributes())]
