// The broker as JavaScript sees it: functions that supply headers, events, closing. Bytes on the wire are tests/broker.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import net from 'node:net';
import { test } from 'node:test';
import type { BrokerEvent, HeaderContext, HeaderFunction } from 'croft';
import { createCredentialBroker, WorkspaceClosedError, WorkspaceError } from 'croft';
import { ask, broker, SECRET, tlsUpstream, upstream } from './support/broker.js';
import { freshNode } from './support/processes.js';

const limit = { timeout: 60_000 };

test('a header function is told of the request and its value is sent, sync or async, new each time', limit, async (t) => {
  const up = await upstream(t);
  const told: HeaderContext[] = [];
  let count = 0;
  const one = await broker(t, {
    rules: { 'api.test': { authorization: async (context) => (told.push(context), `Bearer ${++count}`), 'x-plain': 'fixed', 'x-sync': () => 'now' } },
    ports: [up.port],
  });
  for (const expected of ['Bearer 1', 'Bearer 2']) {
    const answer = await ask(one.url, `http://api.test:${up.port}/v1?key=a`, { authorization: 'mine', 'x-sync': 'mine' });
    assert.deepEqual([answer.status, answer.body], [200, 'hello']);
    const { headers } = up.seen.at(-1)!;
    assert.deepEqual([headers.authorization, headers['x-plain'], headers['x-sync'], headers.host], [expected, 'fixed', 'now', `api.test:${up.port}`]);
  }
  const { header, host, port, method, path } = told[0]!;
  assert.deepEqual({ header, host, port, method, path }, { header: 'authorization', host: 'api.test', port: up.port, method: 'GET', path: '/v1?key=a' });
});

test('a function that gives no string is refused with 502, and the upstream hears nothing', limit, async (t) => {
  const up = await upstream(t);
  const wrong: Record<string, [unknown, string]> = {
    throws: [() => { throw new Error(SECRET); }, 'header-function-failed'],
    rejects: [() => Promise.reject(new Error(SECRET)), 'header-function-failed'],
    'throws-undefined': [() => { throw undefined; }, 'header-function-failed'],
    number: [() => 7, 'header-invalid'],
    object: [() => ({}), 'header-invalid'],
    buffer: [() => Buffer.from('x'), 'header-invalid'],
    null: [() => null, 'header-invalid'],
    undefined: [() => undefined, 'header-invalid'],
    'async-null': [async () => null, 'header-invalid'],
    empty: [() => '', 'header-invalid'],
    newline: [() => `${SECRET}\r\nx: y`, 'header-invalid'],
    nul: [() => `${SECRET}\0`, 'header-invalid'],
    surrogate: [() => '\ud800', 'header-invalid'],
    long: [() => 'x'.repeat(65536), 'header-invalid'],
    never: [() => new Promise(() => {}), 'header-function-timeout'],
  };
  const errors: unknown[] = [];
  for (const [name, [value, reason]] of Object.entries(wrong)) {
    const one = await broker(t, {
      rules: { 'api.test': { 'x-key': value as HeaderFunction } },
      ports: [up.port],
      timeouts: { functionMs: 200 },
      onError: (error) => errors.push(error),
    });
    const answer = await ask(one.url, `http://api.test:${up.port}/`, { 'x-key': 'mine' });
    assert.deepEqual([answer.status, answer.headers['x-broker-error']], [502, reason], name);
    assert.ok(!JSON.stringify(answer).includes(SECRET), name);
    await one.close();
  }
  assert.equal(up.seen.length, 0);
  assert.equal(errors.length, 3);
  const nested = await broker(t, { rules: { 'api.test': { 'x-key': () => Promise.resolve(Promise.resolve('deep')) } }, ports: [up.port] });
  assert.equal((await ask(nested.url, `http://api.test:${up.port}/`)).status, 200);
});

test('the signal of a function is aborted when its client leaves, and nothing is dialled', limit, async (t) => {
  const up = await upstream(t);
  let asked!: (signal: AbortSignal) => void;
  const signal = new Promise<AbortSignal>((resolve) => (asked = resolve));
  const one = await broker(t, {
    rules: { 'api.test': { 'x-key': (context) => new Promise(() => asked(context.signal)) } },
    ports: [up.port],
  });
  const socket = net.connect(Number(new URL(one.url).port), '127.0.0.1');
  socket.write(`GET http://api.test:${up.port}/ HTTP/1.1\r\nHost: api.test\r\n\r\n`);
  const pending = await signal;
  assert.equal(pending.aborted, false);
  const aborted = once(pending, 'abort');
  socket.destroy();
  await aborted;
  assert.equal(up.seen.length, 0);
});

test('tunnels and fixed headers go on while the event loop is blocked', limit, () => {
  const script = `
    import { fork } from 'node:child_process';
    import { createCredentialBroker } from 'croft';
    const child = fork(new URL(process.env.PEER), { stdio: 'inherit', execArgv: [] });
    const message = () => new Promise((resolve) => child.once('message', resolve));
    const { port } = await message();
    const broker = await createCredentialBroker({ rules: { localhost: { 'x-key': 'v' } }, allowPrivate: ['localhost'], ports: [port] });
    child.send({ proxy: Number(new URL(broker.url).port), port });
    await message();
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1500);
    const { tunnel, plain } = await message();
    console.log(JSON.stringify({ tunnel, plain }));
    child.kill();
    await broker.close();`;
  const { stdout, stderr } = freshNode(script, { PEER: new URL('./support/broker-peer.js', import.meta.url).href });
  const { tunnel, plain } = JSON.parse(stdout || '{}') as { tunnel?: number; plain?: number };
  assert.ok((tunnel ?? 0) > 50 && (plain ?? 0) > 50, `round trips in a blocked second: ${stdout}${stderr}`);
});

test('each request, tunnel and refusal is one event, without header values or query', limit, async (t) => {
  const up = await tlsUpstream(t);
  const events: BrokerEvent[] = [];
  const one = await broker(t, { rules: { 'api.test': { authorization: () => `Bearer ${SECRET}` } }, ports: [up.port], onRequest: (event) => events.push(event) });
  await ask(one.baseUrl(`api.test:${up.port}`), `/__broker/api.test:${up.port}/v1/x?key=${SECRET}`);
  await ask(one.url, `http://evil.test/p?q=${SECRET}`);
  while (events.length < 2) await new Promise((resolve) => setTimeout(resolve, 5));
  const shown = events.map(({ method, host, path, verdict, injected, reason, status }) => ({ method, host, path, verdict, injected, reason, status }));
  assert.deepEqual(shown, [
    { method: 'GET', host: 'api.test', path: '/v1/x', verdict: 'allow', injected: true, reason: undefined, status: 200 },
    { method: 'GET', host: 'evil.test', path: undefined, verdict: 'deny', injected: false, reason: 'host-not-allowed', status: 403 },
  ]);
  assert.equal(up.seen[0]!.headers.authorization, `Bearer ${SECRET}`);
  assert.ok(!JSON.stringify([events, one.stats(), one.env, one.url]).includes(SECRET));
  assert.deepEqual({ requests: one.stats().requests, refused: one.stats().refused }, { requests: 2, refused: 1 });
});

test('an observer that throws changes nothing', limit, async (t) => {
  const up = await upstream(t);
  const one = await broker(t, { rules: {}, allow: ['api.test'], ports: [up.port], onRequest: () => { throw new Error('observer'); } });
  for (let count = 0; count < 3; count++) assert.equal((await ask(one.url, `http://api.test:${up.port}/`)).status, 200);
});

test('a second listener has its own address, clients and allowed hosts', limit, async (t) => {
  const up = await upstream(t);
  const one = await broker(t, { rules: { 'api.test': { 'x-key': 'v' } }, allow: ['localhost'], ports: [up.port] });
  const other = await one.listen({ host: '127.0.0.2', clients: '127.0.0.0/8', allow: ['free.test'] });
  assert.match(other.url, /^http:\/\/127\.0\.0\.2:\d+$/);
  assert.equal(other.env['NO_PROXY'], '127.0.0.2');
  assert.equal((await ask(other.url, `http://api.test:${up.port}/`)).status, 200);
  assert.equal((await ask(other.url, `http://localhost:${up.port}/`)).status, 403, "the broker's own allow does not count here");
  assert.equal((await ask(other.url, `http://free.test:${up.port}/`)).headers['x-broker-error'], 'address-not-allowed');
  const strangers = await one.listen({ host: '127.0.0.3', clients: ['10.0.0.0/8'] });
  await assert.rejects(ask(strangers.url, `http://api.test:${up.port}/`), { code: 'ECONNRESET' });
  await other.close();
  await assert.rejects(ask(other.url, `http://api.test:${up.port}/`), { code: 'ECONNREFUSED' });
  assert.equal((await ask(one.url, `http://api.test:${up.port}/`)).status, 200);
});

test('with auth nothing is served without the credential of the URL', limit, async (t) => {
  const up = await tlsUpstream(t);
  const one = await broker(t, { rules: { 'api.test': { 'x-key': 'v' } }, ports: [up.port], auth: true });
  const { username, password } = new URL(one.url);
  assert.equal((await ask(one.url, 'http://api.test/')).status, 407);
  const proxyAuthorization = `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
  assert.equal((await ask(one.url, 'http://evil.test/', { 'proxy-authorization': proxyAuthorization })).status, 403);
  const base = new URL(one.baseUrl(`api.test:${up.port}`));
  assert.equal((await ask(base.href, `${base.pathname}/x`)).status, 200);
  assert.equal((await ask(base.href, `/__broker/api.test:${up.port}/x`)).headers['x-broker-error'], 'token-required');
});

test('what cannot be configured is an error with a code, and never shows a value', limit, async () => {
  const wrong: [Record<string, unknown>, RegExp][] = [
    [{ rules: { 'a b': {} } }, /rules\[0\] "a b"/],
    [{ rules: { 'https://api.test': {} } }, /rules\[0\]/],
    [{ rules: { '*': {} } }, /rules\[0\]/],
    [{ rules: { 'api.test': { Host: SECRET } } }, /host/],
    [{ rules: { 'api.test': { 'x-key': `${SECRET}\n` + 'x' } } }, /"x-key"/],
    [{ rules: { 'api.test': { 'x-key': 7 } } }, /x-key/],
    [{ rules: { 'api.test': {}, 'API.test.': {} } }, /twice/],
    [{ rules: { 'api.test': { headers: {}, clear: true } } }, /clear/],
    [{ allow: ['a..b'] }, /allow\[0\]/],
    [{ allowPrivate: ['0.0.0.0/0'] }, /allowPrivate\[0\]/],
    [{ ports: [0] }, /ports/],
    [{ port: 70_000 }, /70000/],
    [{ host: '0.0.0.0' }, /clients/],
    [{ host: 'example.org' }, /IP address/],
    [{ ca: 'nonsense' }, /ca/],
    [{ upstreamProxy: `https://u:${SECRET}@p` }, /upstreamProxy/],
    [{ timeouts: { headerMs: 0 } }, /headerMs/],
    [{ surprise: 1 }, /surprise/],
  ];
  for (const [options, message] of wrong) {
    await assert.rejects(createCredentialBroker(options as never), (error: unknown) => {
      assert.ok(error instanceof WorkspaceError, String(error));
      assert.equal(error.code, 'INVALID_ARGUMENT');
      assert.match(error.message, message);
      assert.ok(!error.message.includes(SECRET), error.message);
      return true;
    });
  }
});

test('close settles under load within a second, twice the same, and the port is free', limit, async (t) => {
  const up = await upstream(t, () => {});
  const one = await broker(t, { rules: { 'api.test': { 'x-key': (context) => (context.path === '/ask' ? new Promise(() => {}) : 'v') } }, ports: [up.port] });
  const requests = Array.from({ length: 50 }, (_, n) => ask(one.url, `http://api.test:${up.port}/${n % 2 ? 'ask' : 'wait'}`).then(() => 'answered', () => 'cut'));
  while (one.stats().activeRequests < 50) await new Promise((resolve) => setTimeout(resolve, 5));
  const began = performance.now();
  const first = one.close();
  assert.equal(one.close(), first);
  await first;
  assert.ok(performance.now() - began < 1000);
  assert.deepEqual(new Set(await Promise.all(requests)), new Set(['cut']));
  assert.equal(one.stats().connections, 0);
  await assert.rejects(one.listen({ host: '127.0.0.1' }), WorkspaceClosedError);
  const again = net.createServer().listen(Number(new URL(one.url).port), '127.0.0.1');
  await once(again, 'listening');
  again.close();
});

test('neither an open broker nor a pending function keeps Node alive or ends it badly', limit, () => {
  const open = `
    const http = await import('node:http');
    const { createCredentialBroker } = await import('croft');
    const broker = await createCredentialBroker({ rules: { localhost: { 'x-key': () => new Promise(() => {}) } }, allowPrivate: ['localhost'] });
    const request = http.get({ port: new URL(broker.url).port, path: 'http://localhost/', agent: false }).on('error', () => {});
    while (broker.stats().activeRequests < 1) await new Promise((resolve) => setTimeout(resolve, 5));
    request.socket.unref();`;
  const worker = `(async () => { ${open} (await import('node:worker_threads')).parentPort.postMessage('ready'); setInterval(() => {}, 1000); })();`;
  for (const [name, script] of Object.entries({
    'left open': `${open} console.log('end');`,
    'closed while pending': `${open} await broker.close(); console.log('end');`,
    'worker terminated while pending': `
      const { Worker } = await import('node:worker_threads');
      const worker = new Worker(${JSON.stringify(worker)}, { eval: true });
      await new Promise((resolve, reject) => worker.once('message', resolve).once('error', reject));
      await worker.terminate();
      console.log('end');`,
  })) {
    const { stdout, stderr, status } = freshNode(script);
    assert.deepEqual([stdout.trim(), status], ['end', 0], `${name}: ${stderr}`);
  }
});
