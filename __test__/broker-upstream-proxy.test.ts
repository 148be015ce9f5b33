// Behind another proxy: the broker sends everything outward through it, with the headers it adds.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import http from 'node:http';
import net, { type AddressInfo } from 'node:net';
import { test, type TestContext } from 'node:test';
import { ask, broker, tlsUpstream, upstream, type Upstream } from './support/broker.js';

interface Outer {
  url: string;
  /** What it was asked for: absolute URLs and CONNECT targets. */
  asked: string[];
  authorizations: (string | undefined)[];
}

/** A real forward proxy that knows every name as this machine. */
async function outerProxy(t: TestContext): Promise<Outer> {
  const outer: Outer = { url: '', asked: [], authorizations: [] };
  const server = http.createServer((request, response) => {
    outer.asked.push(request.url ?? '');
    outer.authorizations.push(request.headers['proxy-authorization']);
    const { port, pathname } = new URL(request.url ?? '');
    const { 'proxy-authorization': _, ...headers } = request.headers;
    http.get({ host: '127.0.0.1', port, path: pathname, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 0, answer.headers);
      answer.pipe(response);
    });
  });
  server.on('connect', (request, client) => {
    outer.asked.push(`CONNECT ${request.url}`);
    outer.authorizations.push(request.headers['proxy-authorization']);
    const target = net.connect(Number(request.url?.split(':')[1]), '127.0.0.1', () => {
      client.write('HTTP/1.1 200 OK\r\n\r\n');
      target.pipe(client).pipe(target);
    });
    target.on('error', () => client.destroy());
    client.on('error', () => target.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  outer.url = `http://user:pass@127.0.0.1:${(server.address() as AddressInfo).port}`;
  return outer;
}

const rules = { 'api.test': { headers: { authorization: 'Bearer x' }, cleartext: true } };
const login = `Basic ${Buffer.from('user:pass').toString('base64')}`;

function check(outer: Outer, up: Upstream, asked: string): void {
  assert.deepEqual(outer.asked, [asked]);
  assert.deepEqual(outer.authorizations, [login]);
  assert.equal(up.seen.length, 1);
}

test('plain HTTP goes through the outer proxy with the added header', { timeout: 60_000 }, async (t) => {
  const [outer, up] = [await outerProxy(t), await upstream(t)];
  const one = await broker(t, { rules, ports: [up.port], upstreamProxy: outer.url, allowPrivate: [] });
  const answer = await ask(one.url, `http://api.test:${up.port}/v1`);
  assert.deepEqual([answer.status, answer.body], [200, 'hello']);
  check(outer, up, `http://api.test:${up.port}/v1`);
  assert.equal(up.seen[0]?.headers.authorization, 'Bearer x');
});

test('the path form goes through a tunnel of the outer proxy, which sees no header of it', { timeout: 60_000 }, async (t) => {
  const [outer, up] = [await outerProxy(t), await tlsUpstream(t)];
  const one = await broker(t, { rules: { [`api.test:${up.port}`]: { authorization: 'Bearer x' } }, upstreamProxy: outer.url, allowPrivate: [] });
  const answer = await ask(one.url, `/__broker/api.test:${up.port}/v1`);
  assert.deepEqual([answer.status, answer.body], [200, 'hello']);
  check(outer, up, `CONNECT api.test:${up.port}`);
  assert.equal(up.seen[0]?.headers.authorization, 'Bearer x');
});

test('a host in allowPrivate is reached directly', { timeout: 60_000 }, async (t) => {
  const [outer, up] = [await outerProxy(t), await upstream(t)];
  const one = await broker(t, { rules, ports: [up.port], upstreamProxy: outer.url });
  assert.equal((await ask(one.url, `http://api.test:${up.port}/v1`)).status, 200);
  assert.deepEqual(outer.asked, []);
});

test("'env' takes the host's own HTTPS_PROXY", { timeout: 60_000 }, async (t) => {
  const outer = await outerProxy(t);
  const script = `import { createCredentialBroker } from 'croft';
    import http from 'node:http';
    const broker = await createCredentialBroker({ allow: ['api.test'], upstreamProxy: 'env' });
    const { port } = new URL(broker.url);
    http.request({ port, method: 'CONNECT', path: 'api.test:443' }).on('connect', (answer, socket) => {
      console.log(answer.statusCode);
      socket.destroy();
      broker.close();
    }).end();`;
  const node = spawn(process.execPath, ['--input-type=module', '-e', script], { env: { ...process.env, HTTPS_PROXY: outer.url }, stdio: ['ignore', 'ignore', 'inherit'] });
  await once(node, 'close');
  assert.deepEqual(outer.asked, ['CONNECT api.test:443']);
});
