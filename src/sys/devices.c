#include "sys/devices.h"

#include <ctype.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/child.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/str.h"

/* a driver that has to wake eight devices takes a while */
#define ANSWER_WITHIN_NS (60 * NS_PER_S)
#define PCI_ID_MAX 32
#define ZE_MAX 64

/* "0000:3B:00.0" -> what sysfs says, or -1. */
static int node_of_pci(char *id)
{
	for (char *p = id; *p; p++)
		*p = (char)tolower((unsigned char)*p);
	AUTO_FREE char *path = mem_printf("/sys/bus/pci/devices/%s/numa_node", id);
	AUTO(buf_done) struct buf text = BUF_INIT;
	if (file_read(path, 64, &text, NULL) < 0)
		return -1;
	AUTO_FREE char *number = mem_strndup(buf_str(&text), strcspn(buf_str(&text), "\n"));
	int64_t node;
	return str_to_i64(number, &node) == 0 ? (int)node : -1;
}

/* CUDA's driver and HIP's runtime have the same three calls; both return 0 for success. */
struct gpu_api {
	const char *library;
	const char *init, *count, *pci_id;
};

static const struct gpu_api gpu_apis[] = {
	{ "libcuda.so.1", "cuInit", "cuDeviceGetCount", "cuDeviceGetPCIBusId" },
	{ "libamdhip64.so", "hipInit", "hipGetDeviceCount", "hipDeviceGetPCIBusId" },
};

static bool find_with(const struct gpu_api *api, struct devices *ret_devices)
{
	void *library = dlopen(api->library, RTLD_NOW | RTLD_LOCAL);
	if (!library)
		return false;
	int (*init)(unsigned) = (int (*)(unsigned))dlsym(library, api->init);
	int (*count)(int *) = (int (*)(int *))dlsym(library, api->count);
	int (*pci_id)(char *, int, int) = (int (*)(char *, int, int))dlsym(library, api->pci_id);
	int found = 0;
	if (!init || !count || !pci_id || init(0) != 0 || count(&found) != 0)
		return false;
	for (int i = 0; i < MIN(found, DEVICES_MAX); i++) {
		char id[PCI_ID_MAX] = "";
		ret_devices->nodes[ret_devices->count++] =
			pci_id(id, sizeof(id), i) == 0 ? node_of_pci(id) : -1;
	}
	return found > 0;
}

static void find_gpus(struct devices *ret_devices)
{
	for (size_t i = 0; i < ARRAY_LEN(gpu_apis); i++)
		if (find_with(&gpu_apis[i], ret_devices))
			return;
}

static void find_xpus(struct devices *ret_devices)
{
	void *library = dlopen("libze_loader.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!library)
		return;
	int (*init)(uint32_t) = (int (*)(uint32_t))dlsym(library, "zeInit");
	int (*get_drivers)(uint32_t *, void **) =
		(int (*)(uint32_t *, void **))dlsym(library, "zeDriverGet");
	int (*get_devices)(void *, uint32_t *, void **) =
		(int (*)(void *, uint32_t *, void **))dlsym(library, "zeDeviceGet");
	void *drivers[ZE_MAX];
	uint32_t driver_count = ZE_MAX;
	if (!init || !get_drivers || !get_devices || init(0) != 0 ||
	    get_drivers(&driver_count, drivers) != 0)
		return;
	for (uint32_t i = 0; i < driver_count; i++) {
		uint32_t count = 0;
		if (get_devices(drivers[i], &count, NULL) != 0)
			continue;
		for (uint32_t k = 0; k < count && ret_devices->count < DEVICES_MAX; k++)
			ret_devices->nodes[ret_devices->count++] = -1;
	}
}

static _Noreturn void child_main(enum device_kind kind, int answer_fd)
{
	struct devices devices = { 0 };
	/* Users need not see what a driver prints about itself. */
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (int fd = 0; fd <= 2; fd++)
		dup2(null, fd);
	if (kind == DEVICE_GPU)
		find_gpus(&devices);
	else
		find_xpus(&devices);
	_exit(fd_write_all(answer_fd, &devices, sizeof(devices)) < 0);
}

/* Reads the answer until end of file or the deadline. */
static int read_answer(int fd, uint64_t deadline_ns, struct devices *ret_devices)
{
	struct devices devices;
	size_t got = 0;
	while (got < sizeof(devices)) {
		int r = fd_wait(fd, POLLIN, deadline_ns);
		if (r < 0)
			return r;
		ssize_t n = read(fd, (char *)&devices + got, sizeof(devices) - got);
		if (n == 0)
			return -EIO; /* it crashed */
		if (n > 0)
			got += (size_t)n;
		else if (errno != EINTR)
			return -errno;
	}
	*ret_devices = devices;
	return 0;
}

int devices_find(enum device_kind kind, struct devices *ret_devices, struct err *err)
{
	int fds[2];
	if (pipe2(fds, O_CLOEXEC) < 0)
		return err_set(err, errno, "pipe: %m");
	AUTO(fd_close) int answer = fds[0];
	pid_t pid = child_fork();
	if (pid == 0)
		child_main(kind, fds[1]);
	int fork_error = errno;
	close(fds[1]);
	if (pid < 0)
		return err_set(err, fork_error, "start a process to count devices: %m");

	int r = read_answer(answer, clock_now_ns() + ANSWER_WITHIN_NS, ret_devices);
	kill(pid, SIGKILL);
	child_wait(pid);
	return r == -EIO ? err_set(err, EIO, "the vendor's library crashed while counting devices")
	       : r == -ETIMEDOUT ? err_set(err, ETIMEDOUT, "the vendor's library did not answer")
	       : r < 0		 ? err_set(err, -r, "count devices: %m")
				 : 0;
}
