/* Which libraries a program is linked with, and which of them are MPI's. */
#include "unit.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/fd.h"
#include "core/pmi/mpi_library.h"
#include "proto/elf.h"

#define ADDRESS 0x400000

/* A program of 64 bits, as small as can be. */
static struct image {
	Elf64_Ehdr head;
	Elf64_Phdr segments[2];
	Elf64_Dyn dynamic[5];
	char strings[32];
} image;

static struct strv names;

static void make(void)
{
	static const char strings[] = "\0libmpich.so.12\0libc.so.6";
	image = (struct image){
		.head = { .e_phoff = offsetof(struct image, segments),
			  .e_phentsize = sizeof(Elf64_Phdr),
			  .e_phnum = 2 },
		.segments = { { .p_type = PT_LOAD, .p_vaddr = ADDRESS, .p_filesz = sizeof(image) },
			      { .p_type = PT_DYNAMIC,
				.p_offset = offsetof(struct image, dynamic),
				.p_filesz = sizeof(image.dynamic) } },
		.dynamic = { { DT_NEEDED, { 1 } },
			     { DT_NEEDED, { 16 } },
			     { DT_STRTAB, { ADDRESS + offsetof(struct image, strings) } },
			     { DT_STRSZ, { sizeof(strings) } } },
	};
	memcpy(image.strings, strings, sizeof(strings));
	memcpy(image.head.e_ident, ELFMAG, SELFMAG);
	image.head.e_ident[EI_CLASS] = ELFCLASS64;
	image.head.e_ident[EI_DATA] =
		__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB;
}

static ssize_t read_bytes(void *arg, uint64_t at, void *ret_bytes, size_t len)
{
	const struct bytes *file = arg;
	if (at >= file->len)
		return 0;
	len = MIN(len, file->len - (size_t)at);
	memcpy(ret_bytes, file->data + at, len);
	return (ssize_t)len;
}

static ssize_t read_file(void *arg, uint64_t at, void *ret_bytes, size_t len)
{
	const int *fd = arg;
	return pread(*fd, ret_bytes, len, (off_t)at);
}

static int needed(size_t len)
{
	struct bytes file = bytes_of(&image, len);
	strv_done(&names);
	return elf_needed(read_bytes, &file, &names);
}

static int needed_by(const char *path)
{
	AUTO(fd_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	strv_done(&names);
	return elf_needed(read_file, &fd, &names);
}

TEST(the_libraries_of_a_program_are_named_in_their_order)
{
	make();
	ck_assert_int_eq(needed(sizeof(image)), 0);
	ck_assert_int_eq(names.count, 2);
	ck_assert_str_eq(names.items[0], "libmpich.so.12");
	ck_assert_str_eq(names.items[1], "libc.so.6");
	strv_done(&names);
}

TEST(a_real_program_names_the_c_library)
{
	ck_assert_int_eq(needed_by("/bin/true"), 0);
	bool found = false;
	for (size_t i = 0; i < names.count; i++)
		found |= strncmp(names.items[i], "libc.", 5) == 0;
	ck_assert(found);
	strv_done(&names);
}

TEST(a_static_program_needs_nothing)
{
	make();
	image.head.e_phnum = 1;
	ck_assert_int_eq(needed(sizeof(image)), 0);
	ck_assert_int_eq(names.count, 0);
	strv_done(&names);
}

TEST(what_is_no_program_is_said_to_be_none)
{
	make();
	ck_assert_int_eq(needed(0), -ENOEXEC);
	ck_assert_int_eq(needed(sizeof(image.head) - 1), -ENOEXEC);
	ck_assert_int_eq(needed_by("/dev/null"), -ENOEXEC);
	image.head.e_ident[EI_DATA] ^= ELFDATA2LSB ^ ELFDATA2MSB;
	ck_assert_int_eq(needed(sizeof(image)), -ENOEXEC);
	memcpy(&image, "#!/bin/sh\n", 10);
	ck_assert_int_eq(needed(sizeof(image)), -ENOEXEC);
	strv_done(&names);
}

TEST(parts_that_are_cut_off_or_contradict_each_other_name_nothing)
{
	make();
	ck_assert_int_eq(needed(sizeof(image.head)), -EBADMSG);
	ck_assert_int_eq(needed(offsetof(struct image, strings) - 1), -EBADMSG);
	ck_assert_int_eq(needed(offsetof(struct image, strings) + 20), -EBADMSG);
	ck_assert_int_eq(names.count, 0);

	image.dynamic[1].d_un.d_val = image.dynamic[3].d_un.d_val; /* behind the strings */
	ck_assert_int_eq(needed(sizeof(image)), -EBADMSG);
	ck_assert_int_eq(names.count, 0);
	make();
	image.dynamic[3].d_un.d_val = 10; /* the first name has no end */
	ck_assert_int_eq(needed(sizeof(image)), -EBADMSG);
	make();
	image.dynamic[3].d_un.d_val = UINT64_MAX;
	ck_assert_int_eq(needed(sizeof(image)), -EBADMSG);
	make();
	image.dynamic[2].d_un.d_val = ADDRESS - 1; /* nothing is loaded there */
	ck_assert_int_eq(needed(sizeof(image)), -EBADMSG);
	make();
	image.segments[0].p_offset = UINT64_MAX - 8;
	ck_assert_int_eq(needed(sizeof(image)), -EBADMSG);
	make();
	image.segments[1].p_offset = UINT64_MAX - 8;
	ck_assert_int_eq(needed(sizeof(image)), -EBADMSG);
	strv_done(&names);
}

TEST(more_than_the_limits_is_refused)
{
	make();
	image.head.e_phnum = ELF_SEGMENTS_MAX + 1;
	ck_assert_int_eq(needed(sizeof(image)), -EBADMSG);
	make();
	image.head.e_phentsize--;
	ck_assert_int_eq(needed(sizeof(image)), -EBADMSG);
	make();
	image.segments[1].p_filesz = (ELF_DYNAMIC_MAX + 1) * sizeof(Elf64_Dyn);
	ck_assert_int_eq(needed(sizeof(image)), -EBADMSG);
	strv_done(&names);
}

TEST(the_entries_end_where_the_loader_sees_their_end)
{
	make();
	image.dynamic[1].d_tag = image.dynamic[4].d_tag = DT_NULL; /* so there are no strings */
	ck_assert_int_eq(needed(sizeof(image)), -EBADMSG);
	make();
	image.dynamic[4] = (Elf64_Dyn){ DT_NEEDED, { 16 } };
	image.segments[1].p_filesz = sizeof(image.dynamic);
	ck_assert_int_eq(needed(sizeof(image)), 0);
	ck_assert_int_eq(names.count, 3);
	strv_done(&names);
}

TEST(a_program_of_32_bits_is_read_as_well)
{
	struct {
		Elf32_Ehdr head;
		Elf32_Phdr segments[2];
		Elf32_Dyn dynamic[3];
		char strings[16];
	} narrow = {
		.head = { .e_phoff = sizeof(Elf32_Ehdr),
			  .e_phentsize = sizeof(Elf32_Phdr),
			  .e_phnum = 2 },
		.segments = { { .p_type = PT_LOAD, .p_vaddr = ADDRESS, .p_filesz = sizeof(narrow) },
			      { .p_type = PT_DYNAMIC,
				.p_offset = sizeof(Elf32_Ehdr) + 2 * sizeof(Elf32_Phdr),
				.p_filesz = sizeof(narrow.dynamic) } },
		.dynamic = { { DT_STRTAB, { ADDRESS + sizeof(narrow) - sizeof(narrow.strings) } },
			     { DT_STRSZ, { sizeof(narrow.strings) } },
			     { DT_NEEDED, { 0 } } },
		.strings = "libmpi.so.40",
	};
	make();
	memcpy(narrow.head.e_ident, image.head.e_ident, EI_NIDENT);
	narrow.head.e_ident[EI_CLASS] = ELFCLASS32;
	struct bytes file = bytes_of(&narrow, sizeof(narrow));
	ck_assert_int_eq(elf_needed(read_bytes, &file, &names), 0);
	ck_assert_int_eq(names.count, 1);
	ck_assert_str_eq(names.items[0], "libmpi.so.40");
	strv_done(&names);
}

TEST(libraries_of_mpi_are_known_by_name_and_version)
{
	static const struct {
		const char *name;
		enum mpi_library kind;
		const char *what;
	} expected[] = {
		{ "libmpich.so.12", MPI_LIBRARY_PMI, NULL },
		{ "libmpichfort.so.12", MPI_LIBRARY_PMI, NULL },
		{ "libmpi.so.12", MPI_LIBRARY_PMI, NULL },
		{ "/opt/impi/lib/libmpi.so.12.0.0", MPI_LIBRARY_PMI, NULL },
		{ "libmpifort.so.12", MPI_LIBRARY_PMI, NULL },
		{ "libpmi.so.0", MPI_LIBRARY_PMI, NULL },
		{ "libmpi.so.40", MPI_LIBRARY_OTHER, "Open MPI" },
		{ "libmpi.so.20", MPI_LIBRARY_OTHER, "Open MPI" },
		{ "libmpi.so.120", MPI_LIBRARY_OTHER, "Open MPI" },
		{ "libmpi_mpifh.so.40", MPI_LIBRARY_OTHER, "Open MPI" },
		{ "libpmix.so.2", MPI_LIBRARY_OTHER, "PMIx" },
		{ "libpmi2.so.0", MPI_LIBRARY_OTHER, "PMI-2" },
		{ "libmpir.so.23", MPI_LIBRARY_NONE, NULL }, /* whole numbers */
		{ "libmpifr.so.6", MPI_LIBRARY_NONE, NULL },
		{ "libc.so.6", MPI_LIBRARY_NONE, NULL },
		{ "", MPI_LIBRARY_NONE, NULL },
	};
	for (size_t i = 0; i < ARRAY_LEN(expected); i++) {
		const char *what = NULL;
		ck_assert_msg(mpi_library_kind(expected[i].name, &what) == expected[i].kind, "%s",
			      expected[i].name);
		ck_assert_pstr_eq(what, expected[i].what);
	}
}
