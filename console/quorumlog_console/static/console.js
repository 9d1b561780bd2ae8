// Keys, and pages that load themselves again. Without it every page works the same, by links and forms.
"use strict";
(() => {
  const main = document.getElementById("main");
  const keys = document.getElementById("keys");
  const isTyping = (target) => target.closest("input, select, textarea") !== null;
  let row = -1, afterG = false, isPaused = false;

  const rows = () => [...document.querySelectorAll("table[data-rows] tbody tr")];
  function select(number) {
    const all = rows();
    if (all.length === 0) return;
    row = Math.max(0, Math.min(all.length - 1, number));
    all.forEach((one, index) => one.classList.toggle("here", index === row));
    const link = all[row].querySelector("a");
    all[row].scrollIntoView({block: "nearest"});
    if (link) link.focus({preventScroll: true});
  }

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (isTyping(event.target)) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    if (keys.open) return;
    if (afterG) {
      afterG = false;
      const link = document.querySelector(`header a[data-go="${CSS.escape(event.key)}"]`);
      if (link) { event.preventDefault(); location.assign(link.href); }
      return;
    }
    switch (event.key) {
      case "j": select(row + 1); break;
      case "k": select(row - 1); break;
      case "g": afterG = true; setTimeout(() => { afterG = false; }, 1500); break;
      case "?": keys.showModal(); break;
      case "p": isPaused = !isPaused; document.body.classList.toggle("paused", isPaused); break;
      case "/": {
        const field = document.querySelector("[data-search]");
        if (field) { field.focus(); field.select(); }
        break;
      }
      default: return;
    }
    event.preventDefault();
  });

  document.addEventListener("change", (event) => {
    const form = event.target.closest("form.search");
    if (form && event.target.matches("select, input[type=checkbox]")) form.requestSubmit();
  });

  const seconds = Number(document.body.dataset.live || 0);
  async function again() {
    const isBusy = main.contains(document.activeElement) && isTyping(document.activeElement);
    if (isPaused || isBusy || document.hidden || keys.open || String(getSelection())) return;
    try {
      const answer = await fetch(location.href, {credentials: "same-origin", redirect: "error"});
      if (!answer.ok) return;
      const text = new DOMParser().parseFromString(await answer.text(), "text/html");
      if (main.contains(document.activeElement) && isTyping(document.activeElement)) return;
      const tops = [...document.querySelectorAll(".tall")].map((one) => one.scrollTop);
      main.replaceChildren(...text.getElementById("main").childNodes);
      document.querySelector("footer").replaceChildren(...text.querySelector("footer").childNodes);
      [...document.querySelectorAll(".tall")].forEach((one, index) => { one.scrollTop = tops[index] || 0; });
      if (row >= 0) select(row);
    } catch { /* the next round asks again */ }
  }
  if (seconds > 0) setInterval(again, seconds * 1000);
})();
