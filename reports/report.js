"use strict";
// The page answers: language, theme, navigation, details, long tables, print. Without it the page is complete as text.
(() => {
  const { root, data, word, element } = Page;

  // ---- language and theme
  function setLanguage(tag) {
    root.lang = tag;
    for (const button of document.querySelectorAll("[data-language]")) {
      button.setAttribute("aria-pressed", String(button.dataset.language === tag));
    }
    document.querySelectorAll("[data-en]").forEach((item) => item.setAttribute("aria-label", item.dataset[tag]));
    document.querySelectorAll("[data-word]").forEach((item) => { item.textContent = word(item.dataset.word); });
    fillTables(shows.keys());
    Charts.redraw();
  }

  // The dark colours are a rule for screens in the dark; a choice makes it one for all screens or for none.
  const THEMES = { auto: "screen and (prefers-color-scheme: dark)", light: "not all", dark: "screen" };
  const themeRule = [...document.styleSheets[0].cssRules].find((rule) => rule.media?.mediaText === THEMES.auto);
  let theme = "auto";
  function setTheme(name) {
    theme = name;
    themeRule.media.mediaText = THEMES[name];
    document.querySelector(".theme").textContent = word(name);
    document.querySelector(".theme").dataset.word = name;
    Charts.redraw();
  }

  // ---- several devices: one at a time, first the one that a section finds most wrong, then the same one in all
  const panelsOf = (group) => [...group.querySelectorAll(":scope > .panel")];
  function showIn(group, device) {
    const panels = panelsOf(group);
    const shown = panels.find((panel) => panel.dataset.device === device) ?? panels[0];
    for (const panel of panels) panel.hidden = panel !== shown;
    for (const button of group.querySelectorAll(".tabs button")) {
      button.setAttribute("aria-pressed", String(button.dataset.device === shown.dataset.device));
    }
  }
  const showDevice = (device) => document.querySelectorAll(".by-device").forEach((group) => showIn(group, device));
  function deviceTabs() {
    for (const group of document.querySelectorAll(".by-device")) {
      const panels = panelsOf(group);
      if (panels.length < 2) continue;
      const tabs = element("div", { className: "switch tabs", role: "group" });
      for (const { dataset: { device } } of panels) {
        const name = element("span");
        name.dataset.word = "device";
        const button = element("button", { type: "button" }, name, ` ${device}`);
        button.dataset.device = device;
        button.addEventListener("click", () => showDevice(device));
        tabs.append(button);
      }
      group.prepend(tabs);
    }
    for (const group of document.querySelectorAll(".by-device")) showIn(group, group.dataset.first || data.worst);
  }

  // ---- tables too long to stand in the page: only the rows in view are there, on paper all of them
  const ROW = 34;
  let isPaper = false;
  function virtual(box) {
    const rows = data.rows[box.dataset.rows];
    const body = box.querySelector("tbody");
    const space = (height) => {
      const row = element("tr", { className: "space" }, element("td", { colSpan: 99 }));
      row.firstChild.style.height = `${height}px`;
      return row;
    };
    const show = () => {
      const first = isPaper ? 0 : Math.max(0, Math.floor(box.scrollTop / ROW) - 8);
      const last = isPaper ? rows.length : Math.min(rows.length, first + Math.ceil(box.clientHeight / ROW) + 16);
      const shown = rows.slice(first, last).map((cells, place) => {
        const row = element("tr", {}, ...cells.map((cell) => tableCell(cell)));
        row.setAttribute("aria-rowindex", String(first + place + 2));
        return row;
      });
      body.replaceChildren(space(first * ROW), ...shown, space((rows.length - last) * ROW));
    };
    box.querySelector("table").setAttribute("aria-rowcount", String(rows.length + 1));
    box.addEventListener("scroll", () => requestAnimationFrame(show));
    shows.set(box, show);
    return show;
  }
  // The first rows stand in the page, so a table can wait until it is about to come into view.
  const shows = new Map();
  const longTables = [...document.querySelectorAll("[data-rows]")];
  function fillTables(boxes) {
    for (const box of boxes) (shows.get(box) ?? virtual(box))();
  }
  // [words], words being a text or one in both languages; with "number", or with what they lead to and which.
  function tableCell([text, kind, target]) {
    const words = typeof text === "string" ? text : text[Page.language()];
    if (kind === "number") return element("td", { className: "number" }, words);
    if (!kind) return element("td", { className: "name", title: words }, words);
    const button = element("button", {}, words);
    button.dataset[kind] = target;
    return element("td", { className: kind === "event" ? "number" : "name" }, button);
  }

  // ---- print: still pictures stand in for canvases, and tables are whole
  function setPaper(paper) {
    isPaper = paper;
    if (paper) still();
    fillTables(paper ? longTables : shows.keys());
  }
  function still() {
    for (const figure of document.querySelectorAll("figure.chart:not(.has-still)")) {
      const markup = figure.querySelector("noscript")?.textContent;
      const picture = new DOMParser().parseFromString(markup, "image/svg+xml").documentElement;
      figure.querySelector("noscript").after(element("div", { className: "still" }, document.importNode(picture, true)));
      figure.classList.add("has-still");
    }
  }

  // ---- start
  root.className = "js";
  document.querySelectorAll(".tools, .copy").forEach((item) => { item.hidden = false; });
  for (const button of document.querySelectorAll("[data-language]")) {
    button.addEventListener("click", () => setLanguage(button.dataset.language));
  }
  const names = Object.keys(THEMES);
  const next = () => names[(names.indexOf(theme) + 1) % names.length];
  document.querySelector(".theme").addEventListener("click", () => setTheme(next()));
  document.querySelector(".print").addEventListener("click", () => print());
  addEventListener("beforeprint", () => setPaper(true));
  addEventListener("afterprint", () => setPaper(false));
  matchMedia("print").addEventListener("change", ({ matches }) => setPaper(matches));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", Charts.redraw);

  const dialog = document.getElementById("stack");
  document.addEventListener("click", (event) => {
    const button = event.target.closest?.("button");
    if (event.target === dialog) dialog.close();
    if (!button) return;
    if (button.dataset.stack) Page.showStack(Number(button.dataset.stack));
    if (button.dataset.event) {
      const [device, index] = button.dataset.event.split(":");
      showDevice(device);
      if (!Charts.showEvent(Number(device), Number(index))) Page.showEvent(Number(device), Number(index));
    }
    if (button.dataset.segment) {
      const [device, address] = button.dataset.segment.split(":");
      showDevice(device);
      if (!Charts.showSegment(Number(device), address)) Page.showSegment(Number(device), address);
    }
    if (button.classList.contains("copy")) {
      navigator.clipboard?.writeText(button.previousElementSibling.textContent);
      button.textContent = word("copied");
      setTimeout(() => { button.textContent = word("copy"); }, 1500);
    }
  });

  deviceTabs();
  Charts.start();
  for (const box of longTables) box.classList.add("window");
  Page.whenNear(longTables, 600, (box) => fillTables([box]));
  const links = [...document.querySelectorAll("nav a")];
  const spy = new IntersectionObserver((entries) => {
    for (const entry of entries.filter((item) => item.isIntersecting)) {
      for (const link of links) {
        if (link.hash === `#${entry.target.id}`) link.setAttribute("aria-current", "true");
        else link.removeAttribute("aria-current");
      }
    }
  }, { rootMargin: "-20% 0px -70% 0px" });
  document.querySelectorAll("main > section").forEach((section) => spy.observe(section));
  setLanguage(root.lang);
  setTheme("auto");
})();
