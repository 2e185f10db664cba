# SPDX-License-Identifier: Apache-2.0
"""Short programs with torch_xla's documented functions; workers run them on both devices.

What a function returns is compared, so it holds no random number and no device's name.
"""

import io
import os
import tempfile
import threading

import torch
import torch_xla
import torch_xla.core.xla_model as xm
import torch_xla.debug.metrics as met
import torch_xla.runtime as xr
from torch import nn


def tensor(*shape, seed=0, dtype=torch.float32):
    g = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=g).to(dtype).to(torch_xla.device())


def net(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3)).to(torch_xla.device())


# ---- tensors ----

def add_and_multiply():
    a, b = tensor(2, 2), tensor(2, 2, seed=1)
    return [a + b, a.mm(b), a @ b - a * 2, (a > b).sum(), a.mean(), a[0, 1].item()]


def printed():
    return repr(torch.arange(6, device=torch_xla.device()).reshape(2, 3) * 2)


def linear_layer():
    torch.manual_seed(3)
    return nn.Linear(10, 20).to(torch_xla.device())(tensor(10))


def mixed_devices():
    try:
        nn.Linear(10, 20)(tensor(10)).cpu()
    except RuntimeError as e:
        return "is not an XLA tensor" in str(e) or "Input tensor" in str(e)
    return "no error"


def views():
    a = tensor(4, 6)
    v = a[1:3].t()
    w = a.view(2, 12)
    v.add_(1)
    w[1].mul_(3)
    a[:, 2] = 7
    a.diagonal().zero_()
    b = a.expand(2, 4, 6)[1, ::2]
    return [a, v, w, b, a.storage_offset(), v.is_contiguous()]


def in_place_chain():
    a = tensor(5)
    b = a
    a += 1
    a.mul_(2).clamp_(-1, 1)
    b[2:].neg_()
    torch_xla.sync()
    a.add_(b)
    return [a, b, a is b]


def moved_view():
    """A view that is moved shares nothing with what it is moved to."""
    a = tensor(4)
    c = a[:2].cpu()
    a.zero_()
    return [c, a]


def data_types():
    out = []
    for dtype in (torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32,
                  torch.int16, torch.int8, torch.uint8, torch.bool, torch.complex64):
        x = (tensor(7) * 3).to(dtype).cpu().to(torch_xla.device())
        out += [x, x + x if dtype != torch.bool else ~x]
    return out


def remainder_kept():
    """torch_xla computes it in ui8 and says int8 of it, so a later program takes it so."""
    x = torch.tensor([-128, -7, -1, 0, 5, 127], dtype=torch.int8, device=torch_xla.device())
    out = []
    for divisor in 3, -3:
        r = x % divisor
        torch_xla.sync()
        out += [r.clone(), r + 1, r.to(torch.int32)]
    return out


def truth_kept():
    """torch_xla computes these in ui8 and says bool of them, as later programs take them."""
    b = torch.tensor([[True, False, True], [False, False, True]], device=torch_xla.device())
    out = [b.sign(), b.sgn()]
    torch_xla.sync()
    return [y for s in out for y in (s, ~s, torch.where(s, 5, 6), s.sum(0), s & b, b[s])]


def empty_kept():
    """torch_xla declares these otherwise than it computes them, as later programs take them."""
    d = torch_xla.device()
    numbers, floats = torch.zeros(0, 3, dtype=torch.int64), torch.zeros(0, 3)
    out = [torch.zeros(0, 5, dtype=torch.bool, device=d).sign(),
           torch.where(floats.to(d).bool(), numbers.to(d), floats.to(d))]
    torch_xla.sync()
    return [out[0].logical_not(), out[1] + 1]


def empty_and_scalar():
    d = torch_xla.device()
    return [torch.zeros(0, 3, device=d), torch.zeros(0, 3, device=d).sum(), tensor(),
            torch.ones(0, device=d) + 1, torch.cat([torch.zeros(0, 2, device=d), tensor(1, 2)])]


def many_parameters():
    """More than torch_xla hands to a program one by one."""
    parts = [torch.full((2,), float(k)).to(torch_xla.device()) for k in range(3300)]
    return torch.stack(parts).sum(0)


# ---- gradients and training ----

def gradients():
    x, w = tensor(5, 6).requires_grad_(), tensor(6, 3, seed=1).requires_grad_()
    y = torch.tanh(x @ w).pow(2).sum()
    gx, gw = torch.autograd.grad(y, [x, w], create_graph=True)
    gg, = torch.autograd.grad(gx.pow(2).sum(), [w])
    return [y, gx, gw, gg]


class Clip(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clamp(-0.5, 0.5)

    @staticmethod
    def backward(ctx, g):
        return g * (ctx.saved_tensors[0].abs() < 1)


def own_function_and_hooks():
    x = tensor(9).requires_grad_()
    seen = []
    y = Clip.apply(x)
    y.register_hook(lambda g: seen.append(g.clone()))
    (y * 3).sum().backward()
    with torch.no_grad():
        x -= 0.1 * x.grad
    return [x, x.grad, *seen]


def accumulated_and_clipped():
    model = net()
    for k in range(3):
        model(tensor(8, 6, seed=k)).pow(2).mean().backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    return [norm, *[p.grad for p in model.parameters()]]


OPTIMIZERS = {
    "sgd": lambda ps: torch.optim.SGD(ps, lr=0.1, momentum=0.9, weight_decay=1e-3, nesterov=True),
    "adam": lambda ps: torch.optim.Adam(ps, lr=0.01, amsgrad=True),
    "adamw": lambda ps: torch.optim.AdamW(ps, lr=0.01, capturable=True),
    "rmsprop": lambda ps: torch.optim.RMSprop(ps, lr=0.01, momentum=0.5, centered=True),
    "adagrad": lambda ps: torch.optim.Adagrad(ps, lr=0.05),
    "adadelta": lambda ps: torch.optim.Adadelta(ps, lr=0.5),
    "adamax": lambda ps: torch.optim.Adamax(ps, lr=0.01),
    "nadam": lambda ps: torch.optim.NAdam(ps, lr=0.01),
}


def optimizer(name):
    """Ten steps with a schedule: losses, weights."""
    model = net()
    opt = OPTIMIZERS[name](model.parameters())
    schedule = torch.optim.lr_scheduler.StepLR(opt, 4, gamma=0.5)
    losses = []
    for k in range(10):
        opt.zero_grad()
        loss = nn.functional.cross_entropy(model(tensor(16, 6, seed=k)),
                                           (tensor(16, 6, seed=k).argmax(1) % 3))
        loss.backward()
        xm.optimizer_step(opt, barrier=True)
        schedule.step()
        losses.append(loss.detach())
    return [torch.stack(losses), *model.parameters()]


def mixed_precision():
    model = net()
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    losses, kinds = [], []
    for k in range(5):
        opt.zero_grad()
        with torch.autocast("xla", dtype=torch.bfloat16):
            y = model(tensor(16, 6, seed=k))
            loss = y.float().pow(2).mean()
        kinds.append(str(y.dtype))
        loss.backward()
        opt.step()
        torch_xla.sync()
        losses.append(loss.detach())
    return [torch.stack(losses), kinds]


def scaled_gradients():
    """Steps whose gradients are scaled; the third overflows and is left out."""
    from torch_xla.amp import syncfree
    out = []
    for kind in torch.optim.SGD, syncfree.SGD, syncfree.Adam, syncfree.AdamW:
        model = net()
        opt = kind(model.parameters(), lr=0.1)
        scaler = torch.amp.GradScaler("xla", init_scale=16.0, growth_interval=2)
        for k in range(5):
            opt.zero_grad()
            with torch.autocast("xla", dtype=torch.bfloat16):
                loss = model(tensor(16, 6, seed=k) * (float("inf") if k == 2 else 1)).float()
            scaler.scale(loss.pow(2).mean()).backward()
            scaler.unscale_(opt)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(opt)
            scaler.update()
            torch_xla.sync()
            out += [scaler.get_scale(), *model.parameters()]
    return out


def checkpointed():
    """The gradients with activations kept, and computed again."""
    from torch_xla.utils.checkpoint import checkpoint
    out = []
    for keep in (True, False):
        model = net()
        x = tensor(8, 6).requires_grad_()
        y = model(x) if keep else checkpoint(model, x)
        y.pow(2).sum().backward()
        out += [x.grad, *[p.grad for p in model.parameters()]]
    half = len(out) // 2
    assert all(torch.equal(a.cpu(), b.cpu()) for a, b in zip(out[:half], out[half:]))
    return out


# ---- files ----

def saved(how):
    """A state that was saved and loaded, after a step more each."""
    import torch_xla.utils.serialization as xser
    model = net()
    opt = torch.optim.Adam(model.parameters(), lr=0.01)
    model(tensor(4, 6)).sum().backward()
    opt.step()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "state")
        state = {"model": model.state_dict(), "optimizer": opt.state_dict(), "step": 7}
        if how == "torch":
            torch.save(state, path)
            back = torch.load(path)
            assert back["model"]["0.weight"].device.type == "xla"
        elif how == "xm":
            xm.save(state, path)
            back = torch.load(path)
            assert back["model"]["0.weight"].device.type == "cpu"
        elif how == "xser":
            xser.save(state, path)
            back = xser.load(path)
        else:       # what a CPU wrote
            torch.save(to_host(state), path)
            back = torch.load(path, map_location="cpu")
        other = net(seed=9)
        other.load_state_dict(back["model"])
        opt = torch.optim.Adam(other.parameters(), lr=0.01)
        opt.load_state_dict(back["optimizer"])
        other(tensor(4, 6, seed=2)).sum().backward()
        opt.step()
    return [back["step"], *other.parameters()]


def to_host(x):
    if isinstance(x, torch.Tensor):
        return x.cpu()
    return {k: to_host(v) for k, v in x.items()} if isinstance(x, dict) else x


def in_memory():
    data = io.BytesIO()
    xm.save([tensor(3), {"a": tensor(2, seed=1)}], data)
    data.seek(0)
    return torch.load(data)


# ---- the runtime ----

def random_state():
    """Numbers after the same state are the same, after another state others."""
    d = torch_xla.device()
    xm.set_rng_state(1234)
    state = xm.get_rng_state()
    a = torch.rand(1000, device=d).cpu()
    b = torch.rand(1000, device=d).cpu()
    xm.set_rng_state(1234)
    c = torch.rand(1000, device=d).cpu()
    e = torch.randn(1000, device=d).cpu()
    return [state, torch.equal(a, c), torch.equal(a, b),
            bool(0 <= a.min() and a.max() < 1), bool(abs(a.mean() - 0.5) < 0.05),
            bool(abs(e.std() - 1) < 0.1)]


def permutations():
    """Five shuffles by one program, whose random numbers take no seed."""
    return [torch.randperm(30, device=torch_xla.device()) for _ in range(5)]


def dropout_scales():
    xm.set_rng_state(7)
    y = nn.functional.dropout(torch.ones(4000, device=torch_xla.device()), 0.25).cpu()
    kept = (y != 0).float().mean().item()
    return [bool(abs(kept - 0.75) < 0.04), sorted({round(v, 4) for v in y.tolist()})]


def counts():
    return [torch_xla.device_count(), len(torch_xla.devices()), xr.world_size(),
            xr.global_ordinal(), xr.local_ordinal(), xr.process_index(), xr.process_count(),
            xr.addressable_device_count(), xr.global_device_count(), xr.local_device_count(),
            xr.global_runtime_device_count(), xr.local_process_count(), xr.host_index(),
            xr.is_spmd(), xm.is_master_ordinal(), xm.is_master_ordinal(local=False),
            str(torch_xla.device()), str(torch_xla.device(0)), xm.get_xla_supported_devices()]


def kinds():
    return [xr.device_type(), xm.xla_device_hw(torch_xla.device()),
            xm.xla_device_kind(torch_xla.device()), xr.runtime_device_attributes("xla:0")]


def memory():
    gc_free()
    before = xm.get_memory_info(torch_xla.device())
    x = torch.ones(1 << 20).to(torch_xla.device())
    torch_xla.sync(wait=True)
    during = xm.get_memory_info(torch_xla.device())
    del x
    gc_free()
    return [before, during, xm.get_memory_info(torch_xla.device())]


def gc_free():
    import gc
    gc.collect()
    torch_xla.sync(wait=True)


def metrics():
    met.clear_all()
    x = tensor(3, 3)
    for k in range(3):
        x = x @ x * 0.5
        torch_xla.sync(wait=True)
    x.cpu()
    report = met.metrics_report()
    short = met.short_metrics_report()
    return [met.metric_data("CompileTime")[0] >= 1, met.metric_data("ExecuteTime")[0],
            "TransferToDeviceTime" in report, "Counter: UncachedCompile" in report, bool(short),
            met.counter_value("UncachedCompile") + (met.counter_value("CachedCompile") or 0)]


def closures():
    seen = []
    x = tensor(4)
    xm.add_step_closure(lambda v: seen.append(v.sum().item()), args=(x * 2,))
    here = len(seen)
    torch_xla.sync()
    done = threading.Event()
    xm.add_step_closure(lambda v: (seen.append(v.item()), done.set()), args=(x.max(),),
                        run_async=True)
    torch_xla.sync()
    return [here, done.wait(60), *seen]


def eager():
    import torch_xla.experimental
    torch_xla.experimental.eager_mode(True)
    try:
        met.clear_all()
        a = tensor(4, 4)
        b = (a @ a + 1).relu()
        eagerly = met.metric_data("EagerOpExecuteTime") is not None
        f = torch_xla.compile(lambda x: (x * 2).sum(0), full_graph=True)
        return [b, f(b), eagerly, torch_xla.experimental.is_eager_mode()]
    finally:
        torch_xla.experimental.eager_mode(False)


def compiled():
    f = torch_xla.compile(lambda a, b: torch.softmax(a @ b, 1).log())
    out = [f(tensor(4, 5, seed=k), tensor(5, 3, seed=k + 1)).cpu() for k in range(3)]
    with torch_xla.step():
        out.append(tensor(3) + 1)
    return out


def openxla(training):
    model = net()
    f = torch.compile(model, backend="openxla")
    if not training:
        with torch.no_grad():
            return [f(tensor(4, 6, seed=k)) for k in range(3)]
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for k in range(3):
        opt.zero_grad()
        loss = f(tensor(4, 6, seed=k)).pow(2).mean()
        loss.backward()
        opt.step()
        losses.append(loss.detach())
    return [*losses, *model.parameters()]


def stablehlo():
    y = net()(tensor(4, 6))
    text, code = xm.get_stablehlo([y]), xm.get_stablehlo_bytecode([y])
    return [text, code[:4], len(code) > 500, y]


def loaders():
    import torch_xla.distributed.parallel_loader as pl
    data = torch.utils.data.TensorDataset(torch.arange(20.0).reshape(10, 2), torch.arange(10))
    out = []
    loader = pl.MpDeviceLoader(torch.utils.data.DataLoader(data, batch_size=4),
                               torch_xla.device(), batches_per_execution=2,
                               loader_prefetch_size=2, device_prefetch_size=1)
    out.append(len(loader))
    for x, y in loader:
        assert x.device.type == "xla"
        out += [x * 2, y]
    plain = pl.ParallelLoader(torch.utils.data.DataLoader(data, batch_size=5),
                              [torch_xla.device()])
    out += [x.sum() for x, _ in plain.per_device_loader(torch_xla.device())]
    plain.close()
    return out


def collectives():
    """In a world of one."""
    x = tensor(4, 4)
    parts = [x.clone(), x * 2]
    return [xm.all_reduce(xm.REDUCE_SUM, x.clone()), xm.all_reduce(xm.REDUCE_MAX, parts, 0.5),
            xm.all_gather(x), xm.all_gather(x, dim=1, pin_layout=False),
            xm.reduce_scatter(xm.REDUCE_SUM, x, 1.0, scatter_dim=0, shard_count=1),
            xm.all_to_all(x, 0, 1, 1), xm.collective_permute(x, [[0, 0]]),
            [bytes(v) for v in xm.rendezvous("here", b"payload")],
            xm.mesh_reduce("sum", 3, sum)]


def profile():
    """Starting and stopping. What is in the files differs: on the device, what it ran."""
    import torch_xla.debug.profiler as xp
    with xp.StepTrace("train", step_num=1), xp.Trace("inside"):
        y = tensor(3) * 2
    with tempfile.TemporaryDirectory() as folder:
        xp.start_trace(folder)
        z = (y + 1).cpu()
        xp.stop_trace()
        files = sum(len(f) for _, _, f in os.walk(folder))
    return [y, z, files > 0]
