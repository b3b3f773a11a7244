"use strict";
// The page without this script is complete as text; here charts are drawn, and language, theme and details answer.
(() => {
  const root = document.documentElement;
  const data = JSON.parse(document.getElementById("data").textContent);
  const charts = new Map(data.charts.map((chart) => [chart.id, chart]));
  const stacks = new Map(data.stacks.list.map(([id, label, frames]) => [id, { label, frames }]));
  const language = () => (root.lang === "zh" ? 1 : 0);
  const word = (key) => data.words[key][language()];
  const style = (name) => getComputedStyle(root).getPropertyValue(`--${name}`).trim();

  // ---- numbers, as the rest of the page writes them
  const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  function bytes(value, digits = 2) {
    if (value === null || value === undefined) return "-";
    let size = Math.abs(value);
    let unit = 0;
    while (size >= 1023.995 && unit < UNITS.length - 1) { size /= 1024; unit += 1; }
    return `${value < 0 ? "-" : ""}${unit === 0 ? size : size.toFixed(digits)} ${UNITS[unit]}`;
  }
  const axisBytes = (value) => bytes(value).replace(/(\.\d*?)0+ /, "$1 ").replace(". ", " ");
  const count = (value) => Number(value).toLocaleString("en-US", { maximumFractionDigits: 0 });
  const percent = (value) => `${(value * 100).toFixed(1)} %`;
  const axisPercent = (value) => `${Math.round(value * 1000) / 10} %`;
  function duration(micros) {
    if (micros < 1000) return `${Math.round(micros)} µs`;
    if (micros < 1e6) return `${(micros / 1000).toFixed(1)} ms`;
    if (micros < 6e7) return `${(micros / 1e6).toFixed(2)} s`;
    return `${Math.floor(micros / 6e7)} min ${((micros % 6e7) / 1e6).toFixed(0)} s`;
  }
  const clock = (micros) => new Date(micros / 1000).toISOString().replace("T", " ").replace("Z", " UTC");

  // ---- small pieces of page
  function element(tag, properties = {}, ...children) {
    const made = Object.assign(document.createElement(tag), properties);
    made.append(...children);
    return made;
  }
  function tip(title, rows, ...notes) {
    const list = element("dl");
    for (const [name, value, tone] of rows) {
      if (value === null || value === undefined || value === "") continue;
      const term = element("dt");
      if (tone) { const dot = element("i"); dot.style.background = tone; term.append(dot); }
      term.append(name);
      list.append(term, element("dd", {}, String(value)));
    }
    return element("div", {}, element("h5", {}, title), list, ...notes.filter(Boolean).map((note) => element("p", {}, note)));
  }
  const stackLabel = (id) => (id === null || id === undefined ? word("nostack") : stacks.get(id)?.label || `${word("stack")} ${id}`);
  const sql = (text) => `npusnap sql ${/^[\w./+=,@%-]+$/.test(data.source) ? data.source : `'${data.source.replaceAll("'", "'\\''")}'`} "${text}"`;
  function query(text) {
    const copy = element("button", { type: "button", className: "copy" }, word("copy"));
    return element("div", { className: "query" }, element("code", {}, sql(text)), copy);
  }
  const dialog = document.getElementById("stack");
  function showStack(id) {
    if (id === null || id === undefined) return;
    const known = stacks.get(id);
    const close = element("button", { type: "button" }, word("close"));
    close.addEventListener("click", () => dialog.close());
    const heading = element("h2", { id: "stack-title" }, `${word("stack")} ${id}${known?.label ? ` · ${known.label}` : ""}`);
    const parts = [element("header", {}, heading, close)];
    if (known?.frames) {
      const frames = known.frames.map((place) => {
        const [name, where, own] = data.stacks.frames[place];
        return element("li", { className: own ? "own" : "" }, element("span", {}, name, element("small", {}, where)));
      });
      parts.push(element("ol", {}, ...frames));
    } else {
      parts.push(element("p", {}, word("more")));
    }
    parts.push(query(`SELECT frames_json FROM call_stacks WHERE id = ${id}`));
    dialog.replaceChildren(...parts);
    dialog.showModal();
  }
  function heldList(live, other) {
    const list = element("ul");
    for (const [stack, size] of live) {
      const name = stack === null ? element("span", {}, word("nostack")) : element("button", { type: "button", className: "link" }, stackLabel(stack));
      if (stack !== null) name.addEventListener("click", () => showStack(stack));
      list.append(element("li", {}, element("b", {}, bytes(size)), name));
    }
    if (other > 0) list.append(element("li", {}, element("b", {}, bytes(other)), element("span", {}, word("others"))));
    return list;
  }

  // ---- what options call: each gets the chart it belongs to
  const shape = (api, fill, x, y, width, height) => ({ type: "rect", shape: { x, y, width, height }, style: { fill } });
  const calls = {
    font: () => style("sans"),
    mono: () => style("mono"),
    bytes: () => axisBytes,
    bytesAbs: () => (value) => axisBytes(Math.abs(value)),
    count: () => count,
    percent: () => axisPercent,
    bubble: () => (value) => Math.max(5, Math.min(30, 4 * Math.log2(value[1] / 262144 + 1))),
    peakLabel: () => (point) => `${word("peak")} ${bytes(point.data.value)}`,
    barShare: (chart) => (bar) => `${bytes(bar.value)} · ${percent(bar.value / (chart.extra.total || 1))}`,
    segmentColor: (chart) => (_, row) => (chart.extra.rows[row]?.low ? style("critical") : style("text")),
    tipTimeline: (chart) => (points) => {
      const lines = points.filter((point) => point.seriesType === "line");
      const marks = points.filter((point) => point.seriesType === "scatter");
      if (lines.length === 0 && marks.length === 0) return null;
      const row = lines[0]?.value || [marks[0].value[0], marks[0].value[2]];
      const rows = lines.map((point) => [point.seriesName, bytes(point.value[point.encode.y[0]]), point.color]);
      if (row[1] !== null && row[1] !== undefined) rows.push([word("time"), duration(row[1])]);
      const notes = marks.map((point) => `${point.seriesName}: ${resolve(point.data.detail, chart)}`);
      const when = chart.extra.start && row[1] !== null ? clock(chart.extra.start + row[1]) : null;
      return tip(`${word("event")} ${count(row[0])}`, rows, ...notes, when);
    },
    tipDevices: () => (points) => tip(points[0].name, points.map((point) => [
      point.seriesName, point.seriesType === "scatter" ? (point.value === null ? "-" : percent(point.value)) : bytes(point.value), point.color])),
    tipExpansion: () => (point) => {
      if (point.seriesType === "line") return null;
      const [index, size, segments, net, stack, time] = point.value;
      return tip(`${word("event")} ${count(index)}`, [[point.seriesName, bytes(size), point.color], [word("netsegments"), count(segments)], [word("netsize"), bytes(net)], [word("time"), time ? clock(time) : null]], stackLabel(stack));
    },
    tipSpan: (chart) => (point) => {
      const [row, offset, size, blocks, stack] = point.value;
      const segment = chart.extra.rows[row];
      return tip(`${point.seriesName} · ${bytes(size)}`, [
        [word("blocks"), count(blocks)], [word("offset"), bytes(offset)], [word("segment"), `#${segment.id}`], [word("address"), segment.address],
        [word("allocated"), `${bytes(segment.allocated)} / ${bytes(segment.size)}`], [word("stream"), segment.stream]], stack === null ? null : stackLabel(stack));
    },
    tipStack: (chart) => (bar) => tip(bar.name, [[word("size"), bytes(bar.value), bar.color], [word("share"), percent(bar.value / (chart.extra.total || 1))],
      [word("requested"), bar.data.requested === null || bar.data.requested === undefined ? null : bytes(bar.data.requested)], [word("blocks"), bar.data.count ? count(bar.data.count) : null]]),
    tipFlame: (chart) => (frame) => tip(frame.name || bytes(chart.extra.total), [[word("size"), bytes(frame.value[3])], [word("share"), percent(frame.value[3] / (chart.extra.total || 1))]]),
    tipEvent: () => (bar) => tip(`${word("event")} ${count(bar.data.index)}`, [[bar.data.action, bytes(Math.abs(bar.value)), bar.color], [word("address"), bar.data.address], [word("time"), bar.data.time ? clock(bar.data.time) : null]], stackLabel(bar.data.stack)),
    tipOverlay: () => (points) => {
      const row = points[0].value;
      return tip(`${axisPercent(row[0])} ${word("progress")}`, [["A", bytes(row[1])], ["B", bytes(row[2])], [word("difference"), row[1] === null || row[2] === null ? null : bytes(row[2] - row[1])]]);
    },
    drawSpan: (chart) => (params, api) => {
      const row = api.value(0);
      const whole = chart.absolute ? 1 : chart.extra.rows[row].size;
      const [left, middle] = api.coord([api.value(1) / whole, row]);
      const [right] = api.coord([(api.value(1) + api.value(2)) / whole, row]);
      const height = Math.max(4, api.size([0, 1])[1] * 0.66);
      const drawn = echarts.graphic.clipRectByRect({ x: left, y: middle - height / 2, width: Math.max(0.6, right - left - (right - left > 3 ? 0.6 : 0)), height }, params.coordSys);
      return drawn && { type: "rect", shape: drawn, style: { fill: api.visual("color") }, emphasis: { style: { stroke: style("text"), lineWidth: 1.5 } } };
    },
    drawFrame: (chart) => (params, api) => {
      const depth = api.value(0);
      const [left, top] = api.coord([api.value(1), depth]);
      const [right, bottom] = api.coord([api.value(2), depth + 1]);
      const drawn = echarts.graphic.clipRectByRect({ x: left, y: top, width: right - left - 1, height: bottom - top - 1 }, params.coordSys);
      if (!drawn) return null;
      const name = chart.option.series[0].data[params.dataIndex].name || bytes(chart.extra.total);
      return { type: "rect", shape: { ...drawn, r: 2 }, style: { fill: flameColor(name) }, emphasis: { style: { stroke: style("text"), lineWidth: 1.5 } },
        textContent: { style: { text: drawn.width > 34 ? name : "", fill: "#2a1d0c", width: drawn.width - 8, overflow: "truncate", fontFamily: style("sans"), fontSize: 12 } },
        textConfig: { position: "insideLeft", inside: true } };
    },
  };
  function flameColor(name) {
    let hash = 0;
    for (const letter of name.split("(")[0]) hash = (hash * 31 + letter.codePointAt(0)) % 997;
    return `hsl(${18 + (hash % 36)}, ${62 + (hash % 20)}%, ${68 + (hash % 10)}%)`;
  }
  function resolve(value, chart) {
    if (Array.isArray(value)) return value.map((item) => (item !== null && typeof item === "object" ? resolve(item, chart) : item));
    if (value === null || typeof value !== "object") return value;
    if ("$words" in value) return value.$words[language()];
    if ("$color" in value) return style(value.$color);
    if ("$call" in value) return calls[value.$call](chart);
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, resolve(item, chart)]));
  }

  // ---- drawing
  function draw(chart) {
    const box = chart.box;
    if (!chart.drawn) {
      chart.drawn = echarts.init(box, null, { renderer: "canvas" });
      chart.drawn.on("click", (point) => clicked(chart, point));
      chart.drawn.getZr().on("click", (event) => clickedAt(chart, event));
      new ResizeObserver(() => chart.drawn.resize()).observe(box);
    }
    const option = resolve(chart.option, chart);
    shapeToWidth(chart, option);
    const zoomed = chart.drawn.getOption()?.dataZoom;
    chart.drawn.setOption(option, true);
    zoomed?.forEach((zoom, dataZoomIndex) => chart.drawn.dispatchAction({ type: "dataZoom", dataZoomIndex, start: zoom.start, end: zoom.end }));
    box.dataset.drawn = "true";
  }
  function shapeToWidth(chart, option) {
    const narrow = chart.box.clientWidth < 560;
    const axis = Array.isArray(option.yAxis) ? option.yAxis[0] : option.yAxis;
    if (axis?.type === "category") {
      axis.axisLabel.width = Math.round(Math.min(axis.axisLabel.width, chart.box.clientWidth * 0.34));
      axis.axisLabel.formatter = undefined;
    }
    if (narrow && option.toolbox) option.toolbox.show = false;
    if (narrow && option.legend) option.legend.right = 0;
    if (chart.kind === "layout" && chart.absolute) {
      option.xAxis.max = Math.max(...chart.extra.rows.map((row) => row.size));
      option.xAxis.axisLabel.formatter = axisBytes;
    }
    if (chart.byTime) {
      option.xAxis.min = 0;
      option.xAxis.max = chart.extra.span;
      option.xAxis.name = word("time");
      option.xAxis.axisLabel.formatter = duration;
      const when = (index) => chart.option.dataset.source.find((row) => row[0] >= index)?.[1];
      for (const series of option.series) {
        if (series.encode) series.encode.x = 1;
        if (series.type === "scatter") series.data = series.data.map((item) => ({ ...item, value: [item.value[2], 0, item.value[2]] }));
        series.markLine?.data.forEach((line) => { line.xAxis = line.time; });
        series.markPoint?.data.forEach((point) => { point.coord = [when(point.index), point.value]; });
      }
    }
  }
  function clicked(chart, point) {
    if (chart.kind === "flame") return zoomFlame(chart, point);
    const stack = point.data?.stack ?? (chart.kind === "layout" ? point.value?.[4] : chart.kind === "expansion" ? point.value?.[4] : undefined);
    showStack(stack);
    return undefined;
  }
  function zoomFlame(chart, point) {
    const [, start, end] = point.value;
    chart.drawn.dispatchAction({ type: "dataZoom", dataZoomIndex: 0, start: start * 100, end: end * 100 });
  }
  function clickedAt(chart, event) {
    if (chart.kind !== "timeline" || chart.extra.moments.length === 0) return;
    const place = [event.offsetX, event.offsetY];
    if (!chart.drawn.containPixel({ gridIndex: 0 }, place)) return;
    const at = chart.drawn.convertFromPixel({ seriesIndex: 0 }, place)[0];
    const source = chart.option.dataset.source;
    const row = chart.byTime ? source.findLast((level) => level[1] !== null && level[1] <= at) : source.findLast((level) => level[0] <= at);
    showMoment(chart, row ? row[0] : source[0][0]);
  }
  function showMoment(chart, index) {
    const nearest = chart.extra.moments.reduce((best, moment) => (Math.abs(moment.index - index) < Math.abs(best.index - index) ? moment : best));
    const title = `${word("live")} ${count(nearest.index)}`;
    const detail = chart.figure.querySelector(".detail");
    const note = nearest.index === index ? [] : [element("p", { className: "note" }, `(${word("nearest")})`)];
    detail.replaceChildren(element("h4", {}, title), ...note, heldList(nearest.live, nearest.other), query(`SELECT * FROM live_at(${index}, ${chart.device})`));
  }
  function controls(chart) {
    const bar = chart.figure.querySelector(".controls");
    const choices = chart.kind === "layout" ? ["relative", "absolute"] : chart.kind === "timeline" && chart.extra.span ? ["byEvent", "byTime"] : [];
    if (choices.length === 0) return;
    const group = element("div", { className: "switch" });
    group.setAttribute("role", "group");
    choices.forEach((key, place) => {
      const button = element("button", { type: "button" }, word(key));
      button.dataset.word = key;
      button.setAttribute("aria-pressed", String(place === 0));
      button.addEventListener("click", () => {
        if (chart.kind === "layout") chart.absolute = place === 1; else chart.byTime = place === 1;
        for (const other of group.children) other.setAttribute("aria-pressed", String(other === button));
        draw(chart);
      });
      group.append(button);
    });
    bar.append(group);
    bar.hidden = false;
  }
  const redraw = () => charts.forEach((chart) => chart.drawn && draw(chart));

  // ---- language and theme
  function setLanguage(tag) {
    root.lang = tag;
    document.querySelectorAll("[data-language]").forEach((button) => button.setAttribute("aria-pressed", String(button.dataset.language === tag)));
    document.querySelectorAll("[data-en]").forEach((item) => item.setAttribute("aria-label", item.dataset[tag]));
    document.querySelectorAll("[data-word]").forEach((item) => { item.textContent = word(item.dataset.word); });
    redraw();
  }
  const THEMES = ["auto", "light", "dark"];
  function setTheme(name) {
    if (name === "auto") delete root.dataset.theme; else root.dataset.theme = name;
    document.querySelector(".theme").textContent = word(name);
    document.querySelector(".theme").dataset.word = name;
    redraw();
  }

  // ---- start
  root.className = "js";
  document.querySelectorAll(".tools, .copy").forEach((item) => { item.hidden = false; });
  document.querySelectorAll("[data-language]").forEach((button) => button.addEventListener("click", () => setLanguage(button.dataset.language)));
  document.querySelector(".theme").addEventListener("click", () => setTheme(THEMES[(THEMES.indexOf(root.dataset.theme || "auto") + 1) % 3]));
  document.querySelector(".print").addEventListener("click", () => window.print());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  document.addEventListener("click", (event) => {
    const copy = event.target.closest?.(".copy");
    if (!copy) return;
    navigator.clipboard?.writeText(copy.previousElementSibling.textContent);
    copy.textContent = word("copied");
    setTimeout(() => { copy.textContent = word("copy"); }, 1500);
  });
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  const seen = new IntersectionObserver((entries) => {
    for (const entry of entries.filter((item) => item.isIntersecting)) {
      seen.unobserve(entry.target);
      draw(charts.get(entry.target.dataset.chart));
    }
  }, { rootMargin: "200px" });
  document.querySelectorAll(".canvas").forEach((box) => {
    const chart = charts.get(box.dataset.chart);
    Object.assign(chart, { box, figure: box.closest("figure") });
    box.style.height = `${box.dataset.height}px`;
    controls(chart);
    seen.observe(box);
  });
  const links = [...document.querySelectorAll("nav a")];
  const spy = new IntersectionObserver((entries) => {
    for (const entry of entries.filter((item) => item.isIntersecting)) {
      links.forEach((link) => (link.hash === `#${entry.target.id}` ? link.setAttribute("aria-current", "true") : link.removeAttribute("aria-current")));
    }
  }, { rootMargin: "-20% 0px -70% 0px" });
  document.querySelectorAll("main > section").forEach((section) => spy.observe(section));
  setLanguage(root.lang);
  setTheme("auto");
})();
