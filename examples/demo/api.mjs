// An API that wants a token, on this machine, and the broker that knows it. The token stays in this process.
import { createServer } from 'node:http';
import { once } from 'node:events';
import { randomBytes } from 'node:crypto';
import { createCredentialBroker } from 'croft';

export async function startApi() {
  const token = randomBytes(16).toString('hex');
  const server = createServer((request, response) => {
    const known = request.headers.authorization === `Bearer ${token}`;
    response.statusCode = known ? 200 : 401;
    response.end(known ? 'thank you, the report is filed' : 'who are you?');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const host = `localhost:${server.address().port}`;
  const broker = await createCredentialBroker({
    rules: { [host]: { authorization: () => `Bearer ${token}` } },
    allowPrivate: ['localhost'],
  });
  const close = async () => {
    await broker.close();
    server.close();
  };
  return { token, broker, url: `http://${host}/reports`, close };
}
