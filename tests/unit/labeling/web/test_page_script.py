"""What the script of the pages does when the server is busy."""

from __future__ import annotations

import json
import shutil
import subprocess
from importlib import resources

import pytest

PAGE = resources.files("gradrank.labeling.web") / "static" / "page.js"
# As much of a browser as a vote needs: one form, timers that end at once, and a server that is busy at first.
BROWSER = """
const handlers = {}, sent = [], waits = [], said = [];
const element = () => ({ classList: { add() {}, remove() {}, toggle() {} }, dataset: {}, focus() {},
  replaceChildren() {}, replaceWith() {}, querySelector: () => null, childNodes: [],
  set textContent(t) { said.push(t); } });
globalThis.document = { getElementById: (name) => name === "keys" ? null : element(),
  querySelector: (name) => name === "header.bar" ? element() : null,
  querySelectorAll: () => [], addEventListener() {} };
globalThis.addEventListener = (kind, handler) => { handlers[kind] = handler; };
globalThis.setTimeout = (done, milliseconds) => { waits.push(milliseconds / 1000); queueMicrotask(done); return 0; };
Object.defineProperty(globalThis, "navigator", { value: { sendBeacon() {} } });
globalThis.location = { pathname: "/task/1", reload() {}, assign() {} };
globalThis.history = { replaceState() {} };
globalThis.localStorage = globalThis.sessionStorage = { getItem: () => null, setItem() {}, removeItem() {} };
globalThis.scrollTo = () => {};
globalThis.FormData = class { *[Symbol.iterator]() { yield ["token", "one"]; } };
globalThis.DOMParser = class { parseFromString() { return document; } };
globalThis.fetch = async (url, { body }) => {
  sent.push(String(body));
  const busy = sent.length < 3;
  return { status: busy ? 503 : 200, ok: !busy, url: "http://x/task/1", text: async () => "",
    headers: new Map(busy ? [["retry-after", "7"]] : []) };
};
require(process.argv[1]);
const form = { matches: () => true, querySelector: () => null, action: "/task/1/vote" };
handlers.submit({ target: form, preventDefault() {}, submitter: { name: "verdict", value: "a" } })
  .then(() => console.log(JSON.stringify({ sent, waits, said })));
"""


def test_pages_send_the_same_vote_again_when_they_were_told_to() -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    ran = subprocess.run([node, "-e", BROWSER, str(PAGE)], capture_output=True, text=True, check=True, timeout=60)
    found = json.loads(ran.stdout)
    assert found["sent"] == ["token=one&verdict=a"] * 3
    assert found["waits"][:2] == [7, 7]
    assert "busy" in found["said"][0]
