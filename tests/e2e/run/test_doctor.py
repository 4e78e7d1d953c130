"""muster doctor: what is wrong with this host is found and named with its remedy; a check that hangs or fails harms nothing."""

import json
import os
import signal
import subprocess

import pytest

from able import need, need_mount
from proc import gone
from tree import MUSTER, clean_env
from waits import DEADLINE

PATIENT = "--timeout=60"  # a machine under load is slow
NAMES = ["cpu", "bandwidth", "memory", "shm", "storage", "limits", "cgroup", "names", "ports", "interfaces", "devices", "hardware",
         "versions"]


@pytest.fixture
def doctor(muster):
    def call(*args, code=None, **kwargs):
        done = muster("doctor", "--json", *args, **kwargs)
        assert code is None or done.returncode == code, done.stdout + done.stderr
        return json.loads(done.stdout)["checks"]

    return call


def in_namespace(unshare, setup, *args):
    """The one result of a doctor in a namespace, after a command that changes it."""
    need("unshare", *unshare, "true")
    script = f'{setup}; exec "$0" doctor --json "$@"'
    done = subprocess.run(["unshare", *unshare, "sh", "-ec", script, str(MUSTER), PATIENT, *args], env=clean_env(), cwd="/",
                          capture_output=True, text=True, timeout=DEADLINE)
    [check] = json.loads(done.stdout)["checks"]
    return done.returncode, check


def test_a_healthy_host_has_a_line_for_each_check(muster, doctor, tmp_path):
    done = muster("doctor", PATIENT, "--dir", tmp_path, "--check=echo all is well")
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [line for line in done.stdout.splitlines() if "remedy: " not in line]
    assert [line.split()[1] for line in lines[:-1]] == [*NAMES, "echo"], done.stdout
    assert lines[-2].endswith("all is well") and lines[-1].startswith("14 checks: 0 bad, ")
    checks = doctor(PATIENT, "--checks=cpu,bandwidth,storage", "--dir", tmp_path, code=0)
    figures = {figure["name"]: figure["value"] for check in checks for figure in check["figures"]}
    assert figures["cpus"] == len(os.sched_getaffinity(0))
    assert all(figures[name] > 0 for name in ["cpu_speed", "memory_bandwidth", "write_time", "read_time"])
    assert os.listdir(tmp_path) == []


def test_full_measures_for_longer_and_finds_the_same(doctor, tmp_path):
    assert [check["name"] for check in doctor("--checks=full", PATIENT, "--dir", tmp_path, code=0)] == NAMES


def test_a_name_without_an_address_is_told_once_whatever_was_in_memory(doctor):
    name = 64 * "a"  # too long for any name server
    [check] = doctor(PATIENT, "--checks=reach", f"--reach={name}", env=clean_env(GLIBC_TUNABLES="glibc.malloc.perturb=85"))
    assert check["text"].startswith(f"{name} has no address here: ") and check["text"].count(name) == 1


def test_checkers_that_fail_hang_or_print_garbage_harm_nothing(doctor, tmp_path):
    commands = ["echo broken >&2; exit 3", f"echo $$ >{tmp_path}/pid; exec sleep 1000", "kill -9 $$", "head -c 9999 /dev/urandom",
                f"sleep 1000 & echo $! >{tmp_path}/left; echo '{{\"tflops\": 312.5}}'", "/no/such/program"]
    checks = doctor("--checks=limits", "--timeout=5", *[f"--check={command}" for command in commands], code=91)
    found = {check["name"]: check for check in checks}
    states = [found[command[:63]]["state"] for command in commands]
    assert states[:3] == ["bad", "unknown", "unknown"] and states[3] in ("ok", "unknown") and states[4:] == ["ok", "unknown"], checks
    assert found[commands[0]]["text"] == "it ended with code 3; broken" and found[commands[0]]["remedy"]
    assert found[commands[4][:63]]["figures"] == [{"name": "tflops", "value": 312.5}]
    assert gone([int((tmp_path / name).read_text()) for name in ("pid", "left")]) == []


def test_a_check_that_is_killed_says_nothing_about_the_host(doctor):
    [check] = doctor("--checks=limits", "--check=kill -9 $$", PATIENT, code=0)[1:]
    assert (check["state"], check["text"]) == ("unknown", f"it was ended by signal {int(signal.SIGKILL)}")


def test_a_directory_that_is_missing_or_full_is_bad(doctor, tmp_path):
    [check] = doctor("--checks=storage", PATIENT, "--dir", tmp_path / "nowhere", code=91)
    assert check["state"] == "bad" and "No such file" in check["text"] and "mount" in check["remedy"]
    need_mount()
    code, check = in_namespace(["--mount"], "mount -t tmpfs -o size=256k none /mnt", "--checks=storage", "--dir=/mnt")
    assert code == 91 and "No space left" in check["text"] and "make room" in check["remedy"]


def test_a_file_system_that_does_not_answer_is_named_in_time(tmp_path):
    image, dir = tmp_path / "image", tmp_path / "frozen"
    setup = f"truncate -s 16M {image}; mkfs.ext4 -q {image}; mkdir -p {dir}; mount -o loop {image} {dir}"
    need("unshare", "--mount", "sh", "-ec", f"{setup}; fsfreeze -f {dir}; fsfreeze -u {dir}")
    script = f'{setup}; fsfreeze -f {dir}; "$0" doctor --json --checks=storage --timeout=1 --dir={dir} || echo code $?; fsfreeze -u {dir}'
    done = subprocess.run(["unshare", "--mount", "sh", "-ec", script, str(MUSTER)], env=clean_env(), capture_output=True, text=True,
                          timeout=DEADLINE)
    text, _, code = done.stdout.partition("code ")
    [check] = json.loads(text)["checks"]
    assert code == "91\n" and check["text"] == f"{dir}: no answer within 1 s" and "file server" in check["remedy"]


def test_memory_is_measured_in_each_numa_node(doctor, tmp_path):
    """Nodes whose CPUs are not ours are left out."""
    [check] = doctor("--checks=bandwidth", PATIENT, code=0)
    figures = {figure["name"]: figure["value"] for figure in check["figures"]}
    assert figures["numa_nodes"] >= 1 and figures["memory_bandwidth"] > 0
    need_mount()
    cpu = min(os.sched_getaffinity(0))
    for node, cpus in enumerate([cpu, "", 4000, f"{cpu},4000-4001"]):
        (tmp_path / f"node{node}").mkdir()
        (tmp_path / f"node{node}" / "cpulist").write_text(f"{cpus}\n")
    code, check = in_namespace(["--mount"], f"mount --bind {tmp_path} /sys/devices/system/node", "--checks=bandwidth")
    figures = {figure["name"]: figure["value"] for figure in check["figures"]}
    assert code == 0 and figures["numa_nodes"] == 2 and "2 NUMA nodes, " in check["text"], check


def test_small_shared_memory_is_found():
    need_mount()
    code, check = in_namespace(["--mount"], "mount -t tmpfs -o size=64m none /dev/shm", "--checks=shm")
    assert (code, check["state"]) == (0, "warning") and "64 of 64 MiB" in check["text"] and "--shm-size" in check["remedy"]


def test_a_host_without_a_network_is_found():
    code, check = in_namespace(["--net"], "true", "--checks=ports")
    assert code == 91 and "no connection within this host" in check["text"] and check["remedy"]
    code, check = in_namespace(["--net"], "true", "--checks=interfaces")
    assert check["text"] == "no interface leads to other hosts" and check["remedy"]


def test_a_name_without_an_address_is_found():
    need("hostname", "--version")
    code, check = in_namespace(["--uts", "--net"], "hostname nowhere.invalid", "--checks=names")
    assert (code, check["state"]) == (0, "warning") and "nowhere.invalid has no address" in check["text"]
    assert "--local-addr" in check["remedy"]


def test_low_limits_and_missing_accelerators_are_found(doctor, muster):
    done = subprocess.run(["bash", "-c", f"ulimit -n 500; exec {MUSTER} doctor --checks=limits {PATIENT}"], env=clean_env(),
                          capture_output=True, text=True, timeout=DEADLINE)
    assert "warning  limits  few open files are allowed; open files 500" in done.stdout and "LimitNOFILE" in done.stdout
    [check] = doctor("--checks=devices", "--devices=77", PATIENT, code=91)
    assert "77 accelerators are wanted" in check["text"]
    assert muster("doctor", "--checks=cpu,nosuch").returncode == 2
    assert "there is no check 'nosuch'" in muster("doctor", "--checks=cpu,nosuch").stderr


def test_a_bad_node_does_not_join_and_ends_with_its_code(muster, tmp_path):
    worker = ["touch", tmp_path / "ran"]
    done = muster("run", "--check=echo 7 of 8 devices; exit 3", *worker)
    assert done.returncode == 91 and not (tmp_path / "ran").exists()
    assert "preflight: echo 7 of 8 devices; exit 3: it ended with code 3; 7 of 8 devices" in done.stderr
    assert "not fit for workers" in done.stderr
    assert muster("run", "--check=exit 3", "--exit-map=bad-node=17", *worker).returncode == 17
    assert muster("run", "--preflight=nosuch", *worker).returncode == 2
    (tmp_path / "file").touch()
    done = muster("run", "--preflight=storage", "--log-dir", tmp_path / "file" / "logs", *worker)
    assert done.returncode == 91 and "preflight: storage: " in done.stderr and "Remedy: " in done.stderr
    assert not (tmp_path / "ran").exists()


def test_a_node_that_is_fit_joins_whatever_happens_to_its_checker(muster, tmp_path):
    done = muster("run", "--preflight=limits,storage", "--log-dir", tmp_path / "new" / "logs", "--check=kill -9 $$", "touch", tmp_path / "ran")
    assert done.returncode == 0 and (tmp_path / "ran").exists(), done.stderr
    assert "preflight: kill -9 $$: it was ended by signal 9" in done.stderr
