// The palette of Ctrl+K, and the shortcuts of single keys. Without this script, the search form
// leads to the page of results, and every shortcut has a link or a button. The page provides all
// texts.
"use strict";

(() => {
  const palette = document.getElementById("palette");
  if (!palette || !palette.showPopover) return;
  const input = palette.querySelector("input");
  const results = document.getElementById("palette-results");

  // A listbox belongs to the input: the arrow keys choose while the focus stays in the text.
  input.setAttribute("role", "combobox");
  input.setAttribute("aria-expanded", "false");
  input.setAttribute("aria-controls", results.id);
  input.setAttribute("aria-autocomplete", "list");
  results.setAttribute("role", "listbox");

  const options = () => [...results.querySelectorAll("a")];
  const chosen = () => results.querySelector("[aria-selected=true]");

  function choose(option) {
    for (const other of options()) other.setAttribute("aria-selected", String(other === option));
    input.setAttribute("aria-activedescendant", option ? option.id : "");
    if (option) option.scrollIntoView({ block: "nearest" });
  }

  // show puts results of the server into the list.
  function show(html) {
    const kept = moved && chosen() ? chosen().href : ""; // a late answer must not undo a choice
    const page = new DOMParser().parseFromString(html, "text/html");
    results.replaceChildren(...page.body.childNodes);
    for (const group of results.querySelectorAll("section")) {
      group.setAttribute("role", "group");
      group.setAttribute("aria-labelledby", group.querySelector("h2").id);
      group.querySelector("ul").removeAttribute("aria-labelledby");
      for (const quiet of group.querySelectorAll("h2, ul, li")) quiet.setAttribute("role", "presentation");
    }
    options().forEach((option, i) => {
      option.setAttribute("role", "option");
      option.id = "option-" + i;
      option.tabIndex = -1;
    });
    choose(options().find((option) => option.href === kept) || options()[0] || null);
    input.setAttribute("aria-expanded", String(options().length > 0));
  }

  // A newer search replaces the current one, so that an old answer never comes last.
  let search = null, timer = 0, moved = false;

  async function find() {
    if (search) search.abort();
    search = new AbortController();
    const address = new URL(palette.dataset.results, location.href);
    address.searchParams.set("q", input.value);
    address.searchParams.set("part", "1");
    try {
      const response = await fetch(address, { signal: search.signal, credentials: "same-origin", headers: { Accept: "text/html" } });
      if (!response.redirected) show(await response.text());
    } catch {
      // The form still leads to the page of results.
    }
  }

  function open(text = "") {
    if (palette.matches(":popover-open")) return;
    input.value = text;
    moved = false;
    palette.showPopover();
    input.focus();
    input.select();
    find();
  }

  input.addEventListener("input", () => {
    moved = false;
    clearTimeout(timer);
    timer = setTimeout(find, 150);
  });

  palette.addEventListener("keydown", (event) => {
    const list = options(), at = list.indexOf(chosen());
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      moved = true;
      if (list.length) choose(list[(at + (event.key === "ArrowDown" ? 1 : -1) + list.length) % list.length]);
    }
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && chosen()) {
      event.preventDefault();
      follow(chosen().dataset.run || chosen().href);
    }
  });

  // follow opens an address, also one on the current page.
  function follow(address) {
    palette.hidePopover();
    location.assign(address);
  }

  palette.querySelector("form").addEventListener("submit", (event) => {
    if (chosen() || !input.value.trim()) event.preventDefault();
    if (chosen()) follow(chosen().href);
  });

  for (const opener of document.querySelectorAll("a[data-palette]")) {
    opener.addEventListener("click", (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      open();
    });
  }
  for (const form of document.querySelectorAll("form[data-palette]")) {
    form.addEventListener("pointerdown", (event) => {
      event.preventDefault(); // the focus goes to the palette
      open(form.elements.q.value);
    });
  }

  const shortcuts = document.getElementById("shortcuts");
  const off = document.body.dataset.shortcuts === "off";
  const typing = (node) => node instanceof Element && node.closest("input:not([type=checkbox], [type=radio]), textarea, select, [contenteditable]");
  const root = document.body.dataset.root; // of the addresses of all pages
  const go = { h: root, w: root + "workers", t: root + "tasks", u: root + "usage", m: root + "mail", a: root + "tasks?show=waiting" };
  let afterG = 0; // when G was pressed: a second key within two seconds selects the page

  // focusSearch moves the focus to the search of the list on the page, or to the search of all.
  function focusSearch() {
    const field = [...document.querySelectorAll("[data-search], #find")].find((node) => node.checkVisibility());
    if (field) field.focus();
    else open();
  }

  // move moves the focus to the next or previous row of the lists on the page.
  function move(by) {
    const rows = [...document.querySelectorAll("[data-row] th a")];
    if (!rows.length) return;
    const row = document.activeElement.closest("[data-row]");
    const at = row ? rows.indexOf(row.querySelector("th a")) : -1;
    rows[Math.max(0, Math.min(rows.length - 1, at < 0 ? (by > 0 ? 0 : rows.length - 1) : at + by))].focus();
  }

  function select() {
    const row = document.activeElement.closest("[data-row]");
    const box = row && row.querySelector("input[type=checkbox]");
    if (box) box.click();
  }

  // decide presses a button of the focused card.
  function decide(value) {
    const card = document.activeElement.closest(".approve, [data-decide]");
    const button = card && card.querySelector("button[value=" + value + "]");
    if (button) button.click();
  }

  function pressShortcut(key) {
    const button = [...document.querySelectorAll("[data-shortcut=" + key + "]")].findLast((node) => node.checkVisibility());
    if (button) button.click();
  }

  const keys = {
    "/": focusSearch,
    "?": () => shortcuts.togglePopover(),
    "n": () => location.assign(root),
    "c": () => location.assign(root + "workers/new"),
    "g": () => { afterG = Date.now(); },
    "j": () => move(1),
    "k": () => move(-1),
    "x": select,
    "a": () => decide("approve"),
    "d": () => decide("deny"),
    "r": () => pressShortcut("r"),
  };

  document.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && !event.altKey && event.key.toLowerCase() === "k") {
      event.preventDefault();
      open();
      return;
    }
    if (off || event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
    if (document.querySelector("dialog[open], [popover]:popover-open") && event.key !== "?") return;
    const key = event.key.length === 1 ? event.key.toLowerCase() : "";
    const there = Date.now() - afterG < 2000 ? go[key] : "";
    afterG = 0;
    const act = there ? () => location.assign(there) : keys[key];
    if (!act) return;
    event.preventDefault();
    act();
  });
})();
