"use strict";

// ---- the method: it needs no page, and tests/test_draw.py runs it without one ------------------

const SIDE = 28; // pixels of an image, across and down
const SIZE = SIDE * SIDE;
const BITS = 32; // so a code is one integer

/** z_j = exp(-||x - a_j||^2 / (2 eta^2)): how similar image x is to each anchor a_j (Sec. 3.2). */
function features(pixels, model) {
  const z = new Float32Array(model.anchors.length / SIZE); // float32, as in hmoh.py
  for (let j = 0; j < z.length; j++) {
    let squared = 0;
    for (let i = 0; i < SIZE; i++) {
      const difference = pixels[i] - model.anchors[j * SIZE + i];
      squared += difference * difference;
    }
    z[j] = Math.exp(-squared * model.scale); // scale = 1 / (2 eta^2)
  }
  return z;
}

/** w_k . z for row k of the weights. */
function product(weights, k, z) {
  let sum = 0;
  for (let j = 0; j < z.length; j++) sum += weights[k * z.length + j] * z[j];
  return sum;
}

/** Bit k is 1 if a_k . z > 0, where a_k is the average of the perceptron w_k (Sec. 3.7). */
function encode(pixels, model, z = features(pixels, model)) {
  let code = 0;
  for (let k = 0; k < BITS; k++) {
    if (product(model.A, k, z) > 0) code |= 1 << k;
  }
  return code >>> 0; // as an integer without a sign
}

/** The number of bits that are 1; of a ^ b, the number of bits in which two codes differ. */
function popcount(x) {
  let count = 0;
  for (; x !== 0; x &= x - 1) count += 1; // takes the lowest 1 away
  return count;
}

/** The k nearest codes by Hamming distance; equally near ones in their order. */
function nearest(code, codes, k) {
  const atDistance = Array.from({ length: BITS + 1 }, () => []);
  for (let row = 0; row < codes.length; row++) {
    atDistance[popcount(code ^ codes[row])].push(row);
  }
  const found = [];
  atDistance.forEach((rows, distance) => {
    for (const row of rows.slice(0, k - found.length)) found.push({ row, distance });
  });
  return found;
}

/** The target code of a label: its own column j of Sylvester's matrix, (-1)^popcount(k & j). */
function target(model, label) {
  if (!model.labels.includes(label)) {
    if (model.labels.length === model.columns.length) throw new Error("no column is left");
    model.labels.push(label); // a new label takes the next column
  }
  const column = model.columns[model.labels.indexOf(label)];
  let code = 0;
  for (let k = 0; k < BITS; k++) {
    if (popcount(k & column) % 2 === 0) code |= 1 << k;
  }
  return code >>> 0;
}

/** One step: w_k += c_k z where bit k is wrong (Sec. 3.3); then A moves towards W (Sec. 3.7).
 *
 * A += (W - A) max(1 / t, 1 / memory). Memory is Infinity for the paper's average of everything, n
 * for about the last n steps, and 1 for the last state. Returns the bits that were corrected.
 */
function learn(model, pixels, label) {
  const z = features(pixels, model);
  const c = target(model, label);
  let corrected = 0;
  model.steps += 1;
  const rate = Math.max(1 / model.steps, 1 / model.memory);
  for (let k = 0; k < BITS; k++) {
    const sign = (c >>> k) & 1 ? 1 : -1;
    const wrong = product(model.W, k, z) > 0 !== sign > 0;
    if (wrong) corrected |= 1 << k;
    for (let i = k * z.length, j = 0; j < z.length; i++, j++) {
      if (wrong) model.W[i] += sign * z[j];
      model.A[i] += (model.W[i] - model.A[i]) * rate;
    }
  }
  return corrected >>> 0;
}

/** One step with an old image: the anchors, the first images of the stream, take turns. */
function learnOld(model) {
  const row = model.replayed++ % model.anchorLabels.length;
  learn(model, model.anchors.subarray(row * SIZE, (row + 1) * SIZE), model.anchorLabels[row]);
}

/** Learn a drawing in one step, or with replay in five, each followed by two old images.
 *
 * Returns the bits that the first step corrected.
 */
function teach(model, pixels, label, replay) {
  const corrected = learn(model, pixels, label);
  for (let i = 1; replay && i <= 5; i++) {
    learnOld(model);
    learnOld(model);
    if (i < 5) learn(model, pixels, label);
  }
  return corrected;
}

// ---- from strokes, lists of points [x, y], to an image like those of MNIST ---------------------

const PEN = 1.1; // half the width of a line, in pixels
const DOT = 25; // the pad is 100 wide, and what is smaller is not enlarged further

/** The image of strokes, made as MNIST's were: fitted into 20 x 20 pixels, centred by its mass. */
function imageOf(strokes) {
  const [xs, ys] = [0, 1].map((axis) => strokes.flat().map((point) => point[axis]));
  const [left, top] = [Math.min(...xs), Math.min(...ys)];
  const scale = (20 - 2 * PEN) / Math.max(Math.max(...xs) - left, Math.max(...ys) - top, DOT);
  let [x, y, total] = [0, 0, 0];
  inked(strokes, scale, 4 - left * scale, 4 - top * scale).forEach((ink, i) => {
    x += ink * (i % SIDE);
    y += ink * Math.floor(i / SIDE);
    total += ink;
  });
  const middle = SIDE / 2 + 4;
  const [dx, dy] = [middle - x / total, middle - y / total];
  return inked(strokes, scale, dx - left * scale, dy - top * scale);
}

/** The ink of each pixel, 0 to 255, of strokes that are scaled and then moved by (dx, dy). */
function inked(strokes, scale, dx, dy) {
  return Uint8Array.from({ length: SIZE }, (_, i) => {
    const [x, y] = [((i % SIDE) - dx) / scale, (Math.floor(i / SIDE) - dy) / scale];
    let distance = Infinity;
    for (const stroke of strokes) {
      stroke.forEach((point, n) => {
        distance = Math.min(distance, distanceTo(x, y, stroke[Math.max(n - 1, 0)], point));
      });
    }
    return 255 * Math.min(Math.max(PEN + 0.5 - distance * scale, 0), 1);
  });
}

/** The distance of (x, y) from the line between the points a and b. */
function distanceTo(x, y, a, b) {
  const [dx, dy] = [b[0] - a[0], b[1] - a[1]];
  const along = ((x - a[0]) * dx + (y - a[1]) * dy) / (dx * dx + dy * dy || 1);
  const share = Math.min(Math.max(along, 0), 1);
  return Math.hypot(x - a[0] - share * dx, y - a[1] - share * dy);
}

/** Strokes that somebody might draw for the ten digits: points, and ";" between strokes. */
const EXAMPLES = [
  "52,12 38,16 28,32 25,52 30,72 42,86 56,84 68,70 73,48 68,26 58,14 50,12",
  "56,10 52,40 48,66 45,90",
  "28,28 38,14 56,12 66,24 62,42 48,60 30,80 26,86 44,84 60,82 76,84",
  "30,16 48,10 64,18 64,32 54,44 42,47 56,50 67,62 64,78 50,88 34,86 26,78",
  "34,14 30,34 28,50 44,52 60,50 72,48; 66,16 63,40 60,64 57,90",
  "70,12 52,13 38,14 36,30 34,44 48,42 62,50 66,64 60,80 46,88 30,84",
  "60,10 46,26 36,46 30,66 34,82 48,88 62,80 64,66 54,56 40,60 32,70",
  "24,18 42,18 58,17 74,15 66,34 58,52 52,72 48,90",
  "66,20 52,12 38,20 38,34 50,46 62,60 64,76 52,88 38,82 36,68 48,52 62,38 66,20",
  "68,26 56,14 40,18 34,34 42,46 56,44 67,30 68,20 66,44 62,66 58,90",
].map((text) => JSON.parse(`[[[${text.replaceAll("; ", "]],[[").replaceAll(" ", "],[")}]]]`));

// ---- the page: draw.py puts the numbers of a trained model into it -----------------------------

const MEMORIES = [Infinity, 20, 1]; // of the three choices in draw.html
let info, stages, live; // what draw.py says, models of the slider, taught ones [replay][choice]
let pictures = []; // the images of the page, { label, pixels }
let items = []; // what is searched: pictures, then taught drawings, with their features z
let [strokes, drawing, label] = [[], null, null]; // what is drawn, and what it was taught as

const $ = (id) => document.getElementById(id);
const bitsOf = (code) => Array.from({ length: BITS }, (_, k) => (code >>> k) & 1);

/** Read the arrays in the order in which draw.py wrote them, and make the models. */
async function unpack() {
  info = JSON.parse($("info").textContent);
  const bytes = Uint8Array.from(atob($("data").textContent), (letter) => letter.charCodeAt(0));
  const inflated = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  const data = await new Response(inflated).arrayBuffer();
  let at = 0;
  const take = (Type, length) => {
    const part = new Type(data, at, length);
    at += part.byteLength;
    return part;
  };
  const n = info.model.anchorLabels.length;
  const averages = info.says.map(() => take(Float32Array, BITS * n));
  const W = take(Float32Array, BITS * n);
  const anchors = take(Uint8Array, SIZE * n);
  pictures = info.labels.map((name) => ({ label: name, pixels: take(Uint8Array, SIZE) }));
  const modelOf = (average, memory) => {
    const copies = { W: W.slice(), A: Float64Array.from(average), labels: [...info.model.labels] };
    return { ...info.model, ...copies, anchors, memory, codes: [] };
  };
  stages = averages.map((average) => modelOf(average, Infinity));
  live = [0, 1].map(() => MEMORIES.map((memory) => modelOf(averages.at(-1), memory)));
}

/** Return the model that the slider selects; at its last place, the taught one that is chosen. */
function shown() {
  const choice = document.querySelector("[name=memory]:checked").value;
  return stages[$("stage").value] ?? live[Number($("replay").checked)][choice];
}

/** Return the codes of all items. A model keeps its codes until it learns. */
function codesOf(model) {
  for (let i = model.codes.length; i < items.length; i++) {
    model.codes.push(encode(items[i].pixels, model, items[i].z));
  }
  return model.codes;
}

function targetsOf(model) {
  return model.labels.map((name) => target(model, name));
}

function paint(canvas, pixels) {
  const image = new ImageData(SIDE, SIDE);
  pixels.forEach((ink, i) => image.data.set([255 - ink, 255 - ink, 255 - ink, 255], 4 * i));
  canvas.getContext("2d").putImageData(image, 0, 0);
}

function paintPad() {
  const pen = $("pad").getContext("2d");
  pen.reset();
  pen.scale(3, 3); // strokes are in hundredths of the pad
  Object.assign(pen, { lineWidth: 7, lineCap: "round", lineJoin: "round" });
  for (const stroke of strokes) {
    pen.beginPath();
    [stroke[0], ...stroke].forEach((point) => pen.lineTo(...point)); // twice, for a single dot
    pen.stroke();
  }
}

function showBits(id, bits, name) {
  bits.forEach((bit, k) => ($(id).children[k].className = bit ? "on" : ""));
  $(id).setAttribute("aria-label", `${name}: ${bits.join("")}`);
}

/** Show the drawing, its code beside a target, and the nearest images. */
function showDrawing() {
  paintPad();
  drawing = strokes.length ? imageOf(strokes) : null;
  paint($("seen"), drawing ?? new Uint8Array(SIZE));
  $("results").hidden = !drawing;
  $("says").textContent = "Nothing is drawn yet.";
  $("taught").textContent = "";
  if (!drawing) return;

  const model = shown();
  const code = encode(drawing, model);
  const [first, second] = nearest(code, targetsOf(model), 2);
  const nearestName = model.labels[first.row];
  const isTaught = model.labels.includes(label) && stages.every((stage) => stage !== model);
  const name = isTaught ? label : nearestName;
  const goal = target(model, name);
  const differs = code ^ goal;
  const differed = isTaught ? model.before ^ goal : 0;
  $("says").textContent =
    `The nearest target is that of ${nearestName}: ${first.distance} of 32 bits differ. ` +
    `Next is ${model.labels[second.row]}: ${second.distance} differ.`;
  if (isTaught) {
    $("taught").textContent =
      `${popcount(model.corrected)} of the 32 perceptrons, one for each bit, were wrong about ` +
      `this ${name} and were corrected. The code comes from their averages: ` +
      `${popcount(differed)} bits differed from the target of ${name}, ` +
      `now ${popcount(differs)} do. ` +
      (code === model.before ? "No bit changed: compare the other averages below. " : "") +
      "Draw the next one.";
  }
  $("goal").textContent = name;
  showBits("code", bitsOf(code), "Its code");
  showBits("target", bitsOf(goal), `The target of ${name}`);
  [...$("marks").children].forEach((mark, k) => {
    mark.className = (differs >>> k) & 1 ? "wrong" : (differed >>> k) & 1 ? "mended" : "";
  });
  const codes = codesOf(model);
  const start = performance.now();
  const found = nearest(code, codes, 10);
  const milliseconds = (performance.now() - start).toFixed(1);
  $("searched").textContent = `${codes.length.toLocaleString("en")} codes, ${milliseconds} ms`;
  found.forEach(({ row, distance }, i) => {
    const [canvas, text] = $("found").children[i].children;
    paint(canvas, items[row].pixels);
    text.textContent = `${items[row].label}: ${distance} bit${distance === 1 ? "" : "s"}`;
  });
}

/** Show the drawing, what the slider says, and how many items each choice gets right. */
function showAll() {
  const n = items.length - pictures.length;
  const ownCount = `After the stream and your drawings (${n}); choose below how to average.`;
  $("stageSays").textContent = info.says[$("stage").value] ?? ownCount;
  live[Number($("replay").checked)].forEach((model, choice) => {
    const targets = targetsOf(model);
    const rows = codesOf(model).map((code) => nearest(code, targets, 1)[0].row);
    const isRight = rows.map((row, i) => model.labels[row] === items[i].label);
    const own = isRight.splice(pictures.length).filter(Boolean).length;
    const digits = isRight.filter(Boolean).length / pictures.length;
    const [, digitsCell, ownCell] = $("ways").rows[choice].cells;
    digitsCell.textContent = `${(100 * digits).toFixed(1)} %`;
    ownCell.textContent = n ? `${own} of ${n}` : "none yet";
  });
  showDrawing();
}

/** Teach the drawing to all live models, so that the choices can be compared. */
function lesson(name) {
  const isFull = live[0][0].labels.length === BITS && !live[0][0].labels.includes(name);
  if (!drawing || !name || isFull) {
    const need = isFull ? "All 32 targets are taken: reset." : "Give it a name first.";
    $("taught").textContent = drawing ? need : "Draw something first.";
    return;
  }
  live.forEach((models, replay) => {
    for (const model of models) {
      model.before = encode(drawing, model);
      model.corrected = teach(model, drawing, name, replay === 1);
      model.codes = [];
    }
  });
  label = name;
  items.push({ label, pixels: drawing, z: features(drawing, stages[0]) });
  $("stage").max = stages.length; // first, because it bounds the value
  $("stage").value = stages.length;
  offer("labels", live[0][0].labels, lesson, "a ");
  showAll();
}

/** Make a button for each name, with a word before it. */
function offer(id, names, action, before = "") {
  const buttons = names.map((name) => {
    const button = document.createElement("button");
    button.textContent = before + name;
    button.addEventListener("click", () => action(name));
    return button;
  });
  $(id).replaceChildren(...buttons);
}

function begin(newStrokes) {
  [strokes, label] = [newStrokes, null];
  showDrawing();
}

/** Add a point of the mouse or finger to the drawing; a taught one is followed by a new one. */
function drawPoint(event) {
  const isFirst = event.type === "pointerdown";
  if (!isFirst && !event.buttons) return;
  if (isFirst && label !== null) strokes = [];
  label = null;
  const box = $("pad").getBoundingClientRect();
  const point = [event.clientX - box.x, event.clientY - box.y].map((v) => (100 * v) / box.width);
  if (isFirst) $("pad").setPointerCapture(event.pointerId);
  strokes = isFirst ? [...strokes, [point]] : strokes.with(-1, [...strokes.at(-1), point]);
  showDrawing();
}

/** Forget what was taught. */
async function reset() {
  await unpack();
  items.length = Math.min(items.length, pictures.length);
  $("stage").max = stages.length - 1;
  $("stage").value = stages.length - 1;
  offer("labels", live[0][0].labels, lesson, "a ");
  begin([]);
}

/** Make the features of the pictures, a few at a time, so that one can draw meanwhile. */
function prepare() {
  for (const picture of pictures.slice(items.length, items.length + 100)) {
    items.push({ ...picture, z: features(picture.pixels, stages[0]) });
  }
  showDrawing();
  if (items.length < pictures.length) {
    setTimeout(prepare);
  } else {
    $("lessons").disabled = false;
    showAll();
  }
}

/** Start the page: fill what repeats, and say what each control does. */
async function main() {
  for (const id of ["code", "target", "marks"]) {
    $(id).append(...bitsOf(0).map(() => document.createElement("b")));
  }
  $("found").append(...Array.from({ length: 10 }, () => $("item").content.cloneNode(true)));
  offer("examples", [..."0123456789"], (digit) => begin(EXAMPLES[digit]));
  $("undo").addEventListener("click", () => begin(strokes.slice(0, -1)));
  $("clear").addEventListener("click", () => begin([]));
  $("pad").addEventListener("pointerdown", drawPoint);
  $("pad").addEventListener("pointermove", drawPoint);
  // Else a swift stroke is a fling, and Chromium takes the next tap as the end of it.
  $("pad").addEventListener("touchstart", (event) => event.preventDefault());
  $("stage").addEventListener("input", showAll);
  $("choices").addEventListener("input", showAll);
  $("reset").addEventListener("click", () => reset().then(showAll));
  $("new").addEventListener("submit", (event) => {
    event.preventDefault();
    lesson($("name").value.trim());
  });
  await reset();
  prepare();
}

if (typeof document !== "undefined") main();
