/* SPDX-License-Identifier: Apache-2.0 */
/* Devices and processes as they change, on a terminal. */
#include <curses.h>
#include <inttypes.h>
#include <langinfo.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hal/base/clock.h"
#include "tools/xla-smi/smi.h"

#define SAMPLES 32
#define DEVICES 64	/* of which a history is kept */

enum sort { BY_MEMORY, BY_LAUNCHES, BY_PID, BY_COMMAND, N_SORTS };
static const char *const sort_names[] = { "memory", "launches", "pid", "command" };

struct history {
	char bus_id[64];
	uint64_t pid;
	signed char sample[SAMPLES];	/* percent; -1: unknown */
	unsigned n;	/* ever */
};

struct line {
	const struct smi_process *p;
	uint64_t memory, launches;
};

struct top {
	const struct smi_options *o;
	struct smi_node now, last;
	struct history history[DEVICES];
	unsigned n_histories;
	enum sort sort;
	bool is_reversed, is_typing, is_utf8, has_color, shows_help;
	bool shows_links;	/* in place of the processes */
	unsigned first;	/* process at the top of the list */
	char filter[48];
	double interval;
	int64_t looked;		/* when `now` was */
	double seconds;		/* since `last`; 0: there was none */
};

/* ---- text ---- */

/* `text` in exactly `width` columns; what the terminal can't show is '?'. */
static void put(const struct top *t, int y, int x, int width, const char *text)
{
	int n = 0;

	if (y < 0 || y >= LINES || x >= COLS)
		return;
	move(y, x);
	while (*text && n < width && x + n < COLS) {
		unsigned bytes = 1;

		while ((text[bytes] & 0xc0) == 0x80)
			bytes++;
		if (bytes > 1 && !t->is_utf8)
			addch('?');
		else
			addnstr(text, (int)bytes);
		text += bytes;
		n++;
	}
	for (; n < width && x + n < COLS; n++)
		addch(' ');
}

static void color(const struct top *t, double percent)
{
	if (t->has_color)
		attron(COLOR_PAIR(percent >= 90 ? 3 : percent >= 50 ? 2 : 1));
}

static void put_bar(const struct top *t, int y, int x, int width, double percent)
{
	char bar[64];
	/* A stranger's numbers need not fit each other. */
	int full = percent < 100 ? (int)(percent / 100 * width + 0.5) : width;

	for (int i = 0; i < width && i < 63; i++)
		bar[i] = i < full ? '|' : '.';
	bar[width < 63 ? width : 63] = 0;
	color(t, percent);
	put(t, y, x, width, bar);
	attrset(A_NORMAL);
}

static void put_history(const struct top *t, int y, int x, const struct history *h)
{
	static const char *const blocks[] = { "\u2581", "\u2582", "\u2583", "\u2584", "\u2585",
					      "\u2586", "\u2587", "\u2588" };
	static const char *const plain[] = { ".", ":", "-", "=", "+", "*", "#", "@" };

	for (unsigned i = 0; i < SAMPLES; i++) {
		unsigned at = h->n + i;
		int percent = at < SAMPLES ? -1 : h->sample[at % SAMPLES];

		put(t, y, x + (int)i, 1, percent < 0 ? " " :
		    (t->is_utf8 ? blocks : plain)[percent * 7 / 100]);
	}
}

static const char *size_text(struct smi_num n, char out[16])
{
	static const char units[] = "BKMGTPE";
	double value = (double)n.n;
	unsigned i = 0;

	while (value >= 1000 && i < 6) {
		value /= 1024;
		i++;
	}
	if (n.is_known)
		snprintf(out, 16, i && value < 10 ? "%.1f%c" : "%.0f%c", value, units[i]);
	else
		snprintf(out, 16, "-");
	return out;
}

/* ---- devices ---- */

static struct history *history_of(struct top *t, const struct smi_device *d)
{
	struct history *h;

	for (unsigned i = 0; i < t->n_histories; i++) {
		h = &t->history[i];
		if (h->pid == d->pid.n && !strcmp(h->bus_id, d->bus_id))
			return h;
	}
	if (t->n_histories == DEVICES)
		return NULL;
	h = &t->history[t->n_histories++];
	memset(h, 0, sizeof(*h));
	snprintf(h->bus_id, sizeof(h->bus_id), "%s", d->bus_id);
	h->pid = d->pid.n;
	return h;
}

static bool is_there(const struct top *t, const struct history *h)
{
	for (unsigned i = 0; i < SMI_COUNT(&t->now, devices); i++) {
		const struct smi_device *d = &SMI_GET(&t->now, devices, smi_device)[i];

		if (h->pid == d->pid.n && !strcmp(h->bus_id, d->bus_id))
			return true;
	}
	return false;
}

static void remember(struct top *t)
{
	unsigned left = 0;

	/* Those of models whose process is gone make room. */
	for (unsigned i = 0; i < t->n_histories; i++)
		if (is_there(t, &t->history[i]))
			t->history[left++] = t->history[i];
	t->n_histories = left;
	for (unsigned i = 0; i < SMI_COUNT(&t->now, devices); i++) {
		const struct smi_device *d = &SMI_GET(&t->now, devices, smi_device)[i];
		struct history *h = history_of(t, d);
		double u = d->utilisation_percent;

		if (h)
			h->sample[h->n++ % SAMPLES] = (signed char)(isnan(u) ? -1 : u > 100 ? 100 :
								    u < 0 ? 0 : u);
	}
}

static void put_device(struct top *t, int y, const struct smi_device *d)
{
	const struct history *h = history_of(t, d);
	char text[96], used[16], total[16];

	snprintf(text, sizeof(text), "%" PRIu64, d->index.n);
	put(t, y, 0, 3, text);
	put(t, y, 3, 14, d->bus_id);
	if (isnan(d->utilisation_percent)) {
		put(t, y, 18, 15, "-");
	} else {
		put_bar(t, y, 18, 10, d->utilisation_percent);
		snprintf(text, sizeof(text), "%3.0f%%", d->utilisation_percent);
		put(t, y, 28, 5, text);
	}
	if (d->memory_total_bytes.n)
		put_bar(t, y, 34, 10, 100.0 * (double)d->memory_used_bytes.n /
				      (double)d->memory_total_bytes.n);
	snprintf(text, sizeof(text), "%s/%s", size_text(d->memory_used_bytes, used),
		 size_text(d->memory_total_bytes, total));
	put(t, y, 45, 12, text);
	snprintf(text, sizeof(text), isnan(d->temperature_c) ? "-" : "%.0fC", d->temperature_c);
	put(t, y, 58, 5, text);
	snprintf(text, sizeof(text), isnan(d->power_w) ? "-" : "%.0fW", d->power_w);
	put(t, y, 63, 6, text);
	if (h)
		put_history(t, y, 69, h);
	put(t, y, 69 + SAMPLES + 1, COLS, d->state);
}

/* ---- processes ---- */

static enum sort sort_by;
static bool is_upside_down;

static int compare(const void *a, const void *b)
{
	const struct line *x = a, *y = b;
	int order = 0;

	switch (sort_by) {
	case BY_MEMORY: order = x->memory < y->memory ? 1 : x->memory > y->memory ? -1 : 0; break;
	case BY_LAUNCHES:
		order = x->launches < y->launches ? 1 : x->launches > y->launches ? -1 : 0;
		break;
	case BY_COMMAND: order = strcmp(x->p->command, y->p->command); break;
	default: break;
	}
	if (!order)
		order = x->p->pid.n < y->p->pid.n ? -1 : x->p->pid.n > y->p->pid.n;
	return is_upside_down ? -order : order;
}

static uint64_t launches_of(const struct smi_node *node, uint64_t pid)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < SMI_COUNT(node, clients); i++) {
		const struct smi_client *c = &SMI_GET(node, clients, smi_client)[i];

		if (c->pid.n == pid)
			n += c->n_execute.n;
	}
	return n;
}

static bool passes(const struct top *t, const struct smi_process *p)
{
	return !*t->filter || strstr(p->command, t->filter) || strstr(p->user, t->filter) ||
	       strstr(p->devices, t->filter) || strstr(p->running, t->filter);
}

/* The processes to be shown, sorted; the caller's to free. */
static struct line *pick(const struct top *t, unsigned *n)
{
	unsigned all = SMI_COUNT(&t->now, processes);
	struct line *l = calloc(all + 1, sizeof(*l));

	*n = 0;
	for (unsigned i = 0; l && i < all; i++) {
		const struct smi_process *p = &SMI_GET(&t->now, processes, smi_process)[i];
		uint64_t now = launches_of(&t->now, p->pid.n);
		uint64_t then = launches_of(&t->last, p->pid.n);

		if (passes(t, p))
			l[(*n)++] = (struct line){ p, p->memory_used_bytes.n,
						   now > then && then ? now - then : 0 };
	}
	sort_by = t->sort;
	is_upside_down = t->is_reversed;
	if (*n)
		qsort(l, *n, sizeof(*l), compare);
	return l;
}

static void put_process(const struct top *t, int y, const struct line *l)
{
	char text[32], size[16];

	snprintf(text, sizeof(text), "%" PRIu64, l->p->pid.n);
	put(t, y, 0, 8, text);
	put(t, y, 9, 10, l->p->user);
	put(t, y, 20, 16, l->p->command);
	put(t, y, 37, 8, size_text(l->p->memory_used_bytes, size));
	snprintf(text, sizeof(text), "%.0f", t->seconds > 0 ? (double)l->launches / t->seconds : 0);
	put(t, y, 46, 9, text);
	put(t, y, 56, 20, l->p->devices);
	put(t, y, 77, COLS, l->p->running);
}

static void put_heading(const struct top *t, int y, const char *text)
{
	attron(A_REVERSE);
	put(t, y, 0, COLS, text);
	attrset(A_NORMAL);
}

static int put_processes(struct top *t, int y)
{
	unsigned n;
	struct line *l = pick(t, &n);
	char text[160];

	snprintf(text, sizeof(text), "%-8s %-10s %-16s %-8s %-9s %-20s RUNNING", "PID", "USER",
		 "COMMAND", "MEMORY", "LAUNCH/S", "DEVICES");
	put_heading(t, y++, text);
	if (t->first >= n)
		t->first = n ? n - 1 : 0;
	for (unsigned i = t->first; l && i < n && y < LINES - 1; i++)
		put_process(t, y++, &l[i]);
	if (!n)
		put(t, y++, 0, COLS, *t->filter ? "no process fits the filter" :
		    "no process uses a device");
	free(l);
	return y;
}

/* ---- links ---- */

/* The same link as it was at the last look; NULL: it was not there. */
static const struct smi_link *before(const struct top *t, const struct smi_link *l)
{
	for (unsigned i = 0; i < SMI_COUNT(&t->last, links); i++) {
		const struct smi_link *b = &SMI_GET(&t->last, links, smi_link)[i];

		if (b->pid.n == l->pid.n && !strcmp(b->bus_id, l->bus_id) &&
		    !strcmp(b->port, l->port) && b->peer_chip.n == l->peer_chip.n)
			return b;
	}
	return NULL;
}

/* Bytes a second between two readings; unknown where there is one, or a reset in between. */
static struct smi_num rate(const struct top *t, struct smi_num now, const struct smi_num *then)
{
	struct smi_num r = { 0 };

	if (!then || !now.is_known || !then->is_known || now.n < then->n || !(t->seconds > 0))
		return r;
	return smi_known((uint64_t)((double)(now.n - then->n) / t->seconds));
}

static void put_link(const struct top *t, int y, const struct smi_link *l)
{
	const struct smi_link *b = before(t, l);
	char text[32], size[16];

	put(t, y, 0, 16, l->bus_id);
	put(t, y, 17, 5, l->port);
	snprintf(text, sizeof(text), "%" PRIu64, l->peer_chip.n);
	put(t, y, 23, 7, text);
	put(t, y, 31, 9, size_text(rate(t, l->tx_bytes, b ? &b->tx_bytes : NULL), size));
	put(t, y, 41, 9, size_text(rate(t, l->rx_bytes, b ? &b->rx_bytes : NULL), size));
	put(t, y, 51, 9, size_text(l->tx_bytes, size));
	put(t, y, 61, 9, size_text(l->rx_bytes, size));
	snprintf(text, sizeof(text), "%" PRIu64, l->n_refused.n);
	if (t->has_color && (!l->up.n || l->n_refused.n))
		attron(COLOR_PAIR(3));
	put(t, y, 71, 9, text);
	put(t, y, 81, COLS, l->state);
	attrset(A_NORMAL);
}

static void put_links(struct top *t, int y)
{
	unsigned n = SMI_COUNT(&t->now, links);
	char text[120];

	snprintf(text, sizeof(text), "%-17s%-6s%-8s%-10s%-10s%-10s%-10s%-10sSTATE", "BUS ID",
		 "PORT", "TO CHIP", "SENT/S", "RECVD/S", "SENT", "RECEIVED", "REFUSED");
	put_heading(t, y++, text);
	if (t->first >= n)
		t->first = n ? n - 1 : 0;
	for (unsigned i = t->first; i < n && y < LINES - 1; i++)
		put_link(t, y++, &SMI_GET(&t->now, links, smi_link)[i]);
	if (!n)
		put(t, y, 0, COLS, "no process tells of links");
}

/* ---- the screen ---- */

static void draw(struct top *t)
{
	unsigned n = SMI_COUNT(&t->now, devices);
	int y = 0, room = LINES / 2 > 3 ? LINES / 2 : 3;
	char text[800];

	erase();
	snprintf(text, sizeof(text), "%s  %s  %u devices, %u processes, every %g s%s%s",
		 t->now.time, t->now.host, n, SMI_COUNT(&t->now, processes), t->interval,
		 *t->now.problem ? "  " : "", t->now.problem);
	put(t, y++, 0, COLS, text);
	snprintf(text, sizeof(text), "%-3s%-15s%-16s%-23s %-5s%-6s%-*s STATE", "N", "BUS ID",
		 "UTIL", "MEMORY", "TEMP", "POWER", SAMPLES, "HISTORY");
	put_heading(t, y++, text);
	for (unsigned i = 0; i < n && y < room; i++)
		put_device(t, y++, &SMI_GET(&t->now, devices, smi_device)[i]);
	if (!n)
		put(t, y++, 0, COLS, "no device");
	if (t->shows_links)
		put_links(t, y + 1);
	else
		put_processes(t, y + 1);
	if (t->is_typing)
		snprintf(text, sizeof(text), "filter: %s_", t->filter);
	else if (t->shows_help)
		snprintf(text, sizeof(text), "q quit  s sort  r reverse  / filter  l links  "
			 "j k scroll  + - interval");
	else
		snprintf(text, sizeof(text), "by %s%s%s%s  h help", sort_names[t->sort],
			 t->is_reversed ? ", reversed" : "", *t->filter ? ", of " : "", t->filter);
	put_heading(t, LINES - 1, text);
	refresh();
}

static void type(struct top *t, int key)
{
	size_t n = strlen(t->filter);

	if (key == '\n' || key == '\r' || key == KEY_ENTER)
		t->is_typing = false;
	if (key == 27) {
		t->is_typing = false;
		*t->filter = 0;
	}
	if ((key == KEY_BACKSPACE || key == 127 || key == 8) && n)
		t->filter[n - 1] = 0;
	if (key >= ' ' && key < 127 && n + 1 < sizeof(t->filter)) {
		t->filter[n] = (char)key;
		t->filter[n + 1] = 0;
	}
}

/* False: the end. */
static bool press(struct top *t, int key)
{
	if (t->is_typing) {
		type(t, key);
		return true;
	}
	switch (key) {
	case 'q': return false;
	case 's': t->sort = (t->sort + 1) % N_SORTS; break;
	case 'r': t->is_reversed = !t->is_reversed; break;
	case '/': t->is_typing = true; *t->filter = 0; break;
	case 'l': t->shows_links = !t->shows_links; t->first = 0; break;
	case 'h': case '?': t->shows_help = !t->shows_help; break;
	case 'j': case KEY_DOWN: t->first++; break;
	case 'k': case KEY_UP: t->first -= t->first > 0; break;
	case '+': t->interval = t->interval < 60 ? t->interval * 2 : t->interval; break;
	case '-': t->interval = t->interval > 0.1 ? t->interval / 2 : t->interval; break;
	default: break;
	}
	return true;
}

static int look(struct top *t)
{
	int64_t before = t->looked;

	smi_node_free(&t->last);
	t->last = t->now;
	t->looked = clock_ns();
	t->seconds = before ? (double)(t->looked - before) / 1e9 : 0;
	smi_gather(t->o, &t->now);
	smi_compare(&t->now, &t->last);
	remember(t);
	return smi_select(&t->now, t->o->device, t->o->n_devices);
}

static int run(struct top *t)
{
	uint64_t looks = 0;
	bool goes_on = true;
	int status = SMI_OK;

	while (goes_on && !status) {
		int64_t next = clock_after((int64_t)(t->interval * 1e9)), left;

		status = look(t);
		looks++;
		do {
			int key;

			draw(t);
			left = next - clock_ns();
			timeout(left > 0 ? (int)(left / 1000000) + 1 : 0);
			key = getch();
			/* The terminal is gone. */
			if (key == ERR && !isatty(STDIN_FILENO))
				goes_on = false;
			if (key != ERR)
				goes_on = press(t, key);
			left = next - clock_ns();
		} while (goes_on && left > 0);
		if (t->o->count && looks >= t->o->count)
			goes_on = false;
	}
	return status;
}

static void start_colors(struct top *t)
{
	t->has_color = has_colors() && start_color() != ERR;
	if (!t->has_color)
		return;
	use_default_colors();
	init_pair(1, COLOR_GREEN, -1);
	init_pair(2, COLOR_YELLOW, -1);
	init_pair(3, COLOR_RED, -1);
}

int smi_top(const struct smi_options *o, int argc, char **argv)
{
	struct top *t = calloc(1, sizeof(*t));
	int status;

	(void)argc;
	(void)argv;
	if (!t || !isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)) {
		fputs(t ? "xla-smi: top needs a terminal; xla-smi watch prints again and again\n" :
		      "xla-smi: out of memory\n", stderr);
		free(t);
		return SMI_FAILED;
	}
	setlocale(LC_CTYPE, "");
	t->is_utf8 = !strcmp(nl_langinfo(CODESET), "UTF-8");
	t->o = o;
	t->interval = o->interval;
	/* newterm and not initscr, which ends the process where it does not know the terminal. */
	if (!newterm(NULL, stdout, stdin)) {
		fprintf(stderr, "xla-smi: the terminal \"%s\" is not known\n",
			getenv("TERM") ? getenv("TERM") : "");
		free(t);
		return SMI_FAILED;
	}
	cbreak();
	noecho();
	keypad(stdscr, TRUE);
	curs_set(0);
	set_escdelay(25);
	start_colors(t);
	status = run(t);
	endwin();
	if (status == SMI_NO_DEVICE)
		fputs("xla-smi: the device is gone\n", stderr);
	smi_node_free(&t->now);
	smi_node_free(&t->last);
	free(t);
	return status;
}
