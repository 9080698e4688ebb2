// Elements with text in them. Text from data is only ever set as text.

const COMMANDS = /[^\P{C}\n\t]/gu; // control and format characters, which could reorder or hide what stands beside them

function clean(text) {
  return String(text).replace(COMMANDS, "\ufffd");
}

function el(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false) element.setAttribute(name, clean(value));
  }
  element.append(...children.filter((child) => child !== null).map((c) => (c instanceof Node ? c : clean(c))));
  return element;
}

const counted = new Intl.NumberFormat("en");

function amount(number, digits = 0) {
  return digits ? Number(number).toFixed(digits) : counted.format(number);
}

function badge(index, episode) {
  const outcome = index.outcomes[index.outcome[episode]];
  const kind = index.solved[episode] < 0 ? "lost" : index.solved[episode] ? "solved" : "unsolved";
  return el("span", { class: `badge ${kind}` }, outcome.replaceAll("_", " "));
}
