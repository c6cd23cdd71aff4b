/* A run's readings: unpacked when they are asked for, added to while the run grows. The reverse of page/pack.py. */
"use strict";
(function (L) {
  const SPECIAL = new Map([[2147483647, NaN], [2147483646, Infinity], [-2147483646, -Infinity]]);
  const ROOTS = 63;
  const HIGH = new Uint8Array(new Uint16Array([1]).buffer)[0] ? 1 : 0; // where a double's sign is, of its two words

  /** One reading of a probe at all steps it was taken: a row of numbers a step, of one number for a scalar. */
  class Course {
    constructor(probe, name, places) {
      Object.assign(this, { probe, name, places, steps: [], rows: [], notes: [], pack: null, extent: null });
    }

    get ready() {
      return this.pack === null;
    }

    /** The index of the last reading at or before a step; -1 if there is none. */
    at(step) {
      let low = 0, high = this.steps.length;
      while (low < high) {
        const middle = (low + high) >> 1;
        if (this.steps[middle] <= step) low = middle + 1;
        else high = middle;
      }
      return low - 1;
    }

    last() {
      return this.rows.length ? this.rows[this.rows.length - 1][0] : NaN;
    }

    put(step, row, notes) {
      const before = this.at(step);
      const again = before >= 0 && this.steps[before] === step;
      const index = again ? before : before + 1;
      if (!again && index < this.steps.length) this.notes.forEach((note) => note.at && (note.at = note.at.map((k) => (k >= index ? k + 1 : k))));
      this.steps.splice(index, again ? 1 : 0, step);
      this.rows.splice(index, again ? 1 : 0, row);
      for (const [place, text] of Object.entries(notes || {})) this.notes.push({ text, places: [Number(place)], at: [index] });
      if (this.notes.length > 2000) this.notes.splice(0, 1000);
      if (again || (this.extent && this.extent.rows !== index)) this.extent = null;
    }

    /** What is to be said about a number. */
    note(index, place) {
      const found = this.notes.find((note) => (!note.at || note.at.includes(index)) && (note.places.includes(place) || note.places.includes(-1)));
      return found ? found.text : "";
    }

    /** Least and largest finite number, least positive one, and whether any was infinite, over all steps. */
    range() {
      const found = this.extent || { low: Infinity, high: -Infinity, positive: Infinity, infinite: false, rows: 0 };
      for (; found.rows < this.rows.length; found.rows++) {
        for (const value of this.rows[found.rows]) {
          if (value < found.low && value !== -Infinity) found.low = value;
          if (value > found.high && value !== Infinity) found.high = value;
          if (value > 0 && value < found.positive) found.positive = value;
          if (value === Infinity || value === -Infinity) found.infinite = true;
        }
      }
      return (this.extent = found);
    }
  }

  class Store {
    constructor(run) {
      this.run = run;
      this.courses = new Map();
      for (const pack of run.readings || []) this.index(pack);
    }

    index(pack) {
      pack.courses = pack.names.map((name, index) => {
        const course = this.open(pack.probe, name, pack.places);
        course.steps = pack.steps.slice();
        course.notes = pack.notes[index].map((note) => ({ ...note }));
        course.pack = pack;
        return course;
      });
    }

    open(probe, name, places) {
      const key = `${probe}\n${name}\n${places}`;
      if (!this.courses.has(key)) this.courses.set(key, new Course(probe, name, places));
      return this.courses.get(key);
    }

    list(probe) {
      return [...this.courses.values()].filter((course) => !probe || course.probe === probe);
    }

    /** A reading along depth (or, with `scalar`, one number a step); the longest, had the number of places changed. */
    find(probe, name, scalar = false) {
      let found = null;
      for (const course of this.courses.values()) {
        const fits = course.probe === probe && course.name === name && (course.places === 0) === scalar;
        if (fits && (!found || course.steps.length > found.steps.length)) found = course;
      }
      return found;
    }

    /** Unpacks what these courses are in. */
    async need(courses) {
      const packs = new Set(courses.filter((course) => course && course.pack).map((course) => course.pack));
      for (const pack of packs) await (pack.opening = pack.opening || unpack(pack));
    }

    append(readings) {
      for (const reading of readings) {
        const many = Array.isArray(reading.value);
        const row = Float64Array.from(many ? reading.value : [reading.value], L.real);
        const course = this.open(reading.probe, reading.name, many ? row.length : 0);
        if (course.pack) (course.waiting = course.waiting || []).push([reading.step, row, reading.notes]);
        else course.put(reading.step, row, reading.notes);
      }
    }

    /** The steps at which anything was read along depth. */
    steps() {
      const found = new Set();
      for (const course of this.courses.values()) {
        if (course.places) course.steps.forEach((step) => found.add(step));
        (course.waiting || []).forEach(([step]) => course.places && found.add(step));
      }
      return [...found].sort((one, other) => one - other);
    }
  }

  async function unpack(pack) {
    const codes = restored(await inflate(pack.data), pack);
    const width = Math.max(1, pack.places), size = pack.steps.length * width;
    pack.courses.forEach((course, index) => {
      const values = numbers(codes.subarray(index * size, (index + 1) * size), pack);
      course.rows = pack.steps.map((_, k) => values.subarray(k * width, (k + 1) * width));
      course.pack = null;
      (course.waiting || []).forEach((late) => course.put(...late));
      course.waiting = null;
    });
    pack.data = null;
  }

  async function inflate(text) {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  }

  /** Planes of bytes to codes: unfolded, and the differences summed up again. */
  function restored(bytes, pack) {
    const count = bytes.length / pack.planes, codes = new Int32Array(count);
    for (let plane = 0; plane < pack.planes; plane++) {
      const shift = 8 * plane, start = plane * count;
      for (let k = 0; k < count; k++) codes[k] |= bytes[start + k] << shift;
    }
    for (let k = 0; k < count; k++) codes[k] = (codes[k] >>> 1) ^ -(codes[k] & 1);
    const width = Math.max(1, pack.places), size = pack.steps.length * width;
    for (let start = 0; start < count; start += size) {
      for (let k = start + 1; k < start + width; k++) codes[k] += codes[k - 1];
      for (let k = start + width; k < start + size; k++) codes[k] += codes[k - width];
    }
    return codes;
  }

  function numbers(codes, pack) {
    const values = new Float64Array(codes.length);
    if (pack.kind === "float") {
      const words = new Uint32Array(values.buffer), shift = 20 - pack.bits;
      for (let k = 0; k < codes.length; k++) words[2 * k + HIGH] = codes[k] < 0 ? 0x80000000 | (-codes[k] << shift) : codes[k] << shift;
      return values;
    }
    for (let k = 0; k < codes.length; k++) {
      const known = SPECIAL.has(codes[k]) ? SPECIAL.get(codes[k]) : codes[k];
      values[k] = pack.kind === "root" ? (known / ROOTS) ** 2 : known;
    }
    return values;
  }

  Object.assign(L, { Store, Course });
})(window.Leadline);
