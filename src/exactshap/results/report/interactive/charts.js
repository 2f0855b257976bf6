// Charts in Vega-Lite. Fields have fixed names: names and cells of the user arrive as signals or contents of fields.
const charts = (() => {
  const soft = "var(--soft)", ink = "var(--ink)", accent = "var(--accent)";
  const quantity = (field, more) => ({ field, type: "quantitative", ...more });
  const chart = (params, spec) => ({
    width: "container",
    height: 300,
    // ast: expressions are interpreted, not compiled, as the policy requires
    usermeta: { embedOptions: { ast: true, actions: false, renderer: "svg", logLevel: 1 } },
    config: {
      background: "transparent",
      font: "system-ui, -apple-system, Segoe UI, Roboto, DejaVu Sans, sans-serif",
      view: { stroke: null },
      axis: {
        labelColor: soft, titleColor: soft, gridColor: "var(--line)", domainColor: soft, tickColor: soft,
        titleFontWeight: "normal", labelFontSize: 11, titleFontSize: 12,
      },
      axisXBand: { labelColor: ink },
      axisYBand: { labelColor: ink, labelFontSize: 12, labelLimit: { expr: "windowSize()[0] < 600 ? 140 : 190" } },
    },
    ...spec,
    params: [...(spec.params ?? []), ...Object.entries({ words: [], ...params }).map(([name, value]) => ({ name, value }))],
  });

  // Bars at the places 0, 1, 2, ... of the rows of the data
  const bars = (data, axis, transform, params, layer) => chart(params, {
    data: { name: data },
    padding: { left: 2, top: 4, bottom: 2, right: 4 },
    transform,
    encoding: {
      y: {
        field: "place", type: "ordinal", scale: { paddingInner: 0.35, paddingOuter: 0.2 },
        axis: { title: null, domain: false, ticks: false, labelPadding: 8, labelExpr: `data('${data}')[datum.value].word`, ...axis },
      },
    },
    layer,
  });
  const written = (dx, text, more) => ({
    mark: { type: "text", aria: false, align: "left", dx, color: ink, fontSize: 11, ...more },
    encoding: { x: { value: "width" }, text },
  });
  const limits = { domain: { expr: "limits" }, nice: false, zero: false };

  // Values of a feature or pair against the feature's cells; a brush selects rows
  const shade = "isValid(datum.colour) ? round(8 * clamp((datum.colour - range[0]) / (range[1] - range[0] || 1), 0, 1)) : -1";
  const shades = [-1, 0, 1, 2, 3, 4, 5, 6, 7, 8];
  const scattered = (type, scale, axis) => chart({ range: [0, 0], title: "" }, {
    title: { // the title of an axis cannot be a signal
      text: { expr: "title" }, orient: "bottom", anchor: "middle", frame: "group", fontSize: 12, fontWeight: "normal", color: soft,
      limit: { expr: "width" },
    },
    params: [{
      name: "brush", views: ["scatter"],
      select: { type: "interval", mark: { fill: soft, fillOpacity: 0.15, stroke: soft } },
    }],
    layer: [
      { data: { values: [{ y: 0 }] }, mark: { type: "rule", color: soft, aria: false }, encoding: { y: quantity("y") } },
      {
        name: "scatter",
        data: { name: "points" },
        transform: [{ calculate: shade, as: "shade" }],
        mark: { type: "circle", size: 26, cursor: "pointer", aria: false },
        encoding: {
          x: {
            field: "x", type, scale: { nice: false, padding: 12, ...scale },
            axis: { title: null, labelOverlap: "greedy", labelLimit: 120, tickCount: 6, ...axis },
          },
          y: quantity("y", { title: "value", scale: { nice: false, padding: 10 }, axis: { tickCount: 5 } }),
          color: {
            field: "shade", type: "ordinal", legend: null,
            scale: { domain: shades, range: shades.map((k) => `var(--q${k < 0 ? "x" : k})`) },
          },
          opacity: { condition: { param: "brush", value: 0.75 }, value: 0.15 },
        },
      },
      ...[
        [{ type: "point", size: 110, strokeWidth: 2, filled: false }, {}],
        [{ type: "text", dy: -13, fontWeight: "bold", fontSize: 13 }, { text: { field: "slot", type: "nominal" } }],
      ].map(([mark, more]) => ({
        data: { name: "chosen" },
        mark: { ...mark, color: ink, aria: false },
        encoding: { x: { field: "x", type }, y: quantity("y"), ...more },
      })),
    ],
  });

  const place = (field, axis) => ({
    field, type: "ordinal", scale: { padding: 0.04 },
    axis: { title: null, domain: false, ticks: false, labelExpr: "words[datum.value]", ...axis },
  });
  return {
    // Mean magnitudes of filtered rows as bars, of all rows as marks
    features: bars("features", {}, [{ calculate: "datum.name + ': ' + datum.text", as: "said" }], {}, [
      {
        mark: { type: "bar", color: accent, cursor: "pointer", cornerRadius: 1 },
        encoding: {
          description: { field: "said", type: "nominal" },
          x: quantity("strength", {
            title: "mean |value|", scale: { zero: true, nice: true },
            axis: { tickCount: 5, labelOverlap: "greedy", labelSeparation: 6 },
          }),
          opacity: { condition: { test: "datum.chosen", value: 1 }, value: 0.72 },
        },
      },
      {
        transform: [{ filter: "isValid(datum.every)" }],
        mark: { type: "tick", aria: false, color: ink, thickness: 2, bandSize: 14 },
        encoding: { x: quantity("every") },
      },
      written(5, { field: "text", type: "nominal" }),
    ]),
    // The path from baseline to prediction; extent and widest keep the same room for A and B at either side
    row: bars("row", { minExtent: { expr: "extent" } }, [
      { calculate: "datum.end ? 'end' : datum.stop < datum.start ? 'down' : 'up'", as: "sign" },
      { calculate: "datum.word + ': ' + datum.text", as: "said" },
    ], { limits: [0, 1], extent: 0, widest: "" }, [
      {
        transform: [{ filter: "!datum.end" }],
        mark: { type: "bar", cursor: "pointer", cornerRadius: 1 },
        encoding: {
          description: { field: "said", type: "nominal" },
          x: quantity("start", { title: null, scale: limits, axis: { tickCount: 4 } }),
          x2: { field: "stop" },
          color: {
            field: "sign", type: "nominal", legend: null,
            scale: { domain: ["up", "down"], range: ["var(--plus)", "var(--minus)"] },
          },
        },
      },
      {
        transform: [{ filter: "datum.end" }],
        mark: { type: "tick", aria: false, color: ink, thickness: 3, bandSize: 16 },
        encoding: { x: quantity("stop", { scale: limits }) },
      },
      {
        transform: [{ filter: "isValid(datum.low)" }],
        mark: { type: "rule", aria: false, color: ink, strokeWidth: 1.5 },
        encoding: { x: quantity("low"), x2: { field: "high" } },
      },
      written(8, { field: "text", type: "nominal" }),
      written(8, { value: { expr: "widest" } }, { opacity: 0 }),
    ]),
    number: scattered("quantitative", { zero: false }),
    date: scattered("temporal", { type: "utc" }),
    text: scattered("quantitative", { zero: false }, {
      values: { expr: "sequence(length(words))" }, labelExpr: "words[datum.value]",
    }),
    // Mean magnitudes of pairs; a click opens the scatter of the pair
    pairs: chart({}, {
      data: { name: "pairs" },
      encoding: { x: place("first", { labelAngle: -40, labelLimit: 110, orient: "top" }), y: place("second") },
      layer: [
        {
          mark: { type: "rect", color: accent, cursor: "pointer", stroke: "var(--line)" },
          encoding: {
            description: { field: "said", type: "nominal" },
            opacity: quantity("share", { legend: null, scale: { domain: [0, 1], range: [0.06, 1] } }),
          },
        },
        {
          mark: { type: "text", aria: false, fontSize: 10 },
          encoding: {
            text: { field: "text", type: "nominal" },
            color: { condition: { test: "datum.share > 0.6", value: "var(--on)" }, value: ink },
          },
        },
      ],
    }),
  };
})();
