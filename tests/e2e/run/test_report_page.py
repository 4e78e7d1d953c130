"""muster report: the page of a job that is over, from its log directory, in a real browser."""

import subprocess

import pytest

import browser as browser_lib
from page import saved
from tree import MUSTER, clean_env
from waits import DEADLINE

WORKER = """
import os, sys, time
rank, attempt = os.environ["RANK"], os.environ["TORCHELASTIC_RESTART_COUNT"]
print("one line of all")
print(f"only of rank {rank} in attempt {attempt}", flush=True)
if rank == "1":
    sys.exit(f"rank 1 gives up <img src=x onerror=window.pwned=1> in attempt {attempt}")

time.sleep(600)
"""


def muster(*args, cwd, code=0, **environ):
    done = subprocess.run([MUSTER, *map(str, args)], cwd=cwd, text=True, capture_output=True, stdin=subprocess.DEVNULL, timeout=DEADLINE,
                          env=clean_env(**environ))
    assert done.returncode == code, done.stderr
    return done


@pytest.fixture
def failed(place, tmp_path):
    """The log directory of a job that failed twice."""
    muster("run", "--standalone", "--rdzv-id=<b>train</b>", "--nproc-per-node=3", "--max-restarts=1", "--redirects=3", "--log-dir=logs",
           place("train.py", WORKER), cwd=tmp_path, code=1)
    return tmp_path / "logs"


@pytest.mark.xdist_group("browser")
@pytest.mark.skipif(bool(browser_lib.MISSING), reason=str(browser_lib.MISSING))
def test_each_view_shows_the_job_that_failed(failed, tmp_path):
    assert muster("report", failed, "-o", "page.html", cwd=tmp_path).stdout == ""
    browser = browser_lib.Browser()
    try:
        browser.open((tmp_path / "page.html").as_uri())
        assert browser.text("#live") == "from the log directory"
        assert browser.text("#title") == "<b>train</b>" and browser.text("#state") == "failed"
        assert "Exit code1" in browser.text("#cards") and "Restarts10 left" in browser.text("#cards")
        assert not browser.driver.find_element("id", "stop").is_displayed()
        browser.shows("#grid-legend", "1 failed2 stopped")
        browser.shows("#story h2", "job failed: rank 1 of 3 ended with exit code 1 after")
        browser.shows("#story .facts", "2 ended with SIGTERM when the group was stopped (ranks 0,2)")
        browser.shows("#story-words", "rank 1 gives up <img src=x onerror=window.pwned=1> in attempt 1")
        browser.keys("body", "2")
        browser.keys("#log-search", "one line")
        browser.shows("#log", "one line of all")
        browser.driver.find_element("id", "log-search").clear()
        browser.keys("#log-search", "/of rank 1 in attempt [01]/")
        browser.shows("#log-count", "2 of ")
        browser.keys("#tab-log-view", browser_lib.key("ARROW_RIGHT"))
        browser.shows("#hosts", "0-2")
        browser.keys("body", "4")
        assert browser.text("#attempts").count("exit code 1 (exit)") == 2
        browser.shows("#timeline-view .tail", "rank 1 gives up <img src=x onerror=window.pwned=1> in attempt 1")
        assert len(browser.driver.find_elements("css selector", "#bars span")) == 2
        browser.keys("body", "7")
        browser.shows("#command", "train.py")
        assert browser.run("return window.pwned") is None
        assert browser.complaints() == []
    finally:
        browser.close()


def test_it_is_named_after_the_job_and_can_be_printed(failed, tmp_path):
    assert muster("report", next(failed.iterdir()), cwd=tmp_path).stdout == "<b>train<_b>.html\n"
    printed = muster("report", "--output=-", failed, cwd=tmp_path).stdout
    page = (tmp_path / "<b>train<_b>.html").read_text()
    assert printed.startswith("<!doctype html>") and len(printed) >= len(page) - 100
    assert "<b>train" not in page  # not even in the data
    assert saved(tmp_path / "<b>train<_b>.html")["board"]["job"]["run_id"] == "<b>train</b>"


def test_a_job_that_ended_well_has_a_page_too(tmp_path):
    muster("run", "--standalone", "--nproc-per-node=2", "--tee=3", "--log-dir=logs", "--no-python", "/bin/echo", "hello", cwd=tmp_path)
    muster("report", "logs", "-o", "page.html", cwd=tmp_path)
    found = saved(tmp_path / "page.html")
    assert found["board"]["job"]["exit_code"] == 0 and found["board"]["c"]["state"] == [3, 3]
    assert [line[1:] for line in found["log"]["lines"]] == [["0-1", "hello"]]


def test_all_hosts_of_a_job_are_on_one_page(agents, port, tmp_path):
    program = 'import os, sys; print("hello of " + os.environ["GROUP_RANK"]); sys.exit(int(os.environ["RANK"]) // 3 * 7)'
    (tmp_path / "program.py").write_text(program)
    for _ in range(2):
        agents.start("--nnodes=2", "--nproc-per-node=2", f"--rdzv-endpoint=127.0.0.1:{port.number}", "--rdzv-id=pair", "--redirects=3",
                     f"--log-dir={tmp_path}/logs", tmp_path / "program.py")
    assert agents.wait() == [7, 7]
    muster("report", "logs", "-o", "page.html", cwd=tmp_path)
    found = saved(tmp_path / "page.html")
    board = found["board"]
    assert board["n"] == 4 and len(board["hosts"]) == 2 and sorted(board["c"]["host"]) == [0, 0, 1, 1]
    assert board["job"]["exit_code"] == 7 and board["attempts"][0]["cause"]["rank"] == 3
    lines = {line[2]: line[1] for line in found["log"]["lines"]}
    assert set(lines) <= {"hello of 0", "hello of 1"} and lines["hello of 1"] in ("2-3", "3")


def test_what_is_no_log_directory_is_said(tmp_path):
    assert "nothing here is the log directory of a job" in muster("report", ".", cwd=tmp_path, code=1).stderr
    assert "nowhere: No such file or directory" in muster("report", "nowhere", cwd=tmp_path, code=1).stderr
    muster("report", cwd=tmp_path, code=2)
    for job in ("one", "two"):
        muster("run", "--standalone", f"--rdzv-id={job}", "--log-dir=logs", "--no-python", "/bin/true", cwd=tmp_path)
    assert "belongs to job two, others here to one: name one of the directories" in muster("report", "logs", cwd=tmp_path, code=1).stderr
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad/report.json").write_text("{")
    assert "is not a report; going on without it" in muster("report", "bad", "-o", "page.html", cwd=tmp_path).stderr
    assert saved(tmp_path / "page.html")["board"]["n"] == 0
