/* Room for workers: memory, files, limits. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/procfs.h"
#include "sys/cgroup_find.h"
#include "sys/checks/checks_private.h"
#include "sys/hwloc_topology.h"

#define MIB ((uint64_t)1 << 20)
#define LEAST_MEMORY (512 * MIB)
#define LEAST_SHM (512 * MIB)
#define LEAST_FILES 4096
#define LEAST_PROCESSES 1024
#define FILE_BYTES ((size_t)1 << 20)
#define FULL_BYTES ((size_t)64 << 20)
#define TEXT_MAX ((size_t)1 << 20)

void check_memory(const struct check_place *place UNUSED, struct check_result *result)
{
	uint64_t free_bytes = procfs_memory_available();
	uint64_t all = procfs_memory_total();
	if (free_bytes < LEAST_MEMORY)
		check_find(result, CHECK_WARNING, "end what else uses memory on this host",
			   "little memory is left");
	check_say(result, "%" PRIu64 " of %" PRIu64 " MiB are available", free_bytes / MIB,
		  all / MIB);
	check_measure(result, "memory_available", (double)free_bytes, "bytes");
}

void check_shm(const struct check_place *place UNUSED, struct check_result *result)
{
	static const char remedy[] = "give the container more shared memory: --shm-size=8g, or in "
				     "Kubernetes an emptyDir with medium Memory at /dev/shm";
	struct statvfs info;
	if (statvfs("/dev/shm", &info) < 0) {
		check_find(result, CHECK_WARNING, remedy, "/dev/shm: %s", strerror(errno));
		return;
	}
	uint64_t free_bytes = (uint64_t)info.f_bavail * info.f_frsize;
	if (free_bytes < LEAST_SHM)
		check_find(result, CHECK_WARNING, remedy,
			   "PyTorch's data loaders and NCCL need more");
	check_say(result, "%" PRIu64 " of %" PRIu64 " MiB are free", free_bytes / MIB,
		  (uint64_t)info.f_blocks * info.f_frsize / MIB);
	check_measure(result, "shm_size", (double)info.f_blocks * (double)info.f_frsize, "bytes");
	check_measure(result, "shm_free", (double)free_bytes, "bytes");
}

/* ---- files ---- */

static const char *storage_remedy(int error)
{
	switch (error) {
	case ENOSPC:
	case EDQUOT:
		return "make room there, or name another directory with --log-dir";
	case EACCES:
	case EPERM:
	case EROFS:
		return "let this user write there, or name another directory with --log-dir";
	case ENOENT:
		return "make the directory, or mount what should be there";
	default:
		return "look at the disk or the file server";
	}
}

static void storage_failed(struct check_result *result, const char *dir, const char *what)
{
	check_find(result, CHECK_BAD, storage_remedy(errno), "%s: %s: %s", dir, what,
		   strerror(errno));
}

/* From the disk again, where the kernel can be told to forget its copy. */
static bool read_back(int fd, const unsigned char *wanted, size_t len)
{
	AUTO_FREE unsigned char *bytes = mem_alloc(len);
	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	for (size_t done = 0; done < len;) {
		ssize_t n = pread(fd, bytes + done, len - done, (off_t)done);
		if (n <= 0)
			return false;
		done += (size_t)n;
	}
	return memcmp(bytes, wanted, len) == 0;
}

/* The directory, or the next one above it that is there. */
static char *existing_dir(const struct check_place *place)
{
	char *dir = mem_strdup(place->dir);
	while (place->spec->dirs_later && access(dir, F_OK) < 0 && errno == ENOENT) {
		char *slash = strrchr(dir, '/');
		if (!slash)
			strcpy(dir, "."); /* no name is shorter */
		else
			slash[slash == dir] = '\0';
	}
	return dir;
}

void check_storage(const struct check_place *place, struct check_result *result)
{
	size_t len = place->full ? FULL_BYTES : FILE_BYTES;
	AUTO_FREE unsigned char *bytes = mem_alloc(len);
	AUTO_FREE char *dir = existing_dir(place);
	AUTO_FREE char *path = mem_printf("%s/.muster-check-XXXXXX", dir);
	for (size_t i = 0; i < len; i++)
		bytes[i] = (unsigned char)(i * 31 + i / 251);
	uint64_t before_ns = clock_now_ns();
	AUTO(fd_close) int fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0) {
		storage_failed(result, place->dir, "make a file");
		return;
	}
	unlink(path);
	errno = -fd_write_all(fd, bytes, len);
	if (errno) {
		storage_failed(result, place->dir, "write");
		return;
	}
	if (fsync(fd) < 0) {
		storage_failed(result, place->dir, "fsync");
		return;
	}
	uint64_t written_ns = clock_now_ns();
	if (!read_back(fd, bytes, len)) {
		check_find(result, CHECK_BAD, storage_remedy(0),
			   "%s: what is read is not what was written", place->dir);
		return;
	}
	double write_ms = (double)(written_ns - before_ns) / (double)NS_PER_MS;
	double read_ms = (double)(clock_now_ns() - written_ns) / (double)NS_PER_MS;
	check_say(result, "%s: wrote %zu MiB in %.1f ms, read them in %.1f ms", place->dir,
		  len / (size_t)MIB, write_ms, read_ms);
	check_measure(result, "write_time", write_ms, "ms");
	check_measure(result, "read_time", read_ms, "ms");
}

/* ---- limits ---- */

static void put_limit(char text[32], rlim_t value)
{
	if (value == RLIM_INFINITY)
		snprintf(text, 32, "unlimited");
	else
		snprintf(text, 32, "%llu", (unsigned long long)value);
}

void check_limits(const struct check_place *place UNUSED, struct check_result *result)
{
	struct rlimit files, processes, locked;
	char hard[32], count[32], bytes[32];
	getrlimit(RLIMIT_NOFILE, &files);
	getrlimit(RLIMIT_NPROC, &processes);
	getrlimit(RLIMIT_MEMLOCK, &locked);
	if (files.rlim_max < LEAST_FILES)
		check_find(result, CHECK_WARNING, "raise the hard limit: ulimit -Hn, LimitNOFILE=",
			   "few open files are allowed");
	if (processes.rlim_cur < LEAST_PROCESSES)
		check_find(result, CHECK_WARNING,
			   "raise the limit: ulimit -u, LimitNPROC=", "few processes are allowed");
	put_limit(hard, files.rlim_max);
	put_limit(count, processes.rlim_cur);
	put_limit(bytes, locked.rlim_cur);
	check_say(result, "open files %s, processes %s, locked memory %s", hard, count, bytes);
}

void check_cgroup(const struct check_place *place UNUSED, struct check_result *result)
{
	AUTO(buf_done) struct buf mounts = BUF_INIT, membership = BUF_INIT;
	AUTO(cgroup_place_done) struct cgroup_place own = CGROUP_PLACE_INIT;
	uint64_t quota = topology_quota_milli("");
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	file_read("/proc/self/mountinfo", TEXT_MAX, &mounts, NULL);
	file_read("/proc/self/cgroup", TEXT_MAX, &membership, NULL);
	bool found = cgroup_find(CGROUP_V2, buf_str(&mounts), buf_str(&membership), &own);
	if (quota && quota < (uint64_t)cpus * 1000) {
		check_find(result, CHECK_WARNING,
			   "give the container or the job more CPU time, or start fewer threads",
			   "a quota of %.1f CPUs for %ld CPUs", (double)quota / 1000, cpus);
		check_measure(result, "cpu_quota", (double)quota / 1000, "CPUs");
	}
	/* A quota is time on any of them: what is above their number cannot be used. */
	double usable = quota ? MIN((double)quota / 1000, (double)cpus) : (double)cpus;
	check_measure(result, "cpus_usable", usable, "CPUs");
	if (!found)
		check_say(result, "no cgroup v2");
	else if (!own.own || access(own.own, W_OK) < 0)
		check_say(result, "cgroup v2, no groups of our own");
	else
		check_say(result, "cgroup v2, each worker can get a group of its own");
}
