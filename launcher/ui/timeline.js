// The view of what happened when: a row for the job, and one for each process, over time. What is seen is one
// picture, drawn anew; the same is said in words: of the moment that the keys have gone to, and as a table.
"use strict";

const rowTall = 22, nameWide = 110, axisTall = 24, mostMarks = 20000, mostListed = 300;

// What a mark is drawn as, and its colour; what matters most comes first.
const markKinds = {
  failed: ["✕", "--bad"], restart: ["↻", "--warn"], stop: ["■", "--warn"], ready: ["▲", "--good"], note: ["•", "--dim"],
};

const timeline = {
  next: 0, // byte of events.jsonl from which to read on
  rows: [], // of processes and of the job: name, spans, marks
  byName: new Map(),
  began: 0, // seconds, by the host's clock that does not jump
  last: 0, // of the newest event
  from: 0, to: 1, // seconds since `began` that are seen
  whole: true, // they are all
  row: 0, at: 0, // where the keys have gone to
  asking: false,

  clear() {
    Object.assign(this, { next: 0, rows: [], byName: new Map(), began: 0, last: 0, whole: true, row: 0, at: 0 });
    this.rowOf("job", null);
    byId("tab-timeline").hidden = true;
    byId("moments").replaceChildren();
  },

  rowOf(name, process) {
    let row = this.byName.get(name);
    if (!row) {
      row = { name, process, spans: [], marks: [], events: [] };
      this.byName.set(name, row);
      this.rows.push(row);
    }
    return row;
  },

  /** Reads what is new; a long history in pieces, between which the browser has its turn. */
  async take() {
    if (this.asking) return;
    this.asking = true;
    const { pod } = job;
    try {
      for (let more = true; more && job.pod === pod;) {
        const answer = await askIfThere("events?" + query({ from: this.next }));
        if (!answer || job.pod !== pod) break;
        more = answer.next > this.next && answer.more;
        this.next = answer.next;
        for (const event of answer.events) this.add(event);
      }
    } finally {
      this.asking = false;
    }
    byId("tab-timeline").hidden = this.began === 0;
    this.fit();
  },

  add(event) {
    const at = event.at / 1e9;
    if (event.type === "job_began") this.began = at;
    if (this.began === 0 || !(at > 0)) return;
    const time = Math.max(0, at - this.began);
    this.last = Math.max(this.last, time);
    const row = event.process ? this.rowOf(event.process, { role: event.role, rank: event.rank }) : this.rows[0];
    const said = wordsOf(event);
    if (!said) return;
    if (row.events.length < mostMarks) row.events.push({ time, words: said.words });
    if (said.begins) row.spans.push({ from: time, to: null, state: "running", words: said.words });
    const span = row.spans.at(-1);
    if (said.ends && span && span.to === null) Object.assign(span, { to: time, state: said.ends });
    if (said.mark && row.marks.length < mostMarks) row.marks.push({ time, kind: said.mark });
    if (event.type === "job_ended") for (const one of this.rows) for (const open of one.spans) if (open.to === null) Object.assign(open, { to: time, state: "ended" });
  },

  /** Until when there is something: the job's own clock, while it runs. */
  end() {
    return Math.max(this.last, job && job.running && state ? state.uptime_seconds || 0 : 0, 0.001);
  },

  fit() {
    if (this.whole) Object.assign(this, { from: 0, to: this.end() * 1.02 });
    if (shown === "timeline") this.draw();
  },

  zoom(factor) {
    const middle = Math.min(Math.max(this.at, this.from), this.to);
    this.look(middle - (middle - this.from) * factor, middle + (this.to - middle) * factor);
  },

  look(from, to) {
    const most = this.end() * 1.02, wide = Math.min(Math.max(to - from, 0.001), most);
    this.from = Math.min(Math.max(0, from), most - wide);
    this.to = this.from + wide;
    this.whole = wide >= most * 0.999;
    this.draw();
  },

  // ---- The picture. ----

  draw() {
    const view = byId("timeline-view"), canvas = byId("timeline-picture");
    const width = view.clientWidth, height = view.clientHeight, scale = window.devicePixelRatio || 1;
    byId("timeline-rest").style.height = Math.max(0, this.rows.length * rowTall + axisTall - height) + "px";
    if (canvas.width !== Math.round(width * scale)) canvas.width = Math.round(width * scale);
    if (canvas.height !== Math.round(height * scale)) canvas.height = Math.round(height * scale);
    const style = getComputedStyle(document.documentElement), colours = new Map();
    const colour = (name) => colours.get(name) ?? (colours.set(name, style.getPropertyValue(name).trim()), colours.get(name));
    const to = canvas.getContext("2d");
    to.setTransform(scale, 0, 0, scale, 0, 0);
    to.clearRect(0, 0, width, height);
    to.font = "12px system-ui, sans-serif";
    to.textBaseline = "middle";
    const place = (time) => nameWide + (time - this.from) / (this.to - this.from) * (width - nameWide - 8);
    this.drawAxis(to, place, width, height, colour);
    const first = Math.floor(view.scrollTop / rowTall), seen = Math.ceil((height - axisTall) / rowTall) + 1;
    to.save();
    to.beginPath();
    to.rect(0, axisTall, width, height);
    to.clip();
    for (let index = first; index < Math.min(first + seen, this.rows.length); ++index)
      this.drawRow(to, this.rows[index], axisTall + index * rowTall - view.scrollTop, index === this.row, place, width, colour);
    to.restore();
    const at = place(this.at);
    if (at >= nameWide) {
      to.fillStyle = colour("--text");
      to.fillRect(at, axisTall, 1, height);
    }
    this.describe();
  },

  drawAxis(to, place, width, height, colour) {
    const step = niceStep((this.to - this.from) / Math.max(2, (width - nameWide) / 90));
    for (let time = Math.ceil(this.from / step) * step; time <= this.to; time += step) {
      to.fillStyle = colour("--line");
      to.fillRect(Math.round(place(time)), axisTall - 6, 1, height);
      to.fillStyle = colour("--dim");
      to.fillText(moment(time, step), place(time) + 3, axisTall / 2);
    }
  },

  drawRow(to, row, top, chosen, place, width, colour) {
    if (chosen) {
      to.fillStyle = colour("--raised");
      to.fillRect(0, top, width, rowTall);
    }
    to.fillStyle = colour("--text");
    to.fillText(row.name, 8, top + rowTall / 2, nameWide - 14);
    to.save();
    to.beginPath();
    to.rect(nameWide, top, width - nameWide, rowTall);
    to.clip();
    let drawn = -1;
    for (const span of row.spans) {
      const left = place(span.from), right = Math.max(left + 2, place(span.to ?? this.end()));
      if (right < nameWide || left > width || (right <= drawn && span.state !== "failed")) continue;
      drawn = right;
      to.fillStyle = colour({ running: "--good", ended: "--accent", failed: "--bad", asked: "--dim" }[span.state]);
      to.fillRect(left, top + 5, right - left, rowTall - 10);
    }
    const taken = new Set(); // of two marks at one place the one that matters more is seen
    for (const kind of Object.keys(markKinds)) {
      const [sign, name] = markKinds[kind], wide = to.measureText(sign).width;
      for (const mark of row.marks) {
        const at = Math.round(place(mark.time));
        if (mark.kind !== kind || at < nameWide || at > width || taken.has(at >> 3)) continue;
        taken.add(at >> 3);
        to.fillStyle = colour("--ground");
        to.fillRect(at - wide / 2 - 1, top + 3, wide + 2, rowTall - 6);
        to.fillStyle = colour(name);
        to.fillText(sign, at - wide / 2, top + rowTall / 2);
      }
    }
    to.restore();
  },

  // ---- The same in words. ----

  describe() {
    const row = this.rows[this.row];
    if (!row) return;
    const span = row.spans.findLast((one) => one.from <= this.at && this.at <= (one.to ?? this.end()));
    const event = row.events.findLast((one) => one.time <= this.at + 1e-9);
    const now = span ? (span.to === null ? "runs" : span.state === "failed" ? "ran until it failed" : "ran") : "";
    setText(byId("moment"), [row.name + " at " + moment(this.at, 0.001), now, event && event.words + (event.time < this.at - 1e-9 ? ", " + moment(this.at - event.time, 0.001) + " before" : "")]
      .filter(Boolean).join(": "));
  },

  /** The chosen row's events as a table. */
  list() {
    const row = this.rows[this.row], last = row.events.slice(-mostListed);
    setText(byId("moments-of"), "What happened to " + (row.name === "job" ? "the job" : row.name) +
      (last.length < row.events.length ? ", the last " + grouped.format(last.length) + " of " + grouped.format(row.events.length) : ""));
    byId("moments").replaceChildren(...last.map((event) => {
      const line = element("tr");
      line.append(element("td", moment(event.time, 0.001)), element("td", event.words));
      return line;
    }));
  },

  choose(row, at) {
    const old = this.row;
    this.row = Math.min(Math.max(0, row), this.rows.length - 1);
    this.at = Math.min(Math.max(0, at), this.end());
    const view = byId("timeline-view"), top = this.row * rowTall, seen = view.clientHeight - axisTall - rowTall;
    if (top < view.scrollTop) view.scrollTop = top;
    if (top > view.scrollTop + seen) view.scrollTop = top - seen;
    if (this.row !== old || byId("moments").childElementCount === 0) this.list();
    if (this.at < this.from || this.at > this.to) this.look(this.at - (this.to - this.from) / 2, this.at + (this.to - this.from) / 2);
    else this.draw();
  },

  /** To the event before or after where the keys are. */
  step(forward) {
    const { events } = this.rows[this.row];
    const found = forward ? events.find((one) => one.time > this.at + 1e-6) : events.findLast((one) => one.time < this.at - 1e-6);
    if (found) this.choose(this.row, found.time);
  },

  key(event) {
    const page = Math.max(1, Math.floor(byId("timeline-view").clientHeight / rowTall) - 2);
    const rows = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -this.rows.length, End: this.rows.length };
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    if (event.key in rows) this.choose(this.row + rows[event.key], this.at);
    else if (event.key === "ArrowRight" || event.key === "ArrowLeft") this.step(event.key === "ArrowRight");
    else if (event.key === "+" || event.key === "-") this.zoom(event.key === "+" ? 0.5 : 2);
    else if (event.key === "0") this.look(0, this.end() * 2);
    else if (event.key === "Enter" && this.rows[this.row].process) guarded(() => log.open(this.rows[this.row].process))();
    else return;
    event.preventDefault();
  },
};

function niceStep(least) {
  const power = 10 ** Math.floor(Math.log10(Math.max(least, 1e-6)));
  if (least > 30) return [60, 120, 300, 600, 1800, 3600, 7200, 21600, 43200, 86400].find((one) => one >= least) ?? Math.ceil(least / 86400) * 86400;
  return [1, 2, 5, 10].map((one) => one * power).find((one) => one >= least);
}

/** Since the job began, as exactly as `step` is. */
function moment(seconds, step) {
  if (seconds >= 60) return time(seconds) + (step < 1 ? (seconds % 1).toFixed(3).slice(1) : "");
  return seconds.toFixed(step >= 1 ? 0 : Math.min(3, Math.ceil(-Math.log10(step)))) + " s";
}

/** What an event means for its row: words, and whether a span begins or ends, and which mark there is. */
function wordsOf(event) {
  const list = (names) => names.length > 4 ? names.slice(0, 4).join(", ") + " and " + (names.length - 4) + " others" : names.join(", ");
  switch (event.type) {
    case "job_began": return { words: "the job began" };
    case "attempt_began": return { words: "attempt " + event.attempt + " began", mark: event.attempt > 0 ? "restart" : undefined };
    case "process_started": return { words: "started, attempt " + event.attempt + ", pid " + event.pid, begins: true };
    case "process_exited": {
      const how = event.signal ? "ended by " + event.signal : "ended with " + event.status;
      const failed = !event.asked && event.status !== 0;
      return { words: how + (event.asked ? ", as it was asked to" : ""), ends: failed ? "failed" : event.asked ? "asked" : "ended", mark: failed ? "failed" : undefined };
    }
    case "process_not_started": return { words: "could not be started: " + event.error, mark: "failed" };
    case "all_running": return { words: "all processes run", mark: "ready" };
    case "role_ready": return { words: event.role + "s are ready", mark: "ready" };
    case "failure_explained": return { words: "failed: " + event.cause, mark: "failed" };
    case "restart_decided": return { words: "started again, " + event.scope + ", attempt " + event.next_attempt + ": " + event.why, mark: "restart" };
    case "generation_began": return { words: "generation " + event.generation + " began" + (event.step >= 0 ? " at step " + event.step : ""), mark: "restart" };
    case "hang_found": return { words: list(event.culprits) + " " + event.why, mark: "failed" };
    case "stop_began": return { words: "stops: " + event.why, mark: "stop" };
    case "grace_elapsed": return { words: "time to end is up: " + list(event.still_alive) + " killed", mark: "stop" };
    case "gave_up": return { words: "no further restart: " + event.why, mark: "stop" };
    case "signal_received": return { words: "fleetrun got " + event.signal, mark: "stop" };
    case "signal_forwarded": return { words: event.signal + " went to the processes", mark: "note" };
    case "injected": return { words: "on purpose: " + event.what, mark: "note" };
    case "unkillable": return { words: "pid " + event.pid + " cannot be killed: " + event.why, mark: "failed" };
    case "logs_truncated": return { words: "its log loses lines", mark: "note" };
    case "world_began": return { words: "the hosts are " + event.hosts, mark: "ready" };
    case "world_ended": return { words: "this host's part ends: " + event.why, mark: "stop" };
    case "pod_stands": return { words: event.still ? "stands still: the other hosts are not heard" : "goes on", mark: "note" };
    case "warning": case "news": return { words: event.text, mark: "note" };
    case "job_ended": return { words: "the job ended with " + event.exit_status, mark: event.exit_status === 0 ? "ready" : "failed" };
    default: return null;
  }
}

document.addEventListener("DOMContentLoaded", () => {
  const view = byId("timeline-view");
  const pointed = (event) => {
    const box = view.getBoundingClientRect(), wide = view.clientWidth - nameWide - 8;
    const row = Math.floor((event.clientY - box.top - axisTall + view.scrollTop) / rowTall);
    return [row, timeline.from + Math.max(0, event.clientX - box.left - nameWide) / wide * (timeline.to - timeline.from)];
  };
  view.addEventListener("keydown", (event) => timeline.key(event));
  view.addEventListener("scroll", () => timeline.draw());
  view.addEventListener("click", (event) => timeline.choose(...pointed(event)));
  view.addEventListener("wheel", (event) => {
    if (!event.ctrlKey) return;
    event.preventDefault();
    timeline.at = pointed(event)[1];
    timeline.zoom(event.deltaY < 0 ? 0.8 : 1.25);
  }, { passive: false });
  byId("zoom-in").addEventListener("click", () => timeline.zoom(0.5));
  byId("zoom-out").addEventListener("click", () => timeline.zoom(2));
  byId("zoom-whole").addEventListener("click", () => timeline.look(0, timeline.end() * 2));
  new ResizeObserver(() => shown === "timeline" && timeline.draw()).observe(view);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => shown === "timeline" && timeline.draw());
});
