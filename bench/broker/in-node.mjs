// The broker inside a Node of its own, for bench/broker: 1,000 rules, the header of one a fixed text or a function. Answers
// `late` with how late a 10 ms timer of this event loop came since the last question.
//   node bench/broker/in-node.mjs PORT UPSTREAM_PORT KIND
import { createCredentialBroker } from 'croft';
import { percentile } from '../measure.mjs';

const [port, upstream, kind] = process.argv.slice(2);
const token = 'Bearer 0123456789abcdef';
const values = { fixed: token, events: token, sync: () => token, async: async () => token };
const TIMER_MS = 10;
let late = [];

function watch(began = performance.now()) {
  setTimeout(() => {
    const now = performance.now();
    late.push(now - began - TIMER_MS);
    watch(now);
  }, TIMER_MS);
}

const rules = Object.fromEntries(Array.from({ length: 999 }, (_, n) => [n % 2 ? `*.s${n}.example.org` : `h${n}.example.org`, { authorization: token }]));
const rssBefore = process.memoryUsage.rss();
let events = 0;
await createCredentialBroker({
  rules: { ...rules, localhost: { authorization: values[kind] } },
  allowPrivate: ['localhost'],
  ports: [Number(upstream)],
  port: Number(port),
  ...(kind === 'events' && { onRequest: () => events++ }),
});
process.on('message', () => {
  process.send({ p50: percentile(late, 0.5), p99: percentile(late, 0.99), max: Math.max(...late), events, rssBefore });
  late = [];
});
process.send('ready');
watch();
