// Which part of the map is seen: from the items' coordinates to pixels, and back.

const MARGIN = 28;
const CLOSEST = 200;

export class Viewpoint {
  constructor() {
    this.width = 1;
    this.height = 1;
    this.box = { x: 0, y: 0, width: 1, height: 1 };
    this.reset();
  }

  /** All is seen. */
  reset() {
    this.scale = 1;
    this.dx = 0;
    this.dy = 0;
  }

  /** The rectangle that holds all points. */
  enclose(points) {
    let [left, top, right, bottom] = [Infinity, Infinity, -Infinity, -Infinity];
    for (const { x, y } of points) {
      left = Math.min(left, x);
      right = Math.max(right, x);
      top = Math.min(top, y);
      bottom = Math.max(bottom, y);
    }
    if (!points.length) [left, top, right, bottom] = [0, 0, 1, 1];
    this.box = { x: left, y: top, width: right - left || 1, height: bottom - top || 1 };
  }

  size(width, height) {
    this.width = width;
    this.height = height;
  }

  middle() {
    return [this.width / 2, this.height / 2];
  }

  /** Where a point is drawn, in pixels. */
  place({ x, y }) {
    const [u, v] = this.#plain(x, y);
    return [u * this.scale + this.dx, v * this.scale + this.dy];
  }

  pan(x, y) {
    this.dx += x;
    this.dy += y;
  }

  /** Closer by a factor, with what is at (x, y) staying there. */
  zoom(factor, x, y) {
    const scale = Math.min(Math.max(this.scale * factor, 0.5), CLOSEST);
    const by = scale / this.scale;
    this.dx = x - (x - this.dx) * by;
    this.dy = y - (y - this.dy) * by;
    this.scale = scale;
  }

  /** A point in the middle, at least so close. */
  centre({ x, y }, scale = this.scale) {
    this.scale = Math.max(this.scale, scale);
    const [u, v] = this.#plain(x, y);
    this.dx = this.width / 2 - u * this.scale;
    this.dy = this.height / 2 - v * this.scale;
  }

  // Pixels when all is seen; x and y are stretched apart: a projection's axes mean nothing.
  #plain(x, y) {
    const { box, width, height } = this;
    return [
      MARGIN + ((x - box.x) / box.width) * (width - 2 * MARGIN),
      MARGIN + ((y - box.y) / box.height) * (height - 2 * MARGIN),
    ];
  }
}
