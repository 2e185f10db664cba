/* SPDX-License-Identifier: Apache-2.0 */
/* The executable format: bindings of peers' data. */
#include "tests/unit/hw/hw_image.h"

/* Of the temporaries and of what the members write: last of all, and like the member's own. */
static void peers_have_data_of_which_each_is_a_members_own(void **state)
{
	const uint16_t peer = HW_BIND_WRITE | HW_BIND_PEER;
	const char *none = "a peer's data is none that it could reach";
	struct gang g;

	(void)state;
	make_gang(&g);
	g.b[9] = (struct image_binding){ IMAGE_PEER_DATA, 0, peer, 2 * 1 + 1, g.b[1].bytes };
	assert_false(image_is_for_one_process(&g.p.im));
	g.p.im.n_bindings = 10;
	taken(&g);
	assert_true(image_is_for_one_process(&g.p.im) && image_draws(&g.p.im));
	for (unsigned k = 0; k < 9; k++) {
		g.b[9].index = 2 * k;
		g.b[9].bytes = g.b[k].bytes;
		if (k >= 1 && k <= 3)
			taken(&g);
		else
			refused_parts(&g.p, none);
	}
	g.b[9].bytes = g.b[1].bytes;
	for (uint32_t k = 9; k < 12; k++) {
		g.b[9].index = 2 * k;
		refused_parts(&g.p, none);
	}
	g.b[9].index = UINT32_MAX;
	refused_parts(&g.p, none);
	g.b[9] = (struct image_binding){ IMAGE_PEER_DATA, 0, peer, 2 * 2, g.b[2].bytes };
	g.b[2].access = HW_BIND_READ;
	refused_parts(&g.p, none);
	g.b[2].access |= HW_BIND_WRITE;
	g.p.shapes[0].memory_kind = 1;
	refused_parts(&g.p, none);
	g.p.shapes[0].memory_kind = 0;
	taken(&g);
	g.b[9] = (struct image_binding){ IMAGE_PEER_DATA, 0, peer, 2, g.b[1].bytes + 1 };
	refused_parts(&g.p, none);
	for (uint16_t access = 0; access < 16; access++) {
		g.b[9] = (struct image_binding){ IMAGE_PEER_DATA, 0, access, 2, g.b[1].bytes };
		if (access == peer || access == (HW_BIND_READ | HW_BIND_PEER))
			taken(&g);
		else
			refused_parts(&g.p, none);
	}
	g.b[9] = (struct image_binding){ IMAGE_PEER_DATA, 1, peer, 2, g.b[1].bytes };
	refused_parts(&g.p, none);
	g.b[9] = g.b[8];
	g.b[8] = (struct image_binding){ IMAGE_PEER_DATA, 0, peer, 2, g.b[1].bytes };
	refused_parts(&g.p, "unknown bits");
}

/* Slots behind those of mailboxes are of whom a member reads, itself too. */
static void members_read_their_own_data_as_that_of_peers(void **state)
{
	const uint16_t reads = HW_BIND_READ | HW_BIND_PEER;
	uint32_t peers[4][3];
	struct gang g;

	(void)state;
	make_gang(&g);
	for (unsigned m = 0; m < 4; m++) {
		memcpy(peers[m], g.peers[m], 2 * sizeof(peers[m][0]));
		peers[m][2] = 1;
	}
	g.p.im.peers = peers[0];
	g.p.im.n_slots = 3;
	g.b[9] = (struct image_binding){ IMAGE_PEER_DATA, 0, reads, 2 + 3 * 1, g.b[1].bytes };
	g.p.im.n_bindings = 10;
	taken(&g);
	/* of what it may only read, too, if that is in HBM */
	g.b[2].access = HW_BIND_READ;
	g.b[9] = (struct image_binding){ IMAGE_PEER_DATA, 0, reads, 2 + 3 * 2, g.b[2].bytes };
	taken(&g);
	g.p.shapes[0].memory_kind = 1;
	refused_parts(&g.p, "a peer's data is none that it could reach");
	g.p.shapes[0].memory_kind = 0;
	/* but nobody writes there */
	g.b[9] = (struct image_binding){ IMAGE_PEER_DATA, 0, HW_BIND_WRITE | HW_BIND_PEER,
					 2 + 3 * 1, g.b[1].bytes };
	refused_parts(&g.p, "a peer's data is none that it could reach");
	peers[1][2] = 0;
	taken(&g);
	peers[3][2] = 4;
	refused_parts(&g.p, "a peer is no other member");
	peers[3][2] = 1;
	peers[3][1] = 3;
	refused_parts(&g.p, "a peer is no other member");
}

/* Where the others have what is known to their own code alone. */
static void who_writes_to_peers_data_meets_the_same_code(void **state)
{
	struct image_meeting meetings[2];
	struct gang a, b;

	(void)state;
	make_meeting_gang(&a, meetings);
	make_meeting_gang(&b, meetings);
	b.p.text[0] ^= 1;
	b.p.im.text = b.p.text;
	expect_unlike(&a.p.im, &b.p.im, -1);
	a.b[9] = b.b[9] = (struct image_binding){ IMAGE_PEER_DATA, 0,
		HW_BIND_WRITE | HW_BIND_PEER, 2, a.b[1].bytes };
	a.p.im.n_bindings = b.p.im.n_bindings = 10;
	expect_unlike(&a.p.im, &b.p.im, 2);
	expect_unlike(&b.p.im, &a.p.im, 2);
	expect_unlike(&a.p.im, &a.p.im, -1);
	b.p.text[0] ^= 1;
	expect_unlike(&a.p.im, &b.p.im, -1);
	b.p.im.n_bindings = 9;
	expect_unlike(&a.p.im, &b.p.im, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(peers_have_data_of_which_each_is_a_members_own),
		cmocka_unit_test(members_read_their_own_data_as_that_of_peers),
		cmocka_unit_test(who_writes_to_peers_data_meets_the_same_code),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
