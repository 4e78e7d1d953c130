#include "proto/elf.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

#define OWN_ORDER (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB)

struct segment {
	uint32_t type;
	uint64_t offset, address, size;
};

struct file {
	elf_read *read;
	void *arg;
	bool wide; /* 64 bits */
	struct segment segments[ELF_SEGMENTS_MAX];
	size_t segment_count;
};

static int read_all(const struct file *file, uint64_t at, void *ret_bytes, size_t len)
{
	return file->read(file->arg, at, ret_bytes, len) == (ssize_t)len ? 0 : -EBADMSG;
}

static int read_segments(struct file *file, uint64_t at, size_t entry_size, size_t count)
{
	union {
		Elf64_Phdr wide[ELF_SEGMENTS_MAX];
		Elf32_Phdr narrow[ELF_SEGMENTS_MAX];
	} table;
	size_t size = file->wide ? sizeof(*table.wide) : sizeof(*table.narrow);
	if (count > ELF_SEGMENTS_MAX || (count && entry_size != size) ||
	    read_all(file, at, &table, count * size) < 0)
		return -EBADMSG;
	for (size_t i = 0; i < count; i++) {
		const Elf64_Phdr *w = &table.wide[i];
		const Elf32_Phdr *n = &table.narrow[i];
		file->segments[i] = file->wide ? (struct segment){ w->p_type, w->p_offset,
								   w->p_vaddr, w->p_filesz }
					       : (struct segment){ n->p_type, n->p_offset,
								   n->p_vaddr, n->p_filesz };
	}
	file->segment_count = count;
	return 0;
}

static int read_header(struct file *file)
{
	union {
		unsigned char ident[EI_NIDENT];
		Elf64_Ehdr wide;
		Elf32_Ehdr narrow;
	} head;
	ssize_t len = file->read(file->arg, 0, &head, sizeof(head));
	if (len < (ssize_t)sizeof(head.narrow) || memcmp(head.ident, ELFMAG, SELFMAG) != 0 ||
	    head.ident[EI_DATA] != OWN_ORDER)
		return -ENOEXEC;
	file->wide = head.ident[EI_CLASS] == ELFCLASS64;
	if (!file->wide)
		return read_segments(file, head.narrow.e_phoff, head.narrow.e_phentsize,
				     head.narrow.e_phnum);
	if (len < (ssize_t)sizeof(head.wide))
		return -ENOEXEC;
	return read_segments(file, head.wide.e_phoff, head.wide.e_phentsize, head.wide.e_phnum);
}

/* ---- the dynamic section ---- */

struct dynamic {
	uint64_t needed[ELF_DYNAMIC_MAX]; /* offsets in the string table */
	size_t needed_count;
	uint64_t strings, strings_size; /* an address */
};

static void take_entry(struct dynamic *dynamic, int64_t tag, uint64_t value)
{
	switch (tag) {
	case DT_NEEDED:
		dynamic->needed[dynamic->needed_count++] = value;
		break;
	case DT_STRTAB:
		dynamic->strings = value;
		break;
	case DT_STRSZ:
		dynamic->strings_size = value;
		break;
	}
}

static int read_dynamic(const struct file *file, const struct segment *segment,
			struct dynamic *ret_dynamic)
{
	union {
		Elf64_Dyn wide[ELF_DYNAMIC_MAX];
		Elf32_Dyn narrow[ELF_DYNAMIC_MAX];
	} table;
	size_t size = file->wide ? sizeof(*table.wide) : sizeof(*table.narrow);
	size_t count = segment->size / size;
	if (count > ELF_DYNAMIC_MAX || read_all(file, segment->offset, &table, count * size) < 0)
		return -EBADMSG;
	ret_dynamic->needed_count = 0;
	ret_dynamic->strings = ret_dynamic->strings_size = 0;
	for (size_t i = 0; i < count; i++) {
		int64_t tag = file->wide ? table.wide[i].d_tag : table.narrow[i].d_tag;
		if (tag == DT_NULL)
			break;
		take_entry(ret_dynamic, tag,
			   file->wide ? table.wide[i].d_un.d_val : table.narrow[i].d_un.d_val);
	}
	return 0;
}

/* Where in the file the loader finds the `size` bytes of this address. */
static int find_address(const struct file *file, uint64_t address, uint64_t size, uint64_t *ret_at)
{
	for (size_t i = 0; i < file->segment_count; i++) {
		const struct segment *s = &file->segments[i];
		if (s->type != PT_LOAD || address < s->address || address - s->address > s->size ||
		    size > s->size - (address - s->address) || s->offset > INT64_MAX - s->size)
			continue;
		*ret_at = s->offset + (address - s->address);
		return 0;
	}
	return -EBADMSG;
}

static int add_names(const struct file *file, const struct dynamic *dynamic, struct strv *names)
{
	uint64_t at;
	if (!dynamic->needed_count)
		return 0;
	if (find_address(file, dynamic->strings, dynamic->strings_size, &at) < 0)
		return -EBADMSG;
	for (size_t i = 0; i < dynamic->needed_count; i++) {
		char name[ELF_NAME_MAX];
		uint64_t offset = dynamic->needed[i];
		if (offset >= dynamic->strings_size)
			return -EBADMSG;
		size_t len = (size_t)MIN(sizeof(name), dynamic->strings_size - offset);
		if (read_all(file, at + offset, name, len) < 0 || !memchr(name, '\0', len))
			return -EBADMSG;
		strv_add(names, name);
	}
	return 0;
}

int elf_needed(elf_read *read, void *arg, struct strv *ret_names)
{
	struct file file = { .read = read, .arg = arg };
	struct dynamic dynamic;
	AUTO(strv_done) struct strv names = STRV_INIT;
	int r = read_header(&file);
	for (size_t i = 0; r == 0 && i < file.segment_count; i++) {
		if (file.segments[i].type != PT_DYNAMIC)
			continue;
		r = read_dynamic(&file, &file.segments[i], &dynamic);
		if (r == 0)
			r = add_names(&file, &dynamic, &names);
		break;
	}
	if (r == 0)
		strv_add_all(ret_names, strv_argv(&names));
	return r;
}
