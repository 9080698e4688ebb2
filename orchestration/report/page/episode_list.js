// A list of any length: only the rows in sight exist. Arrow keys move, Enter opens.

const ROW = 58; // pixels, as the style sheet says
const BEYOND = 6; // rows drawn above and below the visible ones

class EpisodeList {
  constructor(element, { draw, open }) {
    this.element = element;
    this.draw = draw;
    this.open = open;
    this.items = [];
    this.active = -1;
    this.chosen = -1;
    this.space = el("div", { role: "presentation" });
    element.append(this.space);
    element.addEventListener("scroll", () => this.render(), { passive: true });
    element.addEventListener("keydown", (event) => this.press(event));
    element.addEventListener("click", (event) => {
      const option = event.target.closest("[role=option]");
      if (option) this.choose(Number(option.dataset.place));
    });
    new ResizeObserver(() => this.render()).observe(element);
  }

  show(items) {
    this.items = items;
    this.active = items.length ? 0 : -1;
    this.chosen = -1;
    this.space.style.height = `${items.length * ROW}px`;
    this.element.scrollTop = 0;
    this.render();
  }

  mark(place) {
    this.chosen = place;
    if (place >= 0) this.move(place);
    else this.render();
  }

  choose(place) {
    if (place < 0 || place >= this.items.length) return;
    this.mark(place);
    this.open(this.items[place]);
  }

  move(place) {
    this.active = Math.max(0, Math.min(this.items.length - 1, place));
    const top = this.active * ROW;
    const { scrollTop, clientHeight } = this.element;
    if (top < scrollTop) this.element.scrollTop = top;
    else if (top + ROW > scrollTop + clientHeight) this.element.scrollTop = top + ROW - clientHeight;
    this.render();
  }

  press(event) {
    const page = Math.max(1, Math.floor(this.element.clientHeight / ROW) - 1);
    const moves = {
      ArrowDown: this.active + 1,
      ArrowUp: this.active - 1,
      PageDown: this.active + page,
      PageUp: this.active - page,
      Home: 0,
      End: this.items.length - 1,
    };
    if (event.altKey || event.ctrlKey || event.metaKey || !this.items.length) return;
    if (event.key in moves) this.move(moves[event.key]);
    else if (event.key === "Enter" || event.key === " ") this.choose(this.active);
    else return;
    event.preventDefault();
  }

  render() {
    const { scrollTop, clientHeight } = this.element;
    const first = Math.max(0, Math.floor(scrollTop / ROW) - BEYOND);
    const last = Math.min(this.items.length, Math.ceil((scrollTop + clientHeight) / ROW) + BEYOND);
    const rows = [];
    for (let place = first; place < last; place += 1) {
      const row = el(
        "div",
        {
          class: "option",
          role: "option",
          id: `option-${place}`,
          "data-place": place,
          "data-active": place === this.active ? "" : null,
          "aria-selected": place === this.chosen ? "true" : "false",
          "aria-setsize": this.items.length,
          "aria-posinset": place + 1,
        },
        ...this.draw(this.items[place]),
      );
      row.style.top = `${place * ROW}px`;
      rows.push(row);
    }
    this.space.replaceChildren(...rows);
    const named = this.active >= first && this.active < last;
    if (named) this.element.setAttribute("aria-activedescendant", `option-${this.active}`);
    else this.element.removeAttribute("aria-activedescendant");
  }
}
