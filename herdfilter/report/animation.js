"use strict";
(() => {
  const data = JSON.parse(document.getElementById("animation-data").textContent);
  const [play, slider, now, near] = ["play", "step", "now", "near"].map((id) => document.getElementById(id));
  const calm = matchMedia("(prefers-reduced-motion: reduce)");
  const plane = data.low.length === 2;
  const TRAIL = 40; // steps of the time axis in view
  const FADING = 5; // steps for which detections fade
  const steps = data.steps.length;
  let at = 0, timer = null;

  const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  function places(text) {
    const raw = new DataView(bytes(text).buffer);
    return Uint16Array.from({ length: raw.byteLength / 2 }, (_, i) => raw.getUint16(2 * i, true));
  }
  for (const filter of Object.values(data.filters)) {
    filter.places = places(filter.particles);
    filter.diameters = filter.sizes ? bytes(filter.sizes) : null;
  }
  const detections = places(data.detections), from = [0]; // where the detections of a step begin
  for (const count of data.scans || []) from.push(from[from.length - 1] + count);
  const css = (name, fallback) => getComputedStyle(document.documentElement).getPropertyValue(name).trim() || fallback;
  const inside = (code) => code > 0 && code < 65535; // the end values stand for what lies beyond
  const value = (code, dim) => data.low[dim] + (code / 65535) * (data.high[dim] - data.low[dim]);

  /* Round numbers for an axis, some five of them. */
  function ticks(low, high) {
    const rough = (high - low) / 5, power = 10 ** Math.floor(Math.log10(rough));
    const step = power * [1, 2, 5, 10].find((m) => m * power >= rough);
    const found = [];
    for (let i = Math.ceil(low / step); i * step <= high; i++) found.push(Number((i * step).toPrecision(6)));
    return found;
  }

  /* Limits of the axes: the whole path, or a close-up about the reference with equal scales. */
  function limits(width, height) {
    if (!plane) {
      const last = Math.max(at, Math.min(TRAIL, steps) - 1), first = Math.max(0, last - TRAIL + 1);
      const dt = steps > 1 ? data.times[1] - data.times[0] : 1;
      return [data.times[first] - dt / 2, data.times[last] + dt / 2, data.low[0], data.high[0]];
    }
    let [x, y] = data.low.map((low, d) => (low + data.high[d]) / 2);
    let scale = Math.max((data.high[0] - data.low[0]) / width, (data.high[1] - data.low[1]) / height);
    if (near?.checked) {
      [x, y] = data.centre[at];
      scale = Math.min(scale, (2 * data.near[at]) / Math.min(width, height));
    }
    return [x - (width * scale) / 2, x + (width * scale) / 2, y - (height * scale) / 2, y + (height * scale) / 2];
  }

  function draw(stage) {
    const canvas = stage.querySelector("canvas"), name = stage.querySelector("select").value;
    const filter = data.filters[name], ratio = devicePixelRatio || 1;
    const width = canvas.clientWidth, height = canvas.clientHeight;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    const pen = canvas.getContext("2d");
    pen.scale(ratio, ratio);
    const ink = "#1b1b1b", faint = "#dedede", soft = "#55534d", color = filter.color; // a dark page mirrors the canvas
    const frame = { left: 46, right: width - 10, top: 10, bottom: height - 40 };
    const [x0, x1, y0, y1] = limits(frame.right - frame.left, frame.bottom - frame.top);
    const X = (x) => frame.left + ((x - x0) / (x1 - x0)) * (frame.right - frame.left);
    const Y = (y) => frame.bottom - ((y - y0) / (y1 - y0)) * (frame.bottom - frame.top);

    pen.font = `11px ${css("--sans", "sans-serif")}`;
    pen.lineWidth = 1;
    pen.strokeStyle = faint;
    pen.fillStyle = soft;
    pen.textAlign = "center";
    for (const x of ticks(x0, x1)) {
      pen.strokeRect(X(x), frame.top, 0, frame.bottom - frame.top);
      pen.fillText(String(x), X(x), frame.bottom + 14);
    }
    pen.textAlign = "right";
    for (const y of ticks(y0, y1)) {
      pen.strokeRect(frame.left, Y(y), frame.right - frame.left, 0);
      pen.fillText(String(y), frame.left - 5, Y(y) + 4);
    }
    pen.textAlign = "center";
    pen.fillText(plane ? data.labels[0] : data.timeLabel, (frame.left + frame.right) / 2, height - 8);
    pen.save();
    pen.translate(11, (frame.top + frame.bottom) / 2);
    pen.rotate(-Math.PI / 2);
    pen.fillText(data.labels[data.labels.length - 1], 0, 0);
    pen.restore();

    pen.save();
    pen.beginPath();
    pen.rect(frame.left, frame.top, frame.right - frame.left, frame.bottom - frame.top);
    pen.clip();
    const dims = data.low.length, n = filter.drawn;
    const first = plane ? at : Math.max(0, at - TRAIL);
    const gap = Math.min(18, (X(data.times[1] || 1) - X(data.times[0])) * 0.75);
    pen.fillStyle = color;
    for (let t = first; t <= at; t++) {
      const fade = plane ? 1 : 0.25 + 0.75 * Math.max(0, 1 - (at - t) / 3);
      for (let i = 0; i < n; i++) {
        const k = (t * n + i) * dims, size = filter.diameters ? filter.diameters[t * n + i] / 64 : 1;
        if (plane) {
          if (!inside(filter.places[k]) || !inside(filter.places[k + 1])) continue;
          pen.globalAlpha = 0.62;
          pen.beginPath();
          pen.arc(X(value(filter.places[k], 0)), Y(value(filter.places[k + 1], 1)), Math.max(0.7, 3 * size), 0, 7);
          pen.fill();
        } else if (inside(filter.places[k])) {
          pen.globalAlpha = fade * Math.min(0.9, Math.max(0.06, 0.5 * size * size));
          pen.fillRect(X(data.times[t]) - gap / 2, Y(value(filter.places[k], 0)) - 0.8, gap, 1.6);
        }
      }
    }
    pen.globalAlpha = 1;
    const there = (p) => p[0] !== null;
    const place = (p, t) => (plane ? [X(p[0]), Y(p[1])] : [X(data.times[t]), Y(p[0])]);
    const path = (states, j, stroke, line, dash) => {
      pen.strokeStyle = stroke;
      pen.lineWidth = line;
      pen.setLineDash(dash);
      pen.beginPath();
      let on = false; // a target that is away leaves a gap
      for (let t = plane ? 0 : first; t <= at; t++) {
        const here = there(states[t][j]);
        if (here && !on) pen.moveTo(...place(states[t][j], t));
        else if (here) pen.lineTo(...place(states[t][j], t));
        on = here;
      }
      pen.stroke();
      pen.setLineDash([]);
    };
    const mark = (p, draw) => {
      pen.save();
      pen.translate(...place(p, at));
      pen.beginPath();
      draw();
      pen.restore();
    };
    const hue = (j) => (data.several ? data.hues[j % data.hues.length] : filter.color);
    data.truth[at].forEach((_, j) => path(data.truth, j, ink, 1.2, [4, 3]));
    filter.estimate[at].forEach((_, j) => path(filter.estimate, j, hue(j), 2, []));
    pen.strokeStyle = ink;
    for (let t = Math.max(0, at - (plane ? FADING : TRAIL)); data.scans && t <= at; t++) { // rings: a track may lie beneath
      pen.globalAlpha = t === at ? 0.95 : plane ? 0.4 * (1 - (at - t) / (FADING + 1)) : 0.4;
      pen.lineWidth = t === at ? 1.4 : 1;
      for (let i = from[t]; i < from[t + 1]; i++) {
        const code = detections.subarray(i * dims, (i + 1) * dims);
        if (!code.every(inside)) continue;
        pen.beginPath();
        pen.arc(...place(Array.from(code, value), t), 3.2, 0, 7);
        pen.stroke();
      }
    }
    pen.globalAlpha = 1;
    pen.lineWidth = 2;
    for (const p of data.truth[at].filter(there)) mark(p, () => {
      for (const s of [-1, 1]) { pen.moveTo(-5, -5 * s); pen.lineTo(5, 5 * s); }
      pen.stroke();
    });
    if (data.exact && plane) mark(data.centre[at], () => { pen.rotate(Math.PI / 4); pen.strokeRect(-4.5, -4.5, 9, 9); });
    filter.estimate[at].forEach((p, j) => there(p) && mark(p, () => {
      pen.arc(0, 0, 4.5, 0, 7);
      pen.fillStyle = hue(j);
      pen.fill();
      pen.strokeStyle = "#fff";
      pen.stroke();
    }));
    pen.restore();
    canvas.setAttribute("aria-label", `${data.scans ? "Tracks" : "Particles"} of ${name} at step ${data.steps[at]}`);
  }

  function show() {
    slider.value = at;
    now.value = `step ${data.steps[at]} of ${data.of}`;
    slider.setAttribute("aria-valuetext", now.value);
    document.querySelectorAll(".stage").forEach(draw);
  }
  function stop() {
    clearInterval(timer);
    timer = null;
    play.textContent = "Play";
    play.setAttribute("aria-label", "Play");
  }
  function start() {
    if (at === steps - 1) at = 0;
    play.textContent = "Pause";
    play.setAttribute("aria-label", "Pause");
    timer = setInterval(() => {
      at += 1;
      show();
      if (at === steps - 1) stop();
    }, calm.matches ? 1000 : 180); // with reduced motion a picture a second, never by itself
  }
  play.addEventListener("click", () => (timer === null ? start() : stop()));
  slider.addEventListener("input", () => { stop(); at = Number(slider.value); show(); });
  near?.addEventListener("change", show);
  document.querySelectorAll(".stage select").forEach((select) => select.addEventListener("change", show));
  new ResizeObserver(show).observe(document.getElementById("player"));
  at = Math.min(steps - 1, plane ? 4 : 19);
  show();
})();
