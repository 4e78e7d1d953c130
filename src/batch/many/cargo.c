#include "batch/many/cargo.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/dir.h"
#include "base/fd.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/newfile.h"
#include "base/str.h"
#include "base/strv.h"
#include "core/deal/files.h"

/* A file or directory that was fetched, or will be. */
struct item {
	struct list link;
	char *name;
	size_t users;
	bool here;
	struct strv made; /* what was not there before, in the order in which it was made */
};

/* What one order needs. */
struct load {
	struct list link;
	uint32_t order, lease;
	struct item *items[FILES_MAX];
	size_t count, next; /* next: the first that may not be here */
	bool waits;
};

struct cargo {
	const struct cargo_handler *handler;
	void *arg;
	int root;
	struct list items, loads;
	size_t idle;	     /* items that nobody uses */
	struct load *active; /* whose next file is being fetched; NULL: none */
	struct tree tree;    /* the way through it, if that is a directory */
	struct newfile file;
	struct buf text;	/* a list or a link instead */
	uint64_t offset, asked; /* bytes */
};

struct cargo *cargo_new(const struct cargo_handler *handler, void *arg)
{
	struct cargo *cargo = NEW(struct cargo);
	*cargo = (struct cargo){ .handler = handler,
				 .arg = arg,
				 .root = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC),
				 .file = NEWFILE_INIT };
	list_init(&cargo->items);
	list_init(&cargo->loads);
	return cargo;
}

static void free_item(struct item *item)
{
	list_unlink(&item->link);
	strv_done(&item->made);
	free(item->name);
	free(item);
}

void cargo_free(struct cargo *cargo)
{
	if (!cargo)
		return;
	newfile_drop(&cargo->file);
	buf_done(&cargo->text);
	tree_done(&cargo->tree);
	list_foreach(link, &cargo->loads) free(list_entry(link, struct load, link));
	list_foreach(link, &cargo->items) free_item(list_entry(link, struct item, link));
	fd_close(&cargo->root);
	free(cargo);
}

/* ---- files ---- */

static struct item *find_item(struct cargo *cargo, const char *name)
{
	list_foreach(link, &cargo->items)
	{
		struct item *item = list_entry(link, struct item, link);
		if (str_eq(item->name, name))
			return item;
	}
	return NULL;
}

static struct item *use_item(struct cargo *cargo, const char *name)
{
	struct item *item = find_item(cargo, name);
	if (!item) {
		item = NEW(struct item);
		item->name = mem_strdup(name);
		list_append(&cargo->items, &item->link);
	} else if (item->users == 0) {
		cargo->idle--;
	}
	item->users++;
	return item;
}

/* A directory only if nothing else is in it. */
static void remove_path(const struct cargo *cargo, const char *path)
{
	const char *name;
	AUTO(fd_close) int dir = dir_beneath(cargo->root, path, false, &name, NULL);
	if (dir >= 0 && unlinkat(dir, name, 0) < 0)
		unlinkat(dir, name, AT_REMOVEDIR);
}

/* The oldest that nobody uses is forgotten, and would be fetched again. */
static void forget_one(struct cargo *cargo)
{
	list_foreach(link, &cargo->items)
	{
		struct item *item = list_entry(link, struct item, link);
		if (item->users > 0)
			continue;
		free_item(item);
		cargo->idle--;
		return;
	}
}

static void leave_item(struct cargo *cargo, struct item *item, bool cleanup)
{
	if (--item->users > 0)
		return;
	bool gone = item->made.count > 0 && cleanup;
	for (size_t i = item->made.count; gone && i > 0; i--)
		remove_path(cargo, item->made.items[i - 1]);
	if (gone || !item->here) {
		free_item(item);
		return;
	}
	if (++cargo->idle > CARGO_IDLE_MAX)
		forget_one(cargo);
}

/* ---- fetching ---- */

static struct load *find_load(struct cargo *cargo, uint32_t lease)
{
	list_foreach(link, &cargo->loads)
	{
		struct load *load = list_entry(link, struct load, link);
		if (load->lease == lease)
			return load;
	}
	return NULL;
}

static void ask(struct cargo *cargo, size_t bytes)
{
	const struct load *load = cargo->active;
	struct work_msg fetch = { .type = WORK_FETCH,
				  .order = load->order,
				  .lease = load->lease,
				  .number = (uint32_t)load->next,
				  .count = (uint32_t)bytes,
				  .value = cargo->asked,
				  .text = tree_path(&cargo->tree),
				  .len = strlen(tree_path(&cargo->tree)) };
	cargo->asked += bytes;
	cargo->handler->on_ask(cargo->arg, &fetch);
}

static void abandon(struct cargo *cargo)
{
	newfile_drop(&cargo->file);
	tree_begin(&cargo->tree);
	cargo->active = NULL;
}

/* As this host calls what is being fetched. */
static char *present_name(const struct cargo *cargo, const struct load *load)
{
	const char *name = load->items[load->next]->name, *path = tree_path(&cargo->tree);
	return *path && cargo->active == load ? mem_printf("%s/%s", name, path) : mem_strdup(name);
}

static void fail(struct cargo *cargo, struct load *load, const char *why)
{
	AUTO_FREE char *name = present_name(cargo, load);
	AUTO_FREE char *text = mem_printf("the transfer of %s: %s", name, why);
	load->waits = false;
	if (cargo->active == load)
		abandon(cargo);
	cargo->handler->on_failed(cargo->arg, load->order, load->lease, text);
}

/* Fetches what is next of the active load. */
static void begin(struct cargo *cargo)
{
	struct err err = ERR_INIT;
	AUTO_FREE char *path = present_name(cargo, cargo->active);
	const char *name;
	int r = dir_beneath(cargo->root, path, true, &name, &err);
	if (r >= 0)
		r = newfile_open(&cargo->file, r, name, &err);
	buf_clear(&cargo->text);
	cargo->offset = cargo->asked = 0;
	if (r < 0)
		fail(cargo, cargo->active, err.msg);
	else
		ask(cargo, CARGO_WINDOW);
}

static struct load *first_waiting(struct cargo *cargo)
{
	list_foreach(link, &cargo->loads)
	{
		struct load *load = list_entry(link, struct load, link);
		if (load->waits)
			return load;
	}
	return NULL;
}

static void go_on(struct cargo *cargo)
{
	struct load *load;
	while (!cargo->active && (load = first_waiting(cargo))) {
		while (load->next < load->count && load->items[load->next]->here)
			load->next++;
		if (load->next == load->count) {
			load->waits = false;
			cargo->handler->on_here(cargo->arg, load->lease);
		} else {
			tree_begin(&cargo->tree);
			cargo->active = load;
			begin(cargo);
		}
	}
}

void cargo_fetch(struct cargo *cargo, uint32_t order, uint32_t lease, const struct strv *names)
{
	struct load *load = find_load(cargo, lease);
	if (load && cargo->active == load)
		abandon(cargo);
	if (!load) {
		load = NEW(struct load);
		load->order = order;
		load->lease = lease;
		load->count = MIN(names->count, FILES_MAX);
		for (size_t i = 0; i < load->count; i++)
			load->items[i] = use_item(cargo, names->items[i]);
		list_append(&cargo->loads, &load->link);
	}
	load->waits = true;
	go_on(cargo);
}

static int make_directory(struct cargo *cargo, const char *path, bool *ret_replaced,
			  struct err *err)
{
	const char *name;
	struct stat st;
	AUTO(fd_close) int dir = dir_beneath(cargo->root, path, true, &name, err);
	if (dir < 0)
		return dir;
	*ret_replaced = mkdirat(dir, name, 0777) < 0;
	if (*ret_replaced && errno != EEXIST)
		return err_set(err, errno, "make directory %s: %m", name);
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode))
		return err_set(err, EEXIST, "something else than a directory is there");
	return tree_add(&cargo->tree, buf_str(&cargo->text), buf_len(&cargo->text), err);
}

static int make_link(struct cargo *cargo, const char *path, bool *ret_replaced, struct err *err)
{
	const char *name;
	struct stat st;
	AUTO(fd_close) int dir = dir_beneath(cargo->root, path, true, &name, err);
	if (dir < 0)
		return dir;
	*ret_replaced = fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
	if (*ret_replaced && !S_ISLNK(st.st_mode))
		return err_set(err, EEXIST, "something else than a link is there");
	if ((*ret_replaced && unlinkat(dir, name, 0) < 0) ||
	    symlinkat(buf_str(&cargo->text), dir, name) < 0)
		return err_set(err, errno, "%m");
	return 0;
}

/* All of it is here. */
static int put_in_place(struct cargo *cargo, const struct work_msg *piece, const char *path,
			bool *ret_replaced, struct err *err)
{
	if (!(piece->flags & (WORK_LIST | WORK_LINK)))
		return newfile_place(&cargo->file, piece->count, ret_replaced, err);
	newfile_drop(&cargo->file);
	return piece->flags & WORK_LIST ? make_directory(cargo, path, ret_replaced, err)
					: make_link(cargo, path, ret_replaced, err);
}

static void finish(struct cargo *cargo, const struct work_msg *piece)
{
	struct load *load = cargo->active;
	struct item *item = load->items[load->next];
	AUTO_FREE char *path = present_name(cargo, load);
	bool replaced = true;
	struct err err = ERR_INIT;
	if (put_in_place(cargo, piece, path, &replaced, &err) < 0) {
		fail(cargo, load, err.msg);
		return;
	}
	if (!replaced)
		strv_add(&item->made, path);
	if (tree_next(&cargo->tree)) {
		begin(cargo);
		return;
	}
	item->here = true;
	abandon(cargo);
}

static int keep(struct cargo *cargo, const struct work_msg *piece)
{
	if (!(piece->flags & (WORK_LIST | WORK_LINK)))
		return fd_write_all(cargo->file.fd, piece->text, piece->len);
	if (buf_len(&cargo->text) + piece->len > TREE_LIST_MAX)
		return -E2BIG;
	buf_append(&cargo->text, piece->text, piece->len);
	return 0;
}

int cargo_take(struct cargo *cargo, const struct work_msg *piece, struct err *err)
{
	struct load *load = cargo->active;
	if (piece->len > WORK_OUTPUT_MAX)
		return err_set(err, EPROTO, "a piece of a file that is too long");
	if (!load || piece->lease != load->lease || piece->number != load->next)
		return 0;
	if (piece->flags & WORK_FAILED) {
		AUTO_FREE char *why = mem_strndup(piece->text, piece->len);
		fail(cargo, load, why);
		go_on(cargo);
		return 0;
	}
	if (piece->value != cargo->offset)
		return 0;
	int r = keep(cargo, piece);
	if (r < 0) {
		fail(cargo, load, strerror(-r));
	} else if (piece->flags & WORK_FINAL) {
		finish(cargo, piece);
	} else {
		cargo->offset += piece->len;
		if (cargo->asked - cargo->offset <= CARGO_WINDOW / 2)
			ask(cargo, CARGO_WINDOW / 2);
	}
	go_on(cargo);
	return 0;
}

void cargo_stop(struct cargo *cargo)
{
	abandon(cargo);
	list_foreach(link, &cargo->loads) list_entry(link, struct load, link)->waits = false;
}

void cargo_release(struct cargo *cargo, uint32_t lease, bool cleanup)
{
	struct load *load = find_load(cargo, lease);
	if (!load)
		return;
	if (cargo->active == load)
		abandon(cargo);
	for (size_t i = 0; i < load->count; i++)
		leave_item(cargo, load->items[i], cleanup);
	list_unlink(&load->link);
	free(load);
	go_on(cargo);
}

/* ---- what an order made ---- */

int cargo_open(struct cargo *cargo, const char *path, bool cleanup, uint64_t *ret_size,
	       uint32_t *ret_mode, struct err *err)
{
	const char *name;
	struct stat st;
	AUTO(fd_close) int dir = dir_beneath(cargo->root, path, false, &name, err);
	if (dir < 0)
		return err_wrap(err, "the return of %s", path);
	AUTO(fd_close) int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set(err, errno, "the return of %s: %m", path);
	if (S_ISDIR(st.st_mode))
		return err_set(err, EISDIR,
			       "the return of %s: it is a directory, and only files return: pack "
			       "it, or name its files",
			       path);
	if (!S_ISREG(st.st_mode))
		return err_set(err, EINVAL, "the return of %s: it is not a regular file", path);
	if (cleanup)
		unlinkat(dir, name, 0);
	*ret_size = (uint64_t)st.st_size;
	*ret_mode = st.st_mode & 0777;
	return fd_take(&fd);
}

bool cargo_sees(const struct cargo *cargo, const char *name)
{
	return *name && !strchr(name, '/') &&
	       faccessat(cargo->root, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}
