// Upstreams, certificates and plain requests for the broker's tests.
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import type { CredentialBroker, CredentialBrokerOptions } from 'croft';
import { createCredentialBroker } from 'croft';

export const SECRET = 's3cret-t0ken-0123456789';

export interface Seen {
  method: string;
  url: string;
  headers: http.IncomingHttpHeaders;
  body: string;
}

export interface Upstream {
  port: number;
  seen: Seen[];
}

type Handler = (seen: Seen, response: http.ServerResponse, request: http.IncomingMessage) => void;

const greet: Handler = (_seen, response) => response.end('hello');

/** An upstream in clear text that keeps what it saw; gone with the test. */
export async function upstream(t: TestContext, handler: Handler = greet): Promise<Upstream> {
  return await serve(t, http.createServer(), handler);
}

export async function tlsUpstream(t: TestContext, handler: Handler = greet): Promise<Upstream> {
  const { key, cert } = certificate();
  return await serve(t, https.createServer({ key, cert }), handler);
}

async function serve(t: TestContext, server: http.Server | https.Server, handler: Handler): Promise<Upstream> {
  const seen: Seen[] = [];
  server.on('request', (request: http.IncomingMessage, response: http.ServerResponse) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const one = { method: request.method ?? '', url: request.url ?? '', headers: request.headers, body: Buffer.concat(chunks).toString() };
      seen.push(one);
      handler(one, response, request);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  return { port: (server.address() as AddressInfo).port, seen };
}

let made: { key: string; cert: string } | undefined;

/** A certificate for localhost and api.test, its own authority, made once per process. */
export function certificate(): { key: string; cert: string } {
  if (made) return made;
  const folder = mkdtempSync(join(tmpdir(), 'croft-cert-'));
  const files = ['-keyout', join(folder, 'key.pem'), '-out', join(folder, 'cert.pem')];
  const names = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost,DNS:api.test,IP:127.0.0.1', '-addext', 'basicConstraints=critical,CA:FALSE'];
  const { status, stderr } = spawnSync('openssl', ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2', ...files, ...names]);
  if (status !== 0) throw new Error(`openssl: ${stderr?.toString()}`);
  made = { key: readFileSync(join(folder, 'key.pem'), 'utf8'), cert: readFileSync(join(folder, 'cert.pem'), 'utf8') };
  rmSync(folder, { recursive: true });
  return made;
}

/** A broker that knows api.test as this machine; closed with the test. */
export async function broker(t: TestContext, options: CredentialBrokerOptions): Promise<CredentialBroker> {
  const one = await createCredentialBroker({ allowPrivate: ['api.test', 'localhost'], ca: certificate().cert, resolve: () => ['127.0.0.1'], ...options });
  t.after(() => one.close());
  return one;
}

export interface Answer {
  status: number;
  headers: http.IncomingHttpHeaders;
  body: string;
}

/** One request through the proxy, or to it. */
export function ask(proxy: string, path: string, headers: Record<string, string> = {}, method = 'GET'): Promise<Answer> {
  const { hostname, port } = new URL(proxy);
  return new Promise((resolve, reject) => {
    const request = http.request({ hostname, port, path, method, headers: { host: `${hostname}:${port}`, ...headers }, agent: false });
    request.on('error', reject);
    request.on('response', (response) => {
      let body = '';
      response.on('data', (chunk: Buffer) => (body += chunk.toString()));
      response.on('end', () => resolve({ status: response.statusCode ?? 0, headers: response.headers, body }));
      response.on('error', reject);
    });
    request.end();
  });
}

export interface Ran {
  code: number | null;
  stdout: string;
  stderr: string;
}

/** Runs a client as a command would: with the broker's variables and nothing secret. Never blocks this event loop. */
export function run(command: string, args: string[], env: Record<string, string> = {}, cwd?: string): Promise<Ran> {
  const base = { PATH: process.env['PATH'] ?? '', HOME: tmpdir(), LANG: 'C.UTF-8' };
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { env: { ...base, ...env }, cwd, stdio: ['ignore', 'pipe', 'pipe'] });
    const out = { stdout: '', stderr: '' };
    child.stdout.on('data', (chunk: Buffer) => (out.stdout += chunk.toString()));
    child.stderr.on('data', (chunk: Buffer) => (out.stderr += chunk.toString()));
    child.on('error', reject);
    child.on('close', (code) => resolve({ code, ...out }));
  });
}

export function has(command: string): boolean {
  return spawnSync(command, ['--version'], { stdio: 'ignore' }).status === 0;
}
