"use strict";
// Charts: options become pictures, which follow language, theme and width, and answer to pointer and keyboard.
const Charts = (() => {
  const { data, word, isNothing, bytes, tick, count, duration } = Page;
  const { resolve } = Calls;
  const charts = new Map(data.charts.map((chart) => [chart.id, chart]));

  // Columns of differences become rows of numbers.
  function unpacked(columns) {
    const whole = columns.map((column) => {
      let sum = 0;
      return column?.[1].map((step) => (step === null ? null : (sum += step) * column[0]));
    });
    return whole[0].map((_, place) => whole.map((column) => column?.[place] ?? null));
  }
  // The events of a mark: where they are, and what is said of each behind its number.
  function unpackMarks(option, { series: place, crosses, index, time, number, text, texts }) {
    const series = option.series[place];
    const saying = (front, words) => (words.$words ? { $words: words.$words.map((one) => front + one) } : front + words);
    series.data = unpacked([index, time, number]).map(([at, when, front], event) => ({
      value: [at, 0, when], detail: saying(front ?? "", texts[text[event]]),
    }));
    series.markLine.data = crosses ? series.data.map(({ value: [at, , when] }) => ({ xAxis: at, time: when })) : [];
  }
  for (const { option, extra } of charts.values()) {
    for (const [key, value] of Object.entries(option)) {
      if (value?.$part !== undefined) option[key] = data.parts[value.$part];
    }
    if (extra.levels?.[0]) option.dataset = { source: unpacked(extra.levels), sourceHeader: false };
    for (const marks of extra.marks ?? []) unpackMarks(option, marks);
    for (const [place, spans] of (extra.spans ?? []).entries()) option.series[place].data = spans[0] ? unpacked(spans) : [];
  }

  // ---- drawing
  function draw(chart) {
    if (!chart.drawn) {
      chart.drawn = echarts.init(chart.box, null, { renderer: "canvas" });
      chart.drawn.on("click", (point) => clicked(chart, point));
      chart.drawn.getZr().on("click", (event) => clickedAt(chart, event));
      if (chart.kind === "timeline") chart.drawn.on("datazoom", () => fitHeight(chart));
      if (chart.kind === "timeline") chart.drawn.on("legendselectchanged", () => fitHeight(chart));
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
    option.legend.selected = shownSeries(chart, option);
    if (chart.second) others[chart.kind](chart, option);
    // Merged into what is drawn, so that zoom and legend stay, and so does the tooltip, whose timer may still run.
    chart.drawn.setOption(option);
    if (chart.kind === "timeline") fitHeight(chart);
    chart.box.dataset.drawn = "true";
  }

  // What is hidden stays so when its name is said in another language.
  function shownSeries(chart, option) {
    const { legend, series } = chart.drawn.getOption() ?? {};
    const shown = option.series.map(({ name }, place) => [name, legend?.[0].selected[series[place].name] ?? true]);
    return Object.fromEntries(shown.filter(([name]) => name));
  }

  // A narrow screen has no room for tools, and less for names.
  function fit(chart, option) {
    const [axis] = [option.yAxis].flat();
    const isNarrow = chart.width < 560;
    if (axis.type === "category") axis.axisLabel.width = Math.round(Math.min(axis.axisLabel.width, chart.width * (isNarrow ? 0.36 : 0.42)));
    // Merging keeps what is not said again, so both widths say the same things.
    option.toolbox.show = !isNarrow;
    option.legend.right = isNarrow ? 0 : 110;
    if (isNarrow) narrow[chart.kind]?.(chart, option, axis);
    chart.nameRoom = axis.axisLabel?.width;
  }
  const narrow = {
    // A name stands above its bar.
    stacks: (chart, option, axis) => {
      Object.assign(axis.axisLabel, {
        inside: true, margin: 0, width: chart.width - 16, align: "left", verticalAlign: "bottom", padding: [0, 0, 7, 0],
      });
      axis.z = 5;
      Object.assign(option.grid, { left: 2, right: 84 });
      // Every bar has its number beside it.
      option.xAxis.axisLabel.show = false;
      option.xAxis.splitLine = { show: false };
      Object.assign(option.series[0], { barMaxWidth: 9 });
      option.series[0].label.formatter = ({ data: bar }) => bytes(bar.bytes);
    },
    // What happened is more than its number, which the tooltip has.
    oom: (chart, option, axis) => {
      axis.data = axis.data.map((name) => name.split(" · ").at(-1));
      axis.axisLabel.fontSize = 11;
      option.xAxis.interval = option.xAxis.max;
    },
  };

  // The height of a timeline follows what is in view and not hidden: beside one high peak all else would be flat.
  function fitHeight(chart) {
    const { dataZoom: [{ startValue, endValue }], legend: [{ selected }], series } = chart.drawn.getOption();
    const shown = series.filter(({ encode, name }) => encode && selected[name] !== false).map(({ encode }) => encode.y);
    const column = chart.second ? 1 : 0;
    const source = chart.option.dataset.source;
    // A level lasts until the next, so the one before the view counts too.
    const first = Math.max(0, source.findIndex((row) => row[column] >= startValue) - 1);
    let most = 1;
    for (const row of source.slice(first)) {
      if (row[column] > endValue) break;
      for (const y of shown) most = Math.max(most, row[y] ?? 0);
    }
    const isWhole = first === 0 && endValue >= source.at(-1)[column];
    const isAll = isWhole && !chart.cut && shown.length === series.filter(({ encode }) => encode).length;
    const { max, interval } = isAll ? chart.option.yAxis : byteAxis((chart.cut ? Math.min(most, chart.extra.usual) : most) * 1.05);
    // A peak beyond the axis is told of at its upper end.
    const told = series.map(({ markPoint }) => (markPoint
      ? { markPoint: { data: markPoint.data.map((point) => ({ ...point, coord: [point.coord[0], Math.min(point.value, max)] })) } }
      : {}));
    chart.drawn.setOption({ yAxis: { max, interval }, series: told });
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
        // What has no time has no place on the axis, and a mark without a place is an error to the chart.
        if (series.markLine) {
          const lines = series.markLine.data.map((item) => ({ ...item, xAxis: item.time }));
          series.markLine.data = lines.filter((item) => !isNothing(item.xAxis));
        }
        if (series.markPoint) {
          const when = (item) => source.find((row) => row[0] >= item.index)?.[1];
          const points = series.markPoint.data.map((item) => ({ ...item, coord: [when(item), item.value] }));
          series.markPoint.data = points.filter((item) => !isNothing(item.coord[0]));
        }
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
    const note = nearest.index === index ? [] : [element("p", { className: "note" }, `${word("nearest")} ${count(index)}`)];
    const sql = `SELECT * FROM live_at(${index}, ${chart.device})`;
    const title = element("h4", {}, `${word("live")} ${count(nearest.index)}`);
    const detail = chart.figure.querySelector(".detail");
    detail.replaceChildren(title, ...note, heldList(nearest.live, nearest.other), query(sql));
    chart.moment = index;
  }

  // Buttons for two ways each to see a chart.
  function controls(chart) {
    const { span, usual } = chart.extra;
    const all = {
      layout: [["second", "relative", "absolute"]],
      timeline: [...(span ? [["second", "byEvent", "byTime"]] : []), ...(usual ? [["cut", "upToPeak", "noSpikes"]] : [])],
    };
    const bar = chart.figure.querySelector(".controls");
    for (const [way, ...choices] of all[chart.kind] ?? []) {
      const group = Page.element("div", { className: "switch", role: "group" });
      choices.forEach((key, place) => {
        const button = Page.element("button", { type: "button" }, word(key));
        button.dataset.word = key;
        button.dataset.way = way;
        button.setAttribute("aria-pressed", String(place === 0));
        button.addEventListener("click", () => choose(chart, way, place));
        group.append(button);
      });
      bar.append(group);
      bar.hidden = false;
    }
  }
  function choose(chart, way, chosen) {
    chart[way] = chosen === 1;
    const buttons = chart.figure.querySelectorAll(`[data-way=${way}]`);
    buttons.forEach((button, place) => button.setAttribute("aria-pressed", String(place === chosen)));
    if (chart.drawn) draw(chart);
  }

  // Charts are drawn when they are about to come into view.
  function start() {
    const boxes = document.querySelectorAll(".canvas");
    for (const box of boxes) {
      const chart = charts.get(box.dataset.chart);
      Object.assign(chart, { box, figure: box.closest("figure") });
      box.style.height = `${box.dataset.height}px`;
      controls(chart);
    }
    Page.whenNear(boxes, 200, (box) => {
      // A link that leads here may have drawn it: once more would take away what it points at.
      const chart = charts.get(box.dataset.chart);
      if (!chart.drawn) draw(chart);
    });
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
    // Positions are of events: an axis of time gives way.
    if (chart.second) choose(chart, "second", 0);
    else draw(chart);
    const { min, max } = chart.option.xAxis;
    const margin = (max - min) / 40;
    const at = (value) => Math.max(0, Math.min(100, ((value - min) / (max - min)) * 100));
    chart.drawn.dispatchAction({ type: "dataZoom", dataZoomIndex: 0, start: at(index - margin), end: at(index + margin) });
    showMoment(chart, index);
    return true;
  }

  // Points at a segment of a device on its map; whether it is there.
  function showSegment(device, address) {
    const chart = [...charts.values()].find((other) => other.kind === "layout" && other.device === device);
    const row = chart?.extra.rows.findIndex((segment) => segment.address === Page.hexadecimal(address)) ?? -1;
    if (row < 0) return false;
    chart.figure.scrollIntoView();
    draw(chart);
    chart.drawn.dispatchAction({ type: "restore" });
    const { series } = chart.option;
    const seriesIndex = series.findIndex((one) => one.data.some((span) => span[0] === row));
    const dataIndex = series[seriesIndex]?.data.findIndex((span) => span[0] === row);
    if (seriesIndex >= 0) chart.drawn.dispatchAction({ type: "showTip", seriesIndex, dataIndex });
    return true;
  }

  return { start, redraw, showEvent, showSegment };
})();
