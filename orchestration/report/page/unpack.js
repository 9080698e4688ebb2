// What the page carries: an index of all episodes, and blocks with the trajectories of one task each.

async function unpack(element) {
  const packed = atob(element.textContent);
  const bytes = Uint8Array.from(packed, (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).json();
}

const blocks = new Map();

// The trajectories of one task; the last few stay unpacked.
async function block(number) {
  if (!blocks.has(number)) {
    if (blocks.size >= 8) blocks.delete(blocks.keys().next().value);
    blocks.set(number, unpack(document.getElementById(`block-${number}`)));
  }
  return blocks.get(number);
}

// One episode with its texts in their places, or null when the page does not hold it.
async function trajectory(index, episode) {
  if (index.block[episode] < 0) return null;
  const { texts, episodes } = await block(index.block[episode]);
  const text = (number) => (number < 0 ? "" : texts[number]);
  const packed = episodes[index.place[episode]];
  const turns = packed.turns.map((values) => {
    const turn = Object.fromEntries(index.turn.map((name, place) => [name, values[place]]));
    for (const name of ["reply", "thought", "action", "observation", "tool", "advice"]) turn[name] = text(turn[name]);
    return turn;
  });
  return { ...packed, goal: text(packed.goal), first: text(packed.first), turns };
}
