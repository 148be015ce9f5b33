// Makes a thousand requests fail in every way and prints all it can get hold of: answers, events, stats, env, errors.
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import net, { type AddressInfo } from 'node:net';
import { inspect } from 'node:util';
import { createCredentialBroker, type BrokerEvent, type CredentialBroker } from 'croft';

const [fixed = '', called = '', thrown = '', invalid = '', proxied = ''] = (process.env['SECRETS'] ?? '').split(',');
delete process.env['SECRETS'];

/** An upstream that reads a little and answers with `reply`, or only closes. */
async function upstream(reply: string | undefined): Promise<number> {
  const server = net.createServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', () => {
      if (reply === undefined) return;
      socket.end(reply);
    });
  });
  server.listen(0, '127.0.0.1').unref();
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

const closes = await upstream('');
const garbage = await upstream('HTTP/1.1 200 OK\r\nX: a\rb\r\n\r\n');
const silent = await upstream(undefined);
const truncated = await upstream('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc');
const masked = await upstream(`HTTP/1.1 400 Bad\r\nX-Echo: Bearer ${fixed}\r\nContent-Length: ${fixed.length + 7}\r\n\r\nBearer ${fixed}`);
const unused = 9;

const events: BrokerEvent[] = [];
const shared = {
  ports: [closes, garbage, silent, truncated, masked, unused],
  allowPrivate: ['here.test', '*.here.test'],
  timeouts: { functionMs: 50, responseMs: 100, connectMs: 400 },
  onRequest: (event: BrokerEvent) => void events.push(event),
  resolve: (host: string) => (host === 'public.test' ? ['93.184.216.34'] : host === 'none.here.test' ? [] : ['127.0.0.1']),
};
const authorization = `Bearer ${fixed}`;
const one = await createCredentialBroker({
  ...shared,
  rules: {
    'here.test': { headers: { authorization }, scrub: true },
    'public.test': { authorization },
    'none.here.test': { authorization },
    'called.here.test': { authorization: async () => `Bearer ${called}` },
    'throws.here.test': { authorization: () => { throw new Error(thrown); } },
    'rejects.here.test': { authorization: async () => { throw new Error(thrown); } },
    'invalid.here.test': { authorization: () => `${invalid}\r\nx: ${invalid}` },
    'object.here.test': { authorization: (() => ({ toString: () => invalid })) as never },
    'never.here.test': { authorization: () => new Promise<string>(() => {}) },
  },
});
const chained = await createCredentialBroker({ ...shared, allow: ['public.test'], rules: {}, upstreamProxy: `http://user:${proxied}@127.0.0.1:${unused}` });

function raw(broker: CredentialBroker, text: string): Promise<string> {
  return new Promise((resolve) => {
    const socket = net.connect(Number(new URL(broker.url).port), '127.0.0.1');
    let answer = '';
    socket.on('data', (chunk) => (answer += chunk.toString('latin1')));
    socket.on('error', () => {});
    socket.on('close', () => resolve(answer));
    socket.end(text);
  });
}

const get = (target: string, lines = ''): string => `GET ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${lines}\r\n`;
const local = new URL(one.url).host;
const based = (rest: string): string => `GET /__broker/${rest} HTTP/1.1\r\nHost: ${local}\r\nConnection: close\r\n\r\n`;
const ways: [CredentialBroker, string][] = [
  ...[closes, garbage, silent, truncated, masked, unused].flatMap((port): [CredentialBroker, string][] => [
    [one, get(`http://here.test:${port}/`)],
    // Its rule does not scrub, so an echo would pass, as documented.
    [one, get(`http://called.here.test:${port === masked ? closes : port}/`)],
    [one, based(`here.test:${port}/x`)],
    [one, `CONNECT here.test:${port} HTTP/1.1\r\n\r\n`.replace('CONNECT', port === unused ? 'CONNECT' : 'TRACE')],
  ]),
  ...['throws', 'rejects', 'invalid', 'object', 'never', 'none'].map((name): [CredentialBroker, string] => [one, get(`http://${name}.here.test:${closes}/`)]),
  [one, get('http://public.test/')],
  [one, get('http://evil.test/')],
  [one, get('http://here.test:1/')],
  [one, get('http://0x7f.1/')],
  [one, get('https://here.test/')],
  [one, get(`http://here.test:${closes}/`, 'Expect: nothing\r\n')],
  [one, get(`http://here.test:${closes}/`, 'Content-Length: 1\r\nTransfer-Encoding: chunked\r\n')],
  [one, get(`http://here.test:${closes}/`, `X: ${'a'.repeat(70_000)}\r\n`)],
  [one, based('here.test:1/')],
  [one, based('evil.test/')],
  [one, get(`http://u:p@here.test:${closes}/`)],
  [chained, get('http://public.test/')],
  [chained, `CONNECT public.test:443 HTTP/1.1\r\n\r\n`],
];

let failed = 0;
const reasons = new Set<string>();
for (let round = 0; failed < 1000; round++) {
  const answers = await Promise.all(ways.map(([broker, text]) => raw(broker, text)));
  for (const answer of answers) {
    const reason = /x-broker-error: ([\w-]+)/.exec(answer)?.[1];
    if (reason) reasons.add(reason);
    if (!answer.startsWith('HTTP/1.1 200') || reason) failed++;
    console.log(answer);
  }
}
const inside = spawnSync('env', [], { env: { ...process.env, ...one.env, ...chained.env }, encoding: 'utf8' });
console.log(inside.stdout, one.url, one.baseUrl('here.test'), one.stats(), inspect([one, chained], { depth: 9, showHidden: true }));
for (const event of events) console.log(JSON.stringify(event));
const configured = await createCredentialBroker({ rules: { 'here.test': { authorization: `${fixed}\n` + fixed, Host: fixed } } }).catch((error: unknown) => error);
console.log(configured, inspect(configured, { showHidden: true }));
await Promise.all([one.close(), chained.close()]);
console.log(JSON.stringify({ failed, reasons: [...reasons].sort(), events: events.length }));
