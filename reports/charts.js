"use strict";
// Charts: options become pictures. An option holds, beside plain values, objects that only the page can resolve:
// $words in both languages, $color of the theme, $call one of the functions below, which gets the chart first.
const Charts = (() => {
  const { data, language, word, style, isNothing, bytes, tick, count, percent, duration, clock, tip, stackLabel } = Page;
  const charts = new Map(data.charts.map((chart) => [chart.id, chart]));
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
        [word("netsegments"), count(segments)],
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
      const [, , , size] = frame.value;
      return tip(frame.name || word("all"), [[word("size"), bytes(size)], [word("share"), share(size, chart)]]);
    },
    tipEvent: () => (bar) => tip(`${word("event")} ${count(bar.data.index)}`, [
      [bar.data.action, bytes(Math.abs(bar.value)), bar.color],
      [word("address"), bar.data.address],
      [word("time"), bar.data.time ? clock(bar.data.time) : null],
    ], stackLabel(bar.data.stack)),
    tipOverlay: (chart) => (points) => {
      const [at, a, b] = points[0].value;
      const difference = isNothing(a) || isNothing(b) ? null : bytes(a - b);
      return tip(`${percent(at / chart.extra.points)} ${word("progress")}`, [["A", bytes(a), points[0].seriesName.startsWith("A") ? points[0].color : null], ["B", bytes(b)], [word("difference"), difference]]);
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
      const isWasted = chart.extra.rows[row].low && params.seriesIndex === 2;
      return shape && { type: "rect", shape, style: { fill: isWasted ? style("low") : api.visual("color") }, emphasis: emphasis() };
    },
    drawFrame: (chart) => (params, api) => {
      const [left, top] = api.coord([api.value(1), api.value(0)]);
      const [right, bottom] = api.coord([api.value(2), api.value(0) + 1]);
      const whole = { x: left, y: top, width: right - left - 1, height: bottom - top - 1 };
      const shape = echarts.graphic.clipRectByRect(whole, params.coordSys);
      if (!shape) return null;
      const name = chart.option.series[0].data[params.dataIndex].name;
      const text = name || `${word("all")} · ${bytes(chart.extra.total)}`;
      return {
        type: "rect",
        shape: { ...shape, r: 2 },
        style: { fill: name ? flameColor(name) : style("free") },
        emphasis: emphasis(),
        textContent: {
          style: {
            text: shape.width > 34 ? text : "", fill: name ? "#2a1d0c" : style("text"), width: shape.width - 10,
            overflow: "truncate", fontFamily: style("sans"), fontSize: 12,
          },
        },
        textConfig: { position: "insideLeft", inside: true },
      };
    },
  };
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
    progress: (chart) => (point) => `${Math.round((point / chart.extra.points) * 1000) / 10} %`,
    percent: () => (value) => `${Math.round(value * 1000) / 10} %`,
    bubble: () => (value) => Math.max(6, Math.min(26, 2.4 * Math.log2(value[1] / 262144 + 1))),
    peakLabel: () => (point) => `${point.seriesName} ${bytes(point.data.value)}`,
    trigger: () => (bar) => (isNothing(bar.value) ? "" : bytes(Math.abs(bar.value))),
    barShare: (chart) => ({ data }) => `${bytes(data.bytes)} · ${share(data.bytes, chart)}`,
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

  // ---- drawing
  function draw(chart) {
    if (!chart.drawn) {
      chart.drawn = echarts.init(chart.box, null, { renderer: "canvas" });
      chart.drawn.on("click", (point) => clicked(chart, point));
      chart.drawn.getZr().on("click", (event) => clickedAt(chart, event));
      if (chart.kind === "timeline") chart.drawn.on("datazoom", () => fitHeight(chart));
      // What is restored is the first option, in the language and theme it was made in.
      chart.drawn.on("restore", () => draw(chart));
      new ResizeObserver(() => {
        if (Math.abs(chart.width - chart.box.clientWidth) > 1) draw(chart);
      }).observe(chart.box);
    } else {
      chart.drawn.resize();
    }
    chart.width = chart.box.clientWidth;
    const option = resolve(chart.option, chart);
    fit(chart, option);
    if (chart.second) others[chart.kind](chart, option);
    // Merged into what is drawn, so that zoom and legend stay, and so does the tooltip, whose timer may still run.
    chart.drawn.setOption(option);
    if (chart.kind === "timeline") fitHeight(chart);
    chart.box.dataset.drawn = "true";
  }

  // A narrow screen has no room for tools, and less for names.
  function fit(chart, option) {
    const [axis] = [option.yAxis].flat();
    if (axis.type === "category") axis.axisLabel.width = Math.round(Math.min(axis.axisLabel.width, chart.width * 0.36));
    if (chart.width < 560) {
      option.toolbox.show = false;
      option.legend.right = 0;
      if (chart.kind === "stacks") {
        option.grid.right = 72;
        option.xAxis.interval *= 2;
        option.series[0].label.formatter = ({ data: bar }) => bytes(bar.bytes);
      }
    }
  }

  // The height of a timeline follows what is in view: beside one high peak all else would be flat.
  function fitHeight(chart) {
    const [{ startValue, endValue }] = chart.drawn.getOption().dataZoom;
    const column = chart.second ? 1 : 0;
    const source = chart.option.dataset.source;
    // A level lasts until the next, so the one before the view counts too.
    const first = Math.max(0, source.findIndex((row) => row[column] >= startValue) - 1);
    let most = 1;
    for (const row of source.slice(first)) {
      if (row[column] > endValue) break;
      most = Math.max(most, row[2] ?? 0, row[3] ?? 0, row[4] ?? 0);
    }
    const isWhole = first === 0 && endValue >= source.at(-1)[column];
    const { max, interval } = isWhole ? chart.option.yAxis : byteAxis(most * 1.05);
    chart.drawn.setOption({ yAxis: { max, interval } });
  }
  // Ticks that are round in binary units, as the page was made with.
  function byteAxis(most) {
    const unit = 1024 ** Math.floor(Math.log2(Math.max(1, most)) / 10);
    const steps = [0.25, 0.5, 1, 2, 5, 10, 20, 50, 100, 128, 256, 512].filter((step) => unit > 1 || step >= 1);
    const interval = (steps.find((step) => most / (step * unit) <= 6) ?? 512) * unit;
    return { max: Math.ceil(most / interval) * interval, interval };
  }

  // The other way to see a chart, where it has one.
  const others = {
    layout: (chart, option) => {
      option.xAxis.max = Math.max(...chart.extra.rows.map((row) => row.size));
      option.xAxis.axisLabel.formatter = tick;
    },
    timeline: (chart, option) => {
      const source = chart.option.dataset.source;
      Object.assign(option.xAxis, { min: 0, max: chart.extra.span, name: word("time") });
      option.xAxis.axisLabel.formatter = duration;
      for (const series of option.series) {
        if (series.encode) series.encode.x = 1;
        else series.data = series.data.map((item) => ({ ...item, value: [item.value[2], 0, item.value[2]] }));
        series.markLine?.data.forEach((line) => { line.xAxis = line.time; });
        series.markPoint?.data.forEach((point) => {
          point.coord = [source.find((row) => row[0] >= point.index)?.[1], point.value];
        });
      }
    },
  };

  function clicked(chart, point) {
    if (chart.kind === "flame") {
      const [, start, end] = point.value;
      chart.drawn.dispatchAction({ type: "dataZoom", dataZoomIndex: 0, start: start * 100, end: end * 100 });
    } else if (chart.kind === "layout" || chart.kind === "expansion") {
      Page.showStack(point.value?.[4]);
    } else {
      Page.showStack(point.data?.stack);
    }
  }

  // A click on a moment of the timeline tells what lived then.
  function clickedAt(chart, event) {
    const place = [event.offsetX, event.offsetY];
    if (chart.kind !== "timeline" || !chart.drawn.containPixel({ gridIndex: 0 }, place)) return;
    const [at] = chart.drawn.convertFromPixel({ seriesIndex: 0 }, place);
    const source = chart.option.dataset.source;
    const column = chart.second ? 1 : 0;
    const row = source.findLast((level) => !isNothing(level[column]) && level[column] <= at) ?? source[0];
    showMoment(chart, row[0]);
  }
  function showMoment(chart, index) {
    const moments = chart.extra.moments;
    if (moments.length === 0) return;
    const distance = (moment) => Math.abs(moment.index - index);
    const nearest = moments.reduce((best, moment) => (distance(moment) < distance(best) ? moment : best));
    const { element, heldList, query } = Page;
    const note = nearest.index === index ? [] : [element("p", { className: "note" }, word("nearest"))];
    const sql = `SELECT * FROM live_at(${index}, ${chart.device})`;
    const title = element("h4", {}, `${word("live")} ${count(nearest.index)}`);
    const detail = chart.figure.querySelector(".detail");
    detail.replaceChildren(title, ...note, heldList(nearest.live, nearest.other), query(sql));
    chart.moment = index;
  }

  // Buttons for the two ways to see a chart.
  function controls(chart) {
    const choices = { layout: ["relative", "absolute"], timeline: chart.extra.span ? ["byEvent", "byTime"] : [] }[chart.kind] ?? [];
    if (choices.length === 0) return;
    const group = Page.element("div", { className: "switch", role: "group" });
    choices.forEach((key, place) => {
      const button = Page.element("button", { type: "button" }, word(key));
      button.dataset.word = key;
      button.setAttribute("aria-pressed", String(place === 0));
      button.addEventListener("click", () => {
        chart.second = place === 1;
        for (const other of group.children) other.setAttribute("aria-pressed", String(other === button));
        if (chart.drawn) draw(chart);
      });
      group.append(button);
    });
    const bar = chart.figure.querySelector(".controls");
    bar.append(group);
    bar.hidden = false;
  }

  // Charts are drawn when they are about to come into view.
  function start() {
    const seen = new IntersectionObserver((entries) => {
      for (const entry of entries.filter((item) => item.isIntersecting)) {
        seen.unobserve(entry.target);
        draw(charts.get(entry.target.dataset.chart));
      }
    }, { rootMargin: "200px" });
    for (const box of document.querySelectorAll(".canvas")) {
      const chart = charts.get(box.dataset.chart);
      Object.assign(chart, { box, figure: box.closest("figure") });
      box.style.height = `${box.dataset.height}px`;
      controls(chart);
      seen.observe(box);
    }
  }
  function redraw() {
    for (const chart of charts.values()) {
      if (chart.drawn) draw(chart);
      if (chart.moment !== undefined) showMoment(chart, chart.moment);
    }
  }
  // Shows an event of a device on its timeline, with some of its neighbours; whether there is one.
  function showEvent(device, index) {
    const chart = [...charts.values()].find((other) => other.kind === "timeline" && other.device === device);
    if (!chart) return false;
    chart.figure.scrollIntoView();
    draw(chart);
    const { min, max } = chart.option.xAxis;
    const margin = (max - min) / 40;
    const at = (value) => Math.max(0, Math.min(100, ((value - min) / (max - min)) * 100));
    chart.drawn.dispatchAction({ type: "dataZoom", dataZoomIndex: 0, start: at(index - margin), end: at(index + margin) });
    showMoment(chart, index);
    return true;
  }

  return { start, redraw, showEvent };
})();
