// The palette: Ctrl-K finds pages, jobs by a part of their key, and runs and jobs by their ids. It reads the list of jobs as everyone
// does, and shows what the viewer may see.
"use strict";
(() => {
  const opener = document.querySelector(".palette-open");
  if (!opener || !window.HTMLDialogElement) return;
  opener.hidden = false;
  const JOBS_MAX = 8;
  const make = (tag, attributes, ...children) => {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.append(...children);
    return made;
  };
  const field = make("input", { class: "palette-field", id: "palette-field", role: "combobox", "aria-expanded": "true", "aria-controls": "palette-list", "aria-autocomplete": "list", "aria-label": "Find a job, run or page", placeholder: "A page, a part of a job’s key, or the id of a run", autocomplete: "off", spellcheck: "false" });
  const list = make("ul", { id: "palette-list", role: "listbox", "aria-label": "Found" });
  const count = make("p", { class: "sr", role: "status" });
  const dialog = make("dialog", { class: "panel palette", "aria-label": "Find" }, field, list, count);
  document.body.append(dialog);

  const pages = [...document.querySelectorAll(".rail-list a")].map((link) => ({ name: link.textContent.trim(), href: link.getAttribute("href"), kind: "Page" }));
  if (document.querySelector('a[href="/jobs/new"]')) pages.push({ name: "New job", href: "/jobs/new", kind: "Page" });
  const seen = new Set();
  const ALL = pages.filter((page) => !seen.has(page.href) && seen.add(page.href));

  let at = 0, searching = null, typed;
  const options = () => [...list.querySelectorAll("[role=option]")];
  const mark = (to) => {
    const all = options();
    at = all.length ? (to + all.length) % all.length : 0;
    all.forEach((option, index) => option.setAttribute("aria-selected", String(index === at)));
    field.setAttribute("aria-activedescendant", all[at]?.id ?? "");
    all[at]?.scrollIntoView({ block: "nearest" });
  };
  const draw = (found) => {
    const items = [];
    let kind = "";
    found.forEach((one, index) => {
      if (one.kind !== kind) items.push(make("li", { class: "rail-group", role: "presentation" }, `${one.kind}s`));
      kind = one.kind;
      const option = make("li", { role: "option", id: `palette-${index}`, "data-href": one.href }, make("span", { class: "cut" }, one.name));
      if (one.more) option.append(make("small", {}, one.more));
      option.onclick = () => { location.href = one.href; };
      items.push(option);
    });
    if (!items.length) items.push(make("li", { class: "palette-none", role: "presentation" }, "Nothing is called so."));
    list.replaceChildren(...items);
    count.textContent = found.length === 1 ? "1 found" : `${found.length} found`;
    mark(0);
  };
  const pagesLike = (text) => ALL.filter((page) => page.name.toLowerCase().includes(text.toLowerCase()));
  const byId = (text) => {
    const id = text.match(/\b(run|job)_[0-9a-f]{32}\b/);
    if (!id) return [];
    return id[1] === "run" ? [{ name: id[0], href: `/runs/${id[0]}`, kind: "Run" }] : [{ name: id[0], href: `/jobs/${id[0]}`, kind: "Job" }];
  };
  // An answer that was overtaken is dropped.
  const search = async (text) => {
    searching?.abort();
    searching = new AbortController();
    const answer = await fetch(`/jobs?q=${encodeURIComponent(text)}`, { signal: searching.signal, redirect: "manual" });
    if (!answer.ok) return [];
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const links = [...page.querySelectorAll("[data-rows] .lead .key")].slice(0, JOBS_MAX);
    return links.map((it) => ({ name: it.querySelector("a").textContent, href: it.querySelector("a").getAttribute("href"), more: it.querySelector("small")?.textContent, kind: "Job" }));
  };
  const find = async () => {
    const text = field.value.trim();
    const known = [...byId(text), ...pagesLike(text)];
    if (!text || known.some((one) => one.kind !== "Page")) { draw(known); return; }
    try {
      const jobs = await search(text);
      if (field.value.trim() === text) draw([...jobs, ...known]);
    } catch (error) {
      if (error.name !== "AbortError") draw(known);
    }
  };
  const open = () => {
    if (dialog.open) return;
    field.value = "";
    dialog.showModal();
    draw(ALL);
    field.focus();
  };
  opener.onclick = open;
  document.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") { event.preventDefault(); open(); }
  });
  field.addEventListener("input", () => { clearTimeout(typed); typed = setTimeout(find, 100); });
  field.addEventListener("keydown", (event) => {
    event.stopPropagation();
    if (event.key === "ArrowDown") { event.preventDefault(); mark(at + 1); }
    if (event.key === "ArrowUp") { event.preventDefault(); mark(at - 1); }
    if (event.key === "Enter") {
      event.preventDefault();
      clearTimeout(typed);
      // What was typed last counts, also when it was not looked for yet.
      find().then(() => { const to = options()[at]?.dataset.href; if (to) location.href = to; });
    }
  });
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
})();
