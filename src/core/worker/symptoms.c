#include "core/worker/symptoms.h"

#include <stdbool.h>
#include <string.h>

#define FIX ADVICE_FIX
#define HERE ADVICE_RESTART
#define ELSEWHERE ADVICE_ELSEWHERE
#define GUESS CERTAINTY_GUESS
#define LIKELY CERTAINTY_LIKELY
#define KNOWN CERTAINTY_KNOWN

#define NO_MEMORY \
	"the worker ran out of memory: lower its needs, or raise 'ulimit -v' or the cgroup's " \
	"limit"
#define NO_DEVICE_MEMORY \
	"lower the batch size, or look with nvidia-smi for another job on the device"
#define NO_PORT "another program has the port: leave --master-port out, and a free one is taken"
#define NO_PEER "a peer died: look at the other failures and earlier attempts for the first death"
#define NO_NAME "a host name does not resolve: look at DNS or /etc/hosts, or use addresses"
#define BAD_DEVICE \
	"take the device or host out of service and start the job elsewhere: --exclude-hosts"
#define FULL_DISK "a disk is full: look with df -h (/dev/shm too)"
#define BAD_DISK "the storage fails: look at dmesg and the file server"
#define BAD_HEAP "native code corrupts memory: run it with AddressSanitizer or valgrind"

const struct symptom symptoms[] = {
	/* what schedulers and launchers say of it */
	{ "oom-kill event", CLASS_MEMORY, KNOWN, FIX, NO_MEMORY },
	{ "oom_kill event", CLASS_MEMORY, KNOWN, FIX, NO_MEMORY },
	{ "OOM Killed", CLASS_MEMORY, KNOWN, FIX, NO_MEMORY },
	{ "Exceeded job memory limit", CLASS_MEMORY, KNOWN, FIX, NO_MEMORY },
	{ "DUE TO PREEMPTION", CLASS_PREEMPTION, KNOWN, HERE,
	  "the scheduler needed the nodes: start it again" },
	{ "DUE TO NODE FAILURE", CLASS_HOST, KNOWN, ELSEWHERE,
	  "a node of the job failed: start it on others" },
	{ "DUE TO TIME LIMIT", CLASS_CONFIGURATION, KNOWN, FIX,
	  "its time was up: ask for more, or save and start it again" },

	/* memory */
	{ "CUDA out of memory", CLASS_MEMORY, KNOWN, FIX, NO_DEVICE_MEMORY },
	{ "HIP out of memory", CLASS_MEMORY, KNOWN, FIX,
	  "lower the batch size, or look with rocm-smi for another job on the device" },
	{ "torch.OutOfMemoryError", CLASS_MEMORY, KNOWN, FIX,
	  "lower the batch size, or look for another job on the device" },
	{ "cuda.OutOfMemoryError", CLASS_MEMORY, KNOWN, FIX, NO_DEVICE_MEMORY },
	{ "CUBLAS_STATUS_ALLOC_FAILED", CLASS_MEMORY, LIKELY, FIX, NO_DEVICE_MEMORY },
	{ "HSA_STATUS_ERROR_OUT_OF_RESOURCES", CLASS_MEMORY, LIKELY, FIX,
	  "lower the batch size, or look with rocm-smi for another job on the device" },
	{ "RESOURCE_EXHAUSTED: Out of memory", CLASS_MEMORY, KNOWN, FIX,
	  "lower the batch size, or look for another job on the device" },
	{ "DataLoader worker (pid *Bus error", CLASS_MEMORY, LIKELY, FIX,
	  "/dev/shm is too small for the data loaders: look with df -h /dev/shm, raise it or lower "
	  "num_workers" },
	{ "DataLoader worker (pid * killed by signal: Killed", CLASS_MEMORY, LIKELY, FIX,
	  "a data loader ran out of memory: lower num_workers, or raise the cgroup's limit" },
	{ "can't allocate memory", CLASS_MEMORY, KNOWN, FIX, NO_MEMORY },
	{ "MemoryError", CLASS_MEMORY, KNOWN, FIX, NO_MEMORY },
	{ "Cannot allocate memory", CLASS_MEMORY, KNOWN, FIX, NO_MEMORY },
	{ "std::bad_alloc", CLASS_MEMORY, LIKELY, FIX, NO_MEMORY },
	{ "JavaScript heap out of memory", CLASS_MEMORY, KNOWN, FIX, NO_MEMORY },

	/* devices */
	{ "uncorrectable ECC error", CLASS_DEVICE, KNOWN, ELSEWHERE, BAD_DEVICE },
	{ "GPU is lost", CLASS_DEVICE, KNOWN, ELSEWHERE, BAD_DEVICE },
	{ "fallen off the bus", CLASS_DEVICE, KNOWN, ELSEWHERE, BAD_DEVICE },
	{ "HW Exception by GPU node", CLASS_DEVICE, LIKELY, ELSEWHERE, BAD_DEVICE },
	{ "Driver/library version mismatch", CLASS_HOST, KNOWN, ELSEWHERE,
	  "the driver of this host was changed while it ran: reboot it or reload the driver" },
	{ "devices are busy or unavailable", CLASS_DEVICE, LIKELY, ELSEWHERE,
	  "another process holds the device: look with nvidia-smi" },
	{ "CUDA error: unspecified launch failure", CLASS_DEVICE, GUESS, ELSEWHERE,
	  "a fault of the device or of a kernel: try once elsewhere, then with "
	  "CUDA_LAUNCH_BLOCKING=1" },
	{ "CUBLAS_STATUS_EXECUTION_FAILED", CLASS_DEVICE, GUESS, ELSEWHERE,
	  "a fault of the device or of a kernel: try once elsewhere, then with "
	  "CUDA_LAUNCH_BLOCKING=1" },
	{ "CUDA error: an illegal memory access", CLASS_CODE, LIKELY, FIX,
	  "a kernel went out of bounds: run with CUDA_LAUNCH_BLOCKING=1 or compute-sanitizer" },
	{ "Memory access fault by GPU", CLASS_CODE, LIKELY, FIX,
	  "a kernel went out of bounds: run with AMD_SERIALIZE_KERNEL=3" },
	{ "device-side assert triggered", CLASS_CODE, LIKELY, FIX,
	  "often an index or label out of range: run with CUDA_LAUNCH_BLOCKING=1" },
	{ "no kernel image is available", CLASS_CONFIGURATION, KNOWN, FIX,
	  "the program was not built for this device: install a build for its architecture" },
	{ "hipErrorNoBinaryForGpu", CLASS_CONFIGURATION, KNOWN, FIX,
	  "the program was not built for this device: install a build for its architecture" },
	{ "HIP error: invalid device function", CLASS_CONFIGURATION, LIKELY, FIX,
	  "the program was not built for this device: install a build for its architecture" },
	{ "driver version is insufficient", CLASS_CONFIGURATION, KNOWN, FIX,
	  "the driver is older than what the program was built with: update it or take an older "
	  "build" },
	{ "driver on your system is too old", CLASS_CONFIGURATION, KNOWN, FIX,
	  "the driver is older than what the program was built with: update it or take an older "
	  "build" },
	{ "no CUDA-capable device is detected", CLASS_HOST, LIKELY, ELSEWHERE,
	  "this host shows no device: look with nvidia-smi, and at CUDA_VISIBLE_DEVICES" },
	{ "No CUDA GPUs are available", CLASS_HOST, LIKELY, ELSEWHERE,
	  "this host shows no device: look with nvidia-smi, and at CUDA_VISIBLE_DEVICES" },
	{ "No HIP GPUs are available", CLASS_HOST, LIKELY, ELSEWHERE,
	  "this host shows no device: look with rocm-smi, and at HIP_VISIBLE_DEVICES" },
	{ "invalid device ordinal", CLASS_CONFIGURATION, LIKELY, FIX,
	  "more workers than devices: look at --nproc-per-node and CUDA_VISIBLE_DEVICES" },
	{ "Duplicate GPU detected", CLASS_CONFIGURATION, KNOWN, FIX,
	  "two ranks use one device: use cuda:LOCAL_RANK" },

	/* storage */
	{ "No space left on device", CLASS_STORAGE, KNOWN, FIX, FULL_DISK },
	{ "Disk quota exceeded", CLASS_STORAGE, KNOWN, FIX,
	  "the quota is used up: look with quota -s" },
	{ "Read-only file system", CLASS_STORAGE, KNOWN, ELSEWHERE, BAD_DISK },
	{ "Stale file handle", CLASS_STORAGE, KNOWN, HERE,
	  "the file server replaced what was open: start it again" },
	{ "Input/output error", CLASS_STORAGE, LIKELY, ELSEWHERE, BAD_DISK },
	{ "Remote I/O error", CLASS_STORAGE, LIKELY, ELSEWHERE, BAD_DISK },
	{ "Transport endpoint is not connected", CLASS_STORAGE, LIKELY, ELSEWHERE,
	  "a file system in user space has ended: mount it again" },

	/* data */
	{ "PytorchStreamReader failed", CLASS_DATA, LIKELY, FIX,
	  "a checkpoint is cut short or damaged: go back to the one before" },
	{ "SafetensorError", CLASS_DATA, LIKELY, FIX,
	  "a checkpoint is cut short or damaged: go back to the one before" },
	{ "UnpicklingError", CLASS_DATA, LIKELY, FIX,
	  "a file is cut short, damaged or of another kind" },
	{ "EOFError: Ran out of input", CLASS_DATA, LIKELY, FIX, "a file is empty or cut short" },
	{ "UnidentifiedImageError", CLASS_DATA, KNOWN, FIX, "a file is no image, or is damaged" },
	{ "image file is truncated", CLASS_DATA, KNOWN, FIX, "a file is cut short" },
	{ "JSONDecodeError", CLASS_DATA, LIKELY, FIX, "a file is not the JSON that was expected" },
	{ "UnicodeDecodeError", CLASS_DATA, LIKELY, FIX,
	  "a file is not the text that was expected" },
	{ "zlib.error", CLASS_DATA, LIKELY, FIX, "a compressed file is damaged" },
	{ "BadZipFile", CLASS_DATA, LIKELY, FIX, "a compressed file is damaged" },
	{ "ArrowInvalid", CLASS_DATA, LIKELY, FIX, "a data file is damaged, or of another kind" },

	/* installation and options */
	{ "ModuleNotFoundError", CLASS_CONFIGURATION, KNOWN, FIX,
	  "install the module for %s, or name another interpreter in PYTHON_EXEC" },
	{ "GLIBC_", CLASS_CONFIGURATION, KNOWN, FIX,
	  "the program was built for a newer system: build it on this one" },
	{ "GLIBCXX_", CLASS_CONFIGURATION, KNOWN, FIX,
	  "the program was built for a newer system: build it on this one" },
	{ "ImportError", CLASS_CONFIGURATION, KNOWN, FIX, NULL },
	{ "error while loading shared libraries", CLASS_CONFIGURATION, KNOWN, FIX,
	  "install the library, or add its directory to LD_LIBRARY_PATH" },
	{ "Exec format error", CLASS_CONFIGURATION, KNOWN, FIX,
	  "the program is for another kind of processor, or lacks its #! line" },
	{ "Address already in use", CLASS_CONFIGURATION, KNOWN, FIX, NO_PORT },
	{ "EADDRINUSE", CLASS_CONFIGURATION, KNOWN, FIX, NO_PORT },
	{ "Too many open files", CLASS_CONFIGURATION, KNOWN, FIX, "raise 'ulimit -n'" },
	{ "Resource temporarily unavailable", CLASS_CONFIGURATION, GUESS, FIX,
	  "too many processes or threads: look at 'ulimit -u' and the cgroup's pids.max" },
	{ "can't start new thread", CLASS_CONFIGURATION, LIKELY, FIX,
	  "too many processes or threads: look at 'ulimit -u' and the cgroup's pids.max" },
	{ "PermissionError", CLASS_CONFIGURATION, KNOWN, FIX,
	  "the user may not do that: look at owner and mode of what it names" },
	{ "Permission denied", CLASS_CONFIGURATION, KNOWN, FIX,
	  "the user may not do that: look at owner and mode of what it names" },
	{ "FileNotFoundError", CLASS_CONFIGURATION, LIKELY, FIX,
	  "a path is wrong, or not there on this host" },
	{ "unrecognized arguments", CLASS_CONFIGURATION, KNOWN, FIX, NULL },
	{ "the following arguments are required", CLASS_CONFIGURATION, KNOWN, FIX, NULL },

	/* the network, last: a peer's death looks like it */
	{ "transport retry counter exceeded", CLASS_NETWORK, LIKELY, ELSEWHERE,
	  "a link of the fabric lost packets: look at ibstat and the switch" },
	{ "Temporary failure in name resolution", CLASS_NETWORK, LIKELY, HERE, NO_NAME },
	{ "Name or service not known", CLASS_NETWORK, LIKELY, FIX, NO_NAME },
	{ "No route to host", CLASS_NETWORK, LIKELY, ELSEWHERE,
	  "a firewall or a missing route between hosts" },
	{ "Network is unreachable", CLASS_NETWORK, LIKELY, ELSEWHERE,
	  "this host has no route there: look with ip route" },
	{ "connectFullMesh failed", CLASS_NETWORK, LIKELY, HERE,
	  "the ranks cannot reach each other: look at firewalls and GLOO_SOCKET_IFNAME" },
	{ "ncclSystemError", CLASS_NETWORK, GUESS, HERE,
	  "run with NCCL_DEBUG=INFO; look at NCCL_SOCKET_IFNAME and /dev/shm" },
	{ "ncclRemoteError", CLASS_NETWORK, LIKELY, HERE, NO_PEER },
	{ "Watchdog caught collective operation timeout", CLASS_NETWORK, GUESS, HERE,
	  "a rank did not reach the collective: --flight-recorder says which" },
	{ "Timed out waiting * for recv operation", CLASS_NETWORK, GUESS, HERE,
	  "a rank did not reach the collective: --flight-recorder says which" },
	{ "Connection closed by peer", CLASS_NETWORK, GUESS, HERE, NO_PEER },
	{ "Connection reset by peer", CLASS_NETWORK, GUESS, HERE, NO_PEER },
	{ "Connection refused", CLASS_NETWORK, GUESS, HERE,
	  "no peer listened there: look at the other failures and earlier attempts for the first "
	  "death" },
	{ "Connection timed out", CLASS_NETWORK, LIKELY, HERE,
	  "a peer or the network between does not answer" },
	{ "client socket has timed out", CLASS_NETWORK, LIKELY, HERE,
	  "the store was not reached: look at MASTER_ADDR and firewalls" },
	{ "DistNetworkError", CLASS_NETWORK, LIKELY, HERE, NULL },

	/* the program itself */
	{ "terminate called without an active exception", CLASS_CODE, LIKELY, FIX,
	  "if it was at its end, a thread of PyTorch outlived the interpreter: end with "
	  "os._exit(0) after destroy_process_group()" },
	{ "AddressSanitizer", CLASS_CODE, KNOWN, FIX, NULL },
	{ "stack smashing detected", CLASS_CODE, KNOWN, FIX, BAD_HEAP },
	{ "double free or corruption", CLASS_CODE, KNOWN, FIX, BAD_HEAP },
	{ "free(): invalid", CLASS_CODE, KNOWN, FIX, BAD_HEAP },
	{ "corrupted size vs. prev_size", CLASS_CODE, KNOWN, FIX, BAD_HEAP },
	{ "malloc(): *corrupt", CLASS_CODE, KNOWN, FIX, BAD_HEAP },
	{ "Expected all tensors to be on the same device", CLASS_CODE, KNOWN, FIX, NULL },
	{ "size mismatch for ", CLASS_CODE, LIKELY, FIX, "the checkpoint is of another model" },
	{ "Expected to have finished reduction", CLASS_CODE, KNOWN, FIX,
	  "parameters without gradients: find_unused_parameters=True, or use them" },
	{ "SyntaxError", CLASS_CODE, KNOWN, FIX, NULL },
	{ "IndentationError", CLASS_CODE, KNOWN, FIX, NULL },
	{ "NameError", CLASS_CODE, KNOWN, FIX, NULL },
	{ "AttributeError", CLASS_CODE, KNOWN, FIX, NULL },
	{ "TypeError", CLASS_CODE, KNOWN, FIX, NULL },
	{ "ZeroDivisionError", CLASS_CODE, LIKELY, FIX, NULL },
	{ "IndexError", CLASS_CODE, LIKELY, FIX, NULL },
	{ "KeyError", CLASS_CODE, LIKELY, FIX, NULL },
	{ "AssertionError", CLASS_CODE, LIKELY, FIX, NULL },
	{ "NotImplementedError", CLASS_CODE, KNOWN, FIX, NULL },
	{ "RecursionError", CLASS_CODE, KNOWN, FIX, NULL },
	{ "ValueError", CLASS_CODE, LIKELY, FIX, NULL },
	{ "Assertion `*' failed", CLASS_CODE, KNOWN, FIX, NULL },
	{ "panicked at", CLASS_CODE, LIKELY, FIX, NULL },
	{ "Traceback (most recent call last)", CLASS_CODE, GUESS, ADVICE_NONE, NULL },
	{ NULL, CLASS_UNKNOWN, GUESS, ADVICE_NONE, NULL },
};

const struct symptom kernel_symptoms[] = {
	{ "NVRM: Xid * 79,", CLASS_DEVICE, KNOWN, ELSEWHERE, BAD_DEVICE },
	{ "NVRM: Xid * 48,", CLASS_DEVICE, KNOWN, ELSEWHERE, BAD_DEVICE },
	{ "NVRM: Xid * 94,", CLASS_DEVICE, KNOWN, ELSEWHERE, BAD_DEVICE },
	{ "NVRM: Xid * 95,", CLASS_DEVICE, KNOWN, ELSEWHERE, BAD_DEVICE },
	{ "NVRM: Xid * 74,", CLASS_DEVICE, LIKELY, ELSEWHERE, BAD_DEVICE },
	{ "amdgpu: * GPU reset", CLASS_DEVICE, LIKELY, ELSEWHERE, BAD_DEVICE },
	{ "EXT4-fs error", CLASS_STORAGE, LIKELY, ELSEWHERE, BAD_DISK },
	{ "I/O error, dev ", CLASS_STORAGE, LIKELY, ELSEWHERE, BAD_DISK },
	{ "Machine check events logged", CLASS_HOST, GUESS, ELSEWHERE,
	  "the processor or memory of this host reports faults: look at dmesg" },
	{ NULL, CLASS_UNKNOWN, GUESS, ADVICE_NONE, NULL },
};

/* The end of `piece`, `len` bytes, in the line at `at`; NULL: it is not there. */
static const char *find_piece(const char *at, const char *end, const char *piece, size_t len)
{
	const char *found = memmem(at, (size_t)(end - at), piece, len);
	return found ? found + len : NULL;
}

/* Whether the pieces of the pattern lie one after the other in this line. */
static bool line_has(const char *line, const char *end, const char *pattern)
{
	for (;;) {
		size_t len = strcspn(pattern, "*");
		if (!(line = find_piece(line, end, pattern, len)))
			return false;
		if (!pattern[len])
			return true;
		pattern += len + 1;
	}
}

static bool text_has(const char *text, const char *pattern)
{
	size_t first = strcspn(pattern, "*");
	for (const char *at = text; (at = memmem(at, strlen(at), pattern, first)); at++)
		if (line_has(at, at + strcspn(at, "\n"), pattern))
			return true;
	return false;
}

const struct symptom *symptom_find(const struct symptom *table, const char *text)
{
	for (; table->text; table++)
		if (text_has(text, table->text))
			return table;
	return NULL;
}
