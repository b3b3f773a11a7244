"use strict";
// What charts and page share: the data, words in the language in use, numbers, and small pieces of page.
// Strings of the snapshot reach the page as text nodes only.
const Page = (() => {
  const root = document.documentElement;
  const data = JSON.parse(document.getElementById("data").textContent);
  const stacks = new Map(data.stacks.list.map((stack) => [stack[0], stack]));
  const language = () => (root.lang === "zh" ? 1 : 0);
  const word = (key) => data.words[key][language()];
  const style = (name) => getComputedStyle(root).getPropertyValue(`--${name}`).trim();
  const isNothing = (value) => value === null || value === undefined || value === "";

  const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  function bytes(value) {
    if (isNothing(value)) return "-";
    let size = Math.abs(value);
    let unit = 0;
    while (size >= 1023.995 && unit < UNITS.length - 1) {
      size /= 1024;
      unit += 1;
    }
    return `${value < 0 ? "-" : ""}${unit === 0 ? size : size.toFixed(2)} ${UNITS[unit]}`;
  }
  // As bytes, without zeros at the end.
  const tick = (value) => bytes(value).replace(/\.?0+ (?=[KMGTP])/, " ");
  const count = (value) => Number(value).toLocaleString("en-US", { maximumFractionDigits: 0 });
  const percent = (value) => `${(value * 100).toFixed(1)} %`;
  function duration(micros) {
    if (micros < 1000) return `${Math.round(micros)} µs`;
    if (micros < 1e6) return `${(micros / 1000).toFixed(1)} ms`;
    if (micros < 6e7) return `${(micros / 1e6).toFixed(2)} s`;
    return `${Math.floor(micros / 6e7)} min ${((micros % 6e7) / 1e6).toFixed(0)} s`;
  }
  const hexadecimal = (address) => `0x${BigInt(address).toString(16)}`;
  const clock = (micros) => new Date(micros / 1000).toISOString().replace("T", " ").replace("Z", " UTC");

  function element(tag, properties = {}, ...children) {
    const made = Object.assign(document.createElement(tag), properties);
    made.append(...children);
    return made;
  }

  // Calls once for each element, when it is about to come into view.
  function whenNear(elements, pixels, call) {
    const seen = new IntersectionObserver((entries) => {
      for (const { target } of entries.filter((item) => item.isIntersecting)) {
        seen.unobserve(target);
        call(target);
      }
    }, { rootMargin: `${pixels}px` });
    for (const one of elements) seen.observe(one);
  }

  // Stacks share names, files, frames, and the callers of an earlier one: [id, label or the frame it is made of, frames of
  // its own, that other stack, how many of its outer frames].
  function framesOf([, , own, other, count]) {
    return other === undefined ? own : [...own, ...framesOf(data.stacks.list[other]).slice(-count)];
  }
  function frame(place) {
    const { names, files, frames } = data.stacks;
    const [name, file, line] = frames.slice(3 * place, 3 * place + 3);
    const [recorded, own] = files[file];
    // What the recorder writes for a file that it does not know.
    const path = recorded === "??" ? "" : recorded;
    return { name: names[name], own, where: line ? `${path}:${line}` : path };
  }
  // What stands for a stack: its label, or the frame that it is made of, as the page's tables say it.
  function labelOf(stack) {
    if (typeof stack?.[1] !== "number") return stack?.[1];
    const { name, where } = frame(framesOf(stack)[stack[1]]);
    return `${name} (${where.split(/[/\\]/).at(-1)})`;
  }
  const stackLabel = (id) => (isNothing(id) ? word("nostack") : labelOf(stacks.get(id)) || `${word("stack")} ${id}`);

  // The command that answers a query, as a shell takes it.
  function query(text) {
    const source = /^[\w./+=,@%-]+$/.test(data.source) ? data.source : `'${data.source.replaceAll("'", "'\\''")}'`;
    const copy = element("button", { type: "button", className: "copy" }, word("copy"));
    return element("div", { className: "query" }, element("code", {}, `npusnap sql ${source} "${text}"`), copy);
  }

  // What a pointer rests on: a title, rows of name, value and colour, and sentences.
  function tip(title, rows, ...notes) {
    const list = element("dl");
    for (const [name, value, tone] of rows) {
      if (isNothing(value)) continue;
      const term = element("dt");
      if (tone) {
        const dot = element("i");
        dot.style.background = tone;
        term.append(dot);
      }
      term.append(name);
      list.append(term, element("dd", {}, String(value)));
    }
    const sentences = notes.filter((note) => !isNothing(note)).map((note) => element("p", {}, note));
    return element("div", {}, element("h5", {}, title), list, ...sentences);
  }

  // A window of its own.
  function showWindow(title, ...parts) {
    const dialog = document.getElementById("stack");
    const close = element("button", { type: "button" }, word("close"));
    close.addEventListener("click", () => dialog.close());
    dialog.replaceChildren(element("header", {}, element("h2", { id: "stack-title" }, title), close), ...parts);
    dialog.showModal();
  }

  // All frames of a call stack.
  function showStack(id) {
    if (isNothing(id)) return;
    const known = stacks.get(id);
    const label = labelOf(known);
    const title = `${word("stack")} ${id}${label ? ` · ${label}` : ""}`;
    const parts = [];
    if (known?.[2]) {
      const frames = framesOf(known).map((place) => {
        const { name, where, own } = frame(place);
        return element("li", { className: own ? "own" : "" }, element("span", {}, name, element("small", {}, where)));
      });
      parts.push(element("ol", {}, ...frames));
    } else {
      parts.push(element("p", {}, word("more")));
    }
    showWindow(title, ...parts, query(`SELECT frames_json FROM call_stacks WHERE id = ${id}`));
  }

  // Where an event or a segment is to be found that no chart of the page has.
  const showElsewhere = (title, sql) => showWindow(title, element("p", {}, word("elsewhere")), query(sql));
  const ofDevice = (device) => `device_id = (SELECT id FROM devices WHERE device_index = ${device})`;
  const showEvent = (device, index) => showElsewhere(
    `${word("device")} ${device} · ${word("event")} ${count(index)}`,
    `SELECT * FROM traces WHERE trace_index = ${index} AND ${ofDevice(device)}`,
  );
  const showSegment = (device, address) => showElsewhere(
    `${word("device")} ${device} · ${word("segment")} ${hexadecimal(address)}`,
    `SELECT * FROM segments WHERE address = ${address} AND ${ofDevice(device)}`,
  );

  // Call stacks with the bytes they held, largest first; rows are [stack, bytes].
  function heldList(live, other) {
    const list = element("ul");
    for (const [stack, size] of live) {
      const name = isNothing(stack)
        ? element("span", {}, word("nostack"))
        : element("button", { type: "button", className: "link" }, stackLabel(stack));
      name.addEventListener("click", () => showStack(stack));
      list.append(element("li", {}, element("b", {}, bytes(size)), name));
    }
    if (other > 0) list.append(element("li", {}, element("b", {}, bytes(other)), element("span", {}, word("others"))));
    return list;
  }

  return {
    root, data, language, word, style, isNothing, bytes, tick, count, percent, duration, clock,
    element, whenNear, stackLabel, query, tip, showStack, showEvent, showSegment, heldList, hexadecimal,
  };
})();
