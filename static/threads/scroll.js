// Where the reader is. The view follows new text only while they are at the end;
// a message that was just sent stands near the top, above a spacer that shrinks as
// the answer grows, so that nothing moves while it is read. A cell that takes the
// place of another moves nothing either: what was in view of the old one stays. Who
// reads a text that is taken back is shown where it begins again.

const NEAR_END = 48;

export class Scroll {
  constructor({ cells, spacer, dock, bar, jump }) {
    Object.assign(this, { cells, spacer, dock, bar, jump });
    this.pinned = null;
    this.held = 0;
    this.following = true;
    this.unseen = false;
    this.last = scrollY;
    addEventListener("scroll", () => this.moved(), { passive: true });
    addEventListener("resize", () => this.grown());
    new ResizeObserver(() => this.grown()).observe(cells);
    // What a reader unfolds opens where they look, also at the end of a thread.
    cells.addEventListener("click", (event) => {
      if (event.target.closest("summary, [aria-controls], [data-change]")) this.following = false;
    }, true);
    jump.addEventListener("click", () => {
      this.toEnd();
      document.getElementById("composer-text")?.focus({ preventScroll: true });
    });
  }

  get atEnd() {
    const root = document.documentElement;
    return root.scrollHeight - (scrollY + innerHeight) <= NEAR_END;
  }

  get isLive() {
    return this.cells.querySelector('.cell[data-status="streaming"]') !== null;
  }

  get size() {
    return this.cells.getBoundingClientRect().height;
  }

  begin() {
    const entry = performance.getEntriesByType("navigation")[0]?.type;
    const pinned = this.cells.querySelector('.cell[data-status="streaming"]')?.previousElementSibling;
    if (pinned && entry === "navigate") this.pin(pinned);
    else if (entry === "navigate" && !location.hash) this.toEnd();
    this.following = this.atEnd;
    this.height = this.cells.scrollHeight;
  }

  moved() {
    if (this.atEnd) this.following ||= scrollY !== this.last;
    else if (scrollY < this.last - 2) this.following = false;
    this.last = scrollY;
    if (this.following) this.unseen = false;
    this.offerJump();
  }

  grown() {
    const height = this.cells.scrollHeight;
    const more = height > (this.height ?? 0);
    this.height = height;
    this.measure();
    if (this.following) this.toEnd();
    else if (more && !this.atEnd && this.isLive) this.unseen = true;
    this.offerJump();
  }

  offerJump() {
    this.jump.hidden = !this.unseen || this.atEnd;
  }

  toEnd() {
    this.following = true;
    this.unseen = false;
    scrollTo({ top: document.documentElement.scrollHeight, behavior: "instant" });
    this.last = scrollY;
  }

  // A later state of the same cell has grown, or some of it was taken back, as by
  // frames. Of another cell the top stays where that of the old one was if it could be
  // seen, else its foot.
  replace(shown, cell) {
    if (shown.id === cell.id) {
      this.renew(shown, cell);
      return;
    }
    const before = shown.getBoundingClientRect();
    const edge = before.top < this.bar.offsetHeight ? "bottom" : "top";
    this.still(() => {
      shown.replaceWith(cell);
      scrollBy({ top: cell.getBoundingClientRect()[edge] - before[edge], behavior: "instant" });
      this.hold();
    });
    this.following = this.atEnd;
  }

  renew(shown, cell) {
    const [before, after] = [shown, cell].map(({ dataset }) => Number(dataset.generation));
    const take = () => shown.replaceWith(cell);
    if (after > before) {
      this.shorten(cell, cell.querySelector(".note"), take);
      return;
    }
    take();
    this.grown();
  }

  // `rest` stands where the text of a cell ends, when some of it is taken back.
  shorten(cell, rest, take) {
    const { following } = this;
    let taken;
    this.still(() => {
      taken = take();
      if (rest.getBoundingClientRect().top >= this.bar.offsetHeight) this.hold();
      else this.pin(cell.previousElementSibling ?? cell);
    });
    this.following = following;
    return taken;
  }

  // Let something change while the page is long enough for any place of the view.
  still(change) {
    const root = document.documentElement;
    root.style.overflowAnchor = "none";
    this.spacer.style.height = `${root.scrollHeight}px`;
    change();
    this.height = this.cells.scrollHeight;
    this.last = scrollY;
    requestAnimationFrame(() => requestAnimationFrame(() => { root.style.overflowAnchor = ""; }));
  }

  // The page ends where the view does, or further down.
  hold() {
    this.pinned = null;
    const end = document.documentElement.scrollHeight - this.spacer.offsetHeight;
    this.held = this.size + Math.max(0, Math.floor(scrollY + innerHeight - end));
    this.measure();
  }

  pin(cell) {
    this.pinned = cell;
    this.held = 0;
    this.measure();
    this.toEnd();
  }

  measure() {
    if (this.held) {
      this.spacer.style.height = `${Math.max(0, Math.floor(this.held - this.size))}px`;
      return;
    }
    if (!this.pinned?.isConnected) return;
    const margin = parseFloat(getComputedStyle(this.pinned).scrollMarginBlockStart) || 0;
    const visible = innerHeight - margin - this.dock.offsetHeight;
    const used = this.cells.getBoundingClientRect().bottom - this.pinned.getBoundingClientRect().top;
    const below = parseFloat(getComputedStyle(this.spacer.parentElement).paddingBlockEnd) || 0;
    this.spacer.style.height = `${Math.max(0, Math.floor(visible - used - below))}px`;
  }
}
