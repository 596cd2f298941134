// The page of `fleetrun ui`. What a job says is data: it becomes text nodes, never HTML.
"use strict";

const byId = (id) => document.getElementById(id);

function element(name, text, className) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
}

/** Of a node of text, or an element that has nothing else. */
function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

// ---- The server. ----

async function ask(path, body) {
  const post = { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  let response;
  try {
    response = await fetch(path, body ? post : {});
  } catch {
    throw new Error(job && !job.running ? "The job has ended, and the page with it. To look at more than what is here: fleetrun ui"
      : "The page's server does not answer: it may have ended.");
  }
  const answer = await response.json();
  if (!response.ok) {
    const refused = new Error(answer.error + (answer.hint ? " (" + answer.hint + ")" : ""));
    refused.status = response.status;
    throw refused;
  }
  return answer;
}

const ofJob = (what) => "/api/jobs/" + encodeURIComponent(job.pod) + "/" + what;
const query = (words) => new URLSearchParams(words).toString();

function say(message) {
  setText(byId("message"), message);
  byId("message").hidden = !message;
}

// ---- Numbers for people. ----

const grouped = new Intl.NumberFormat("en");

function bytes(count) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (count >= 1024 && unit + 1 < units.length) count /= 1024, ++unit;
  return count.toFixed(unit && count < 100 ? 1 : 0) + " " + units[unit];
}

function time(seconds) {
  const whole = Math.floor(seconds);
  const two = (number) => String(number).padStart(2, "0");
  if (whole < 60) return whole + " s";
  if (whole < 3600) return Math.floor(whole / 60) + ":" + two(whole % 60);
  return Math.floor(whole / 3600) + ":" + two(Math.floor(whole / 60) % 60) + ":" + two(whole % 60);
}

// ---- Which job. ----

let jobs = [];
let job = null; // of jobs
let state = null; // its status, as `fleetrun status --json` has it
let before = new Map(); // process name → what it had used, and when, for the CPU's share

async function lookForJobs() {
  jobs = await ask("/api/jobs");
  jobs.sort((a, b) => b.running - a.running || (a.began < b.began ? 1 : -1));
  const choice = byId("job");
  const names = jobs.map((one) => (one.job_id || "?") + " · " + one.pod + (one.running ? " · running" : " · ended"));
  while (choice.length > jobs.length) choice.remove(choice.length - 1);
  jobs.forEach((one, index) => {
    if (!choice.options[index]) choice.add(element("option"));
    setText(choice.options[index], names[index]);
    choice.options[index].value = one.pod;
  });
  byId("empty").hidden = jobs.length > 0;
  byId("tabs").hidden = jobs.length === 0;
  const same = job && jobs.find((one) => one.pod === job.pod);
  if (same) {
    const hasEnded = job.running && !same.running;
    job = same;
    choice.value = job.pod;
    if (hasEnded) await begin();
  } else if (jobs.length > 0) {
    job = jobs[0];
    choice.value = job.pod;
    await begin();
  }
}

/** Shows `job` from its beginning. */
async function begin() {
  before = new Map();
  say("");
  timeline.clear();
  for (const view of ["curves", "servers", "verdict"]) {
    byId(view).replaceChildren();
    byId("tab-" + view).hidden = true;
  }
  await showState();
  await log.choose();
  await Promise.all([timeline.take(), showCurves(), showServers(), showVerdict()]);
  if (byId("tab-" + shown).hidden) show("processes");
}

// ---- The processes. ----

const columns = ["name", "role", "rank", "state", "attempt", "starts", "pid", "cpu", "memory", "time", "last"];

function share(process) {
  if (process.cpu_seconds == null) return "";
  const last = before.get(process.name);
  before.set(process.name, { pid: process.pid, cpu: process.cpu_seconds, at: process.uptime_seconds });
  const began = last && last.pid === process.pid ? last : { cpu: 0, at: 0 };
  const passed = process.uptime_seconds - began.at;
  return passed > 0 ? Math.round(Math.max(0, process.cpu_seconds - began.cpu) / passed * 100) + " %" : "";
}

function cells(process) {
  const exit = process.exit ? " (" + (process.exit.signal || process.exit.status) + ")" : "";
  return {
    ...process,
    state: process.state + exit,
    cpu: share(process),
    pid: process.pid > 0 ? process.pid : "",
    memory: process.rss_bytes == null ? "" : bytes(process.rss_bytes),
    time: process.uptime_seconds == null ? "" : time(process.uptime_seconds),
    last: process.cause || process.last_line || "",
  };
}

const rowsOfGroup = 16; // that are filled, laid out and painted in one turn, or left out where nobody sees them
const rows = []; // of the table

function addRow(index) {
  const groups = byId("rows").tBodies;
  const group = index % rowsOfGroup ? groups[groups.length - 1] : byId("rows").createTBody();
  group.setAttribute("role", "rowgroup"); // it is laid out as no table is
  const row = group.insertRow(), cell = (className) => row.appendChild(element("td", undefined, className));
  row.texts = columns.map((column) => cell(column).appendChild(document.createTextNode("")));
  const add = (label, action) => {
    const button = element("button", label);
    button.addEventListener("click", () => action(state.processes[index]));
    return button;
  };
  row.buttons = [add("Logs", (process) => log.open(process)), add("Signal…", (process) => sendSignal(process)),
    add("Restart…", (process) => restart(process))];
  cell().append(...row.buttons);
  row.setAttribute("role", "row");
  for (const one of row.cells) one.setAttribute("role", "cell");
  return row;
}

function fillRow(row, process) {
  const values = cells(process);
  columns.forEach((column, at) => setText(row.texts[at], String(values[column])));
  if (row.name !== process.name) {
    row.name = process.name;
    for (const button of row.buttons)
      button.setAttribute("aria-label", button.textContent.replace("…", "") + " " + process.name);
  }
  if (row.cells[3].className !== process.state) row.cells[3].className = process.state;
  for (const button of row.buttons.slice(1)) if (button.hidden === job.running) button.hidden = !job.running;
}

let fillings = 0;

async function showProcesses() {
  if (shown !== "processes") return;
  const { processes } = state, filling = ++fillings;
  while (rows.length > processes.length) {
    const { parentElement: group } = rows.at(-1);
    rows.pop().remove();
    if (group.rows.length === 0) group.remove();
  }
  for (let index = 0; index < processes.length; ++index) {
    if (index === rows.length) rows.push(addRow(index));
    fillRow(rows[index], processes[index]);
    if (index % rowsOfGroup !== rowsOfGroup - 1 && index < processes.length - 1) continue;
    rows[index].parentElement.hidden = false;
    await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
    if (filling !== fillings || shown !== "processes") return; // a newer state is shown
  }
}

function fact(name, value) {
  const pair = element("div");
  pair.append(element("dt", name), element("dd", value));
  return pair;
}

async function showState() {
  state = await ask(ofJob("status"));
  const facts = [
    ["Job", state.job_id], ["Pod", state.pod], ["Mode", state.mode], ["Attempt", String(state.attempt)],
    ["Time", time(state.uptime_seconds || 0)], ["Began", job.began.replace("T", " ").slice(0, 19) + " UTC"],
    ["Logs", job.log_dir], ["Hosts", (state.hosts || []).join(", ")], ["Why", state.phase_reason],
    ["Exit status", state.exit_status == null ? "" : String(state.exit_status)],
    ["Restarts", (state.restarts || []).map((one) => one.process + ": " + one.cause).join("; ")],
  ];
  byId("facts").replaceChildren(...facts.filter(([, value]) => value).map(([name, value]) => fact(name, value)));
  const phase = state.phase + (state.exit_status == null ? "" : " with exit status " + state.exit_status);
  setText(byId("phase"), phase);
  byId("phase").className = state.exit_status ? "failed" : state.phase;
  byId("buttons").hidden = !job.running;
  document.title = state.job_id + " " + phase + " · fleetrun";
  await showProcesses();
}

// ---- What can be done to a job. ----

/** Asks the user; gives what was chosen, or null. */
function question(text, { signal = false, now = false } = {}) {
  const dialog = byId("ask");
  setText(byId("question"), text);
  byId("which").hidden = !signal;
  byId("at-once").hidden = !now;
  byId("now").checked = false;
  dialog.returnValue = "no";
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => resolve(
      dialog.returnValue === "yes" ? { signal: byId("number").value, now: byId("now").checked } : null), { once: true });
  });
}

async function act(what, body) {
  try {
    await ask(ofJob(what), body);
    say("");
    await showState();
  } catch (refused) {
    say(what + ": " + refused.message);
  }
}

async function stop() {
  const chosen = await question("Stop job " + state.job_id + "?", { now: true });
  if (chosen) await act("stop", chosen.now ? { now: true } : {});
}

async function sendSignal(process) {
  const chosen = await question("Send a signal to " + (process ? process.name : "all processes") + "?", { signal: true });
  if (!chosen) return;
  const whom = process ? { role: process.role, rank: process.rank } : {};
  await act("signal", { signal: chosen.signal, ...whom });
}

async function restart(process) {
  const chosen = await question("Restart " + process.name + "? It is killed, and counts as a failure.");
  if (chosen) await act("restart", { role: process.role, rank: process.rank });
}

// ---- Curves, servers, verdict: there where the job has them. ----

async function askIfThere(what) {
  try {
    return await ask(ofJob(what));
  } catch (refused) {
    if (refused.status) return null;
    throw refused;
  }
}

let curves = null;

async function showCurves() {
  const answer = await askIfThere("curves");
  curves = answer && answer[0];
  byId("tab-curves").hidden = !curves;
  if (curves && shown === "curves") drawCurves();
}

function drawCurves() {
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(name).trim();
  const strokes = ["--accent", "--bad", "--good", "--warn", "--dim"].map(colour);
  const axis = { stroke: colour("--text"), grid: { stroke: colour("--line") }, ticks: { stroke: colour("--line") } };
  const width = Math.max(300, byId("curves").clientWidth - 40);
  byId("curves").replaceChildren(...Object.entries(curves).map(([name, series]) => {
    const figure = element("figure");
    figure.setAttribute("role", "img");
    figure.setAttribute("aria-label", name + " over batches: " + series.map((one) => one.name + " is at " + one.values.at(-1)).join(", "));
    const data = uPlot.join(series.map((one) => [one.batches, one.values]));
    new uPlot({
      title: name, width, height: 260, scales: { x: { time: false } }, axes: [{ ...axis, label: "batches" }, { ...axis, size: 70 }],
      series: [{ label: "batch" }, ...series.map((one, index) => ({ label: one.name, stroke: strokes[index % strokes.length], spanGaps: true }))],
    }, data, figure);
    return figure;
  }));
}

function shortText(value) {
  if (value == null) return "";
  if (Array.isArray(value) && value.every((one) => typeof one !== "object")) return value.join(", ");
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** An object as text, and each list of objects in it as a table. */
function described(title, value) {
  const tables = Object.entries(value).filter(([, one]) => Array.isArray(one) && one.length > 0 && typeof one[0] === "object");
  const names = tables.map(([name]) => name);
  const section = element("div");
  const facts = element("dl");
  for (const [name, one] of Object.entries(value)) {
    if (!names.includes(name)) facts.append(fact(name, shortText(one)));
  }
  section.append(element("h2", title), facts);
  for (const [name, rows] of tables) {
    const heads = [...new Set(rows.flatMap((row) => Object.keys(row)))];
    const table = element("table");
    table.append(element("caption", name));
    const head = table.createTHead().insertRow();
    for (const one of heads) {
      head.append(element("th", one));
      head.lastChild.scope = "col";
    }
    const body = table.createTBody();
    for (const row of rows) {
      const cellsOfRow = body.insertRow();
      for (const one of heads) {
        const cell = row[one];
        cellsOfRow.insertCell().textContent = shortText(cell);
      }
    }
    const wide = element("div", undefined, "wide");
    wide.tabIndex = 0;
    wide.setAttribute("role", "group");
    wide.setAttribute("aria-label", title + ": " + name);
    wide.append(table);
    section.append(wide);
  }
  return section;
}

async function showServers() {
  const hasServers = job.running && (state.servers || []).length > 0;
  const answer = hasServers ? await askIfThere("servers") : null;
  byId("tab-servers").hidden = !answer;
  if (answer) byId("servers").replaceChildren(...answer.map((one, index) => described("server " + index, one)));
}

async function showVerdict() {
  const verdict = job.running ? null : await askIfThere("verdict");
  byId("tab-verdict").hidden = !verdict;
  if (!verdict) return;
  const { first_failure: failure, cascade, attempts, ...rest } = verdict;
  const parts = [described(verdict.cause || "All went well.", { outcome: rest.outcome, exit_status: rest.exit_status, ended: rest.ended, seconds: rest.seconds, restarts: rest.restarts })];
  if (failure) {
    parts.push(element("h2", "First failure: " + failure.name));
    const facts = element("dl");
    for (const name of ["kind", "text", "hint", "log", "pid", "attempt", "time"])
      if (failure[name] !== "" && failure[name] != null) facts.append(fact(name, String(failure[name])));
    parts.push(facts);
    for (const text of [failure.block, failure.detail]) if (text) parts.push(element("pre", text));
  }
  if (cascade && cascade.length) parts.push(described("What followed", { processes: cascade }));
  if (attempts && attempts.length) parts.push(described("Attempts", { attempts }));
  byId("verdict").replaceChildren(...parts);
  if (failure && shown === "processes") show("verdict");
}

// ---- Views, keys, and the clock. ----

const views = ["processes", "logs", "timeline", "curves", "servers", "verdict"];
let shown = "processes";

function show(view) {
  shown = view;
  if (view === "processes") for (const group of [...byId("rows").tBodies].slice(2)) group.hidden = true; // one by one
  for (const one of views) {
    byId(one).hidden = one !== view;
    byId("tab-" + one).setAttribute("aria-selected", String(one === view));
    byId("tab-" + one).tabIndex = one === view ? 0 : -1;
  }
  if (view === "curves" && curves) drawCurves();
  if (view === "logs") list.go(list.first);
  if (view === "timeline") timeline.choose(timeline.row, timeline.at);
  if (view === "processes" && state) guarded(showProcesses)();
}

function guarded(action) {
  return async (...words) => {
    try {
      await action(...words);
    } catch (refused) {
      say(refused.message);
    }
  };
}

for (const view of views) byId("tab-" + view).addEventListener("click", () => show(view));
byId("tabs").addEventListener("keydown", (event) => {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!step) return;
  const there = views.filter((view) => !byId("tab-" + view).hidden);
  show(there[(there.indexOf(shown) + step + there.length) % there.length]);
  byId("tab-" + shown).focus();
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || /INPUT|SELECT/.test(event.target.tagName) || shown !== "logs") return;
  event.preventDefault();
  byId("text").focus();
});
byId("job").addEventListener("change", guarded(async () => {
  job = jobs.find((one) => one.pod === byId("job").value);
  show("processes");
  await begin();
}));
byId("stop").addEventListener("click", guarded(stop));
byId("signal").addEventListener("click", guarded(() => sendSignal(null)));
for (const id of ["role", "process", "follow"]) byId(id).addEventListener("change", guarded(() => log.choose()));
byId("text").addEventListener("input", () => {
  log.found = null;
  if (!log.following) return list.draw();
  log.filter();
  list.resize(log.shown.length);
});
byId("text").addEventListener("keydown", guarded(async (event) => {
  if (event.key === "Enter" && !log.following) await log.search(event.shiftKey);
}));
byId("previous").addEventListener("click", guarded(() => log.search(true)));
byId("next").addEventListener("click", guarded(() => log.search(false)));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => shown === "curves" && curves && drawCurves());

let turns = 0;
/** Once a second; what costs more, less often; nothing while nobody looks. */
const turn = guarded(async () => {
  if (document.hidden) return;
  ++turns;
  await lookForJobs();
  if (!job || !job.running) return;
  if (shown === "processes" || shown === "timeline" || turns % 5 === 0) await showState();
  if (shown === "logs") await (log.following ? log.takeArrived() : log.measure());
  if (shown === "timeline" || byId("tab-timeline").hidden) await timeline.take();
  if (turns % 5 === 0 && (shown === "curves" || byId("tab-curves").hidden)) await showCurves();
  if (turns % 2 === 0 && (shown === "servers" || byId("tab-servers").hidden)) await showServers();
});

async function run() {
  await turn();
  setTimeout(run, shown === "logs" && log.following ? 400 : 1000);
}
document.addEventListener("DOMContentLoaded", () => {
  show("processes");
  run();
});
