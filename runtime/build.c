/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What names things: which build this is, as the linker noted it in the object that holds this
 * code, and SHA-256 for cache entries and programs. That is libcrypto's plain functions, which
 * use the CPU's instructions, need no provider or configuration and cannot fail; the digests of
 * EVP, which replace them in OpenSSL 3, can.
 */
#define OPENSSL_API_COMPAT 0x10100000L
#include <link.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <string.h>

#include "runtime/rt_internal.h"

struct search {
	uintptr_t here;
	char *out;
	size_t room;
};

static void print_note(const struct search *s, const uint8_t *p, size_t n)
{
	while (n >= sizeof(ElfW(Nhdr))) {
		const ElfW(Nhdr) *note = (const void *)p;
		size_t name = (note->n_namesz + 3u) & ~3u, desc = (note->n_descsz + 3u) & ~3u;
		const uint8_t *id = p + sizeof(*note) + name;

		if (name > n - sizeof(*note) || desc > n - sizeof(*note) - name)
			return;
		if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 &&
		    !memcmp(p + sizeof(*note), "GNU", 4)) {
			for (size_t i = 0; i < note->n_descsz && 2 * i + 2 < s->room; i++)
				snprintf(s->out + 2 * i, 3, "%02x", id[i]);
			return;
		}
		p += sizeof(*note) + name + desc;
		n -= sizeof(*note) + name + desc;
	}
}

static int look(struct dl_phdr_info *o, size_t size, void *arg)
{
	const struct search *s = arg;
	bool is_ours = false;

	(void)size;
	for (unsigned i = 0; i < o->dlpi_phnum; i++)
		is_ours |= o->dlpi_phdr[i].p_type == PT_LOAD &&
			   s->here - o->dlpi_addr - o->dlpi_phdr[i].p_vaddr <
			   o->dlpi_phdr[i].p_memsz;
	for (unsigned i = 0; is_ours && i < o->dlpi_phnum; i++)
		if (o->dlpi_phdr[i].p_type == PT_NOTE)
			print_note(s, (const uint8_t *)o->dlpi_addr + o->dlpi_phdr[i].p_vaddr,
				   o->dlpi_phdr[i].p_memsz);
	return is_ours;
}

void rt_build_id(char *out, size_t room)
{
	struct search s = { (uintptr_t)&rt_build_id, out, room };

	if (room)
		*out = '\0';
	dl_iterate_phdr(look, &s);
}

void rt_hash(const void *p, size_t n, char hex[65])
{
	static const char digits[] = "0123456789abcdef";
	unsigned char sum[SHA256_DIGEST_LENGTH];
	SHA256_CTX c;

	SHA256_Init(&c);
	SHA256_Update(&c, p, n);
	SHA256_Final(sum, &c);
	for (unsigned i = 0; i < sizeof(sum); i++) {
		hex[2 * i] = digits[sum[i] >> 4];
		hex[2 * i + 1] = digits[sum[i] & 15];
	}
	hex[64] = '\0';
}
