// What htmx does not do: moments that move on, keys, small helps. Every page reads and every form posts without it.
"use strict";
(() => {
  const THIN = "\u2009";
  const pad = (n) => String(n).padStart(2, "0");
  const coarse = (secs) => {
    const d = Math.floor(secs / 86400), h = Math.floor(secs / 3600) % 24, m = Math.floor(secs / 60) % 60;
    if (d > 59) return `${d}${THIN}d`;
    if (d > 0) return `${d}${THIN}d ${pad(h)}${THIN}h`;
    if (h > 0) return `${h}${THIN}h ${pad(m)}${THIN}m`;
    if (m > 0) return `${m}${THIN}m ${pad(secs % 60)}${THIN}s`;
    return `${secs}${THIN}s`;
  };
  const relative = (millis) => {
    const secs = Math.floor(Math.abs(millis) / 1000);
    if (secs === 0) return "now";
    return millis > 0 ? `in ${coarse(secs)}` : `${coarse(secs)} ago`;
  };
  // Only what changed is written, and nothing that has the focus.
  const tick = () => {
    const now = Date.now();
    for (const time of document.querySelectorAll("time[data-rel]")) {
      const text = relative(Date.parse(time.dateTime) - now);
      const shown = time.firstElementChild;
      if (shown && shown.textContent !== text && time !== document.activeElement) shown.textContent = text;
    }
  };
  setInterval(tick, 1000);

  // The viewer's zone, once; from then on it is chosen on the page.
  if (!document.cookie.includes("punctual_zone=")) {
    const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
    if (zone) document.cookie = `punctual_zone=${encodeURIComponent(zone)}; path=/; max-age=31536000; samesite=lax`;
  }

  // Browsers have a clipboard for pages over TLS and of this machine only; elsewhere a selection is copied.
  const copy = async (source) => {
    try {
      if (navigator.clipboard) { await navigator.clipboard.writeText(source.textContent); return true; }
    } catch { /* It may be refused, too. */ }
    getSelection().selectAllChildren(source);
    return document.execCommand("copy");
  };

  const here = () => location.pathname + location.search;
  const set = (root) => {
    for (const field of root.querySelectorAll("input[data-here]")) field.value = here();
    for (const choice of root.querySelectorAll("select[data-submit]")) choice.onchange = () => choice.form.requestSubmit();
    for (const button of root.querySelectorAll("button[data-copy]")) {
      button.hidden = false;
      button.onclick = async () => {
        const done = await copy(document.getElementById(button.dataset.copy));
        const was = button.textContent;
        button.textContent = done ? "Copied" : "Selected: press Ctrl C";
        setTimeout(() => { button.textContent = was; }, 1500);
      };
    }
  };
  document.documentElement.classList.add("has-script");
  set(document);
  document.querySelector("form[data-auto]")?.requestSubmit();

  // The preview of a job follows what is typed. An answer that was overtaken is dropped; the old preview stays until then.
  let typed, previewing;
  const preview = async (form) => {
    previewing?.abort();
    previewing = new AbortController();
    try {
      const answer = await fetch("/jobs/preview", { method: "POST", body: new URLSearchParams(new FormData(form)), signal: previewing.signal });
      if (answer.status === 401) {
        const shown = document.getElementById("preview");
        const says = document.createElement("p");
        says.className = "problem";
        says.textContent = "Your session has ended. Nothing that you typed is lost: save, and log in then.";
        shown?.replaceChildren(says);
        return;
      }
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const drawn = page.getElementById("preview");
      if (drawn) document.getElementById("preview")?.replaceWith(drawn);
    } catch (error) {
      if (error.name !== "AbortError") throw error;
    }
  };
  document.addEventListener("input", (event) => {
    const form = event.target.closest("#job-form");
    clearTimeout(typed);
    if (form) typed = setTimeout(() => preview(form), 200);
  });

  // An action that takes long shows it.
  document.addEventListener("submit", (event) => {
    const button = event.submitter;
    if (button) setTimeout(() => button.setAttribute("aria-busy", "true"), 300);
  });

  const toast = document.querySelector(".toast");
  if (toast) {
    history.replaceState(null, "", location.pathname + location.search.replace(/([?&])done=[a-z]+&?/, "$1").replace(/[?&]$/, ""));
    let left = 10;
    const timer = setInterval(() => {
      if (toast.matches(":hover, :focus-within")) return;
      left -= 1;
      if (left === 0) { clearInterval(timer); toast.remove(); }
    }, 1000);
  }

  const PAGES = { o: "/", j: "/jobs", r: "/runs", d: "/dead", c: "/calendars", n: "/nodes", t: "/targets", l: "/lanes", a: "/audit" };
  // What keys do stands on one page; the help shows its table.
  const help = async () => {
    if (!window.HTMLDialogElement || document.querySelector("dialog[open]")) return;
    const answer = await fetch("/settings", { redirect: "manual" });
    if (!answer.ok) return;
    const table = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("keys");
    const dialog = document.createElement("dialog");
    dialog.className = "panel dialog help";
    dialog.setAttribute("aria-label", "Keys");
    const close = document.createElement("button");
    close.className = "btn";
    close.textContent = "Close";
    close.onclick = () => dialog.close();
    dialog.onclose = () => dialog.remove();
    dialog.append(table, close);
    document.body.append(dialog);
    dialog.showModal();
  };
  const lettersOff = document.body.dataset.keys === "off";
  let went = 0;
  const rows = () => [...document.querySelectorAll("[data-rows] > tr .key > a")];
  document.addEventListener("keydown", (event) => {
    const target = event.target;
    const typing = target.matches("input, select, textarea, [contenteditable]");
    if (event.key === "Escape") { document.querySelectorAll("details[open].zone, details[open].more").forEach((it) => { it.open = false; }); return; }
    if ((event.ctrlKey || event.metaKey) && event.key === "Enter" && target.form) { target.form.requestSubmit(); return; }
    if (typing || lettersOff || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    if (event.key === "?") { help(); return; }
    if (event.key === "/") { const q = document.getElementById("q"); if (q) { event.preventDefault(); q.focus(); q.select(); } return; }
    if (event.key === "g") { went = Date.now(); return; }
    if (Date.now() - went < 1500 && PAGES[event.key]) {
      const page = document.querySelector(`.rail-list a[href="${PAGES[event.key]}"]`);
      if (page) page.click();
      went = 0;
      return;
    }
    if (["e", "p", "r"].includes(event.key)) { document.querySelector(`[data-key="${event.key}"]`)?.click(); return; }
    if (event.key === "x") { document.activeElement.closest("tr")?.querySelector("input[type=checkbox]")?.click(); return; }
    if (event.key === "j" || event.key === "k") {
      const all = rows();
      const at = all.indexOf(document.activeElement);
      const next = all[event.key === "j" ? at + 1 : Math.max(at - 1, 0)];
      if (next) next.focus();
    }
  });
})();
