// Updates lists. One stream reports the kinds of records that have changed. The page then fetches
// itself again and replaces the parts that show these kinds: elements with an id and
// data-live="kind kind". Focus, selection, typed text and open folds stay. Without this script, a
// page shows the state at its loading.
"use strict";

(() => {
  const address = document.body.dataset.events;
  if (!address || !window.EventSource) return;

  // sync makes an element equal to a fresh one and keeps its nodes if possible, so that the browser
  // keeps their state.
  function sync(old, fresh) {
    if (old.nodeType === Node.TEXT_NODE) {
      if (old.data !== fresh.data) old.data = fresh.data;
      return;
    }
    if (old.nodeType !== Node.ELEMENT_NODE || old.isEqualNode(fresh)) return;
    syncAttributes(old, fresh);
    // Keep the text or the choice of the user.
    if (old.tagName !== "TEXTAREA" && old.tagName !== "SELECT") syncChildren(old, fresh);
  }

  // The user, or another script, sets these.
  const own = new Set(["open", "hidden", "value", "checked", "selected", "tabindex"]);

  function syncAttributes(old, fresh) {
    for (const { name } of [...old.attributes]) {
      if (!own.has(name) && !fresh.hasAttribute(name)) old.removeAttribute(name);
    }
    for (const { name, value } of [...fresh.attributes]) {
      if (!own.has(name) && old.getAttribute(name) !== value) old.setAttribute(name, value);
    }
  }

  // Not node.id: in a form, an input named id would hide it.
  const keyOf = (node) => node.nodeType === Node.ELEMENT_NODE ? node.getAttribute("id") || node.dataset.key || "" : "";
  const alike = (a, b) => a.nodeName === b.nodeName && keyOf(a) === keyOf(b);

  function syncChildren(old, fresh) {
    const keyed = new Map();
    for (const child of old.children) if (keyOf(child)) keyed.set(keyOf(child), child);
    let at = old.firstChild;
    for (const next of [...fresh.childNodes]) {
      const key = keyOf(next);
      let match = key ? keyed.get(key) : null;
      if (!key && at && alike(at, next)) match = at;
      if (match && alike(match, next)) {
        keyed.delete(key);
        if (match === at) at = at.nextSibling;
        else old.insertBefore(match, at);
        sync(match, next);
        continue;
      }
      const made = document.importNode(next, true);
      old.insertBefore(made, at);
      if (made.nodeType === Node.ELEMENT_NODE) made.dispatchEvent(new CustomEvent("fresh", { bubbles: true }));
    }
    while (at) {
      const gone = at;
      at = at.nextSibling;
      if (!typedIn(gone)) gone.remove();
    }
  }

  // typedIn reports whether the user has typed into a form that the fresh page lacks.
  function typedIn(node) {
    if (node.nodeType !== Node.ELEMENT_NODE) return false;
    return [...node.querySelectorAll("textarea, input[type=text], input:not([type])")]
      .some((field) => field.value !== field.defaultValue);
  }

  const signedOut = new Error("signed out");

  // fetched returns the current page of the server, or null if there is none: this page may be the
  // answer to a form.
  async function fetched() {
    const response = await fetch(location.pathname + location.search, { credentials: "same-origin", headers: { Accept: "text/html" } });
    if (response.redirected && new URL(response.url).pathname === document.body.dataset.root + "sign-in") throw signedOut;
    if (!response.ok) return null;
    return new DOMParser().parseFromString(await response.text(), "text/html");
  }

  // shown reports whether a part of the page shows one of the kinds.
  const shown = (kinds) => [...document.querySelectorAll("[data-live][id]")]
    .some((part) => part.dataset.live.split(" ").some((kind) => kinds.has(kind)));

  // refresh replaces the live parts, the title and the icon with those of the server's current
  // page.
  async function refresh() {
    const page = await fetched();
    if (!page) return;
    const focused = document.activeElement;
    for (const old of document.querySelectorAll("[data-live][id]")) {
      const fresh = page.getElementById(old.id);
      if (fresh) sync(old, fresh);
    }
    // A node that has moved loses the focus. Without it, the keyboard would begin at the top of the
    // page.
    if (focused && focused !== document.activeElement) {
      (focused.isConnected ? focused : document.getElementById("main")).focus({ preventScroll: true });
    }
    if (document.title !== page.title && page.title) document.title = page.title;
    const icon = document.querySelector("link[rel=icon]"), freshIcon = page.querySelector("link[rel=icon]");
    if (icon && freshIcon && icon.getAttribute("href") !== freshIcon.getAttribute("href")) icon.replaceWith(freshIcon);
    if (page.body.dataset.events) position = positionOf(page.body.dataset.events);
    document.dispatchEvent(new CustomEvent("refreshed"));
  }

  const positionOf = (link) => new URL(link, location.href).searchParams.get("since") || "";
  let position = positionOf(address); // the page shows all changes before it

  // The kinds that the page does not show yet. A refresh waits for the one before it, and a hidden
  // page refreshes less often.
  const all = ["tasks", "approvals", "outbox", "workers"];
  const pending = new Set();
  let timer = 0, last = 0, busy = false;

  function changed(kinds) {
    for (const kind of kinds) pending.add(kind);
    schedule();
  }

  function schedule() {
    if (busy || timer || !pending.size) return;
    const pause = document.hidden ? 10000 : 1000;
    timer = setTimeout(run, Math.max(0, last + pause - Date.now()));
  }

  async function run() {
    timer = 0;
    busy = true;
    const kinds = new Set(pending);
    pending.clear();
    try {
      if (offline || shown(kinds)) await refresh();
      caughtUp();
    } catch (error) {
      for (const kind of kinds) pending.add(kind); // the stream reports when the server answers again
      failures++;
      lost();
      if (error === signedOut && !typedIn(document.body)) location.reload(); // to the sign-in page
    }
    busy = false;
    last = Date.now();
    if (!offline) schedule();
  }

  document.addEventListener("visibilitychange", () => {
    clearTimeout(timer);
    timer = 0;
    schedule();
  });

  // The banner shows that the page is not up to date. It disappears once the page has all changes.
  const banner = document.getElementById("offline");
  let offline = false, retry = 0, failures = 0;

  function lost() {
    offline = true;
    if (banner && failures > 1) banner.hidden = false; // a first error is often temporary
  }

  function caughtUp() {
    offline = false;
    if (banner) banner.hidden = true;
  }

  if (banner) banner.querySelector("button").addEventListener("click", () => open());
  addEventListener("online", () => { if (offline) open(); });

  // Browsers open only six connections to an HTTP/1.1 server. So one tab has the stream and informs
  // the others, if the browser supports locks. Otherwise a tab has its own stream while it is
  // visible.
  const tabs = window.BroadcastChannel ? new BroadcastChannel("journeyman-changes") : null;
  const shared = Boolean(tabs && navigator.locks);
  let events = null, streamed = ""; // the position of the stream

  function open() {
    clearTimeout(retry);
    if (shared && !events && !leads) {
      changed(all); // another tab has the stream
      return;
    }
    close();
    const link = new URL(address, location.href);
    link.searchParams.set("since", position);
    events = new EventSource(link);
    events.onmessage = (event) => {
      const kinds = JSON.parse(event.data).changed || [];
      streamed = event.lastEventId;
      if (tabs) tabs.postMessage({ kinds });
      changed(kinds);
    };
    streamed = position;
    events.onopen = () => {
      failures = 0;
      if (tabs) tabs.postMessage({ open: true });
      if (pending.size) schedule();
      else caughtUp();
    };
    events.onerror = broken;
  }

  function close() {
    if (events) events.close();
    events = null;
  }

  // EventSource reconnects by itself unless the answer was no stream.
  function broken() {
    failures++;
    lost();
    if (tabs) tabs.postMessage({ lost: failures });
    if (events.readyState !== EventSource.CLOSED) return;
    clearTimeout(retry);
    changed(all); // finds out whether the session or only the stream has ended
    retry = setTimeout(open, Math.min(60000, 1000 * 2 ** failures));
  }

  let leads = false;
  if (shared) {
    tabs.onmessage = ({ data }) => {
      if (data.kinds) changed(data.kinds);
      if (data.lost) { failures = data.lost; lost(); }
      if (data.open && offline) changed(all);
      if (data.hello && leads && data.hello !== streamed) tabs.postMessage({ kinds: all });
    };
    tabs.postMessage({ hello: position }); // there may be changes since the page was loaded
    // The lock is held until the tab closes.
    navigator.locks.request("journeyman-changes", () => {
      leads = true;
      open();
      return new Promise(() => {});
    }).catch(() => {}); // the page is being closed
  } else {
    document.addEventListener("visibilitychange", () => { if (document.hidden) close(); else open(); });
    if (!document.hidden) open();
  }
  addEventListener("pagehide", close);
})();
