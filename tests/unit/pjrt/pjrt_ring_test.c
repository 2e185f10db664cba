/* SPDX-License-Identifier: Apache-2.0 */
/* Aliases that are to be given what waits for them, through the table: refused, whichever way
 * leads back, however long, so that nobody waits for ever. */
#include <pthread.h>
#include <unistd.h>

#include "tests/unit/pjrt/pjrt_later.h"

/* Two that are given each other, and one that is given a view of itself by way of another. */
static void aliases_in_a_ring_are_refused(void **state)
{
	struct alias a = new_alias(), b = new_alias(), c = new_alias(), d = new_alias();
	struct PJRT_Buffer *cast, *real = filled(3);
	int64_t dims[] = { 4, 4 };
	float back[16];

	(void)state;
	assert_ok(fulfill(a, b.b));
	assert_error(fulfill(b, a.b), INVALID, "its own content");
	assert_error(fetch(a.b, back, 64), INVALID, "its own content");
	assert_error(fetch(b.b, back, 64), INVALID, "its own content");
	assert_ok(fulfill(c, d.b));
	cast = GET(Buffer_Bitcast, out_buffer, .buffer = c.b,
		   .element_type = PJRT_Buffer_Type_F32, .dims = dims, .num_dims = 2);
	assert_error(fulfill(d, cast), INVALID, "its own content");
	assert_error(fetch(cast, back, 64), INVALID, "its own content");
	drop_buffer(cast);
	drop_buffer(a.b);
	drop_buffer(b.b);
	drop_buffer(c.b);
	drop_buffer(d.b);
	/* What followed once follows no more. */
	a = new_alias();
	b = new_alias();
	assert_ok(fulfill(a, b.b));
	assert_ok(fulfill(b, real));
	c = new_alias();
	assert_ok(fulfill(c, a.b));
	expect(c.b, 3);
	drop_buffer(a.b);
	drop_buffer(b.b);
	drop_buffer(c.b);
	drop_buffer(real);
}

static struct PJRT_Buffer *copy_of(struct PJRT_Buffer *b, int device)
{
	return GET(Buffer_CopyToDevice, dst_buffer, .buffer = b,
		   .dst_device = device_of(client, device));
}

/* 2 * a + b */
static struct PJRT_Buffer *launched(struct PJRT_LoadedExecutable *x, struct PJRT_Buffer *a,
				    struct PJRT_Buffer *b)
{
	struct PJRT_Buffer *in[2] = { a, b }, *out;

	assert_ok(run_exe(x, in, 2, &out, NULL));
	return out;
}

/* The alias has that error then, and so has what waits for it. Drops both. */
static void refused(struct alias a, struct PJRT_Buffer *with)
{
	float back[16];

	assert_error(fulfill(a, with), INVALID, "its own content");
	assert_error(fetch(with, back, 64), INVALID, "its own content");
	assert_error(fetch(a.b, back, 64), INVALID, "its own content");
	drop_buffer(with);
	drop_buffer(a.b);
}

/* By way of another device, as an argument, as one that is donated, behind an event, and by way of
 * another alias; and nothing of it stays. */
static void what_waits_for_an_alias_is_not_its_content(void **state)
{
	int64_t before = bytes_in_use();
	struct PJRT_Buffer_DonateWithControlDependency_Args d;
	struct PJRT_Buffer *one = filled(1), *far, *back;
	struct alias a = new_alias(), b;

	(void)state;
	refused(a, copy_of(a.b, 0));
	a = new_alias();
	far = copy_of(a.b, 1);
	refused(a, copy_of(far, 0));
	drop_buffer(far);
	for (int i = 0; i < 2; i++) {
		a = new_alias();
		refused(a, launched(scale_add, i ? a.b : one, i ? one : a.b));
	}
	a = new_alias();
	back = launched(donating, a.b, one);
	assert_true(is_deleted(a.b));
	assert_error(fulfill(a, back), INVALID, "its own content");
	drop_buffer(back);
	drop_buffer(a.b);
	a = new_alias();
	back = copy_of(a.b, 0);
	assert_ok(CALL_AS(&d, Buffer_DonateWithControlDependency, .buffer = back));
	assert_error(fulfill(a, d.out_buffer), INVALID, "its own content");
	release(&d, 0);
	drop_buffer(d.out_buffer);
	drop_buffer(back);
	drop_buffer(a.b);
	a = new_alias();
	b = new_alias();
	back = copy_of(a.b, 0);
	assert_ok(fulfill(b, back));
	refused(a, launched(scale_add, b.b, b.b));
	drop_buffer(back);
	drop_buffer(b.b);
	drop_buffer(one);
	/* The client's thread may be about to let go of the last one. */
	for (int i = 0; i < 10000 && bytes_in_use() != before; i++)
		usleep(1000);
	assert_int_equal(bytes_in_use(), before);
}

/* What waited for an alias may be another's content, also when it was given meanwhile, and so may
 * what waits for the same. */
static void what_does_not_wait_for_an_alias_is_its_content(void **state)
{
	struct alias a = new_alias(), b = new_alias(), c = new_alias();
	struct PJRT_Buffer *one = filled(1), *out = launched(scale_add, a.b, one);
	struct PJRT_Buffer *copy = copy_of(out, 0);

	(void)state;
	assert_ok(fulfill(b, copy));
	assert_ok(fulfill(c, out));
	assert_ok(fulfill(a, one));
	expect(b.b, 3);
	expect(c.b, 3);
	drop_buffer(a.b);
	a = new_alias();
	assert_ok(fulfill(a, out));
	expect(a.b, 3);
	drop_buffer(a.b);
	drop_buffer(b.b);
	drop_buffer(c.b);
	drop_buffer(out);
	drop_buffer(copy);
	drop_buffer(one);
}

/* Chains that are longer than a thread's stack has room for: of copies, and of launches each of
 * which takes what the one before gives twice, so that there are more ways than there is time. */
static void rings_are_found_however_long_they_are(void **state)
{
	enum { LONG = 100000, LAUNCHES = 2000, WIDE = 100000 };
	struct PJRT_Buffer *b, *next, *side, **wide = malloc(WIDE * sizeof(struct PJRT_Buffer *));
	struct PJRT_Client *usual = client;
	struct alias a;

	(void)state;
	assert_non_null(wide);
	client = new_client("devices=1,hbm=256M,lanes=1");
	dev = device_of(client, 0);
	for (int is_ring = 0; is_ring < 2; is_ring++) {
		struct alias other = new_alias();

		a = new_alias();
		b = copy_of(a.b, 0);
		for (int i = 1; i < LONG; i++) {
			next = copy_of(b, 0);
			drop_buffer(b);
			b = next;
		}
		if (is_ring) {
			refused(a, b);
			drop_buffer(other.b);
			assert_ok(break_it(other));
			continue;
		}
		assert_ok(fulfill(other, b));
		side = filled(2);
		assert_ok(fulfill(a, side));
		expect(other.b, 2);
		drop_buffer(side);
		drop_buffer(other.b);
		drop_buffer(a.b);
		drop_buffer(b);
	}
	/* Many that share one. */
	a = new_alias();
	for (int i = 0; i < WIDE; i++)
		wide[i] = copy_of(a.b, 0);
	refused(a, wide[WIDE - 1]);
	for (int i = 0; i < WIDE - 1; i++)
		drop_buffer(wide[i]);
	free(wide);
	drop_client(client);
	client = usual;
	dev = device_of(client, 0);
	a = new_alias();
	b = copy_of(a.b, 0);
	for (int i = 0; i < LAUNCHES; i++) {
		next = launched(scale_add, b, b);
		drop_buffer(b);
		b = next;
	}
	refused(a, b);
}

struct giver { struct alias a; struct PJRT_Buffer *with; pthread_barrier_t *both; };

static void *give(void *arg)
{
	struct giver *g = arg;

	pthread_barrier_wait(g->both);
	return fulfill(g->a, g->with);
}

/* Each is given what waits for the other: whoever comes second is refused, and nobody waits. */
static void of_two_that_close_a_ring_at_once_one_is_refused(void **state)
{
	struct PJRT_Buffer *one = filled(1);
	pthread_barrier_t both;
	float back[16];

	(void)state;
	assert_int_equal(pthread_barrier_init(&both, NULL, 2), 0);
	for (int round = 0; round < 200; round++) {
		struct alias a = new_alias(), b = new_alias();
		struct giver g[2] = { { a, copy_of(b.b, 0), &both },
				      { b, launched(scale_add, a.b, one), &both } };
		struct PJRT_Error *e[2];
		pthread_t threads[2];

		for (int i = 0; i < 2; i++)
			assert_int_equal(pthread_create(&threads[i], NULL, give, &g[i]), 0);
		for (int i = 0; i < 2; i++)
			assert_int_equal(pthread_join(threads[i], (void **)&e[i]), 0);
		assert_true(!e[0] != !e[1]);
		assert_error(e[0] ? e[0] : e[1], INVALID, "its own content");
		for (int i = 0; i < 2; i++) {
			assert_error(fetch(g[i].a.b, back, 64), INVALID, "its own content");
			drop_buffer(g[i].a.b);
			drop_buffer(g[i].with);
		}
	}
	pthread_barrier_destroy(&both);
	drop_buffer(one);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(aliases_in_a_ring_are_refused),
		cmocka_unit_test(what_waits_for_an_alias_is_not_its_content),
		cmocka_unit_test(what_does_not_wait_for_an_alias_is_its_content),
		cmocka_unit_test(rings_are_found_however_long_they_are),
		cmocka_unit_test(of_two_that_close_a_ring_at_once_one_is_refused),
	};

	return cmocka_run_group_tests(tests, open_client, close_client);
}
