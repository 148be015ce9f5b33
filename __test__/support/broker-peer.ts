// The other side of a blocked event loop: an upstream and a client of the broker, in a process of their own.
import http from 'node:http';
import net, { type AddressInfo } from 'node:net';

const COUNT_MS = 1000;
const server = http.createServer((_request, response) => response.end('x'));
server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as AddressInfo).port }));

process.once('message', async ({ proxy, port }: { proxy: number; port: number }) => {
  const tunnel = net.connect(proxy, '127.0.0.1');
  tunnel.write(`CONNECT localhost:${port} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
  await new Promise((resolve) => tunnel.once('data', resolve));
  const plain = net.connect(proxy, '127.0.0.1');
  process.send?.('ready');
  // The parent blocks from here on.
  await new Promise((resolve) => setTimeout(resolve, 100));
  const counts = await Promise.all([
    roundTrips(tunnel, `GET / HTTP/1.1\r\nHost: localhost\r\n\r\n`),
    roundTrips(plain, `GET http://localhost:${port}/ HTTP/1.1\r\nHost: localhost\r\n\r\n`),
  ]);
  process.send?.({ tunnel: counts[0], plain: counts[1] });
});

/** How many answers arrive in a second, one after the other. */
async function roundTrips(socket: net.Socket, request: string): Promise<number> {
  const end = Date.now() + COUNT_MS;
  for (let count = 0; ; count++) {
    if (Date.now() > end) return count;
    socket.write(request);
    let text = '';
    while (!text.endsWith('\r\n\r\nx')) {
      text += await new Promise<string>((resolve) => socket.once('data', (chunk: Buffer) => resolve(chunk.toString().replace(/\r\n\r\n1\r\nx\r\n0\r\n\r\n$/, '\r\n\r\nx'))));
    }
  }
}
