/* What is in this host: accelerators, hardware counters, versions of programs. */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/child.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/piped.h"
#include "base/str.h"
#include "sys/checks/checks_private.h"
#include "sys/devices.h"

#define COUNTER_MAX 64
#define VERSIONS_MAX 4096

void check_devices(const struct check_place *place, struct check_result *result)
{
	struct devices devices;
	struct err err = ERR_INIT;
	int64_t wanted = place->spec->devices;
	if (devices_find(DEVICE_GPU, &devices, &err) < 0) {
		check_find(result, wanted > 0 ? CHECK_BAD : CHECK_WARNING,
			   "look at the driver: nvidia-smi, rocm-smi, dmesg",
			   "the accelerators' driver does not answer: %s", err.msg);
		return;
	}
	if (wanted != CHECKS_ANY_DEVICES && devices.count != (uint64_t)wanted)
		check_find(result, CHECK_BAD, "look at the driver: nvidia-smi, rocm-smi, dmesg",
			   "%" PRId64 " accelerators are wanted", wanted);
	if (devices.count == 0)
		check_say(result, "no accelerator");
	else
		check_say(result, "%u accelerators", devices.count);
	check_measure(result, "accelerators", devices.count, "");
}

/* The sum of the numbers in all files that match; *ret_files: how many there are. */
static uint64_t sum_of(const char *pattern, size_t *ret_files)
{
	glob_t found = { .gl_pathc = 0 };
	uint64_t sum = 0;
	*ret_files = 0;
	if (glob(pattern, 0, NULL, &found) == 0)
		for (size_t i = 0; i < found.gl_pathc; i++) {
			AUTO(buf_done) struct buf text = BUF_INIT;
			uint64_t value;
			if (file_read(found.gl_pathv[i], COUNTER_MAX, &text, NULL) < 0)
				continue;
			AUTO_FREE char *word =
				mem_strndup(buf_str(&text), strcspn(buf_str(&text), "\n"));
			if (str_to_u64(word, &value) == 0) {
				sum += value;
				(*ret_files)++;
			}
		}
	globfree(&found);
	return sum;
}

/* Errors on wires, and links that went down and came back. */
static void count_network_errors(struct check_result *result)
{
	static const char *const patterns[] = {
		"/sys/class/net/[!l]*/statistics/rx_errors",
		"/sys/class/net/[!l]*/statistics/tx_errors",
		"/sys/class/net/[!l]*/carrier_changes",
		"/sys/class/infiniband/*/ports/*/counters/link_downed",
	};
	uint64_t errors = 0;
	size_t found = 0, files;
	for (size_t i = 0; i < ARRAY_LEN(patterns); i++, found += files)
		errors += sum_of(patterns[i], &files);
	if (found)
		check_measure(result, "network_errors", (double)errors, "");
}

void check_hardware(const struct check_place *place UNUSED, struct check_result *result)
{
	size_t memories, cores, ignored;
	uint64_t corrected = sum_of("/sys/devices/system/edac/mc/mc*/ce_count", &memories);
	uint64_t lost = sum_of("/sys/devices/system/edac/mc/mc*/ue_count", &ignored);
	uint64_t throttled =
		sum_of("/sys/devices/system/cpu/cpu*/thermal_throttle/core_throttle_count", &cores);
	if (lost)
		check_find(result, CHECK_BAD, "replace the memory module that the kernel log names",
			   "%" PRIu64 " memory errors that could not be corrected", lost);
	if (memories)
		check_say(result, "%" PRIu64 " corrected memory errors", corrected);
	if (cores)
		check_say(result, "cores slowed down by heat %" PRIu64 " times", throttled);
	if (!memories && !cores)
		check_say(result, "the kernel counts no memory errors or heat here");
	check_measure(result, "memory_errors", (double)(corrected + lost), "");
	check_measure(result, "heat_events", (double)throttled, "");
	count_network_errors(result);
}

/* Asks the packages' descriptions: importing torch takes seconds. */
static const char program[] =
	"import sys\n"
	"from importlib.metadata import version, PackageNotFoundError\n"
	"words = ['Python %d.%d.%d' % sys.version_info[:3]]\n"
	"for name in ('torch', 'muster'):\n"
	"    try: words.append('%s %s' % (name, version(name)))\n"
	"    except PackageNotFoundError: words.append('no package ' + name)\n"
	"print(', '.join(words))\n";

static const char *interpreter(const struct check_place *place)
{
	return place->spec->python ? place->spec->python : "python3";
}

static bool ask_python(const char *python, struct buf *out)
{
	char *const argv[] = { (char *)python, "-c", (char *)program, NULL };
	struct piped_spec spec = { .argv = argv, .envp = environ, .deaf = true };
	struct piped child = PIPED_INIT;
	if (piped_start(&spec, &child, NULL) < 0)
		return false;
	fd_read_all(child.out, VERSIONS_MAX, out, NULL);
	bool good = child_wait(child.pid) == 0 && buf_len(out) > 0;
	fd_close(&child.out);
	fd_close(&child.err);
	fd_close(&child.pidfd);
	return good;
}

/* "torch 2.13.0" among words with commas. */
static void state_version(const char *words, const char *name, struct check_result *result)
{
	size_t len, name_len = strlen(name);
	for (const char *word; (word = str_split(&words, ',', &len));) {
		while (len && *word == ' ')
			word++, len--;
		if (len <= name_len + 1 || memcmp(word, name, name_len) != 0 ||
		    word[name_len] != ' ')
			continue;
		AUTO_FREE char *version = mem_strndup(word + name_len + 1, len - name_len - 1);
		check_state_fact(result, name, version);
	}
}

void check_versions(const struct check_place *place, struct check_result *result)
{
	AUTO(buf_done) struct buf python = BUF_INIT;
	struct utsname kernel;
	uname(&kernel);
	check_say(result, "muster %s, Linux %s", MUSTER_VERSION, kernel.release);
	check_state_fact(result, "muster", MUSTER_VERSION);
	if (ask_python(interpreter(place), &python)) {
		AUTO_FREE char *line =
			mem_strndup(buf_str(&python), strcspn(buf_str(&python), "\n"));
		check_say(result, "%s", line);
		state_version(line, "torch", result);
	} else {
		check_find(result, CHECK_WARNING,
			   "for Python workers: install Python, or put it in PATH",
			   "muster %s, Linux %s; %s does not work", MUSTER_VERSION, kernel.release,
			   interpreter(place));
	}
}

/* Tells files apart; nobody chooses their contents to deceive us. */
static uint64_t fnv1a(uint64_t hash, const unsigned char *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++)
		hash = (hash ^ bytes[i]) * 0x100000001b3u;
	return hash;
}

void check_script(const struct check_place *place, struct check_result *result)
{
	const char *path = place->spec->script;
	unsigned char bytes[1 << 16];
	char text[17];
	uint64_t hash = 0xcbf29ce484222325u, size = 0;
	struct stat st;
	AUTO(fd_close) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		check_say(result, "%s is not a file", path); /* a module, a directory */
		return;
	}
	for (ssize_t n; (n = read(fd, bytes, sizeof(bytes))) != 0; size += (uint64_t)n) {
		if (n < 0) {
			check_find(result, CHECK_BAD, "look at the disk or the file server",
				   "%s: %s", path, strerror(errno));
			return;
		}
		hash = fnv1a(hash, bytes, (size_t)n);
	}
	snprintf(text, sizeof(text), "%016" PRIx64, hash);
	check_say(result, "%s: %" PRIu64 " bytes, hash %s", path, size, text);
	check_state_fact(result, "script", text);
}
