// Keys, sending without reloading, and what the page tells about itself. Every page works without this file.
"use strict";
(() => {
  const main = document.getElementById("main");
  const wait = (seconds) => new Promise((done) => setTimeout(done, seconds * 1000));
  let busy = false;
  let away = false;
  let idleTimer = 0;

  // ------------------------------------------------------------------ telling the clock
  const vote = () => document.querySelector("form[data-activity]");

  function tell(kind) {
    const form = vote();
    if (!form) return;
    const data = new URLSearchParams({
      kind, csrf: form.elements.csrf.value, token: form.elements.token.value,
    });
    navigator.sendBeacon(form.dataset.activity, data);
  }

  function restartIdle() {
    clearTimeout(idleTimer);
    const form = vote();
    if (form && !away) idleTimer = setTimeout(cover, Number(form.dataset.idle) * 1000);
  }

  function cover() {
    if (document.hidden || busy) return restartIdle();
    away = true;
    tell("idle");
    main.classList.add("away");
    const box = document.createElement("div");
    box.className = "cover";
    box.id = "cover";
    const text = document.createElement("p");
    text.textContent = "Still working? The clock stands still and the documents are hidden.";
    const button = document.createElement("button");
    button.type = "button";
    button.className = "primary";
    button.textContent = "Go on";
    box.append(text, button);
    vote().before(box);
    button.focus();
    return undefined;
  }

  function uncover() {
    away = false;
    main.classList.remove("away");
    document.getElementById("cover")?.remove();
    tell("active");
    restartIdle();
  }

  function alive() {
    if (!away) restartIdle();
  }

  for (const kind of ["pointermove", "pointerdown", "wheel", "scroll", "touchstart", "input"]) {
    addEventListener(kind, alive, { passive: true, capture: true });
  }
  addEventListener("click", (event) => {
    if (away) {
      event.preventDefault();
      event.stopPropagation();
      uncover();
    }
  }, true);
  document.addEventListener("visibilitychange", () => tell(document.hidden ? "hidden" : "visible"));
  addEventListener("pagehide", () => tell("closed"));
  // A page from the history is of the past: get the open question instead.
  addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });

  // ------------------------------------------------------------------ sending
  function say(text, warning) {
    const status = document.getElementById("status");
    if (!status) return;
    status.textContent = text;
    status.classList.toggle("warn", Boolean(warning));
  }

  async function send(url, body) {
    for (let pause = 0.5; ; pause = Math.min(pause * 2, 8)) {
      let reason = "the server cannot be reached";
      let asked = 0;
      try {
        const response = await fetch(url, { method: "POST", body, headers: { accept: "text/html" } });
        if (response.status < 500) return response;
        reason = response.status === 503 ? "the server is busy" : "the server has failed";
        asked = Number(response.headers.get("retry-after")) || 0;
      } catch {
        // No connection: the same vote is sent again, and its token makes it count once.
      }
      say(`Not saved yet: ${reason}. Trying again …`, true);
      await wait(Math.max(pause, asked));
    }
  }

  function show(text, url) {
    const page = new DOMParser().parseFromString(text, "text/html");
    const fresh = page.getElementById("main");
    if (!fresh) {
      location.assign(url);
      return;
    }
    document.title = page.title;
    main.className = fresh.className;
    main.replaceChildren(...fresh.childNodes);
    document.querySelector("header.bar").replaceWith(page.querySelector("header.bar"));
    if (new URL(url).pathname !== location.pathname) history.replaceState(null, "", new URL(url).pathname);
    away = false;
    scrollTo(0, 0);
    (main.querySelector("h1") ?? main).focus({ preventScroll: true });
    begin();
  }

  addEventListener("submit", async (event) => {
    const form = event.target;
    if (!form.matches("form[data-swap]")) return;
    event.preventDefault();
    if (busy) return;
    busy = true;
    const body = new URLSearchParams(new FormData(form));
    if (event.submitter?.name) body.append(event.submitter.name, event.submitter.value);
    for (const button of document.querySelectorAll("main button, header button")) button.disabled = true;
    const draft = form.querySelector("[data-draft]")?.dataset.draft;
    try {
      const response = await send(form.action, body);
      const text = await response.text();
      if (draft && response.ok) sessionStorage.removeItem(`draft ${draft}`);
      show(text, response.url);
    } catch {
      location.reload();
    } finally {
      busy = false;
    }
  });

  // ------------------------------------------------------------------ keys
  function typing(target) {
    return target instanceof Element && target.closest("input, textarea, select, [contenteditable]") !== null;
  }

  // Single letters may clash with speech input or other tools: they can be turned off.
  const keysOff = () => localStorage.getItem("keys") === "off";

  function showSwitch() {
    const button = document.getElementById("keys");
    if (!button) return;
    button.hidden = false;
    button.textContent = keysOff() ? "Keys are off" : "Keys are on";
    button.setAttribute("aria-pressed", String(!keysOff()));
    button.onclick = () => {
      localStorage.setItem("keys", keysOff() ? "on" : "off");
      showSwitch();
    };
  }

  addEventListener("keydown", (event) => {
    if (away) {
      if (!event.repeat) {
        event.preventDefault();
        uncover();
      }
      return;
    }
    alive();
    if (event.key === "Escape" && typing(event.target)) {
      event.target.blur();
      return;
    }
    if (event.repeat || event.isComposing || event.ctrlKey || event.metaKey || event.altKey) return;
    if (typing(event.target) || busy) return;
    if (keysOff()) return;
    const element = document.querySelector(`[data-key="${CSS.escape(event.key.toLowerCase())}"]`);
    if (!element || element.disabled) return;
    event.preventDefault();
    if (element.tagName === "SUMMARY") {
      const details = element.parentElement;
      details.open = !details.open;
      if (details.open) details.querySelector("textarea")?.focus();
    } else {
      element.click();
    }
  });

  // ------------------------------------------------------------------ drafts and the owner's board
  addEventListener("input", (event) => {
    const name = event.target.dataset?.draft;
    if (name) sessionStorage.setItem(`draft ${name}`, event.target.value);
  });

  async function refresh() {
    const live = document.querySelector("[data-live]");
    if (!live) return;
    if (!document.hidden && !live.contains(document.activeElement)) {
      try {
        const response = await fetch(location.pathname, { headers: { accept: "text/html" } });
        const page = new DOMParser().parseFromString(await response.text(), "text/html");
        const fresh = page.querySelector("[data-live]");
        if (response.ok && fresh) live.replaceChildren(...fresh.childNodes);
      } catch {
        // Next time.
      }
    }
    setTimeout(refresh, Number(live.dataset.live) * 1000);
  }

  function begin() {
    restartIdle();
    showSwitch();
    const field = document.querySelector("[data-draft]");
    const draft = field && sessionStorage.getItem(`draft ${field.dataset.draft}`);
    if (draft && !field.value) {
      field.value = draft;
      field.closest("details").open = true;
    }
  }

  begin();
  const live = document.querySelector("[data-live]");
  if (live) setTimeout(refresh, Number(live.dataset.live) * 1000);
})();
