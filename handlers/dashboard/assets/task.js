// Adds to the pages of tasks: copy an answer or a block of code, count the time and the cost
// of a running turn. The page provides all texts.
"use strict";

// press copies the text that a button names: from an address, or from the code beside it.
async function press(button) {
  let text = "";
  if (button.dataset.copyFrom) {
    const response = await fetch(button.dataset.copyFrom, { credentials: "same-origin" });
    if (!response.ok) return;
    text = await response.text();
  } else {
    const box = button.closest(".code");
    const rows = [...box.querySelectorAll(".diff > div:not(.gap)")];
    text = rows.length
      ? rows.map((row) => row.querySelector(".sg").textContent.replace("−", "-") + row.querySelector(".tx").textContent).join("\n")
      : box.querySelector("pre").textContent;
  }
  await navigator.clipboard.writeText(text);
  copied(button);
}

// reveal shows the buttons that need a script.
function reveal(root) {
  if (!navigator.clipboard) return;
  for (const button of root.querySelectorAll("[data-copy-code][hidden], [data-copy-from][hidden]")) button.hidden = false;
}
reveal(document);
document.addEventListener("fresh", (event) => {
  reveal(event.target);
  // The field itself is never replaced, because somebody may be typing in it.
  const field = document.getElementById("f-input");
  if (field && event.target.dataset.placeholder) field.placeholder = event.target.dataset.placeholder;
});
document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-copy-code], [data-copy-from]");
  if (button) press(button);
});

// Between two updates of the server, the page counts time and cost itself. It keeps the first
// difference between the clocks, because the browser's clock may be wrong.
const skew = new Map();

function duration(ms) {
  const s = Math.max(0, Math.floor(ms / 1000));
  if (s < 60) return s + " s";
  if (s < 3600) return Math.floor(s / 60) + " min " + (s % 60) + " s";
  return Math.floor(s / 3600) + " h " + (Math.floor(s / 60) % 60) + " min";
}

function tick() {
  for (const place of document.querySelectorAll("[data-since]")) {
    const since = Number(place.dataset.since);
    if (!skew.has(since)) skew.set(since, Number(place.dataset.now) ? Date.now() - Number(place.dataset.now) : 0);
    place.textContent = duration(Date.now() - skew.get(since) - since);
  }
  for (const place of document.querySelectorAll("[data-rate]")) {
    const rate = Number(place.dataset.rate);
    if (!rate) continue;
    place.seen ??= Date.now();
    place.textContent = (Number(place.dataset.credits) + rate * (Date.now() - place.seen) / 1000).toFixed(2);
  }
}
if (document.querySelector("[data-since]")) setInterval(tick, 1000);
