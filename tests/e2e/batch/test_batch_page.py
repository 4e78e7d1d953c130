"""The page of a running batch (--http): who may see what, what it tells, and what a browser makes of it."""

import json
import os
import re

import pytest

import browser as browser_lib
from batch_files import write
from page import Page
from waits import read_line, wait_for

EVIL = "<img src=x onerror=window.pwned=1></pre><script>window.pwned=1</script>"


class Told:
    """What a page knows after what it was told (proto/dash/roster.h)."""

    def __init__(self):
        self.n, self.sum, self.failures, self.rows, self.messages = 0, {}, [], {}, 0

    def take(self, told):
        if told.get("all"):
            self.__init__()
            self.n = told["n"]
        self.messages += 1
        self.sum = told.get("sum", self.sum)
        self.failures += told.get("failures", [])
        self.rows.update({row[0]: row for row in told.get("rows", [])})
        return self


@pytest.fixture
def batch(start, tmp_path):
    def call(*args):
        process = start("batch", "-j2", "--place=none", *args, cwd=tmp_path)
        line = read_line(process, "stderr")
        address = re.fullmatch(r"muster batch: its page is (http://\S+)\n", line)
        assert address, line
        process.page = Page.at(address[1])
        return process

    return call


def held(name, then="true"):
    return f"until test -e {name}; do sleep 0.05; done; {then}"


def asked(page, **query):
    code, headers, text = page.request("/api/orders", "POST", page.token, json.dumps(query).encode())
    assert code == 200 and headers["Content-Type"] == "application/json"
    return json.loads(text)


def test_the_page_is_served_to_all_and_data_only_with_the_token(batch, place):
    process = batch("--http", ":::", held("end"))
    page = process.page
    assert page.url.startswith("http://127.0.0.1:") and len(page.token) == 32
    for path in "/", "/page.css", "/page.js":
        code, headers, text = page.request(path)
        assert code == 200 and text and page.token not in text
        assert "default-src 'none'" in headers["Content-Security-Policy"] and headers["X-Content-Type-Options"] == "nosniff"
        assert "unsafe" not in headers["Content-Security-Policy"]
    for token in None, "0" * 32, page.token[:-1]:
        assert page.request("/api/stream", token=token)[0] == 401
        assert page.request("/api/orders", "POST", token, b"{}")[0] == 401
    assert page.request("/api/orders", token=page.token)[0] == 405
    assert page.request("/api/stream", "POST", page.token, b"")[0] == 405
    for body in b"", b"[]", b'{"state":"none"}', b"x" * 5000:
        assert page.request("/api/orders", "POST", page.token, body)[0] in (400, 413)
    place("end", "")
    assert process.wait(60) == 0


def test_a_page_is_told_changes_and_the_end(batch, place, tmp_path):
    orders = write(tmp_path / "orders", json.dumps({"id": "one", "cmd": held("first", "echo last words >&2; exit 3"), "labels": {"kind": "bad"}}),
                   json.dumps({"id": "two", "cmd": held("second"), "labels": {"kind": "good"}}), "echo three")
    process = batch("--http=0", "--order=listed", orders)
    page, told = process.page, Told()
    with page.stream() as events:
        def until(condition):
            return next(told for name, event in events if name == "batch" and condition(told.take(event)))

        until(lambda told: told.sum["running"] == 2)
        assert told.n == 3 and told.sum["queued"] == 1 and told.sum["state"] == "running"
        assert [row[7:] for row in asked(page, state="queued")["rows"]] == [[asked(page)["rows"][2][7], "echo three", ""]]
        place("first", "")
        until(lambda told: told.sum["ok"] == 1)
        assert told.messages > 1 and told.rows[0][1:4] == [4, 1, 0] and told.rows[2][1:4] == [3, 1, 1]
        (failure,) = told.failures
        assert (failure["order"], failure["id"], failure["tail"]) == (0, "one", "last words\n") and failure["how"].startswith("exit code 3")
        assert [row[0] for row in asked(page, label="kind=b*")["rows"]] == [0]
        assert [row[0] for row in asked(page, text="SECOND")["rows"]] == [1]
        assert asked(page, state="failed", text="second")["count"] == 0
        place("second", "")
        until(lambda told: "exit_code" in told.sum)
        assert told.sum["state"] == "failed" and told.sum["exit_code"] == 1 and told.sum["ok"] == 2
        assert next(events, None) is None  # the answer ends as it should
    assert process.wait(60) == 1


def test_orders_that_a_canary_keeps_from_running_are_skipped(batch, place):
    process = batch("--http", f"--canary={held('go', 'false')}", ":::", "true 1", "true 2")
    with process.page.stream() as events:
        told = Told()
        place("go", "")
        next(told for _, event in events if "exit_code" in told.take(event).sum)
    assert told.n == 2 and told.sum["skipped"] == 2
    assert process.wait(60) == 1


def test_what_cannot_be_served_is_refused(muster, tmp_path):
    r = muster("batch", "--http", "--pipe", "cat")
    assert r.returncode == 2 and "--http shows a list of orders" in r.stderr
    r = muster("batch", "--http=nowhere:x", ":::", "touch ran")
    assert r.returncode == 2 and "http" in r.stderr
    r = muster("batch", "--http=192.0.2.1:1", ":::", "touch ran")  # no address of this host
    assert r.returncode != 0 and "--http" in r.stderr
    assert not (tmp_path / "ran").exists()


@pytest.mark.xdist_group("browser")
@pytest.mark.skipif(bool(browser_lib.MISSING), reason=str(browser_lib.MISSING))
def test_a_browser_shows_it_and_no_output_becomes_markup(batch, place, tmp_path):
    orders = write(tmp_path / "orders", json.dumps({"id": EVIL, "cmd": f"echo '{EVIL}' >&2; exit 3", "labels": {"evil": EVIL}}),
                   *(f"sleep 0.0{i % 10} # {i}" for i in range(150)), held("end", f": '{EVIL}'"))
    process = batch("--http", "--order=listed", orders)
    browser = browser_lib.Browser()
    try:
        browser.open(process.page.address)
        browser.shows("#live", "live")
        assert process.page.token not in browser.driver.current_url
        browser.shows("#cards", "151 of 152")
        browser.shows("#failures .tail", EVIL)
        browser.shows("#failures h3", f"1 · {EVIL}: exit code 3")
        browser.shows("#times figcaption", "150 runs, median about")
        browser.shows("#orders-count", "1 to 100 of 152")
        browser.click("#after")
        browser.shows("#orders-count", "101 to 152 of 152")
        browser.shows("#orders tr:last-child", EVIL)
        browser.run("const s = document.getElementById('filter-state'); s.value = 'failed'; s.dispatchEvent(new Event('input'))")
        browser.shows("#orders-count", "1 to 1 of 1")
        browser.shows("#orders", f"evil={EVIL}")
        if folder := os.environ.get("SCREENSHOTS"):
            browser.driver.save_screenshot(f"{folder}/batch-failed.png")
        browser.run("const s = document.getElementById('filter-state'); s.value = ''; s.dispatchEvent(new Event('input'))")
        browser.keys("#filter-text", "# 149")
        browser.shows("#orders-count", "1 to 1 of 1")
        browser.shows("#orders td.command", "# 149")
        browser.narrow()
        browser.driver.set_window_size(1280, 900)
        place("end", "")
        browser.shows("#live", "the batch has ended")
        browser.shows("#cards", "152 of 152")
        browser.shows("#cards", "Exit code1")
        assert browser.run("return window.pwned") is None
        assert browser.run("return document.querySelectorAll('script:not([src=\"page.js\"]), img, iframe, svg').length") == 0
        assert browser.complaints() == []
    finally:
        browser.close()
    assert process.wait(60) == 1
