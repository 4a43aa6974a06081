// Herding in five minutes: the player and the page with sliders. Points and distances are those of herding_data.js.
"use strict";
document.addEventListener("DOMContentLoaded", () => {
  const data = globalThis.herdingData;
  const [WIDTH, HEIGHT] = data.size; // of a picture, in its own units
  const NAMES = Object.keys(data.samplers);
  const SVG = "http://www.w3.org/2000/svg";
  const calm = matchMedia("(prefers-reduced-motion: reduce)");

  function add(parent, name, attributes = {}, text = "") {
    const space = name === "svg" || (parent.namespaceURI === SVG && name !== "div") ? SVG : parent.namespaceURI;
    const made = document.createElementNS(space, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.textContent = text;
    parent.append(made);
    return made;
  }
  const shown = (distance) => String(Number(distance.toPrecision(3)));
  const counted = (n) => `${n} point${n > 1 ? "s" : ""}`;
  const ink = (name) => `--ink: var(--ink-${NAMES.indexOf(name)})`; // light or dark, as the style has it

  /* Points of an entry: places in the picture, 16 bits for each coordinate. */
  function decoded(text) {
    const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0)), raw = new DataView(bytes.buffer);
    const part = (k) => raw.getUint16(2 * k, true) / 65535;
    return Array.from({ length: bytes.length / 4 }, (_, i) => [WIDTH * part(2 * i), HEIGHT * (1 - part(2 * i + 1))]);
  }

  /* Outline of a marker of matplotlib about the origin. */
  function marker(code, r) {
    if (code === "o") return `M${-r},0a${r},${r} 0 1,0 ${2 * r},0a${r},${r} 0 1,0 ${-2 * r},0z`;
    if (code === "s") return `M${-0.9 * r},${-0.9 * r}h${1.8 * r}v${1.8 * r}h${-1.8 * r}z`;
    const plus = [[1, 3], [1, 1], [3, 1], [3, -1], [1, -1], [1, -3], [-1, -3], [-1, -1], [-3, -1], [-3, 1], [-1, 1], [-1, 3]];
    return `M${plus.map(([x, y]) => `${(x - y) * 0.29 * r},${(x + y) * 0.29 * r}`).join("L")}z`;
  }
  function mark(parent, name, x, y, r, kind = "herding-point") {
    const at = `translate(${x.toFixed(1)},${y.toFixed(1)})`;
    return add(parent, "path", { class: kind, style: ink(name), transform: at, d: marker(data.samplers[name].marker, r) });
  }
  function icon(parent, name) {
    const svg = add(parent, "svg", { class: "herding-icon", viewBox: "-8 -8 16 16", "aria-hidden": "true" });
    mark(svg, name, 0, 0, 6);
  }

  /* A picture of a mixture; the function that it returns shows points in it. */
  function picture(parent, radius) {
    const svg = add(parent, "svg", { class: "herding-picture", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img" });
    const density = add(svg, "g"), kernel = add(svg, "path", { class: "herding-kernel" }), points = add(svg, "g");
    let mixture;
    return (next, name, places, label, width = 0, enlarged = 1) => {
      if (next !== mixture) {
        mixture = next;
        density.replaceChildren();
        for (const d of data.mixtures[mixture].density) add(density, "path", { class: "herding-density", d });
      }
      points.replaceChildren();
      places.forEach(([x, y], i) => mark(points, name, x, y, radius * (i === places.length - 1 ? enlarged : 1)));
      const [[a, b], [c, d]] = data.mixtures[mixture].kernel, [x, y] = places[places.length - 1];
      const turns = Array.from({ length: 73 }, (_, k) => [Math.cos((k * Math.PI) / 36), Math.sin((k * Math.PI) / 36)]);
      const edge = turns.map(([u, v]) => [x + width * (a * u + b * v), y + width * (c * u + d * v)].map((z) => z.toFixed(1)));
      kernel.setAttribute("d", width ? `M${edge.join("L")}z` : "");
      kernel.setAttribute("style", ink(name));
      svg.setAttribute("aria-label", label);
    };
  }

  /* A chart with logarithmic heights; the function that it returns draws lines [{name, at: [[x, y]], kind}] and marks. */
  function chart(parent) {
    const svg = add(parent, "svg", { class: "herding-chart", role: "img" });
    let last = null;
    function draw(plan) {
      last = plan;
      const { width, height } = svg.getBoundingClientRect();
      if (!width) return;
      const frame = { left: 44, right: width - 16, top: 8, bottom: height - 36 };
      const [x0, x1] = plan.across, [y0, y1] = plan.upwards.map(Math.log10);
      const X = (x) => frame.left + ((x - x0) / (x1 - x0)) * (frame.right - frame.left);
      const Y = (y) => frame.bottom - ((Math.log10(y) - y0) / (y1 - y0)) * (frame.bottom - frame.top);
      svg.replaceChildren();
      svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
      svg.setAttribute("aria-label", plan.label);
      for (let power = Math.ceil(y0); power <= y1; power++) {
        const y = 10 ** power;
        add(svg, "path", { class: "herding-grid", d: `M${frame.left},${Y(y)}H${frame.right}` });
        add(svg, "text", { x: frame.left - 5, y: Y(y) + 4, "text-anchor": "end" }, String(Number(y.toPrecision(3))));
      }
      let free = 0;
      for (const [x, text] of plan.ticks) {
        const half = 3.4 * text.length;
        if (X(x) - half < free) continue; // no room: a phone
        free = X(x) + half + 5;
        add(svg, "text", { x: X(x), y: frame.bottom + 15, "text-anchor": "middle" }, text);
      }
      add(svg, "text", { x: (frame.left + frame.right) / 2, y: height - 4, "text-anchor": "middle" }, plan.axis);
      for (const line of plan.lines) {
        const d = `M${line.at.map(([x, y]) => `${X(x).toFixed(1)},${Y(y).toFixed(1)}`).join("L")}`;
        add(svg, "path", { class: `herding-line ${line.kind || ""}`, style: ink(line.name), d });
      }
      for (const { name, at: [x, y], r } of plan.marks) mark(svg, name, X(x), Y(y), r, "herding-tip");
    }
    new ResizeObserver(() => last && draw(last)).observe(svg);
    return draw;
  }
  function range(values) {
    return [Math.min(...values) / 1.4, Math.max(...values) * 1.4];
  }

  /* A slider with its name before it and what it says behind the name. */
  function slider(parent, id, name, most) {
    const box = add(parent, "div", { class: "herding-slider" });
    add(box, "label", { for: id }, name);
    const says = add(box, "output", { for: id, "aria-live": "off" });
    const input = add(box, "input", { id, type: "range", min: 0, max: most, step: 1 });
    const say = (text) => {
      says.value = text;
      input.setAttribute("aria-valuetext", text);
    };
    return [input, say];
  }
  function prepared(root) {
    root.classList.add("herding");
    NAMES.forEach((name, k) => {
      root.style.setProperty(`--light-${k}`, data.samplers[name].light);
      root.style.setProperty(`--dark-${k}`, data.samplers[name].dark);
    });
    root.replaceChildren();
    return root;
  }

  function player(root) {
    const { mixture, expected, sets } = data.player, most = expected.length;
    const sizes = expected.map((_, k) => k + 1);
    const panels = add(root, "div", { class: "herding-panels" });
    const parts = NAMES.map((name) => {
      const figure = add(panels, "figure"), title = add(figure, "figcaption", { style: ink(name) });
      icon(title, name);
      title.append(` ${name}`);
      const show = picture(figure, 14);
      return { name, show, below: add(figure, "p"), points: decoded(sets[name].points), distances: sets[name].distances };
    });
    const growth = add(panels, "figure", { class: "herding-growth" }), drawn = chart(growth), dashed = add(growth, "p");
    const upwards = range([...parts.flatMap((part) => part.distances), expected[most - 1]]);
    const bar = add(root, "div", { class: "herding-bar" });
    const play = add(bar, "button", { type: "button" }, "Play");
    const [input, say] = slider(bar, "herding-step", "Points", most - 1);
    let at = Math.round(0.3 * most) - 1, timer = null;

    function show() {
      const n = at + 1;
      input.value = at;
      say(String(n));
      for (const { name, show, below, points, distances } of parts) {
        show(mixture, name, points.slice(0, n), `${counted(n)}, ${name}, over the density`, 0, n < most ? 1.7 : 1);
        below.textContent = `energy distance ${shown(distances[at])}`;
      }
      dashed.textContent = `dashed: mean of ${n} draws, ${shown(expected[at])}`;
      const line = (values, name, kind) => ({ name, kind, at: values.map((y, k) => [Math.log(sizes[k]), y]) });
      drawn({
        label: `Energy distance over the number of points; ${counted(n)}: ` +
          parts.map(({ name, distances }) => `${name} ${shown(distances[at])}`).join(", ") +
          `, mean of independent draws ${shown(expected[at])}`,
        axis: "points",
        across: [0, Math.log(most)],
        upwards,
        ticks: [1, 2, 5, 10, 20, 50, 100].map((count) => [Math.log(count), String(count)]),
        lines: [
          line(expected, "random", "dashed"),
          ...parts.map(({ name, distances }) => line(distances.slice(0, n), name, "strong")),
        ],
        marks: parts.map(({ name, distances }) => ({ name, at: [Math.log(n), distances[at]], r: 4.5 })),
      });
    }
    function stop() {
      clearTimeout(timer);
      timer = null;
      play.textContent = "Play";
    }
    function step() {
      at += 1;
      show();
      if (at === most - 1) stop();
      else timer = setTimeout(step, calm.matches ? 1000 : at < 10 ? 350 : 120); // with reduced motion one per second
    }
    play.addEventListener("click", () => {
      if (timer !== null) return stop();
      if (at === most - 1) at = -1;
      play.textContent = "Pause";
      step();
    });
    input.addEventListener("input", () => {
      stop();
      at = Number(input.value);
      show();
    });
    show();
  }

  function laboratory(root) {
    const state = { mixture: data.player.mixture, name: NAMES[0], size: data.counts.indexOf(50), width: 0, draw: 0 };
    const sets = Object.fromEntries(Object.entries(data.mixtures).map(([mixture, entry]) => [mixture, Object.fromEntries(
      Object.entries(entry.sets).map(([name, all]) => [name, all.map((set) => ({ ...set, points: decoded(set.points) }))])
    )]));
    const choices = add(root, "div", { class: "herding-choices" });
    const which = add(choices, "label", {}, "Mixture "), mixtures = add(which, "select", { id: "herding-mixture" });
    for (const mixture of Object.keys(data.mixtures)) add(mixtures, "option", {}, mixture);
    const samplers = add(choices, "fieldset");
    add(samplers, "legend", {}, "Sampler");
    for (const name of NAMES) {
      const label = add(samplers, "label", { style: ink(name) });
      const radio = add(label, "input", { type: "radio", name: "herding-sampler", value: name });
      radio.checked = name === state.name;
      icon(label, name);
      label.append(` ${name}`);
      radio.addEventListener("change", () => render({ name }));
    }
    const show = picture(add(root, "figure", { class: "herding-plot" }), 9.5);
    const numbers = add(root, "output", { class: "herding-numbers", for: "herding-size herding-width" });
    const sliders = add(root, "div", { class: "herding-sliders" });
    const [size, saySize] = slider(sliders, "herding-size", "Number of points", data.counts.length - 1);
    const [width, sayWidth] = slider(sliders, "herding-width", "Bandwidth", data.widths.length);
    const again = add(sliders, "button", { type: "button" }, "Draw again");
    const charts = add(root, "div", { class: "herding-charts" });
    const overSize = chart(add(charts, "figure")), overWidth = chart(add(charts, "figure"));
    add(charts, "p", {}, "Energy distances of all samplers; dashed: the mean of independent draws.");
    mixtures.addEventListener("change", () => render({ mixture: mixtures.value }));
    size.addEventListener("input", () => render({ size: Number(size.value) }));
    width.addEventListener("input", () => render({ width: Number(width.value) }));
    again.addEventListener("click", () => render({ draw: (state.draw + 1) % sets[state.mixture].random.length }));
    const before = data.counts.map((_, k) => data.counts.slice(0, k).reduce((sum, n) => sum + n, 0));

    function render(change) {
      Object.assign(state, change);
      const { mixture, name, size: k, width: w, draw } = state;
      const { expected, rule } = data.mixtures[mixture], own = sets[mixture], random = name === "random";
      const n = data.counts[k], set = own[name][random ? draw : w];
      const first = !random && w === 0 ? before[k] : 0; // the automatic bandwidth has a set for each number
      const distance = set.distances[k], ratio = distance / expected[k];
      const h = random ? 0 : w ? data.widths[w - 1] : rule[k];

      mixtures.value = mixture;
      size.value = k;
      saySize(String(n));
      width.value = w;
      width.disabled = random;
      again.hidden = !random;
      sayWidth(random ? "none" : w ? `h = ${h}` : h ? `automatic, h = ${h}` : "automatic, one per group");
      show(mixture, name, set.points.slice(first, first + n), `${counted(n)}, ${name}, over the density of ${mixture}`, h);
      numbers.replaceChildren();
      const number = (label, text) => {
        const part = add(numbers, "span");
        add(part, "span", {}, `${label} `);
        add(part, "b", {}, text);
        part.append(" ");
      };
      number("energy distance", shown(distance));
      number(`${n} independent draw${n > 1 ? "s" : ""}, mean`, shown(expected[k]));
      number("ratio of the two", String(Number(ratio.toPrecision(2))));

      const all = Object.values(own).flatMap((list) => list.flatMap((one) => one.distances));
      const upwards = range([...all, ...expected]), herded = NAMES.filter((other) => other !== "random");
      const kind = (other) => (other === name ? "strong" : "");
      const last = (names) => [...names.filter((other) => other !== name), ...names.filter((other) => other === name)];
      const grown = (values, other, style) => ({ name: other, kind: style, at: values.map((y, i) => [Math.log(data.counts[i]), y]) });
      overSize({
        label: `Energy distance over the number of points; ${name}, ${counted(n)}: ${shown(distance)}`,
        axis: "points",
        across: [0, Math.log(data.counts[data.counts.length - 1])],
        upwards,
        ticks: [1, 2, 5, 10, 20, 50, 100, 200].map((count) => [Math.log(count), String(count)]),
        lines: [
          grown(expected, "random", "dashed"),
          ...last(NAMES).map((other) => grown(own[other][other === "random" ? draw : w].distances, other, kind(other))),
        ],
        marks: [{ name, at: [Math.log(n), distance], r: 5 }],
      });
      const place = (i) => (i ? i : -0.3); // the rule stands apart
      const over = (other) => own[other].map((one, i) => [place(i), one.distances[k]]);
      const level = (y) => [[place(0), y], [data.widths.length, y]];
      overWidth({
        label: `Energy distance of ${counted(n)} over the bandwidth; ` +
          herded.map((other) => `${other}, automatic: ${shown(own[other][0].distances[k])}`).join("; "),
        axis: `bandwidth h, ${counted(n)}`,
        across: [-0.7, data.widths.length + 0.3],
        upwards,
        ticks: [[place(0), "auto"], ...data.widths.map((one, i) => [i + 1, String(one)])],
        lines: [
          { name: "random", kind: "dashed", at: level(expected[k]) },
          ...(random ? [{ name, kind: "strong", at: level(distance) }] : []),
          ...last(herded).map((other) => ({ name: other, kind: kind(other), at: over(other).slice(1) })),
        ],
        marks: [
          ...herded.flatMap((other) => over(other).map((at) => ({ name: other, at, r: 3 }))),
          ...(random ? [] : [{ name, at: over(name)[w], r: 6 }]),
        ],
      });
    }
    render({});
  }

  document.querySelectorAll(".herding-player").forEach((root) => player(prepared(root)));
  document.querySelectorAll(".herding-lab").forEach((root) => laboratory(prepared(root)));
});
