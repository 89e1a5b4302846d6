// Updates the page of a running task. The server sends the changed elements as the page has them:
// this script only replaces them.
"use strict";

(() => {
  const turns = document.querySelector("#turns[data-stream]");
  if (!turns) return;
  const words = document.getElementById("live-texts").dataset;
  const lost = document.getElementById("lost");
  let events, lastId = "", failures = 0, timer = 0, following = false;

  // parse returns the element of a text.
  function parse(html) {
    const box = document.createElement("template");
    box.innerHTML = html; // created and sanitised by the server; the policy of the page runs none of its scripts
    return box.content.firstElementChild;
  }

  // keep applies the user's changes of an old element to a new one.
  function keep(old, fresh) {
    const was = old.matches("details") ? [old, ...old.querySelectorAll("details")] : [...old.querySelectorAll("details")];
    const now = fresh.matches("details") ? [fresh, ...fresh.querySelectorAll("details")] : [...fresh.querySelectorAll("details")];
    was.forEach((details, i) => { if (now[i]) now[i].open = details.open; });
    const boxes = fresh.querySelectorAll(".wrapped");
    old.querySelectorAll(".wrapped").forEach((box, i) => { if (boxes[i]) boxes[i].checked = box.checked; });
  }

  // replace replaces an old element with a fresh one. The focus stays where it was.
  function replace(old, fresh) {
    const inside = old.contains(document.activeElement);
    const path = [];
    for (let e = inside ? document.activeElement : old; e !== old; e = e.parentElement) path.unshift([...e.parentElement.children].indexOf(e));
    keep(old, fresh);
    old.replaceWith(fresh);
    if (inside) path.reduce((e, i) => e?.children[i], fresh)?.focus({ preventScroll: true });
  }

  // typing reports whether the user types in an element: it must not be replaced then.
  function typing(element) {
    const active = document.activeElement;
    return element.contains(active) && active.matches("input, textarea") && active.value !== "";
  }

  function change(update) {
    const follow = following || atEnd();
    const added = new Map();
    for (const [id, html, holder] of update.html) {
      const old = document.getElementById(id);
      if (old && (holder || typing(old))) continue;
      const fresh = parse(html);
      if (!fresh || old?.isEqualNode(fresh)) continue; // after a lost connection the server repeats some elements
      if (old) replace(old, fresh); else added.set(id, fresh);
      fresh.dispatchEvent(new CustomEvent("fresh", { bubbles: true }));
    }
    for (const [parent, ids] of update.lists) order(parent, ids, added);
    for (const element of added.values()) element.dispatchEvent(new CustomEvent("fresh", { bubbles: true }));
    following = follow;
    if (follow) toEnd();
    latest();
  }

  // order puts the pieces of an element into their order. With a plus sign, the other pieces stay.
  function order(parent, ids, added) {
    const all = !parent.startsWith("+");
    const box = document.getElementById(parent.replace("+", ""));
    if (!box) return;
    const list = ids.map((id) => added.get(id) || document.getElementById(id)).filter(Boolean);
    if (!all) {
      for (const piece of list) if (!piece.isConnected) box.append(piece);
      return;
    }
    list.forEach((piece, i) => { if (box.children[i] !== piece) box.insertBefore(piece, box.children[i] || null); });
    while (box.children.length > list.length) box.lastElementChild.remove();
  }

  // The page scrolls with the end until the user scrolls up.
  const atEnd = () => scrollY > 0 && innerHeight + scrollY > document.documentElement.scrollHeight - 80;
  const toEnd = () => scrollTo({ top: document.documentElement.scrollHeight, behavior: "instant" });
  const jump = document.createElement("button");
  jump.type = "button";
  jump.className = "button s jump";
  jump.hidden = true;
  jump.textContent = words.latest + " ↓";
  jump.addEventListener("click", () => { following = true; toEnd(); latest(); });
  document.querySelector(".composer")?.append(jump);
  function latest() {
    const end = document.getElementById("newest").getBoundingClientRect().top;
    jump.hidden = atEnd() || end < innerHeight;
  }
  let before = scrollY;
  addEventListener("scroll", () => {
    if (scrollY < before) following = false;
    if (atEnd()) following = true;
    before = scrollY;
    latest();
  }, { passive: true });

  function open() {
    clearTimeout(timer);
    events?.close();
    const address = new URL(turns.dataset.stream, location.href);
    if (lastId) address.searchParams.set("lastEventId", lastId);
    events = new EventSource(address);
    events.onopen = () => { failures = 0; lost.hidden = true; };
    events.onmessage = (event) => {
      if (event.lastEventId) lastId = event.lastEventId;
      if (event.data !== "[DONE]") return change(JSON.parse(event.data));
      events.close();
      document.dispatchEvent(new CustomEvent("task-ended"));
    };
    events.onerror = failed;
  }

  // failed shows that the connection is lost. The browser reconnects by itself, unless the answer
  // was no stream.
  function failed() {
    const text = lost.querySelector("span");
    lost.hidden = false;
    text.textContent = words.lost;
    if (events.readyState !== EventSource.CLOSED) return;
    failures++;
    if (failures > 6) {
      text.textContent = words.stopped;
      return;
    }
    timer = setTimeout(open, 1000 * 2 ** failures);
  }
  lost.querySelector("button").addEventListener("click", () => { failures = 0; open(); });
  open();
})();
