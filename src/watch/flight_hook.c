#include "watch/flight_hook.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/buf.h"
#include "base/env.h"
#include "base/fd.h"
#include "base/mem.h"

#define MODULE "muster_flight"
#define INFO MODULE "-0.dist-info/"

extern const char flight_source[], flight_source_end[];

__asm__(".pushsection .rodata\n"
	".globl flight_source, flight_source_end\n"
	".hidden flight_source, flight_source_end\n"
	"flight_source:\n"
	".incbin \"python/muster/_flight.py\"\n"
	"flight_source_end:\n"
	".popsection\n");

/* Stored entries of a zip archive: a header before each, and a directory of them at the end. */
#define LOCAL_MAGIC 0x04034b50
#define CENTRAL_MAGIC 0x02014b50
#define END_MAGIC 0x06054b50
#define VERSION 10
#define DATE 0x21 /* the first day that there is */

struct archive {
	struct buf bytes, directory;
	uint16_t count;
};

static void put16(struct buf *out, uint16_t value)
{
	buf_append(out, (unsigned char[]){ value & 0xff, value >> 8 }, 2);
}

static void put32(struct buf *out, uint32_t value)
{
	put16(out, (uint16_t)value);
	put16(out, (uint16_t)(value >> 16));
}

static uint32_t crc32(const char *data, size_t len)
{
	uint32_t crc = UINT32_MAX;
	for (size_t i = 0; i < len; i++) {
		crc ^= (unsigned char)data[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
	}
	return ~crc;
}

/* The part that the header of an entry and its line in the directory have in common. */
static void put_entry(struct buf *out, const char *name, uint32_t crc, size_t len)
{
	put16(out, VERSION);
	put32(out, 0); /* no flags; stored */
	put16(out, 0); /* midnight */
	put16(out, DATE);
	put32(out, crc);
	put32(out, (uint32_t)len);
	put32(out, (uint32_t)len);
	put16(out, (uint16_t)strlen(name));
	put16(out, 0);
}

static void add(struct archive *archive, const char *name, const char *data, size_t len)
{
	uint32_t crc = crc32(data, len), offset = (uint32_t)buf_len(&archive->bytes);
	put32(&archive->bytes, LOCAL_MAGIC);
	put_entry(&archive->bytes, name, crc, len);
	buf_append_str(&archive->bytes, name);
	buf_append(&archive->bytes, data, len);
	put32(&archive->directory, CENTRAL_MAGIC);
	put16(&archive->directory, VERSION);
	put_entry(&archive->directory, name, crc, len);
	buf_append(&archive->directory, (unsigned char[10]){ 0 }, 10); /* a plain file */
	put32(&archive->directory, offset);
	buf_append_str(&archive->directory, name);
	archive->count++;
}

static void add_text(struct archive *archive, const char *name, const char *text)
{
	add(archive, name, text, strlen(text));
}

static void finish(struct archive *archive)
{
	uint32_t offset = (uint32_t)buf_len(&archive->bytes);
	uint32_t len = (uint32_t)buf_len(&archive->directory);
	buf_append(&archive->bytes, buf_data(&archive->directory), len);
	put32(&archive->bytes, END_MAGIC);
	put32(&archive->bytes, 0);
	put16(&archive->bytes, archive->count);
	put16(&archive->bytes, archive->count);
	put32(&archive->bytes, len);
	put32(&archive->bytes, offset);
	put16(&archive->bytes, 0);
}

int flight_hook_write(const char *path, struct err *err)
{
	AUTO(fd_close)
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return err_set(err, errno, "%s: %m", path);
	struct archive archive = { .bytes = BUF_INIT, .directory = BUF_INIT };
	add(&archive, MODULE ".py", flight_source, (size_t)(flight_source_end - flight_source));
	add_text(&archive, INFO "METADATA",
		 "Metadata-Version: 2.1\nName: " MODULE "\nVersion: 0\n");
	add_text(&archive, INFO "entry_points.txt",
		 "[torch.backends]\n" MODULE " = " MODULE ":install_flight\n");
	finish(&archive);
	int r = fd_write_all(fd, buf_data(&archive.bytes), buf_len(&archive.bytes));
	buf_done(&archive.bytes);
	buf_done(&archive.directory);
	return r < 0 ? err_set(err, -r, "%s: %s", path, strerror(-r)) : 0;
}

void flight_hook_add(const char *path, struct strv *env)
{
	const char *before = env_get(env, "PYTHONPATH");
	AUTO_FREE char *whole =
		before && *before ? mem_printf("%s:%s", before, path) : mem_strdup(path);
	env_set(env, "PYTHONPATH", whole);
}
