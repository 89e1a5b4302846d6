// Adds to all pages: copy buttons, a question before a form is sent, buttons that show a password,
// and toasts. The script finds its elements by their data attributes. Without it, every page works.
// The page provides all texts.
"use strict";

// copied shows on a button that its text is copied, and its own label again after two seconds.
function copied(button) {
  const place = button.querySelector("span") || button;
  const label = place.textContent;
  place.textContent = document.body.dataset.copied;
  setTimeout(() => { place.textContent = label; }, 2000);
}

// enhance prepares a part of a page.
function enhance(root) {
  for (const button of root.querySelectorAll("[data-copy]")) {
    button.hidden = !navigator.clipboard;
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(button.dataset.copy);
      copied(button);
    });
  }
  for (const form of root.querySelectorAll("form[data-confirm]")) {
    form.addEventListener("submit", (event) => {
      if (!confirm(form.dataset.confirm)) event.preventDefault();
    });
  }
  for (const button of root.querySelectorAll("[data-reveal]")) {
    const input = document.getElementById(button.dataset.reveal);
    button.hidden = false;
    button.addEventListener("click", () => {
      input.type = input.type === "password" ? "text" : "password";
      button.setAttribute("aria-pressed", String(input.type === "text"));
      input.focus();
    });
  }
}
enhance(document);
document.addEventListener("fresh", (event) => enhance(event.target)); // a part that was added later

// A flash message becomes a toast, which disappears after six seconds, but not while somebody
// points at it. Its key is removed from the address, so that a reload does not show the message
// again.
for (const flash of document.querySelectorAll("[data-toast]")) {
  const toasts = document.createElement("div");
  toasts.className = "toasts";
  flash.classList.replace("flash", "toast");
  flash.querySelector("svg").classList.add("good");
  document.body.append(toasts);
  toasts.append(flash);
  const leave = () => { if (!toasts.matches(":hover, :focus-within")) toasts.remove(); else setTimeout(leave, 2000); };
  setTimeout(leave, 6000);
  const address = new URL(location.href);
  address.searchParams.delete("done");
  history.replaceState(history.state, "", address);
}

// The button of a sent form shows that, and a second press does nothing.
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (event.defaultPrevented || form.method !== "post") return;
  if (form.dataset.sent) { event.preventDefault(); return; }
  form.dataset.sent = "1";
  if (event.submitter) event.submitter.setAttribute("aria-busy", "true");
});

// The current tab is scrolled into view if the tabs do not fit.
for (const tab of document.querySelectorAll(".tabs [aria-current]")) {
  tab.parentElement.scrollLeft = tab.offsetLeft - tab.parentElement.offsetLeft - 24;
}

// An open menu closes after a click outside it, and when Escape is pressed.
document.addEventListener("click", (event) => {
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    if (!menu.contains(event.target)) menu.open = false;
  }
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    menu.open = false;
    menu.querySelector("summary").focus();
  }
});

// A page from the browser's cache may be outdated, or be seen by another user: reload it.
addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });
