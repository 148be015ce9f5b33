/** An engine that answers from a record, on a socket of its own: for engines that cannot be had here, and for faults. */
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface Record_ {
  version?: object;
  info?: object;
  /** What the attach call sends after it was confirmed. */
  output?: Buffer;
  /** In pieces of this many bytes. */
  pieceBytes?: number;
  contentType?: string;
  /** The stream stays open after the exit. */
  staysOpen?: boolean;
  exitCode?: number;
}

export interface FakeEngine {
  socketPath: string;
  /** `METHOD /path` of every call, without version and query. */
  calls: string[];
  close(): Promise<void>;
}

export const NATIVE = {
  version: { Version: '26.1.5', ApiVersion: '1.45', MinAPIVersion: '1.24', Os: 'linux', Arch: 'amd64', Platform: { Name: 'Docker Engine - Community' } },
  info: { OSType: 'linux', OperatingSystem: 'Debian GNU/Linux 12 (bookworm)', Name: 'host', KernelVersion: '6.1.0-18-amd64', SecurityOptions: ['name=seccomp,profile=builtin'] },
};

/** A frame of the engine's multiplexed stream. */
export function frame(stream: 1 | 2, text: string | Buffer): Buffer {
  const body = Buffer.from(text);
  const head = Buffer.alloc(8);
  head[0] = stream;
  head.writeUInt32BE(body.length, 4);
  return Buffer.concat([head, body]);
}

export async function fakeEngine(record: Record_): Promise<FakeEngine> {
  const folder = mkdtempSync(join(tmpdir(), 'croft-fake-'));
  const socketPath = join(folder, 'docker.sock');
  const calls: string[] = [];
  const sockets = new Set<Socket>();
  let finish = (): void => {};
  const finished = new Promise<void>((resolve) => (finish = resolve));
  const server = createServer((request, response) => {
    const path = (request.url ?? '').replace(/^\/v[\d.]+/, '').replace(/\?.*$/, '');
    calls.push(`${request.method} ${path}`);
    const answer = (status: number, body?: object): void => {
      response.writeHead(status, { 'content-type': 'application/json', 'api-version': '1.45' }).end(body ? JSON.stringify(body) : '');
    };
    request.resume().on('end', () => {
      if (path === '/_ping') return response.end('OK');
      if (path === '/version') return answer(200, { ...NATIVE.version, ...record.version });
      if (path === '/info') return answer(200, { ...NATIVE.info, ...record.info });
      if (path === '/containers/json' || path === '/networks') return response.writeHead(200).end('[]');
      if (path === '/containers/create') return answer(201, { Id: 'f'.repeat(64), Warnings: [] });
      if (path.endsWith('/start')) return answer(204);
      if (path.endsWith('/wait')) return void finished.then(() => answer(200, { StatusCode: record.exitCode ?? 0 }));
      if (path.endsWith('/json')) return answer(200, { State: { OOMKilled: false } });
      if (request.method === 'DELETE') return answer(204);
      return answer(404, { message: `no ${path}` });
    });
  });
  server.on('upgrade', (request, socket) => {
    calls.push(`${request.method} ${(request.url ?? '').replace(/^\/v[\d.]+/, '').replace(/\?.*$/, '')}`);
    const type = record.contentType ?? 'application/vnd.docker.multiplexed-stream';
    socket.write(`HTTP/1.1 101 UPGRADED\r\nContent-Type: ${type}\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n`);
    socket.on('error', () => {});
    void send(socket as Socket, record).then(finish);
  });
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(socketPath, resolve));
  const close = async (): Promise<void> => {
    sockets.forEach((socket) => socket.destroy());
    await new Promise((resolve) => server.close(resolve));
    rmSync(folder, { recursive: true, force: true });
  };
  return { socketPath, calls, close };
}

async function send(socket: Socket, { output = Buffer.alloc(0), pieceBytes = 1 << 16, staysOpen }: Record_): Promise<void> {
  for (let at = 0; at < output.length; at += pieceBytes) {
    socket.write(output.subarray(at, at + pieceBytes));
    // Each piece is a read of its own.
    await new Promise((resolve) => setImmediate(resolve));
  }
  if (!staysOpen) socket.end();
}
