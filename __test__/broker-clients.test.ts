// Real clients through the broker, each run as a command would be: with the broker's variables and no credential.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { EnvHttpProxyAgent, fetch as undiciFetch, ProxyAgent, WebSocket } from 'undici';
import { createHash } from 'node:crypto';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { broker, certificate, has, run, SECRET, tlsUpstream, upstream } from './support/broker.js';

const limit = { timeout: 60_000 };
const needs = (command: string) => ({ ...limit, skip: !has(command) && `${command} is not installed` });
const headers = { authorization: `Bearer ${SECRET}` };

test('curl: plain proxy, path form and CONNECT', needs('curl'), async (t) => {
  const plain = await upstream(t);
  const secure = await tlsUpstream(t);
  const one = await broker(t, { rules: { 'api.test': headers }, ports: [plain.port, secure.port] });
  const through = await run('curl', ['-sS', '-w', '%{http_code}', `http://api.test:${plain.port}/x`], one.env);
  assert.deepEqual([through.stdout, plain.seen.at(-1)?.headers.authorization], ['hello200', headers.authorization], through.stderr);
  // The base URL, directly and (with NO_PROXY taken away) by way of the proxy.
  for (const env of [one.env, { ...one.env, NO_PROXY: '', no_proxy: '' }]) {
    const based = await run('curl', ['-sS', '-w', '%{http_code}', `${one.baseUrl(`api.test:${secure.port}`)}/y?z=%2F`], env);
    assert.equal(based.stdout, 'hello200', based.stderr);
    assert.deepEqual([secure.seen.at(-1)?.url, secure.seen.at(-1)?.headers.authorization], ['/y?z=%2F', headers.authorization]);
  }
  const tunnel = await run('curl', ['-sS', '-k', '-w', '%{http_code}', `https://api.test:${secure.port}/z`], one.env);
  assert.deepEqual([tunnel.stdout, secure.seen.at(-1)?.headers.authorization], ['hello200', undefined], `a tunnel is passed untouched: ${tunnel.stderr}`);
  const refused = await run('curl', ['-sS', '-w', '%{http_code}', 'http://evil.test/'], one.env);
  assert.match(refused.stdout, /host-not-allowed.*403$/s);
  const upload = join(mkdtempSync(join(tmpdir(), 'croft-up-')), 'big');
  writeFileSync(upload, Buffer.alloc(3_000_000, 'x'));
  const sent = await run('curl', ['-sS', '-T', upload, `http://api.test:${plain.port}/big`], one.env);
  assert.deepEqual([sent.stdout, plain.seen.at(-1)?.body.length], ['hello', 3_000_000], sent.stderr);
  const expect = await run('curl', ['-sS', '-H', 'Expect: 100-continue', '--data-binary', `@${upload}`, `http://api.test:${plain.port}/big`], one.env);
  assert.deepEqual([expect.stdout, plain.seen.at(-1)?.body.length], ['hello', 3_000_000], expect.stderr);
});

test('curl with the credential of an auth listener in the URLs', needs('curl'), async (t) => {
  const secure = await tlsUpstream(t);
  const one = await broker(t, { rules: { 'api.test': headers }, ports: [secure.port], auth: true });
  const based = await run('curl', ['-sS', `${one.baseUrl(`api.test:${secure.port}`)}/y`], one.env);
  assert.equal(based.stdout, 'hello', based.stderr);
  const tunnel = await run('curl', ['-sS', '-k', `https://api.test:${secure.port}/z`], one.env);
  assert.equal(tunnel.stdout, 'hello', tunnel.stderr);
});

test("Node's fetch: the base URL, and a proxy agent for tunnels, with and without a credential", limit, async (t) => {
  const secure = await tlsUpstream(t);
  for (const auth of [false, true]) {
    const one = await broker(t, { rules: { 'api.test': headers }, ports: [secure.port], auth });
    const based = await fetch(`${one.baseUrl(`api.test:${secure.port}`)}/v1`, { method: 'POST', body: 'data' });
    assert.deepEqual([based.status, await based.text(), secure.seen.at(-1)?.body], [200, 'hello', 'data']);
    assert.equal(secure.seen.at(-1)?.headers.authorization, headers.authorization);
    const { username, password, origin } = new URL(one.url);
    const token = auth ? { token: `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}` } : {};
    const dispatcher = new ProxyAgent({ uri: origin, ...token, requestTls: { ca: certificate().cert } });
    const tunnelled = await undiciFetch(`https://api.test:${secure.port}/v2`, { dispatcher });
    assert.deepEqual([tunnelled.status, await tunnelled.text(), secure.seen.at(-1)?.url], [200, 'hello', '/v2']);
    await dispatcher.close();
  }
});

test('an agent that reads the proxy variables sends the credential of an auth listener (NODE_USE_ENV_PROXY is this agent)', limit, async (t) => {
  const secure = await tlsUpstream(t);
  const one = await broker(t, { rules: { 'api.test': headers }, ports: [secure.port], auth: true });
  const get = async (proxy: string) => {
    const dispatcher = new EnvHttpProxyAgent({ httpProxy: proxy, httpsProxy: proxy, noProxy: one.env['NO_PROXY'], requestTls: { ca: certificate().cert } });
    const answer = undiciFetch(`https://api.test:${secure.port}/env`, { dispatcher });
    return await answer.then(({ status }) => status, (error: Error) => (error.cause as Error).message).finally(() => dispatcher.close());
  };
  assert.equal(await get(one.env['HTTPS_PROXY']!), 200);
  // Without it the agent says only that the request was cancelled.
  assert.equal(typeof (await get(new URL(one.url).origin)), 'string');
  assert.equal(secure.seen.length, 1);
});

test('a WebSocket through a proxy agent', limit, async (t) => {
  const server = http.createServer();
  let authorization: string | undefined;
  server.on('upgrade', (request, socket) => {
    authorization = request.headers.authorization;
    const accept = createHash('sha1').update(`${request.headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64');
    socket.write(`HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`);
    socket.write(Buffer.from([0x81, 2, 0x68, 0x69]));
    socket.on('error', () => {});
    socket.on('data', () => socket.end());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => server.close());
  const { port } = server.address() as AddressInfo;
  const one = await broker(t, { rules: { 'api.test': headers }, ports: [port] });
  const dispatcher = new ProxyAgent({ uri: one.url, proxyTunnel: false });
  const socket = new WebSocket(`ws://api.test:${port}/ws`, { dispatcher });
  const message = await new Promise((resolve, reject) => {
    socket.addEventListener('message', (event) => resolve(event.data));
    socket.addEventListener('error', (event) => reject(event.error ?? new Error('failed')));
  });
  assert.equal(message, 'hi');
  if (authorization !== undefined) assert.equal(authorization, headers.authorization);
  socket.close();
  await dispatcher.destroy();
});

test('git ls-remote and clone over the path form, from a server that demands the header', needs('git'), async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'croft-git-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const quiet = { GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_SYSTEM: '/dev/null', GIT_TERMINAL_PROMPT: '0' };
  const git = async (args: string[], env = {}, cwd = folder) => {
    const ran = await run('git', args, { ...quiet, ...env }, cwd);
    assert.equal(ran.code, 0, `git ${args.join(' ')}: ${ran.stderr}`);
    return ran.stdout;
  };
  await git(['init', '-q', '-b', 'main', 'work']);
  await git(['-c', 'user.name=n', '-c', 'user.email=e@x', 'commit', '-q', '--allow-empty', '-m', 'first'], {}, join(folder, 'work'));
  await git(['clone', '-q', '--bare', 'work', 'repo.git']);
  const secure = await tlsUpstream(t, (seen, response) => {
    if (seen.headers.authorization !== headers.authorization) {
      response.writeHead(401, { 'www-authenticate': 'Basic realm="git"' }).end();
      return;
    }
    const [path = '', query = ''] = seen.url.split('?');
    const env = {
      PATH: process.env['PATH'] ?? '', GIT_PROJECT_ROOT: folder, GIT_HTTP_EXPORT_ALL: '1', PATH_INFO: path, QUERY_STRING: query,
      REQUEST_METHOD: seen.method, CONTENT_TYPE: seen.headers['content-type'] ?? '', HTTP_CONTENT_ENCODING: seen.headers['content-encoding'] ?? '',
      GIT_PROTOCOL: String(seen.headers['git-protocol'] ?? ''),
    };
    const backend = spawn('git', ['http-backend'], { env });
    const chunks: Buffer[] = [];
    backend.stdout.on('data', (chunk: Buffer) => chunks.push(chunk));
    backend.on('close', () => {
      const all = Buffer.concat(chunks);
      const end = all.indexOf('\r\n\r\n');
      for (const line of all.subarray(0, end).toString().split('\r\n')) response.setHeader(line.split(': ')[0] ?? '', line.split(': ')[1] ?? '');
      response.end(all.subarray(end + 4));
    });
    backend.stdin.end(seen.body);
  });
  const one = await broker(t, { rules: { 'api.test': headers }, ports: [secure.port] });
  const url = `${one.baseUrl(`api.test:${secure.port}`)}/repo.git`;
  assert.match(await git(['ls-remote', url], one.env), /refs\/heads\/main/);
  await git(['clone', '-q', url, 'copy'], one.env);
  assert.match(await git(['log', '--oneline'], {}, join(folder, 'copy')), /first/);
  const direct = await run('git', ['-c', 'http.sslVerify=false', 'ls-remote', `https://api.test:${secure.port}/repo.git`], { ...quiet, ...one.env });
  assert.notEqual(direct.code, 0, 'a tunnel gets no credential, so the server refuses it');
});

test('npm view through a base URL as its registry', needs('npm'), async (t) => {
  const secure = await tlsUpstream(t, (seen, response) => {
    if (seen.headers.authorization !== headers.authorization) return void response.writeHead(401).end();
    const versions = { '1.2.3': { name: 'pkg', version: '1.2.3', dist: { tarball: 'https://api.test/pkg.tgz', shasum: 'x' } } };
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ name: 'pkg', 'dist-tags': { latest: '1.2.3' }, versions }));
  });
  const one = await broker(t, { rules: { 'api.test': headers }, ports: [secure.port] });
  const home = mkdtempSync(join(tmpdir(), 'croft-npm-'));
  t.after(() => rmSync(home, { recursive: true, force: true }));
  const env = { ...one.env, HOME: home, npm_config_cache: join(home, 'cache'), npm_config_update_notifier: 'false' };
  const viewed = await run('npm', ['view', 'pkg', 'version', `--registry=${one.baseUrl(`api.test:${secure.port}`)}/`], env, home);
  assert.equal(viewed.stdout.trim(), '1.2.3', viewed.stderr);
});

test("Python's urllib: proxy, path form and tunnel", needs('python3'), async (t) => {
  const plain = await upstream(t);
  const secure = await tlsUpstream(t);
  const one = await broker(t, { rules: { 'api.test': headers }, ports: [plain.port, secure.port] });
  const script = [
    'import ssl, sys, urllib.request as r',
    'context = ssl._create_unverified_context()',
    'for url in sys.argv[1:]: print(r.urlopen(url, **({"context": context} if url.startswith("https") else {})).read().decode())',
  ].join('\n');
  const urls = [`http://api.test:${plain.port}/a`, `${one.baseUrl(`api.test:${secure.port}`)}/b`, `https://api.test:${secure.port}/c`];
  const ran = await run('python3', ['-c', script, ...urls], one.env);
  assert.equal(ran.stdout, 'hello\nhello\nhello\n', ran.stderr);
  assert.equal(plain.seen.at(-1)?.headers.authorization, headers.authorization);
  assert.deepEqual(secure.seen.map(({ url, headers: got }) => [url, got.authorization]), [['/b', headers.authorization], ['/c', undefined]]);
});
