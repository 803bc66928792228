"""The labeling tool in a real browser: keys, double clicks, tabs, restarts, hostile documents, no scripts."""

from __future__ import annotations

import json
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from gradrank.labeling.judgments import Verdict
from gradrank.labeling.project.access import Access
from gradrank.labeling.project.assignment import assign
from gradrank.labeling.project.importing import import_files
from gradrank.labeling.project.judging import Desk, Vote, load_history
from gradrank.labeling.project.store import Store, create_project
from gradrank.labeling.strategies import strategy
from gradrank.labeling.web.app import create_app
from tests.support.browser import color, contrast, needs_browser, new_browser
from tests.support.commands import PROGRAM

pytestmark = needs_browser

SERVE = (*PROGRAM, "label", "serve")
VALUES = {"d1": 1, "d2": 2, "d3": 2, "d4": 4, "d5": 5, "d6": 6}
TRUTH = (("d6",), ("d5",), ("d4",))
LISTEN = """
window.trouble = [];
addEventListener("securitypolicyviolation", (e) => trouble.push(`${e.violatedDirective} ${e.blockedURI}`));
addEventListener("error", (e) => trouble.push(`error ${e.message}`));
for (const name of ["alert", "confirm", "prompt", "open"]) window[name] = () => trouble.push(name);
"""


class ProcessServer:
    """A project served by the command; it can be killed and started again on its port."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(
            [*SERVE, str(self.path), "--port", str(self.port)], stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        # The first line comes when the port is open.
        assert self.url in self.process.stdout.readline()

    def kill(self) -> None:
        assert self.process.stdout is not None
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


class ThreadServer:
    """A project served by a thread of this process, which starts quicker."""

    def __init__(self, path: Path) -> None:
        import uvicorn

        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        app = create_app(Store(path), hosts=["127.0.0.1"], backups=False)
        self.server = uvicorn.Server(uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=1))
        self.thread = threading.Thread(target=self.server.run, args=([self.listener],))
        self.thread.start()

    def kill(self) -> None:
        self.server.should_exit = True
        self.thread.join()
        self.listener.close()


class Place:
    """A project, its server, and what became of the votes."""

    def __init__(
        self,
        folder: Path,
        documents: str | None = None,
        query: dict[str, str] | None = None,
        server: type[ThreadServer | ProcessServer] = ThreadServer,
        **assigning: Any,
    ) -> None:
        (folder / "queries.jsonl").write_text(json.dumps({"id": "q1"} | (query or {"text": "blue sky"})))
        lines = (json.dumps({"id": name, "text": f"passage of value {value}"}) for name, value in VALUES.items())
        (folder / "documents.jsonl").write_text(documents or "\n".join(lines))
        self.store = create_project(folder / "p.db", title="Browser test", guidelines="Prefer what answers.")
        found = import_files(self.store, queries=folder / "queries.jsonl", documents=[folder / "documents.jsonl"])
        assert found.faults == []
        assign(self.store, **({"assessors": 1, "k": 3} | assigning))
        self.server = server(folder / "p.db")

    def link(self, name: str = "assessor-1") -> str:
        access = Access(self.store)
        return f"{self.server.url}/join/{access.owner_token() if name == 'owner' else access.invite(name)}"

    def events(self, number: int = 1) -> list[tuple[Any, ...]]:
        sql = "SELECT seq, verdict, comment FROM event WHERE assignment = ? ORDER BY seq"
        return self.store.read().execute(sql, (number,)).fetchall()

    def close(self) -> None:
        self.server.kill()
        self.store.close()


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., Place]]:
    with ExitStack() as stack:

        def make(**options: Any) -> Place:
            place = Place(tmp_path, **options)
            stack.callback(place.close)
            return place

        yield make


@pytest.fixture(scope="module")
def shared_browser() -> Iterator[Any]:
    driver = new_browser(script=LISTEN)
    yield driver
    driver.quit()


@pytest.fixture
def browser(shared_browser: Any) -> Iterator[Any]:
    """The shared browser without cookies and with one tab."""
    yield shared_browser
    first, *others = shared_browser.window_handles
    for other in others:
        shared_browser.switch_to.window(other)
        shared_browser.close()
    shared_browser.switch_to.window(first)
    shared_browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    shared_browser.execute_cdp_cmd("Network.clearBrowserCookies", {})
    shared_browser.get("about:blank")
    shared_browser.get_log("browser")


# ---------------------------------------------------------------------- an assessor's hands
def until(browser: Any, condition: Callable[[], Any]) -> Any:
    """Wait until a condition holds."""
    from selenium.common.exceptions import NoSuchElementException, StaleElementReferenceException
    from selenium.webdriver.support.ui import WebDriverWait

    ignored = (NoSuchElementException, StaleElementReferenceException)
    return WebDriverWait(browser, 20, poll_frequency=0.02, ignored_exceptions=ignored).until(lambda _: condition())


def enter(browser: Any, place: Place, name: str = "assessor-1") -> None:
    browser.get(place.link(name))
    find(browser, "main button").click()
    until(browser, lambda: "/join/" not in browser.current_url)
    if name != "owner":
        browser.get(f"{place.server.url}/work")


def find(browser: Any, selector: str) -> Any:
    return browser.find_element("css selector", selector)


def submit(browser: Any, selector: str) -> None:
    """Press a button of a plain form and wait until the page that answers it has come."""
    from selenium.webdriver.support.expected_conditions import staleness_of

    before = find(browser, "main")
    find(browser, selector).click()
    until(browser, lambda: staleness_of(before)(browser))
    until(browser, lambda: find(browser, "main"))


def press(browser: Any, *keys: str) -> None:
    from selenium.webdriver import ActionChains

    chain = ActionChains(browser)
    for key in keys:
        chain.send_keys(key)
    chain.perform()


def seq(browser: Any) -> int:
    return int(find(browser, "form input[name=seq]").get_attribute("value"))


def texts(browser: Any) -> list[str]:
    return [item.text for item in browser.find_elements("css selector", ".document .text")]


def values(browser: Any) -> list[int]:
    return [int(text.rpartition(" ")[2]) for text in texts(browser)]


def answer(browser: Any) -> str:
    """The key of the right answer for what is on the screen."""
    left, right = values(browser)
    return "a" if left > right else "b" if left < right else "t"


def vote_by_key(browser: Any, key: str) -> None:
    before = seq(browser)
    press(browser, key)
    until(browser, lambda: seq(browser) == before + 1)


def finish(browser: Any) -> None:
    while "is finished and saved" not in find(browser, "main").text:
        vote_by_key(browser, answer(browser))


def trouble(browser: Any) -> list[str]:
    return list(browser.execute_script("return window.trouble"))


# ---------------------------------------------------------------------- sessions
def test_a_session_by_keys_alone_is_what_the_strategy_hears(browser: Any, serve: Callable[..., Place]) -> None:
    place = serve(server=ProcessServer)
    enter(browser, place)
    vote_by_key(browser, "s")
    vote_by_key(browser, "t")
    vote_by_key(browser, "u")
    finish(browser)
    item = Desk(place.store).work(1).assignment
    history = load_history(place.store.read(), 1, 1000)
    state = strategy("tournament").replay(item.documents, 3, item.seed, history)
    assert state.done
    assert state.top == TRUTH
    assert [verdict for _, verdict, _ in place.events()][:3] == ["skip", "tie", "undo"]
    assert (trouble(browser), browser.get_log("browser")) == ([], [])
    press(browser, "n")
    until(browser, lambda: "All 1 done" in find(browser, "main").text)


def test_bad_documents_leave_and_grades_take_digits(browser: Any, serve: Callable[..., Place]) -> None:
    place = serve(assessors=2, strategies=("tournament", "grades"))
    for name in ("assessor-1", "assessor-2"):
        enter(browser, place, name)
        number = int(browser.current_url.rpartition("/")[2])
        if len(texts(browser)) == 2:
            left, right = texts(browser)
            vote_by_key(browser, "1")
            assert left not in texts(browser)
            while right not in texts(browser):
                vote_by_key(browser, "s")
            state = Desk(place.store).work(number).state
            assert [VALUES[document] for document in state.bad] == [int(left.rpartition(" ")[2])]
        else:
            for _ in VALUES:
                (value,) = values(browser)
                vote_by_key(browser, str(min(value, 5)))
            grades = dict(Desk(place.store).work(number).state.grades)
            assert grades == {document: min(value, 5) - 1 for document, value in VALUES.items()}
        browser.execute_cdp_cmd("Network.clearBrowserCookies", {})


def test_double_click_and_held_key_are_one_vote(browser: Any, serve: Callable[..., Place]) -> None:
    from selenium.webdriver import ActionChains

    place = serve()
    enter(browser, place)
    ActionChains(browser).double_click(find(browser, "button[value=a]")).perform()
    until(browser, lambda: seq(browser) == 2)
    for step in range(30):
        key = {"type": "rawKeyDown", "key": "b", "code": "KeyB", "windowsVirtualKeyCode": 66, "autoRepeat": step > 0}
        browser.execute_cdp_cmd("Input.dispatchKeyEvent", key)
    browser.execute_cdp_cmd("Input.dispatchKeyEvent", key | {"type": "keyUp"})
    until(browser, lambda: seq(browser) == 3)
    # A vote that follows proves that nothing of the former is still on its way.
    vote_by_key(browser, "t")
    assert [number for number, _, _ in place.events()] == [1, 2, 3]


def test_two_answers_at_once_without_the_pages_help_are_one_vote(browser: Any, serve: Callable[..., Place]) -> None:
    """The page's own guard is bypassed: five requests leave at once, as from a shaky network."""
    place = serve()
    enter(browser, place)
    said = browser.execute_async_script(
        """
        const done = arguments[0], form = document.getElementById("vote");
        const body = new URLSearchParams(new FormData(form, form.querySelector("button[value=a]")));
        const send = () => fetch(form.action, {method: "POST", body}).then((response) => response.url);
        Promise.all([1, 2, 3, 4, 5].map(send)).then(done);
        """
    )
    assert sorted(url.partition("said=")[2] for url in said) == ["accepted", *["repeated"] * 4]
    assert len(place.events()) == 1


def test_a_second_tab_gets_the_current_pair_and_a_notice(browser: Any, serve: Callable[..., Place]) -> None:
    place = serve()
    enter(browser, place)
    first = browser.current_window_handle
    browser.switch_to.new_window("tab")
    browser.get(f"{place.server.url}/task/1")
    browser.switch_to.window(first)
    vote_by_key(browser, answer(browser))
    browser.switch_to.window(browser.window_handles[-1])
    shown = texts(browser)
    press(browser, "a")
    until(browser, lambda: "Not counted" in find(browser, "#status").text)
    assert seq(browser) == 2
    assert texts(browser) != shown
    assert len(place.events()) == 1
    finish(browser)
    assert Desk(place.store).work(1).state.top == TRUTH


def test_back_forward_and_reload_show_the_open_question(browser: Any, serve: Callable[..., Place]) -> None:
    place = serve()
    enter(browser, place)
    for _ in range(2):
        vote_by_key(browser, answer(browser))
    shown = texts(browser)
    browser.refresh()
    assert (seq(browser), texts(browser)) == (3, shown)
    browser.get(f"{place.server.url}/")
    browser.back()
    until(browser, lambda: seq(browser) == 3)
    assert texts(browser) == shown
    browser.back()
    browser.forward()
    until(browser, lambda: seq(browser) == 3)
    finish(browser)
    assert Desk(place.store).work(1).state.top == TRUTH


def test_a_killed_server_loses_nothing_and_the_vote_goes_through(browser: Any, serve: Callable[..., Place]) -> None:
    place = serve(server=ProcessServer)
    enter(browser, place)
    vote_by_key(browser, answer(browser))
    assert isinstance(place.server, ProcessServer)
    place.server.kill()
    assert len(place.events()) == 1
    press(browser, answer(browser))
    until(browser, lambda: "Not saved yet" in find(browser, "#status").text)
    place.server.start()
    until(browser, lambda: seq(browser) == 3)
    assert len(place.events()) == 2
    finish(browser)
    assert Desk(place.store).work(1).state.top == TRUTH


def test_another_device_goes_on_where_the_first_stopped(browser: Any, serve: Callable[..., Place]) -> None:
    place = serve()
    enter(browser, place)
    vote_by_key(browser, answer(browser))
    shown = texts(browser)
    browser.execute_cdp_cmd("Network.clearBrowserCookies", {})
    enter(browser, place)
    assert (seq(browser), texts(browser)) == (2, shown)


def test_two_assessors_at_once(browser: Any, serve: Callable[..., Place]) -> None:
    place = serve(assessors=2, overlap=2)
    other = new_browser(script=LISTEN)
    try:
        drivers = [browser, other]
        numbers = []
        for driver, name in zip(drivers, ("assessor-1", "assessor-2"), strict=True):
            enter(driver, place, name)
            numbers.append(int(driver.current_url.rpartition("/")[2]))
        while drivers:
            # Both keys are pressed before either answer is waited for.
            before = [(driver, seq(driver)) for driver in drivers]
            for driver, _ in before:
                press(driver, answer(driver))
            for driver, number in before:
                until(driver, lambda driver=driver, number=number: seq(driver) == number + 1)
            drivers = [driver for driver in drivers if "is finished" not in find(driver, "main").text]
    finally:
        other.quit()
    assert sorted(numbers) == [1, 2]
    for number in numbers:
        assert Desk(place.store).work(number).state.top == TRUTH


# ---------------------------------------------------------------------- around the votes
def test_typing_a_comment_judges_nothing(browser: Any, serve: Callable[..., Place]) -> None:
    from selenium.webdriver.common.keys import Keys

    place = serve()
    enter(browser, place)
    press(browser, "c")
    text = "abt 123 supgn"
    press(browser, *text)
    assert find(browser, "#comment").get_attribute("value") == text
    assert place.events() == []
    # A draft survives loading the page again.
    browser.refresh()
    until(browser, lambda: find(browser, "#comment").get_attribute("value") == text)
    find(browser, "#comment").click()
    press(browser, Keys.ESCAPE)
    vote_by_key(browser, "t")
    assert place.events() == [(1, "tie", text)]
    assert find(browser, "#comment").get_attribute("value") == ""


def test_keys_with_modifiers_or_turned_off_do_nothing(browser: Any, serve: Callable[..., Place]) -> None:
    from selenium.webdriver import ActionChains
    from selenium.webdriver.common.keys import Keys

    place = serve()
    enter(browser, place)
    for modifier in (Keys.CONTROL, Keys.ALT, Keys.META):
        ActionChains(browser).key_down(modifier).send_keys("b").key_up(modifier).perform()
    find(browser, "#keys").click()
    assert find(browser, "#keys").text == "Keys are off"
    press(browser, "a", "b", "t")
    find(browser, "#keys").click()
    vote_by_key(browser, "t")
    assert [verdict for _, verdict, _ in place.events()] == ["tie"]


def test_pause_hides_the_documents_and_stops_the_clock(browser: Any, serve: Callable[..., Place]) -> None:
    place = serve()
    enter(browser, place)
    shown = texts(browser)
    press(browser, "p")
    until(browser, lambda: "Paused" in find(browser, "main").text)
    assert "passage of value" not in browser.page_source
    press(browser, "a", "t")
    browser.refresh()
    assert "Paused" in find(browser, "main").text
    press(browser, "p")
    until(browser, lambda: texts(browser) == shown)
    assert place.events() == []
    kinds = [kind for (kind,) in place.store.read().execute("SELECT kind FROM activity ORDER BY id")]
    assert [kind for kind in kinds if kind in ("pause", "resume")] == ["pause", "resume"]


def test_an_idle_page_is_covered_and_the_first_key_only_uncovers(browser: Any, serve: Callable[..., Place]) -> None:
    place = serve()
    enter(browser, place)
    browser.execute_script("document.getElementById('vote').dataset.idle = '0.05'; dispatchEvent(new Event('wheel'));")
    until(browser, lambda: "Still working?" in find(browser, "main").text)
    assert not find(browser, ".panes").is_displayed()
    browser.execute_script("document.getElementById('vote').dataset.idle = '300'")
    press(browser, "a")
    until(browser, lambda: find(browser, ".panes").is_displayed())
    vote_by_key(browser, "t")
    assert [verdict for _, verdict, _ in place.events()] == ["tie"]
    sql = "SELECT kind FROM activity WHERE seq = 1 ORDER BY id"
    kinds = [kind for (kind,) in place.store.read().execute(sql)]
    assert kinds == ["shown", "idle", "active"]


def test_without_scripts_everything_works(browser: Any, serve: Callable[..., Place]) -> None:
    place = serve()
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    enter(browser, place)
    submit(browser, "button[value=skip]")
    submit(browser, "button[value=undo]")
    for name in ("pause", "resume"):
        submit(browser, f"nav form[action$={name}] button")
    while "is finished and saved" not in find(browser, "main").text:
        key = answer(browser)
        submit(browser, f"button[value={'tie' if key == 't' else key}]")
    assert Desk(place.store).work(1).state.top == TRUTH
    assert [verdict for _, verdict, _ in place.events()][:2] == ["skip", "undo"]


ATTACKS = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<svg/onload=alert(1)><a href=javascript:alert(1)>x</a>",
    "<iframe srcdoc='<script>parent.alert(1)</script>'></iframe><style>body{display:none}</style>",
    "<form action=/leave method=post><button data-key=a>A</button></form><base href=//evil.example>",
    "'\"><script src=//evil.example/x.js></script><p style=color:red onmouseover=alert(1)>x",
    "{{ 7 * 7 }} {% raw %} </textarea></title><script>alert(1)</script>",
]


@pytest.mark.parametrize("field", ["text", "html"])
def test_hostile_documents_do_nothing(browser: Any, serve: Callable[..., Place], field: str) -> None:
    documents = "\n".join(
        json.dumps({"id": f"d{number}<b>'\"", "title": attack, field: f"{attack} value {number}"}).replace(" <", "<")
        for number, attack in enumerate(ATTACKS)
    )
    documents = documents.replace("d0<b>'\\\"", "d0")
    place = serve(documents=documents, query={"text": ATTACKS[0], "description": ATTACKS[1]}, k=2)
    with place.store.write() as connection:
        connection.execute("UPDATE assessor SET name = ?", (ATTACKS[0],))
        connection.execute("UPDATE setting SET value = ?", (ATTACKS[6],))
    enter(browser, place, ATTACKS[0])
    for _ in range(7):
        if browser.find_elements("css selector", "button[value=tie]"):
            assert find(browser, ".panes").is_displayed()
            assert trouble(browser) == []
            vote_by_key(browser, "t")
    browser.execute_cdp_cmd("Network.clearBrowserCookies", {})
    enter(browser, place, "owner")
    for path in ("", "/people", "/assign", "/files"):
        browser.get(f"{place.server.url}/owner{path}")
        assert trouble(browser) == []
        assert browser.find_elements("css selector", "main script, main img, main svg, main iframe, main style") == []
    assert browser.get_log("browser") == []
    # The listener would have heard: an attack that gets into a page by force is stopped and reported.
    browser.execute_script("document.body.insertAdjacentHTML('beforeend', '<img src=data: onerror=alert(1)>')")
    until(browser, lambda: trouble(browser) == ["script-src-attr inline"])


# ---------------------------------------------------------------------- for every eye and ear
LONG = "word " * 3000


@pytest.mark.parametrize("width", [320, 390, 1280])
def test_nothing_is_wider_than_the_window(browser: Any, serve: Callable[..., Place], width: int) -> None:
    bodies = [LONG, "x" * 500, "مرحبا بالعالم " * 20, "<pre>" + "y" * 400 + "</pre>"]
    documents = "\n".join(json.dumps({"id": f"d{n}", "html": body}) for n, body in enumerate(bodies))
    place = serve(documents=documents, query={"text": "q" * 200}, assessors=1, k=2)
    size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        enter(browser, place)
        for _ in range(3):
            assert browser.execute_script("return document.documentElement.scrollWidth") <= width
            # The answers stay in sight, however long the documents are.
            box = browser.execute_script(
                "return document.querySelector('button[value=a]').getBoundingClientRect().bottom"
            )
            assert 0 < box <= 800
            vote_by_key(browser, "t")
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_everything_has_a_name_and_a_place(browser: Any, serve: Callable[..., Place]) -> None:
    """Names as the browser computes them for screen readers, landmarks, focus after a vote, spoken notices."""
    place = serve()
    enter(browser, place)
    vote_by_key(browser, answer(browser))
    assert browser.execute_script("return document.activeElement.id") == "query"
    assert find(browser, "#status").get_attribute("aria-live") == "polite"
    assert find(browser, "#status").text == "Saved."
    for landmark in ("main", "nav", "header"):
        assert len(browser.find_elements("css selector", f"body > {landmark}, header > {landmark}")) == 1
    assert len(browser.find_elements("css selector", "h1")) == 1
    press(browser, "c")
    nodes = browser.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    named = {"button", "link", "textbox", "progressbar", "article", "group", "DisclosureTriangle"}
    seen = set()
    for node in nodes:
        role = node.get("role", {}).get("value")
        if role in named and not node.get("ignored"):
            name = node.get("name", {}).get("value", "")
            if role == "group" and not name:
                continue  # details elements are groups without names of their own
            assert name, node
            seen.add((role, name))
    assert ("article", "A") in seen
    assert ("article", "B") in seen
    assert any(role == "button" and "A is better" in name for role, name in seen)
    for button in browser.find_elements("css selector", "[data-key]"):
        assert button.get_attribute("data-key").upper() in button.text


def test_the_board_is_live(browser: Any, serve: Callable[..., Place]) -> None:
    place = serve()
    enter(browser, place, "owner")
    assert "0 of 1" in find(browser, "[data-live]").text
    desk = Desk(place.store)
    while not (work := desk.work(1)).state.done:
        left, right = (VALUES[name] for name in work.shown)
        verdict = Verdict.FIRST if left > right else Verdict.SECOND if left < right else Verdict.TIE
        shown = tuple(work.assignment.numbers[name] for name in work.shown)
        desk.vote(1, Vote(work.seq, f"token-{work.seq:05d}", verdict, shown))
    until(browser, lambda: "1 of 1" in find(browser, "[data-live]").text)


def test_text_stands_out_in_light_and_dark(browser: Any, serve: Callable[..., Place]) -> None:
    """Contrast of text and its background, by WCAG 2's formula; 4.5 is its level AA."""
    place = serve()
    enter(browser, place)
    try:
        for scheme in ("light", "dark"):
            feature = {"name": "prefers-color-scheme", "value": scheme}
            browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
            pairs = [("h1", "body"), (".progress p", "body"), (".document .text", ".document"), (".badge", ".document")]
            pairs += [("button.primary", "button.primary"), ("button[value=skip]", "button[value=skip]")]
            pairs += [(".bar .quiet", ".bar"), (".document h2", ".document")]
            for text, ground in pairs:
                assert contrast(color(browser, text, "color"), color(browser, ground, "backgroundColor")) >= 4.5, (
                    scheme,
                    text,
                )
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
