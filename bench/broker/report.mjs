// What bench/broker prints: the tables of docs/broker.md, and each target beside what was measured in the same run.
const fixed = (digits) => (value) => value?.toFixed(digits) ?? '';
const whole = fixed(0);
const tenth = fixed(1);
const ms = (us) => (us / 1000).toFixed(2);

function table(head, rows) {
  const line = (cells) => `| ${cells.join(' | ')} |`;
  console.log(['', line(head), `|${'-|'.repeat(head.length)}`, ...rows.map(line)].join('\n'));
}

function added(sse, direct) {
  return sse ? `${ms(Math.max(0, sse.p50 - direct.p50))} / ${ms(sse.max)}` : '';
}

export function printSubjects(rows, direct) {
  table(
    ['', 'CPU us per GET', 'GET/s', 'added p50 us', 'CPU us per CONNECT', 'CONNECT/s', 'tunnel MB/s', 'CPU s per GB', 'kB per idle tunnel', 'CPU us per GET, path form', 'SSE ms: added p50 / max'],
    rows.map((row) => [
      row.subject, tenth(row.getCpu), whole(row.getRate), row.p50 === undefined ? '' : whole(row.p50 - direct.p50), tenth(row.connectCpu), whole(row.connectRate),
      whole(row.tunnelRate), fixed(2)(row.tunnelCpu), tenth(row.idleKb), tenth(row.pathCpu), added(row.sse ?? row.pathSse, direct.sse),
    ]),
  );
  console.log(`\nwithout a proxy: p50 of a GET ${direct.p50} us, SSE p50 ${ms(direct.sse.p50)} ms, max ${ms(direct.sse.max)} ms`);
}

const KINDS = { fixed: 'fixed text', sync: 'function', async: 'async function', events: 'fixed text, `onRequest`' };

export function printFunctions(rows) {
  if (rows.length === 0) return;
  table(
    ['header, broker in Node', 'CPU us per GET', 'GET/s', 'a 10 ms timer of that Node is late by: p50 / p99 / max ms'],
    rows.map((row) => [KINDS[row.kind], tenth(row.getCpu), whole(row.getRate), [row.loop.p50, row.loop.p99, row.loop.max].map(tenth).join(' / ')]),
  );
}

/** `must` and `lead` are limits of `value`; `atLeast` turns them round. One that cannot be measured here is left out. */
export function printTargets({ broker, floor, squid, tinyproxy, nginx, direct, inNode }) {
  if (!broker) return;
  const kind = (name) => inNode.find((row) => row.kind === name);
  const [still, sync] = [kind('fixed'), kind('sync')];
  const targets = [
    { name: 'plain GET, CPU us', value: broker.getCpu, must: 35, lead: floor && Math.min(30, 1.2 * floor.getCpu) },
    { name: 'plain GET, CPU beside bare hyper', value: floor && broker.getCpu / floor.getCpu, lead: 1.2 },
    { name: 'added p50 us, 1 connection', value: broker.p50 - direct.p50, must: squid && squid.p50 - direct.p50, lead: floor && floor.p50 - direct.p50 },
    { name: 'CONNECT/s', value: broker.connectRate, must: tinyproxy?.connectRate, lead: floor?.connectRate, atLeast: true },
    { name: 'CONNECT, CPU us', value: broker.connectCpu, must: tinyproxy?.connectCpu, lead: floor?.connectCpu },
    { name: 'tunnel MB/s', value: broker.tunnelRate, must: squid?.tunnelRate, lead: floor?.tunnelRate, atLeast: true },
    { name: 'tunnel, CPU s per GB', value: broker.tunnelCpu, must: 1.1 },
    { name: 'kB per idle tunnel', value: broker.idleKb, must: 22, lead: 17 },
    { name: 'MB over Node alone, idle tunnels', value: still?.rssGrowthMb, lead: 25 },
    { name: 'path form, CPU us', value: broker.pathCpu, must: 45, lead: nginx && Math.max(30, nginx.pathCpu) },
    { name: 'sync header function beside fixed text, CPU', value: sync && still && sync.getCpu / still.getCpu, lead: 2 },
    { name: 'SSE added p50 ms', value: (broker.sse.p50 - direct.sse.p50) / 1000, must: 1 },
    { name: 'SSE max ms', value: broker.sse.max / 1000, lead: 10 },
    { name: 'SSE added p50 ms, path form', value: (broker.pathSse.p50 - direct.sse.p50) / 1000, must: 1 },
  ];
  const judge = (value, limit, atLeast) => (limit === undefined ? '' : `${fixed(2)(limit)} ${(atLeast ? value >= limit : value <= limit) ? 'yes' : 'NO'}`);
  table(
    ['target', 'measured', 'must', 'lead'],
    targets.filter(({ value }) => value !== undefined).map(({ name, value, must, lead, atLeast }) => [name, fixed(2)(value), judge(value, must, atLeast), judge(value, lead, atLeast)]),
  );
}
