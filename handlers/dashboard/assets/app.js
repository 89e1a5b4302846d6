// What pages do beyond reading: copy buttons, selects that submit their form, questions before
// a form is sent, toasts. Each works on attributes of the page, and a page without this script
// is still whole. All words come from the page.
"use strict";

// copied says on a button that its text is copied, and its own label again after two seconds.
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
  for (const select of root.querySelectorAll("select[data-submit]")) {
    const button = select.form.querySelector("button");
    if (button) button.hidden = true;
    select.addEventListener("change", () => select.form.requestSubmit());
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
document.addEventListener("fresh", (event) => enhance(event.target)); // a part that came later

// A flash message becomes a toast, which leaves after six seconds: later while somebody points
// at it. The address loses its key, so that a reload does not show the message again.
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

// A form that was sent says so on its button: a second press does nothing.
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (event.defaultPrevented || form.method !== "post") return;
  if (form.dataset.sent) { event.preventDefault(); return; }
  form.dataset.sent = "1";
  if (event.submitter) event.submitter.setAttribute("aria-busy", "true");
});

// The present tab stands in sight where the tabs do not fit.
for (const tab of document.querySelectorAll(".tabs [aria-current]")) {
  tab.parentElement.scrollLeft = tab.offsetLeft - tab.parentElement.offsetLeft - 24;
}

// An open menu closes when somebody goes elsewhere.
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

// A page that comes back from the browser's memory may show what is over, even to
// somebody else: it is loaded anew.
addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });
