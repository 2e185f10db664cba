# SPDX-License-Identifier: Apache-2.0
"""Operators on tensors: arithmetic, comparisons, reductions, views, indexing, linear algebra.

ops.py says what a case is.
"""

import torch

from ops import COMPLEX, d, i, m, n, op, p, s, u

# ---- elementwise, one operand ----
for name in """abs neg sign sgn square ceil floor trunc round frac sigmoid tanh sinh cosh sin cos
        tan
        atan asinh exp exp2 expm1 erf erfc reciprocal logical_not isnan isinf isfinite isneginf
        isposinf isreal signbit angle positive relu deg2rad rad2deg nan_to_num sinc real conj
        conj_physical resolve_conj resolve_neg""".split():
    op(name, getattr(torch, name), n(3, 7))
for name in "log log2 log10 log1p sqrt rsqrt lgamma digamma i0".split():
    op(name, getattr(torch, name), p(3, 7))
for name in "asin acos atanh erfinv logit".split():
    op(name, getattr(torch, name), u(3, 7))
for name in "entr erfcx expit i0e i1 i1e log_ndtr ndtr ndtri bessel_j0 bessel_j1 psi".split():
    op("special_" + name, getattr(torch.special, name), u(3, 4))
op("acosh", lambda a: torch.acosh(a + 2), p(3, 7))
op("polygamma", lambda a: torch.polygamma(1, a), p(3, 4))
op("bitwise_not", torch.bitwise_not, n(3, 7))
op("imag", lambda a: torch.imag(a), n(3, 7), types=COMPLEX)
op("view_as_real", lambda a: torch.view_as_real(a), n(3, 7), types=COMPLEX)
op("view_as_complex", lambda a: torch.view_as_complex(a), n(3, 7, 2))
op("complex", torch.complex, n(3, 7), n(3, 7))
op("polar", torch.polar, p(3, 7), n(3, 7))
op("round_decimals", lambda a: torch.round(a, decimals=1), n(3, 7))
op("clamp", lambda a: torch.clamp(a, -1, 2), n(3, 7))
op("clamp_min", lambda a: torch.clamp_min(a, 1), n(3, 7))
op("clamp_max", lambda a: torch.clamp_max(a, 1), n(3, 7))
op("clamp_tensor", torch.clamp, n(3, 7), u(3, 7), p(7))
op("empty_operand", lambda a: a.exp() + a, n(0, 3))
op("scalar_operand", lambda a: a * a + 1, n())

# ---- elementwise, two operands ----
for name in """add sub mul maximum minimum fmax fmin eq ne lt le gt ge logical_and logical_or
        logical_xor bitwise_and bitwise_or bitwise_xor hypot copysign logaddexp logaddexp2
        heaviside""".split():
    op(name, getattr(torch, name), n(4, 6), n(4, 6))
    op(name + "_broadcast", getattr(torch, name), n(4, 1, 3), n(5, 1))
for name in "div true_divide floor_divide fmod remainder atan2 xlogy nextafter ldexp".split():
    op(name, getattr(torch, name), n(4, 6), p(4, 6))
for name in "xlog1py zeta".split():
    op("special_" + name, getattr(torch.special, name), p(3, 4), p(3, 4))
op("igamma", torch.igamma, p(3, 4), p(3, 4), grad=False)
op("gcd", torch.gcd, n(4, 6), n(4, 6))
op("lcm", torch.lcm, n(4, 6), n(4, 6))
op("div_floor", lambda a, b: torch.div(a, b, rounding_mode="floor"), n(4, 6), p(4, 6))
op("div_trunc", lambda a, b: torch.div(a, b, rounding_mode="trunc"), n(4, 6), p(4, 6))
op("remainder_negative", lambda a: torch.remainder(a, -3), n(4, 6))
op("fmod_negative", lambda a: torch.fmod(a, -3), n(4, 6))
op("pow", torch.pow, p(4, 6), u(4, 6))
op("pow_scalar", lambda a: a ** 3, n(4, 6))
op("pow_half", lambda a: a ** 0.5, p(4, 6))
op("pow_of_scalar", lambda a: 2 ** a, u(4, 6))
op("float_power", torch.float_power, p(4, 6), u(4, 6))
op("add_alpha", lambda a, b: torch.add(a, b, alpha=2), n(4, 6), n(6))
op("sub_alpha", lambda a, b: torch.sub(a, b, alpha=3), n(4, 6), n(6))
op("rsub", lambda a: 5 - a, n(4, 6))
op("rsub_op", torch.rsub, n(4, 6), n(4, 6))
op("add_scalar", lambda a: a + 2, n(4, 6))
op("add_float", lambda a: a + 0.5, n(4, 6))
op("mul_scalar", lambda a: a * -3, n(4, 6))
op("div_scalar", lambda a: a / 4, n(4, 6))
op("rdiv_scalar", lambda a: 3 / a, p(4, 6))
op("eq_scalar", lambda a: a == 1, n(4, 6))
op("gt_scalar", lambda a: a > 0, n(4, 6))
op("bitwise_left_shift", lambda a: torch.bitwise_left_shift(a, 2), n(4, 6))
op("bitwise_right_shift", lambda a: torch.bitwise_right_shift(a, 1), n(4, 6))
op("shift_operators", lambda a, b: (a << b) + (a >> b), p(4, 6), p(4, 6))
op("bitwise_and_scalar", lambda a: a & 3, n(4, 6))
op("mixed_types", lambda a, b: a + b, n(4, 6), i(5, 4, 6))
op("where", lambda c, a, b: torch.where(c, a, b), m(4, 6), n(4, 6), n(6))
op("where_scalar", lambda c, a: torch.where(c, a, 0), m(4, 6), n(4, 6))
op("masked_fill", lambda a, c: a.masked_fill(c, 1), n(4, 6), m(4, 6))
op("masked_fill_tensor", lambda a, c: a.masked_fill(c, torch.ones((), dtype=a.dtype)), n(4, 6),
   m(6))
op("addcmul", lambda a, b, c: torch.addcmul(a, b, c, value=2), n(4, 6), n(4, 6), n(6))
op("addcdiv", lambda a, b, c: torch.addcdiv(a, b, c, value=2), n(4, 6), n(4, 6), p(6))
op("lerp", lambda a, b: torch.lerp(a, b, 0.3), n(4, 6), n(4, 6))
op("lerp_tensor", torch.lerp, n(4, 6), n(4, 6), u(4, 6))
op("isclose", lambda a, b: torch.isclose(a, b, atol=1), n(4, 6), n(4, 6))
op("dist", torch.dist, n(4, 6), n(4, 6))
op("allclose_parts", lambda a: torch.equal(a, a), n(4, 6))

# ---- in place ----
for name in "abs neg floor ceil exp sigmoid tanh sin square relu zero erf trunc sgn".split():
    op(name + "_", lambda a, name=name: getattr(a.clone(), name + "_")(), n(3, 5))
for name in "add sub mul eq lt".split():
    op(name + "_", lambda a, b, name=name: getattr(a.clone(), name + "_")(b), n(3, 5), n(5))
op("div_", lambda a, b: a.clone().div_(b), n(3, 5), p(5))
op("pow_", lambda a: a.clone().pow_(2), n(3, 5))
op("clamp_", lambda a: a.clone().clamp_(0, 2), n(3, 5))
op("fill_", lambda a: a.clone().fill_(3), n(3, 5))
op("copy_", lambda a, b: a.clone().copy_(b), n(3, 5), n(5))
op("copy_converts", lambda a, b: a.clone().copy_(b), n(3, 5), i(9, 3, 5))
op("addcmul_", lambda a, b, c: a.clone().addcmul_(b, c, value=2), n(3, 5), n(3, 5), n(5))
op("addcdiv_", lambda a, b, c: a.clone().addcdiv_(b, c, value=2), n(3, 5), n(3, 5), p(5))
op("masked_fill_", lambda a, c: a.clone().masked_fill_(c, 2), n(3, 5), m(3, 5))
op("logical_not_", lambda a: a.clone().logical_not_(), n(3, 5))
op("lerp_", lambda a, b: a.clone().lerp_(b, 0.25), n(3, 5), n(3, 5))


def slice_add(a, b):
    a = a.clone()
    a[1:, ::2] += b
    return a


def set_rows(a, b):
    a = a.clone()
    a[torch.tensor([2, 0], device=a.device)] = b
    return a


def view_write(a):
    a = a.clone()
    a.view(-1)[3:9].mul_(2)
    a.t()[1].fill_(1)
    return a


def set_masked(a):
    a = a.clone()
    a[a > 0] = 1
    return a


op("slice_add", slice_add, n(3, 5), n(2, 3))
op("set_rows", set_rows, n(3, 5), n(2, 5))
op("view_write", view_write, n(3, 5))
op("set_masked", set_masked, n(3, 5))
op("diagonal_fill", lambda a: a.clone().fill_diagonal_(2), n(4, 4))
op("diagonal_write", lambda a, b: (lambda c: (c.diagonal().copy_(b), c)[1])(a.clone()), n(4, 4),
   n(4))
op("swapaxes_write", lambda a: (lambda c: (c.transpose(0, 1)[0].add_(1), c)[1])(a.clone()),
   n(4, 3))
op("resize_as", lambda a, b: a.clone().reshape_as(b), n(4, 3), n(2, 6))

# ---- conversions ----
for name in "float double half bfloat16 int long short char byte bool".split():
    op("to_" + name, lambda a, name=name: getattr(a, name)(), p(3, 7))
op("to_int_truncates", lambda a: a.to(torch.int32), n(5, 7))
op("to_complex", lambda a: a.to(torch.complex64), n(3, 7))
op("type_as", lambda a, b: a.type_as(b), n(3, 7), i(5, 2))
op("view_dtype", lambda a: a.view(torch.int32), n(3, 8), types=[torch.float32, torch.int32])
op("view_dtype_narrow", lambda a: a.view(torch.int16), n(3, 8),
   types=[torch.float16, torch.bfloat16, torch.int16])
op("bucketize", lambda a, b: torch.bucketize(a, b.sort()[0]), n(3, 7), d(6))
op("searchsorted", lambda a, b: torch.searchsorted(a.sort()[0], b), d(9), n(4))

# ---- reductions ----
for name in "sum mean prod amax amin any all".split():
    op(name, getattr(torch, name), u(3, 7))
    op(name + "_dim", lambda a, f=getattr(torch, name): f(a, dim=1), u(3, 7, 2))
    op(name + "_keepdim", lambda a, f=getattr(torch, name): f(a, dim=-1, keepdim=True), u(3, 7))
for name in "sum mean amax amin".split():
    op(name + "_dims", lambda a, f=getattr(torch, name): f(a, dim=(0, 2)), u(3, 4, 5))
for name in "argmax argmin".split():
    op(name, getattr(torch, name), d(4, 6))
    op(name + "_dim", lambda a, f=getattr(torch, name): f(a, dim=1), d(4, 6))
for name in "max min median nanmedian mode".split():
    op(name + "_with_index", lambda a, f=getattr(torch, name): tuple(f(a, dim=1)), d(4, 7))
for name in "max min median".split():
    op(name, getattr(torch, name), d(4, 7))
for name in "std var".split():
    op(name, getattr(torch, name), n(4, 7))
    op(name + "_dim", lambda a, f=getattr(torch, name): f(a, dim=1, correction=0), n(4, 7))
    op(name + "_mean", lambda a, f=getattr(torch, name + "_mean"): f(a, dim=0), n(4, 7))
op("sum_dtype", lambda a: a.sum(dtype=torch.float32), n(4, 7))
op("sum_of_bool_rows", lambda a: (a > 0).sum(1), n(4, 7))
op("sum_empty", lambda a: a[:0].sum(0), n(4, 7))
op("nansum", torch.nansum, n(4, 7))
op("nanmean", torch.nanmean, n(4, 7))
op("logsumexp", lambda a: torch.logsumexp(a, 1), n(4, 7))
op("count_nonzero", lambda a: torch.count_nonzero(a, dim=1), n(4, 7))
op("norm", torch.norm, n(4, 7))
op("norm_1", lambda a: torch.norm(a, p=1, dim=1), n(4, 7))
op("norm_inf", lambda a: torch.linalg.vector_norm(a, float("inf"), dim=1), n(4, 7))
op("norm_3", lambda a: torch.linalg.vector_norm(a, 3, dim=0), n(4, 7))
op("matrix_norm", torch.linalg.matrix_norm, n(4, 7))
op("renorm", lambda a: torch.renorm(a, 2, 0, 1.0), n(4, 7))
op("cumsum", lambda a: torch.cumsum(a, 1), n(4, 7))
op("cumsum_first", lambda a: torch.cumsum(a, 0), n(9, 3))
op("cumprod", lambda a: torch.cumprod(a, 1), u(4, 7))
op("cummax", lambda a: tuple(torch.cummax(a, 1)), d(4, 7))
op("cummin", lambda a: tuple(torch.cummin(a, 1)), d(4, 7))
op("logcumsumexp", lambda a: torch.logcumsumexp(a, 1), n(4, 7))
op("diff", lambda a: torch.diff(a, dim=1), n(4, 7))
op("trapezoid", lambda a: torch.trapezoid(a, dim=1), n(4, 7))
op("aminmax", lambda a: tuple(torch.aminmax(a)), d(4, 7))
op("quantile", lambda a: torch.quantile(a, 0.3, dim=1), d(4, 7))
op("histc", lambda a: torch.histc(a, 4, -2, 2), n(30))
op("bincount", lambda a: torch.bincount(a), i(5, 30))
op("cov", torch.cov, n(3, 9))
op("corrcoef", torch.corrcoef, n(3, 9))
op("nan_reductions", lambda a: torch.nansum(a.log(), 1), n(4, 7))

# ---- sorting ----
op("sort", lambda a: tuple(torch.sort(a, dim=1)), d(5, 6))
op("sort_descending", lambda a: tuple(torch.sort(a, dim=0, descending=True)), d(7, 3))
op("sort_stable", lambda a: tuple(torch.sort(a, dim=1, stable=True)), n(4, 20))
op("argsort", lambda a: torch.argsort(a, dim=1), d(5, 6))
op("msort", torch.msort, n(5, 6))
op("topk", lambda a: tuple(torch.topk(a, 3, dim=1)), d(5, 8))
op("topk_smallest", lambda a: tuple(torch.topk(a, 2, dim=0, largest=False)), d(8, 3))
op("kthvalue", lambda a: tuple(torch.kthvalue(a, 3, dim=1)), d(5, 8))
op("unique", lambda a: torch.unique(a), n(20))
op("unique_all", lambda a: torch.unique(a, return_inverse=True, return_counts=True), n(20))
op("unique_consecutive", torch.unique_consecutive, n(20))
op("isin", lambda a, b: torch.isin(a, b), n(4, 5), n(3))

# ---- shapes and views ----
op("view", lambda a: a.view(2, -1) + 0, n(4, 6))
op("reshape_transposed", lambda a: a.t().reshape(8, 3), n(4, 6))
op("flatten", lambda a: a.flatten(1), n(2, 3, 4))
op("unflatten", lambda a: a.unflatten(1, (2, 3)) + 0, n(4, 6))
op("transpose", lambda a: a.transpose(0, 2) + 0, n(2, 3, 4))
op("permute", lambda a: a.permute(2, 0, 1).contiguous(), n(2, 3, 4))
op("t", lambda a: a.t().clone(), n(3, 5))
op("squeeze", lambda a: a.squeeze() + 0, n(1, 3, 1, 4))
op("squeeze_dim", lambda a: a.squeeze(2) + 0, n(1, 3, 1, 4))
op("unsqueeze", lambda a: a.unsqueeze(1) + 0, n(3, 4))
op("expand", lambda a: a.expand(5, 3, 4) + 0, n(3, 4))
op("expand_as", lambda a, b: a.expand_as(b) + 0, n(3, 1), n(2, 3, 4))
op("broadcast_to", lambda a: torch.broadcast_to(a, (2, 3, 4)) + 0, n(3, 1))
op("repeat", lambda a: a.repeat(2, 3), n(3, 4))
op("repeat_more_dims", lambda a: a.repeat(2, 1, 3), n(3, 4))
op("repeat_interleave", lambda a: a.repeat_interleave(3, dim=1), n(3, 4))
op("tile", lambda a: torch.tile(a, (2, 2)), n(3, 4))
op("cat", lambda a, b: torch.cat([a, b, a], 1), n(3, 4), n(3, 2))
op("cat_mixed", lambda a, b: torch.cat([a, b]), n(3, 4), i(4, 2, 4))
op("stack", lambda a, b: torch.stack([a, b], 1), n(3, 4), n(3, 4))
op("hstack_vstack", lambda a, b: (torch.hstack([a, b]), torch.vstack([a, b])), n(3, 4), n(3, 4))
op("dstack", lambda a, b: torch.dstack([a, b]), n(3, 4), n(3, 4))
op("split", lambda a: [v + 0 for v in a.split(2, 1)], n(3, 5))
op("split_sizes", lambda a: [v + 0 for v in a.split([1, 3, 1], 1)], n(3, 5))
op("chunk", lambda a: [v + 0 for v in a.chunk(3, 1)], n(3, 7))
op("tensor_split", lambda a: [v + 0 for v in a.tensor_split(3, 1)], n(3, 7))
op("unbind", lambda a: [v + 0 for v in a.unbind(1)], n(3, 4))
op("select", lambda a: a.select(1, 2) + 0, n(3, 4))
op("slice", lambda a: a[1:, ::2] + 0, n(4, 7))
op("slice_negative", lambda a: a[-2:, -3:-1] + 0, n(4, 7))
op("narrow", lambda a: a.narrow(1, 2, 3) + 0, n(4, 7))
op("ellipsis_none", lambda a: a[..., None, 1:] + 0, n(2, 3, 4))
op("unfold", lambda a: a.unfold(1, 3, 2) + 0, n(3, 8))
op("as_strided", lambda a: a.as_strided((3, 3), (2, 1)) + 0, n(12))
op("flip", lambda a: a.flip(0, 1), n(3, 5))
op("fliplr_flipud", lambda a: (torch.fliplr(a), torch.flipud(a)), n(3, 5))
op("rot90", lambda a: torch.rot90(a), n(3, 5))
op("roll", lambda a: torch.roll(a, 2), n(3, 5))
op("roll_dims", lambda a: torch.roll(a, (1, -2), (0, 1)), n(3, 5))
op("movedim", lambda a: a.movedim(0, 2) + 0, n(2, 3, 4))
op("swapdims", lambda a: a.swapdims(0, 2) + 0, n(2, 3, 4))
op("diagonal", lambda a: a.diagonal(1) + 0, n(4, 5))
op("diag_vector", torch.diag, n(4))
op("diag_matrix", torch.diag, n(4, 4))
op("diag_embed", lambda a: torch.diag_embed(a, 1), n(2, 3))
op("diagonal_scatter", lambda a, b: torch.diagonal_scatter(a, b), n(4, 4), n(4))
op("select_scatter", lambda a, b: torch.select_scatter(a, b, 1, 2), n(3, 4), n(3))
op("slice_scatter", lambda a, b: torch.slice_scatter(a, b, 1, 1, 4, 2), n(3, 5), n(3, 2))
op("block_diag", lambda a, b: torch.block_diag(a, b), n(2, 3), n(1, 2))
op("triu", lambda a: torch.triu(a, 1), n(4, 5))
op("tril", lambda a: torch.tril(a, -1), n(2, 4, 5))
op("trace", torch.trace, n(4, 4))
op("meshgrid", lambda a, b: torch.meshgrid(a, b, indexing="ij"), n(3), n(4))
op("cartesian_prod", lambda a, b: torch.cartesian_prod(a, b), n(3), n(2))
op("combinations", lambda a: torch.combinations(a), n(4))
op("atleast", lambda a: (torch.atleast_1d(a), torch.atleast_2d(a), torch.atleast_3d(a)), n(3))
op("constant_pad", lambda a: torch.nn.functional.pad(a, (1, 2, 0, 1), value=3), n(3, 4))
op("negative_pad", lambda a: torch.nn.functional.pad(a, (-1, 2)), n(3, 4))
op("one_hot", lambda a: torch.nn.functional.one_hot(a, 6), i(6, 7))
op("vander", lambda a: torch.vander(a, 4), u(5))
op("pixel_shuffle", lambda a: torch.pixel_shuffle(a, 2), n(1, 8, 3, 3))
op("pixel_unshuffle", lambda a: torch.pixel_unshuffle(a, 2), n(1, 2, 4, 4))
op("channel_shuffle", lambda a: torch.channel_shuffle(a, 2), n(1, 6, 3, 3))

# ---- making tensors ----
for name in "zeros_like ones_like empty_like".split():
    op(name, lambda a, f=getattr(torch, name): f(a) * 0, n(3, 4))
op("full_like", lambda a: torch.full_like(a, 3), n(3, 4))
op("new_full", lambda a: a.new_full((2, 3), 4), n(3, 4))
op("new_zeros_ones", lambda a: (a.new_zeros(2, 3), a.new_ones(4)), n(3, 4))
op("arange_like", lambda a: torch.arange(2, 11, 3, device=a.device, dtype=a.dtype) + a, n(3))
op("linspace", lambda a: torch.linspace(-1, 2, 7, device=a.device, dtype=a.dtype), n(1))
op("logspace", lambda a: torch.logspace(0, 1, 5, device=a.device, dtype=a.dtype), n(1))
op("eye", lambda a: torch.eye(3, 5, device=a.device, dtype=a.dtype), n(1))
op("tril_indices", lambda a: torch.tril_indices(4, 5, device=a.device), i(2, 1))
op("empty_zeros", lambda a: torch.zeros(0, 3, device=a.device, dtype=a.dtype), n(1))

# ---- indexing ----
op("index_select", lambda a, k: torch.index_select(a, 1, k), n(4, 6), i(6, 5))
op("index_select_empty", lambda a, k: torch.index_select(a, 0, k[:0]), n(4, 6), i(4, 3))
op("index_of_empty", lambda a, k: a[k], n(0, 6), i(1, 0))
op("gather", lambda a, k: torch.gather(a, 1, k), n(4, 6), i(6, 4, 3))
op("gather_first", lambda a, k: torch.gather(a, 0, k), n(4, 6), i(4, 2, 6))
op("take", lambda a, k: torch.take(a, k), n(4, 6), i(24, 5))
op("take_along_dim", lambda a, k: torch.take_along_dim(a, k, 1), n(4, 6), i(6, 4, 2))
op("index", lambda a, k: a[k], n(4, 6), i(4, 3))
op("index_second", lambda a, k: a[:, k], n(4, 6), i(6, 3, 2))
op("index_two", lambda a, k, j: a[k, j], n(4, 6), i(4, 5), i(6, 5))
op("index_around", lambda a, k, j: a[k, :, j], n(4, 3, 6), i(4, 5), i(6, 5))
op("index_negative", lambda a, k: a[k - 4], n(4, 6), i(4, 3))
op("index_mask", lambda a, c: a[c], n(4, 6), m(4, 6))
op("masked_select", lambda a, c: torch.masked_select(a, c), n(4, 6), m(4, 6))
op("nonzero", lambda a: torch.nonzero(a), n(4, 6))
op("argwhere", torch.argwhere, n(4, 6))
op("scatter", lambda a, k, b: a.scatter(1, k.argsort(1)[:, :3], b), n(4, 6), d(4, 6), n(4, 3))
op("scatter_value", lambda a, k: a.scatter(0, k, 2), n(4, 6), i(4, 1, 6))
op("scatter_add", lambda a, k, b: a.scatter_add(1, k, b), n(4, 6), i(6, 4, 5), n(4, 5))
op("scatter_reduce_sum", lambda a, k, b: a.scatter_reduce(1, k, b, "sum"), n(4, 6), i(6, 4, 5),
   n(4, 5))
op("scatter_reduce_amax", lambda a, k, b: a.scatter_reduce(1, k, b, "amax"), d(4, 6),
   i(6, 4, 5), d(4, 5), grad=False)
op("scatter_reduce_prod", lambda a, k, b: a.scatter_reduce(1, k, b, "prod"), u(4, 6),
   i(6, 4, 5), u(4, 5), grad=False)
op("scatter_reduce_mean", lambda a, k, b: a.scatter_reduce(1, k, b, "mean"), n(4, 6),
   i(6, 4, 5), n(4, 5), grad=False)
op("index_add", lambda a, k, b: a.index_add(1, k, b), n(4, 6), i(6, 3), n(4, 3))
op("index_add_alpha", lambda a, k, b: a.index_add(0, k, b, alpha=2), n(4, 6), i(4, 3), n(3, 6))
op("index_copy", lambda a, b: a.index_copy(0, torch.tensor([3, 1], device=a.device), b), n(4, 6),
   n(2, 6))
op("index_fill", lambda a, k: a.index_fill(1, k, 2), n(4, 6), i(6, 3))
op("index_put", lambda a, b: a.index_put((torch.tensor([3, 1], device=a.device),), b), n(4, 6),
   n(2, 6))
op("index_put_accumulate", lambda a, k, b: a.index_put((k,), b, accumulate=True), n(4, 6),
   i(4, 5), n(5, 6))
op("index_reduce", lambda a, k, b: a.index_reduce(0, k, b, "amax"), d(4, 6), i(4, 3), d(3, 6),
   grad=False)
op("masked_scatter", lambda a, c, b: a.masked_scatter(c, b), n(4, 6), m(4, 6), n(24))
op("put", lambda a, b: a.put(torch.tensor([3, 20], device=a.device), b), n(4, 6), n(2))
op("embedding", lambda k, w: torch.nn.functional.embedding(k, w), i(7, 3, 5), n(7, 4))
op("embedding_padding", lambda k, w: torch.nn.functional.embedding(k, w, padding_idx=1),
   i(7, 3, 5), n(7, 4))
op("embedding_bag", lambda k, w: torch.nn.functional.embedding_bag(k, w, mode="sum"),
   i(7, 3, 5), n(7, 4))

# ---- products and linear algebra ----
op("mm", torch.mm, n(4, 6), n(6, 5), loose=4)
op("mm_transposed", lambda a, b: a.t() @ b.t(), n(6, 4), n(5, 6), loose=4)
op("bmm", torch.bmm, n(3, 4, 6), n(3, 6, 5), loose=4)
op("mv", torch.mv, n(4, 6), n(6), loose=4)
op("dot", torch.dot, n(6), n(6), loose=4)
op("vdot", torch.vdot, n(6), n(6), loose=4)
op("outer", torch.outer, n(4), n(5))
op("inner", torch.inner, n(4, 6), n(3, 6), loose=4)
op("matmul_broadcast", torch.matmul, n(2, 1, 3, 4), n(5, 4, 2), loose=4)
op("matmul_vector", torch.matmul, n(2, 3, 4), n(4), loose=4)
op("matmul_empty", torch.matmul, n(3, 0), n(0, 4))
op("addmm", lambda a, b, c: torch.addmm(a, b, c, beta=2, alpha=3), n(4, 5), n(4, 6), n(6, 5),
   loose=8)
op("addmv", torch.addmv, n(4), n(4, 6), n(6), loose=4)
op("addr", torch.addr, n(4, 5), n(4), n(5))
op("addbmm", torch.addbmm, n(4, 5), n(3, 4, 6), n(3, 6, 5), loose=8)
op("baddbmm", torch.baddbmm, n(3, 4, 5), n(3, 4, 6), n(3, 6, 5), loose=4)
op("einsum", lambda a, b: torch.einsum("bij,bjk->bik", a, b), n(3, 4, 6), n(3, 6, 5), loose=4)
op("einsum_trace", lambda a: torch.einsum("bii->b", a), n(3, 4, 4))
op("einsum_three", lambda a, b, c: torch.einsum("ij,jk,kl->il", a, b, c), u(3, 4), u(4, 5),
   u(5, 2), loose=8)
op("tensordot", lambda a, b: torch.tensordot(a, b, 2), n(3, 4, 5), n(4, 5, 2), loose=8)
op("kron", torch.kron, n(2, 3), n(3, 2))
op("cross", lambda a, b: torch.linalg.cross(a, b), n(4, 3), n(4, 3))
op("chain_matmul", lambda a, b, c: torch.linalg.multi_dot([a, b, c]), u(3, 4), u(4, 5), u(5, 2),
   loose=8)
op("matrix_power", lambda a: torch.matrix_power(a, 3), u(4, 4), loose=16)
op("matrix_exp", torch.matrix_exp, u(4, 4), loose=64)
op("cdist", torch.cdist, n(4, 6), n(5, 6), loose=16)
op("pairwise_distance", torch.pairwise_distance, n(4, 6), n(4, 6), loose=4)
op("cosine_similarity", torch.cosine_similarity, n(4, 6), n(4, 6), loose=4)
op("cholesky", torch.linalg.cholesky, s(4, 4), loose=16)
op("cholesky_solve", lambda b, a: torch.cholesky_solve(b, torch.linalg.cholesky(a)), n(4, 2),
   s(4, 4), loose=64)
op("inverse", torch.linalg.inv, s(4, 4), loose=64)
op("solve", torch.linalg.solve, s(4, 4), n(4, 2), loose=64)
op("solve_triangular", lambda a, b: torch.linalg.solve_triangular(a.triu(), b, upper=True),
   s(4, 4), n(4, 2), loose=16)
op("det", torch.linalg.det, s(4, 4), loose=64)
op("slogdet", lambda a: tuple(torch.linalg.slogdet(a)), s(4, 4), loose=64)
op("pinv", torch.linalg.pinv, s(4, 4), loose=256, grad=False)
op("qr_product", lambda a: (lambda f: f[0] @ f[1])(torch.linalg.qr(a)), s(4, 4), loose=64)
op("eigvalsh", torch.linalg.eigvalsh, s(4, 4), loose=64)
op("eigh_product", lambda a: (lambda f: f[1] * f[0] @ f[1].mH)(torch.linalg.eigh(a)), s(4, 4),
   loose=256, grad=False)
op("svdvals", torch.linalg.svdvals, s(4, 4), loose=64)
op("lu_product", lambda a: (lambda f: f[0] @ f[1] @ f[2])(torch.linalg.lu(a)), s(4, 4), loose=64)
op("matrix_rank", torch.linalg.matrix_rank, s(4, 4), grad=False)
op("lstsq", lambda a, b: torch.linalg.lstsq(a, b)[0], s(4, 4), n(4, 2), loose=256, grad=False)
op("fft", lambda a: torch.view_as_real(torch.fft.fft(a)), n(4, 8), loose=16)
op("ifft", lambda a: torch.view_as_real(torch.fft.ifft(a)), n(4, 8), loose=16)
op("rfft", lambda a: torch.view_as_real(torch.fft.rfft(a)), n(4, 8), loose=16)
op("fft2", lambda a: torch.view_as_real(torch.fft.fft2(a)), n(4, 8), loose=16)
op("fftshift", torch.fft.fftshift, n(4, 7))
op("stft", lambda a: torch.view_as_real(torch.stft(
    a, 8, window=torch.ones(8, device=a.device), return_complex=True)), n(32), loose=16,
   types=[torch.float32])

# ---- random: shape and type ----
for name in "rand_like randn_like".split():
    op(name, getattr(torch, name), n(3, 4), is_random=True)
op("randint_like", lambda a: torch.randint_like(a, 5), n(3, 4), is_random=True)
op("bernoulli", lambda a: torch.bernoulli(a.abs().clamp(0, 1)), u(3, 4), is_random=True)
op("bernoulli_p", lambda a: torch.bernoulli(a, 0.3), u(3, 4), is_random=True)
op("normal_", lambda a: a.clone().normal_(1, 2), n(3, 4), is_random=True)
op("uniform_", lambda a: a.clone().uniform_(1, 2), n(3, 4), is_random=True)
op("random_", lambda a: a.clone().random_(0, 9), n(3, 4), is_random=True)
op("exponential_", lambda a: a.clone().exponential_(), n(3, 4), is_random=True)
op("log_normal_", lambda a: a.clone().log_normal_(), n(3, 4), is_random=True)
op("cauchy_", lambda a: a.clone().cauchy_(), n(3, 4), is_random=True)
op("multinomial", lambda a: torch.multinomial(a, 2), p(3, 4), is_random=True)
op("poisson", torch.poisson, p(3, 4), is_random=True)
op("randperm", lambda a: torch.randperm(9, device=a.device).sort()[0], i(2, 1))
op("dropout", lambda a: torch.nn.functional.dropout(a, 0.4), n(3, 4), is_random=True)
op("alpha_dropout", lambda a: torch.nn.functional.alpha_dropout(a, 0.4, training=True), n(3, 4),
   is_random=True)
op("feature_dropout", lambda a: torch.nn.functional.dropout2d(a, 0.4), n(2, 3, 4, 4),
   is_random=True)
op("rrelu_training", lambda a: torch.nn.functional.rrelu(a, training=True), n(3, 4),
   is_random=True)
op("gumbel_softmax", torch.nn.functional.gumbel_softmax, n(3, 4), is_random=True)
