// One episode in full, or what is known of one whose trajectory is elsewhere.

function episodeSide(index, episode, found, parted) {
  const cell = index.cells[index.cell[episode]];
  const method = index.methods[cell.method];
  return el(
    "section",
    { class: "side", "aria-label": method },
    el("h4", {}, method, cell.simulated ? " " : null, cell.simulated ? el("span", { class: "tag" }, "simulated") : null),
    el("p", {}, badge(index, episode)),
    values(index, episode),
    found ? skills(found.skills) : null,
    ...(found ? played(index, episode, found, parted) : [absent(index, episode)]),
  );
}

function values(index, episode) {
  const lost = index.solved[episode] < 0;
  const facts = [
    ["reward", lost ? "none" : amount(index.reward[episode], 1)],
    ["env steps", amount(index.steps[episode])],
    ["tokens", amount(index.tokens[episode])],
    ["seconds", amount(index.seconds[episode], 1)],
    ["seed", index.cells[index.cell[episode]].seed],
    ["episode", index.id[episode]],
  ];
  const pairs = facts.filter(([, value]) => value !== null && value !== "");
  return el("dl", { class: "values" }, ...pairs.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value))));
}

// A few skills are named, many are folded away.
function skills(ids) {
  if (ids.length <= 3) return el("p", { class: "skills" }, `Skills: ${ids.join(", ") || "none"}`);
  const items = ids.map((id) => el("li", {}, id));
  return el("details", { class: "skills" }, el("summary", {}, `${ids.length} skills`), el("ul", {}, ...items));
}

function absent(index, episode) {
  const error = index.errors[episode];
  if (error) return el("p", { class: "failure" }, `No attempt could finish: ${error}`);
  return el(
    "p",
    { class: "failure" },
    "Its trajectory is not in this page. ",
    el("code", {}, `skillarena show ${index.id[episode]}`),
    " prints it where it was recorded.",
  );
}

function played(index, episode, found, parted) {
  let score = 0;
  const turns = found.turns.map((turn, place) => {
    const before = score;
    score = turn.score;
    return turnItem(turn, place + 1, before, place === parted);
  });
  const reason = index.outcomes[index.outcome[episode]].replaceAll("_", " ");
  return [
    el("ol", { class: "turns" }, beginning(found), ...turns),
    el("p", { class: "end" }, `End: ${reason}, after ${found.turns.length} replies.`),
  ];
}

function beginning(found) {
  return el("li", { class: "turn" }, el("span", { class: "number" }, "0"), el("p", {}, found.first));
}

function turnItem(turn, number, before, parted) {
  const alert = (text) => el("span", { class: "tag alert" }, text);
  const flags = [
    turn.action || turn.tool ? null : alert("no command in the reply"),
    turn.valid || !(turn.action || turn.tool) ? null : alert("refused"),
    turn.normalised ? el("span", { class: "tag" }, "spelling changed") : null,
    turn.cut ? alert("reply was cut") : null,
    turn.skills_read.length ? el("span", { class: "tag" }, `read ${turn.skills_read.join(", ")}`) : null,
    turn.score === before ? null : el("span", { class: "tag" }, `score ${before} \u2192 ${turn.score}`),
  ];
  const waited = [
    `${amount(turn.prompt)} + ${amount(turn.completion)} tokens`,
    turn.cached ? `${amount(turn.cached)} cached` : null,
    `model ${amount(turn.llm_seconds, 2)} s`,
    `environment ${amount(turn.env_seconds, 2)} s`,
    turn.tool_seconds ? `selector ${amount(turn.tool_seconds, 2)} s` : null,
  ];
  const said = [turn.thought && `Thought: ${turn.thought}`, turn.action && `Action: ${turn.action}`];
  const plain = turn.reply.trim() === said.filter(Boolean).join("\n") || turn.reply.trim() === turn.thought;
  return el(
    "li",
    { class: `turn${turn.valid ? "" : " refused"}${parted ? " parted" : ""}` },
    el("span", { class: "number" }, number),
    parted ? el("p", {}, el("span", { class: "tag" }, "from here on they differ")) : null,
    turn.thought ? el("p", { class: "thought" }, turn.thought) : null,
    turn.action ? el("p", { class: "action" }, turn.action) : null,
    turn.tool ? el("p", { class: "action tool" }, turn.tool) : null,
    turn.observation ? el("p", {}, turn.observation) : null,
    turn.advice ? el("p", { class: "advice" }, turn.advice) : null,
    plain ? null : el("details", {}, el("summary", {}, "reply as it came"), el("pre", {}, turn.reply)),
    el("p", { class: "meta" }, ...[...flags, ...waited].filter((item) => item !== null).map((item) => el("span", {}, item))),
  );
}

// The first turn in which two episodes do something else.
function firstDifference(one, other) {
  const did = (turn) => (turn ? turn.action || turn.tool : null);
  const length = Math.max(one.turns.length, other.turns.length);
  for (let place = 0; place < length; place += 1) {
    if (did(one.turns[place]) !== did(other.turns[place])) return place;
  }
  return -1;
}
