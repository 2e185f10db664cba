/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GATHER and SCATTER against plain loops: windows of every form, starts outside the
 * table, every index type, bodies whose order shows, on each path; what is refused,
 * what faults, what can be stopped.
 */
#include "tests/unit/sim/sim_typed.h"
#include "tests/unit/sim/sim_test.h"

/* Where windows of a table lie: what GATHER and SCATTER share. */
struct place {
	unsigned rank, n_batch, n_index;
	int64_t dim[ISA_MAX_RANK], index_stride;
	struct isa_index index[ISA_MAX_INDEX];
	struct isa_operand table, idx;
	uint64_t table_bytes;
	struct vt_mem idx_mem;
};

static const uint8_t index_types[] = { ELEM_S8, ELEM_S16, ELEM_S32, ELEM_S64, ELEM_U8,
				       ELEM_U16, ELEM_U32, ELEM_U64 };

static unsigned pick(uint64_t *seed, unsigned n)
{
	return vt_random(seed) % n;
}

/* Starts mostly within, some just outside, few far away. */
static void draw_starts(uint64_t *seed, struct place *p, unsigned elem)
{
	unsigned each = elem_bytes(elem);

	for (uint64_t at = 0; at + each <= p->idx_mem.bytes; at += each) {
		int64_t most = p->n_index ? p->index[pick(seed, p->n_index)].limit : 0;
		uint64_t far[] = { 1ull << 63, UINT64_MAX >> 1, UINT64_MAX, 0x80, 0x7f, 0xff };
		struct ty v = { .i = (uint64_t)in_range(seed, 0, most) };

		if (pick(seed, 10) == 0)
			v.i = (uint64_t)in_range(seed, -3, most + 3);
		if (pick(seed, 40) == 0)
			v.i = far[pick(seed, 6)];
		ty_set(elem, (uint8_t *)p->idx_mem.p + at, v);
	}
}

/* By the dim's size mostly, as frameworks do, or not at all; rarely by anything. */
static int64_t draw_wrap(uint64_t *seed, int64_t dim)
{
	static const int64_t any[] = { 1, 2, 200, 70000, 1ll << 33, 1ll << 48 };
	unsigned which = pick(seed, 8);

	return which < 3 ? 0 : which < 7 ? dim : any[pick(seed, 6)];
}

/*
 * A table of up to four dims. Of each a window takes a part; it may be left out of the
 * iteration space if that part is one, and its start may be given by an index. The
 * table may have batch dims too. `most` bounds a dim, `each` is an element's bytes.
 */
static void draw_any_place(uint64_t *seed, struct place *p, int64_t most, unsigned each)
{
	unsigned n_table = pick(seed, 5), n = 0, of_batch[4], of_table[4];
	int64_t size[ISA_MAX_RANK], slice[4], idx_dim[ISA_MAX_RANK];
	struct isa_operand all = { .elem = 0 };

	memset(p, 0, sizeof(*p));
	p->n_batch = pick(seed, 4);
	for (unsigned d = 0; d < p->n_batch; d++) {
		p->dim[d] = in_range(seed, pick(seed, 20) ? 1 : 0, 7);
		if (!d && !pick(seed, 8))
			p->dim[d] = 3000;	/* worth sharing out */
		of_batch[d] = pick(seed, 3) ? UINT32_MAX : n;
		if (of_batch[d] != UINT32_MAX)
			size[n++] = p->dim[d];
	}
	for (unsigned d = 0; d < n_table; d++) {
		of_table[d] = n;
		size[n++] = in_range(seed, 1, most);
		slice[d] = pick(seed, 2) ? 1 : in_range(seed, 1, size[n - 1]);
	}
	p->table_bytes = in_scatter_strides(seed, &all, n, size, each, pick(seed, 2));
	p->table.offset = all.offset;
	for (unsigned d = 0; d < p->n_batch; d++)
		if (of_batch[d] != UINT32_MAX)
			p->table.stride[d] = all.stride[of_batch[d]];
	p->rank = p->n_batch;
	for (unsigned d = 0; d < n_table; d++) {
		int64_t stride = all.stride[of_table[d]];

		if (pick(seed, 4))
			p->index[p->n_index++] = (struct isa_index){
				size[of_table[d]] - slice[d], stride,
				draw_wrap(seed, size[of_table[d]]) };
		if (slice[d] == 1 && pick(seed, 2))
			continue;
		p->table.stride[p->rank] = stride;
		p->dim[p->rank++] = slice[d];
	}
	for (unsigned d = p->rank; d < ISA_MAX_RANK; d++)
		p->dim[d] = 1;
	p->idx = (struct isa_operand){ .elem = index_types[pick(seed, 8)], .binding = 0 };
	memcpy(idx_dim, p->dim, sizeof(idx_dim));
	idx_dim[p->n_batch] = p->n_index;
	p->idx_mem.bytes = in_scatter_strides(seed, &p->idx, p->n_batch + 1, idx_dim,
					      elem_bytes(p->idx.elem), pick(seed, 2));
	p->idx_mem.p = calloc(1, p->idx_mem.bytes + 1);
	p->index_stride = p->idx.stride[p->n_batch];
	p->idx.stride[p->n_batch] = 0;
	draw_starts(seed, p, p->idx.elem);
}

/* One that plain loops get through in good time. */
static void draw_place(uint64_t *seed, struct place *p, int64_t most, unsigned each)
{
	int64_t points;

	do {
		draw_any_place(seed, p, most, each);
		points = 1;
		for (unsigned d = 0; d < p->rank; d++)
			points *= p->dim[d];
		if (points > 40000 || p->table_bytes > 1 << 20)
			free(p->idx_mem.p);
	} while (points > 40000 || p->table_bytes > 1 << 20);
}

/* n windows of so many bytes, rows of a small table, or of one with as many if it is above MANY. */
static void draw_rows(uint64_t *seed, struct place *p, int64_t n, int64_t bytes, unsigned each)
{
	enum { FEW = 5, MANY = 3000 };
	int64_t rows = n > MANY ? n : FEW;

	*p = (struct place){ .rank = 2, .n_batch = 1, .n_index = 1, .index_stride = 4,
			     .dim = { n, bytes / each, 1, 1, 1, 1, 1, 1 },
			     .index = { { rows - 1, bytes, draw_wrap(seed, rows) } },
			     .table = { .stride = { 0, each } },
			     .idx = { .elem = ELEM_S32, .stride = { 4 } },
			     .table_bytes = (uint64_t)(rows * bytes),
			     .idx_mem = { .p = calloc((size_t)n, 4), .bytes = (uint64_t)(4 * n) } };
	draw_starts(seed, p, p->idx.elem);
}

/* Rows of n elements, enough to be shared; the table may go on within them, and between. */
static void draw_elements(uint64_t *seed, struct place *p, int64_t n, unsigned each)
{
	static const int64_t dims[] = { 3, 5, 37 };
	unsigned n_index = 1 + pick(seed, 3), elem = index_types[pick(seed, 8)];
	bool is_apart = pick(seed, 2);	/* components of all points, one after the other */
	int64_t bytes = elem_bytes(elem), step = each, unit = is_apart ? bytes : n_index * bytes;
	int64_t rows = pick(seed, 2) ? 1 : in_range(seed, 2, n < 70 ? 150 : 40);
	int64_t row = pick(seed, 3) * each, next = pick(seed, 3) * each;

	*p = (struct place){ .rank = 2, .n_batch = 2, .n_index = n_index,
			     .dim = { rows, n, 1, 1, 1, 1, 1, 1 }, .table.stride = { row, next },
			     .index_stride = is_apart ? rows * n * bytes : bytes,
			     .idx = { .elem = (uint8_t)elem, .stride = { n * unit, unit } },
			     .idx_mem = { .p = calloc((size_t)(rows * n), n_index * (size_t)bytes),
					  .bytes = (uint64_t)(rows * n * n_index * bytes) } };
	for (unsigned k = n_index; k-- > 0; step *= dims[k])
		p->index[k] = (struct isa_index){ dims[k] - 1, step, draw_wrap(seed, dims[k]) };
	p->table_bytes = (uint64_t)(step + (rows - 1) * row + (n - 1) * next);
	draw_starts(seed, p, elem);
}

static bool is_empty(const struct place *p)
{
	for (unsigned d = 0; d < p->rank; d++)
		if (!p->dim[d])
			return true;
	return false;
}

/* Points of the first `rank` dims. */
static uint64_t points_of(const struct place *p, unsigned rank)
{
	uint64_t n = 1;

	for (unsigned d = 0; d < rank; d++)
		n *= (uint64_t)p->dim[d];
	return n;
}

/* Of all indices, which nobody reads for windows of nothing. */
static uint64_t index_bytes(const struct place *p)
{
	return is_empty(p) ? 0 : points_of(p, p->n_batch) * p->n_index * elem_bytes(p->idx.elem);
}

/* Component k of the start at batch point `at`; past the signed range: the largest. */
static int64_t start(const struct place *p, const int64_t *at, unsigned k)
{
	uint64_t v = ty_get(p->idx.elem, (uint8_t *)p->idx_mem.p + k * p->index_stride +
			    in_at(&p->idx, p->n_batch, at)).i;

	if (p->idx.elem == ELEM_U64 && v > INT64_MAX)
		return INT64_MAX;
	return (int64_t)v < 0 ? (int64_t)v + p->index[k].wrap : (int64_t)v;
}

/* ---- gather ---- */

static const uint8_t types[] = { ELEM_U8, ELEM_BF16, ELEM_F32, ELEM_F64, ELEM_C128, ELEM_PRED,
				 ELEM_F8E8M0FNU, ELEM_C64 };

/* most 0: elements of a table side by side, by one index each, which lie side by side. */
static void gather_once(struct vt *vt, unsigned n, uint64_t *seed, int64_t most)
{
	unsigned elem = types[pick(seed, most ? sizeof(types) : 4)], each = elem_bytes(elem);
	struct isa_gather g = { .insn.op = ISA_GATHER, .dst.binding = 2 };
	struct vt_mem mem[3], want, before;
	bool fills = pick(seed, 2);
	struct sim_run run;
	struct place p;

	if (most)
		draw_place(seed, &p, most, each);
	else
		draw_elements(seed, &p, in_range(seed, 1, pick(seed, 8) ? 70 : 1300), each);
	g.rank = (uint8_t)p.rank;
	g.n_batch = (uint8_t)p.n_batch;
	g.n_index = (uint8_t)p.n_index;
	g.index_stride = p.index_stride;
	memcpy(g.dim, p.dim, sizeof(g.dim));
	memcpy(g.index, p.index, sizeof(g.index));
	g.idx = p.idx;
	g.src = p.table;
	g.src.binding = 1;
	g.src.elem = g.dst.elem = (uint8_t)elem;
	for (unsigned i = 0; i < each && fills; i++)
		((uint8_t *)g.fill)[i] = (uint8_t)(0x91 + 7 * i);
	if (fills)
		g.insn.flags = ISA_FLAG_FILL;
	mem[0] = p.idx_mem;
	mem[1] = ty_memory(seed, ELEM_U8, true, p.table_bytes);
	before = ty_memory(seed, ELEM_U8, true, in_scatter_strides(seed, &g.dst, p.rank, p.dim,
								   each, pick(seed, 2)));
	want = ty_copy(before);
	mem[2] = ty_copy(before);
	for (int64_t at[ISA_MAX_RANK] = { 0 }, go = !is_empty(&p); go;
	     go = in_next(p.rank, p.dim, at)) {
		int64_t from = in_at(&g.src, p.rank, at);
		bool is_inside = true;

		for (unsigned k = 0; k < p.n_index; k++) {
			int64_t v = start(&p, at, k);

			is_inside &= v >= 0 && v <= p.index[k].limit;
			v = v < 0 ? 0 : v > p.index[k].limit ? p.index[k].limit : v;
			from += v * p.index[k].step;
		}
		memcpy((uint8_t *)want.p + in_at(&g.dst, p.rank, at),
		       is_inside || !fills ? (uint8_t *)mem[1].p + from :
					     (uint8_t *)g.fill, each);
	}
	for (unsigned i = 0; i < n; i++) {
		struct in_code c = { .n = 0 };

		in_put(&c, &g, sizeof(g));
		memcpy(mem[2].p, before.p, before.bytes);
		assert_int_equal(in_run(&vt[i], &c, mem, 3, &run), 0);
		assert_memory_equal(mem[2].p, want.p, want.bytes);
		assert_int_equal(run.write_bytes, points_of(&p, p.rank) * each);
		assert_int_equal(run.read_bytes, run.write_bytes + index_bytes(&p));
	}
	for (unsigned i = 0; i < 3; i++)
		free(mem[i].p);
	free(want.p);
	free(before.p);
}

static void gathers_match_plain_loops(void **state)
{
	struct vt vt[3];
	unsigned n = ty_open(vt);
	uint64_t seed = 41;

	(void)state;
	for (unsigned round = 0; round < 3000; round++)
		gather_once(vt, n, &seed, round % 4 ? round % 3 ? 7 : 15 : 0);
	ty_close(vt, n);
}

/* Few windows, but large: shared out to the lanes all the same. */
static void large_windows_match(void **state)
{
	struct vt vt[3];
	unsigned n = ty_open(vt);
	uint64_t seed = 43;

	(void)state;
	for (unsigned round = 0; round < 150; round++)
		gather_once(vt, n, &seed, 33);
	ty_close(vt, n);
}

/* An embedding: rows of a table by a long list of indices, each path and hint. */
static void rows_of_a_table(void **state)
{
	enum { ROWS = 997, WIDE = 65, N = 5003 };
	float *table = malloc(sizeof(float) * ROWS * WIDE), *out = malloc(sizeof(float) * N * WIDE);
	int32_t *idx = malloc(sizeof(int32_t) * N);
	struct isa_gather g = { .insn = { ISA_GATHER, ISA_FLAG_SORTED, 0 }, .rank = 2,
		.n_batch = 1, .n_index = 1, .dim = { N, WIDE, 1, 1, 1, 1, 1, 1 },
		.index = { { ROWS - 1, WIDE * 4, 0 } },
		.src = { .elem = ELEM_F32, .stride = { 0, 4 } },
		.idx = { .elem = ELEM_S32, .binding = 1, .stride = { 4 } },
		.dst = { .elem = ELEM_F32, .binding = 2, .stride = { WIDE * 4, 4 } } };
	struct vt vt[3];
	unsigned n = ty_open(vt);
	struct sim_run run;

	(void)state;
	for (int i = 0; i < ROWS * WIDE; i++)
		table[i] = (float)i;
	for (int i = 0; i < N; i++)
		idx[i] = i / 5 - 2;
	for (unsigned i = 0; i < n; i++) {
		struct in_code c = { .n = 0 };

		in_put(&c, &g, sizeof(g));
		memset(out, 0, sizeof(float) * N * WIDE);
		assert_int_equal(in_run(&vt[i], &c, (struct vt_mem[]){
			{ table, sizeof(float) * ROWS * WIDE }, { idx, sizeof(int32_t) * N },
			{ out, sizeof(float) * N * WIDE } }, 3, &run), 0);
		for (int b = 0; b < N; b++) {
			int row = idx[b] < 0 ? 0 : idx[b] >= ROWS ? ROWS - 1 : idx[b];

			assert_memory_equal(out + b * WIDE, table + row * WIDE, WIDE * 4);
		}
	}
	ty_close(vt, n);
	free(table);
	free(out);
	free(idx);
}

/* ---- scatter ---- */

enum body {
	REPLACE,	/* one array: the update */
	TRIPLE,		/* old * 3 + update, up to four arrays of integers */
	ADD,		/* old + update of f32, small whole numbers */
	TRADE,		/* new 0 = update 1, new 1 = old 0 */
	KEEP,		/* old */
	CONSTANT,
	STORAGE,	/* two arrays of types that do not compute: the updates */
	EITHER,		/* or of pred */
	BODIES
};

struct scatter {
	struct isa_scatter s;
	struct isa_operand upd[ISA_MAX_SORT], dst[ISA_MAX_SORT];
	struct isa_uop uop[3 * ISA_MAX_SORT];
	struct place p;
	enum body kind;
	unsigned k;
	struct vt_mem mem[1 + 2 * ISA_MAX_SORT], want[ISA_MAX_SORT], before[ISA_MAX_SORT];
};

static void draw_body(uint64_t *seed, struct scatter *t)
{
	static const uint8_t integers[] = { ELEM_U8, ELEM_S16, ELEM_U32, ELEM_S64 };
	unsigned n = 0;

	t->kind = pick(seed, BODIES);
	t->k = t->kind == TRIPLE ? 1 + pick(seed, 4) :
	       t->kind == TRADE || t->kind == STORAGE ? 2 : 1;
	for (unsigned j = 0; j < t->k; j++) {
		unsigned elem = t->kind == TRIPLE ? integers[(j + t->k) % 4] :
				t->kind == ADD ? ELEM_F32 : t->kind == EITHER ? ELEM_PRED :
				t->kind == STORAGE ? (j ? ELEM_F8E4M3FN : ELEM_BF16) :
				t->kind == REPLACE ? integers[pick(seed, 4)] : ELEM_S32;

		t->upd[j].elem = t->dst[j].elem = (uint8_t)elem;
		t->dst[j].value = (uint8_t)(t->k + j);
	}
	for (unsigned j = 0; j < t->k && t->kind == TRIPLE; j++) {
		/* old * 3 = old + old + old, without a constant for each type */
		t->uop[n++] = vt_uop(UOP_ADD, t->dst[j].elem, j, j, 0);
		t->uop[n] = vt_uop(UOP_ADD, t->dst[j].elem, 2 * t->k + n - 1, j, 0);
		n++;
	}
	for (unsigned j = 0; j < t->k && t->kind == TRIPLE; j++) {
		t->dst[j].value = (uint8_t)(2 * t->k + n);
		t->uop[n++] = vt_uop(UOP_ADD, t->dst[j].elem, 2 * t->k + 2 * j + 1, t->k + j,
				     0);
	}
	if (t->kind == ADD || t->kind == EITHER)
		t->uop[n++] = vt_uop(t->kind == ADD ? UOP_ADD : UOP_OR, t->dst[0].elem, 0, 1, 0);
	if (t->kind == CONSTANT) {
		t->uop[n] = vt_uop(UOP_IMM, ELEM_S32, 0, 0, 0);
		t->uop[n++].imm = 77;
	}
	if (n && t->kind != TRIPLE)
		t->dst[0].value = 2;
	if (t->kind == KEEP)
		t->dst[0].value = 0;
	if (t->kind == TRADE) {
		t->dst[0].value = 3;
		t->dst[1].value = 0;
	}
	t->s.body.n_uop = (uint16_t)n;
}

/* One element. */
static void update(struct scatter *t, const int64_t *at, int64_t shift)
{
	struct ty old[ISA_MAX_SORT], upd[ISA_MAX_SORT];

	for (unsigned j = 0; j < t->k; j++) {
		old[j] = ty_get(t->dst[j].elem, (uint8_t *)t->want[j].p + shift +
				in_at(&t->dst[j], t->p.rank, at));
		upd[j] = ty_get(t->upd[j].elem, (uint8_t *)t->mem[1 + j].p +
				in_at(&t->upd[j], t->p.rank, at));
	}
	for (unsigned j = 0; j < t->k; j++) {
		struct ty v = upd[j];

		if (t->kind == TRIPLE)
			v.i = old[j].i * 3 + upd[j].i;
		if (t->kind == ADD)
			v.re = old[j].re + upd[j].re;
		if (t->kind == EITHER)
			v.i = old[j].i | upd[j].i;
		if (t->kind == KEEP)
			v = old[j];
		if (t->kind == CONSTANT)
			v.i = 77;
		if (t->kind == TRADE)
			v = j ? old[0] : upd[1];
		ty_set(t->dst[j].elem, (uint8_t *)t->want[j].p + shift +
		       in_at(&t->dst[j], t->p.rank, at), v);
	}
}

/* Points in order: batch points ascend, which is what windows that meet rely on. */
static void expect_scatter(struct scatter *t)
{
	const struct place *p = &t->p;

	for (int64_t at[ISA_MAX_RANK] = { 0 }, go = !is_empty(p); go;
	     go = in_next(p->rank, p->dim, at)) {
		int64_t shift = 0;
		bool inside = true;

		for (unsigned k = 0; k < p->n_index && inside; k++) {
			int64_t v = start(p, at, k);

			inside = v >= 0 && v <= p->index[k].limit;
			if (inside)
				shift += v * p->index[k].step;
		}
		if (inside)
			update(t, at, shift);
	}
}

/* The table's operands share strides, so that a step is one for all. rows: rather than any place,
 * so many rows of `most` bytes. */
static void draw_scatter(uint64_t *seed, struct scatter *t, int64_t most, int64_t rows)
{
	unsigned each;

	memset(t, 0, sizeof(*t));
	draw_body(seed, t);
	each = t->k > 1 ? 8 : elem_bytes(t->dst[0].elem);
	if (rows)
		draw_rows(seed, &t->p, rows, most, each);
	else
		draw_place(seed, &t->p, most, each);
	t->s.insn.op = ISA_SCATTER;
	t->s.n_batch = (uint8_t)t->p.n_batch;
	t->s.n_index = (uint8_t)t->p.n_index;
	t->s.index_stride = t->p.index_stride;
	memcpy(t->s.index, t->p.index, sizeof(t->s.index));
	t->s.idx = t->p.idx;
	t->s.body.rank = (uint8_t)t->p.rank;
	t->s.body.n_in = t->s.body.n_out = (uint8_t)t->k;
	memcpy(t->s.body.dim, t->p.dim, sizeof(t->p.dim));
	t->mem[0] = t->p.idx_mem;
	for (unsigned j = 0; j < t->k; j++) {
		unsigned elem = t->dst[j].elem;
		uint64_t bytes = in_scatter_strides(seed, &t->upd[j], t->p.rank, t->p.dim,
						    elem_bytes(elem), pick(seed, 2));

		t->upd[j].binding = (uint16_t)(1 + j);
		t->mem[1 + j] = ty_memory(seed, elem, false, bytes);
		t->dst[j].offset = t->p.table.offset;
		memcpy(t->dst[j].stride, t->p.table.stride, sizeof(t->dst[j].stride));
		t->dst[j].binding = (uint16_t)(1 + t->k + j);
		t->before[j] = ty_memory(seed, elem, false, t->p.table_bytes);
		t->want[j] = ty_copy(t->before[j]);
		t->mem[1 + t->k + j] = ty_copy(t->before[j]);
	}
}

static void scatter_once(struct vt *vt, unsigned n, uint64_t *seed, int64_t most, int64_t rows)
{
	static struct scatter t;
	uint64_t each = 0, of_old;
	struct sim_run run;

	draw_scatter(seed, &t, most, rows);
	expect_scatter(&t);
	for (unsigned j = 0; j < t.k; j++)
		each += elem_bytes(t.dst[j].elem);
	for (unsigned i = 0; i < n; i++) {
		struct in_code c = { .n = 0 };

		in_put(&c, &t.s, sizeof(t.s));
		in_put(&c, t.upd, t.k * sizeof(*t.upd));
		in_put(&c, t.dst, t.k * sizeof(*t.dst));
		in_put(&c, t.uop, t.s.body.n_uop * sizeof(*t.uop));
		for (unsigned j = 0; j < t.k; j++)
			memcpy(t.mem[1 + t.k + j].p, t.before[j].p, t.before[j].bytes);
		assert_int_equal(in_run(&vt[i], &c, t.mem, 1 + 2 * t.k, &run), 0);
		for (unsigned j = 0; j < t.k; j++)
			assert_memory_equal(t.mem[1 + t.k + j].p, t.want[j].p, t.want[j].bytes);
		of_old = run.read_bytes - index_bytes(&t.p) - run.write_bytes;
		assert_int_equal(run.write_bytes, points_of(&t.p, t.p.rank) * each);
		assert_true(of_old == run.write_bytes || (!of_old && !t.s.body.n_uop));
	}
	for (unsigned j = 0; j < 1 + 2 * t.k; j++)
		free(t.mem[j].p);
	for (unsigned j = 0; j < t.k; j++) {
		free(t.want[j].p);
		free(t.before[j].p);
	}
}

static void scatters_match_plain_loops(void **state)
{
	struct vt vt[3];
	unsigned n = ty_open(vt);
	uint64_t seed = 47;

	(void)state;
	for (unsigned round = 0; round < 3000; round++)
		scatter_once(vt, n, &seed, round % 3 ? 7 : 12, 0);
	for (unsigned round = 0; round < 100; round++)
		scatter_once(vt, n, &seed, 33, 0);
	ty_close(vt, n);
}

/* Rows of less than a cache line, of one, of several, of more than is asked for ahead and more than
 * has a loop of its own; few and many. */
static void rows_that_meet_are_applied_in_order(void **state)
{
	static const int64_t bytes[] = { 8, 24, 56, 64, 72, 512, 520, 1024, 1032, 16, 32, 40 };
	struct vt vt[3];
	unsigned n = ty_open(vt);
	uint64_t seed = 11;

	(void)state;
	for (int64_t rows = 1; rows < 40; rows++)
		for (unsigned i = 0; i < 18; i++)
			scatter_once(vt, n, &seed, bytes[i % 9], rows);
	for (unsigned i = 0; i < 18; i++)
		scatter_once(vt, n, &seed, bytes[i % 9], 3000);
	for (unsigned i = 0; i < 24; i++)	/* tables that are far from a core */
		scatter_once(vt, n, &seed, bytes[9 + i % 3], 3300000 / bytes[9 + i % 3]);
	ty_close(vt, n);
}

/* A row of the first array for each point, of the second one for all: lanes that share out the
 * first one's places meet in the second. */
static void meet_in_the_second_array(struct vt *vt, const char *path)
{
	enum { POINTS = 100000, ROW_OF = 10 };
	struct {
		struct isa_scatter s;
		struct isa_operand upd[2], dst[2];
		struct isa_uop uop[2];
	} w = {
		.s = { .insn.op = ISA_SCATTER, .n_batch = 1, .n_index = 1, .index_stride = 4,
		       .index = { { ROW_OF - 1, 4 } }, .idx = { .elem = ELEM_S32, .stride = { 4 } },
		       .body = { .rank = 1, .n_in = 2, .n_out = 2, .n_uop = 2,
				 .dim = { POINTS, 1, 1, 1, 1, 1, 1, 1 } } },
		.upd = { { .elem = ELEM_F32, .binding = 1, .stride = { 4 } },
			 { .elem = ELEM_F32, .binding = 1, .stride = { 4 } } },
		.dst = { { .elem = ELEM_F32, .binding = 2, .value = 4, .stride = { 4 * ROW_OF } },
			 { .elem = ELEM_F32, .binding = 3, .value = 5 } },
		.uop = { vt_uop(UOP_ADD, ELEM_F32, 0, 2, 0), vt_uop(UOP_ADD, ELEM_F32, 1, 3, 0) },
	};
	int32_t *index = malloc(4 * POINTS);
	float *update = malloc(4 * POINTS), *rows = calloc(POINTS * ROW_OF, 4);
	float all[ROW_OF] = { 0 }, want[ROW_OF] = { 0 };
	struct in_code code = { .n = 0 };
	struct sim_run run;
	uint64_t seed = 5;

	for (unsigned i = 0; i < POINTS; i++) {
		index[i] = (int32_t)(vt_random(&seed) % ROW_OF);
		update[i] = (float)(vt_random(&seed) % 9);
		want[index[i]] += update[i];
	}
	in_put(&code, &w, sizeof(w));
	assert_int_equal(in_run(vt, &code, (struct vt_mem[]){ { index, 4 * POINTS },
		{ update, 4 * POINTS }, { rows, 4 * POINTS * ROW_OF }, { all, sizeof(all) } }, 4,
		&run), 0);
	for (unsigned i = 0; i < POINTS; i++)
		if (rows[i * ROW_OF + (unsigned)index[i]] != update[i])
			fail_msg("%s: point %u", path, i);
	for (unsigned i = 0; i < ROW_OF; i++)
		if (all[i] != want[i])
			fail_msg("%s: %g at %u, not %g", path, (double)all[i], i, (double)want[i]);
	free(index);
	free(update);
	free(rows);
}

static void arrays_with_places_of_their_own(void **state)
{
	(void)state;
	in_each_path(meet_in_the_second_array);
}

/* ---- refusals and faults ---- */

static struct t_sim sim;
static struct t_program prog;

/* 4 rows of 4 from a table of 8 rows. */
static struct isa_gather good_gather(void)
{
	return (struct isa_gather){ .insn = { ISA_GATHER, 0, sizeof(struct isa_gather) },
		.rank = 2, .n_batch = 1, .n_index = 1, .dim = { 4, 4, 1, 1, 1, 1, 1, 1 },
		.index_stride = 4, .index = { { 7, 16, 0 } },
		.src = { .elem = ELEM_F32, .stride = { 0, 4 } },
		.idx = { .elem = ELEM_S32, .binding = 1, .stride = { 4 } },
		.dst = { .elem = ELEM_F32, .binding = 2, .stride = { 16, 4 } } };
}

struct whole {
	struct isa_scatter s;
	struct isa_operand upd, dst;
	struct isa_uop uop;
};

static struct whole good_scatter(void)
{
	struct isa_gather g = good_gather();
	struct whole w = { .s = { .insn = { ISA_SCATTER, 0, sizeof(struct whole) },
		.n_batch = 1, .n_index = 1, .index_stride = 4, .idx = g.idx,
		.body = { .rank = 2, .n_in = 1, .n_out = 1, .n_uop = 1,
			  .dim = { 4, 4, 1, 1, 1, 1, 1, 1 } } },
		.upd = g.dst, .dst = g.src, .uop = vt_uop(UOP_ADD, ELEM_F32, 0, 1, 0) };

	w.s.index[0] = g.index[0];
	w.upd.binding = 0;
	w.dst.binding = 2;
	w.dst.value = 2;
	return w;
}

/* Runs with register 1 at `reg`, in bindings of these sizes, memory full of 7: the
 * status. Unless it is 0 nothing has changed. */
static unsigned run_code(const void *insn, size_t bytes, const uint64_t *room, int64_t reg,
			 uint64_t limit_ns)
{
	unsigned status;

	t_program(&prog);
	for (unsigned i = 0; i < 3; i++)
		t_bind(&prog, T_HBM_VA + i * 256, room[i],
		       i == 2 ? HW_BIND_READ | HW_BIND_WRITE : HW_BIND_READ);
	t_li(&prog, 1, reg);
	t_add(&prog, insn, bytes);
	t_halt(&prog);
	prog.limit_ns = limit_ns;
	memset(sim.hbm, 7, 4096);
	memset(&sim.fault, 0, sizeof(sim.fault));
	status = t_run(&sim, &prog);
	for (unsigned i = 0; i < 4096 && status && status != HW_ST_WATCHDOG; i++)
		assert_int_equal(sim.hbm[i], 7);
	return status;
}

static unsigned run_gather(struct isa_gather g, int64_t reg)
{
	static const uint64_t room[] = { 128, 16, 64 };

	return run_code(&g, sizeof(g), room, reg, 0);
}

static unsigned run_scatter(struct whole w, int64_t reg)
{
	static const uint64_t room[] = { 64, 16, 128 };

	return run_code(&w, sizeof(w), room, reg, 0);
}

static void malformed_gathers_are_refused(void **state)
{
	(void)state;
	t_open(&sim, "lanes=1");
	assert_int_equal(run_gather(good_gather(), 0), 0);
#define REFUSES(change) do { \
		struct isa_gather g = good_gather(); \
	\
		change; \
		assert_int_equal(run_gather(g, 0), HW_ST_BAD_PROGRAM); \
		assert_int_equal(sim.refused_at, sizeof(struct isa_scalar)); \
	} while (0)
	REFUSES(g.insn.flags = ISA_FLAG_UNIQUE);
	REFUSES(g.insn.flags = ISA_FLAG_STABLE);
	REFUSES(g.rank = 9);
	REFUSES(g.n_batch = 3);
	REFUSES(g.n_batch = 200);
	REFUSES(g.n_index = 9);
	REFUSES(g.n_index = 2);
	REFUSES(g.zero[4] = 1);
	REFUSES(g.dim[0] = 5);
	REFUSES(g.dim[0] = -1);
	REFUSES(g.dim[0] = INT64_MAX);
	REFUSES(g.dim[1] = 5);
	REFUSES(g.dim[2] = 2);
	REFUSES((g.dim[0] = g.dim[1] = 1ll << 33, memset(g.src.stride, 0, 16),
		 memset(g.dst.stride, 0, 16), g.idx.stride[0] = 0));
	REFUSES(g.index_stride = 2);
	REFUSES((g.n_index = 2, g.index_stride = INT64_MAX - 3));
	REFUSES(g.index[0].limit = 8);
	REFUSES(g.index[0].limit = -1);
	REFUSES(g.index[0].limit = INT64_MAX);
	REFUSES(g.index[0].step = -16);
	REFUSES(g.index[0].step = 20);
	REFUSES(g.index[0].step = 2);
	REFUSES(g.index[0].step = INT64_MIN);
	REFUSES(g.index[0].wrap = -1);
	REFUSES(g.index[0].wrap = (1ll << 48) + 1);
	REFUSES(g.index[0].wrap = INT64_MAX);
	REFUSES(g.fill[0] = 1);
	REFUSES(g.fill[1] = 1);
	REFUSES((g.insn.flags = ISA_FLAG_FILL, g.fill[0] = 1ull << 32));
	REFUSES((g.insn.flags = ISA_FLAG_FILL, g.fill[1] = 1));
	REFUSES((g.index[0].limit = 1ll << 40, g.index[0].step = 1ll << 40));
	REFUSES(g.idx.elem = ELEM_F32);
	REFUSES(g.idx.elem = ELEM_PRED);
	REFUSES(g.idx.elem = ELEM_INVALID);
	REFUSES(g.idx.elem = 255);
	REFUSES(g.idx.stride[0] = 8);
	REFUSES(g.src.elem = ELEM_S32);
	REFUSES(g.src.elem = g.dst.elem = ELEM_TOKEN);
	REFUSES(g.src.elem = g.dst.elem = ELEM_C128);
	REFUSES(g.src.offset = 4);
	REFUSES(g.src.binding = 3);
	REFUSES(g.dst.binding = 0);
	REFUSES(g.dst.stride[0] = 20);
	REFUSES(g.dst.reg = 64);
	REFUSES(g.dst.zero = 1);
#undef REFUSES
	t_close(&sim);
}

static void malformed_scatters_are_refused(void **state)
{
	(void)state;
	t_open(&sim, "lanes=1");
	assert_int_equal(run_scatter(good_scatter(), 0), 0);
#define REFUSES(change) do { \
		struct whole w = good_scatter(); \
	\
		change; \
		assert_int_equal(run_scatter(w, 0), HW_ST_BAD_PROGRAM); \
		assert_int_equal(sim.refused_at, sizeof(struct isa_scalar)); \
	} while (0)
	REFUSES(w.s.insn.flags = ISA_FLAG_STABLE);
	REFUSES(w.s.zero[5] = 1);
	REFUSES(w.s.n_batch = 3);
	REFUSES(w.s.n_index = 9);
	REFUSES(w.s.index[0].limit = 8);
	REFUSES(w.s.index[0].limit = -1);
	REFUSES(w.s.index[0].step = 1);
	REFUSES(w.s.index[0].wrap = -1);
	REFUSES(w.s.insn.flags = ISA_FLAG_FILL);
	REFUSES(w.s.idx.elem = ELEM_F64);
	REFUSES(w.s.idx.stride[0] = 8);
	REFUSES(w.s.body.rank = 9);
	REFUSES(w.s.body.row_rank = 1);
	REFUSES(w.s.body.zero = 1);
	REFUSES(w.s.body.dim[0] = 5);
	REFUSES(w.s.body.dim[1] = -4);
	REFUSES(w.s.body.dim[7] = 0);
	REFUSES((w.s.body.n_in = 2, w.s.body.n_out = 0));
	REFUSES((w.s.body.n_in = 0, w.s.body.n_out = 2));
	REFUSES(w.upd.elem = ELEM_S32);
	REFUSES(w.dst.elem = ELEM_S32);
	REFUSES(w.upd.elem = w.dst.elem = ELEM_S32);
	REFUSES(w.upd.offset = 4);
	REFUSES(w.dst.offset = -4);
	REFUSES(w.dst.binding = 1);
	REFUSES(w.dst.combine = ISA_COMBINE_ADD);
	REFUSES(w.dst.value = 3);
	REFUSES(w.uop.b = 2);
	REFUSES(w.uop.op = UOP_IOTA);
	REFUSES(w.uop.op = UOP_RADD);
#undef REFUSES
	t_close(&sim);
}

/* Rows of 64 numbers added to a table of so many, which a COPY has just put there, if
 * it is large past the caches. */
static void add_to_a_copy(int64_t rows, int64_t updates)
{
	enum { WIDTH = 64, ROW = 4 * WIDTH };
	const uint64_t bytes = (uint64_t)rows * ROW, all[] = {
		bytes, (uint64_t)updates * 4, bytes, (uint64_t)updates * ROW };
	uint64_t at[5] = { 0 }, seed = 3;
	struct isa_copy c = { .insn = { ISA_COPY, 0, sizeof(c) }, .rank = 1, .elem_bytes = 4,
			      .dim = { rows * WIDTH, 1, 1, 1, 1, 1, 1, 1 }, .src.stride = { 4 },
			      .dst = { .binding = 2, .stride = { 4 } } };
	struct whole w = good_scatter();
	uint32_t *want = malloc(bytes), *table, *update;
	int32_t *index;

	t_program(&prog);
	for (unsigned i = 0; i < 4; i++) {
		at[i + 1] = at[i] + ((all[i] + 255) & ~255ull);
		t_bind(&prog, T_HBM_VA + at[i], all[i], HW_BIND_READ | HW_BIND_WRITE);
	}
	w.s.body.dim[0] = updates;
	w.s.body.dim[1] = WIDTH;
	w.s.index[0] = (struct isa_index){ rows - 1, ROW, 0 };
	w.upd = (struct isa_operand){ .elem = ELEM_U32, .binding = 3, .stride = { ROW, 4 } };
	w.dst.elem = w.uop.elem = ELEM_U32;
	t_add(&prog, &c, sizeof(c));
	t_add(&prog, &w, sizeof(w));
	t_halt(&prog);
	table = (void *)(sim.hbm + at[0]);
	index = (void *)(sim.hbm + at[1]);
	update = (void *)(sim.hbm + at[3]);
	for (int64_t i = 0; i < rows * WIDTH; i++)
		want[i] = table[i] = pick(&seed, 1000);
	for (int64_t i = 0; i < updates; i++) {
		index[i] = (int32_t)pick(&seed, (unsigned)rows);
		for (unsigned k = 0; k < WIDTH; k++)
			want[index[i] * WIDTH + k] += update[i * WIDTH + k] = pick(&seed, 1000);
	}
	assert_int_equal(t_run(&sim, &prog), 0);
	assert_memory_equal(sim.hbm + at[2], want, bytes);
	free(want);
}

static void tables_that_were_just_copied(void **state)
{
	static const int64_t rows[] = { 1000, 16383, 16384, 20000, 200000 };

	(void)state;
	t_open(&sim, "lanes=2");
	for (unsigned i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		add_to_a_copy(rows[i], 10);
		add_to_a_copy(rows[i], rows[i] / 2);
	}
	t_close(&sim);
}

static void registers_are_checked_before_indices(void **state)
{
	static const int64_t wrong[] = { 4, -4, 128, INT64_MAX, INT64_MIN };

	(void)state;
	t_open(&sim, "lanes=2");
	for (unsigned i = 0; i < 5; i++)
		for (unsigned operand = 0; operand < 3; operand++) {
			struct isa_gather g = good_gather();
			struct whole w = good_scatter();
			struct isa_operand *of_gather[] = { &g.src, &g.idx, &g.dst };
			struct isa_operand *of_scatter[] = { &w.upd, &w.s.idx, &w.dst };

			of_gather[operand]->reg = 1;
			assert_int_equal(run_gather(g, 0), 0);
			assert_int_equal(run_gather(g, wrong[i]), HW_ST_BOUNDS);
			assert_int_equal(sim.fault.operand, operand);
			assert_int_equal(sim.fault.binding, operand);
			assert_int_equal(sim.fault.is_write, operand == 2);
			assert_int_equal(sim.fault.pc, sizeof(struct isa_scalar));
			assert_int_equal(sim.fault.va, (uint64_t)wrong[i]);
			/* less of everything leaves room for a step */
			g.dim[0] = 3;
			g.index[0].limit = 6;
			assert_int_equal(run_gather(g, 2), HW_ST_ALIGNMENT);
			assert_int_equal(run_gather(g, 4), 0);

			of_scatter[operand]->reg = 1;
			assert_int_equal(run_scatter(w, 0), 0);
			assert_int_equal(run_scatter(w, wrong[i]), HW_ST_BOUNDS);
			assert_int_equal(sim.fault.operand, operand == 1 ? 1 : operand ? 3 : 2);
			assert_int_equal(sim.fault.binding, operand);
			assert_int_equal(sim.fault.is_write, operand == 2);
			w.s.body.dim[0] = 3;
			w.s.index[0].limit = 6;
			assert_int_equal(run_scatter(w, 2), HW_ST_ALIGNMENT);
			assert_int_equal(run_scatter(w, 4), 0);
		}
	t_close(&sim);
}

/* Windows and batches of one element over and over: no size outlasts the watchdog. */
static void endless_windows_end_by_the_watchdog(void **state)
{
	static const uint64_t room[] = { 128, 128, 128 };
	static const int64_t huge[][3] = {
		{ 1ll << 56, 1, 1 }, { 1, 1ll << 56, 1 }, { 1, 1, 1ll << 56 },
		{ 1 << 20, 1 << 20, 1 << 16 }, { 2, 1 << 27, 1 << 27 },
		{ 1, 1ll << 46, 1 << 10 },
	};

	(void)state;
	t_open(&sim, TY_LANES);
	for (unsigned i = 0; i < 6; i++)
		for (unsigned n_batch = 0; n_batch < 4; n_batch++) {
			struct isa_gather g = good_gather();
			struct whole w = good_scatter();

			g.rank = w.s.body.rank = 3;
			g.n_batch = w.s.n_batch = (uint8_t)n_batch;
			memcpy(g.dim, huge[i], sizeof(huge[i]));
			memcpy(w.s.body.dim, huge[i], sizeof(huge[i]));
			memset(g.src.stride, 0, sizeof(g.src.stride));
			memset(g.idx.stride, 0, sizeof(g.idx.stride));
			memset(g.dst.stride, 0, sizeof(g.dst.stride));
			memset(w.upd.stride, 0, sizeof(w.upd.stride));
			memset(w.s.idx.stride, 0, sizeof(w.s.idx.stride));
			memset(w.dst.stride, 0, sizeof(w.dst.stride));
			/* all bytes are 7, which an index of 4 bytes reads as too large */
			w.s.idx.elem = ELEM_S8;
			assert_int_equal(run_code(&g, sizeof(g), room, 0, 1000000),
					 HW_ST_WATCHDOG);
			assert_int_equal(run_code(&w, sizeof(w), room, 0, 1000000),
					 HW_ST_WATCHDOG);
			w.dst.value = 1;
			w.s.body.n_uop = 0;
			w.s.insn.bytes -= sizeof(w.uop);
			assert_int_equal(run_code(&w, sizeof(w) - sizeof(w.uop), room, 0,
						  1000000), HW_ST_WATCHDOG);
		}
	t_close(&sim);
}

/* Operands that meet otherwise than allowed spoil each other, and nothing else. */
static void overlap_is_harmless(void **state)
{
	_Alignas(16) uint8_t memory[300] = { 0 };
	uint8_t left = 0x11, right = 0x22;
	struct isa_gather g = good_gather();
	struct whole w = good_scatter();
	struct sim_run run;
	struct vt vt[3];
	unsigned n = ty_open(vt);

	(void)state;
	g.src.binding = w.upd.binding = 0;
	g.dst.binding = w.dst.binding = 0;
	g.dst.offset = 8;
	w.dst.offset = 8;
	for (unsigned i = 0; i < n; i++)
		for (unsigned which = 0; which < 2; which++) {
			int32_t idx[4] = { 0, 1, 0, 3 };
			struct vt_mem mem[] = { { memory + 4, 136 }, { idx, 16 } };
			struct in_code c = { .n = 0 };

			memset(memory, left, 4);
			memset(memory + 140, right, sizeof(memory) - 140);
			if (which) {
				w.s.body.n_uop = 0;
				w.dst.value = 1;
				in_put(&c, &w, sizeof(w) - sizeof(w.uop));
			} else {
				in_put(&c, &g, sizeof(g));
			}
			assert_int_equal(in_run(&vt[i], &c, mem, 2, &run), 0);
			for (unsigned j = 0; j < sizeof(memory); j++)
				if (j < 4 || j >= 140)
					assert_int_equal(memory[j], j < 4 ? left : right);
		}
	ty_close(vt, n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gathers_match_plain_loops),
		cmocka_unit_test(large_windows_match),
		cmocka_unit_test(rows_of_a_table),
		cmocka_unit_test(scatters_match_plain_loops),
		cmocka_unit_test(rows_that_meet_are_applied_in_order),
		cmocka_unit_test(arrays_with_places_of_their_own),
		cmocka_unit_test(malformed_gathers_are_refused),
		cmocka_unit_test(malformed_scatters_are_refused),
		cmocka_unit_test(tables_that_were_just_copied),
		cmocka_unit_test(registers_are_checked_before_indices),
		cmocka_unit_test(endless_windows_end_by_the_watchdog),
		cmocka_unit_test(overlap_is_harmless),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
