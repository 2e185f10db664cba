/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In a guest: two cards of the kernel driver in one HAL. Copies go from one's HBM to the other's
 * and never by way of the host, both ways, of every size. The function of one is reset under
 * copies of the other: that tells its name, and when both live copies go on.
 *
 *	peers		as root, of accel:0 and accel:1
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hal/base/clock.h"
#include "hal/hal.h"

#define SECOND 1000000000ll
#define KiB 1024ull
#define MOST (1280 * KiB)

static struct hal *hal;
static struct hal_device *dev[2];
static struct err err;

static void fail(const char *what)
{
	printf("FAIL %s: %s\n", what, err.msg);
	exit(1);
}

#define OK(call) do { \
	memset(&err, 0, sizeof(err)); \
	if (call) \
		fail(#call); \
} while (0)
#define EXPECT(x) do { \
	if (!(x)) \
		fail("not so: " #x); \
} while (0)

static int copy(unsigned from, struct hal_mem *dst, struct hal_mem *src, uint64_t bytes)
{
	struct hal_queue *q = hal_device_queue(dev[from], HAL_QUEUE_DMA);
	uint64_t value;
	int code = hal_queue_copy(q, dst, 64, src, 128, bytes, NULL, 0, &value, &err);

	return code ? code : hal_queue_wait(q, value, clock_after(60 * SECOND), &err);
}

/* bytes of it, from dev[from] to the other; what is around them stays. */
static void check_copy(unsigned from, uint64_t bytes, unsigned seed)
{
	uint8_t *x = malloc(MOST), *got = malloc(MOST);
	struct hal_mem *src, *dst;

	for (uint64_t i = 0; i < bytes + 192; i++)
		x[i] = (uint8_t)((i + seed) * 2654435761u >> 13);
	memset(got, 0xa5, MOST);
	OK(hal_mem_alloc(dev[from], HAL_MEM_HBM, bytes + 192, "source", &src, &err));
	OK(hal_mem_alloc(dev[!from], HAL_MEM_HBM, bytes + 192, "target", &dst, &err));
	OK(hal_copy_in(src, 0, x, bytes + 192, clock_after(60 * SECOND), &err));
	OK(hal_copy_in(dst, 0, got, bytes + 192, clock_after(60 * SECOND), &err));
	OK(copy(from, dst, src, bytes));
	OK(hal_copy_out(got, dst, 0, bytes + 192, clock_after(60 * SECOND), &err));
	EXPECT(!memcmp(got + 64, x + 128, bytes));
	for (unsigned i = 0; i < 64; i++)
		EXPECT(got[i] == 0xa5 && got[64 + bytes + i] == 0xa5);
	hal_mem_free(src);
	hal_mem_free(dst);
	free(x);
	free(got);
}

static void reset_function(unsigned i)
{
	char path[96];
	int f;

	snprintf(path, sizeof(path), "/sys/class/accel/accel%u/device/reset", i);
	f = open(path, O_WRONLY);
	if (f < 0 || write(f, "1", 1) != 1) {
		printf("FAIL: %s can't be written\n", path);
		exit(1);
	}
	close(f);
}

static void check_reset(unsigned from)
{
	struct hal_device_info info;
	struct hal_mem *src, *dst;
	int code = 0;

	OK(hal_device_info(hal, hal_device_index(dev[!from]), &info, &err));
	OK(hal_mem_alloc(dev[from], HAL_MEM_HBM, 64 * KiB + 192, "source", &src, &err));
	OK(hal_mem_alloc(dev[!from], HAL_MEM_HBM, 64 * KiB + 192, "target", &dst, &err));
	OK(copy(from, dst, src, 64 * KiB));
	reset_function(!from);
	for (int64_t end = clock_after(20 * SECOND); !code && clock_ns() < end; )
		code = copy(from, dst, src, 64 * KiB);
	/* By whichever of the two: the fault, or the other's death. */
	EXPECT(code && strstr(err.msg, info.bus_id));
	printf("# %s\n", err.msg);
	/* This one lives; what is its own still works. */
	OK(hal_device_error(dev[from], &err));
	OK(hal_device_reset(dev[!from], &err));
	OK(copy(from, dst, src, 64 * KiB));
	hal_mem_free(src);
	hal_mem_free(dst);
	check_copy(from, 64 * KiB, 9);
	check_copy(!from, 64 * KiB, 10);
}

int main(void)
{
	const uint64_t sizes[] = { 1, 63, 4095, 4096, 4097, 64 * KiB, MOST - 192 };

	setvbuf(stdout, NULL, _IOLBF, 0);
	OK(hal_create(&(struct hal_options){ .devices = "accel:0,accel:1" }, &hal, &err));
	for (unsigned i = 0; i < 2; i++)
		OK(hal_device_open(hal, i, &dev[i], &err));
	EXPECT(hal_may_copy(dev[0], dev[1]) && !hal_is_linked(dev[0], dev[1]));
	for (unsigned i = 0; i < 14; i++)
		check_copy(i % 2, sizes[i / 2], i);
	printf("ok copies\n");
	for (unsigned i = 0; i < 2; i++)
		check_reset(i);
	printf("ok resets\n");
	for (unsigned i = 0; i < 2; i++)
		hal_device_close(dev[i]);
	hal_destroy(hal);
	return 0;
}
