#include "sys/warden_proto.h"

#include <errno.h>
#include <string.h>

static size_t put_strings(struct buf *out, char *const *strings)
{
	size_t count = 0;
	for (; strings[count]; count++)
		buf_append(out, strings[count], strlen(strings[count]) + 1);
	return count;
}

void request_spawn_put(struct buf *out, uint64_t id, const struct spawn_spec *spec, unsigned flags)
{
	struct request_spawn head = {
		.id = id,
		.nofile_soft = spec->nofile_soft,
		.cpus_size = spec->cpus ? (uint32_t)spec->cpus_size : 0,
		.mem_nodes_size = spec->mem_nodes ? (uint32_t)spec->mem_nodes_size : 0,
		.mem_mode = spec->mem_mode,
		.nice = spec->nice,
		.stdio = { spec->stdio[0], spec->stdio[1], spec->stdio[2] },
		.flags = flags,
		.has_cwd = spec->cwd,
		.ignores_usr = spec->ignores_usr,
		.group_only = spec->group_only,
		.has_group = spec->group_fd > 0,
		.has_extra = spec->extra_fd > 0,
	};
	size_t at = buf_len(out);
	buf_append(out, &head, sizeof(head));
	buf_append(out, spec->cpus, head.cpus_size);
	buf_append(out, spec->mem_nodes, head.mem_nodes_size);
	buf_append(out, spec->path, strlen(spec->path) + 1);
	if (spec->cwd)
		buf_append(out, spec->cwd, strlen(spec->cwd) + 1);
	head.arg_count = put_strings(out, spec->argv);
	if (!(flags & WARDEN_SAME))
		head.env_count = put_strings(out, spec->envp);
	memcpy(buf_data(out) + at, &head, sizeof(head));
}

/* A reader that remembers having run past the end. */
struct reader {
	const unsigned char *at, *end;
	bool bad;
};

static const void *take(struct reader *reader, size_t len)
{
	if ((size_t)(reader->end - reader->at) < len) {
		reader->bad = true;
		return NULL;
	}
	const void *data = reader->at;
	reader->at += len;
	return data;
}

static const char *take_string(struct reader *reader)
{
	const unsigned char *nul = memchr(reader->at, '\0', (size_t)(reader->end - reader->at));
	if (!nul) {
		reader->bad = true;
		return "";
	}
	return take(reader, (size_t)(nul - reader->at) + 1);
}

/* Copied with memcpy because nothing in a frame is aligned. */
static void take_strings(struct reader *reader, size_t count, struct buf *pointers)
{
	for (size_t i = 0; i < count && !reader->bad; i++) {
		const char *text = take_string(reader);
		buf_append(pointers, &text, sizeof(text));
	}
	buf_append(pointers, &(char *){ NULL }, sizeof(char *));
}

int request_spawn_get(const struct wire_frame *frame, struct buf *pointers,
		      struct request_spawn_view *ret_view)
{
	struct reader reader = { frame->data, frame->data + frame->len, false };
	const void *head = take(&reader, sizeof(struct request_spawn));
	if (!head)
		return -EPROTO;
	struct request_spawn_view view;
	memcpy(&view.head, head, sizeof(view.head));
	view.spec = (struct spawn_spec){
		.nofile_soft = view.head.nofile_soft,
		.mem_mode = view.head.mem_mode,
		.nice = view.head.nice,
		.ignores_usr = view.head.ignores_usr,
		.group_only = view.head.group_only,
		.cpus_size = view.head.cpus_size,
		.mem_nodes_size = view.head.mem_nodes_size,
	};
	const void *cpus = take(&reader, view.spec.cpus_size);
	const void *nodes = take(&reader, view.spec.mem_nodes_size);
	view.spec.cpus = view.spec.cpus_size ? cpus : NULL;
	view.spec.mem_nodes = view.spec.mem_nodes_size ? nodes : NULL;
	if (reader.bad)
		return -EPROTO;
	view.spec.path = take_string(&reader);
	view.spec.cwd = view.head.has_cwd ? take_string(&reader) : NULL;

	buf_clear(pointers);
	take_strings(&reader, view.head.arg_count, pointers);
	size_t env_at = buf_len(pointers);
	take_strings(&reader, view.head.env_count, pointers);
	if (reader.bad)
		return -EPROTO;
	view.spec.argv = (char *const *)(void *)buf_data(pointers);
	view.spec.envp = (char *const *)(void *)(buf_data(pointers) + env_at);
	*ret_view = view;
	return 0;
}
