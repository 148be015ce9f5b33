// Measures competitors side by side: samples are interleaved, so that a change of the machine's speed meets all of
// them alike, and a ratio is the median of the per-round ratios. A gap under 20 % is no finding on a shared machine.
const MIN_SAMPLE_MS = 4;

/** Runs `contestants` ({ name: fn }) in turn for `rounds`; the first is croft, the second the reference. */
export async function compare(title, contestants, { rounds = 25, setup = () => {} } = {}) {
  const names = Object.keys(contestants);
  const repeats = Object.fromEntries(await sequential(names, async (name) => [name, await calibrate(contestants[name], setup)]));
  const samples = Object.fromEntries(names.map((name) => [name, []]));
  for (let round = 0; round < rounds; round++) {
    const order = round % 2 === 0 ? names : [...names].reverse();
    for (const name of order) samples[name].push(await sample(contestants[name], repeats[name], setup));
  }
  return report(title, names, samples);
}

async function sequential(items, fn) {
  const results = [];
  for (const item of items) results.push(await fn(item));
  return results;
}

async function calibrate(fn, setup) {
  await sample(fn, 2, setup);
  const once = Math.max(await sample(fn, 3, setup), 1e-4);
  return Math.max(1, Math.min(2000, Math.ceil(MIN_SAMPLE_MS / once)));
}

/** Milliseconds a call. */
async function sample(fn, repeats, setup) {
  await setup();
  const start = process.hrtime.bigint();
  for (let i = 0; i < repeats; i++) await fn(i);
  return Number(process.hrtime.bigint() - start) / 1e6 / repeats;
}

function report(title, names, samples) {
  const [, reference] = names;
  const ratioTo = (name) => median(samples[name].map((ms, round) => ms / samples[reference][round]));
  const rows = names.map((name) => ({ name, ms: median(samples[name]), p90: percentile(samples[name], 0.9), ratio: ratioTo(name) }));
  console.log(`\n${title}`);
  for (const { name, ms, p90, ratio } of rows) {
    console.log(`  ${name.padEnd(34)} ${time(ms).padStart(10)}  p90 ${time(p90).padStart(10)}  ${ratio.toFixed(3)} of ${reference}`);
  }
  return { title, rows };
}

export function time(ms) {
  if (ms < 0.1) return `${(ms * 1000).toFixed(2)} us`;
  return ms < 10 ? `${ms.toFixed(3)} ms` : `${ms.toFixed(1)} ms`;
}

export function median(values) {
  return percentile(values, 0.5);
}

export function percentile(values, q) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))];
}
