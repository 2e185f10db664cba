/* SPDX-License-Identifier: Apache-2.0 */
/* Shardings: every form that frameworks send is read, printed and given back as it should be,
 * and what is malformed is refused. */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/compiler/passes.h"
#include "runtime/compiler/spmd/sharding.h"

#define MODULE \
	"module() {num_partitions = 8, meshes = {" \
	"mesh = \"[x=4,y=2]\", three = \"[a=2,b=3,one=1,\\22odd name\\22=5]\", " \
	"back = \"[x=4]ids[3,2,1,0]\", single = \"[]ids[5]\"}} () {\n" \
	"func() {sym_name = \"main\"} () {\nreturn()\n}\n}"

struct form {
	const char *text;
	uint32_t rank;
	const char *prints;	/* as this */
	const char *proto;	/* as these bytes, hexadecimal */
};

static const struct form forms[] = {
	{ "@mesh[{x},{y}]", 2, "@mesh[{x},{y}]", "08031a0204024a01085201 00" },
	{ "@mesh[{},{}]", 2, "@mesh[{},{}]", "" },
	{ "@mesh[{?},{x,?}]", 2, "@mesh[{?},{x,?}]", "08031a03010402300 14a010852 0100" },
	{ "@mesh[{y},{x}]", 2, "@mesh[{y},{x}]", "08031a0202044a020402520201 00" },
	{ "@mesh[{x,y}]", 1, "@mesh[{x,y}]", "08031a01084a0108520100" },
	{ "@mesh[{y,x}]", 1, "@mesh[{y,x}]", "08031a01084a02040252020100" },
	{ "@mesh[{x:(1)2},{x:(2)2}]", 2, "@mesh[{x:(1)2},{x:(2)2}]",
	  "08031a0302020230 014a01085201 00" },
	{ "@mesh[{x:(1)2,x:(2)2}]", 1, "@mesh[{x}]", "08031a02040230014a0108520100" },
	{ "@mesh[{x}p3,{}p0]", 2, "@mesh[{x}p3,{}p0]", "08031a0304010230014a0108520100" },
	{ "@mesh[]", 0, "@mesh[]", "" },
	{ "@mesh[ { x } , { ? } ] replicated{y}", 2, "@mesh[{x},{?}]replicated{y}",
	  "08031a0304010230014a0108520100" },
	{ "@mesh[{}]manual{x}", 1, "@mesh[{}]manual{x}", "08031a0301040242 0204004a0108520100" },
	{ "@three[{\"odd name\",a},{one}]", 2, "@three[{\"odd name\",a},{}]",
	  "08031a030a010330014a02060552020100" },
	{ "@back[{x}]", 1, "@back[{x}]", "08031a0104220403020100" },
	{ "[x=4,y=2][{y}]", 1, "@mesh[{y}]", "08031a02020430014a02040252020100" },
	{ "@single[]", 0, "{maximal device=5}", "08011a0101220105" },
	{ "{replicated}", 2, "[d=8][{},{}]", "" },
	{ "{manual}", 2, "{manual}", "0804" },
	{ "{maximal device=3}", 1, "{maximal device=3}", "08011a0101220103" },
	{ "{unknown shard_as 7}", 1, "{unknown shard_as 7}", "0805" },
	{ "{devices=[4,2]<=[8]}", 2, "[d=8][{d:(1)4},{d:(4)2}]", "08031a0204024a0108520100" },
	{ "{devices=[1,2,4]<=[4,2]T(1,0) last_tile_dim_replicate}", 2, "[d=8][{},{d:(4)2}]",
	  "08031a030102 0430014a0204025202 0100" },
	{ "{devices=[2,2,2]<=[2,2,2]T(2,0,1)}", 3, "[d=8][{d:(4)2},{d:(1)2},{d:(2)2}]",
	  "08031a030202024a02040252020100" },
	{ "{devices=[8]<=[4,2]T(1,0)}", 1, "[d=8][{d:(4)2,d:(1)4}]",
	  "08031a01084a02040252020100" },
	{ "{devices=[1,1,4,2]<=[8] last_tile_dims={manual, replicated}}", 2,
	  "[d=8][{},{}]manual{d:(1)4}", "08031a0401010402420204004a0108520100" },
	{ "{devices=[2,3]<=[6]}", 2, "[d=6][{d:(1)2},{d:(2)3}]", "08031a0202034a0106520100" },
	{ "{devices=[6]0,3,1,4,2,5}", 1, "[d=6][{d:(2)3,d:(1)2}]",
	  "08031a01064a02020352020100" },
	{ "{devices=[2,2]0,2,1,3}", 2, "[d=4][{d:(2)2},{d:(1)2}]",
	  "08031a0202024a02020252020100" },
	{ "{devices=[4,1]3,1,2,0}", 2, "[d0=4]ids[3,1,2,0][{d0},{}]",
	  "08031a020401220403010200" },
};

/* The digits without blanks. */
static void as_hex(const uint8_t *p, size_t n, char *to)
{
	for (size_t i = 0; i < n; i++)
		to += sprintf(to, "%02x", p[i]);
	*to = 0;
}

static void without_blanks(const char *from, char *to)
{
	for (; *from; from++)
		if (*from != ' ')
			*to++ = *from;
	*to = 0;
}

static void check_form(struct spmd *s, const struct form *f)
{
	struct spmd_sharding *h = spmd_read(s, NULL, f->text, f->rank);
	char is[256], should[256];
	struct str text = { 0 };
	const uint8_t *bytes;
	size_t n;

	spmd_print(h, &text);
	if (strcmp(text.text, f->prints))
		fail_msg("%s prints as %s and not as %s", f->text, text.text, f->prints);
	str_free(&text);
	bytes = spmd_write_proto(s, h, &n);
	as_hex(bytes, n, is);
	without_blanks(f->proto, should);
	if (strcmp(is, should))
		fail_msg("%s is the message %s and not %s", f->text, is, should);
	spmd_print(spmd_read(s, NULL, f->prints, f->rank), &text);
	assert_string_equal(text.text, f->prints);
	str_free(&text);
}

static void check_forms(struct tc_ctx *c, void *arg)
{
	struct spmd *s = spmd_open(c);

	(void)arg;
	for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++)
		check_form(s, &forms[i]);
}

static const struct tc_source module = { MODULE, sizeof(MODULE) - 1, "mlir" };
static const struct tc_options eight = { .level = 1, .partitions = 8 };

static void test_forms(void **state)
{
	struct err err = { 0 };
	int code = tc_enter(&module, &eight, &err, check_forms, NULL);

	(void)state;
	if (code)
		fail_msg("%s", err.msg);
}

/* ---- what is malformed ---- */

static const struct { const char *text; uint32_t rank; const char *says; } wrong[] = {
	{ "", 1, "has no [" },
	{ "@", 1, "has no name" },
	{ "@other[{x}]", 1, "has no mesh of the module" },
	{ "@mesh[{z}]", 1, "has no axis of the mesh" },
	{ "@mesh[{x}]", 2, "has no ," },
	{ "@mesh[{x},{}]", 1, "has no ]" },
	{ "@mesh[{x},{x}]", 2, "has no axis that is not there yet" },
	{ "@mesh[{x:(1)2},{x}]", 2, "has no axis that is not there yet" },
	{ "[a=6][{a:(1)2},{a:(3)2}]", 2, "has no axis that is not there yet" },
	{ "@mesh[{x}]replicated{x}", 1, "has no axis that is not there yet" },
	{ "@mesh[{x:(3)2}]", 1, "has no part of the axis" },
	{ "@mesh[{x:(1)1}]", 1, "has no part of the axis" },
	{ "@mesh[{x:(0)2}]", 1, "has no part of the axis" },
	{ "@mesh[{x:(2)2147483647}]", 1, "has no part of the axis" },
	{ "@mesh[{x:(99999999999)2}]", 1, "has no smaller number" },
	{ "@mesh[{x}] ?", 1, "has no end" },
	{ "@mesh[{\"x}]", 1, "has no \"" },
	{ "@mesh[{\"\\zz\"}]", 1, "has no two hexadecimal digits" },
	{ "[x=0][{}]", 1, "has no mesh of 1 to 65536 devices" },
	{ "[x=256,y=257][{}]", 1, "has no mesh of 1 to 65536 devices" },
	{ "[x=2,x=2][{}]", 1, "has no mesh whose axes have different names" },
	{ "[x=2]ids[0,0][{}]", 1, "has no permutation of the devices" },
	{ "[x=2]ids[0][{}]", 1, "has no ," },
	{ "{}", 1, "has no replicated" },
	{ "{devices=[2]<=[4]}", 1, "has no grid of as many devices" },
	{ "{devices=[0]<=[0]}", 1, "has no grid of 1 to 65536 devices" },
	{ "{devices=[65536,65536]<=[4294967296]}", 2, "has no grid of 1 to 65536 devices" },
	{ "{devices=[2,2]<=[4]}", 1, "has no tiling of a tensor of that rank" },
	{ "{devices=[2,2]<=[4] last_tile_dims={manual,manual,manual}}", 1, "has no end of" },
	{ "{devices=[2]<=[2] last_tile_dims={sideways}}", 0, "has no `replicated` or `manual`" },
	{ "{devices=[4]<=[2,2]T(0,0)}", 1, "has no permutation" },
	{ "{devices=[4]<=[2,2]T(0,2)}", 1, "has no permutation" },
	{ "{devices=[2]0,7}", 1, "has no permutation of the devices" },
	{ "{replicated}}", 1, "has no end" },
};

static void read_wrong(struct tc_ctx *c, void *arg)
{
	size_t i = *(size_t *)arg;

	spmd_read(spmd_open(c), NULL, wrong[i].text, wrong[i].rank);
}

static void test_wrong(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		struct err err = { 0 };

		if (tc_enter(&module, &eight, &err, read_wrong, &i) != ERR_INVALID_ARGUMENT ||
		    !strstr(err.msg, wrong[i].says))
			fail_msg("%s gives: %s", wrong[i].text, err.msg);
	}
}

/* Any text of these letters reads or is refused. */
static void read_any(struct tc_ctx *c, void *arg)
{
	struct str text = { 0 };
	size_t n;

	struct spmd *s = spmd_open(c);
	struct spmd_sharding *h = spmd_read(s, NULL, arg, 2);

	spmd_print(h, &text);
	str_free(&text);
	if (!h->unreduced.n)
		spmd_write_proto(s, h, &n);
}

static uint32_t next_random(uint32_t *seed)
{
	*seed = *seed * 1664525u + 1013904223u;
	return *seed >> 8;
}

static void test_mutations(void **state)
{
	uint32_t seed = 1;
	unsigned n_read = 0;

	(void)state;
	for (unsigned turn = 0; turn < 20000; turn++) {
		static const char letters[] = "{}[]@?,:()=<T0123457890xymeshdvice \"";
		char text[128];
		struct err err = { 0 };
		int code;

		snprintf(text, sizeof(text), "%s",
			 forms[next_random(&seed) % (sizeof(forms) / sizeof(*forms))].text);
		for (unsigned k = next_random(&seed) % 3; k-- && *text;)
			text[next_random(&seed) % strlen(text)] =
				letters[next_random(&seed) % (sizeof(letters) - 1)];
		code = tc_enter(&module, &eight, &err, read_any, text);
		assert_true(!code || code == ERR_INVALID_ARGUMENT);
		n_read += !code;
	}
	assert_in_range(n_read, 1000, 19000);
}

/* ---- meshes ---- */

static void move(struct tc_ctx *c, void *arg)
{
	struct spmd *s = spmd_open(c);
	const struct spmd_mesh *mesh = spmd_find_mesh(s, "mesh");
	static const struct { const char *from, *to; } cases[] = {
		{ "[a=8][{a}]", "@mesh[{x,y}]" },
		{ "[a=2,b=4][{b},{a}]", "@mesh[{x:(2)2,y},{x:(1)2}]" },
		{ "[a=2,b=2,c=2][{c},{}]replicated{b}", "@mesh[{y},{}]replicated{x:(2)2}" },
		{ "{devices=[2,4]<=[2,4]}", "@mesh[{x:(1)2},{x:(2)2,y}]" },
		{ "[a=4][{a},{}]", NULL },
		{ "[a=8]ids[7,6,5,4,3,2,1,0][{a},{}]", NULL },
	};

	(void)arg;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		uint32_t rank = strchr(cases[i].from, '8') && i == 0 ? 1 : 2;
		struct spmd_sharding *h = spmd_read(s, NULL, cases[i].from, rank), to;
		struct str text = { 0 };
		bool fits = spmd_to_mesh(s, h, mesh, &to);

		assert_int_equal(fits, cases[i].to != NULL);
		if (!fits)
			continue;
		spmd_print(&to, &text);
		assert_string_equal(text.text, cases[i].to);
		str_free(&text);
	}
}

static void test_meshes(void **state)
{
	struct err err = { 0 };
	int code = tc_enter(&module, &eight, &err, move, NULL);

	(void)state;
	if (code)
		fail_msg("%s", err.msg);
}

/* ---- programs as they arrive ---- */

#define CAPTURED "tests/data/spmd/captured"

static char *read_file(const char *path, size_t *n)
{
	FILE *f = fopen(path, "rb");
	char *p = malloc(1 << 20);

	assert_non_null(f);
	assert_non_null(p);
	*n = fread(p, 1, (1 << 20) - 1, f);
	p[*n] = 0;
	fclose(f);
	return p;
}

static void read_program(const char *name, char **text)
{
	struct err err = { 0 };
	char path[256];
	size_t n;
	char *bytes;

	snprintf(path, sizeof(path), CAPTURED "/%s", name);
	bytes = read_file(path, &n);
	if (tc_print(&(struct tc_source){ bytes, n, strstr(name, ".pb") ? "hlo" : "mlir" },
		     &eight, "read", text, &err))
		fail_msg("%s: %s", name, err.msg);
	free(bytes);
}

static const struct { const char *name, *part; } arrive[] = {
	{ "dot__megatron.mlirbc", "meshes = {mesh = \"[x=4,y=2]\"}" },
	{ "dot__megatron.mlirbc", "(%3: tensor<16x32xf32> {sharding = \"@mesh[{x},{}]\"}" },
	{ "shmap__nested.mlirbc",
	  "in_shardings = {\"\" = \"@mesh[{x,?},{?}]\"}, manual_axes = \"{x}\"" },
	{ "shmap__nested.mlirbc", "manual_axes = \"{y}\", out_shardings = {\"\" = \"@mesh[]\"}" },
	{ "jit__shard_alike.mlirbc", "sharding_group(%3) {group_id = 0}" },
	{ "explicit__unreduced.mlirbc", "{sharding = \"@mesh[{x},{}]unreduced{y}\"}" },
	{ "jit__two_meshes.mlirbc", "meshes = {mesh = \"[x=4,y=2]\", mesh_0 = \"[p=2,q=4]\"}" },
	{ "jit__permuted_mesh.mlirbc", "sharding = \"@mesh[{x},{y}]\"" },
	{ "gspmd__dot__grad.mlirbc",
	  "{sharding = \"{devices=[1,2,4]<=[4,2]T(1,0) last_tile_dim_replicate}\"}" },
	{ "gspmd__jit__shard_alike.mlirbc", "sharding = \"{unknown shard_as 0}\"" },
	{ "torch__manual.hlo.pb", "%3: tensor<8x4xf32> {sharding = \"{devices=[4,1]0,1,2,3}\"}" },
	{ "torch__manual.hlo.pb", "\"SPMDFullToShardShape\", has_side_effect = false, "
	  "backend_config = \"\", sharding = \"{manual}\"" },
	{ "torch__both_axes_reversed.hlo.pb",
	  "sharding = \"{devices=[4,1]0,2,1,3}\"" },
};

static void test_arrive(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(arrive) / sizeof(*arrive); i++) {
		char *text;

		read_program(arrive[i].name, &text);
		if (!strstr(text, arrive[i].part))
			fail_msg("%s has no %s:\n%s", arrive[i].name, arrive[i].part, text);
		free(text);
	}
}

/* Broken programs with shardings are read or refused, and their texts are read or refused. */
static void read_shardings(struct tc_ctx *c, void *arg)
{
	struct spmd *s = spmd_open(c);
	const struct tc_block *b = tc_main(c);
	const struct tc_op *main = b->region->parent;

	(void)arg;
	for (unsigned i = 0; main->arg_info && i < b->n_args; i++)
		if (main->arg_info[i].sharding)
			spmd_read(s, NULL, main->arg_info[i].sharding, b->args[i]->type->rank);
}

static void test_broken(void **state)
{
	static const char *const names[] = { "dot__megatron", "shmap__nested",
					     "explicit__unreduced", "jit__shard_alike" };
	uint32_t seed = 7;

	(void)state;
	for (size_t k = 0; k < sizeof(names) / sizeof(*names); k++) {
		char path[256], *bytes, *copy;
		size_t n;

		snprintf(path, sizeof(path), CAPTURED "/%s.mlirbc", names[k]);
		bytes = read_file(path, &n);
		copy = malloc(n);
		for (unsigned turn = 0; turn < 4000; turn++) {
			struct err err = { 0 };

			memcpy(copy, bytes, n);
			for (unsigned m = 1 + next_random(&seed) % 3; m--;)
				copy[next_random(&seed) % n] = (char)next_random(&seed);
			tc_enter(&(struct tc_source){ copy, n, "mlir" }, &eight, &err,
				 read_shardings, NULL);
		}
		free(copy);
		free(bytes);
	}
}

/* For one device shardings say nothing; for several, a mesh of one has no axis to be manual. */
static void test_devices(void **state)
{
	static const char text[] =
		"module() {meshes = {mesh = \"[x=1]\"}} () {\nfunc() {sym_name = \"main\"} "
		"(%1: tensor<4xf32> {sharding = \"@mesh[{x}]\"}) {\n"
		"%2 = sharding_constraint(%1) {sharding = \"@mesh[{x}]\"} : tensor<4xf32>\n"
		"sharding_group(%2) {group_id = 1}\n"
		"%3 = manual_computation(%2) {in_shardings = {\"\" = \"@mesh[{x}]\"}, "
		"manual_axes = \"{x}\", out_shardings = {\"\" = \"@mesh[{x}]\"}} : "
		"tensor<4xf32> (%4: tensor<4xf32>) {\n"
		"%5 = add(%4, %4) : tensor<4xf32>\nreturn(%5)\n}\nreturn(%3)\n}\n}";
	const struct tc_source s = { text, sizeof(text) - 1, "mlir" };
	struct tc_result r;
	struct err err = { 0 };
	char *out;

	(void)state;
	assert_int_equal(tc_print(&s, NULL, "read", &out, &err), 0);
	assert_null(strstr(out, "sharding_"));
	assert_null(strstr(out, "manual"));
	assert_non_null(strstr(out, "add(%1, %1)"));
	free(out);
	assert_int_equal(tc_compile(&s, NULL, &r, &err), 0);
	tc_result_free(&r);
	assert_int_equal(tc_compile(&s, &eight, &r, &err), ERR_INVALID_ARGUMENT);
	assert_non_null(strstr(err.msg, "no axis of the mesh"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_forms),
		cmocka_unit_test(test_wrong),
		cmocka_unit_test(test_mutations),
		cmocka_unit_test(test_meshes),
		cmocka_unit_test(test_arrive),
		cmocka_unit_test(test_broken),
		cmocka_unit_test(test_devices),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
