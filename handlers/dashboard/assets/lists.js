// Lists that follow what happens. One stream tells which kinds of records have changed.
// The page then fetches itself anew and takes over the parts that show these kinds:
// elements with an id and data-live="kind kind". Focus, selection, typed text and open
// folds stay. Without this script a page is as true as when it was loaded.
"use strict";

(() => {
  const address = document.body.dataset.events;
  if (!address || !window.EventSource) return;

  // sync makes an element equal to a fresh one and keeps its nodes where it can, so that
  // the browser keeps what belongs to them.
  function sync(old, fresh) {
    if (old.nodeType === Node.TEXT_NODE) {
      if (old.data !== fresh.data) old.data = fresh.data;
      return;
    }
    if (old.nodeType !== Node.ELEMENT_NODE || old.isEqualNode(fresh)) return;
    syncAttributes(old, fresh);
    // What somebody types or chooses is theirs.
    if (old.tagName !== "TEXTAREA" && old.tagName !== "SELECT") syncChildren(old, fresh);
  }

  // The user, or another script, decides about these.
  const own = new Set(["open", "hidden", "value", "checked", "selected", "tabindex", "data-current"]);

  function syncAttributes(old, fresh) {
    for (const { name } of [...old.attributes]) {
      if (!own.has(name) && !fresh.hasAttribute(name)) old.removeAttribute(name);
    }
    for (const { name, value } of [...fresh.attributes]) {
      if (!own.has(name) && old.getAttribute(name) !== value) old.setAttribute(name, value);
    }
  }

  // Not node.id: in a form, an input of that name would take its place.
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

  // typedIn reports whether somebody has written in a form that the fresh page lacks.
  function typedIn(node) {
    if (node.nodeType !== Node.ELEMENT_NODE) return false;
    return [...node.querySelectorAll("textarea, input[type=text], input:not([type])")]
      .some((field) => field.value !== field.defaultValue);
  }

  const signedOut = new Error("signed out");

  // fetched returns the page as the server makes it now, or null if it has no such page:
  // this one may answer a form.
  async function fetched() {
    const response = await fetch(location.pathname + location.search, { credentials: "same-origin", headers: { Accept: "text/html" } });
    if (response.redirected && new URL(response.url).pathname === "/sign-in") throw signedOut;
    if (!response.ok) return null;
    return new DOMParser().parseFromString(await response.text(), "text/html");
  }

  // shown reports whether a part of the page shows one of the kinds.
  const shown = (kinds) => [...document.querySelectorAll("[data-live][id]")]
    .some((part) => part.dataset.live.split(" ").some((kind) => kinds.has(kind)));

  // refresh takes over the live parts, the title and the icon of a page that the server
  // makes now.
  async function refresh() {
    const page = await fetched();
    if (!page) return;
    const focused = document.activeElement;
    for (const old of document.querySelectorAll("[data-live][id]")) {
      const fresh = page.getElementById(old.id);
      if (fresh) sync(old, fresh);
    }
    // A node that has moved loses the focus. Without the focus, the keyboard would begin again at
    // the top of the page.
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
  let position = positionOf(address); // the page shows all changes up to here

  // The kinds that the page does not show yet. A refresh waits for the one before it, and
  // a page that nobody looks at hurries less.
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
      for (const kind of kinds) pending.add(kind); // the stream says when the server is there again
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

  // The banner says that the page is no longer up to date. It goes once the page has
  // caught up.
  const banner = document.getElementById("offline");
  let offline = false, retry = 0, failures = 0;

  function lost() {
    offline = true;
    if (banner && failures > 1) banner.hidden = false; // a first break is often mended at once
  }

  function caughtUp() {
    offline = false;
    if (banner) banner.hidden = true;
  }

  if (banner) banner.querySelector("button").addEventListener("click", () => open());
  addEventListener("online", () => { if (offline) open(); });

  // Browsers open only six connections to a server that speaks HTTP/1.1. So one tab holds
  // the stream and tells the others, where the browser can choose such a tab. Elsewhere a
  // tab holds its stream while it is looked at.
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

  // EventSource comes back by itself unless the answer was no stream.
  function broken() {
    failures++;
    lost();
    if (tabs) tabs.postMessage({ lost: failures });
    if (events.readyState !== EventSource.CLOSED) return;
    clearTimeout(retry);
    changed(all); // says whether the session or only the stream has ended
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
    tabs.postMessage({ hello: position }); // something may have changed since the page was made
    // The lock is held until the tab closes.
    navigator.locks.request("journeyman-changes", () => {
      leads = true;
      open();
      return new Promise(() => {});
    }).catch(() => {}); // the page is being left
  } else {
    document.addEventListener("visibilitychange", () => { if (document.hidden) close(); else open(); });
    if (!document.hidden) open();
  }
  addEventListener("pagehide", close);
})();
