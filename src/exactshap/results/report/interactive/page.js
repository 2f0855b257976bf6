"use strict";
(async () => {
  // The numbers: JSON and arrays in one compressed block. Words of the user enter the page as text, never as markup.
  const $ = (id) => document.getElementById(id);
  const make = (tag, text, more = {}) => Object.assign(document.createElement(tag), { textContent: text }, more);
  const packed = Uint8Array.from(atob($("numbers").textContent.trim()), (sign) => sign.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  const raw = new Uint8Array(await new Response(stream).arrayBuffer()), arrays = {};
  const head = 4 + new DataView(raw.buffer).getUint32(0, true), info = JSON.parse(new TextDecoder().decode(raw.subarray(4, head)));
  for (const [name, [offset, length, size]] of Object.entries(info.arrays)) {
    const bytes = new Uint8Array(length * size);
    for (let b = 0, from = head + offset; b < size; b++)
      for (let i = 0; i < length; i++) bytes[i * size + b] = raw[from++];
    arrays[name] = size === 8 ? new Float64Array(bytes.buffer) : new Float32Array(bytes.buffer);
  }
  const { names, labels, kinds, texts, pairs, facts } = info, n = labels.length, players = [...names.keys()];
  const state = { output: 0, feature: info.strongest, colour: -1, pair: -1, A: [info.first], B: [], shown: [...labels.keys()] };
  Object.assign(state, { sort: "", up: false, page: 0 });
  const column = (name, j = 0) => {
    const start = (state.output * (arrays[name].length / (info.n_outputs * n)) + j) * n;
    return arrays[name].subarray(start, start + n);
  };
  const cells = (j) => arrays.cells.subarray(j * n, (j + 1) * n);
  const heights = () => (state.pair < 0 ? column("values", state.feature) : column("pairs", state.pair));
  const mean = (numbers, rows, of = Number) => rows.reduce((sum, i) => sum + of(numbers[i]), 0) / rows.length;

  // Words.
  const count = (rows) => `${rows.length.toLocaleString("en-US")} row${rows.length === 1 ? "" : "s"}`;
  const number = (value, signDisplay = "negative") => {
    if (!Number.isFinite(value)) return "missing";
    const size = Math.abs(value), notation = size && (size < 1e-4 || size >= 1e7) ? "scientific" : "standard";
    const form = { maximumSignificantDigits: 4, useGrouping: size >= 1e4, signDisplay, notation };
    return value.toLocaleString("en-US", form).replace(/-/g, "\u2212").replace("E", "e");
  };
  const signed = (value) => number(value, "exceptZero");
  const short = (name, size) => (name.length > size ? `${name.slice(0, size / 2)}\u2026${name.slice(-size / 2 + 2)}` : name);
  const cell = (j, value) => {
    if (Number.isNaN(value) || kinds[j] === "number") return number(value);
    if (kinds[j] === "text") return texts[j][value];
    return new Date(value * 864e5).toISOString().slice(0, value % 1 ? 16 : 10).replace("T", " ");
  };
  const cellOf = (j, rows) => {
    if (!arrays.cells || (rows.length > 1 && kinds[j] !== "number")) return "";
    const known = rows.filter((i) => !Number.isNaN(cells(j)[i]));
    return rows.length > 1 ? `mean ${number(mean(cells(j), known))}` : cell(j, cells(j)[rows[0]]);
  };
  const title = (rows) => (rows.length === 1 ? labels[rows[0]] : `mean of ${count(rows)}`);
  const fill = (id, rows) => $(id).replaceChildren(...rows.map((row, r) => {
    const line = make("tr", ""), heading = (x) => make("th", x, { scope: r ? "row" : "col" });
    line.append(...row.map((x, k) => (x instanceof Node ? x : r && k ? make("td", x) : heading(x))));
    return line;
  }));

  // Charts: Vega draws SVG in the page's own colours, so that dark screens and paper need no second drawing.
  const views = {}, charts = JSON.parse($("charts").textContent);
  const options = { ast: true, actions: false, renderer: "svg", logLevel: 1 };
  const show = async (id, chart, data, signals = {}) => {
    const view = await (views[id] ??= vegaEmbed($(id), chart, options).then((made) => made.view));
    for (const [name, rows] of Object.entries(data)) view.data(name, rows);
    for (const [name, value] of Object.entries(signals)) view.signal(name, value);
    return view.resize().runAsync();
  };
  const onClick = (view, act) => view.addEventListener("click", (_, item) => item?.datum && act(item.datum));

  function drawFeatures() {
    const here = players.map((j) => mean(column("values", j), state.shown, Math.abs));
    const all = state.shown.length < n ? info.strength[state.output] : [];
    const order = players.toSorted((j, k) => here[k] - here[j]).slice(0, 15);
    const said = (j) => ({ text: number(here[j]), said: `${names[j]}: ${number(here[j])}` });
    const features = order.map((j, place) => ({ place, j, strength: here[j], every: all[j], ...said(j) }));
    const words = order.map((j) => short(names[j], 28));
    return show("features", charts.features, { features }, { words, height: 25 * order.length });
  }

  // Two places, A and B, each a row or the mean of a group of rows.
  function summary(slot) {
    const rows = state[slot], values = players.map((j) => mean(column("values", j), rows));
    const errors = players.map((j) => (arrays.errors ? mean(column("errors", j), rows) : NaN)); // of a mean: at most this
    return { slot, rows, values, errors, ...Object.fromEntries(facts.map((name) => [name, mean(column(name), rows)])) };
  }
  function path({ rows, values, errors, baseline, prediction }, top, rest) {
    let place = info.additive ? baseline : 0;
    const end = (word, value) => (info.additive ? [{ word, sign: "end", start: value, stop: value, text: number(value) }] : []);
    const bar = (word, value, error, j) => {
      const start = place, stop = start + value, text = signed(value) + (error >= 0 ? ` \u00b1 ${error.toPrecision(2)}` : "");
      if (info.additive) place = stop;
      const sign = value < 0 ? "down" : "up", said = `${word}: ${text}`;
      return { word, j, start, stop, text, said, sign, low: stop - error, high: stop + error };
    };
    const bars = top.map((j) => bar([short(names[j], 18), cellOf(j, rows)].filter(Boolean).join(" = "), values[j], errors[j], j));
    if (rest.length) bars.push(bar(`${rest.length} other features`, rest.reduce((sum, j) => sum + values[j], 0), NaN));
    return [...end("baseline", baseline), ...bars, ...end("prediction", prediction)].map((row, k) => ({ ...row, place: k }));
  }
  function drawRows() {
    const shown = ["A", "B"].filter((slot) => state[slot].length).map(summary), [a, b] = shown;
    const size = players.map((j) => Math.max(...shown.map((s) => Math.abs(s.values[j]))));
    const order = players.toSorted((j, k) => size[k] - size[j]), top = order.slice(0, order.length > 12 ? 11 : 12);
    const paths = shown.map((s) => path(s, top, order.slice(top.length)));
    const ends = paths.flat().flatMap((row) => [row.start, row.stop, row.low, row.high]).filter(Number.isFinite);
    const low = Math.min(...ends), high = Math.max(...ends), room = 0.03 * (high - low) || 1, limits = [low - room, high + room];
    $("B").hidden = !b;
    for (const [k, { slot, rows }] of shown.entries()) {
      $(`title-${slot}`).textContent = [`${slot}: ${title(rows)}`, info.outputs[state.output]].filter(Boolean).join(", ");
      const words = paths[k].map((row) => row.word);
      show(`row-${slot}`, charts.row, { row: paths[k] }, { words, limits, height: 23 * words.length });
    }
    const line = (name, said, of) => [name, ...shown.flatMap((s) => [said(s), of(s)]), ...(b ? [of(a) - of(b)] : [])];
    const columns = ["feature", ...shown.flatMap(({ slot }) => [`cell, ${slot}`, `value, ${slot}`]), ...(b ? ["A \u2212 B"] : [])];
    state.table = [columns, ...order.map((j) => line(names[j], (s) => cellOf(j, s.rows), (s) => s.values[j]))];
    state.table.push(...facts.map((name) => line(name, () => "", (s) => s[name])));
    const form = (r) => (r > players.length ? number : signed);
    fill("values", state.table.map((row, r) => row.map((x) => (typeof x === "number" ? form(r)(x) : x))));
    const largest = order.slice(0, 3).map((j) => `${names[j]} ${signed(a.values[j])}`).join(", ");
    $("said").textContent = `${shown.map((s) => `${s.slot}: ${title(s.rows)}`).join("; ")}. Largest values: ${largest}.`;
    return drawMarks();
  }
  const set = (slot, rows) => { state[slot] = rows; return drawRows(); };
  const choose = (rows) => set(document.querySelector("[name=slot]:checked").value, rows);

  // The dependence picture: values of a feature, or of a pair, against the feature.
  const jitter = (i) => (((i * 2654435761) >>> 0) / 2 ** 32 - 0.5) * 0.6; // keeps dots of one category apart
  const across = (i, j = state.feature) =>
    kinds[j] === "text" ? cells(j)[i] + jitter(i) : cells(j)[i] * (kinds[j] === "date" ? 864e5 : 1);
  const shade = (i, j = state.colour) => {
    if (j < 0 || Number.isNaN(cells(j)[i])) return j < 0 ? 0 : -1;
    const [low, high] = info.ranges[j];
    return Math.round(8 * Math.min(Math.max((cells(j)[i] - low) / (high - low || 1), 0), 1));
  };
  const dot = (i) => ({ i, x: across(i), y: heights()[i], shade: shade(i) });
  const drawMarks = () => {
    const alone = ["A", "B"].filter((slot) => views.scatter && state[slot].length === 1 && Number.isFinite(across(state[slot][0])));
    return views.scatter && show("scatter", null, { chosen: alone.map((slot) => ({ slot, ...dot(state[slot][0]) })) });
  };
  async function drawScatter() {
    if (!arrays.cells) return;
    const j = state.feature, pair = pairs[state.pair], known = state.shown.filter((i) => Number.isFinite(across(i)));
    const points = known.filter((_, k) => k % Math.ceil(known.length / 3000) === 0).map(dot);
    const what = pair ? `${info.index} of ${names[pair[0]]} and ${names[pair[1]]}` : `Value of ${names[j]}`;
    const drawn = points.length < known.length ? ` ${count(points)} are drawn; a brush takes all.` : "";
    const without = known.length < state.shown.length ? ` Not drawn: ${state.shown.length - known.length} without a value.` : "";
    $("scatter-note").textContent = `${what} (${info.unit}) against ${info.axes[j]}.${drawn}${without}`;
    const chart = charts[kinds[j]];
    chart.layer[1].encoding.x.title = info.axes[j];
    (await views.scatter)?.finalize();
    delete views.scatter;
    const view = await show("scatter", chart, { points }, { words: texts[j] });
    onClick(view, (datum) => "i" in datum && choose([datum.i]));
    view.addSignalListener("brush", (_, box) => box.x && requestAnimationFrame(() => brushed(box)));
    return drawMarks();
  }
  function brushed(box) {
    const [x0, x1] = box.x.map(Number).sort((a, b) => a - b), [y0, y1] = box.y.toSorted((a, b) => a - b), y = heights();
    const rows = state.shown.filter((i) => across(i) >= x0 && across(i) <= x1 && y[i] >= y0 && y[i] <= y1);
    if (rows.length && x1 > x0) choose(rows);
  }

  // One filter box: a word, or conditions such as "age > 40 and city = Bonn".
  const TESTS = { "<": (a, b) => a < b, ">": (a, b) => a > b, "<=": (a, b) => a <= b, ">=": (a, b) => a >= b,
    "=": (a, b) => a === b, "!=": (a, b) => a !== b };
  const wordsOf = (i) => [labels[i], ...players.filter((j) => kinds[j] === "text").map((j) => cell(j, cells(j)[i]))];
  function condition(text) {
    const [, name, sign, wanted] = /^(.+?)\s*(<=|>=|!=|=|<|>)\s*(.+)$/.exec(text) ?? [];
    if (!sign) return (i) => wordsOf(i).some((word) => word.toLowerCase().includes(text));
    const j = names.findIndex((other) => other.toLowerCase() === name), fact = facts.includes(name);
    if (!fact && !kinds[j]) throw new Error(`There is no feature \u201c${name}\u201d.`);
    if (!fact && (wanted === "missing" || kinds[j] === "text"))
      return (i) => TESTS[sign](cell(j, cells(j)[i]).toLowerCase(), wanted);
    const bound = Math.fround(kinds[j] === "date" ? Date.parse(wanted) / 864e5 : wanted), numbers = fact ? column(name) : cells(j);
    if (Number.isNaN(bound)) throw new Error(`\u201c${wanted}\u201d is no ${kinds[j] ?? "number"}.`);
    return (i) => TESTS[sign](numbers[i], bound);
  }
  function filter() {
    try {
      const conditions = $("filter").value.toLowerCase().split(/\band\b/).map((part) => part.trim()).filter(Boolean).map(condition);
      const shown = [...labels.keys()].filter((i) => conditions.every((holds) => holds(i)));
      if (shown.length) Object.assign(state, { shown, page: 0 });
      $("filtered").textContent = shown.length ? `${count(shown)} of ${n.toLocaleString("en-US")}` : "No such row: filter unchanged.";
    } catch (error) { $("filtered").textContent = error.message; }
    return drawFeature();
  }

  // The table of rows, twenty at a time: its headings sort, its labels choose.
  function drawTable() {
    const columns = Object.fromEntries(facts.slice(1).map((name) => [name, column(name)]));
    columns[`value of ${names[state.feature]}`] = column("values", state.feature);
    const numbers = columns[state.sort], order = state.shown.slice(), last = Math.ceil(order.length / 20) - 1;
    if (numbers) order.sort((a, b) => (numbers[a] - numbers[b]) * (state.up ? 1 : -1));
    state.page = Math.min(Math.max(state.page, 0), last);
    const heading = (child, scope) => { const made = make("th", "", { scope }); made.append(child); return made; };
    const button = (text, onclick, scope) => heading(make("button", text, { type: "button", onclick }), scope);
    const sort = (name) => button(name + (name === state.sort ? (state.up ? " \u2191" : " \u2193") : ""), () => {
      Object.assign(state, { up: name === state.sort && !state.up, sort: name, page: 0 });
      drawTable();
    }, "col");
    const rows = order.slice(20 * state.page, 20 * state.page + 20);
    fill("rows", [["row", ...Object.keys(columns)].map(sort), ...rows.map((i) =>
      [button(labels[i], () => choose([i]), "row"), ...Object.values(columns).map((values) => number(values[i]))])]);
    $("page").textContent = `page ${state.page + 1} of ${last + 1}`;
  }
  async function copy() {
    const quoted = (x) => (typeof x === "number" ? x : `"${x.replace(/^[=+@\t-]/, "'$&").replaceAll('"', '""')}"`);
    $("csv").value = state.table.map((row) => row.map(quoted).join(",")).join("\n");
    $("csv").hidden = await navigator.clipboard.writeText($("csv").value).then(() => true, () => false);
    $("csv").select();
  }

  // Controls.
  const drawFeature = () => Promise.all([drawFeatures(), drawScatter(), drawTable()]);
  const drawPairs = () => pairs.length && show("pairs", charts.pairs, { pairs: info.tiles[state.output] }, info.tile_signals);
  const pick = (feature, colour = state.colour, pair = -1) => {
    Object.assign(state, { feature, colour, pair });
    for (const id of ["feature", "colour", "pair"]) $(id).value = state[id];
    return drawFeature();
  };
  const turn = (pages) => { state.page += pages; drawTable(); };
  const others = (taken) => state.shown.filter((i) => !taken.has(i));
  let waiting;
  const acts = { onclick: { copy, before: () => turn(-1), after: () => turn(1), "filtered-A": () => set("A", state.shown),
    "filtered-B": () => set("B", state.shown), "others-B": () => set("B", others(new Set(state.A))), "clear-B": () => set("B", []) },
  oninput: { filter: () => { clearTimeout(waiting); waiting = setTimeout(filter, 200); } },
  onchange: { feature: (j) => pick(j), colour: (j) => pick(state.feature, j, state.pair),
    pair: (p) => (p < 0 ? pick(state.feature) : pick(...pairs[p].slice(0, 2), p)),
    output: (k) => { state.output = k; drawFeature(); drawRows(); drawPairs(); },
    row: (_, word) => {
      const i = labels.findIndex((label) => label === word || `${label} `.startsWith(`row ${word} `) || label.endsWith(`(${word})`));
      $("row-note").textContent = i < 0 ? "There is no such row." : "";
      if (i >= 0) choose([i]);
    } } };
  for (const [event, by] of Object.entries(acts))
    for (const [id, act] of Object.entries(by)) if ($(id)) $(id)[event] = () => act(Number($(id).value), $(id).value);
  await Promise.all([pick(state.feature), drawRows(), drawPairs()]);
  onClick(await views.features, (datum) => pick(datum.j));
  onClick(await views["row-A"], (datum) => datum.j >= 0 && pick(datum.j));
  const lead = ({ pair, j, k }) => { pick(j, k, pair); $("scatter").scrollIntoView({ block: "center" }); };
  if (pairs.length) onClick(await views.pairs, lead);
  document.documentElement.dataset.ready = "true";
})();
