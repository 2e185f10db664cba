# SPDX-License-Identifier: Apache-2.0
"""Layers of torch.nn, forwards and backwards; run on either device, step on any."""

import torch
from torch import nn

LAYERS = {
    "Linear": (lambda: nn.Linear(6, 5), (4, 6)),
    "Bilinear": (lambda: Pair(nn.Bilinear(6, 6, 3)), (4, 6)),
    "Conv1d": (lambda: nn.Conv1d(3, 4, 3, padding=1), (2, 3, 8)),
    "Conv2d": (lambda: nn.Conv2d(3, 4, 3, stride=2, padding=1), (2, 3, 8, 8)),
    "Conv2d circular": (lambda: nn.Conv2d(3, 4, 3, padding=1, padding_mode="circular"),
                        (2, 3, 6, 6)),
    "Conv2d depthwise": (lambda: nn.Conv2d(4, 8, 3, groups=4), (2, 4, 6, 6)),
    "Conv3d": (lambda: nn.Conv3d(2, 3, 2), (1, 2, 4, 4, 4)),
    "ConvTranspose2d": (lambda: nn.ConvTranspose2d(3, 2, 3, stride=2), (2, 3, 4, 4)),
    "BatchNorm1d": (lambda: nn.BatchNorm1d(6), (8, 6)),
    "BatchNorm2d": (lambda: nn.BatchNorm2d(3), (4, 3, 5, 5)),
    "LayerNorm": (lambda: nn.LayerNorm(6), (4, 6)),
    "GroupNorm": (lambda: nn.GroupNorm(2, 4), (2, 4, 5, 5)),
    "InstanceNorm2d": (lambda: nn.InstanceNorm2d(3, affine=True), (2, 3, 5, 5)),
    "RMSNorm": (lambda: nn.RMSNorm(6), (4, 6)),
    "LocalResponseNorm": (lambda: nn.LocalResponseNorm(2), (2, 4, 5, 5)),
    "RNN": (lambda: First(nn.RNN(5, 7, 2)), (4, 2, 5)),
    "LSTM": (lambda: First(nn.LSTM(5, 7, bidirectional=True)), (4, 2, 5)),
    "GRU": (lambda: First(nn.GRU(5, 7, batch_first=True)), (2, 4, 5)),
    "LSTMCell": (lambda: First(nn.LSTMCell(5, 7)), (2, 5)),
    "Embedding": (lambda: Rows(nn.Embedding(9, 4, padding_idx=0)), (3, 5)),
    "EmbeddingBag": (lambda: Rows(nn.EmbeddingBag(9, 4, mode="mean")), (3, 5)),
    "MultiheadAttention": (lambda: Itself(nn.MultiheadAttention(8, 2, batch_first=True)),
                           (2, 5, 8)),
    "TransformerEncoderLayer": (lambda: nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0),
                                (5, 2, 8)),
    "TransformerDecoderLayer": (lambda: Pair(nn.TransformerDecoderLayer(8, 2, 16, dropout=0.0)),
                                (5, 2, 8)),
    "MaxPool2d": (lambda: nn.MaxPool2d(3, 2, 1), (2, 3, 8, 8)),
    "AvgPool2d": (lambda: nn.AvgPool2d(2), (2, 3, 8, 8)),
    "AdaptiveAvgPool2d": (lambda: nn.AdaptiveAvgPool2d(2), (2, 3, 8, 8)),
    "LPPool2d": (lambda: nn.LPPool2d(2, 2), (2, 3, 8, 8)),
    "Upsample": (lambda: nn.Upsample(scale_factor=2, mode="bilinear"), (1, 2, 4, 4)),
    "PixelShuffle": (lambda: nn.PixelShuffle(2), (1, 8, 3, 3)),
    "ZeroPad2d": (lambda: nn.ZeroPad2d(1), (1, 2, 3, 3)),
    "ReflectionPad2d": (lambda: nn.ReflectionPad2d(1), (1, 2, 4, 4)),
    "Unfold": (lambda: nn.Unfold(2), (1, 2, 4, 4)),
    "Softmax": (lambda: nn.Softmax(1), (4, 6)),
    "LogSoftmax": (lambda: nn.LogSoftmax(1), (4, 6)),
    "PReLU": (lambda: nn.PReLU(6), (4, 6)),
    "GLU": (lambda: nn.GLU(1), (4, 6)),
    "Mish": (nn.Mish, (4, 6)),
    "CosineSimilarity": (lambda: Pair(nn.CosineSimilarity()), (4, 6)),
}


class Wrapped(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer


class First(Wrapped):
    def forward(self, x):
        return self.layer(x)[0]


class Pair(Wrapped):
    def forward(self, x):
        return self.layer(x, x * 0.5 + 1)


class Itself(Wrapped):
    def forward(self, x):
        return self.layer(x, x, x)[0]


class Rows(Wrapped):
    """x says, by its order, which rows."""

    def forward(self, x):
        return self.layer(x.argsort(1) % 9)


def step(name, device):
    torch.manual_seed(1)
    make, shape = LAYERS[name]
    layer = make().to(device)
    x = torch.randn(shape).to(device).requires_grad_()
    y = layer(x)
    w = torch.linspace(0.5, 1.5, y.numel()).reshape(y.shape).to(device)
    (y * w).sum().backward()
    grads = [p.grad for p in layer.parameters()]
    return [y, *([x.grad] if x.grad is not None else []), *[g for g in grads if g is not None],
            *layer.buffers()]


def run(name):
    import torch_xla
    return step(name, torch_xla.device())


class Residual(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(n, n, 3, padding=1, bias=False), nn.BatchNorm2d(n)
        self.conv2, self.bn2 = nn.Conv2d(n, n, 3, padding=1, bias=False), nn.BatchNorm2d(n)

    def forward(self, x):
        y = self.bn1(self.conv1(x)).relu()
        return (self.bn2(self.conv2(y)) + x).relu()


def autocast():
    """The loss and gradients of a step in bf16: roundings to it stand before and after most
    layers."""
    import torch_xla
    d = torch_xla.device()
    torch.manual_seed(1)
    model = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(),
                          Residual(8), Residual(8), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                          nn.Linear(8, 4)).to(d)
    x, y = torch.randn(8, 3, 8, 8).to(d), (torch.arange(8) % 4).to(d)
    with torch.autocast("xla", dtype=torch.bfloat16):
        loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    return [loss, *[p.grad for p in model.parameters()]]
