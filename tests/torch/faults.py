# SPDX-License-Identifier: Apache-2.0
"""Programs that fail on the device; each says what it caught, then runs a good one."""

import torch
import torch_xla
import torch_xla.core.xla_model as xm
import torch_xla.debug.metrics as met
from torch import nn


def caught(f):
    try:
        f()
    except RuntimeError as e:
        return str(e)
    return "no error"


def good():
    return (torch.arange(6.0).to(torch_xla.device()) * 2).sum()


def upload():
    """More than the device's memory, as one tensor of the host."""
    return [caught(lambda: torch.zeros(1 << 26).to(torch_xla.device()).cpu()), good()]


def allocate():
    """A program whose results do not fit."""
    d = torch_xla.device()
    return [caught(lambda: (torch.ones(1 << 25, device=d) + good()).cpu()), good()]


def too_long():
    """A program that is stopped: sync() says nothing, reading the result does."""
    x = torch.ones(1500, 1500).to(torch_xla.device())
    for _ in range(40):
        x = x @ x / 1500
    torch_xla.sync()
    xm.wait_device_ops()
    return [caught(lambda: x.cpu()), good()]


# ---- donation ----

class Mnist(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(1, 10, 5), nn.BatchNorm2d(10)
        self.conv2, self.bn2 = nn.Conv2d(10, 20, 5), nn.BatchNorm2d(20)
        self.fc1, self.fc2 = nn.Linear(320, 50), nn.Linear(50, 10)

    def forward(self, x):
        x = self.bn1(torch.max_pool2d(self.conv1(x), 2).relu())
        x = self.bn2(torch.max_pool2d(self.conv2(x), 2).relu())
        x = self.fc1(x.flatten(1)).relu()
        return torch.log_softmax(self.fc2(x), 1)


def mnist():
    """How many parameters the steps donate: what is new in the second is the momentum."""
    met.clear_all()
    d = torch_xla.device()
    torch.manual_seed(0)
    model = Mnist().to(d)
    opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    losses, donated = [], []
    torch_xla.sync()
    for k in range(4):
        x = torch.randn(16, 1, 28, 28, generator=torch.Generator().manual_seed(k)).to(d)
        y = torch.arange(16).to(d) % 10
        met.clear_all()
        opt.zero_grad()
        loss = nn.functional.nll_loss(model(x), y)
        loss.backward()
        xm.optimizer_step(opt, barrier=True)
        data = met.metric_data("InputOutputAliasCount")
        donated.append(int(data[1]) if data else None)
        losses.append(loss.detach())
    return [torch.stack(losses), donated]


def peak():
    """Peak memory of steps over 48 MB of weights, in weights."""
    d = torch_xla.device()
    w = torch.zeros(12, 1 << 20).to(d)
    torch_xla.sync(wait=True)
    for _ in range(4):
        w.add_(1)
        torch_xla.sync(wait=True)
    return [xm.get_memory_info(d)["peak_bytes_used"] / (48 << 20), w[0, 0]]
