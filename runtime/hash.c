/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SHA-256: names for cache entries and programs. libcrypto's plain functions, which use
 * the CPU's instructions, need no provider or configuration and cannot fail; the digests
 * of EVP, which replace them in OpenSSL 3, can.
 */
#define OPENSSL_API_COMPAT 0x10100000L
#include <openssl/sha.h>

#include "runtime/rt_internal.h"

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
