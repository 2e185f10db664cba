# SPDX-License-Identifier: Apache-2.0
"""Tensors whose sizes torch_xla does not know before they are computed: XLA_EXPERIMENTAL names the
functions that give such."""

import torch


def found(values):
    """Indices and values of what is not 0; whether their sizes were left open; and what further
    programs make of them."""
    import torch_xla
    x = torch.tensor(values, device=torch_xla.device())
    at, some = torch.nonzero(x), torch.masked_select(x, x > 0)
    is_open = "<=" in str(at.shape) and "<=" in str(some.shape)
    torch_xla.sync()
    return is_open, at.cpu(), some.cpu(), (some * 2).sum().cpu(), (some * 2).exp().cpu()


def rows(values):
    """The sum of rows that begin with more than 0; of one row torch_xla says no bound."""
    import torch_xla
    x = torch.tensor(values, device=torch_xla.device())
    return x[x[:, 0] > 0].sum(0)
