"use strict";
(() => {
  const LIMIT = 12;
  const box = document.getElementById("search");
  const list = document.getElementById("found");
  const count = document.getElementById("count");
  const root = document.body.dataset.root;
  const known = ISOFORM_INDEX.map(([name, title, state, page]) => ({
    name, title, state, page, name_low: name.toLowerCase(), text: `${name} ${title} ${state}`.toLowerCase(),
  }));

  const weight = (entry, words) =>
    words.reduce((sum, word) => sum + (entry.name_low.startsWith(word) ? 3 : entry.name_low.includes(word) ? 2 : 1), 0);

  function matches(query) {
    const words = query.toLowerCase().split(/\s+/).filter(Boolean);
    if (!words.length) return [];
    return known
      .filter((entry) => words.every((word) => entry.text.includes(word)))
      .sort((a, b) => weight(b, words) - weight(a, words) || a.name.localeCompare(b.name));
  }

  function line(entry) {
    const item = document.createElement("li");
    const link = document.createElement("a");
    const title = document.createElement("span");
    link.href = root + entry.page;
    link.textContent = entry.name;
    title.textContent = entry.state ? `${entry.title} (${entry.state})` : entry.title;
    link.append(title);
    item.append(link);
    return item;
  }

  function show() {
    const found = matches(box.value);
    list.replaceChildren(...found.slice(0, LIMIT).map(line));
    list.hidden = !found.length;
    count.textContent = box.value.trim() ? `${found.length} found` : "";
  }

  function close() {
    list.hidden = true;
  }

  box.addEventListener("input", show);
  box.addEventListener("focus", show);
  box.addEventListener("keydown", (event) => {
    const first = list.querySelector("a");
    if (event.key === "Enter" && first && !list.hidden) first.click();
    if (event.key === "ArrowDown" && first && !list.hidden) {
      event.preventDefault();
      first.focus();
    }
  });
  list.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const links = [...list.querySelectorAll("a")];
    (links[links.indexOf(document.activeElement) + step] || box).focus();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") close();
    if (event.key === "/" && !/^(INPUT|TEXTAREA)$/.test(document.activeElement.tagName)) {
      event.preventDefault();
      box.focus();
    }
  });
  document.addEventListener("click", (event) => {
    if (!event.target.closest("search")) close();
  });
})();
