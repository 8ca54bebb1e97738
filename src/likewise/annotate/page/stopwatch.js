// Seconds that a question was in view: not while another view, or another tab, was.

export class Stopwatch {
  constructor() {
    this.since = 0;
    this.spent = 0;
    this.running = false;
  }

  /** From 0 on. */
  reset() {
    this.since = performance.now();
    this.spent = 0;
  }

  run(running) {
    if (running === this.running) return;
    if (running) this.since = performance.now();
    else this.spent += performance.now() - this.since;
    this.running = running;
  }

  /** In seconds, to the millisecond. */
  read() {
    const all = this.spent + (this.running ? performance.now() - this.since : 0);
    return Math.min(Math.max(Math.round(all) / 1000, 0), 1e6);
  }
}
