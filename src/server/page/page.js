/* The page: search, browse, health. It asks the server that it came from and nobody else.
 *
 * Nothing from the server or from a caption becomes markup: elements are made one by one, texts are
 * texts. Pictures come by fetch, so that the key goes along, and are shown from memory. */
"use strict";

const PAGE = 24; /* hits asked for at first, and as many more each time */
const CONFIDENT = 0.05; /* p(match) below which a hit is no better than 1 in 20 */
const TICK_MS = 2000, TICKS = 60; /* of the health view */

const $ = (id) => document.getElementById(id);
let key = "";
try { key = sessionStorage.getItem("penumbra-key") || ""; } catch (e) { /* no storage: asked again */ }
let collections = [];
let asked = null; /* the query shown: {text} | {image} | {id}, with its collection and k */
let turn = 0; /* answers of earlier turns are dropped */

/* ---- elements ---- */

function make(name, props, ...children) {
  const svg = ["svg", "ellipse", "circle", "text", "line", "polyline", "title"].includes(name);
  const e = svg ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
  for (const [k, v] of Object.entries(props || {})) {
    if (v === undefined || v === null || v === false) continue;
    if (k.startsWith("on")) e.addEventListener(k.slice(2), v);
    else e.setAttribute(k, v === true ? "" : v);
  }
  e.append(...children.filter((c) => c !== null && c !== undefined));
  return e;
}

function percent(p) {
  return p >= 0.9995 ? "100%" : p < 0.001 ? "<0.1%" : p < 0.1 ? (100 * p).toFixed(1) + "%" : Math.round(100 * p) + "%";
}

function short(x) {
  return x === null || x === undefined ? "unknown" : Number(x.toPrecision(3)).toString();
}

/* ---- the server ---- */

class Refused extends Error {}

async function ask(path, body, as) {
  const headers = {};
  if (key) headers.Authorization = "Bearer " + key;
  if (body) headers["Content-Type"] = "application/json";
  let answer;
  try {
    answer = await fetch(path, { method: body ? "POST" : "GET", headers, body: body ? JSON.stringify(body) : undefined });
  } catch (e) {
    throw new Error("The server does not answer.");
  }
  if (answer.status === 401) {
    $("key-form").hidden = false;
    $("key").focus();
    throw new Refused("A key is wanted.");
  }
  if (!answer.ok) {
    let text = "The server answered " + answer.status + ".";
    try { text = (await answer.json()).error.message; } catch (e) { /* no JSON */ }
    throw new Error(text);
  }
  return as === "blob" ? answer.blob() : as === "text" ? answer.text() : answer.json();
}

/* ---- pictures ---- */

let shown = []; /* addresses of pictures in memory */

function forgetPictures() {
  shown.forEach((url) => URL.revokeObjectURL(url));
  shown = [];
}

async function showPicture(img, collection, row) {
  try {
    const blob = await ask("/v1/collections/" + encodeURIComponent(collection) + "/thumbnails/" + row, null, "blob");
    const url = URL.createObjectURL(blob);
    shown.push(url);
    img.src = url;
  } catch (e) { /* a row that went meanwhile: its words stay */ }
}

function nameOf(hit) {
  return hit.caption || String(hit.id).split("/").pop();
}

/* What stands for a row: its picture, or its words. */
function pictureOf(hit, collection) {
  const box = make("div", { class: "picture" });
  if (hit.thumbnail) {
    const img = make("img", { alt: nameOf(hit) });
    showPicture(img, collection, hit.row);
    box.append(img);
  } else {
    box.append(make("span", { class: "words" }, nameOf(hit)));
  }
  return box;
}

/* ---- hits ---- */

function bar(p) {
  const fill = make("span", { class: "fill" });
  fill.style.width = 100 * p + "%";
  return make("div", { class: "bar" },
    make("span", { class: "rail", role: "meter", "aria-label": "p(match)", "aria-valuemin": "0", "aria-valuemax": "1",
      "aria-valuenow": p.toFixed(3), "aria-valuetext": percent(p) }, fill),
    make("span", { "aria-hidden": "true" }, percent(p)));
}

function card(hit, collection, extra) {
  const about = make("div", { class: "about" });
  if (hit.thumbnail) about.append(make("span", { class: "caption" }, nameOf(hit)));
  if (extra) about.append(extra);
  about.append(make("span", { class: "unsure" }, "uncertainty " + short(hit.uncertainty)));
  about.append(make("div", { class: "more" }, make("button", { type: "button", class: "like",
    "aria-label": "More like " + nameOf(hit), onclick: () => search({ id: hit.id, collection }) }, "More like this")));
  return make("li", { class: "hit" }, pictureOf(hit, collection), about);
}

function lineOfConfidence() {
  return make("li", { class: "line" }, make("span", {}, "below this line no result is better than 1 in 20"));
}

function showHits(hits, collection, hasOdds) {
  const list = $("hits");
  let isBelow = false;
  for (const hit of hits) {
    if (hasOdds && !isBelow && hit.p_match < CONFIDENT) {
      isBelow = true;
      list.append(lineOfConfidence());
    }
    const extra = hasOdds ? bar(hit.p_match) : make("span", {}, "score " + short(hit.score));
    const item = card(hit, collection, extra);
    if (isBelow) item.classList.add("below");
    list.append(item);
  }
}

/* ---- the verdict ---- */

function queryWords(query) {
  if (query.uncertainty === null) return "";
  const what = asked.image ? "The picture" : asked.id ? "The row" : "The query";
  if (query.words) return what + " is " + query.words + ".";
  return what + " has the uncertainty " + short(query.uncertainty) + "; nothing served says whether that is much.";
}

function verdict(answer, n, hasOdds) {
  const box = $("verdict");
  const good = hasOdds ? answer.hits.filter((h) => h.p_match >= CONFIDENT).length : n;
  const none = n === 0 || (hasOdds && good === 0);
  const vague = answer.hint === "too_vague";
  const lines = [];
  if (none) {
    lines.push(make("p", {}, make("strong", {}, "No good result")));
    lines.push(make("p", {}, n === 0 ? "Nothing was found in " + answer.collection + "."
      : "The nearest of " + answer.collection + " matches with p " + (answer.hits[0].p_match < 0.001 ? "below 0.1%." : "= " + percent(answer.hits[0].p_match) + ".")));
  }
  const words = queryWords(answer.query);
  if (words) lines.push(make("p", { class: "query-words" }, words));
  if (vague && answer.suggestions.length > 0) lines.push(make("p", {}, "A narrower one may find more."));
  if (!hasOdds && n > 0)
    lines.push(make("p", {}, "What a score is worth is not known here: `penumbra calibrate` finds out."));
  box.replaceChildren(make("div", { class: "verdict" + (none ? " none" : vague ? " vague" : "") }, ...lines));
  if (lines.length === 0) box.replaceChildren();
  $("status").textContent = none ? "No good result." : n + (n === 1 ? " hit" : " hits") +
    (hasOdds && good < n ? ", " + good + " above the line." : ".");
  return none;
}

function showRelated(answer) {
  const box = $("related");
  box.replaceChildren();
  for (const [label, list] of [["Narrower", answer.narrower], ["Broader", answer.broader]]) {
    const words = [...new Set((list || []).map((x) => x.caption))].filter((x) => x && x !== asked.text);
    if (words.length === 0) continue;
    box.append(make("p", {}, make("span", { class: "label" }, label),
      ...words.map((w) => make("a", { href: "#q=" + encodeURIComponent(w) }, w))));
  }
}

/* ---- the flat view ---- */

/* Half axes and angle of the ellipse of one standard deviation. */
function ellipseOf([, , xx, xy, yy]) {
  const mid = (xx + yy) / 2, off = Math.hypot((xx - yy) / 2, xy);
  return { a: Math.sqrt(Math.max(mid + off, 0)), b: Math.sqrt(Math.max(mid - off, 0)), angle: 0.5 * Math.atan2(2 * xy, xx - yy) };
}

function showPlane(plane, hits) {
  const isSmall = window.innerWidth < 550, W = isSmall ? 380 : 720, H = isSmall ? 360 : 440, PAD = 28;
  const box = $("plane-box");
  $("plane").hidden = !plane;
  if (!plane) { box.replaceChildren(); return; }
  const all = [...plane.hits.map((p, i) => ({ p, e: ellipseOf(p), name: nameOf(hits[i]), rank: i + 1 })),
    { p: plane.query, e: ellipseOf(plane.query), name: "query" }];
  const low = [Infinity, Infinity], high = [-Infinity, -Infinity];
  for (const { p, e } of all)
    for (const d of [0, 1]) {
      low[d] = Math.min(low[d], p[d] - e.a);
      high[d] = Math.max(high[d], p[d] + e.a);
    }
  const scale = Math.min((W - 2 * PAD) / Math.max(high[0] - low[0], 1e-9), (H - 2 * PAD) / Math.max(high[1] - low[1], 1e-9));
  const x = (v) => W / 2 + scale * (v - (low[0] + high[0]) / 2), y = (v) => H / 2 - scale * (v - (low[1] + high[1]) / 2);
  const svg = make("svg", { viewBox: `0 0 ${W} ${H}`, role: "img",
    "aria-label": `The query and ${plane.hits.length} hits as ellipses; the two axes show ${percent(plane.share[0] + plane.share[1])} of the spread` });
  for (const { p, e, name, rank } of all) {
    const kind = rank ? "" : " query";
    svg.append(make("ellipse", { class: "ellipse" + kind, rx: Math.max(scale * e.a, 2), ry: Math.max(scale * e.b, 2),
      transform: `translate(${x(p[0])} ${y(p[1])}) rotate(${-e.angle * 180 / Math.PI})` }, make("title", {}, name)));
    svg.append(make("circle", { class: "dot" + kind, cx: x(p[0]), cy: y(p[1]), r: rank ? 3 : 5 }));
    if (!rank || rank <= 9) /* more would lie on each other */
      svg.append(make("text", x(p[0]) > 0.85 * W ? { x: x(p[0]) - 6, y: y(p[1]) - 6, "text-anchor": "end" } : { x: x(p[0]) + 6, y: y(p[1]) - 6 }, rank ? String(rank) : "query"));
  }
  box.replaceChildren(svg);
}

/* ---- searching ---- */

function body() {
  const b = { k: asked.k, collection: asked.collection, related: true, plane: true, thumbnails: true };
  for (const kind of ["text", "image", "id"]) if (asked[kind]) b[kind] = asked[kind];
  return b;
}

function problem(e) {
  $("status").textContent = "";
  if (!(e instanceof Refused)) $("problem").textContent = e.message;
}

async function search(query) {
  const mine = ++turn;
  asked = { k: PAGE, collection: $("collection").value || undefined, ...query };
  $("asked").hidden = !asked.image;
  if (asked.image) $("asked-picture").src = asked.image;
  if (!asked.text) $("text").value = "";
  $("problem").textContent = "";
  $("welcome").hidden = true;
  $("status").textContent = "Searching…";
  show("search");
  try {
    const answer = await ask("/v1/search", body());
    if (mine !== turn) return;
    showAnswer(answer);
  } catch (e) {
    if (mine !== turn) return;
    $("result").hidden = true;
    problem(e);
  }
}

function showAnswer(answer) {
  const n = answer.hits.length, hasOdds = n > 0 && answer.hits[0].p_match !== null;
  forgetPictures();
  $("hits").replaceChildren();
  $("result").hidden = false;
  const none = verdict(answer, n, hasOdds);
  const draw = () => showHits(answer.hits, answer.collection, hasOdds);
  showRelated(answer);
  showPlane(none ? null : answer.plane, answer.hits);
  if (none && n > 0)
    $("hits").append(make("li", { class: "line" }, make("button", { type: "button", id: "all-the-same",
      onclick: () => { $("hits").replaceChildren(); draw(); } }, "Show the nearest all the same")));
  else draw();
  if (!none && n === asked.k && n < 1000 && !(hasOdds && answer.hits[n - 1].p_match < CONFIDENT))
    $("hits").append(make("li", { class: "line" }, make("button", { type: "button",
      onclick: () => search({ ...asked, k: Math.min(asked.k + PAGE, 1000) }) }, "More")));
}

function searchPicture(file) {
  if (!file || !file.type.startsWith("image/")) {
    $("problem").textContent = "That is no picture.";
    return;
  }
  const reader = new FileReader();
  reader.onload = () => { if (location.hash.startsWith("#q=")) history.replaceState(null, "", "#search"); search({ image: reader.result }); };
  reader.onerror = () => { $("problem").textContent = "The picture could not be read."; };
  reader.readAsDataURL(file);
}

/* ---- browsing ---- */

async function browse() {
  const mine = ++turn, box = $("browse-result"), by = $("by").value;
  $("browse-status").textContent = "Looking…";
  try {
    const answer = await ask("/v1/browse", { collection: $("browse-collection").value || undefined, by, k: 2 * PAGE, thumbnails: true });
    if (mine !== turn) return;
    forgetPictures();
    showBrowsed(answer, box);
  } catch (e) {
    if (mine !== turn) return;
    box.replaceChildren();
    $("browse-status").textContent = e.message;
  }
}

function listOf(hits, collection, label) {
  return make("ol", { class: "hits", "aria-label": label }, ...hits.map((h) =>
    card(h, collection, h.score === undefined ? null : make("span", {}, "nearness of others " + short(h.score)))));
}

function showBrowsed(answer, box) {
  const n = answer.hits.length, part = answer.n_looked < answer.n_rows ? ` among the newest ${answer.n_looked}` : "";
  const words = { newest: "newest", certain: "most certain first", uncertain: "least certain first",
    outliers: "those that stand alone first", duplicates: "nearly the same" }[answer.by];
  $("browse-status").textContent = n === 0 ? (answer.by === "duplicates" ? "No near-duplicates" + part + "." : "Nothing here yet.")
    : `${n} of ${answer.n_rows} rows${part}, ${words}.`;
  if (answer.by !== "duplicates") {
    box.replaceChildren(listOf(answer.hits, answer.collection, words));
    return;
  }
  const groups = new Map();
  for (const h of answer.hits) groups.set(h.group, [...(groups.get(h.group) || []), h]);
  box.replaceChildren(...[...groups.values()].map((g, i) => make("div", { class: "group" },
    make("h3", {}, `${g.length} that are nearly the same`), listOf(g, answer.collection, "Group " + (i + 1)))));
}

/* ---- health ---- */

let ticker = 0;
const history60 = { rate: [], p50: [], p95: [] };
let before = null;

function readMetrics(text) {
  const m = { total: 0, buckets: new Map(), routes: new Map(), gauges: {} };
  for (const line of text.split("\n")) {
    const found = line.match(/^penumbra_([a-z_]+)(?:\{(.*)\})? (\S+)$/);
    if (!found) continue;
    const [, name, labels, number] = found, value = Number(number);
    const label = (k) => (labels && labels.match(new RegExp(`(?:^|,)${k}="([^"]*)"`)) || [])[1];
    const route = label("route");
    if (!labels) m.gauges[name] = value;
    if (!route || !(route.startsWith("/v1/") || route.startsWith("/knn"))) continue;
    const r = m.routes.get(route) || { n: 0, failed: 0, sum: 0 };
    m.routes.set(route, r);
    if (name === "requests_total") {
      r.n += value;
      m.total += value;
      if (Number(label("code")) >= 400) r.failed += value;
    }
    if (name === "request_seconds_sum") r.sum += value;
    if (name === "request_seconds_bucket") m.buckets.set(label("le"), (m.buckets.get(label("le")) || 0) + value);
  }
  return m;
}

/* The second below which a share of the requests since the last look stayed, by the buckets. */
function quantile(now, then, share) {
  const count = (le) => now.buckets.get(le) - (then.buckets.get(le) || 0);
  const whole = now.buckets.has("+Inf") ? count("+Inf") : 0;
  if (whole === 0) return null;
  let low = 0, below = 0;
  for (const le of now.buckets.keys()) {
    const n = count(le), high = le === "+Inf" ? low : Number(le);
    if (n >= share * whole) return n === below ? high : low + (high - low) * (share * whole - below) / (n - below);
    low = high;
    below = n;
  }
  return low;
}

function chart(title, lists, unit) {
  const all = lists.flat().filter((v) => v !== null), highest = Math.max(...all, 0), top = highest || 1;
  const svg = make("svg", { viewBox: "0 0 100 40", preserveAspectRatio: "none", "aria-hidden": "true" });
  svg.append(make("line", { class: "axis", x1: 0, x2: 100, y1: 39, y2: 39 }));
  lists.forEach((list, i) => {
    const points = list.map((v, k) => [100 * (k + TICKS - list.length) / (TICKS - 1), v]).filter(([, v]) => v !== null)
      .map(([a, v]) => `${a.toFixed(1)},${(38 - 36 * v / top).toFixed(1)}`);
    svg.append(make("polyline", { class: i ? "second" : "", points: points.join(" ") }));
  });
  return make("figure", { class: "chart" }, make("figcaption", {}, `${title}, highest ${short(highest)} ${unit}`), svg);
}

function milliseconds(s) {
  return s === null || s === undefined ? "–" : s < 1 ? (1000 * s).toPrecision(2).replace(/e.*/, "") + " ms" : s.toFixed(1) + " s";
}

function showHealth(m, seconds) {
  const last = (list) => list[list.length - 1];
  const rows = [["Requests a second", seconds ? short(last(history60.rate) || 0) : "–"], ["Half answer within", milliseconds(last(history60.p50))],
    ["95 of 100 within", milliseconds(last(history60.p95))], ["Being worked on", m.gauges.requests_processing],
    ["Waiting", m.gauges.requests_waiting], ["Connections", m.gauges.connections], ["Up for", upFor(m.gauges.uptime_seconds)]];
  $("figures").replaceChildren(...rows.map(([a, b]) => make("div", {}, make("dt", {}, a), make("dd", {}, String(b)))));
  $("charts").replaceChildren(chart("Requests a second", [history60.rate], "a second"),
    chart("Latency, half (solid) and 95 of 100 (dashed)", [history60.p50, history60.p95].map((l) => l.map((v) => v === null ? null : 1000 * v)), "ms"));
  $("routes").tBodies[0].replaceChildren(...[...m.routes].filter(([, r]) => r.n > 0).map(([name, r]) => make("tr", {},
    make("th", { scope: "row" }, name), make("td", {}, String(r.n)), make("td", {}, String(r.failed)), make("td", {}, milliseconds(r.sum / r.n)))));
}

function upFor(s) {
  return s < 120 ? s + " s" : s < 7200 ? Math.round(s / 60) + " min" : s < 172800 ? Math.round(s / 3600) + " h" : Math.round(s / 86400) + " d";
}

async function tick() {
  try {
    const now = readMetrics(await ask("/metrics", null, "text")), at = performance.now() / 1000;
    const seconds = before ? at - before.at : 0;
    if (before) {
      history60.rate.push(Math.max(0, (now.total - before.m.total) / seconds));
      history60.p50.push(quantile(now, before.m, 0.5));
      history60.p95.push(quantile(now, before.m, 0.95));
      for (const list of Object.values(history60)) if (list.length > TICKS) list.shift();
    }
    before = { m: now, at };
    $("health-status").textContent = "The server answers. Figures are of the last two seconds.";
    showHealth(now, seconds);
  } catch (e) {
    $("health-status").textContent = e.message;
  }
}

/* ---- views ---- */

function show(view) {
  for (const name of ["search", "browse", "health"]) {
    $("view-" + name).hidden = name !== view;
    if (name === view) $("to-" + name).setAttribute("aria-current", "page");
    else $("to-" + name).removeAttribute("aria-current");
  }
  document.title = { search: "Penumbra", browse: "Browse – Penumbra", health: "Health – Penumbra" }[view];
  clearInterval(ticker);
  if (view === "health") {
    tick();
    ticker = setInterval(tick, TICK_MS);
  }
}

function route() {
  const hash = location.hash;
  if (hash.startsWith("#q=")) {
    $("text").value = decodeURIComponent(hash.slice(3));
    search({ text: $("text").value });
  } else if (hash === "#browse") {
    show("browse");
    browse();
  } else if (hash === "#health") {
    show("health");
  } else if (hash !== "#main") {
    show("search");
  }
}

function fillChoices() {
  for (const id of ["collection", "browse-collection"])
    $(id).replaceChildren(...collections.map((c) => make("option", { value: c.name }, `${c.name} (${c.n_rows})`)));
  const pictures = collections.find((c) => c.modality === "image");
  if (pictures) $("collection").value = $("browse-collection").value = pictures.name;
}

async function begin() {
  try {
    const model = (await ask("/v1/models")).data[0];
    collections = (await ask("/v1/collections")).data;
    $("model").textContent = `${model.id}: ${model.meta.image_family}, ${model.meta.dim} dimensions`;
    fillChoices();
    $("key-form").hidden = true;
    if (collections.length === 0)
      $("problem").textContent = "Nothing to search in is served: start the server with --collection.";
    route();
  } catch (e) {
    problem(e);
  }
}

/* ---- events ---- */

$("search-form").addEventListener("submit", (e) => {
  e.preventDefault();
  const text = $("text").value.trim();
  if (!text) { $("status").textContent = "Say what to look for."; return; }
  const hash = "#q=" + encodeURIComponent(text);
  if (location.hash === hash) search({ text });
  else location.hash = hash;
});
$("key-form").addEventListener("submit", (e) => {
  e.preventDefault();
  key = $("key").value.trim();
  try { sessionStorage.setItem("penumbra-key", key); } catch (x) { /* kept for this page alone */ }
  begin();
});
$("picture").addEventListener("change", (e) => { searchPicture(e.target.files[0]); e.target.value = ""; });
$("forget").addEventListener("click", () => {
  turn++;
  asked = null;
  $("asked").hidden = $("result").hidden = true;
  $("welcome").hidden = false;
  $("status").textContent = "";
  $("text").focus();
});
$("collection").addEventListener("change", () => { if (asked) search({ ...asked, k: PAGE, collection: $("collection").value }); });
$("browse-collection").addEventListener("change", browse);
$("by").addEventListener("change", browse);
window.addEventListener("hashchange", route);

let depth = 0;
const hasFile = (e) => e.dataTransfer && [...e.dataTransfer.types].includes("Files");
window.addEventListener("dragenter", (e) => { if (hasFile(e)) { depth++; $("drop").hidden = false; e.preventDefault(); } });
window.addEventListener("dragover", (e) => { if (hasFile(e)) e.preventDefault(); });
window.addEventListener("dragleave", () => { depth = Math.max(0, depth - 1); if (depth === 0) $("drop").hidden = true; });
window.addEventListener("drop", (e) => {
  e.preventDefault();
  depth = 0;
  $("drop").hidden = true;
  searchPicture(e.dataTransfer.files[0]);
});
window.addEventListener("paste", (e) => {
  const file = [...(e.clipboardData ? e.clipboardData.files : [])].find((f) => f.type.startsWith("image/"));
  if (file) searchPicture(file);
});

begin();
