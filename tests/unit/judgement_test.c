/* What kind of failure it was: a real message for each known text, and which evidence counts. */
#include "unit.h"

#include <signal.h>
#include <string.h>

#include "core/worker/judgement.h"
#include "core/worker/symptoms.h"

static const struct {
	const char *symptom; /* the row that this message is for */
	const char *message; /* as programs print it */
} messages[] = {
	{ "oom-kill event",
	  "slurmstepd: error: Detected 1 oom-kill event(s) in StepId=12.0. Some of your processes "
	  "may have been killed by the cgroup out-of-memory handler." },
	{ "oom_kill event", "slurmstepd: error: Detected 1 oom_kill event in StepId=71.batch. Some "
			    "of the step tasks have been OOM Killed." },
	{ "OOM Killed", "srun: error: node3: task 2: Out Of Memory; OOM Killed" },
	{ "Exceeded job memory limit",
	  "slurmstepd: error: Exceeded job memory limit at some point." },
	{ "DUE TO PREEMPTION", "slurmstepd: error: *** JOB 71 ON node1 CANCELLED AT "
			       "2026-11-19T03:12:44 DUE TO PREEMPTION ***" },
	{ "DUE TO NODE FAILURE",
	  "slurmstepd: error: *** STEP 71.0 ON node1 CANCELLED AT 2026-11-19T03:12:44 DUE TO NODE "
	  "FAILURE, SEE SLURMCTLD LOG FOR DETAILS ***" },
	{ "DUE TO TIME LIMIT", "slurmstepd: error: *** JOB 71 ON node1 CANCELLED AT "
			       "2026-11-19T03:12:44 DUE TO TIME LIMIT ***" },
	{ "CUDA out of memory", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate "
				"20.00 MiB. GPU 0 has a total capacity of 79.15 GiB" },
	{ "HIP out of memory",
	  "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 2.00 GiB." },
	{ "torch.OutOfMemoryError", "torch.OutOfMemoryError: XPU out of memory." },
	{ "cuda.OutOfMemoryError",
	  "torch.cuda.OutOfMemoryError: Allocation on device 0 would exceed allowed memory." },
	{ "CUBLAS_STATUS_ALLOC_FAILED", "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when "
					"calling `cublasCreate(handle)`" },
	{ "HSA_STATUS_ERROR_OUT_OF_RESOURCES",
	  ":0:rocdevice.cpp:2614: Callback: Queue aborting with error: "
	  "HSA_STATUS_ERROR_OUT_OF_RESOURCES code: 0x1008" },
	{ "RESOURCE_EXHAUSTED: Out of memory",
	  "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to "
	  "allocate 17179869184 bytes." },
	{ "DataLoader worker (pid *Bus error",
	  "RuntimeError: DataLoader worker (pid 1234) is killed by signal: Bus error. It is "
	  "possible that dataloader's workers are out of shared memory (bus error)." },
	{ "DataLoader worker (pid * killed by signal: Killed",
	  "RuntimeError: DataLoader worker (pid 4321) is killed by signal: Killed." },
	{ "can't allocate memory",
	  "RuntimeError: [enforce fail at alloc_cpu.cpp:117] err == 0. DefaultCPUAllocator: can't "
	  "allocate memory: you tried to allocate 4000000000000 bytes." },
	{ "MemoryError", "MemoryError" },
	{ "Cannot allocate memory", "OSError: [Errno 12] Cannot allocate memory" },
	{ "std::bad_alloc", "terminate called after throwing an instance of 'std::bad_alloc'" },
	{ "JavaScript heap out of memory",
	  "FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory" },
	{ "uncorrectable ECC error",
	  "RuntimeError: CUDA error: uncorrectable ECC error encountered" },
	{ "GPU is lost", "Unable to determine the device handle for GPU 0000:3B:00.0: GPU is lost. "
			 " Reboot the system to recover this GPU" },
	{ "fallen off the bus", "GPU at PCI:0000:3b:00 has fallen off the bus." },
	{ "HW Exception by GPU node",
	  "HW Exception by GPU node-1 (Agent handle: 0x55) reason :GPU Hang" },
	{ "Driver/library version mismatch",
	  "Failed to initialize NVML: Driver/library version mismatch" },
	{ "devices are busy or unavailable",
	  "RuntimeError: CUDA error: all CUDA-capable devices are busy or unavailable" },
	{ "CUDA error: unspecified launch failure",
	  "RuntimeError: CUDA error: unspecified launch failure" },
	{ "CUBLAS_STATUS_EXECUTION_FAILED",
	  "RuntimeError: CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasSgemm( "
	  "handle, opa, opb)`" },
	{ "CUDA error: an illegal memory access",
	  "RuntimeError: CUDA error: an illegal memory access was encountered" },
	{ "Memory access fault by GPU",
	  "Memory access fault by GPU node-1 (Agent handle: 0x5581) on address 0x7f0e. Reason: "
	  "Page not present or supervisor privilege." },
	{ "device-side assert triggered",
	  "RuntimeError: CUDA error: device-side assert triggered" },
	{ "no kernel image is available",
	  "RuntimeError: CUDA error: no kernel image is available for execution on the device" },
	{ "hipErrorNoBinaryForGpu",
	  "hipErrorNoBinaryForGpu: Unable to find code object for all current devices!" },
	{ "HIP error: invalid device function",
	  "RuntimeError: HIP error: invalid device function" },
	{ "driver version is insufficient", "RuntimeError: CUDA error: CUDA driver version is "
					    "insufficient for CUDA runtime version" },
	{ "driver on your system is too old",
	  "RuntimeError: The NVIDIA driver on your system is too old (found version 11040)." },
	{ "no CUDA-capable device is detected",
	  "RuntimeError: CUDA error: no CUDA-capable device is detected" },
	{ "No CUDA GPUs are available", "RuntimeError: No CUDA GPUs are available" },
	{ "No HIP GPUs are available", "RuntimeError: No HIP GPUs are available" },
	{ "invalid device ordinal", "RuntimeError: CUDA error: invalid device ordinal" },
	{ "Duplicate GPU detected",
	  "Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 3b000" },
	{ "No space left on device",
	  "OSError: [Errno 28] No space left on device: '/ckpt/step-100.pt'" },
	{ "Disk quota exceeded", "OSError: [Errno 122] Disk quota exceeded" },
	{ "Read-only file system", "OSError: [Errno 30] Read-only file system: '/data/x'" },
	{ "Stale file handle", "OSError: [Errno 116] Stale file handle" },
	{ "Input/output error", "OSError: [Errno 5] Input/output error" },
	{ "Remote I/O error", "OSError: [Errno 121] Remote I/O error: '/mnt/lustre/x'" },
	{ "Transport endpoint is not connected",
	  "OSError: [Errno 107] Transport endpoint is not connected: '/mnt/s3'" },
	{ "PytorchStreamReader failed", "RuntimeError: PytorchStreamReader failed reading zip "
					"archive: failed finding central directory" },
	{ "SafetensorError", "safetensors_rust.SafetensorError: Error while deserializing header: "
			     "InvalidHeaderDeserialization" },
	{ "UnpicklingError", "_pickle.UnpicklingError: invalid load key, 'v'." },
	{ "EOFError: Ran out of input", "EOFError: Ran out of input" },
	{ "UnidentifiedImageError",
	  "PIL.UnidentifiedImageError: cannot identify image file 'x.jpg'" },
	{ "image file is truncated", "OSError: image file is truncated (12 bytes not processed)" },
	{ "JSONDecodeError",
	  "json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)" },
	{ "UnicodeDecodeError", "UnicodeDecodeError: 'utf-8' codec can't decode byte 0xff in "
				"position 0: invalid start byte" },
	{ "zlib.error", "zlib.error: Error -3 while decompressing data: incorrect header check" },
	{ "BadZipFile", "zipfile.BadZipFile: File is not a zip file" },
	{ "ArrowInvalid", "pyarrow.lib.ArrowInvalid: Parquet magic bytes not found in footer." },
	{ "ModuleNotFoundError", "ModuleNotFoundError: No module named 'einops'" },
	{ "GLIBC_", "ImportError: /lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.38' not found "
		    "(required by x.so)" },
	{ "GLIBCXX_", "/usr/lib/libstdc++.so.6: version `GLIBCXX_3.4.30' not found" },
	{ "ImportError", "ImportError: cannot import name 'x' from 'y' (unknown location)" },
	{ "error while loading shared libraries",
	  "./a.out: error while loading shared libraries: libcudart.so.12: cannot open shared "
	  "object file: No such file or directory" },
	{ "Exec format error", "OSError: [Errno 8] Exec format error: './train'" },
	{ "Address already in use", "RuntimeError: The server socket has failed to listen on any "
				    "local network address. errno: Address already in use" },
	{ "EADDRINUSE",
	  "RuntimeError: The server socket has failed to listen: code: -98, name: EADDRINUSE" },
	{ "Too many open files", "OSError: [Errno 24] Too many open files" },
	{ "Resource temporarily unavailable",
	  "BlockingIOError: [Errno 11] Resource temporarily unavailable" },
	{ "can't start new thread", "RuntimeError: can't start new thread" },
	{ "PermissionError", "PermissionError: [Errno 1] Operation not permitted" },
	{ "Permission denied", "bash: ./x.sh: Permission denied" },
	{ "FileNotFoundError",
	  "FileNotFoundError: [Errno 2] No such file or directory: '/data/train.bin'" },
	{ "unrecognized arguments", "train.py: error: unrecognized arguments: --lrr 1" },
	{ "the following arguments are required",
	  "train.py: error: the following arguments are required: --data" },
	{ "transport retry counter exceeded",
	  "NCCL WARN NET/IB : Got completion from peer 10.0.0.2 with status=12 vendor err 129: "
	  "transport retry counter exceeded" },
	{ "Temporary failure in name resolution",
	  "socket.gaierror: [Errno -3] Temporary failure in name resolution" },
	{ "Name or service not known", "socket.gaierror: [Errno -2] Name or service not known" },
	{ "No route to host", "OSError: [Errno 113] No route to host" },
	{ "Network is unreachable", "OSError: [Errno 101] Network is unreachable" },
	{ "connectFullMesh failed",
	  "RuntimeError: Gloo connectFullMesh failed with "
	  "[../third_party/gloo/gloo/transport/tcp/pair.cc:144] no error" },
	{ "ncclSystemError", "ncclSystemError: System call (e.g. socket, malloc) or external "
			     "library call failed or device error." },
	{ "ncclRemoteError", "ncclRemoteError: A call failed possibly due to a network error or a "
			     "remote process exiting prematurely." },
	{ "Watchdog caught collective operation timeout",
	  "[Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, "
	  "OpType=ALLREDUCE) ran for 600010 milliseconds before timing out." },
	{ "Timed out waiting * for recv operation",
	  "RuntimeError: [gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting 1800000ms for "
	  "recv operation to complete" },
	{ "Connection closed by peer", "RuntimeError: [gloo/transport/tcp/pair.cc:534] Connection "
				       "closed by peer [127.0.0.1]:4711" },
	{ "Connection reset by peer",
	  "ConnectionResetError: [Errno 104] Connection reset by peer" },
	{ "Connection refused", "ConnectionRefusedError: [Errno 111] Connection refused" },
	{ "Connection timed out", "TimeoutError: [Errno 110] Connection timed out" },
	{ "client socket has timed out",
	  "torch.distributed.DistNetworkError: The client socket has timed out after 600000ms "
	  "while trying to connect to (host, 29500)." },
	{ "DistNetworkError", "torch.distributed.DistNetworkError: failed to recv, got 0 bytes" },
	{ "terminate called without an active exception",
	  "terminate called without an active exception" },
	{ "AddressSanitizer",
	  "==77==ERROR: AddressSanitizer: heap-buffer-overflow on address 0x602000000014" },
	{ "stack smashing detected", "*** stack smashing detected ***: terminated" },
	{ "double free or corruption", "double free or corruption (!prev)" },
	{ "free(): invalid", "free(): invalid pointer" },
	{ "corrupted size vs. prev_size", "corrupted size vs. prev_size" },
	{ "malloc(): *corrupt", "malloc(): unsorted double linked list corrupted" },
	{ "Expected all tensors to be on the same device",
	  "RuntimeError: Expected all tensors to be on the same device, but found at least two "
	  "devices, cuda:0 and cpu!" },
	{ "size mismatch for ", "RuntimeError: Error(s) in loading state_dict for Net: size "
				"mismatch for fc.weight: copying a param with shape [10, 2]" },
	{ "Expected to have finished reduction",
	  "RuntimeError: Expected to have finished reduction in the prior iteration before "
	  "starting a new one." },
	{ "SyntaxError", "SyntaxError: invalid syntax" },
	{ "IndentationError", "IndentationError: unexpected indent" },
	{ "NameError", "NameError: name 'x' is not defined" },
	{ "AttributeError", "AttributeError: 'NoneType' object has no attribute 'step'" },
	{ "TypeError", "TypeError: unsupported operand type(s) for +: 'int' and 'str'" },
	{ "ZeroDivisionError", "ZeroDivisionError: division by zero" },
	{ "IndexError", "IndexError: list index out of range" },
	{ "KeyError", "KeyError: 'loss'" },
	{ "AssertionError", "AssertionError: world size must be even" },
	{ "NotImplementedError",
	  "NotImplementedError: Module [Net] is missing the required \"forward\" function" },
	{ "RecursionError", "RecursionError: maximum recursion depth exceeded" },
	{ "ValueError", "ValueError: bad batch" },
	{ "Assertion `*' failed", "a.out: main.c:3: main: Assertion `x == 1' failed." },
	{ "panicked at", "thread 'main' panicked at src/main.rs:2:5:" },
	{ "Traceback (most recent call last)", "Traceback (most recent call last):" },
};

static const struct {
	const char *symptom, *message;
} kernel_messages[] = {
	{ "NVRM: Xid * 79,",
	  "NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, GPU has fallen off the bus." },
	{ "NVRM: Xid * 48,", "NVRM: Xid (PCI:0000:3b:00): 48, pid='<unknown>', name=<unknown>, DBE "
			     "(Double Bit Error) ECC Error" },
	{ "NVRM: Xid * 94,",
	  "NVRM: Xid (PCI:0000:3b:00): 94, pid=77, name=python, Contained: ECC error" },
	{ "NVRM: Xid * 95,",
	  "NVRM: Xid (PCI:0000:3b:00): 95, pid=77, name=python, Uncontained: ECC error" },
	{ "NVRM: Xid * 74,",
	  "NVRM: Xid (PCI:0000:3b:00): 74, pid=1234, NVLink: fatal error detected on link 2" },
	{ "amdgpu: * GPU reset", "amdgpu 0000:03:00.0: amdgpu: GPU hang; amdgpu: begin GPU reset" },
	{ "EXT4-fs error", "EXT4-fs error (device sda1): ext4_find_entry:1455: inode #2: comm "
			   "python: reading directory lblock 0" },
	{ "I/O error, dev ",
	  "blk_update_request: I/O error, dev nvme0n1, sector 2048 op 0x0:(READ)" },
	{ "Machine check events logged", "mce: [Hardware Error]: Machine check events logged" },
};

static struct judgement judged(int signal, int code, const char *words)
{
	struct evidence evidence = { .reason = FAILURE_EXIT, .words = words, .pid = 77 };
	struct judgement judgement;
	evidence.status = signal ? (struct exit_status){ EXIT_SIGNAL, signal, false }
				 : (struct exit_status){ EXIT_CODE, code, false };
	judge_failure(&evidence, &judgement);
	return judgement;
}

TEST(each_known_text_is_found_in_the_message_it_is_for)
{
	for (size_t i = 0; i < ARRAY_LEN(messages); i++) {
		const struct symptom *found = symptom_find(symptoms, messages[i].message);
		ck_assert_msg(found && strcmp(found->text, messages[i].symptom) == 0,
			      "'%s' is taken for '%s'", messages[i].message,
			      found ? found->text : "nothing");
	}
	for (size_t i = 0; i < ARRAY_LEN(kernel_messages); i++) {
		const struct symptom *found =
			symptom_find(kernel_symptoms, kernel_messages[i].message);
		ck_assert_msg(found && strcmp(found->text, kernel_messages[i].symptom) == 0,
			      "'%s' is taken for '%s'", kernel_messages[i].message,
			      found ? found->text : "nothing");
	}
}

TEST(each_row_of_the_tables_has_a_message)
{
	for (const struct symptom *row = symptoms; row->text; row++) {
		size_t i = 0;
		while (i < ARRAY_LEN(messages) && strcmp(messages[i].symptom, row->text) != 0)
			i++;
		ck_assert_msg(i < ARRAY_LEN(messages), "no message has '%s'", row->text);
	}
	for (const struct symptom *row = kernel_symptoms; row->text; row++) {
		size_t i = 0;
		while (i < ARRAY_LEN(kernel_messages) &&
		       strcmp(kernel_messages[i].symptom, row->text) != 0)
			i++;
		ck_assert_msg(i < ARRAY_LEN(kernel_messages), "no message has '%s'", row->text);
	}
}

TEST(an_oom_kill_that_the_kernel_counted_is_known_and_others_are_guessed)
{
	struct evidence evidence = { .reason = FAILURE_EXIT,
				     .status = { EXIT_SIGNAL, SIGKILL, false },
				     .pid = 77 };
	struct judgement judgement;
	judge_failure(&evidence, &judgement);
	ck_assert_int_eq(judgement.class, CLASS_MEMORY);
	ck_assert_int_eq(judgement.certainty, CERTAINTY_GUESS);
	evidence.oom_kill = true;
	judge_failure(&evidence, &judgement);
	ck_assert_int_eq(judgement.certainty, CERTAINTY_KNOWN);
	ck_assert_str_eq(judgement.from, "cgroup");
	evidence.oom_kill = false;
	evidence.kernel = "Memory cgroup out of memory: Killed process 78 (python) total-vm:1kB\n";
	judge_failure(&evidence, &judgement);
	ck_assert_int_eq(judgement.certainty, CERTAINTY_GUESS);
	evidence.kernel = "Out of memory: Killed process 77 (python) total-vm:1kB\n";
	judge_failure(&evidence, &judgement);
	ck_assert_int_eq(judgement.certainty, CERTAINTY_KNOWN);
	ck_assert_str_eq(judgement.from, "kernel log");
	evidence.status = (struct exit_status){ EXIT_CODE, 1, false }; /* it was another one */
	evidence.oom_kill = true;
	judge_failure(&evidence, &judgement);
	ck_assert_int_eq(judgement.class, CLASS_UNKNOWN);
}

TEST(what_a_worker_printed_is_not_why_somebody_else_killed_it)
{
	struct judgement judgement = judged(SIGTERM, 0, "ValueError: retrying\n");
	ck_assert_int_eq(judgement.class, CLASS_PREEMPTION);
	ck_assert_str_eq(judgement.from, "signal");
	ck_assert_str_eq(judgement.symptom, "SIGTERM");
	judgement = judged(SIGABRT, 0, "terminate called after throwing 'std::bad_alloc'\n");
	ck_assert_int_eq(judgement.class, CLASS_MEMORY);
}

TEST(the_last_line_counts_more_than_troubles_before_it)
{
	struct judgement judgement = judged(
		0, 1, "CUDA out of memory: with a smaller batch\nTypeError: 'x' is not y\n\n");
	ck_assert_int_eq(judgement.class, CLASS_CODE);
	judgement = judged(0, 1,
			   "RuntimeError: CUDA error: device-side assert triggered\n"
			   "Compile with TORCH_USE_CUDA_DSA to enable assertions.\n");
	ck_assert_str_eq(judgement.symptom, "device-side assert triggered");
}

TEST(nothing_is_guessed_from_nothing)
{
	struct judgement judgement = judged(0, 1, "");
	ck_assert_int_eq(judgement.class, CLASS_UNKNOWN);
	ck_assert_str_eq(judgement.from, "none");
	ck_assert_ptr_null(judgement.hint);
	judgement = judged(0, 1, NULL);
	ck_assert_int_eq(judgement.class, CLASS_UNKNOWN);
	ck_assert_int_eq(judged(0, 127, "").class, CLASS_CONFIGURATION);
	judge_text("all is well", &judgement);
	ck_assert_int_eq(judgement.class, CLASS_UNKNOWN);
}

TEST(what_the_launcher_saw_counts_before_texts)
{
	struct evidence evidence = { .words = "ValueError",
				     .status = { EXIT_SIGNAL, SIGKILL, false } };
	struct judgement judgement;
	for (int reason = FAILURE_EXIT + 1; reason < FAILURE_REASON_COUNT; reason++) {
		evidence.reason = (enum failure_reason)reason;
		judge_failure(&evidence, &judgement);
		ck_assert_str_eq(judgement.from, "launcher");
	}
}

TEST(a_star_stays_in_its_line)
{
	ck_assert_ptr_nonnull(symptom_find(symptoms, "x\nAssertion `a == b' failed.\n"));
	ck_assert_ptr_null(symptom_find(symptoms, "Assertion `a\n' failed.\n"));
}
