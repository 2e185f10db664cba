/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CONV as a matrix product: rows are points of the output (batch and spatial), columns
 * are features, k runs over kernel positions and, within each, input features.
 *
 * The iteration space is turned so that features come last, which is how the product
 * hands its sums over, and dims that lie behind each other in all operands become
 * one. A block of rows is a number of whole lines of the last of these, or a part of one.
 */
#include <string.h>

#include "hal/sim/core/product.h"

/* A side of the product as a window slides over it, the kernel over itself. */
struct slide {
	unsigned n_spatial, bytes;
	int64_t features, feature_step;
	int64_t taps[ISA_MAX_SPATIAL], size[ISA_MAX_SPATIAL];
	int64_t dilation[ISA_MAX_SPATIAL], holes[ISA_MAX_SPATIAL];
	int64_t step[ISA_MAX_SPATIAL];	/* bytes from point to point of the side */
	int64_t first;			/* and to the window's own first point */
	int64_t inside[ISA_MAX_SPATIAL];	/* the last origin with all taps in the side */
};

struct conv_plan {
	struct sim_product mm;
	struct sim_ref lhs, rhs;
	struct slide slide_lhs, slide_rhs;
	unsigned n_spatial, rank;
	int64_t dim[ISA_MAX_RANK];	/* batch, spatial..., feature */
	unsigned body_rank;		/* of the epilogue, which joins dims where it can */
	int64_t body_dim[ISA_MAX_RANK];
	struct isa_conv c;		/* the windows */
	int64_t line, lines;		/* points of a line of the epilogue; lines in all */
	int64_t lines_a_block, parts, part;	/* of a line, when it is cut */
	bool is_plane;			/* two spatial dims, without holes */
	int64_t o_group, nb, n_blocks, m_blocks;
	uint64_t ns, adds;	/* adds: each with its multiplication */
};

/* a / b and a % b for a >= 0, b > 0. Fewer bits are faster, and every row divides. */
static int64_t divide(int64_t a, int64_t b, int64_t *rest)
{
	if (a >> 32 || b >> 32) {
		*rest = a % b;
		return a / b;
	}
	*rest = (uint32_t)a % (uint32_t)b;
	return (uint32_t)a / (uint32_t)b;
}

/* Coordinates (batch, then spatial) of point i of the block. */
static void point(const struct sim_product_task *t, unsigned i, int64_t *x)
{
	const struct conv_plan *p = t->plan;
	int64_t at = t->row0 + i;

	for (unsigned d = p->n_spatial; d > 0; d--)
		at = divide(at, p->dim[d], &x[d]);
	x[0] = at;
}

/*
 * A window sliding over one side: for every tap (kernel position, the last spatial dim
 * fastest) the features. A tap of dim d is at origin[d] + y * dilation[d], which must be a
 * multiple of `holes` and lie in the side; else there are zeros.
 */
struct window {
	const struct slide *s;
	const uint8_t *at;		/* the side's first point */
	int64_t origin[ISA_MAX_SPATIAL];
	/* What walks along it sets: */
	int64_t y[ISA_MAX_SPATIAL];
	int64_t low, high;		/* taps of the last dim in the side, without holes */
};

/* Where tap y of dim d lies, or -1: nowhere. */
static int64_t place_of(const struct window *w, unsigned d, int64_t y)
{
	const struct slide *s = w->s;
	int64_t q = w->origin[d] + y * s->dilation[d], rest = 0;

	if (q < 0)
		return -1;
	if (s->holes[d] != 1)
		q = divide(q, s->holes[d], &rest);
	return !rest && q < s->size[d] ? q : -1;
}

/* The first tap of dim d that lies at or beyond `limit`, without holes. */
static int64_t reach(const struct window *w, unsigned d, int64_t limit)
{
	const struct slide *s = w->s;
	int64_t first = limit - w->origin[d];

	if (first <= 0)
		return 0;
	if (s->dilation[d] != 1)
		first = (first + s->dilation[d] - 1) / s->dilation[d];
	return first < s->taps[d] ? first : s->taps[d];
}

static int64_t clamp(int64_t x, int64_t low, int64_t high)
{
	return x < low ? low : x > high ? high : x;
}

/* `count` whole taps along the last dim, all of which lie in the side, from `from` on. */
static inline void copy_inside(const struct window *w, const uint8_t *from, int64_t count,
			       uint8_t *to)
{
	const struct slide *s = w->s;
	unsigned d = s->n_spatial - 1;
	int64_t tap = s->features * s->bytes, step = s->dilation[d] * s->step[d];

	if (step == tap && (s->features == 1 || s->feature_step == s->bytes))
		memcpy(to, from, (size_t)(count * tap));
	else if (s->features == 1)
		sim_product_gather(from, step, count, s->bytes, to);
	else
		for (int64_t i = 0; i < count; i++, from += step, to += tap)
			sim_product_gather(from, s->feature_step, s->features, s->bytes, to);
}

/*
 * All of a window of two spatial dims, without holes: what lies in the side is one range of taps
 * along each. Most rows of most products are such windows, and short.
 */
static void copy_whole(const struct window *w, uint8_t *to)
{
	const struct slide *s = w->s;
	int64_t tap = s->features * s->bytes, low[2], count[2];
	const uint8_t *from = w->at;

	for (unsigned d = 0; d < 2; d++) {
		low[d] = 0;
		count[d] = s->taps[d];
		if (w->origin[d] < 0 || w->origin[d] > s->inside[d]) {
			low[d] = reach(w, d, 0);
			count[d] = reach(w, d, s->size[d]) - low[d];
		}
		from += (w->origin[d] + low[d] * s->dilation[d]) * s->step[d];
	}
	if (count[0] < s->taps[0] || count[1] < s->taps[1])
		memset(to, 0, (size_t)(s->taps[0] * s->taps[1] * tap));
	to += (low[0] * s->taps[1] + low[1]) * tap;
	for (int64_t y = 0; y < count[0]; y++) {
		copy_inside(w, from, count[1], to);
		from += s->dilation[0] * s->step[0];
		to += s->taps[1] * tap;
	}
}

/* `count` whole taps along the last dim from its tap y, at the line `line`. */
static void copy_taps(const struct window *w, const uint8_t *line, int64_t y, int64_t count,
		      uint8_t *to)
{
	const struct slide *s = w->s;
	unsigned d = s->n_spatial - 1;
	int64_t tap = s->features * s->bytes, low, high;
	const uint8_t *from;

	if (s->holes[d] != 1) {
		for (int64_t i = 0; i < count; i++, to += tap) {
			int64_t q = place_of(w, d, y + i);

			if (q < 0)
				memset(to, 0, (size_t)tap);
			else
				sim_product_gather(line + q * s->step[d], s->feature_step,
						   s->features, s->bytes, to);
		}
		return;
	}
	low = clamp(w->low, y, y + count);
	high = clamp(w->high, low, y + count);
	from = line + (w->origin[d] + low * s->dilation[d]) * s->step[d];
	if (low > y)
		memset(to, 0, (size_t)((low - y) * tap));
	if (high < y + count)
		memset(to + (high - y) * tap, 0, (size_t)((y + count - high) * tap));
	copy_inside(w, from, high - low, to + (low - y) * tap);
}

/* The line of the side that the outer taps name, or NULL: outside. */
static const uint8_t *find_line(const struct window *w)
{
	const struct slide *s = w->s;
	const uint8_t *line = w->at;

	for (unsigned d = 0; d + 1 < s->n_spatial; d++) {
		int64_t q = place_of(w, d, w->y[d]);

		if (q < 0)
			return NULL;
		line += q * s->step[d];
	}
	return line;
}

/* Elements k .. k + n of the window. */
static void copy_window(struct window *w, int64_t k, int64_t n, uint8_t *to)
{
	const struct slide *s = w->s;
	unsigned last = s->n_spatial - 1;
	int64_t f, tap = divide(k, s->features, &f);

	if (!s->n_spatial) {
		sim_product_gather(w->at + f * s->feature_step, s->feature_step, n, s->bytes, to);
		return;
	}
	for (unsigned d = s->n_spatial; d-- > 0;)
		tap = divide(tap, s->taps[d], &w->y[d]);
	w->low = reach(w, last, 0);
	w->high = reach(w, last, s->size[last]);
	while (n) {
		const uint8_t *line = find_line(w);
		int64_t taps = s->taps[last] - w->y[last], got = taps * s->features - f, q;

		got = got < n ? got : n;
		if (!line) {
			memset(to, 0, (size_t)(got * s->bytes));
			w->y[last] += (f + got) / s->features;
			f = (f + got) % s->features;
		} else if (!f && got >= s->features) {
			taps = got / s->features;
			got = taps * s->features;
			copy_taps(w, line, w->y[last], taps, to);
			w->y[last] += taps;
		} else {	/* a part of one tap's features */
			got = got < s->features - f ? got : s->features - f;
			q = place_of(w, last, w->y[last]);
			if (q < 0)
				memset(to, 0, (size_t)(got * s->bytes));
			else
				sim_product_gather(line + q * s->step[last] +
						   f * s->feature_step, s->feature_step, got,
						   s->bytes, to);
			f += got;
			if (f == s->features) {
				f = 0;
				w->y[last]++;
			}
		}
		to += got * s->bytes;
		n -= got;
		for (unsigned d = last; d > 0 && w->y[d] == s->taps[d]; d--) {
			w->y[d] = 0;
			w->y[d - 1]++;
		}
	}
}

static const void *row_lhs(const struct sim_product_task *t, unsigned i, int64_t k, unsigned n,
			   void *room)
{
	const struct conv_plan *p = t->plan;
	int64_t x[ISA_MAX_RANK];
	struct window w;

	point(t, i, x);
	w.s = &p->slide_lhs;
	w.at = t->a + x[0] * p->lhs.stride[0];
	for (unsigned d = 0; d < p->n_spatial; d++)
		w.origin[d] = x[1 + d] * p->c.window_stride[d] - p->c.pad_low[d];
	if (p->is_plane && !k && n == p->mm.k)
		copy_whole(&w, room);
	else
		copy_window(&w, k, n, room);
	return room;
}

/* ---- the windows of many points at once ---- */

/* n times `bytes`, from and to as far apart. Short ones are two copies of a size that the compiler
 * knows, which lie on each other in the middle. */
static void copy_rows(const uint8_t *from, int64_t step, int64_t n, size_t bytes, uint8_t *to,
		      size_t pitch)
{
#define COPY(size) \
	for (int64_t i = 0; i < n; i++, from += step, to += pitch) { \
		for (size_t at = 0; at + (size) < bytes; at += (size)) \
			memcpy(to + at, from + at, (size)); \
		memcpy(to + bytes - (size), from + bytes - (size), (size)); \
	}
	if (bytes < 4 || bytes > 256) {
		for (int64_t i = 0; i < n; i++, from += step, to += pitch)
			memcpy(to, from, bytes);
	} else if (bytes < 8) {
		COPY(4)
	} else if (bytes < 16) {
		COPY(8)
	} else {
		COPY(16)
	}
#undef COPY
}

/* Taps that lie side by side: a line of the last dim, or one. */
static int64_t taps_of_run(const struct slide *s)
{
	unsigned last = s->n_spatial - 1;

	return s->dilation[last] == 1 && s->step[last] == s->features * s->bytes ?
	       s->taps[last] : 1;
}

/* Bytes begin .. end of one run, whose first tap is at point q of the line. */
static void copy_part(const struct slide *s, const uint8_t *line, int64_t q, int64_t begin,
		      int64_t end, uint8_t *to)
{
	unsigned last = s->n_spatial - 1;
	int64_t taps = taps_of_run(s), tap = s->features * s->bytes;
	int64_t low = clamp(clamp(-q, 0, taps) * tap, begin, end);
	int64_t high = clamp(clamp(s->size[last] - q, 0, taps) * tap, low, end);

	memset(to, 0, (size_t)(low - begin));
	if (low < high)
		memcpy(to + low - begin, line + q * s->step[last] + low, (size_t)(high - low));
	memset(to + high - begin, 0, (size_t)(end - high));
}

/* The same of n points, whose windows are `stride` points apart. */
static void copy_run(const struct slide *s, const uint8_t *line, int64_t q, int64_t stride,
		     int64_t n, int64_t begin, int64_t end, uint8_t *to, size_t pitch)
{
	unsigned last = s->n_spatial - 1;
	int64_t room = s->size[last] - taps_of_run(s) - q;	/* to the last one inside */
	int64_t first = clamp(q < 0 ? (stride - 1 - q) / stride : 0, 0, n);
	int64_t after = clamp(room < 0 ? 0 : room / stride + 1, first, n);

	for (int64_t i = 0; i < first; i++)
		copy_part(s, line, q + i * stride, begin, end, to + (size_t)i * pitch);
	if (first < after)
		copy_rows(line + (q + first * stride) * s->step[last] + begin,
			  stride * s->step[last], after - first, (size_t)(end - begin),
			  to + (size_t)first * pitch, pitch);
	for (int64_t i = after; i < n; i++)
		copy_part(s, line, q + i * stride, begin, end, to + (size_t)i * pitch);
}

/* Elements k .. k + n of the windows of `points` points of a line of the output. */
static void copy_line(struct window *w, int64_t stride, int64_t points, int64_t k, int64_t n,
		      uint8_t *to, size_t pitch)
{
	const struct slide *s = w->s;
	unsigned last = s->n_spatial - 1;
	int64_t taps = taps_of_run(s), run = taps * s->features, f, tap;

	tap = divide(k, run, &f) * taps;
	for (unsigned d = s->n_spatial; d-- > 0;)
		tap = divide(tap, s->taps[d], &w->y[d]);
	while (n) {
		const uint8_t *line = find_line(w);
		int64_t got = run - f < n ? run - f : n, bytes = got * s->bytes;

		if (line)
			copy_run(s, line, w->origin[last] + w->y[last] * s->dilation[last],
				 stride, points, f * s->bytes, (f + got) * s->bytes, to, pitch);
		for (int64_t i = 0; i < points && !line; i++)
			memset(to + (size_t)i * pitch, 0, (size_t)bytes);
		to += bytes;
		n -= got;
		f = 0;
		w->y[last] += taps;
		for (unsigned d = last; d > 0 && w->y[d] == s->taps[d]; d--) {
			w->y[d] = 0;
			w->y[d - 1]++;
		}
	}
}

/* Only where features lie side by side, and no holes between points of the last dim. */
static void rows_lhs(const struct sim_product_task *t, unsigned i, unsigned lanes, int64_t k,
		     unsigned n, uint8_t *to, size_t pitch)
{
	const struct conv_plan *p = t->plan;
	unsigned last = p->n_spatial - 1;
	struct window w = { .s = &p->slide_lhs };
	int64_t x[ISA_MAX_RANK];

	for (unsigned got; lanes; lanes -= got, i += got, to += got * pitch) {
		int64_t left;

		point(t, i, x);
		left = p->dim[1 + last] - x[1 + last];
		got = left < lanes ? (unsigned)left : lanes;
		w.at = t->a + x[0] * p->lhs.stride[0];
		for (unsigned d = 0; d < p->n_spatial; d++)
			w.origin[d] = x[1 + d] * p->c.window_stride[d] - p->c.pad_low[d];
		copy_line(&w, p->c.window_stride[last], got, k, n, to, pitch);
	}
}

static bool takes_rows(const struct slide *s)
{
	return s->n_spatial && s->holes[s->n_spatial - 1] == 1 && s->features &&
	       (s->features == 1 || s->feature_step == s->bytes);
}

/* Whether a line of the output has points enough whose windows lie in the side for their lines to
 * be worth copying at once. Of short windows that fit into one panel, those that lie in it in part
 * are as fast one by one. */
static bool is_mostly_inside(const struct conv_plan *p)
{
	unsigned last = p->n_spatial - 1;
	int64_t stride = p->c.window_stride[last], pad = p->c.pad_low[last];
	int64_t points = p->dim[1 + last], end = p->slide_lhs.inside[last] + pad;
	int64_t first = clamp(pad > 0 ? (pad + stride - 1) / stride : 0, 0, points);
	int64_t inside = clamp(end < 0 ? 0 : end / stride + 1, first, points) - first;

	return inside >= 2 + (points - inside) / 2;
}

/* Of windows that are one point each, one behind the other. */
static const uint8_t *place_lhs(const struct sim_product_task *t, unsigned i, int64_t k)
{
	const struct conv_plan *p = t->plan;
	const struct slide *s = &p->slide_lhs;

	return t->a + (t->row0 + i) * s->step[s->n_spatial - 1] + k * s->bytes;
}

/* Whether the side's points are read as they lie in memory. */
static bool is_in_place(const struct conv_plan *p)
{
	const struct slide *s = &p->slide_lhs;
	int64_t apart = s->n_spatial ? s->step[s->n_spatial - 1] : 0;

	if (!takes_rows(s))
		return false;
	for (unsigned d = s->n_spatial; d-- > 0;)
		if (s->taps[d] != 1 || s->holes[d] != 1 || p->c.window_stride[d] != 1 ||
		    p->c.pad_low[d] || p->dim[1 + d] > s->size[d] || s->step[d] != apart ||
		    __builtin_mul_overflow(apart, p->dim[1 + d], &apart))
			return false;
	return p->dim[0] == 1 || p->lhs.stride[0] == apart;
}

/* The kernel is a window at its own origin, from the other end where it is reversed. */
static const void *row_rhs(const struct sim_product_task *t, unsigned i, int64_t k, unsigned n,
			   void *room)
{
	const struct conv_plan *p = t->plan;
	struct window w;

	w.s = &p->slide_rhs;
	w.at = t->b + i * p->rhs.stride[0] + p->slide_rhs.first;
	for (unsigned d = 0; d < p->n_spatial; d++)
		w.origin[d] = 0;
	copy_window(&w, k, n, room);
	return room;
}

static void lines_rhs(const struct sim_product_task *t, int64_t k, unsigned n,
		      const uint8_t **at)
{
	const struct conv_plan *p = t->plan;
	const struct isa_conv *c = &p->c;
	int64_t y[ISA_MAX_SPATIAL], tap = k / c->in_features, f = k % c->in_features;

	for (unsigned d = p->n_spatial; d-- > 0;) {
		y[d] = tap % c->kernel[d];
		tap /= c->kernel[d];
	}
	for (unsigned i = 0; i < n;) {
		const uint8_t *from = t->b + f * p->rhs.stride[1];

		for (unsigned d = 0; d < p->n_spatial; d++)
			from += (c->reversed >> d & 1 ? c->kernel[d] - 1 - y[d] : y[d]) *
				p->rhs.stride[2 + d];
		for (; i < n && f < c->in_features; f++, from += p->rhs.stride[1])
			at[i++] = from;
		f = 0;
		for (unsigned d = p->n_spatial; d-- > 0;) {
			if (++y[d] < c->kernel[d])
				break;
			y[d] = 0;
		}
	}
}

static bool is_sane(const struct isa_conv *c, unsigned n)
{
	int64_t most = (int64_t)1 << 40, last, taps;

	for (unsigned i = 0; i < sizeof(c->zero); i++)
		if (c->zero[i])
			return false;

	if (c->n_spatial != n || n > ISA_MAX_SPATIAL || c->in_features < 0 ||
	    c->in_features >= most || c->feature_groups < 1 || c->batch_groups < 1 ||
	    c->feature_groups >= most || c->batch_groups >= most ||
	    (c->feature_groups > 1 && c->batch_groups > 1) ||
	    c->precision > ISA_PRECISION_BF16 || c->reversed >> n)
		return false;
	for (unsigned d = 0; d < n; d++)
		if (c->in_size[d] < 0 || c->in_size[d] >= most || c->kernel[d] < 0 ||
		    c->kernel[d] >= most >> 8 || c->window_stride[d] < 1 ||
		    c->window_stride[d] >= most >> 20 || c->lhs_dilation[d] < 1 ||
		    c->rhs_dilation[d] < 1 || c->lhs_dilation[d] >= most ||
		    c->rhs_dilation[d] >= most >> 20 || c->pad_low[d] <= -most ||
		    c->pad_low[d] >= most ||
		    /* where the last tap of the last point is */
		    __builtin_mul_overflow(c->body.dim[2 + d], c->window_stride[d], &last) ||
		    __builtin_mul_overflow(c->kernel[d], c->rhs_dilation[d], &taps) ||
		    __builtin_add_overflow(last, taps, &last) || last > INT64_MAX - most)
			return false;
	return true;
}

/* Strides and dims with the features last. */
static void turn(const int64_t *from, unsigned rank, int64_t *to)
{
	int64_t feature = from[1];

	to[0] = from[0];
	for (unsigned d = 2; d < rank; d++)
		to[d - 1] = from[d];
	to[rank - 1] = feature;
}

struct turned {
	struct isa_body body;
	struct isa_operand in[ISA_MAX_IN], out[ISA_MAX_OUT];
	struct isa_uop *uops;
};

static int turn_body(struct sim_load *load, const struct isa_conv *c, struct turned *t)
{
	const struct isa_body *body = &c->body;
	const struct isa_operand *in = (const void *)(c + 1), *out = in + body->n_in;
	const struct isa_uop *uops = (const void *)(out + body->n_out);
	unsigned r = body->rank;

	t->body = *body;
	turn(body->dim, r, t->body.dim);
	for (unsigned j = 0; j < body->n_in; j++) {
		t->in[j] = in[j];
		turn(in[j].stride, r, t->in[j].stride);
	}
	for (unsigned j = 0; j < body->n_out; j++) {
		t->out[j] = out[j];
		turn(out[j].stride, r, t->out[j].stride);
	}
	t->uops = arena_copy(load->arena, uops, body->n_uop * sizeof(*uops));
	if (!t->uops)
		return sim_refuse(load, HW_ST_NO_ROOM, "no memory for a body");
	for (unsigned i = 0; i < body->n_uop; i++)
		if (t->uops[i].op == UOP_IOTA && t->uops[i].aux < r && t->uops[i].aux)
			t->uops[i].aux = (uint8_t)(t->uops[i].aux == 1 ? r - 1 :
						   t->uops[i].aux - 1u);
	return 0;
}

static bool can_join(const struct isa_operand *o, unsigned n, unsigned d, int64_t dim)
{
	int64_t all;

	for (unsigned j = 0; j < n; j++)
		if (__builtin_mul_overflow(o[j].stride[d], dim, &all) ||
		    o[j].stride[d - 1] != all)
			return false;
	return true;
}

/* Takes dim d of an epilogue's operands into the one before. */
static void join(struct turned *t, unsigned d)
{
	unsigned after = t->body.rank - d - 1u;

	t->body.dim[d - 1] *= t->body.dim[d];
	memmove(t->body.dim + d, t->body.dim + d + 1, after * sizeof(*t->body.dim));
	for (unsigned j = 0; j < t->body.n_in + t->body.n_out; j++) {
		struct isa_operand *o = j < t->body.n_in ? &t->in[j] :
							   &t->out[j - t->body.n_in];

		memmove(o->stride + d - 1, o->stride + d, (after + 1) * sizeof(*o->stride));
		o->stride[t->body.rank - 1] = 0;
	}
	t->body.dim[--t->body.rank] = 1;
}

static void join_dims(struct turned *t)
{
	for (unsigned i = 0; i < t->body.n_uop; i++)
		if (t->uops[i].op == UOP_IOTA)
			return;
	for (unsigned d = t->body.rank - 2u; d > 0; d--)
		if (t->body.rank > 2 && d < t->body.rank - 1u &&
		    can_join(t->in, t->body.n_in, d, t->body.dim[d]) &&
		    can_join(t->out, t->body.n_out, d, t->body.dim[d]))
			join(t, d);
}

static int check_sides(struct sim_load *load, struct conv_plan *p)
{
	const struct isa_conv *c = &p->c;
	unsigned n = p->n_spatial;
	int64_t l[ISA_MAX_RANK], r[ISA_MAX_RANK];
	int ret;

	if (__builtin_mul_overflow(p->dim[0], c->batch_groups, &l[0]) ||
	    __builtin_mul_overflow(c->in_features, c->feature_groups, &l[1]) ||
	    p->dim[p->rank - 1] % c->feature_groups || p->dim[p->rank - 1] % c->batch_groups)
		return sim_refuse(load, HW_ST_BAD_PROGRAM, "groups that do not divide");
	r[0] = p->dim[p->rank - 1];
	r[1] = c->in_features;
	memcpy(l + 2, c->in_size, n * sizeof(*l));
	memcpy(r + 2, c->kernel, n * sizeof(*r));
	ret = sim_ref(load, &c->lhs, 0, false, 0, n + 2, l, NULL, 0, &p->lhs);
	return ret ? ret : sim_ref(load, &c->rhs, 1, false, 0, n + 2, r, NULL, 0, &p->rhs);
}

/* A block packs all of the kernel for its features, and all windows of its rows: so of a block with
 * more features than rows the features are cut, until there are as many blocks as wanted. */
static void cut_features(struct conv_plan *p, int64_t wanted)
{
	int64_t groups = p->c.feature_groups * p->c.batch_groups, all = p->lines * p->line;
	int64_t rows = all < p->mm.most_rows ? all : p->mm.most_rows;

	while ((all + rows - 1) / rows * p->n_blocks < wanted &&
	       (rows > 1 || p->nb > SIM_PRODUCT_LINE)) {
		if (p->nb <= rows || p->nb <= SIM_PRODUCT_LINE) {
			rows = (rows + 1) / 2;
			continue;
		}
		p->nb = (p->nb / 2 + SIM_PRODUCT_LINE - 1) / SIM_PRODUCT_LINE * SIM_PRODUCT_LINE;
		p->n_blocks = (p->o_group + p->nb - 1) / p->nb * groups;
	}
}

static void cut(struct sim_load *load, struct conv_plan *p)
{
	int64_t groups = p->c.feature_groups * p->c.batch_groups, o = p->dim[p->rank - 1];
	int64_t wanted;

	p->line = p->body_dim[p->body_rank - 2];
	p->lines = 1;
	for (unsigned d = 0; d + 2 < p->body_rank; d++)
		p->lines *= p->body_dim[d];
	p->o_group = o / groups;
	p->nb = p->o_group < SIM_PRODUCT_NB ? p->o_group : SIM_PRODUCT_NB;
	p->n_blocks = p->nb ? (p->o_group + p->nb - 1) / p->nb * groups : 0;
	if (!p->line || !p->lines || !p->n_blocks) {
		p->m_blocks = 0;
		return;
	}
	/* Blocks enough for every lane, unless there is little work. */
	wanted = p->ns < 20000 || load->cpu->lanes == 1 ? 1 : 2 * (int64_t)load->cpu->lanes;
	cut_features(p, wanted);
	wanted = (wanted + p->n_blocks - 1) / p->n_blocks;
	p->parts = (p->line + p->mm.most_rows - 1) / p->mm.most_rows;
	if (p->lines * p->parts < wanted)
		p->parts = (wanted + p->lines - 1) / p->lines;
	p->part = (p->line + p->parts - 1) / p->parts;
	p->parts = (p->line + p->part - 1) / p->part;
	p->lines_a_block = p->parts > 1 ? 1 : p->mm.most_rows / p->line;
	while (p->lines_a_block > 1 && p->lines / p->lines_a_block < wanted)
		p->lines_a_block /= 2;
	p->m_blocks = p->parts > 1 ? p->lines * p->parts :
		      (p->lines + p->lines_a_block - 1) / p->lines_a_block;
}

/* Each element of the input and the kernel, once; of nothing but both, nothing. */
static uint64_t sides_bytes(const struct isa_conv *c)
{
	uint64_t lhs = (uint64_t)c->body.dim[0] * (uint64_t)c->batch_groups;
	uint64_t rhs = (uint64_t)c->body.dim[1];

	lhs *= (uint64_t)c->in_features * (uint64_t)c->feature_groups * elem_bytes(c->lhs.elem);
	rhs *= (uint64_t)c->in_features * elem_bytes(c->rhs.elem);
	for (unsigned d = 0; d < c->n_spatial; d++) {
		lhs *= (uint64_t)c->in_size[d];
		rhs *= (uint64_t)c->kernel[d];
	}
	return lhs && rhs ? lhs + rhs : 0;
}

static void find_slides(struct conv_plan *p)
{
	const struct isa_conv *c = &p->c;
	struct slide *l = &p->slide_lhs, *r = &p->slide_rhs;

	*l = *r = (struct slide){ .n_spatial = p->n_spatial, .features = c->in_features };
	l->bytes = elem_bytes(c->lhs.elem);
	r->bytes = elem_bytes(c->rhs.elem);
	l->feature_step = p->lhs.stride[1];
	r->feature_step = p->rhs.stride[1];
	for (unsigned d = 0; d < p->n_spatial; d++) {
		l->taps[d] = r->taps[d] = r->size[d] = c->kernel[d];
		l->size[d] = c->in_size[d];
		l->dilation[d] = c->rhs_dilation[d];
		l->holes[d] = c->lhs_dilation[d];
		l->step[d] = p->lhs.stride[2 + d];
		l->inside[d] = l->size[d] - 1 - (l->taps[d] - 1) * l->dilation[d];
		r->dilation[d] = r->holes[d] = 1;
		r->step[d] = p->rhs.stride[2 + d];
		if (c->reversed >> d & 1) {
			r->first += (c->kernel[d] - 1) * r->step[d];
			r->step[d] = -r->step[d];
		}
	}
}

static int prepare_conv(struct sim_load *load, const struct isa_insn *insn,
			const void **plan)
{
	const struct isa_conv *c = (const void *)insn;
	const struct isa_body *body = &c->body;
	size_t bytes = sizeof(*c) + (body->n_in + body->n_out) * sizeof(struct isa_operand) +
		       body->n_uop * sizeof(struct isa_uop);
	struct conv_plan *p = arena_alloc(load->arena, sizeof(*p));
	struct turned *t = arena_alloc(load->arena, sizeof(*t));
	int64_t points = 1;
	double work = 1;
	int ret;

	if (!p || !t)
		return sim_refuse(load, HW_ST_NO_ROOM, "no memory for a plan");
	if (insn->bytes != bytes || insn->flags || body->rank < 2 ||
	    body->rank > ISA_MAX_RANK || body->n_in > ISA_MAX_IN ||
	    body->n_out > ISA_MAX_OUT || !is_sane(c, body->rank - 2u))
		return sim_refuse(load, HW_ST_BAD_PROGRAM, "conv with a field out of range");
	for (unsigned d = 0; d < ISA_MAX_RANK; d++)
		if (d < body->rank ? body->dim[d] < 0 || body->dim[d] > SIM_PRODUCT_MAX_DIM ||
		    __builtin_mul_overflow(points, body->dim[d] + 1, &points) :
		    body->dim[d] != 1)
			return sim_refuse(load, HW_ST_BAD_PROGRAM, "dim %u is %lld", d,
					  (long long)body->dim[d]);
	ret = turn_body(load, c, t);
	if (ret)
		return ret;
	p->c = *c;
	p->n_spatial = c->n_spatial;
	p->is_plane = c->n_spatial == 2 && c->lhs_dilation[0] == 1 && c->lhs_dilation[1] == 1;
	p->rank = body->rank;
	memcpy(p->dim, t->body.dim, sizeof(p->dim));
	ret = check_sides(load, p);
	if (ret)
		return ret;
	find_slides(p);
	join_dims(t);
	p->body_rank = t->body.rank;
	memcpy(p->body_dim, t->body.dim, sizeof(p->body_dim));
	p->mm.acc = c->acc;
	p->mm.k = c->in_features;
	for (unsigned d = 0; d < c->n_spatial; d++)
		if (__builtin_mul_overflow(p->mm.k, c->kernel[d], &p->mm.k))
			return sim_refuse(load, HW_ST_BAD_PROGRAM, "the kernel overflows");
	p->mm.panels.a = (struct sim_side){ .elem = c->lhs.elem, .row = row_lhs,
				     .rows = takes_rows(&p->slide_lhs) ? rows_lhs : NULL,
				     .place = is_in_place(p) ? place_lhs : NULL };
	p->mm.panels.b = (struct sim_side){ .elem = c->rhs.elem, .row = row_rhs,
				     .by_lines = p->rhs.stride[0] == elem_bytes(c->rhs.elem),
				     .lines = lines_rhs };
	ret = sim_product_prepare(load, &p->mm, &t->body, t->in, t->out, t->uops, 2);
	if (ret)
		return ret;
	if (p->is_plane && p->mm.panels_k == 1 && !is_mostly_inside(p))
		p->mm.panels.a.rows = NULL;
	for (unsigned d = 0; d < p->rank; d++)
		work *= (double)p->dim[d];
	work *= (double)p->mm.k;
	p->ns = sim_product_ns(&p->mm, work);
	p->adds = work < 1e18 ? (uint64_t)work : UINT64_MAX / 4;
	p->mm.read_bytes += work ? sides_bytes(c) : 0;
	cut(load, p);
	*plan = p;
	return 0;
}

/* Coordinates of a point of the epilogue; gives how many of its line there are from it on. */
static int64_t find_point(const struct conv_plan *p, int64_t at, int64_t feature, int64_t *index)
{
	int64_t rest = divide(at, p->line, &index[p->body_rank - 2]);

	for (unsigned d = p->body_rank - 2; d-- > 0;)
		rest = divide(rest, p->body_dim[d], &index[d]);
	index[p->body_rank - 1] = feature;
	for (unsigned d = p->body_rank; d < ISA_MAX_RANK; d++)
		index[d] = 0;
	return p->line - index[p->body_rank - 2];
}

/* Rows of a block, line by line; the task's index is its first feature. */
static void finish_rows(const struct sim_product_task *t, void *scratch, uint8_t *sums,
			unsigned row, unsigned rows)
{
	const struct conv_plan *p = t->plan;
	size_t bytes = (size_t)t->cols * p->mm.acc_bytes;
	int64_t at = t->row0 + row, index[ISA_MAX_RANK];

	for (unsigned n; rows; rows -= n, at += n, sums += n * bytes) {
		int64_t left = find_point(p, at, t->index[0], index);

		n = left < rows ? (unsigned)left : rows;
		sim_product_finish(t, scratch, sums, n, index);
	}
}

static void run_block(const struct sim_product_job *j, int64_t m, int64_t n, void *scratch)
{
	const struct conv_plan *p = j->plan;
	int64_t a_group = (p->o_group + p->nb - 1) / p->nb, group = n / a_group;
	int64_t o0 = n % a_group * p->nb, first_line, lines, part0 = 0, width = p->line;
	int64_t first_feature = group * p->o_group + o0, index[ISA_MAX_RANK];
	struct sim_product_task t = { .mm = &p->mm, .run = j->run, .plan = p, .a = j->a,
				      .b = j->b, .job = j, .finish = finish_rows,
				      .index = &first_feature };

	if (p->parts > 1) {
		first_line = m / p->parts;
		lines = 1;
		part0 = m % p->parts * p->part;
		width = p->line - part0 < p->part ? p->line - part0 : p->part;
	} else {
		first_line = m * p->lines_a_block;
		lines = p->lines - first_line < p->lines_a_block ? p->lines - first_line :
								   p->lines_a_block;
	}
	if (p->c.feature_groups > 1)
		t.a += group * p->c.in_features * p->lhs.stride[1];
	else
		t.a += group * p->dim[0] * p->lhs.stride[0];
	t.row0 = first_line * p->line + part0;
	t.rows = (unsigned)(lines * width);
	t.cols = (unsigned)(p->o_group - o0 < p->nb ? p->o_group - o0 : p->nb);
	t.b += first_feature * p->rhs.stride[0];
	if (!t.rows)
		return;
	if (find_point(p, t.row0, first_feature, index) >= t.rows)
		sim_product_go_direct(&t, index);
	sim_product_run(&t, scratch);
}

static void run_blocks(void *arg, uint64_t begin, uint64_t end, unsigned lane)
{
	const struct sim_product_job *j = arg;
	const struct conv_plan *p = j->plan;
	void *scratch = sim_scratch(j->run, lane);

	for (uint64_t i = begin; i < end && !sim_stopped(j->run); i++)
		run_block(j, (int64_t)(i / (uint64_t)p->n_blocks),
			  (int64_t)(i % (uint64_t)p->n_blocks), scratch);
}

static int run_conv(struct sim_run *run, const void *plan)
{
	const struct conv_plan *p = plan;
	struct sim_product_job j;
	int ret = sim_product_bind(run, &p->mm, p, &p->lhs, &p->rhs, &j);

	if (ret)
		return ret;
	run->matrix_ops += p->adds;
	sim_parallel(run, (uint64_t)(p->m_blocks * p->n_blocks), 1, p->ns, run_blocks, &j);
	return 0;
}

const struct sim_family sim_family_conv = { prepare_conv, run_conv };
