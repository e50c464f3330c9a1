// Pages that follow what happens: a stream says that something is new, the page is read once more, and what differs is put into it.
// Elements stay who they are, so that nothing loses the focus, flickers or moves under the pointer.
"use strict";
(() => {
  const main = document.querySelector("main[data-live]");
  if (!main || !window.ReadableStream) return;
  const path = main.dataset.live;
  const BETWEEN = 1500, CHARTS = 5000, SILENT = 25000, BAR = 10000;
  const marks = [...document.querySelectorAll(".live")];
  const wait = (millis) => new Promise((done) => setTimeout(done, millis));
  const clock = () => {
    const zone = document.getElementById("zone")?.value;
    try { return new Date().toLocaleTimeString("en-GB", { hourCycle: "h23", timeZone: zone || undefined }); } catch { return new Date().toLocaleTimeString("en-GB"); }
  };
  let numbersOf = clock(), lostAt = 0, charted = 0;

  const say = (text, away) => {
    for (const mark of marks) {
      mark.hidden = !text;
      mark.classList.toggle("away", away);
      const says = mark.querySelector("[data-says]");
      if (says.textContent !== text) says.textContent = text;
    }
  };
  const bar = (text, href, word) => {
    let shown = document.getElementById("away");
    if (!text) { shown?.remove(); return; }
    if (shown?.dataset.text === text) return;
    shown ??= document.createElement("p");
    shown.id = "away";
    shown.className = "banner";
    shown.setAttribute("role", "alert");
    shown.dataset.text = text;
    shown.textContent = text + " ";
    if (href) {
      const link = document.createElement("a");
      link.href = href;
      link.textContent = word;
      shown.append(link);
    }
    main.prepend(shown);
  };

  const held = (node) => node.nodeType === 1 && (node.contains(document.activeElement) && document.activeElement !== document.body || node.matches(":hover"));
  const key = (node) => node.nodeType !== 1 ? null : node.id || node.querySelector?.(":scope > td a[href]")?.getAttribute("href") || null;
  const attributes = (from, to) => {
    for (const { name } of [...from.attributes]) if (!to.hasAttribute(name) && name !== "open") from.removeAttribute(name);
    for (const { name, value } of [...to.attributes]) if (from.getAttribute(name) !== value && name !== "open") from.setAttribute(name, value);
  };
  const morph = (from, to) => {
    if (from.isEqualNode(to)) return;
    if (from.nodeType !== 1) { from.nodeValue = to.nodeValue; return; }
    // What somebody types into stays; charts follow less often than text.
    if (from.matches("form:has(input:not([type=hidden]), textarea), figure.chart[data-wait]")) return;
    attributes(from, to);
    if (from.matches("[data-rows]") && held(from.closest("table"))) { rows(from, to); return; }
    from.closest("table")?.querySelector(".newer")?.remove();
    children(from, to);
  };
  // Under the pointer rows keep their places: newcomers gather behind a button.
  const rows = (from, to) => {
    const known = new Map([...from.children].map((row) => [key(row), row]));
    let more = 0;
    for (const row of to.children) {
      const own = known.get(key(row));
      if (own) morph(own, row); else more += 1;
    }
    const table = from.closest("table");
    table.querySelector(".newer")?.remove();
    if (more === 0) return;
    const note = table.createCaption();
    const show = document.createElement("button");
    show.className = "btn small newer";
    show.type = "button";
    show.textContent = `${more} new, show`;
    show.onclick = () => { show.remove(); children(from, to); };
    note.append(show);
  };
  const children = (from, to) => {
    const keyed = new Map();
    for (const child of from.childNodes) { const of = key(child); if (of) keyed.set(of, child); }
    let at = from.firstChild;
    for (const next of [...to.childNodes]) {
      const of = key(next);
      let own = of ? keyed.get(of) : null;
      if (!own && at && !key(at) && !of && at.nodeName === next.nodeName) own = at;
      if (own && own.nodeName === next.nodeName) {
        if (own === at) at = at.nextSibling; else from.insertBefore(own, at);
        morph(own, next);
      } else {
        from.insertBefore(document.importNode(next, true), at);
      }
    }
    while (at) { const gone = at; at = at.nextSibling; if (!held(gone) && gone.id !== "away") gone.remove(); }
  };

  // One read at a time, and the next not before a moment has passed: however much happens, a page is read at most that often.
  let reading = null, again = false;
  const refresh = () => {
    if (reading) { again = true; return reading; }
    reading = (async () => {
      do {
        again = false;
        const answer = await fetch(location.href, { headers: { "punctual-live": "1" }, redirect: "manual" });
        if (!answer.ok) return;
        const page = new DOMParser().parseFromString(await answer.text(), "text/html");
        const fresh = page.querySelector("main");
        if (!fresh) return;
        const now = Date.now(), due = now - charted >= CHARTS;
        if (due) charted = now;
        for (const chart of main.querySelectorAll("figure.chart")) chart.toggleAttribute("data-wait", !due);
        morph(main, fresh);
        numbersOf = clock();
        if (!fresh.dataset.live) stop("");
        await wait(BETWEEN);
      } while (again);
    })().catch(() => {}).finally(() => { reading = null; });
    return reading;
  };

  let open = null, stopped = false;
  const stop = (says) => { stopped = true; open?.abort(); say(says, true); };
  const lost = () => {
    if (stopped) return;
    lostAt ||= Date.now();
    say(`Reconnecting, numbers of ${numbersOf}`, true);
    if (Date.now() - lostAt >= BAR) bar(`The server does not answer. These are the numbers of ${numbersOf}; the page goes on when it is back.`);
  };
  const nudge = (text) => {
    if (text.startsWith(":")) return;
    if (lostAt) { lostAt = 0; bar(""); }
    say("Live", false);
    refresh();
  };
  const listen = async () => {
    open = new AbortController();
    const mine = open;
    let silent;
    const alive = () => { clearTimeout(silent); silent = setTimeout(() => mine.abort(), SILENT); };
    try {
      const answer = await fetch(path, { headers: { accept: "text/event-stream" }, redirect: "manual", signal: mine.signal });
      if (answer.type === "opaqueredirect" || answer.status === 401 || answer.status === 403) {
        stop("Ended");
        bar("Your session has ended: what is shown stays as it is.", location.href, "Log in");
        return;
      }
      if (answer.status === 404) { stop("Ended"); return; }
      if (answer.status === 503 || answer.status === 429) { say(`Not live: too many pages are open. Numbers of ${numbersOf}`, true); return; }
      if (!answer.ok) { lost(); return; }
      alive();
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      let text = "";
      for (;;) {
        const { value, done } = await reader.read();
        if (done) break;
        alive();
        text += value;
        const parts = text.split("\n\n");
        text = parts.pop();
        for (const part of parts) nudge(part);
      }
      lost();
    } catch {
      if (!document.hidden) lost();
    } finally {
      clearTimeout(silent);
    }
  };
  // A browser has few connections to one server: pages that nobody sees give theirs back.
  const follow = async () => {
    let pause = 500;
    while (!stopped) {
      if (document.hidden) { await wait(500); continue; }
      const begun = Date.now();
      await listen();
      pause = Date.now() - begun > 5000 ? 500 : Math.min(pause * 1.5, 5000);
      if (!stopped) await wait(pause);
      if (lostAt) lost();
    }
  };
  document.addEventListener("visibilitychange", () => { if (document.hidden) open?.abort(); });
  addEventListener("pagehide", () => { stopped = true; open?.abort(); });
  follow();
})();
