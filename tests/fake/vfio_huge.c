/* SPDX-License-Identifier: Apache-2.0 */
/* Memory without an IOMMU: huge pages at physical addresses, which a bus master reaches.
 * A part of vfio.c. */

static struct fake_huge *fake_find_huge(uint64_t physical)
{
	for (struct fake_huge *h = fake.huge; h < fake.huge + FAKE_HUGE_PAGES; h++)
		if (h->host && physical - h->physical < FAKE_HUGE)
			return h;
	return NULL;
}

static void fake_reach(unsigned device, const struct fake_huge *h)
{
	sim_dma_map(fake_sim(device), h->physical, fake.ram + (h->physical - FAKE_FIRST_SLOT),
		    FAKE_HUGE, true, NULL);
}

static bool fake_is_master(unsigned device)
{
	return fake.bare && fake.device[device].command & 4;
}

/* A device that may be master reaches all memory, others none. */
static void fake_set_command(unsigned device, uint16_t command)
{
	bool before, after;

	pthread_mutex_lock(&fake.huge_lock);
	before = fake_is_master(device);
	fake.device[device].command = command;
	after = fake_is_master(device);
	for (struct fake_huge *h = fake.huge; h < fake.huge + FAKE_HUGE_PAGES; h++) {
		if (h->host && before && !after)
			sim_dma_unmap(fake_sim(device), h->physical, NULL);
		if (h->host && !before && after)
			fake_reach(device, h);
	}
	pthread_mutex_unlock(&fake.huge_lock);
}

/* Far from the one before; every third is its neighbour, for runs of two. */
static uint64_t fake_next_physical(uint64_t before)
{
	uint64_t at = before + FAKE_HUGE;

	for (unsigned n = 0; n < FAKE_SLOTS; n++) {
		if ((n || fake.n_given % 3 != 2 || !before))
			at = FAKE_FIRST_SLOT + (uint64_t)fake.n_given * 1999 % FAKE_SLOTS *
				FAKE_HUGE;
		fake.n_given++;
		if (!fake_find_huge(at))
			return at;
	}
	abort();
}

static void *fake_mmap_huge(size_t bytes)
{
	size_t free_pages = 0, n = bytes / FAKE_HUGE;
	uint64_t physical = 0;
	uint8_t *p, *start;

	pthread_mutex_lock(&fake.huge_lock);
	for (unsigned i = 0; i < FAKE_HUGE_PAGES && i < fake.max_huge; i++)
		free_pages += !fake.huge[i].host;
	p = bytes % FAKE_HUGE || n > free_pages ? MAP_FAILED :
		mmap(NULL, bytes + FAKE_HUGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED) {
		pthread_mutex_unlock(&fake.huge_lock);
		errno = ENOMEM;
		return MAP_FAILED;
	}
	start = p + (FAKE_HUGE - (uintptr_t)p % FAKE_HUGE) % FAKE_HUGE;
	if (start > p)
		munmap(p, (size_t)(start - p));
	munmap(start + bytes, (size_t)(p + FAKE_HUGE - start));
	for (size_t i = 0; i < n; i++) {
		struct fake_huge *h = fake.huge;

		while (h->host)
			h++;
		physical = fake_next_physical(physical);
		*h = (struct fake_huge){ start + i * FAKE_HUGE, physical };
		if (mmap(h->host, FAKE_HUGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
			 fake.ram_fd, (off_t)(physical - FAKE_FIRST_SLOT)) == MAP_FAILED)
			abort();
		for (unsigned d = 0; d < FAKE_DEVICES; d++)
			if (fake_is_master(d))
				fake_reach(d, h);
	}
	pthread_mutex_unlock(&fake.huge_lock);
	return start;
}

/* The pages go to whoever asks next: a device that still writes there is a fault. */
static void fake_munmap_huge(uint8_t *at, size_t bytes)
{
	pthread_mutex_lock(&fake.huge_lock);
	for (struct fake_huge *h = fake.huge; h < fake.huge + FAKE_HUGE_PAGES; h++) {
		if (!h->host || h->host < at || h->host >= at + bytes)
			continue;
		for (unsigned d = 0; d < FAKE_DEVICES; d++)
			if (fake_is_master(d))
				sim_dma_unmap(fake_sim(d), h->physical, NULL);
		h->host = NULL;
		if (fallocate(fake.ram_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			      (off_t)(h->physical - FAKE_FIRST_SLOT), (off_t)FAKE_HUGE))
			abort();
	}
	pthread_mutex_unlock(&fake.huge_lock);
}

static ssize_t fake_read_list(enum fake_kind kind, void *to, size_t n, off_t offset)
{
	uint64_t at = (uint64_t)offset / 8 * 4096, entry = 0;
	struct fake_huge *h = NULL;

	if (n != 8 || offset % 8)
		return fake_refuse(EINVAL);
	pthread_mutex_lock(&fake.huge_lock);
	if (kind == FAKE_PAGEFLAGS) {
		entry = fake_find_huge(at) ? 1ull << 17 : 1ull << 5;
	} else if (!fake.absent) {
		for (h = fake.huge; h < fake.huge + FAKE_HUGE_PAGES; h++)
			if (h->host && at - (uintptr_t)h->host < FAKE_HUGE)
				break;
		entry = 1ull << 63 | 1ull << 61;
		if (fake.admin)
			entry |= h < fake.huge + FAKE_HUGE_PAGES ?
				(h->physical + (at - (uintptr_t)h->host)) / 4096 : 0x777;
	}
	pthread_mutex_unlock(&fake.huge_lock);
	memcpy(to, &entry, sizeof(entry));
	return sizeof(entry);
}
