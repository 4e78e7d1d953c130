"""muster batch from the outside: real commands, real faults."""

import collections
import fcntl
import hashlib
import json
import os
import pty
import random
import re
import signal
import struct
import subprocess
import termios
import time

import pytest

import able
from batch_files import results, write
from proc import alive, children, name, read, start_time
from tree import BUILD, MUSTER, clean_env
from waits import DEADLINE, wait_for


def count(path):
    """Attempts in a result file that is being written."""
    return path.read_bytes().count(b"\n") - 1 if path.exists() else 0


def pending(pid):
    """The signals that a process has not taken yet, as bits; none when it has ended."""
    try:
        status = open(f"/proc/{pid}/status").read()
    except FileNotFoundError:
        return 0
    return int(re.search(r"ShdPnd:\s+(\w+)", status)[1], 16)


def marked(marker):
    """Processes with the marker in their command line."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        if marker.encode() in read(pid, "cmdline") and alive(pid) and int(pid) != os.getpid():
            found.append(int(pid))
    return found


# --- the ten faults of the ancestor ---


def test_1_an_order_that_prints_much_does_not_block(muster, tmp_path):
    r = muster("batch", "-q", "-o", "r.jsonl", ":::", "head -c 5000000 /dev/zero | tr '\\0' x")
    assert r.returncode == 0 and len(r.stdout) == 5_000_000
    (line,) = results(tmp_path / "r.jsonl")
    assert line["stdout"]["bytes"] == 5_000_000
    assert line["stdout"]["sha256"] == hashlib.sha256(b"x" * 5_000_000).hexdigest()


def test_2_a_failure_ends_no_other_order_and_loses_nothing(muster, tmp_path):
    r = muster("batch", "-o", "r.jsonl", ":::", "exit 3", "true a", "kill -SEGV $$", "true b")
    assert r.returncode == 1
    reasons = {line["cmd"]: line["reason"] for line in results(tmp_path / "r.jsonl")}
    assert reasons == {"exit 3": "exit", "true a": "ok", "kill -SEGV $$": "signal", "true b": "ok"}


def test_3_and_4_a_timeout_waits_for_the_whole_tree_before_the_retry(muster, tmp_path):
    marker = f"31{os.getpid()}"
    script = f"trap '' TERM INT; setsid sleep {marker} & (sleep {marker} &) ; sleep {marker}"
    r = muster("batch", "-o", "r.jsonl", "--timeout=2", "--term-seq=TERM,100,KILL", "--retries=1",
               "--retry-delay=10ms", ":::", script)
    assert r.returncode == 1
    first, second = results(tmp_path / "r.jsonl")
    assert (first["reason"], second["reason"], second["attempt"]) == ("timeout", "timeout", 2)
    assert first["signal"] == "SIGKILL"
    assert marked(marker) == []


def test_5_many_short_orders_start_without_polling(muster, tmp_path):
    """10,000 orders: at the ancestor's two starts a second this would take 80 minutes."""
    orders = write(tmp_path / "orders", *(f"true {i}" for i in range(10_000)))
    r = muster("batch", "-q", "-j2", "-o", "r.jsonl", orders, timeout=5 * DEADLINE)
    assert r.returncode == 0
    lines = results(tmp_path / "r.jsonl")
    assert len({line["hash"] for line in lines}) == len(lines) == 10_000


def test_7_and_8_the_pool_respects_the_affinity_mask(muster, tmp_path):
    cpu = sorted(os.sched_getaffinity(0))[0]
    r = muster("batch", "-o", "r.jsonl", ":::", "grep Cpus_allowed_list /proc/self/status", "true",
               preexec_fn=lambda: os.sched_setaffinity(0, {cpu}))
    assert r.returncode == 0
    assert r.stdout.split()[-1] == str(cpu)
    assert {line["cores"] for line in results(tmp_path / "r.jsonl")} == {str(cpu)}


def test_an_order_wider_than_the_host_is_refused_at_once(muster, tmp_path):
    cpus = len(os.sched_getaffinity(0))
    orders = write(tmp_path / "orders", "touch ran", json.dumps({"cmd": "true", "cores": cpus + 1}))
    r = muster("batch", orders)
    assert r.returncode == 2
    assert re.search(rf"an order wants {cpus + 1} cores; the most that works here is \d+", r.stderr)
    assert not (tmp_path / "ran").exists()


def test_10_results_are_lines_of_json_with_real_values(muster, tmp_path):
    r = muster("batch", "-o", "r.jsonl", ":::", "python3 -c 'b=bytearray(60<<20); sum(range(10**6))'", "nosuchprogram")
    assert r.returncode == 1
    by_reason = {line["reason"]: line for line in results(tmp_path / "r.jsonl")}
    good, bad = by_reason["ok"], by_reason["spawn"]
    assert 60_000 < good["maxrss_kb"] < 120_000 and good["user_ns"] > 0 and good["wall_ns"] > 0
    assert good["cores"].isdigit()
    assert "wall_ns" not in bad and "not on PATH" in bad["missing"]["start"]


# --- orders ---


def test_a_broken_line_in_the_middle_stops_everything_before_it_starts(muster, tmp_path):
    orders = write(tmp_path / "orders", "touch ran", '{"cmd":"x","timeuot":3}', "true")
    r = muster("batch", orders)
    assert (r.returncode, (tmp_path / "ran").exists()) == (2, False)
    assert f"{orders}:2: unknown key 'timeuot'; did you mean 'timeout'?" in r.stderr


def test_orders_come_from_standard_input_and_arguments(muster, tmp_path):
    r = muster("batch", "-q", "-", stdin=None, input="echo a\n# no\n\necho b\n")
    assert sorted(r.stdout.split()) == ["a", "b"]
    r = muster("batch", "-q", "-j1", "echo {#}:{}", ":::", "a b", "it's", "$HOME")
    assert r.stdout.splitlines() == ["1:a b", "2:it's", "3:$HOME"]


def test_keys_of_an_order_are_obeyed(muster, tmp_path):
    (tmp_path / "in").write_text("from a file\n")
    (tmp_path / "dir").mkdir()
    order = {"id": "x/y", "cmd": ["sh", "-c", "cat; pwd; echo $A ${B-unset}"], "env": {"A": "1 2", "B": None},
             "stdin": str(tmp_path / "in"), "cwd": str(tmp_path / "dir"), "runs": 2}
    orders = write(tmp_path / "orders", json.dumps(order))
    r = muster("batch", "-q", "-o", "r.jsonl", "--results=out", orders, env=clean_env(B="there"))
    assert r.returncode == 0 and r.stdout == ""
    lines = results(tmp_path / "r.jsonl")
    assert [(line["id"], line["run"]) for line in lines] == [("x/y", 0), ("x/y", 1)]
    text = (tmp_path / lines[0]["stdout"]["path"]).read_text()
    assert text == f"from a file\n{tmp_path}/dir\n1 2 unset\n"


def test_duplicates_are_refused_or_run_as_often_as_listed(muster, tmp_path):
    orders = write(tmp_path / "orders", "echo x", "echo x")
    r = muster("batch", orders)
    assert r.returncode == 2 and "order 2 runs the same as order 1" in r.stderr
    assert muster("batch", "-q", "--allow-duplicates", orders).stdout == "x\nx\n"


def test_a_script_without_interpreter_line_runs_as_in_a_shell(muster, tmp_path):
    script = tmp_path / "script"
    script.write_text("echo from $1\n")
    script.chmod(0o755)
    assert muster("batch", "-q", ":::", f"{script} here").stdout == "from here\n"


# --- resume ---


def test_resume_runs_only_what_has_no_good_result_even_if_the_list_was_edited(muster, tmp_path):
    orders = write(tmp_path / "orders", "echo 1", "test -e flag", "echo 3")
    assert muster("batch", "-o", "r.jsonl", orders).returncode == 1
    assert muster("batch", "-o", "r.jsonl", orders).returncode == 2, "an old file needs --resume"
    (tmp_path / "flag").touch()
    write(orders, "echo new", "test -e flag", "echo 3", "echo 1")
    r = muster("batch", "-o", "r.jsonl", "--resume", orders)
    assert r.returncode == 0 and r.stdout == "new\n"
    good = collections.Counter(line["cmd"] for line in results(tmp_path / "r.jsonl") if line["reason"] == "ok")
    assert good == {"echo 1": 1, "echo 3": 1, "echo new": 1, "test -e flag": 1}


def test_retry_failed_needs_only_the_result_file(muster, tmp_path):
    order = json.dumps({"id": "e", "cmd": 'test "$A" = 1 -a -e flag', "env": {"A": "1"}})
    orders = write(tmp_path / "orders", "true", order, "test -e flag")
    assert muster("batch", "-o", "r.jsonl", orders).returncode == 1
    (tmp_path / "flag").touch()
    r = muster("batch", "-o", "r.jsonl", "--retry-failed")
    assert r.returncode == 0 and "2 of 2 done" in r.stderr
    assert [line["reason"] for line in results(tmp_path / "r.jsonl")[3:]] == ["ok", "ok"]


def test_kill_9_at_random_points_loses_and_repeats_nothing(start, tmp_path):
    """The runner is killed again and again until the list is done, 100 times and more."""
    orders_count, seed = 600, random.randrange(10**6)
    rng = random.Random(seed)
    orders = write(tmp_path / "orders", *(f"echo {i} >>ran; exec sleep 0.01" for i in range(orders_count)))
    kills = 0
    for _ in range(1000):
        process = start("batch", "-q", "-j2", "--resume", "-o", "r.jsonl", orders)
        try:
            process.wait(timeout=rng.uniform(0.005, 0.045) if kills < 100 else DEADLINE)
            break
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            kills += 1
    good = collections.Counter(line["hash"] for line in results(tmp_path / "r.jsonl") if line["reason"] == "ok")
    assert len(good) == orders_count and set(good.values()) == {1}, f"seed {seed}"
    assert kills == 100, "the list ended too early to be killed often enough"
    wait_for(lambda: not marked(str(tmp_path)), "everything to be gone")


def test_a_torn_last_line_is_cut_off_and_a_second_runner_is_refused(muster, start, tmp_path):
    orders = write(tmp_path / "orders", "true 1", "true 2")
    assert muster("batch", "-o", "r.jsonl", orders).returncode == 0
    whole = (tmp_path / "r.jsonl").read_text()
    (tmp_path / "r.jsonl").write_text(whole[:-20])
    process = start("batch", "--resume", "-o", "r.jsonl", 
                    write(tmp_path / "slow", "true 1", "true 2", "touch started; exec sleep 30"))
    wait_for(lambda: (tmp_path / "started").exists() and count(tmp_path / "r.jsonl") == 2, "the second result")
    r = muster("batch", "--resume", "-o", "r.jsonl", orders)
    assert r.returncode == 2 and "another batch" in r.stderr
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=DEADLINE) == 143
    assert [line["reason"] for line in results(tmp_path / "r.jsonl")] == ["ok", "ok", "killed"]


# --- faults ---


KINDS = ["child", "group", "session", "daemon", "bare", "deaf", "chain", "reaper", "stopped", "stopped-daemon"]
ENDS = {"exit": "ok", "crash": "signal", "wait": "timeout"}


def is_alive(pid, started):
    return alive(pid) and start_time(pid) == started


def test_nothing_is_left_of_any_escape_artist_and_no_neighbour_is_killed(muster, tmp_path):
    """Every way to escape against every way to end; the neighbour's own daemon lives as long as it does."""
    record = tmp_path / "record"
    names = {f"{kind}-{end}": [str(BUILD / "helpers" / "escape"), kind, str(record), end] for kind in KINDS for end in ENDS}
    neighbour = ("setsid sleep 1000 & pid=$!; "
                 f"until [ $(wc -l <r.jsonl) -gt {len(names)} ]; do kill -0 $pid || exit 9; sleep 0.05; done")
    orders = [json.dumps({"id": "neighbour", "cmd": neighbour})]
    orders += [json.dumps({"id": name, "cmd": argv, "timeout": 2}) for name, argv in names.items()]
    r = muster("batch", "-q", "-j6", "--place=none", "--order=listed", "--term-seq=TERM,100,KILL", "-o", "r.jsonl",
               write(tmp_path / "orders", *orders))
    reasons = {line["id"]: line["reason"] for line in results(tmp_path / "r.jsonl")}
    assert reasons == {"neighbour": "ok", **{name: ENDS[name.rsplit("-", 1)[1]] for name in names}}
    assert r.returncode == 1
    text = record.read_text()
    assert text.count("ready") == len(names)
    assert [pid for pid, start in re.findall(r"(\d+) (\d+)\n", text) if is_alive(pid, start)] == []


def test_an_order_whose_warden_is_killed_is_lost_and_tried_again(start, tmp_path):
    orders = [f"echo >>{name}; [ $(wc -l <{name}) = 2 ] || exec sleep 3{os.getpid()}" for name in "ab"]
    process = start("batch", "-j2", "--retries=1", "--retry-delay=10ms", "-o", "r.jsonl", ":::", *orders)
    wait_for(lambda: all((tmp_path / name).exists() for name in "ab"), "both orders")
    wardens = [warden for heir in children(process.pid) for warden in children(heir)]
    assert [name(pid) for pid in wardens] == ["warden", "warden"]
    for pid in wardens:
        os.kill(pid, signal.SIGKILL)
    assert process.wait(timeout=DEADLINE) == 0
    assert collections.Counter(line["reason"] for line in results(tmp_path / "r.jsonl")) == {"lost": 2, "ok": 2}
    assert marked(f"3{os.getpid()}") == []


def test_cpu_time_of_the_whole_tree_is_limited(muster, tmp_path):
    spin = "python3 -c 'while True: pass'"
    r = muster("batch", "-q", "-o", "r.jsonl", "--cpu-timeout=0.5", "--timeout=50", ":::", f"{spin} & wait", "sleep 0.1")
    assert r.returncode == 1
    assert sorted(line["reason"] for line in results(tmp_path / "r.jsonl")) == ["cpu-timeout", "ok"]


def test_retries_by_reason(muster, tmp_path):
    r = muster("batch", "-o", "r.jsonl", "--retries=3", "--retry-on=exit=75", "--retry-delay=5ms",
               ":::", "echo >>tries; test $(wc -l <tries) -ge 3 || exit 75", "exit 1")
    assert r.returncode == 1
    seen = [(line["cmd"][:4], line["attempt"], line["reason"]) for line in results(tmp_path / "r.jsonl")]
    assert sorted(seen) == [("echo", 1, "exit"), ("echo", 2, "exit"), ("echo", 3, "ok"), ("exit", 1, "exit")]


def test_halt_now_is_the_ancestors_rule(muster, tmp_path):
    r = muster("batch", "-j2", "--order=listed", "--halt=now,fail=1", "-o", "r.jsonl", ":::", "sleep 50", "exit 4", "touch ran")
    assert r.returncode == 1 and not (tmp_path / "ran").exists()
    assert {line["cmd"]: line["reason"] for line in results(tmp_path / "r.jsonl")} == {"sleep 50": "killed", "exit 4": "exit"}


def test_the_canary_goes_first(muster, tmp_path):
    r = muster("batch", "--canary=exit 5", "-o", "r.jsonl", ":::", "touch ran")
    assert r.returncode == 1 and not (tmp_path / "ran").exists()
    assert [line["reason"] for line in results(tmp_path / "r.jsonl")] == ["canary"]
    r = muster("batch", "--canary=true", ":::", "touch ran")
    assert r.returncode == 0 and (tmp_path / "ran").exists()
    r = muster("batch", "--canary=auto", "-q", "-o", "s.jsonl", ":::", "false 1", "false 2", "true 1", "true 2")
    assert r.returncode == 1
    assert sorted(line["cmd"] for line in results(tmp_path / "s.jsonl")) == ["false 1", "true 1", "true 2"]


@pytest.mark.parametrize("presses", [1, 2])
def test_ctrl_c_leaves_a_journal_that_can_be_resumed(start, muster, tmp_path, presses):
    trap = "trap '' INT; " if presses == 2 else ""
    orders = write(tmp_path / "orders", "true", f"touch started; {trap}sleep 3{os.getpid()}", "true last")
    process = start("batch", "-j2", "--order=listed", "-o", "r.jsonl", orders)
    wait_for(lambda: (tmp_path / "started").exists() and count(tmp_path / "r.jsonl") == 2, "the others to end")
    for _ in range(presses):
        process.send_signal(signal.SIGINT)
        if presses == 2:  # two that are pending at the same time would be one
            wait_for(lambda: not pending(process.pid) & 2, "the signal to be taken")
    assert process.wait(timeout=DEADLINE) == 130
    assert marked(f"3{os.getpid()}") == []
    assert collections.Counter(line["reason"] for line in results(tmp_path / "r.jsonl"))["killed"] == 1
    assert "--resume goes on from here" in process.stderr.read()


def test_a_full_disk_ends_the_batch_with_a_valid_file(muster, tmp_path):
    mount = tmp_path / "small"
    mount.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", mount], capture_output=True, text=True)
    if mounted.returncode:
        pytest.skip(mounted.stderr.strip())
    try:
        orders = write(tmp_path / "orders", *(f"true {i}" for i in range(1000)))
        r = muster("batch", "-o", mount / "r.jsonl", orders)
        assert r.returncode == 125 and "No space left on device" in r.stderr
        text = (mount / "r.jsonl").read_text()
        assert text.endswith("\n")
        finished = len(results(mount / "r.jsonl"))
        assert 10 < finished < 1000
        subprocess.run(["mount", "-o", "remount,size=8m", mount], check=True)
        r = muster("batch", "--resume", "-o", mount / "r.jsonl", orders)
        assert r.returncode == 0 and f"{finished} were done before" in r.stderr
        assert len({line["hash"] for line in results(mount / "r.jsonl")}) == 1000
    finally:
        subprocess.run(["umount", mount], check=True)


@pytest.mark.parametrize("content", ["notes of mine", '{"a": 1}', '{"muster": "sim"', "first\nsecond\n"])
def test_a_file_that_is_not_a_result_file_is_never_written_to(muster, tmp_path, content):
    (tmp_path / "mine").write_text(content)
    r = muster("batch", "--resume", "-o", "mine", ":::", "touch ran")
    assert r.returncode == 2 and "mine" in r.stderr and "result file" in r.stderr
    assert (tmp_path / "mine").read_text() == content and not (tmp_path / "ran").exists()


def test_a_header_that_was_torn_is_written_again(muster, tmp_path):
    (tmp_path / "r.jsonl").write_text('{"muster":"bat')
    assert muster("batch", "--resume", "-o", "r.jsonl", ":::", "true").returncode == 0
    assert [line["reason"] for line in results(tmp_path / "r.jsonl")] == ["ok"]


@pytest.mark.parametrize("harm, told", [("rm r.jsonl", "deleted"), (": >r.jsonl", "changed")])
@pytest.mark.parametrize("rest", ["true 1", None])
def test_a_result_file_that_is_deleted_or_cut_stops_the_batch(muster, tmp_path, harm, told, rest):
    r = muster("batch", "-j1", "-o", "r.jsonl", ":::", "true 0", harm, *filter(None, [rest]))
    assert r.returncode == 125 and "r.jsonl" in r.stderr and told in r.stderr, r.stderr


def test_one_gigabyte_of_output_goes_to_a_file(muster, tmp_path):
    r = muster("batch", "-q", "-o", "r.jsonl", "--results=out", ":::", "head -c 1073741824 /dev/zero", "true",
               timeout=3 * DEADLINE)
    assert r.returncode == 0
    big = next(line for line in results(tmp_path / "r.jsonl") if line["cmd"].startswith("head"))
    assert big["stdout"]["bytes"] == 1 << 30
    assert big["stdout"]["sha256"] == "49bc20df15e412a64472421e13fe86ff1c5165e18b2afccf160d4dc19fe68a14"
    os.unlink(tmp_path / big["stdout"]["path"])


def test_a_stuck_reader_blocks_no_order(start, tmp_path):
    """Our stdout is not read; the orders end all the same."""
    read, stdout = os.pipe()
    process = start("batch", "-q", "-j2", "-o", "r.jsonl", "yes {} | head -c 300000", ":::", *range(8), stdout=stdout)
    os.close(stdout)
    wait_for(lambda: count(tmp_path / "r.jsonl") == 8, "all results")
    total = 0
    while data := os.read(read, 1 << 16):
        total += len(data)
    os.close(read)
    assert process.wait(timeout=DEADLINE) == 0 and total == 8 * 300_000


def test_memory_for_100_000_orders(tmp_path):
    """Measured by muster itself: what a program starts out with counts the memory of whoever forked it,
    and this process has large libraries loaded."""
    orders = write(tmp_path / "orders", *(f"true --case {i} --input data/file-{i}.bin" for i in range(100_000)))
    command = [MUSTER, "batch", "-q", "--deadline=0.5", "-o", tmp_path / "r.jsonl", orders]
    outer = write(tmp_path / "outer", json.dumps({"id": "inner", "cmd": [str(word) for word in command]}))
    process = subprocess.run([MUSTER, "batch", "-q", "-o", tmp_path / "outer.jsonl", outer], env=clean_env(),
                             stdin=subprocess.DEVNULL, timeout=DEADLINE)
    line = json.loads((tmp_path / "outer.jsonl").read_text().splitlines()[1])
    assert process.returncode == 1 and line["exit"] == 1 and count(tmp_path / "r.jsonl") > 0
    if "san" not in str(BUILD):
        assert line["maxrss_kb"] <= 64 * 1024


# --- job log ---


def test_the_job_log_is_that_of_gnu_parallel(muster, tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    (home / "will-cite").touch()
    commands = ["true", "exit 3", "kill -9 $$", "seq 1000", "echo 'a  b'"]
    arguments = ["a b", "it's", "$x", "", "-x", "é", "a/b_c.d+e", "a=b", "{}", "'", "''", "a'"]
    for args in ([":::", *commands], ["echo {} {#} {%}", ":::", *arguments], ["printf", "%s", ":::", *arguments]):
        muster("batch", "-j1", "--order=listed", "--joblog=ours", *args)
        subprocess.run(["parallel", "-j1", "--joblog", "theirs", *args], cwd=tmp_path, check=False, capture_output=True,
                       env=clean_env(PARALLEL_HOME=home, SHELL="/bin/sh"), stdin=subprocess.DEVNULL)
        ours, theirs = (open(tmp_path / name, "rb").read() for name in ("ours", "theirs"))
        # The two times differ from run to run; their form does not.
        times = re.compile(rb"^(\d+\t:\t)\d{10}\.\d{3}\t([ \d]{6}\.\d{3})\t", re.M)
        assert times.sub(rb"\1START\tTIME\t", ours) == times.sub(rb"\1START\tTIME\t", theirs)


# --- what people see ---


class Screen:
    """muster under a pseudo-terminal, its screen as text."""

    def __init__(self, args, cwd, columns, rows=24):
        import pyte
        self.screen = pyte.Screen(columns, rows)
        self.stream = pyte.ByteStream(self.screen)
        able.need_terminal()
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(cwd)
            os.execve(MUSTER, ["muster", *args], clean_env(TERM="xterm", LC_ALL="C.UTF-8"))
        self.resize(columns, rows)

    def resize(self, columns, rows=24):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.screen.resize(rows, columns)

    def read_until(self, condition, what):
        end = time.monotonic() + DEADLINE
        while time.monotonic() < end:
            try:
                data = os.read(self.fd, 65536)
            except OSError:
                return None
            self.stream.feed(data)
            if found := condition([line.rstrip() for line in self.screen.display]):
                return found
        raise AssertionError(f"no {what} on the screen: {self.screen.display}")

    def end(self):
        self.read_until(lambda lines: None, "end")
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def bar_of(lines):
    return next((line for line in lines if re.match(r"\[[=> ]+\] \d+/\d+", line)), None)


@pytest.mark.parametrize("columns", [80, 200])
def test_the_progress_line_fits_the_terminal(tmp_path, columns):
    go = tmp_path / "go"
    long = f"until [ -e {go.name} ]; do sleep 0.05; done; true " + "x" * 100
    terminal = Screen(["batch", "-j2", ":::", "echo hello", "exit 3", long, long + "é漢"], tmp_path, columns)
    bar = terminal.read_until(lambda lines: (bar := bar_of(lines)) and "1 failed" in bar and "until" in bar and bar, "bar")
    assert len(bar) < columns and "2 running" in bar
    assert re.search(r"\(\d+ s\)", bar)
    go.touch()
    assert terminal.end() == 1
    text = [line.rstrip() for line in terminal.screen.display if line.strip()]
    assert "hello" in text and any("3 of 4 done, 1 failed" in line for line in text)
    assert bar_of(text) is None, "the bar is gone at the end"


def test_the_progress_line_follows_a_resize(tmp_path):
    go = tmp_path / "go"
    terminal = Screen(["batch", "-j2", ":::", f"until [ -e {go} ]; do sleep 0.05; done; true {'y' * 150}"], tmp_path, 120)
    terminal.read_until(bar_of, "bar")
    terminal.resize(60)
    terminal.screen.reset()
    bar = terminal.read_until(bar_of, "bar after the resize")
    assert len(bar) < 60
    assert sum(1 for line in terminal.screen.display if line.strip()) == 1
    go.touch()
    assert terminal.end() == 0


def test_plain_lines_when_not_a_terminal_and_silence_when_quiet(muster):
    r = muster("batch", ":::", "echo out; echo err >&2", "exit 3")
    assert r.stdout == "out\n" and "err\n" in r.stderr
    assert "\r" not in r.stderr and "failed: exit code 3" in r.stderr and "1 of 2 done, 1 failed" in r.stderr
    r = muster("batch", "-q", ":::", "exit 3")
    assert (r.returncode, r.stderr) == (1, "")


def test_a_place_without_sys_is_not_a_reason_for_noise(tmp_path):
    """A chroot, say. hwloc would complain."""
    able.need_mount()
    r = subprocess.run(["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /sys && exec "$0" batch -q ::: "exit 3"', MUSTER],
                       cwd=tmp_path, env=clean_env(), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=DEADLINE)
    assert (r.returncode, r.stderr) == (1, "")


def test_no_library_is_loaded_for_devices_that_nobody_asks_for(muster):
    """hwloc has plugins for X11, OpenCL and the like."""
    r = muster("batch", "-q", ":::", "env", env=clean_env(HWLOC_PLUGINS_VERBOSE="1"))
    assert r.returncode == 0 and "HWLOC_PLUGINS_VERBOSE" in r.stdout
    assert "HWLOC_PLUGINS_PATH" not in r.stdout and "Plugin dlforeach found" not in r.stderr
    r = muster("batch", "-q", ":::", "env", env=clean_env(HWLOC_PLUGINS_PATH="/elsewhere"))
    assert "HWLOC_PLUGINS_PATH=/elsewhere" in r.stdout


def test_dry_run_prints_the_plan_and_runs_nothing(muster, tmp_path):
    r = muster("batch", "--dry-run", ":::", "touch ran", "true")
    assert r.returncode == 0 and not (tmp_path / "ran").exists()
    assert "2 orders" in r.stdout and "2 of width 1, on CPUs:" in r.stdout and "shared by orders" in r.stdout


def test_the_longest_known_order_starts_first(muster, tmp_path):
    commands = ["sleep 0.01", "sleep 0.05", "sleep 0.3"]
    muster("batch", "-q", "-o", "first.jsonl", ":::", *commands)
    r = muster("batch", "-q", "-j1", "--history=first.jsonl", "-o", "second.jsonl", ":::", *commands)
    assert r.returncode == 0
    assert [line["cmd"] for line in results(tmp_path / "second.jsonl")] == commands[::-1]
