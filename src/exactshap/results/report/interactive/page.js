// The numbers: JSON and arrays in one compressed block. Words of the user enter the page as text, never as markup.
const $ = (id) => document.getElementById(id);
const make = (tag, text, more = {}) => Object.assign(document.createElement(tag), { textContent: text }, more);
const packed = Uint8Array.from(atob($("numbers").textContent.trim()), (sign) => sign.charCodeAt(0));
const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
const raw = new Uint8Array(await new Response(stream).arrayBuffer()), arrays = {};
const head = 4 + new DataView(raw.buffer).getUint32(0, true), info = JSON.parse(new TextDecoder().decode(raw.subarray(4, head)));
const { names, wide, narrow, labels, kinds, texts, pairs, facts } = info, n = labels.length, players = [...names.keys()];
for (const [name, [offset, length, size]] of Object.entries(info.arrays)) {
  const place = (i) => head + offset + (i % size) * length + Math.floor(i / size); // all first bytes, then all second ones
  const bytes = new Uint8Array(length * size).map((_, i) => raw[place(i)]);
  const numbers = size === 8 ? new Float64Array(bytes.buffer) : new Float32Array(bytes.buffer);
  arrays[name] = Array.from({ length: length / n }, (_, k) => numbers.subarray(k * n, k * n + n)); // one piece a column
}
const state = { ...info.state, shown: [...labels.keys()] };
const column = (name, j = 0) => arrays[name][(state.output * arrays[name].length) / info.n_outputs + j];
const cells = (j) => arrays.cells[j];
const heights = () => (state.pair < 0 ? column("values", state.feature) : column("pairs", state.pair));
const mean = (numbers, rows, of = Number) => rows.reduce((sum, i) => sum + of(numbers[i]), 0) / rows.length;

// Words.
const count = (rows) => `${rows.length.toLocaleString("en-US")} row${rows.length === 1 ? "" : "s"}`;
const number = (value, signDisplay = "negative") => {
  if (!Number.isFinite(value)) return "missing";
  const size = Math.abs(value), notation = size && (size < 1e-4 || size >= 1e9) ? "scientific" : "standard";
  const whole = size >= 1e7 ? { maximumSignificantDigits: 7 } : { maximumFractionDigits: 0 }; // the page holds seven digits
  const digits = size >= 1e4 && notation === "standard" ? whole : { maximumSignificantDigits: 4 };
  const form = { ...digits, useGrouping: size >= 1e4, signDisplay, notation };
  return value.toLocaleString("en-US", form).replace(/-/g, "\u2212").replace("E", "e");
};
const signed = (value) => number(Math.abs(value) <= info.rounding ? 0 : value, "exceptZero");
const summed = ["baseline", "prediction", "residual"]; // shown as 0 within rounding
const fact = (name, value) => number(summed.includes(name) && Math.abs(value) <= info.rounding ? 0 : value);
const date = (days) => new Date(Math.round(days * 864e5)).toISOString().slice(0, days % 1 ? 16 : 10).replace("T", " ");
const named = (j) => texts[j].length > 0; // categories, and truth values, which are numbers to a filter
const written = {
  number: (j, value) => (named(j) ? texts[j][value] : `${info.axes[j] === names[j] ? "" : "mean "}${number(value)}`),
  text: (j, value) => texts[j][value], date: (_, value) => date(value),
};
const cell = (j, value) => (Number.isNaN(value) ? "missing" : written[kinds[j]](j, value));
const cellOf = (j, rows) => {
  if (!arrays.cells || (rows.length > 1 && kinds[j] !== "number")) return "";
  const known = rows.filter((i) => !Number.isNaN(cells(j)[i]));
  return rows.length > 1 ? `mean ${number(mean(cells(j), known))}` : cell(j, cells(j)[rows[0]]);
};
const title = (rows) => (rows.length === 1 ? labels[rows[0]] : `mean of ${count(rows)}`);
const fill = (id, rows, act) => $(id).replaceChildren(...rows.map((row, r) => {
  const line = make("tr", ""), scope = r ? "row" : "col";
  line.append(...row.map((word, k) => (r && k ? make("td", word) : make("th", act ? "" : word, { scope }))));
  if (act) // headings that are pressed
    line.querySelectorAll("th").forEach((th, k) => th.append(make("button", row[k], { type: "button", onclick: () => act(r, k) })));
  return line;
}));

// Charts: Vega draws SVG in the page's own colours, so that dark screens and paper need no second drawing.
const views = {};
const show = async (id, chart, data, signals = {}) => {
  const clicked = (_, item) => follow(item?.datum ?? {});
  const view = await (views[id] ??= vegaEmbed($(id), chart).then((made) => made.view.addEventListener("click", clicked)));
  for (const [name, rows] of Object.entries(data)) view.data(name, rows);
  for (const [name, value] of Object.entries(signals)) view.signal(name, value);
  return view.resize().runAsync();
};
function follow({ i, j, k, pair }) { // where a click on a mark leads: to a row, a feature, or a pair of features
  if (i >= 0) return choose([i]);
  if (j >= 0) pick(j, k, pair);
  if (pair >= 0) $("scatter").scrollIntoView({ block: "center" });
}

function drawFeatures() {
  const here = players.map((j) => mean(column("values", j), state.shown, Math.abs));
  const all = state.shown.length < n ? info.strength[state.output] : [];
  const order = players.toSorted((j, k) => here[k] - here[j]).slice(0, 15);
  const words = (j) => ({ name: names[j], word: wide[j], text: number(here[j]) });
  const features = order.map((j, place) => ({ place, j, strength: here[j], every: all[j], chosen: j === state.feature, ...words(j) }));
  return show("features", charts.features, { features }, { height: 25 * order.length });
}

// Two places, A and B, each a row or the mean of a group of rows.
function summary(slot) {
  const rows = state[slot], values = players.map((j) => mean(column("values", j), rows));
  const errors = players.map((j) => (arrays.errors ? mean(column("errors", j), rows) : NaN)); // of a mean: at most this
  return { slot, rows, values, errors, ...Object.fromEntries(facts.map((name) => [name, mean(column(name), rows)])) };
}
function path({ rows, values, errors, baseline, prediction }, top, rest) {
  let place = info.additive ? baseline : 0;
  const end = (word, value) => (info.additive ? [{ word, end: true, start: value, stop: value, text: number(value) }] : []);
  const bar = (word, value, error, j) => {
    const start = place, stop = start + value, text = signed(value) + (error > 0 ? ` \u00b1 ${number(Number(error.toPrecision(2)))}` : "");
    if (info.additive) place = stop;
    return { word, j, start, stop, text, low: stop - error, high: stop + error };
  };
  const bars = top.map((j) => bar([narrow[j], cellOf(j, rows)].filter(Boolean).join(" = "), values[j], errors[j], j));
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
  for (const id of ["B", "difference"]) $(id).hidden = !b;
  $("first").hidden = state.A.length !== 1 || state.A[0] !== info.state.A[0];
  const same = b ? sameRoom(paths.flat()) : { extent: 0, widest: "" };
  for (const [k, { slot, rows, [info.response]: response }] of shown.entries()) {
    const output = info.outputs.length ? `, output ${info.outputs[state.output]}` : "";
    $(`title-${slot}`).textContent = `${slot}: ${title(rows)}${output}${info.response ? `, ${info.response} ${number(response)}` : ""}`;
    show(`row-${slot}`, charts.row, { row: paths[k] }, { limits, ...same, height: 23 * paths[k].length });
  }
  if (b) drawDifference(a, b, top, order.slice(top.length));
  const line = (name, said, of) => [name, ...shown.flatMap((s) => [said(s), of(s)]), ...(b ? [of(a) - of(b)] : [])];
  const columns = ["feature", ...shown.flatMap(({ slot }) => [`cell, ${slot}`, `value, ${slot}`]), ...(b ? ["A \u2212 B"] : [])];
  state.table = [columns, ...order.map((j) => line(names[j], (s) => cellOf(j, s.rows), (s) => s.values[j]))];
  state.table.push(...facts.map((name) => line(name, () => "", (s) => s[name])));
  fill("values", state.table.map((row, r) => row.map((x) => (typeof x !== "number" ? x : r > order.length ? fact(row[0], x) : signed(x)))));
  const largest = order.slice(0, 3).map((j) => `${names[j]} ${signed(a.values[j])}`).join(", ");
  $("said").textContent = `${shown.map((s) => `${s.slot}: ${title(s.rows)}`).join("; ")}. Largest values: ${largest}.`;
  return drawMarks();
}
const pen = document.createElement("canvas").getContext("2d");
function sameRoom(rows) { // so that one length means one number in both pictures
  const family = "system-ui, -apple-system, Segoe UI, Roboto, DejaVu Sans, sans-serif";
  const widest = (size, texts) => {
    pen.font = `${size}px ${family}`;
    return texts.map((text) => [pen.measureText(text).width, text]).sort((x, y) => y[0] - x[0])[0];
  };
  const label = widest(12, rows.map(({ word }) => word))[0];
  return { extent: Math.min(label, innerWidth < 600 ? 140 : 190) + 12, widest: widest(11, rows.map(({ text }) => text))[1] };
}
function drawDifference(a, b, top, rest) { // each bar from zero: how much of A's output over B's is the feature's
  const of = (j) => a.values[j] - b.values[j], sum = (js) => js.reduce((all, j) => all + of(j), 0);
  const bar = (word, value, j) => ({ word, j, start: 0, stop: value, text: signed(value) });
  const bars = top.map((j) => bar(wide[j], of(j), j));
  if (rest.length) bars.push(bar(`${rest.length} other features`, sum(rest)));
  if (Math.abs(a.baseline - b.baseline) > info.rounding) bars.push(bar("baseline", a.baseline - b.baseline));
  const row = bars.map((one, place) => ({ ...one, place })), ends = [0, ...row.map(({ stop }) => stop)];
  const low = Math.min(...ends), high = Math.max(...ends), room = 0.03 * (high - low) || 1;
  $("title-difference").textContent = `A \u2212 B: ${signed(a.prediction - b.prediction)} in the prediction`;
  show("row-difference", charts.row, { row }, { limits: [low - room, high + room], height: 23 * row.length });
}
const set = (slot, rows) => { state[slot] = rows; return drawRows(); };
const choose = (rows) => set(document.querySelector("[name=slot]:checked").value, rows);

// The dependence picture: values of a feature, or of a pair, against the feature.
const jitter = (i) => (((i * 2654435761) >>> 0) / 2 ** 32 - 0.5) * 0.6; // keeps dots of one category apart
const across = (i, j = state.feature) =>
  named(j) ? cells(j)[i] + jitter(i) : cells(j)[i] * (kinds[j] === "date" ? 864e5 : 1);
const dot = (i) => ({ i, x: across(i), y: heights()[i], colour: state.colour < 0 ? 0 : cells(state.colour)[i] });
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
  const signals = { words: texts[j], range: info.ranges[state.colour] ?? [0, 0], title: info.axes[j] };
  (await views.scatter)?.finalize();
  delete views.scatter;
  const view = await show("scatter", charts[named(j) ? "text" : kinds[j]], { points }, signals);
  view.addSignalListener("brush", (_, box) => box.x && requestAnimationFrame(() => brushed(box)));
  return drawMarks();
}
function brushed(box) {
  const [x0, x1] = box.x.map(Number).sort((a, b) => a - b), [y0, y1] = box.y.toSorted((a, b) => a - b), y = heights();
  const rows = state.shown.filter((i) => across(i) >= x0 && across(i) <= x1 && y[i] >= y0 && y[i] <= y1);
  if (rows.length && x1 > x0) choose(rows);
}

// One filter box, in the language of filter.js.
const wordsOf = (i) => [labels[i], ...players.filter((j) => kinds[j] === "text").map((j) => cell(j, cells(j)[i]))];
const coarse = (x) => { // as the cells of a column that was rounded to 16 bits of mantissa
  const words = new Uint32Array(Float32Array.of(x).buffer);
  words[0] = ((words[0] + 64) >>> 7) << 7;
  return new Float32Array(words.buffer)[0];
};
const columns = {
  names: [...names.filter((_, j) => kinds[j]), ...facts], words: wordsOf,
  find: (name) => {
    const lower = name.toLowerCase(), j = names.includes(name) ? names.indexOf(name) : names.findIndex((x) => x.toLowerCase() === lower);
    const numbers = kinds[j] ? cells(j) : facts.includes(lower) && column(lower), kind = kinds[j] ?? "number";
    const bound = info.coarse[j] ? coarse : Number;
    const value = kind === "text" ? (i) => texts[j][numbers[i]].toLowerCase() : (i) => numbers[i];
    return numbers ? { name: names[j] ?? lower, kind, bound, known: (i) => !Number.isNaN(numbers[i]), cell: value } : null;
  },
};
function filter() {
  try {
    const text = $("filter").value, shown = [...labels.keys()].filter(text.trim() ? readFilter(text, columns) : () => true);
    if (shown.length) Object.assign(state, { shown, page: 0 });
    $("filtered").textContent = shown.length ? `${count(shown)} of ${n.toLocaleString("en-US")}` : "No such row: filter unchanged.";
  } catch (error) { $("filtered").textContent = `${error.message}. Rows unchanged.`; }
  return drawFeature();
}

// The table of rows, twenty at a time: its headings sort, its labels choose.
function drawTable(pages = 0, sort = null) {
  if (sort) Object.assign(state, { up: sort === state.sort && !state.up, sort, page: 0 });
  const columns = Object.fromEntries(facts.slice(1).map((name) => [name, column(name)]));
  columns[`value of ${names[state.feature]}`] = column("values", state.feature);
  const numbers = columns[state.sort], order = state.shown.slice(), last = Math.ceil(order.length / 20) - 1;
  if (numbers) order.sort((a, b) => (numbers[a] - numbers[b]) * (state.up ? 1 : -1));
  state.page = Math.min(Math.max(state.page + pages, 0), last);
  const rows = order.slice(20 * state.page, 20 * state.page + 20), heads = ["row", ...Object.keys(columns)];
  const marked = heads.map((name) => (name === state.sort ? `${name} ${state.up ? "\u2191" : "\u2193"}` : name));
  const lines = rows.map((i) => [labels[i], ...Object.entries(columns).map(([name, values]) => fact(name, values[i]))]);
  fill("rows", [marked, ...lines], (r, k) => (r ? choose([rows[r - 1]]) : drawTable(0, heads[k])));
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
const acts = {
  copy, before: () => drawTable(-1), after: () => drawTable(1),
  filter: () => { clearTimeout(state.waiting); state.waiting = setTimeout(filter, 200); },
  "filtered-A": () => set("A", state.shown), "filtered-B": () => set("B", state.shown), "clear-B": () => set("B", []),
  "others-B": () => { const taken = new Set(state.A); set("B", [...labels.keys()].filter((i) => !taken.has(i))); },
  feature: (j) => pick(j), colour: (j) => pick(state.feature, j, state.pair),
  pair: (p) => (p < 0 ? pick(state.feature) : pick(...pairs[p].slice(0, 2), p)),
  output: (k) => { state.output = k; drawFeature(); drawRows(); drawPairs(); },
  row: (_, word) => {
    const means = [(label) => label === word, (label) => `${label} `.startsWith(`row ${word} `), (label) => label.endsWith(`(${word})`)];
    const i = means.map((is) => labels.findIndex(is)).find((place) => place >= 0) ?? -1; // a number before a label of that name
    $("row-note").textContent = i < 0 ? "There is no such row." : "";
    if (i >= 0) choose([i]);
  },
};
for (const control of document.querySelectorAll("[data-on]"))
  control.addEventListener(control.dataset.on, () => acts[control.id](Number(control.value), control.value));
await Promise.all([pick(state.feature), drawRows(), drawPairs()]);
document.documentElement.dataset.ready = "true";
