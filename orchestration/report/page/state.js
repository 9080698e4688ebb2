// What is chosen, in the address behind the #, so that a link opens the same view.

const KEYS = ["setting", "method", "with", "type", "outcome", "text", "episode", "beside"];

function readState(fragment = location.hash) {
  const found = new URLSearchParams(fragment.slice(1));
  return Object.fromEntries(KEYS.map((key) => [key, found.get(key) ?? ""]));
}

function namesState() {
  const found = new URLSearchParams(location.hash.slice(1));
  return KEYS.some((key) => found.has(key));
}

function writeState(state) {
  const kept = new URLSearchParams(KEYS.filter((key) => state[key]).map((key) => [key, state[key]]));
  const fragment = `#${kept}`;
  try {
    history.replaceState(null, "", kept.size ? fragment : location.pathname + location.search);
  } catch {
    // Inside a sandboxed frame the address cannot be changed; the view works without.
  }
}
