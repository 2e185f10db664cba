# SPDX-License-Identifier: Apache-2.0
"""Operators of torch.nn.functional: activations, norms, convolutions, pools, losses, attention.

ops.py says what a case is.
"""

import torch
import torch.nn.functional as F

import ops_table  # noqa: F401 - its cases are of the same table
from ops import i, m, n, op, p, run, u  # noqa: F401 - run is asked for here

# ---- activations ----
for name in """relu6 elu selu celu gelu silu mish softplus softsign tanhshrink logsigmoid hardtanh
        hardsigmoid hardswish leaky_relu softshrink hardshrink""".split():
    op(name, getattr(F, name), n(4, 6))
op("gelu_tanh", lambda a: F.gelu(a, approximate="tanh"), n(4, 6))
op("elu_alpha", lambda a: F.elu(a, 0.7), n(4, 6))
op("threshold", lambda a: F.threshold(a, 0.3, 2), n(4, 6))
op("prelu", F.prelu, n(4, 6), p(6))
op("rrelu", lambda a: F.rrelu(a, training=False), n(4, 6))
op("glu", lambda a: F.glu(a, 1), n(4, 6))
op("softmax", lambda a: F.softmax(a, 1), n(4, 6))
op("softmax_first", lambda a: F.softmax(a, 0), n(4, 6))
op("softmax_dtype", lambda a: F.softmax(a, 1, dtype=torch.float32), n(4, 6))
op("log_softmax", lambda a: F.log_softmax(a, 1), n(4, 6))
op("softmin", lambda a: F.softmin(a, 1), n(4, 6))
op("normalize", lambda a: F.normalize(a, dim=1), n(4, 6))
op("relu_inplace", lambda a: F.relu_(a.clone()), n(4, 6))
op("leaky_relu_inplace", lambda a: F.leaky_relu_(a.clone(), 0.2), n(4, 6))
op("hardtanh_inplace", lambda a: F.hardtanh_(a.clone(), -0.5, 0.5), n(4, 6))

# ---- norms ----
op("layer_norm", lambda a, w, b: F.layer_norm(a, (6,), w, b), n(4, 6), p(6), n(6), loose=8)
op("layer_norm_plain", lambda a: F.layer_norm(a, (5, 6)), n(4, 5, 6), loose=8)
op("rms_norm", lambda a, w: F.rms_norm(a, (6,), w), n(4, 6), p(6), loose=8)
op("group_norm", lambda a, w, b: F.group_norm(a, 2, w, b), n(3, 4, 5, 5), p(4), n(4), loose=8)
op("instance_norm", lambda a: F.instance_norm(a), n(3, 4, 5, 5), loose=8)
op("batch_norm_train", lambda a, w, b: F.batch_norm(
    a, torch.zeros_like(w), torch.ones_like(w), w, b, training=True), n(5, 4, 3, 3), p(4), n(4),
   loose=8)
op("batch_norm_eval", lambda a, r, v, w, b: F.batch_norm(a, r.detach(), v.detach(), w, b),
   n(5, 4, 3, 3), n(4), p(4), p(4), n(4), loose=8)
op("batch_norm_rows", lambda a: F.batch_norm(a, None, None, training=True), n(5, 4), loose=8)


def running(a):
    layer = torch.nn.BatchNorm1d(4, device=a.device, dtype=a.dtype)
    layer(a), layer(a * 2)
    return layer.running_mean, layer.running_var, layer.num_batches_tracked


op("batch_norm_statistics", running, n(6, 4), loose=8)
op("local_response_norm", lambda a: F.local_response_norm(a, 3), n(2, 5, 4, 4), loose=8)

# ---- convolutions ----
op("conv1d", F.conv1d, n(2, 3, 9), n(4, 3, 3), n(4), loose=16)
op("conv2d", F.conv2d, n(2, 3, 7, 8), n(4, 3, 3, 3), n(4), loose=16)
op("conv2d_stride", lambda a, w: F.conv2d(a, w, stride=2, padding=1), n(2, 3, 8, 8),
   n(4, 3, 3, 3), loose=16)
op("conv2d_same", lambda a, w: F.conv2d(a, w, padding="same"), n(2, 3, 7, 7), n(4, 3, 3, 3),
   loose=16)
op("conv2d_dilated", lambda a, w: F.conv2d(a, w, dilation=2), n(1, 2, 9, 9), n(3, 2, 3, 3),
   loose=16)
op("conv2d_groups", lambda a, w: F.conv2d(a, w, groups=2), n(2, 4, 6, 6), n(6, 2, 3, 3), loose=16)
op("conv2d_depthwise", lambda a, w: F.conv2d(a, w, padding=1, groups=4), n(2, 4, 6, 6),
   n(4, 1, 3, 3), loose=16)
op("conv2d_pointwise", F.conv2d, n(2, 4, 5, 5), n(6, 4, 1, 1), loose=16)
op("conv3d", F.conv3d, n(1, 2, 5, 5, 5), n(3, 2, 2, 2, 2), loose=16)
op("conv_transpose1d", lambda a, w: F.conv_transpose1d(a, w, stride=2), n(2, 3, 5), n(3, 4, 3),
   loose=16)
op("conv_transpose2d", lambda a, w, b: F.conv_transpose2d(
    a, w, b, stride=2, padding=1, output_padding=1), n(2, 3, 4, 4), n(3, 2, 3, 3), n(2), loose=16)
op("conv_transpose2d_groups", lambda a, w: F.conv_transpose2d(a, w, groups=2), n(1, 4, 4, 4),
   n(4, 3, 3, 3), loose=16)
op("conv_transpose3d", F.conv_transpose3d, n(1, 2, 3, 3, 3), n(2, 2, 2, 2, 2), loose=16)
op("linear", F.linear, n(4, 6), n(5, 6), n(5), loose=4)
op("linear_3d", F.linear, n(2, 4, 6), n(5, 6), loose=4)
op("bilinear", F.bilinear, n(3, 4), n(3, 5), n(2, 4, 5), n(2), loose=16)
op("im2col", lambda a: F.unfold(a, 3, padding=1, stride=2), n(2, 3, 6, 6))
op("col2im", lambda a: F.fold(a, (4, 4), 2), n(1, 8, 9))

# ---- pools and other windows ----
op("max_pool1d", lambda a: F.max_pool1d(a, 2), n(2, 3, 8))
op("max_pool2d", lambda a: F.max_pool2d(a, 2), n(2, 3, 6, 6))
op("max_pool2d_overlap", lambda a: F.max_pool2d(a, 3, 2, 1), n(2, 3, 7, 7))
op("max_pool2d_indices", lambda a: F.max_pool2d(a, 2, return_indices=True), n(2, 3, 6, 6))
op("max_pool2d_ceil", lambda a: F.max_pool2d(a, 2, ceil_mode=True), n(2, 3, 7, 7))
op("max_pool3d", lambda a: F.max_pool3d(a, 2), n(1, 2, 4, 4, 4))
op("max_unpool2d", lambda a: F.max_unpool2d(*F.max_pool2d(a, 2, return_indices=True), 2),
   n(2, 3, 6, 6))
op("avg_pool1d", lambda a: F.avg_pool1d(a, 2), n(2, 3, 8))
op("avg_pool2d", lambda a: F.avg_pool2d(a, 2), n(2, 3, 6, 6))
op("avg_pool2d_pad", lambda a: F.avg_pool2d(a, 3, 2, 1, count_include_pad=False), n(2, 3, 7, 7))
op("avg_pool3d", lambda a: F.avg_pool3d(a, 2), n(1, 2, 4, 4, 4))
op("lp_pool2d", lambda a: F.lp_pool2d(a, 2, 2), p(2, 3, 6, 6), loose=4)
op("adaptive_avg_pool1d", lambda a: F.adaptive_avg_pool1d(a, 4), n(2, 3, 8))
op("adaptive_avg_pool2d", lambda a: F.adaptive_avg_pool2d(a, 2), n(2, 3, 6, 6))
op("adaptive_avg_pool2d_uneven", lambda a: F.adaptive_avg_pool2d(a, 4), n(2, 3, 6, 6))
op("adaptive_avg_pool2d_one", lambda a: F.adaptive_avg_pool2d(a, 1), n(2, 3, 6, 6))
op("adaptive_avg_pool3d", lambda a: F.adaptive_avg_pool3d(a, 2), n(1, 2, 4, 4, 4))
op("adaptive_max_pool2d", lambda a: F.adaptive_max_pool2d(a, 2), n(2, 3, 6, 6))
for mode in "nearest nearest-exact bilinear bicubic area".split():
    op("interpolate_" + mode, lambda a, mode=mode: F.interpolate(a, scale_factor=2, mode=mode),
       n(1, 2, 4, 4), loose=8)
op("interpolate_down", lambda a: F.interpolate(a, size=(3, 3), mode="bilinear"), n(1, 2, 6, 6),
   loose=8)
op("interpolate_aligned", lambda a: F.interpolate(a, size=(7, 7), mode="bilinear",
                                                  align_corners=True), n(1, 2, 4, 4), loose=8)
op("interpolate_linear", lambda a: F.interpolate(a, scale_factor=2, mode="linear"), n(1, 2, 5),
   loose=8)
op("grid_sample", lambda a, g: F.grid_sample(a, g, align_corners=False), n(1, 2, 5, 5),
   u(1, 3, 3, 2), loose=16)
op("affine_grid", lambda a: F.affine_grid(a, (2, 1, 3, 4), align_corners=False), n(2, 2, 3),
   loose=8)
for mode in "reflect replicate circular".split():
    op("pad_" + mode, lambda a, mode=mode: F.pad(a, (1, 2, 2, 1), mode=mode), n(1, 2, 5, 5))

# ---- losses ----
for name in "mse_loss l1_loss smooth_l1_loss huber_loss".split():
    op(name, getattr(F, name), n(4, 6), n(4, 6), loose=2)
    op(name + "_none", lambda a, b, f=getattr(F, name): f(a, b, reduction="none"), n(4, 6),
       n(4, 6))
op("cross_entropy", F.cross_entropy, n(5, 4), i(4, 5), loose=2)
op("cross_entropy_smoothing", lambda a, t: F.cross_entropy(a, t, label_smoothing=0.1), n(5, 4),
   i(4, 5), loose=2)
op("cross_entropy_weight", lambda a, t, w: F.cross_entropy(a, t, w.detach()), n(5, 4), i(4, 5),
   p(4), loose=2)
op("cross_entropy_ignored", lambda a, t: F.cross_entropy(a, t, ignore_index=1), n(5, 4), i(4, 5),
   loose=2)
op("cross_entropy_soft", lambda a, t: F.cross_entropy(a, t.detach()), n(5, 4), p(5, 4), loose=2)
op("cross_entropy_2d", F.cross_entropy, n(2, 4, 3, 3), i(4, 2, 3, 3), loose=2)
op("nll_loss", lambda a, t: F.nll_loss(F.log_softmax(a, 1), t), n(5, 4), i(4, 5), loose=2)
op("nll_loss_sum", lambda a, t: F.nll_loss(a, t, reduction="sum"), n(5, 4), i(4, 5), loose=2)
op("nll_loss2d", F.nll_loss, n(2, 4, 3, 3), i(4, 2, 3, 3), loose=2)
op("binary_cross_entropy", lambda a, t: F.binary_cross_entropy(
    a.sigmoid(), t.detach().sigmoid()), n(4, 6), n(4, 6), loose=2)
op("binary_cross_entropy_with_logits", lambda a, t: F.binary_cross_entropy_with_logits(
    a, t.detach().sigmoid()), n(4, 6), n(4, 6), loose=2)
op("kl_div", lambda a, t: F.kl_div(F.log_softmax(a, 1), F.softmax(t, 1), reduction="batchmean"),
   n(4, 6), n(4, 6), loose=2)
op("poisson_nll_loss", F.poisson_nll_loss, u(4, 6), p(4, 6), loose=2)
op("gaussian_nll_loss", F.gaussian_nll_loss, n(4, 6), n(4, 6), p(4, 6), loose=2)
op("hinge_embedding_loss", lambda a, c: F.hinge_embedding_loss(a, c.to(a.dtype) * 2 - 1), n(4, 6),
   m(4, 6), loose=2)
op("soft_margin_loss", lambda a, c: F.soft_margin_loss(a, c.to(a.dtype) * 2 - 1), n(4, 6),
   m(4, 6), loose=2)
op("margin_ranking_loss", lambda a, b, c: F.margin_ranking_loss(a, b, c.to(a.dtype) * 2 - 1), n(6),
   n(6), m(6), loose=2)
op("triplet_margin_loss", F.triplet_margin_loss, n(4, 6), n(4, 6), n(4, 6), loose=4)
op("multi_margin_loss", F.multi_margin_loss, n(5, 4), i(4, 5), loose=2)
op("multilabel_soft_margin_loss", lambda a, c: F.multilabel_soft_margin_loss(a, c.to(a.dtype)),
   n(4, 6), m(4, 6), loose=2)
op("cosine_embedding_loss", lambda a, b, c: F.cosine_embedding_loss(a, b, c.to(a.dtype) * 2 - 1),
   n(4, 6), n(4, 6), m(4), loose=4)
op("ctc_loss", lambda a: F.ctc_loss(
    F.log_softmax(a, 2), torch.tensor([[1, 2], [2, 3]], device=a.device),
    torch.tensor([6, 6], device=a.device), torch.tensor([2, 2], device=a.device)), n(6, 2, 4),
   loose=4)

# ---- attention ----
op("attention", F.scaled_dot_product_attention, n(2, 2, 5, 4), n(2, 2, 5, 4), n(2, 2, 5, 4),
   loose=8)
op("attention_causal", lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
   n(2, 2, 5, 4), n(2, 2, 5, 4), n(2, 2, 5, 4), loose=8)
op("attention_masked", lambda q, k, v, c: F.scaled_dot_product_attention(q, k, v, c),
   n(2, 2, 5, 4), n(2, 2, 6, 4), n(2, 2, 6, 4), m(5, 6), loose=8)
op("attention_heads", lambda x, w, b, o, c: F.multi_head_attention_forward(
    x, x, x, 6, 2, w, b, None, None, False, 0.0, o, c)[0], u(5, 3, 6), u(18, 6), u(18), u(6, 6),
   u(6), loose=16)
