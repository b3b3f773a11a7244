"use strict";
// What options of charts name and only the page can give: beside plain values an option holds objects with one key,
// $words in both languages, $color of the theme, $call one of the functions below, which gets the chart first.
const Calls = (() => {
  const { word, language, style, isNothing, bytes, tick, count, percent, duration, clock, tip, stackLabel, data } = Page;
  const share = (value, chart) => percent(value / (chart.extra.total || 1));

  // ---- tooltips
  const tips = {
    tipTimeline: (chart) => (points) => {
      const lines = points.filter((point) => point.seriesType === "line");
      const marks = points.filter((point) => point.seriesType === "scatter");
      const row = lines[0]?.value;
      if (!row) return null;
      const rows = lines.map((point) => [point.seriesName, bytes(point.value[point.encode.y[0]]), point.color]);
      if (!isNothing(row[1])) rows.push([word("time"), duration(row[1])]);
      const notes = marks.map((point) => `${point.seriesName} ${resolve(point.data.detail, chart)}`);
      const when = chart.extra.start && !isNothing(row[1]) ? clock(chart.extra.start + row[1]) : null;
      return tip(`${word("event")} ${count(row[0])}`, rows, ...notes, when);
    },
    tipDevices: () => (points) => {
      const text = (point) => (point.seriesType === "scatter" ? percent(point.value) : bytes(point.value));
      const known = points.filter((point) => !isNothing(point.value));
      return tip(points[0].name, known.map((point) => [point.seriesName, text(point), point.color]));
    },
    tipExpansion: () => (point) => {
      if (point.seriesType === "line") return null;
      const [index, size, segments, net, stack, time] = point.value;
      return tip(`${word("event")} ${count(index)}`, [
        [point.seriesName, bytes(size), point.color],
        // Segments that grow in place are none more.
        [word("netsegments"), segments === 0 ? null : count(segments)],
        [word("netsize"), bytes(net)],
        [word("time"), time ? clock(time) : null],
      ], stackLabel(stack));
    },
    tipSpan: (chart) => (point) => {
      const [row, offset, size, blocks, stack] = point.value;
      const segment = chart.extra.rows[row];
      return tip(`${point.seriesName} · ${bytes(size)}`, [
        [word("blocks"), count(blocks)],
        [word("offset"), bytes(offset)],
        [word("segment"), `#${segment.id} · ${segment.type}`],
        [word("address"), segment.address],
        [word("allocated"), `${bytes(segment.allocated)} / ${bytes(segment.size)}`],
        [word("stream"), segment.stream],
      ], stack === null ? null : stackLabel(stack));
    },
    tipStack: (chart) => (bar) => tip(bar.name, [
      [word("size"), bytes(bar.data.bytes), bar.color],
      [word("share"), share(bar.data.bytes, chart)],
      [word("requested"), isNothing(bar.data.requested) ? null : bytes(bar.data.requested)],
      [word("blocks"), bar.data.count ? count(bar.data.count) : null],
    ]),
    tipFlame: (chart) => (frame) => {
      const [, , , size, name] = frame.value;
      return tip(chart.extra.names[name] || word("all"), [[word("size"), bytes(size)], [word("share"), share(size, chart)]]);
    },
    tipEvent: () => (bar) => tip(`${word("event")} ${count(bar.data.index)}`, [
      [bar.data.action, bytes(Math.abs(bar.value)), bar.data.action === "oom" ? style("critical") : bar.color],
      [word("address"), bar.data.address],
      [word("time"), bar.data.time ? clock(bar.data.time) : null],
    ], stackLabel(bar.data.stack)),
    tipOverlay: (chart) => (points) => {
      const [at, a, b] = points[0].value;
      const difference = isNothing(a) || isNothing(b) ? null : bytes(a - b);
      const title = `${percent(at / chart.extra.points)} ${word("progress")}`;
      return tip(title, [["A", bytes(a), style("muted")], ["B", bytes(b), style("allocated")], [word("difference"), difference]]);
    },
  };

  // ---- shapes
  const emphasis = () => ({ style: { stroke: style("text"), lineWidth: 1.5 } });
  const shapes = {
    drawSpan: (chart) => (params, api) => {
      const row = api.value(0);
      const whole = chart.second ? 1 : chart.extra.rows[row].size;
      const [left, middle] = api.coord([api.value(1) / whole, row]);
      const [right] = api.coord([(api.value(1) + api.value(2)) / whole, row]);
      const height = Math.max(4, api.size([0, 1])[1] * 0.66);
      // Neighbours show a gap where there is room for one.
      const width = Math.max(0.6, right - left - (right - left > 3 ? 0.6 : 0));
      const shape = echarts.graphic.clipRectByRect({ x: left, y: middle - height / 2, width, height }, params.coordSys);
      return shape && { type: "rect", shape, style: { fill: api.visual("color") }, emphasis: emphasis() };
    },
    drawFrame: (chart) => (params, api) => {
      const [left, top] = api.coord([api.value(1), api.value(0)]);
      const [right, bottom] = api.coord([api.value(2), api.value(0) + 1]);
      const whole = { x: left, y: top, width: right - left - 1, height: bottom - top - 1 };
      const shape = echarts.graphic.clipRectByRect(whole, params.coordSys);
      if (!shape) return null;
      const name = chart.extra.names[api.value(4)];
      const text = name ? frameName(name, shape.width - 10) : `${word("all")} · ${bytes(chart.extra.total)}`;
      return {
        type: "rect",
        shape: { ...shape, r: 2 },
        style: { fill: name ? flameColor(name) : style("free") },
        emphasis: emphasis(),
        textContent: {
          style: {
            text, fill: name ? "#2a1d0c" : style("text"), width: shape.width - 10,
            overflow: "truncate", fontFamily: style("sans"), fontSize: 12,
          },
        },
        textConfig: { position: "insideLeft", inside: true },
      };
    },
  };
  // What there is room for of a stack's name. What tells it from others may stand at its end, which gets two thirds.
  const ink = document.createElement("canvas").getContext("2d");
  function shortened(name, room) {
    ink.font = `12px ${style("sans")}`;
    const letters = [...name];
    const short = (kept) => {
      const head = Math.floor(kept / 3);
      return `${letters.slice(0, head).join("")}…${letters.slice(head - kept).join("")}`;
    };
    let text = name;
    for (let kept = letters.length - 1; kept > 2 && ink.measureText(text).width > room; kept -= 1) text = short(kept);
    return text;
  }
  // What there is room for: function and place, the function alone, its beginning, nothing.
  function frameName(name, room) {
    const LETTER = 6.8;
    const [own] = name.split(" (");
    if (name.length * LETTER <= room) return name;
    return own.length * LETTER <= room || room > 80 ? own : "";
  }
  // The same function has the same warm colour wherever it is.
  function flameColor(name) {
    let hash = 0;
    for (const letter of name.split(" (")[0]) hash = (hash * 31 + letter.codePointAt(0)) % 997;
    return `hsl(${20 + (hash % 26)}, ${70 + (hash % 16)}%, ${74 + (hash % 9)}%)`;
  }

  const calls = {
    ...tips,
    ...shapes,
    font: () => style("sans"),
    mono: () => style("mono"),
    bytes: () => tick,
    bytesAbs: () => (value) => tick(Math.abs(value)),
    count: () => count,
    progress: (chart) => (point) => `${Math.round((point / chart.extra.points) * 100)} %`,
    percent: () => (value) => `${Math.round(value * 1000) / 10} %`,
    percentToWhole: () => (value) => (value > 1.001 ? "" : `${Math.round(value * 100)} %`),
    // The more there are, the smaller they must be to be told apart.
    bubble: (chart) => (value) => {
      const most = chart.extra.shown > 400 ? 13 : chart.extra.shown > 120 ? 19 : 26;
      return Math.max(5, Math.min(26, 2.4 * Math.log2(value[1] / 262144 + 1)) * (most / 26));
    },
    // The arrow: it is higher than the axis goes.
    peakLabel: () => ({ seriesName, data: { value, coord } }) => `${seriesName} ${bytes(value)}${coord[1] < value ? " ↑" : ""}`,
    trigger: () => (bar) => (isNothing(bar.value) ? "" : bytes(Math.abs(bar.value))),
    stackName: (chart) => (name) => shortened(name, chart.nameRoom),
    // The arrow: it is longer than the axis goes.
    barShare: (chart) => ({ data }) => `${bytes(data.bytes)} · ${share(data.bytes, chart)}${data.value < data.bytes ? " →" : ""}`,
    segmentColor: (chart) => (_, row) => style(chart.extra.rows[row]?.low ? "critical" : "text"),
  };

  function resolve(value, chart) {
    if (value === null || typeof value !== "object") return value;
    if (Array.isArray(value)) return typeof value[0] === "number" ? value : value.map((item) => resolve(item, chart));
    if ("$words" in value) return value.$words[language()];
    if ("$color" in value) return style(value.$color);
    if ("$call" in value) return calls[value.$call](chart);
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, resolve(item, chart)]));
  }

  return { resolve };
})();
