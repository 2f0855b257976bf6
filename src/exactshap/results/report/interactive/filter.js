// The language of filters, as results/data/_filter.py reads it; GRAMMAR is the table that both share.
// readFilter(text, columns) gives a test of a row. `columns`: names, find(name) -> {name, kind, known(i), cell(i), bound(x)}, words(i).
function readFilter(where, columns) {
  const slip = (kind, ...words) => { throw new Error(GRAMMAR.slips[kind].replace(/\{(\d)\}/g, (_, k) => words[k])); };
  const tokens = [...where.matchAll(new RegExp(GRAMMAR.token, "g"))].map(([, quoted, sign, word, other]) => {
    if (other) slip("quote", where.slice(where.indexOf(other)));
    return quoted ? { kind: "text", text: quoted.slice(1, -1) } : { kind: sign ? "sign" : "word", text: sign ?? word };
  });
  tokens.push({ kind: "end", text: "" });
  let at = 0;
  const reads = (...words) => ["word", "sign"].includes(tokens[at].kind) && words.includes(tokens[at].text.toLowerCase());
  const take = (...words) => reads(...words) && ++at > 0;
  const place = () => (at ? GRAMMAR.after.replace("{0}", () => tokens[at - 1].text) : GRAMMAR.start);
  const expect = (word) => take(word) || slip("word", place(), word);
  const phrase = (ends) => { // words up to the next sign or keyword, or a text in quotes
    if (tokens[at].kind === "text") return { text: tokens[at++].text };
    const words = [];
    while (tokens[at].kind === "word" && !reads(...GRAMMAR[ends])) words.push(tokens[at++].text);
    return { text: words.length ? words.join(" ") : null, bare: true };
  };
  const value = () => { const read = phrase("ends_value"); return read.text === null ? slip("value", place()) : read; };
  const joined = (part, word) => {
    const parts = [part()];
    while (take(word)) parts.push(part());
    return (i) => parts[word === "or" ? "some" : "every"]((holds) => holds(i));
  };
  const any = () => joined(() => joined(one, "and"), "or");
  function one() {
    if (take("(")) { const inner = any(); expect(")"); return inner; }
    const { text: name } = phrase("ends_name");
    if (name === null && (tokens[at].kind === "end" || reads("and", "or", ")"))) slip("condition", place());
    if (name === null) slip("extra", tokens[at].text);
    const sign = tokens[at].kind === "sign" && GRAMMAR.signs[tokens[at].text];
    if (sign) {
      at++;
      const { text, bare } = value();
      if (bare && text.toLowerCase() === "missing" && "!=".endsWith(sign)) return missing(name, sign === "!=");
      return compare(name, sign, text);
    }
    if (take("is")) { const negative = take("not"); expect("missing"); return missing(name, negative); }
    if (reads("in", "not", "between")) return listed(name, take("not"));
    if (columns.names.some((other) => other.toLowerCase() === name.toLowerCase())) slip("sign", name);
    return (i) => columns.words(i).some((word) => word.toLowerCase().includes(name.toLowerCase()));
  }
  function listed(name, negative) {
    if (take("between")) {
      const low = value().text; expect("and");
      const high = value().text, [a, b] = negative ? ["<", ">"] : [">=", "<="];
      const [first, second] = [compare(name, a, low), compare(name, b, high)];
      return (i) => (negative ? first(i) || second(i) : first(i) && second(i));
    }
    expect("in");
    const bracket = take("("), values = [value().text];
    while (take(",")) values.push(value().text);
    if (bracket) expect(")");
    const tests = values.map((text) => compare(name, negative ? "!=" : "=", text));
    return (i) => tests[negative ? "every" : "some"]((holds) => holds(i));
  }
  const later = (make) => { let test; checks.push(() => { test = make(); }); return (i) => test(i); }; // first the whole is read
  const found = (name) => columns.find(name) ?? slip("column", name,
    columns.names.slice(0, 8).join(", ") + (columns.names.length > 8 ? " and others" : ""));
  const missing = (name, negative) => later(() => { const { known } = found(name); return (i) => known(i) === negative; });
  const compare = (name, sign, text) => later(() => {
    const column = found(name), { kind, cell, known } = column;
    if (kind === "text" && !"!=".endsWith(sign)) slip("order", column.name, sign);
    const bound = kind === "text" ? text.toLowerCase() : column.bound(numberOf(kind, text));
    if (Number.isNaN(bound)) slip(kind, column.name, text);
    return (i) => known(i) && SIGNS[sign](cell(i), bound);
  });
  const checks = [], test = any();
  if (tokens[at].kind !== "end") slip("extra", tokens[at].text);
  for (const check of checks) check();
  return test;
}
const SIGNS = { "=": (a, b) => a === b, "!=": (a, b) => a !== b, "<": (a, b) => a < b, "<=": (a, b) => a <= b,
  ">": (a, b) => a > b, ">=": (a, b) => a >= b };
function numberOf(kind, text) {
  if (kind === "number") return GRAMMAR.truth[text.toLowerCase()] ?? (new RegExp(GRAMMAR.number, "i").test(text) ? Number(text) : NaN);
  if (!new RegExp(GRAMMAR.date).test(text)) return NaN;
  const time = Date.parse(text.replace(" ", "T") + (text.length > 10 ? "Z" : ""));
  return new Date(time || 0).toISOString().startsWith(text.slice(0, 10)) ? time / 864e5 : NaN; // no 30th of February
}
