"""The page of a job in a real browser: each view, a job with a restart and a failure, what may not become markup."""

import json
import os
import pathlib
import subprocess
import tempfile

import pytest

import browser as browser_lib
from page import Page
from tree import clean_env
from waits import wait_for

pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.skipif(bool(browser_lib.MISSING), reason=str(browser_lib.MISSING))]

JOB = f"view-{os.getpid()}"

# Rank 1 fails in the first attempt and after a while in the second, when the file "end" is there.
WORKER = """
import os, pathlib, sys, time
rank, attempt = int(os.environ["RANK"]), int(os.environ["TORCHELASTIC_RESTART_COUNT"])
print("one line of all", flush=True)
print(f"only of rank {rank}", flush=True)
for step in range(100000):
    print(f"step {step}", flush=True)
    if rank == 1 and (attempt == 0 and step == 3 or os.path.exists("end")):
        sys.exit(f"rank 1 gives up in attempt {attempt}")
    time.sleep(0.05)
"""

PAYLOADS = [
    "<script>window.pwned=1</script>",
    "<img src=x onerror=window.pwned=1>",
    "<svg onload=window.pwned=1>",
    "<svg><script>window.pwned=1</script></svg>",
    "\"><script>window.pwned=1</script>",
    "'><img src=x onerror=window.pwned=1>",
    "</script><script>window.pwned=1</script>",
    "</pre><script>window.pwned=1</script>",
    "</textarea></title></style><script>window.pwned=1</script>",
    "<!--<script>window.pwned=1</script>",
    "]]><script>window.pwned=1</script>",
    "<iframe srcdoc='<script>parent.pwned=1</script>'></iframe>",
    "<a href=javascript:window.pwned=1 autofocus onfocus=window.pwned=1>x</a>",
    "<body onload=window.pwned=1>",
    "<details open ontoggle=window.pwned=1>",
    "<math><mtext><img src=x onerror=window.pwned=1></mtext></math>",
    "<base href=http://127.0.0.1:1/><link rel=stylesheet href=x>",
    "<meta http-equiv=refresh content='0;url=data:text/html,pwned'>",
    "{{constructor.constructor('window.pwned=1')()}}${window.pwned=1}",
    "\\u003cscript\\u003ewindow.pwned=1\\u003c/script\\u003e\u2028\x1b]0;pwned\x07\x1b[31m<script>window.pwned=1</script>",
]


@pytest.fixture(scope="module")
def browser():
    found = browser_lib.Browser()
    yield found
    found.close()


@pytest.fixture
def job(start, tmp_path):
    with tempfile.TemporaryDirectory(prefix="m") as runtime:
        def call(*args, cwd=tmp_path, run_id=JOB, **environ):
            process = start("run", "--standalone", f"--rdzv-id={run_id}", f"--log-dir={tmp_path}/logs", *args,
                            env=clean_env(XDG_RUNTIME_DIR=runtime, **environ), cwd=cwd)
            env = clean_env(XDG_RUNTIME_DIR=runtime)
            wait_for(lambda: subprocess.run([process.args[0], "status", str(process.pid)], env=env, capture_output=True).returncode == 0, "the job to be there")
            process.page = Page(str(process.pid), env)
            return process

        yield call


def test_each_view_shows_a_job_that_restarts_and_then_fails(job, browser, place, tmp_path):
    process = job("--nproc-per-node=4", "--max-restarts=1", "--redirects=3", "--progress-regex=^step ([0-9]+)", place("train.py", WORKER))
    browser.open(process.page.address)
    browser.shows("#live", "live")
    assert process.page.token not in browser.driver.current_url
    browser.shows("#cards", "Restarts10 left")
    browser.shows("#cards", "4 of 4")
    assert browser.text("#title") == JOB and browser.text("#state") == "running"
    browser.shows("#grid-legend", "4 running")

    browser.keys("#grid", browser_lib.key("ARROW_RIGHT"), browser_lib.key("ARROW_RIGHT"), browser_lib.key("ENTER"))
    browser.shows("#rank h2", "Rank 1 on")
    browser.shows("#rank-command", "train.py")
    assert "RANK=1\n" in browser.text("#rank-environment")

    browser.keys("body", "2")
    browser.keys("#log-search", "one line")
    browser.shows("#log", "one line of all")
    browser.driver.find_element("id", "log-search").clear()
    browser.keys("#log-search", "/of rank [3]/")
    wait_for(lambda: browser.text("#log .text") == "only of rank 3", "the line that is searched for")
    assert browser.text("#log-count").startswith("1 of ")

    browser.keys("#tab-log-view", browser_lib.key("ARROW_RIGHT"))
    browser.shows("#hosts", "0-3")
    browser.keys("#tab-hosts-view", browser_lib.key("ARROW_RIGHT"))
    browser.shows("#attempts", "exit code 1")
    browser.shows("#timeline-view .tail", "rank 1 gives up in attempt 0")
    assert len(browser.driver.find_elements("css selector", "#bars span")) == 2
    browser.keys("body", "5")
    browser.shows("#charts-view .chart", "Ranks running 4")
    assert "now 4" in browser.run("return [...document.querySelectorAll('.chart canvas')].map(c => c.ariaLabel).join()")
    browser.keys("body", "6")
    browser.click("#read-stacks")
    browser.shows("#stack-text", "4 of 4 workers")
    browser.click("#read-collectives")
    browser.shows("#collectives", "--flight-recorder")
    browser.keys("body", "7")
    browser.shows("#command", "train.py")
    assert "null" not in browser.text("#command-view")
    browser.shows("#command-view .facts", str(tmp_path))

    browser.click("#stop")
    browser.click("#confirm-no")
    assert process.poll() is None and browser.text("#state") == "running"

    place("end", "")
    browser.shows("#live", "the job has ended")
    assert browser.text("#state") == "failed"
    browser.shows("#cards", "Exit code1")
    browser.keys("body", "4")
    browser.shows("#timeline-view .tail", "rank 1 gives up in attempt 1")
    assert "Ranks41 failed, 3 stopped" in browser.text("#cards")
    browser.shows("#story h2", "job failed: rank 1 of 4 ended with exit code 1 after")
    browser.shows("#story-words", "rank 1 gives up in attempt 1")
    browser.keys("body", "3")
    browser.shows("#hosts .badge", "ended")
    browser.keys("body", "5")
    browser.shows("#charts-view .chart", "Ranks running 0")
    browser.keys("body", "1")
    browser.shows("#grid-legend", "1 failed3 stopped")
    assert process.wait(60) == 1
    assert not browser.driver.find_element("id", "stop").is_displayed()
    assert browser.complaints() == []

    browser.click("#save")
    saved = pathlib.Path(browser.profile, f"muster-{JOB}.html")
    wait_for(saved.exists, "the saved page")
    browser.open(saved.as_uri())
    assert browser.text("#state") == "failed" and browser.text("#live").startswith("saved at")
    assert "Exit code1" in browser.text("#cards")
    browser.keys("body", "4")
    browser.shows("#timeline-view .tail", "rank 1 gives up in attempt 1")
    browser.keys("body", "2")
    browser.keys("#log-search", "one line")
    browser.shows("#log", "one line of all")
    browser.run("showView('stacks-view')")
    browser.shows("#stack-text", "4 of 4 workers")
    assert browser.complaints() == []


def test_what_workers_print_and_are_called_is_never_markup(job, browser, place, tmp_path):
    """20 texts through output, names of files and directories, the environment and the text of an error."""
    payloads = place("payloads.json", json.dumps(PAYLOADS))
    evil = PAYLOADS[0].replace("/", "\u2215")
    directory = tmp_path / evil
    directory.mkdir()
    (directory / f"{evil}.py").write_text(f"""
import json, os, sys, time
texts = json.load(open({str(payloads)!r}))
for text in texts:
    print(text, flush=True)
    print(text, file=sys.stderr, flush=True)
while not os.path.exists("end"):
    time.sleep(0.05)
sys.exit("\\n".join(texts))
""")
    process = job("--nproc-per-node=1", "--redirects=3", f"{evil}.py", *PAYLOADS, cwd=directory, run_id=f"{JOB}{PAYLOADS[1]}", EVIL=PAYLOADS[4])
    browser.open(process.page.address)
    browser.shows("#live", "live")
    elements = "return document.querySelectorAll('script:not([src=\"page.js\"]), img, iframe, svg, base, a[href^=javascript], meta[http-equiv]').length"

    def is_clean():
        return browser.run(elements) == 0 and browser.run("return window.pwned") is None and browser.complaints() == []

    for i in range(1, 8):
        browser.keys("body", str(i))
        if i == 1:
            browser.run("openRank(0)")
            browser.shows("#rank-environment", PAYLOADS[4])
            browser.shows("#rank-command", PAYLOADS[2])
        if i == 2:
            wait_for(lambda: browser.run("return log.lines.length") >= len(PAYLOADS), "all lines")
            browser.run("for (const line of log.lines) log.pick(line)")
            assert browser.run("return log.lines.map(line => line[2])").count(PAYLOADS[5]) >= 1
            browser.shows("#log .text", PAYLOADS[0])
        if i == 6:
            browser.click("#read-stacks")
            browser.shows("#stack-text", "1 of 1 workers")
        assert is_clean(), i
    (directory / "end").touch()
    browser.shows("#live", "the job has ended")
    browser.keys("body", "4")
    browser.shows("#timeline-view .tail", PAYLOADS[6])
    assert is_clean()
    browser.click("#save")
    wait_for(lambda: list(pathlib.Path(browser.profile).glob("muster-*img*.html")), "the saved page")
    (saved,) = pathlib.Path(browser.profile).glob("muster-*img*.html")
    browser.open(saved.as_uri())
    browser.keys("body", "4")
    browser.shows("#timeline-view .tail", PAYLOADS[6])
    assert browser.run("return window.pwned") is None
    assert browser.run("return document.querySelectorAll('script').length") == 2
    assert browser.complaints() == []


# As the server would tell it: 10,000 ranks on 1,250 hosts, one failed, one far behind, a host without an answer.
MANY = """
const n = arguments[0], per = 8;
const column = make => Array.from({length: n}, (_, i) => make(i));
board.take({all: true, now: 1000, n, base: 500, hosts: column(i => i).slice(0, n / per).map(i => [i, {name: `node${i}`, rank: i, state: 'running', workers: per}]),
    c: {host: column(i => Math.floor(i / per)), state: column(i => i === 4321 ? 4 : i >> 3 === 77 ? 0 : 2), pid: column(i => 1000 + i),
        cpu: column(i => i % 101), mem: column(i => i % 4096), step: column(i => i === 17 ? 0 : 40), silent: column(i => i === 17 ? 64 : 0)},
    job: {run_id: 'many', state: 'running', nodes: n / per, world_size: n, restarts: 0, max_restarts: 3, started_ms: 0, min_nodes: 1, max_nodes: n / per},
    attempts: [], about: {}, progress: {step: 500, most: 540, behind: 17}, samples: []});
draw();
"""


def test_10000_ranks_are_drawn_found_and_updated(job, browser):
    process = job("--nproc-per-node=1", "sleep", "100")
    browser.open(process.page.url + "/")  # without its token: the page is fed here
    browser.shows("#notice", "token")
    browser.run(MANY, 10000)
    browser.shows("#cards", "9,991 of 10,000")
    browser.shows("#grid-legend", "1 failed")
    assert browser.text("#attention tbody tr:first-child td:first-child") == "4321"
    assert "9 ranks" not in browser.text("#attention-more")
    ranks = browser.text("#attention tbody td:first-child").split()
    assert ranks == ["4321", *(str(616 + i) for i in range(8)), "17"]
    browser.run("board.take({now: 2000, base: 501, c: {'~state': [4321, 2], '~cpu': [5, 100, 0, 50]}}); draw()")
    browser.shows("#cards", "9,992 of 10,000")
    assert browser.run("return [board.c.cpu[5], board.c.cpu[6], board.step(17)]") == [100, 50, 501]
    for mode in "late", "cpu", "mem", "state":
        browser.run("grid.setMode(arguments[0]); grid.draw()", mode)
        colours = browser.run("""
            const copy = document.createElement('canvas').getContext('2d', {willReadFrequently: true}), side = grid.size * devicePixelRatio;
            const at = rank => {
                copy.clearRect(0, 0, 1, 1);
                copy.drawImage(grid.canvas, rank % grid.perRow * side + 3, Math.floor(rank / grid.perRow) * side + 3, 1, 1, 0, 0, 1, 1);
                return [...copy.getImageData(0, 0, 1, 1).data].join();
            };
            return [at(17), at(100)]""")
        assert (colours[0] == colours[1]) == (mode == "state"), (mode, colours)
    browser.keys("body", "3")
    browser.shows("#hosts tbody tr:last-child", "node1249")
    browser.run("showView('ranks')")
    browser.run(MANY, 100000)
    browser.shows("#cards", "of 100,000")
    wait_for(lambda: browser.run("return grid.canvas.height") > 1000, "the grid to be drawn in the next frame")
    browser.narrow()
    browser.driver.set_window_size(1280, 900)
    assert browser.complaints() == []
