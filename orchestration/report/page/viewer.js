// Filters, list and detail, kept together by the state in the address.

const ANY = "";
const SIDES = {
  differ: ["they disagree", (a, b) => a !== b],
  first: ["only the first solves", (a, b) => a === 1 && b === 0],
  second: ["only the second solves", (a, b) => a === 0 && b === 1],
  both: ["both solve", (a, b) => a === 1 && b === 1],
  neither: ["neither solves", (a, b) => a === 0 && b === 0],
};

class Viewer {
  constructor(index) {
    this.index = index;
    this.settings = index.settings.map((names) => names.join("/"));
    this.numberOf = new Map(index.id.map((id, episode) => [id, episode]));
    this.filters = document.getElementById("filters");
    this.count = document.getElementById("count");
    this.detail = document.getElementById("detail");
    this.invitation = this.detail.textContent;
    this.list = new EpisodeList(document.getElementById("list"), {
      draw: (item) => this.option(item),
      open: (item) => this.open(item, { focus: true }),
    });
    this.groupByTask();
    this.filters.addEventListener("input", () => this.filtersChanged());
    this.filters.addEventListener("submit", (event) => event.preventDefault());
    this.filters.addEventListener("reset", (event) => {
      event.preventDefault();
      this.take({ ...this.blank(), setting: this.state.setting });
    });
    document.getElementById("viewer").addEventListener("keydown", (event) => {
      if (event.key === "Escape") this.close();
    });
    document.addEventListener("click", (event) => {
      const link = event.target.closest("a[href^='#setting=']");
      if (!link) return;
      event.preventDefault(); // the address may already be this one
      this.take(readState(link.hash), { reveal: true });
      writeState(this.state);
    });
    window.addEventListener("hashchange", () => {
      if (namesState()) this.take(readState(), { reveal: true });
    });
    this.take(readState(), { reveal: namesState() });
  }

  blank() {
    return Object.fromEntries(KEYS.map((key) => [key, ANY]));
  }

  settingOf(episode) {
    return this.index.cells[this.index.cell[episode]].setting;
  }

  // Episodes by setting and task, and whether methods disagree on it.
  groupByTask() {
    this.groups = new Map();
    this.index.id.forEach((_, episode) => {
      const key = this.groupKey(episode);
      if (!this.groups.has(key)) this.groups.set(key, { episodes: [], solved: new Set() });
      const group = this.groups.get(key);
      group.episodes.push(episode);
      if (this.index.solved[episode] >= 0) group.solved.add(this.index.solved[episode]);
    });
  }

  groupKey(episode) {
    return this.settingOf(episode) * this.index.tasks.length + this.index.task[episode];
  }

  group(episode) {
    return this.groups.get(this.groupKey(episode));
  }

  // A whole new state: fills the menus, filters the list and opens what the state names.
  take(state, { reveal = false } = {}) {
    const wanted = state.episode;
    const digits = this.index.id[0]?.length;
    const episode = this.numberOf.get(wanted.slice(0, digits));
    if (episode !== undefined && !state.setting) state.setting = this.settings[this.settingOf(episode)];
    if (!this.settings.includes(state.setting)) state.setting = this.settings[0] ?? ANY;
    this.state = state;
    this.fillMenus();
    this.filter();
    if (episode === undefined) this.close(wanted && `There is no episode ${wanted} in this report.`);
    else this.open([episode, this.numberOf.get(state.beside.slice(0, digits)) ?? -1], {});
    if (reveal) document.getElementById("trajectories").scrollIntoView();
  }

  filtersChanged() {
    const chosen = Object.fromEntries(new FormData(this.filters));
    if (chosen.method === ANY || chosen.method === chosen.with) chosen.with = ANY;
    const paired = (state) => Boolean(state.with);
    if (paired(chosen) !== paired(this.state)) chosen.outcome = paired(chosen) ? "differ" : ANY;
    this.take({ ...this.blank(), ...chosen });
  }

  fillMenus() {
    const { index, state } = this;
    const setting = this.settings.indexOf(state.setting);
    const cells = index.cells.filter((cell) => cell.setting === setting);
    const methods = [...new Set(cells.map((cell) => index.methods[cell.method]))].sort();
    const inSetting = index.id.map((_, episode) => episode).filter((episode) => this.settingOf(episode) === setting);
    const types = new Set(inSetting.map((episode) => index.types[index.tasks[index.task[episode]][1]]));
    const outcomes = new Set(inSetting.map((episode) => index.outcomes[index.outcome[episode]]));
    const single = [
      [ANY, "any"],
      ["differ", "methods disagree on the task"],
      ...[...outcomes].sort().map((name) => [name, name.replaceAll("_", " ")]),
    ];
    const both = [[ANY, "any"], ...Object.entries(SIDES).map(([name, [words]]) => [name, words])];
    this.fill("setting", this.settings.map((name) => [name, name]));
    this.fill("method", [[ANY, "all"], ...methods.map((name) => [name, name])]);
    if (!state.method) state.with = ANY;
    const rivals = methods.filter((name) => name !== state.method);
    this.fill("with", [[ANY, "nothing"], ...rivals.map((name) => [name, name])]);
    this.filters.elements.with.disabled = !state.method;
    this.fill("type", [[ANY, "all"], ...[...types].sort().map((name) => [name, name])]);
    this.fill("outcome", state.with ? both : single);
    this.filters.elements.text.value = state.text;
  }

  fill(name, options) {
    const menu = this.filters.elements[name];
    menu.replaceChildren(...options.map(([value, words]) => el("option", { value }, words)));
    options.forEach(([value], place) => (menu.options[place].value = value)); // as it is in the data, not as it is shown
    menu.value = this.state[name];
    if (menu.selectedIndex < 0) {
      menu.value = ANY;
      this.state[name] = ANY;
    }
  }

  // Items are pairs of episodes; the second is -1 where one method is shown alone.
  filter() {
    const { index, state } = this;
    const setting = this.settings.indexOf(state.setting);
    const text = state.text.toLowerCase();
    const method = (episode) => index.methods[index.cells[index.cell[episode]].method];
    const about = (episode) => {
      const [name, type] = index.tasks[index.task[episode]];
      if (this.settingOf(episode) !== setting) return false;
      if (state.type && index.types[type] !== state.type) return false;
      return !text || name.toLowerCase().includes(text);
    };
    const items = [];
    let shared = 0;
    for (let episode = 0; episode < index.id.length; episode += 1) {
      if (!about(episode) || (state.method && method(episode) !== state.method)) continue;
      if (!state.with) {
        if (this.matches(episode)) items.push([episode, -1]);
        continue;
      }
      const rival = this.rival(episode, method);
      if (rival < 0) continue;
      shared += 1;
      if (this.pairMatches(episode, rival)) items.push([episode, rival]);
    }
    this.list.show(items);
    const what = state.with ? `${amount(shared)} tasks that both methods played` : `${amount(index.id.length)} episodes`;
    this.count.textContent = `${amount(items.length)} of ${what}`;
  }

  matches(episode) {
    const wanted = this.state.outcome;
    if (!wanted) return true;
    if (wanted === "differ") return this.group(episode).solved.size > 1;
    return this.index.outcomes[this.index.outcome[episode]] === wanted;
  }

  // The other method's episode of the same task, with the same seed where there is one.
  rival(episode, method) {
    const { index, state } = this;
    const seed = (number) => index.cells[index.cell[number]].seed;
    const found = this.group(episode).episodes.filter((other) => method(other) === state.with);
    return found.find((other) => seed(other) === seed(episode)) ?? found[0] ?? -1;
  }

  pairMatches(one, other) {
    const [a, b] = [this.index.solved[one], this.index.solved[other]];
    if (!this.state.outcome) return true;
    return a >= 0 && b >= 0 && SIDES[this.state.outcome][1](a, b);
  }

  option([episode, rival]) {
    const { index } = this;
    const [name, type] = index.tasks[index.task[episode]];
    const method = index.methods[index.cells[index.cell[episode]].method];
    const badges = rival < 0 ? [badge(index, episode)] : [badge(index, episode), badge(index, rival)];
    const second = rival < 0 ? method : index.types[type];
    return [el("div", { title: name }, name), el("div", { class: "second" }, el("span", {}, second), ...badges)];
  }

  async open([episode, rival], { focus = false }) {
    const { index } = this;
    const shown = [episode, rival].filter((number) => number >= 0);
    this.opened = shown.join();
    this.state.episode = index.id[episode];
    this.state.beside = rival >= 0 ? index.id[rival] : ANY;
    writeState(this.state);
    const place = this.list.items.findIndex(([one, other]) => one === episode && (rival < 0 || other < 0 || other === rival));
    if (this.list.chosen !== place) this.list.mark(place);
    let found;
    try {
      found = await Promise.all(shown.map((number) => trajectory(index, number)));
    } catch (error) {
      this.detail.replaceChildren(el("p", { class: "failure" }, `The trajectory cannot be unpacked: ${error.message}`));
      return;
    }
    if (this.opened !== shown.join()) return; // another one was opened meanwhile
    const parted = found.length === 2 && found[0] && found[1] ? firstDifference(found[0], found[1]) : -1;
    const [name, type] = index.tasks[index.task[episode]];
    this.detail.replaceChildren(
      this.bar(place),
      el("h3", { class: "title" }, name),
      el("p", { class: "hint" }, `${index.types[type]}, ${this.settings[this.settingOf(episode)]}`),
      found[0] ? el("p", { class: "goal" }, found[0].goal) : el("p", {}),
      this.others(episode, rival),
      el("div", { class: "sides" }, ...shown.map((number, side) => episodeSide(index, number, found[side], parted))),
    );
    this.detail.scrollTop = 0;
    if (focus) {
      this.detail.focus({ preventScroll: true });
      if (this.detail.getBoundingClientRect().top > window.innerHeight * 0.6) this.detail.scrollIntoView();
    }
  }

  bar(place) {
    const step = (words, to) => {
      const button = el("button", { type: "button", disabled: to < 0 || to >= this.list.items.length ? "" : null }, words);
      button.addEventListener("click", () => this.list.choose(to));
      return button;
    };
    const close = el("button", { type: "button" }, "Close");
    close.addEventListener("click", () => this.close());
    const where = place < 0 ? "" : `${amount(place + 1)} of ${amount(this.list.items.length)}`;
    return el(
      "div",
      { class: "bar" },
      step("\u2190 Previous", place < 0 ? -1 : place - 1),
      step("Next \u2192", place < 0 ? -1 : place + 1),
      el("span", { class: "hint grow" }, where),
      close,
    );
  }

  // The same task by other methods: a press sets one beside this.
  others(episode, rival) {
    const { index } = this;
    const members = this.group(episode).episodes.filter((other) => other !== episode);
    const chosen = members.map((other) => {
      const cell = index.cells[index.cell[other]];
      const button = el(
        "button",
        { type: "button", "aria-pressed": other === rival ? "true" : "false" },
        `${index.methods[cell.method]} `,
        badge(index, other),
      );
      button.addEventListener("click", () => this.open([episode, other === rival ? -1 : other], { focus: true }));
      return el("li", {}, button);
    });
    const words = `The same task by ${members.length} other${members.length === 1 ? "" : "s"}: set one beside`;
    return el("details", {}, el("summary", { class: "hint" }, words), el("ul", { class: "others" }, ...chosen));
  }

  close(words = "") {
    this.opened = "";
    this.state.episode = ANY;
    this.state.beside = ANY;
    const inside = this.detail.contains(document.activeElement);
    this.list.mark(-1);
    this.detail.replaceChildren(el("p", { class: words ? "failure" : "hint" }, words || this.invitation));
    if (inside) this.list.element.focus();
    const initial = this.blank();
    initial.setting = this.settings[0] ?? ANY;
    const changed = KEYS.some((key) => this.state[key] !== initial[key]);
    if (changed || namesState()) writeState(changed ? this.state : this.blank());
  }
}

document.querySelectorAll("table.data").forEach(makeSortable);
const shell = document.getElementById("viewer");
shell.hidden = false;
try {
  new Viewer(await unpack(document.getElementById("index")));
} catch (error) {
  shell.replaceChildren(el("p", { class: "failure" }, `The list of episodes cannot be shown: ${error.message}`));
  throw error;
}
