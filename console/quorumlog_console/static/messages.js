// Copies values to the last byte, and shows a live tail. What comes is put in as text, and no number is calculated with.
"use strict";
(() => {
  const KEPT = 500;

  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy]");
    if (!button) return;
    const said = button.parentElement.querySelector("[role=status]");
    try {
      const answer = await fetch(button.dataset.copy, {credentials: "same-origin"});
      if (!answer.ok) throw new Error("the record cannot be read any more");
      const bytes = new Uint8Array(await answer.arrayBuffer());
      let text, what = "copied";
      try {
        text = new TextDecoder("utf-8", {fatal: true, ignoreBOM: true}).decode(bytes);
      } catch {
        text = [...bytes].map((one) => one.toString(16).padStart(2, "0")).join("");
        what = "no UTF-8: copied as hex";
      }
      if (!navigator.clipboard) throw new Error("this browser copies by HTTPS or on localhost only; Save does the same");
      await navigator.clipboard.writeText(text);
      said.textContent = what;
    } catch (error) {
      said.textContent = `not copied: ${error.message}`;
    }
  });

  const live = document.getElementById("live");
  if (!live) return;
  const body = live.querySelector("tbody");
  const pause = document.getElementById("pause"), clear = document.getElementById("clear");
  const state = document.getElementById("state"), ended = document.getElementById("ended");
  const last = new Map(); // by partition, the last offset, as BigInt
  let source = null, place = "", shown = 0n, skipped = 0n;

  function make(tag, className, ...inner) {
    const made = document.createElement(tag);
    if (className) made.className = className;
    made.append(...inner);
    return made;
  }
  const pieces = (found) => found.map(([text, isSign]) => isSign ? make("span", "sign", text) : text);
  function inline(one) {
    if (one.form === "null" || one.size === "0") return make("span", "null", one.form === "null" ? "null" : "empty");
    return make("code", "inline", ...pieces(one.pieces), one.cut ? "…" : "");
  }
  function content(record) {
    if (record.value.form === "null" && record.headers.length === 0) return inline(record.value);
    const isPlain = record.value.form !== "null" && record.value.size !== "0";
    const summary = make("summary", "", isPlain ? make("code", "inline", ...pieces(record.line)) : inline(record.value));
    if (record.headers.length) summary.append(" ", make("span", "state", `${record.header_count} ${record.header_count === "1" ? "header" : "headers"}`));
    const made = make("details", "", summary);
    if (isPlain) {
      const box = make("pre", record.value.form === "hex" ? "bytes hex" : "bytes", make("code", "", ...pieces(record.value.pieces), record.value.cut ? "…" : ""));
      box.tabIndex = 0;
      made.append(box);
    }
    for (const header of record.headers) made.append(make("p", "", make("code", "inline", ...pieces(header.name)), ": ", inline(header.value)));
    if (record.header_count !== String(record.headers.length)) made.append(make("p", "quiet", `the first ${record.headers.length} of ${record.header_count} headers`));
    return made;
  }
  function put(row) {
    body.prepend(row);
    while (body.childElementCount > KEPT) body.lastElementChild.remove();
  }
  function note(className, text) {
    const cell = make("td", "", text);
    cell.colSpan = 5;
    put(make("tr", className, cell));
  }
  const say = (text) => { state.textContent = `${text} ${shown} shown, ${skipped} skipped.`; };

  function open() {
    const address = new URL(live.dataset.stream, location.href);
    if (place) address.searchParams.set("place", place);
    source = new EventSource(address);
    source.addEventListener("open", () => say("Live."));
    source.addEventListener("error", () => say("Not connected; trying again."));
    source.addEventListener("record", (event) => {
      const record = JSON.parse(event.data), offset = BigInt(record.offset);
      if (last.has(record.partition) && offset <= last.get(record.partition)) return;
      last.set(record.partition, offset);
      shown += 1n;
      const link = make("a", "", record.offset);
      link.href = record.address;
      put(make("tr", "", make("td", "time", record.time || "—"), make("td", "number", record.partition),
        make("td", "number", link), make("td", "key", inline(record.key)), make("td", "content", content(record))));
    });
    source.addEventListener("skipped", (event) => {
      const count = JSON.parse(event.data).count;
      skipped += BigInt(count);
      note("skipped", `${count} records came too quickly and are not shown`);
    });
    source.addEventListener("gone", (event) => {
      const gone = JSON.parse(event.data);
      note("gone", `partition ${gone.partition}: offsets ${gone.start} to ${gone.end} were removed before they were read`);
    });
    source.addEventListener("state", (event) => {
      place = event.lastEventId;
      const waiting = JSON.parse(event.data).waiting;
      say(waiting === "0" ? "Live." : `Live, ${waiting} waiting.`);
    });
    source.addEventListener("end", (event) => {
      source.close();
      source = null;
      ended.textContent = JSON.parse(event.data).why;
      ended.hidden = false;
      pause.hidden = true;
      say("Ended.");
    });
  }
  function toggle() {
    if (pause.hidden) return;
    const isPaused = source !== null;
    if (isPaused) { source.close(); source = null; say("Paused; it goes on where it stopped."); } else open();
    pause.setAttribute("aria-pressed", String(isPaused));
    pause.textContent = isPaused ? "Go on" : "Pause";
  }
  pause.hidden = clear.hidden = false;
  pause.addEventListener("click", toggle);
  clear.addEventListener("click", () => { body.replaceChildren(); });
  document.addEventListener("keydown", (event) => {
    if (event.key === "p" && !event.ctrlKey && !event.metaKey && !event.altKey && !event.target.closest("input, select")) toggle();
  });
  addEventListener("pagehide", () => { if (source) source.close(); });
  open();
})();
