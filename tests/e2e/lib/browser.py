"""A real browser without a screen: Chromium, driven through selenium."""

import os
import shutil
import tempfile

from waits import DEADLINE, wait_for

MISSING = None if shutil.which("chromium") and shutil.which("chromedriver") else \
    "chromium and chromedriver are not installed; scripts/deps test installs them"


def key(name):
    from selenium.webdriver.common.keys import Keys

    return getattr(Keys, name)


class Browser:
    def __init__(self):
        from selenium import webdriver
        from selenium.webdriver.chrome.service import Service

        self.profile = tempfile.mkdtemp(prefix="browser-")
        options = webdriver.ChromeOptions()
        options.binary_location = shutil.which("chromium")
        for option in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-extensions", "--no-proxy-server",
                       "--disable-background-networking", "--window-size=1280,900", f"--user-data-dir={self.profile}/profile"):
            options.add_argument(option)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        env = dict(os.environ, HOME=self.profile, NO_PROXY="127.0.0.1,localhost", no_proxy="127.0.0.1,localhost")
        self.driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver"), env=env))
        self.driver.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": self.profile})
        self.driver.set_page_load_timeout(DEADLINE)
        self.driver.set_script_timeout(DEADLINE)

    def close(self):
        self.driver.quit()
        shutil.rmtree(self.profile, ignore_errors=True)

    def open(self, address):
        self.driver.get("about:blank")  # the same address with another token is the same page otherwise
        self.driver.get_log("browser")
        self.driver.get(address)

    def run(self, script, *args):
        return self.driver.execute_script(script, *args)

    def text(self, selector):
        """Of all elements that match, a line each; also of hidden ones."""
        return self.run("return [...document.querySelectorAll(arguments[0])].map(e => e.textContent).join('\\n')", selector)

    def shows(self, selector, text):
        try:
            wait_for(lambda: text in self.text(selector), f"'{text}' in {selector}")
        except AssertionError as error:
            raise AssertionError(f"{error}; it says '{self.text(selector)}'") from None

    def narrow(self):
        """Has the width of a telephone; the page draws itself anew in a later frame, and must fit then."""
        self.driver.set_window_size(420, 800)
        wait_for(lambda: self.run("return document.documentElement.scrollWidth") <= 420, "the page to fit into 420 pixels")

    def click(self, selector):
        self.driver.find_element("css selector", selector).click()

    def keys(self, selector, *keys):
        self.driver.find_element("css selector", selector).send_keys(*keys)

    def complaints(self):
        """What the browser complains of: errors in scripts, and what the policy forbids."""
        return [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")
                and "ERR_" not in entry["message"] and "Failed to load resource" not in entry["message"]]
