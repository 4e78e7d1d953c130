"""What workers print: shown, prefixed, kept in files, in a pipe and on a terminal, and never lost."""

import ctypes
import fcntl
import json
import os
import pathlib
import pty
import re
import shlex
import signal
import subprocess

import pytest

import able
from proc import alive
from tree import BUILD, MUSTER, MUSTER_SH, admin_env, clean_env
from waits import DEADLINE, wait_for

FLOOD = str(BUILD / "helpers" / "line_flood")
ESCAPES = re.compile(rb"\x1b\[[0-9;]*[mK]")


def in_pipe(args, env, cwd):
    done = subprocess.run([MUSTER, *map(str, args)], env=env, cwd=cwd, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=DEADLINE)
    return done.returncode, done.stdout


def read_to_end(fd):
    data = b""
    while True:
        try:
            piece = os.read(fd, 65536)
        except OSError:  # the last user of the terminal has gone
            return data
        if not piece:
            return data
        data += piece


def on_terminal(args, env, cwd):
    able.need_terminal()
    master, slave = pty.openpty()
    process = subprocess.Popen([MUSTER, *map(str, args)], env=dict(env, TERM="xterm"), cwd=cwd, stdin=slave,
                               stdout=slave, stderr=slave, start_new_session=True)
    os.close(slave)
    data = read_to_end(master)
    os.close(master)
    return process.wait(timeout=DEADLINE), data


@pytest.fixture(params=[in_pipe, on_terminal], ids=["pipe", "terminal"])
def show(request, tmp_path):
    """show('run', ...) -> (exit code, what was shown as plain bytes, what really came)."""

    def call(*args, env=None):
        code, raw = request.param(args, env or clean_env(), tmp_path)
        plain = ESCAPES.sub(b"", raw)
        if request.param is on_terminal:
            plain = plain.replace(b"\r\n", b"\n")
        return code, plain, raw

    call.terminal = request.param is on_terminal
    return call


def script(place, text):
    return place("worker.sh", "#!/bin/bash\n" + text, 0o755)


def attempt(log_dir, number=0):
    (tree,) = pathlib.Path(log_dir).iterdir()
    return tree / f"attempt_{number}"


def test_tee_shows_whole_lines_with_a_prefix_and_keeps_the_file_raw(show, place, tmp_path):
    worker = script(place, 'printf "out $RANK\\npar"; printf "tial $RANK\\n"; echo "err $RANK" >&2\n')
    code, text, raw = show("run", "--nproc-per-node=3", "--tee=3", "--log-dir=logs", worker)
    assert code == 0
    expected = [f"[default{r}]:{line} {r}" for r in range(3) for line in ("out", "partial", "err")]
    assert sorted(text.decode().splitlines()) == sorted(expected)
    for r in range(3):
        directory = attempt(tmp_path / "logs") / str(r)
        assert (directory / "stdout.log").read_bytes() == f"out {r}\npartial {r}\n".encode()
        assert (directory / "stderr.log").read_bytes() == f"err {r}\n".encode()
    assert (b"\x1b[" in raw) == show.terminal, "prefixes have a colour on a terminal, and only there"


def test_a_last_line_without_end_is_printed_once_with_one_prefix(show, place):
    code, text, _ = show("run", "--tee=1", script(place, "printf 'one\\nno'; sleep 0.3; printf ' end'\n"))
    assert (code, text) == (0, b"[default0]:one\n[default0]:no end")


def test_a_prompt_is_seen_on_a_terminal_before_its_line_ends(start, place, tmp_path):
    go = tmp_path / "go"
    os.mkfifo(go)
    able.need_terminal()
    master, slave = pty.openpty()
    start("run", "--prefix=> ", script(place, f"printf 'name? '; cat {go}; echo done\n"), stdin=slave,
          stdout=slave, stderr=slave, env=clean_env(TERM="dumb"))
    os.close(slave)
    seen = b""
    while b"> name? " not in seen:
        seen += os.read(master, 100)
    go.write_text("")
    seen += read_to_end(master)
    os.close(master)
    assert seen == b"> name? done\r\n"


def test_a_progress_bar_stays_one_line(show, place):
    bar = "for i in 1 2 3; do printf '\\r%d0%%' $i; done; echo; echo next\n"
    code, text, _ = show("run", "--tee=1", script(place, bar))
    assert code == 0
    assert text == b"\r[default0]:10%\r[default0]:20%\r[default0]:30%\n[default0]:next\n"


def test_every_byte_passes_unchanged(show, tmp_path):
    code = "import os; os.write(1, bytes(range(256)) * 4)"
    status, text, _ = show("run", "--redirects=1", "--log-dir=logs", "--no-python", "python", "-c", code)
    assert (status, text) == (0, b"")
    assert (attempt(tmp_path / "logs") / "0" / "stdout.log").read_bytes() == bytes(range(256)) * 4


def test_redirects_and_tee_can_name_any_rank(muster, place, tmp_path):
    worker = script(place, "echo out $RANK; echo err $RANK >&2\n")
    done = muster("run", "--nproc-per-node=12", "--redirects=11:1,1:3", "--tee=10:2", "--log-dir=logs", worker)
    assert done.returncode == 0
    assert sorted(done.stdout.splitlines()) == sorted(f"out {r}" for r in range(11) if r != 1)
    errors = [f"err {r}" for r in range(12) if r not in (1, 10)] + ["[default10]:err 10"]
    assert sorted(done.stderr.splitlines()) == sorted(errors)
    logs = attempt(tmp_path / "logs")
    assert {str(p.relative_to(logs)) for p in logs.rglob("*.log")} == {
        "1/stdout.log", "1/stderr.log", "10/stderr.log", "11/stdout.log"}
    assert sorted(os.listdir(logs)) == sorted(map(str, range(12)))


def test_ranks_that_are_filtered_out_are_written_but_not_shown(muster, place, tmp_path):
    worker = script(place, "echo out $RANK; echo err $RANK >&2\n")
    done = muster("run", "--nproc-per-node=3", "--tee=1", "--local-ranks-filter=0,2", "--log-dir=logs",
                  "--duplicate-stdout-filters=out", worker)
    assert done.returncode == 0
    shown = ["[default0]:out 0", "[default2]:out 2"]
    assert sorted(done.stdout.splitlines()) == shown
    assert sorted(done.stderr.splitlines()) == ["err 0", "err 2"]
    logs = attempt(tmp_path / "logs")
    assert (logs / "1" / "stdout.log").read_text() == "out 1\n"
    assert sorted((logs / "filtered_stdout.log").read_text().splitlines()) == shown


def test_without_a_log_tree_everything_is_simply_shown(muster, place):
    done = muster("run", "--tee=3", "--redirects=3", "--log-dir=/dev/null", script(place, "echo here\n"))
    assert (done.returncode, done.stdout) == (0, "here\n")


def test_prefixes_follow_the_template(muster, place):
    worker = script(place, "echo x\n")
    template = "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE"
    done = muster("run", "--tee=1", "--role=trainer", worker,
                  env=clean_env(**{template: "<${role_name} $rank/$local_rank $other $$>"}))
    assert done.stdout == "<trainer 0/0 $other $>x\n"
    done = muster("run", "--nproc-per-node=2", "--prefix=$host.$group_rank.$rank ", worker)
    assert sorted(done.stdout.splitlines()) == [f"{os.uname().nodename}.0.{r} x" for r in range(2)]


def test_lines_printed_alike_are_shown_once(show, place):
    """All have printed before muster reads, so that its waiting time for the others is not asked for."""
    worker = script(place, """
        await() { until [ "$(ls "$@" 2>/dev/null | wc -l)" = $# ]; do sleep 0.01; done; }
        touch here.$RANK
        if [ $RANK = 0 ]; then
            await here.{0..3}
            heir=$(cut -d' ' -f4 /proc/$PPID/stat)  # the parent of the warden
            muster=$(cut -d' ' -f4 /proc/$heir/stat)
            kill -STOP $muster
            until grep -q '^State:.T' /proc/$muster/status; do sleep 0.01; done
            touch go
        fi
        await go
        echo same; echo mine $RANK
        touch said.$RANK
        [ $RANK != 0 ] || { await said.{0..3}; kill -CONT $muster; }
        """)
    code, text, _ = show("run", "--nproc-per-node=4", "--merge-output", worker)
    assert code == 0
    lines = text.decode().splitlines()
    assert lines[0] == "4x [default0-3]:same"
    assert sorted(lines[1:]) == [f"[default{r}]:mine {r}" for r in range(4)]


def test_log_files_are_set_aside_at_their_limit(muster, place, tmp_path):
    worker = script(place, "for i in $(seq 1000 1999); do echo $i; done\n")
    assert muster("run", "--redirects=1", "--log-max-size=1K", "--log-dir=logs", worker).returncode == 0
    directory = attempt(tmp_path / "logs") / "0"
    now, before = (directory / "stdout.log").read_text(), (directory / "stdout.log.1").read_text()
    numbers = [int(n) for n in (before + now).split()]
    assert numbers == list(range(2000 - len(numbers), 2000))
    assert len(before) <= 1024 and len(now) <= 1024 and len(before) > 900


def test_both_streams_keep_their_order_in_one_file(place, tmp_path):
    worker = script(place, "for i in $(seq 500); do echo o$i; echo e$i >&2; done\n")
    with open(tmp_path / "all", "wb") as out:
        subprocess.run([MUSTER, "run", worker], env=clean_env(), cwd=tmp_path, stdin=subprocess.DEVNULL,
                       stdout=out, stderr=out, timeout=DEADLINE, check=True)
    expected = [f"{s}{i}" for i in range(1, 501) for s in "oe"]
    assert (tmp_path / "all").read_text().split() == expected


def test_the_report_has_the_tail_of_what_a_dead_worker_wrote(muster, place, tmp_path):
    worker = script(place, "echo first >&2; seq 10000 >&2; printf 'the last words' >&2; kill -9 $$\n")
    done = muster("run", "--log-dir=logs", worker)
    assert done.returncode == 137
    (tree,) = (tmp_path / "logs").iterdir()
    report = json.loads((tree / "report.json").read_text())
    assert "the last words" in json.dumps(report)
    assert done.stderr.startswith("first\n1\n2\n"), "and it was shown as it came"


def test_nothing_is_lost_when_a_worker_is_killed_in_the_middle(show, tmp_path):
    code = ("import os,signal; os.write(1, b'line\\n' * 200000 + b'cut'); os.write(2, b'e' * 50);"
            "os.kill(os.getpid(), signal.SIGKILL)")
    status, text, _ = show("run", "--redirects=2", "--tee=1", "--log-dir=logs", "--no-python", "python", "-c", code)
    assert status == 137
    assert text.count(b"[default0]:line\n") == 200000
    assert text.count(b"[default0]:cut") == 1
    directory = attempt(tmp_path / "logs") / "0"
    assert (directory / "stdout.log").stat().st_size == 5 * 200000 + 3
    assert (directory / "stderr.log").read_bytes() == b"e" * 50


@pytest.mark.parametrize("megabytes", [20])
def test_a_flood_of_eight_workers_arrives_whole_and_in_order(tmp_path, megabytes):
    # 8 x 100 MB are part of the bench; this is the same with less of it.
    flood = subprocess.Popen([MUSTER, "run", "--nproc-per-node=8", "--tee=1", "--log-dir=logs", FLOOD, "write",
                              str(megabytes)], env=clean_env(), cwd=tmp_path, stdout=subprocess.PIPE)
    check = subprocess.run([FLOOD, "check", "8", str(megabytes)], stdin=flood.stdout, capture_output=True,
                           text=True, timeout=DEADLINE)
    assert flood.wait(timeout=DEADLINE) == 0
    assert check.stdout == "complete\n", check.stderr
    logs = sorted(attempt(tmp_path / "logs").glob("*/stdout.log"))
    cat = subprocess.Popen(["cat", *logs], stdout=subprocess.PIPE)
    check = subprocess.run([FLOOD, "check", "8", str(megabytes)], stdin=cat.stdout, capture_output=True,
                           text=True, timeout=DEADLINE)
    assert cat.wait() == 0 and check.stdout == "complete\n", check.stderr


def test_a_flood_on_a_terminal_arrives_whole(tmp_path):
    env = clean_env(NO_COLOR=1)
    code, text = on_terminal(["run", "--nproc-per-node=4", "--prefix=x:", FLOOD, "lines", "0.5"], env, tmp_path)
    assert code == 0
    check = subprocess.run([FLOOD, "check", "4", "0.5"], input=text, capture_output=True, timeout=DEADLINE)
    assert check.stdout == b"complete\n", check.stderr


def test_a_slow_reader_slows_the_workers_and_costs_no_memory(start):
    process = start("run", "--nproc-per-node=4", "--prefix=$rank:", FLOOD, "write", "10", stderr=None)
    wait_for(lambda: "State:\tS" in pathlib.Path(f"/proc/{process.pid}/status").read_text(), "muster to wait")
    status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
    peak_kb = int(re.search(r"VmHWM:\s+(\d+) kB", status).group(1))
    assert process.poll() is None, "nobody has read yet"
    check = subprocess.run([FLOOD, "check", "4", "10"], stdin=process.stdout, capture_output=True, timeout=DEADLINE)
    assert check.stdout == b"complete\n", check.stderr
    if "san" not in str(BUILD):
        assert peak_kb < 40 * 1024


def test_more_streams_than_the_soft_limit_of_open_files(place, tmp_path):
    worker = script(place, "ulimit -n\n")
    done = subprocess.run(["bash", "-c", f"ulimit -Sn 40; {MUSTER_SH} run --nproc-per-node=40 --redirects=2 --prefix= {worker}"],
                          env=clean_env(), cwd=tmp_path, capture_output=True, text=True, timeout=DEADLINE)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "40\n" * 40, "and the workers keep the limit they were given"


def test_the_shared_stdout_is_never_made_non_blocking(place):
    read, write = os.pipe()
    subprocess.run([MUSTER, "run", "--prefix=x", script(place, "echo a\n")], env=clean_env(), stdout=write,
                   stderr=write, stdin=subprocess.DEVNULL, timeout=DEADLINE, check=True)
    assert not fcntl.fcntl(write, fcntl.F_GETFL) & os.O_NONBLOCK
    os.close(write)
    assert os.read(read, 100) == b"xa\n"
    os.close(read)


def test_a_reader_that_leaves_does_not_end_the_job(start, tmp_path):
    process = start("run", "--prefix=", "--nproc-per-node=2", FLOOD, "write", "3")
    process.stdout.close()
    process.stdout = open(os.devnull)
    assert process.wait(timeout=DEADLINE) == 0
    errors = process.stderr.read()
    assert errors.count("muster: warning:") == 1 and "stdout" in errors
    assert re.search(r"^stdout: \d+ bytes are missing \(Broken pipe\)$", errors, re.M)


def test_a_paused_terminal_does_not_stop_the_restarts(place, tmp_path):
    count = tmp_path / "count"
    worker = script(place, f"[ $RANK = 0 ] || exec sleep 60\n"
                    f"echo start $TORCHELASTIC_RESTART_COUNT; echo $TORCHELASTIC_RESTART_COUNT >>{count}; exit 1\n")
    able.need_terminal()
    master, slave = pty.openpty()
    os.write(master, b"\x13")  # Ctrl-S, before anything is written
    process = subprocess.Popen([MUSTER, "run", "--nproc-per-node=2", "--max-restarts=5", "--tee=3", worker],
                               env=clean_env(NO_COLOR=1, TERM="xterm"), cwd=tmp_path, stdin=slave, stdout=slave,
                               stderr=slave, start_new_session=True)
    os.close(slave)
    wait_for(lambda: count.exists() and "5" in count.read_text(), "all restarts while the terminal is paused")
    assert process.poll() is None, "it waits for its output, as cat would"
    os.write(master, b"\x11")  # Ctrl-Q
    text = read_to_end(master).decode()
    os.close(master)
    assert process.wait(timeout=DEADLINE) == 1
    assert re.findall(r"\[default0\]:start (\d)", text) == list("012345")


def test_the_last_words_of_every_attempt_are_kept_though_the_terminal_is_attempts_behind(place, tmp_path):
    """The output thread stands at the terminal, and reads what the workers wrote when all attempts are over."""
    able.need_terminal()
    count = tmp_path / "count"
    worker = script(place, f"echo words of $TORCHELASTIC_RESTART_COUNT >&2; echo $TORCHELASTIC_RESTART_COUNT >>{count}; exit 1\n")
    master, slave = pty.openpty()
    os.write(master, b"\x13")  # Ctrl-S
    process = subprocess.Popen([MUSTER, "run", "--max-restarts=3", "--tee=3", f"--log-dir={tmp_path}/logs", worker],
                               env=clean_env(NO_COLOR=1, TERM="xterm"), cwd=tmp_path, stdin=slave, stdout=slave, stderr=slave,
                               start_new_session=True)
    os.close(slave)
    wait_for(lambda: count.exists() and "3" in count.read_text(), "all restarts while the terminal is paused")
    os.write(master, b"\x11")  # Ctrl-Q
    read_to_end(master)
    os.close(master)
    assert process.wait(timeout=DEADLINE) == 1
    (path,) = (tmp_path / "logs").glob("*/report.json")
    attempts = json.loads(path.read_text())["attempts"]
    assert [a["failures"][a["first_cause"]]["stderr_tail"] for a in attempts] == [f"words of {n}\n" for n in range(4)]


def test_a_second_interrupt_does_not_wait_for_a_paused_terminal(place, tmp_path):
    worker = script(place, "echo something; echo $$ >pid.new; mv pid.new pid; exec sleep 60\n")
    able.need_terminal()
    master, slave = pty.openpty()
    os.write(master, b"\x13")  # Ctrl-S
    process = subprocess.Popen([MUSTER, "run", "--tee=3", worker], env=clean_env(NO_COLOR=1, TERM="xterm"), cwd=tmp_path,
                               stdin=slave, stdout=slave, stderr=slave, start_new_session=True)
    os.close(slave)
    wait_for((tmp_path / "pid").exists, "the worker")
    pid = int((tmp_path / "pid").read_text())
    process.send_signal(signal.SIGINT)  # not by a key: that would let the terminal go on
    wait_for(lambda: not alive(pid), "the end of the worker")
    assert process.poll() is None, "it waits for its output"

    def ended():  # the job may not have been over when the next one came
        process.send_signal(signal.SIGINT)
        return process.poll() is not None

    wait_for(ended, "the end of muster, the terminal still paused")
    assert process.returncode in (130, -signal.SIGINT)
    os.close(master)


def test_a_full_disk_costs_the_log_and_not_the_job(tmp_path):
    able.need_mount()
    (tmp_path / "logs").mkdir()
    (tmp_path / "inside.sh").write_text(
        "mount -t tmpfs -o size=256k none logs && "
        f"{MUSTER_SH} run --nproc-per-node=2 --tee=1 --log-dir=logs {shlex.quote(FLOOD)} write 1\n")
    done = subprocess.run(["unshare", "-m", "bash", "inside.sh"], env=clean_env(), cwd=tmp_path,
                          stdin=subprocess.DEVNULL, capture_output=True, timeout=DEADLINE)
    assert done.returncode == 0, done.stderr
    check = subprocess.run([FLOOD, "check", "2", "1"], input=done.stdout, capture_output=True)
    assert check.stdout == b"complete\n", check.stderr
    errors = done.stderr.decode()
    assert errors.count("warning:") == 1 and "No space left on device" in errors
    assert len(re.findall(r"stdout\.log: \d+ bytes are missing \(No space left on device\)", errors)) == 2


FAN_CLASS_CONTENT, FAN_MARK_ADD, FAN_OPEN_PERM = 4, 1, 0x10000  # <linux/fanotify.h>
HUNG = """
mount -o loop image logs || exit 77
"$MUSTER" run --max-restarts=2 --tee=1 --log-dir=logs ./worker.sh >out 2>err &
pid=$!
for i in $(seq 1000); do [ -e started ] && break; sleep 0.02; done
fsfreeze -f logs || exit 77
touch frozen
for i in $(seq 2500); do grep -q 'job failed' err && break; sleep 0.02; done
fsfreeze -u logs
wait $pid
echo $? >code
umount logs
"""


def test_a_log_directory_that_hangs_stops_neither_restarts_nor_the_report(place, tmp_path):
    """A frozen file system is what a dead file server looks like: calls that never return."""
    able.need_root("freezing a file system needs root")
    able.need_mount()
    (tmp_path / "logs").mkdir()
    script(place, "touch started; while [ ! -e frozen ]; do sleep 0.01; done\n"
           "echo start $TORCHELASTIC_RESTART_COUNT; echo x >>count; exit 3\n")
    subprocess.run("truncate -s 8M image && mkfs.ext4 -q image", shell=True, cwd=tmp_path, check=True, env=admin_env())
    # The thread that hangs in the file system cannot give its memory back.
    env = clean_env(MUSTER=MUSTER, ASAN_OPTIONS="detect_leaks=0", PATH=admin_env()["PATH"])
    done = subprocess.run(["unshare", "-m", "bash", "-c", HUNG], env=env, cwd=tmp_path,
                          stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=2 * DEADLINE)
    if done.returncode == 77:
        pytest.skip(done.stderr.strip())
    assert (tmp_path / "count").read_text() == "x\n" * 3
    assert (tmp_path / "out").read_text() == "".join(f"[default0]:start {i}\n" for i in range(3))
    errors = (tmp_path / "err").read_text()
    assert "does not answer" in errors and "job failed" in errors
    assert (tmp_path / "code").read_text() == "3\n"


def test_an_error_file_that_cannot_be_read_does_not_hold_up_the_report(start, place, tmp_path):
    """Opening the file never returns: that is how a dead file server looks to a reader."""
    libc = ctypes.CDLL(None, use_errno=True)
    listener = libc.fanotify_init(FAN_CLASS_CONTENT, os.O_RDONLY)
    if listener < 0:
        pytest.skip("this system does not let us refuse an open (fanotify)")
    try:
        worker = script(place, 'echo \'{"message": "boom"}\' >"$TORCHELASTIC_ERROR_FILE"\n'
                        'echo "$TORCHELASTIC_ERROR_FILE" >path.new; mv path.new path\n'
                        "while [ ! -e go ]; do sleep 0.01; done; exit 3\n")
        # A search for leaks would wait for the thread that we leave behind.
        process = start("run", "--event-log-handler=console", worker, env=clean_env(ASAN_OPTIONS="detect_leaks=0"))
        wait_for((tmp_path / "path").exists, "the error file")
        path = (tmp_path / "path").read_text().strip().encode()
        if libc.fanotify_mark(listener, FAN_MARK_ADD, ctypes.c_uint64(FAN_OPEN_PERM), -100, path) < 0:
            pytest.skip("this system does not let us refuse an open (fanotify)")
        (tmp_path / "go").touch()
        _, errors = process.communicate(timeout=DEADLINE)
        assert process.returncode == 3
        assert "job failed" in errors and "does not answer" in errors
    finally:
        os.close(listener)


def test_an_empty_temporary_tree_is_removed_and_a_used_one_stays(muster, place, tmp_path):
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    worker = script(place, "echo x\n")
    env = clean_env(TMPDIR=temporary)
    assert muster("run", "--prefix=", worker, env=env).returncode == 0
    assert list(temporary.iterdir()) == []
    assert muster("run", "--tee=1", worker, env=env).returncode == 0
    assert [p.read_text() for p in temporary.rglob("stdout.log")] == ["x\n"]


def test_two_bars_on_one_terminal_do_not_write_into_each_other(place, tmp_path):
    worker = script(place, "printf bar$RANK; sleep 0.3; printf \"\\rdone$RANK\\n\"\n")
    code, text = on_terminal(["run", "--nproc-per-node=2", "--prefix=${rank}:", worker],
                             clean_env(NO_COLOR=1), tmp_path)
    assert code == 0
    last = [line.rsplit("\r", 1)[-1] for line in text.decode().replace("\r\n", "\n").split("\n")[:-1]]
    assert sorted(ESCAPES.sub(b"", line.encode()).decode() for line in last) == ["0:done0", "1:done1"]
