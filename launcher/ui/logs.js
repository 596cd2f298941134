// The view of logs: what is read of them, and a list that may be millions of lines long.
"use strict";

// ---- A list of which only the rows that are seen exist. ----

const rowHeight = 18, tallest = 8e6; // pixels; browsers limit how tall an element may be

class LineList {
  /** `fill(row, number)` writes line `number` into an element; `moved(first, visible)` hears what is seen. */
  constructor(view, content, rest, fill, moved) {
    Object.assign(this, { view, content, rest, fill, moved, total: 0, first: 0, settled: 0 });
    view.addEventListener("scroll", () => {
      if (Math.abs(view.scrollTop - this.settled) < 1.5) return;
      const range = view.scrollHeight - view.clientHeight;
      this.settled = view.scrollTop;
      this.first = range > 0 ? Math.round(view.scrollTop / range * this.lastFirst()) : 0;
      this.draw();
    });
    view.addEventListener("wheel", (event) => {
      if (event.ctrlKey || event.shiftKey || event.deltaY === 0) return;
      event.preventDefault();
      this.go(this.first + (event.deltaMode ? event.deltaY : Math.sign(event.deltaY) * Math.max(1, Math.round(Math.abs(event.deltaY) / rowHeight))));
    }, { passive: false });
    view.addEventListener("keydown", (event) => {
      const page = Math.max(1, this.visible() - 1);
      const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -this.total, End: this.total };
      if (!(event.key in steps) || event.ctrlKey || event.altKey) return;
      event.preventDefault();
      this.go(this.first + steps[event.key]);
    });
    new ResizeObserver(() => this.go(this.first)).observe(view);
  }

  visible() { return Math.max(1, Math.floor(this.view.clientHeight / rowHeight)); }
  lastFirst() { return Math.max(0, this.total - this.visible()); }
  isAtEnd() { return this.first >= this.lastFirst(); }

  resize(total) {
    this.total = total;
    this.go(this.first);
  }

  go(first) {
    this.first = Math.min(Math.max(0, Math.round(first)), this.lastFirst());
    const height = Math.min(this.total * rowHeight, tallest);
    this.rest.style.height = Math.max(0, height - this.view.clientHeight) + "px";
    this.content.style.height = this.view.clientHeight + "px";
    const range = this.view.scrollHeight - this.view.clientHeight;
    this.view.scrollTop = this.lastFirst() > 0 ? this.first / this.lastFirst() * range : 0;
    this.settled = this.view.scrollTop;
    this.draw();
  }

  draw() {
    const count = Math.min(this.visible() + 1, this.total - this.first);
    while (this.content.childElementCount > Math.max(0, count)) this.content.lastChild.remove();
    while (this.content.childElementCount < count) this.content.append(element("div", "", "line"));
    for (let i = 0; i < count; ++i) this.fill(this.content.children[i], this.first + i);
    this.moved(this.first, Math.max(0, count));
  }
}

// ---- Logs: read by line numbers, or followed as lines arrive. ----

const pageLines = 500, mostPages = 400, mostArrived = 100000;

const log = {
  parts: [], // of the document: role, rank, attempt, first, lines
  pages: new Map(), // "role rank attempt page" → its lines, or a promise of them
  arrived: [], // [name, text], while following
  shown: [], // those of `arrived` that have the searched text
  cursor: "",
  following: false,
  found: null, // number of the line that was found
  generation: 0, // of the choice: what arrives for an earlier one is dropped

  words() {
    const rank = byId("process").value;
    return { role: byId("role").value, ...(rank ? { rank } : {}) };
  },

  /** The choice has changed. */
  async choose() {
    const generation = ++this.generation;
    Object.assign(this, { parts: [], arrived: [], shown: [], cursor: "", found: null });
    this.pages.clear();
    this.offer();
    this.following = byId("follow").checked && job.running;
    byId("follow").disabled = !job.running;
    byId("previous").disabled = byId("next").disabled = this.following;
    list.resize(0);
    list.first = 0;
    await (this.following ? this.takeArrived() : this.measure());
    if (generation === this.generation && !this.following) list.go(0);
  },

  /** Fills the choices of role and process with those of the job. */
  offer() {
    const fill = (choice, options) => {
      const chosen = choice.value;
      choice.replaceChildren(...options.map(([value, text]) => {
        const option = element("option", text);
        option.value = value;
        return option;
      }));
      choice.value = options.some(([value]) => value === chosen) ? chosen : "";
    };
    const roles = [...new Set(state.processes.map((one) => one.role))];
    fill(byId("role"), [["", "all"], ...roles.map((role) => [role, role])]);
    const role = byId("role").value;
    const ofRole = role ? state.processes.filter((one) => one.role === role) : [];
    fill(byId("process"), [["", "all"], ...ofRole.map((one) => [String(one.rank), one.name])]);
    byId("process").disabled = !role;
  },

  async open(process) {
    byId("role").value = process.role;
    this.offer();
    byId("process").value = String(process.rank);
    show("logs");
    await this.choose();
    byId("view").focus();
  },

  /** How many lines there are now. */
  async measure() {
    const generation = this.generation;
    const anchor = this.partOf(list.first);
    const wasAtEnd = list.isAtEnd() && list.total > list.visible();
    const answer = await ask(ofJob("lines?" + query(this.words())));
    if (generation !== this.generation || this.following) return;
    for (const old of this.parts) this.pages.delete(this.key(old, Math.floor(Math.max(0, old.lines - 1) / pageLines)));
    this.parts = answer.parts;
    const same = anchor && this.parts.find((part) => part.role === anchor.part.role && part.rank === anchor.part.rank);
    if (same) list.first = same.first + Math.min(anchor.local, same.lines);
    if (wasAtEnd) list.first = answer.total;
    list.resize(answer.total);
    if (!answer.whole) await this.measure();
  },

  partOf(number) {
    let low = 0, high = this.parts.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.parts[middle].first + this.parts[middle].lines > number) high = middle;
      else low = middle + 1;
    }
    return low < this.parts.length ? { part: this.parts[low], local: number - this.parts[low].first } : null;
  },

  key: (part, page) => part.role + " " + part.rank + " " + part.attempt + " " + page,

  /** The text of a line, or undefined while it is on its way. */
  text(number) {
    const at = this.partOf(number);
    const page = Math.floor(at.local / pageLines);
    const lines = this.pages.get(this.key(at.part, page));
    if (Array.isArray(lines)) return lines[at.local % pageLines] ?? "";
    if (!lines) this.fetchPage(at.part, page);
    return undefined;
  },

  async fetchPage(part, page) {
    const key = this.key(part, page);
    const words = { role: part.role, rank: part.rank, attempt: part.attempt, from: page * pageLines, count: pageLines };
    const answer = ask(ofJob("lines?" + query(words)));
    this.pages.set(key, answer);
    if (this.pages.size > mostPages) this.pages.delete(this.pages.keys().next().value);
    try {
      const { lines } = await answer;
      if (this.pages.get(key) === answer) this.pages.set(key, lines);
    } catch (refused) {
      if (this.pages.get(key) === answer) this.pages.delete(key);
      return say(refused.message);
    }
    redrawSoon();
  },

  async takeArrived() {
    const generation = this.generation;
    const answer = await ask(ofJob("follow?" + query({ ...this.words(), after: this.cursor })));
    if (generation !== this.generation || !this.following) return;
    this.cursor = answer.cursor;
    if (answer.lines.length === 0) return;
    const isAtEnd = list.isAtEnd();
    const wanted = byId("text").value;
    for (const [index, text] of answer.lines) {
      const line = [answer.processes[index], text];
      this.arrived.push(line);
      if (text.includes(wanted)) this.shown.push(line);
    }
    if (this.arrived.length > mostArrived * 1.2) {
      this.arrived.splice(0, this.arrived.length - mostArrived);
      this.filter();
    }
    if (isAtEnd) list.first = this.shown.length;
    list.resize(this.shown.length);
  },

  filter() {
    const wanted = byId("text").value;
    this.shown = wanted ? this.arrived.filter(([, text]) => text.includes(wanted)) : [...this.arrived];
  },

  /** Finds the searched text from the line that is seen first, process by process, and around. */
  async search(back) {
    const text = byId("text").value;
    if (!text || this.parts.length === 0) return;
    const generation = ++this.generation;
    const start = this.found ?? (back ? list.first : list.first - 1);
    const at = this.partOf(Math.max(0, start)) || { part: this.parts.at(-1), local: this.parts.at(-1).lines };
    const count = this.parts.length;
    let index = this.parts.indexOf(at.part);
    let from = back ? at.local : start < 0 ? 0 : at.local + 1;
    for (let looked = 0; looked <= count; ++looked) {
      const part = this.parts[index];
      const words = { role: part.role, rank: part.rank, attempt: part.attempt, text, back: back ? 1 : 0 };
      while (from !== undefined) {
        setText(byId("place"), "searching " + part.role + " " + part.rank + " …");
        const answer = await ask(ofJob("search?" + query({ ...words, from })));
        if (generation !== this.generation) return;
        if (answer.line !== undefined) {
          this.found = part.first + answer.line;
          return list.go(this.found - Math.floor(list.visible() / 3));
        }
        from = answer.go_on;
      }
      index = (index + (back ? count - 1 : 1)) % count;
      from = back ? this.parts[index].lines : 0;
    }
    setText(byId("place"), "not found");
  },

  fill(row, number) {
    const [name, text] = this.following ? this.shown[number] : this.named(number);
    const wanted = byId("text").value;
    const isFound = !this.following && number === this.found;
    const state = name + "\n" + text + "\n" + wanted + isFound;
    if (row.state === state) return;
    row.state = state;
    row.className = isFound ? "line found" : "line";
    const parts = name ? [element("b", name + " | ")] : [];
    if (text === undefined) parts.push(element("i", "…"));
    else parts.push(...marked(text, wanted));
    row.replaceChildren(...parts);
  },

  named(number) {
    const { part } = this.partOf(number);
    return [this.parts.length > 1 ? part.role + " " + part.rank : "", this.text(number)];
  },

  moved(first, count) {
    const total = list.total;
    const range = total ? grouped.format(first + 1) + " to " + grouped.format(Math.min(first + count, total)) + " of " : "";
    setText(byId("place"), range + grouped.format(total) + " lines");
  },
};

/** `text` as nodes, with what was searched marked. */
function marked(text, wanted) {
  if (!wanted) return [text];
  const nodes = [];
  let begin = 0;
  for (let at; (at = text.indexOf(wanted, begin)) >= 0; begin = at + wanted.length)
    nodes.push(text.slice(begin, at), element("mark", wanted));
  return [...nodes, text.slice(begin)];
}

const list = new LineList(byId("view"), byId("lines"), byId("rest"),
  (row, number) => log.fill(row, number), (first, count) => log.moved(first, count));

let redraws = false;
function redrawSoon() {
  if (redraws) return;
  redraws = true;
  requestAnimationFrame(() => {
    redraws = false;
    list.draw();
  });
}
