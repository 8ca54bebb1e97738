"use strict";
(() => {
  const readout = document.getElementById("readout");
  const heard = document.getElementById("heard");
  const make = (name, text, kind) => {
    const node = document.createElement(name);
    if (text !== undefined) node.textContent = text;
    if (kind) node.className = kind;
    return node;
  };
  const show = (nodes, x, y) => {
    readout.replaceChildren(...nodes);
    readout.hidden = false;
    const box = readout.getBoundingClientRect();
    const left = x + 16 + box.width > innerWidth ? x - 16 - box.width : x + 16;
    readout.style.left = Math.max(4, Math.min(left, innerWidth - box.width - 4)) + "px";
    readout.style.top = Math.max(4, Math.min(y - box.height / 2, innerHeight - box.height - 4)) + "px";
  };
  /* What keys have shown stays with its place while the page scrolls to it. */
  let again = null;
  const hide = () => { readout.hidden = true; again = null; };
  const written = (value, share) =>
    share ? (100 * value).toFixed(1) + " %" : Number(value.toPrecision(4)).toLocaleString("en");
  /* From the window to the drawing's own units, and back. */
  const inside = (svg, event) => {
    const point = new DOMPoint(event.clientX, event.clientY);
    return point.matrixTransform(svg.getScreenCTM().inverse());
  };
  const outside = (svg, x, y) => new DOMPoint(x, y).matrixTransform(svg.getScreenCTM());

  for (const svg of document.querySelectorAll("svg[data-chart]")) {
    const chart = JSON.parse(svg.dataset.chart);
    const cursor = svg.querySelector(".cursor");
    const places = [...new Set(chart.lines.flatMap((line) => line.px))].sort((a, b) => a - b);
    let at = -1;
    const nearest = (list, x) => list.reduce((best, value, i) =>
      Math.abs(value - x) < Math.abs(list[best] - x) ? i : best, 0);
    const tell = (x, y) => {
      const rows = [];
      let where = "";
      for (const line of chart.lines) {
        const i = nearest(line.px, x);
        if (Math.abs(line.px[i] - x) > 40) continue;
        where = chart.x + " " + written(line.x[i], false);
        const row = make("div", undefined, "row");
        const mark = make("i");
        mark.style.background = "var(--c" + line.colour + ")";
        row.append(mark, make("span", line.name), make("b", written(line.y[i], chart.share)));
        rows.push(row);
      }
      if (!rows.length) return;
      cursor.setAttribute("x1", x);
      cursor.setAttribute("x2", x);
      cursor.style.visibility = "visible";
      show([make("span", where), ...rows], outside(svg, x, 0).x, y);
      heard.textContent = readout.textContent;
    };
    const leave = () => { hide(); cursor.style.visibility = "hidden"; };
    svg.addEventListener("pointermove", (event) => {
      at = nearest(places, inside(svg, event).x);
      tell(places[at], event.clientY);
    });
    svg.addEventListener("pointerdown", (event) => {
      at = nearest(places, inside(svg, event).x);
      tell(places[at], event.clientY);
    });
    svg.addEventListener("pointerleave", leave);
    svg.addEventListener("blur", leave);
    svg.addEventListener("keydown", (event) => {
      const last = places.length - 1;
      const next = { ArrowLeft: at < 0 ? last : at - 1, ArrowRight: at + 1, Home: 0, End: last }[event.key];
      if (event.key === "Escape") leave();
      if (next === undefined) return;
      event.preventDefault();
      at = Math.max(0, Math.min(last, next));
      const point = () => {
        const box = svg.getBoundingClientRect();
        tell(places[at], box.top + box.height / 2);
        again = point;
      };
      point();
    });
  }

  for (const svg of document.querySelectorAll("svg[data-map]")) {
    const map = JSON.parse(document.getElementById(svg.dataset.map).textContent);
    const here = svg.querySelector(".here");
    let at = -1;
    const tell = (i) => {
      at = i;
      here.setAttribute("cx", map.x[i]);
      here.setAttribute("cy", map.y[i]);
      here.style.visibility = "visible";
      const nodes = [];
      if (map.sprite) {
        const picture = make("div", undefined, "pic " + map.sprite + (map.small ? " small" : ""));
        const row = Math.floor(i / map.columns), column = i % map.columns;
        picture.style.backgroundPosition =
          (100 * column) / Math.max(map.columns - 1, 1) + "% " + (100 * row) / Math.max(map.rows - 1, 1) + "%";
        nodes.push(picture);
      }
      nodes.push(make("b", map.keys[i]));
      if (map.label && map.label[i] >= 0) {
        nodes.push(make("div", map.names[map.label[i]]));
        if (map.said[i] !== map.label[i]) nodes.push(make("div", "its neighbours say " + map.names[map.said[i]]));
      }
      const place = outside(svg, map.x[i], map.y[i]);
      show(nodes, place.x, place.y);
      heard.textContent = readout.textContent;
    };
    const go = (i) => { tell(i); again = () => go(i); };
    const leave = () => { hide(); here.style.visibility = "hidden"; };
    const closest = (x, y, fits) => {
      let best = -1, least = Infinity;
      for (let i = 0; i < map.x.length; i++) {
        const far = (map.x[i] - x) ** 2 + (map.y[i] - y) ** 2;
        if (far < least && (!fits || fits(i))) { least = far; best = i; }
      }
      return [best, least];
    };
    const follow = (event) => {
      const point = inside(svg, event);
      const [i, far] = closest(point.x, point.y);
      if (i >= 0 && far < 40 ** 2) tell(i); else leave();
    };
    svg.addEventListener("pointermove", follow);
    svg.addEventListener("pointerdown", follow);
    svg.addEventListener("pointerleave", (event) => { if (event.pointerType === "mouse") leave(); });
    svg.addEventListener("blur", leave);
    svg.addEventListener("keydown", (event) => {
      if (event.key === "Escape") return leave();
      const way = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
      if (!way) return;
      event.preventDefault();
      if (at < 0) { go(closest(500, 300)[0]); return; }
      const x = map.x[at], y = map.y[at];
      /* The closest point whose direction is within 45 degrees of the arrow. */
      const [i] = closest(x, y, (j) => {
        const along = (map.x[j] - x) * way[0] + (map.y[j] - y) * way[1];
        const across = Math.abs((map.x[j] - x) * way[1]) + Math.abs((map.y[j] - y) * way[0]);
        return along > 0 && across <= along;
      });
      if (i >= 0) go(i);
    });
    const box = svg.closest(".map");
    for (const button of box.querySelectorAll(".keys button")) {
      button.addEventListener("click", () => {
        const on = button.getAttribute("aria-pressed") !== "true";
        for (const other of box.querySelectorAll(".keys button")) other.setAttribute("aria-pressed", "false");
        button.setAttribute("aria-pressed", String(on));
        svg.classList.toggle("some", on);
        for (const group of svg.querySelectorAll(".points"))
          group.classList.toggle("chosen", on && group.dataset.class === button.dataset.class);
      });
    }
  }

  for (const box of document.querySelectorAll(".code")) {
    const button = make("button", "Copy");
    button.type = "button";
    button.addEventListener("click", async () => {
      const content = box.querySelector("pre").textContent;
      try {
        await navigator.clipboard.writeText(content);
      } catch {
        /* A page that was opened as a file may not be allowed to: select the text instead. */
        const range = document.createRange();
        range.selectNodeContents(box.querySelector("pre"));
        getSelection().removeAllRanges();
        getSelection().addRange(range);
        button.textContent = "Selected";
        return;
      }
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    });
    box.append(button);
  }

  addEventListener("scroll", () => { if (again) again(); else hide(); }, { passive: true });
  addEventListener("pointermove", () => { again = null; }, { capture: true, passive: true });
  let closed = [];
  addEventListener("beforeprint", () => {
    closed = [...document.querySelectorAll("details:not([open])")];
    for (const part of closed) part.open = true;
  });
  addEventListener("afterprint", () => { for (const part of closed) part.open = false; });
})();
